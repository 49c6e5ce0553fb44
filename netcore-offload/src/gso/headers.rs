//! Where the headers of a super-packet are.

use netcore::offload::SegmentError;
use netcore::{GsoKind, Packet};

/// Longest headers that are copied in front of every segment.
pub(super) const MAX_HEADERS: usize = 512;

/// Offsets from the first byte of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Headers {
    /// Outermost network header.
    pub(super) network: usize,
    pub(super) outer_v6: bool,
    /// UDP header of a tunnel.
    pub(super) tunnel: Option<usize>,
    /// Innermost network header; same as `network` outside a tunnel.
    pub(super) inner_network: usize,
    pub(super) inner_v6: bool,
    /// Innermost transport header.
    pub(super) transport: usize,
    /// First byte of payload.
    pub(super) payload: usize,
}

fn refuse<T>(what: &'static str, offset: usize, allowed: &'static str) -> Result<T, SegmentError> {
    Err(SegmentError::Headers { what, offset, allowed })
}

fn byte(bytes: &[u8], offset: usize, what: &'static str) -> Result<u8, SegmentError> {
    match bytes.get(offset) {
        Some(byte) => Ok(*byte),
        None => refuse(what, offset, "a header inside the first segment"),
    }
}

fn word(bytes: &[u8], offset: usize, what: &'static str) -> Result<u16, SegmentError> {
    Ok(u16::from_be_bytes([byte(bytes, offset, what)?, byte(bytes, offset + 1, what)?]))
}

/// EtherType and start of the network header of the frame at `offset`.
fn link(bytes: &[u8], offset: usize) -> Result<(u16, usize), SegmentError> {
    let mut at = offset + 12;
    let mut ethertype = word(bytes, at, "EtherType")?;
    for _ in 0..2 {
        if ethertype == 0x8100 || ethertype == 0x88a8 {
            at += 4;
            ethertype = word(bytes, at, "EtherType")?;
        }
    }
    Ok((ethertype, at + 2))
}

/// Protocol and end of the network header at `offset`, extension headers included.
fn network(bytes: &[u8], offset: usize, v6: bool) -> Result<(u8, usize), SegmentError> {
    let first = byte(bytes, offset, "IP version")?;
    if !v6 {
        let len = usize::from(first & 0x0f) * 4;
        if first >> 4 != 4 || len < 20 {
            return refuse("IPv4 header", offset, "version 4 and a header length of 20 to 60 bytes");
        }
        return Ok((byte(bytes, offset + 9, "IPv4 protocol")?, offset + len));
    }
    if first >> 4 != 6 {
        return refuse("IPv6 header", offset, "version 6");
    }
    let mut protocol = byte(bytes, offset + 6, "IPv6 next header")?;
    let mut end = offset + 40;
    while matches!(protocol, 0 | 43 | 60) {
        protocol = byte(bytes, end, "IPv6 extension header")?;
        end += (usize::from(byte(bytes, end + 1, "IPv6 extension header")?) + 1) * 8;
        if end > MAX_HEADERS {
            return refuse("IPv6 extension headers", offset, "at most 512 bytes of headers");
        }
    }
    Ok((protocol, end))
}

fn is_v6(ethertype: u16, offset: usize) -> Result<bool, SegmentError> {
    match ethertype {
        0x0800 => Ok(false),
        0x86dd => Ok(true),
        _ => refuse("EtherType", offset, "IPv4 (0x0800) or IPv6 (0x86dd)"),
    }
}

impl Headers {
    /// Walks the headers of a super-packet and checks them against its kind.
    ///
    /// The payload's start comes from the headers, never from an IP length, which is zero or meaningless in packets beyond
    /// 64 KiB.
    pub(super) fn of(packet: &Packet, kind: GsoKind) -> Result<Self, SegmentError> {
        let bytes = packet.head();
        let (ethertype, start) = link(bytes, 0)?;
        let outer_v6 = is_v6(ethertype, start - 2)?;
        let (mut protocol, mut transport) = network(bytes, start, outer_v6)?;
        let mut headers =
            Self { network: start, outer_v6, inner_network: start, inner_v6: outer_v6, ..Self::default() };
        if kind.intersects(GsoKind::UDP_TUNNEL | GsoKind::UDP_TUNNEL_CSUM) {
            if protocol != 17 {
                return refuse("tunnel protocol", start, "UDP (17)");
            }
            headers.tunnel = Some(transport);
            // VXLAN: eight bytes of UDP, eight of VXLAN. Whoever built another tunnel recorded where the inner frame is.
            let inner_mac = match packet.offsets() {
                Some(offsets) if offsets.inner_mac != 0 => usize::from(offsets.inner_mac),
                _ => transport + 16,
            };
            let (ethertype, inner) = link(bytes, inner_mac)?;
            headers.inner_network = inner;
            headers.inner_v6 = is_v6(ethertype, inner - 2)?;
            (protocol, transport) = network(bytes, inner, headers.inner_v6)?;
        }
        let wanted = if headers.inner_v6 { GsoKind::TCPV6 } else { GsoKind::TCPV4 };
        if !kind.contains(wanted) || protocol != 6 {
            return refuse("transport protocol", transport, "TCP over the IP version of the segmentation kind");
        }
        let len = usize::from(byte(bytes, transport + 12, "TCP header length")? >> 4) * 4;
        let payload = transport + len;
        if len < 20 || payload > bytes.len() || payload > MAX_HEADERS {
            return refuse("TCP header", transport, "20 to 60 bytes inside the first segment");
        }
        headers.transport = transport;
        headers.payload = payload;
        Ok(headers)
    }
}
