//! All header offsets of a frame in one pass, through tunnels.

mod fast;
mod verify;

#[cfg(test)]
mod tests;

pub use verify::{ChecksumVerdict, Checksums};

use crate::packet::HeaderOffsets;
use crate::wire::{
    EtherType, EthernetHeader, Ipv4Header, Ipv6Header, Protocol, TcpHeader, UdpHeader, VxlanHeader, WireError,
};
use alloc::vec::Vec;

/// Tunnels inside tunnels are followed this far.
const MAX_DEPTH: u8 = 4;
/// VLAN tags in one frame are followed this far.
const MAX_TAGS: u8 = 4;

/// Which UDP destination ports carry a tunnel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelPorts {
    vxlan: Vec<u16>,
}

impl TunnelPorts {
    /// No tunnels.
    pub const fn none() -> Self {
        Self { vxlan: Vec::new() }
    }

    /// Adds a port whose payload is VXLAN.
    pub fn with_vxlan(mut self, port: u16) -> Self {
        if !self.vxlan.contains(&port) {
            self.vxlan.push(port);
        }
        self
    }

    /// The ports whose payload is VXLAN.
    pub fn vxlan(&self) -> &[u16] {
        &self.vxlan
    }
}

impl Default for TunnelPorts {
    /// VXLAN on the port assigned by IANA.
    fn default() -> Self {
        Self::none().with_vxlan(VxlanHeader::PORT)
    }
}

/// A network header and what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkLayer {
    /// Offset of the header.
    pub offset: u16,
    /// 4 or 6.
    pub version: u8,
    /// The upper-layer protocol.
    pub protocol: Protocol,
    /// True for every fragment of several.
    pub fragment: bool,
    /// Offset of the fragment's payload in the datagram, bytes.
    pub fragment_offset: u16,
    /// Offset of the upper-layer header, or of the fragment's payload.
    pub upper: u16,
    /// Where the packet ends according to its header, or where the frame ends if the header's length is zero (packets
    /// beyond 64 KiB without a jumbo payload option) or points beyond the frame.
    pub end: u32,
    /// True if the header's length points beyond the bytes at hand.
    pub cut: bool,
}

/// Where the headers of a frame are, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dissection {
    /// What follows the outermost link header and its VLAN tags.
    pub ethertype: EtherType,
    /// VLAN tags of the outermost link header: how many, and the control information of the first two.
    pub tags: u8,
    /// Control information of the first two tags.
    pub tci: [u16; 2],
    /// Outermost network header.
    pub outer: Option<NetworkLayer>,
    /// Network header inside the innermost tunnel.
    pub inner: Option<NetworkLayer>,
    /// Tunnels gone through.
    pub depth: u8,
    /// Network identifier of the innermost tunnel.
    pub vni: Option<u32>,
    /// UDP header of the innermost tunnel.
    pub tunnel: u16,
    /// Link header inside the innermost tunnel.
    pub inner_mac: u16,
    /// What follows the link header inside the innermost tunnel.
    pub inner_ethertype: Option<EtherType>,
    /// First byte after the innermost header that was understood.
    pub payload: u32,
    /// Why the walk ended early, and at which byte; `None` if it reached a payload.
    pub stopped: Option<(u32, WireError)>,
}

impl Dissection {
    /// The innermost network header.
    pub fn innermost(&self) -> Option<NetworkLayer> {
        self.inner.or(self.outer)
    }

    /// Bytes of payload behind the innermost header, padding not counted.
    pub fn payload_len(&self) -> usize {
        let end = self.innermost().map_or(self.payload, |network| network.end);
        end.saturating_sub(self.payload) as usize
    }

    /// The offsets as packet metadata keeps them.
    pub fn offsets(&self) -> Option<HeaderOffsets> {
        let outer = self.outer?;
        Some(match self.inner {
            None => HeaderOffsets { network: outer.offset, transport: outer.upper, ..HeaderOffsets::default() },
            Some(inner) => HeaderOffsets {
                network: outer.offset,
                transport: outer.upper,
                inner_mac: self.inner_mac,
                inner_network: inner.offset,
                inner_transport: inner.upper,
            },
        })
    }
}

/// Dissects an Ethernet frame.
///
/// Any bytes give an answer: where a header is cut off or makes no sense, [`Dissection::stopped`] says so and everything
/// in front of it is there.
#[inline]
pub fn dissect(frame: &[u8], ports: &TunnelPorts) -> Dissection {
    match fast::tcp_or_udp(frame, ports) {
        Some(dissection) => dissection,
        None => dissect_from(frame, 0, None, ports),
    }
}

/// Dissects a packet that starts with an IPv4 or IPv6 header, told apart by its version field.
pub fn dissect_ip(packet: &[u8], ports: &TunnelPorts) -> Dissection {
    let ethertype = match packet.first() {
        Some(first) if first >> 4 == 6 => EtherType::IPV6,
        _ => EtherType::IPV4,
    };
    dissect_from(packet, 0, Some(ethertype), ports)
}

