//! [`ConfigSpace`]: a modelled device's PCI configuration space.

use std::vec::Vec;

/// Bytes that are kept: all of PCI Express configuration space.
const LEN: usize = 4096;

/// Configuration space with write masks. Words are 32-bit, offsets multiples of 4.
#[derive(Clone, Debug)]
pub struct ConfigSpace {
    words: Vec<u32>,
    writable: Vec<u32>,
    /// Bits that a written one clears.
    clearable: Vec<u32>,
}

impl ConfigSpace {
    /// Identity and class of an Ethernet controller; command register writable; no BARs, no capabilities.
    pub fn ethernet(device: u16, revision: u8, subsystem: u16) -> Self {
        let mut config = Self { words: vec![0; LEN / 4], writable: vec![0; LEN / 4], clearable: vec![0; LEN / 4] };
        config.set(0x00, u32::from(device) << 16 | 0x8086);
        config.set(0x08, 0x0200_0000 | u32::from(revision));
        config.set(0x2c, u32::from(subsystem) << 16 | 0x8086);
        // Command: I/O, memory, master, memory write and invalidate, parity, SERR, INTx disable. Status: error bits clear
        // when written with one.
        config.allow(0x04, 0x0000_0557);
        config.clearable[1] = 0xf900_0000;
        // Interrupt pin A; line and latency timer are scratch.
        config.set(0x3c, 0x0100);
        config.allow(0x3c, 0xff);
        config.allow(0x0c, 0xffff);
        config
    }

    /// The word at `offset`.
    pub fn get(&self, offset: u16) -> u32 {
        self.words.get(usize::from(offset / 4)).copied().unwrap_or(u32::MAX)
    }

    /// Sets a word regardless of masks.
    pub fn set(&mut self, offset: u16, value: u32) {
        if let Some(word) = self.words.get_mut(usize::from(offset / 4)) {
            *word = value;
        }
    }

    /// Makes bits of a word writable.
    pub fn allow(&mut self, offset: u16, bits: u32) {
        if let Some(word) = self.writable.get_mut(usize::from(offset / 4)) {
            *word |= bits;
        }
    }

    /// A write as it comes from the bus.
    pub fn write(&mut self, offset: u16, value: u32) {
        let at = usize::from(offset / 4);
        if at < self.words.len() {
            let kept = self.words[at] & !self.writable[at];
            self.words[at] = (kept | value & self.writable[at]) & !(value & self.clearable[at]);
        }
    }

    /// A memory BAR of `size` bytes, a power of two; 64-bit ones take two registers.
    pub fn memory_bar(&mut self, index: u8, size: u32, wide: bool) {
        let at = 0x10 + 4 * u16::from(index);
        self.set(at, if wide { 4 } else { 0 });
        self.allow(at, !(size - 1));
        if wide {
            self.allow(at + 4, u32::MAX);
        }
    }

    /// An I/O BAR of `size` bytes, a power of two.
    pub fn io_bar(&mut self, index: u8, size: u32) {
        let at = 0x10 + 4 * u16::from(index);
        self.set(at, 1);
        self.allow(at, !(size - 1) & 0xffff);
    }

    /// Puts a capability at `offset`, in front of those there are. `words` are its words; the id and link of the first one
    /// are filled in.
    pub fn capability(&mut self, offset: u16, id: u8, words: &[u32]) {
        let next = self.get(0x34) as u8;
        self.set(0x34, u32::from(offset));
        let status = self.get(0x04);
        self.set(0x04, status | 0x0010_0000);
        for (i, word) in (0u16..).zip(words) {
            let link = if i == 0 { u32::from(id) | u32::from(next) << 8 } else { 0 };
            self.set(offset + 4 * i, word & if i == 0 { 0xffff_0000 } else { u32::MAX } | link);
        }
    }

    /// True if memory space is enabled.
    pub fn memory_enabled(&self) -> bool {
        self.get(4) & 2 != 0
    }

    /// True if the device may start DMA.
    pub fn master(&self) -> bool {
        self.get(4) & 4 != 0
    }
}
