//! What is measured.

use crate::frames;
use netcore::offload::{ReceiveOffload, Segmenter};
use netcore::ring::{Mpmc, Receiver, Sender, spsc};
use netcore::{
    Burst, Features, Gso, GsoKind, Instant, Packet, PacketPool, PoolCache, PoolConfig, ReceiveChecksum, TunnelPorts,
};
use netcore_offload::{Gro, GroConfig, GroTable, SoftwareSegmenter};
use std::collections::VecDeque;
use std::hint::black_box;

/// One kind of operation, measured in batches.
pub(crate) trait Batch {
    /// Gets a batch ready, untimed; says how many operations it is.
    fn prepare(&mut self) -> usize;
    /// The operations.
    fn run(&mut self);
    /// Clears up, untimed.
    fn finish(&mut self) {}
}

/// A named batch, with the budget of the design in nanoseconds per operation.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) budget: Option<f64>,
    pub(crate) make: fn() -> Box<dyn Batch>,
}

macro_rules! workload {
    ($name:literal, $budget:expr, $make:expr) => {
        Workload { name: $name, budget: $budget, make: || Box::new($make) }
    };
}

pub(crate) fn all() -> Vec<Workload> {
    vec![
        workload!("gro tcp4, 1 flow", Some(8.0), GroBatch::new(1, false, true)),
        workload!("gro tcp4, 8 flows", Some(9.0), GroBatch::new(8, false, true)),
        workload!("gro tcp4, 64 flows", Some(12.0), GroBatch::new(64, false, true)),
        workload!("gro vxlan, 1 flow", Some(13.0), GroBatch::new(1, true, true)),
        workload!("gro vxlan, 8 flows", Some(14.0), GroBatch::new(8, true, true)),
        workload!("gro vxlan, 64 flows", Some(18.0), GroBatch::new(64, true, true)),
        workload!("gro tcp4, verifying 1448 bytes", Some(28.0), GroBatch::new(1, false, false)),
        workload!("gro vxlan, verifying 1398 bytes", None, GroBatch::new(1, true, false)),
        workload!("gso of a merged tcp4 segment", Some(10.0), GsoBatch::new(false, true)),
        workload!("gso of a merged vxlan segment", Some(13.0), GsoBatch::new(true, true)),
        workload!("gso of a 64 KB tcp4 chain", Some(10.0), GsoBatch::new(false, false)),
        workload!("gso of a 64 KB vxlan chain", Some(13.0), GsoBatch::new(true, false)),
        workload!("checksum 20 bytes", None, Checksum::new(20)),
        workload!("checksum 64 bytes", None, Checksum::new(64)),
        workload!("checksum 576 bytes", None, Checksum::new(576)),
        workload!("checksum 1448 bytes", Some(17.0), Checksum::new(1448)),
        workload!("checksum 8948 bytes", None, Checksum::new(8948)),
        workload!("checksum 65514 bytes", Some(1010.0), Checksum::new(65514)),
        workload!("dissect tcp4", Some(3.0), Dissect::new(false)),
        workload!("dissect vxlan tcp4", Some(5.0), Dissect::new(true)),
        workload!("dissect tagged tcp4", None, Dissect::with_tag()),
        workload!("pool get + put", Some(1.5), Pool::new(1)),
        workload!("pool get + put, bursts of 32", Some(0.4), Pool::new(32)),
        workload!("ring spsc, one value", None, Spsc::new(1)),
        workload!("ring spsc, batches of 32", None, Spsc::new(32)),
        workload!("ring mpmc, one value", None, MpmcBatch::new(1)),
        workload!("ring mpmc, batches of 32", None, MpmcBatch::new(32)),
        workload!("packet move through a burst", None, Move::new()),
        workload!("packet share + put", None, Share::new()),
    ]
}

fn pool() -> PacketPool {
    PacketPool::new(PoolConfig::with_buffers(2048)).expect("a pool of 2048 buffers")
}

/// Bursts of 64 frames, as many flows as asked for, interleaved.
struct GroBatch {
    cache: PoolCache,
    gro: Gro,
    frames: Vec<Vec<u8>>,
    flows: usize,
    verified: bool,
    burst: Burst,
    out: Burst,
}

