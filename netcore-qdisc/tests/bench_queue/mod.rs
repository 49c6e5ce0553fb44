//! A qdisc, a pool and a clock.
#![allow(dead_code, reason = "each test uses part of it")]

use netcore::{Dequeue, DropReason, Drops, Instant, Packet, PacketPool, PoolCache, PoolConfig, Qdisc, Rate, VlanTag};

pub(crate) struct Queue<Q> {
    pub(crate) qdisc: Q,
    pub(crate) now: u64,
    pub(crate) drops: Drops,
    cache: PoolCache,
    ids: u16,
}

/// What a test packet carries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spec {
    pub(crate) len: usize,
    pub(crate) flow: Option<u64>,
    pub(crate) stamp: Option<u64>,
    pub(crate) rate: Option<u64>,
    pub(crate) priority: u32,
    pub(crate) hash: Option<u32>,
}

impl Spec {
    pub(crate) fn flow(flow: u64, len: usize) -> Self {
        Self { flow: Some(flow), len, ..Self::default() }
    }

    pub(crate) fn at(self, stamp: u64) -> Self {
        Self { stamp: Some(stamp), ..self }
    }

    pub(crate) fn rate(self, bytes_per_sec: u64) -> Self {
        Self { rate: Some(bytes_per_sec), ..self }
    }
}

/// A departure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Departure {
    pub(crate) time: u64,
    pub(crate) id: u16,
    pub(crate) flow: Option<u64>,
    pub(crate) len: usize,
}

impl<Q: Qdisc> Queue<Q> {
    pub(crate) fn new(qdisc: Q) -> Self {
        let cache = PacketPool::new(PoolConfig { windows: 1 << 16, ..PoolConfig::with_buffers(64) }).unwrap().cache();
        Self { qdisc, now: 0, drops: Drops::new(), cache, ids: 0 }
    }

    pub(crate) fn at(mut self, now: u64) -> Self {
        self.now = now;
        self
    }

    pub(crate) fn packet(&mut self, spec: Spec) -> Packet {
        let mut packet = self.cache.virtual_bytes(spec.len).unwrap();
        packet.set_vlan(Some(VlanTag { tpid: 0x8100, tci: self.ids }));
        self.ids = self.ids.wrapping_add(1);
        packet.set_flow_id(spec.flow);
        packet.set_departure(spec.stamp.map(Instant::from_nanos));
        packet.set_pacing_rate(spec.rate.map(Rate::from_bytes_per_sec));
        packet.set_priority(spec.priority);
        packet.set_hash(spec.hash, true);
        packet
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Packet {
        self.cache.copy_from_slice(bytes).unwrap()
    }

    /// The packet's number.
    pub(crate) fn enqueue(&mut self, spec: Spec) -> u16 {
        let packet = self.packet(spec);
        self.qdisc.enqueue(packet, Instant::from_nanos(self.now), &mut self.drops);
        self.ids.wrapping_sub(1)
    }

    pub(crate) fn dequeue(&mut self) -> Dequeue {
        self.qdisc.dequeue(Instant::from_nanos(self.now), &mut self.drops)
    }

    /// The next departure, after as much time as it takes; `None` if nothing is queued.
    pub(crate) fn depart(&mut self) -> Option<Departure> {
        loop {
            match self.dequeue() {
                Dequeue::Packet(p) => {
                    let departure = Departure {
                        time: self.now,
                        id: p.vlan().map_or(u16::MAX, |tag| tag.tci),
                        flow: p.flow_id(),
                        len: p.len(),
                    };
                    self.cache.put(p);
                    return Some(departure);
                }
                Dequeue::Throttled(until) => {
                    assert!(until.as_nanos() > self.now, "throttled until {until} at {}", self.now);
                    self.now = until.as_nanos();
                }
                Dequeue::Empty => return None,
            }
        }
    }

    pub(crate) fn depart_all(&mut self) -> Vec<Departure> {
        std::iter::from_fn(|| self.depart()).collect()
    }

    pub(crate) fn change(&mut self, words: &str) {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.qdisc.change(&words, Instant::from_nanos(self.now), &mut self.drops).unwrap();
    }

    pub(crate) fn reasons(&mut self) -> Vec<DropReason> {
        self.drops.drain().map(|d| d.reason).collect()
    }
}
