//! Header views and dissection beside those of etherparse and smoltcp: the same bytes are accepted, and say the same.

use etherparse as ep;
use netcore::dissect::{Layer, TunnelPorts, dissect, layers};
use netcore::wire::{
    ArpIpv4, EtherType, EthernetHeader, IcmpHeader, IcmpMessage, Icmpv6Header, Icmpv6Message, Ipv4Header, Ipv6Header,
    Protocol, TcpHeader, TcpOption, TcpOptions, UdpHeader, VlanHeader,
};
use proptest::prelude::*;
use smoltcp::wire as st;

/// Any bytes, with a first byte that is often a right one.
fn bytes(first: impl Strategy<Value = u8> + 'static) -> impl Strategy<Value = Vec<u8>> {
    (first, prop::collection::vec(any::<u8>(), 0..120), any::<bool>()).prop_map(|(first, mut bytes, fix)| {
        if let (true, Some(byte)) = (fix, bytes.first_mut()) {
            *byte = first;
        }
        bytes
    })
}

/// An option list that is mostly right.
fn tcp_options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![4, 2]),
        any::<u16>().prop_map(|mss| [&[2, 4][..], &mss.to_be_bytes()].concat()),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        any::<u64>().prop_map(|times| [&[8, 10][..], &times.to_be_bytes()].concat()),
        prop::collection::vec(any::<u64>(), 1..4).prop_map(|blocks| {
            let data: Vec<u8> = blocks.iter().flat_map(|block| block.to_be_bytes()).collect();
            [&[5, 2 + data.len() as u8][..], &data].concat()
        }),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..6)).prop_map(|(kind, data)| [&[kind][..], &data].concat()),
    ];
    prop::collection::vec(option, 0..6).prop_map(|options| options.concat())
}

