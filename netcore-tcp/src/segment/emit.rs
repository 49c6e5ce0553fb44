//! Header fields as a frame.

use crate::path::Path;
use core::net::IpAddr;
use netcore::checksum::Sum;
use netcore::wire::{EtherType, EthernetHeader, Ipv4Header, Ipv6Header, Protocol, SackBlock, TcpFlags, TcpHeader};
use netcore::{Gso, GsoKind, HeaderOffsets, Packet, PacketError, PartialChecksum, PoolCache};
use zerocopy::IntoBytes;

/// Bytes of TCP options at most.
const MAX_OPTIONS: usize = 40;

/// What a segment says.
pub(crate) struct Emit<'a> {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: TcpFlags,
    pub(crate) window: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sack: &'a [SackBlock],
    /// MSS, window scale and SACK permission of a SYN.
    pub(crate) syn: Option<SynOptions>,
    /// ECN field of the IP header.
    pub(crate) ecn: u8,
    /// Payload bytes of each segment of a super-packet.
    pub(crate) mss: u32,
}

/// Options of a SYN.
#[derive(Clone, Copy)]
pub(crate) struct SynOptions {
    pub(crate) mss: u16,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
}

/// Everything of a connection's frames that does not change.
#[derive(Clone, Debug)]
pub(crate) struct FrameTemplate {
    /// Ethernet and IP headers, lengths and checksums blank.
    bytes: [u8; 54],
    ip_len: usize,
    ports: (u16, u16),
    path: Path,
    pseudo: Sum,
    checksum_offload: bool,
    /// IPv4 identification of the next packet.
    ip_id: u16,
    tos: u8,
}

