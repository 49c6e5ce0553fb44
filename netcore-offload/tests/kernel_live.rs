//! The running kernel and this crate get the same random bursts; every delivered packet must be the same, in order and byte for
//! byte. Needs root and Linux; `NETCORE_LIVE_SEED` repeats a run, `NETCORE_LIVE_BURSTS` asks for more.
//!
//! What the bench cannot ask, and why:
//!
//! * a poll takes 64 frames at most, and with HZ below 1000 the kernel delivers everything between two polls: bursts are no
//!   longer than that;
//! * a TAP gives no receive hash, so all flows share a bucket of eight; and no checksum verdicts, so all are verified in
//!   software. Recorded answers for both are in `kernel_scenarios.rs`;
//! * in-line VLAN tags merge only in a kernel with 802.1Q, GENEVE only where it has a device: the kernel at hand may have neither,
//!   so `kernel_scenarios.rs`, `geneve_tshark.rs`, captures and the identity of `identity.rs` stand in;
//! * the kernel's UDP GRO is asked through a socket with `UDP_GRO`.
#![cfg(target_os = "linux")]

mod common;
mod live;

use common::random::{Mix, Rng, burst};
use common::stack::{Outer, Stack, Wrap};
use live::{Delivered, KernelGro, KernelGso};
use netcore::checksum::Sum;
use netcore::offload::Segmenter;
use netcore::{Burst, Features, Gso, GsoKind, Packet};
use netcore_offload::{GroConfig, SoftwareSegmenter, UdpGro};
use std::time::{SystemTime, UNIX_EPOCH};

const VXLAN: u16 = 4789;
const UDP: u16 = 9000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    number("NETCORE_LIVE_SEED").unwrap_or(now)
}

