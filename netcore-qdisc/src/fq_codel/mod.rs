//! fq_codel: flows hashed to queues, served in turn, each under CoDel (RFC 8290; Linux: `net/sched/sch_fq_codel.c`).

mod codel;
mod options;

pub use options::FqCodelOptions;

use crate::packets::{Entering, FlowQueue, NIL, Packets};
use crate::wire::{flow_hash, set_ce, traffic_class, wire_len};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use codel::{Codel, Head, Parameters, Verdict, units};
use core::time::Duration;
use netcore::{Dequeue, DropReason, Drops, Instant, Packet, Qdisc, QdiscError, QdiscStatistics, Statistics};

const NAME: &str = "fq_codel";

/// What fq_codel counts itself (Linux: `tc_fq_codel_qd_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FqCodelCounters {
    /// Longest packet that left, bytes.
    pub maxpacket: u32,
    /// Packets dropped because there was no room.
    pub drop_overlimit: u64,
    /// Of these, because of `memory_limit`.
    pub drop_overmemory: u64,
    /// Packets marked instead of dropped.
    pub ecn_mark: u64,
    /// Packets marked because of `ce_threshold`.
    pub ce_mark: u64,
    /// How often a queue became active.
    pub new_flow_count: u64,
    /// Memory in use, bytes.
    pub memory_used: u64,
    /// Queues in the new list.
    pub new_flows_len: u32,
    /// Queues in the old list.
    pub old_flows_len: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    queue: FlowQueue,
    deficit: i64,
    backlog: u32,
    next: u32,
    listed: bool,
    codel: Codel,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    len: u32,
}

const EMPTY: List = List { first: NIL, last: NIL, len: 0 };

/// Fair queueing with CoDel. See the [module](self).
#[derive(Debug)]
pub struct FqCodel {
    options: FqCodelOptions,
    parameters: Parameters,
    flows: Vec<Flow>,
    packets: Packets,
    new: List,
    old: List,
    now: u64,
    len: usize,
    backlog: usize,
    memory: usize,
    statistics: QdiscStatistics,
    counters: FqCodelCounters,
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

fn parameters(options: &FqCodelOptions) -> Parameters {
    let mtu = FqCodelOptions::default().quantum;
    Parameters { target: units(nanos(options.target)), interval: units(nanos(options.interval)), mtu }
}

impl FqCodel {
    /// An empty qdisc.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`] if an option is out of range.
    pub fn new(options: FqCodelOptions) -> Result<Self, QdiscError> {
        let options = options.validated()?;
        let flow =
            Flow { queue: FlowQueue::new(), deficit: 0, backlog: 0, next: NIL, listed: false, codel: Codel::default() };
        Ok(Self {
            options,
            parameters: parameters(&options),
            flows: alloc::vec![flow; options.flows as usize],
            packets: Packets::new(),
            new: EMPTY,
            old: EMPTY,
            now: 0,
            len: 0,
            backlog: 0,
            memory: 0,
            statistics: QdiscStatistics::default(),
            counters: FqCodelCounters::default(),
        })
    }

    /// From the words of a `tc` command, for an MTU of 1500.
    ///
    /// # Errors
    /// [`QdiscError`].
    pub fn from_words(words: &[&str]) -> Result<Self, QdiscError> {
        Self::new(FqCodelOptions::default().with_words(words)?)
    }

    /// The options.
    pub fn config(&self) -> &FqCodelOptions {
        &self.options
    }

    /// Replaces all options; what no longer fits is dropped.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`]; nothing was changed. The number of queues cannot change.
    pub fn set_config(&mut self, options: FqCodelOptions, now: Instant, drops: &mut Drops) -> Result<(), QdiscError> {
        let options = options.validated()?;
        if options.flows != self.options.flows {
            return Err(QdiscError::InvalidValue {
                qdisc: NAME,
                option: "flows".to_string(),
                value: options.flows.to_string(),
                allowed: "what the qdisc was made with",
            });
        }
        self.now = self.now.max(now.as_nanos());
        self.options = options;
        self.parameters = parameters(&options);
        while self.len > options.limit as usize || self.memory > options.memory_limit as usize {
            let Some((packet, _)) = self.next_packet(drops) else { break };
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Reset);
        }
        Ok(())
    }

