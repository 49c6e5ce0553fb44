//! Transmit descriptors: extended data descriptors and the two contexts.

use super::regs::txd;
use crate::nic::offload::{self, Layers, Transport};
use crate::ring::{HEADER_ROOM, TransmitLayout, TransmitPlan, Words};
use netcore::{Gso, GsoKind, Packet, PartialChecksum, Refusal};

/// Bytes of a data descriptor: what Linux's driver uses, well below the 20-bit field, so that the FIFO is never asked for
/// more than it has room for.
const LIMIT: u32 = 4096;
/// First data descriptor on PCI-X: the longest burst that avoids the erratum (Linux: "errata 10").
const LIMIT_PCIX: u32 = 2015;
/// In segmentation no buffer may hold more than this many segments (82544 and later: the FIFO is checked per buffer).
const SEGMENTS_PER_BUFFER: u32 = 4;
/// Smallest segment size that is left to hardware; no datasheet has a lower bound, and below it software is as good.
const MIN_MSS: u16 = 64;
/// Shortest frame of the 82574, which pads the rest itself (Linux: "the minimum packet size with TCTL.PSP set is 17").
const MIN_FRAME_82574: u8 = 17;
/// The `cut` that keeps hardware from reporting a packet before it has read its end.
const SENTINEL: u8 = 4;

/// What the transmit queue can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Abilities {
    /// Longest frame without tag.
    pub(super) max_frame: usize,
    /// Fill in checksums.
    pub(super) checksum: bool,
    /// Kinds of super-packets.
    pub(super) gso: GsoKind,
    /// Insert tags.
    pub(super) vlan: bool,
    /// On a PCI-X bus.
    pub(super) pcix: bool,
    /// 8254x: the premature write-back erratum after segmentation.
    pub(super) sentinel: bool,
    /// The contexts belong to one queue only, so they can be relied on.
    pub(super) own_contexts: bool,
}

/// The extended transmit descriptors of the 8254x and 82574.
///
/// Hardware remembers one checksum context and one segmentation context; one that is loaded already is not sent again.
#[derive(Debug)]
pub struct Transmit {
    abilities: Abilities,
    checksum: Option<Words>,
    segmentation: Option<Words>,
    last_segmented: bool,
}

/// The context for a checksum from `start` to the end.
fn checksum_context(request: PartialChecksum, tcp: bool) -> Result<Words, Refusal> {
    let start = u8::try_from(request.start).map_err(|_| Refusal::Checksum)?;
    let field = request.start.checked_add(request.offset).and_then(|field| u8::try_from(field).ok());
    let field = field.ok_or(Refusal::Checksum)?;
    let tcp = if tcp { txd::TUCMD_TCP } else { 0 };
    Ok([u64::from(start) << 32 | u64::from(field) << 40, txd::DEXT | tcp])
}

/// The context for cutting at `mss`.
fn segmentation_context(layers: &Layers, gso: Gso, header: u8, payload: u32) -> Result<Words, Refusal> {
    let byte = |value: u16| u8::try_from(value).map(u64::from).map_err(|_| Refusal::Segmentation);
    let network = byte(layers.network)?;
    let transport = byte(layers.transport)?;
    let field = transport + 16;
    // The last byte of the IP header; the field is only used for IPv4.
    let (ip_field, ip_end, ip) = if layers.version == 4 {
        (network + 10, transport - 1, txd::TUCMD_IP)
    } else {
        (network, transport.saturating_sub(1), 0)
    };
    if field > 255 || payload >= 1 << 20 {
        return Err(Refusal::Segmentation);
    }
    let first = network | ip_field << 8 | ip_end << 16 | transport << 32 | field << 40;
    let second = u64::from(payload)
        | txd::DEXT
        | txd::TSE
        | txd::TUCMD_TCP
        | ip
        | u64::from(header) << 40
        | u64::from(gso.size) << 48;
    Ok([first, second])
}

impl Transmit {
    pub(super) const fn new(abilities: Abilities) -> Self {
        Self { abilities, checksum: None, segmentation: None, last_segmented: false }
    }

    /// The layout of an 82546GB with every offload on, for a ring without a device: a bench.
    pub const fn with_every_offload() -> Self {
        Self::new(Abilities {
            max_frame: 1514,
            checksum: true,
            gso: GsoKind::TCPV4,
            vlan: true,
            pcix: true,
            sentinel: true,
            own_contexts: true,
        })
    }

