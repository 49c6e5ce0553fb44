//! The PHY (88E1011S) behind MDIC, negotiation in virtual time, STATUS (manual 13.4.2, 13.4.7; IEEE 802.3 clauses 22, 28).

use super::{Core, E82546Gb, Event, interrupt, registers as reg};
use core::time::Duration;
use netcore::Instant;

/// A management frame: 64 bits at 2.5 MHz.
const MDIC_TIME: Duration = Duration::from_nanos(25_600);

const BMCR: usize = 0;
const BMSR: usize = 1;
const ANAR: usize = 4;
const ANLPAR: usize = 5;
const GCON: usize = 9;
const GSTATUS: usize = 10;
const PSSR: usize = 17;

const BMCR_RESET: u16 = 1 << 15;
const BMCR_LOOPBACK: u16 = 1 << 14;
const BMCR_SPEED_100: u16 = 1 << 13;
const BMCR_ANE: u16 = 1 << 12;
const BMCR_POWER_DOWN: u16 = 1 << 11;
const BMCR_RESTART: u16 = 1 << 9;
const BMCR_FULL: u16 = 1 << 8;
const BMSR_LINK: u16 = 1 << 2;
const BMSR_COMPLETE: u16 = 1 << 5;

/// Registers that exist in the 88E1011S, with the bits that can be written.
const WRITABLE: [u16; 32] = {
    let mut bits = [0; 32];
    bits[BMCR] = 0xff40;
    bits[ANAR] = 0xac00 | 0x0fff;
    bits[GCON] = 0xff00;
    bits[16] = 0xffff;
    bits[18] = 0xffff;
    bits[20] = 0xffff;
    bits[24] = 0xffff;
    bits[26] = 0xffff;
    bits[29] = 0x00ff;
    bits[30] = 0xffff;
    bits
};

/// What the link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) mbps: u32,
    pub(super) full: bool,
}

#[derive(Debug, Default)]
pub(super) struct Phy {
    registers: [u16; 32],
    link: Option<Link>,
    /// STATUS.LU as last reported.
    reported: bool,
}

impl Phy {
    pub(super) fn power_on(&mut self) {
        self.registers = [0; 32];
        self.registers[BMCR] = BMCR_ANE | BMCR_FULL | 1 << 6;
        // All speeds, extended status, negotiation possible.
        self.registers[BMSR] = 0x7949;
        self.registers[2] = 0x0141;
        self.registers[3] = 0x0c24;
        self.registers[ANAR] = 0x0de1;
        self.registers[GCON] = 0x0300;
        self.registers[15] = 0x3000;
        self.registers[16] = 0x0060;
        self.registers[20] = 0x0c60;
    }

    pub(super) fn loops_back(&self) -> bool {
        self.registers[BMCR] & BMCR_LOOPBACK != 0
    }
}

impl E82546Gb {
    /// The link that the MAC has: the PHY's, once software wants it.
    pub(super) fn link(&self) -> Option<Link> {
        if self.ctrl & reg::CTRL_SLU == 0 {
            return None;
        }
        if self.phy.loops_back() {
            return Some(Link { mbps: 1000, full: true });
        }
        let link = self.phy.link?;
        // A MAC that is forced to another speed than its PHY has does not get a frame through.
        let forced_speed = match self.ctrl >> reg::CTRL_SPEED_SHIFT & 3 {
            0 => 10,
            1 => 100,
            _ => 1000,
        };
        if self.ctrl & reg::CTRL_FRCSPD != 0 && forced_speed != link.mbps {
            return None;
        }
        let forced_full = self.ctrl & reg::CTRL_FD != 0;
        if self.ctrl & reg::CTRL_FRCDPX != 0 && forced_full != link.full {
            return None;
        }
        Some(link)
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
        // 64-bit bus; PCI-X at 133 MHz.
        value | 1 << 12 | if self.pcix { 1 << 13 | 2 << 14 } else { 1 << 11 }
    }

    pub(super) fn read_mdic(&mut self, core: &mut Core) -> u32 {
        let (value, ready) = self.mdic;
        if core.now() < ready { value & !(1 << 28) } else { value }
    }

    pub(super) fn write_mdic(&mut self, core: &mut Core, value: u32) {
        if core.now() < self.mdic.1 {
            core.violate("mdic-busy", "a PHY access was started before the one before had finished");
        }
        let register = (value >> 16 & 0x1f) as usize;
        let answers = value >> 21 & 0x1f == 1 && !core.faults.phy_absent;
        let mut result = value & 0x0fff_ffff | 1 << 28;
        match value >> 26 & 3 {
            1 if answers => self.write_phy(core, register, value as u16),
            2 if answers => result = result & !0xffff | u32::from(self.read_phy(register)),
            2 => result = result & !0xffff | 0xffff | 1 << 30,
            1 => result |= 1 << 30,
            _ => core.violate("reserved-bits", format!("MDIC operation {}", value >> 26 & 3)),
        }
        self.mdic = (result, core.now() + MDIC_TIME);
        if value & 1 << 29 != 0 {
            self.raise(core, 1 << 9);
        }
    }

