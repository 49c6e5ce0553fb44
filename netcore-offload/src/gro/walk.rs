//! Walking a packet's headers: is it a candidate for merging, and where are its headers?

use super::rules::GroConfig;
use super::verdict::Verdict;
use crate::layout::{
    Carrier, ETHERTYPE_ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPPROTO_GRE, IPPROTO_IPIP, IPPROTO_IPV6, IPPROTO_TCP,
    IPPROTO_UDP, Layout, Level, MAX_HEADERS, is_length,
};
use netcore::Packet;
use netcore::checksum::{Sum, ipv4_header_sum};
use netcore::offload::GroEnd;
use netcore::wire::GeneveHeader;

pub(super) const ETHERNET: usize = 14;

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
pub(crate) fn be16(bytes: &[u8; 2]) -> u16 {
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

/// The outer headers of a packet whose payload a registered protocol knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outer {
    /// EtherType behind the link header and its tags.
    pub(crate) ethertype: u16,
    /// Start of the network header, or of what the EtherType names.
    pub(crate) network: usize,
    pub(crate) v6: bool,
    /// Behind an IP header: its protocol and what it carries.
    pub(crate) transport: Option<(u8, usize)>,
    /// UDP header and destination port, if the protocol is UDP.
    pub(crate) udp: Option<(usize, u16)>,
}

/// Walks link, IP and UDP headers only, verifying their checksums; also says whether the packet must not be merged and how
/// many checksums were found right.
///
/// # Errors
/// Why the packet is no candidate.
pub(crate) fn walk_outer(
    packet: &Packet,
    verify_udp: impl Fn(u16) -> bool,
) -> Result<(Outer, Option<GroEnd>, u8), GroEnd> {
    let mut walk =
        Walk { packet, bytes: packet.head(), len: packet.len(), verdict: Verdict::new(packet), flush: None, tag: 0 };
    let (ethertype, network) = walk.link(0)?;
    if network != ETHERNET {
        walk.verdict.pull(&walk.bytes[ETHERNET..network]);
    }
    let mut outer = Outer { ethertype, network, v6: ethertype == ETHERTYPE_IPV6, transport: None, udp: None };
    if ethertype == ETHERTYPE_IPV4 || ethertype == ETHERTYPE_IPV6 {
        let header = walk.network(ethertype, network)?;
        outer.transport = Some((header.protocol, header.transport));
        if header.protocol == IPPROTO_UDP {
            let udp: &[u8; 8] = at(walk.bytes, header.transport)?;
            let port = be16(&[udp[2], udp[3]]);
            let len = walk.len - header.transport;
            if verify_udp(port) && walk.flush.is_none() {
                let field = be16(&[udp[6], udp[7]]);
                walk.verdict.validate(packet, header.transport, || header.pseudo(len), true, field)?;
            }
            if usize::from(be16(&[udp[4], udp[5]])) != len {
                walk.flush = walk.flush.or(Some(GroEnd::Malformed));
            }
            outer.udp = Some((header.transport, port));
        }
    }
    Ok((outer, walk.flush, walk.verdict.gained()))
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
    let (ethertype, network) = walk.link(0)?;
    if network != ETHERNET {
        // In-line tags are part of a complete sum, which starts behind the Ethernet header.
        walk.verdict.pull(&walk.bytes[ETHERNET..network]);
    }
    let mut layout = Layout::plain(network as u16, ethertype == ETHERTYPE_IPV6);
    let mut header = walk.network(ethertype, network)?;
    loop {
        let inner = match header.protocol {
            IPPROTO_TCP => return walk.tcp(&header, layout, config),
            IPPROTO_UDP => match walk.udp(&header, &mut layout, config)? {
                Some(inner) => inner,
                None => return walk.datagram(&header, layout, config),
            },
            IPPROTO_GRE if config.gre => walk.gre(&header)?,
            IPPROTO_IPIP | IPPROTO_IPV6 if config.ip_in_ip => Inner {
                carrier: Carrier::Ip,
                at: header.transport,
                mac: 0,
                ethertype: if header.protocol == IPPROTO_IPIP { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 },
                network: header.transport,
            },
            _ => return Err(GroEnd::NotMergeable),
        };
        if layout.levels().len() > config.max_tunnels {
            return Err(GroEnd::NotMergeable);
        }
        let level = Level {
            network: inner.network as u16,
            carrier_at: inner.at as u16,
            mac: inner.mac as u16,
            v6: inner.ethertype == ETHERTYPE_IPV6,
            carrier: inner.carrier,
        };
        header = walk.network(inner.ethertype, inner.network)?;
        if !layout.push(level) {
            return Err(GroEnd::NotMergeable);
        }
    }
}

