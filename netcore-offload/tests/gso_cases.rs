//! Segmentation: the cases of the kernel's own tests, and one test per rule.

mod common;

use common::stack::{Outer, Stack, Wrap};
use common::{ACK, CWR, FIN, PSH, Tcp};
use netcore::dissect::{ChecksumVerdict, TunnelPorts, dissect};
use netcore::offload::{SegmentError, Segmenter};
use netcore::packet::PartialChecksum;
use netcore::{Burst, Features, Gso, GsoKind, Packet, PoolCache};
use netcore_offload::{Large, SoftwareSegmenter};

fn gso(kind: GsoKind, size: usize) -> Gso {
    Gso { kind, size: size as u16, segments: 2 }
}

fn cut(packet: Packet, cache: &mut PoolCache) -> Result<Vec<Vec<u8>>, SegmentError> {
    let mut out = Burst::new();
    match SoftwareSegmenter::new().segment(packet, Features::empty(), cache, &mut out) {
        Ok(_) => Ok(out.iter().map(Packet::to_vec).collect()),
        Err(refused) => {
            assert!(out.is_empty(), "nothing was added");
            Err(refused.error)
        }
    }
}

fn udp(payload: usize) -> Stack {
    Stack { udp: true, tcp: Tcp { payload: vec![7; payload], ..Tcp::default() }, ..Stack::default() }
}

/// The KUnit cases of `skb_segment`: where the payload lies must not matter. Headers here are those of UDP over IPv4.
#[test]
fn generic_segmentation_cuts_linear_and_scattered_payload_alike() {
    let Some(path) = netcore_test::shared("exams/gso.json") else { return };
    let exam: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let group = &exam["generic_segmentation"];
    let size = group["gso_size"].as_u64().unwrap() as usize;
    let numbers = |value: &serde_json::Value| -> Vec<usize> {
        value.as_array().map_or(Vec::new(), |all| all.iter().map(|n| n.as_u64().unwrap() as usize).collect())
    };
    let mut ran = 0;
    for case in group["cases"].as_array().unwrap() {
        let linear = case["linear"].as_u64().unwrap() as usize;
        let parts: Vec<_> = numbers(&case["frags"]).into_iter().chain(numbers(&case["frag_list"])).collect();
        let expected = numbers(&case["segs"]);
        let total = linear + parts.iter().sum::<usize>();
        let frame = udp(total).frame();
        let (head, mut rest) = frame.split_at(42 + linear);
        let pool = common::pool();
        let mut cache = pool.cache();
        let mut packet = cache.copy_chain(head).unwrap();
        for part in parts {
            let (own, more) = rest.split_at(part);
            packet.append(cache.from_owner(own.to_vec()).unwrap()).unwrap();
            rest = more;
        }
        if total > size {
            packet.set_gso(Some(gso(GsoKind::UDP_L4, size)));
        }
        let out = cut(packet, &mut cache).unwrap();
        let lengths: Vec<_> = out.iter().map(|frame| frame.len() - 42).collect();
        assert_eq!(lengths, expected, "{}", case["id"]);
        let payload: Vec<u8> = out.iter().flat_map(|frame| frame[42..].to_vec()).collect();
        assert_eq!(payload, frame[42..], "{}", case["id"]);
        ran += 1;
    }
    assert_eq!(ran, 5);
}

