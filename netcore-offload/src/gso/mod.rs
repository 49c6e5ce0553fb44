//! Segmentation in software: the inverse of GRO (Linux: `tcp_gso_segment`, `__skb_udp_tunnel_segment`).
//!
//! Payload is never copied. A piece whose buffer has room in front gets its header there; otherwise the header goes into a
//! buffer of its own. So cutting what GRO merged needs no memory at all.

mod headers;
mod registered;
mod template;

use crate::gro::{get16, put16};
use crate::layout::MAX_HEADERS;
use crate::protocols::Protocols;
use headers::Headers;
use netcore::checksum::{Sum, update16};
use netcore::offload::{NotSegmented, SegmentError, Segmenter};
use netcore::packet::{Metadata, PartialChecksum};
use netcore::{Burst, Cutter, Features, GsoKind, Packet, PacketError, PoolCache, TunnelPorts};
use template::{Template, fill_tunnel_checksums};

/// Datagrams in one super-packet of UDP, at most (Linux: `UDP_MAX_SEGMENTS`).
const MAX_DATAGRAMS: usize = 128;

/// The software segmenter.
#[derive(Debug)]
pub struct SoftwareSegmenter {
    pieces: Burst,
    /// Of every segment of the packet that is being cut. Here, and not on the stack, it is copied as a whole.
    metadata: Metadata,
    protocols: Protocols,
    counters: GsoCounters,
    ports: TunnelPorts,
}

impl Default for SoftwareSegmenter {
    fn default() -> Self {
        Self::new()
    }
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

/// How a large packet can be cut, by its headers alone: for packets that come from where nothing is recorded about them, such
/// as a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Large {
    /// The segmentation kind. IPv4 identifications are taken to increment.
    pub kind: GsoKind,
    /// Offset of the outermost network header.
    pub network: usize,
    /// Offset of the first byte of payload: the headers of every segment.
    pub payload: usize,
}

impl Large {
    /// Walks the headers, through tunnels on these UDP ports, GRE and IP in IP.
    ///
    /// # Errors
    /// [`SegmentError::Headers`] if there is neither TCP nor UDP behind them.
    pub fn of(packet: &Packet, ports: &TunnelPorts) -> Result<Self, SegmentError> {
        let (kind, headers) = headers::discover(packet, ports)?;
        let network = usize::from(headers.layout.outermost().network);
        Ok(Self { kind, network, payload: usize::from(headers.layout.payload) })
    }
}

impl SoftwareSegmenter {
    /// A segmenter.
    pub fn new() -> Self {
        Self {
            pieces: Burst::new(),
            metadata: Metadata::default(),
            protocols: Protocols::new(),
            ports: TunnelPorts::default(),
            counters: GsoCounters { super_packets: 0, segments: 0, copied: 0, failed: 0 },
        }
    }