#[inline(never)]
fn dissect_from(frame: &[u8], start: usize, network: Option<EtherType>, ports: &TunnelPorts) -> Dissection {
    let mut d = Dissection {
        ethertype: EtherType(0),
        tags: 0,
        tci: [0; 2],
        outer: None,
        inner: None,
        depth: 0,
        vni: None,
        tunnel: 0,
        inner_mac: 0,
        inner_ethertype: None,
        payload: start as u32,
        stopped: None,
    };
    let mut at = start;
    let mut known = network;
    // The packet's end according to the headers so far: padding is not looked into.
    let mut end = frame.len();
    loop {
        let result = layer(frame, &mut at, &mut end, known.take(), ports, &mut d);
        d.payload = at as u32;
        match result {
            Ok(true) => {}
            Ok(false) => return d,
            Err(error) => {
                d.stopped = Some((at as u32, error));
                return d;
            }
        }
    }
}

/// One link header, network header and transport header; true if an inner frame follows.
#[inline(always)]
fn layer(
    frame: &[u8],
    at: &mut usize,
    end: &mut usize,
    known: Option<EtherType>,
    ports: &TunnelPorts,
    d: &mut Dissection,
) -> Result<bool, WireError> {
    let ethertype = match known {
        Some(ethertype) => ethertype,
        None => link(frame, at, *end, d)?,
    };
    if d.depth == 0 {
        d.ethertype = ethertype;
    } else {
        d.inner_ethertype = Some(ethertype);
    }
    if ethertype != EtherType::IPV4 && ethertype != EtherType::IPV6 {
        return Ok(false);
    }
    let network = if ethertype == EtherType::IPV4 { ipv4(frame, *at, *end)? } else { ipv6(frame, *at, *end)? };
    if d.depth == 0 {
        d.outer = Some(network);
    } else {
        d.inner = Some(network);
    }
    *at = usize::from(network.upper);
    *end = network.end as usize;
    if network.fragment_offset > 0 {
        return Ok(false);
    }
    let rest = frame.get(*at..*end).unwrap_or(&[]);
    match network.protocol {
        Protocol::TCP => {
            let (header, _, _) = TcpHeader::parse(rest)?;
            *at += header.header_len();
            Ok(false)
        }
        Protocol::UDP => {
            let (header, _) = UdpHeader::parse(rest)?;
            if network.fragment || d.depth == MAX_DEPTH || !ports.vxlan.contains(&header.destination()) {
                *at += UdpHeader::LEN;
                return Ok(false);
            }
            let udp = *at;
            *at += UdpHeader::LEN;
            let (vxlan, _) = VxlanHeader::parse(&rest[UdpHeader::LEN..])?;
            let inner_mac = offset16("VXLAN", *at + VxlanHeader::LEN)?;
            *at += VxlanHeader::LEN;
            d.tunnel = udp as u16;
            d.inner_mac = inner_mac;
            d.vni = Some(vxlan.vni());
            d.depth += 1;
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[inline(always)]
fn link(frame: &[u8], at: &mut usize, end: usize, d: &mut Dissection) -> Result<EtherType, WireError> {
    let (header, _) = EthernetHeader::parse(frame.get(*at..end).unwrap_or(&[]))?;
    let mut ethertype = header.ethertype();
    *at += EthernetHeader::LEN;
    offset16("Ethernet", *at + 4 * usize::from(MAX_TAGS))?;
    let mut tags = 0;
    while ethertype.is_vlan() && tags < MAX_TAGS {
        let (tag, _) = crate::wire::VlanHeader::parse(frame.get(*at..end).unwrap_or(&[]))?;
        if d.depth == 0
            && let Some(tci) = d.tci.get_mut(usize::from(tags))
        {
            *tci = tag.tci();
        }
        ethertype = tag.ethertype();
        *at += 4;
        tags += 1;
    }
    if d.depth == 0 {
        d.tags = tags;
    }
    Ok(ethertype)
}

/// Offsets are kept in 16 bits: headers behind the first 64 KiB are not looked at.
#[inline(always)]
fn offset16(header: &'static str, at: usize) -> Result<u16, WireError> {
    u16::try_from(at).map_err(|_| WireError::Field {
        header,
        field: "end of header",
        offset: 0,
        value: u32::try_from(at).unwrap_or(u32::MAX),
        allowed: "65535 at most",
    })
}

#[inline(always)]
fn ipv4(frame: &[u8], at: usize, end: usize) -> Result<NetworkLayer, WireError> {
    let (header, _, _) = Ipv4Header::parse(frame.get(at..end).unwrap_or(&[]))?;
    let len = usize::from(header.total_len());
    let claimed = if len == 0 { end } else { at + len };
    if len != 0 && len < header.header_len() {
        return Err(WireError::Field {
            header: "IPv4",
            field: "total length",
            offset: 2,
            value: len as u32,
            allowed: "the header length at least, or 0 beyond 64 KiB",
        });
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
