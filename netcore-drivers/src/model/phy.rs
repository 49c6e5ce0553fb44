//! [`CopperPhy`]: the registers of IEEE 802.3 clause 22 in a gigabit PHY, and what negotiation comes to (clause 28).

use super::Partner;

const BMCR: usize = 0;
const BMSR: usize = 1;
const ANAR: usize = 4;
const ANLPAR: usize = 5;
const GCON: usize = 9;
const GSTATUS: usize = 10;

const BMCR_RESET: u16 = 1 << 15;
const BMCR_LOOPBACK: u16 = 1 << 14;
const BMCR_SPEED_100: u16 = 1 << 13;
const BMCR_ANE: u16 = 1 << 12;
const BMCR_POWER_DOWN: u16 = 1 << 11;
const BMCR_RESTART: u16 = 1 << 9;
const BMCR_FULL: u16 = 1 << 8;
const BMSR_LINK: u16 = 1 << 2;
const BMSR_COMPLETE: u16 = 1 << 5;

/// Bits that can be written in the registers that every PHY has.
const STANDARD: [(usize, u16); 3] = [(BMCR, 0xff40), (ANAR, 0xac00 | 0x0fff), (GCON, 0xff00)];

/// What the link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Mbit/s.
    pub mbps: u32,
    /// Full duplex.
    pub full: bool,
}

/// What a PHY has besides the standard registers.
#[derive(Clone, Copy, Debug)]
pub struct PhyKind {
    /// Registers 2 and 3.
    pub identity: [u16; 2],
    /// More registers that can be written: number, bits, value at power on.
    pub registers: &'static [(usize, u16, u16)],
    /// Register for the resolved state, in the way of Marvell's register 17 (15:14 speed, 13 duplex, 11 resolved, 10 link);
    /// 0: none.
    pub state_register: usize,
}

/// A gigabit PHY.
#[derive(Clone, Debug)]
pub struct CopperPhy {
    kind: PhyKind,
    registers: [u16; 32],
    link: Option<Link>,
}

impl CopperPhy {
    /// A PHY of this kind, powered.
    pub fn new(kind: PhyKind) -> Self {
        let mut phy = Self { kind, registers: [0; 32], link: None };
        phy.power_on();
        phy
    }

    /// The state at power on.
    pub fn power_on(&mut self) {
        self.registers = [0; 32];
        self.link = None;
        self.registers[BMCR] = BMCR_ANE | BMCR_FULL | 1 << 6;
        // All speeds, extended status, negotiation possible.
        self.registers[BMSR] = 0x7949;
        self.registers[2] = self.kind.identity[0];
        self.registers[3] = self.kind.identity[1];
        self.registers[ANAR] = 0x0de1;
        self.registers[GCON] = 0x0300;
        self.registers[15] = 0x3000;
        for &(register, _, value) in self.kind.registers {
            self.registers[register & 31] = value;
        }
    }

    /// The link.
    pub const fn link(&self) -> Option<Link> {
        self.link
    }

    /// It returns what it is given.
    pub const fn loops_back(&self) -> bool {
        self.registers[BMCR] & BMCR_LOOPBACK != 0
    }

    /// It has power, and looks for a link.
    pub const fn is_powered(&self) -> bool {
        self.registers[BMCR] & BMCR_POWER_DOWN == 0
    }

    /// Reads a register.
    pub fn read(&mut self, register: usize) -> u16 {
        let value = self.registers[register & 31];
        if register == BMSR {
            // Link is latched low: it reads zero once after it was lost.
            let now = if self.link.is_some() { BMSR_LINK } else { 0 };
            self.registers[BMSR] = value & !BMSR_LINK | now;
        }
        value
    }

    /// Writes a register. True if negotiation starts over.
    pub fn write(&mut self, register: usize, value: u16) -> bool {
        let register = register & 31;
        let standard = STANDARD.iter().find(|(at, _)| *at == register).map(|(_, bits)| *bits);
        let own = self.kind.registers.iter().find(|(at, ..)| *at == register).map(|(_, bits, _)| *bits);
        let bits = standard.or(own).unwrap_or(0);
        let kept = self.registers[register] & !bits | value & bits;
        if register != BMCR {
            self.registers[register] = kept;
            return false;
        }
        let before = self.registers[BMCR];
        self.registers[BMCR] = kept & !(BMCR_RESET | BMCR_RESTART);
        let changed = (before ^ kept) & (BMCR_ANE | BMCR_SPEED_100 | BMCR_FULL | BMCR_POWER_DOWN | BMCR_LOOPBACK);
        value & (BMCR_RESET | BMCR_RESTART) != 0 || changed != 0
    }

    /// The link is lost.
    pub fn drop_link(&mut self) {
        self.link = None;
        self.registers[BMSR] &= !(BMSR_LINK | BMSR_COMPLETE);
        self.registers[ANLPAR] = 0;
        self.registers[GSTATUS] = 0;
        if self.kind.state_register != 0 {
            self.registers[self.kind.state_register & 31] = 0;
        }
    }

    /// Negotiation with `partner` ends.
    pub fn negotiated(&mut self, partner: &Partner) {
        let command = self.registers[BMCR];
        let negotiates = command & BMCR_ANE != 0;
        let own = self.registers[ANAR];
        let link = if negotiates && partner.negotiates {
            self.registers[ANLPAR] = partner.offer | 1 << 14;
            self.registers[GSTATUS] = if partner.gigabit { 0x3800 } else { 0 };
            let both = own & partner.offer;
            if self.registers[GCON] & 1 << 9 != 0 && partner.gigabit {
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
        self.link = link;
        if let Some(link) = link {
            self.registers[BMSR] |= BMSR_LINK | BMSR_COMPLETE;
            let speed = match link.mbps {
                10 => 0,
                100 => 1,
                _ => 2u16,
            };
            if self.kind.state_register != 0 {
                self.registers[self.kind.state_register & 31] =
                    speed << 14 | u16::from(link.full) << 13 | 1 << 11 | 1 << 10;
            }
        }
    }
}
