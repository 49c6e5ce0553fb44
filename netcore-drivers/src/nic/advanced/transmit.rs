//! Advanced transmit descriptors: what a packet asks for becomes a context and data descriptors.

use super::{tunnel, txd};
use crate::nic::offload::{self, Layers, Transport};
use crate::ring::{HEADER_ROOM, TransmitLayout, TransmitPlan, Words};
use netcore::{Gso, GsoKind, Packet, PartialChecksum, Refusal};

/// Smallest segment size that is left to hardware; no datasheet has a lower bound, and below it software is as good.
const MIN_MSS: u16 = 64;
/// Largest segment size (Intel's drivers).
const MAX_MSS: u16 = 9216;
/// Most bytes of link header with tags in line: 7 bits.
const MAX_MACLEN: u16 = 127;
/// Most bytes from network to transport header: 9 bits.
const MAX_IPLEN: u16 = 511;
/// Most bytes of frame or payload: 18 bits.
const MAX_PAYLEN: usize = (1 << 18) - 1;
/// Shortest frame that the parts pad themselves without fault (Linux: "the minimum packet size is 17").
const MIN_FRAME: u8 = 17;

/// Where a queue keeps its contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contexts {
    /// Number of the first slot.
    pub first: u8,
    /// Slots of this queue, 1 or 2.
    pub count: u8,
}

/// What a transmit queue can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    /// Longest frame without tag.
    pub max_frame: usize,
    /// Fill in checksums of TCP and UDP.
    pub checksum: bool,
    /// Fill in checksums of SCTP.
    pub sctp: bool,
    /// Kinds of super-packets.
    pub gso: GsoKind,
    /// Insert tags.
    pub vlan: bool,
    /// Most bytes of a data descriptor.
    pub limit: u32,
    /// Slots for contexts.
    pub contexts: Contexts,
}

/// The advanced transmit descriptors of one queue, and the contexts that hardware remembers.
#[derive(Debug)]
pub struct Transmit {
    abilities: Abilities,
    loaded: [Option<Words>; 2],
    /// The slot that was used last.
    recent: u8,
}

/// What goes into a context besides the slot.
#[derive(Clone, Copy, Default)]
struct Context {
    first: u64,
    second: u64,
}

impl Context {
    fn lengths(&mut self, mac: u16, ip: u16) -> Result<(), Refusal> {
        if mac > MAX_MACLEN || ip > MAX_IPLEN {
            return Err(Refusal::Checksum);
        }
        self.first |= u64::from(ip) | u64::from(mac) << 9;
        Ok(())
    }
}

impl Transmit {
    /// The layout of a queue that can do this.
    pub const fn new(abilities: Abilities) -> Self {
        Self { abilities, loaded: [None; 2], recent: 1 }
    }

    /// What the queue can be asked for.
    pub const fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Finds a slot for `context`, and sends it in front of the packet unless a slot holds it already.
    #[inline]
    fn load(&mut self, context: Context, plan: &mut TransmitPlan) {
        let words = [context.first, context.second | txd::DEXT | txd::DTYP_CONTEXT];
        let count = self.abilities.contexts.count.clamp(1, 2);
        let slot = match self.loaded.iter().position(|loaded| *loaded == Some(words)) {
            Some(slot) => slot as u8,
            None => {
                // The other one than the last used.
                let slot = (self.recent + 1) % count;
                self.loaded[usize::from(slot)] = Some(words);
                let index = u64::from(self.abilities.contexts.first + slot);
                plan.context = Some([words[0], words[1] | index << txd::IDX_SHIFT]);
                slot
            }
        };
        self.recent = slot;
        plan.data |= u64::from(self.abilities.contexts.first + slot) << txd::IDX_SHIFT;
    }

    fn plan_segments(
        &self,
        packet: &Packet,
        gso: Gso,
        header: &mut [u8; HEADER_ROOM],
        plan: &mut TransmitPlan,
        context: &mut Context,
    ) -> Result<(), Refusal> {
        const REFUSED: Refusal = Refusal::Segmentation;
        const TUNNELS: GsoKind = GsoKind::UDP_TUNNEL.union(GsoKind::UDP_TUNNEL_CSUM);
        if !offload::kind_allowed(gso, self.abilities.gso) || !(MIN_MSS..=MAX_MSS).contains(&gso.size) {
            return Err(REFUSED);
        }
        let tunnel = gso.kind.intersects(TUNNELS);
        let request = if tunnel { Some(packet.transmit_checksum().ok_or(REFUSED)?) } else { None };
        let layers = offload::layers(packet, request).map_err(|_| REFUSED)?;
        let udp = gso.kind.contains(GsoKind::UDP_L4);
        let version = if gso.kind.contains(GsoKind::TCPV4) { 4 } else { 6 };
        let fits = match layers.protocol {
            Some(Transport::Tcp) => !udp && layers.version == version,
            Some(Transport::Udp) => udp && !tunnel,
            _ => false,
        };
        if !fits || tunnel != layers.tunnel {
            return Err(REFUSED);
        }
        let len = offload::segmentation_headers(packet, &layers, header)?;
        let payload = packet.len() - len;
        let longest = usize::from(gso.size).min(payload) + len;
        if longest > self.abilities.max_frame || payload > MAX_PAYLEN {
            return Err(REFUSED);
        }
        if tunnel {
            // Segments of different lengths would need different headers between the two that hardware rewrites.
            if !payload.is_multiple_of(usize::from(gso.size)) {
                return Err(REFUSED);
            }
            tunnel::finish(header, &layers, gso.size, gso.kind.contains(GsoKind::UDP_TUNNEL_CSUM))?;
        }
        let ip = layers.transport - layers.outer_network;
        context.lengths(layers.outer_network, ip).map_err(|_| REFUSED)?;
        let outer_v4 = layers.outer_version == 4;
        context.second |= if outer_v4 { txd::TUCMD_IPV4 } else { 0 }
            | if udp { 0 } else { txd::TUCMD_TCP }
            | u64::from(layers.transport_len) << txd::L4LEN_SHIFT
            | u64::from(gso.size) << txd::MSS_SHIFT;
        plan.header = len as u16;
        plan.data |=
            txd::TSE | txd::TXSM | if outer_v4 { txd::IXSM } else { 0 } | (payload as u64) << txd::PAYLEN_SHIFT;
        Ok(())
    }

