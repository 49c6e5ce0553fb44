//! What a packet asks of the hardware: where its headers are, and headers rewritten as segmentation wants them.

use crate::ring::HEADER_ROOM;
use netcore::checksum::Sum;
use netcore::{Gso, GsoKind, Packet, PartialChecksum, Refusal, TunnelPorts, dissect};

/// Protocol above IP whose checksum or segmentation is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP (CRC-32c).
    Sctp,
}

impl Transport {
    /// Offset of the checksum field in the header.
    pub const fn checksum_offset(self) -> u16 {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
            Self::Sctp => 8,
        }
    }
}

/// Where the headers are that an offload works on: the innermost ones of a tunnel, the only ones otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layers {
    /// Offset of the outermost network header: bytes of link header and in-line tags.
    pub outer_network: u16,
    /// Version of the outermost network header, 4 or 6.
    pub outer_version: u8,
    /// Offset of the network header that the transport header belongs to.
    pub network: u16,
    /// Its version, 4 or 6.
    pub version: u8,
    /// Offset of the transport header.
    pub transport: u16,
    /// Transport protocol; `None` for one that no part computes.
    pub protocol: Option<Transport>,
    /// Bytes of transport header.
    pub transport_len: u16,
    /// Inside a tunnel: `network` is not `outer_network`.
    pub tunnel: bool,
}

impl Layers {
    /// All header bytes.
    pub const fn header_len(&self) -> usize {
        self.transport as usize + self.transport_len as usize
    }
}

/// Most header bytes that are looked at.
const LOOK: usize = HEADER_ROOM;

/// What the first bytes of a packet are copied into to be looked at; packets with a long head need no copy.
fn with_front<R>(packet: &Packet, f: impl FnOnce(&[u8]) -> R) -> R {
    let wanted = packet.len().min(LOOK);
    if packet.head_len() >= wanted && !packet.head().is_empty() {
        return f(packet.head());
    }
    let mut front = [0; LOOK];
    // In range: `wanted` is at most the packet's length.
    let _ = packet.copy_to(0, &mut front[..wanted]);
    f(&front[..wanted])
}

/// Finds the headers that a checksum request or segmentation works on.
///
/// # Errors
/// [`Refusal::Checksum`] if the headers are not understood, or the request does not point at a header that is.
pub fn layers(packet: &Packet, request: Option<PartialChecksum>) -> Result<Layers, Refusal> {
    with_front(packet, |front| {
        let d = match request {
            // Only a request that reaches beyond the outer transport header looks through tunnels, and any UDP port may be
            // one: the request says where the inner header is, so no port has to be known.
            Some(request) => find(front, request.start),
            None => find(front, u16::MAX),
        };
        d.ok_or(Refusal::Checksum)
    })
}

fn find(front: &[u8], start: u16) -> Option<Layers> {
    let plain = dissect(front, &TunnelPorts::none());
    let outer = plain.outer?;
    let mut layers = Layers {
        outer_network: outer.offset,
        outer_version: outer.version,
        network: outer.offset,
        version: outer.version,
        transport: outer.upper,
        protocol: protocol(outer.protocol.0),
        transport_len: 0,
        tunnel: false,
    };
    if start != u16::MAX && start != outer.upper {
        // The port of a tunnel is in its header.
        if outer.protocol.0 != 17 || start < outer.upper {
            return None;
        }
        let at = usize::from(outer.upper);
        let port = u16::from_be_bytes([*front.get(at + 2)?, *front.get(at + 3)?]);
        let ports = [TunnelPorts::none().with_vxlan(port), TunnelPorts::none().with_geneve(port)];
        let inner = ports.iter().find_map(|ports| dissect(front, ports).inner.filter(|inner| inner.upper == start))?;
        layers.network = inner.offset;
        layers.version = inner.version;
        layers.transport = inner.upper;
        layers.protocol = protocol(inner.protocol.0);
        layers.tunnel = true;
    }
    layers.transport_len = match layers.protocol {
        Some(Transport::Tcp) => u16::from(*front.get(usize::from(layers.transport) + 12)? >> 4) * 4,
        Some(Transport::Udp) => 8,
        Some(Transport::Sctp) => 12,
        None => 0,
    };
    Some(layers)
}

fn protocol(number: u8) -> Option<Transport> {
    match number {
        6 => Some(Transport::Tcp),
        17 => Some(Transport::Udp),
        132 => Some(Transport::Sctp),
        _ => None,
    }
}

/// Copies the headers of a super-packet and rewrites them as every family wants them for segmentation: the length of the IP
/// header that hardware updates zero, its IPv4 checksum zero, the transport checksum the pseudo-header sum without length.
/// Says how many bytes.
///
/// For a tunnel these are the inner headers; what the outer ones need is the family's business.
///
/// # Errors
/// [`Refusal::Segmentation`] if the headers are longer than [`HEADER_ROOM`], cut off, or not TCP or UDP.
pub fn segmentation_headers(
    packet: &Packet,
    layers: &Layers,
    header: &mut [u8; HEADER_ROOM],
) -> Result<usize, Refusal> {
    let len = layers.header_len();
    let protocol = match layers.protocol {
        Some(Transport::Tcp) if layers.transport_len >= 20 => 6,
        Some(Transport::Udp) => 17,
        _ => return Err(Refusal::Segmentation),
    };
    if len > HEADER_ROOM || len >= packet.len() || packet.copy_to(0, &mut header[..len]).is_err() {
        return Err(Refusal::Segmentation);
    }
    let network = usize::from(layers.network);
    let seed = if layers.version == 4 {
        header[network + 2..network + 4].fill(0);
        header[network + 10..network + 12].fill(0);
        pseudo(&header[network + 12..network + 20], protocol)
    } else {
        header[network + 4..network + 6].fill(0);
        pseudo(&header[network + 8..network + 40], protocol)
    };
    let field = usize::from(layers.transport)
        + usize::from(if protocol == 6 { Transport::Tcp } else { Transport::Udp }.checksum_offset());
    header[field..field + 2].copy_from_slice(&seed.to_be_bytes());
    Ok(len)
}

/// Folded pseudo-header sum without length, not complemented.
fn pseudo(addresses: &[u8], protocol: u8) -> u16 {
    let mut sum = Sum::ZERO.plus_word(u16::from(protocol));
    for pair in addresses.chunks_exact(2) {
        sum = sum.plus_word(u16::from_be_bytes([pair[0], pair[1]]));
    }
    sum.fold()
}

/// True if `gso` is a kind within `allowed`, ignoring that the headers were not verified.
pub fn kind_allowed(gso: Gso, allowed: GsoKind) -> bool {
    allowed.contains(gso.kind - GsoKind::DODGY)
}
