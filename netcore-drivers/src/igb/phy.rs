//! The internal PHYs: access through MDIC, identity, crossover, negotiation.

use super::Igb;
use super::regs::{MDIC, mdic, sync};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::phy::{anar, bmcr, gigabit, identity};
use core::time::Duration;

/// The internal PHY's address.
const ADDRESS: u32 = 1;
/// A management frame takes 26 µs at 2.5 MHz; Intel's drivers wait 1920 times 50 µs.
const MDIC_LIMIT: Duration = Duration::from_millis(96);
const MDIC_STEP: Duration = Duration::from_micros(50);

/// What the PHY of the 82575 and 82576 has besides the standard.
mod igp {
    /// Port control.
    pub(super) const PORT_CONTROL: u8 = 18;
    pub(super) const AUTO_MDIX: u16 = 1 << 12;
    pub(super) const FORCE_MDIX: u16 = 1 << 13;
}

/// Identities of the internal PHYs, revision masked.
mod id {
    /// 82575, 82576.
    pub(super) const IGP03: u32 = 0x02a8_0390;
    /// 82580 and I350.
    pub(super) const I82580: u32 = 0x0154_03a0;
    pub(super) const I350: u32 = 0x0154_03b0;
    /// I210.
    pub(super) const I210: u32 = 0x0141_0c00;
}

impl Igb {
    /// Runs `f` with the PHY to ourselves.
    fn with_phy<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R, NicError>) -> Result<R, NicError> {
        let mask = sync::PHY[usize::from(self.port & 3)];
        self.holding(mask, f)
    }

    fn mdic(&mut self, command: u32, register: u8, what: &'static str) -> Result<u16, NicError> {
        self.csr.write(MDIC, command | u32::from(register) << 16 | ADDRESS << 21);
        let csr = &self.csr;
        let mut result = 0;
        wait_until(&mut *self.bus, "PHY access", MDIC_LIMIT, MDIC_STEP, || {
            result = csr.read(MDIC)?;
            Ok(result & mdic::READY != 0)
        })?;
        if result & mdic::ERROR != 0 {
            return Err(NicError::Phy { phy: ADDRESS as u8, register, what });
        }
        Ok(result as u16)
    }

    /// Reads a PHY register.
    ///
    /// # Errors
    /// [`NicError::Phy`] if the PHY does not answer, [`NicError::Timeout`], [`NicError::Semaphore`].
    pub fn read_phy(&mut self, register: u8) -> Result<u16, NicError> {
        self.with_phy(|this| this.mdic(mdic::READ, register, "no answer to a read"))
    }

    /// Writes a PHY register.
    ///
    /// # Errors
    /// As [`Igb::read_phy`].
    pub fn write_phy(&mut self, register: u8, value: u16) -> Result<(), NicError> {
        self.with_phy(|this| this.mdic(mdic::WRITE | u32::from(value), register, "no answer to a write")).map(|_| ())
    }

    /// Checks that the PHY there is one that the parts have; true if it is that of the 82575 and 82576.
    fn identify_phy(&mut self) -> Result<bool, NicError> {
        let high = self.read_phy(identity::HIGH)?;
        let low = self.read_phy(identity::LOW)?;
        let found = u32::from(high) << 16 | u32::from(low & 0xfff0);
        match found {
            id::IGP03 => Ok(true),
            id::I82580 | id::I350 | id::I210 => Ok(false),
            _ => {
                let what = if high == 0xffff || high == 0 { "no PHY there" } else { "unexpected identity" };
                Err(NicError::Phy { phy: ADDRESS as u8, register: identity::HIGH, what })
            }
        }
    }

    /// Finds crossover automatically, or not: that needs negotiation.
    pub(super) fn set_crossover(&mut self, automatic: bool) -> Result<(), NicError> {
        if !self.identify_phy()? {
            return Ok(());
        }
        let control = self.read_phy(igp::PORT_CONTROL)? & !(igp::AUTO_MDIX | igp::FORCE_MDIX);
        self.write_phy(igp::PORT_CONTROL, control | if automatic { igp::AUTO_MDIX } else { 0 })
    }

    /// Offers `offer` (register 4) and 1000 Mbit/s if `full_1000`, and starts to negotiate.
    pub(super) fn negotiate(&mut self, offer: u16, full_1000: bool) -> Result<(), NicError> {
        self.write_phy(anar::REGISTER, offer)?;
        self.write_phy(gigabit::REGISTER, if full_1000 { gigabit::FULL } else { 0 })?;
        let command = self.read_phy(bmcr::REGISTER)? & !(bmcr::LOOPBACK | bmcr::POWER_DOWN);
        self.write_phy(bmcr::REGISTER, command | bmcr::AUTONEGOTIATE | bmcr::RESTART)
    }
}
