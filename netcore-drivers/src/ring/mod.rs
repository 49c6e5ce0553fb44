//! Descriptor rings, generic over the descriptor layout of a family.
//!
//! ```text
//!   software fills     [head .. tail)   owned by hardware          head == tail: nothing for hardware to do
//!   software never     reads head; the descriptor-done bit in memory is the truth
//! ```
//!
//! **Invariant: a ring is never full.** Tail meeting head from behind looks empty (82574L datasheet 7.1.6 and 7.2.4: "if the
//! head equals the tail, there are no descriptors for hardware"), so at most `count - 1` descriptors are given at once.
//!
//! **Invariant: order.** Descriptor stores happen before the tail store: a release fence stands between them (82599
//! datasheet 7.2.3 "software must write the descriptors to memory before it moves the tail"). The done bit is read once; an
//! acquire fence stands between it and reads of the other fields and of the buffer (82599 datasheet 7.1.6: "software must
//! read the DD bit before other fields"). On processors with strong order both are free.
//!
//! **Invariant: one tail store per burst.**

mod arena;
mod layout;
mod receive;
mod transmit;

#[cfg(test)]
mod tests;

pub use arena::Arenas;
pub use layout::{HEADER_ROOM, ReceiveFault, ReceiveLayout, Received, TransmitLayout, TransmitPlan};
pub use receive::{ReceiveBuffers, ReceiveCounters, ReceiveRing};
pub use transmit::{TransmitCounters, TransmitRing};

use crate::dma::DmaBlock;
use crate::error::NicError;
use crate::mmio::Mmio;
use core::sync::atomic::{Ordering, fence};
use netcore::DmaRegion;

/// Bytes in a descriptor of every layout here.
pub const DESCRIPTOR_LEN: usize = 16;

/// The two little-endian words of a descriptor.
pub type Words = [u64; 2];

/// Bytes of memory that a ring of `count` descriptors needs.
pub const fn ring_bytes(count: u16) -> usize {
    count as usize * DESCRIPTOR_LEN
}

/// A ring of descriptors in memory and the tail register that hands them over.
#[derive(Debug)]
pub(crate) struct Descriptors {
    block: DmaBlock,
    count: u16,
    window: Mmio,
    tail: u32,
}

impl Descriptors {
    /// `count` is a multiple of 8 (ring lengths are multiples of 128 bytes in every family), at least 8.
    pub(crate) fn new(region: DmaRegion, count: u16, window: Mmio, tail: u32) -> Result<Self, NicError> {
        if count < 8 || !count.is_multiple_of(8) {
            return Err(NicError::OutOfRange {
                what: "ring length",
                value: count.into(),
                allowed: "a multiple of 8, at least 8",
            });
        }
        if region.len() < ring_bytes(count) {
            return Err(NicError::NoDmaMemory { bytes: ring_bytes(count), message: "the region is smaller".into() });
        }
        let block = DmaBlock::new(region)?;
        block.zero(0, ring_bytes(count));
        Ok(Self { block, count, window, tail })
    }

    #[inline(always)]
    pub(crate) const fn count(&self) -> u16 {
        self.count
    }

    pub(crate) const fn iova(&self) -> u64 {
        self.block.iova()
    }

    /// The index after `index`.
    #[inline(always)]
    pub(crate) const fn next(&self, index: u16) -> u16 {
        if index + 1 == self.count { 0 } else { index + 1 }
    }

    #[inline(always)]
    pub(crate) fn write(&self, index: u16, words: Words) {
        let at = usize::from(index) * DESCRIPTOR_LEN;
        self.block.write_u64(at, words[0]);
        self.block.write_u64(at + 8, words[1]);
    }

    /// The second word, which holds the done bit; nothing else may be taken from the descriptor before [`Descriptors::first`].
    #[inline(always)]
    pub(crate) fn second(&self, index: u16) -> u64 {
        self.block.read_u64(usize::from(index) * DESCRIPTOR_LEN + 8)
    }

    /// The first word of a descriptor whose done bit was seen, read after it.
    #[inline(always)]
    pub(crate) fn first(&self, index: u16) -> u64 {
        fence(Ordering::Acquire);
        self.block.read_u64(usize::from(index) * DESCRIPTOR_LEN)
    }

    /// Hands everything up to `index`, exclusive, to hardware.
    #[inline(always)]
    pub(crate) fn bump(&self, index: u16) {
        fence(Ordering::Release);
        self.window.write(self.tail, u32::from(index));
    }
}
