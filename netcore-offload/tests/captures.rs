//! GRO and GSO on captures of a real kernel: the byte streams survive, and segmenting gives the very frames back.

use netcore::dissect::{TunnelPorts, dissect};
use netcore::flow::FlowKey;
use netcore::offload::{ReceiveOffload, Segmenter};
use netcore::wire::{Protocol, TcpFlags, TcpHeader};
use netcore::{Burst, Features, Gso, GsoKind, Instant, Packet, PacketPool, PoolConfig};
use netcore_drivers::pcap::CaptureReader;
use netcore_offload::{Gro, GroConfig, GroTable, Large, SoftwareSegmenter};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Client port, bytes and SHA-256 of a byte stream.
type Stream = (u16, usize, &'static str);

const PORTS: [u16; 2] = [4789, 8472];

fn ports() -> TunnelPorts {
    PORTS.iter().fold(TunnelPorts::default(), |ports, port| ports.with_vxlan(*port))
}

fn read(path: &PathBuf) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        frames.push(record.bytes.to_vec());
    }
    assert_eq!(reader.damage(), None);
    frames
}

/// Flow, sequence number, flags and payload of a TCP frame.
fn segment(frame: &[u8]) -> Option<(FlowKey, u32, TcpFlags, &[u8])> {
    let d = dissect(frame, &ports());
    let network = d.innermost()?;
    if network.protocol != Protocol::TCP {
        return None;
    }
    let (tcp, _, _) = TcpHeader::parse(&frame[usize::from(network.upper)..]).ok()?;
    Some((FlowKey::of(frame, &d)?, tcp.seq(), tcp.flags(), &frame[d.payload as usize..network.end as usize]))
}

/// SHA-256 of each flow's bytes, put back in sequence order.
fn streams<'a>(frames: impl Iterator<Item = &'a [u8]>) -> BTreeMap<FlowKey, (usize, String)> {
    let mut start: BTreeMap<FlowKey, u32> = BTreeMap::new();
    let mut bytes: BTreeMap<FlowKey, Vec<u8>> = BTreeMap::new();
    for frame in frames {
        let Some((key, seq, flags, payload)) = segment(frame) else { continue };
        if flags.contains(TcpFlags::SYN) {
            start.insert(key, seq.wrapping_add(1));
        }
        let first = *start.entry(key).or_insert(seq);
        let offset = seq.wrapping_sub(first) as usize;
        let stream = bytes.entry(key).or_default();
        if payload.is_empty() || offset > 1 << 28 {
            continue;
        }
        if stream.len() < offset + payload.len() {
            stream.resize(offset + payload.len(), 0);
        }
        stream[offset..offset + payload.len()].copy_from_slice(payload);
    }
    bytes
        .into_iter()
        .map(|(key, stream)| {
            (key, (stream.len(), Sha256::digest(&stream).iter().map(|b| format!("{b:02x}")).collect()))
        })
        .collect()
}

/// Frames of each flow in order; frames that are not TCP under their own key.
fn by_flow(frames: &[Vec<u8>]) -> BTreeMap<Option<FlowKey>, Vec<&[u8]>> {
    let mut flows: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
    for frame in frames {
        flows.entry(segment(frame).map(|s| s.0)).or_default().push(frame);
    }
    flows
}

