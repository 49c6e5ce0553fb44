//! Extension headers of IPv6.

use super::*;
use core::net::Ipv6Addr;

const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

#[test]
fn extension_headers_are_walked_to_the_upper_layer() {
    let a = "2001:db8::1".parse().unwrap();
    let b = "2001:db8::2".parse().unwrap();
    let header = Ipv6Header::new(a, b, Protocol::HOP_BY_HOP, 40, 64);
    let mut rest = [0u8; 40];
    rest[..8].copy_from_slice(&[43, 0, 1, 4, 0, 0, 0, 0]);
    rest[8..12].copy_from_slice(&[17, 2, 0, 1]);
    rest[31] = 9;
    let upper = header.upper(&rest).unwrap();
    assert_eq!((upper.protocol, upper.offset, upper.bytes.len()), (Protocol::UDP, 32, 8));
    assert_eq!(upper.destination, "::9".parse::<Ipv6Addr>().unwrap(), "the last address of the route");
    assert!(header.upper(&rest[..20]).is_err());
}

#[test]
fn a_later_fragment_ends_the_walk() {
    let a = "2001:db8::1".parse().unwrap();
    let header = Ipv6Header::new(a, a, Protocol::FRAGMENT, 16, 64);
    let later = [0, 0, 0x05, 0xa8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let upper = header.upper(&later).unwrap();
    assert!(upper.fragment);
    assert_eq!((upper.fragment_offset, upper.offset), (1448, 8));
    let atomic = [17, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(!header.upper(&atomic).unwrap().fragment);
}

#[test]
fn the_pseudo_header_of_segment_routing_has_the_final_segment() {
    // Segments are listed from the last one on (RFC 8754 section 2); one is left.
    let mut rest = Vec::from([17, 4, 4, 1, 1, 0, 0, 0]);
    rest.extend(B.octets());
    rest.extend(A.octets());
    rest.extend([0; 8]);
    let header = Ipv6Header::new(A, A, Protocol::ROUTING, 48, 64);
    assert_eq!(header.upper(&rest).unwrap().destination, B);
    rest[3] = 0;
    let header = Ipv6Header::new(A, B, Protocol::ROUTING, 48, 64);
    rest[8] = 0xff;
    assert_eq!(header.upper(&rest).unwrap().destination, B, "nothing left to visit");
}

#[test]
fn an_authentication_header_without_index_and_sequence_number_is_refused() {
    let mut rest = [0u8; 24];
    rest[0] = 17;
    let header = Ipv6Header::new(A, B, Protocol::AH, 24, 64);
    assert!(matches!(
        header.upper(&rest),
        Err(WireError::Field { header: "AH", field: "payload length", value: 0, .. })
    ));
    rest[1] = 2;
    assert_eq!(header.upper(&rest).map(|upper| (upper.protocol, upper.offset)), Ok((Protocol::UDP, 16)));
}

#[test]
fn a_jumbo_payload_option_is_for_packets_without_a_payload_length() {
    let jumbo = |len: u32| {
        let [a, b, c, d] = len.to_be_bytes();
        [17, 0, 194, 4, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0]
    };
    let header = |len| Ipv6Header::new(A, B, Protocol::HOP_BY_HOP, len, 64);
    assert_eq!(header(0).upper(&jumbo(65536)).unwrap().jumbo_len, Some(65536));
    for (payload_len, len) in [(16, 65536), (0, 65535), (0, 0)] {
        let bytes = jumbo(len);
        assert!(matches!(header(payload_len).upper(&bytes), Err(WireError::Field { value, .. }) if value == len));
    }
    let mut fragment = [0u8; 24];
    fragment[..8].copy_from_slice(&jumbo(65536)[..8]);
    fragment[0] = 44;
    fragment[8..12].copy_from_slice(&[17, 0, 0, 1]);
    assert!(header(0).upper(&fragment).is_err(), "a jumbogram is no fragment");
}

#[test]
fn options_of_extension_headers_are_walked_past_padding() {
    let header = Ipv6Header::new(A, B, Protocol::DESTINATION_OPTIONS, 16, 64);
    let rest = [59, 1, 0, 1, 2, 0, 0, 5, 2, 0, 0, 0x3e, 0, 9, 9, 9];
    let walk: Vec<_> = header.extensions(&rest).map(Result::unwrap).collect();
    let options: Vec<_> = walk[0].options().collect();
    assert_eq!(options[0], Ok(Ipv6Option { kind: 5, data: &[0, 0] }));
    assert_eq!(options[1], Ok(Ipv6Option { kind: 0x3e, data: &[] }));
    assert!(matches!(options[2], Err(WireError::Field { field: "length", value: 9, .. })));
    assert_eq!(options.len(), 3);
}
