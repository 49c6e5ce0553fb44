//! What one packet costs with 1 to a million flows, beside a binary heap and a generic timer wheel in the same run.
//!
//! `cargo bench -p netcore-qdisc`. With `TABLE=<batches>` a table gives the least and the median cost of each
//! case over whole rounds of its flows. With `COUNT=<name>` the named case runs one round, for callgrind
//! (`--toggle-collect=*timed_batch*`), and prints its number of packets.
//!
//! One operation is a dequeue and the enqueue of the same packet again, so every flow always has one packet. "touch" does
//! nothing but visit as much memory per packet, in an order as random: what is left of the growth with flows is the cache's.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::quad_wheel::{PruneDecision, QuadWheelWithOverflow};
use netcore::{Dequeue, Drops, Instant, Packet, PacketPool, PoolConfig, Qdisc, Rate};
use netcore_qdisc::{Fq, FqOptions};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

const FLOWS: [usize; 4] = [1, 1_000, 100_000, 1_000_000];
const BATCH: usize = 4096;
const LEN: usize = 1514;

trait Subject {
    /// One packet out and in again.
    fn packet(&mut self);
}

/// Rates of throttled flows: mixed over a factor of sixteen, all flows together ten million packets per second.
fn rate(flow: usize, flows: usize) -> u64 {
    let each = 10_000_000 * LEN as u64 / flows as u64;
    (each * (1 + (flow as u64 * 7) % 16) / 8).max(1)
}

fn packets(flows: usize, throttled: bool) -> Vec<Packet> {
    let config = PoolConfig { windows: flows + 1024, ..PoolConfig::with_buffers(64) };
    let mut cache = PacketPool::new(config).unwrap().cache();
    (0..flows)
        .map(|flow| {
            let mut packet = cache.virtual_bytes(LEN).unwrap();
            packet.set_flow_id(Some(flow as u64 * 64));
            packet.set_hash(Some(flow as u32), true);
            let bytes = if throttled { rate(flow, flows) } else { u64::MAX - 1 };
            packet.set_pacing_rate(Some(Rate::from_bytes_per_sec(bytes)));
            packet
        })
        .collect()
}

struct Ours {
    fq: Fq,
    now: u64,
    drops: Drops,
}

impl Ours {
    fn new(flows: usize, throttled: bool) -> Self {
        let options = FqOptions {
            limit: u32::MAX,
            pacing: throttled,
            // Every packet is paced alone.
            low_rate_threshold: Rate::from_bytes_per_sec(if throttled { u64::MAX } else { 0 }),
            initial_quantum: if throttled { 0 } else { 15_140 },
            ..FqOptions::default()
        };
        let mut this = Self { fq: Fq::new(options).unwrap(), now: 1_000_000_000, drops: Drops::new() };
        for packet in packets(flows, throttled) {
            this.fq.enqueue(packet, Instant::from_nanos(this.now), &mut this.drops);
        }
        // Let every flow settle into its own phase.
        for _ in 0..3 * flows {
            this.packet();
        }
        this
    }
}

impl Subject for Ours {
    fn packet(&mut self) {
        loop {
            match self.fq.dequeue(Instant::from_nanos(self.now), &mut self.drops) {
                Dequeue::Packet(packet) => {
                    return self.fq.enqueue(packet, Instant::from_nanos(self.now), &mut self.drops);
                }
                Dequeue::Throttled(until) => self.now = until.as_nanos(),
                Dequeue::Empty => return,
            }
        }
    }
}

/// Flows in a heap by time: the least that a paced queue over a heap does.
struct Heap {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    queued: Vec<Option<Packet>>,
    now: u64,
}

impl Heap {
    fn new(flows: usize) -> Self {
        let queued: Vec<_> = packets(flows, true).into_iter().map(Some).collect();
        let heap = (0..flows).map(|flow| Reverse((flow as u64, flow as u32))).collect();
        let mut this = Self { heap, queued, now: 0 };
        for _ in 0..3 * flows {
            this.packet();
        }
        this
    }
}

impl Subject for Heap {
    fn packet(&mut self) {
        let Some(Reverse((time, flow))) = self.heap.pop() else { return };
        self.now = self.now.max(time);
        let packet = self.queued[flow as usize].take().unwrap();
        let delay = packet.pacing_rate().and_then(|r| r.nanos_for(packet.len() as u64)).unwrap_or(0);
        let packet = black_box(packet);
        self.queued[flow as usize] = Some(packet);
        self.heap.push(Reverse((self.now + delay, flow)));
    }
}

/// Flows in a generic hierarchical wheel with ticks of 1 ms; its ticks are taken for 100 ns here.
struct Generic {
    wheel: QuadWheelWithOverflow<u32>,
    due: Vec<u32>,
    queued: Vec<Option<Packet>>,
}

impl Generic {
    fn new(flows: usize) -> Self {
        let queued: Vec<_> = packets(flows, true).into_iter().map(Some).collect();
        let mut this = Self {
            wheel: QuadWheelWithOverflow::new(|_: &u32| PruneDecision::Keep),
            due: (0..flows as u32).collect(),
            queued,
        };
        for _ in 0..3 * flows {
            this.packet();
        }
        this
    }
}

