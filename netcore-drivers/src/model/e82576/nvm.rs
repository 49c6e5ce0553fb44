//! The NVM behind EERD (82576 datasheet 8.4.2, 6).

use super::Core;
use crate::model::nvm::{blank, seal};
use core::time::Duration;
use netcore::{Instant, MacAddress};
use std::vec::Vec;

/// Words: 2^(6 + SIZE_EX).
const WORDS: usize = 256;
const SIZE_EX: u32 = 2 << 11;
const PRES: u32 = 1 << 8;
const AUTO_RD: u32 = 1 << 9;
const REQ: u32 = 1 << 6;
const GNT: u32 = 1 << 7;
const DONE: u32 = 1 << 1;
/// Opcode, address and 16 bits of data at 2 MHz.
const READ_TIME: Duration = Duration::from_micros(20);

#[derive(Debug, Default)]
pub(super) struct Nvm {
    image: Vec<u16>,
    eecd: u32,
    eerd: u32,
    ready: Instant,
}

impl Nvm {
    /// Loads the image as the part holds it.
    pub(super) fn load(&mut self, core: &Core, serdes: bool) {
        let mut image = blank(WORDS, core.mac);
        image[0x03] = 0x0400;
        image[0x0a] = 0x402f;
        image[0x0b] = 0x0000;
        image[0x0c] = 0x8086;
        image[0x0d] = if serdes { 0x10e7 } else { 0x10c9 };
        image[0x0f] = 0x6000;
        image[0x24] = if serdes { 0x00c0 } else { 0x0000 };
        seal(&mut image);
        self.image = image;
        self.eecd = 0;
        self.eerd = 0;
    }

    pub(super) fn mac(&self) -> MacAddress {
        let mut bytes = [0; 6];
        for (pair, word) in bytes.chunks_exact_mut(2).zip(&self.image) {
            pair.copy_from_slice(&word.to_le_bytes());
        }
        MacAddress(bytes)
    }

    fn word(&self, core: &Core, address: u32) -> u16 {
        if core.faults.nvm_absent {
            return 0xffff;
        }
        let word = self.image.get(address as usize).copied().unwrap_or(0xffff);
        if core.faults.nvm_damaged && address == 0x20 { word ^ 0x0100 } else { word }
    }

    pub(super) fn read_eerd(&self, core: &Core) -> u32 {
        if core.faults.nvm_absent || core.now() < self.ready { self.eerd & !DONE } else { self.eerd }
    }

    pub(super) fn write_eerd(&mut self, core: &mut Core, value: u32) {
        if value & 1 == 0 {
            return;
        }
        if core.now() < self.ready {
            core.violate("eerd-busy", "a read was started before the one before had finished");
        }
        let address = value >> 2 & 0x3fff;
        self.eerd = u32::from(self.word(core, address)) << 16 | address << 2 | DONE;
        self.ready = core.now() + READ_TIME;
    }

    pub(super) fn read_eecd(&self, core: &Core) -> u32 {
        let present = if core.faults.nvm_absent { 0 } else { PRES | SIZE_EX };
        let loaded = if core.faults.nvm_absent || core.faults.reset_stuck { 0 } else { AUTO_RD };
        let granted = if self.eecd & REQ != 0 && !core.faults.semaphore_held { GNT } else { 0 };
        self.eecd | present | loaded | granted
    }

    pub(super) fn write_eecd(&mut self, core: &mut Core, value: u32) {
        self.eecd = value & REQ;
        // Clock, select and data lines: the serial interface is not modelled, EERD reads everything.
        if value & 7 != 0 {
            core.violate("eeprom-grant", "EEPROM lines driven; this part reads through EERD");
        }
    }
}
