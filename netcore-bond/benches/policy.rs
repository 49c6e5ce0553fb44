//! What it costs to choose a member: ns per packet for each policy, a plain TCP packet and one in VXLAN, four members.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use netcore::{Burst, LinkState, Member, Packet, PacketPool, PoolConfig, XmitPolicy};
use netcore_bond::options::XmitHashPolicy;
use netcore_bond::policy::{Hash, RoundRobin};
use std::hint::black_box;

const PACKETS: usize = 64;

type Select = Box<dyn FnMut(&Packet) -> Option<usize>>;

fn tcp(n: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x9c, n, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend([0; 20]);
    frame
}

fn vxlan(n: u8) -> Vec<u8> {
    let inner = tcp(n);
    let mut frame = vec![2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4, 8, 0];
    frame.extend([0x45, 0, 0, 110, 0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
    frame.extend([0xc0, n, 0x12, 0xb5, 0, 90, 0, 0, 8, 0, 0, 0, 0, 0, 42, 0]);
    frame.extend(inner);
    frame
}

fn policies(c: &mut Criterion) {
    let mut cache = PacketPool::new(PoolConfig::with_buffers(256)).unwrap().cache();
    let members: Vec<Member> = (0..4).map(|id| Member { id, active: true, link: LinkState::up(10_000) }).collect();
    for (kind, make) in [("plain", tcp as fn(u8) -> Vec<u8>), ("vxlan", vxlan)] {
        let mut group = c.benchmark_group(kind);
        group.throughput(Throughput::Elements(PACKETS as u64));
        let packets: Vec<Packet> = (0..PACKETS).map(|n| cache.copy_from_slice(&make(n as u8)).unwrap()).collect();
        let mut all: Vec<(String, Select)> = Vec::new();
        let of = members.clone();
        let mut rr = RoundRobin::new(1, 1);
        all.push(("balance-rr".into(), Box::new(move |packet| rr.select(packet, &of))));
        for policy in XmitHashPolicy::ALL {
            let (mut hash, of) = (Hash::new(*policy), members.clone());
            all.push((policy.to_string(), Box::new(move |packet| hash.select(packet, &of))));
        }
        for (name, mut select) in all {
            group.bench_function(name, |b| {
                b.iter(|| packets.iter().map(|packet| black_box(select(packet)).unwrap_or(0)).sum::<usize>());
            });
        }
        group.finish();
    }
    // A burst through the trait, as a bond's caller would use it.
    let mut burst = Burst::new();
    (0..PACKETS).for_each(|n| burst.push(cache.copy_from_slice(&tcp(n as u8)).unwrap()));
    let mut dynamic: Box<dyn XmitPolicy> = Box::new(Hash::new(XmitHashPolicy::Layer34));
    let mut group = c.benchmark_group("burst");
    group.throughput(Throughput::Elements(PACKETS as u64));
    group.bench_function("layer3+4", |b| {
        b.iter_batched_ref(
            Vec::new,
            |chosen| dynamic.select_burst(&burst, &members, chosen),
            BatchSize::NumIterations(1000),
        );
    });
    group.finish();
}

criterion_group!(benches, policies);
criterion_main!(benches);