impl GroBatch {
    fn new(flows: usize, vxlan: bool, verified: bool) -> Self {
        let payload = if vxlan { 1398 } else { 1448 };
        let frames = (0..64)
            .map(|i| {
                let n = (i / flows) as u32;
                frames::tcp((i % flows) as u16, n * payload as u32, n as u16, payload, vxlan)
            })
            .collect();
        let mut config = GroConfig::default();
        if flows > 8 {
            config.table = GroTable::large();
        }
        let gro = Gro::new(config).expect("a valid configuration");
        Self { cache: pool().cache(), gro, frames, flows, verified, burst: Burst::new(), out: Burst::new() }
    }
}

impl Batch for GroBatch {
    fn prepare(&mut self) -> usize {
        for (i, frame) in self.frames.iter().enumerate() {
            let mut packet = self.cache.get().expect("the pool has room");
            let bytes = packet.put(frame.len()).expect("a frame fits into a buffer");
            // A device writes the whole frame, but into memory, not into the first cache; so nobody touches payload here unless
            // it is to be verified.
            let touched = if self.verified { 160 } else { frame.len() };
            bytes[..touched].copy_from_slice(&frame[..touched]);
            if self.verified {
                packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: 2 });
            }
            // Not 0, which stands for "no hash".
            packet.set_hash(Some((i % self.flows) as u32 + 1), true);
            self.burst.push(packet);
        }
        self.frames.len()
    }

    fn run(&mut self) {
        self.gro.receive(&mut self.burst, &mut self.out, &mut self.cache, Instant::ZERO);
        self.gro.end_poll(false, &mut self.out, &mut self.cache, Instant::ZERO);
    }

    fn finish(&mut self) {
        self.cache.put_burst(&mut self.out);
    }
}

/// One super-packet into its segments, checksums left to the device.
struct GsoBatch {
    cache: PoolCache,
    segmenter: SoftwareSegmenter,
    merged: Option<GroBatch>,
    bytes: Vec<u8>,
    gso: Gso,
    packet: Option<Packet>,
    out: Burst,
}

impl GsoBatch {
    fn new(vxlan: bool, merged: bool) -> Self {
        let size: usize = if vxlan { 1398 } else { 1448 };
        let tunnel = if vxlan { GsoKind::UDP_TUNNEL } else { GsoKind::empty() };
        Self {
            cache: pool().cache(),
            segmenter: SoftwareSegmenter::new(),
            merged: merged.then(|| GroBatch::new(1, vxlan, true)),
            bytes: frames::tcp(1, 1, 1, 44 * size, vxlan),
            gso: Gso { kind: GsoKind::TCPV4 | tunnel, size: size as u16, segments: 44 },
            packet: None,
            out: Burst::new(),
        }
    }
}

impl Batch for GsoBatch {
    fn prepare(&mut self) -> usize {
        let packet = match &mut self.merged {
            Some(gro) => {
                gro.prepare();
                gro.run();
                let packet = gro.out.pop().expect("one aggregate at least");
                gro.cache.put_burst(&mut gro.out);
                core::mem::swap(&mut gro.cache, &mut self.cache);
                packet
            }
            None => {
                let mut packet = self.cache.copy_chain(&self.bytes).expect("the pool has room");
                packet.set_gso(Some(self.gso));
                packet
            }
        };
        let n = packet.wire_packets();
        self.packet = Some(packet);
        n
    }

    fn run(&mut self) {
        if let Some(packet) = self.packet.take() {
            let features = Features::TX_CHECKSUM_GENERIC;
            let result = self.segmenter.segment(packet, features, &mut self.cache, &mut self.out);
            black_box(result.expect("a valid super-packet"));
        }
    }

    fn finish(&mut self) {
        self.cache.put_burst(&mut self.out);
        if let Some(gro) = &mut self.merged {
            core::mem::swap(&mut gro.cache, &mut self.cache);
        }
    }
}

struct Checksum {
    bytes: Vec<u8>,
    repeat: usize,
}

impl Checksum {
    fn new(len: usize) -> Self {
        Self { bytes: (0..len).map(|i| (i * 31) as u8).collect(), repeat: (20_000 / len).clamp(1, 200) }
    }
}

impl Batch for Checksum {
    fn prepare(&mut self) -> usize {
        self.repeat
    }

    fn run(&mut self) {
        for _ in 0..self.repeat {
            black_box(netcore::checksum::sum(black_box(&self.bytes)).fold());
        }
    }
}

struct Dissect {
    frames: Vec<Vec<u8>>,
    ports: TunnelPorts,
}

impl Dissect {
    fn new(vxlan: bool) -> Self {
        let frames = (0..64).map(|i| frames::tcp(i, u32::from(i), i, 100, vxlan)).collect();
        Self { frames, ports: TunnelPorts::default() }
    }

