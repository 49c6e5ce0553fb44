//! The link: AUTOC, LINKS, the 1 Gbit/s PCS, the laser (82599 datasheet 3.7.4, 8.2.3.22).

use super::interrupt::{LSC, SDP2};
use super::map::{ANLP1, AUTOC, AUTOC2, ESDP, GPIE, HLREG0, LINKS2, PCS1GANLP, PCS1GLSTA, bit};
use super::{Core, E82599, Event, Medium};
use netcore::Instant;

/// AUTOC 15:13, link mode.
pub(super) const fn mode(autoc: u32) -> u32 {
    autoc >> 13 & 7
}

const MODE_1G: u32 = 0;
const MODE_1G_AN: u32 = 2;
const MODE_10G_SERIAL: u32 = 3;
const MODE_BACKPLANE: u32 = 4;
const MODE_BACKPLANE_1G: u32 = 6;
/// AUTOC2 17:16.
const PMD_SFI: u32 = 2;
/// AUTOC as an SFP+ card's NVM sets it: 10 Gbit/s serial, all abilities of the backplane.
const AUTOC_SFP: u32 = 0xc000_0000 | 3 << 28 | 7 << 16 | MODE_10G_SERIAL << 13;
/// As a backplane card's: negotiate.
const AUTOC_BACKPLANE: u32 = 0xc000_0000 | 3 << 28 | 7 << 16 | MODE_BACKPLANE << 13;
const LINKS_UP: u32 = 1 << 30;
const LINKS_STAYED: u32 = 1 << 7;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// Mbit/s that both sides run at.
    mbps: Option<u32>,
    /// As last reported by LSC.
    reported: bool,
    /// The link was up at every moment since the last read of LINKS.
    stayed: bool,
    module: bool,
}

impl E82599 {
    pub(super) fn line_power_on(&mut self, core: &mut Core) {
        let (autoc, autoc2) = match self.medium {
            Medium::SfpPlus => (AUTOC_SFP, PMD_SFI << 16),
            Medium::Backplane => (AUTOC_BACKPLANE, 0),
        };
        self.set_word(AUTOC, autoc);
        self.set_word(AUTOC2, autoc2);
        // SDP 3 drives the laser, on; SDP 5 chooses the rate.
        self.set_word(ESDP, 1 << 11 | 1 << 13 | 1 << 5);
        self.line = Line { module: !core.faults.sfp_absent, ..Line::default() };
        self.restart_link(core);
    }

    /// Speed of the link that the MAC has.
    pub(super) fn link(&self) -> Option<u32> {
        if self.loops_back() || self.word(AUTOC) & bit::FLU != 0 {
            return Some(10_000);
        }
        self.line.mbps
    }

    pub(super) fn loops_back(&self) -> bool {
        self.word(HLREG0) & bit::LPBK != 0
    }

    fn laser_on(&self) -> bool {
        let esdp = self.word(ESDP);
        // As an input it floats, which leaves the laser on.
        esdp & bit::SDP3 == 0 || esdp & bit::SDP3 << 8 == 0
    }

    /// What the two sides come to.
    fn agree(&self, core: &Core) -> Option<u32> {
        let (autoc, autoc2) = (self.word(AUTOC), self.word(AUTOC2));
        let partner = core.partner;
        if !partner.present || autoc2 >> 28 & 7 != 0 {
            return None;
        }
        let ten = partner.ten_gigabit && (partner.negotiates || partner.speed_mbps == 10_000);
        let one = partner.gigabit && (partner.negotiates || partner.speed_mbps == 1000);
        match self.medium {
            Medium::SfpPlus => {
                if core.faults.sfp_absent || !self.laser_on() {
                    return None;
                }
                match mode(autoc) {
                    MODE_10G_SERIAL if autoc2 >> 16 & 3 == PMD_SFI => ten.then_some(10_000),
                    MODE_1G | MODE_1G_AN if autoc & 1 << 9 == 0 => (one && !ten).then_some(1000),
                    _ => None,
                }
            }
            Medium::Backplane => match mode(autoc) {
                MODE_BACKPLANE | MODE_BACKPLANE_1G | 7 => {
                    if ten && autoc & (1 << 16 | 1 << 31) != 0 {
                        Some(10_000)
                    } else if one && autoc & 1 << 30 != 0 {
                        Some(1000)
                    } else {
                        None
                    }
                }
                MODE_10G_SERIAL | 1 => ten.then_some(10_000),
                MODE_1G | MODE_1G_AN => one.then_some(1000),
                _ => None,
            },
        }
    }

