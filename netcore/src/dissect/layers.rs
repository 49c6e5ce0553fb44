//! The headers of a frame one after the other, through tunnels.

use super::{TunnelKind, TunnelPorts};
use crate::wire::{
    CiscoMetadata, EtherType, EthernetHeader, GeneveHeader, GreHeader, Ipv4Header, Ipv6Header, Protocol, TcpHeader,
    UdpHeader, VlanHeader, VxlanHeader, WireError,
};

/// Tunnels inside tunnels are followed this far.
pub const MAX_TUNNELS: u8 = 4;
/// VLAN tags behind one link header are followed this far.
const MAX_TAGS: u8 = 4;

/// A link header with its VLAN tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkLayer {
    /// Offset of the Ethernet header.
    pub offset: u16,
    /// What follows the last tag that was read; a length in LLC frames.
    pub ethertype: EtherType,
    /// VLAN tags.
    pub tags: u8,
    /// Control information of the first two tags.
    pub tci: [u16; 2],
}

/// A network header and what it carries.
// The order of the fields lets a compiler write those that are known beforehand with one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct NetworkLayer {
    /// Where the packet ends according to its header, or where the frame ends if the header's length is zero (packets
    /// beyond 64 KiB without a jumbo payload option) or points beyond the frame.
    pub end: u32,
    /// Offset of the header.
    pub offset: u16,
    /// Offset of the upper-layer header, or of the fragment's payload.
    pub upper: u16,
    /// Offset of the fragment's payload in the datagram, bytes.
    pub fragment_offset: u16,
    /// 4 or 6.
    pub version: u8,
    /// True for every fragment of several.
    pub fragment: bool,
    /// True if the header's length points beyond the bytes at hand.
    pub cut: bool,
    /// The upper-layer protocol.
    pub protocol: Protocol,
}

/// A tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunnelLayer {
    /// Which.
    pub kind: TunnelKind,
    /// Offset of its header: of the UDP header of VXLAN and GENEVE; of the inner header of IP-in-IP, which has none of its own.
    pub offset: u16,
    /// First byte of what it carries.
    pub inner: u16,
    /// Network identifier: VNI of VXLAN and GENEVE, key of GRE.
    pub vni: Option<u32>,
}

/// A transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportLayer {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Offset of the header.
    pub offset: u16,
    /// First byte behind it.
    pub payload: u32,
}

/// One header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet and VLAN tags.
    Link(LinkLayer),
    /// IPv4 with options, IPv6 with extension headers.
    Network(NetworkLayer),
    /// VXLAN and GENEVE with the UDP header around them, GRE, IP-in-IP.
    Tunnel(TunnelLayer),
    /// TCP or UDP.
    Transport(TransportLayer),
}

/// What a walk gives its layers to: by value and inlined, so that nothing is built that is not kept.
pub(super) trait Visitor {
    fn link(&mut self, link: LinkLayer);
    fn network(&mut self, network: NetworkLayer);
    /// A tunnel, and what it carries if that is no Ethernet frame.
    fn tunnel(&mut self, tunnel: TunnelLayer, ethertype: Option<EtherType>);
    fn transport(&mut self, transport: TransportLayer);
}

/// Keeps the last layer.
impl Visitor for Option<Layer> {
    fn link(&mut self, link: LinkLayer) {
        *self = Some(Layer::Link(link));
    }
    fn network(&mut self, network: NetworkLayer) {
        *self = Some(Layer::Network(network));
    }
    fn tunnel(&mut self, tunnel: TunnelLayer, _: Option<EtherType>) {
        *self = Some(Layer::Tunnel(tunnel));
    }
    fn transport(&mut self, transport: TransportLayer) {
        *self = Some(Layer::Transport(transport));
    }
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Link,
    Network(EtherType),
    Upper { protocol: Protocol, fragment: bool },
    Nothing,
}

/// The layers of a frame, outermost first. An error, with the offset of the header that it is about, ends the walk; what came
/// before it stands.
#[derive(Clone, Debug)]
pub struct Layers<'a> {
    frame: &'a [u8],
    ports: &'a TunnelPorts,
    at: usize,
    /// The packet's end according to the headers so far: padding is not looked into.
    end: usize,
    tunnels: u8,
    next: Next,
}

impl<'a> Layers<'a> {
    /// The layers of an Ethernet frame.
    pub const fn new(frame: &'a [u8], ports: &'a TunnelPorts) -> Self {
        Self { frame, ports, at: 0, end: frame.len(), tunnels: 0, next: Next::Link }
    }

    /// The layers of a packet that starts with an IPv4 or IPv6 header, told apart by its version field.
    pub fn of_ip(packet: &'a [u8], ports: &'a TunnelPorts) -> Self {
        Self { next: Next::Network(ip_version(packet)), ..Self::new(packet, ports) }
    }

