//! Segmentation in software: the inverse of GRO (Linux: `tcp_gso_segment`, `__skb_udp_tunnel_segment`).
//!
//! Payload is never copied. A piece whose buffer has room in front gets its header there; otherwise the header goes into a
//! buffer of its own. So cutting what GRO merged needs no memory at all.

mod headers;

use crate::gro::pseudo_sum;
use headers::{Headers, MAX_HEADERS};
use netcore::checksum::{Sum, sum, update16};
use netcore::offload::{NotSegmented, SegmentError, Segmenter};
use netcore::packet::{HeaderOffsets, Metadata, PartialChecksum};
use netcore::{Burst, Cutter, Features, GsoKind, Packet, PacketError, PoolCache};

const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

/// The software segmenter.
#[derive(Debug, Default)]
pub struct SoftwareSegmenter {
    pieces: Burst,
    counters: GsoCounters,
}

/// What a [`SoftwareSegmenter`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GsoCounters {
    /// Super-packets cut.
    pub super_packets: u64,
    /// Wire packets made of them.
    pub segments: u64,
    /// Wire packets whose payload had to be copied because it was in another pool's buffers.
    pub copied: u64,
    /// Packets that could not be cut.
    pub failed: u64,
}

impl SoftwareSegmenter {
    /// A segmenter.
    pub const fn new() -> Self {
        Self { pieces: Burst::new(), counters: GsoCounters { super_packets: 0, segments: 0, copied: 0, failed: 0 } }
    }

    /// What was done so far.
    pub fn counters(&self) -> GsoCounters {
        self.counters
    }

    fn cut(
        &mut self,
        mut packet: Packet,
        features: Features,
        cache: &mut PoolCache,
        out: &mut Burst,
    ) -> Result<usize, NotSegmented> {
        let Some(gso) = packet.gso() else {
            return match self.finish_plain(&mut packet, features, cache) {
                Ok(()) => {
                    out.push(packet);
                    Ok(1)
                }
                Err(error) => Err(NotSegmented { packet, error }),
            };
        };
        let n = packet.len().min(MAX_HEADERS);
        if packet.head_len() < n
            && let Err(error) = packet.linearize(n, cache)
        {
            return Err(NotSegmented { packet, error: error.into() });
        }
        let headers = match Headers::of(&packet, gso.kind) {
            Ok(headers) => headers,
            Err(error) => return Err(NotSegmented { packet, error }),
        };
        let size = usize::from(gso.size);
        let max = usize::from(u16::MAX) - (headers.payload - headers.network);
        if size == 0 || size > max {
            return Err(NotSegmented { packet, error: SegmentError::Size { size, max } });
        }
        let mut template = Template::new(&packet, &headers, gso.kind, features);
        let payload = packet.len() - headers.payload;
        let count = payload.div_ceil(size).max(1);
        let metadata = template.metadata(&packet, &headers);
        self.cut_payload(packet, headers.payload, size, count, cache)?;
        for index in 0..count {
            let Some(piece) = self.pieces.pop() else { break };
            let len = piece.len();
            let mut segment = template.add_header(piece, cache);
            segment.set_metadata(&metadata);
            template.write(&mut segment, &headers, index, index + 1 == count, len);
            out.push(segment);
        }
        self.counters.super_packets += 1;
        self.counters.segments += count as u64;
        Ok(count)
    }