fn check(path: PathBuf, batch: usize, table: GroTable, expected: &[Stream]) {
    let frames = read(&path);
    let pool = PacketPool::new(PoolConfig { windows: 4096, ..PoolConfig::with_buffers(4096) }).unwrap();
    let mut cache = pool.cache();
    let mut config = GroConfig::default();
    config.vxlan_ports = PORTS.to_vec();
    config.table = table;
    let mut gro = Gro::new(config).unwrap();
    let mut segmenter = SoftwareSegmenter::new();
    let (mut merged, mut wire) = (Vec::new(), Vec::new());
    // The pool is smaller than the capture: what was delivered is kept as bytes.
    for chunk in frames.chunks(batch) {
        let mut burst: Burst = chunk.iter().map(|frame| cache.copy_chain(frame).unwrap()).collect();
        let mut delivered = Burst::new();
        gro.receive(&mut burst, &mut delivered, &mut cache, Instant::ZERO);
        gro.end_poll(false, &mut delivered, &mut cache, Instant::ZERO);
        while let Some(packet) = delivered.pop() {
            merged.push(packet.to_vec());
            let mut segments = Burst::new();
            let n = packet.wire_packets();
            assert_eq!(segmenter.segment(packet, Features::empty(), &mut cache, &mut segments).unwrap(), n);
            wire.extend(segments.iter().map(Packet::to_vec));
            cache.put_burst(&mut segments);
        }
    }
    assert_eq!(gro.held(), 0);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(merged.len() < frames.len(), "{name}: nothing merged");
    for (stage, streams) in
        [("GRO", streams(merged.iter().map(Vec::as_slice))), ("GSO", streams(wire.iter().map(Vec::as_slice)))]
    {
        for (port, len, sha) in expected {
            let found = streams.iter().find(|(key, _)| key.ports.is_some_and(|ports| ports.0 == *port));
            let (found_len, found_sha) = &found.unwrap().1;
            assert_eq!((*found_len, found_sha.as_str()), (*len, *sha), "{name}, {stage}, client port {port}");
        }
    }
    assert_eq!(wire.len(), frames.len(), "{name}");
    let (before, after) = (by_flow(&frames), by_flow(&wire));
    assert_eq!(before.len(), after.len());
    for (key, frames) in before {
        assert_eq!(frames, after[&key], "{name}: frames of {key:?} come back byte for byte, in order");
    }
}

#[test]
fn own_capture_survives_gro_and_comes_back_from_gso() {
    let sha = "5b846ab22355fb70783bba12349aef9ab1b851be1a7e04565b7a39e502f9d8c4";
    for batch in [1000, 64, 17, 2] {
        check(
            netcore_test::capture("gro_pair_wire.pcap"),
            batch,
            GroTable::linux_current(),
            &[(59036, 1_000_000, sha)],
        );
    }
}

#[test]
fn every_capture_survives_gro_and_comes_back_from_gso() {
    let captures: [(&str, &[Stream]); 7] = [
        (
            "vxlan4789_v4_zerocsum",
            &[(44190, 3_200_000, "4187f44f7bc08e3bca3843013c7712b6c1d1417e0927e264b96db35fc4d0c42b")],
        ),
        (
            "vxlan8472_v4_csum",
            &[
                (38490, 1_300_000, "50c0967fec572e2b625c8e29fd2a51ded67352cba6501312aaff7e4b4db17528"),
                (49170, 1_300_000, "c8536221c287797886a657f0ffb40c035d107cbd56ff5bb70f152414f752cd95"),
            ],
        ),
        (
            "vxlan4789_v6_csum_ns",
            &[(38502, 1_300_000, "e0a8dcbf82e640ec46c1d67deaf7a60fd990eac1be1664d73c9052f36a4e5f4a")],
        ),
        (
            "vxlan4789_v6_zerocsum",
            &[(38796, 1_300_000, "e4fdf121daff5fc5f4b7e8e4910b4345ba80bc06a87c105a1d02e444c954634d")],
        ),
        (
            "vxlan4789_v4_4flows_ns",
            &[
                (59014, 900_000, "63f221e736ec705682950aa3cb7536d8e9f6361ca93b41d822c8c8652ca35246"),
                (59022, 900_000, "6f5ee713dc4b6e37b03366b98e3de3489c7484069d0d4b247e37ae514d3425a3"),
                (59030, 900_000, "c873b97efe5555d7f9adee01315da0d574f5c67f0b71c5adbd08de2114a0c54f"),
                (59034, 900_000, "11453899227726bd968337eb498a09fc296490064e590846be101ad8b88bff13"),
            ],
        ),
        ("gro_pair_wire", &[(59036, 1_000_000, "5b846ab22355fb70783bba12349aef9ab1b851be1a7e04565b7a39e502f9d8c4")]),
        (
            "tcp_plain_v4_iperf3",
            &[(57454, 3_014_693, "c3e70d633fb385230eb552e894978f5bb51c6c07f1527a11c8c56cd71afc7363")],
        ),
    ];
    for (name, expected) in captures {
        let Some(path) = netcore_test::shared(&format!("captures/{name}.pcap")) else { return };
        check(path.clone(), 64, GroTable::linux_current(), expected);
        check(path, 256, GroTable::large(), expected);
    }
}

