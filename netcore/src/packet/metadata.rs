//! What a packet knows besides its bytes.

use super::Packet;
use super::descriptor::Descriptor;
use crate::time::{Instant, Rate};
use bitflags::bitflags;

/// Which metadata fields of a descriptor are set.
pub(crate) mod flags {
    pub(crate) const OFFSETS: u16 = 1 << 0;
    pub(crate) const GSO: u16 = 1 << 1;
    pub(crate) const TX_CHECKSUM: u16 = 1 << 2;
    pub(crate) const VLAN: u16 = 1 << 3;
    pub(crate) const HASH: u16 = 1 << 4;
    pub(crate) const HASH_L4: u16 = 1 << 5;
    pub(crate) const FLOW: u16 = 1 << 6;
    pub(crate) const RECEIVE_TIME: u16 = 1 << 7;
    pub(crate) const DEPARTURE: u16 = 1 << 8;
    pub(crate) const PACING_RATE: u16 = 1 << 9;
    pub(crate) const PRIORITY: u16 = 1 << 10;
    pub(crate) const QUEUE: u16 = 1 << 11;
}

/// What is known about the checksums of a received packet (Linux: `skb->ip_summed`, `csum_level`, `csum`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReceiveChecksum {
    /// Nothing: whoever needs a checksum verifies it (`CHECKSUM_NONE`).
    #[default]
    None,
    /// `levels` transport checksums in a row, outermost first, are right (`CHECKSUM_UNNECESSARY`; Linux counts
    /// `csum_level` from 0 where `levels` counts from 1). Range 1..=4.
    Unnecessary {
        /// How many checksums were verified.
        levels: u8,
    },
    /// One's complement sum, not complemented, of all bytes after the link header, as RFC 1071 defines it on
    /// big-endian words (`CHECKSUM_COMPLETE`).
    Complete(u16),
}

/// A checksum that whoever sends the packet fills in (Linux: `CHECKSUM_PARTIAL`).
///
/// The field already holds the pseudo-header sum. The sender sums all bytes from `start` to the end and stores the
/// complement at `start + offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartialChecksum {
    /// Where summing starts: offset of the transport header from the first byte of the packet.
    pub start: u16,
    /// Where the checksum field is, from `start`.
    pub offset: u16,
}

bitflags! {
    /// Kinds of segmentation that a super-packet asks for (Linux: `SKB_GSO_*`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct GsoKind: u16 {
        /// TCP over IPv4.
        const TCPV4 = 1 << 0;
        /// TCP over IPv6.
        const TCPV6 = 1 << 1;
        /// The first segment carries CWR, the others must not.
        const TCP_ECN = 1 << 2;
        /// The innermost IPv4 identification is the same in all segments.
        const TCP_FIXEDID = 1 << 3;
        /// As `TCP_FIXEDID`, for the outer IPv4 header of a tunnel.
        const TCP_FIXEDID_OUTER = 1 << 4;
        /// UDP datagrams of equal size.
        const UDP_L4 = 1 << 5;
        /// Inside a UDP tunnel whose outer checksum is zero.
        const UDP_TUNNEL = 1 << 6;
        /// Inside a UDP tunnel whose outer checksum is computed.
        const UDP_TUNNEL_CSUM = 1 << 7;
        /// Inside GRE without checksum.
        const GRE = 1 << 8;
        /// Inside GRE with checksum.
        const GRE_CSUM = 1 << 9;
        /// Inside IPv4.
        const IPXIP4 = 1 << 10;
        /// Inside IPv6.
        const IPXIP6 = 1 << 11;
        /// The header fields come from outside and were not verified (a TAP, a guest).
        const DODGY = 1 << 12;
        /// The device rewrites only the inner headers of each segment.
        const PARTIAL = 1 << 13;
        /// AccECN: CWR is kept on every segment (`SKB_GSO_TCP_ACCECN`).
        const TCP_ACCECN = 1 << 14;
    }
}

