//! Cutting what was merged gives the frames back byte for byte and, flow by flow, in order: TCP and UDP over both IP versions,
//! under VLAN tags and any nesting of tunnels, with reordering, loss, duplicates, damage and every field changed now and then.

mod common;

use common::random::{Mix, Rng, burst};
use common::stack::{Stack, Wrap};
use netcore::offload::{ReceiveOffload, Segmenter};
use netcore::packet::PartialChecksum;
use netcore::{Burst, Features, Gso, GsoKind, Instant, Packet, PacketPool, PoolCache, PoolConfig, ReceiveChecksum};
use netcore_offload::{Gro, GroConfig, GroTable, SoftwareSegmenter, UdpGro};
use proptest::prelude::*;
use std::collections::HashMap;

/// What receive offload tells flows apart by, besides what is the same in all packets here.
fn flow(packet: &Stack) -> String {
    let t = &packet.tcp;
    let label = if t.v6 { t.flow_label } else { 0 };
    let mut key = format!("{} {} {} {} {label} {:?}", packet.udp, t.v6, t.sport, t.dport, t.vlan);
    for wrap in &packet.wraps {
        key += &match wrap {
            Wrap::Vxlan { outer, vni, sport, checksum, .. } => format!(" vxlan {} {vni} {sport} {checksum}", outer.v6),
            Wrap::Geneve { outer, vni, sport, checksum, options, flags } => {
                format!(" geneve {} {vni} {sport} {checksum} {options:?} {flags}", outer.v6)
            }
            Wrap::Gre { outer, key, checksum, ethernet } => format!(" gre {} {key:?} {checksum} {ethernet}", outer.v6),
            Wrap::Ip { outer } => format!(" ip {}", outer.v6),
        };
    }
    key
}

/// Packets that go up at once and so overtake what is held of their flow, as in Linux: damaged ones, and datagrams that the
/// kernel does not merge.
fn overtakes(packet: &Stack) -> bool {
    let damaged = packet.wraps.iter().any(|wrap| matches!(wrap, Wrap::Vxlan { bad: true, .. }));
    damaged || packet.tcp.bad_checksum || packet.udp && (packet.no_checksum || packet.tcp.payload.is_empty())
}

struct Run {
    merged: usize,
    frames: Vec<Vec<u8>>,
    delivered: Vec<(usize, Option<Gso>)>,
}

fn run(config: &GroConfig, frames: &[Vec<u8>], fast: bool, complete: bool, cache: &mut PoolCache) -> Run {
    let mut gro = Gro::new(config.clone()).unwrap();
    if !fast {
        gro = gro.without_fast_path();
    }
    let (mut poll, mut up, mut wire) = (Burst::new(), Burst::new(), Burst::new());
    for frame in frames {
        let mut packet = cache.copy_chain(frame).unwrap();
        if complete {
            let word = netcore::checksum::sum(&frame[14..]).fold();
            packet.set_receive_checksum(ReceiveChecksum::Complete(word));
        }
        poll.push(packet);
    }
    gro.receive(&mut poll, &mut up, cache, Instant::ZERO);
    gro.end_poll(false, &mut up, cache, Instant::ZERO);
    let merged = gro.counters().merged as usize;
    let delivered = up.iter().map(|packet| (packet.len(), packet.gso())).collect();
    let mut segmenter = SoftwareSegmenter::new();
    while let Some(packet) = up.pop() {
        let kind = packet.gso();
        let cut = segmenter.segment(packet, Features::empty(), cache, &mut wire);
        assert!(cut.is_ok(), "{kind:?}: {:?}", cut.err().map(|refused| refused.error));
    }
    let frames = wire.iter().map(Packet::to_vec).collect();
    cache.put_burst(&mut wire);
    Run { merged, frames, delivered }
}

