//! Data received: in order and waiting for the user, or out of order and waiting for a hole to be filled.

use alloc::collections::VecDeque;
use netcore::wire::SackBlock;
use netcore::{Packet, PoolCache};

/// The payload of one arrival.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Bytes that exist only as a length.
    Virtual(u64),
    /// A packet and where its payload begins and ends in it.
    Bytes { packet: Packet, from: usize, to: usize },
}

impl Payload {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Virtual(len) => *len,
            Self::Bytes { from, to, .. } => (to - from) as u64,
        }
    }

    /// Drops `n` bytes at the front.
    pub(crate) fn trim_front(&mut self, n: u64) {
        match self {
            Self::Virtual(len) => *len = len.saturating_sub(n),
            Self::Bytes { from, to, .. } => *from = (*from + n as usize).min(*to),
        }
    }

    /// Keeps only the first `len` bytes.
    pub(crate) fn keep_front(&mut self, keep: u64) {
        match self {
            Self::Virtual(len) => *len = (*len).min(keep),
            Self::Bytes { from, to, .. } => *to = (*to).min(from.saturating_add(keep as usize)),
        }
    }

    pub(crate) fn free(self, cache: &mut PoolCache) {
        if let Self::Bytes { packet, .. } = self {
            cache.put(packet);
        }
    }
}

/// In-order data that the user has not read.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    list: VecDeque<(Payload, u64)>,
    len: u64,
}

impl ReadyQueue {
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Adds a payload that keeps `truesize` bytes of memory busy.
    pub(crate) fn push(&mut self, payload: Payload, truesize: u64) {
        let n = payload.len();
        self.len += n;
        if let (Payload::Virtual(more), Some((Payload::Virtual(last), size))) = (&payload, self.list.back_mut()) {
            *last += more;
            *size += truesize;
            return;
        }
        self.list.push_back((payload, truesize));
    }

    /// Takes up to `n` bytes, into `out` if given (virtual bytes are zeros). Returns bytes taken and memory set free.
    pub(crate) fn take(&mut self, n: u64, mut out: Option<&mut [u8]>, cache: &mut PoolCache) -> (u64, u64) {
        let (mut taken, mut freed) = (0, 0);
        while taken < n {
            let Some((payload, truesize)) = self.list.front_mut() else { break };
            let whole = payload.len();
            let step = whole.min(n - taken);
            if let Some(out) = out.as_deref_mut() {
                let area = &mut out[taken as usize..(taken + step) as usize];
                match payload {
                    Payload::Virtual(_) => area.fill(0),
                    // In range: the window lies within the packet.
                    Payload::Bytes { packet, from, .. } => drop(packet.copy_to(*from, area)),
                }
            }
            taken += step;
            if step == whole {
                freed += *truesize;
                if let Some((payload, _)) = self.list.pop_front() {
                    payload.free(cache);
                }
            } else {
                if matches!(payload, Payload::Virtual(_)) {
                    let part = (u128::from(*truesize) * u128::from(step) / u128::from(whole)) as u64;
                    *truesize -= part;
                    freed += part;
                }
                payload.trim_front(step);
            }
        }
        self.len -= taken;
        (taken, freed)
    }
}

struct Held {
    start: u64,
    end: u64,
    payload: Payload,
    truesize: u64,
}

/// Out-of-order data, sorted and without overlap, and the ranges to report in SACK options, latest first.
#[derive(Default)]
pub(crate) struct Reassembly {
    held: VecDeque<Held>,
    /// Maximal contiguous ranges, latest touched first; the first four are reported.
    recent: VecDeque<(u64, u64)>,
    bytes: u64,
    memory: u64,
}

/// What became of data put into the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inserted {
    /// All or part of it is new.
    New {
        /// The part that was there already, if any.
        overlap: Option<(u64, u64)>,
    },
    /// All of it was there already.
    Duplicate,
}