/// What a tunnel header carries.
struct Inner {
    carrier: Carrier,
    /// Where the tunnel header starts.
    at: usize,
    /// The Ethernet header inside; 0 if there is none.
    mac: usize,
    ethertype: u16,
    network: usize,
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
        let length = be16(&[header[2], header[3]]);
        if !is_length(length, self.len - offset, self.packet) || fragment & 0x8000 != 0 {
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
        if !is_length(be16(&[header[4], header[5]]), self.len - end, self.packet) {
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

    /// The checksum of a UDP header, and the tunnel in it if its port has one (Linux: `udp4_gro_receive`,
    /// `udp_gro_receive`).
    #[inline(always)]
    fn udp(&mut self, outer: &Network<'a>, layout: &mut Layout, config: &GroConfig) -> Result<Option<Inner>, GroEnd> {
        let offset = outer.transport;
        let udp: &[u8; 8] = at(self.bytes, offset)?;
        let port = be16(&[udp[2], udp[3]]);
        let vxlan = config.vxlan_ports.contains(&port);
        let geneve = !vxlan && config.geneve_ports.contains(&port);
        if !vxlan && !geneve && !config.udp.wants(port) {
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
        if !vxlan && !geneve {
            return Ok(None);
        }
        if layout.levels().len() > config.max_tunnels {
            return Err(GroEnd::NotMergeable);
        }
        if (field != 0 || !config.rules.zero_checksum_tunnels) && self.verdict.knows_nothing() {
            return Err(GroEnd::TunnelGate);
        }
        if vxlan { self.vxlan(offset).map(Some) } else { self.geneve(offset).map(Some) }
    }

    /// Linux: `vxlan_gro_receive`.
    #[inline(always)]
    fn vxlan(&mut self, udp: usize) -> Result<Inner, GroEnd> {
        let vxlan: &[u8; 8] = at(self.bytes, udp + 8)?;
        // RFC 7348 section 5: the I flag must be set. With the P flag it is VXLAN-GPE, whose payload may be anything.
        if vxlan[0] & 0x08 == 0 || vxlan[0] & 0x04 != 0 {
            return Err(GroEnd::NotMergeable);
        }
        self.tag = gather(self.tag, u64::from_ne_bytes(*vxlan));
        let mac = udp + 16;
        let (ethertype, network) = self.link(mac)?;
        self.verdict.pull(&self.bytes[udp..network]);
        Ok(Inner { carrier: Carrier::Udp, at: udp, mac, ethertype, network })
    }

    /// Linux: `geneve_gro_receive`. Options, critical ones too, are compared byte by byte and never looked into.
    fn geneve(&mut self, udp: usize) -> Result<Inner, GroEnd> {
        let start = udp + 8;
        let (header, _, _) =
            GeneveHeader::parse(self.bytes.get(start..).ok_or(GroEnd::Malformed)?).map_err(|_| GroEnd::NotMergeable)?;
        if header.is_control() {
            return Err(GroEnd::NotMergeable);
        }
        self.tag = gather(self.tag, u64::from(header.vni()));
        let (ethertype, end) = (header.protocol().0, start + header.header_len());
        let (mac, ethertype, network) = self.payload_of(ethertype, end)?;
        self.verdict.pull(&self.bytes[udp..network]);
        Ok(Inner { carrier: Carrier::Udp, at: udp, mac, ethertype, network })
    }

    /// What a tunnel header that names an EtherType carries: Ethernet header if there is one, EtherType, network header.
    fn payload_of(&mut self, ethertype: u16, offset: usize) -> Result<(usize, u16, usize), GroEnd> {
        if ethertype != ETHERTYPE_ETHERNET {
            return Ok((0, ethertype, offset));
        }
        let (ethertype, network) = self.link(offset)?;
        Ok((offset, ethertype, network))
    }

    /// Linux: `gre_gro_receive`. Sequence numbers would not survive segmentation, so packets with one are left alone.
    fn gre(&mut self, outer: &Network<'a>) -> Result<Inner, GroEnd> {
        let offset = outer.transport;
        let base: &[u8; 4] = at(self.bytes, offset)?;
        let (flags, protocol) = (be16(&[base[0], base[1]]), be16(&[base[2], base[3]]));
        let (checksum, key) = (flags & 0x8000 != 0, flags & 0x2000 != 0);
        if flags & !0xa000 != 0 {
            return Err(GroEnd::NotMergeable);
        }
        let end = offset + 4 + 4 * usize::from(checksum) + 4 * usize::from(key);
        if checksum && self.flush.is_none() {
            let field: &[u8; 2] = at(self.bytes, offset + 4)?;
            self.verdict.validate(self.packet, offset, || Sum::ZERO, false, be16(field))?;
            self.verdict.convert(|| Sum::ZERO);
        }
        if key {
            let key: &[u8; 4] = at(self.bytes, end - 4)?;
            self.tag = gather(self.tag, u64::from(u32::from_ne_bytes(*key)));
        }
        let (mac, ethertype, network) = self.payload_of(protocol, end)?;
        self.verdict.pull(self.bytes.get(offset..network).ok_or(GroEnd::Malformed)?);
        let carrier = match (checksum, key) {
            (false, _) => Carrier::Gre,
            (true, false) => Carrier::GreChecksum,
            (true, true) => Carrier::GreChecksumKey,
        };
        Ok(Inner { carrier, at: offset, mac, ethertype, network })
    }

    /// A plain UDP datagram whose checksum was looked at (Linux: `udp_gro_receive_segment`). What Linux refuses here goes up
    /// at once and leaves the aggregate of its flow held.
    fn datagram(self, network: &Network<'a>, mut layout: Layout, _config: &GroConfig) -> Result<Candidate, GroEnd> {
        let offset = network.transport;
        let udp: &[u8; 8] = at(self.bytes, offset)?;
        let len = self.len - offset;
        if udp[6..8] == [0, 0] {
            return Err(GroEnd::NotMergeable);
        }
        if len <= 8 {
            return Err(GroEnd::Empty);
        }
        if !is_length(be16(&[udp[4], udp[5]]), len, self.packet) {
            return Err(GroEnd::Malformed);
        }
        let payload = offset + 8;
        if payload > self.bytes.len() || payload > MAX_HEADERS {
            return Err(GroEnd::Malformed);
        }
        let tag = gather(self.tag, u64::from(u32::from_ne_bytes([udp[0], udp[1], udp[2], udp[3]])));
        layout.udp = true;
        layout.transport = offset as u16;
        layout.payload = payload as u16;
        let payload = (self.len - payload) as u32;
        let flush = match self.packet.gso() {
            None => self.flush,
            // Linux merges received super-packets of TCP only.
            Some(_) => self.flush.or(Some(GroEnd::NotMergeable)),
        };
        let (count, segment) = self.packet.gso().map_or((1, payload), |gso| (gso.segments.max(1), u32::from(gso.size)));
        let gained = self.verdict.gained();
        Ok(Candidate { layout, tag: tag_of(tag), seq: 0, word: 0, payload, count, segment, flush, gained })
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
        layout.transport = offset as u16;
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
