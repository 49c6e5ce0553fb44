//! The most frequent frames, with every offset known: TCP and UDP over IPv4 without options or fragments, plain and in VXLAN;
//! and, a little slower, over IPv6 and behind VLAN tags.
//!
//! Whatever is not at its place is left to the general walk, which a test compares with this.

use super::{Dissection, Layers, LinkLayer, NetworkLayer, TunnelKind, TunnelPorts};
use crate::wire::{EtherType, Protocol};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const VXLAN: usize = 8;
const TCP: usize = 20;

/// The headers of a plain frame, and of one in VXLAN up to the shortest inner TCP header.
const PLAIN: usize = ETHERNET + IPV4;
const TUNNEL: usize = PLAIN + UDP + VXLAN;

const fn layer(at: usize, protocol: u8, end: u32) -> NetworkLayer {
    NetworkLayer {
        offset: at as u16,
        version: 4,
        protocol: Protocol(protocol),
        fragment: false,
        fragment_offset: 0,
        upper: (at + IPV4) as u16,
        end,
        cut: false,
    }
}

/// Two bytes as one number.
#[inline(always)]
const fn word(bytes: &[u8], at: usize) -> usize {
    u16::from_be_bytes([bytes[at], bytes[at + 1]]) as usize
}

/// Four bytes, the first in the low byte.
#[inline(always)]
fn load(h: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&h[at..at + 4]);
    u32::from_le_bytes(bytes)
}

/// Zero if the Ethernet header at `at` is followed by an IPv4 packet without options that is no fragment and has this protocol.
/// Several fields are looked at with each load.
#[inline(always)]
fn unlike_ipv4(h: &[u8], at: usize, protocol: u8) -> u32 {
    let ethertype_version = load(h, at + 12);
    let fragment_protocol = load(h, at + 20);
    (ethertype_version ^ 0x45_0008) & 0xff_ffff | (fragment_protocol ^ (protocol as u32) << 24) & 0xff00_ff3f
}

/// Where that packet ends.
#[inline(always)]
const fn ipv4_end(h: &[u8], at: usize) -> usize {
    at + ETHERNET + word(h, at + ETHERNET + 2)
}

/// TCP and UDP over IPv4; other frames go on to the functions below. Inlined into the caller, so that it is short.
#[inline(always)]
pub(super) fn dissect(frame: &[u8], ports: &TunnelPorts) -> Dissection {
    // 54 bytes are Ethernet, IPv4 and TCP; a shorter frame with UDP is left to the general walk.
    let Some(h) = frame.first_chunk::<{ PLAIN + TCP }>() else { return general(frame, ports) };
    let protocol = h[ETHERNET + 9];
    let end = ipv4_end(h, 0);
    if unlike_ipv4(h, 0, protocol) != 0 || end > frame.len() {
        return tagged_or_ipv6(frame, ports);
    }
    let after = match protocol {
        6 => PLAIN + tcp_header(h, PLAIN),
        17 if ports.may_be_tunnel(word(h, PLAIN + 2) as u16) => return vxlan(frame, ports),
        17 => PLAIN + UDP,
        _ => return general(frame, ports),
    };
    if protocol == 6 && after < PLAIN + TCP || after > end {
        return general(frame, ports);
    }
    Dissection {
        ethertype: EtherType::IPV4,
        outer: Some(layer(ETHERNET, protocol, end as u32)),
        payload: after as u32,
        ..Dissection::empty()
    }
}

#[inline(never)]
fn general(frame: &[u8], ports: &TunnelPorts) -> Dissection {
    super::walk(Layers::new(frame, ports))
}

/// TCP and UDP behind up to two VLAN tags and over either version of IP, not in a tunnel.
#[inline(never)]
fn tagged_or_ipv6(frame: &[u8], ports: &TunnelPorts) -> Dissection {
    match tagged_or_ipv6_headers(frame, ports) {
        Some((link, network, payload)) => Dissection {
            ethertype: link.ethertype,
            tags: link.tags,
            tci: link.tci,
            outer: Some(network),
            payload: payload as u32,
            ..Dissection::empty()
        },
        None => general(frame, ports),
    }
}

