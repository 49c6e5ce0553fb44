//! Public captures of tunnels with known answers: GENEVE, GRE, double tags, slow protocols.

mod capture;

use capture::{Frame, GOOD, counts, frames, is_bad};
use netcore::FlowKey;
use netcore::dissect::{ChecksumVerdict, Layer, TunnelKind, TunnelPorts, layers};
use netcore::wire::{EtherType, GeneveHeader, IcmpHeader, IcmpMessage, LlcHeader, Protocol};
use std::collections::BTreeSet;

#[test]
fn geneve_ssh_has_one_network_per_direction() {
    let Some(frames) = frames("geneve_ssh.pcap") else { return };
    let kinds = counts(frames.iter().map(|f| (f.dissect().kind, f.inner_protocol().map(|protocol| protocol.0))));
    let geneve = Some(TunnelKind::Geneve);
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), [((geneve, Some(1)), 6), ((geneve, Some(6)), 33)]);
    assert!(frames.iter().all(|f| f.outer().1 == Some(ChecksumVerdict::Absent)));
    let tcp = frames.iter().filter(|f| f.inner_protocol() == Some(Protocol::TCP));
    let keys: BTreeSet<_> = tcp.filter_map(|f| FlowKey::of(&f.bytes, &f.dissect())).collect();
    let vnis: BTreeSet<_> = keys.iter().map(|key| key.vni).collect();
    assert_eq!((keys.len(), vnis.into_iter().collect::<Vec<_>>()), (2, vec![Some(0xa), Some(0xb)]));
}

#[test]
fn geneve_options_are_three_in_76_bytes() {
    let Some(frames) = frames("geneve_options.pcap") else { return };
    assert_eq!(frames.len(), 10);
    for f in &frames {
        let d = f.dissect();
        assert_eq!((d.vni, d.kind, d.stopped), (Some(0x0c_012e), Some(TunnelKind::Geneve), None));
        let (header, options, _) = GeneveHeader::parse(&f.bytes[usize::from(d.tunnel) + 8..]).unwrap();
        let options: Vec<_> = options.map(Result::unwrap).map(|option| (option.class, option.kind & 0x7f)).collect();
        assert_eq!((header.header_len() - 8, options), (76, vec![(0x0100, 1), (0x0100, 2), (0x0100, 3)]));
        assert_eq!(usize::from(d.inner_mac), usize::from(d.tunnel) + 8 + 8 + 76);
    }
    assert_eq!(frames.iter().filter(|f| is_bad(f.outer().1)).count(), 10);
    assert_eq!(frames.iter().filter(|f| is_bad(f.inner().1)).count(), 7);
    let flows = counts(frames.iter().filter_map(|f| FlowKey::of(&f.bytes, &f.dissect())));
    let mut sizes: Vec<_> = flows.into_values().collect();
    sizes.sort();
    assert_eq!(sizes, [4, 6], "one flow in two directions");
}

#[test]
fn geneve_without_an_inner_ethernet_header_is_read_by_its_protocol_type() {
    let Some(frames) = frames("geneve_arp.pcap") else { return };
    let d = frames[0].dissect();
    assert_eq!((frames.len(), d.vni, d.inner_ethertype, d.inner_mac), (1, Some(1), Some(EtherType::ARP), 0));
    let (arp, _) = netcore::wire::ArpIpv4::parse(&frames[0].bytes[d.payload as usize..]).unwrap();
    assert_eq!((arp.operation().0, arp.target_ip().to_string()), (1, "10.0.0.2".into()));
}

#[test]
fn a_geneve_super_frame_has_no_outer_checksum_and_4134_bytes_of_payload() {
    let Some(frames) = frames("gso_v4_geneve_v6.pcap") else { return };
    let d = frames[0].dissect();
    assert_eq!((frames[0].bytes.len(), d.payload_len(), d.vni), (4270, 4134, Some(0x1389)));
    assert_eq!((d.inner.unwrap().version, frames[0].outer().1), (6, Some(ChecksumVerdict::Absent)));
}

