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

mod compare;
mod complete;
mod counters;
mod fast;
mod layout;
mod rules;
mod verdict;

pub(crate) use complete::pseudo_sum;
pub use counters::GroCounters;
pub use rules::{BucketHash, GroConfig, GroConfigError, GroRules, GroTable, IpIdRule};

use alloc::vec::Vec;
use compare::{Masks, Relation, ShapeMask, relate};
use layout::{Candidate, Layout, MAX_HEADERS, tcp_flags, walk};
use netcore::offload::{GroEnd, ReceiveOffload};
use netcore::{Burst, Instant, Packet, PoolCache, Statistics};
use verdict::raise;

/// Bytes of the head segment that are made contiguous before headers are walked.
const PULL: usize = 128;

/// A packet that may still grow.
struct Held {
    packet: Packet,
    layout: Layout,
    /// Sequence number that the next segment must have.
    next_seq: u32,
    /// Payload of a full segment.
    segment: u32,
    /// FIN and PSH of merged segments.
    carried_flags: u32,
    count: u16,
    /// `count` when the packet was received: above 1 for a super-packet.
    received_count: u16,
    fixed_ids: u8,
    /// What the fast path recognises it by.
    shape: u8,
    gained: u8,
    /// Receive hash and VLAN tag.
    receive_key: u64,
    /// Clock tick at which it was first held.
    age: u64,
}

/// Up to eight held packets, oldest first in `order`.
struct Bucket {
    tags: [u32; 8],
    order: [u8; 8],
    len: u8,
    /// Slots in use, one bit each.
    used: u8,
    /// Slot that was used last: the first guess.
    latest: u8,
    slots: [Option<Held>; 8],
}

impl Bucket {
    /// A slot in use whose tag is `tag`.
    #[inline(always)]
    fn find(&mut self, tag: u32) -> Option<usize> {
        let latest = usize::from(self.latest & 7);
        if self.tags[latest] == tag && self.used & 1 << latest != 0 {
            return Some(latest);
        }
        let mut found = 0;
        for (slot, other) in self.tags.iter().enumerate() {
            found |= u8::from(*other == tag) << slot;
        }
        found &= self.used;
        if found == 0 {
            return None;
        }
        self.latest = found.trailing_zeros() as u8;
        Some(usize::from(self.latest & 7))
    }

    const fn new() -> Self {
        Self { used: 0, latest: 0, tags: [0; 8], order: [0, 1, 2, 3, 4, 5, 6, 7], len: 0, slots: [const { None }; 8] }
    }

    /// Takes the packet at position `position` of the order.
    #[inline(always)]
    fn take(&mut self, position: usize) -> Option<Held> {
        let slot = self.order[position & 7];
        let len = usize::from(self.len);
        // The freed slot goes behind the used ones.
        for i in position..len - 1 {
            self.order[i & 7] = self.order[(i + 1) & 7];
        }
        self.order[(len - 1) & 7] = slot;
        self.len -= 1;
        self.used &= !(1 << (slot & 7));
        self.slots[usize::from(slot & 7)].take()
    }

    #[inline(always)]
    fn push(&mut self, tag: u32, held: Held) {
        let slot = usize::from(self.order[usize::from(self.len) & 7] & 7);
        self.tags[slot] = tag;
        self.slots[slot] = Some(held);
        self.used |= 1 << slot;
        self.latest = slot as u8;
        self.len += 1;
    }
}

/// Receive offload for one receive queue. See the [module](self).
pub struct Gro {
    config: GroConfig,
    buckets: Vec<Bucket>,
    masks: Masks,
    held: usize,
    counters: GroCounters,
    flush_at: Option<Instant>,
    /// Whether `fast.rs` is used; a test compares both.
    fast: bool,
    shapes: [Option<ShapeMask>; 2],
}

impl Gro {
    /// An engine that holds nothing.
    ///
    /// # Errors
    /// [`GroConfigError`] if a setting is out of range.
    pub fn new(config: GroConfig) -> Result<Self, GroConfigError> {
        config.check()?;
        Ok(Self {
            buckets: (0..config.table.buckets).map(|_| Bucket::new()).collect(),
            masks: Masks::new(config.rules),
            held: 0,
            counters: GroCounters::default(),
            flush_at: None,
            fast: true,
            shapes: [None, None],
            config,
        })
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

    #[inline(always)]
    fn deliver(&mut self, packet: Packet, reason: GroEnd, out: &mut Burst) {
        self.counters.deliver(&packet, reason);
        out.push(packet);
    }

    #[inline(always)]
    fn complete(&mut self, held: Held, reason: GroEnd, out: &mut Burst) {
        self.held -= 1;
        let packet = complete::complete(held);
        self.deliver(packet, reason, out);
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
            Err(reason) => return self.deliver(packet, reason, out),
        };
        let receive_key = packet.receive_key();
        let index = self.bucket(receive_key, candidate.tag);
        let bucket = &mut self.buckets[index];
        let mask = self.masks.of(&candidate.layout);
        let new = packet.head();
        let mut refused = None;
        for position in 0..usize::from(bucket.len) {
            let slot = usize::from(bucket.order[position & 7] & 7);
            if bucket.tags[slot] != candidate.tag {
                continue;
            }
            let Some(held) = &mut bucket.slots[slot] else { continue };
            if held.receive_key != receive_key {
                continue;
            }
            match relate(mask, held, &candidate, new, &self.config.rules, self.config.max_size) {
                Relation::Other => continue,
                Relation::Merges => {
                    if held.count == held.received_count && !make_growable(held, cache) {
                        refused = Some((position, GroEnd::NotMergeable));
                        break;
                    }
                    merge(held, &candidate, packet, cache);
                    self.counters.merged += 1;
                    if let Some(reason) = ends(&candidate, held.segment)
                        && let Some(held) = bucket.take(position)
                    {
                        self.complete(held, reason, out);
                    }
                    return;
                }
                Relation::Refused(reason) => {
                    refused = Some((position, reason));
                    break;
                }
            }
        }
        if let Some((position, reason)) = refused
            && let Some(held) = bucket.take(position)
        {
            self.complete(held, reason, out);
        }
        if let Some(reason) = candidate.flush.or_else(|| ends(&candidate, 1)) {
            raise(&mut packet, candidate.gained);
            return self.deliver(packet, reason, out);
        }
        self.hold(index, packet, &candidate, receive_key, out, tick);
    }

