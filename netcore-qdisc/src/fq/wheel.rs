//! A timing wheel that keeps the exact order of nanosecond times.
//!
//! Eleven levels of 64 slots cover all 64 bits of a time. An entry lies on the level of the highest group of six bits in
//! which its time differs from the wheel's own time, in the slot that this group names. So a slot of level 0 holds one
//! single time, all of a lower level comes before all of a higher one, and the first occupied slot is found in two bit
//! scans. When the wheel's time reaches a slot, its entries move to lower levels, in order; an entry moves at most once per
//! level, whatever the number of entries. Equal times stay in the order of insertion.
//!
//! Compared with a heap or a red-black tree (Linux: `q->delayed`) the cost does not grow with the number of entries;
//! compared with the usual timer wheel there is no granularity, no lap to count, and nothing fires early or late.
//! Entries are in chunks of 16, so that moving them reads memory in sequence.

use alloc::vec::Vec;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
const CHUNK: usize = 16;
const NIL: u32 = u32::MAX;

/// What waits: an identifier, and a mark by which the owner knows whether the entry still counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) time: u64,
    pub(crate) id: u32,
    pub(crate) mark: u32,
}

#[derive(Clone, Debug)]
struct Chunk {
    entries: [Entry; CHUNK],
    len: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
    /// Least time in the slot.
    least: u64,
}