#[test]
fn gre_with_keys_metadata_and_a_second_gre_inside() {
    let Some(frames) = frames("gre_various.pcap") else { return };
    assert_eq!(frames.len(), 100);
    assert_eq!(frames.iter().filter(|f| f.dissect().tags == 1).count(), 51);
    assert!(frames.iter().all(|f| f.dissect().tags == 0 || f.dissect().tci[0] & 0xfff == 1213));
    let is_llc = |f: &&Frame| f.dissect().ethertype.is_length();
    let llc = counts(frames.iter().filter(is_llc).map(|f| f.dissect().tags));
    assert_eq!(llc.into_iter().collect::<Vec<_>>(), [(0, 44), (1, 21)]);
    for f in frames.iter().filter(is_llc) {
        LlcHeader::parse(&f.bytes[f.dissect().payload as usize..]).unwrap();
    }
    // The protocol field of the first GRE header of each frame.
    let ports = TunnelPorts::default();
    let gre: Vec<_> = frames
        .iter()
        .filter_map(|f| {
            let tunnel = layers(&f.bytes, &ports).flatten().find_map(|layer| match layer {
                Layer::Tunnel(tunnel) => Some(tunnel),
                _ => None,
            })?;
            let at = usize::from(tunnel.offset);
            Some((f, tunnel.vni, u16::from_be_bytes([f.bytes[at + 2], f.bytes[at + 3]])))
        })
        .collect();
    assert!(gre.iter().all(|(_, key, _)| *key == Some(0x28)));
    let protocols = counts(gre.iter().map(|(_, _, protocol)| *protocol));
    assert_eq!(protocols.into_iter().collect::<Vec<_>>(), [(0, 8), (0x2000, 2), (0x8909, 20)]);
    let with_metadata = gre.iter().filter(|(_, _, protocol)| *protocol == 0x8909);
    assert_eq!(with_metadata.filter(|(f, ..)| f.dissect().depth == 2).count(), 8);
    assert_eq!(gre.iter().filter(|(f, ..)| f.inner_protocol() == Some(Protocol::ICMP)).count(), 10);
    for (f, ..) in gre.iter().filter(|(f, ..)| f.inner_protocol() == Some(Protocol::ICMP)) {
        let inner = f.dissect().inner.unwrap();
        let (icmp, _) = IcmpHeader::parse(&f.bytes[usize::from(inner.upper)..]).unwrap();
        assert!(matches!(icmp.message(), IcmpMessage::Echo { .. }));
        assert_eq!(f.inner().1, GOOD);
    }
}

#[test]
fn gretap_carries_ethernet_behind_four_bytes() {
    let Some(frames) = frames("gretap_ping.pcap") else { return };
    let gre: Vec<_> = frames.iter().filter(|f| f.dissect().kind == Some(TunnelKind::Gre)).collect();
    assert_eq!((frames.len(), gre.len()), (10, 6));
    assert!(gre.iter().all(|f| f.dissect().inner_mac == f.dissect().tunnel + 4 && f.dissect().vni.is_none()));
    assert_eq!(gre.iter().filter(|f| f.dissect().inner_ethertype == Some(EtherType::ARP)).count(), 4);
    assert_eq!(gre.iter().filter(|f| f.inner_protocol() == Some(Protocol::ICMP)).count(), 2);
    assert_eq!(frames.iter().filter(|f| f.dissect().ethertype == EtherType::ARP).count(), 4);
}

#[test]
fn a_whole_tunnel_of_geneve_verifies() {
    let Some(frames) = frames("geneve_bulk_v4_zerocsum.pcap") else { return };
    assert_eq!(frames.len(), 894);
    let data = frames.iter().filter(|f| f.inner_protocol() == Some(Protocol::TCP) && f.dissect().payload_len() > 0);
    let lens: Vec<_> = data.map(|f| f.dissect().payload_len()).collect();
    assert_eq!((lens.len(), lens.iter().filter(|len| **len == 1398).count()), (503, 492));
    assert_eq!(lens.iter().sum::<usize>(), 700_000);
    for f in frames.iter().filter(|f| f.dissect().kind.is_some()) {
        assert_eq!((f.dissect().vni, f.outer().1), (Some(77), Some(ChecksumVerdict::Absent)));
        assert!(f.inner_protocol().is_none() || f.inner().1 == GOOD);
    }
}
