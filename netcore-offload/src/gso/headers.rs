//! Where the headers of a super-packet are.

use crate::layout::{
    Carrier, ETHERTYPE_ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPPROTO_GRE, IPPROTO_IPIP, IPPROTO_IPV6, IPPROTO_TCP,
    IPPROTO_UDP, Layout, Level, MAX_HEADERS,
};
use netcore::dissect::TunnelKind;
use netcore::offload::SegmentError;
use netcore::{GsoKind, Packet, TunnelPorts};

/// Bytes of an IPv6 hop-by-hop header that holds a jumbo payload option and nothing else (RFC 2675).
pub(super) const JUMBO: usize = 8;

const UDP_TUNNEL: GsoKind = GsoKind::UDP_TUNNEL.union(GsoKind::UDP_TUNNEL_CSUM);
const GRE: GsoKind = GsoKind::GRE.union(GsoKind::GRE_CSUM);
const IP_IN_IP: GsoKind = GsoKind::IPXIP4.union(GsoKind::IPXIP6);

/// The headers of a super-packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    pub(super) layout: Layout,
    /// Behind the outermost IPv6 header is a jumbo payload option, which wire packets do not have.
    pub(super) jumbo: bool,
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
        ETHERTYPE_IPV4 => Ok(false),
        ETHERTYPE_IPV6 => Ok(true),
        _ => refuse("EtherType", offset, "IPv4 (0x0800) or IPv6 (0x86dd)"),
    }
}

/// Ethernet header if there is one, EtherType and network header of what a tunnel header carries.
fn payload_of(bytes: &[u8], ethertype: u16, at: usize) -> Result<(usize, u16, usize), SegmentError> {
    if ethertype != ETHERTYPE_ETHERNET {
        return Ok((0, ethertype, at));
    }
    let (ethertype, network) = link(bytes, at)?;
    Ok((at, ethertype, network))
}

struct Walk<'a> {
    packet: &'a Packet,
    bytes: &'a [u8],
    kind: GsoKind,
    ports: &'a TunnelPorts,
    /// A UDP tunnel was gone through.
    in_udp: bool,
}

impl Walk<'_> {
    /// All network headers, protocol and start of the innermost transport header.
    fn layout(&mut self) -> Result<(Layout, u8, usize), SegmentError> {
        let (mut ethertype, mut start) = link(self.bytes, 0)?;
        let mut v6 = is_v6(ethertype, start - 2)?;
        let mut layout = Layout::plain(start as u16, v6);
        let (mut protocol, mut transport) = network(self.bytes, start, v6)?;
        while let Some((level, inner)) = self.inner(protocol, transport, v6)? {
            (ethertype, start) = (inner, usize::from(level.network));
            v6 = is_v6(ethertype, start.saturating_sub(2))?;
            if !layout.push(level) {
                return refuse("tunnel", transport, "at most three tunnels inside each other");
            }
            (protocol, transport) = network(self.bytes, start, v6)?;
        }
        Ok((layout, protocol, transport))
    }

    /// The network header that the transport header at `at` carries; `None` if it is the innermost one.
    fn inner(&mut self, protocol: u8, at: usize, v6: bool) -> Result<Option<(Level, u16)>, SegmentError> {
        // Whoever built the super-packet may have recorded where its innermost transport header is.
        let recorded = self.packet.offsets().filter(|offsets| offsets.inner_transport != 0);
        if recorded.is_some_and(|offsets| usize::from(offsets.inner_transport) <= at) {
            return Ok(None);
        }
        let (carrier, (mac, ethertype, network)) = match protocol {
            IPPROTO_UDP if self.kind.intersects(UDP_TUNNEL) => match self.udp_tunnel(at)? {
                Some(inner) => (Carrier::Udp, inner),
                None => return Ok(None),
            },
            IPPROTO_GRE if self.kind.intersects(GRE) => {
                let flags = word(self.bytes, at, "GRE flags")?;
                let optional = usize::from(flags >> 15) + usize::from(flags >> 13 & 1);
                if flags & !0xa000 != 0 {
                    return refuse("GRE flags", at, "a checksum and a key at most");
                }
                let carrier = if flags & 0x8000 != 0 { Carrier::GreChecksum } else { Carrier::Gre };
                let ethertype = word(self.bytes, at + 2, "GRE protocol")?;
                (carrier, payload_of(self.bytes, ethertype, at + 4 + 4 * optional)?)
            }
            IPPROTO_IPIP if self.kind.intersects(IP_IN_IP) => (Carrier::Ip, (0, ETHERTYPE_IPV4, at)),
            IPPROTO_IPV6 if self.kind.intersects(IP_IN_IP) => (Carrier::Ip, (0, ETHERTYPE_IPV6, at)),
            _ => return Ok(None),
        };
        let wanted = if v6 { GsoKind::IPXIP6 } else { GsoKind::IPXIP4 };
        if carrier == Carrier::Ip && !self.kind.contains(wanted) {
            return refuse("tunnel", at, "IP in the IP version of the segmentation kind");
        }
        if network > MAX_HEADERS {
            return refuse("tunnel", at, "at most 512 bytes of headers");
        }
        let level =
            Level { network: network as u16, carrier_at: at as u16, mac: mac as u16, v6: ethertype == 0x86dd, carrier };
        Ok(Some((level, ethertype)))
    }

    /// What is in a UDP tunnel: known by its port, else by where the inner frame was recorded to be, else VXLAN.
    fn udp_tunnel(&mut self, at: usize) -> Result<Option<(usize, u16, usize)>, SegmentError> {
        let port = word(self.bytes, at + 2, "UDP port")?;
        let known = self.ports.get(port);
        let recorded = self.packet.offsets().filter(|offsets| offsets.inner_mac != 0);
        if known.is_none() && self.in_udp {
            return Ok(None);
        }
        self.in_udp = true;
        match (known, recorded) {
            (Some(TunnelKind::Geneve), _) => {
                let start = at + 8;
                let options = usize::from(byte(self.bytes, start, "GENEVE")? & 0x3f) * 4;
                let ethertype = word(self.bytes, start + 2, "GENEVE protocol")?;
                payload_of(self.bytes, ethertype, start + 8 + options).map(Some)
            }
            (None, Some(offsets)) if offsets.inner_mac == offsets.inner_network => {
                let network = usize::from(offsets.inner_network);
                let version = byte(self.bytes, network, "IP version")? >> 4;
                Ok(Some((0, if version == 6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 }, network)))
            }
            (None, Some(offsets)) => {
                payload_of(self.bytes, ETHERTYPE_ETHERNET, usize::from(offsets.inner_mac)).map(Some)
            }
            _ => payload_of(self.bytes, ETHERTYPE_ETHERNET, at + 16).map(Some),
        }
    }
}