impl core::fmt::Debug for Reassembly {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.held.iter().map(|h| (h.start, h.end))).finish()
    }
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Bytes held.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory that is kept busy.
    pub(crate) const fn memory(&self) -> u64 {
        self.memory
    }

    /// Adds `payload` at `start`; parts that are there already are left out, so that memory of what is held never grows
    /// by duplicates.
    pub(crate) fn insert(
        &mut self,
        start: u64,
        mut payload: Payload,
        truesize: u64,
        cache: &mut PoolCache,
    ) -> Inserted {
        let end = start + payload.len();
        // The usual case: behind everything.
        let at = match self.held.back() {
            Some(last) if last.end > start => self.held.partition_point(|h| h.end <= start),
            _ => self.held.len(),
        };
        let mut overlap: Option<(u64, u64)> = None;
        let mut note = |a: u64, b: u64| {
            if overlap.is_none() {
                overlap = Some((a, b));
            }
        };
        let (mut from, mut to) = (start, end);
        let mut at = at;
        if let Some(h) = self.held.get(at)
            && h.start <= from
        {
            if h.end >= to {
                payload.free(cache);
                self.touch(start, end);
                return Inserted::Duplicate;
            }
            note(from, h.end);
            payload.trim_front(h.end - from);
            from = h.end;
            at += 1;
        }
        // Whatever lies wholly inside the new data is replaced by it.
        while let Some(h) = self.held.get(at)
            && h.start < to
        {
            if h.end <= to {
                note(h.start, h.end);
                if let Some(h) = self.held.remove(at) {
                    self.bytes -= h.end - h.start;
                    self.memory -= h.truesize;
                    h.payload.free(cache);
                }
            } else {
                note(h.start, to);
                payload.keep_front(h.start - from);
                to = h.start;
            }
        }
        self.bytes += to - from;
        self.memory += truesize;
        self.held.insert(at, Held { start: from, end: to, payload, truesize });
        self.touch(start, end);
        Inserted::New { overlap }
    }

    /// Makes the range around `start..end` the latest.
    fn touch(&mut self, start: u64, end: u64) {
        let (mut a, mut b) = (start, end);
        // Extending the latest range is by far the most frequent case.
        if let Some(first) = self.recent.front_mut()
            && first.1 == start
        {
            first.1 = end;
            a = first.0;
        }
        let mut i = 0;
        while let Some(&(x, y)) = self.recent.get(i) {
            if x <= b && y >= a {
                a = a.min(x);
                b = b.max(y);
                self.recent.remove(i);
            } else {
                i += 1;
            }
        }
        self.recent.push_front((a, b));
    }

    /// Takes the data that begins at or before `nxt`, if any: payload, its memory, and how many of its bytes come before
    /// `nxt`.
    pub(crate) fn pop(&mut self, nxt: u64) -> Option<(Payload, u64, u64)> {
        if self.held.front()?.start > nxt {
            return None;
        }
        let h = self.held.pop_front()?;
        self.bytes -= h.end - h.start;
        self.memory -= h.truesize;
        Some((h.payload, h.truesize, nxt.saturating_sub(h.start).min(h.end - h.start)))
    }

    /// Forgets ranges below `nxt`.
    pub(crate) fn acknowledge(&mut self, nxt: u64) {
        if self.recent.is_empty() {
            return;
        }
        self.recent.retain(|&(_, end)| end > nxt);
    }

    /// Discards the data farthest from being useful, the last (`tcp_prune_ofo_queue`). False if there is none.
    pub(crate) fn prune(&mut self, cache: &mut PoolCache) -> bool {
        if let Some(h) = self.held.pop_back() {
            self.bytes -= h.end - h.start;
            self.memory -= h.truesize;
            h.payload.free(cache);
            for range in &mut self.recent {
                if range.1 == h.end {
                    range.1 = h.start;
                }
            }
            self.recent.retain(|&(a, b)| a < b);
            return true;
        }
        false
    }

    /// The range to report that contains `position`.
    pub(crate) fn range_of(&self, position: u64) -> Option<(u64, u64)> {
        self.recent.iter().copied().find(|&(a, b)| a <= position && position < b)
    }

    /// The latest ranges, for a SACK option.
    pub(crate) fn blocks(&self, space: crate::seq::SeqSpace) -> impl Iterator<Item = SackBlock> + '_ {
        self.recent.iter().map(move |&(a, b)| SackBlock { left: space.wire(a), right: space.wire(b) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use netcore::{PacketPool, PoolConfig};

    fn cache() -> PoolCache {
        PacketPool::new(PoolConfig::with_buffers(4)).expect("pool").cache()
    }

    fn ranges(r: &Reassembly) -> Vec<(u64, u64)> {
        r.held.iter().map(|h| (h.start, h.end)).collect()
    }

    #[test]
    fn overlaps_keep_what_was_there_and_report_it() {
        let (mut r, mut c) = (Reassembly::default(), cache());
        assert_eq!(r.insert(100, Payload::Virtual(50), 1, &mut c), Inserted::New { overlap: None });
        assert_eq!(r.insert(120, Payload::Virtual(50), 1, &mut c), Inserted::New { overlap: Some((120, 150)) });
        assert_eq!(r.insert(110, Payload::Virtual(20), 1, &mut c), Inserted::Duplicate);
        assert_eq!(r.insert(90, Payload::Virtual(20), 1, &mut c), Inserted::New { overlap: Some((100, 110)) });
        assert_eq!(ranges(&r), [(90, 100), (100, 150), (150, 170)]);
        assert_eq!(r.bytes(), 80);
    }

    #[test]
    fn larger_data_replaces_what_lies_inside_it() {
        let (mut r, mut c) = (Reassembly::default(), cache());
        r.insert(20, Payload::Virtual(10), 1, &mut c);
        r.insert(40, Payload::Virtual(10), 1, &mut c);
        r.insert(10, Payload::Virtual(60), 1, &mut c);
        assert_eq!((ranges(&r), r.bytes()), (alloc::vec![(10, 70)], 60));
    }

    #[test]
    fn latest_range_comes_first_and_neighbours_join() {
        let (mut r, mut c) = (Reassembly::default(), cache());
        let space = crate::seq::SeqSpace { initial: 0 };
        let o = crate::seq::ORIGIN;
        for start in [10, 30, 50] {
            r.insert(o + start, Payload::Virtual(10), 1, &mut c);
        }
        let blocks: Vec<_> = r.blocks(space).map(|b| (b.left, b.right)).collect();
        assert_eq!(blocks, [(50, 60), (30, 40), (10, 20)]);
        r.insert(o + 20, Payload::Virtual(10), 1, &mut c);
        let blocks: Vec<_> = r.blocks(space).map(|b| (b.left, b.right)).collect();
        assert_eq!(blocks, [(10, 40), (50, 60)]);
        r.acknowledge(o + 40);
        assert_eq!(r.blocks(space).count(), 1);
    }
}
