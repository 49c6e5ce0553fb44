//! The headers of a super-packet, written in front of each segment.
//!
//! What is the same in all segments is worked out once; from segment to segment only sequence number, flags, identifications
//! and checksums change, and lengths for the last.

use super::headers::{Headers, JUMBO};
use super::set16;
use crate::gro::{get16, pseudo_sum, put16};
use crate::layout::{Carrier, Layout, MAX_HEADERS};
use netcore::checksum::{Sum, sum, update16};
use netcore::packet::{Metadata, PartialChecksum};
use netcore::{Features, Gso, GsoKind, Packet};

const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

/// The headers of a super-packet.
pub(super) struct Template {
    bytes: [u8; MAX_HEADERS],
    pub(super) layout: Layout,
    /// Identifications that grow, one bit for each network header.
    growing: u8,
    seq: u32,
    size: u32,
    flags: u8,
    kind: GsoKind,
    /// The device fills in the innermost checksum.
    partial: bool,
    /// The innermost checksum is "none" and stays so.
    absent: bool,
    /// Some tunnel header has a checksum.
    outer: bool,
    /// Bytes of payload that the lengths in `bytes` stand for.
    written: usize,
    /// Pseudo-header of the innermost transport header, for that length.
    pseudo: Sum,
}

impl Template {
    pub(super) fn new(packet: &Packet, headers: &Headers, gso: Gso, features: Features) -> Self {
        let kind = gso.kind;
        let layout = headers.on_the_wire();
        let mut bytes = [0; MAX_HEADERS];
        let all = &packet.head()[..usize::from(headers.layout.payload)];
        if headers.jumbo {
            // Wire packets have no jumbo payload option: its next header moves into the IPv6 header.
            let front = usize::from(layout.outermost().network) + 40;
            bytes[..front].copy_from_slice(&all[..front]);
            bytes[front - 34] = all[front];
            bytes[front..all.len() - JUMBO].copy_from_slice(&all[front + JUMBO..]);
        } else {
            bytes[..all.len()].copy_from_slice(all);
        }
        let levels = layout.levels();
        let transport = usize::from(layout.transport);
        let mut growing = 0;
        for (index, level) in levels.iter().enumerate() {
            let fixed = if index + 1 == levels.len() { GsoKind::TCP_FIXEDID } else { GsoKind::TCP_FIXEDID_OUTER };
            growing |= u8::from(!level.v6 && !kind.contains(fixed)) << index;
        }
        let own =
            if levels.iter().any(|level| level.v6) { Features::TX_CHECKSUM_IPV6 } else { Features::TX_CHECKSUM_IPV4 };
        let checksum = get16(&bytes, transport + usize::from(layout.checksum_offset()));
        let absent = layout.udp && checksum == 0 && packet.transmit_checksum().is_none();
        let outer = levels.iter().any(|level| has_checksum(&bytes, kind, level.carrier, usize::from(level.carrier_at)));
        let mut flags = 0;
        let mut seq = 0;
        if !layout.udp {
            flags = bytes[transport + 13];
            seq = u32::from_be_bytes([
                bytes[transport + 4],
                bytes[transport + 5],
                bytes[transport + 6],
                bytes[transport + 7],
            ]);
        }
        Self {
            partial: !absent
                && (features.contains(Features::TX_CHECKSUM_GENERIC) || !layout.is_tunnel() && features.contains(own)),
            seq,
            size: u32::from(gso.size),
            flags,
            growing,
            bytes,
            layout,
            kind,
            absent,
            outer,
            written: usize::MAX,
            pseudo: Sum::ZERO,
        }
    }

    /// Bytes of the headers.
    pub(super) fn len(&self) -> usize {
        usize::from(self.layout.payload)
    }

    /// The metadata of every segment.
    pub(super) fn metadata(&self, packet: &Packet) -> Metadata {
        let mut copy = packet.metadata();
        copy.clear_gso();
        copy.set_transmit_checksum(
            self.partial
                .then_some(PartialChecksum { start: self.layout.transport, offset: self.layout.checksum_offset() }),
        );
        copy.set_offsets(self.layout.offsets());
        copy
    }

    /// Writes all lengths, for `payload` bytes of payload, and the pseudo-header's sum.
    #[inline(never)]
    fn set_lengths(&mut self, payload: usize) {
        let total = self.len() + payload;
        let layout = self.layout;
        for level in layout.levels() {
            let (network, at) = (usize::from(level.network), usize::from(level.carrier_at));
            if level.v6 {
                put16(&mut self.bytes, network + 4, (total - network - 40) as u16);
            } else {
                set16(&mut self.bytes, network + 2, (total - network) as u16, network + 10);
            }
            if level.carrier == Carrier::Udp {
                put16(&mut self.bytes, at + 4, (total - at) as u16);
            }
        }
        let (inner, transport) = (layout.innermost(), usize::from(layout.transport));
        if layout.udp {
            put16(&mut self.bytes, transport + 4, (total - transport) as u16);
        }
        let network = usize::from(inner.network);
        self.pseudo = pseudo_sum(&self.bytes, network, inner.v6, layout.protocol(), total - transport);
        let field = transport + usize::from(layout.checksum_offset());
        put16(&mut self.bytes, field, if self.partial { self.pseudo.fold() } else { 0 });
        self.written = payload;
    }

