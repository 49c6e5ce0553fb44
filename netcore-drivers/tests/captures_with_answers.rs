//! Public captures with known answers: what a right decoder says of their headers and checksums.

mod capture;

use capture::{GOOD, counts, frames, is_bad};
use netcore::FlowKey;
use netcore::dissect::{ChecksumVerdict, TunnelPorts, dissect};
use netcore::wire::{ArpIpv4, Ipv4Header, Ipv6Header, Protocol, SackBlock, TcpFlags, TcpOption};
use std::collections::BTreeSet;

#[test]
fn vxlan_http_is_one_flow_in_two_directions_with_right_checksums() {
    let Some(frames) = frames("vxlan_http.pcap") else { return };
    let flows: BTreeSet<_> = frames.iter().filter_map(|f| FlowKey::of(&f.bytes, &f.dissect())).collect();
    assert_eq!((frames.len(), flows.len()), (12, 2));
    let directions = counts(frames.iter().filter_map(|f| FlowKey::of(&f.bytes, &f.dissect())));
    let mut directions: Vec<_> = directions.into_values().collect();
    directions.sort();
    assert_eq!(directions, [5, 7]);
    assert!(frames.iter().all(|f| f.dissect().vni == Some(1)));
    let payloads: Vec<_> = frames.iter().map(|f| f.tcp().unwrap().2.len()).filter(|len| *len > 0).collect();
    assert_eq!(payloads, [87, 228, 8984]);
    for f in &frames {
        assert!(!is_bad(f.outer().1) && f.outer().0 == GOOD && f.inner() == (GOOD, GOOD));
    }
}

#[test]
fn vxlan_on_the_old_port_is_found_when_the_port_is_added() {
    let Some(frames) = frames("vxlan_port8472.pcap") else { return };
    assert!(frames.iter().all(|f| f.dissect().depth == 0));
    let ports = TunnelPorts::default().with_vxlan(8472);
    let inner: Vec<_> = frames.iter().map(|f| dissect(&f.bytes, &ports)).collect();
    assert!(inner.iter().all(|d| d.depth == 1));
    assert_eq!(inner.iter().filter(|d| d.inner.is_some_and(|n| n.protocol == Protocol::ICMP)).count(), 8);
    assert_eq!(inner.iter().filter(|d| d.inner_ethertype == Some(netcore::wire::EtherType::ARP)).count(), 2);
    assert!(frames.iter().all(|f| f.outer().1 == Some(ChecksumVerdict::Absent)));
}

#[test]
fn bad_inner_and_bad_outer_checksums_are_told_with_the_right_value() {
    let Some(one) = frames("vxlan_inner_badtcp.pcap") else { return };
    assert_eq!(one[0].inner().1, Some(ChecksumVerdict::Bad { found: 0xdead, expected: 0x4b57 }));
    assert!(!is_bad(one[0].outer().1));
    assert_eq!(one[0].dissect().vni, Some(42));
    let Some(three) = frames("vxlan_igmp_badudp.pcap") else { return };
    for f in &three {
        assert!(is_bad(f.outer().1));
        assert_eq!(f.dissect().vni, Some(4242));
        let inner = f.dissect().inner.unwrap();
        assert_eq!((inner.protocol, inner.upper - inner.offset), (Protocol::IGMP, 24), "router alert option");
        let (_, options, _) = Ipv4Header::parse(&f.bytes[usize::from(inner.offset)..]).unwrap();
        assert_eq!(options.map(|o| o.unwrap().kind).collect::<Vec<_>>(), [148]);
    }
}

#[test]
fn the_same_addresses_in_three_networks_are_three_flows() {
    let Some(frames) = frames("vxlan_overlap_vni.pcap") else { return };
    let mut counts = std::collections::BTreeMap::new();
    let mut pairs = BTreeSet::new();
    for f in &frames {
        let d = f.dissect();
        *counts.entry(d.vni).or_insert(0) += 1;
        let key = FlowKey::of(&f.bytes, &d).unwrap();
        pairs.insert(key.min(key.reversed()));
    }
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(None, 14), (Some(4242), 14), (Some(4711), 14)]);
    assert_eq!(pairs.len(), 3);
}

