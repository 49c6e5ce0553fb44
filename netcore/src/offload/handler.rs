//! [`GroHandler`]: one protocol's rule for merging.

use crate::packet::{GsoKind, ReceiveChecksum};

/// The headers and lengths of a packet from one protocol's header on.
#[derive(Clone, Copy, Debug)]
pub struct GroView<'a> {
    /// Bytes in the head segment from this protocol's header on.
    pub bytes: &'a [u8],
    /// Bytes of the packet from this protocol's header on, further segments included.
    pub len: usize,
    /// Whether all checksums of the layers outside this one are known to be right, and what the device said.
    pub checksum: ReceiveChecksum,
    /// True inside a UDP tunnel.
    pub encapsulated: bool,
}

/// What follows a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GroNext {
    /// The payload that is merged.
    Payload,
    /// A frame with an Ethernet header.
    Ethernet,
    /// A packet of this EtherType.
    EtherType(u16),
    /// A packet of this IP protocol number, inside the IP header last seen.
    IpProtocol(u8),
}

/// A header that a handler understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroHeader {
    /// Its length in bytes, options included.
    pub len: usize,
    /// What follows it.
    pub next: GroNext,
}

/// A held packet and a new one of the same flow.
#[derive(Clone, Copy, Debug)]
pub struct GroPair<'a> {
    /// This protocol's header in the held packet (that of its first segment).
    pub held: &'a [u8],
    /// This protocol's header in the new packet.
    pub new: &'a [u8],
    /// Payload bytes of the held packet so far.
    pub held_payload: usize,
    /// Payload bytes of the held packet's first segment.
    pub segment_size: usize,
    /// Payload bytes of the new packet.
    pub new_payload: usize,
    /// Segments in the held packet.
    pub segments: u16,
}

/// What to do with a new packet of a held packet's flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroMerge {
    /// Merge it; the held packet may grow further.
    Merge,
    /// Merge it and deliver the result.
    MergeAndDeliver,
    /// Deliver the held packet, then hold the new one.
    DeliverHeld(GroEnd),
    /// Deliver the held packet, then the new one.
    DeliverBoth(GroEnd),
}

/// Why an aggregate ended, or why a packet was never a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GroEnd {
    /// The poll ended.
    EndOfPoll,
    /// A newer flow needed the place.
    Evicted,
    /// It was held past the flush timeout.
    Timeout,
    /// PSH was set.
    Push,
    /// FIN, SYN, RST or URG was set.
    Flags,
    /// The last segment was shorter than the others.
    Short,
    /// The next segment was longer than the others.
    Longer,
    /// The next segment was not the next in sequence.
    Sequence,
    /// The acknowledgement number, window or flags differed.
    AckOrWindow,
    /// TCP options differed.
    Options,
    /// TTL, TOS, DF, traffic class or hop limit differed.
    IpFields,
    /// The IPv4 identification neither stayed nor incremented.
    IpId,
    /// The size limit was reached.
    Size,
    /// The segment count limit was reached.
    Count,
    /// There was no payload.
    Empty,
    /// A checksum was wrong.
    BadChecksum,
    /// The tunnel's checksum gate refused it (rules of 2015).
    TunnelGate,
    /// Not a protocol, or not a form of it, that merges.
    NotMergeable,
    /// The packet is damaged, padded or fragmented.
    Malformed,
}

impl GroEnd {
    /// All reasons, in the order of [`GroEnd::index`].
    pub const ALL: [Self; 19] = [
        Self::EndOfPoll,
        Self::Evicted,
        Self::Timeout,
        Self::Push,
        Self::Flags,
        Self::Short,
        Self::Longer,
        Self::Sequence,
        Self::AckOrWindow,
        Self::Options,
        Self::IpFields,
        Self::IpId,
        Self::Size,
        Self::Count,
        Self::Empty,
        Self::BadChecksum,
        Self::TunnelGate,
        Self::NotMergeable,
        Self::Malformed,
    ];

    /// Position in [`GroEnd::ALL`].
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in counters and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndOfPoll => "end_of_poll",
            Self::Evicted => "evicted",
            Self::Timeout => "timeout",
            Self::Push => "push",
            Self::Flags => "flags",
            Self::Short => "short",
            Self::Longer => "longer",
            Self::Sequence => "sequence",
            Self::AckOrWindow => "ack_or_window",
            Self::Options => "options",
            Self::IpFields => "ip_fields",
            Self::IpId => "ip_id",
            Self::Size => "size",
            Self::Count => "count",
            Self::Empty => "empty",
            Self::BadChecksum => "bad_checksum",
            Self::TunnelGate => "tunnel_gate",
            Self::NotMergeable => "not_mergeable",
            Self::Malformed => "malformed",
        }
    }
}

/// One protocol's rule for merging a packet into those held.
///
/// Handlers form a chain that mirrors the headers: each says how long its header is and what follows. The engine asks
/// every handler of the chain whether a held packet is of the same flow, and the last one whether to merge. The built-in
/// protocols are one fused path that never calls through this trait; it is how a user adds a protocol.
pub trait GroHandler: Send + Sync {
    /// Checks the header at the start of `view`.
    ///
    /// # Errors
    /// The reason why the packet must go up alone. A handler must refuse whatever it has not verified.
    fn parse(&self, view: &GroView<'_>) -> Result<GroHeader, GroEnd>;

    /// Whether two headers that [`GroHandler::parse`] accepted belong to one flow.
    fn same_flow(&self, held: &[u8], new: &[u8]) -> bool;

    /// Whether a new packet of the flow merges, as far as this header goes. For a header that others follow,
    /// [`GroMerge::Merge`] leaves the decision to them.
    fn merge(&self, pair: &GroPair<'_>) -> GroMerge;

    /// Makes the header of a merged packet true: `len` is the bytes from this header to the end of the packet.
    fn complete(&self, header: &mut [u8], len: usize, segments: u16);

    /// Makes the header of segment `index` of a super-packet true: the inverse of [`GroHandler::complete`].
    fn segment(&self, header: &mut [u8], len: usize, index: u16);

    /// Segmentation kind to add to a merged packet; empty for protocols that a device's segmentation does not know.
    fn gso_kind(&self) -> GsoKind {
        GsoKind::empty()
    }
}