    #[inline(always)]
    fn hold(
        &mut self,
        index: usize,
        packet: Packet,
        candidate: &Candidate,
        receive_key: u64,
        out: &mut Burst,
        tick: u64,
    ) {
        if usize::from(self.buckets[index].len) >= self.config.table.depth
            && let Some(oldest) = self.buckets[index].take(0)
        {
            self.complete(oldest, GroEnd::Evicted, out);
        }
        self.held += 1;
        self.buckets[index].push(
            candidate.tag,
            Held {
                next_seq: candidate.seq.wrapping_add(candidate.payload),
                segment: candidate.segment,
                carried_flags: 0,
                count: candidate.count,
                received_count: candidate.count,
                fixed_ids: 0,
                shape: fast::shape(&candidate.layout),
                gained: candidate.gained,
                layout: candidate.layout,
                packet,
                receive_key,
                age: tick,
            },
        );
    }

    /// Delivers the packet in a slot, to which `last` was merged.
    fn finish_slot(&mut self, index: usize, slot: usize, last: &Candidate, out: &mut Burst) {
        let bucket = &mut self.buckets[index];
        let segment = bucket.slots[slot].as_ref().map_or(0, |held| held.segment);
        let reason = ends(last, segment).unwrap_or(GroEnd::Short);
        let position = bucket.order.iter().position(|other| usize::from(*other) == slot);
        if let Some(held) = position.and_then(|position| bucket.take(position)) {
            self.complete(held, reason, out);
        }
    }

    #[inline(always)]
    fn bucket(&self, receive_key: u64, tag: u32) -> usize {
        let hash = match self.config.table.hash {
            // The low half is the receive hash.
            BucketHash::Device => receive_key as u32,
            BucketHash::Flow => tag,
        };
        hash as usize & (self.buckets.len() - 1)
    }

    fn tick(&self, now: Instant) -> u64 {
        now.as_nanos() / (self.config.tick.as_nanos() as u64).max(1)
    }

    /// Delivers held packets bucket by bucket, oldest first; with `older_than`, only those first held before that tick.
    fn flush_held(&mut self, older_than: Option<u64>, reason: GroEnd, out: &mut Burst) {
        if self.held == 0 {
            return;
        }
        for index in 0..self.buckets.len() {
            while self.buckets[index].len > 0 {
                let bucket = &mut self.buckets[index];
                let oldest = usize::from(bucket.order[0] & 7);
                let age = bucket.slots[oldest].as_ref().map_or(0, |held| held.age);
                if older_than.is_some_and(|tick| age >= tick) {
                    break;
                }
                match bucket.take(0) {
                    Some(held) => self.complete(held, reason, out),
                    None => break,
                }
            }
            if self.held == 0 {
                break;
            }
        }
    }
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

/// Headers will be rewritten, so they must not be shared; false if there is no buffer to copy them to.
#[inline(always)]
fn make_growable(held: &mut Held, cache: &mut PoolCache) -> bool {
    held.packet.make_writable(usize::from(held.layout.payload), cache).is_ok()
}

/// Merges a candidate that [`relate`] found to merge.
#[inline(always)]
fn merge(held: &mut Held, candidate: &Candidate, packet: Packet, cache: &mut PoolCache) {
    held.count += candidate.count;
    held.next_seq = held.next_seq.wrapping_add(candidate.payload);
    held.carried_flags |= candidate.word & (tcp_flags::FIN | tcp_flags::PSH);
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
        while let Some(packet) = burst.pop() {
            self.counters.receive(&packet);
            if let Err(packet) = self.receive_fast(packet, out, cache, tick) {
                self.receive_any(packet, out, cache, tick);
            }
        }
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
            self.flush_at = (self.held > 0).then(|| now + self.config.flush_timeout);
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
        self.held
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.counters.write(statistics);
    }
}
