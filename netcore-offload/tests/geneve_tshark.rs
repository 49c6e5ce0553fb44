//! No GENEVE device in the kernel at hand: tshark says whether merged and cut packets are right, checksums included.

mod common;

use common::stack::{Outer, Stack, Wrap};
use common::{Tcp, poll, pool};
use netcore::offload::Segmenter;
use netcore::{Burst, Features, Packet};
use netcore_drivers::pcap::{CaptureWriter, Format, LinkType};
use netcore_offload::{GroConfig, SoftwareSegmenter};
use std::process::Command;

/// Inner segments: four flows of six, GENEVE over either IP version with and without checksum, options in two of them.
fn frames() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for flow in 0..4u16 {
        let (v6, checksum) = (flow & 1 == 1, flow & 2 == 2);
        let options = if flow < 2 { vec![1, 2, 0x80, 1, 9, 9, 9, 9] } else { Vec::new() };
        let base = Tcp { v6: !v6, sport: 1500 + flow, ..Tcp::default() };
        for (index, tcp) in common::train(&base, 6, 700).into_iter().enumerate() {
            let outer = Outer { v6, id: index as u16, ..Outer::default() };
            let geneve =
                Wrap::Geneve { outer, vni: 5, sport: 50_000 + flow, checksum, options: options.clone(), flags: 0 };
            all.push(Stack { tcp, wraps: vec![geneve], ..Stack::default() }.frame());
        }
    }
    all
}

#[test]
fn tshark_finds_every_length_and_checksum_of_merged_and_cut_geneve_packets_right() {
    let pool = pool();
    let mut cache = pool.cache();
    let frames = frames();
    let mut merged = poll(GroConfig::default(), &frames, &mut cache);
    assert_eq!(merged.iter().map(Packet::wire_packets).collect::<Vec<_>>(), [6; 4]);
    let mut segmenter = SoftwareSegmenter::new();
    let mut written = Vec::new();
    for packet in &mut merged {
        segmenter.fill_checksum(packet, &mut cache).unwrap();
        written.push(packet.to_vec());
    }
    let mut wire = Burst::new();
    for packet in merged {
        segmenter.segment(packet, Features::empty(), &mut cache, &mut wire).unwrap();
    }
    let cut: Vec<_> = wire.iter().map(Packet::to_vec).collect();
    assert!(cut == frames);
    written.extend(cut);

    let path = std::env::temp_dir().join(format!("netcore-geneve-{}.pcap", std::process::id()));
    let mut writer =
        CaptureWriter::new(std::fs::File::create(&path).unwrap(), Format::for_path(&path), LinkType::ETHERNET).unwrap();
    for frame in &written {
        writer.write(None, &[frame], frame.len()).unwrap();
    }
    writer.flush().unwrap();
    let fields = ["geneve.vni", "tcp.len", "ip.checksum.status", "udp.checksum.status", "tcp.checksum.status"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields", "-E", "occurrence=a"]);
    for protocol in ["ip", "udp", "tcp"] {
        tshark.arg("-o").arg(format!("{protocol}.check_checksum:TRUE"));
    }
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output();
    let _ = std::fs::remove_file(&path);
    let Ok(output) = output else { return netcore_test::skip("tshark", "tshark is not installed") };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), written.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line[0], "0x000005", "packet {index}");
        assert_eq!(line[1], if index < 4 { "4200" } else { "700" }, "packet {index}");
        // One IPv4 header in each packet, outside or inside; 1 is "good", 3 is "not present".
        assert_eq!(line[2], "1", "packet {index}");
        let flow = if index < 4 { index } else { (index - 4) / 6 };
        // Over IPv6 tshark calls a zero checksum illegal (4); tunnels may have it (RFC 6935).
        assert_eq!(line[3], ["3", "4", "1", "1"][flow], "packet {index}");
        assert_eq!(line[4], "1", "packet {index}");
    }
}
