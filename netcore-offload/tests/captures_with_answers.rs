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
        "geneve_options.pcap",
        "geneve_arp.pcap",
        "gre_various.pcap",
        "gretap_ping.pcap",
        "qinq_8021ad.pcap",
        "tcp_option_sack.pcap",
        "ipv6_options.pcap",
        "ipv6_jumbogram.pcap",
        "slow_ossp.pcap",
        "lacp_linux_port1.pcap",
        "pcapng_test016_be.pcapng",
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

/// Frames that come back in each flow's order after merging and cutting, whether they merged or not.
#[test]
fn everything_else_comes_back_flow_by_flow() {
    for name in [
        "vxlan_http.pcap",
        "geneve_ssh.pcap",
        "http_qinq.pcap",
        "tcp_seq_wrap.pcap",
        "tcp_reorder_rcv.pcap",
        "bond_hash_frames.pcap",
    ] {
        let Some(frames) = frames(name) else { return };
        let ports = netcore::TunnelPorts::default();
        let pool = common::pool();
        let mut cache = pool.cache();
        let mut again = Vec::new();
        for chunk in frames.chunks(64) {
            again.extend(segments(common::poll(GroConfig::default(), chunk, &mut cache)));
        }
        let flows = |frames: &[Vec<u8>]| {
            let mut flows = std::collections::BTreeMap::<_, Vec<Vec<u8>>>::new();
            for f in frames {
                let key = netcore::FlowKey::of(f, &netcore::dissect(f, &ports));
                flows.entry(key).or_default().push(f.clone());
            }
            flows
        };
        assert!(flows(&frames) == flows(&again), "{name}");
    }
}

/// The same addresses and ports once bare, once with one tag, once with two: never one flow.
#[test]
fn frames_of_different_vlans_never_merge() {
    use common::{Tcp, train};
    let vlans = [vec![], vec![(0x8100, 20)], vec![(0x8100, 10), (0x8100, 20)], vec![(0x88a8, 10), (0x8100, 20)]];
    let frames: Vec<_> = train(&Tcp::default(), 8, 500)
        .into_iter()
        .enumerate()
        .map(|(i, tcp)| {
            Tcp { vlan: vlans[i % 4].clone(), seq: 100 + 500 * (i as u32 / 4), id: i as u16 / 4, ..tcp }.frame()
        })
        .collect();
    let packets = merge(&frames);
    assert_eq!(packets.iter().map(Packet::wire_packets).collect::<Vec<_>>(), [2; 4]);
}

/// A super-frame with GENEVE inside and an outer checksum of zero, which stays so: 3 x 1378 bytes.
#[test]
fn a_geneve_super_frame_keeps_its_zero_outer_checksum() {
    let Some(frames) = frames("gso_v4_geneve_v6.pcap") else { return };
    let ports = netcore::TunnelPorts::default();
    let mut packet = common::pool().cache().copy_chain(&frames[0]).unwrap();
    let large = netcore_offload::Large::of(&packet, &ports).unwrap();
    assert_eq!(large.kind, GsoKind::TCPV6 | GsoKind::UDP_TUNNEL);
    assert_eq!(frames[0].len() - large.payload, 3 * 1378);
    packet.set_gso(Some(Gso { kind: large.kind, size: 1378, segments: 3 }));
    let cut = segments(vec![packet]);
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [1514; 3]);
    for frame in &cut {
        let d = netcore::dissect(frame, &ports);
        use netcore::dissect::ChecksumVerdict::{Absent, Good};
        let (outer, inner) = (d.outer_checksums(frame, 1514).unwrap(), d.inner_checksums(frame, 1514).unwrap());
        assert_eq!((outer.header, outer.upper, inner.upper), (Some(Good), Some(Absent), Some(Good)));
        assert_eq!(d.vni, Some(0x1389));
    }
}

/// 80000 bytes whose three length fields are zero.
#[test]
fn a_super_frame_beyond_64_kib_is_cut_by_its_real_length() {
    let Some(frames) = frames("bigtcp_v4_vxlan_v4.pcap") else { return };
    let ports = netcore::TunnelPorts::default();
    let mut packet = common::pool().cache().copy_chain(&frames[0]).unwrap();
    let large = netcore_offload::Large::of(&packet, &ports).unwrap();
    assert_eq!(frames[0].len() - large.payload, 80_000);
    packet.set_gso(Some(Gso { kind: large.kind, size: 1398, segments: 58 }));
    let cut = segments(vec![packet]);
    assert_eq!(cut.len(), 80_000usize.div_ceil(1398));
    let mut payload: Vec<u8> = Vec::new();
    for frame in &cut {
        let d = netcore::dissect(frame, &ports);
        let good = Some(netcore::dissect::ChecksumVerdict::Good);
        let (outer, inner) =
            (d.outer_checksums(frame, frame.len()).unwrap(), d.inner_checksums(frame, frame.len()).unwrap());
        assert_eq!([outer.header, inner.header, inner.upper], [good; 3]);
        assert_eq!(d.inner.unwrap().end as usize, frame.len());
        payload.extend(&frame[d.payload as usize..]);
    }
    assert!(payload == frames[0][frames[0].len() - 80_000..]);
    // Received as a super-packet it goes up as it is.
    let packets = common::poll_with(GroConfig::default(), &frames, &mut common::pool().cache(), |p| {
        p.set_gso(Some(Gso { kind: large.kind, size: 1398, segments: 58 }));
    });
    assert_eq!(packets[0].to_vec(), frames[0]);
}