impl GsoKind {
    /// Every kind that says the payload is inside a tunnel.
    pub const TUNNEL: Self = Self::UDP_TUNNEL
        .union(Self::UDP_TUNNEL_CSUM)
        .union(Self::GRE)
        .union(Self::GRE_CSUM)
        .union(Self::IPXIP4)
        .union(Self::IPXIP6);
}

/// That a packet stands for several wire packets, and how to cut it (Linux: `skb_shared_info.gso_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gso {
    /// How to cut.
    pub kind: GsoKind,
    /// Payload bytes per segment; the last segment may have fewer. Not zero.
    pub size: u16,
    /// Number of segments, 2 or more.
    pub segments: u16,
}

/// A VLAN tag held outside the bytes (Linux: `skb->vlan_proto`, `vlan_tci`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VlanTag {
    /// Tag protocol: 0x8100 (802.1Q) or 0x88a8 (802.1ad).
    pub tpid: u16,
    /// Priority (3 bits), drop eligible (1 bit), VLAN id (12 bits).
    pub tci: u16,
}

/// Where headers start, counted from the first byte of the packet.
///
/// A zero means "not there", except in `network`, which is zero for a packet without link header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderOffsets {
    /// Outermost network header.
    pub network: u16,
    /// Outermost transport header.
    pub transport: u16,
    /// Link header inside a tunnel.
    pub inner_mac: u16,
    /// Network header inside a tunnel.
    pub inner_network: u16,
    /// Transport header inside a tunnel.
    pub inner_transport: u16,
}

/// All metadata of a packet at one moment, to be given to others cut from it.
#[derive(Clone)]
pub struct Metadata(Descriptor);

// SAFETY: the descriptor copy holds metadata only; its pointers are null.
unsafe impl Send for Metadata {}
// SAFETY: as above.
unsafe impl Sync for Metadata {}

impl Default for Metadata {
    fn default() -> Self {
        Self(Descriptor::bare(core::ptr::null()))
    }
}

impl Metadata {
    /// Makes it that of an ordinary packet: not a super-packet.
    pub fn clear_gso(&mut self) {
        self.0.flags &= !flags::GSO;
    }

    /// Replaces the checksum request.
    pub fn set_transmit_checksum(&mut self, request: Option<PartialChecksum>) {
        self.0.flags &= !flags::TX_CHECKSUM;
        if let Some(PartialChecksum { start, offset }) = request {
            self.0.flags |= flags::TX_CHECKSUM;
            self.0.checksum_start = start;
            self.0.checksum_offset = offset;
        }
    }

    /// Replaces the header offsets.
    pub fn set_offsets(&mut self, offsets: HeaderOffsets) {
        self.0.flags |= flags::OFFSETS;
        self.0.network = offsets.network;
        self.0.transport = offsets.transport;
        self.0.inner_mac = offsets.inner_mac;
        self.0.inner_network = offsets.inner_network;
        self.0.inner_transport = offsets.inner_transport;
    }
}

impl core::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Metadata").finish_non_exhaustive()
    }
}

const CHECKSUM_COMPLETE: u8 = 0xff;

/// Receive hash, checksum verdict and what kind of packet it is, of a packet as a device delivers it: two that are equal are
/// alike to receive offload but for a complete sum and a VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveState(u64);

impl ReceiveState {
    /// Of no packet.
    pub const NONE: Self = Self(u64::MAX);

    const COMPARED: u64 =
        0xffff_ffff_ffff | ((flags::GSO | flags::TX_CHECKSUM | flags::VLAN | flags::HASH) as u64) << 48;

    /// The hash field: some number if there is no hash.
    #[inline(always)]
    pub fn hash(self) -> u32 {
        self.0 as u32
    }

    /// True if the device said nothing about checksums.
    #[inline(always)]
    pub fn is_unchecked(self) -> bool {
        (self.0 >> 40) as u8 == 0
    }

    /// True of a packet with a receive hash, that came off a wire as it is, without a VLAN tag outside the bytes and without a
    /// complete sum.
    pub fn is_plain(self) -> bool {
        const COMPLETE: u8 = CHECKSUM_COMPLETE;
        self.0 >> 48 == flags::HASH as u64 && (self.0 >> 40) as u8 != COMPLETE
    }
}

