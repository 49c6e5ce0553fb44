//! What receive and segmentation offload cost per wire packet.
//!
//! `cargo bench -p netcore-offload`. The figures of DESIGN §10, the peer's and callgrind's counts are in `docs/benchmarks.md`;
//! instructions are counted by `cargo run --release -p netcore-bench -- --instructions gro`.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use netcore::checksum::{Sum, sum};
use netcore::offload::{ReceiveOffload, Segmenter};
use netcore::{Burst, Features, Gso, GsoKind, Instant, PacketPool, PoolCache, PoolConfig, ReceiveChecksum};
use netcore_offload::{Gro, GroConfig, GroTable, SoftwareSegmenter};
use std::cell::RefCell;

/// Packets of one poll.
const BURST: usize = 64;

fn ethernet(host: u8) -> [u8; 14] {
    [2, 0, 0, 0, host, 1, 2, 0, 0, 0, host, 2, 8, 0]
}

fn ipv4(protocol: u8, payload: usize, id: u16, net: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend(((20 + payload) as u16).to_be_bytes());
    header.extend(id.to_be_bytes());
    header.extend([0x40, 0, 64, protocol, 0, 0, 198, 51, net, 1, 198, 51, net, 2]);
    let checksum = sum(&header).finish();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// A TCP segment with timestamps over IPv4, in VXLAN without outer checksum if asked for.
fn frame(flow: u16, seq: u32, id: u16, payload: usize, vxlan: bool) -> Vec<u8> {
    let mut tcp = flow.to_be_bytes().to_vec();
    tcp.extend([0x13, 0x89]);
    tcp.extend(seq.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8]);
    tcp.extend((0..payload).map(|i| i as u8));
    let pseudo = Sum::pseudo_ipv4([198, 51, 100, 1], [198, 51, 100, 2], 6, tcp.len() as u32);
    let checksum = pseudo.plus(sum(&tcp)).finish();
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    let plain = [&ethernet(1)[..], &ipv4(6, tcp.len(), id, 100), &tcp].concat();
    if !vxlan {
        return plain;
    }
    let mut udp = vec![0xc0, flow as u8, 0x12, 0xb5];
    udp.extend(((16 + plain.len()) as u16).to_be_bytes());
    udp.extend([0, 0, 8, 0, 0, 0, 0, 0, 42, 0]);
    udp.extend(plain);
    [&ethernet(2)[..], &ipv4(17, udp.len(), id, 7), &udp].concat()
}

fn name(vxlan: bool) -> &'static str {
    if vxlan { "VXLAN" } else { "TCP/IPv4" }
}

fn mss(vxlan: bool) -> usize {
    if vxlan { 1398 } else { 1448 }
}

/// One poll's packets as a device delivers them.
fn burst(frames: &[Vec<u8>], flows: usize, vouched: bool, cache: &mut PoolCache) -> Burst {
    let mut burst = Burst::with_capacity(frames.len());
    for (i, frame) in frames.iter().enumerate() {
        let mut packet = cache.copy_from_slice(frame).expect("the pool has room");
        if vouched {
            packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: 2 });
        }
        packet.set_hash(Some((i % flows) as u32 + 1), true);
        burst.push(packet);
    }
    burst
}

fn gro(c: &mut Criterion) {
    let pool = PacketPool::new(PoolConfig::with_buffers(2048)).expect("a pool");
    let mut group = c.benchmark_group("gro");
    group.throughput(Throughput::Elements(BURST as u64));
    for (vxlan, flows, vouched) in [
        (false, 1, true),
        (false, 8, true),
        (false, 64, true),
        (true, 1, true),
        (true, 8, true),
        (true, 64, true),
        (false, 1, false),
        (true, 1, false),
    ] {
        let frames: Vec<_> = (0..BURST)
            .map(|i| {
                let n = i / flows;
                frame((i % flows) as u16, (n * mss(vxlan)) as u32, n as u16, mss(vxlan), vxlan)
            })
            .collect();
        let mut config = GroConfig::default();
        if flows > 8 {
            config.table = GroTable::large();
        }
        let mut gro = Gro::new(config).expect("a valid configuration");
        let cache = RefCell::new(pool.cache());
        let checked = if vouched { "" } else { ", verified in software" };
        let id = BenchmarkId::new(format!("{}{checked}", name(vxlan)), format!("{flows} flows"));
        group.bench_function(id, |b| {
            b.iter_batched(
                || (burst(&frames, flows, vouched, &mut cache.borrow_mut()), Burst::with_capacity(BURST)),
                |(mut packets, mut out)| {
                    let cache = &mut cache.borrow_mut();
                    gro.receive(&mut packets, &mut out, cache, Instant::ZERO);
                    gro.end_poll(false, &mut out, cache, Instant::ZERO);
                    (packets, out)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn gso(c: &mut Criterion) {
    let pool = PacketPool::new(PoolConfig::with_buffers(2048)).expect("a pool");
    let mut group = c.benchmark_group("gso");
    const SEGMENTS: usize = 44;
    group.throughput(Throughput::Elements(SEGMENTS as u64));
    for (vxlan, features) in [
        (false, Features::TX_CHECKSUM_GENERIC),
        (true, Features::TX_CHECKSUM_GENERIC),
        (false, Features::empty()),
        (true, Features::empty()),
    ] {
        let bytes = frame(1, 1, 1, SEGMENTS * mss(vxlan), vxlan);
        let tunnel = if vxlan { GsoKind::UDP_TUNNEL } else { GsoKind::empty() };
        let gso = Gso { kind: GsoKind::TCPV4 | tunnel, size: mss(vxlan) as u16, segments: SEGMENTS as u16 };
        let cache = RefCell::new(pool.cache());
        let mut segmenter = SoftwareSegmenter::new();
        let computed = if features.is_empty() { "checksums computed" } else { "checksums left to the device" };
        group.bench_function(BenchmarkId::new(name(vxlan), computed), |b| {
            b.iter_batched(
                || {
                    let mut packet = cache.borrow_mut().copy_chain(&bytes).expect("the pool has room");
                    packet.set_gso(Some(gso));
                    (packet, Burst::with_capacity(SEGMENTS))
                },
                |(packet, mut out)| {
                    let cache = &mut cache.borrow_mut();
                    segmenter.segment(packet, features, cache, &mut out).expect("a valid super-packet");
                    out
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, gro, gso);
criterion_main!(benches);