fn same_option(ours: &TcpOption<'_>, theirs: &ep::TcpOptionElement) -> bool {
    use ep::TcpOptionElement as E;
    match (ours, theirs) {
        (TcpOption::Mss(a), E::MaximumSegmentSize(b)) => a == b,
        (TcpOption::WindowScale(a), E::WindowScale(b)) => a == b,
        (TcpOption::SackPermitted, E::SelectiveAcknowledgementPermitted) => true,
        (TcpOption::Timestamps { value, echo }, E::Timestamp(a, b)) => (value, echo) == (a, b),
        (TcpOption::Sack(_), E::SelectiveAcknowledgement(first, rest)) => {
            let theirs = core::iter::once(*first).chain(rest.iter().flatten().copied());
            ours.sack_blocks().map(|block| (block.left, block.right)).eq(theirs)
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn ethernet_and_vlan(frame in bytes(any::<u8>())) {
        let (ours, theirs) = (EthernetHeader::parse(&frame), ep::Ethernet2HeaderSlice::from_slice(&frame));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        prop_assert_eq!(ours.is_ok(), st::EthernetFrame::new_checked(&frame[..]).is_ok());
        if let (Ok((ours, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.destination().0, theirs.destination());
            prop_assert_eq!(ours.source().0, theirs.source());
            prop_assert_eq!(ours.ethertype().0, theirs.ether_type().0);
        }
        let (ours, theirs) = (VlanHeader::parse(&frame), ep::SingleVlanHeaderSlice::from_slice(&frame));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok((ours, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!((ours.id(), ours.priority()), (theirs.vlan_identifier().value(), theirs.priority_code_point().value()));
            prop_assert_eq!((ours.is_drop_eligible(), ours.ethertype().0), (theirs.drop_eligible_indicator(), theirs.ether_type().0));
        }
    }

    #[test]
    fn ipv4(packet in bytes(0x40u8..0x50)) {
        let (ours, theirs) = (Ipv4Header::parse(&packet), ep::Ipv4HeaderSlice::from_slice(&packet));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok((ours, options, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.header_len(), theirs.slice().len());
            prop_assert_eq!(options.as_bytes(), theirs.options());
            prop_assert_eq!((ours.source(), ours.destination()), (theirs.source_addr(), theirs.destination_addr()));
            prop_assert_eq!((ours.total_len(), ours.id(), ours.ttl()), (theirs.total_len(), theirs.identification(), theirs.ttl()));
            prop_assert_eq!((ours.protocol().0, ours.checksum()), (theirs.protocol().0, theirs.header_checksum()));
            prop_assert_eq!((ours.df(), ours.is_fragment()), (theirs.dont_fragment(), theirs.is_fragmenting_payload()));
            prop_assert_eq!(ours.fragment_offset(), usize::from(theirs.fragments_offset().byte_offset()));
            prop_assert_eq!(ours.tos(), theirs.dcp().value() << 2 | theirs.ecn().value());
            let right = netcore::checksum::sum(&packet[..ours.header_len()]).is_valid();
            prop_assert_eq!(right, theirs.to_header().calc_header_checksum() == theirs.header_checksum());
        }
        if let Ok(theirs) = st::Ipv4Packet::new_checked(&packet[..]).filter_version(4) {
            let ours = Ipv4Header::parse(&packet);
            prop_assert!(ours.is_ok());
            let (ours, _, _) = ours.unwrap();
            prop_assert_eq!((ours.source(), ours.destination()), (theirs.src_addr(), theirs.dst_addr()));
            prop_assert_eq!(ours.fragment_offset(), usize::from(theirs.frag_offset()));
            prop_assert_eq!((ours.df(), ours.protocol().0), (theirs.dont_frag(), theirs.next_header().into()));
        }
    }

    #[test]
    fn ipv6(packet in bytes(0x60u8..0x70)) {
        let (ours, theirs) = (Ipv6Header::parse(&packet), ep::Ipv6HeaderSlice::from_slice(&packet));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok((ours, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!((ours.source(), ours.destination()), (theirs.source_addr(), theirs.destination_addr()));
            prop_assert_eq!((ours.traffic_class(), ours.flow_label()), (theirs.traffic_class(), theirs.flow_label().value()));
            prop_assert_eq!((ours.payload_len(), ours.hop_limit()), (theirs.payload_length(), theirs.hop_limit()));
            prop_assert_eq!(ours.next_header().0, theirs.next_header().0);
        }
    }

    #[test]
    fn extension_headers(
        order in prop::sample::subsequence(vec![0u8, 60, 43, 44, 51], 0..5), upper in prop::sample::select(vec![6u8, 17, 58, 59]),
        mut rest in prop::collection::vec(any::<u8>(), 0..160), short in any::<bool>(),
    ) {
        // A chain in the order that RFC 8200 recommends; lengths are small if `short`.
        let mut at = 0;
        for (i, kind) in order.iter().enumerate() {
            let next = order.get(i + 1).copied().unwrap_or(upper);
            if let Some(byte) = rest.get_mut(at) {
                *byte = next;
            }
            let Some(len) = rest.get_mut(at + 1) else { break };
            if short {
                *len %= 3;
            }
            at += match *kind {
                44 => 8,
                51 => (usize::from(*len) + 2) * 4,
                _ => (usize::from(*len) + 1) * 8,
            };
        }
        let first = order.first().copied().unwrap_or(upper);
        let header = Ipv6Header::new("::1".parse().unwrap(), "::2".parse().unwrap(), Protocol(first), 0, 1);
        let ours = header.extensions(&rest).try_fold((Protocol(first), 0), |_, extension| {
            let extension = extension?;
            let end = extension.bytes.as_ptr() as usize + extension.bytes.len() - rest.as_ptr() as usize;
            Ok::<_, netcore::wire::WireError>((extension.next, end))
        });
        let theirs = ep::Ipv6ExtensionsSlice::from_slice(ep::IpNumber(first), &rest);
        // A later fragment ends our walk: what follows is a piece of payload.
        let later = header.extensions(&rest).flatten().any(|e| e.kind == Protocol::FRAGMENT && e.bytes[2..4] >= [0, 8][..]);
        if !later {
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
            if let (Ok((next, end)), Ok((_, number, after))) = (ours, theirs) {
                prop_assert_eq!((next.0, end), (number.0, rest.len() - after.len()));
            }
        }
    }

    #[test]
    fn tcp(mut segment in prop::collection::vec(any::<u8>(), 0..100), options in tcp_options(), fix in any::<bool>()) {
        if let (true, Some(_)) = (fix, segment.get(19)) {
            let words = options.len().div_ceil(4).min(10);
            segment[12] = ((5 + words) as u8) << 4;
            segment.splice(20.., options.iter().copied().chain([0; 44]));
        }
        let (ours, theirs) = (TcpHeader::parse(&segment), ep::TcpHeaderSlice::from_slice(&segment));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        prop_assert_eq!(ours.is_ok(), st::TcpPacket::new_checked(&segment[..]).is_ok());
        if let (Ok((ours, options, payload)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!((ours.source(), ours.destination()), (theirs.source_port(), theirs.destination_port()));
            prop_assert_eq!((ours.seq(), ours.ack()), (theirs.sequence_number(), theirs.acknowledgment_number()));
            prop_assert_eq!((ours.window(), ours.checksum(), ours.urgent()), (theirs.window_size(), theirs.checksum(), theirs.urgent_pointer()));
            prop_assert_eq!(ours.flags().bits(), segment[13]);
            prop_assert_eq!((options.as_bytes(), payload.len()), (theirs.options(), segment.len() - theirs.slice().len()));
        }
    }

    #[test]
    fn tcp_option_lists(options in tcp_options()) {
        let theirs = ep::TcpOptionsIterator::from_slice(&options);
        let mut ours = TcpOptions::new(&options);
        for theirs in theirs {
            match theirs {
                Ok(ep::TcpOptionElement::Noop) => {}
                Ok(theirs) => {
                    let ours = ours.next();
                    prop_assert!(matches!(&ours, Some(Ok(ours)) if same_option(ours, &theirs)), "{ours:?} {theirs:?}");
                }
                // A kind that it does not know, or a length that is wrong for the kind: to us an unknown option, or an error.
                Err(error) => {
                    let next = ours.next();
                    prop_assert!(matches!(next, Some(Ok(TcpOption::Unknown { .. } | TcpOption::Sack(_)) | Err(_))), "{next:?} {error:?}");
                    return Ok(());
                }
            }
        }
        prop_assert_eq!(ours.next(), None);
    }

    #[test]
    fn udp_arp_icmp(data in bytes(prop::sample::select(vec![0u8, 3, 5, 8, 11, 13, 128, 129, 135]))) {
        let (ours, theirs) = (UdpHeader::parse(&data), ep::UdpHeaderSlice::from_slice(&data));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok((ours, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!((ours.source(), ours.destination()), (theirs.source_port(), theirs.destination_port()));
            prop_assert_eq!((ours.len(), ours.checksum()), (theirs.length(), theirs.checksum()));
        }
        let mut arp = data.clone();
        for (byte, right) in arp.iter_mut().zip([0, 1, 8, 0, 6, 4]) {
            *byte = right;
        }
        let (ours, theirs) = (ArpIpv4::parse(&arp), st::ArpPacket::new_checked(&arp[..]));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok((ours, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.operation().0, u16::from(theirs.operation()));
            prop_assert_eq!(&ours.sender_mac().0[..], theirs.source_hardware_addr());
            prop_assert_eq!(&ours.target_ip().octets()[..], theirs.target_protocol_addr());
        }
        prop_assert_eq!(netcore::wire::ArpHeader::parse(&data).is_ok(), ep::ArpPacketSlice::from_slice(&data).is_ok());
        let icmp = ep::Icmpv4Slice::from_slice(&data);
        if let (Ok((ours, _)), Ok(theirs)) = (IcmpHeader::parse(&data), icmp) {
            use ep::Icmpv4Type as T;
            match (ours.message(), theirs.icmp_type()) {
                (IcmpMessage::Echo { reply: false, id, seq }, T::EchoRequest(echo))
                | (IcmpMessage::Echo { reply: true, id, seq }, T::EchoReply(echo)) => prop_assert_eq!((id, seq), (echo.id, echo.seq)),
                (ours, T::EchoRequest(_) | T::EchoReply(_)) => prop_assert!(false, "{ours:?}"),
                (IcmpMessage::Unreachable { code, .. }, theirs) => {
                    prop_assert!(code > 15 || matches!(theirs, T::DestinationUnreachable(header) if header.code_u8() == code));
                }
                (IcmpMessage::TimeExceeded { code }, theirs) => {
                    prop_assert!(code > 1 || matches!(theirs, T::TimeExceeded(header) if header.code_u8() == code));
                }
                _ => {}
            }
        }
        if let (Ok((ours, _)), Ok(theirs)) = (Icmpv6Header::parse(&data), ep::Icmpv6Slice::from_slice(&data)) {
            use ep::Icmpv6Type as T;
            match (ours.message(), theirs.icmp_type()) {
                (Icmpv6Message::Echo { id, seq, .. }, T::EchoRequest(echo) | T::EchoReply(echo)) => {
                    prop_assert_eq!((id, seq), (echo.id, echo.seq));
                }
                (ours, T::EchoRequest(_) | T::EchoReply(_)) => prop_assert!(false, "{ours:?}"),
                (Icmpv6Message::PacketTooBig { mtu }, T::PacketTooBig { mtu: theirs }) => prop_assert_eq!(mtu, theirs),
                _ => {}
            }
        }
    }

    /// Frames that etherparse builds, whole and then damaged: wherever it still reads them, the dissection has every header at
    /// the same place.
    #[test]
    fn dissection(
        tags in 0usize..3, v6 in any::<bool>(), tcp in any::<bool>(), payload in prop::collection::vec(any::<u8>(), 0..40),
        damage in prop::collection::vec((0usize..80, any::<u8>()), 0..3), cut in 0usize..200,
    ) {
        let mut frame = Vec::new();
        let builder = ep::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let vlan = |id| ep::VlanId::try_new(id).unwrap();
        let ip = |v6: bool| match v6 {
            false => ep::IpHeaders::Ipv4(ep::Ipv4Header::new(0, 64, ep::ip_number::TCP, [192, 0, 2, 1], [192, 0, 2, 2]).unwrap(), Default::default()),
            true => ep::IpHeaders::Ipv6(ep::Ipv6Header { source: [1; 16], destination: [2; 16], hop_limit: 9, ..Default::default() }, Default::default()),
        };
        let step = match tags {
            0 => builder.ip(ip(v6)),
            1 => builder.vlan(ep::VlanHeader::Single(ep::SingleVlanHeader { vlan_id: vlan(5), ether_type: 0.into(), ..Default::default() })).ip(ip(v6)),
            _ => builder.vlan(ep::VlanHeader::Double(ep::DoubleVlanHeader {
                outer: ep::SingleVlanHeader { vlan_id: vlan(6), ..Default::default() },
                inner: ep::SingleVlanHeader { vlan_id: vlan(7), ..Default::default() },
            })).ip(ip(v6)),
        };
        match tcp {
            true => step.tcp(1, 2, 3, 4).options_raw(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).unwrap().write(&mut frame, &payload).unwrap(),
            false => step.udp(7, 9).write(&mut frame, &payload).unwrap(),
        }
        for (at, value) in &damage {
            if let Some(byte) = frame.get_mut(*at) {
                *byte = *value;
            }
        }
        if !damage.is_empty() {
            frame.truncate(cut.max(20));
        }
        let d = dissect(&frame, &TunnelPorts::none());
        let Ok(theirs) = ep::SlicedPacket::from_ethernet(&frame) else {
            prop_assert!(!damage.is_empty(), "what was built is read");
            return Ok(());
        };
        let place = |slice: &[u8]| slice.as_ptr() as usize - frame.as_ptr() as usize;
        prop_assert!(d.stopped.is_none() || d.depth > 0 || theirs.transport.is_none(), "{:?}", d.stopped);
        match &theirs.net {
            Some(ep::NetSlice::Ipv4(ip)) => {
                let outer = d.outer.expect("an IPv4 header");
                prop_assert_eq!((outer.version, usize::from(outer.offset)), (4, place(ip.header().slice())));
                prop_assert_eq!(outer.fragment, ip.header().is_fragmenting_payload());
            }
            Some(ep::NetSlice::Ipv6(ip)) => {
                let outer = d.outer.expect("an IPv6 header");
                prop_assert_eq!((outer.version, usize::from(outer.offset)), (6, place(ip.header().slice())));
            }
            _ => prop_assert!(d.outer.is_none() || d.tags > 2),
        }
        let transport = layers(&frame, &TunnelPorts::none()).flatten().find_map(|layer| match layer {
            Layer::Transport(transport) => Some(transport),
            _ => None,
        });
        // IPv4 behind an authentication header, and datagrams whose own length is wrong, are read by one side only.
        match &theirs.transport {
            Some(ep::TransportSlice::Tcp(tcp)) if d.outer.is_some_and(|network| network.protocol == Protocol::TCP) => {
                let transport = transport.expect("a TCP header");
                prop_assert_eq!(usize::from(transport.offset), place(tcp.slice()));
                prop_assert_eq!(transport.payload as usize, place(tcp.payload()));
            }
            Some(ep::TransportSlice::Udp(udp)) if d.outer.is_some_and(|network| network.protocol == Protocol::UDP) => {
                let transport = transport.expect("a UDP header");
                prop_assert_eq!(usize::from(transport.offset), place(udp.slice()));
            }
            _ => {}
        }
        if damage.is_empty() {
            prop_assert_eq!((usize::from(d.tags), d.payload_len()), (tags, payload.len()));
            let ethertype = if v6 { EtherType::IPV6 } else { EtherType::IPV4 };
            prop_assert_eq!(d.ethertype, ethertype);
            let good = Some(netcore::dissect::ChecksumVerdict::Good);
            prop_assert_eq!(d.outer_checksums(&frame, frame.len()).unwrap().upper, good);
        }
    }
}

/// smoltcp does not look at the version.
trait FilterVersion: Sized {
    fn filter_version(self, version: u8) -> Self;
}

impl<T: AsRef<[u8]>> FilterVersion for st::Result<st::Ipv4Packet<T>> {
    fn filter_version(self, version: u8) -> Self {
        self.and_then(|packet| {
            if packet.version() == version && packet.header_len() >= 20 { Ok(packet) } else { Err(st::Error) }
        })
    }
}