impl Packet {
    /// What is known about the packet's checksums.
    #[inline(always)]
    pub fn receive_checksum(&self) -> ReceiveChecksum {
        let d = self.descriptor();
        match d.checksum_state {
            0 => ReceiveChecksum::None,
            CHECKSUM_COMPLETE => ReceiveChecksum::Complete(d.checksum_value),
            levels => ReceiveChecksum::Unnecessary { levels },
        }
    }

    /// Records a checksum verdict. Levels outside 1..=4 are brought into that range.
    #[inline(always)]
    pub fn set_receive_checksum(&mut self, checksum: ReceiveChecksum) {
        let d = self.descriptor_mut();
        match checksum {
            ReceiveChecksum::None => d.checksum_state = 0,
            ReceiveChecksum::Unnecessary { levels } => d.checksum_state = levels.clamp(1, 4),
            ReceiveChecksum::Complete(sum) => {
                d.checksum_state = CHECKSUM_COMPLETE;
                d.checksum_value = sum;
            }
        }
    }

    /// The checksum that the sender of this packet must still fill in.
    #[inline(always)]
    pub fn transmit_checksum(&self) -> Option<PartialChecksum> {
        let d = self.descriptor();
        d.has(flags::TX_CHECKSUM).then_some(PartialChecksum { start: d.checksum_start, offset: d.checksum_offset })
    }

    /// Asks for a checksum to be filled in on transmit, or takes the request back.
    #[inline(always)]
    pub fn set_transmit_checksum(&mut self, request: Option<PartialChecksum>) {
        let d = self.descriptor_mut();
        match request {
            Some(PartialChecksum { start, offset }) => {
                d.flags |= flags::TX_CHECKSUM;
                d.checksum_start = start;
                d.checksum_offset = offset;
            }
            None => d.flags &= !flags::TX_CHECKSUM,
        }
    }

    /// How to cut the packet, if it stands for several wire packets.
    #[inline(always)]
    pub fn gso(&self) -> Option<Gso> {
        let d = self.descriptor();
        d.has(flags::GSO).then(|| Gso {
            kind: GsoKind::from_bits_retain(d.gso_kind),
            size: d.gso_size,
            segments: d.gso_segments,
        })
    }

    /// True if the packet stands for several wire packets.
    #[inline(always)]
    pub fn is_super(&self) -> bool {
        self.descriptor().has(flags::GSO)
    }

    /// Marks the packet as a super-packet, or as an ordinary one.
    #[inline(always)]
    pub fn set_gso(&mut self, gso: Option<Gso>) {
        let d = self.descriptor_mut();
        match gso {
            Some(Gso { kind, size, segments }) => {
                d.flags |= flags::GSO;
                d.gso_kind = kind.bits();
                d.gso_size = size;
                d.gso_segments = segments;
            }
            None => d.flags &= !flags::GSO,
        }
    }

    /// Number of wire packets this packet stands for: `gso.segments`, or 1.
    #[inline(always)]
    pub fn wire_packets(&self) -> usize {
        let d = self.descriptor();
        if d.has(flags::GSO) { usize::from(d.gso_segments) } else { 1 }
    }

    /// The VLAN tag that is held outside the bytes.
    #[inline(always)]
    pub fn vlan(&self) -> Option<VlanTag> {
        let d = self.descriptor();
        d.has(flags::VLAN).then_some(d.vlan)
    }

    /// Sets or removes the VLAN tag that is held outside the bytes.
    #[inline(always)]
    pub fn set_vlan(&mut self, tag: Option<VlanTag>) {
        let d = self.descriptor_mut();
        match tag {
            Some(tag) => {
                d.flags |= flags::VLAN;
                d.vlan = tag;
            }
            None => d.flags &= !flags::VLAN,
        }
    }

    /// The receive hash (RSS) and whether it covers transport ports (Linux: `skb->hash`, `l4_hash`).
    #[inline(always)]
    pub fn hash(&self) -> Option<(u32, bool)> {
        let d = self.descriptor();
        d.has(flags::HASH).then(|| (d.hash, d.has(flags::HASH_L4)))
    }

