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

/// The frame without its VLAN tag.
fn untagged() -> Vec<u8> {
    let mut frame = vxlan_frame();
    frame.drain(12..16);
    frame
}

proptest! {
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
        for ports in [TunnelPorts::default(), TunnelPorts::none()] {
            prop_assert_eq!(dissect(&frame, &ports), walk(layers(&frame, &ports)));
        }
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let d = dissect(&bytes, &TunnelPorts::default());
        prop_assert!(d.payload as usize <= bytes.len() + 60);
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