    /// The headers of segment `index`, whose payload is `piece`.
    #[inline(always)]
    pub(super) fn write(&mut self, piece: &Packet, index: usize, last: bool) -> &[u8] {
        let len = piece.len();
        if len != self.written {
            self.set_lengths(len);
        }
        let transport = usize::from(self.layout.transport);
        if !self.layout.udp {
            let seq = self.seq.wrapping_add(self.size.wrapping_mul(index as u32));
            let mut flags = self.flags;
            if !last {
                flags &= !TCP_FIN_PSH;
            }
            if index > 0 && !self.kind.contains(GsoKind::TCP_ACCECN) {
                flags &= !TCP_CWR;
            }
            if let Some(tcp) = self.bytes.get_mut(transport..).and_then(|tcp| tcp.first_chunk_mut::<14>()) {
                tcp[4..8].copy_from_slice(&seq.to_be_bytes());
                tcp[13] = flags;
            }
        }
        if index > 0 && self.growing != 0 {
            for (number, level) in self.layout.levels().iter().enumerate() {
                if self.growing & 1 << number != 0 {
                    let header = self.bytes.get_mut(usize::from(level.network)..);
                    if let Some(header) = header.and_then(|header| header.first_chunk_mut()) {
                        increment_id(header);
                    }
                }
            }
        }
        if !self.partial && !self.absent {
            self.fill_innermost(piece, transport);
        }
        if self.outer {
            self.fill_outer(piece, len);
        }
        self.bytes.get(..self.len()).unwrap_or(&[])
    }

    /// The innermost checksum, in software.
    #[inline(never)]
    fn fill_innermost(&mut self, piece: &Packet, transport: usize) {
        let field = transport + usize::from(self.layout.checksum_offset());
        put16(&mut self.bytes, field, 0);
        let header = sum(&self.bytes[transport..self.len()]);
        let value = self.pseudo.plus(header).plus(piece.sum_from(0));
        put16(&mut self.bytes, field, if self.layout.udp { value.finish_udp() } else { value.finish() });
    }

    #[inline(never)]
    fn fill_outer(&mut self, piece: &Packet, payload: usize) {
        let (transport, n) = (usize::from(self.layout.transport), self.len());
        let rest = match self.absent {
            true => sum(&self.bytes[transport..n]).plus(piece.sum_from(0)),
            false => Sum::ZERO.minus(self.pseudo),
        };
        fill_tunnel_checksums(&mut self.bytes, &self.layout, self.kind, n + payload, rest);
    }
}

/// Makes an IPv4 header that of the next segment.
#[inline(always)]
fn increment_id(header: &mut [u8; 12]) {
    let old = u16::from_be_bytes([header[4], header[5]]);
    let new = old.wrapping_add(1);
    header[4..6].copy_from_slice(&new.to_be_bytes());
    let checksum = update16(u16::from_be_bytes([header[10], header[11]]), old, new);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Does a tunnel header have a checksum that segmentation computes?
fn has_checksum(bytes: &[u8], kind: GsoKind, carrier: Carrier, at: usize) -> bool {
    let computed = kind.contains(GsoKind::UDP_TUNNEL_CSUM);
    match carrier {
        // With both kinds in one packet, a zero field says which tunnel has none.
        Carrier::Udp => computed && (!kind.contains(GsoKind::UDP_TUNNEL) || get16(bytes, at + 6) != 0),
        Carrier::GreChecksum | Carrier::GreChecksumKey => true,
        Carrier::Link | Carrier::Gre | Carrier::Ip => false,
    }
}

/// Fills in the checksums of all tunnel headers of a packet of `total` bytes, from the inside out. `rest` is the sum of
/// everything from the innermost transport header on: once its checksum is right, or will be filled in, that is the complement
/// of its pseudo-header, so no payload is read (Linux: local checksum offload, `lco_csum`).
pub(super) fn fill_tunnel_checksums(bytes: &mut [u8], layout: &Layout, kind: GsoKind, total: usize, rest: Sum) {
    let (mut rest, mut end) = (rest, usize::from(layout.transport));
    for (index, level) in layout.levels().iter().enumerate().skip(1).rev() {
        let at = usize::from(level.carrier_at);
        let computed = has_checksum(bytes, kind, level.carrier, at);
        let field = if level.carrier == Carrier::Udp { at + 6 } else { at + 4 };
        if computed {
            put16(bytes, field, 0);
        }
        rest = rest.plus(sum(bytes.get(at..end).unwrap_or(&[])));
        end = at;
        if !computed {
            continue;
        }
        let outer = layout.levels()[index - 1];
        if level.carrier == Carrier::Udp {
            let pseudo = pseudo_sum(bytes, usize::from(outer.network), outer.v6, 17, total - at);
            put16(bytes, field, pseudo.plus(rest).finish_udp());
            rest = Sum::ZERO.minus(pseudo);
        } else {
            put16(bytes, field, rest.finish());
            rest = Sum::ZERO;
        }
    }
}