/// The cases of `udpgso`: what one send with a segment size becomes on the wire. What the socket interface refuses for its own
/// reasons (a datagram beyond the MTU without segmentation, one beyond 65507 bytes) never gets here.
#[test]
fn udp_datagrams_are_cut_as_the_kernels_test_expects() {
    let Some(path) = netcore_test::shared("exams/gso.json") else { return };
    let exam: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut ran = 0;
    for v6 in [false, true] {
        for case in exam["udp_gso"]["cases"][0]["list"].as_array().unwrap() {
            let (send, size) = (case["send"].as_u64().unwrap() as usize, case["gso"].as_u64().unwrap() as usize);
            if size == 0 || send > 65507 {
                continue;
            }
            let expected: Vec<usize> = match &case["expect"] {
                serde_json::Value::Array(all) => all.iter().map(|n| n.as_u64().unwrap() as usize).collect(),
                text => match text.as_str().unwrap() {
                    "44 x 1472" => vec![1472; 44],
                    "44 x 1472 + 739" => [vec![1472; 44], vec![739]].concat(),
                    "128 x 1" => vec![1; 128],
                    _ => Vec::new(),
                },
            };
            let mut stack = udp(send);
            stack.tcp.v6 = v6;
            let pool = common::pool();
            let mut cache = pool.cache();
            let mut packet = cache.copy_chain(&stack.frame()).unwrap();
            packet.set_gso(Some(gso(GsoKind::UDP_L4, size)));
            let headers = if v6 { 62 } else { 42 };
            match cut(packet, &mut cache) {
                Ok(out) => {
                    let lengths: Vec<_> = out.iter().map(|frame| frame.len() - headers).collect();
                    assert_eq!(lengths, expected, "{case}");
                    out.iter().for_each(|frame| verify(frame));
                }
                Err(error) => {
                    assert!(expected.is_empty(), "{case}: {error}");
                    assert_eq!(error, SegmentError::Count { count: 129, max: 128 });
                }
            }
            ran += 1;
        }
    }
    assert_eq!(ran, 22);
}

/// Every checksum of a frame is right or absent.
fn verify(frame: &[u8]) {
    let d = dissect(frame, &TunnelPorts::default());
    for checksums in [d.outer_checksums(frame, frame.len()), d.inner_checksums(frame, frame.len())] {
        for verdict in checksums.into_iter().flat_map(|checksums| [checksums.header, checksums.upper]).flatten() {
            assert!(matches!(verdict, ChecksumVerdict::Good | ChecksumVerdict::Absent), "{verdict:?}");
        }
    }
}

/// All tunnels, both IP versions outside and inside: every segment is as if it had been built alone.
#[test]
fn segments_inside_tunnels_are_what_their_builder_would_have_made() {
    let pool = common::pool();
    let mut cache = pool.cache();
    let mut ran = 0;
    for v6 in [false, true] {
        for outer_v6 in [false, true] {
            for (name, kind, wrap) in wraps(outer_v6) {
                let base = Tcp { v6, id: 65534, flags: ACK | PSH | FIN | CWR, ..Tcp::default() };
                let wanted: Vec<_> = (0..3usize)
                    .map(|i| {
                        let mut flags = ACK;
                        flags |= if i == 0 { CWR } else { 0 } | if i == 2 { PSH | FIN } else { 0 };
                        let len = if i == 2 { 333 } else { 1000 };
                        let tcp = Tcp {
                            seq: base.seq + 1000 * i as u32,
                            id: base.id.wrapping_add(i as u16),
                            flags,
                            payload: (0..len).map(|b| (b * 7 + i * 1000) as u8).collect(),
                            ..base.clone()
                        };
                        let mut wrap = wrap.clone();
                        wrap.outer_mut().id = 65535u16.wrapping_add(i as u16);
                        Stack { tcp, wraps: vec![wrap], ..Stack::default() }.frame()
                    })
                    .collect();
                let payload: Vec<u8> = wanted
                    .iter()
                    .zip([1000, 1000, 333])
                    .flat_map(|(frame, len)| frame[frame.len() - len..].to_vec())
                    .collect();
                let mut first = wrap.clone();
                first.outer_mut().id = 65535;
                let large = Stack { tcp: Tcp { payload, ..base }, wraps: vec![first], ..Stack::default() }.frame();
                let mut packet = cache.copy_chain(&large).unwrap();
                let tcp = if v6 { GsoKind::TCPV6 } else { GsoKind::TCPV4 };
                let found = Large::of(&packet, &TunnelPorts::default()).unwrap();
                assert_eq!(found.kind, kind | tcp, "{name}");
                packet.set_gso(Some(gso(found.kind | GsoKind::TCP_ECN, 1000)));
                assert!(cut(packet, &mut cache).unwrap() == wanted, "{name}, outer IPv6 {outer_v6}, inner IPv6 {v6}");
                ran += 1;
            }
        }
    }
    assert_eq!(ran, 4 * 9);
}

