//! The NVM behind EERD (82599 datasheet 6, 8.2.3.2).

use super::Core;
use crate::model::nvm::blank;
use core::time::Duration;
use netcore::{Instant, MacAddress};
use std::vec::Vec;

/// Words: 16 KiB of EEPROM.
const WORDS: usize = 8192;
const SIZE: u32 = 3 << 11;
const REQ: u32 = 1 << 6;
const GNT: u32 = 1 << 7;
const PRES: u32 = 1 << 8;
const AUTO_RD: u32 = 1 << 9;
const DONE: u32 = 1 << 1;
const READ_TIME: Duration = Duration::from_micros(20);
/// Words that point at sections which the checksum covers.
const SECTIONS: core::ops::RangeInclusive<usize> = 0x03..=0x0e;

/// The image of an SFP+ card.
pub(super) fn image(mac: MacAddress) -> Vec<u16> {
    let mut image = blank(WORDS, mac);
    image[0x03] = 0xffff;
    // One section each of the kinds that there are, so that a checksum over words 0 to 3f alone is wrong.
    for (word, at) in [(0x06usize, 0x0100u16), (0x09, 0x0110), (0x0b, 0x0120)] {
        image[word] = at;
        image[usize::from(at)] = 3;
        for n in 1..=3 {
            image[usize::from(at) + n] = 0x1111 * word as u16 + n as u16;
        }
    }
    // No firmware, PBA number "E68793-004", version, no thermal sensor, no alternate names.
    image[0x0f] = 0xffff;
    image[0x15] = 0xe687;
    image[0x16] = 0x9304;
    image[0x18] = 0x4300;
    image[0x26] = 0xffff;
    image[0x27] = 0xffff;
    image[0x28] = 0xffff;
    // Initialisation of modules: pairs of kind and place, then a list for each.
    image[0x2b] = 0x0200;
    for (n, (kind, at)) in [(3u16, 0x0240u16), (4, 0x0240), (5, 0x0250), (6, 0x0250)].into_iter().enumerate() {
        image[0x0201 + 2 * n] = kind;
        image[0x0202 + 2 * n] = at;
    }
    image[0x0209] = 0xffff;
    for (at, values) in [(0x0240usize, [0x0012u16, 0x1234]), (0x0250, [0x0034, 0x5678])] {
        image[at + 1..at + 3].copy_from_slice(&values);
        image[at + 3] = 0xffff;
    }
    // Any module, no FCoE, no crosstalk work-around.
    image[0x2c] = 0x0083;
    image[0x3f] = 0xbabau16.wrapping_sub(sum(&image));
    image
}

/// What the checksum word and the rest must add up to `0xbaba` with (82599 datasheet 6.3.3.2.7).
fn sum(image: &[u16]) -> u16 {
    let mut sum = image[..0x3f].iter().fold(0u16, |sum, word| sum.wrapping_add(*word));
    for pointer in SECTIONS {
        let at = usize::from(image[pointer]);
        if at == 0 || at >= 0xffff || at >= image.len() {
            continue;
        }
        let len = usize::from(image[at]);
        if len == 0 || len == 0xffff {
            continue;
        }
        for word in image.iter().skip(at + 1).take(len) {
            sum = sum.wrapping_add(*word);
        }
    }
    sum
}

#[derive(Debug, Default)]
pub(super) struct Nvm {
    image: Vec<u16>,
    request: bool,
    eerd: u32,
    ready: Instant,
}

impl Nvm {
    /// Loads the image as the part holds it.
    pub(super) fn load(&mut self, core: &Core) {
        if self.image.is_empty() {
            self.image = image(core.mac);
        }
        self.request = false;
        self.eerd = 0;
        self.ready = core.now();
    }

    fn word(&self, core: &Core, address: u32) -> u16 {
        if core.faults.nvm_absent {
            return 0xffff;
        }
        let word = self.image.get(address as usize).copied().unwrap_or(0xffff);
        // A word of a section, outside the first 64.
        if core.faults.nvm_damaged && address == 0x0121 { word ^ 0x0100 } else { word }
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
        // Without delays on the bus the part answers at once, too.
        self.ready = if core.timing.dma.is_zero() { core.now() } else { core.now() + READ_TIME };
    }

    pub(super) fn read_eec(&self, core: &Core) -> u32 {
        let present = if core.faults.nvm_absent { 0 } else { PRES | SIZE };
        let loaded = if core.faults.nvm_absent || core.faults.reset_stuck { 0 } else { AUTO_RD };
        let granted = if self.request && !core.faults.semaphore_held { GNT } else { 0 };
        present | loaded | granted | if self.request { REQ } else { 0 }
    }

    pub(super) fn write_eec(&mut self, core: &mut Core, value: u32) {
        self.request = value & REQ != 0;
        if value & 7 != 0 {
            core.violate("eeprom-grant", "EEPROM lines driven; this part reads through EERD");
        }
    }
}