    fn read_phy(&mut self, register: usize) -> u16 {
        let value = self.phy.registers[register];
        match register {
            BMSR => {
                // Link is latched low: it reads zero once after it was lost.
                let now = if self.phy.link.is_some() { BMSR_LINK } else { 0 };
                self.phy.registers[BMSR] = value & !BMSR_LINK | now;
            }
            21 => self.phy.registers[21] = 0,
            _ => {}
        }
        value
    }

    fn write_phy(&mut self, core: &mut Core, register: usize, value: u16) {
        let bits = WRITABLE[register];
        let kept = self.phy.registers[register] & !bits | value & bits;
        if register != BMCR {
            self.phy.registers[register] = kept;
            return;
        }
        let before = self.phy.registers[BMCR];
        self.phy.registers[BMCR] = kept & !(BMCR_RESET | BMCR_RESTART);
        let changed = (before ^ kept) & (BMCR_ANE | BMCR_SPEED_100 | BMCR_FULL | BMCR_POWER_DOWN | BMCR_LOOPBACK);
        if value & (BMCR_RESET | BMCR_RESTART) != 0 || changed != 0 {
            self.restart_negotiation(core);
        }
    }

    pub(super) fn phy_hardware_reset(&mut self, core: &mut Core) {
        self.phy.power_on();
        self.drop_link(core);
        self.timers.cancel(&Event::Link);
    }

    fn drop_link(&mut self, core: &mut Core) {
        self.phy.link = None;
        self.phy.registers[BMSR] &= !(BMSR_LINK | BMSR_COMPLETE);
        self.phy.registers[PSSR] = 0;
        self.phy.registers[ANLPAR] = 0;
        self.phy.registers[GSTATUS] = 0;
        self.link_may_have_changed(core);
    }

    /// Starts over: the link is gone and comes back after its time, if there is a partner.
    pub(super) fn restart_negotiation(&mut self, core: &mut Core) {
        self.drop_link(core);
        self.timers.cancel(&Event::Link);
        if core.partner.present && self.phy.registers[BMCR] & BMCR_POWER_DOWN == 0 {
            self.timers.arm(core.now() + core.timing.link_up, Event::Link);
        }
    }

    pub(super) fn phy_line_changed(&mut self, core: &mut Core) {
        self.restart_negotiation(core);
    }

    /// Negotiation ends.
    pub(super) fn negotiated(&mut self, core: &mut Core) {
        let partner = core.partner;
        let command = self.phy.registers[BMCR];
        let negotiates = command & BMCR_ANE != 0;
        let own = self.phy.registers[ANAR];
        let link = if negotiates && partner.negotiates {
            self.phy.registers[ANLPAR] = partner.offer | 1 << 14;
            self.phy.registers[GSTATUS] = if partner.gigabit { 0x3800 } else { 0 };
            let both = own & partner.offer;
            if self.phy.registers[GCON] & 1 << 9 != 0 && partner.gigabit {
                Some(Link { mbps: 1000, full: true })
            } else {
                [(1 << 8, 100, true), (1 << 7, 100, false), (1 << 6, 10, true), (1 << 5, 10, false)]
                    .into_iter()
                    .find(|(bit, ..)| both & bit != 0)
                    .map(|(_, mbps, full)| Link { mbps, full })
            }
        } else {
            // One side at least is set by hand. Speed is found by parallel detection, duplex is then half on the side that
            // negotiates (IEEE 802.3 28.2.3.1).
            let ours = if negotiates {
                Link { mbps: partner.speed_mbps, full: false }
            } else {
                let mbps = if command & BMCR_SPEED_100 != 0 { 100 } else { 10 };
                Link { mbps, full: command & BMCR_FULL != 0 }
            };
            let theirs = if partner.negotiates { ours.mbps } else { partner.speed_mbps };
            (ours.mbps == theirs && ours.mbps < 1000).then_some(ours)
        };
        self.phy.link = link;
        if let Some(link) = link {
            self.phy.registers[BMSR] |= BMSR_LINK | BMSR_COMPLETE;
            let speed = match link.mbps {
                10 => 0,
                100 => 1,
                _ => 2u16,
            };
            self.phy.registers[PSSR] = speed << 14 | u16::from(link.full) << 13 | 1 << 11 | 1 << 10;
        }
        self.link_may_have_changed(core);
    }

    /// Raises LSC if STATUS.LU changed.
    pub(super) fn link_may_have_changed(&mut self, core: &mut Core) {
        let up = self.link().is_some();
        if up != self.phy.reported {
            self.phy.reported = up;
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