    /// First byte behind the headers walked so far.
    pub const fn offset(&self) -> usize {
        self.at
    }

    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        self.frame.get(self.at..self.end).unwrap_or(&[])
    }

    /// Reads the next layer; false if there is none.
    #[inline(always)]
    pub(super) fn step(&mut self, visitor: &mut impl Visitor) -> Result<bool, WireError> {
        match self.next {
            Next::Link => self.link(visitor)?,
            Next::Network(EtherType::IPV4) => self.network(ipv4(self.frame, self.at, self.end)?, visitor),
            Next::Network(EtherType::IPV6) => self.network(ipv6(self.frame, self.at, self.end)?, visitor),
            Next::Upper { protocol, fragment } => return self.upper(protocol, fragment, visitor),
            Next::Network(_) | Next::Nothing => {
                self.next = Next::Nothing;
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline(always)]
    fn link(&mut self, visitor: &mut impl Visitor) -> Result<(), WireError> {
        let (header, _) = EthernetHeader::parse(self.rest())?;
        let mut link =
            LinkLayer { offset: offset16("Ethernet", self.at)?, ethertype: header.ethertype(), tags: 0, tci: [0; 2] };
        self.at += EthernetHeader::LEN;
        while link.ethertype.is_vlan() && link.tags < MAX_TAGS {
            let (tag, _) = VlanHeader::parse(self.rest())?;
            if let Some(tci) = link.tci.get_mut(usize::from(link.tags)) {
                *tci = tag.tci();
            }
            link.ethertype = tag.ethertype();
            self.at += VlanHeader::LEN;
            link.tags += 1;
        }
        self.next = Next::Network(link.ethertype);
        visitor.link(link);
        Ok(())
    }

    #[inline(always)]
    fn network(&mut self, network: NetworkLayer, visitor: &mut impl Visitor) {
        self.at = usize::from(network.upper);
        self.end = network.end as usize;
        self.next = match network.fragment_offset {
            0 => Next::Upper { protocol: network.protocol, fragment: network.fragment },
            _ => Next::Nothing,
        };
        visitor.network(network);
    }

    #[inline(always)]
    fn upper(&mut self, protocol: Protocol, fragment: bool, visitor: &mut impl Visitor) -> Result<bool, WireError> {
        let rest = self.rest();
        let at = self.at;
        self.next = Next::Nothing;
        match protocol {
            Protocol::TCP => {
                let (header, _, _) = TcpHeader::parse(rest)?;
                self.at += header.header_len();
                self.transport(protocol, at, visitor);
                Ok(true)
            }
            Protocol::UDP => {
                let (header, after) = UdpHeader::parse(rest)?;
                let kind = if fragment { None } else { self.ports.get(header.destination()) };
                let Some(kind) = kind else {
                    self.at += UdpHeader::LEN;
                    self.transport(protocol, at, visitor);
                    return Ok(true);
                };
                self.udp_tunnel(kind, after, visitor)
            }
            // Only the whole of a packet is a tunnel's.
            Protocol::GRE if !fragment => self.gre(rest, visitor),
            Protocol::IPIP if !fragment => {
                self.tunnel(TunnelKind::Ip, 0, None, Next::Network(EtherType::IPV4), visitor)
            }
            Protocol::IPV6 if !fragment => {
                self.tunnel(TunnelKind::Ip, 0, None, Next::Network(EtherType::IPV6), visitor)
            }
            _ => Ok(false),
        }
    }

    #[inline(always)]
    fn transport(&self, protocol: Protocol, at: usize, visitor: &mut impl Visitor) {
        // The network layer's `upper` was found to fit into 16 bits.
        visitor.transport(TransportLayer { protocol, offset: at as u16, payload: self.at as u32 });
    }

    #[inline(always)]
    fn udp_tunnel(&mut self, kind: TunnelKind, payload: &[u8], visitor: &mut impl Visitor) -> Result<bool, WireError> {
        let error_at = self.at + UdpHeader::LEN;
        let result = match kind {
            TunnelKind::Geneve => GeneveHeader::parse(payload).map(|(header, _, _)| {
                let next = match header.protocol() {
                    // Control packets carry messages for the tunnel's end (RFC 8926 section 3.4).
                    _ if header.is_control() => Next::Nothing,
                    EtherType::TRANSPARENT_ETHERNET => Next::Link,
                    other => Next::Network(other),
                };
                (header.header_len(), header.vni(), next)
            }),
            _ => VxlanHeader::parse(payload).map(|(header, _)| (VxlanHeader::LEN, header.vni(), Next::Link)),
        };
        match result {
            Ok((len, vni, next)) => self.tunnel(kind, UdpHeader::LEN + len, Some(vni), next, visitor),
            Err(error) => {
                self.at = error_at;
                Err(error)
            }
        }
    }

    #[inline(always)]
    fn gre(&mut self, bytes: &[u8], visitor: &mut impl Visitor) -> Result<bool, WireError> {
        let (header, payload) = GreHeader::parse(bytes)?;
        let mut len = header.header_len();
        let mut next = match header.protocol {
            // PPP needs a machine that has seen what came before; a keepalive has no payload.
            _ if header.version != 0 => Next::Nothing,
            EtherType::TRANSPARENT_ETHERNET => Next::Link,
            other => Next::Network(other),
        };
        if next == Next::Network(EtherType::CISCO_METADATA) {
            let (metadata, rest) = CiscoMetadata::parse(payload)?;
            len += payload.len() - rest.len();
            next = Next::Network(metadata.protocol);
        }
        self.tunnel(TunnelKind::Gre, len, header.key, next, visitor)
    }

    /// Goes into a tunnel whose headers take `len` bytes.
    #[inline(always)]
    fn tunnel(
        &mut self,
        kind: TunnelKind,
        len: usize,
        vni: Option<u32>,
        next: Next,
        visitor: &mut impl Visitor,
    ) -> Result<bool, WireError> {
        if self.tunnels == MAX_TUNNELS {
            let value = u32::from(MAX_TUNNELS) + 1;
            return Err(WireError::field("tunnel", "number of tunnels", 0, value, "4 at most"));
        }
        let offset = self.at as u16;
        let inner = offset16("tunnel", self.at + len)?;
        self.tunnels += 1;
        self.at += len;
        self.next = next;
        visitor.tunnel(TunnelLayer { kind, offset, inner, vni }, self.ethertype());
        Ok(true)
    }

    /// What follows the last link header or tunnel header, if the walk ends there.
    pub(super) fn ethertype(&self) -> Option<EtherType> {
        match self.next {
            Next::Network(ethertype) => Some(ethertype),
            _ => None,
        }
    }
}

impl Iterator for Layers<'_> {
    type Item = Result<Layer, (u32, WireError)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut layer = None;
        match self.step(&mut layer) {
            Ok(_) => layer.map(Ok),
            Err(error) => {
                self.next = Next::Nothing;
                Some(Err((self.at as u32, error)))
            }
        }
    }
}

