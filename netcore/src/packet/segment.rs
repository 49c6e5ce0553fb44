//! Walking the segments of a packet.

use super::descriptor::{Descriptor, SegmentKind};
use core::marker::PhantomData;
use core::slice;

/// One segment of a packet: bytes, or a length without bytes.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    descriptor: &'a Descriptor,
}

impl<'a> Segment<'a> {
    /// Bytes in the segment.
    #[allow(clippy::len_without_is_empty)]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.descriptor.len as usize
    }

    /// The bytes; `None` if the segment is virtual, that is `len` zeros.
    #[inline(always)]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        let d = self.descriptor;
        if d.kind == SegmentKind::Virtual {
            return None;
        }
        // SAFETY: the window is inside initialised memory that the packet keeps alive and that nobody writes while the
        // packet is borrowed.
        Some(unsafe { slice::from_raw_parts(d.data, d.len as usize) })
    }

    /// True if the segment is a length without bytes.
    #[inline(always)]
    pub fn is_virtual(&self) -> bool {
        self.descriptor.kind == SegmentKind::Virtual
    }

    /// True if a window into the segment takes its descriptor from `pool`.
    pub(crate) fn is_served_by(&self, pool: *const crate::pool::Shared) -> bool {
        self.descriptor.kind != SegmentKind::Pool || core::ptr::eq(self.descriptor.pool, pool)
    }

    /// Where a device finds the bytes; `None` if they are not in memory mapped for one (then the driver copies).
    pub fn iova(&self) -> Option<u64> {
        let d = self.descriptor;
        if d.kind != SegmentKind::Pool {
            return None;
        }
        // SAFETY: a descriptor outside the free lists holds its pool.
        let pool = unsafe { &*d.pool };
        pool.region.iova_of(d.data as usize - pool.region.start().as_ptr() as usize, d.len as usize)
    }
}

/// The segments of a packet in order. See [`Packet::segments`](super::Packet::segments).
#[derive(Clone)]
pub struct Segments<'a> {
    next: *const Descriptor,
    packet: PhantomData<&'a Descriptor>,
}

impl<'a> Segments<'a> {
    pub(super) fn new(first: &'a Descriptor) -> Self {
        Self { next: first, packet: PhantomData }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment<'a>> {
        // SAFETY: the packet is borrowed for `'a` and owns all its segments.
        let descriptor = unsafe { self.next.as_ref() }?;
        self.next = descriptor.next;
        Some(Segment { descriptor })
    }
}
