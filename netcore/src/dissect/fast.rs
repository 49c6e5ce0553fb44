//! The most frequent frames, with every offset known: TCP and UDP over IPv4 without options or fragments, plain and in VXLAN.
//!
//! Whatever is not at its place is left to the general walk, which a test compares with this.

use super::{Dissection, NetworkLayer, TunnelPorts};
use crate::wire::{EtherType, Protocol};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const VXLAN: usize = 8;

/// Protocol and end of an IPv4 packet at `at` that is whole and plain.
#[inline(always)]
fn plain_ipv4(frame: &[u8], at: usize, end: usize) -> Option<(u8, usize)> {
    let h: &[u8; IPV4] = frame.get(at..end)?.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([h[2], h[3]]));
    let plain = h[0] == 0x45 && u16::from_be_bytes([h[6], h[7]]) & 0x3fff == 0 && len >= IPV4 && at + len <= end;
    plain.then_some((h[9], at + len))
}

#[inline(always)]
fn layer(at: usize, protocol: u8, end: usize) -> NetworkLayer {
    NetworkLayer {
        offset: at as u16,
        version: 4,
        protocol: Protocol(protocol),
        fragment: false,
        fragment_offset: 0,
        upper: (at + IPV4) as u16,
        end: end as u32,
        cut: false,
    }
}

/// End of the TCP header at `at`, or of a UDP header.
#[inline(always)]
fn upper(frame: &[u8], at: usize, end: usize, protocol: u8) -> Option<usize> {
    let after = match protocol {
        6 => {
            let header = usize::from(*frame.get(at + 12)? >> 4) * 4;
            if header < 20 {
                return None;
            }
            at + header
        }
        17 => at + UDP,
        _ => return None,
    };
    (after <= end).then_some(after)
}

#[inline(always)]
pub(super) fn tcp_or_udp(frame: &[u8], ports: &TunnelPorts) -> Option<Dissection> {
    if frame.get(12..14)? != [0x08, 0x00] {
        return None;
    }
    let (protocol, end) = plain_ipv4(frame, ETHERNET, frame.len())?;
    let transport = ETHERNET + IPV4;
    let after = upper(frame, transport, end, protocol)?;
    let mut d = Dissection {
        ethertype: EtherType::IPV4,
        tags: 0,
        tci: [0; 2],
        outer: Some(layer(ETHERNET, protocol, end)),
        inner: None,
        depth: 0,
        vni: None,
        tunnel: 0,
        inner_mac: 0,
        inner_ethertype: None,
        payload: after as u32,
        stopped: None,
    };
    if protocol == 6 {
        return Some(d);
    }
    let udp: &[u8; UDP + VXLAN + ETHERNET] = match frame.get(transport..end)?.first_chunk() {
        Some(headers) => headers,
        None if ports.vxlan.is_empty() => return Some(d),
        None => return None,
    };
    if !ports.vxlan.contains(&u16::from_be_bytes([udp[2], udp[3]])) {
        return Some(d);
    }
    if udp[UDP] & 0x0c != 0x08 || udp[28..30] != [0x08, 0x00] {
        return None;
    }
    let inner_mac = transport + UDP + VXLAN;
    let inner = inner_mac + ETHERNET;
    let (protocol, end) = plain_ipv4(frame, inner, end)?;
    if protocol != 6 {
        return None;
    }
    let after = upper(frame, inner + IPV4, end, protocol)?;
    d.inner = Some(layer(inner, protocol, end));
    d.depth = 1;
    d.vni = Some(u32::from_be_bytes([0, udp[12], udp[13], udp[14]]));
    d.tunnel = transport as u16;
    d.inner_mac = inner_mac as u16;
    d.inner_ethertype = Some(EtherType::IPV4);
    d.payload = after as u32;
    Some(d)
}
