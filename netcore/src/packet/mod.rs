//! [`Packet`]: what travels.
//!
//! A `Packet` is an 8-byte owning handle. Moving it moves a word; its bytes stay where they are:
//!
//! ```text
//!   Packet ──► descriptor ──next──► descriptor ──next──► descriptor      two cache lines each
//!                │ metadata            │                    │
//!                ▼                     ▼                    ▼
//!              buffer (headers)      buffer (payload)     virtual: a length, no bytes
//! ```
//!
//! The first segment (the head) has headroom to push headers into. Further segments are reference-counted windows into
//! buffers that other packets may share, so a retransmit queue and the wire hold the same payload, and receive offload
//! chains payloads without copying. Bytes are only writable while nobody shares them.

mod burst;
mod cut;
pub(crate) mod descriptor;
pub(crate) mod external;
mod metadata;
mod queue;
mod segment;
#[cfg(test)]
mod tests;

pub use burst::{Burst, Drain};
pub use cut::Cutter;
pub use metadata::{Gso, GsoKind, HeaderOffsets, Metadata, PartialChecksum, ReceiveChecksum, ReceiveState, VlanTag};
pub use queue::PacketQueue;
pub use segment::{Segment, Segments};

use crate::pool::{Free, PoolCache, PoolError, Shared};
use core::fmt;
use core::ptr::{self, NonNull};
use core::slice;
use descriptor::{Descriptor, SegmentKind};

/// Longest packet, and longest segment, in bytes.
pub const MAX_PACKET_LEN: usize = 1 << 31;

/// Why an operation on a packet was refused. The packet is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// Too little free space in front of the head segment.
    #[error("{wanted} bytes do not fit in front: headroom is {available}")]
    NoHeadroom {
        /// Bytes to push.
        wanted: usize,
        /// Bytes free.
        available: usize,
    },
    /// Too little free space behind the last segment.
    #[error("{wanted} bytes do not fit behind: tailroom is {available}")]
    NoTailroom {
        /// Bytes to put.
        wanted: usize,
        /// Bytes free.
        available: usize,
    },
    /// The bytes are shared with another packet, or are caller memory, or virtual, so they cannot be written in place.
    #[error("the bytes are shared, lent or virtual and cannot be written in place")]
    NotWritable,
    /// Fewer bytes than asked for.
    #[error("bytes {offset}..{end} asked of a packet of {len}")]
    OutOfRange {
        /// First byte asked for.
        offset: usize,
        /// End of the range asked for.
        end: usize,
        /// Bytes there are.
        len: usize,
    },
    /// The packet would be longer than [`MAX_PACKET_LEN`].
    #[error("packet of {len} bytes, allowed are {MAX_PACKET_LEN}")]
    TooLong {
        /// The length it would have.
        len: usize,
    },
    /// The pool gave no buffer or window.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// A packet that was not added to another; both are unchanged.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotAppended {
    /// The packet that was to be added.
    pub packet: Packet,
    /// Why it was not.
    #[source]
    pub error: PacketError,
}

impl From<NotAppended> for PacketError {
    fn from(refused: NotAppended) -> Self {
        refused.error
    }
}

/// The length as the descriptor keeps it.
pub(crate) fn checked_len(len: usize) -> Result<u32, PacketError> {
    if len > MAX_PACKET_LEN { Err(PacketError::TooLong { len }) } else { Ok(len as u32) }
}

/// An owned packet. See the [module](self).
#[repr(transparent)]
pub struct Packet(NonNull<Descriptor>);

// SAFETY: a packet owns its descriptors; buffers it shares are only read, and their counts are atomic.
unsafe impl Send for Packet {}
// SAFETY: a shared reference to a packet gives read access only.
unsafe impl Sync for Packet {}

const _: () = assert!(size_of::<Option<Packet>>() == 8, "a packet moves as one word");

impl Packet {
    /// # Safety
    /// The descriptor is the initialised first segment of a packet that nobody else owns.
    #[inline(always)]
    pub(crate) unsafe fn from_descriptor(descriptor: NonNull<Descriptor>) -> Self {
        Self(descriptor)
    }

    /// Gives up the handle without releasing anything.
    #[inline(always)]
    pub(crate) fn into_descriptor(self) -> NonNull<Descriptor> {
        let descriptor = self.0;
        core::mem::forget(self);
        descriptor
    }

