//! Advanced descriptors: what igb and ixgbe share (82576 datasheet 7.1.5 and 7.2.2; 82599 datasheet 7.1.6 and 7.2.3).
//!
//! Transmit descriptors are the same in both families. Receive descriptors differ in the places of three error bits
//! ([`Flavour`]), and ixgbe merges.

mod receive;
mod transmit;
mod tunnel;

pub use receive::{Flavour, IgbBits, IxgbeBits, Receive, Switches};
pub use transmit::{Abilities, Contexts, Transmit};

/// Bits of transmit descriptors, second word.
pub mod txd {
    /// Context descriptor.
    pub const DTYP_CONTEXT: u64 = 2 << 20;
    /// Data descriptor.
    pub const DTYP_DATA: u64 = 3 << 20;
    /// The packet ends here.
    pub const EOP: u64 = 1 << 24;
    /// Insert the frame check sequence.
    pub const IFCS: u64 = 1 << 25;
    /// Report when done.
    pub const RS: u64 = 1 << 27;
    /// Advanced format.
    pub const DEXT: u64 = 1 << 29;
    /// Insert the tag of the context.
    pub const VLE: u64 = 1 << 30;
    /// Segment.
    pub const TSE: u64 = 1 << 31;
    /// Context: the (outer) network layer is IPv4.
    pub const TUCMD_IPV4: u64 = 1 << 10;
    /// Context: the transport is TCP; neither this nor SCTP: UDP.
    pub const TUCMD_TCP: u64 = 1 << 11;
    /// Context: the transport is SCTP.
    pub const TUCMD_SCTP: u64 = 2 << 11;
    /// Context, and data: slot of the context.
    pub const IDX_SHIFT: u32 = 36;
    /// Context: bytes of transport header.
    pub const L4LEN_SHIFT: u32 = 40;
    /// Context: bytes of payload in a segment.
    pub const MSS_SHIFT: u32 = 48;
    /// Data: insert the IPv4 header checksum.
    pub const IXSM: u64 = 1 << 40;
    /// Data: insert the transport checksum.
    pub const TXSM: u64 = 1 << 41;
    /// Data: bytes of the frame, or of the payload that is segmented; 18 bits.
    pub const PAYLEN_SHIFT: u32 = 46;
}

/// Bits of written-back receive descriptors that both families have, low half of the second word.
pub mod rxd {
    /// Descriptor done.
    pub const DD: u32 = 1 << 0;
    /// The packet ends here.
    pub const EOP: u32 = 1 << 1;
    /// A tag was removed.
    pub const VP: u32 = 1 << 3;
    /// The packet is UDP and its checksum was looked at.
    pub const UDPCS: u32 = 1 << 4;
    /// The transport checksum was verified.
    pub const L4CS: u32 = 1 << 5;
    /// The IPv4 header checksum was verified.
    pub const IPCS: u32 = 1 << 6;
    /// The address filter let it through by its hash, not by its address.
    pub const PIF: u32 = 1 << 7;
    /// CRC error.
    pub const CE: u32 = 1 << 24;
}
