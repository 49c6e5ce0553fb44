//! What a running Linux 6.18 made of 88 scenarios, packet by packet: the answers were recorded, the frames are built anew by
//! the program that asked.

mod common;

use netcore::{Packet, ReceiveChecksum, VlanTag};
use netcore_drivers::pcap::CaptureReader;
use netcore_offload::{GroConfig, UdpGro};
use std::path::Path;
use std::process::Command;

/// Scenarios that this crate does not cover yet, and why.
fn not_covered(name: &str, options: &str) -> Option<&'static str> {
    if options.contains("--udp-gro fraglist") {
        return Some("a list of whole packets (rx-gro-list): a packet here is one chain of bytes");
    }
    match name {
        "vlan_inline_tcp4" => {
            Some("the kernel that was asked had no VLAN module; one with it merges in-line tags, as this crate does")
        }
        _ => None,
    }
}

/// A delivered packet as the record has it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Delivered {
    len: usize,
    size: u16,
    segments: u16,
}

fn expected(lines: &str) -> (Vec<Delivered>, bool) {
    let mut on_vxlan = false;
    let mut packets = Vec::new();
    for line in lines.lines().filter(|line| line.trim_start().starts_with('b')) {
        let field = |name: &str| line.split(name).nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("0");
        let Ok(len) = field("len=").parse() else { continue };
        on_vxlan |= line.split_whitespace().nth(1).is_some_and(|device| device.starts_with("vx"));
        let size = field("gso=").rsplit('/').next().unwrap_or("0").parse().unwrap();
        packets.push(Delivered { len, size, segments: field("segs=").parse().unwrap() });
    }
    (packets, on_vxlan)
}

fn bursts(path: &Path, whole: bool) -> Vec<Vec<Vec<u8>>> {
    let bytes = std::fs::read(path).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut bursts: Vec<(Option<netcore::Instant>, Vec<Vec<u8>>)> = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        match bursts.last_mut() {
            Some((at, frames)) if (*at == record.timestamp || whole) && frames.len() < 64 => {
                frames.push(record.bytes.to_vec())
            }
            _ => bursts.push((record.timestamp, vec![record.bytes.to_vec()])),
        }
    }
    bursts.into_iter().map(|burst| burst.1).collect()
}

fn delivered(name: &str, options: &str, dir: &Path) -> Vec<Delivered> {
    let mut config = GroConfig::default();
    if !options.contains("--vxlan") && name != "geneve_nodev" {
        config.vxlan_ports.clear();
    }
    config.udp = match options {
        _ if options.contains("--udp-gro fwd") => UdpGro::All,
        _ if options.contains("--udp-gro socket") => UdpGro::Ports(vec![9000]),
        _ => UdpGro::Off,
    };
    if options.contains("--gro-max-size 200000") {
        config.max_size = 200_000;
    }
    if name == "geneve_nodev" {
        config.geneve_ports.clear();
    }
    let level = if options.contains("--csum-level 1") { 2 } else { 1 };
    let verified = options.contains("--csum unnecessary");
    let pool = common::pool();
    let mut cache = pool.cache();
    let mut all = Vec::new();
    for frames in bursts(&dir.join(format!("{name}.pcap")), options.contains("--burst")) {
        let packets = common::poll_with(config.clone(), &frames, &mut cache, |packet| {
            if verified {
                packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: level });
            }
            let head = packet.head().to_vec();
            if options.contains("--hw-vlan") && head[12..14] == [0x81, 0] {
                // The device took the tag out of the frame.
                packet.set_vlan(Some(VlanTag { tpid: 0x8100, tci: u16::from_be_bytes([head[14], head[15]]) }));
                packet.pull(4).unwrap();
                packet.head_mut().unwrap()[..12].copy_from_slice(&head[..12]);
            }
            if options.contains("--hash flow") {
                let ports = u32::from_be_bytes(head[34..38].try_into().unwrap());
                packet.set_hash(Some(ports ^ ports >> 16 | 0x100), true);
            }
        });
        all.extend(packets.iter().map(|packet: &Packet| {
            let gso = packet.gso();
            Delivered { len: packet.len(), size: gso.map_or(0, |g| g.size), segments: gso.map_or(0, |g| g.segments) }
        }));
    }
    all
}

#[test]
fn every_packet_is_delivered_as_the_kernel_does() {
    let Some(results) = netcore_test::shared("oracles/results/gro_scenarios.txt") else { return };
    let Some(script) = netcore_test::shared("oracles/gro_frames.py") else { return };
    let dir = std::env::temp_dir().join(format!("netcore-scenarios-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let made = Command::new("python3").arg(script).arg(&dir).env("PYTHONDONTWRITEBYTECODE", "1").output();
    if !made.is_ok_and(|output| output.status.success()) {
        netcore_test::skip("python", "python3 does not run the program that builds the frames");
        return;
    }
    let text = std::fs::read_to_string(results).unwrap();
    let (mut compared, mut left_out) = (0, 0);
    for scenario in text.split("\n== ").map(|s| s.trim_start_matches("== ")).filter(|s| !s.trim().is_empty()) {
        let (head, lines) = scenario.split_once('\n').unwrap();
        let (name, options) = head.split_once(' ').unwrap_or((head, ""));
        if let Some(reason) = not_covered(name, options) {
            println!("{name}: not compared: {reason}");
            left_out += 1;
            continue;
        }
        let (mut expected, on_vxlan) = expected(lines);
        let mut ours = delivered(name, options, &dir);
        if on_vxlan {
            // Recorded on the VXLAN devices, behind the outer headers, device by device; packets whose outer checksum is wrong
            // do not get there.
            let outer = if name.contains("outer6") { 70 } else { 50 };
            expected.iter_mut().for_each(|packet| packet.len += outer);
            expected.sort();
            ours.sort();
            if name == "vxlan_bad_outer_csum" {
                ours.retain(|packet| packet.segments > 0);
            }
        }
        assert_eq!(ours, expected, "{name} {options}");
        compared += 1;
    }
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!((compared, left_out), (86, 2));
}