#[test]
fn partial_checksums_of_a_super_frame_are_told_from_wrong_ones() {
    let Some(frames) = frames("gso_v4_vxlan_v4.pcap") else { return };
    let f = &frames[0];
    assert_eq!(f.bytes.len(), 7106);
    assert_eq!(f.outer().1, Some(ChecksumVerdict::Partial { expected: 0xcd08 }));
    assert_eq!(f.inner().1, Some(ChecksumVerdict::Partial { expected: 0x6674 }));
    let d = f.dissect();
    assert_eq!((d.payload_len(), d.vni), (6990, Some(5001)));
    let (outer, inner) = (d.outer.unwrap(), d.inner.unwrap());
    let (header, _, _) = Ipv4Header::parse(&f.bytes[usize::from(outer.offset)..]).unwrap();
    let addresses = (header.source().to_string(), header.destination().to_string());
    assert_eq!(addresses, ("10.25.132.11".into(), "10.25.132.13".into()));
    let (udp, tcp) = (usize::from(outer.upper), usize::from(inner.upper));
    assert_eq!((f.u16(udp + 2), f.u16(udp + 6), f.u16(tcp + 16)), (4789, 0x37fc, 0x9ec8));
}

#[test]
fn a_super_frame_beyond_64_kib_takes_its_length_from_the_frame() {
    let Some(frames) = frames("bigtcp_v4_vxlan_v4.pcap") else { return };
    let (tcp, _, payload) = frames[0].tcp().unwrap();
    assert_eq!((frames[0].bytes.len(), payload.len(), tcp.seq()), (80_116, 80_000, 497_210_414));
    let d = frames[0].dissect();
    let (outer, inner) = (d.outer.unwrap(), d.inner.unwrap());
    let at = [usize::from(outer.offset) + 2, usize::from(outer.upper) + 4, usize::from(inner.offset) + 2];
    assert_eq!(at.map(|at| frames[0].u16(at)), [0; 3], "lengths that do not fit are zero");
}

#[test]
fn sack_blocks() {
    let Some(frames) = frames("tcp_option_sack.pcap") else { return };
    let all = [(1, 16), (256, 4096), (65536, 1_048_576), (16_777_216, 268_435_456)];
    for (index, f) in frames.iter().enumerate() {
        let (_, options, _) = f.tcp().unwrap();
        let blocks: Vec<SackBlock> =
            options.filter_map(Result::ok).flat_map(|o| o.sack_blocks().collect::<Vec<_>>()).collect();
        let expected: Vec<_> = all[..=index].iter().map(|&(left, right)| SackBlock { left, right }).collect();
        assert_eq!(blocks, expected);
    }
}

#[test]
fn what_was_cut_at_capture_is_unverifiable_not_bad() {
    let Some(frames) = frames("tcp_retransmit_fast.pcap") else { return };
    assert_eq!(frames.len(), 39);
    assert!(frames.iter().all(|f| matches!(f.outer().0, Some(ChecksumVerdict::Bad { found: 0, .. }))));
    let bad = frames.iter().filter(|f| is_bad(f.outer().1)).count();
    let unverifiable = frames.iter().filter(|f| f.outer().1 == Some(ChecksumVerdict::Unverifiable)).count();
    assert_eq!((bad, unverifiable), (18, 21));
    let sack = frames
        .iter()
        .filter(|f| f.tcp().is_some_and(|(_, mut options, _)| options.any(|o| matches!(o, Ok(TcpOption::Sack(_))))));
    assert_eq!(sack.count(), 6);
}

