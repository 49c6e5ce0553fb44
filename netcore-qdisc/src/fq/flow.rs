//! Flows in one slab, found by their key through an open-addressing index (Linux: `fq_root`, `fq_flow`, `fq_gc`).
//!
//! Linux has `2^buckets_log` trees; the depth of a tree grows with the number of flows. Here the index grows instead, and
//! `buckets` is what it starts with. Flows that are idle are kept, in the order in which they became idle, so that collecting
//! old ones costs nothing per flow that stays.

use crate::packets::{FlowQueue, NIL};
use alloc::vec::Vec;

/// What a flow is found by. An orphan's key is its hash under the mask and never equals a socket's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Socket(u64),
    Orphan(u32),
}

impl Key {
    const fn parts(self) -> (u64, bool) {
        match self {
            Self::Socket(id) => (id, true),
            Self::Orphan(hash) => (hash as u64, false),
        }
    }

    /// 32 well-mixed bits (the finaliser of MurmurHash3, public domain).
    fn hash(self) -> u32 {
        let mut x = match self {
            Self::Socket(id) => id,
            Self::Orphan(hash) => u64::from(hash) ^ 0x9e37_79b9_7f4a_7c15,
        };
        x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        (x >> 32) as u32
    }
}

/// Where a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In no list: it has had nothing to send since `idle_since`.
    Detached,
    /// In the new or the old list of its band.
    Listed,
    /// In the wheel.
    Throttled,
}

/// A flow: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Flow {
    key: u64,
    /// When the next packet may leave, nanoseconds; 0 if never set (Linux: `time_next_packet`).
    pub(crate) next_time: u64,
    /// When it became idle, nanoseconds.
    pub(crate) idle_since: u64,
    pub(crate) queue: FlowQueue,
    /// Bytes it may send before its turn ends. Far below zero after a large packet.
    pub(crate) credit: i32,
    pub(crate) len: u32,
    /// Next in its list, or next idle flow.
    pub(crate) next: u32,
    /// Previous idle flow.
    previous: u32,
    /// Changes whenever the flow leaves the wheel, so that an entry there is known to be void.
    pub(crate) mark: u32,
    /// Hash of the socket, by which a reused identity is told (Linux: `socket_hash`).
    pub(crate) socket_hash: u32,
    pub(crate) band: u8,
    pub(crate) place: Place,
    is_socket: bool,
}

impl Flow {
    fn key(&self) -> Key {
        if self.is_socket { Key::Socket(self.key) } else { Key::Orphan(self.key as u32) }
    }
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Flows {
    slab: Vec<Flow>,
    free: u32,
    count: u32,
    index: Vec<Slot>,
    log: u32,
    idle_first: u32,
    idle_last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    flow: u32,
}

const VACANT: Slot = Slot { hash: 0, flow: NIL };

impl Flows {
    pub(crate) fn new(buckets: u32) -> Self {
        let mut flows =
            Self { slab: Vec::new(), free: NIL, count: 0, index: Vec::new(), log: 0, idle_first: NIL, idle_last: NIL };
        flows.reserve(buckets);
        flows
    }

    /// Number of flows, idle ones included.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(crate) fn get(&self, flow: u32) -> &Flow {
        &self.slab[flow as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.slab[flow as usize]
    }

    /// Makes the index large enough for `flows` flows.
    pub(crate) fn reserve(&mut self, flows: u32) {
        let log = (u64::from(flows.max(2)) * 2).next_power_of_two().trailing_zeros().min(32);
        if log <= self.log {
            return;
        }
        let old = core::mem::replace(&mut self.index, alloc::vec![VACANT; 1 << log]);
        self.log = log;
        for slot in old {
            if slot.flow != NIL {
                self.put(slot);
            }
        }
    }

    fn home(&self, hash: u32) -> usize {
        (hash >> (32 - self.log)) as usize
    }

