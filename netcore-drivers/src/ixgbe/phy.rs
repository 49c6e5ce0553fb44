//! The 10GBASE-T PHY of the X540 behind MDIO (IEEE 802.3 clause 45).

use super::Ixgbe;
use super::regs::{MSCA, MSRWD};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::phy::pause_bits;
use crate::nic::{Advertise, LinkSettings, Settings};
use core::time::Duration;

/// MSCA: write, read, go.
const WRITE: u32 = 1 << 26;
const READ: u32 = 3 << 26;
const COMMAND: u32 = 1 << 30;
const LIMIT: Duration = Duration::from_millis(1);
const STEP: Duration = Duration::from_micros(10);

/// A register: device on the PHY, and number.
#[derive(Clone, Copy)]
struct Register(u8, u16);

/// Identity (PMA/PMD).
const IDENTITY: Register = Register(1, 2);
/// Negotiation: control, own base page, partner's base page, 10GBASE-T.
const CONTROL: Register = Register(7, 0);
const OFFER: Register = Register(7, 0x10);
const PARTNER: Register = Register(7, 0x13);
const OFFER_10G: Register = Register(7, 0x20);
/// Of the vendor: offer of 1000BASE-T.
const OFFER_1G: Register = Register(7, 0xc400);
const RESTART: u16 = 1 << 9;
const ENABLE: u16 = 1 << 12;
const FULL_100: u16 = 1 << 8;
const FULL_1000: u16 = 1 << 15;
const FULL_10000: u16 = 1 << 12;
const PAUSE: u16 = 3 << 10;
/// PHY addresses.
const ADDRESSES: u8 = 32;

impl Ixgbe {
    /// Finds the PHY's address.
    pub(super) fn find_phy(&mut self) -> Result<(), NicError> {
        for address in 0..ADDRESSES {
            self.phy = address;
            let identity = self.read_phy(IDENTITY)?;
            if identity != 0xffff && identity != 0 {
                return Ok(());
            }
        }
        Err(NicError::Phy { phy: 0, register: 2, what: "no PHY answers on any address" })
    }

    /// Offers what is wanted and negotiates anew.
    pub(super) fn negotiate_copper(&mut self, settings: &Settings) -> Result<(), NicError> {
        let offer = match settings.link {
            LinkSettings::Negotiate(advertise) => advertise,
            LinkSettings::Forced { speed_mbps, .. } => {
                let none = Advertise {
                    half_10: false,
                    full_10: false,
                    half_100: false,
                    full_100: false,
                    full_1000: false,
                    full_10000: false,
                };
                match speed_mbps {
                    // 1000 and 10000 Mbit/s are never without negotiation on copper: only one is offered.
                    100 => Advertise { full_100: true, ..none },
                    1000 => Advertise { full_1000: true, ..none },
                    10_000 => Advertise { full_10000: true, ..none },
                    _ => {
                        return Err(NicError::OutOfRange {
                            what: "speed, Mbit/s",
                            value: speed_mbps.into(),
                            allowed: "100, 1000 or 10000",
                        });
                    }
                }
            }
        };
        self.change_phy(OFFER_10G, FULL_10000, if offer.full_10000 { FULL_10000 } else { 0 })?;
        self.change_phy(OFFER_1G, FULL_1000, if offer.full_1000 { FULL_1000 } else { 0 })?;
        let base = pause_bits(settings.flow_control) | if offer.full_100 { FULL_100 } else { 0 };
        self.change_phy(OFFER, PAUSE | FULL_100, base)?;
        self.change_phy(CONTROL, 0, ENABLE | RESTART)
    }

    /// The pause bits of both sides.
    pub(super) fn copper_pause(&mut self) -> Result<(u16, u16), NicError> {
        Ok((self.read_phy(OFFER)? & PAUSE, self.read_phy(PARTNER)? & PAUSE))
    }

    fn change_phy(&mut self, at: Register, clear: u16, set: u16) -> Result<(), NicError> {
        let value = self.read_phy(at)? & !clear | set;
        self.write_phy(at, value)
    }

    fn cycle(&mut self, at: Register, operation: u32) -> Result<(), NicError> {
        let command = u32::from(at.1) | u32::from(at.0) << 16 | u32::from(self.phy) << 21 | operation | COMMAND;
        self.csr.write(MSCA, command);
        let csr = &self.csr;
        wait_until(&mut *self.bus, "MDIO", LIMIT, STEP, || Ok(csr.read(MSCA)? & COMMAND == 0))
    }

    fn read_phy(&mut self, at: Register) -> Result<u16, NicError> {
        self.holding(self.phy_lock(), |this| {
            this.cycle(at, 0)?;
            this.cycle(at, READ)?;
            Ok((this.csr.read(MSRWD)? >> 16) as u16)
        })
    }

    fn write_phy(&mut self, at: Register, value: u16) -> Result<(), NicError> {
        self.holding(self.phy_lock(), |this| {
            this.csr.write(MSRWD, value.into());
            this.cycle(at, 0)?;
            this.cycle(at, WRITE)
        })
    }
}