#[test]
fn sequence_numbers_wrap() {
    let Some(frames) = frames("tcp_seq_wrap.pcap") else { return };
    assert_eq!(frames.len(), 36);
    let (tcp, _, payload) = frames[4].tcp().unwrap();
    assert_eq!((tcp.seq(), payload.len(), tcp.seq().wrapping_add(payload.len() as u32)), (4_294_966_216, 1420, 340));
    let (tcp, _, payload) = frames[5].tcp().unwrap();
    assert_eq!((tcp.seq(), payload.len()), (340, 31));
    let (tcp, _, payload) = frames[6].tcp().unwrap();
    assert_eq!((tcp.seq(), payload.len()), (4_294_966_247, 1420));
    let (tcp, _, payload) = frames[16].tcp().unwrap();
    assert_eq!((tcp.seq(), payload.len()), (370, 1));
}

#[test]
fn bad_checksums_of_single_frames() {
    let Some(frames) = frames("checksums_a.pcap") else { return };
    let header = |i: usize| frames[i].outer().0;
    let upper = |i: usize| frames[i].outer().1;
    assert!(is_bad(header(0)));
    assert!(is_bad(upper(1)));
    assert_eq!((header(2), upper(2)), (GOOD, GOOD));
    assert_eq!(upper(3), Some(ChecksumVerdict::Bad { found: 1, expected: 0xbc54 }));
    assert_eq!(upper(4), GOOD);
    // Behind a home-address option the pseudo-header has the home address.
    assert_eq!(upper(5), Some(ChecksumVerdict::Bad { found: 1, expected: 0xb713 }));
    assert_eq!(upper(6), GOOD);
    assert_eq!(upper(7), Some(ChecksumVerdict::Bad { found: 0x000d, expected: 0xf7ff }));

    let Some(frames) = capture::frames("tcp_some_badsum.pcap") else { return };
    let bad: Vec<_> = frames.iter().map(|f| f.outer().1).enumerate().filter(|(_, v)| is_bad(*v)).collect();
    assert_eq!(
        bad,
        [
            (0, Some(ChecksumVerdict::Bad { found: 0x1337, expected: 0xe0c1 })),
            // Offloaded at the capture point: the field holds the pseudo-header's sum.
            (3, Some(ChecksumVerdict::Partial { expected: 0xb08f })),
        ]
    );
    let Some(frames) = capture::frames("nanosecs_be.pcap") else { return };
    assert!(frames.iter().all(|f| is_bad(f.outer().1)));
    let Some(frames) = capture::frames("pcapng_test016_be.pcapng") else { return };
    assert_eq!(frames.iter().filter(|f| is_bad(f.outer().0)).count(), 2);
}

#[test]
fn ipv6_extension_headers_jumbograms_and_fragments() {
    let Some(frames) = frames("ipv6_options.pcap") else { return };
    let protocols: Vec<_> = frames.iter().map(|f| f.dissect().outer.unwrap().protocol.0).collect();
    assert_eq!(protocols, [89, 58, 17, 89, 58, 17]);
    let (header, rest) = Ipv6Header::parse(&frames[0].bytes[14..]).unwrap();
    assert_eq!(header.extensions(rest).map(Result::unwrap).count(), 4);
    for f in frames.iter().filter(|f| f.dissect().outer.unwrap().protocol.0 != 89) {
        assert_eq!(f.outer().1, GOOD, "the last address of a routing header is in the pseudo-header");
    }
    let Some(jumbo) = capture::frames("ipv6_jumbogram.pcap") else { return };
    assert_eq!((jumbo[0].bytes.len(), jumbo[0].outer().1), (65_590, GOOD));
    let Some(fragments) = capture::frames("ipv6_fragments.pcap") else { return };
    assert_eq!(fragments.len(), 36);
    for f in &fragments {
        let d = f.dissect();
        assert!(d.outer.unwrap().fragment);
        assert_eq!(FlowKey::of(&f.bytes, &d).unwrap().ports, None, "ports of no fragment, the first too");
    }
    let first = fragments.iter().filter(|f| f.dissect().outer.unwrap().fragment_offset == 0);
    assert_eq!(first.filter(|f| f.dissect().outer.unwrap().protocol == Protocol::UDP).count(), 4);
}

