//! The seams of receive offload and segmentation: [`ReceiveOffload`], [`Segmenter`] and [`GroHandler`].
//!
//! `netcore` declares them, `netcore-offload` implements them, [`Port`](crate::Port) owns one of each.

mod handler;

pub use handler::{GroEnd, GroHandler, GroHeader, GroMerge, GroNext, GroPair, GroView};

use crate::driver::{Features, Statistics};
use crate::packet::{Burst, Packet, PacketError};
use crate::pool::PoolCache;
use crate::time::Instant;

/// Merging of received packets into super-packets.
///
/// One value belongs to one receive queue (Linux: one NAPI instance). The packets of one poll are handed in with
/// [`ReceiveOffload::receive`], then the poll is ended with [`ReceiveOffload::end_poll`].
pub trait ReceiveOffload: Send {
    /// Takes all packets of `burst`, in order, and adds to the back of `out` what is to be delivered now. Packets that
    /// may still grow are held. `cache` is where empty segments go and header buffers come from; if it has none, a packet
    /// goes up unmerged.
    fn receive(&mut self, burst: &mut Burst, out: &mut Burst, cache: &mut PoolCache, now: Instant);

    /// Ends a poll (Linux: `napi_complete_done`). With `budget_exhausted` the device has more: packets held stay, except
    /// those held since an earlier tick of the clock (if the clock is fine enough); without, everything held is delivered unless a flush timeout is set.
    fn end_poll(&mut self, budget_exhausted: bool, out: &mut Burst, cache: &mut PoolCache, now: Instant);

    /// Delivers everything held.
    fn flush(&mut self, out: &mut Burst, cache: &mut PoolCache);

    /// Delivers what has been held past the flush timeout.
    fn poll(&mut self, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        let _ = (out, cache, now);
    }

    /// When [`ReceiveOffload::poll`] has something to do.
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// Packets held now, a merged one counting once.
    fn held(&self) -> usize;

    /// Writes all counters to `statistics`.
    fn statistics(&self, statistics: &mut Statistics);
}

/// Why a packet could not be segmented, or its checksum not be filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The headers are not what `gso.kind` says.
    #[error("{what} at byte {offset} does not match the segmentation kind: {allowed}")]
    Headers {
        /// What was looked at.
        what: &'static str,
        /// Offset from the first byte of the packet.
        offset: usize,
        /// What is allowed.
        allowed: &'static str,
    },
    /// This kind of super-packet is not known.
    #[error("segmentation kind {kind:#06x} is not supported")]
    Kind {
        /// Bits of [`GsoKind`](crate::GsoKind).
        kind: u16,
    },
    /// The segment size is zero, or leaves a segment longer than 65535 bytes.
    #[error("segment size {size} outside 1 to {max}")]
    Size {
        /// What was asked for.
        size: usize,
        /// Largest allowed.
        max: usize,
    },
    /// More segments than this kind of super-packet may have.
    #[error("{count} segments, allowed are {max}")]
    Count {
        /// How many there would be.
        count: usize,
        /// Most allowed.
        max: usize,
    },
    /// The checksum request points outside the packet.
    #[error("checksum field at byte {field} of a packet of {len}")]
    Checksum {
        /// Offset of the field from the first byte.
        field: usize,
        /// Bytes in the packet.
        len: usize,
    },
    /// A buffer or window was missing.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

/// A packet that could not be segmented; nothing was lost.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotSegmented {
    /// The packet; its bytes are as they were.
    pub packet: Packet,
    /// Why.
    #[source]
    pub error: SegmentError,
}

/// Cutting super-packets into wire packets, and the other things a device may not do itself.
pub trait Segmenter: Send {
    /// Cuts `packet` and adds the wire packets to the back of `out`; says how many. Checksums are final, or left to the
    /// device as requests where `features` says that it fills them in. A packet that is no super-packet passes through.
    ///
    /// # Errors
    /// [`NotSegmented`] with the packet; nothing was added to `out`.
    fn segment(
        &mut self,
        packet: Packet,
        features: Features,
        cache: &mut PoolCache,
        out: &mut Burst,
    ) -> Result<usize, NotSegmented>;

    /// Fills in the checksum that [`Packet::transmit_checksum`] asks for and clears the request (Linux:
    /// `skb_checksum_help`).
    ///
    /// # Errors
    /// [`SegmentError`]; the packet is unchanged.
    fn fill_checksum(&mut self, packet: &mut Packet, cache: &mut PoolCache) -> Result<(), SegmentError>;
}