    fn put(&mut self, slot: Slot) {
        let mask = self.index.len() - 1;
        let mut at = self.home(slot.hash);
        while self.index[at].flow != NIL {
            at = (at + 1) & mask;
        }
        self.index[at] = slot;
    }

    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let hash = key.hash();
        let mask = self.index.len() - 1;
        let mut at = self.home(hash);
        loop {
            let slot = self.index[at];
            if slot.flow == NIL {
                return None;
            }
            if slot.hash == hash && self.slab[slot.flow as usize].key() == key {
                return Some(slot.flow);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a flow, idle since `now`. `None` if there are as many as an index can name.
    pub(crate) fn add(&mut self, key: Key, credit: i32, now: u64) -> Option<u32> {
        if self.count >= 1 << 30 {
            return None;
        }
        if (self.count + 1) as usize * 2 > self.index.len() {
            self.reserve(self.count + 1);
        }
        let (bits, is_socket) = key.parts();
        let flow = Flow {
            key: bits,
            is_socket,
            next_time: 0,
            idle_since: now,
            queue: FlowQueue::new(),
            credit,
            len: 0,
            next: NIL,
            previous: NIL,
            mark: 0,
            socket_hash: 0,
            band: 0,
            place: Place::Detached,
        };
        let id = match self.free {
            NIL => {
                self.slab.push(flow);
                (self.slab.len() - 1) as u32
            }
            id => {
                self.free = self.slab[id as usize].next;
                let mark = self.slab[id as usize].mark;
                self.slab[id as usize] = Flow { mark, ..flow };
                id
            }
        };
        self.put(Slot { hash: key.hash(), flow: id });
        self.count += 1;
        self.detach(id, now);
        Some(id)
    }

    /// Puts a flow at the end of the idle ones.
    pub(crate) fn detach(&mut self, id: u32, now: u64) {
        let last = self.idle_last;
        let flow = self.get_mut(id);
        flow.place = Place::Detached;
        flow.idle_since = now;
        flow.next = NIL;
        flow.previous = last;
        match last {
            NIL => self.idle_first = id,
            last => self.get_mut(last).next = id,
        }
        self.idle_last = id;
    }

    /// Takes a flow out of the idle ones.
    pub(crate) fn attach(&mut self, id: u32) {
        let (previous, next) = (self.get(id).previous, self.get(id).next);
        match previous {
            NIL => self.idle_first = next,
            previous => self.get_mut(previous).next = next,
        }
        match next {
            NIL => self.idle_last = previous,
            next => self.get_mut(next).previous = previous,
        }
    }

    /// Frees up to `most` flows that have been idle since before `limit`, longest first, but not the one of `keep`. Gives
    /// their number (Linux: `fq_gc`, which looks at the flows it passes on the way to the packet's own).
    pub(crate) fn collect(&mut self, limit: u64, keep: Key, most: u32) -> u32 {
        let mut collected = 0;
        let mut id = self.idle_first;
        while id != NIL && collected < most && self.get(id).idle_since < limit {
            let next = self.get(id).next;
            if self.get(id).key() != keep {
                self.remove(id);
                collected += 1;
            }
            id = next;
        }
        collected
    }

    fn remove(&mut self, id: u32) {
        self.attach(id);
        let mask = self.index.len() - 1;
        let mut hole = self.home(self.get(id).key().hash());
        while self.index[hole].flow != id {
            hole = (hole + 1) & mask;
        }
        // Whoever was pushed beyond the hole moves into it, so that searches need no tombstones.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.index[at];
            if slot.flow == NIL {
                break;
            }
            let home = self.home(slot.hash);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.index[hole] = slot;
                hole = at;
            }
        }
        self.index[hole] = VACANT;
        let free = self.free;
        self.get_mut(id).next = free;
        self.free = id;
        self.count -= 1;
    }

    /// Forgets all flows.
    pub(crate) fn clear(&mut self) {
        self.slab.clear();
        self.index.fill(VACANT);
        (self.free, self.count, self.idle_first, self.idle_last) = (NIL, 0, NIL, NIL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_one_cache_line() {
        assert_eq!(size_of::<Flow>(), 64);
    }

    #[test]
    fn flows_are_found_after_others_were_removed_around_them() {
        let mut flows = Flows::new(2);
        let ids: Vec<u32> = (0..5000).map(|n| flows.add(Key::Socket(n), 0, n).unwrap()).collect();
        assert_eq!(flows.count(), 5000);
        for n in (0..5000).step_by(3) {
            flows.attach(ids[n]);
            flows.get_mut(ids[n]).place = Place::Listed;
        }
        // Everything idle since before 4000 goes, but for key 1.
        let collected = flows.collect(4000, Key::Socket(1), u32::MAX);
        for n in 0..5000u64 {
            let stays = n % 3 == 0 || n >= 4000 || n == 1;
            assert_eq!(flows.find(Key::Socket(n)), stays.then_some(ids[n as usize]), "{n}");
        }
        assert_eq!(flows.count(), 5000 - collected);
        assert_eq!(flows.find(Key::Orphan(3)), None);
    }
}
