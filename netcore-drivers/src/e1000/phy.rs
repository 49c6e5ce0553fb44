//! The internal PHYs: access through MDIC, and what the Marvell parts need.

use super::regs::{CTRL, MDIC, ctrl, mdic};
use super::{Family, Format};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::phy::{anar, bmcr, gigabit, identity};
use core::time::Duration;

/// The internal PHY's address.
const ADDRESS: u32 = 1;
/// A management frame takes 64 µs at 1 MHz; Intel's drivers wait 1920 times 50 µs.
const MDIC_LIMIT: Duration = Duration::from_millis(96);
const MDIC_STEP: Duration = Duration::from_micros(50);

/// Marvell registers (88E1011S and 88E1111 datasheets).
pub(super) mod marvell {
    /// PHY specific control.
    pub(crate) const PSCR: u8 = 16;
    pub(crate) const PSCR_POLARITY_OFF: u16 = 1 << 1;
    pub(crate) const PSCR_MDIX_AUTO: u16 = 3 << 5;
    pub(crate) const PSCR_CRS_ON_TX: u16 = 1 << 11;
    /// 82574: downshift enable and counter.
    pub(crate) const PSCR_DOWNSHIFT: u16 = 1 << 11;
    /// Extended PHY specific control.
    pub(crate) const EPSCR: u8 = 20;
    pub(crate) const EPSCR_TX_CLK_25: u16 = 0x70;
    pub(crate) const EPSCR_DOWNSHIFT: u16 = 0xf00;
    pub(crate) const EPSCR_DOWNSHIFT_1X: u16 = 0x100;
    /// Receive errors; clears on read.
    pub(crate) const RECEIVE_ERRORS: u8 = 21;
    pub(crate) const PAGE: u8 = 29;
    pub(crate) const PAGE_DATA: u8 = 30;
    /// Identity of the 82574's PHY, revision masked.
    pub(crate) const BME1000: u32 = 0x0141_0cb0;
    /// Identity of the 8254x's PHYs, model and revision masked.
    pub(crate) const FAMILY: u32 = 0x0141_0c00;
}

impl<F: Format> Family<F> {
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

    /// Runs `f` with the PHY to ourselves (82574: firmware may use it, too).
    fn with_phy<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R, NicError>) -> Result<R, NicError> {
        if !self.is_82574() {
            return f(self);
        }
        self.own_mdio()?;
        let result = f(self);
        self.release_mdio()?;
        result
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
    /// As [`Family::read_phy`].
    pub fn write_phy(&mut self, register: u8, value: u16) -> Result<(), NicError> {
        self.with_phy(|this| this.mdic(mdic::WRITE | u32::from(value), register, "no answer to a write")).map(|_| ())
    }

    /// Checks that the PHY there is the one the part has, and says its revision.
    pub(super) fn identify_phy(&mut self) -> Result<u16, NicError> {
        let high = self.read_phy(identity::HIGH)?;
        let low = self.read_phy(identity::LOW)?;
        let id = u32::from(high) << 16 | u32::from(low);
        let known = if self.is_82574() { id & !0xf == marvell::BME1000 } else { id & 0xffff_ff00 == marvell::FAMILY };
        if !known {
            let what = if id == u32::MAX || id == 0 { "no PHY there" } else { "unexpected identity" };
            return Err(NicError::Phy { phy: ADDRESS as u8, register: identity::HIGH, what });
        }
        Ok(low & 0xf)
    }

    /// Sets what the Marvell parts need before negotiation, and makes it take effect by a software reset of the PHY.
    pub(super) fn prepare_phy(&mut self) -> Result<(), NicError> {
        let revision = self.identify_phy()?;
        let mut control = self.read_phy(marvell::PSCR)?;
        // Crossover found automatically, polarity reversal corrected.
        control |= marvell::PSCR_MDIX_AUTO;
        control &= !marvell::PSCR_POLARITY_OFF;
        control |= if self.is_82574() { marvell::PSCR_DOWNSHIFT } else { marvell::PSCR_CRS_ON_TX };
        self.write_phy(marvell::PSCR, control)?;
        if !self.is_82574() && revision < 4 {
            let extended = self.read_phy(marvell::EPSCR)? & !marvell::EPSCR_DOWNSHIFT;
            self.write_phy(marvell::EPSCR, extended | marvell::EPSCR_TX_CLK_25 | marvell::EPSCR_DOWNSHIFT_1X)?;
        }
        if self.part.generation.is_rev3() {
            self.fix_vco()?;
        }
        let command = self.read_phy(bmcr::REGISTER)?;
        self.write_phy(bmcr::REGISTER, command | bmcr::RESET)?;
        self.bus.sleep(Duration::from_micros(1));
        Ok(())
    }

    /// The PHY of 82545GM and 82546GB starts with too low a VCO speed: page 5 bit 8 off, page 4 bit 11 on.
    fn fix_vco(&mut self) -> Result<(), NicError> {
        let page = self.read_phy(marvell::PAGE)?;
        for (number, clear, set) in [(5, 1 << 8, 0), (4, 0, 1 << 11)] {
            self.write_phy(marvell::PAGE, number)?;
            let data = self.read_phy(marvell::PAGE_DATA)?;
            self.write_phy(marvell::PAGE_DATA, data & !clear | set)?;
        }
        self.write_phy(marvell::PAGE, page)
    }

    /// Resets the PHY by its pin: only needed when it hangs.
    pub(super) fn reset_phy(&mut self) -> Result<(), NicError> {
        let value = self.csr.read(CTRL)?;
        self.csr.write(CTRL, value | ctrl::PHY_RST);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_millis(10));
        self.csr.write(CTRL, value & !ctrl::PHY_RST);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_micros(150) + Duration::from_millis(10));
        Ok(())
    }

    /// Offers `offer` (register 4) and 1000 Mbit/s if `full_1000`, and starts to negotiate.
    pub(super) fn negotiate(&mut self, offer: u16, full_1000: bool) -> Result<(), NicError> {
        self.write_phy(anar::REGISTER, offer)?;
        self.write_phy(gigabit::REGISTER, if full_1000 { gigabit::FULL } else { 0 })?;
        let command = self.read_phy(bmcr::REGISTER)? & !(bmcr::LOOPBACK | bmcr::POWER_DOWN);
        self.write_phy(bmcr::REGISTER, command | bmcr::AUTONEGOTIATE | bmcr::RESTART)
    }
}