    fn plan_segments(
        &mut self,
        packet: &Packet,
        gso: Gso,
        header: &mut [u8; HEADER_ROOM],
        plan: &mut TransmitPlan,
    ) -> Result<(), Refusal> {
        if !offload::kind_allowed(gso, self.abilities.gso) || gso.size < MIN_MSS {
            return Err(Refusal::Segmentation);
        }
        let layers = offload::layers(packet, None).map_err(|_| Refusal::Segmentation)?;
        let version = if gso.kind.contains(GsoKind::TCPV4) { 4 } else { 6 };
        if layers.protocol != Some(Transport::Tcp) || layers.version != version {
            return Err(Refusal::Segmentation);
        }
        let len = offload::segmentation_headers(packet, &layers, header)?;
        let header_len = u8::try_from(len).map_err(|_| Refusal::Segmentation)?;
        if usize::from(gso.size) + len > self.abilities.max_frame {
            return Err(Refusal::Segmentation);
        }
        let context = segmentation_context(&layers, gso, header_len, (packet.len() - len) as u32)?;
        if !self.abilities.own_contexts || self.segmentation != Some(context) {
            plan.context = Some(context);
            self.segmentation = Some(context);
        }
        plan.header = header_len.into();
        plan.data |= txd::TSE;
        plan.first |= txd::TXSM | if version == 4 { txd::IXSM } else { 0 };
        plan.limit = plan.limit.min(SEGMENTS_PER_BUFFER * u32::from(gso.size));
        if self.abilities.sentinel {
            plan.cut = SENTINEL;
        }
        self.last_segmented = true;
        Ok(())
    }
}

impl TransmitLayout for Transmit {
    /// 64 KiB in pages, headers, context and the cut-off tail, with room for scatter (Linux: `MAX_SKB_FRAGS` + slack).
    const MAX_DESCRIPTORS: u16 = 40;

    fn plan(&mut self, packet: &Packet, header: &mut [u8; HEADER_ROOM]) -> Result<TransmitPlan, Refusal> {
        let a = self.abilities;
        let mut plan = TransmitPlan {
            data: txd::DEXT | txd::DTYP_DATA | txd::IFCS,
            first_limit: if a.pcix { LIMIT_PCIX } else { LIMIT },
            limit: LIMIT,
            min_frame: if a.sentinel { 0 } else { MIN_FRAME_82574 },
            ..TransmitPlan::default()
        };
        if let Some(tag) = packet.vlan() {
            // Hardware inserts the EtherType in VET, 0x8100.
            if !a.vlan || tag.tpid != 0x8100 {
                return Err(Refusal::Vlan);
            }
            plan.data |= txd::VLE | u64::from(tag.tci) << 48;
        }
        if let Some(gso) = packet.gso() {
            self.plan_segments(packet, gso, header, &mut plan)?;
            return Ok(plan);
        }
        if packet.len() > a.max_frame + 4 {
            // 4: a tag in the bytes.
            return Err(Refusal::TooLong { len: packet.len(), max: a.max_frame + 4 });
        }
        if let Some(request) = packet.transmit_checksum() {
            if !a.checksum || usize::from(request.start) + usize::from(request.offset) + 2 > packet.len() {
                return Err(Refusal::Checksum);
            }
            let context = checksum_context(request, request.offset == Transport::Tcp.checksum_offset())?;
            if !a.own_contexts || self.checksum != Some(context) {
                plan.context = Some(context);
                self.checksum = Some(context);
            }
            plan.first |= txd::TXSM;
        }
        if self.last_segmented && a.sentinel {
            plan.cut = SENTINEL;
        }
        self.last_segmented = false;
        Ok(plan)
    }

    fn forget(&mut self) {
        self.checksum = None;
        self.segmentation = None;
        // The packet that was given up may have been the one that the sentinel was for.
        self.last_segmented = true;
    }

    #[inline(always)]
    fn data(plan: &TransmitPlan, iova: u64, len: u32, end: bool, report: bool) -> Words {
        let end = if end { txd::EOP } else { 0 };
        let report = if report { txd::RS } else { 0 };
        [iova, plan.data | plan.first | u64::from(len) | end | report]
    }
}
