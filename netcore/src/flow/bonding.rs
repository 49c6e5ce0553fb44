//! The transmit hashes of Linux bonding, bit for bit (`bond_xmit_hash` and what it calls). The member is the hash modulo the
//! number of members.
//!
//! The frame is read as Linux reads it: addresses and ports as words in the byte order of a little-endian machine. A frame
//! with an in-line VLAN tag is not looked into.

use crate::packet::VlanTag;

/// What the IP policies take from a frame.
pub(super) struct Keys {
    /// Source and destination addresses, folded to 32 bits each and combined.
    pub(super) addresses: u32,
    pub(super) ports: u32,
    /// Type, code and identifier, if the packet has an identifier.
    pub(super) icmp: Option<u32>,
}

pub(super) fn word32(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Last bytes of both MAC addresses and the EtherType (`bond_eth_hash`); 0 for a frame without a whole Ethernet header.
pub fn layer2_hash(frame: &[u8]) -> u32 {
    match frame.first_chunk::<14>() {
        Some(h) => u32::from(h[5] ^ h[11]) ^ u32::from(u16::from_be_bytes([h[12], h[13]])),
        None => 0,
    }
}

/// As [`layer2_hash`], mixed with the IP addresses (policy `layer2+3`).
pub fn layer23_hash(frame: &[u8]) -> u32 {
    match keys(frame, false) {
        Some(keys) => mix(layer2_hash(frame) ^ keys.addresses),
        None => layer2_hash(frame),
    }
}

/// IP addresses and ports, or an ICMP identifier (policy `layer3+4`). The lowest bit is dropped, since ports are often all
/// even or all odd.
pub fn layer34_hash(frame: &[u8]) -> u32 {
    match keys(frame, true) {
        Some(keys) => mix(keys.icmp.unwrap_or(keys.ports) ^ keys.addresses) >> 1,
        None => layer2_hash(frame),
    }
}

/// As [`layer23_hash`], with the innermost addresses that the kernel's flow dissector finds (policy `encap2+3`): behind VLAN
/// tags, PPPoE, GRE and IP in IP, but not behind UDP. The MAC addresses are the outer ones. `tag` is the one held outside the bytes.
pub fn encap23_hash(frame: &[u8], tag: Option<VlanTag>) -> u32 {
    match super::dissector::keys(frame, tag.is_some()) {
        Some(keys) => mix(layer2_hash(frame) ^ keys.addresses),
        None => layer2_hash(frame),
    }
}

/// As [`layer34_hash`], with the innermost addresses and ports that the kernel's flow dissector finds (policy `encap3+4`). A
/// packet that already has a hash over its ports is sent by that one ([`Packet::hash`](crate::Packet::hash)): the caller's
/// business.
pub fn encap34_hash(frame: &[u8], tag: Option<VlanTag>) -> u32 {
    match super::dissector::keys(frame, tag.is_some()) {
        Some(keys) => mix(keys.icmp.unwrap_or(keys.ports) ^ keys.addresses) >> 1,
        None => layer2_hash(frame),
    }
}

/// VLAN tag held outside the bytes and source MAC address (policy `vlan+srcmac`).
pub fn vlan_srcmac_hash(frame: &[u8], tag: Option<VlanTag>) -> u32 {
    let Some(h) = frame.first_chunk::<12>() else { return 0 };
    let vendor = u32::from_be_bytes([0, h[6], h[7], h[8]]);
    let device = u32::from_be_bytes([0, h[9], h[10], h[11]]);
    tag.map_or(0, |tag| u32::from(tag.tci)) ^ vendor ^ device
}

fn mix(hash: u32) -> u32 {
    let hash = hash ^ hash >> 16;
    hash ^ hash >> 8
}

/// `bond_flow_dissect` for the policies that do not look into tunnels.
fn keys(frame: &[u8], ports: bool) -> Option<Keys> {
    let ethertype = u16::from_be_bytes(*frame.get(12..)?.first_chunk()?);
    let (mut keys, protocol, upper) = network(frame, 14, ethertype, ports)?;
    let Some(protocol @ (1 | 58)) = protocol else { return Some(keys) };
    let Some(&kind) = frame.get(upper) else { return Some(keys) };
    if frame.len() < upper + 8 {
        return Some(keys);
    }
    let is_error = match protocol {
        1 => matches!(kind, 3 | 4 | 5 | 11 | 12), // `icmp_is_err`
        _ => matches!(kind, 1..=4),               // `icmpv6_is_err`
    };
    keys.icmp = echo_word(frame, upper);
    if !is_error {
        return Some(keys);
    }
    // An error is hashed like the packet it speaks of.
    let (inner, _, _) = network(frame, upper + 8, ethertype, ports)?;
    Some(inner)
}

/// Type, code and identifier of the ICMP or ICMPv6 message at `at`, if it has an identifier (`skb_flow_get_icmp_tci`).
pub(super) fn echo_word(frame: &[u8], at: usize) -> Option<u32> {
    let &[kind, code, _, _, a, b, ..] = frame.get(at..)?.first_chunk::<8>()?;
    // Echo and timestamp, request and reply, of either protocol (`icmp_has_id`). An identifier of zero counts as one.
    let id = u16::from_be_bytes([a, b]).max(1).to_le_bytes();
    matches!(kind, 0 | 8 | 13 | 14 | 128 | 129).then_some(u32::from_le_bytes([kind, code, id[0], id[1]]))
}

/// `bond_flow_ip`: addresses and ports of an IP header, its protocol unless it is a fragment, and what follows it.
fn network(frame: &[u8], at: usize, ethertype: u16, ports: bool) -> Option<(Keys, Option<u8>, usize)> {
    let (addresses, protocol, upper) = match ethertype {
        0x0800 => {
            let header = frame.get(at..)?.first_chunk::<20>()?;
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let addresses = word32(header, 12)? ^ word32(header, 16)?;
            (addresses, (!fragment).then_some(header[9]), at + usize::from(header[0] & 0x0f) * 4)
        }
        0x86dd => {
            let header = frame.get(at..)?.first_chunk::<40>()?;
            let addresses = (8..40).step_by(4).try_fold(0, |folded, n| Some(folded ^ word32(header, n)?))?;
            (addresses, Some(header[6]), at + 40)
        }
        _ => return None,
    };
    let offset = match protocol {
        // TCP, UDP, DCCP, ESP, SCTP, UDP-Lite start with ports, or with what stands for them; AH has its index at byte 4.
        Some(6 | 17 | 33 | 50 | 132 | 136) => Some(0),
        Some(51) => Some(4),
        _ => None,
    };
    let ports = offset.filter(|_| ports).and_then(|offset| word32(frame, upper + offset)).unwrap_or(0);
    Some((Keys { addresses, ports, icmp: None }, protocol, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_not_ip_fall_back_to_layer_2() {
        let arp = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 5, 8, 6, 0, 1];
        assert_eq!(layer2_hash(&arp), 0x0806 ^ 9 ^ 5);
        assert_eq!((layer23_hash(&arp), layer34_hash(&arp)), (layer2_hash(&arp), layer2_hash(&arp)));
        assert_eq!(layer2_hash(&arp[..13]), 0);
    }

    /// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
    fn ipv4(protocol: u8, payload: &[u8]) -> alloc::vec::Vec<u8> {
        let mut frame = alloc::vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 5, 8, 0];
        frame.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn icmp_with_an_identifier_is_hashed_by_it_and_an_error_by_the_packet_it_speaks_of() {
        let echo = |id: u8| layer34_hash(&ipv4(1, &[8, 0, 0, 0, 0, id, 0, 1]));
        assert_ne!(echo(1), echo(2));
        // Information and address mask messages have an identifier that Linux does not look at.
        let mask = |id: u8| layer34_hash(&ipv4(1, &[17, 0, 0, 0, 0, id, 0, 1]));
        assert_eq!(mask(1), mask(2));
        let ports = [0x12, 0x34, 0x13, 0x89, 0, 0, 0, 0];
        let inner = &ipv4(17, &ports)[14..];
        let error = ipv4(1, &[&[3, 1, 0, 0, 0, 0, 0, 0], inner].concat());
        assert_eq!(layer34_hash(&error), layer34_hash(&ipv4(17, &ports)));
    }

    #[test]
    fn the_encap_policies_look_into_gre_and_ip_in_ip_but_not_into_udp() {
        let ports = [0x12, 0x34, 0x13, 0x89, 0, 0, 0, 0];
        let inner = ipv4(17, &ports);
        let plain = encap34_hash(&inner, None);
        assert_eq!(plain, layer34_hash(&inner));
        assert_eq!(encap34_hash(&ipv4(4, &inner[14..]), None), plain);
        assert_eq!(encap34_hash(&ipv4(47, &[&[0, 0, 8, 0], &inner[14..]].concat()), None), plain);
        assert_eq!(encap34_hash(&ipv4(47, &[&[0, 0, 0x65, 0x58], &inner[..]].concat()), None), plain);
        assert_eq!(encap34_hash(&ipv4(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 7], &inner[14..]].concat()), None), plain);
        let tagged = [&inner[..12], &[0x81, 0, 0, 5], &inner[12..]].concat();
        assert_eq!((encap34_hash(&tagged, None), layer34_hash(&tagged)), (plain, layer2_hash(&tagged)));
        let vxlan = ipv4(17, &[&[0xc0, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat());
        assert_eq!(encap34_hash(&vxlan, None), layer34_hash(&vxlan));
    }

    #[test]
    fn vlan_and_source_address() {
        let frame = [0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 8, 0];
        assert_eq!(vlan_srcmac_hash(&frame, None), 0x11_2233 ^ 0x44_5566);
        let tag = Some(VlanTag { tpid: 0x8100, tci: 0x600a });
        assert_eq!(vlan_srcmac_hash(&frame, tag), 0x600a ^ 0x11_2233 ^ 0x44_5566);
    }
}
