//! Windows into packets, and cutting a packet into pieces of equal size.

use super::descriptor::{Descriptor, SegmentKind};
use super::{Packet, PacketError};
use crate::pool::{Free, PoolCache, PoolError};
use crate::sync::atomic::Ordering;
use alloc::sync::Arc;
use core::ptr::NonNull;

/// A fresh descriptor for a window that looks into what `source` looks into.
///
/// The buffer and the descriptor must be of one pool, so a window into a foreign pool's buffer takes its descriptor
/// from there.
#[inline(always)]
fn take_descriptor(source: &Descriptor, cache: &mut PoolCache) -> Result<NonNull<Descriptor>, PoolError> {
    if source.kind != SegmentKind::Pool || core::ptr::eq(source.pool, cache.shared()) {
        return cache.take_bare();
    }
    let pool = Packet::pool_of(source);
    let mut index = [0];
    if pool.take(Free::Bare, &mut index) == 0 {
        pool.exhausted.fetch_add(1, Ordering::Relaxed);
        return Err(PoolError::NoWindow { windows: pool.windows() });
    }
    Ok(pool.descriptor(index[0]))
}

/// Makes `descriptor` a packet of the `len` bytes at `skip` in `source`'s window. The caller accounts for the reference
/// to a pool buffer.
#[inline(always)]
fn look_into(descriptor: NonNull<Descriptor>, source: &Descriptor, skip: u32, len: u32) -> Packet {
    // SAFETY: the descriptor was taken off a free list, so the caller owns it.
    let d = unsafe { &mut *descriptor.as_ptr() };
    d.kind = source.kind;
    let data = match source.kind {
        SegmentKind::Virtual | SegmentKind::Bare => source.data,
        SegmentKind::Pool => {
            d.buffer = source.buffer;
            // SAFETY: `skip` is at most the length of the window.
            unsafe { source.data.add(skip as usize) }
        }
        SegmentKind::External => {
            // SAFETY: `source` holds one count of this `Arc`, which was made raw.
            unsafe { Arc::increment_strong_count(source.external) };
            d.external = source.external;
            // SAFETY: `skip` is at most the length of the window.
            unsafe { source.data.add(skip as usize) }
        }
    };
    // A window accounts for its bytes; the buffer is accounted for by the packet it was taken from.
    // SAFETY: owned as above, and then a packet of one segment that belongs to nobody else.
    unsafe {
        Descriptor::start_packet(descriptor, data, len, len.saturating_add(size_of::<Descriptor>() as u32));
        Packet::from_descriptor(descriptor)
    }
}

/// References to a buffer that a [`Cutter`] takes at once, at most.
const RESERVE: u32 = 64;

/// See [`Packet::window`].
pub(super) fn window(packet: &Packet, offset: usize, len: usize, cache: &mut PoolCache) -> Result<Packet, PacketError> {
    let Some(_) = offset.checked_add(len).filter(|end| *end <= packet.len()) else {
        return Err(PacketError::OutOfRange { offset, end: offset.saturating_add(len), len: packet.len() });
    };
    let mut skip = offset as u32;
    let mut left = len as u32;
    let mut result: Option<Packet> = None;
    let mut current = Some(packet.descriptor());
    while let Some(d) = current {
        // SAFETY: `next` is null or a segment of the borrowed packet.
        current = unsafe { d.next.as_ref() };
        if skip >= d.len && !(left == 0 && skip == d.len) {
            skip -= d.len;
            continue;
        }
        let n = (d.len - skip).min(left);
        let descriptor = match take_descriptor(d, cache) {
            Ok(descriptor) => descriptor,
            Err(error) => {
                if let Some(partial) = result {
                    cache.put(partial);
                }
                return Err(error.into());
            }
        };
        if d.kind == SegmentKind::Pool {
            Packet::pool_of(d).references(d.buffer).add(1);
        }
        let piece = look_into(descriptor, d, skip, n);
        match &mut result {
            None => result = Some(piece),
            Some(result) => result.append_within_limits(piece),
        }
        skip = 0;
        left -= n;
        if left == 0 {
            break;
        }
    }
    // The range is inside the packet, so at least one segment held its start.
    Ok(result.expect("the range was checked against the packet's length"))
}

