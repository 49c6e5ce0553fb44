//! Making a merged packet's headers true (Linux: `napi_gro_complete` and the `gro_complete` of each protocol).

use super::Held;
use super::compare::{FIXED_INNER, FIXED_OUTER};
use super::layout::{Layout, be16, tcp_flags};
use super::verdict::raise;
use netcore::checksum::{Sum, update16};
use netcore::packet::{HeaderOffsets, PartialChecksum};
use netcore::{Gso, GsoKind, Packet};

/// Writes `value` at `offset`; the caller has walked the headers, so the offset is inside.
#[inline(always)]
fn put16(bytes: &mut [u8], offset: usize, value: u16) {
    if let Some(field) = bytes.get_mut(offset..offset + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

#[inline(always)]
fn get16(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..offset + 2).map_or(0, |b| be16(&[b[0], b[1]]))
}

/// Sets the length of a network header to `len` bytes from its start to the end of the packet.
#[inline(always)]
fn set_network_len(bytes: &mut [u8], network: usize, v6: bool, len: usize) {
    if v6 {
        put16(bytes, network + 4, (len - 40) as u16);
    } else {
        let old = get16(bytes, network + 2);
        put16(bytes, network + 2, len as u16);
        let checksum = get16(bytes, network + 10);
        put16(bytes, network + 10, update16(checksum, old, len as u16));
    }
}

/// The pseudo-header sum that a partial checksum field holds.
#[inline(always)]
pub(crate) fn pseudo_sum(bytes: &[u8], network: usize, v6: bool, protocol: u8, len: usize) -> Sum {
    if v6 {
        let mut addresses = [[0; 16]; 2];
        for (index, address) in addresses.iter_mut().enumerate() {
            let start = network + 8 + 16 * index;
            address.copy_from_slice(&bytes[start..start + 16]);
        }
        Sum::pseudo_ipv6(&addresses[0], &addresses[1], protocol, len as u32)
    } else {
        let mut addresses = [[0; 4]; 2];
        for (index, address) in addresses.iter_mut().enumerate() {
            let start = network + 12 + 4 * index;
            address.copy_from_slice(&bytes[start..start + 4]);
        }
        Sum::pseudo_ipv4(addresses[0], addresses[1], protocol, len as u32)
    }
}

/// The finished packet: as received if nothing was merged into it, else a super-packet.
#[inline(always)]
pub(super) fn complete(mut held: Held) -> Packet {
    raise(&mut held.packet, held.gained);
    if held.count == held.received_count {
        return held.packet;
    }
    merged(held)
}

fn merged(held: Held) -> Packet {
    let Held { mut packet, layout, count, segment, fixed_ids, carried_flags, .. } = held;
    let len = packet.len();
    let Layout { network, tunnel, inner_mac, inner_network, tcp, .. } = layout;
    let (network, inner_network, tcp) = (usize::from(network), usize::from(inner_network), usize::from(tcp));
    let mut kind = if layout.inner_v6 { GsoKind::TCPV6 } else { GsoKind::TCPV4 };
    // The head was made writable before the first merge.
    if let Ok(bytes) = packet.head_mut() {
        set_network_len(bytes, network, layout.outer_v6, len - network);
        if layout.is_tunnel() {
            let udp = usize::from(tunnel);
            set_network_len(bytes, inner_network, layout.inner_v6, len - inner_network);
            put16(bytes, udp + 4, (len - udp) as u16);
            if get16(bytes, udp + 6) == 0 {
                kind |= GsoKind::UDP_TUNNEL;
            } else {
                kind |= GsoKind::UDP_TUNNEL_CSUM;
                let pseudo = pseudo_sum(bytes, network, layout.outer_v6, 17, len - udp);
                put16(bytes, udp + 6, pseudo.fold());
            }
        }
        let pseudo = pseudo_sum(bytes, inner_network, layout.inner_v6, 6, len - tcp);
        put16(bytes, tcp + 16, pseudo.fold());
        bytes[tcp + 13] |= (carried_flags >> 16) as u8;
        if bytes[tcp + 13] & (tcp_flags::CWR >> 16) as u8 != 0 {
            kind |= GsoKind::TCP_ECN;
        }
    }
    let innermost_fixed = if layout.is_tunnel() { FIXED_INNER } else { FIXED_OUTER };
    if fixed_ids & innermost_fixed != 0 {
        kind |= GsoKind::TCP_FIXEDID;
    }
    if layout.is_tunnel() && fixed_ids & FIXED_OUTER != 0 {
        kind |= GsoKind::TCP_FIXEDID_OUTER;
    }
    packet.set_gso(Some(Gso { kind, size: segment as u16, segments: count }));
    packet.set_transmit_checksum(Some(PartialChecksum { start: layout.tcp, offset: 16 }));
    packet.set_offsets(Some(if layout.is_tunnel() {
        HeaderOffsets {
            network: layout.network,
            transport: tunnel,
            inner_mac,
            inner_network: layout.inner_network,
            inner_transport: layout.tcp,
        }
    } else {
        HeaderOffsets { network: layout.network, transport: layout.tcp, ..HeaderOffsets::default() }
    }));
    packet
}
