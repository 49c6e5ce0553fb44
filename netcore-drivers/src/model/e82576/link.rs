//! The link: the copper PHY behind MDIC, the PCS of SerDes, STATUS (82576 datasheet 3.5, 8.2.2, 8.17).

use super::{Core, E82576, Event, interrupt, registers as reg};
use crate::model::phy::{Link, PhyKind};
use core::time::Duration;
use netcore::Instant;

/// A management frame: 64 bits at 2.5 MHz.
const MDIC_TIME: Duration = Duration::from_nanos(25_600);
/// SW_FW_SYNC: the PHY of port 0.
const SYNC_PHY0: u32 = 1 << 1;

/// The internal PHY: port status 17, port control 18, link health 19, page select 31.
pub(super) const PHY: PhyKind = PhyKind {
    identity: [0x02a8, 0x0391],
    registers: &[(16, 0xffff, 0x0008), (18, 0xffff, 0), (19, 0, 0), (20, 0xffff, 0), (31, 0xffff, 0)],
    state_register: 17,
};

/// The PCS as it stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pcs {
    link: bool,
    complete: bool,
}

const LCTL_FORCE_LINK: u32 = 1 << 5;
const LCTL_AN_ENABLE: u32 = 1 << 16;
const LCTL_AN_RESTART: u32 = 1 << 17;

impl E82576 {
    /// The link that the MAC has: the PHY's, once software wants it.
    pub(super) fn link(&self) -> Option<Link> {
        const FAST: Link = Link { mbps: 1000, full: true };
        if self.ctrl & reg::CTRL_SLU == 0 {
            return None;
        }
        if self.loops_back() {
            return Some(FAST);
        }
        if self.serdes {
            return self.pcs.link.then_some(FAST);
        }
        let link = self.phy.link()?;
        // A MAC that is forced to another speed than its PHY has does not get a frame through.
        let forced_speed = match self.ctrl >> reg::CTRL_SPEED_SHIFT & 3 {
            0 => 10,
            1 => 100,
            _ => 1000,
        };
        if self.ctrl & reg::CTRL_FRCSPD != 0 && forced_speed != link.mbps {
            return None;
        }
        if self.ctrl & reg::CTRL_FRCDPX != 0 && (self.ctrl & reg::CTRL_FD != 0) != link.full {
            return None;
        }
        Some(link)
    }

    pub(super) fn loops_back(&self) -> bool {
        if self.serdes { self.word(reg::SCTL) & 0x10 != 0 } else { self.phy.loops_back() }
    }

    pub(super) fn status(&self, core: &Core) -> u32 {
        let mut value = 0;
        if let Some(link) = self.link() {
            let speed = match link.mbps {
                10 => 0,
                100 => 1,
                _ => 2,
            };
            value |= 1 << 1 | u32::from(link.full) | speed << 6;
        }
        if core.now() < self.paused_until {
            value |= 1 << 4;
        }
        if self.ctrl & reg::CTRL_GIO_DIS == 0 || core.faults.master_stuck {
            value |= 1 << 19;
        }
        // LAN_INIT_DONE.
        value | 1 << 9
    }

    pub(super) fn read_mdic(&mut self, core: &mut Core) -> u32 {
        let (value, ready) = self.mdic;
        if core.now() < ready { value & !(1 << 28) } else { value }
    }

    pub(super) fn write_mdic(&mut self, core: &mut Core, value: u32) {
        if core.now() < self.mdic.1 {
            core.violate("mdic-busy", "a PHY access was started before the one before had finished");
        }
        if !self.semaphores.holds(SYNC_PHY0) {
            core.violate("semaphore-not-held", "a PHY access without SW_FW_SYNC.PHY0");
        }
        let register = (value >> 16 & 0x1f) as usize;
        let answers = value >> 21 & 0x1f == 1 && !core.faults.phy_absent && !self.serdes;
        let mut result = value & 0x0fff_ffff | 1 << 28;
        match value >> 26 & 3 {
            1 if answers => {
                if self.phy.write(register, value as u16) {
                    self.negotiating = true;
                    self.restart_negotiation(core);
                }
            }
            2 if answers => result = result & !0xffff | u32::from(self.phy.read(register)),
            2 => result = result & !0xffff | 0xffff | 1 << 30,
            1 => result |= 1 << 30,
            _ => core.violate("reserved-bits", format!("MDIC operation {}", value >> 26 & 3)),
        }
        self.mdic = (result, core.now() + MDIC_TIME);
        if value & 1 << 29 != 0 {
            self.raise(core, 1 << 9);
        }
    }

