//! What is known about a packet's checksums while its headers are walked (Linux: `NAPI_GRO_CB(skb)->csum*`).

use netcore::checksum::{Sum, sum};
use netcore::offload::GroEnd;
use netcore::{Packet, ReceiveChecksum};

/// The device's verdict, used up header by header from the outermost on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// Checksums the device verified that no header has claimed yet (`csum_cnt`).
    count: u8,
    /// Sum of everything from the current header on, if known (`csum`, `csum_valid`).
    known: Option<Sum>,
    /// Checksums in a row found right beyond the device's.
    gained: u8,
}

impl Verdict {
    #[inline(always)]
    pub(super) fn new(packet: &Packet) -> Self {
        if packet.transmit_checksum().is_some() {
            // Made on this machine: the checksums are still to be filled in, so there is nothing to verify.
            return Self { count: u8::MAX, known: None, gained: 0 };
        }
        let (count, known) = match packet.receive_checksum() {
            ReceiveChecksum::None => (0, None),
            ReceiveChecksum::Unnecessary { levels } => (levels, None),
            ReceiveChecksum::Complete(word) => (0, Some(Sum::from_word(word))),
        };
        Self { count, known, gained: 0 }
    }

    /// Walks over a header that does not sum to zero by itself. Headers have even lengths.
    #[inline(always)]
    pub(super) fn pull(&mut self, header: &[u8]) {
        if let Some(known) = self.known {
            self.known = Some(known.minus(sum(header)));
        }
    }

    /// True if nothing vouches for the bytes from here on: the gate of tunnels.
    #[inline(always)]
    pub(super) fn knows_nothing(&self) -> bool {
        self.count == 0 && self.known.is_none()
    }

    /// Verifies the checksum of the transport header at `offset` with value `field`, in software if nothing vouches for
    /// it. A zero `field` stands for "none" if `zero_okay`.
    #[inline(always)]
    pub(super) fn validate(
        &mut self,
        packet: &Packet,
        offset: usize,
        pseudo: impl FnOnce() -> Sum,
        zero_okay: bool,
        field: u16,
    ) -> Result<(), GroEnd> {
        if self.count > 0 {
            self.count -= 1;
            return Ok(());
        }
        if !(zero_okay && field == 0) {
            self.verify(packet, offset, pseudo())?;
        }
        self.gained += 1;
        Ok(())
    }

    #[inline]
    fn verify(&mut self, packet: &Packet, offset: usize, pseudo: Sum) -> Result<(), GroEnd> {
        if self.known.is_some_and(|known| pseudo.plus(known).is_valid()) {
            return Ok(());
        }
        let computed = packet.sum_from(offset);
        self.known = Some(computed);
        if pseudo.plus(computed).is_valid() { Ok(()) } else { Err(GroEnd::BadChecksum) }
    }

    /// After a non-zero UDP checksum was found right, the sum from its header on is the complement of the pseudo-header
    /// (Linux: `skb_gro_checksum_try_convert`).
    #[inline(always)]
    pub(super) fn convert(&mut self, pseudo: impl FnOnce() -> Sum) {
        if self.knows_nothing() {
            self.known = Some(Sum::ZERO.minus(pseudo()));
        }
    }

    /// Checksums in a row found right beyond the device's.
    #[inline(always)]
    pub(super) fn gained(&self) -> u8 {
        self.gained
    }
}

/// Raises a packet's own verdict by what was found right (Linux: `skb_gro_incr_csum_unnecessary`).
#[inline(always)]
pub(super) fn raise(packet: &mut Packet, gained: u8) {
    if gained == 0 {
        return;
    }
    let levels = match packet.receive_checksum() {
        ReceiveChecksum::None => 0,
        ReceiveChecksum::Unnecessary { levels } => levels,
        // A complete sum says more than a number of levels.
        ReceiveChecksum::Complete(_) => return,
    };
    packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: (levels + gained).min(4) });
}
