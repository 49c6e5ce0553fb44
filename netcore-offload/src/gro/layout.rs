//! Walking a packet's headers: is it a candidate for merging, and where are its headers?

use super::rules::GroConfig;
use super::verdict::Verdict;
use netcore::Packet;
use netcore::checksum::{Sum, ipv4_header_sum};
use netcore::offload::GroEnd;

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(super) const ETHERNET: usize = 14;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;

/// Headers longer than this are not walked.
pub(super) const MAX_HEADERS: usize = 512;

/// TCP flags in the 32-bit word that also holds the data offset and the window.
pub(super) mod tcp_flags {
    pub(crate) const FIN: u32 = 0x0001_0000;
    pub(crate) const SYN: u32 = 0x0002_0000;
    pub(crate) const RST: u32 = 0x0004_0000;
    pub(crate) const PSH: u32 = 0x0008_0000;
    pub(crate) const URG: u32 = 0x0020_0000;
    pub(crate) const CWR: u32 = 0x0080_0000;
    /// Flags that end an aggregate and keep a segment from starting one.
    pub(crate) const ENDING: u32 = FIN | SYN | RST | PSH | URG;
}

/// Where the headers of a candidate are. Two packets of one flow have the same layout unless their TCP options differ in
/// length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Layout {
    /// Outermost network header.
    pub(super) network: u16,
    /// UDP header of a tunnel; 0 outside one.
    pub(super) tunnel: u16,
    /// Ethernet header inside a tunnel; 0 outside one.
    pub(super) inner_mac: u16,
    /// Innermost network header; same as `network` outside a tunnel.
    pub(super) inner_network: u16,
    /// TCP header.
    pub(super) tcp: u16,
    /// First byte of payload.
    pub(super) payload: u16,
    pub(super) outer_v6: bool,
    pub(super) inner_v6: bool,
}

impl Layout {
    /// All of it in one number, for comparison.
    #[inline(always)]
    pub(super) const fn key(&self) -> u128 {
        (self.network as u128)
            | (self.tunnel as u128) << 16
            | (self.inner_mac as u128) << 32
            | (self.inner_network as u128) << 48
            | (self.tcp as u128) << 64
            | (self.payload as u128) << 80
            | (self.outer_v6 as u128) << 96
            | (self.inner_v6 as u128) << 97
    }

    #[inline(always)]
    pub(super) fn is_tunnel(&self) -> bool {
        self.tunnel != 0
    }
}

/// A packet that may be merged or held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) layout: Layout,
    /// Hash of what identifies the flow; equal for packets of one flow.
    pub(super) tag: u32,
    pub(super) seq: u32,
    /// The word with data offset, flags and window.
    pub(super) word: u32,
    pub(super) payload: u32,
    /// Wire segments it stands for.
    pub(super) count: u16,
    /// Payload of a wire segment; the packet's own if it is no super-packet.
    pub(super) segment: u32,
    /// Set if it must not be merged or held, but ends its flow's aggregate.
    pub(super) flush: Option<GroEnd>,
    /// Checksums in a row found right beyond the device's.
    pub(super) gained: u8,
}

#[inline(always)]
pub(super) fn be16(bytes: &[u8; 2]) -> u16 {
    u16::from_be_bytes(*bytes)
}

#[inline(always)]
fn at<const N: usize>(bytes: &[u8], offset: usize) -> Result<&[u8; N], GroEnd> {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).ok_or(GroEnd::Malformed)
}

/// Adds what identifies a flow, piece by piece.
#[inline(always)]
pub(super) const fn gather(state: u64, value: u64) -> u64 {
    state.rotate_left(23) ^ value
}

/// The tag of what was gathered: well spread in all bits.
#[inline(always)]
pub(super) const fn tag_of(gathered: u64) -> u32 {
    // The high half of the product depends on all bits.
    (gathered.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

struct Walk<'a> {
    packet: &'a Packet,
    bytes: &'a [u8],
    len: usize,
    verdict: Verdict,
    flush: Option<GroEnd>,
    tag: u64,
}

/// A network header: where the next header is, what it is, and the addresses for a pseudo-header.
#[derive(Clone, Copy)]
struct Network<'a> {
    transport: usize,
    protocol: u8,
    addresses: Addresses<'a>,
}

