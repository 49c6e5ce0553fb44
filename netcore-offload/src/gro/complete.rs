//! Making a merged packet's headers true (Linux: `napi_gro_complete` and the `gro_complete` of each protocol).

use super::compare::JUMBO;
use super::shape::Shape;
use super::table::Held;
use super::verdict::raise;
use super::walk::{be16, tcp_flags};
use crate::layout::{Carrier, Layout, length_field};
use netcore::checksum::{Sum, update16};
use netcore::packet::PartialChecksum;
use netcore::{Gso, GsoKind, Packet};

/// Writes `value` at `offset`; the caller has walked the headers, so the offset is inside.
#[inline(always)]
pub(crate) fn put16(bytes: &mut [u8], offset: usize, value: u16) {
    if let Some(field) = bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
        *field = value.to_be_bytes();
    }
}

#[inline(always)]
pub(crate) fn get16(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, be16)
}

/// Sets the length of a network header to `len` bytes from its start to the end of the packet; zero if it does not fit.
#[inline(always)]
pub(super) fn set_network_len(bytes: &mut [u8], network: usize, v6: bool, len: usize) {
    if v6 {
        put16(bytes, network + 4, length_field(len - 40));
    } else {
        let old = get16(bytes, network + 2);
        put16(bytes, network + 2, length_field(len));
        let checksum = get16(bytes, network + 10);
        put16(bytes, network + 10, update16(checksum, old, length_field(len)));
    }
}

/// The pseudo-header sum that a partial checksum field holds.
#[inline(always)]
pub(crate) fn pseudo_sum(bytes: &[u8], network: usize, v6: bool, protocol: u8, len: usize) -> Sum {
    if v6 {
        let addresses: [u8; 32] = super::compare::field_at(bytes, network + 8);
        let (mut source, mut destination) = ([0; 16], [0; 16]);
        source.copy_from_slice(&addresses[..16]);
        destination.copy_from_slice(&addresses[16..]);
        Sum::pseudo_ipv6(&source, &destination, protocol, len as u32)
    } else {
        let [a, b, c, d, e, f, g, h]: [u8; 8] = super::compare::field_at(bytes, network + 12);
        Sum::pseudo_ipv4([a, b, c, d], [e, f, g, h], protocol, len as u32)
    }
}

/// The finished packet: as received if nothing was merged into it, else a super-packet.
#[inline(always)]
pub(super) fn complete(mut held: Held, shape: &Shape) -> Packet {
    raise(&mut held.packet, held.gained);
    if held.count == held.received_count {
        return held.packet;
    }
    match shape.fast {
        1 => merged_frequent::<false>(held, shape.layout.payload),
        2 => merged_frequent::<true>(held, shape.layout.payload),
        _ => merged_any(held, &shape.layout),
    }
}

/// [`merged`] where all offsets are constants.
#[inline(never)]
fn merged_frequent<const VXLAN: bool>(held: Held, payload: u16) -> Packet {
    merged(held, &super::fast::layout::<VXLAN>(usize::from(payload)))
}

#[inline(never)]
fn merged_any(held: Held, layout: &Layout) -> Packet {
    merged(held, layout)
}

/// Segmentation kind of the tunnels around the innermost headers.
#[inline(always)]
pub(crate) fn tunnel_kind(layout: &Layout, bytes: &[u8]) -> GsoKind {
    let mut kind = GsoKind::empty();
    for (index, level) in layout.levels().iter().enumerate() {
        kind |= match level.carrier {
            Carrier::Link => GsoKind::empty(),
            Carrier::Udp if get16(bytes, usize::from(level.carrier_at) + 6) == 0 => GsoKind::UDP_TUNNEL,
            Carrier::Udp => GsoKind::UDP_TUNNEL_CSUM,
            Carrier::Gre => GsoKind::GRE,
            Carrier::GreChecksum | Carrier::GreChecksumKey => GsoKind::GRE_CSUM,
            Carrier::Ip if layout.levels()[index - 1].v6 => GsoKind::IPXIP6,
            Carrier::Ip => GsoKind::IPXIP4,
        };
    }
    kind
}

