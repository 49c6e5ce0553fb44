use super::*;
use crate::flow::FlowKey;
use crate::wire::Protocol;
use alloc::string::ToString;
use alloc::vec::Vec;
use proptest::prelude::*;

/// A VXLAN frame around an IPv4 TCP segment, written out by hand; checksums are not filled in.
fn vxlan_frame() -> Vec<u8> {
    let mut f = Vec::new();
    f.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00, 0x60, 0x0a, 0x08, 0x00]);
    f.extend([0x45, 0, 0, 94, 0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
    f.extend([0xc0, 0, 0x12, 0xb5, 0, 74, 0, 0, 8, 0, 0, 0, 0, 0x10, 0x92, 0]);
    f.extend([2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 0x08, 0x00]);
    f.extend([0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2]);
    f.extend([0xac, 0x9e, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    f.extend([0; 6]);
    f
}

#[test]
fn offsets_through_vlan_and_vxlan() {
    let frame = vxlan_frame();
    let d = dissect(&frame, &TunnelPorts::default());
    assert_eq!((d.tags, d.tci[0], d.depth, d.vni), (1, 0x600a, 1, Some(4242)));
    let offsets = d.offsets().unwrap();
    assert_eq!(
        offsets,
        HeaderOffsets { network: 18, transport: 38, inner_mac: 54, inner_network: 68, inner_transport: 88 }
    );
    assert_eq!((d.payload, d.payload_len()), (108, 4), "padding is not payload");
    assert_eq!(d.stopped, None);
    let key = FlowKey::of(&frame, &d).unwrap();
    assert_eq!(key.to_string(), "TCP 203.0.113.1:44190 > 203.0.113.2:5001 vni 4242 vlan 10");
}

#[test]
fn a_decoder_that_does_not_know_the_port_sees_plain_udp() {
    let d = dissect(&vxlan_frame(), &TunnelPorts::none().with_vxlan(8472));
    assert_eq!((d.depth, d.inner, d.vni), (0, None, None));
    assert_eq!(d.outer.unwrap().protocol, Protocol::UDP);
}

#[test]
fn a_cut_header_is_named_with_its_place() {
    let frame = vxlan_frame();
    let d = dissect(&frame[..100], &TunnelPorts::default());
    assert!(matches!(d.stopped, Some((88, WireError::Truncated { header: "TCP", len: 12, needed: 20 }))), "{d:?}");
    assert!(d.inner.unwrap().cut);
}

#[test]
fn a_udp_checksum_covers_what_the_udp_length_says() {
    use crate::checksum::{Sum, sum};
    let mut frame = Vec::from([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    // Ten bytes of datagram and three more inside the IP packet.
    frame.extend([0x45, 0, 0, 33, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let mut udp = [0, 7, 0, 9, 0, 10, 0, 0, 1, 2];
    let checksum = Sum::pseudo_ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, 10).plus(sum(&udp)).finish_udp();
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(udp);
    frame.extend([9, 9, 9]);
    let d = dissect(&frame, &TunnelPorts::default());
    assert_eq!(d.outer_checksums(&frame, frame.len()).unwrap().upper, Some(ChecksumVerdict::Good));
}

#[test]
fn headers_beyond_64_kib_end_the_walk_instead_of_wrapping() {
    // VXLAN in VXLAN, each over IPv6 with 15 destination options headers of 2048 bytes: the second ends beyond 65535.
    let mut frame = Vec::new();
    for _ in 0..4 {
        frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 60, 64]);
        frame.extend([0; 32]);
        for i in 0..15 {
            let start = frame.len();
            frame.extend([if i == 14 { 17 } else { 60 }, 255]);
            frame.resize(start + 2048, 0);
        }
        frame.extend([0xc0, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0]);
    }
    let d = dissect(&frame, &TunnelPorts::default());
    assert!(matches!(d.stopped, Some((_, WireError::Field { field: "end of header", .. }))), "{:?}", d.stopped);
    assert_eq!(d.depth, 2);
}

/// Frame with these layers around a TCP segment: see `Around`.
enum Around {
    Ethernet,
    Tag(u16, u16),
    V4(u8),
    V6(u8),
    Vxlan(u32),
    Geneve(u32, u16),
    Gre(Option<u32>, u16),
}

/// Writes headers, outermost first, around a TCP segment of 4 bytes; lengths are right, checksums are not filled in.
fn nested(layers: &[Around]) -> Vec<u8> {
    let mut frame =
        Vec::from([0xac, 0x9e, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    let mut ethertype = 0x0800u16;
    for layer in layers.iter().rev() {
        let len = frame.len() as u16;
        let mut header = Vec::new();
        match *layer {
            Around::Ethernet => {
                header.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
                header.extend(ethertype.to_be_bytes());
            }
            Around::Tag(tpid, tci) => {
                header.extend(tci.to_be_bytes());
                header.extend(ethertype.to_be_bytes());
                ethertype = tpid;
            }
            Around::V4(protocol) => {
                header.extend([0x45, 0]);
                header.extend((20 + len).to_be_bytes());
                header.extend([0, 0, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
                ethertype = 0x0800;
            }
            Around::V6(protocol) => {
                header.extend([0x60, 0, 0, 0]);
                header.extend(len.to_be_bytes());
                header.extend([protocol, 64]);
                header.extend([0x20; 32]);
                ethertype = 0x86dd;
            }
            Around::Vxlan(vni) => {
                header.extend([0xc0, 0, 0x12, 0xb5]);
                header.extend((16 + len).to_be_bytes());
                header.extend([0, 0, 8, 0, 0, 0]);
                header.extend((vni << 8).to_be_bytes());
            }
            Around::Geneve(vni, protocol) => {
                header.extend([0xc0, 0, 0x17, 0xc1]);
                header.extend((24 + len).to_be_bytes());
                header.extend([0, 0, 2, 0]);
                header.extend(protocol.to_be_bytes());
                header.extend((vni << 8).to_be_bytes());
                header.extend([1, 0, 1, 1, 9, 9, 9, 9]);
            }
            Around::Gre(key, protocol) => {
                header.extend([if key.is_some() { 0x20 } else { 0 }, 0]);
                header.extend(protocol.to_be_bytes());
                header.extend(key.into_iter().flat_map(u32::to_be_bytes));
            }
        }
        header.extend(frame);
        frame = header;
    }
    frame
}

#[test]
fn every_tunnel_is_followed_to_the_innermost_header() {
    use Around::{Ethernet as E, Geneve, Gre, Tag, V4, V6, Vxlan};
    let teb = 0x6558;
    type Case<'a> = (&'a [Around], TunnelKind, u8, Option<u32>, &'a str);
    let cases: [Case<'_>; 8] = [
        (&[E, V4(17), Vxlan(7), E, V4(6)], TunnelKind::Vxlan, 1, Some(7), "vni 7"),
        (&[E, V6(17), Geneve(9, teb), E, V4(6)], TunnelKind::Geneve, 1, Some(9), "GENEVE vni 9"),
        (&[E, V4(17), Geneve(9, 0x86dd), V6(6)], TunnelKind::Geneve, 1, Some(9), "GENEVE vni 9"),
        (&[E, V4(47), Gre(None, 0x0800), V4(6)], TunnelKind::Gre, 1, None, "GRE"),
        (
            &[E, V4(47), Gre(Some(40), teb), E, Tag(0x8100, 5), V6(6)],
            TunnelKind::Gre,
            1,
            Some(40),
            "GRE key 40 inner vlan 5",
        ),
        (&[E, V4(4), V4(6)], TunnelKind::Ip, 1, None, "IP-in-IP"),
        (&[E, Tag(0x88a8, 3), Tag(0x8100, 4), V6(4), V4(6)], TunnelKind::Ip, 1, None, "IP-in-IP vlan 3 vlan 4"),
        (
            &[E, V4(17), Vxlan(1), E, V4(41), V6(47), Gre(Some(2), 0x0800), V4(6)],
            TunnelKind::Gre,
            3,
            Some(2),
            "GRE key 2",
        ),
    ];
    for (around, kind, depth, vni, text) in cases {
        let frame = nested(around);
        let d = dissect(&frame, &TunnelPorts::default());
        assert_eq!((d.kind, d.depth, d.vni, d.stopped), (Some(kind), depth, vni, None), "{text}");
        assert_eq!((d.payload as usize, d.payload_len()), (frame.len() - 4, 4), "{text}");
        let inner = d.inner.unwrap();
        assert_eq!((inner.protocol, usize::from(inner.upper)), (Protocol::TCP, frame.len() - 24), "{text}");
        let key = FlowKey::of(&frame, &d).unwrap().to_string();
        assert!(key.ends_with(&alloc::format!("5001 {text}")), "{key}");
        let layers: Vec<_> = layers(&frame, &TunnelPorts::default()).map(Result::unwrap).collect();
        let tunnels = layers.iter().filter(|layer| matches!(layer, Layer::Tunnel(_))).count();
        assert_eq!(tunnels, usize::from(depth));
        assert!(matches!(layers.last(), Some(Layer::Transport(t)) if t.payload == d.payload));
    }
}

#[test]
fn tunnels_are_followed_four_deep_and_then_the_walk_says_why_it_stops() {
    let mut around = Vec::from([Around::Ethernet]);
    around.extend((0..4).map(|_| Around::V4(4)));
    around.push(Around::V4(6));
    let d = dissect(&nested(&around), &TunnelPorts::default());
    assert_eq!((d.depth, d.stopped), (4, None));
    around.insert(1, Around::V4(4));
    let d = dissect(&nested(&around), &TunnelPorts::default());
    assert_eq!(d.depth, 4);
    assert!(matches!(d.stopped, Some((114, WireError::Field { field: "number of tunnels", value: 5, .. }))), "{d:?}");
}

#[test]
fn an_inner_frame_without_a_network_header_leaves_nothing_of_the_tunnel_around_it() {
    use Around::{Ethernet as E, Gre, Tag, V4, Vxlan};
    // VXLAN in GRE; the innermost frame is not IP.
    let mut frame = nested(&[E, V4(47), Gre(Some(5), 0x6558), E, Tag(0x8100, 6), V4(17), Vxlan(1), E]);
    let at = frame.len() - 26;
    frame[at..at + 2].copy_from_slice(&[0x88, 0xb5]);
    let d = dissect(&frame, &TunnelPorts::default());
    assert_eq!((d.depth, d.kind, d.vni, d.inner), (2, Some(TunnelKind::Vxlan), Some(1), None));
    assert_eq!((d.inner_tags, d.inner_ethertype), (0, Some(EtherType(0x88b5))));
    assert_eq!(d.innermost(), d.outer);
}

#[test]
fn the_port_table_is_the_users() {
    use Around::{Ethernet as E, V4, Vxlan};
    let frame = nested(&[E, V4(17), Vxlan(7), E, V4(6)]);
    let kind = |ports: &TunnelPorts| dissect(&frame, ports).kind;
    let ports = TunnelPorts::default();
    assert_eq!(kind(&ports), Some(TunnelKind::Vxlan));
    assert_eq!(kind(&ports.clone().without(4789)), None);
    // 4853 has the same remainder as 4789.
    assert_eq!(kind(&TunnelPorts::none().with_vxlan(4853)), None);
    // The same bytes are GENEVE of version 0 with 8 words of options.
    assert_eq!(kind(&ports.with_geneve(4789)), Some(TunnelKind::Geneve));
}

#[test]
fn control_packets_and_other_payloads_of_tunnels_are_not_looked_into() {
    use Around::{Ethernet as E, Geneve, Gre, V4};
    let mut geneve = nested(&[E, V4(17), Geneve(9, 0x0800), V4(6)]);
    assert!(dissect(&geneve, &TunnelPorts::default()).inner.is_some());
    geneve[43] = 0x80;
    let d = dissect(&geneve, &TunnelPorts::default());
    assert_eq!((d.depth, d.inner, d.payload, d.stopped), (1, None, 58, None));
    let gre = nested(&[E, V4(47), Gre(None, 0x8847), V4(6)]);
    let d = dissect(&gre, &TunnelPorts::default());
    assert_eq!((d.inner, d.inner_ethertype, d.payload), (None, Some(EtherType::MPLS), 38));
    let mut fragment = nested(&[E, V4(47), Gre(None, 0x0800), V4(6)]);
    fragment[20] = 0x20;
    assert_eq!(dissect(&fragment, &TunnelPorts::default()).depth, 0, "a part of a packet is not a tunnel's");
}

#[test]
fn a_gre_checksum_is_judged() {
    use crate::wire::GreHeader;
    let mut frame = nested(&[Around::Ethernet, Around::V4(47), Around::Gre(Some(0), 0x0800), Around::V4(6)]);
    // The key's place holds a checksum instead.
    frame[34] = 0x80;
    GreHeader::fill_checksum(&mut frame[34..]).unwrap();
    let verdict = |frame: &[u8]| {
        dissect(frame, &TunnelPorts::default()).outer_checksums(frame, frame.len()).and_then(|checks| checks.upper)
    };
    assert_eq!(verdict(&frame), Some(ChecksumVerdict::Good));
    *frame.last_mut().unwrap() ^= 1;
    assert!(matches!(verdict(&frame), Some(ChecksumVerdict::Bad { .. })));
}

/// The frame without its VLAN tag.
fn untagged() -> Vec<u8> {
    let mut frame = vxlan_frame();
    frame.drain(12..16);
    frame
}

proptest! {
    // A change that matters hits the right byte seldom.
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn fast_and_general_walk_agree(
        changes in prop::collection::vec((0usize..114, any::<u8>()), 0..3),
        len in 0usize..200, from in prop::sample::select(alloc::vec![0usize, 50]),
    ) {
        let mut frame = untagged();
        for (at, value) in changes {
            frame[at] = value;
        }
        frame.drain(..from);
        frame.truncate(len);
        let geneve = TunnelPorts::none().with_geneve(4789);
        for ports in [TunnelPorts::default(), TunnelPorts::none(), geneve, TunnelPorts::none().with_vxlan(4853)] {
            prop_assert_eq!(dissect(&frame, &ports), walk(layers(&frame, &ports)));
        }
    }

    #[test]
    fn fast_and_general_walk_agree_on_tags_and_ipv6(
        tags in 0usize..4, v6 in any::<bool>(), udp in any::<bool>(),
        changes in prop::collection::vec((0usize..100, any::<u8>()), 0..3), len in 0usize..140,
    ) {
        let mut around = Vec::from([Around::Ethernet]);
        around.extend((0..tags).map(|n| Around::Tag(if n % 2 == 0 { 0x88a8 } else { 0x8100 }, n as u16)));
        let protocol = if udp { 17 } else { 6 };
        around.push(if v6 { Around::V6(protocol) } else { Around::V4(protocol) });
        let mut frame = nested(&around);
        for (at, value) in changes {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        frame.truncate(len);
        for ports in [TunnelPorts::default(), TunnelPorts::none(), TunnelPorts::none().with_vxlan(5001)] {
            prop_assert_eq!(dissect(&frame, &ports), walk(layers(&frame, &ports)));
        }
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let d = dissect(&bytes, &TunnelPorts::default());
        prop_assert!(d.payload as usize <= bytes.len());
        let _ = (d.outer_checksums(&bytes, bytes.len()), FlowKey::of(&bytes, &d));
        let _ = dissect_ip(&bytes, &TunnelPorts::default());
    }

    #[test]
    fn any_change_and_any_cut_of_a_tunnel_frame_give_an_answer(at in 0usize..118, value in any::<u8>(), len in 0usize..119) {
        let mut frame = vxlan_frame();
        frame[at.min(117)] = value;
        frame.truncate(len);
        let d = dissect(&frame, &TunnelPorts::default());
        let _ = (d.outer_checksums(&frame, 118), d.inner_checksums(&frame, 118), FlowKey::of(&frame, &d));
        prop_assert!(d.payload as usize <= frame.len());
    }
}
