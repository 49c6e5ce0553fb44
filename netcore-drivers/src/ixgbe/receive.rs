//! Receive descriptors: the advanced ones, with merged packets.

use crate::nic::advanced::{IxgbeBits, Receive, Switches, rxd};
use crate::nic::offload::{self, Transport};
use crate::ring::{ReceiveLayout, Received, Words};
use netcore::{Gso, GsoKind, Packet};

/// First word: frames that were merged into the packet and begin in this descriptor, beyond the first.
const RSCCNT_SHIFT: u32 = 17;
/// Second word of a descriptor that does not end its packet: the one that continues it.
const NEXTP_SHIFT: u32 = 4;

/// Receive descriptors of one queue.
#[derive(Debug)]
pub struct Descriptors {
    plain: Receive<IxgbeBits>,
    merges: bool,
}

impl Descriptors {
    /// The layout with these switches; `merges`: hardware may merge frames (RSC).
    pub const fn new(switches: Switches, merges: bool) -> Self {
        Self { plain: Receive::new(switches), merges }
    }
}

impl ReceiveLayout for Descriptors {
    const DONE: u64 = rxd::DD as u64;

    #[inline(always)]
    fn arm(&self, iova: u64) -> Words {
        self.plain.arm(iova)
    }

    #[inline(always)]
    fn parse(&self, words: Words) -> Received {
        let mut received = self.plain.parse(words);
        if self.merges {
            received.merged = (words[0] >> RSCCNT_SHIFT & 0xf) as u16;
            if !received.end {
                received.continues = Some((words[1] >> NEXTP_SHIFT) as u16);
            }
        }
        received
    }

    #[cold]
    fn finish_merged(&self, packet: &mut Packet, received: &Received) {
        let Ok(layers) = offload::layers(packet, None) else { return };
        if layers.protocol != Some(Transport::Tcp) {
            return;
        }
        let header = layers.header_len();
        let Some(payload) = packet.len().checked_sub(header).filter(|payload| *payload > 0) else { return };
        repair_length(packet, usize::from(layers.network), layers.version);
        let segments = received.merged.saturating_add(1);
        let size = payload.div_ceil(segments.into()).min(usize::from(u16::MAX)) as u16;
        let kind = if layers.version == 4 { GsoKind::TCPV4 } else { GsoKind::TCPV6 };
        packet.set_gso(Some(Gso { kind, size, segments }));
    }
}

/// The length in the IP header is that of the whole packet; no source says whether hardware writes it, so it is checked.
fn repair_length(packet: &mut Packet, network: usize, version: u8) {
    let behind = packet.len() - network;
    let (at, value) = if version == 4 { (network + 2, behind) } else { (network + 4, behind.saturating_sub(40)) };
    let value = (value.min(usize::from(u16::MAX)) as u16).to_be_bytes();
    let Ok(head) = packet.head_mut() else { return };
    let Some(field) = head.get_mut(at..at + 2) else { return };
    if *field == value {
        return;
    }
    let old = u16::from_be_bytes([field[0], field[1]]);
    field.copy_from_slice(&value);
    if version == 4
        && let Some(sum) = head.get_mut(network + 10..network + 12)
    {
        // RFC 1624: the header checksum follows the length.
        let before = !u16::from_be_bytes([sum[0], sum[1]]);
        let changed = netcore::checksum::Sum::from_word(before).plus_word(!old).plus_word(u16::from_be_bytes(value));
        sum.copy_from_slice(&changed.finish().to_be_bytes());
    }
}
