//! GENEVE, GRE, IP-in-IP and VXLAN.

use super::*;

#[test]
fn geneve_options_are_written_and_read_back_and_the_critical_bit_is_told() {
    use zerocopy::IntoBytes;
    let options = [
        GeneveOption { class: 0x0100, kind: 1, data: &[1, 2, 3, 4] },
        GeneveOption { class: 0x0101, kind: 0x80, data: &[] },
        GeneveOption { class: 0xffff, kind: 3, data: &[7; 124] },
    ];
    let mut bytes = [0u8; 256];
    let mut len = 8;
    for option in &options {
        len += option.write(&mut bytes[len..]).unwrap();
    }
    let mut header = GeneveHeader::new(EtherType::TRANSPARENT_ETHERNET, 0x0c_012e, len - 8).unwrap();
    header.set_flags(GeneveHeader::CRITICAL);
    bytes[..8].copy_from_slice(header.as_bytes());
    let (parsed, read, rest) = GeneveHeader::parse(&bytes).unwrap();
    assert_eq!(
        (parsed.vni(), parsed.protocol(), parsed.header_len()),
        (0x0c_012e, EtherType::TRANSPARENT_ETHERNET, len)
    );
    assert!(parsed.has_critical() && !parsed.is_control());
    assert_eq!(rest.len(), 256 - len);
    let read: Vec<_> = read.map(Result::unwrap).collect();
    assert_eq!(read, options);
    assert_eq!(read.iter().map(GeneveOption::is_critical).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn geneve_refuses_other_versions_and_options_that_do_not_fit() {
    let mut bytes = [0u8; 12];
    bytes[0] = 0x40;
    assert!(matches!(GeneveHeader::parse(&bytes), Err(WireError::Field { field: "version", value: 1, .. })));
    bytes[0] = 2;
    assert_eq!(
        GeneveHeader::parse(&bytes).unwrap_err(),
        WireError::Truncated { header: "GENEVE", len: 12, needed: 16 }
    );
    // An option longer than the options.
    assert_eq!(
        GeneveOptions::new(&[1, 0, 1, 2, 0, 0, 0, 0]).collect::<Vec<_>>(),
        [Err(WireError::Truncated { header: "GENEVE option", len: 8, needed: 12 })]
    );
    assert!(GeneveHeader::new(EtherType::IPV4, 1, 6).is_err() && GeneveHeader::new(EtherType::IPV4, 1, 256).is_err());
    assert!(GeneveOption { class: 0, kind: 0, data: &[0; 3] }.write(&mut [0; 20]).is_err());
    assert!(GeneveOption { class: 0, kind: 0, data: &[0; 8] }.write(&mut [0; 11]).is_err());
}

#[test]
fn gre_has_the_words_that_its_flags_say() {
    let all = GreHeader { checksum: Some(0x1234), key: Some(7), sequence: Some(9), ..GreHeader::new(EtherType::IPV4) };
    let mut bytes = [0u8; 20];
    assert_eq!(all.write(&mut bytes), Ok(16));
    assert_eq!(&bytes[..16], [0xb0, 0, 8, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9]);
    let (read, rest) = GreHeader::parse(&bytes).unwrap();
    assert_eq!((read, rest.len()), (all, 4));
    let plain = GreHeader::new(EtherType::TRANSPARENT_ETHERNET);
    assert_eq!((plain.write(&mut bytes), plain.header_len()), (Ok(4), 4));
    assert_eq!(&bytes[..4], [0, 0, 0x65, 0x58]);
    assert_eq!(
        GreHeader::parse(&[0x30, 0, 8, 0, 0, 0, 0, 7, 0]).unwrap_err(),
        WireError::Truncated { header: "GRE", len: 9, needed: 12 }
    );
}

#[test]
fn gre_with_source_routes_or_of_an_unknown_version_is_refused() {
    assert!(matches!(GreHeader::parse(&[0x40, 0, 8, 0, 0, 0, 0, 0]), Err(WireError::Field { field: "flags", .. })));
    assert!(matches!(GreHeader::parse(&[0, 2, 8, 0]), Err(WireError::Field { field: "version", .. })));
    // PPTP: key, sequence and acknowledgement number.
    let pptp = [0x30, 0x81, 0x88, 0x0b, 0, 4, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xff];
    let (header, rest) = GreHeader::parse(&pptp).unwrap();
    assert_eq!((header.version, header.protocol, header.acknowledgement, rest.len()), (1, EtherType::PPP, Some(3), 1));
    let mut again = [0; 16];
    header.write(&mut again).unwrap();
    assert_eq!(again, pptp[..16]);
    assert!(GreHeader::parse(&[0x10, 1, 0x88, 0x0b, 0, 0, 0, 0]).is_err(), "PPTP has a key");
}

#[test]
fn a_gre_checksum_covers_header_and_payload() {
    let mut packet = [0u8; 13];
    GreHeader { checksum: Some(0), ..GreHeader::new(EtherType::IPV4) }.write(&mut packet).unwrap();
    packet[8..].copy_from_slice(&[1, 2, 3, 4, 5]);
    GreHeader::fill_checksum(&mut packet).unwrap();
    assert!(crate::checksum::sum(&packet).is_valid());
}

#[test]
fn ip_in_ip_carries_the_version_that_the_protocol_says() {
    use zerocopy::IntoBytes;
    let (a, b) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let v4 = Ipv4Header::new(a, b, Protocol::TCP, 20, 0, 64, true);
    let (inner, _) = IpHeader::parse_inner(Protocol::IPIP, v4.as_bytes()).unwrap();
    assert_eq!((inner.version(), inner.next(), inner.source(), inner.hop_limit()), (4, Protocol::TCP, a.into(), 64));
    assert!(IpHeader::parse_inner(Protocol::IPV6, v4.as_bytes()).is_err());
    assert!(IpHeader::parse_inner(Protocol::GRE, v4.as_bytes()).is_err());
    let (c, d) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let v6 = Ipv6Header::new(c, d, Protocol::UDP, 0, 63);
    let (inner, _) = IpHeader::parse_inner(Protocol::IPV6, v6.as_bytes()).unwrap();
    assert_eq!((inner.version(), inner.destination(), inner.traffic_class()), (6, d.into(), 0));
    assert_eq!(IpHeader::parse(v6.as_bytes()).unwrap().0, inner);
    assert!(matches!(IpHeader::parse(&[0x50]), Err(WireError::Field { field: "version", value: 5, .. })));
    assert!(matches!(IpHeader::parse(&[]), Err(WireError::Truncated { len: 0, .. })));
}

#[test]
fn vxlan_gpe_is_not_vxlan_and_group_policy_is() {
    let gpe = [0x0c, 0, 0, 3, 0, 0, 1, 0];
    assert!(matches!(VxlanHeader::parse(&gpe), Err(WireError::Field { field: "flags", value: 0x0c00_0003, .. })));
    let gbp = [0x88, 0, 0x12, 0x34, 0, 0, 1, 0];
    let (header, _) = VxlanHeader::parse(&gbp).unwrap();
    assert_eq!((header.vni(), header.group_policy()), (1, Some(0x1234)));
    assert_eq!(VxlanHeader::new(1).group_policy(), None);
}

#[test]
fn a_metadata_header_inside_gre_says_what_follows() {
    let bytes = [8, 0, 1, 1, 0, 1, 0x12, 0x34, 0x45];
    let (header, rest) = CiscoMetadata::parse(&bytes).unwrap();
    assert_eq!((header, rest), (CiscoMetadata { protocol: EtherType::IPV4, group: Some(0x1234) }, &[0x45][..]));
    assert!(CiscoMetadata::parse(&bytes[..7]).is_err());
    assert!(matches!(CiscoMetadata::parse(&[8, 0, 2, 0]), Err(WireError::Field { field: "version", value: 2, .. })));
}
