//! Public captures with known answers: what receive offload and segmentation must make of them.

mod common;

use netcore::offload::Segmenter;
use netcore::packet::PartialChecksum;
use netcore::{Burst, Features, Gso, GsoKind, Packet};
use netcore_drivers::pcap::CaptureReader;
use netcore_offload::{GroConfig, SoftwareSegmenter};

fn frames(name: &str) -> Option<Vec<Vec<u8>>> {
    let bytes = std::fs::read(netcore_test::shared(&format!("exams/pcaps/{name}"))?).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut frames = Vec::new();
    while let Some(r) = reader.next().unwrap() {
        frames.push(r.bytes.to_vec());
    }
    Some(frames)
}

fn merge(frames: &[Vec<u8>]) -> Vec<Packet> {
    common::poll(GroConfig::default(), frames, &mut common::pool().cache())
}

/// Frames that must each go up alone, as they are. Packets of different flows may change places: some are held for a while.
fn untouched(name: &str) {
    let Some(mut frames) = frames(name) else { return };
    let mut packets: Vec<_> = merge(&frames).iter().map(Packet::to_vec).collect();
    packets.sort();
    frames.sort();
    assert_eq!(packets, frames, "{name}");
}

#[test]
fn nothing_in_these_merges_and_nothing_is_lost() {
    for name in [
        "vxlan_inner_badtcp.pcap",
        "vxlan_igmp_badudp.pcap",
        "vlan_pcp_dei.pcapng",
        "tcp_overlap.pcap",
        "ipv6_fragments.pcap",
        "checksums_a.pcap",
        "trunc_tcp.pcap",
        "tcp_retransmit_fast.pcap",
        "vxlan_port8472.pcap",
        "nanosecs_be.pcap",
    ] {
        untouched(name);
    }
}

#[test]
fn three_networks_with_the_same_addresses_never_merge_with_each_other() {
    let Some(frames) = frames("vxlan_overlap_vni.pcap") else { return };
    let packets = merge(&frames);
    let total: usize = packets.iter().map(Packet::wire_packets).sum();
    assert_eq!(total, frames.len());
    // Cut again, the frames of each network come back in order.
    let again = segments(packets);
    let network = |f: &Vec<u8>| netcore::dissect(f, &netcore::TunnelPorts::default()).vni;
    for vni in [None, Some(4242), Some(4711)] {
        let before: Vec<_> = frames.iter().filter(|f| network(f) == vni).collect();
        let after: Vec<_> = again.iter().filter(|f| network(f) == vni).collect();
        assert_eq!(before, after);
    }
}

#[test]
fn no_frame_with_a_bad_checksum_takes_part_in_a_merge() {
    for name in ["fuzz_http.pcap", "tcp_some_badsum.pcap"] {
        let Some(frames) = frames(name) else { return };
        let ports = netcore::TunnelPorts::default();
        let bad: Vec<_> = frames
            .iter()
            .filter(|f| {
                let d = netcore::dissect(f, &ports);
                d.outer_checksums(f, f.len()).is_some_and(|c| {
                    [c.header, c.upper]
                        .iter()
                        .flatten()
                        .any(|v| matches!(v, netcore::dissect::ChecksumVerdict::Bad { .. }))
                })
            })
            .collect();
        assert!(!bad.is_empty());
        let packets = merge(&frames);
        for f in bad {
            assert!(packets.iter().any(|p| !p.is_super() && p.to_vec() == *f), "{name}: a damaged frame is gone");
        }
    }
}

fn segments(packets: Vec<Packet>) -> Vec<Vec<u8>> {
    let pool = common::pool();
    let mut cache = pool.cache();
    let mut wire = Burst::new();
    let mut segmenter = SoftwareSegmenter::new();
    for packet in packets {
        segmenter.segment(packet, Features::empty(), &mut cache, &mut wire).unwrap();
    }
    wire.iter().map(Packet::to_vec).collect()
}

/// A super-frame captured on its way out: 5 x 1398 bytes in VXLAN, both checksums partial.
#[test]
fn a_vxlan_super_frame_is_cut_into_frames_with_right_checksums() {
    let Some(frames) = frames("gso_v4_vxlan_v4.pcap") else { return };
    let ports = netcore::TunnelPorts::default();
    let d = netcore::dissect(&frames[0], &ports);
    let mut packet = common::pool().cache().copy_chain(&frames[0]).unwrap();
    packet.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL_CSUM, size: 1398, segments: 5 }));
    let tcp = d.inner.unwrap().upper;
    packet.set_transmit_checksum(Some(PartialChecksum { start: tcp, offset: 16 }));
    let cut = segments(vec![packet]);
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [1514; 5]);
    for (i, frame) in cut.iter().enumerate() {
        let d = netcore::dissect(frame, &ports);
        let good = Some(netcore::dissect::ChecksumVerdict::Good);
        let (outer, inner) = (d.outer_checksums(frame, 1514).unwrap(), d.inner_checksums(frame, 1514).unwrap());
        assert_eq!([outer.header, outer.upper, inner.header, inner.upper], [good; 4], "segment {i}");
        let n = usize::from(d.inner.unwrap().offset);
        assert_eq!(u16::from_be_bytes([frame[n + 4], frame[n + 5]]), 10282 + i as u16);
        let t = usize::from(d.inner.unwrap().upper);
        let seq = u32::from_be_bytes(frame[t + 4..t + 8].try_into().unwrap());
        assert_eq!(seq, 1_925_567_864 + 1398 * i as u32);
        assert_eq!(frame[t + 13] & 8 != 0, i == 4, "PSH on the last only");
    }
}
