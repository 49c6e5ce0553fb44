//! ARP, ICMP, ICMPv6, LLC.

use super::*;
use crate::driver::MacAddress;
use zerocopy::IntoBytes;

const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

#[test]
fn an_arp_request_is_written_and_read_back() {
    let (a, b) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let request = ArpIpv4::request(A, a, b);
    assert_eq!(
        request.as_bytes(),
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2]
    );
    let mut frame = [0u8; 46];
    frame[..28].copy_from_slice(request.as_bytes());
    let (reply, padding) = ArpIpv4::parse_mut(&mut frame).unwrap();
    assert_eq!(padding.len(), 18);
    reply.set_operation(ArpOperation::REPLY);
    reply.set_target(reply.sender_mac(), reply.sender_ip());
    reply.set_sender(B, b);
    let (read, _) = ArpIpv4::parse(&frame).unwrap();
    assert_eq!(*read, ArpIpv4::new(ArpOperation::REPLY, B, b, A, a));
    assert!(!read.is_gratuitous() && ArpIpv4::request(A, a, a).is_gratuitous());
    let (header, addresses, _) = ArpHeader::parse(&frame).unwrap();
    assert_eq!((header.operation(), header.protocol()), (ArpOperation::REPLY, EtherType::IPV4));
    assert_eq!((addresses.sender_hardware, addresses.target_protocol), (&B.0[..], &[192, 0, 2, 1][..]));
}

#[test]
fn arp_for_other_links_is_not_arp_for_ethernet() {
    // Infiniband: hardware type 32, addresses of 20 bytes.
    let mut bytes = [0u8; 56];
    bytes[..8].copy_from_slice(&[0, 32, 8, 0, 20, 4, 0, 1]);
    assert!(matches!(ArpIpv4::parse(&bytes), Err(WireError::Field { field: "hardware type", value: 32, .. })));
    let (header, addresses, rest) = ArpHeader::parse(&bytes).unwrap();
    assert_eq!((header.hardware(), addresses.target_hardware.len(), rest.len()), (32, 20, 0));
    assert_eq!(
        ArpHeader::parse(&bytes[..55]).unwrap_err(),
        WireError::Truncated { header: "ARP", len: 55, needed: 56 }
    );
}

#[test]
fn icmp_messages_are_what_they_were_made_of() {
    let messages = [
        IcmpMessage::Echo { reply: false, id: 7, seq: 9 },
        IcmpMessage::Echo { reply: true, id: 7, seq: 9 },
        IcmpMessage::Unreachable { code: 4, mtu: 1400 },
        IcmpMessage::Unreachable { code: 3, mtu: 0 },
        IcmpMessage::Redirect { code: 1, gateway: "192.0.2.1".parse().unwrap() },
        IcmpMessage::TimeExceeded { code: 0 },
        IcmpMessage::ParameterProblem { code: 0, pointer: 20 },
        IcmpMessage::Timestamp { reply: true, id: 1, seq: 2 },
        IcmpMessage::Other { kind: 17, code: 0, rest: [1, 2, 3, 4] },
    ];
    for message in messages {
        let mut bytes = [0u8; 11];
        bytes[..8].copy_from_slice(IcmpHeader::new(message).as_bytes());
        bytes[8..].copy_from_slice(&[1, 2, 3]);
        IcmpHeader::fill_checksum(&mut bytes);
        let (header, rest) = IcmpHeader::parse(&bytes).unwrap();
        assert_eq!((header.message(), rest.len()), (message, 3));
        assert!(crate::checksum::sum(&bytes).is_valid());
        assert_eq!(header.is_error(), matches!(header.kind(), 3 | 5 | 11 | 12));
    }
}

#[test]
fn icmpv6_messages_are_what_they_were_made_of() {
    let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let messages = [
        Icmpv6Message::Unreachable { code: 4 },
        Icmpv6Message::PacketTooBig { mtu: 1280 },
        Icmpv6Message::TimeExceeded { code: 1 },
        Icmpv6Message::ParameterProblem { code: 1, pointer: 40 },
        Icmpv6Message::Echo { reply: false, id: 7, seq: 9 },
        Icmpv6Message::Echo { reply: true, id: 7, seq: 9 },
        Icmpv6Message::NeighbourSolicitation,
        Icmpv6Message::NeighbourAdvertisement { router: true, solicited: false, override_cache: true },
        Icmpv6Message::Other { kind: 143, code: 0, rest: 1 },
    ];
    for message in messages {
        let mut bytes = [0u8; 9];
        bytes[..8].copy_from_slice(Icmpv6Header::new(message).as_bytes());
        Icmpv6Header::fill_checksum(&mut bytes, a, b);
        let (header, _) = Icmpv6Header::parse(&bytes).unwrap();
        assert_eq!(header.message(), message);
        let pseudo = crate::checksum::Sum::pseudo_ipv6(&a.octets(), &b.octets(), 58, 9);
        assert!(pseudo.plus(crate::checksum::sum(&bytes)).is_valid());
    }
}

