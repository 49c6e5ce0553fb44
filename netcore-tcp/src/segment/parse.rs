//! A frame's headers as numbers.

use crate::error::Discard;
use core::net::{IpAddr, SocketAddr};
use netcore::checksum::Sum;
use netcore::wire::{
    EtherType, EthernetHeader, Ipv4Header, Ipv6Header, Protocol, SackBlock, TcpFlags, TcpHeader, TcpOption,
};
use netcore::{Packet, ReceiveChecksum};

/// SACK blocks that fit a header.
pub(crate) const MAX_SACK_BLOCKS: usize = 4;

/// Longest run of headers looked at: Ethernet with two tags, IPv6 with room for extension headers, TCP.
const HEADERS: usize = 256;

/// The connection a frame belongs to, from the receiver's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FourTuple {
    /// Destination of the frame: our address.
    pub local: SocketAddr,
    /// Source of the frame: the peer.
    pub remote: SocketAddr,
}

impl FourTuple {
    /// The connection of a frame.
    ///
    /// # Errors
    /// [`Discard`] if it is not a TCP segment.
    pub fn of(packet: &Packet) -> Result<Self, Discard> {
        Ok(Incoming::parse(packet)?.tuple)
    }
}

/// A frame whose headers were read, ready for [`crate::Endpoint::handle_parsed`].
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Its connection.
    pub tuple: FourTuple,
    pub(crate) seg: Parsed,
}

/// Header fields of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: TcpFlags,
    pub(crate) window: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sack: [SackBlock; MAX_SACK_BLOCKS],
    pub(crate) sacks: u8,
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    /// ECN field of the IP header.
    pub(crate) ecn: u8,
    /// Where the payload starts in the frame.
    pub(crate) payload: usize,
    /// Bytes of payload.
    pub(crate) len: usize,
    /// Segments the frame was merged from.
    pub(crate) segments: u32,
    /// Payload bytes of each, 0 if not merged.
    pub(crate) gso_size: u16,
}

impl Parsed {
    pub(crate) fn sack_blocks(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sacks)]
    }
}

impl Incoming {
    /// Reads the headers of an Ethernet frame and checks the TCP checksum unless the packet says that it was verified.
    ///
    /// # Errors
    /// [`Discard`]: not TCP, malformed, or a bad checksum.
    pub fn parse(packet: &Packet) -> Result<Self, Discard> {
        let total = packet.len();
        if packet.head_len() >= total.min(HEADERS) || headers_end(packet.head()) {
            return Self::parse_headers(packet, packet.head(), total);
        }
        let mut copy = [0_u8; HEADERS];
        let n = total.min(HEADERS);
        // In range: `n` is at most the length.
        let _ = packet.copy_to(0, &mut copy[..n]);
        Self::parse_headers(packet, &copy[..n], total)
    }

