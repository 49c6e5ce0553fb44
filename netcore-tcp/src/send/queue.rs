//! The retransmit queue: one entry for each segment sent and not acknowledged.
//!
//! Linux keeps one buffer for a whole super-packet and splits it when SACK covers a part. An entry for each segment
//! needs no splitting: positions are indices, and counting packets below a SACK is a subtraction.

use alloc::collections::VecDeque;
use netcore::Instant;

bitflags::bitflags! {
    /// What is known of a segment (`TCPCB_*`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct SegFlags: u8 {
        /// Selectively acknowledged.
        const SACKED = 1;
        /// Taken for lost.
        const LOST = 2;
        /// A retransmission of it is out.
        const RETRANS = 4;
        /// It was retransmitted at some time.
        const EVER_RETRANS = 8;
        /// It is a SYN.
        const SYN = 16;
        /// A FIN follows its data.
        const FIN = 32;
        /// The application was limiting when it was sent.
        const APP_LIMITED = 64;
    }
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seg {
    /// Position of its first byte.
    pub(crate) start: u64,
    /// When it was last sent.
    pub(crate) sent: Instant,
    /// Packets delivered when it was last sent.
    pub(crate) delivered: u64,
    /// When those were delivered.
    pub(crate) delivered_at: Instant,
    /// When the flight it belongs to began.
    pub(crate) first_sent: Instant,
    /// Sequence space it takes: payload, SYN, FIN.
    pub(crate) len: u32,
    pub(crate) flags: SegFlags,
}

impl Seg {
    #[inline]
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    #[inline]
    pub(crate) const fn has(&self, flags: SegFlags) -> bool {
        self.flags.intersects(flags)
    }

    /// Payload bytes.
    pub(crate) const fn payload(&self) -> u32 {
        self.len - self.flags.contains(SegFlags::SYN) as u32 - self.flags.contains(SegFlags::FIN) as u32
    }
}

/// Segments in order. An index counts from the first segment ever sent, so it stays valid while the queue moves on.
#[derive(Debug, Default)]
pub(crate) struct RetransmitQueue {
    segs: VecDeque<Seg>,
    base: u64,
}

impl RetransmitQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segs.is_empty()
    }

    /// Index of the first segment.
    #[inline]
    pub(crate) const fn head_index(&self) -> u64 {
        self.base
    }

    /// Index behind the last segment.
    #[inline]
    pub(crate) fn end_index(&self) -> u64 {
        self.base + self.segs.len() as u64
    }

    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&Seg> {
        self.segs.get(index.checked_sub(self.base)? as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut Seg> {
        self.segs.get_mut(index.checked_sub(self.base)? as usize)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Seg> {
        self.segs.front()
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&Seg> {
        self.segs.back()
    }

    #[inline]
    pub(crate) fn push(&mut self, seg: Seg) {
        self.segs.push_back(seg);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Seg> {
        let seg = self.segs.pop_front()?;
        self.base += 1;
        Some(seg)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Seg> {
        self.segs.iter_mut()
    }

    /// Index of the first segment that ends behind `position`.
    pub(crate) fn index_of(&self, position: u64) -> u64 {
        self.base + self.segs.partition_point(|seg| seg.end() <= position) as u64
    }

    /// Divides the segment at `index` so that its first part has `len` bytes (`tcp_fragment`). Both parts keep what is
    /// known of the whole. The number of segments grows by one.
    pub(crate) fn split(&mut self, index: u64, len: u32) {
        let Some(at) = index.checked_sub(self.base).map(|at| at as usize) else { return };
        let Some(seg) = self.segs.get_mut(at) else { return };
        if len == 0 || len >= seg.len {
            return;
        }
        let mut tail = *seg;
        tail.start += u64::from(len);
        tail.len -= len;
        tail.flags.remove(SegFlags::SYN);
        seg.len = len;
        seg.flags.remove(SegFlags::FIN);
        self.segs.insert(at + 1, tail);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.base += self.segs.len() as u64;
        self.segs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seg(start: u64, len: u32) -> Seg {
        Seg {
            start,
            sent: Instant::ZERO,
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            len,
            flags: SegFlags::empty(),
        }
    }

    #[test]
    fn indices_stay_valid_while_the_queue_moves() {
        let mut q = RetransmitQueue::default();
        for i in 0..5 {
            q.push(seg(i * 10, 10));
        }
        assert_eq!(q.index_of(25), 2);
        q.pop_front();
        q.pop_front();
        assert_eq!((q.head_index(), q.index_of(25), q.index_of(1000)), (2, 2, 5));
        assert_eq!(q.get(2).map(|s| s.start), Some(20));
        assert!(q.get(1).is_none());
    }

    #[test]
    fn splitting_keeps_the_order_and_the_fin_at_the_end() {
        let mut q = RetransmitQueue::default();
        q.push(Seg { flags: SegFlags::FIN, ..seg(0, 11) });
        q.split(0, 4);
        let parts: alloc::vec::Vec<_> =
            (0..2).filter_map(|i| q.get(i)).map(|s| (s.start, s.len, s.payload())).collect();
        assert_eq!(parts, [(0, 4, 4), (4, 7, 6)]);
    }
}