impl Subject for Generic {
    fn packet(&mut self) {
        while self.due.is_empty() {
            if let Skip::Millis(ticks) = self.wheel.can_skip() {
                self.wheel.skip(ticks);
            }
            self.due.extend(self.wheel.tick());
        }
        let Some(flow) = self.due.pop() else { return };
        let packet = self.queued[flow as usize].take().unwrap();
        let delay = packet.pacing_rate().and_then(|r| r.nanos_for(packet.len() as u64)).unwrap_or(0);
        let packet = black_box(packet);
        self.queued[flow as usize] = Some(packet);
        let ticks = (delay / 100).max(1);
        if self.wheel.insert_with_delay(flow, Duration::from_millis(ticks)).is_err() {
            self.due.push(flow);
        }
    }
}

/// As much memory as fq visits per packet, each place known only once the one before was read: a slot of the index, the flow,
/// the node of the queue, the packet's two lines; in random order.
struct Touch {
    index: Vec<u32>,
    flows: Vec<[u64; 8]>,
    nodes: Vec<[u64; 5]>,
    packets: Vec<[u64; 16]>,
    at: usize,
}

impl Touch {
    fn new(flows: usize) -> Self {
        Self {
            index: (0..2 * flows as u32).map(|n| n / 2).collect(),
            flows: (0..flows as u64).map(|n| [n; 8]).collect(),
            nodes: (0..flows as u64).map(|n| [n; 5]).collect(),
            packets: (0..flows as u64).map(|n| [n; 16]).collect(),
            at: 0,
        }
    }
}

impl Subject for Touch {
    fn packet(&mut self) {
        let count = self.flows.len();
        // A full-period generator over the next power of two (Hull and Dobell), folded.
        self.at =
            (self.at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & (count.next_power_of_two() - 1)) % count;
        let flow = self.index[2 * self.at] as usize;
        let node = self.flows[flow][0] as usize;
        self.flows[flow][1] += 1;
        let packet = self.nodes[node][0] as usize;
        self.nodes[node][1] += 1;
        self.packets[packet][1] += 1;
        self.packets[packet][8] += 1;
        self.at = self.packets[packet][0] as usize;
    }
}

type Make = Box<dyn Fn() -> Box<dyn Subject>>;

fn cases() -> Vec<(String, Make)> {
    let mut cases: Vec<(String, Make)> = Vec::new();
    for flows in FLOWS {
        cases.push((format!("fq unthrottled/{flows}"), Box::new(move || Box::new(Ours::new(flows, false)))));
        cases.push((format!("fq throttled/{flows}"), Box::new(move || Box::new(Ours::new(flows, true)))));
        cases.push((format!("binary heap/{flows}"), Box::new(move || Box::new(Heap::new(flows)))));
        cases.push((format!("generic wheel/{flows}"), Box::new(move || Box::new(Generic::new(flows)))));
        cases.push((format!("touch/{flows}"), Box::new(move || Box::new(Touch::new(flows)))));
    }
    cases
}

#[inline(never)]
fn timed_batch(subject: &mut dyn Subject) {
    for _ in 0..BATCH {
        subject.packet();
    }
}

/// Batches in which every flow has its turn about once: what is moved for many packets at a time is paid for by them.
fn round(name: &str) -> usize {
    let flows: usize = name.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(1);
    flows.div_ceil(BATCH)
}

/// Nanoseconds of a clock. Rounds of many milliseconds are measured in what this thread has run, which is counted in ticks, so
/// that others on the machine are not counted; short ones in time.
fn clock(round: usize) -> u64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    let run = || std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok();
    let elapsed = START.elapsed().as_nanos() as u64;
    if round < 200 { elapsed } else { run().unwrap_or(elapsed) }
}

fn table(batches: usize) {
    println!("{:<24} {:>10} {:>10}", "ns per packet", "least", "median");
    for (name, make) in cases() {
        let mut subject = make();
        let round = round(&name);
        let mut costs: Vec<f64> = (0..(batches / round).max(5))
            .map(|_| {
                let began = clock(round);
                for _ in 0..round {
                    timed_batch(&mut *subject);
                }
                (clock(round) - began) as f64 / (round * BATCH) as f64
            })
            .collect();
        costs.sort_by(f64::total_cmp);
        println!("{name:<24} {:>10.1} {:>10.1}", costs[0], costs[costs.len() / 2]);
    }
}

fn benches(c: &mut Criterion) {
    if let Ok(batches) = std::env::var("TABLE") {
        table(batches.parse().unwrap_or(200));
        std::process::exit(0);
    }
    if let Ok(name) = std::env::var("COUNT") {
        let (_, make) = cases().into_iter().find(|(n, _)| *n == name).expect("a case of this name");
        let mut subject = make();
        let round = round(&name);
        for _ in 0..round {
            timed_batch(&mut *subject);
        }
        println!("{}", round * BATCH);
        std::process::exit(0);
    }
    let mut group = c.benchmark_group("flows");
    group.throughput(Throughput::Elements(BATCH as u64)).sample_size(20);
    for (name, make) in cases() {
        let mut subject = make();
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| timed_batch(&mut *subject)));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