    /// Where the outermost network header is, its version, and the transport of the request.
    #[inline]
    fn checksum_layers(packet: &Packet, request: PartialChecksum) -> Result<(u16, u8, Transport), Refusal> {
        // The sender has said where the headers are: no need to look for them.
        if let Some(offsets) = packet.offsets()
            && (offsets.transport == request.start || offsets.inner_transport == request.start)
            && let Some(byte) = packet.head().get(usize::from(offsets.network))
        {
            let version = byte >> 4;
            match (version, request.offset) {
                (4 | 6, 16) => return Ok((offsets.network, version, Transport::Tcp)),
                (4 | 6, 6) => return Ok((offsets.network, version, Transport::Udp)),
                _ => {}
            }
        }
        let Layers { outer_network, outer_version, protocol, .. } = offload::layers(packet, Some(request))?;
        match protocol {
            Some(transport) if transport.checksum_offset() == request.offset => {
                Ok((outer_network, outer_version, transport))
            }
            _ => Err(Refusal::Checksum),
        }
    }

    #[inline]
    fn plan_checksum(
        &self,
        packet: &Packet,
        request: PartialChecksum,
        plan: &mut TransmitPlan,
        context: &mut Context,
    ) -> Result<(), Refusal> {
        if usize::from(request.start) + usize::from(request.offset) + 2 > packet.len() {
            return Err(Refusal::Checksum);
        }
        let (network, version, transport) = Self::checksum_layers(packet, request)?;
        let (allowed, kind) = match transport {
            Transport::Tcp => (self.abilities.checksum, txd::TUCMD_TCP),
            Transport::Udp => (self.abilities.checksum, 0),
            Transport::Sctp => (self.abilities.sctp, txd::TUCMD_SCTP),
        };
        if !allowed {
            return Err(Refusal::Checksum);
        }
        let ip = request.start.checked_sub(network).ok_or(Refusal::Checksum)?;
        context.lengths(network, ip)?;
        context.second |= kind | if version == 4 { txd::TUCMD_IPV4 } else { 0 };
        plan.data |= txd::TXSM;
        Ok(())
    }
}

impl TransmitLayout for Transmit {
    /// 82599: "up to 40" (datasheet 7.2.3.1); the others have no lower limit.
    const MAX_DESCRIPTORS: u16 = 40;

    #[inline]
    fn plan(&mut self, packet: &Packet, header: &mut [u8; HEADER_ROOM]) -> Result<TransmitPlan, Refusal> {
        let a = &self.abilities;
        let mut plan = TransmitPlan {
            data: txd::DEXT | txd::DTYP_DATA | txd::IFCS,
            first_limit: a.limit,
            limit: a.limit,
            min_frame: MIN_FRAME,
            ..TransmitPlan::default()
        };
        let mut context = Context::default();
        let mut needed = false;
        if let Some(tag) = packet.vlan() {
            // Hardware inserts the EtherType that its register holds, 0x8100.
            if !a.vlan || tag.tpid != 0x8100 {
                return Err(Refusal::Vlan);
            }
            plan.data |= txd::VLE;
            context.first |= u64::from(tag.tci) << 16;
            needed = true;
        }
        if let Some(gso) = packet.gso() {
            self.plan_segments(packet, gso, header, &mut plan, &mut context)?;
            self.load(context, &mut plan);
            return Ok(plan);
        }
        let len = packet.len();
        if len > a.max_frame + 4 {
            // 4: a tag in the bytes.
            return Err(Refusal::TooLong { len, max: a.max_frame + 4 });
        }
        plan.data |= (len.max(usize::from(MIN_FRAME)) as u64) << txd::PAYLEN_SHIFT;
        if let Some(request) = packet.transmit_checksum() {
            self.plan_checksum(packet, request, &mut plan, &mut context)?;
            needed = true;
        } else if needed {
            context.lengths(14, 0)?;
        }
        if needed {
            self.load(context, &mut plan);
        }
        Ok(plan)
    }

    fn forget(&mut self) {
        self.loaded = [None; 2];
    }

    #[inline(always)]
    fn data(plan: &TransmitPlan, iova: u64, len: u32, end: bool, report: bool) -> Words {
        let end = if end { txd::EOP } else { 0 };
        let report = if report { txd::RS } else { 0 };
        [iova, plan.data | plan.first | u64::from(len) | end | report]
    }
}

#[cfg(test)]
mod tests;