/// Runs a test in a thread of its own, whose namespaces vanish with it.
fn in_namespace(body: impl FnOnce() + Send + 'static) {
    std::thread::spawn(body).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn ours(packet: &Packet) -> Delivered {
    let gso = packet.gso();
    Delivered { bytes: packet.to_vec(), size: gso.map_or(0, |g| g.size), segments: gso.map_or(0, |g| g.segments) }
}

fn config() -> GroConfig {
    let mut config = GroConfig::default();
    config.vxlan_ports = vec![VXLAN];
    config.geneve_ports.clear();
    config.udp = UdpGro::Ports(vec![UDP]);
    config
}

fn describe(all: &[Delivered]) -> String {
    all.iter()
        .take(4)
        .map(|d| {
            let head: String = d.bytes.iter().take(120).map(|byte| format!("{byte:02x}")).collect();
            format!("  len {} size {} segments {} {head}\n", d.bytes.len(), d.size, d.segments)
        })
        .collect()
}

#[test]
fn random_bursts_are_delivered_as_the_running_kernel_does() {
    in_namespace(|| {
        let mut kernel = match KernelGro::new(VXLAN, UDP) {
            Ok(kernel) => kernel,
            Err(error) => return netcore_test::skip("kernel", &format!("no receive offload to ask: {error}")),
        };
        let seed = seed();
        let bursts = number("NETCORE_LIVE_BURSTS").unwrap_or(2500);
        let pool = common::pool();
        let mut cache = pool.cache();
        let (mut frames_in, mut merged) = (0, 0);
        for index in 0..bursts {
            let mut rng = Rng(seed.wrapping_add(index));
            let mix = Mix {
                vxlan: rng.one_in(2),
                other_tunnels: rng.one_in(3),
                nested: rng.one_in(2),
                udp: rng.one_in(2),
                vlan: false,
                disorder: rng.one_in(2),
            };
            let frames: Vec<_> = burst(&mut rng, &mix).iter().map(|packet| packet.frame()).collect();
            let expected = kernel.poll(&frames).expect("the kernel answers");
            let delivered: Vec<_> = common::poll(config(), &frames, &mut cache).iter().map(ours).collect();
            frames_in += frames.len();
            merged += frames.len() - delivered.len();
            if delivered != expected {
                let first = delivered.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                panic!(
                    "seed {seed}, burst {index} ({mix:?}): packet {first} differs\nthe kernel:\n{}this crate:\n{}",
                    describe(&expected[first.min(expected.len())..]),
                    describe(&delivered[first.min(delivered.len())..]),
                );
            }
        }
        println!("seed {seed}: {bursts} bursts, {frames_in} frames, {merged} merged away, 0 differences");
        assert!(merged * 5 > frames_in, "the bursts hardly merge: the test says little");
    });
}

/// A large frame: its bytes, how to cut it, and what the kernel is told about it.
struct Large {
    bytes: Vec<u8>,
    gso: Gso,
    /// `virtio_net_hdr_v1_hash_tunnel` and the frame with pseudo-header sums in its checksum fields.
    virtio: Vec<u8>,
}

fn large(rng: &mut Rng) -> Large {
    let udp = rng.one_in(4);
    let v6 = rng.one_in(2);
    let size = rng.pick(&[536, 1000, 1380, 1400, 1448]) as usize;
    let most = 59_000 / size;
    let full = 1 + rng.below(most as u64);
    let len = size + 1 + rng.below(full * size as u64) as usize;
    let mut stack = Stack { udp, ..Stack::default() };
    stack.tcp.v6 = v6;
    (stack.tcp.seq, stack.tcp.id, stack.tcp.df) = (rng.next() as u32, rng.next() as u16, rng.one_in(2));
    stack.tcp.flags |= rng.pick(&[0, 0, common::PSH, common::FIN, common::PSH | common::CWR, common::ECE]);
    if rng.one_in(2) {
        stack.tcp.options = vec![1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    }
    stack.tcp.payload = (0..len).map(|i| ((i * 131) >> 3) as u8).collect();
    let tunnel = rng.one_in(2).then(|| (rng.one_in(2), rng.one_in(2)));
    if let Some((outer_v6, checksum)) = tunnel {
        let outer = Outer { v6: outer_v6, id: rng.next() as u16, df: rng.one_in(2), ..Outer::default() };
        stack.wraps = vec![Wrap::Vxlan { outer, vni: 42, sport: 50_000, dport: VXLAN, checksum, bad: false }];
    }
    let mut bytes = stack.frame();
    // Where everything is.
    let ip = |v6: bool| if v6 { 40 } else { 20 };
    let outer_transport = tunnel.map_or(0, |(v6, _)| 14 + ip(v6));
    let network = if tunnel.is_some() { outer_transport + 16 + 14 } else { 14 };
    let transport = network + ip(v6);
    let payload = bytes.len() - len;
    let offset = if udp { 6 } else { 16 };
    let total = bytes.len();
    let mut put_pseudo = |network: usize, v6: bool, protocol: u8, at: usize, field: usize| {
        let pseudo = if v6 {
            let address = |from: usize| <[u8; 16]>::try_from(&bytes[network + from..network + from + 16]).unwrap();
            Sum::pseudo_ipv6(&address(8), &address(24), protocol, (total - at) as u32)
        } else {
            let address = |from: usize| <[u8; 4]>::try_from(&bytes[network + from..network + from + 4]).unwrap();
            Sum::pseudo_ipv4(address(12), address(16), protocol, (total - at) as u32)
        };
        bytes[field..field + 2].copy_from_slice(&pseudo.fold().to_be_bytes());
    };
    put_pseudo(network, v6, if udp { 17 } else { 6 }, transport, transport + offset);
    let mut kind = match (udp, v6) {
        (true, _) => GsoKind::UDP_L4,
        (false, false) => GsoKind::TCPV4,
        (false, true) => GsoKind::TCPV6,
    };
    let (mut flags, mut gso_type) = (
        1u8,
        if udp {
            5u8
        } else if v6 {
            4
        } else {
            1
        },
    );
    if !udp && stack.tcp.flags & common::CWR != 0 {
        gso_type |= 0x80;
        kind |= GsoKind::TCP_ECN;
    }
    if let Some((outer_v6, checksum)) = tunnel {
        gso_type |= if outer_v6 { 0x40 } else { 0x20 };
        kind |= if checksum { GsoKind::UDP_TUNNEL_CSUM } else { GsoKind::UDP_TUNNEL };
        if checksum {
            flags |= 8;
            put_pseudo(14, outer_v6, 17, outer_transport, outer_transport + 6);
        }
    }
    let inner_network = if tunnel.is_some() { network } else { 0 };
    let mut virtio = vec![flags, gso_type];
    for word in [payload, size, transport, offset, 0, 0, 0, 0, 0, outer_transport, inner_network] {
        virtio.extend((word as u16).to_le_bytes());
    }
    virtio.extend(&bytes);
    let gso = Gso { kind, size: size as u16, segments: len.div_ceil(size) as u16 };
    Large { bytes, gso, virtio }
}

#[test]
fn large_frames_are_cut_as_the_running_kernel_does() {
    in_namespace(|| {
        let mut kernel = match KernelGso::new() {
            Ok(kernel) => kernel,
            Err(error) => return netcore_test::skip("kernel", &format!("no segmentation to ask: {error}")),
        };
        let seed = seed();
        let pool = common::pool();
        let mut cache = pool.cache();
        let (mut cut, mut segmenter) = (0, SoftwareSegmenter::new());
        for index in 0..600 {
            let large = large(&mut Rng(seed.wrapping_add(index)));
            let expected = kernel.segment(Some(&large.virtio)).expect("the kernel answers");
            let mut packet = cache.copy_chain(&large.bytes).unwrap();
            packet.set_gso(Some(large.gso));
            let mut out = Burst::new();
            segmenter.segment(packet, Features::empty(), &mut cache, &mut out).unwrap();
            let ours: Vec<_> = out.iter().map(Packet::to_vec).collect();
            cache.put_burst(&mut out);
            assert_eq!(ours.len(), expected.len(), "seed {seed}, frame {index}: {:?}", large.gso);
            for (number, (ours, expected)) in ours.iter().zip(&expected).enumerate() {
                let first = ours.iter().zip(expected).take_while(|(a, b)| a == b).count();
                let same = ours == expected;
                assert!(same, "seed {seed}, frame {index}, segment {number} differs at byte {first}: {:?}", large.gso);
            }
            cut += ours.len();
        }
        println!("seed {seed}: 600 frames, {cut} segments, 0 differences");
    });
}
