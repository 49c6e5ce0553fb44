//! [`Counters`]: statistics registers, which clear when they are read and stick at all ones.

use std::vec::Vec;

/// 32-bit counters at every multiple of 4 of a range of offsets, some of them pairs of 64 bits.
#[derive(Clone, Debug)]
pub struct Counters {
    first: u32,
    /// Offsets of the lower halves of pairs.
    pairs: &'static [u32],
    values: Vec<u64>,
    /// The lower half of a pair was read and not yet its upper one.
    low_read: u32,
}

impl Counters {
    /// Counters at `first..=last`, all zero.
    pub fn new(first: u32, last: u32, pairs: &'static [u32]) -> Self {
        Self { first, pairs, values: vec![0; ((last - first) / 4 + 1) as usize], low_read: 0 }
    }

    fn slot(&self, offset: u32) -> usize {
        (offset.wrapping_sub(self.first) / 4) as usize
    }

    /// Sets all to zero.
    pub fn clear(&mut self) {
        self.values.fill(0);
        self.low_read = 0;
    }

    /// Counts `n` more.
    pub fn add(&mut self, offset: u32, n: u64) {
        let limit = if self.pairs.contains(&offset) { u64::MAX } else { u64::from(u32::MAX) };
        let slot = self.slot(offset);
        if let Some(value) = self.values.get_mut(slot) {
            *value = value.saturating_add(n).min(limit);
        }
    }

    /// Counts a frame of `len` bytes, FCS included, in the histogram that starts at `first`.
    pub fn add_size(&mut self, first: u32, len: usize) {
        let bin = match len {
            0..=64 => 0,
            65..=127 => 1,
            128..=255 => 2,
            256..=511 => 3,
            512..=1023 => 4,
            _ => 5,
        };
        self.add(first + 4 * bin, 1);
    }

    /// The value of the register, and whether it may be read now: the upper half of a pair only after the lower one.
    pub fn read(&mut self, offset: u32) -> (u32, bool) {
        let slot = self.slot(offset);
        if slot >= self.values.len() {
            return (0, true);
        }
        if self.pairs.contains(&offset) {
            self.low_read = offset;
            return (self.values[slot] as u32, true);
        }
        if slot > 0 && self.pairs.contains(&(offset - 4)) {
            let in_order = self.low_read == offset - 4;
            self.low_read = 0;
            // Reading the upper half clears both.
            let value = core::mem::take(&mut self.values[slot - 1]);
            return ((value >> 32) as u32, in_order);
        }
        (core::mem::take(&mut self.values[slot]) as u32, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_clear_when_read_and_stick_at_their_end() {
        let mut counters = Counters::new(0x4000, 0x40fc, &[0x4088]);
        counters.add(0x4000, u64::from(u32::MAX) + 5);
        assert_eq!(counters.read(0x4000), (u32::MAX, true));
        assert_eq!(counters.read(0x4000), (0, true));
        counters.add(0x4088, 0x1_0000_0002);
        assert_eq!(counters.read(0x408c), (1, false), "the upper half before the lower");
        counters.add(0x4088, 0x1_0000_0002);
        assert_eq!(
            (counters.read(0x4088), counters.read(0x408c), counters.read(0x4088)),
            ((2, true), (1, true), (0, true))
        );
    }
}