    /// What the path for the most frequent frames does not take.
    fn with_tag() -> Self {
        let mut this = Self::new(false);
        this.frames.iter_mut().for_each(|frame| drop(frame.splice(12..12, [0x81, 0, 0, 5])));
        this
    }
}

impl Batch for Dissect {
    fn prepare(&mut self) -> usize {
        self.frames.len()
    }

    fn run(&mut self) {
        for frame in &self.frames {
            black_box(&netcore::dissect(black_box(frame), &self.ports));
        }
    }
}

/// Values through a ring on one thread: what the ring itself costs.
struct Spsc {
    sender: Sender<u64>,
    receiver: Receiver<u64>,
    batch: VecDeque<u64>,
    got: Vec<u64>,
}

impl Spsc {
    fn new(size: u64) -> Self {
        let (sender, receiver) = spsc(1024).expect("a ring of 1024 values");
        Self { sender, receiver, batch: (0..size).collect(), got: Vec::with_capacity(32) }
    }
}

impl Batch for Spsc {
    fn prepare(&mut self) -> usize {
        512
    }

    fn run(&mut self) {
        if self.batch.len() == 1 {
            for _ in 0..512 {
                let _ = black_box(self.sender.send(black_box(7)));
                black_box(self.receiver.receive());
            }
        } else {
            for _ in 0..512 / self.batch.len() {
                self.sender.send_batch(&mut self.batch);
                self.receiver.receive_batch(&mut self.got, 32);
                self.batch.extend(black_box(&mut self.got).drain(..));
            }
        }
    }
}

/// As [`Spsc`], through a ring for many threads.
struct MpmcBatch {
    ring: Mpmc<u64>,
    batch: VecDeque<u64>,
    got: Vec<u64>,
}

impl MpmcBatch {
    fn new(size: u64) -> Self {
        let ring = Mpmc::new(1024).expect("a ring of 1024 values");
        Self { ring, batch: (0..size).collect(), got: Vec::with_capacity(32) }
    }
}

impl Batch for MpmcBatch {
    fn prepare(&mut self) -> usize {
        512
    }

    fn run(&mut self) {
        if self.batch.len() == 1 {
            for _ in 0..512 {
                let _ = black_box(self.ring.send(black_box(7)));
                black_box(self.ring.receive());
            }
        } else {
            for _ in 0..512 / self.batch.len() {
                self.ring.send_batch(&mut self.batch);
                self.ring.receive_batch(&mut self.got, 32);
                self.batch.extend(black_box(&mut self.got).drain(..));
            }
        }
    }
}

struct Pool {
    cache: PoolCache,
    burst: Burst,
    size: usize,
}

impl Pool {
    fn new(size: usize) -> Self {
        Self { cache: pool().cache(), burst: Burst::with_capacity(64), size }
    }
}

impl Batch for Pool {
    fn prepare(&mut self) -> usize {
        512
    }

    fn run(&mut self) {
        if self.size == 1 {
            for _ in 0..512 {
                let packet = black_box(self.cache.get().expect("the pool has room"));
                self.cache.put(packet);
            }
        } else {
            for _ in 0..512 / self.size {
                self.cache.get_burst(self.size, &mut self.burst);
                black_box(&mut self.burst);
                self.cache.put_burst(&mut self.burst);
            }
        }
    }
}

struct Move {
    a: Burst,
    b: Burst,
}

impl Move {
    fn new() -> Self {
        let mut cache = pool().cache();
        let mut a = Burst::new();
        cache.get_burst(64, &mut a);
        Self { a, b: Burst::with_capacity(64) }
    }
}

impl Batch for Move {
    fn prepare(&mut self) -> usize {
        64
    }

    fn run(&mut self) {
        while let Some(packet) = self.a.pop() {
            self.b.push(black_box(packet));
        }
    }

    fn finish(&mut self) {
        core::mem::swap(&mut self.a, &mut self.b);
    }
}

struct Share {
    cache: PoolCache,
    packet: Packet,
}

impl Share {
    fn new() -> Self {
        let mut cache = pool().cache();
        let packet = cache.copy_from_slice(&[1; 1000]).expect("the pool has room");
        Self { cache, packet }
    }
}

impl Batch for Share {
    fn prepare(&mut self) -> usize {
        64
    }

    fn run(&mut self) {
        for _ in 0..64 {
            let copy = black_box(self.packet.share(&mut self.cache)).expect("the pool has windows");
            self.cache.put(copy);
        }
    }
}
