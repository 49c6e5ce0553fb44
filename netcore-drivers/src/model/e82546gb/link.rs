//! The PHY (88E1011S) behind MDIC, negotiation in virtual time, STATUS (manual 13.4.2, 13.4.7; IEEE 802.3 clauses 22, 28).

use super::{Core, E82546Gb, Event, interrupt, registers as reg};
use crate::model::phy::{CopperPhy, Link, PhyKind};
use core::time::Duration;
use netcore::Instant;

/// A management frame: 64 bits at 2.5 MHz.
const MDIC_TIME: Duration = Duration::from_nanos(25_600);

/// The 88E1011S: what it has besides the standard registers.
const KIND: PhyKind = PhyKind {
    identity: [0x0141, 0x0c24],
    registers: &[
        (16, 0xffff, 0x0060),
        (18, 0xffff, 0),
        (20, 0xffff, 0x0c60),
        (24, 0xffff, 0),
        (26, 0xffff, 0),
        (29, 0x00ff, 0),
        (30, 0xffff, 0),
    ],
    state_register: 17,
};

#[derive(Debug)]
pub(super) struct Phy {
    copper: CopperPhy,
    /// STATUS.LU as last reported.
    reported: bool,
}

impl Default for Phy {
    fn default() -> Self {
        Self { copper: CopperPhy::new(KIND), reported: false }
    }
}

impl Phy {
    pub(super) fn power_on(&mut self) {
        self.copper.power_on();
    }

    pub(super) fn loops_back(&self) -> bool {
        self.copper.loops_back()
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
        let link = self.phy.copper.link()?;
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
            1 if answers => {
                if self.phy.copper.write(register, value as u16) {
                    self.restart_negotiation(core);
                }
            }
            2 if answers => result = result & !0xffff | u32::from(self.phy.copper.read(register)),
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
        self.drop_link(core);
        self.timers.cancel(&Event::Link);
    }

    fn drop_link(&mut self, core: &mut Core) {
        self.phy.copper.drop_link();
        self.link_may_have_changed(core);
    }

    /// Starts over: the link is gone and comes back after its time, if there is a partner.
    pub(super) fn restart_negotiation(&mut self, core: &mut Core) {
        self.drop_link(core);
        self.timers.cancel(&Event::Link);
        if core.partner.present && self.phy.copper.is_powered() {
            self.timers.arm(core.now() + core.timing.link_up, Event::Link);
        }
    }

    pub(super) fn phy_line_changed(&mut self, core: &mut Core) {
        self.restart_negotiation(core);
    }

    /// Negotiation ends.
    pub(super) fn negotiated(&mut self, core: &mut Core) {
        self.phy.copper.negotiated(&core.partner);
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