const EMPTY: Slot = Slot { first: NIL, last: NIL, least: u64::MAX };

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The wheel's own time: no entry is earlier.
    time: u64,
    levels: u16,
    occupied: [u64; LEVELS],
    slots: Vec<Slot>,
    chunks: Vec<Chunk>,
    free: u32,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            time: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: alloc::vec![EMPTY; SLOTS * LEVELS],
            chunks: Vec::new(),
            free: NIL,
        }
    }

    /// A wheel that takes no entries, to stand in for one that is being advanced.
    pub(crate) const fn vacant() -> Self {
        Self { time: 0, levels: 0, occupied: [0; LEVELS], slots: Vec::new(), chunks: Vec::new(), free: NIL }
    }

    /// Adds an entry. One that is earlier than the wheel's time, which the owner never adds, is taken as being at that time.
    pub(crate) fn insert(&mut self, entry: Entry) {
        debug_assert!(entry.time >= self.time);
        let (level, slot) = self.place(entry.time.max(self.time));
        let at = level * SLOTS + slot;
        let last = self.slots[at].last;
        let chunk = if last != NIL && (self.chunks[last as usize].len as usize) < CHUNK {
            last
        } else {
            let new = self.take_chunk();
            if last == NIL {
                self.slots[at].first = new;
                self.occupied[level] |= 1 << slot;
                self.levels |= 1 << level;
            } else {
                self.chunks[last as usize].next = new;
            }
            self.slots[at].last = new;
            new
        };
        let c = &mut self.chunks[chunk as usize];
        c.entries[c.len as usize] = entry;
        c.len += 1;
        self.slots[at].least = self.slots[at].least.min(entry.time);
    }

    fn place(&self, time: u64) -> (usize, usize) {
        let different = time ^ self.time;
        let level = if different == 0 { 0 } else { (63 - different.leading_zeros()) / BITS };
        (level as usize, (time >> (level * BITS)) as usize & (SLOTS - 1))
    }

    fn take_chunk(&mut self) -> u32 {
        let index = self.free;
        if index == NIL {
            self.chunks.push(Chunk { entries: [Entry::default(); CHUNK], len: 0, next: NIL });
            return (self.chunks.len() - 1) as u32;
        }
        let chunk = &mut self.chunks[index as usize];
        self.free = chunk.next;
        chunk.len = 0;
        chunk.next = NIL;
        index
    }

    fn first_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// The earliest time that an entry waits for.
    pub(crate) fn earliest(&self) -> Option<u64> {
        self.first_slot().map(|(level, slot)| self.slots[level * SLOTS + slot].least)
    }

    /// Gives all entries up to `limit` to `due`, earliest first, and moves the wheel's time to `limit`.
    pub(crate) fn advance(&mut self, limit: u64, mut due: impl FnMut(Entry)) {
        while let Some((level, slot)) = self.first_slot() {
            // Bits above the level's group are those of the wheel's time, bits below are zero.
            let shift = level as u32 * BITS;
            let above = self.time.checked_shr(shift + BITS).unwrap_or(0);
            let start = above.checked_shl(shift + BITS).unwrap_or(0) | (slot as u64) << shift;
            if start > limit {
                break;
            }
            let at = level * SLOTS + slot;
            let mut chunk = self.slots[at].first;
            self.slots[at] = EMPTY;
            self.occupied[level] &= !(1 << slot);
            if self.occupied[level] == 0 {
                self.levels &= !(1 << level);
            }
            self.time = start;
            while chunk != NIL {
                for n in 0..self.chunks[chunk as usize].len as usize {
                    let entry = self.chunks[chunk as usize].entries[n];
                    if level == 0 {
                        due(entry);
                    } else {
                        self.insert(entry);
                    }
                }
                let next = self.chunks[chunk as usize].next;
                self.chunks[chunk as usize].next = self.free;
                self.free = chunk;
                chunk = next;
            }
        }
        // What is left starts after `limit`, so its level and slot are the same seen from there.
        self.time = self.time.max(limit);
    }

    /// Forgets all entries; the wheel's time becomes `time`.
    pub(crate) fn reset(&mut self, time: u64) {
        *self = Self { chunks: core::mem::take(&mut self.chunks), ..Self::new() };
        self.time = time;
        self.free = NIL;
        for index in 0..self.chunks.len() {
            self.chunks[index].next = self.free;
            self.free = index as u32;
        }
    }

    /// Takes out all entries in order and sets the wheel's time to `time`.
    pub(crate) fn drain(&mut self, time: u64) -> Vec<Entry> {
        let mut all = Vec::new();
        self.advance(u64::MAX, |entry| all.push(entry));
        self.reset(time);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(time: u64, id: u32) -> Entry {
        Entry { time, id, mark: 0 }
    }

    #[test]
    fn each_fires_once_never_early_and_at_the_first_advance_that_reaches_it() {
        // Spans of every level, one tick at a time and in one leap.
        for span in [64u64, 4096, 1 << 18] {
            let times = [span - 1, span, span + 1, 10 * span + 3];
            let mut wheel = Wheel::new();
            for (id, &time) in times.iter().enumerate() {
                wheel.insert(entry(time, id as u32));
            }
            let mut fired = Vec::new();
            for now in 0..=10 * span + 3 {
                wheel.advance(now, |e| fired.push((now, e.time)));
            }
            assert_eq!(fired, times.map(|time| (time, time)));
            for (id, &time) in times.iter().enumerate() {
                let time = time + 10 * span + 3;
                wheel.insert(entry(time, id as u32));
            }
            let mut fired = Vec::new();
            wheel.advance(10 * span + 3 + 3 * span, |e| fired.push(e.id));
            assert_eq!(fired, [0, 1, 2]);
            wheel.advance(u64::MAX, |e| fired.push(e.id));
            assert_eq!(fired, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn equal_times_keep_their_order_across_all_levels_and_the_end_of_time() {
        let mut wheel = Wheel::new();
        for id in 0..40 {
            wheel.insert(entry(u64::MAX, id));
            wheel.insert(entry(1 << 40, 100 + id));
            wheel.advance(u64::from(id) << 34, |_| panic!("nothing is due"));
        }
        let mut fired = Vec::new();
        wheel.advance(u64::MAX, |e| fired.push(e.id));
        assert_eq!(fired, (100..140).chain(0..40).collect::<Vec<_>>());
        assert_eq!(wheel.earliest(), None);
    }

    proptest! {
        #[test]
        fn order_is_that_of_a_stable_sort(
            steps in prop::collection::vec((0u64..2000, prop::collection::vec(1u64..1_000_000, 0..20)), 1..60),
        ) {
            let mut wheel = Wheel::new();
            let (mut waiting, mut now, mut id): (Vec<Entry>, u64, u32) = (Vec::new(), 0, 0);
            for (step, deltas) in steps {
                for delta in deltas {
                    let e = entry(now + delta, id);
                    id += 1;
                    wheel.insert(e);
                    waiting.push(e);
                }
                waiting.sort_by_key(|e| e.time);
                prop_assert_eq!(wheel.earliest(), waiting.first().map(|e| e.time));
                now += step * step;
                let mut fired = Vec::new();
                wheel.advance(now, |e| fired.push(e));
                let due = waiting.partition_point(|e| e.time <= now);
                let expected: Vec<Entry> = waiting.drain(..due).collect();
                prop_assert_eq!(fired, expected);
            }
        }
    }
}