#[inline(always)]
fn tagged_or_ipv6_headers(frame: &[u8], ports: &TunnelPorts) -> Option<(LinkLayer, NetworkLayer, usize)> {
    let mut link = LinkLayer { offset: 0, ethertype: EtherType(0), tags: 0, tci: [0; 2] };
    // Ethernet, two tags, and an IPv4 header: what is shorter is left to the general walk.
    let h = frame.first_chunk::<{ ETHERNET + 8 + IPV4 }>()?;
    let mut at = ETHERNET;
    link.ethertype = EtherType(word(h, 12) as u16);
    while link.ethertype.is_vlan() && link.tags < 2 {
        link.tci[usize::from(link.tags)] = word(frame.get(at..at + 4)?, 0) as u16;
        link.ethertype = EtherType(word(frame.get(at..at + 4)?, 2) as u16);
        link.tags += 1;
        at += 4;
    }
    let network = if link.ethertype == EtherType::IPV4 {
        let h = frame.get(at..)?.first_chunk::<IPV4>()?;
        if h[0] != 0x45 || word(h, 6) & 0x3fff != 0 {
            return None;
        }
        layer(at, h[9], (at + word(h, 2)) as u32)
    } else if link.ethertype == EtherType::IPV6 {
        let h = frame.get(at..)?.first_chunk::<IPV6>()?;
        let len = word(h, 4);
        // A length of zero is a jumbogram's.
        if h[0] >> 4 != 6 || len == 0 {
            return None;
        }
        let end = (at + IPV6 + len) as u32;
        NetworkLayer { version: 6, upper: (at + IPV6) as u16, ..layer(at, h[6], end) }
    } else {
        return None;
    };
    let (upper, end) = (usize::from(network.upper), network.end as usize);
    let bytes = frame.get(upper..end)?;
    let len = match network.protocol {
        Protocol::TCP => tcp_header(bytes.first_chunk::<TCP>()?, 0),
        Protocol::UDP if !ports.may_be_tunnel(word(bytes.first_chunk::<UDP>()?, 2) as u16) => UDP,
        _ => return None,
    };
    let whole = len <= bytes.len() && (len >= TCP || network.protocol == Protocol::UDP);
    whole.then_some((link, network, upper + len))
}

/// TCP over IPv4 in VXLAN.
#[inline(never)]
fn vxlan(frame: &[u8], ports: &TunnelPorts) -> Dissection {
    let Some(h) = frame.first_chunk::<{ TUNNEL + PLAIN + TCP }>() else { return general(frame, ports) };
    // The caller has found an IPv4 packet that is whole.
    let outer_end = ipv4_end(h, 0);
    let end = ipv4_end(h, TUNNEL);
    let after = TUNNEL + PLAIN + tcp_header(h, TUNNEL + PLAIN);
    // The I flag without the P flag.
    let flags = (load(h, PLAIN + UDP) ^ 0x08) & 0x0c;
    let whole = end <= outer_end && after >= TUNNEL + PLAIN + TCP && after <= end;
    if unlike_ipv4(h, TUNNEL, 6) | flags != 0
        || !whole
        || ports.find(word(h, PLAIN + 2) as u16) != Some(TunnelKind::Vxlan)
    {
        return general(frame, ports);
    }
    Dissection {
        ethertype: EtherType::IPV4,
        outer: Some(layer(ETHERNET, 17, outer_end as u32)),
        inner: Some(layer(TUNNEL + ETHERNET, 6, end as u32)),
        depth: 1,
        kind: Some(TunnelKind::Vxlan),
        vni: Some(load(h, PLAIN + UDP + 4).swap_bytes() >> 8),
        tunnel: PLAIN as u16,
        inner_mac: TUNNEL as u16,
        inner_ethertype: Some(EtherType::IPV4),
        payload: after as u32,
        ..Dissection::empty()
    }
}

/// Bytes that the TCP header at `at` claims.
#[inline(always)]
fn tcp_header(h: &[u8], at: usize) -> usize {
    usize::from(h[at + 12] >> 4) * 4
}