impl FrameTemplate {
    pub(crate) fn new(path: &Path, tos: u8, checksum_offload: bool, ip_id: u16) -> Self {
        let mut bytes = [0; 54];
        let kind = if path.local.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
        let ethernet = EthernetHeader::new(path.link.remote, path.link.local, kind);
        bytes[..14].copy_from_slice(ethernet.as_bytes());
        let (ip_len, pseudo) = match (path.local.ip(), path.remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let ip = Ipv4Header::new(local, remote, Protocol::TCP, 0, 0, path.ttl, true);
                bytes[14..34].copy_from_slice(ip.as_bytes());
                (20, Sum::pseudo_ipv4(local.octets(), remote.octets(), 6, 0))
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                let ip = Ipv6Header::new(local, remote, Protocol::TCP, 0, path.ttl);
                bytes[14..54].copy_from_slice(ip.as_bytes());
                (40, Sum::pseudo_ipv6(&local.octets(), &remote.octets(), 6, 0))
            }
            // `Path::validate` excluded mixed families.
            _ => (20, Sum::default()),
        };
        let ports = (path.local.port(), path.remote.port());
        Self { bytes, ip_len, ports, path: *path, pseudo, checksum_offload, ip_id, tos }
    }

    /// Builds a frame of `emit` in front of `payload`.
    pub(crate) fn build(
        &mut self,
        emit: &Emit<'_>,
        payload: Option<Packet>,
        cache: &mut PoolCache,
    ) -> Result<Packet, PacketError> {
        let mut options = [0_u8; MAX_OPTIONS];
        let options_len = write_options(emit, &mut options);
        let tcp_len = TcpHeader::LEN + options_len;
        let payload_len = payload.as_ref().map_or(0, Packet::len);
        let transport = 14 + self.ip_len;
        let header_len = transport + tcp_len;
        let mut packet = match cache.get() {
            Ok(packet) => packet,
            Err(error) => {
                if let Some(payload) = payload {
                    cache.put(payload);
                }
                return Err(error.into());
            }
        };
        let segments = (payload_len as u32).div_ceil(emit.mss.max(1)).max(1);
        let l4_len = (tcp_len + payload_len) as u32;
        {
            let header = match packet.put(header_len) {
                Ok(header) => header,
                Err(error) => {
                    cache.put(packet);
                    if let Some(payload) = payload {
                        cache.put(payload);
                    }
                    return Err(error);
                }
            };
            header[..transport].copy_from_slice(&self.bytes[..transport]);
            self.finish_ip(&mut header[14..transport], l4_len, emit.ecn, segments);
            let tcp = TcpHeader::new(self.ports.0, self.ports.1, emit.seq, emit.ack, emit.flags, emit.window, tcp_len);
            header[transport..transport + 20].copy_from_slice(tcp.as_bytes());
            header[transport + 20..].copy_from_slice(&options[..options_len]);
        }
        if let Some(payload) = payload
            && let Err(refused) = packet.append(payload)
        {
            let error = refused.error;
            cache.put(refused.packet);
            cache.put(packet);
            return Err(error);
        }
        let pseudo = self.pseudo.plus_u32(l4_len);
        let field = transport + TcpHeader::CHECKSUM;
        let sum = if self.checksum_offload {
            packet.set_transmit_checksum(Some(PartialChecksum { start: transport as u16, offset: 16 }));
            pseudo.fold()
        } else {
            pseudo.plus(packet.sum_from(transport)).finish()
        };
        packet.head_mut()?[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        packet.set_offsets(Some(HeaderOffsets {
            network: 14,
            transport: transport as u16,
            ..HeaderOffsets::default()
        }));
        packet.set_vlan(self.path.link.vlan);
        if segments > 1 {
            let mut kind = if self.ip_len == 20 { GsoKind::TCPV4 } else { GsoKind::TCPV6 };
            if emit.flags.contains(TcpFlags::CWR) {
                kind |= GsoKind::TCP_ECN;
            }
            packet.set_gso(Some(Gso { kind, size: emit.mss as u16, segments: segments as u16 }));
        }
        Ok(packet)
    }

    /// Fills in length, ECN, identification and the header checksum.
    fn finish_ip(&mut self, ip: &mut [u8], l4_len: u32, ecn: u8, segments: u32) {
        let tos = self.tos | ecn;
        if self.ip_len == 20 {
            let len = (20 + l4_len) as u16;
            ip[1] = tos;
            ip[2..4].copy_from_slice(&len.to_be_bytes());
            ip[4..6].copy_from_slice(&self.ip_id.to_be_bytes());
            self.ip_id = self.ip_id.wrapping_add(segments as u16);
            ip[10..12].fill(0);
            let sum = netcore::checksum::sum(ip).finish();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            ip[0] = 0x60 | tos >> 4;
            ip[1] = ip[1] & 0x0f | tos << 4;
            ip[4..6].copy_from_slice(&(l4_len as u16).to_be_bytes());
        }
    }

    /// Bytes of headers in front of the payload of a segment with `options` bytes of options.
    pub(crate) const fn header_len(&self, options: usize) -> usize {
        14 + self.ip_len + TcpHeader::LEN + options
    }
}

/// Writes the options of `emit` the way Linux lays them out (`tcp_options_write`) and says how long they are.
fn write_options(emit: &Emit<'_>, out: &mut [u8; MAX_OPTIONS]) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    if let Some(syn) = &emit.syn {
        put(&[2, 4, (syn.mss >> 8) as u8, syn.mss as u8]);
    }
    let sack_permitted = emit.syn.is_some_and(|syn| syn.sack_permitted);
    if let Some((value, echo)) = emit.timestamps {
        put(if sack_permitted { &[4, 2, 8, 10] } else { &[1, 1, 8, 10] });
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    } else if sack_permitted {
        put(&[1, 1, 4, 2]);
    }
    if let Some(shift) = emit.syn.and_then(|syn| syn.window_scale) {
        put(&[1, 3, 3, shift]);
    }
    if !emit.sack.is_empty() {
        put(&[1, 1, 5, 2 + 8 * emit.sack.len() as u8]);
        for block in emit.sack {
            put(&block.left.to_be_bytes());
            put(&block.right.to_be_bytes());
        }
    }
    at
}
