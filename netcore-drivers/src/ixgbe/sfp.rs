//! The module in the cage: its memory over the two-wire interface (SFF-8472), what it is, and how the analogue part is set
//! up for it.

use super::regs::{CORECTL, ESDP, I2CCTL, esdp, sync};
use super::{Ixgbe, Medium};
use crate::error::NicError;
use alloc::vec::Vec;
use core::time::Duration;

/// Lines of I2CCTL.
const CLK_OUT: u32 = 1 << 1;
const DATA_IN: u32 = 1 << 2;
const DATA_OUT: u32 = 1 << 3;
/// Half a clock at 100 kHz.
const HALF_CLOCK: Duration = Duration::from_micros(5);
/// Tries of a byte, with the bus cleared in between.
const TRIES: u32 = 3;
const MEMORY: u8 = 0xa0;

/// Bytes at A0h.
mod place {
    pub(super) const IDENTIFIER: u8 = 0x00;
    pub(super) const CODES_10G: u8 = 0x03;
    pub(super) const CODES_1G: u8 = 0x06;
    pub(super) const CABLE: u8 = 0x08;
}

/// NVM word that points at the initialisation of modules.
const INIT_TABLE: u16 = 0x2b;
/// Entries of that table at most.
const INIT_ENTRIES: u16 = 32;
/// Words of one list at most.
const INIT_WORDS: u16 = 256;

/// What kind of module is in the cage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Module {
    /// Passive or active copper cable.
    DirectAttach,
    /// 10GBASE-SR or -LR; some of them do 1 Gbit/s, too.
    Optical {
        /// 1000BASE-SX or -LX as well.
        also_1g: bool,
    },
    /// 1000BASE-SX, -LX or -T only.
    Gigabit,
}

impl Ixgbe {
    pub(super) fn phy_lock(&self) -> u32 {
        if self.port == 0 { sync::PHY0 } else { sync::PHY1 }
    }

    /// True if a module is in the cage.
    pub(super) fn module_present(&self) -> Result<bool, NicError> {
        Ok(self.part.medium != Medium::SfpPlus || self.csr.read(ESDP)? & esdp::SDP2 != 0)
    }

    /// Finds out what is in the cage; `None`: nothing.
    ///
    /// # Errors
    /// [`NicError::Unsupported`] for a module that is none of the kinds; [`NicError::Semaphore`]; [`NicError::Removed`].
    pub fn identify_module(&mut self) -> Result<Option<Module>, NicError> {
        if self.part.medium != Medium::SfpPlus || !self.module_present()? {
            return Ok(None);
        }
        let Some(identifier) = self.read_module(place::IDENTIFIER)? else { return Ok(None) };
        if identifier != 0x03 {
            return Err(NicError::Unsupported { what: "a module that is not SFP or SFP+" });
        }
        let mut byte = |at| Ok::<_, NicError>(self.read_module(at)?.unwrap_or(0));
        let (ten, one, cable) = (byte(place::CODES_10G)?, byte(place::CODES_1G)?, byte(place::CABLE)?);
        if cable & 0x0c != 0 {
            Ok(Some(Module::DirectAttach))
        } else if ten & 0x30 != 0 {
            Ok(Some(Module::Optical { also_1g: one & 0x03 != 0 }))
        } else if one & 0x0b != 0 {
            Ok(Some(Module::Gigabit))
        } else {
            Err(NicError::Unsupported { what: "a module that is neither 10GBASE-SR or -LR, nor a cable, nor 1000BASE" })
        }
    }