#[derive(Clone, Copy)]
enum Addresses<'a> {
    V4(&'a [u8; 20]),
    V6(&'a [u8; 40]),
}

impl Network<'_> {
    #[inline(always)]
    fn pseudo(&self, len: usize) -> Sum {
        match self.addresses {
            Addresses::V4(header) => {
                let mut source = [0; 4];
                let mut destination = [0; 4];
                source.copy_from_slice(&header[12..16]);
                destination.copy_from_slice(&header[16..20]);
                Sum::pseudo_ipv4(source, destination, self.protocol, len as u32)
            }
            Addresses::V6(header) => {
                let mut source = [0; 16];
                let mut destination = [0; 16];
                source.copy_from_slice(&header[8..24]);
                destination.copy_from_slice(&header[24..40]);
                Sum::pseudo_ipv6(&source, &destination, self.protocol, len as u32)
            }
        }
    }
}

/// Walks the headers of an Ethernet frame.
///
/// # Errors
/// Why the packet goes up alone at once, without touching what is held.
#[inline(always)]
pub(super) fn walk(packet: &Packet, config: &GroConfig) -> Result<Candidate, GroEnd> {
    let mut walk =
        Walk { packet, bytes: packet.head(), len: packet.len(), verdict: Verdict::new(packet), flush: None, tag: 0 };
    let mut layout = Layout::default();
    let (ethertype, network) = walk.link(0)?;
    if network != ETHERNET {
        // In-line tags are part of a complete sum, which starts behind the Ethernet header.
        walk.verdict.pull(&walk.bytes[ETHERNET..network]);
    }
    layout.network = network as u16;
    layout.inner_network = network as u16;
    layout.outer_v6 = ethertype == ETHERTYPE_IPV6;
    let mut header = walk.network(ethertype, network)?;
    if header.protocol == IPPROTO_UDP {
        let inner = walk.tunnel(&header, &mut layout, config)?;
        header = inner;
    } else {
        layout.inner_v6 = layout.outer_v6;
    }
    if header.protocol != IPPROTO_TCP {
        return Err(GroEnd::NotMergeable);
    }
    walk.tcp(&header, layout, config)
}

impl<'a> Walk<'a> {
    /// An Ethernet header and up to two in-line VLAN tags: EtherType and end of it all.
    #[inline(always)]
    fn link(&mut self, offset: usize) -> Result<(u16, usize), GroEnd> {
        let header: &[u8; ETHERNET] = at(self.bytes, offset)?;
        let mut ethertype = be16(&[header[12], header[13]]);
        let mut end = offset + ETHERNET;
        let mut tags = 0;
        while ethertype == 0x8100 || ethertype == 0x88a8 {
            if tags == 2 {
                return Err(GroEnd::NotMergeable);
            }
            let tag: &[u8; 4] = at(self.bytes, end)?;
            self.tag = gather(self.tag, u64::from(be16(&[tag[0], tag[1]])) + 1);
            ethertype = be16(&[tag[2], tag[3]]);
            end += 4;
            tags += 1;
        }
        Ok((ethertype, end))
    }