/// GENEVE over IPv4 without outer checksum, from a kernel that has a GENEVE device.
#[test]
fn geneve_capture_survives_gro_and_comes_back_from_gso() {
    let Some(path) = netcore_test::shared("exams/pcaps/geneve_bulk_v4_zerocsum.pcap") else { return };
    let sha = "d88eb3fc89b21b0c3c4c9e27c06084676383710c93cff46024f8f307d44fe68c";
    for batch in [64, 9] {
        check(path.clone(), batch, GroTable::linux_current(), &[(34278, 700_000, sha)]);
    }
}

/// A path with loss, delay and doubled frames, seen by the receiver.
#[test]
fn reordered_capture_survives_gro_and_comes_back_from_gso() {
    let Some(path) = netcore_test::shared("exams/pcaps/tcp_reorder_rcv.pcap") else { return };
    let sha = "b036c54f11c27da6518354787d2873d15853010b6c8925c45ef3e499a03aec4e";
    for batch in [64, 900] {
        check(path.clone(), batch, GroTable::linux_current(), &[(47924, 800_000, sha)]);
    }
}

/// The kernel's own merged frames of the same traffic: the byte stream is the same, none is longer than what fits, and cutting
/// them gives the frames of the wire.
#[test]
fn what_the_kernel_merged_is_cut_into_the_frames_of_the_wire() {
    let (Some(kernel), Some(wire)) =
        (netcore_test::shared("captures/gro_pair_kernel.pcap"), netcore_test::shared("captures/gro_pair_wire.pcap"))
    else {
        return;
    };
    let (merged, wire) = (read(&kernel), read(&wire));
    let sha = "5b846ab22355fb70783bba12349aef9ab1b851be1a7e04565b7a39e502f9d8c4";
    let pool = PacketPool::new(PoolConfig { windows: 4096, ..PoolConfig::with_buffers(4096) }).unwrap();
    let mut cache = pool.cache();
    let mut segmenter = SoftwareSegmenter::new();
    let (mut cut, mut largest, mut full, mut data) = (Vec::new(), 0, 0, 0);
    for frame in &merged {
        let payload = segment(frame).map_or(0, |segment| segment.3.len());
        (largest, full, data) =
            (largest.max(payload), full + usize::from(payload == 64308), data + usize::from(payload > 0));
        let mut packet = cache.copy_chain(frame).unwrap();
        if payload > 1398 {
            let large = Large::of(&packet, &ports()).unwrap();
            let kind = large.kind
                | if segment(frame).unwrap().2.contains(TcpFlags::CWR) { GsoKind::TCP_ECN } else { GsoKind::empty() };
            packet.set_gso(Some(Gso { kind, size: 1398, segments: payload.div_ceil(1398) as u16 }));
        }
        let mut out = Burst::new();
        segmenter.segment(packet, Features::empty(), &mut cache, &mut out).unwrap();
        cut.extend(out.iter().map(Packet::to_vec));
        cache.put_burst(&mut out);
    }
    assert_eq!((merged.len(), data, full, largest), (72, 37, 12, 64308));
    let stream = |frames: &[Vec<u8>]| {
        let streams = streams(frames.iter().map(Vec::as_slice));
        streams.into_iter().find(|(key, _)| key.ports.is_some_and(|ports| ports.0 == 59036)).unwrap().1
    };
    assert_eq!(stream(&merged), (1_000_000, sha.to_string()));
    assert_eq!(cut.len(), wire.len());
    let (before, after) = (by_flow(&wire), by_flow(&cut));
    for (key, frames) in before {
        assert!(frames == after[&key], "frames of {key:?} come back byte for byte, in order");
    }
}