impl Headers {
    /// Walks the headers of a super-packet and checks them against its kind.
    ///
    /// The payload's start comes from the headers, never from an IP length, which is zero or meaningless in packets beyond
    /// 64 KiB.
    pub(super) fn of(packet: &Packet, kind: GsoKind, ports: &TunnelPorts) -> Result<Self, SegmentError> {
        let bytes = packet.head();
        let mut walk = Walk { packet, bytes, kind, ports, in_udp: false };
        let (mut layout, protocol, transport) = walk.layout()?;
        let v6 = layout.innermost().v6;
        layout.udp = kind.contains(GsoKind::UDP_L4);
        let wanted = match (layout.udp, v6) {
            (true, _) => GsoKind::UDP_L4,
            (false, true) => GsoKind::TCPV6,
            (false, false) => GsoKind::TCPV4,
        };
        if !kind.contains(wanted) || protocol != if layout.udp { IPPROTO_UDP } else { IPPROTO_TCP } {
            return refuse("transport protocol", transport, "that of the segmentation kind, over its IP version");
        }
        let tunnels = [(UDP_TUNNEL, Carrier::Udp), (IP_IN_IP, Carrier::Ip)];
        let missing = |(kinds, carrier): &(GsoKind, Carrier)| {
            kind.intersects(*kinds) && !layout.levels().iter().any(|level| level.carrier == *carrier)
        };
        let no_gre = kind.intersects(GRE)
            && !layout.levels().iter().any(|level| matches!(level.carrier, Carrier::Gre | Carrier::GreChecksum));
        if tunnels.iter().any(missing) || no_gre {
            return refuse("tunnel", transport, "the tunnels that the segmentation kind names");
        }
        let len = match layout.udp {
            true => 8,
            false => usize::from(byte(bytes, transport + 12, "TCP header length")? >> 4) * 4,
        };
        let payload = transport + len;
        if !layout.udp && len < 20 || payload > bytes.len() || payload > MAX_HEADERS {
            return refuse("transport header", transport, "8 bytes of UDP or 20 to 60 of TCP inside the first segment");
        }
        layout.transport = transport as u16;
        layout.payload = payload as u16;
        let first = usize::from(layout.outermost().network);
        let jumbo = layout.outermost().v6 && bytes.get(first + 6) == Some(&0) && is_jumbo(bytes, first + 40);
        Ok(Self { layout, jumbo })
    }
}

/// A hop-by-hop header that holds a jumbo payload option alone.
fn is_jumbo(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1..at + 4) == Some(&[0, 0xc2, 4])
}

/// What a large packet asks for, by its headers alone: see [`super::Large::of`].
pub(super) fn discover(packet: &Packet, ports: &TunnelPorts) -> Result<(GsoKind, Headers), SegmentError> {
    let bytes = packet.head();
    // A UDP tunnel is one whose port is known.
    let mut walk = Walk { packet, bytes, kind: GsoKind::TUNNEL, ports, in_udp: true };
    let (layout, protocol, _) = walk.layout()?;
    let transport = match (protocol, layout.innermost().v6) {
        (IPPROTO_UDP, _) => GsoKind::UDP_L4,
        (_, true) => GsoKind::TCPV6,
        (_, false) => GsoKind::TCPV4,
    };
    let kind = transport | crate::gro::tunnel_kind(&layout, bytes);
    Ok((kind, Headers::of(packet, kind, ports)?))
}

impl Headers {
    /// The layout without the jumbo payload option.
    pub(super) fn on_the_wire(&self) -> Layout {
        let mut layout = self.layout;
        if self.jumbo {
            layout.shift(JUMBO as u16);
        }
        layout
    }
}
