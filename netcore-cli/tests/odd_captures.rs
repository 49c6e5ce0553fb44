//! Captures that are empty, mixed, huge or no captures at all.

use netcore::checksum::{Sum, sum};
use netcore_drivers::pcap::{CaptureReader, CaptureWriter, Format, LinkType, Precision};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn netcore(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netcore")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = netcore(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An IPv4 packet with `len` bytes of TCP payload; frame `id` of its flow.
fn packet(port: u16, seq: u32, id: u16, len: usize) -> Vec<u8> {
    let mut tcp = port.to_be_bytes().to_vec();
    tcp.extend([0, 80]);
    tcp.extend(seq.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x50, 0x10, 4, 0, 0, 0, 0, 0]);
    tcp.resize(20 + len, b'a');
    let pseudo = Sum::pseudo_ipv4([10, 0, 0, 1], [10, 0, 0, 2], 6, tcp.len() as u32);
    let checksum = pseudo.plus(sum(&tcp)).finish();
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    let mut ip = vec![0x45, 0];
    ip.extend((20 + tcp.len() as u16).to_be_bytes());
    ip.extend(id.to_be_bytes());
    ip.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = sum(&ip).finish();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip.extend(tcp);
    ip
}

fn frame(port: u16, seq: u32, id: u16, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend(packet(port, seq, id, len));
    frame
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    fn write(&self, name: &str, records: impl IntoIterator<Item = (LinkType, Option<u64>, Vec<u8>)>) -> String {
        let path = self.path(name);
        let file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
        let mut records = records.into_iter().peekable();
        let link_type = records.peek().map_or(LinkType::ETHERNET, |record| record.0);
        let format = Format::for_path(Path::new(&path));
        let mut writer = CaptureWriter::new(file, format, link_type).unwrap();
        for (link_type, at, bytes) in records {
            let at = at.map(netcore::Instant::from_nanos);
            writer.write_as(link_type, at, &[&bytes], bytes.len()).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}

fn read(path: &str) -> Vec<(LinkType, usize)> {
    let file = std::fs::read(PathBuf::from(path)).unwrap();
    let mut reader = CaptureReader::new(file.as_slice()).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        seen.push((record.link_type, record.bytes.len()));
    }
    assert_eq!(reader.damage(), None);
    seen
}

/// Ethernet, raw IP and something else in one file.
fn mixed(files: &Files) -> String {
    let ether = |n: u16| frame(1, 1 + 100 * u32::from(n), n, 100);
    files.write(
        "mixed.pcapng",
        [
            (LinkType::ETHERNET, Some(5), ether(0)),
            (LinkType::RAW, Some(6), packet(7, 1, 0, 3000)),
            (LinkType::LINUX_SLL, Some(7), vec![b'x'; 30]),
            (LinkType::ETHERNET, Some(8), ether(1)),
            (LinkType::ETHERNET, None, ether(2)),
        ],
    )
}

#[test]
fn an_output_of_several_link_types_is_pcapng() {
    let files = Files::new();
    let (capture, out) = (mixed(&files), files.path("out.pcapng"));
    let v = json(&["gro", &capture, "--out", &out, "--json"]);
    // Raw IP ends a poll, so the second and third frame merge.
    assert_eq!((&v["packets_out"], &v["not_parsed"]), (&Value::from(4), &Value::from(1)));
    let mut written = read(&out);
    assert_eq!(v["bytes_out"], written.iter().map(|record| record.1).sum::<usize>());
    written.sort();
    assert_eq!(
        written,
        [(LinkType::ETHERNET, 154), (LinkType::ETHERNET, 254), (LinkType::RAW, 3040), (LinkType::LINUX_SLL, 30)]
    );
    let v = json(&["gso", &capture, "--out", &out, "--json"]);
    assert_eq!((&v["segments"], &v["passed"]["not_ethernet_or_ip"]), (&Value::from(3), &Value::from(1)));
    assert_eq!(read(&out)[1..4], [(LinkType::RAW, 1500), (LinkType::RAW, 1500), (LinkType::RAW, 120)]);

    let refused = netcore(&["gro", &capture, "--out", &files.path("out.pcap")]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && text.contains("one link type") && text.contains("pcapng"), "{text}");
}

/// More frames in one poll than any pool starts with; time stamps that are missing make one poll of a capture, too.
#[test]
fn a_poll_may_be_as_long_as_the_capture() {
    let files = Files::new();
    const FRAMES: u32 = 70_000;
    let records = |at: fn(u32) -> Option<u64>| {
        (0..FRAMES).map(move |n| (LinkType::ETHERNET, at(n), frame(1, 1 + n, n as u16, 1)))
    };
    let timed = files.write("timed.pcap", records(|n| Some(u64::from(n) * 1000)));
    let untimed = files.write("untimed.pcapng", records(|_| None));
    for arguments in [[&timed, "--batch", "4294967295"], [&timed, "--usecs", "1000000"], [&untimed, "--usecs", "0"]] {
        let v = json(&[&["gro", "--json"], arguments.as_slice()].concat());
        // 65536 less 40 bytes of headers, less one.
        assert_eq!((&v["packets_out"], &v["largest_payload"]), (&Value::from(2), &Value::from(65495)), "{arguments:?}");
        assert_eq!(v["flows"][0]["payload_bytes"], FRAMES);
    }
}

#[test]
fn a_frame_may_become_more_pieces_than_any_pool_starts_with() {
    let files = Files::new();
    let capture = files.write("one.pcap", [(LinkType::ETHERNET, Some(1), frame(1, 1, 0, 65_000))]);
    let v = json(&["gso", &capture, "--mss", "1", "--json"]);
    assert_eq!((&v["segments"], &v["bytes_out"]), (&Value::from(65_000), &Value::from(65_000 * 55)));
}

#[test]
fn what_is_no_capture_is_refused_in_a_sentence() {
    let files = Files::new();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(files.path(name), bytes).unwrap();
        files.path(name)
    };
    let folder = files.0.path().to_str().unwrap().to_string();
    let cases = [
        (file("empty.pcap", b""), "the file is empty"),
        (file("two.pcap", &[0xd4, 0xc3]), "not a capture: starts with [d4, c3]"),
        (file("text.pcap", b"hello world"), "not a capture"),
        (file("header.pcap", &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0]), "24 are needed"),
        (files.path("missing.pcap"), "No such file"),
        (folder, "Is a directory"),
    ];
    for command in ["gro", "gso", "dissect"] {
        for (path, expected) in &cases {
            let output = netcore(&[command, path]);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command} {path}: {text}");
            assert!(text.contains(expected) && text.contains(path.as_str()) && text.lines().count() == 1, "{text}");
        }
    }
}

#[test]
fn a_capture_without_packets_is_no_error() {
    let files = Files::new();
    for (name, format) in [("none.pcap", Format::Pcap(Precision::Micros)), ("none.pcapng", Format::Pcapng)] {
        let file = std::fs::File::create(files.path(name)).unwrap();
        CaptureWriter::new(file, format, LinkType::RAW).unwrap().finish().unwrap();
        for command in ["gro", "gso"] {
            let out = files.path(&format!("{command}-{name}"));
            let v = json(&[command, &files.path(name), "--out", &out, "--json"]);
            assert_eq!((&v["frames_in"], &v["packets_out"], read(&out).len()), (&Value::from(0), &Value::from(0), 0));
        }
        assert!(netcore(&["dissect", &files.path(name)]).status.success());
    }
}