    /// Records the receive hash; `covers_ports` if transport ports went into it.
    #[inline(always)]
    pub fn set_hash(&mut self, hash: Option<u32>, covers_ports: bool) {
        let d = self.descriptor_mut();
        d.flags &= !(flags::HASH | flags::HASH_L4);
        if let Some(hash) = hash {
            d.flags |= flags::HASH | if covers_ports { flags::HASH_L4 } else { 0 };
            d.hash = hash;
        }
    }

    /// What receive offload compares of the metadata: receive hash and VLAN tag in one word, zero where there is none
    /// (Linux: `gro_list_prepare`).
    #[inline(always)]
    pub fn receive_key(&self) -> u64 {
        let d = self.descriptor();
        if d.flags & (flags::HASH | flags::VLAN) == 0 {
            return 0;
        }
        let hash = if d.has(flags::HASH) { u64::from(d.hash) } else { 0 };
        let vlan = if d.has(flags::VLAN) { u64::from(d.vlan.tci) | u64::from(d.vlan.tpid) << 16 } else { 0 };
        hash | vlan << 32
    }

    /// The receive hash, or 0 without one, of a packet that came off a wire as it is: not a super-packet, no checksum left to be
    /// filled in, no VLAN tag outside the bytes. Then it is all of [`Packet::receive_key`].
    #[inline(always)]
    pub fn plain_receive_key(&self) -> Option<u32> {
        let d = self.descriptor();
        if d.flags & (flags::GSO | flags::TX_CHECKSUM | flags::VLAN) != 0 {
            return None;
        }
        Some(if d.has(flags::HASH) { d.hash } else { 0 })
    }

    /// What receive offload compares of the metadata in one word: see [`ReceiveState`].
    #[inline(always)]
    pub fn receive_state(&self) -> ReceiveState {
        ReceiveState(self.descriptor().receive_word() & ReceiveState::COMPARED)
    }

    /// True if the packet came off a wire as it is: not a super-packet, no checksum left to be filled in.
    #[inline(always)]
    pub fn is_as_received(&self) -> bool {
        self.descriptor().flags & (flags::GSO | flags::TX_CHECKSUM) == 0
    }

    /// Where the headers are, if somebody recorded it.
    #[inline(always)]
    pub fn offsets(&self) -> Option<HeaderOffsets> {
        let d = self.descriptor();
        d.has(flags::OFFSETS).then_some(HeaderOffsets {
            network: d.network,
            transport: d.transport,
            inner_mac: d.inner_mac,
            inner_network: d.inner_network,
            inner_transport: d.inner_transport,
        })
    }

    /// Records where the headers are. Adding or removing bytes at the front keeps the offsets true, or forgets them
    /// if a recorded header was removed.
    #[inline(always)]
    pub fn set_offsets(&mut self, offsets: Option<HeaderOffsets>) {
        let d = self.descriptor_mut();
        match offsets {
            Some(o) => {
                d.flags |= flags::OFFSETS;
                d.network = o.network;
                d.transport = o.transport;
                d.inner_mac = o.inner_mac;
                d.inner_network = o.inner_network;
                d.inner_transport = o.inner_transport;
            }
            None => d.clear_offsets(),
        }
    }

    /// The socket the packet belongs to: any number its owner chose (Linux: `skb->sk`).
    #[inline(always)]
    pub fn flow_id(&self) -> Option<u64> {
        let d = self.descriptor();
        d.has(flags::FLOW).then_some(d.flow)
    }

    /// Sets the socket the packet belongs to.
    #[inline(always)]
    pub fn set_flow_id(&mut self, flow: Option<u64>) {
        let d = self.descriptor_mut();
        d.flags &= !flags::FLOW;
        if let Some(flow) = flow {
            d.flags |= flags::FLOW;
            d.flow = flow;
        }
    }

    /// Priority for queueing (Linux: `skb->priority`), 0 unless set.
    #[inline(always)]
    pub fn priority(&self) -> u32 {
        let d = self.descriptor();
        if d.has(flags::PRIORITY) { d.priority } else { 0 }
    }

