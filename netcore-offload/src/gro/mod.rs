//! Generic receive offload: merging received packets of a flow into super-packets.
//!
//! ```text
//!   packet ─► walk (headers, checksums) ─► bucket ─► relate to what is held of the flow
//!                │ not a candidate                        │
//!                ▼                                        ├─ merges ──► held packet grows; full, short, PSH: complete
//!             deliver at once                             ├─ refused ─► complete the held one, hold or deliver the new
//!                                                         └─ no flow ─► hold (a full bucket delivers its oldest)
//! ```
//!
//! The built-in protocols are one statically dispatched path. What it costs is mostly one masked comparison of the whole
//! header with the held packet's: if all bits that must agree do, the flow is the same *and* no field forbids merging.

mod cells;
mod compare;
mod complete;
mod counters;
mod fast;
mod flows;
mod registered;
mod rules;
mod run;
mod shape;
mod table;
mod verdict;
mod walk;

pub use cells::{CellCounters, GroCells};
pub(crate) use complete::{get16, pseudo_sum, put16, tunnel_kind};
pub use counters::GroCounters;
pub use flows::{FlowCounters, GroFlow};
pub use rules::{BucketHash, GroConfig, GroConfigError, GroRules, GroTable, IpIdRule, UdpGro};
pub(crate) use walk::{Outer, walk_outer};

use crate::layout::{Layout, MAX_HEADERS};
use crate::protocols::Protocols;
use alloc::vec::Vec;
use compare::{Relation, relate};
use flows::Flows;
use netcore::offload::{GroEnd, ReceiveOffload};
use netcore::{Burst, Instant, Packet, PoolCache, Statistics};
use shape::Shapes;
use table::{Held, Table};
use verdict::raise;
use walk::{Candidate, tcp_flags, walk};

/// Bytes of the head segment that are made contiguous before headers are walked.
const PULL: usize = 128;

/// Datagrams in one aggregate, at most (Linux: `UDP_GRO_CNT_MAX`).
const MAX_DATAGRAMS: u16 = 64;

/// Receive offload for one receive queue. See the [module](self).
pub struct Gro {
    config: GroConfig,
    table: Table,
    shapes: Shapes,
    counters: GroCounters,
    flows: Option<Flows>,
    flush_at: Option<Instant>,
    /// Whether `fast.rs` is used; a test compares both.
    fast: bool,
    fast_max_size: usize,
    protocols: Protocols,
    registered: Vec<registered::RegisteredHeld>,
}

impl Gro {
    /// An engine that holds nothing.
    ///
    /// # Errors
    /// [`GroConfigError`] if a setting is out of range.
    pub fn new(config: GroConfig) -> Result<Self, GroConfigError> {
        config.check()?;
        Ok(Self {
            table: Table::new(config.table.buckets),
            shapes: Shapes::new(),
            counters: GroCounters::default(),
            flows: (config.flow_counters > 0).then(|| Flows::new(config.flow_counters, &config)),
            flush_at: None,
            fast: true,
            fast_max_size: config.max_size.min(65536),
            protocols: Protocols::new(),
            registered: Vec::new(),
            config,
        })
    }

