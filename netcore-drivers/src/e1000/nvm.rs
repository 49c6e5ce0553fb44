//! Reading the NVM: the EERD register, or bit by bit over Microwire.

use super::regs::{EECD, EERD, eecd};
use super::{Family, Format};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::nvm;
use core::time::Duration;
use netcore::MacAddress;

/// Half a clock of the serial interface.
const HALF_CLOCK: Duration = Duration::from_micros(50);
/// Bound of a read through EERD.
const EERD_LIMIT: Duration = Duration::from_millis(5);
/// Step of every wait here.
const STEP: Duration = Duration::from_micros(5);

impl<F: Format> Family<F> {
    pub(super) fn check_nvm(&mut self) -> Result<(), NicError> {
        if self.csr.read(EECD)? & eecd::PRES == 0 {
            return Err(NicError::NvmAbsent);
        }
        nvm::check(|word| self.read_nvm(word))
    }

    pub(super) fn nvm_mac(&mut self) -> Result<MacAddress, NicError> {
        // Two functions share one NVM on the 82546 only.
        let port = if self.part.name.starts_with("82546") { self.function } else { 0 };
        nvm::mac(port, |word| self.read_nvm(word))
    }

    /// Reads one 16-bit word.
    ///
    /// # Errors
    /// [`NicError::Timeout`] if neither way answers, [`NicError::Removed`].
    pub fn read_nvm(&mut self, word: u16) -> Result<u16, NicError> {
        // The address field moved with the 82571 (82574L datasheet 10.2.1.5).
        let (shift, done) = if self.is_82574() { (2, 1 << 1) } else { (8, 1 << 4) };
        self.csr.write(EERD, u32::from(word) << shift | 1);
        let csr = &self.csr;
        let mut data = 0;
        let read = wait_until(&mut *self.bus, "NVM read", EERD_LIMIT, STEP, || {
            data = csr.read(EERD)?;
            Ok(data & done != 0)
        });
        match read {
            Ok(()) => Ok((data >> 16) as u16),
            Err(NicError::Timeout { .. }) if !self.is_82574() => self.read_microwire(word),
            Err(error) => Err(error),
        }
    }

    /// Reads a word over the 4-wire interface (82546GB manual 5.3.2).
    pub(super) fn read_microwire(&mut self, word: u16) -> Result<u16, NicError> {
        let mut lines = self.csr.modify(EECD, eecd::SK | eecd::CS | eecd::DI, eecd::REQ)?;
        let csr = &self.csr;
        let granted = wait_until(&mut *self.bus, "access to the EEPROM", EERD_LIMIT, STEP, || {
            Ok(csr.read(EECD)? & eecd::GNT != 0)
        });
        if let Err(error) = granted {
            self.csr.modify(EECD, eecd::REQ, 0)?;
            return Err(error);
        }
        // 256 words take 8 address bits, 64 words 6.
        let address_bits = if self.csr.read(EECD)? & eecd::SIZE_OR_AUTO_RD != 0 { 8 } else { 6 };
        lines |= eecd::CS;
        self.csr.write(EECD, lines);
        self.settle()?;
        // Start bit and opcode "read".
        self.shift_out(&mut lines, 0b110, 3)?;
        self.shift_out(&mut lines, u32::from(word), address_bits)?;
        let mut data = 0;
        for _ in 0..16 {
            self.clock(&mut lines, true)?;
            data = data << 1 | u16::from(self.csr.read(EECD)? & eecd::DO != 0);
            self.clock(&mut lines, false)?;
        }
        // Chip select falls, one idle clock.
        lines &= !(eecd::CS | eecd::DI);
        self.csr.write(EECD, lines);
        self.settle()?;
        self.clock(&mut lines, true)?;
        self.clock(&mut lines, false)?;
        self.csr.write(EECD, lines & !eecd::REQ);
        self.csr.flush()?;
        Ok(data)
    }

    fn settle(&mut self) -> Result<(), NicError> {
        self.csr.flush()?;
        self.bus.sleep(HALF_CLOCK);
        Ok(())
    }

    fn clock(&mut self, lines: &mut u32, high: bool) -> Result<(), NicError> {
        *lines = if high { *lines | eecd::SK } else { *lines & !eecd::SK };
        self.csr.write(EECD, *lines);
        self.settle()
    }

    fn shift_out(&mut self, lines: &mut u32, bits: u32, count: u32) -> Result<(), NicError> {
        for bit in (0..count).rev() {
            *lines = if bits >> bit & 1 != 0 { *lines | eecd::DI } else { *lines & !eecd::DI };
            self.csr.write(EECD, *lines);
            self.settle()?;
            self.clock(lines, true)?;
            self.clock(lines, false)?;
        }
        Ok(())
    }
}