    pub(super) fn read_links(&mut self, core: &mut Core) -> u32 {
        let Some(mbps) = self.link() else {
            self.line.stayed = false;
            return 0;
        };
        let stayed = if self.line.stayed { LINKS_STAYED } else { 0 };
        self.line.stayed = true;
        let speed = if mbps == 10_000 { 3 << 28 | 1 << 17 | 1 << 24 } else { 2 << 28 | 1 << 18 };
        let negotiates = matches!(mode(self.word(AUTOC)), MODE_1G_AN | MODE_BACKPLANE | MODE_BACKPLANE_1G | 7);
        let complete = if negotiates && core.partner.negotiates { 1 << 31 } else { 0 };
        LINKS_UP | stayed | speed | 1 << 12 | complete
    }

    /// Registers of the medium that only read.
    pub(super) fn read_medium(&self, core: &Core, offset: u32) -> Option<u32> {
        let one = self.line.mbps == Some(1000);
        let pause = u32::from(core.partner.offer >> 10 & 3);
        Some(match offset {
            // The state machine of negotiation runs in the modes that negotiate.
            ANLP1 => u32::from(mode(self.word(AUTOC)) & 4 != 0) << 16 | pause << 10,
            LINKS2 => u32::from(self.medium == Medium::Backplane && core.partner.negotiates) << 6,
            PCS1GLSTA => {
                let negotiated = one && mode(self.word(AUTOC)) == MODE_1G_AN && core.partner.negotiates;
                (if one { 1 | 1 << 4 } else { 0 }) | u32::from(negotiated) << 16
            }
            PCS1GANLP => pause << 7,
            _ => return None,
        })
    }

    pub(super) fn write_autoc(&mut self, core: &mut Core, offset: u32, value: u32) {
        if offset == AUTOC2 {
            self.set_word(AUTOC2, value);
            self.restart_link(core);
            return;
        }
        let before = self.word(AUTOC);
        self.set_word(AUTOC, value & !bit::RESTART_AN);
        // The new mode counts from a restart on.
        if value & bit::RESTART_AN != 0 || (before ^ value) & bit::FLU != 0 {
            self.restart_link(core);
        }
    }

    pub(super) fn read_esdp(&self, core: &Core) -> u32 {
        let esdp = self.word(ESDP);
        let inputs = if self.medium == Medium::SfpPlus && !core.faults.sfp_absent { bit::SDP2 } else { 0 };
        // Directions are bits 15:8.
        let outputs = esdp >> 8 & 0xff;
        esdp & !0xff | esdp & outputs | inputs & !outputs
    }

    pub(super) fn write_esdp(&mut self, core: &mut Core, value: u32) {
        let laser = self.laser_on();
        self.set_word(ESDP, value);
        if laser != self.laser_on() {
            self.restart_link(core);
        }
    }

    /// The link goes, and comes back after its time if there is anything to come.
    pub(super) fn restart_link(&mut self, core: &mut Core) {
        self.line.mbps = None;
        self.timers.cancel(&Event::Link);
        if self.agree(core).is_some() {
            self.timers.arm(core.now() + core.timing.link_up, Event::Link);
        }
        self.link_may_have_changed(core);
    }

    pub(super) fn link_time_is_over(&mut self, core: &mut Core) {
        self.line.mbps = self.agree(core);
        self.link_may_have_changed(core);
    }

    pub(super) fn partner_changed(&mut self, core: &mut Core) {
        let module = !core.faults.sfp_absent;
        if module != self.line.module {
            self.line.module = module;
            if self.word(GPIE) & 1 << 2 != 0 {
                self.raise(core, SDP2);
            }
        }
        self.restart_link(core);
    }

    /// Raises LSC on both edges.
    pub(super) fn link_may_have_changed(&mut self, core: &mut Core) {
        let up = self.link().is_some();
        if !up {
            self.line.stayed = false;
        }
        if up != self.line.reported {
            self.line.reported = up;
            self.raise(core, LSC);
            if up {
                self.run_transmit(core);
            }
        }
    }

    /// The pause that the partner asks for.
    pub(super) fn pause(&mut self, core: &mut Core, quanta: u16) {
        // A quantum is 512 bit times.
        let mbps = u64::from(self.link().unwrap_or(10_000));
        let nanos = u64::from(quanta) * 512 * 1000 / mbps;
        self.paused_until = if quanta == 0 { Instant::ZERO } else { core.now().plus_nanos(nanos) };
        self.timers.cancel(&Event::PauseEnd);
        self.timers.arm(self.paused_until.max(core.now()), Event::PauseEnd);
    }
}