#[test]
fn a_neighbour_solicitation_has_a_target_and_options() {
    let target = "2001:db8::2".parse().unwrap();
    let mut bytes = [0u8; 40];
    bytes[..24].copy_from_slice(NeighbourMessage::new(Icmpv6Message::NeighbourSolicitation, target).as_bytes());
    bytes[24..32].copy_from_slice(&NeighbourOption::link_address(false, A));
    bytes[32] = 14;
    bytes[33] = 1;
    let (message, options) = NeighbourMessage::parse(&bytes).unwrap();
    let options: Vec<_> = options.map(Result::unwrap).collect();
    assert_eq!((message.target(), options.len()), (target, 2));
    assert_eq!((options[0].mac(), options[1].mac()), (Some(A), None));
    bytes[33] = 0;
    let (_, options) = NeighbourMessage::parse(&bytes).unwrap();
    assert!(matches!(options.last(), Some(Err(WireError::Field { field: "length", value: 0, .. }))));
    bytes[0] = 128;
    assert!(matches!(NeighbourMessage::parse(&bytes), Err(WireError::Field { field: "type", .. })));
}

#[test]
fn llc_and_snap_headers_have_three_four_or_eight_bytes() {
    let spanning_tree = [0x42, 0x42, 3, 0, 0];
    let (header, rest) = LlcHeader::parse(&spanning_tree).unwrap();
    assert_eq!((header.destination, header.snap, rest.len()), (LlcHeader::SPANNING_TREE, None, 2));
    let numbered = [0xf0, 0xf0, 0x02, 0x04, 9];
    let (header, rest) = LlcHeader::parse(&numbered).unwrap();
    assert_eq!((header.control, header.header_len(), rest), (0x0402, 4, &[9][..]));
    let mut bytes = [0u8; 9];
    assert_eq!(LlcHeader::snap(EtherType::ARP).write(&mut bytes), Ok(8));
    assert_eq!(bytes, [0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 0]);
    let (snap, rest) = LlcHeader::parse(&bytes).unwrap();
    assert_eq!((snap, rest.len()), (LlcHeader::snap(EtherType::ARP), 1));
    assert!(LlcHeader::parse(&bytes[..7]).is_err() && LlcHeader::parse(&numbered[..3]).is_err());
    assert_eq!(header.write(&mut bytes), Ok(4));
    assert_eq!(bytes[..4], numbered[..4]);
}

#[test]
fn options_are_written_as_they_are_read() {
    let sack = [[0, 0, 0, 1, 0, 0, 0, 16], [0, 0, 1, 0, 0, 0, 16, 0]];
    let options = [
        TcpOption::Mss(1460),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 9, echo: 3 },
        TcpOption::WindowScale(7),
        TcpOption::Unknown { kind: 254, data: &[1, 2, 3] },
        TcpOption::Sack(&sack),
    ];
    let mut bytes = [0u8; 60];
    let mut len = 0;
    for option in &options {
        len += option.write(&mut bytes[len..]).unwrap();
    }
    assert_eq!(TcpOptions::new(&bytes[..len]).map(Result::unwrap).collect::<Vec<_>>(), options);
    let too_long = TcpOption::Unknown { kind: 254, data: &[0; 39] };
    assert!(matches!(too_long.write(&mut bytes), Err(WireError::Field { field: "length", .. })));
    assert!(TcpOption::Mss(1).write(&mut [0; 3]).is_err());
    let router_alert = Ipv4Option { kind: 148, data: &[0, 0] };
    assert_eq!(router_alert.write(&mut bytes), Ok(4));
    assert_eq!(bytes[..4], [148, 4, 0, 0]);
}

