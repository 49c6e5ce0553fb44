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
//!   so `kernel_scenarios.rs`, captures and the identity of `identity.rs` stand in;
//! * the kernel's UDP GRO is asked through a socket with `UDP_GRO`.
#![cfg(target_os = "linux")]

mod common;
mod live;

use common::random::{Mix, Rng, burst};
use live::{Delivered, KernelGro};
use netcore::Packet;
use netcore_offload::{GroConfig, UdpGro};
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
        assert!(merged * 4 > frames_in, "the bursts hardly merge: the test says little");
    });
}
