//! All header offsets of a frame in one pass, through tunnels.
//!
//! [`dissect`] says where the outermost and the innermost headers are; [`layers`] gives every header on the way.

mod fast;
mod layers;
mod ports;
mod verify;

#[cfg(test)]
mod tests;

pub use layers::{Layer, Layers, LinkLayer, MAX_TUNNELS, NetworkLayer, TransportLayer, TunnelLayer};
pub use ports::{TunnelKind, TunnelPorts};
pub use verify::{ChecksumVerdict, Checksums};

use crate::packet::HeaderOffsets;
use crate::wire::{EtherType, WireError};

/// Where the headers of a frame are, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dissection {
    /// Outermost network header.
    pub outer: Option<NetworkLayer>,
    /// Network header inside the innermost tunnel.
    pub inner: Option<NetworkLayer>,
    /// First byte after the innermost header that was understood.
    pub payload: u32,
    /// Network identifier of the innermost tunnel: VNI of VXLAN and GENEVE, key of GRE.
    pub vni: Option<u32>,
    /// What follows the outermost link header and its VLAN tags.
    pub ethertype: EtherType,
    /// Control information of the first two VLAN tags of the outermost link header.
    pub tci: [u16; 2],
    /// VLAN tags of the outermost link header.
    pub tags: u8,
    /// Tunnels gone through.
    pub depth: u8,
    /// Kind of the innermost tunnel.
    pub kind: Option<TunnelKind>,
    /// VLAN tags of the link header inside the innermost tunnel.
    pub inner_tags: u8,
    /// Control information of the first two of them.
    pub inner_tci: [u16; 2],
    /// Header of the innermost tunnel: of UDP for VXLAN and GENEVE, of the inner packet for IP-in-IP. 0 if there is no tunnel.
    pub tunnel: u16,
    /// Link header inside the innermost tunnel; 0 if there is none.
    pub inner_mac: u16,
    /// What follows the link header inside the innermost tunnel, or what the tunnel carries without one.
    pub inner_ethertype: Option<EtherType>,
    /// Why the walk ended early, and at which byte; `None` if it reached a payload.
    pub stopped: Option<(u32, WireError)>,
}

impl Dissection {
    /// Nothing is known. A function, because a constant would be copied, bytes that mean nothing included.
    #[inline(always)]
    const fn empty() -> Self {
        Self {
            outer: None,
            inner: None,
            payload: 0,
            vni: None,
            ethertype: EtherType(0),
            tci: [0; 2],
            tags: 0,
            depth: 0,
            kind: None,
            inner_tags: 0,
            inner_tci: [0; 2],
            tunnel: 0,
            inner_mac: 0,
            inner_ethertype: None,
            stopped: None,
        }
    }

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

impl layers::Visitor for Dissection {
    #[inline(always)]
    fn link(&mut self, link: LinkLayer) {
        if self.depth == 0 {
            (self.ethertype, self.tags, self.tci) = (link.ethertype, link.tags, link.tci);
        } else {
            (self.inner_tags, self.inner_tci, self.inner_mac) = (link.tags, link.tci, link.offset);
            self.inner_ethertype = Some(link.ethertype);
        }
    }

    #[inline(always)]
    fn network(&mut self, network: NetworkLayer) {
        if self.depth == 0 {
            self.outer = Some(network);
        } else {
            self.inner = Some(network);
        }
    }

    /// What is known of the tunnel around this one is void.
    #[inline(always)]
    fn tunnel(&mut self, tunnel: TunnelLayer, ethertype: Option<EtherType>) {
        self.depth += 1;
        (self.kind, self.tunnel, self.vni) = (Some(tunnel.kind), tunnel.offset, tunnel.vni);
        (self.inner_tags, self.inner_tci, self.inner_mac) = (0, [0; 2], 0);
        (self.inner, self.inner_ethertype) = (None, ethertype);
    }

    #[inline(always)]
    fn transport(&mut self, _: TransportLayer) {}
}

/// Dissects an Ethernet frame.
///
/// Any bytes give an answer: where a header is cut off or makes no sense, [`Dissection::stopped`] says so and everything
/// in front of it is there.
#[inline]
pub fn dissect(frame: &[u8], ports: &TunnelPorts) -> Dissection {
    fast::dissect(frame, ports)
}

/// Dissects a packet that starts with an IPv4 or IPv6 header, told apart by its version field.
pub fn dissect_ip(packet: &[u8], ports: &TunnelPorts) -> Dissection {
    let layers = Layers::of_ip(packet, ports);
    let ethertype = layers.ethertype().unwrap_or(EtherType(0));
    Dissection { ethertype, ..walk(layers) }
}

/// Every header of an Ethernet frame, outermost first.
///
/// ```
/// use netcore::dissect::{Layer, TunnelPorts, layers};
///
/// let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 8, 6];
/// let ports = TunnelPorts::default();
/// let mut walk = layers(&frame, &ports);
/// let Some(Ok(Layer::Link(link))) = walk.next() else { panic!("an Ethernet header") };
/// assert_eq!((link.tags, link.tci[0], link.ethertype.0), (1, 7, 0x0806));
/// assert_eq!((walk.next(), walk.offset()), (None, 18));
/// ```
pub const fn layers<'a>(frame: &'a [u8], ports: &'a TunnelPorts) -> Layers<'a> {
    Layers::new(frame, ports)
}

#[inline(never)]
fn walk(mut layers: Layers<'_>) -> Dissection {
    let mut d = Dissection::empty();
    loop {
        match layers.step(&mut d) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                d.stopped = Some((layers.offset() as u32, error));
                break;
            }
        }
    }
    d.payload = layers.offset() as u32;
    d
}