#[test]
fn every_field_that_is_set_is_read_back() {
    let (a, b) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let mut packet = [0u8; 24];
    packet[..20].copy_from_slice(Ipv4Header::new(b, a, Protocol::UDP, 20, 0, 1, false).as_bytes());
    let (ip, _) = Ipv4Header::parse_mut(&mut packet).unwrap();
    ip.set_addresses(a, b);
    ip.set_tos(3);
    ip.set_total_len(24);
    ip.set_id(77);
    ip.set_fragment_word(Ipv4Header::DF);
    ip.set_ttl(9);
    ip.set_protocol(Protocol::TCP);
    ip.set_options_len(4).unwrap();
    assert!(ip.set_options_len(44).is_err() && ip.set_options_len(3).is_err());
    Ipv4Header::fill_checksum(&mut packet).unwrap();
    let (ip, options, _) = Ipv4Header::parse(&packet).unwrap();
    assert_eq!((ip.source(), ip.destination(), ip.tos(), ip.total_len(), ip.id()), (a, b, 3, 24, 77));
    assert_eq!((ip.df(), ip.ttl(), ip.protocol(), options.as_bytes().len()), (true, 9, Protocol::TCP, 4));
    assert!(crate::checksum::sum(&packet).is_valid());

    let (c, d) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let mut ip = Ipv6Header::new(d, c, Protocol::UDP, 0, 1);
    ip.set_addresses(c, d);
    ip.set_traffic_class(0xab);
    ip.set_flow_label(0x12345);
    ip.set_payload_len(8);
    ip.set_next_header(Protocol::TCP);
    ip.set_hop_limit(2);
    let (ip, _) = Ipv6Header::parse(ip.as_bytes()).unwrap();
    assert_eq!((ip.source(), ip.destination(), ip.traffic_class(), ip.flow_label()), (c, d, 0xab, 0x12345));
    assert_eq!((ip.payload_len(), ip.next_header(), ip.hop_limit()), (8, Protocol::TCP, 2));

    let mut tcp = TcpHeader::new(0, 0, 0, 0, TcpFlags::empty(), 0, 20);
    tcp.set_ports(1, 2);
    tcp.set_seq(3);
    tcp.set_ack(4);
    tcp.set_flags(TcpFlags::ACK | TcpFlags::CWR);
    tcp.set_window(5);
    tcp.set_urgent(6);
    tcp.set_options_len(12).unwrap();
    assert_eq!((tcp.source(), tcp.destination(), tcp.seq(), tcp.ack()), (1, 2, 3, 4));
    assert_eq!((tcp.flags(), tcp.window(), tcp.urgent()), (TcpFlags::ACK | TcpFlags::CWR, 5, 6));
    assert_eq!(tcp.header_len(), 32);

    let mut udp = UdpHeader::new(0, 0, 0);
    udp.set_ports(7, 9);
    udp.set_len(8);
    udp.set_checksum(1);
    assert_eq!((udp.source(), udp.destination(), udp.len(), udp.checksum()), (7, 9, 8, 1));
    let mut tag = VlanHeader::new(0, EtherType::IPV4);
    tag.set_tci(0x7001);
    tag.set_ethertype(EtherType::IPV6);
    assert_eq!((tag.priority(), tag.is_drop_eligible(), tag.id(), tag.ethertype()), (3, true, 1, EtherType::IPV6));
    let mut vxlan = VxlanHeader::new(1);
    vxlan.set_vni(0xff_fffe);
    assert_eq!((vxlan.vni(), vxlan.flags()), (0xff_fffe, VxlanHeader::VNI_VALID));
}

#[test]
fn two_tags_are_read_in_order() {
    // 802.1ad service tag 200, then 802.1Q tag 2001 with priority 5.
    let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xa8, 0, 200, 0x81, 0, 0xa7, 0xd1, 8, 6];
    let (ethernet, rest) = EthernetHeader::parse(&frame).unwrap();
    assert_eq!(ethernet.ethertype(), EtherType::QINQ);
    let (outer, rest) = VlanHeader::parse(rest).unwrap();
    let (inner, rest) = VlanHeader::parse(rest).unwrap();
    assert_eq!((outer.id(), outer.ethertype()), (200, EtherType::VLAN));
    assert_eq!((inner.id(), inner.priority(), inner.ethertype(), rest.len()), (2001, 5, EtherType::ARP, 0));
}
