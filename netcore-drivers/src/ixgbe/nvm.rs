//! Reading the NVM: EERD, the checksum over its sections, the station address.

use super::regs::{EEC, EERD, RAH, RAL, eec, sync};
use super::{Generation, Ixgbe};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::{filter, nvm};
use core::time::Duration;
use netcore::MacAddress;

/// Bound of a read through EERD.
const EERD_LIMIT: Duration = Duration::from_millis(10);
const EERD_STEP: Duration = Duration::from_micros(5);
const DONE: u32 = 1 << 1;

impl Ixgbe {
    /// Checks the checksum over words 0 to 3F and the sections that words 3 to E point at (82599 datasheet 6.3.3.2.7; X540
    /// datasheet: not words 4 and 5, and sections of fixed length).
    pub(super) fn check_nvm(&mut self) -> Result<(), NicError> {
        if self.csr.read(EEC)? & eec::PRES == 0 {
            return Err(NicError::NvmAbsent);
        }
        let mut sum = 0u16;
        let x540 = self.part.generation == Generation::X540;
        for word in 0..nvm::CHECKED_WORDS {
            sum = sum.wrapping_add(self.read_nvm(word)?);
        }
        for word in 0x03..=0x0e {
            // X540: the PHY and option ROM have checksums of their own.
            if x540 && matches!(word, 0x04 | 0x05) {
                continue;
            }
            let at = self.read_nvm(word)?;
            if at == 0 || at == 0xffff {
                continue;
            }
            let (first, len) = if x540 && word == 0x03 {
                (at, 0x08)
            } else if x540 && word >= 0x07 {
                (at, 0x0a)
            } else {
                (at.wrapping_add(1), self.read_nvm(at)?)
            };
            if len == 0 || len == 0xffff {
                continue;
            }
            for n in 0..len {
                sum = sum.wrapping_add(self.read_nvm(first.wrapping_add(n))?);
            }
        }
        if sum == nvm::CHECKSUM { Ok(()) } else { Err(NicError::NvmChecksum { sum }) }
    }

    /// Reads one 16-bit word.
    ///
    /// # Errors
    /// [`NicError::Timeout`] if the NVM does not answer, [`NicError::Semaphore`], [`NicError::Removed`].
    pub fn read_nvm(&mut self, word: u16) -> Result<u16, NicError> {
        if self.part.generation == Generation::X540 {
            // Firmware reads, too.
            return self.holding(sync::EEP, |this| this.read_nvm_unlocked(word));
        }
        self.read_nvm_unlocked(word)
    }

    fn read_nvm_unlocked(&mut self, word: u16) -> Result<u16, NicError> {
        self.csr.write(EERD, u32::from(word) << 2 | 1);
        let csr = &self.csr;
        let mut data = 0;
        wait_until(&mut *self.bus, "NVM read", EERD_LIMIT, EERD_STEP, || {
            data = csr.read(EERD)?;
            Ok(data & DONE != 0)
        })?;
        Ok((data >> 16) as u16)
    }

    /// The station address, which the reset has loaded.
    pub(super) fn station_address(&mut self) -> Result<MacAddress, NicError> {
        let (low, high) = (self.csr.read(RAL)?, self.csr.read(RAH)?);
        let mac = filter::address_of(low, high);
        if mac.is_valid_station() { Ok(mac) } else { Err(NicError::NvmMac { mac }) }
    }
}