#[test]
fn vlan_tags_and_priorities() {
    let Some(frames) = frames("vlan_pcp_dei.pcapng") else { return };
    let tags: Vec<Vec<u16>> =
        frames.iter().map(|f| f.dissect()).map(|d| d.tci[..usize::from(d.tags)].to_vec()).collect();
    let outer = 10 | 7 << 13;
    let inner = 20 | 5 << 13 | 1 << 12;
    for (i, tags) in tags.iter().enumerate() {
        let expected = match i % 3 {
            0 => vec![outer, inner],
            1 => vec![inner],
            _ => vec![],
        };
        assert_eq!(tags, &expected, "frame {}", i + 1);
    }
    let Some(frames) = capture::frames("http_qinq.pcap") else { return };
    let flows: BTreeSet<_> = frames.iter().filter_map(|f| FlowKey::of(&f.bytes, &f.dissect())).collect();
    assert_eq!((frames.len(), flows.len()), (14, 2));
    assert!(flows.iter().all(|key| key.vlans == [Some(0), Some(0)]));
    let ports = counts(frames.iter().map(|f| f.tcp().unwrap().0).map(|tcp| (tcp.source(), tcp.destination())));
    assert_eq!(ports.into_iter().collect::<Vec<_>>(), [((80, 59856), 7), ((59856, 80), 7)]);
    let Some(frames) = capture::frames("qinq_8021ad.pcap") else { return };
    let seen = frames.iter().map(|f| {
        let d = f.dissect();
        let (arp, _) = ArpIpv4::parse(&f.bytes[d.payload as usize..]).unwrap();
        (f.u16(12), d.tci[0] & 0xfff, f.u16(16), d.tci[1] & 0xfff, arp.operation().0)
    });
    assert_eq!(seen.collect::<Vec<_>>(), [(0x88a8, 200, 0x8100, 2001, 1), (0x88a8, 200, 0x8100, 2001, 2)]);
}

#[test]
fn own_receiver_capture_with_reordering() {
    let Some(frames) = frames("tcp_reorder_rcv.pcap") else { return };
    assert_eq!(frames.len(), 903);
    let data = frames.iter().filter(|f| f.tcp().is_some_and(|t| !t.2.is_empty() && t.0.destination() == 5001));
    assert_eq!(data.count(), 556);
    let sack = frames.iter().filter(|f| {
        f.tcp().is_some_and(|(tcp, mut o, _)| {
            tcp.flags().contains(TcpFlags::ACK) && o.any(|o| matches!(o, Ok(TcpOption::Sack(_))))
        })
    });
    assert_eq!(sack.count(), 67);
    assert!(frames.iter().all(|f| !is_bad(f.outer().0) && !is_bad(f.outer().1)));
}

/// Which member a running Linux bond sent each of 488 frames to, by policy and number of members.
#[test]
fn transmit_hashes_choose_the_member_that_linux_chose() {
    use netcore::flow::{layer2_hash, layer23_hash, layer34_hash};
    let Some(frames) = frames("bond_hash_frames.pcap") else { return };
    let Some(answers) = netcore_test::shared("exams/pcaps/bond_hash_members.csv") else { return };
    let text = std::fs::read_to_string(answers).unwrap();
    let mut lines = text.lines();
    let columns: Vec<(&str, u32)> = lines
        .next()
        .unwrap()
        .split(',')
        .skip(2)
        .map(|column| column.split_once('/').unwrap())
        .map(|(policy, members)| (policy, members.parse().unwrap()))
        .collect();
    let mut rows = 0;
    for line in lines {
        let mut cells = line.split(',');
        let number: usize = cells.next().unwrap().parse().unwrap();
        let kind = cells.next().unwrap();
        let frame = &frames[number - 1].bytes;
        for ((policy, members), cell) in columns.iter().zip(cells) {
            let hash = match *policy {
                "layer2" => layer2_hash(frame),
                "layer2+3" => layer23_hash(frame),
                "layer3+4" => layer34_hash(frame),
                other => panic!("policy {other}"),
            };
            assert_eq!(hash % members, cell.parse::<u32>().unwrap(), "frame {number} ({kind}), {policy}/{members}");
        }
        rows += 1;
    }
    assert_eq!(rows, 488);
}