    /// fq_codel's own counters.
    pub fn counters(&self) -> FqCodelCounters {
        FqCodelCounters {
            memory_used: self.memory as u64,
            new_flows_len: self.new.len,
            old_flows_len: self.old.len,
            ..self.counters
        }
    }

    fn list(&mut self, new: bool) -> &mut List {
        if new { &mut self.new } else { &mut self.old }
    }

    fn push_back(&mut self, new: bool, flow: u32) {
        self.flows[flow as usize].next = NIL;
        self.flows[flow as usize].listed = true;
        let last = self.list(new).last;
        match last {
            NIL => self.list(new).first = flow,
            last => self.flows[last as usize].next = flow,
        }
        let list = self.list(new);
        list.last = flow;
        list.len += 1;
    }

    fn pop_first(&mut self, new: bool) {
        let first = self.list(new).first;
        let next = self.flows[first as usize].next;
        self.flows[first as usize].listed = false;
        let list = self.list(new);
        list.first = next;
        list.len -= 1;
        if next == NIL {
            list.last = NIL;
        }
    }

    /// Takes the first packet of a queue.
    fn take(&mut self, flow: usize) -> Option<(Packet, Entering)> {
        let f = &mut self.flows[flow];
        let index = self.packets.peek(&f.queue)?;
        let (packet, entering) = self.packets.pop(&mut f.queue, index)?;
        f.backlog -= entering.len;
        self.backlog -= entering.len as usize;
        self.memory -= packet.truesize();
        self.len -= 1;
        Some((packet, entering))
    }

    /// Drops half of the longest queue, at most `drop_batch` packets.
    fn make_room(&mut self, drops: &mut Drops) -> u64 {
        let mut fat = 0;
        for (n, flow) in self.flows.iter().enumerate() {
            if flow.backlog > self.flows[fat].backlog {
                fat = n;
            }
        }
        let enough = self.flows[fat].backlog / 2;
        let (mut dropped, mut bytes) = (0u32, 0u32);
        while dropped < self.options.drop_batch && (dropped == 0 || bytes < enough) {
            let Some((packet, entering)) = self.take(fat) else { break };
            bytes += entering.len;
            dropped += 1;
            drops.push(packet, DropReason::OverLimit);
        }
        let codel = &mut self.flows[fat].codel;
        codel.count = codel.count.wrapping_add(dropped);
        self.statistics.drops += u64::from(dropped);
        u64::from(dropped)
    }

    /// The packet that CoDel lets through next from a queue (Linux: `codel_dequeue`).
    fn through_codel(&mut self, flow: usize, drops: &mut Drops) -> Option<(Packet, Entering)> {
        let now = units(self.now);
        let mut taken = self.take(flow);
        let head = self.head(&taken);
        let mut verdict = self.flows[flow].codel.first(head, &self.parameters, now);
        while verdict == Verdict::MarkOrDrop {
            let (mut packet, entering) = taken?;
            if self.options.ecn && set_ce(&mut packet) {
                self.counters.ecn_mark += 1;
                self.flows[flow].codel.marked(&self.parameters, now);
                taken = Some((packet, entering));
                break;
            }
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Congested);
            taken = self.take(flow);
            let head = self.head(&taken);
            verdict = self.flows[flow].codel.dropped(head, &self.parameters, now);
        }
        let (mut packet, entering) = taken?;
        let late = self.options.ce_threshold.is_some_and(|most| self.flows[flow].codel.delay > units(nanos(most)));
        if late && self.selected(&packet) && set_ce(&mut packet) {
            self.counters.ce_mark += 1;
        }
        Some((packet, entering))
    }

    fn selected(&self, packet: &Packet) -> bool {
        let mask = self.options.ce_threshold_mask;
        mask == 0 || traffic_class(packet).is_some_and(|class| class & mask == self.options.ce_threshold_selector)
    }

    fn head(&mut self, taken: &Option<(Packet, Entering)>) -> Head {
        if let Some((_, entering)) = taken {
            self.counters.maxpacket = self.counters.maxpacket.max(entering.len);
        }
        Head { queued_at: taken.as_ref().map(|(_, entering)| units(entering.time)), backlog: self.backlog }
    }

    fn next_packet(&mut self, drops: &mut Drops) -> Option<(Packet, u32)> {
        loop {
            let new = self.new.first != NIL;
            let flow = self.list(new).first;
            if flow == NIL {
                return None;
            }
            if self.flows[flow as usize].deficit <= 0 {
                self.flows[flow as usize].deficit += i64::from(self.options.quantum);
                self.pop_first(new);
                self.push_back(false, flow);
                continue;
            }
            let Some((packet, entering)) = self.through_codel(flow as usize, drops) else {
                // An empty new queue passes through the old list, so that returning at once gives it no advantage.
                self.pop_first(new);
                if new && self.old.first != NIL {
                    self.push_back(false, flow);
                }
                continue;
            };
            self.flows[flow as usize].deficit -= i64::from(entering.len);
            return Some((packet, entering.len));
        }
    }
}

