//! Protocols that a user registers: where they start, and the chain of their headers in a packet.

use crate::gro::{Outer, walk_outer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use netcore::Packet;
use netcore::offload::{GroEnd, GroHandler, GroNext, GroView};

/// Headers of one packet that registered handlers are asked about, at most.
const MAX_CHAIN: usize = 8;

/// What a registered protocol is found by. Protocols that are built in cannot be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ProtocolId {
    /// The EtherType in front of it.
    EtherType(u16),
    /// The protocol number of the IP header in front of it.
    IpProtocol(u8),
    /// The destination port of the UDP header in front of it.
    UdpPort(u16),
}

/// Why a protocol could not be registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is a handler for it already.
    #[error("{0:?} has a handler already")]
    Taken(ProtocolId),
    /// The protocol is built in.
    #[error(
        "{0:?} is built in: IPv4, IPv6, VLAN tags, TCP, UDP, GRE, IP in IP and the ports of VXLAN and GENEVE cannot be replaced"
    )]
    BuiltIn(ProtocolId),
}

/// Registered protocols. Clones share the handlers, so that receive offload and segmentation agree.
#[derive(Clone, Default)]
pub struct Protocols {
    handlers: Vec<(ProtocolId, Arc<dyn GroHandler>)>,
}

impl fmt::Debug for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.handlers.iter().map(|(id, _)| id)).finish()
    }
}

impl Protocols {
    /// None registered.
    pub const fn new() -> Self {
        Self { handlers: Vec::new() }
    }

    /// Adds a protocol.
    ///
    /// # Errors
    /// [`RegisterError`] if it is taken or built in.
    pub fn register(&mut self, id: ProtocolId, handler: Arc<dyn GroHandler>) -> Result<(), RegisterError> {
        if matches!(
            id,
            ProtocolId::EtherType(0x0800 | 0x86dd | 0x8100 | 0x88a8)
                | ProtocolId::IpProtocol(4 | 6 | 17 | 41 | 47)
                | ProtocolId::UdpPort(4789 | 6081)
        ) {
            return Err(RegisterError::BuiltIn(id));
        }
        if self.find(id).is_some() {
            return Err(RegisterError::Taken(id));
        }
        self.handlers.push((id, handler));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    fn find(&self, id: ProtocolId) -> Option<usize> {
        self.handlers.iter().position(|(other, _)| *other == id)
    }

    pub(crate) fn handler(&self, index: usize) -> &dyn GroHandler {
        &*self.handlers[index].1
    }

    /// The headers of a packet, as the registered handlers understand them; whether it must not be merged; checksums found
    /// right.
    ///
    /// # Errors
    /// Why it is no candidate.
    pub(crate) fn walk(&self, packet: &Packet) -> Result<(Chain, Option<GroEnd>, u8), GroEnd> {
        let (outer, flush, gained) = walk_outer(packet, |port| self.find(ProtocolId::UdpPort(port)).is_some())?;
        let (mut handler, mut offset) = match (outer.udp, outer.transport) {
            (Some((udp, port)), _) => (self.find(ProtocolId::UdpPort(port)), udp + 8),
            (None, Some((protocol, transport))) => (self.find(ProtocolId::IpProtocol(protocol)), transport),
            (None, None) => (self.find(ProtocolId::EtherType(outer.ethertype)), outer.network),
        };
        let mut chain = Chain { outer, links: [Link::default(); MAX_CHAIN], count: 0, payload: 0 };
        loop {
            let index = handler.ok_or(GroEnd::NotMergeable)?;
            if chain.count == MAX_CHAIN {
                return Err(GroEnd::NotMergeable);
            }
            let bytes = packet.head().get(offset..).ok_or(GroEnd::Malformed)?;
            let view = GroView {
                bytes,
                len: packet.len() - offset,
                checksum: packet.receive_checksum(),
                encapsulated: outer.udp.is_some(),
            };
            let header = self.handler(index).parse(&view)?;
            if header.len > bytes.len() {
                return Err(GroEnd::Malformed);
            }
            chain.links[chain.count] = Link { handler: index, offset, len: header.len };
            chain.count += 1;
            offset += header.len;
            let ethertype = |at: usize| packet.head().get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
            handler = match header.next {
                GroNext::Payload => break,
                GroNext::EtherType(ethertype) => self.find(ProtocolId::EtherType(ethertype)),
                GroNext::IpProtocol(protocol) => self.find(ProtocolId::IpProtocol(protocol)),
                GroNext::Ethernet => {
                    let ethertype = ethertype(offset + 12).ok_or(GroEnd::Malformed)?;
                    offset += 14;
                    self.find(ProtocolId::EtherType(ethertype))
                }
                _ => None,
            };
        }
        chain.payload = offset;
        Ok((chain, flush, gained))
    }
}

/// One registered header in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Link {
    pub(crate) handler: usize,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// All headers of a packet that ends in a registered protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    pub(crate) outer: Outer,
    links: [Link; MAX_CHAIN],
    count: usize,
    pub(crate) payload: usize,
}

impl Chain {
    /// The registered headers, outermost first.
    pub(crate) fn links(&self) -> &[Link] {
        &self.links[..self.count]
    }
}