    fn parse_headers(packet: &Packet, bytes: &[u8], total: usize) -> Result<Self, Discard> {
        let (ethernet, _) = EthernetHeader::parse(bytes)?;
        let (mut at, mut kind) = (14, ethernet.ethertype());
        let mut tags = 0;
        while kind.is_vlan() && tags < 2 {
            let tag = bytes.get(at..at + 4).ok_or(Discard::NotTcp)?;
            kind = EtherType(u16::from_be_bytes([tag[2], tag[3]]));
            at += 4;
            tags += 1;
        }
        let (source, destination, pseudo, ecn, transport, end): (IpAddr, IpAddr, Sum, u8, usize, usize) = match kind {
            EtherType::IPV4 => {
                let (ip, _, _) = Ipv4Header::parse(&bytes[at..])?;
                let end = at + usize::from(ip.total_len());
                let transport = at + ip.header_len();
                if ip.protocol() != Protocol::TCP || ip.is_fragment() || end > total || transport > end {
                    return Err(Discard::NotTcp);
                }
                let pseudo = ip.pseudo((end - transport) as u32);
                (ip.source().into(), ip.destination().into(), pseudo, ip.tos() & 3, transport, end)
            }
            EtherType::IPV6 => {
                let (ip, rest) = Ipv6Header::parse(&bytes[at..])?;
                let upper = ip.upper(rest)?;
                let end = at + Ipv6Header::LEN + usize::from(ip.payload_len());
                let transport = at + Ipv6Header::LEN + upper.offset;
                if upper.protocol != Protocol::TCP || upper.fragment || end > total || transport > end {
                    return Err(Discard::NotTcp);
                }
                let pseudo = upper.pseudo((end - transport) as u32);
                (ip.source().into(), ip.destination().into(), pseudo, ip.traffic_class() & 3, transport, end)
            }
            _ => return Err(Discard::NotTcp),
        };
        let bytes = &bytes[..bytes.len().min(end)];
        let (tcp, options, _) = TcpHeader::parse(bytes.get(transport..).ok_or(Discard::NotTcp)?)?;
        verify(packet, transport, end, pseudo)?;
        let payload = transport + tcp.header_len();
        let gso = packet.gso();
        let none = SackBlock { left: 0, right: 0 };
        let mut seg = Parsed {
            seq: tcp.seq(),
            ack: tcp.ack(),
            flags: tcp.flags(),
            window: tcp.window(),
            timestamps: None,
            sack: [none; MAX_SACK_BLOCKS],
            sacks: 0,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            ecn,
            payload,
            len: end - payload,
            segments: gso.map_or(1, |gso| u32::from(gso.segments)),
            gso_size: gso.map_or(0, |gso| gso.size),
        };
        let tuple = FourTuple {
            local: SocketAddr::new(destination, tcp.destination()),
            remote: SocketAddr::new(source, tcp.source()),
        };
        let raw = options.as_bytes();
        // The usual options: two no-operations and timestamps.
        if let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = raw {
            seg.timestamps = Some((u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h])));
            return Ok(Self { tuple, seg });
        }
        for option in options {
            // A malformed option ends the list, as in Linux; what came before counts.
            let Ok(option) = option else { break };
            match option {
                TcpOption::Mss(mss) => seg.mss = Some(mss),
                TcpOption::WindowScale(shift) => seg.window_scale = Some(shift.min(14)),
                TcpOption::SackPermitted => seg.sack_permitted = true,
                TcpOption::Timestamps { value, echo } => seg.timestamps = Some((value, echo)),
                TcpOption::Sack(_) => {
                    for block in option.sack_blocks().take(MAX_SACK_BLOCKS) {
                        seg.sack[usize::from(seg.sacks)] = block;
                        seg.sacks += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(Self { tuple, seg })
    }

    /// Payload bytes.
    pub fn payload_len(&self) -> usize {
        self.seg.len
    }

    /// Whether it is a SYN without ACK: a connection request.
    pub fn is_connection_request(&self) -> bool {
        self.seg.flags & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN) == TcpFlags::SYN
    }
}

/// Whether the head segment is known to hold all headers: untagged, no extension headers, whole TCP header.
fn headers_end(head: &[u8]) -> bool {
    let transport = match head.get(12..14) {
        Some([0x08, 0x00]) => 14 + usize::from(head.get(14).copied().unwrap_or(0) & 15) * 4,
        Some([0x86, 0xdd]) if head.get(20) == Some(&6) => 54,
        _ => return false,
    };
    head.get(transport + 12).is_some_and(|offset| head.len() >= transport + usize::from(offset >> 4) * 4)
}

/// Checks the checksum of a packet that the device did not vouch for.
fn verify(packet: &Packet, transport: usize, end: usize, pseudo: Sum) -> Result<(), Discard> {
    match packet.receive_checksum() {
        ReceiveChecksum::Unnecessary { .. } => Ok(()),
        // A packet that this host made itself and that never met a wire: its checksum is still a request.
        _ if packet.transmit_checksum().is_some() => Ok(()),
        _ => {
            let sum = if end == packet.len() {
                packet.sum_from(transport)
            } else {
                packet.sum_from(transport).minus(packet.sum_from(end).at_parity(end - transport))
            };
            if pseudo.plus(sum).is_valid() { Ok(()) } else { Err(Discard::Checksum) }
        }
    }
}

/// Sums of ranges that start at an odd distance have their bytes swapped.
trait AtParity {
    fn at_parity(self, offset: usize) -> Sum;
}

impl AtParity for Sum {
    fn at_parity(self, offset: usize) -> Sum {
        Self::default().plus_at(self, offset)
    }
}