    /// Sets the priority for queueing.
    #[inline(always)]
    pub fn set_priority(&mut self, priority: u32) {
        let d = self.descriptor_mut();
        d.flags |= flags::PRIORITY;
        d.priority = priority;
    }

    /// The device queue that the packet came from, or that it was mapped to.
    #[inline(always)]
    pub fn queue(&self) -> Option<u16> {
        let d = self.descriptor();
        d.has(flags::QUEUE).then_some(d.queue)
    }

    /// Maps the packet to a device queue.
    #[inline(always)]
    pub fn set_queue(&mut self, queue: Option<u16>) {
        let d = self.descriptor_mut();
        d.flags &= !flags::QUEUE;
        if let Some(queue) = queue {
            d.flags |= flags::QUEUE;
            d.queue = queue;
        }
    }

    /// When the packet was received. One field serves receive and departure time, as in Linux (`skb->tstamp`): setting
    /// one clears the other.
    #[inline(always)]
    pub fn timestamp(&self) -> Option<Instant> {
        let d = self.descriptor();
        d.has(flags::RECEIVE_TIME).then(|| Instant::from_nanos(d.time))
    }

    /// Records when the packet was received.
    #[inline(always)]
    pub fn set_timestamp(&mut self, at: Option<Instant>) {
        self.set_time(at, flags::RECEIVE_TIME);
    }

    /// Earliest departure time: no qdisc or driver sends the packet before it.
    #[inline(always)]
    pub fn departure(&self) -> Option<Instant> {
        let d = self.descriptor();
        d.has(flags::DEPARTURE).then(|| Instant::from_nanos(d.time))
    }

    /// Sets the earliest departure time; clears a receive time.
    #[inline(always)]
    pub fn set_departure(&mut self, at: Option<Instant>) {
        self.set_time(at, flags::DEPARTURE);
    }

    #[inline(always)]
    fn set_time(&mut self, at: Option<Instant>, flag: u16) {
        let d = self.descriptor_mut();
        match at {
            Some(at) => {
                d.flags = d.flags & !(flags::RECEIVE_TIME | flags::DEPARTURE) | flag;
                d.time = at.as_nanos();
            }
            None => d.flags &= !flag,
        }
    }

    /// The pacing rate of the packet's socket (Linux: `sk_pacing_rate`); `None` is unlimited.
    #[inline(always)]
    pub fn pacing_rate(&self) -> Option<Rate> {
        let d = self.descriptor();
        d.has(flags::PACING_RATE).then(|| Rate::from_bytes_per_sec(d.pacing_rate))
    }

    /// Sets the pacing rate of the packet's socket; `None` is unlimited.
    #[inline(always)]
    pub fn set_pacing_rate(&mut self, rate: Option<Rate>) {
        let d = self.descriptor_mut();
        d.flags &= !flags::PACING_RATE;
        if let Some(rate) = rate {
            d.flags |= flags::PACING_RATE;
            d.pacing_rate = rate.bytes_per_sec();
        }
    }

    /// Bytes of memory the packet keeps busy: buffers and descriptors, not its length (Linux: `skb->truesize`).
    #[inline(always)]
    pub fn truesize(&self) -> usize {
        self.descriptor().truesize as usize
    }

    /// Overrides the accounted memory, for instance with the era's per-packet overhead in a simulation.
    #[inline(always)]
    pub fn set_truesize(&mut self, bytes: usize) {
        self.descriptor_mut().truesize = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// A copy of all metadata.
    pub fn metadata(&self) -> Metadata {
        let mut copy = Descriptor::bare(core::ptr::null());
        copy.copy_metadata(self.descriptor());
        Metadata(copy)
    }

    /// Replaces all metadata by a copy taken earlier, of this packet or of another.
    #[inline(always)]
    pub fn set_metadata(&mut self, metadata: &Metadata) {
        self.descriptor_mut().copy_metadata(&metadata.0);
    }

    /// Copies all metadata of `other`, but not its bytes and truesize.
    pub fn copy_metadata(&mut self, other: &Self) {
        self.descriptor_mut().copy_metadata(other.descriptor());
    }
}