    /// Merges packets of registered protocols, too. Give the same [`Protocols`] to the segmenter.
    pub fn with_protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }

    /// Takes every packet through the general path, for tests that compare the two.
    #[doc(hidden)]
    pub fn without_fast_path(mut self) -> Self {
        self.fast = false;
        self
    }

    /// The settings in force.
    pub fn config(&self) -> &GroConfig {
        &self.config
    }

    /// What happened so far.
    pub fn counters(&self) -> &GroCounters {
        &self.counters
    }

    /// What happened to each flow so far, if [`GroConfig::flow_counters`] asks for it: most packets first.
    pub fn flows(&self) -> Vec<GroFlow> {
        self.flows.as_ref().map_or_else(Vec::new, Flows::all)
    }

    #[inline(always)]
    fn deliver(&mut self, packet: Packet, reason: GroEnd, out: &mut Burst) {
        count_delivery(&packet, &mut self.counters, &mut self.flows, reason);
        out.push(packet);
    }

    #[inline(always)]
    fn complete(&mut self, held: Held, reason: GroEnd, out: &mut Burst) {
        complete_held(held, &self.shapes, &mut self.counters, &mut self.flows, reason, out);
    }

    /// Any packet, by its headers one after the other. `fast.rs` does the same for the most frequent ones.
    #[inline(never)]
    fn receive_any(&mut self, mut packet: Packet, out: &mut Burst, cache: &mut PoolCache, tick: u64) {
        if packet.head_len() < PULL && packet.head_len() < packet.len() {
            // Headers may be spread over segments; if there is no buffer to gather them, the walk says so.
            let n = packet.len().min(MAX_HEADERS);
            let _ = packet.linearize(n, cache);
        }
        let candidate = match walk(&packet, &self.config) {
            Ok(candidate) => candidate,
            Err(GroEnd::NotMergeable) if !self.protocols.is_empty() => {
                return self.receive_registered(packet, out, cache, tick);
            }
            Err(reason) => return self.deliver(packet, reason, out),
        };
        let shape = match self.shapes.number(&candidate.layout, &self.config.rules) {
            Some(shape) => shape,
            None => {
                self.flush_table(None, GroEnd::Evicted, out);
                self.shapes.clear();
                self.shapes.number(&candidate.layout, &self.config.rules).unwrap_or(0)
            }
        };
        let receive_key = packet.receive_key();
        // The low half is the receive hash.
        let tag = table_tag(receive_key as u32, candidate.tag);
        let index = self.bucket(receive_key as u32, candidate.tag);
        let new = packet.head();
        let mut refused = None;
        for position in 0..self.table.depth(index) {
            let Some(held) = self.table.at(index, position, tag) else { continue };
            let Some(known) = self.shapes.get(held.shape) else { continue };
            if held.receive_key != receive_key {
                continue;
            }
            match relate(known, held.shape == shape, held, &candidate, new, &self.config) {
                Relation::Other => continue,
                Relation::Merges => {
                    if held.count == held.received_count && !make_growable(held, &known.layout, cache) {
                        refused = Some((position, GroEnd::NotMergeable));
                        break;
                    }
                    let segment = held.segment;
                    (held.next_ids, held.id_steps) =
                        fast::next_ids(&known.layout, new, candidate.count, held.fixed_ids);
                    merge(held, &candidate, packet, cache);
                    let full = candidate.layout.udp && held.count >= MAX_DATAGRAMS;
                    if let Some(reason) = ends(&candidate, segment).or(full.then_some(GroEnd::Count)) {
                        self.finish(index, position, reason, out);
                    }
                    return;
                }
                Relation::Refused(reason) => {
                    refused = Some((position, reason));
                    break;
                }
            }
        }
        if let Some((position, reason)) = refused {
            self.finish(index, position, reason, out);
        }
        let (next_ids, id_steps) = fast::next_ids(&candidate.layout, packet.head(), candidate.count, 0);
        if let Some(reason) = candidate.flush.or_else(|| ends(&candidate, 1)) {
            raise(&mut packet, candidate.gained);
            return self.deliver(packet, reason, out);
        }
        let held = Held {
            next_seq: candidate.seq.wrapping_add(candidate.payload),
            segment: candidate.segment,
            count: candidate.count,
            received_count: candidate.count,
            shape,
            fixed_ids: 0,
            gained: candidate.gained,
            carried_flags: 0,
            next_ids,
            id_steps,
            packet,
            receive_key,
            age: tick,
        };
        self.hold(index, tag, held, out);
    }

    #[inline(always)]
    fn hold(&mut self, index: usize, tag: u32, held: Held, out: &mut Burst) {
        if let Err(held) = self.table.push(index, tag, held, self.config.table.depth) {
            self.evict(index, tag, held, out);
        }
    }

    /// Holds a packet in a bucket that is full.
    #[inline(never)]
    fn evict(&mut self, index: usize, tag: u32, held: Held, out: &mut Burst) {
        self.finish(index, 0, GroEnd::Evicted, out);
        if let Err(held) = self.table.push(index, tag, held, self.config.table.depth) {
            debug_assert!(false, "a packet was taken from the bucket");
            self.complete(held, GroEnd::Evicted, out);
        }
    }

    /// Delivers the packet at a position of a bucket.
    #[inline(never)]
    fn finish(&mut self, index: usize, position: usize, reason: GroEnd, out: &mut Burst) {
        if let Some(held) = self.table.take(index, position) {
            self.complete(held, reason, out);
        }
    }

    #[inline(always)]
    fn bucket(&self, hash: u32, tag: u32) -> usize {
        self.table.bucket(match self.config.table.hash {
            BucketHash::Device => hash,
            BucketHash::Flow => tag,
        })
    }

    fn tick(&self, now: Instant) -> u64 {
        now.as_nanos() / (self.config.tick.as_nanos() as u64).max(1)
    }

    /// Delivers held packets bucket by bucket, oldest first; with `older_than`, only those first held before that tick.
    fn flush_held(&mut self, older_than: Option<u64>, reason: GroEnd, out: &mut Burst) {
        self.flush_table(older_than, reason, out);
        self.flush_registered(older_than, reason, out);
    }

    fn flush_table(&mut self, older_than: Option<u64>, reason: GroEnd, out: &mut Burst) {
        if older_than.is_none() {
            let Self { table, shapes, counters, flows, .. } = self;
            return table.take_all(|place| {
                // Most that grow are delivered when they are full, most of these did not grow.
                if let Some(held) = place
                    && held.count == held.received_count
                    && held.gained == 0
                    && let Some(held) = place.take()
                {
                    count_delivery(&held.packet, counters, flows, reason);
                    out.push(held.packet);
                } else if let Some(held) = place.take() {
                    complete_grown(held, shapes, counters, flows, reason, out);
                }
            });
        }
        let mut from = 0;
        while let Some((index, age)) = self.table.next_used(from) {
            if older_than.is_some_and(|tick| age >= tick) {
                from = index + 1;
                continue;
            }
            match self.table.take(index, 0) {
                Some(held) => self.complete(held, reason, out),
                None => from = index + 1,
            }
            from = from.max(index);
        }
    }
}