/// Cuts a packet into pieces from the front without copying.
///
/// Whole segments move into the pieces; a segment that a cut goes through is shared, and the references that its pieces
/// need are taken all at once. The pieces carry no metadata.
#[derive(Debug)]
pub struct Cutter {
    rest: Option<Packet>,
    /// References to the buffer of `rest`'s head that are taken but not yet given to a piece.
    reserved: u32,
}

impl Cutter {
    /// Starts cutting `packet`.
    pub fn new(mut packet: Packet) -> Self {
        packet.descriptor_mut().clear_metadata();
        Self { rest: Some(packet), reserved: 0 }
    }

    /// Bytes not yet cut off.
    #[inline]
    pub fn len(&self) -> usize {
        self.rest.as_ref().map_or(0, Packet::len)
    }

    /// True if everything was cut off.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next `n` bytes, or as many as are left; `None` if none are, or if `n` is 0.
    ///
    /// # Errors
    /// [`PacketError::Pool`] if windows run out. Nothing is lost: what was not cut off stays, and the segments that were
    /// gathered for this piece go back in front of it.
    #[inline(always)]
    pub fn take(&mut self, n: usize, cache: &mut PoolCache) -> Result<Option<Packet>, PacketError> {
        if self.reserved == 0
            && n > 0
            && let Some(rest) = self.rest.take_if(|rest| rest.head_len() == n)
        {
            // What receive offload merged is cut into what it was.
            let (segment, tail) = rest.split_head();
            self.rest = tail;
            return Ok(Some(segment));
        }
        self.take_any(n, cache)
    }

    /// [`Cutter::take`] where the first segment is not the piece.
    fn take_any(&mut self, n: usize, cache: &mut PoolCache) -> Result<Option<Packet>, PacketError> {
        let mut piece: Option<Packet> = None;
        let wanted = n.min(super::MAX_PACKET_LEN) as u32;
        let mut left = wanted;
        while left > 0 {
            let Some(rest) = self.rest.take() else { break };
            let head = rest.descriptor();
            let part = if head.len <= left {
                // The whole segment moves, and with it a reference of its own.
                self.release_reserved(&rest);
                let (segment, tail) = rest.split_head();
                self.rest = tail;
                if segment.is_empty() {
                    cache.put(segment);
                    continue;
                }
                segment
            } else {
                let descriptor = match take_descriptor(head, cache) {
                    Ok(descriptor) => descriptor,
                    Err(error) => {
                        let whole = match piece {
                            Some(mut gathered) => {
                                self.release_reserved(&rest);
                                gathered.append_within_limits(rest);
                                gathered
                            }
                            None => rest,
                        };
                        self.rest = Some(whole);
                        return Err(error.into());
                    }
                };
                if head.kind == SegmentKind::Pool {
                    if self.reserved == 0 {
                        // One for each piece that this segment will be cut into, less the one it already has.
                        self.reserved = ((head.len - 1) / wanted.max(1) + 1).min(RESERVE);
                        Packet::pool_of(head).references(head.buffer).add(self.reserved);
                    }
                    self.reserved -= 1;
                }
                let part = look_into(descriptor, head, 0, left);
                let mut rest = rest;
                rest.pull(left as usize).expect("the head is longer than the cut");
                self.rest = Some(rest);
                part
            };
            left -= part.len() as u32;
            match &mut piece {
                None => piece = Some(part),
                Some(piece) => piece.append_within_limits(part),
            }
        }
        Ok(piece)
    }

    /// Gives back the references that were taken for pieces that are not needed.
    #[inline]
    fn release_reserved(&mut self, rest: &Packet) {
        if self.reserved > 0 {
            let d = rest.descriptor();
            let last = Packet::pool_of(d).references(d.buffer).give_back(self.reserved);
            debug_assert!(!last, "the segment has a reference of its own");
            self.reserved = 0;
        }
    }

    /// What was not cut off.
    pub fn into_rest(mut self) -> Option<Packet> {
        let rest = self.rest.take();
        if let Some(rest) = &rest {
            self.release_reserved(rest);
        }
        rest
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.release_reserved(&rest);
        }
    }
}
