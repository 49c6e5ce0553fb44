//! The EEPROM: 64 words behind EERD, or bit by bit over Microwire (manual 5.3).

use super::Core;
use crate::model::nvm::{blank, seal};
use core::time::Duration;
use netcore::{Instant, MacAddress};
use std::vec::Vec;

const SK: u32 = 1 << 0;
const CS: u32 = 1 << 1;
const DI: u32 = 1 << 2;
const DO: u32 = 1 << 3;
const REQ: u32 = 1 << 6;
const GNT: u32 = 1 << 7;
const PRES: u32 = 1 << 8;
/// How long a read through EERD takes: 27 clocks at 1 MHz.
const READ_TIME: Duration = Duration::from_micros(27);

/// The serial interface's state.
#[derive(Clone, Copy, Debug, Default)]
struct Serial {
    clocks: u32,
    command: u32,
    out: u32,
}

#[derive(Debug, Default)]
pub(super) struct Nvm {
    image: Vec<u16>,
    eecd: u32,
    eerd: u32,
    ready: Instant,
    serial: Serial,
}

impl Nvm {
    /// Loads the image as the EEPROM holds it.
    pub(super) fn load(&mut self, core: &Core) {
        let mut image = blank(64, core.mac);
        image[0x0a] = 0x640b;
        image[0x0b] = 0x1079;
        image[0x0c] = 0x8086;
        image[0x0d] = 0x1079;
        image[0x0e] = 0x8086;
        image[0x0f] = 0x3000;
        seal(&mut image);
        self.image = image;
        self.eecd = 0;
        self.eerd = 0;
        self.serial = Serial::default();
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
        if core.faults.nvm_absent || core.now() < self.ready { self.eerd & !0x10 } else { self.eerd }
    }

    pub(super) fn write_eerd(&mut self, core: &mut Core, value: u32) {
        if value & 1 == 0 {
            return;
        }
        if core.now() < self.ready {
            core.violate("eerd-busy", "a read was started before the one before had finished");
        }
        let address = value >> 8 & 0xff;
        self.eerd = u32::from(self.word(core, address)) << 16 | address << 8 | 0x10;
        self.ready = core.now() + READ_TIME;
    }

    pub(super) fn read_eecd(&self, core: &Core) -> u32 {
        let present = if core.faults.nvm_absent { 0 } else { PRES };
        // The grant follows the request: no other agent uses this EEPROM.
        let granted = if self.eecd & REQ != 0 && !core.faults.semaphore_held { GNT } else { 0 };
        self.eecd & !(GNT | PRES | DO) | present | granted | if self.serial.out & 1 != 0 { DO } else { 0 }
    }

    pub(super) fn write_eecd(&mut self, core: &mut Core, value: u32) {
        let before = self.eecd;
        self.eecd = value & (SK | CS | DI | REQ | 0x30);
        if value & (SK | CS | DI) != 0 && (value & REQ == 0 || core.faults.semaphore_held) {
            core.violate("eeprom-grant", "EEPROM lines driven without a grant");
            return;
        }
        if value & CS == 0 {
            self.serial = Serial::default();
            return;
        }
        if value & SK != 0 && before & SK == 0 {
            self.clock(core, value & DI != 0);
        }
    }

    /// A rising edge: start bit and opcode (3 bits), address (6 bits), then data out.
    fn clock(&mut self, core: &Core, bit: bool) {
        let serial = self.serial;
        let clocks = serial.clocks + 1;
        let command = serial.command << 1 | u32::from(bit);
        self.serial.clocks = clocks;
        if clocks <= 9 {
            self.serial.command = command;
            if clocks == 9 && command >> 6 == 0b110 {
                // A zero comes out in front of the data (the dummy bit), on the clock of the last address bit.
                self.serial.out = 0;
            }
            return;
        }
        if serial.command >> 6 == 0b110 {
            let word = u32::from(self.word(core, serial.command & 0x3f));
            let index = clocks - 10;
            self.serial.out = if index < 16 { word >> (15 - index) } else { 0 };
        }
    }
}
