//! Reading the NVM, and the station address.

use super::regs::{EECD, EECD_I210, EERD, EERD_I210, eecd, receive_address, sync};
use super::{Generation, Igb};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::{filter, nvm};
use core::time::Duration;
use netcore::MacAddress;

/// Bound of a read through EERD.
const EERD_LIMIT: Duration = Duration::from_millis(5);
const EERD_STEP: Duration = Duration::from_micros(5);
const DONE: u32 = 1 << 1;
/// Word that points at alternate station addresses, three words for each function.
const ALTERNATE_ADDRESS: u16 = 0x37;

impl Igb {
    pub(super) const fn eecd(&self) -> u32 {
        if matches!(self.part.generation, Generation::I210) { EECD_I210 } else { EECD }
    }

    /// True if there is an NVM that EERD reads. An I210 without flash, and every I211, keeps its image inside and loads it by
    /// itself.
    fn has_nvm(&self) -> Result<bool, NicError> {
        let value = self.csr.read(self.eecd())?;
        if self.part.generation == Generation::I210 {
            return Ok(value & eecd::FLASH_DETECTED != 0);
        }
        if value & eecd::PRES == 0 { Err(NicError::NvmAbsent) } else { Ok(true) }
    }

    /// First word of this port's image (I350: one image for each port).
    const fn image(&self) -> u16 {
        match (self.part.generation, self.port) {
            (Generation::I350, port @ 1..) => 0x40 + 0x40 * port as u16,
            _ => 0,
        }
    }

    pub(super) fn check_nvm(&mut self) -> Result<(), NicError> {
        if !self.has_nvm()? {
            return Ok(());
        }
        let image = self.image();
        nvm::check(|word| self.read_nvm(image + word))
    }

    /// Reads one 16-bit word.
    ///
    /// # Errors
    /// [`NicError::Timeout`] if the NVM does not answer, [`NicError::Semaphore`], [`NicError::Removed`].
    pub fn read_nvm(&mut self, word: u16) -> Result<u16, NicError> {
        let at = if self.part.generation == Generation::I210 { EERD_I210 } else { EERD };
        self.holding(sync::EEP, |this| {
            this.csr.write(at, u32::from(word) << 2 | 1);
            let csr = &this.csr;
            let mut data = 0;
            wait_until(&mut *this.bus, "NVM read", EERD_LIMIT, EERD_STEP, || {
                data = csr.read(at)?;
                Ok(data & DONE != 0)
            })?;
            Ok((data >> 16) as u16)
        })
    }

    /// The station address: an alternate one if the NVM points at it, else the one that reset has loaded.
    pub(super) fn station_address(&mut self) -> Result<MacAddress, NicError> {
        if self.has_nvm()? {
            let pointer = self.read_nvm(ALTERNATE_ADDRESS)?;
            if pointer != 0 && pointer != 0xffff {
                let at = pointer.wrapping_add(3 * u16::from(self.port));
                if let Ok(mac) = nvm::mac(0, |word| self.read_nvm(at.wrapping_add(word))) {
                    return Ok(mac);
                }
            }
        }
        let at = receive_address(0);
        let (low, high) = (self.csr.read(at)?, self.csr.read(at + 4)?);
        let mac = filter::address_of(low, high);
        if mac.is_valid_station() && high & filter::ADDRESS_VALID != 0 {
            return Ok(mac);
        }
        if !self.has_nvm()? {
            return Err(NicError::NvmMac { mac });
        }
        let (image, port) = (self.image(), self.port);
        nvm::mac(if image == 0 { port } else { 0 }, |word| self.read_nvm(image + word))
    }
}