#[test]
fn sack_blocks_grow_and_the_acknowledgement_jumps() {
    let Some(frames) = frames("tcp_retransmit_fast.pcap") else { return };
    let isn = |ack: u32, first: u32| ack.wrapping_sub(first);
    let mut seen = Vec::new();
    let mut base = None;
    for f in &frames {
        let Some((tcp, options, _)) = f.tcp() else { continue };
        let blocks: Vec<SackBlock> =
            options.filter_map(Result::ok).flat_map(|o| o.sack_blocks().collect::<Vec<_>>()).collect();
        if blocks.is_empty() {
            continue;
        }
        // The statement counts from the sender's first sequence number.
        let base = *base.get_or_insert(tcp.ack().wrapping_sub(12871));
        let relative = |n: u32| isn(n, base);
        seen.push((
            relative(tcp.ack()),
            blocks.iter().map(|b| (relative(b.left), relative(b.right))).collect::<Vec<_>>(),
        ));
    }
    let acks: Vec<u32> = seen.iter().map(|s| s.0).collect();
    assert_eq!(acks, [12871, 12871, 12871, 12871, 12871, 18591]);
    let edges: Vec<Vec<(u32, u32)>> = seen
        .iter()
        .map(|s| {
            let mut blocks = s.1.clone();
            blocks.sort_unstable();
            blocks
        })
        .collect();
    assert_eq!(
        edges,
        [
            vec![(14301, 15731)],
            vec![(14301, 17161)],
            vec![(14301, 18591)],
            vec![(14301, 18591), (21451, 22881)],
            vec![(14301, 18591), (21451, 23784)],
            vec![(21451, 23784)],
        ]
    );
}

#[test]
fn overlapping_segments_around_a_wrap() {
    let Some(frames) = frames("tcp_seq_wrap.pcap") else { return };
    let segment = |number: usize| frames[number - 1].tcp().map(|(tcp, _, payload)| (tcp.seq(), payload.len())).unwrap();
    assert_eq!((segment(23), segment(24)), ((6051, 1397), (6028, 1420)));
    let first = frames.iter().filter_map(|f| f.tcp()).find(|(_, _, payload)| payload.len() > 1).unwrap();
    assert_eq!(first.0.seq(), 4_294_964_796);
}

#[test]
fn a_stream_with_loss_delay_and_doubles_is_whole() {
    let Some(frames) = frames("tcp_reorder_rcv.pcap") else { return };
    let mut stream: Vec<u8> = Vec::new();
    let (mut first, mut highest, mut below, mut doubles) = (None, 0u32, 0, 0);
    let mut seen = BTreeSet::new();
    for f in &frames {
        let Some((tcp, _, payload)) = f.tcp() else { continue };
        if tcp.destination() != 5001 || payload.is_empty() {
            continue;
        }
        let offset = tcp.seq().wrapping_sub(*first.get_or_insert(tcp.seq()));
        below += u32::from(offset < highest);
        doubles += u32::from(!seen.insert((offset, payload.len())));
        highest = highest.max(offset + payload.len() as u32);
        let (from, to) = (offset as usize, offset as usize + payload.len());
        stream.resize(stream.len().max(to), 0);
        stream[from..to].copy_from_slice(payload);
    }
    use sha2::Digest;
    let sha: String = sha2::Sha256::digest(&stream).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!((stream.len(), below, doubles), (800_000, 15, 3));
    assert_eq!(sha, "b036c54f11c27da6518354787d2873d15853010b6c8925c45ef3e499a03aec4e");
}