    /// Cuts super-packets of registered protocols, too.
    pub fn with_protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }

    /// Tells UDP tunnels by these ports where a super-packet does not record where its inner headers are.
    pub fn with_tunnel_ports(mut self, ports: TunnelPorts) -> Self {
        self.ports = ports;
        self
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
        const KNOWN: GsoKind = GsoKind::TCPV4.union(GsoKind::TCPV6).union(GsoKind::UDP_L4);
        if !gso.kind.intersects(KNOWN) && !self.protocols.is_empty() {
            return self.cut_registered(packet, gso, cache, out);
        }
        let headers = match Headers::of(&packet, gso.kind, &self.ports) {
            Ok(headers) => headers,
            Err(error) => return Err(NotSegmented { packet, error }),
        };
        let size = usize::from(gso.size);
        let (start, network) = (usize::from(headers.layout.payload), usize::from(headers.layout.outermost().network));
        let max = usize::from(u16::MAX) - (start - network);
        if size == 0 || size > max {
            return Err(NotSegmented { packet, error: SegmentError::Size { size, max } });
        }
        let count = (packet.len() - start).div_ceil(size).max(1);
        if headers.layout.udp && count > MAX_DATAGRAMS {
            return Err(NotSegmented { packet, error: SegmentError::Count { count, max: MAX_DATAGRAMS } });
        }
        let mut template = Template::new(&packet, &headers, gso, features);
        self.metadata = template.metadata(&packet);
        let mut cutter = self.prepare_payload(packet, start, size, count, cache)?;
        for index in 0..count {
            let Some(piece) = self.next_piece(&mut cutter, size, cache) else { break };
            let mut segment = add_header(template.write(&piece, index, index + 1 == count), piece, cache);
            segment.set_metadata(&self.metadata);
            out.push(segment);
        }
        debug_assert!(cutter.is_none_or(|cutter| cutter.is_empty()), "windows were reserved");
        self.counters.super_packets += 1;
        self.counters.segments += count as u64;
        Ok(count)
    }

    /// Makes sure that everything behind the headers can be cut into `count` pieces, with a buffer for the header of each in
    /// `cache`. Everything that can fail comes before the packet is touched. Gives what cuts the pieces; they are in
    /// `self.pieces` if there is nothing to cut.
    fn prepare_payload(
        &mut self,
        packet: Packet,
        offset: usize,
        size: usize,
        count: usize,
        cache: &mut PoolCache,
    ) -> Result<Option<Cutter>, NotSegmented> {
        if !cache.serves(&packet) {
            self.copy_payload(packet, offset, size, count, cache)?;
            return Ok(None);
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
            return Ok(None);
        }
        if let Err(error) = packet.pull(offset) {
            return Err(NotSegmented { packet, error: error.into() });
        }
        Ok(Some(Cutter::new(packet)))
    }

    /// The next piece after `prepare_payload`.
    #[inline(always)]
    fn next_piece(&mut self, cutter: &mut Option<Cutter>, size: usize, cache: &mut PoolCache) -> Option<Packet> {
        match cutter {
            Some(cutter) => cutter.take(size, cache).ok().flatten(),
            None => self.pieces.pop(),
        }
    }

    /// As `prepare_payload`, for payload in another pool's buffers, which may have no windows to give: copies it.
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

/// Writes headers in front of a piece of payload: into its own buffer if it has room there and belongs to nobody else, else into
/// a buffer put in front.
#[inline(always)]
fn add_header(header: &[u8], mut piece: Packet, cache: &mut PoolCache) -> Packet {
    if let Ok(room) = piece.push(header.len()) {
        room.copy_from_slice(header);
        return piece;
    }
    prepend_header(header, piece, cache)
}

/// Puts headers in a buffer of their own in front of a piece of payload.
#[inline(never)]
fn prepend_header(header: &[u8], mut piece: Packet, cache: &mut PoolCache) -> Packet {
    // Reserved before anything was changed.
    let Ok(mut head) = cache.get() else {
        debug_assert!(false, "a reserved buffer is missing");
        return piece;
    };
    let written = head.put(header.len()).map(|room| room.copy_from_slice(header)).is_ok();
    let prepended = written && piece.prepend(head).is_ok();
    debug_assert!(prepended, "a buffer is smaller than the headers");
    piece
}

/// Writes a word that the checksum at `checksum` covers.
#[inline(always)]
pub(super) fn set16(bytes: &mut [u8], offset: usize, value: u16, checksum: usize) {
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

    /// For a merged tunnel packet whose outer checksums are present, those are filled in too.
    fn fill_checksum(&mut self, packet: &mut Packet, cache: &mut PoolCache) -> Result<(), SegmentError> {
        let Some(PartialChecksum { start, offset }) = packet.transmit_checksum() else { return Ok(()) };
        let field = usize::from(start) + usize::from(offset);
        if field + 2 > packet.len() {
            return Err(SegmentError::Checksum { field, len: packet.len() });
        }
        const COMPUTED: GsoKind = GsoKind::UDP_TUNNEL_CSUM.union(GsoKind::GRE_CSUM);
        let tunnel = match packet.gso() {
            Some(gso) if gso.kind.intersects(COMPUTED) => {
                Some((gso.kind, Headers::of(packet, gso.kind, &self.ports)?.layout))
            }
            _ => None,
        };
        packet.make_writable(field + 2, cache)?;
        let value = packet.sum_from(usize::from(start));
        let (total, bytes) = (packet.len(), packet.head_mut()?);
        let pseudo = Sum::from_word(get16(bytes, field));
        put16(bytes, field, if offset == 6 { value.finish_udp() } else { value.finish() });
        if let Some((kind, layout)) = tunnel {
            fill_tunnel_checksums(bytes, &layout, kind, total, Sum::ZERO.minus(pseudo));
        }
        packet.set_transmit_checksum(None);
        Ok(())
    }
}
