//! What a family's descriptors look like.

use super::Words;
use netcore::{Packet, ReceiveChecksum, Refusal};

/// Bytes of rewritten headers that a transmit slot has room for. Every family's header length field ends at 255 or below
/// it for what is sent (82576: MACLEN 127 + IPLEN 511 would allow more; no stack sends that).
pub const HEADER_ROOM: usize = 256;

/// How one packet is described to the hardware.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransmitPlan {
    /// A context descriptor in front, if the context the hardware remembers does not serve.
    pub context: Option<Words>,
    /// The command, type and option bits of every data descriptor. [`TransmitLayout::data`] adds address and length.
    pub data: u64,
    /// Bits of the second word that only the first data descriptor has.
    pub first: u64,
    /// How many bytes at the front were rewritten into the header buffer and are sent from there, in a descriptor of their
    /// own. 0: none.
    pub header: u16,
    /// Most bytes of the first data descriptor.
    pub first_limit: u32,
    /// Most bytes of any data descriptor.
    pub limit: u32,
    /// Bytes at the end that get a descriptor of their own. 0: none.
    pub cut: u8,
    /// Shorter frames are padded with zeros in software up to this many bytes. 0: 60, the shortest frame of Ethernet, which
    /// suits every part; parts whose own padding can be trusted need less.
    pub min_frame: u8,
}

/// The transmit descriptors of a family, and the context that one queue of the hardware remembers.
pub trait TransmitLayout: Send + 'static {
    /// Most descriptors one packet may have.
    const MAX_DESCRIPTORS: u16;
    /// The done bit in the second word of a written-back descriptor.
    const DONE: u64 = 1 << 32;

    /// Decides how `packet` is sent. Headers that the hardware wants changed (segmentation) are written into `header`, a copy
    /// that starts empty.
    ///
    /// # Errors
    /// What the hardware cannot do; the packet stays with the caller.
    fn plan(&mut self, packet: &Packet, header: &mut [u8; HEADER_ROOM]) -> Result<TransmitPlan, Refusal>;

    /// The packet of the last [`TransmitLayout::plan`] was not queued after all: forget the context it would have loaded.
    fn forget(&mut self);

    /// A data descriptor. `end`: the last of its packet. `report`: write back when done (only with `end`).
    fn data(plan: &TransmitPlan, iova: u64, len: u32, end: bool, report: bool) -> Words;
}

/// Why hardware says that a frame is bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ReceiveFault {
    /// Frame check sequence wrong.
    Crc,
    /// Symbol, sequence, alignment or carrier extension error.
    Symbol,
    /// The receive data path reported an error.
    Data,
    /// Length field wrong, or the frame too short or too long.
    Length,
}

/// One written-back receive descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Bytes in the buffer.
    pub len: u16,
    /// The last buffer of its packet. All fields below are valid in that one only.
    pub end: bool,
    /// The index of the descriptor that continues the packet, if it is not the next one (receive side coalescing).
    pub continues: Option<u16>,
    /// The frame is bad.
    pub fault: Option<ReceiveFault>,
    /// The VLAN tag that was removed.
    pub vlan: Option<u16>,
    /// What was verified.
    pub checksum: ReceiveChecksum,
    /// The receive hash and whether it covers ports.
    pub hash: Option<(u32, bool)>,
    /// A checksum was verified and is wrong. The packet is delivered, unverified, and counted.
    pub checksum_error: bool,
    /// Segments that hardware merged into this packet, and the bytes of payload in each: a super-packet. 0: none.
    pub merged: u16,
}

/// The receive descriptors of a family.
pub trait ReceiveLayout: Send + 'static {
    /// The done bit in the second word.
    const DONE: u64;

    /// A descriptor that offers the buffer at `iova`.
    fn arm(&self, iova: u64) -> Words;

    /// Understands a written-back descriptor.
    fn parse(&self, words: Words) -> Received;

    /// Finishes a packet that hardware merged ([`Received::merged`]): marks it as a super-packet. Does nothing for parts
    /// that merge nothing.
    fn finish_merged(&self, packet: &mut Packet, received: &Received) {
        let _ = (packet, received);
    }
}
