//! Counters: clear on read, stick at all ones.

use std::vec::Vec;

/// Offsets of 32-bit counters and of the lower halves of pairs.
pub(super) mod at {
    pub(crate) const CRCERRS: u32 = 0x4000;
    pub(crate) const MPC: u32 = 0x4010;
    pub(crate) const XONRXC: u32 = 0x4048;
    pub(crate) const XONTXC: u32 = 0x404c;
    pub(crate) const XOFFRXC: u32 = 0x4050;
    pub(crate) const XOFFTXC: u32 = 0x4054;
    pub(crate) const PRC64: u32 = 0x405c;
    pub(crate) const GPRC: u32 = 0x4074;
    pub(crate) const BPRC: u32 = 0x4078;
    pub(crate) const MPRC: u32 = 0x407c;
    pub(crate) const GPTC: u32 = 0x4080;
    pub(crate) const GORC: u32 = 0x4088;
    pub(crate) const GOTC: u32 = 0x4090;
    pub(crate) const RNBC: u32 = 0x40a0;
    pub(crate) const RUC: u32 = 0x40a4;
    pub(crate) const ROC: u32 = 0x40ac;
    pub(crate) const TOR: u32 = 0x40c0;
    pub(crate) const TOT: u32 = 0x40c8;
    pub(crate) const TPR: u32 = 0x40d0;
    pub(crate) const TPT: u32 = 0x40d4;
    pub(crate) const PTC64: u32 = 0x40d8;
    pub(crate) const MPTC: u32 = 0x40f0;
    pub(crate) const BPTC: u32 = 0x40f4;
    pub(crate) const TSCTC: u32 = 0x40f8;
    pub(crate) const TSCTFC: u32 = 0x40fc;
}

const FIRST: u32 = 0x4000;
const LAST: u32 = 0x40fc;
/// Offsets in between where no counter is.
const HOLES: &[u32] = &[0x4024, 0x402c, 0x4044, 0x4084, 0x4098, 0x409c];

fn is_pair(low: u32) -> bool {
    matches!(low, at::GORC | at::GOTC | at::TOR | at::TOT)
}

/// The counter at an offset of the register file.
pub(super) fn index(offset: u32) -> Option<u32> {
    ((FIRST..=LAST).contains(&offset) && !HOLES.contains(&offset)).then_some(offset)
}

#[derive(Debug)]
pub(super) struct Counters {
    values: Vec<u64>,
    /// The lower half of a pair was read and not yet its upper one.
    low_read: u32,
}

impl Default for Counters {
    fn default() -> Self {
        Self { values: vec![0; ((LAST - FIRST) / 4 + 1) as usize], low_read: 0 }
    }
}

impl Counters {
    pub(super) fn add(&mut self, offset: u32, n: u64) {
        let limit = if is_pair(offset) { u64::MAX } else { u64::from(u32::MAX) };
        if let Some(value) = self.values.get_mut(((offset - FIRST) / 4) as usize) {
            *value = value.saturating_add(n).min(limit);
        }
    }

    /// Counts a frame of `len` bytes, FCS included, in the histogram that starts at `first`.
    pub(super) fn add_size(&mut self, first: u32, len: usize) {
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

    /// The value of the register, and whether it may be read now.
    pub(super) fn read(&mut self, offset: u32) -> (u32, bool) {
        let slot = ((offset - FIRST) / 4) as usize;
        if is_pair(offset) {
            self.low_read = offset;
            return (self.values[slot] as u32, true);
        }
        if offset >= 4 && is_pair(offset - 4) {
            let in_order = self.low_read == offset - 4;
            self.low_read = 0;
            // Reading the upper half clears both.
            let value = core::mem::take(&mut self.values[slot - 1]);
            return ((value >> 32) as u32, in_order);
        }
        (core::mem::take(&mut self.values[slot]) as u32, true)
    }
}