    #[inline(always)]
    pub(crate) fn descriptor(&self) -> &Descriptor {
        // SAFETY: the handle owns the descriptor.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn descriptor_mut(&mut self) -> &mut Descriptor {
        // SAFETY: the handle owns the descriptor and is borrowed exclusively.
        unsafe { self.0.as_mut() }
    }

    /// The last segment of the packet; the head itself if there is no other.
    #[inline(always)]
    fn last(&self) -> NonNull<Descriptor> {
        // SAFETY: `last` of a head segment is never null.
        unsafe { NonNull::new_unchecked(self.descriptor().last) }
    }

    /// The pool a descriptor came from.
    #[inline(always)]
    fn pool_of(d: &Descriptor) -> &Shared {
        // SAFETY: a descriptor outside the free lists holds its pool.
        unsafe { &*d.pool }
    }

    /// Bytes in all segments, link header included.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.descriptor().total as usize
    }

    /// True if there are no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.descriptor().total == 0
    }

    /// Bytes of the head segment; empty if the head is virtual.
    #[inline(always)]
    pub fn head(&self) -> &[u8] {
        let d = self.descriptor();
        if d.kind == SegmentKind::Virtual {
            return &[];
        }
        // SAFETY: the window of a descriptor that is not virtual is inside its buffer or the owner's bytes, both
        // initialised, and nobody writes while this packet has a reference to them and is borrowed.
        unsafe { slice::from_raw_parts(d.data, d.len as usize) }
    }

    /// Bytes in the head segment.
    #[inline(always)]
    pub fn head_len(&self) -> usize {
        self.descriptor().len as usize
    }

    /// True if all bytes are in the head segment and real.
    #[inline(always)]
    pub fn is_linear(&self) -> bool {
        let d = self.descriptor();
        d.len == d.total && d.kind != SegmentKind::Virtual
    }

    /// True if the head's buffer belongs to this packet alone, so that headers can be written in place.
    #[inline(always)]
    pub fn is_head_writable(&self) -> bool {
        let d = self.descriptor();
        d.kind == SegmentKind::Pool && Self::pool_of(d).references(d.buffer).is_one()
    }

    /// Bytes of the head segment, writable.
    ///
    /// # Errors
    /// [`PacketError::NotWritable`] if they are shared, lent or virtual; see [`Packet::make_writable`].
    #[inline(always)]
    pub fn head_mut(&mut self) -> Result<&mut [u8], PacketError> {
        if !self.is_head_writable() {
            return Err(PacketError::NotWritable);
        }
        let d = self.descriptor();
        // SAFETY: the buffer has one reference, this packet's, which is borrowed exclusively; the window is inside it.
        Ok(unsafe { slice::from_raw_parts_mut(d.data, d.len as usize) })
    }

    /// Free bytes in front of the head segment; 0 if the head is not writable.
    #[inline(always)]
    pub fn headroom(&self) -> usize {
        if !self.is_head_writable() {
            return 0;
        }
        let d = self.descriptor();
        d.data as usize - Self::pool_of(d).buffer_start(d.buffer) as usize
    }

    /// Free bytes behind the last segment; 0 if that segment is not writable.
    #[inline(always)]
    pub fn tailroom(&self) -> usize {
        // SAFETY: the packet owns its last segment.
        let d = unsafe { self.last().as_ref() };
        if d.kind != SegmentKind::Pool {
            return 0;
        }
        let pool = Self::pool_of(d);
        if !pool.references(d.buffer).is_one() {
            return 0;
        }
        let end = pool.buffer_start(d.buffer) as usize + pool.buffer_size as usize;
        end - (d.data as usize + d.len as usize)
    }

    /// Adds `n` bytes in front (Linux: `skb_push`) and returns them; they hold whatever was there before.
    ///
    /// # Errors
    /// [`PacketError::NoHeadroom`]; then [`Packet::prepend`] puts another buffer in front.
    #[inline(always)]
    pub fn push(&mut self, n: usize) -> Result<&mut [u8], PacketError> {
        let available = self.headroom();
        if n > available {
            return Err(PacketError::NoHeadroom { wanted: n, available });
        }
        let d = self.descriptor_mut();
        // SAFETY: the headroom was checked, so the new start is inside the same buffer.
        d.data = unsafe { d.data.sub(n) };
        d.len += n as u32;
        d.total += n as u32;
        self.shift_offsets(n);
        let d = self.descriptor();
        // SAFETY: the head is writable (headroom is 0 otherwise, and an empty slice is fine), and `n` bytes from
        // `data` are inside the buffer.
        Ok(unsafe { slice::from_raw_parts_mut(d.data, n) })
    }

    /// Keeps recorded header offsets and the checksum request true after `n` bytes were added in front.
    #[inline(always)]
    fn shift_offsets(&mut self, n: usize) {
        if let Some(PartialChecksum { start, offset }) = self.transmit_checksum() {
            // A transport header beyond 64 KiB is one that no device reaches either.
            let start = u16::try_from(n).ok().and_then(|n| start.checked_add(n)).unwrap_or(u16::MAX);
            self.set_transmit_checksum(Some(PartialChecksum { start, offset }));
        }
        if !self.descriptor().has(metadata::flags::OFFSETS) {
            return;
        }
        let moved = self.offsets().and_then(|o| {
            let n = u16::try_from(n).ok()?;
            let move_set = |v: u16| if v == 0 { Some(0) } else { v.checked_add(n) };
            Some(HeaderOffsets {
                network: o.network.checked_add(n)?,
                transport: move_set(o.transport)?,
                inner_mac: move_set(o.inner_mac)?,
                inner_network: move_set(o.inner_network)?,
                inner_transport: move_set(o.inner_transport)?,
            })
        });
        self.set_offsets(moved);
    }

    /// Removes `n` bytes from the front of the head segment (Linux: `skb_pull`). Recorded header offsets move along, or
    /// are forgotten if one of the headers goes.
    ///
    /// # Errors
    /// [`PacketError::OutOfRange`] if the head has fewer bytes; see [`Packet::linearize`].
    #[inline(always)]
    pub fn pull(&mut self, n: usize) -> Result<(), PacketError> {
        let d = self.descriptor_mut();
        if n > d.len as usize {
            return Err(PacketError::OutOfRange { offset: 0, end: n, len: d.len as usize });
        }
        if d.kind != SegmentKind::Virtual {
            // SAFETY: `n` is at most the length of the window.
            d.data = unsafe { d.data.add(n) };
        }
        d.len -= n as u32;
        d.total -= n as u32;
        if d.has(metadata::flags::TX_CHECKSUM) {
            // A request whose header goes, goes with it.
            match usize::from(d.checksum_start).checked_sub(n) {
                Some(start) => d.checksum_start = start as u16,
                None => d.flags &= !metadata::flags::TX_CHECKSUM,
            }
        }
        if d.has(metadata::flags::OFFSETS) {
            let moved = self.offsets().and_then(|o| {
                let n = u16::try_from(n).ok()?;
                let move_set = |v: u16| if v == 0 { Some(0) } else { v.checked_sub(n).filter(|v| *v > 0) };
                Some(HeaderOffsets {
                    network: o.network.checked_sub(n)?,
                    transport: move_set(o.transport)?,
                    inner_mac: move_set(o.inner_mac)?,
                    inner_network: move_set(o.inner_network)?,
                    inner_transport: move_set(o.inner_transport)?,
                })
            });
            self.set_offsets(moved);
        }
        Ok(())
    }

    /// Adds `n` bytes behind the last segment (Linux: `skb_put`) and returns them; they hold whatever was there before.
    ///
    /// # Errors
    /// [`PacketError::NoTailroom`]; then [`Packet::append`] adds another segment.
    #[inline(always)]
    pub fn put(&mut self, n: usize) -> Result<&mut [u8], PacketError> {
        if n == 0 {
            return Ok(&mut []);
        }
        let available = self.tailroom();
        if n > available {
            return Err(PacketError::NoTailroom { wanted: n, available });
        }
        checked_len(self.len() + n)?;
        self.descriptor_mut().total += n as u32;
        // SAFETY: the packet owns its last segment and is borrowed exclusively.
        let d = unsafe { self.last().as_mut() };
        // SAFETY: the tailroom was checked, so the end of the window and `n` more bytes are inside the buffer.
        let start = unsafe { d.data.add(d.len as usize) };
        d.len += n as u32;
        // SAFETY: as above; the buffer is exclusive, else its tailroom is 0 and the slice is empty.
        Ok(unsafe { slice::from_raw_parts_mut(start, n) })
    }

    /// Cuts the packet to `len` bytes (Linux: `pskb_trim`); segments that end up empty are released. Does nothing if the
    /// packet is not longer.
    pub fn trim(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        let head = self.0;
        let mut left = len;
        let mut current = head;
        // Find the segment that keeps the last byte; the head stays even when empty.
        loop {
            // SAFETY: `current` walks segments that this packet owns.
            let d = unsafe { current.as_mut() };
            if left <= d.len as usize {
                d.len = left as u32;
                let mut rest = d.next;
                d.next = ptr::null_mut();
                while let Some(segment) = NonNull::new(rest) {
                    // SAFETY: the segment was cut off the packet, which owned it.
                    unsafe {
                        let size = Self::segment_truesize(segment.as_ref());
                        (*head.as_ptr()).truesize = (*head.as_ptr()).truesize.saturating_sub(size);
                        rest = (*segment.as_ptr()).next;
                        Self::release_to_pool(segment);
                    }
                }
                break;
            }
            left -= d.len as usize;
            let Some(next) = NonNull::new(d.next) else { break };
            current = next;
        }
        let d = self.descriptor_mut();
        d.total = len as u32;
        d.last = current.as_ptr();
    }

    /// Memory one segment is accounted for.
    fn segment_truesize(d: &Descriptor) -> u32 {
        match d.kind {
            SegmentKind::Pool => Self::pool_of(d).truesize(),
            _ => d.len.saturating_add(size_of::<Descriptor>() as u32),
        }
    }

    /// Adds all segments of `tail` behind this packet's, without copying; `tail`'s metadata is forgotten.
    ///
    /// # Errors
    /// [`PacketError::TooLong`], with `tail`.
    #[inline(always)]
    pub fn append(&mut self, tail: Self) -> Result<(), NotAppended> {
        match checked_len(self.len() + tail.len()) {
            Ok(_) => {
                self.append_within_limits(tail);
                Ok(())
            }
            Err(error) => Err(NotAppended { packet: tail, error }),
        }
    }

    /// [`Packet::append`] for lengths that are known to be small.
    #[inline(always)]
    fn append_within_limits(&mut self, tail: Self) {
        let (total, truesize, last) = {
            let t = tail.descriptor();
            (t.total, t.truesize, t.last)
        };
        let first = tail.into_descriptor();
        // SAFETY: the packet owns its last segment.
        unsafe { self.last().as_mut() }.next = first.as_ptr();
        let d = self.descriptor_mut();
        d.last = last;
        d.total += total;
        d.truesize = d.truesize.saturating_add(truesize);
    }

    /// Adds the bytes of `tail` from `skip` on behind this packet's, without copying: how receive offload merges a payload.
    /// `tail`'s metadata is forgotten; segments that end up empty go into `cache`.
    ///
    /// # Errors
    /// [`PacketError::OutOfRange`] if nothing is left behind `skip`, [`PacketError::TooLong`]; both with `tail`.
    #[inline(always)]
    pub fn append_from(&mut self, mut tail: Self, skip: usize, cache: &mut PoolCache) -> Result<(), NotAppended> {
        let (own, more) = (self.len(), tail.len());
        let d = tail.descriptor_mut();
        // A segment has no more bytes than its packet, so something is left behind `skip`.
        if (skip as u32) < d.len && d.kind != SegmentKind::Virtual && own + more <= MAX_PACKET_LEN {
            // SAFETY: `skip` is less than the length of the window.
            d.data = unsafe { d.data.add(skip) };
            d.len -= skip as u32;
            d.total -= skip as u32;
            self.append_within_limits(tail);
            return Ok(());
        }
        self.append_far_from(tail, skip, cache)
    }

    /// [`Packet::append_from`] where the first segments go, or nothing can be done.
    #[cold]
    fn append_far_from(&mut self, tail: Self, skip: usize, cache: &mut PoolCache) -> Result<(), NotAppended> {
        let (own, more) = (self.len(), tail.len());
        if skip >= more || own + more > MAX_PACKET_LEN {
            let error = if skip >= more {
                PacketError::OutOfRange { offset: skip, end: skip.saturating_add(1), len: more }
            } else {
                PacketError::TooLong { len: own + more }
            };
            return Err(NotAppended { packet: tail, error });
        }
        if let Some(rest) = tail.without_front(skip, cache) {
            self.append_within_limits(rest);
        }
        Ok(())
    }

    /// Puts `head` in front of this packet: the result has `head`'s bytes, then this packet's, and this packet's
    /// metadata with the header offsets moved. For headers in front of shared or lent bytes.
    ///
    /// # Errors
    /// [`PacketError::TooLong`], with `head`.
    pub fn prepend(&mut self, head: Self) -> Result<(), NotAppended> {
        if let Err(error) = checked_len(self.len() + head.len()) {
            return Err(NotAppended { packet: head, error });
        }
        let n = head.len();
        let mut whole = head;
        whole.copy_metadata(self);
        let rest = core::mem::replace(self, whole);
        self.append_within_limits(rest);
        self.shift_offsets(n);
        Ok(())
    }

    /// The segments in order.
    #[inline]
    pub fn segments(&self) -> Segments<'_> {
        Segments::new(self.descriptor())
    }

    /// Number of segments, 1 or more.
    pub fn segment_count(&self) -> usize {
        self.segments().count()
    }

    /// Copies bytes from `offset` on into `out`; virtual bytes are zeros.
    ///
    /// # Errors
    /// [`PacketError::OutOfRange`] if the packet ends before `out` is full.
    pub fn copy_to(&self, offset: usize, out: &mut [u8]) -> Result<(), PacketError> {
        let end = offset.checked_add(out.len()).filter(|end| *end <= self.len());
        let Some(_) = end else {
            return Err(PacketError::OutOfRange { offset, end: offset.saturating_add(out.len()), len: self.len() });
        };
        let mut skip = offset;
        let mut filled = 0;
        for segment in self.segments() {
            if filled == out.len() {
                break;
            }
            let len = segment.len();
            if skip >= len {
                skip -= len;
                continue;
            }
            let n = (len - skip).min(out.len() - filled);
            match segment.bytes() {
                Some(bytes) => out[filled..filled + n].copy_from_slice(&bytes[skip..skip + n]),
                None => out[filled..filled + n].fill(0),
            }
            filled += n;
            skip = 0;
        }
        Ok(())
    }

    /// The one's complement sum of the bytes from `offset` to the end; virtual bytes are zeros and cost nothing.
    ///
    /// An offset behind the end gives the sum of nothing.
    #[inline]
    pub fn sum_from(&self, offset: usize) -> crate::checksum::Sum {
        if self.is_linear() {
            return crate::checksum::sum(self.head().get(offset..).unwrap_or(&[]));
        }
        let mut skip = offset;
        let mut summed = 0;
        let mut sum = crate::checksum::Sum::ZERO;
        for segment in self.segments() {
            let len = segment.len();
            if skip >= len {
                skip -= len;
                continue;
            }
            if let Some(bytes) = segment.bytes() {
                sum = sum.plus_at(crate::checksum::sum(&bytes[skip..]), summed);
            }
            summed += len - skip;
            skip = 0;
        }
        sum
    }

    /// All bytes in one vector; virtual bytes are zeros.
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec![0; self.len()];
        self.copy_to(0, &mut bytes).expect("the range is the whole packet");
        bytes
    }

    /// Makes sure that the first `n` bytes are in the head segment and real (Linux: `pskb_may_pull`).
    ///
    /// # Errors
    /// [`PacketError::OutOfRange`] if the packet is shorter; [`PacketError::NoTailroom`] if a buffer of the cache's pool
    /// is smaller than `n`; [`PacketError::Pool`]. The packet is then unchanged.
    #[inline(always)]
    pub fn linearize(&mut self, n: usize, cache: &mut PoolCache) -> Result<(), PacketError> {
        let d = self.descriptor();
        if n <= d.len as usize && d.kind != SegmentKind::Virtual {
            return Ok(());
        }
        self.rebuild_head(n, cache)
    }

    /// Makes the first `n` bytes writable in place, copying them into a fresh buffer if they are shared, lent, virtual or
    /// spread over segments (Linux: `skb_ensure_writable`).
    ///
    /// # Errors
    /// As [`Packet::linearize`].
    #[inline(always)]
    pub fn make_writable(&mut self, n: usize, cache: &mut PoolCache) -> Result<(), PacketError> {
        if n <= self.head_len() && self.is_head_writable() {
            return Ok(());
        }
        self.rebuild_head(n, cache)
    }

    /// Copies the first `n` bytes into a new head segment in front of what remains.
    #[cold]
    fn rebuild_head(&mut self, n: usize, cache: &mut PoolCache) -> Result<(), PacketError> {
        if n > self.len() {
            return Err(PacketError::OutOfRange { offset: 0, end: n, len: self.len() });
        }
        let mut head = cache.get()?;
        match head.put(n) {
            Ok(room) => self.copy_to(0, room).expect("n is within the packet"),
            Err(error) => {
                cache.put(head);
                return Err(error);
            }
        }
        let offsets = self.offsets();
        head.copy_metadata(self);
        let mut rest = core::mem::replace(self, head);
        rest.set_offsets(None);
        if let Some(rest) = rest.without_front(n, cache) {
            self.append_within_limits(rest);
        }
        self.set_offsets(offsets);
        Ok(())
    }

    /// The packet less its first `n` bytes and without empty segments in front; `None` if nothing is left.
    pub(crate) fn without_front(self, n: usize, cache: &mut PoolCache) -> Option<Self> {
        let mut packet = self;
        let mut left = n as u32;
        loop {
            let d = packet.descriptor();
            if left < d.len {
                packet.pull(left as usize).expect("shorter than the head");
                return Some(packet);
            }
            left -= d.len;
            match packet.split_head() {
                (head, Some(rest)) => {
                    cache.put(head);
                    packet = rest;
                }
                (head, None) => {
                    cache.put(head);
                    return None;
                }
            }
        }
    }

    /// Takes the packet apart into its head segment, which keeps the metadata, and the rest.
    #[inline(always)]
    pub(crate) fn split_head(self) -> (Self, Option<Self>) {
        let mut head = self;
        let this: *mut Descriptor = head.0.as_ptr();
        let d = head.descriptor_mut();
        let Some(mut next) = NonNull::new(d.next) else { return (head, None) };
        let rest_total = d.total - d.len;
        let whole = d.truesize;
        let last = d.last;
        d.next = ptr::null_mut();
        d.last = this;
        d.total = d.len;
        d.truesize = Self::segment_truesize(d);
        let rest_size = whole.saturating_sub(d.truesize);
        // SAFETY: the packet owned this segment, which is cut off now.
        let n = unsafe { next.as_mut() };
        n.last = last;
        n.total = rest_total;
        n.truesize = rest_size;
        n.flags = 0;
        n.checksum_state = 0;
        // SAFETY: `next` heads a chain that nobody else owns, with its head fields set just now.
        (head, Some(unsafe { Self::from_descriptor(next) }))
    }

    /// A second packet with the same bytes and metadata; all segments are shared, none copied (Linux: `skb_clone`).
    ///
    /// # Errors
    /// [`PacketError::Pool`] if windows run out.
    pub fn share(&self, cache: &mut PoolCache) -> Result<Self, PacketError> {
        let mut copy = self.window(0, self.len(), cache)?;
        copy.copy_metadata(self);
        copy.set_truesize(self.truesize());
        Ok(copy)
    }

    /// A packet that shares `len` bytes from `offset` on, without metadata.
    ///
    /// # Errors
    /// [`PacketError::OutOfRange`], or [`PacketError::Pool`] if windows run out.
    pub fn window(&self, offset: usize, len: usize, cache: &mut PoolCache) -> Result<Self, PacketError> {
        cut::window(self, offset, len, cache)
    }

    /// Bytes that a device may fill: buffer size less headroom, from the first byte of the packet's data on. For drivers
    /// that hand an empty packet's buffer to hardware and then [`Packet::put`] what it wrote.
    #[inline]
    pub fn receive_area(&self) -> Option<(NonNull<u8>, usize, Option<u64>)> {
        if !self.is_head_writable() {
            return None;
        }
        let d = self.descriptor();
        let pool = Self::pool_of(d);
        let offset = d.data as usize - pool.region.start().as_ptr() as usize;
        let len = d.len as usize + if d.last == self.0.as_ptr() { self.tailroom() } else { 0 };
        Some((NonNull::new(d.data)?, len, pool.region.iova_of(offset, len)))
    }

    /// Releases one segment to the shared list of its pool.
    ///
    /// # Safety
    /// The caller owns the descriptor and uses it no more.
    pub(crate) unsafe fn release_to_pool(descriptor: NonNull<Descriptor>) {
        // SAFETY: a descriptor outside the lists holds its pool, and the caller owns it.
        unsafe {
            let pool = NonNull::from(Self::pool_of(descriptor.as_ref()));
            let list: Free = pool.as_ref().release(descriptor);
            let index = pool.as_ref().index(descriptor);
            Shared::give(pool, list, &[index]);
        }
    }
}

impl Drop for Packet {
    /// Returns the segments to the shared lists of their pools; a poller that has a [`PoolCache`] uses
    /// [`PoolCache::put`] instead.
    fn drop(&mut self) {
        let mut next = Some(self.0);
        while let Some(descriptor) = next {
            // SAFETY: the packet owns the segment and is going away.
            unsafe {
                next = NonNull::new((*descriptor.as_ptr()).next);
                Self::release_to_pool(descriptor);
            }
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("len", &self.len())
            .field("segments", &self.segment_count())
            .field("checksum", &self.receive_checksum())
            .field("gso", &self.gso())
            .finish_non_exhaustive()
    }
}