#[inline(always)]
fn merged(held: Held, layout: &Layout) -> Packet {
    let Held { mut packet, count, segment, fixed_ids, carried_flags, .. } = held;
    let mut layout = *layout;
    let (first, inner) = (layout.outermost(), layout.innermost());
    if first.v6 && packet.len() - usize::from(first.network) - 40 > usize::from(u16::MAX) {
        insert_jumbo_option(&mut packet, &mut layout);
    }
    let len = packet.len();
    let transport = usize::from(layout.transport);
    let mut kind = match (layout.udp, inner.v6) {
        (true, _) => GsoKind::UDP_L4,
        (false, true) => GsoKind::TCPV6,
        (false, false) => GsoKind::TCPV4,
    };
    // The head was made writable before the first merge.
    if let Ok(bytes) = packet.head_mut() {
        kind |= tunnel_kind(&layout, bytes);
        for (index, level) in layout.levels().iter().enumerate() {
            let (network, at) = (usize::from(level.network), usize::from(level.carrier_at));
            set_network_len(bytes, network, level.v6, len - network);
            // A GRE checksum stays that of the first segment, as in Linux (`gre_gro_complete`); segmentation computes it anew.
            if level.carrier == Carrier::Udp {
                put16(bytes, at + 4, length_field(len - at));
                if get16(bytes, at + 6) != 0 {
                    let outer = layout.levels()[index - 1];
                    let pseudo = pseudo_sum(bytes, usize::from(outer.network), outer.v6, 17, len - at);
                    put16(bytes, at + 6, pseudo.fold());
                }
            }
        }
        let pseudo = pseudo_sum(bytes, usize::from(inner.network), inner.v6, layout.protocol(), len - transport);
        put16(bytes, transport + usize::from(layout.checksum_offset()), pseudo.fold());
        if layout.udp {
            put16(bytes, transport + 4, length_field(len - transport));
        } else {
            bytes[transport + 13] |= carried_flags;
            if bytes[transport + 13] & (tcp_flags::CWR >> 16) as u8 != 0 {
                kind |= GsoKind::TCP_ECN;
            }
        }
    }
    let innermost = 1 << (layout.levels().len() - 1);
    if fixed_ids & innermost != 0 {
        kind |= GsoKind::TCP_FIXEDID;
    }
    if fixed_ids & (innermost - 1) != 0 {
        kind |= GsoKind::TCP_FIXEDID_OUTER;
    }
    packet.set_gso(Some(Gso { kind, size: segment as u16, segments: count }));
    packet.set_transmit_checksum(Some(PartialChecksum { start: layout.transport, offset: layout.checksum_offset() }));
    packet.set_offsets(Some(layout.offsets()));
    packet
}

/// Puts a hop-by-hop header with a jumbo payload option behind a plain IPv6 header (Linux: `ipv6_gro_complete`); there is
/// room in front, or the packet would not have grown so long.
fn insert_jumbo_option(packet: &mut Packet, layout: &mut Layout) {
    let front = usize::from(layout.outermost().network) + 40;
    if packet.push(JUMBO).is_err() {
        return;
    }
    let total = packet.len() - front;
    let Ok(bytes) = packet.head_mut() else { return };
    bytes.copy_within(JUMBO..JUMBO + front, 0);
    let next = core::mem::replace(&mut bytes[front - 40 + 6], 0);
    // Next header, header length 0 (8 bytes), option type 0xc2 (RFC 2675), its length 4, the payload's length.
    bytes[front..front + 4].copy_from_slice(&[next, 0, 0xc2, 4]);
    bytes[front + 4..front + JUMBO].copy_from_slice(&(total as u32).to_be_bytes());
    layout.transport += JUMBO as u16;
    layout.payload += JUMBO as u16;
}
