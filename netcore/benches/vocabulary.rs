//! What the vocabulary costs: rings beside rtrb, pool, checksums by size, dissection.
//!
//! `cargo bench -p netcore`. Instructions are counted by `cargo xtask instructions`.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use netcore::checksum::{self, Sum};
use netcore::dissect::{TunnelPorts, dissect, layers};
use netcore::ring::{Mpmc, spsc};
use netcore::{Burst, FlowKey, PacketPool, PoolConfig};
use std::collections::VecDeque;
use std::hint::black_box;

fn checksums(c: &mut Criterion) {
    let mut group = c.benchmark_group("checksum");
    let bytes: Vec<u8> = (0..65_536).map(|i| (i * 31) as u8).collect();
    for len in [20, 40, 64, 128, 256, 576, 1448, 4096, 8948, 65_514] {
        group.throughput(Throughput::Bytes(len as u64));
        let part = &bytes[..len];
        group.bench_with_input(BenchmarkId::new("sum", len), part, |b, part| b.iter(|| checksum::sum(black_box(part))));
        group.bench_with_input(BenchmarkId::new("portable", len), part, |b, part| {
            b.iter(|| checksum::sum_portable(black_box(part)));
        });
    }
    group.finish();
    let mut group = c.benchmark_group("checksum update");
    group.bench_function("update16", |b| b.iter(|| checksum::update16(black_box(0x1234), black_box(7), black_box(9))));
    group.bench_function("pseudo-header and header", |b| {
        b.iter(|| {
            Sum::pseudo_ipv4(black_box([1; 4]), [2; 4], 6, 1460).plus(checksum::sum(black_box(&bytes[..32]))).finish()
        });
    });
    group.finish();
}

/// A TCP segment with timestamps over IPv4 or IPv6, in VXLAN or not; checksums are not filled in.
fn frame(v6: bool, vxlan: bool, tag: bool) -> Vec<u8> {
    let tcp =
        [&[0xac, 0x9e, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10][..], &[0; 108]]
            .concat();
    let ethernet = |ethertype: [u8; 2]| {
        let mut header = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if tag {
            header.extend([0x81, 0, 0, 5]);
        }
        header.extend(ethertype);
        header
    };
    let ip = |protocol: u8, payload: &[u8]| {
        let len = payload.len() as u16;
        let header = if v6 {
            [&[0x60, 0, 0, 0][..], &len.to_be_bytes(), &[protocol, 64], &[0x20; 32]].concat()
        } else {
            let mut header = vec![0x45, 0];
            header.extend((len + 20).to_be_bytes());
            header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
            header
        };
        [&header, payload].concat()
    };
    let ethertype = if v6 { [0x86, 0xdd] } else { [8, 0] };
    let inner = [ethernet(ethertype), ip(6, &tcp)].concat();
    if !vxlan {
        return inner;
    }
    let mut udp = vec![0xc0, 0, 0x12, 0xb5];
    udp.extend((16 + inner.len() as u16).to_be_bytes());
    udp.extend([0, 0, 8, 0, 0, 0, 0, 0, 42, 0]);
    udp.extend(&inner);
    [ethernet(ethertype), ip(17, &udp)].concat()
}

fn dissection(c: &mut Criterion) {
    let mut group = c.benchmark_group("dissect");
    let ports = TunnelPorts::default();
    for (name, frame) in [
        ("tcp4", frame(false, false, false)),
        ("tcp6", frame(true, false, false)),
        ("tagged tcp4", frame(false, false, true)),
        ("vxlan tcp4", frame(false, true, false)),
        ("vxlan tcp6", frame(true, true, false)),
    ] {
        // The result is looked at where it is: a copy would wait for its stores.
        group.bench_with_input(BenchmarkId::new("dissect", name), &frame, |b, frame| {
            b.iter(|| {
                black_box(&dissect(black_box(frame), &ports));
            });
        });
        group.bench_with_input(BenchmarkId::new("layers", name), &frame, |b, frame| {
            b.iter(|| layers(black_box(frame), &ports).count());
        });
        group.bench_with_input(BenchmarkId::new("flow key", name), &frame, |b, frame| {
            b.iter(|| {
                let d = dissect(black_box(frame), &ports);
                black_box(&FlowKey::of(frame, &d));
            });
        });
    }
    group.finish();
}

fn pool(c: &mut Criterion) {
    let mut group = c.benchmark_group("pool");
    let mut cache = PacketPool::new(PoolConfig::with_buffers(2048)).expect("a pool").cache();
    group.bench_function("get + put", |b| {
        b.iter(|| {
            let packet = black_box(cache.get().expect("the pool has room"));
            cache.put(packet);
        });
    });
    let mut burst = Burst::with_capacity(64);
    group.throughput(Throughput::Elements(32));
    group.bench_function("get + put, burst of 32", |b| {
        b.iter(|| {
            cache.get_burst(32, &mut burst);
            cache.put_burst(black_box(&mut burst));
        });
    });
    group.bench_function("get + drop, burst of 32", |b| {
        let full = || {
            let mut burst = Burst::with_capacity(32);
            cache.get_burst(32, &mut burst);
            burst
        };
        // So many bursts at once as the pool has packets for.
        b.iter_batched_ref(full, Burst::clear, BatchSize::NumIterations(32));
    });
    group.finish();
}

fn rings(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring");
    let (mut sender, mut receiver) = spsc::<u64>(1024).expect("a ring");
    let ring = Mpmc::<u64>::new(1024).expect("a ring");
    let (mut producer, mut consumer) = rtrb::RingBuffer::<u64>::new(1024);
    group.bench_function("spsc, one", |b| b.iter(|| (sender.send(black_box(7)).is_ok(), receiver.receive())));
    group.bench_function("rtrb, one", |b| b.iter(|| (producer.push(black_box(7)).is_ok(), consumer.pop().ok())));
    group.bench_function("mpmc, one", |b| b.iter(|| (ring.send(black_box(7)).is_ok(), ring.receive())));
    group.throughput(Throughput::Elements(32));
    let mut batch: VecDeque<u64> = (0..32).collect();
    let mut got: Vec<u64> = Vec::with_capacity(32);
    group.bench_function("spsc, batches of 32", |b| {
        b.iter(|| {
            sender.send_batch(&mut batch);
            receiver.receive_batch(&mut got, 32);
            batch.extend(black_box(&mut got).drain(..));
        });
    });
    group.bench_function("mpmc, batches of 32", |b| {
        b.iter(|| {
            ring.send_batch(&mut batch);
            ring.receive_batch(&mut got, 32);
            batch.extend(black_box(&mut got).drain(..));
        });
    });
    group.bench_function("rtrb, chunks of 32", |b| {
        b.iter(|| {
            if let Ok(chunk) = producer.write_chunk_uninit(32) {
                chunk.fill_from_iter(batch.drain(..));
            }
            if let Ok(chunk) = consumer.read_chunk(32) {
                batch.extend(black_box(chunk));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, checksums, dissection, pool, rings);
criterion_main!(benches);