    pub(super) fn phy_hardware_reset(&mut self, core: &mut Core) {
        self.phy.power_on();
        self.timers.cancel(&Event::Link);
        self.link_may_have_changed(core);
    }

    /// Starts over: the link is gone and comes back after its time, if there is a partner.
    pub(super) fn restart_negotiation(&mut self, core: &mut Core) {
        self.phy.drop_link();
        self.pcs = Pcs::default();
        self.link_may_have_changed(core);
        self.timers.cancel(&Event::Link);
        let wanted = if self.serdes { self.word(reg::PCS_CFG0) & 8 != 0 } else { self.phy.is_powered() };
        if core.partner.present && wanted {
            self.timers.arm(core.now() + core.timing.link_up, Event::Link);
        }
    }

    /// The partner came, went or changed. A PHY that nobody has told to negotiate stays idle.
    pub(super) fn line_may_have_changed(&mut self, core: &mut Core) {
        if self.negotiating {
            self.restart_negotiation(core);
        }
    }

    /// Negotiation ends.
    pub(super) fn negotiated(&mut self, core: &mut Core) {
        if self.serdes {
            let control = self.word(reg::PCS_LCTL);
            let negotiates = control & LCTL_AN_ENABLE != 0;
            let fast = core.partner.gigabit;
            self.pcs.complete = negotiates && core.partner.negotiates;
            self.pcs.link = fast && (negotiates == core.partner.negotiates || control & LCTL_FORCE_LINK != 0);
        } else {
            self.phy.negotiated(&core.partner);
        }
        self.link_may_have_changed(core);
    }

    /// PCS_LCTL was written.
    pub(super) fn pcs_restarted(&mut self, core: &mut Core) {
        let control = self.word(reg::PCS_LCTL);
        self.set_word(reg::PCS_LCTL, control & !LCTL_AN_RESTART);
        if self.serdes {
            self.negotiating = true;
            self.restart_negotiation(core);
        }
    }

    /// PCS_LSTAT: link, 1000 Mbit/s, full duplex, synchronised, negotiated.
    pub(super) fn read_pcs_status(&self) -> u32 {
        let up = self.serdes && self.pcs.link;
        let state = if up { 1 | 2 << 1 | 1 << 3 | 1 << 4 } else { 0 };
        state | u32::from(self.pcs.complete) << 16
    }

    /// PCS_LPAB: the partner's offer; its pause bits are those of 1000BASE-X.
    pub(super) fn read_pcs_partner(&self, core: &Core) -> u32 {
        if !self.pcs.complete {
            return 0;
        }
        let offer = u32::from(core.partner.offer);
        1 << 5 | (offer >> 10 & 1) << 7 | (offer >> 11 & 1) << 8
    }

    /// Raises LSC if STATUS.LU changed.
    pub(super) fn link_may_have_changed(&mut self, core: &mut Core) {
        let up = self.link().is_some();
        if up != self.link_reported {
            self.link_reported = up;
            self.raise(core, interrupt::LSC);
            if up {
                self.run_transmit(core);
            }
        }
    }

    /// The instant until which the partner's pause holds.
    pub(super) fn pause(&mut self, core: &mut Core, quanta: u16) {
        let mbps = self.link().map_or(1000, |link| link.mbps);
        // A quantum is 512 bit times.
        let nanos = u64::from(quanta) * 512 * 1000 / u64::from(mbps);
        self.paused_until = if quanta == 0 { Instant::ZERO } else { core.now().plus_nanos(nanos) };
        self.timers.cancel(&Event::PauseEnd);
        let at = self.paused_until.max(core.now());
        self.timers.arm(at, Event::PauseEnd);
    }
}