impl Qdisc for FqCodel {
    fn enqueue(&mut self, packet: Packet, now: Instant, drops: &mut Drops) {
        self.now = self.now.max(now.as_nanos());
        let flow = ((u64::from(flow_hash(&packet)) * u64::from(self.options.flows)) >> 32) as u32;
        let entering = Entering { time: self.now, len: wire_len(&packet), band: 0, stamped: false };
        self.memory += packet.truesize();
        self.len += 1;
        self.backlog += entering.len as usize;
        let f = &mut self.flows[flow as usize];
        f.backlog = f.backlog.saturating_add(entering.len);
        self.packets.push(&mut f.queue, packet, entering);
        if !f.listed {
            f.deficit = i64::from(self.options.quantum);
            self.counters.new_flow_count += 1;
            self.push_back(true, flow);
        }
        let over_memory = self.memory > self.options.memory_limit as usize;
        if self.len > self.options.limit as usize || over_memory {
            let dropped = self.make_room(drops);
            self.counters.drop_overlimit += dropped;
            self.counters.drop_overmemory += if over_memory { dropped } else { 0 };
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Dequeue {
        self.now = self.now.max(now.as_nanos());
        let Some((packet, len)) = self.next_packet(drops) else { return Dequeue::Empty };
        self.statistics.bytes += u64::from(len);
        self.statistics.packets += packet.wire_packets() as u64;
        Dequeue::Packet(packet)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn statistics(&self) -> QdiscStatistics {
        let mut statistics = self.statistics;
        statistics.qlen = self.len as u64;
        statistics.backlog = self.backlog as u64;
        statistics
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn reset(&mut self, drops: &mut Drops) {
        for packet in self.packets.clear() {
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Reset);
        }
        for flow in &mut self.flows {
            *flow = Flow {
                queue: FlowQueue::new(),
                deficit: 0,
                backlog: 0,
                next: NIL,
                listed: false,
                codel: Codel::default(),
            };
        }
        (self.new, self.old) = (EMPTY, EMPTY);
        (self.len, self.backlog, self.memory) = (0, 0, 0);
    }

    /// Options in `tc` syntax; those not named keep their values.
    fn change(&mut self, options: &[&str], now: Instant, drops: &mut Drops) -> Result<(), QdiscError> {
        self.set_config(self.options.with_words(options)?, now, drops)
    }

    fn options(&self) -> String {
        self.options.to_words()
    }

    fn extended_statistics(&self, statistics: &mut Statistics) {
        let c = self.counters();
        statistics.add("maxpacket", c.maxpacket.into());
        statistics.add("drop_overlimit", c.drop_overlimit);
        statistics.add("drop_overmemory", c.drop_overmemory);
        statistics.add("new_flow_count", c.new_flow_count);
        statistics.add("ecn_mark", c.ecn_mark);
        statistics.add("ce_mark", c.ce_mark);
        statistics.add("new_flows_len", c.new_flows_len.into());
        statistics.add("old_flows_len", c.old_flows_len.into());
        statistics.add("memory_used", c.memory_used);
    }
}