    /// Cuts everything behind the headers into `count` pieces in `self.pieces`, and leaves a buffer for the header of each in
    /// `cache`. Everything that can fail comes before the packet is touched.
    fn cut_payload(
        &mut self,
        packet: Packet,
        offset: usize,
        size: usize,
        count: usize,
        cache: &mut PoolCache,
    ) -> Result<(), NotSegmented> {
        if !cache.serves(&packet) {
            return self.copy_payload(packet, offset, size, count, cache);
        }
        let mut packet = packet;
        let windows = count + packet.segment_count();
        if let Err(error) = cache.reserve(count + 1, windows) {
            return Err(NotSegmented { packet, error: PacketError::from(error).into() });
        }
        if packet.len() == offset {
            // Headers alone: one segment without payload.
            packet.trim(0);
            self.pieces.push(packet);
            return Ok(());
        }
        if let Err(error) = packet.pull(offset) {
            return Err(NotSegmented { packet, error: error.into() });
        }
        let mut cutter = Cutter::new(packet);
        while let Ok(Some(piece)) = cutter.take(size, cache) {
            self.pieces.push(piece);
        }
        debug_assert!(cutter.is_empty(), "windows were reserved");
        Ok(())
    }

    /// As `cut_payload`, for payload in another pool's buffers, which may have no windows to give: copies it.
    fn copy_payload(
        &mut self,
        packet: Packet,
        offset: usize,
        size: usize,
        count: usize,
        cache: &mut PoolCache,
    ) -> Result<(), NotSegmented> {
        let payload = packet.len() - offset;
        let mut copied = 0;
        for _ in 0..count {
            let len = size.min(payload - copied);
            match copy_piece(&packet, offset + copied, len, cache) {
                Ok(piece) => self.pieces.push(piece),
                Err(error) => {
                    cache.put_burst(&mut self.pieces);
                    return Err(NotSegmented { packet, error: error.into() });
                }
            }
            copied += len;
        }
        if let Err(error) = cache.reserve(count, 0) {
            cache.put_burst(&mut self.pieces);
            return Err(NotSegmented { packet, error: PacketError::from(error).into() });
        }
        self.counters.copied += count as u64;
        cache.put(packet);
        Ok(())
    }

    /// A packet that is no super-packet: its checksum is filled in unless the device does it.
    fn finish_plain(
        &mut self,
        packet: &mut Packet,
        features: Features,
        cache: &mut PoolCache,
    ) -> Result<(), SegmentError> {
        if packet.transmit_checksum().is_none() || features.contains(Features::TX_CHECKSUM_GENERIC) {
            return Ok(());
        }
        self.fill_checksum(packet, cache)
    }
}

/// A packet with a copy of `len` bytes of `packet` from `offset` on.
fn copy_piece(packet: &Packet, offset: usize, len: usize, cache: &mut PoolCache) -> Result<Packet, PacketError> {
    let mut piece = cache.get()?;
    let first = len.min(piece.tailroom());
    if let Err(error) = piece.put(first).and_then(|room| packet.copy_to(offset, room)) {
        cache.put(piece);
        return Err(error);
    }
    if first == 0 && len > 0 {
        cache.put(piece);
        return Err(PacketError::NoTailroom { wanted: len, available: 0 });
    }
    if first < len {
        match copy_piece(packet, offset + first, len - first, cache) {
            Ok(rest) => piece.append(rest)?,
            Err(error) => {
                cache.put(piece);
                return Err(error);
            }
        }
    }
    Ok(piece)
}

/// Where an IPv4 or IPv6 header needs work in every segment.
#[derive(Clone, Copy)]
struct Network {
    offset: usize,
    v6: bool,
    /// First identification; `None` if there is none or it stays.
    id: Option<u16>,
}

/// The headers of a super-packet, ready to be written in front of each segment.
struct Template {
    bytes: [u8; MAX_HEADERS],
    len: usize,
    networks: [Option<Network>; 2],
    seq: u32,
    size: u32,
    flags: u8,
    kind: GsoKind,
    /// The device fills in the innermost checksum.
    partial: bool,
}