/// What a packet that starts with an IP header is.
fn ip_version(packet: &[u8]) -> EtherType {
    match packet.first() {
        Some(first) if first >> 4 == 6 => EtherType::IPV6,
        _ => EtherType::IPV4,
    }
}

/// Offsets are kept in 16 bits: headers behind the first 64 KiB are not looked at.
#[inline(always)]
fn offset16(header: &'static str, at: usize) -> Result<u16, WireError> {
    match u16::try_from(at) {
        Ok(at) => Ok(at),
        Err(_) => {
            let value = u32::try_from(at).unwrap_or(u32::MAX);
            Err(WireError::field(header, "end of header", 0, value, "65535 at most"))
        }
    }
}

#[inline(always)]
fn ipv4(frame: &[u8], at: usize, end: usize) -> Result<NetworkLayer, WireError> {
    let (header, _, _) = Ipv4Header::parse(frame.get(at..end).unwrap_or(&[]))?;
    let len = usize::from(header.total_len());
    let claimed = if len == 0 { end } else { at + len };
    if len != 0 && len < header.header_len() {
        let allowed = "the header length at least, or 0 beyond 64 KiB";
        return Err(WireError::field("IPv4", "total length", 2, len as u32, allowed));
    }
    Ok(NetworkLayer {
        offset: at as u16,
        version: 4,
        protocol: header.protocol(),
        fragment: header.is_fragment(),
        fragment_offset: header.fragment_offset() as u16,
        upper: offset16("IPv4", at + header.header_len())?,
        end: claimed.min(end) as u32,
        cut: claimed > end,
    })
}

#[inline(always)]
fn ipv6(frame: &[u8], at: usize, end: usize) -> Result<NetworkLayer, WireError> {
    let (header, rest) = Ipv6Header::parse(frame.get(at..end).unwrap_or(&[]))?;
    let len = usize::from(header.payload_len());
    let start = at + Ipv6Header::LEN;
    let upper = header.upper(&rest[..if len == 0 { end - start } else { len.min(end - start) }])?;
    let claimed = match upper.jumbo_len {
        Some(jumbo) => start.saturating_add(jumbo as usize),
        None if len == 0 => end,
        None => start + len,
    };
    Ok(NetworkLayer {
        offset: at as u16,
        version: 6,
        protocol: upper.protocol,
        fragment: upper.fragment,
        fragment_offset: upper.fragment_offset as u16,
        upper: offset16("IPv6", start + upper.offset)?,
        end: claimed.min(end) as u32,
        cut: claimed > end,
    })
}