    #[inline(always)]
    fn network(&mut self, ethertype: u16, offset: usize) -> Result<Network<'a>, GroEnd> {
        match ethertype {
            ETHERTYPE_IPV4 => self.ipv4(offset),
            ETHERTYPE_IPV6 => self.ipv6(offset),
            _ => Err(GroEnd::NotMergeable),
        }
    }

    /// Linux: `inet_gro_receive`.
    #[inline(always)]
    fn ipv4(&mut self, offset: usize) -> Result<Network<'a>, GroEnd> {
        let header: &[u8; 20] = at(self.bytes, offset)?;
        if header[0] != 0x45 {
            return Err(GroEnd::NotMergeable);
        }
        let fragment = be16(&[header[6], header[7]]);
        if fragment & 0x3fff != 0 {
            return Err(GroEnd::Malformed);
        }
        if !ipv4_header_sum(header).is_valid() {
            return Err(GroEnd::BadChecksum);
        }
        // Padding behind the packet, a cut packet, or the reserved flag: never merged, but the flow's order is kept.
        if usize::from(be16(&[header[2], header[3]])) != self.len - offset || fragment & 0x8000 != 0 {
            self.flush = self.flush.or(Some(GroEnd::Malformed));
        }
        let mut addresses = [0; 8];
        addresses.copy_from_slice(&header[12..20]);
        self.tag = gather(self.tag, u64::from_ne_bytes(addresses));
        Ok(Network { transport: offset + 20, protocol: header[9], addresses: Addresses::V4(header) })
    }

    /// Linux: `ipv6_gro_receive`, `ipv6_gro_pull_exthdrs`.
    #[inline(always)]
    fn ipv6(&mut self, offset: usize) -> Result<Network<'a>, GroEnd> {
        let header: &[u8; 40] = at(self.bytes, offset)?;
        if header[0] >> 4 != 6 {
            return Err(GroEnd::Malformed);
        }
        let mut end = offset + 40;
        if usize::from(be16(&[header[4], header[5]])) != self.len - end {
            self.flush = self.flush.or(Some(GroEnd::Malformed));
        }
        let mut protocol = header[6];
        // Hop-by-hop options, routing, destination options.
        while matches!(protocol, 0 | 43 | 60) {
            let extension: &[u8; 8] = at(self.bytes, end)?;
            protocol = extension[0];
            end += (usize::from(extension[1]) + 1) * 8;
            if end > self.bytes.len() || end > MAX_HEADERS {
                return Err(GroEnd::Malformed);
            }
        }
        self.verdict.pull(&self.bytes[offset..end]);
        for word in header[8..40].as_chunks::<8>().0 {
            self.tag = gather(self.tag, u64::from_ne_bytes(*word));
        }
        Ok(Network { transport: end, protocol, addresses: Addresses::V6(header) })
    }

    /// Linux: `udp4_gro_receive`, `udp_gro_receive`, `vxlan_gro_receive`.
    #[inline(always)]
    fn tunnel(&mut self, outer: &Network<'a>, layout: &mut Layout, config: &GroConfig) -> Result<Network<'a>, GroEnd> {
        let offset = outer.transport;
        let udp: &[u8; 8] = at(self.bytes, offset)?;
        let port = be16(&[udp[2], udp[3]]);
        if !config.vxlan_ports.contains(&port) {
            return Err(GroEnd::NotMergeable);
        }
        let field = be16(&[udp[6], udp[7]]);
        if self.flush.is_none() {
            let len = self.len - offset;
            self.verdict.validate(self.packet, offset, || outer.pseudo(len), true, field)?;
            if field != 0 {
                self.verdict.convert(|| outer.pseudo(len));
            }
        }
        if (field != 0 || !config.rules.zero_checksum_tunnels) && self.verdict.knows_nothing() {
            return Err(GroEnd::TunnelGate);
        }
        let vxlan: &[u8; 8] = at(self.bytes, offset + 8)?;
        // RFC 7348 section 5: the I flag must be set. With the P flag it is VXLAN-GPE, whose payload may be anything.
        if vxlan[0] & 0x08 == 0 || vxlan[0] & 0x04 != 0 {
            return Err(GroEnd::NotMergeable);
        }
        let inner_mac = offset + 16;
        self.tag = gather(self.tag, u64::from_ne_bytes(*vxlan));
        let (ethertype, inner_network) = self.link(inner_mac)?;
        self.verdict.pull(&self.bytes[offset..inner_network]);
        layout.tunnel = offset as u16;
        layout.inner_mac = inner_mac as u16;
        layout.inner_network = inner_network as u16;
        layout.inner_v6 = ethertype == ETHERTYPE_IPV6;
        self.network(ethertype, inner_network)
    }

    /// Linux: `tcp4_gro_receive`, `tcp_gro_pull_header`.
    #[inline(always)]
    fn tcp(mut self, network: &Network<'a>, mut layout: Layout, config: &GroConfig) -> Result<Candidate, GroEnd> {
        let offset = network.transport;
        let header: &[u8; 20] = at(self.bytes, offset)?;
        let header_len = usize::from(header[12] >> 4) * 4;
        let payload = offset + header_len;
        if self.flush.is_none() {
            let len = self.len - offset;
            let field = be16(&[header[16], header[17]]);
            self.verdict.validate(self.packet, offset, || network.pseudo(len), false, field)?;
        }
        if header_len < 20 || payload > self.bytes.len() || payload > MAX_HEADERS {
            return Err(GroEnd::Malformed);
        }
        let mut ports = [0; 4];
        ports.copy_from_slice(&header[..4]);
        let tag = gather(self.tag, u64::from(u32::from_ne_bytes(ports)));
        layout.tcp = offset as u16;
        layout.payload = payload as u16;
        let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let word = u32::from_be_bytes([header[12], header[13], header[14], header[15]]);
        let payload = (self.len - payload) as u32;
        let (count, segment) = match self.packet.gso() {
            None => (1, payload),
            Some(gso) => {
                let kinds = netcore::GsoKind::TCPV4 | netcore::GsoKind::TCPV6;
                let trusted = gso.kind.intersects(kinds) && !gso.kind.contains(netcore::GsoKind::DODGY);
                if !trusted || !config.rules.merge_super {
                    self.flush = self.flush.or(Some(GroEnd::NotMergeable));
                }
                (gso.segments.max(1), u32::from(gso.size))
            }
        };
        Ok(Candidate {
            layout,
            tag: tag_of(tag),
            seq,
            word,
            payload,
            count,
            segment,
            flush: self.flush,
            gained: self.verdict.gained(),
        })
    }
}