impl Template {
    fn new(packet: &Packet, headers: &Headers, kind: GsoKind, features: Features) -> Self {
        let mut bytes = [0; MAX_HEADERS];
        let len = headers.payload;
        bytes[..len].copy_from_slice(&packet.head()[..len]);
        let network = |offset: usize, v6: bool, fixed: bool| Network {
            offset,
            v6,
            id: (!v6 && !fixed).then(|| u16::from_be_bytes([bytes[offset + 4], bytes[offset + 5]])),
        };
        let fixed = kind.contains(GsoKind::TCP_FIXEDID);
        let inner = network(headers.inner_network, headers.inner_v6, fixed);
        let outer = headers
            .tunnel
            .map(|_| network(headers.network, headers.outer_v6, kind.contains(GsoKind::TCP_FIXEDID_OUTER)));
        let tcp = headers.transport;
        let partial = features.contains(Features::TX_CHECKSUM_GENERIC)
            || headers.tunnel.is_none()
                && features.contains(if headers.inner_v6 {
                    Features::TX_CHECKSUM_IPV6
                } else {
                    Features::TX_CHECKSUM_IPV4
                });
        Self {
            seq: u32::from_be_bytes([bytes[tcp + 4], bytes[tcp + 5], bytes[tcp + 6], bytes[tcp + 7]]),
            size: packet.gso().map_or(0, |gso| u32::from(gso.size)),
            flags: bytes[tcp + 13],
            networks: [Some(inner), outer],
            bytes,
            len,
            kind,
            partial,
        }
    }

    /// The metadata of every segment.
    fn metadata(&self, packet: &Packet, headers: &Headers) -> Metadata {
        let mut copy = packet.metadata();
        copy.clear_gso();
        copy.set_transmit_checksum(
            self.partial.then_some(PartialChecksum { start: headers.transport as u16, offset: 16 }),
        );
        let network = headers.network as u16;
        copy.set_offsets(match headers.tunnel {
            None => HeaderOffsets { network, transport: headers.transport as u16, ..HeaderOffsets::default() },
            Some(tunnel) => HeaderOffsets {
                network,
                transport: tunnel as u16,
                inner_mac: packet.offsets().map_or(tunnel as u16 + 16, |offsets| offsets.inner_mac),
                inner_network: headers.inner_network as u16,
                inner_transport: headers.transport as u16,
            },
        });
        copy
    }

    /// Makes room for the headers in front of a piece of payload: in its own buffer if it has room there and belongs to
    /// nobody else, else in a buffer put in front.
    #[inline]
    fn add_header(&self, mut piece: Packet, cache: &mut PoolCache) -> Packet {
        if piece.push(self.len).is_ok() {
            return piece;
        }
        // Reserved before anything was changed.
        let Ok(mut head) = cache.get() else {
            debug_assert!(false, "a reserved buffer is missing");
            return piece;
        };
        if head.put(self.len).is_ok() && piece.prepend(head).is_ok() {
            return piece;
        }
        debug_assert!(false, "a buffer is smaller than the headers");
        piece
    }