fn wraps(v6: bool) -> Vec<(&'static str, GsoKind, Wrap)> {
    let outer = Outer { v6, ..Outer::default() };
    let vxlan = |checksum| Wrap::Vxlan { outer, vni: 5, sport: 50_000, dport: 4789, checksum, bad: false };
    let geneve = |checksum| {
        let options = vec![1, 2, 0x80, 1, 9, 9, 9, 9];
        Wrap::Geneve { outer, vni: 5, sport: 50_000, checksum, options, flags: 0x40 }
    };
    let gre = |key, checksum, ethernet| Wrap::Gre { outer, key, checksum, ethernet };
    let ip = if v6 { GsoKind::IPXIP6 } else { GsoKind::IPXIP4 };
    vec![
        ("VXLAN", GsoKind::UDP_TUNNEL, vxlan(false)),
        ("VXLAN with checksum", GsoKind::UDP_TUNNEL_CSUM, vxlan(true)),
        ("GENEVE", GsoKind::UDP_TUNNEL, geneve(false)),
        ("GENEVE with checksum", GsoKind::UDP_TUNNEL_CSUM, geneve(true)),
        ("GRE", GsoKind::GRE, gre(None, false, false)),
        ("GRE with key", GsoKind::GRE, gre(Some(9), false, false)),
        ("GRE with checksum and key", GsoKind::GRE_CSUM, gre(Some(9), true, false)),
        ("GRE with an Ethernet frame", GsoKind::GRE_CSUM, gre(None, true, true)),
        ("IP in IP", ip, Wrap::Ip { outer }),
    ]
}

/// With checksum offload in the device the innermost checksum is left to it and all outer ones are final.
#[test]
fn a_device_that_fills_in_checksums_gets_the_innermost_one_as_a_request() {
    let pool = common::pool();
    let mut cache = pool.cache();
    let wrap = Wrap::Vxlan { outer: Outer::default(), vni: 5, sport: 50_000, dport: 4789, checksum: true, bad: false };
    let stack = Stack { tcp: Tcp { payload: vec![3; 2500], ..Tcp::default() }, wraps: vec![wrap], ..Stack::default() };
    let mut packet = cache.copy_chain(&stack.frame()).unwrap();
    packet.set_gso(Some(gso(GsoKind::TCPV4 | GsoKind::UDP_TUNNEL_CSUM, 1000)));
    let mut segmenter = SoftwareSegmenter::new();
    let mut out = Burst::new();
    segmenter.segment(packet, Features::TX_CHECKSUM_GENERIC, &mut cache, &mut out).unwrap();
    assert_eq!(out.len(), 3);
    while let Some(mut segment) = out.pop() {
        assert_eq!(segment.transmit_checksum(), Some(PartialChecksum { start: 84, offset: 16 }));
        segmenter.fill_checksum(&mut segment, &mut cache).unwrap();
        verify(&segment.to_vec());
        cache.put(segment);
    }
}

/// BIG TCP: lengths that do not fit are zero, IPv6 has a jumbo payload option; wire packets have neither.
#[test]
fn big_tcp_is_cut_into_ordinary_packets() {
    let mut config = netcore_offload::GroConfig::default();
    config.max_size = 200_000;
    for v6 in [false, true] {
        let pool = common::pool();
        let mut cache = pool.cache();
        let frames: Vec<_> = common::train(&Tcp { v6, ..Tcp::default() }, 64, 1400).iter().map(Tcp::frame).collect();
        let packets = common::poll(config.clone(), &frames, &mut cache);
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].len(), if v6 { 54 + 20 + 8 } else { 54 } + 64 * 1400);
        for packet in packets {
            assert!(cut(packet, &mut cache).unwrap() == frames);
        }
    }
}

#[test]
fn what_does_not_match_its_kind_is_refused_and_comes_back_unchanged() {
    let pool = common::pool();
    let mut cache = pool.cache();
    let frame = Tcp::with_payload(3000).frame();
    for kind in [
        GsoKind::TCPV6,
        GsoKind::UDP_L4,
        GsoKind::TCPV4 | GsoKind::UDP_TUNNEL,
        GsoKind::TCPV4 | GsoKind::GRE,
        GsoKind::TCPV4 | GsoKind::IPXIP4,
    ] {
        let mut packet = cache.copy_chain(&frame).unwrap();
        packet.set_gso(Some(gso(kind, 1000)));
        let mut out = Burst::new();
        let refused = SoftwareSegmenter::new().segment(packet, Features::empty(), &mut cache, &mut out).unwrap_err();
        assert!(matches!(refused.error, SegmentError::Headers { .. }), "{kind:?}: {}", refused.error);
        assert_eq!(refused.packet.to_vec(), frame);
    }
}