#[inline(always)]
fn count_delivery(packet: &Packet, counters: &mut GroCounters, flows: &mut Option<Flows>, reason: GroEnd) {
    counters.deliver(packet, reason);
    if let Some(flows) = flows {
        flows.deliver(packet, reason);
    }
}

/// As [`complete_held`].
#[inline(never)]
fn complete_grown(
    held: Held,
    shapes: &Shapes,
    counters: &mut GroCounters,
    flows: &mut Option<Flows>,
    reason: GroEnd,
    out: &mut Burst,
) {
    complete_held(held, shapes, counters, flows, reason, out);
}

/// Delivers a packet that was held.
#[inline(always)]
fn complete_held(
    held: Held,
    shapes: &Shapes,
    counters: &mut GroCounters,
    flows: &mut Option<Flows>,
    reason: GroEnd,
    out: &mut Burst,
) {
    let packet = match shapes.get(held.shape) {
        Some(shape) => complete::complete(held, shape),
        None => held.packet,
    };
    count_delivery(&packet, counters, flows, reason);
    out.push(packet);
}

/// Why an aggregate ends with this segment; `None` if it may go on.
#[inline(always)]
fn ends(candidate: &Candidate, segment: u32) -> Option<GroEnd> {
    let short = if candidate.count > 1 {
        candidate.payload != u32::from(candidate.count) * candidate.segment
    } else {
        candidate.payload < segment
    };
    if !short && candidate.word & tcp_flags::ENDING == 0 {
        return None;
    }
    Some(if candidate.word & (tcp_flags::ENDING & !tcp_flags::PSH) != 0 {
        GroEnd::Flags
    } else if candidate.word & tcp_flags::PSH != 0 {
        GroEnd::Push
    } else if candidate.payload == 0 {
        GroEnd::Empty
    } else {
        GroEnd::Short
    })
}

/// What held packets are found by: the receive hash, or the flow's tag where there is none.
#[inline(always)]
fn table_tag(hash: u32, tag: u32) -> u32 {
    if hash != 0 { hash } else { tag }
}

/// Headers will be rewritten, so they must not be shared; false if there is no buffer to copy them to.
#[inline(always)]
fn make_growable(held: &mut Held, layout: &Layout, cache: &mut PoolCache) -> bool {
    held.packet.make_writable(usize::from(layout.payload), cache).is_ok()
}

/// Merges a candidate that [`relate`] found to merge.
#[inline(always)]
fn merge(held: &mut Held, candidate: &Candidate, packet: Packet, cache: &mut PoolCache) {
    held.count += candidate.count;
    held.next_seq = held.next_seq.wrapping_add(candidate.payload);
    held.carried_flags |= ((candidate.word & (tcp_flags::FIN | tcp_flags::PSH)) >> 16) as u8;
    append(held, packet, usize::from(candidate.layout.payload), cache);
}

/// Adds the payload of a packet, from `skip` on.
#[inline(always)]
fn append(held: &mut Held, packet: Packet, skip: usize, cache: &mut PoolCache) {
    let appended = held.packet.append_from(packet, skip, cache);
    debug_assert!(appended.is_ok(), "the payload is not empty and the length was checked");
}

impl ReceiveOffload for Gro {
    fn receive(&mut self, burst: &mut Burst, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        let tick = self.tick(now);
        self.counters.packets_in += burst.len() as u64;
        let bytes = netcore::simd::dispatch(run::Receive { gro: self, burst, out, cache, tick });
        self.counters.bytes_in += bytes;
        // Whatever was neither delivered nor is held was merged.
        self.counters.merged = self.counters.packets_in - self.counters.packets_out - self.held() as u64;
    }

    /// Linux: `napi_complete_done` and `napi_gro_flush`.
    fn end_poll(&mut self, budget_exhausted: bool, out: &mut Burst, _cache: &mut PoolCache, now: Instant) {
        if budget_exhausted {
            // With ticks longer than a millisecond Linux does not trust the age and flushes everything.
            let coarse = self.config.tick > core::time::Duration::from_millis(1);
            let older_than = (!coarse).then(|| self.tick(now));
            let reason = if coarse { GroEnd::EndOfPoll } else { GroEnd::Timeout };
            self.flush_held(older_than, reason, out);
        } else if self.config.flush_timeout.is_zero() {
            self.flush_held(None, GroEnd::EndOfPoll, out);
        } else {
            let tick = self.tick(now);
            self.flush_held(Some(tick), GroEnd::Timeout, out);
            self.flush_at = (self.held() > 0).then(|| now + self.config.flush_timeout);
        }
    }

    fn flush(&mut self, out: &mut Burst, _cache: &mut PoolCache) {
        self.flush_held(None, GroEnd::EndOfPoll, out);
        self.flush_at = None;
    }

    fn poll(&mut self, out: &mut Burst, _cache: &mut PoolCache, now: Instant) {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_held(None, GroEnd::Timeout, out);
            self.flush_at = None;
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        self.flush_at
    }

    fn held(&self) -> usize {
        self.table.len() + self.registered.len()
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.counters.write(statistics);
    }
}