    /// Writes the headers of segment `index`, whose payload has `len` bytes.
    #[inline]
    fn write(&mut self, segment: &mut Packet, headers: &Headers, index: usize, last: bool, len: usize) {
        let total = self.len + len;
        let tcp = headers.transport;
        let seq = self.seq.wrapping_add(self.size.wrapping_mul(index as u32));
        self.bytes[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
        let mut flags = self.flags;
        if !last {
            flags &= !TCP_FIN_PSH;
        }
        if index > 0 && !self.kind.contains(GsoKind::TCP_ACCECN) {
            flags &= !TCP_CWR;
        }
        self.bytes[tcp + 13] = flags;
        for network in self.networks.into_iter().flatten() {
            let length = total - network.offset;
            if network.v6 {
                put16(&mut self.bytes, network.offset + 4, (length - 40) as u16);
                continue;
            }
            if let Some(first) = network.id {
                set16(&mut self.bytes, network.offset + 4, first.wrapping_add(index as u16), network.offset + 10);
            }
            set16(&mut self.bytes, network.offset + 2, length as u16, network.offset + 10);
        }
        let pseudo = pseudo_sum(&self.bytes, headers.inner_network, headers.inner_v6, 6, total - tcp);
        put16(&mut self.bytes, tcp + 16, 0);
        let checksum = if self.partial {
            pseudo.fold()
        } else {
            let header = sum(&self.bytes[tcp..self.len]);
            pseudo.plus(header).plus(segment.sum_from(self.len)).finish()
        };
        put16(&mut self.bytes, tcp + 16, checksum);
        if let Some(udp) = headers.tunnel {
            put16(&mut self.bytes, udp + 4, (total - udp) as u16);
            if self.kind.contains(GsoKind::UDP_TUNNEL_CSUM) {
                put16(&mut self.bytes, udp + 6, 0);
                let outer = pseudo_sum(&self.bytes, headers.network, headers.outer_v6, 17, total - udp);
                let checksum = tunnel_checksum(&self.bytes, udp, tcp, outer, pseudo);
                put16(&mut self.bytes, udp + 6, checksum);
            }
        }
        if let Ok(bytes) = segment.head_mut() {
            bytes[..self.len].copy_from_slice(&self.bytes[..self.len]);
        }
    }
}

/// The outer UDP checksum of a tunnel packet whose inner checksum is right or will be filled in: the inner transport part
/// then sums to the complement of its pseudo-header, so no payload is read (Linux: local checksum offload, `lco_csum`).
fn tunnel_checksum(bytes: &[u8], udp: usize, inner: usize, outer_pseudo: Sum, inner_pseudo: Sum) -> u16 {
    outer_pseudo.plus(sum(&bytes[udp..inner])).minus(inner_pseudo).finish_udp()
}

#[inline(always)]
fn put16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline(always)]
fn get16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

/// Writes a word that the checksum at `checksum` covers.
#[inline(always)]
fn set16(bytes: &mut [u8], offset: usize, value: u16, checksum: usize) {
    let old = get16(bytes, offset);
    put16(bytes, offset, value);
    let updated = update16(get16(bytes, checksum), old, value);
    put16(bytes, checksum, updated);
}

impl Segmenter for SoftwareSegmenter {
    fn segment(
        &mut self,
        packet: Packet,
        features: Features,
        cache: &mut PoolCache,
        out: &mut Burst,
    ) -> Result<usize, NotSegmented> {
        let result = self.cut(packet, features, cache, out);
        self.counters.failed += u64::from(result.is_err());
        result
    }

    /// For a merged tunnel packet whose outer checksum is present, that one is filled in too.
    fn fill_checksum(&mut self, packet: &mut Packet, cache: &mut PoolCache) -> Result<(), SegmentError> {
        let Some(PartialChecksum { start, offset }) = packet.transmit_checksum() else { return Ok(()) };
        let field = usize::from(start) + usize::from(offset);
        if field + 2 > packet.len() {
            return Err(SegmentError::Checksum { field, len: packet.len() });
        }
        let tunnel = match packet.gso() {
            Some(gso) if gso.kind.contains(GsoKind::UDP_TUNNEL_CSUM) => Some(Headers::of(packet, gso.kind)?),
            _ => None,
        };
        packet.make_writable(field + 2, cache)?;
        let value = packet.sum_from(usize::from(start));
        let inner = |value: Sum| if offset == 6 { value.finish_udp() } else { value.finish() };
        let bytes = packet.head_mut()?;
        let pseudo = Sum::from_word(get16(bytes, field));
        put16(bytes, field, inner(value));
        if let Some(headers) = tunnel
            && let Some(udp) = headers.tunnel
        {
            let outer_pseudo = Sum::from_word(get16(bytes, udp + 6));
            put16(bytes, udp + 6, 0);
            let checksum = tunnel_checksum(bytes, udp, usize::from(start), outer_pseudo, pseudo);
            put16(bytes, udp + 6, checksum);
        }
        packet.set_transmit_checksum(None);
        Ok(())
    }
}