fn check(seed: u64) -> (usize, usize) {
    let mut rng = Rng(seed);
    let mix = Mix { vxlan: true, other_tunnels: true, nested: true, udp: true, vlan: true, disorder: true };
    let packets = burst(&mut rng, &mix);
    let frames: Vec<_> = packets.iter().map(Stack::frame).collect();
    let mut config = GroConfig::default();
    config.max_tunnels = 1 + rng.below(3) as usize;
    config.udp = if rng.one_in(2) { UdpGro::All } else { UdpGro::Off };
    config.flow_counters = 64;
    if rng.one_in(2) {
        config.table = GroTable::large();
    }
    // The rules of 2015 do not look at outer identifications, so cutting need not give them back.
    let old = rng.one_in(8);
    if old {
        config.rules = netcore_offload::GroRules::linux_4_0();
    }
    let complete = rng.one_in(3);
    let pool = PacketPool::new(PoolConfig { windows: 1024, ..PoolConfig::with_buffers(256) }).unwrap();
    let mut cache = pool.cache();
    let fast = run(&config, &frames, true, complete, &mut cache);
    let slow = run(&config, &frames, false, complete, &mut cache);
    assert_eq!(fast.delivered, slow.delivered, "seed {seed}: the fast path delivers something else");
    assert_eq!(fast.frames, slow.frames, "seed {seed}");
    if old {
        return (frames.len(), fast.merged);
    }
    // Nothing is lost, nothing is made up, not a byte is changed.
    let (mut sent, mut came) = (frames.clone(), fast.frames.clone());
    sent.sort();
    came.sort();
    if sent != came {
        let hex = |frame: &Vec<u8>| frame.iter().take(160).map(|byte| format!("{byte:02x}")).collect::<String>();
        let lost: Vec<_> = sent.iter().filter(|frame| !came.contains(frame)).take(3).map(hex).collect();
        let new: Vec<_> = came.iter().filter(|frame| !sent.contains(frame)).take(3).map(hex).collect();
        panic!("seed {seed}: sent {} came {}\nlost {lost:#?}\nnew {new:#?}", sent.len(), came.len());
    }
    // Flow by flow in order.
    let known: HashMap<&[u8], &Stack> = frames.iter().map(Vec::as_slice).zip(&packets).collect();
    let order = |frames: &[Vec<u8>]| {
        let mut flows: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
        for frame in frames {
            let packet = known[frame.as_slice()];
            if !overtakes(packet) {
                flows.entry(flow(packet)).or_default().push(frame.clone());
            }
        }
        flows
    };
    assert!(order(&frames) == order(&fast.frames), "seed {seed}: a flow's own order is not kept");
    (frames.len(), fast.merged)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn cutting_what_was_merged_gives_every_frame_back_in_its_flows_order(seed in any::<u64>()) {
        check(seed);
    }
}

/// The random bursts do merge, or the test above would say nothing.
#[test]
fn random_bursts_merge() {
    let (mut frames, mut merged) = (0, 0);
    let cases = std::env::var("NETCORE_IDENTITY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    for seed in 0..cases {
        survive(seed);
        let (f, m) = check(seed);
        frames += f;
        merged += m;
    }
    assert!(merged * 6 > frames, "{merged} of {frames} frames merged");
}

/// Frames with bits changed, cut short or padded, some of them marked as super-packets of any kind: nothing panics, every
/// packet is delivered, and segmentation cuts it or gives it back.
fn survive(seed: u64) {
    let mut rng = Rng(seed);
    let mix = Mix { vxlan: true, other_tunnels: true, nested: true, udp: true, vlan: true, disorder: true };
    let mut config = GroConfig::default();
    config.max_tunnels = rng.below(4) as usize;
    config.udp = UdpGro::All;
    config.max_size = rng.pick(&[1000, 65_536, 500_000]);
    config.flow_counters = 8;
    let pool = PacketPool::new(PoolConfig { windows: 1024, ..PoolConfig::with_buffers(256) }).unwrap();
    let mut cache = pool.cache();
    let mut gro = Gro::new(config).unwrap();
    let (mut poll, mut up, mut wire) = (Burst::new(), Burst::new(), Burst::new());
    let mut total = 0;
    for packet in burst(&mut rng, &mix) {
        let mut frame = packet.frame();
        for _ in 0..rng.below(3) {
            // Headers rather than payload.
            let at = rng.below(frame.len().min(140) as u64) as usize;
            frame[at] ^= 1 << rng.below(8);
        }
        match rng.below(12) {
            0 => frame.truncate(rng.below(frame.len() as u64) as usize),
            1 => frame.resize(frame.len() + rng.below(20) as usize, 0),
            _ => {}
        }
        let split = rng.below(frame.len() as u64 + 1) as usize;
        let mut packet = cache.copy_chain(&frame[..split]).unwrap();
        if split < frame.len() {
            packet.append(cache.copy_chain(&frame[split..]).unwrap()).unwrap();
        }
        if rng.one_in(4) {
            packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: 1 + rng.below(4) as u8 });
        }
        if rng.one_in(8) {
            let kind = GsoKind::from_bits_truncate(rng.next() as u16);
            packet.set_gso(Some(Gso { kind, size: rng.next() as u16, segments: rng.next() as u16 }));
        }
        if rng.one_in(16) {
            let start = rng.below(100) as u16;
            packet.set_transmit_checksum(Some(PartialChecksum { start, offset: rng.pick(&[6, 16]) }));
        }
        total += 1;
        poll.push(packet);
    }
    gro.receive(&mut poll, &mut up, &mut cache, Instant::ZERO);
    gro.end_poll(false, &mut up, &mut cache, Instant::ZERO);
    let counters = gro.counters();
    assert_eq!(counters.merged + counters.packets_out, total, "seed {seed}");
    assert_eq!(counters.packets_out, up.len() as u64, "seed {seed}");
    let mut segmenter = SoftwareSegmenter::new();
    while let Some(packet) = up.pop() {
        // A super-packet of one-byte segments may take more buffers than there are; then it comes back.
        if let Err(refused) = segmenter.segment(packet, Features::empty(), &mut cache, &mut wire) {
            cache.put(refused.packet);
        }
        cache.put_burst(&mut wire);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_frames_and_wrong_marks_lose_nothing(seed in any::<u64>()) {
        survive(seed);
    }
}