    /// Sets the analogue part up for a module, as the NVM says.
    pub(super) fn set_up_module(&mut self, module: Module) -> Result<(), NicError> {
        // Kinds 3 and 4: cable on core 0 and 1; 5 and 6: everything else.
        let kind = if module == Module::DirectAttach { 3 } else { 5 } + u16::from(self.port & 1);
        let table = self.read_nvm(INIT_TABLE)?;
        if table == 0 || table == 0xffff {
            return Err(NicError::Unsupported { what: "an NVM without initialisation of modules" });
        }
        let mut list = None;
        for entry in 0..INIT_ENTRIES {
            let at = table.wrapping_add(1 + 2 * entry);
            let found = self.read_nvm(at)?;
            if found == 0xffff {
                break;
            }
            if found == kind {
                list = Some(self.read_nvm(at.wrapping_add(1))?);
                break;
            }
        }
        let list = list.filter(|at| *at != 0 && *at != 0xffff);
        let list = list.ok_or(NicError::Unsupported { what: "a module that the NVM has no initialisation for" })?;
        let mut words = Vec::new();
        for n in 1..=INIT_WORDS {
            let word = self.read_nvm(list.wrapping_add(n))?;
            if word == 0xffff {
                break;
            }
            words.push(word);
        }
        self.holding(sync::MAC_CSR, |this| {
            for word in &words {
                this.csr.write(CORECTL, u32::from(*word));
                this.csr.flush()?;
            }
            Ok(())
        })?;
        self.bus.sleep(Duration::from_millis(5));
        Ok(())
    }

    /// Reads a byte of the module's memory; `None` if nobody answers.
    fn read_module(&mut self, place: u8) -> Result<Option<u8>, NicError> {
        let lock = self.phy_lock();
        for _ in 0..TRIES {
            let byte = self.holding(lock, |this| this.try_read(place))?;
            if byte.is_some() {
                return Ok(byte);
            }
            self.holding(lock, Self::clear_bus)?;
            self.bus.sleep(Duration::from_millis(1));
        }
        Ok(None)
    }

    fn try_read(&mut self, place: u8) -> Result<Option<u8>, NicError> {
        self.start_condition()?;
        let answered = self.send_byte(MEMORY)? && self.send_byte(place)?;
        if !answered {
            self.stop_condition()?;
            return Ok(None);
        }
        self.start_condition()?;
        if !self.send_byte(MEMORY | 1)? {
            self.stop_condition()?;
            return Ok(None);
        }
        let mut byte = 0;
        for _ in 0..8 {
            byte = byte << 1 | u8::from(self.clock(true)?);
        }
        // No acknowledgement: that was all.
        self.clock(true)?;
        self.stop_condition()?;
        Ok(Some(byte))
    }

    fn lines(&mut self, clock: bool, data: bool) -> Result<(), NicError> {
        let value = if clock { CLK_OUT } else { 0 } | if data { DATA_OUT } else { 0 };
        self.csr.write(I2CCTL, value);
        self.csr.flush()?;
        self.bus.sleep(HALF_CLOCK);
        Ok(())
    }

    fn start_condition(&mut self) -> Result<(), NicError> {
        self.lines(false, true)?;
        self.lines(true, true)?;
        self.lines(true, false)?;
        self.lines(false, false)
    }

    fn stop_condition(&mut self) -> Result<(), NicError> {
        self.lines(false, false)?;
        self.lines(true, false)?;
        self.lines(true, true)
    }

    /// One clock with `data` on the line; what the line was while the clock was high.
    fn clock(&mut self, data: bool) -> Result<bool, NicError> {
        self.lines(false, data)?;
        self.lines(true, data)?;
        let bit = self.csr.read(I2CCTL)? & DATA_IN != 0;
        self.lines(false, data)?;
        Ok(bit)
    }

    /// True if it was acknowledged.
    fn send_byte(&mut self, byte: u8) -> Result<bool, NicError> {
        for bit in (0..8).rev() {
            self.clock(byte >> bit & 1 != 0)?;
        }
        Ok(!self.clock(true)?)
    }

    /// Nine clocks and a stop bring a module that lost count back.
    fn clear_bus(&mut self) -> Result<(), NicError> {
        self.start_condition()?;
        for _ in 0..9 {
            self.clock(true)?;
        }
        self.start_condition()?;
        self.stop_condition()
    }
}
