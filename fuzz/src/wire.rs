//! Every parser takes any bytes, its iterators end, and what is read is written back as it was.

use netcore::wire::{
    ArpHeader, ArpIpv4, CiscoMetadata, EthernetHeader, GeneveHeader, GeneveOptions, GreFlags, GreHeader, IcmpHeader,
    Icmpv6Header, IpHeader, Ipv4Header, Ipv6Header, LlcHeader, NeighbourMessage, TcpHeader, TcpOptions, UdpHeader,
    VlanHeader, VxlanHeader,
};

/// Ethernet, VLAN, IP and transport headers.
pub fn wire(data: &[u8]) {
    let _ = (EthernetHeader::parse(data), VlanHeader::parse(data), UdpHeader::parse(data), IpHeader::parse(data));
    if let Ok((_, options, rest)) = Ipv4Header::parse(data) {
        assert!(options.count() <= 40 && rest.len() <= data.len());
        for option in options.flatten() {
            let mut bytes = [0; 40];
            let len = option.write(&mut bytes).expect("an option of a header fits into one");
            assert_eq!((bytes[0], &bytes[2..len]), (option.kind, option.data));
        }
    }
    if let Ok((header, rest)) = Ipv6Header::parse(data) {
        assert!(header.extensions(rest).count() <= 17);
        for extension in header.extensions(rest).flatten() {
            assert!(extension.options().count() <= extension.bytes.len());
        }
        if let Ok(upper) = header.upper(rest) {
            assert_eq!(upper.offset + upper.bytes.len(), rest.len());
        }
    }
    if let Ok((_, options, _)) = TcpHeader::parse(data) {
        assert!(options.count() <= 40);
        for option in options.flatten() {
            let mut bytes = [0; 40];
            let len = option.write(&mut bytes).expect("an option of a header fits into one");
            assert_eq!(TcpOptions::new(&bytes[..len]).next(), Some(Ok(option)));
        }
    }
    assert!(TcpOptions::new(data).count() <= data.len());
}

/// VXLAN, GENEVE, GRE, IP-in-IP.
pub fn wire_tunnels(data: &[u8]) {
    let _ = (VxlanHeader::parse(data), CiscoMetadata::parse(data));
    if let Ok((header, options, rest)) = GeneveHeader::parse(data) {
        assert_eq!(header.header_len() + rest.len(), data.len());
        let mut bytes = [0; GeneveHeader::MAX_OPTIONS];
        let mut len = 0;
        for option in options.map_while(Result::ok) {
            len += option.write(&mut bytes[len..]).expect("what was read fits");
        }
        assert!(GeneveOptions::new(&bytes[..len]).eq(options.take_while(Result::is_ok)));
    }
    assert!(GeneveOptions::new(data).count() <= data.len() / 4 + 1);
    if let Ok((header, rest)) = GreHeader::parse(data) {
        let mut bytes = [0; GreHeader::MAX_LEN];
        assert_eq!(header.write(&mut bytes), Ok(data.len() - rest.len()));
        // Reserved bits and the word behind the checksum are not kept.
        assert_eq!(GreHeader::parse(&bytes[..header.header_len()]), Ok((header, &[][..])));
        let mut packet = data.to_vec();
        GreHeader::fill_checksum(&mut packet).expect("it is a header");
        if header.flags().contains(GreFlags::CHECKSUM) {
            assert!(netcore::checksum::sum(&packet).is_valid());
        }
    }
}

/// ARP, ICMP, ICMPv6, neighbour discovery, LLC.
pub fn wire_control(data: &[u8]) {
    if let Ok((_, addresses, rest)) = ArpHeader::parse(data) {
        let len = addresses.sender_hardware.len() + addresses.sender_protocol.len();
        assert_eq!(ArpHeader::LEN + 2 * len + rest.len(), data.len());
    }
    if let Ok((arp, _)) = ArpIpv4::parse(data) {
        let again = ArpIpv4::new(arp.operation(), arp.sender_mac(), arp.sender_ip(), arp.target_mac(), arp.target_ip());
        assert_eq!(*arp, again);
    }
    if let Ok((header, _)) = IcmpHeader::parse(data) {
        assert_eq!(IcmpHeader::new(header.message()).message(), header.message());
        let mut message = data.to_vec();
        IcmpHeader::fill_checksum(&mut message);
        assert!(netcore::checksum::sum(&message).is_valid());
    }
    if let Ok((header, _)) = Icmpv6Header::parse(data) {
        assert_eq!(Icmpv6Header::new(header.message()).message(), header.message());
    }
    if let Ok((_, options)) = NeighbourMessage::parse(data) {
        assert!(options.count() <= data.len() / 8 + 1);
    }
    if let Ok((header, rest)) = LlcHeader::parse(data) {
        let mut bytes = [0; 8];
        let len = header.write(&mut bytes).expect("the longest header fits");
        assert_eq!((&bytes[..len], rest.len()), (&data[..len], data.len() - len));
    }
}
