//! [`XmitPolicy`]: which member of a bond carries a packet.

use crate::driver::LinkState;
use crate::packet::{Burst, Packet};
use alloc::vec::Vec;

/// What a policy knows about a member of the bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The member's number, stable while it belongs to the bond.
    pub id: u16,
    /// True if the member may carry data now: link up past its delays and, in 802.3ad, distributing.
    pub active: bool,
    /// Its link.
    pub link: LinkState,
}

/// Which member of the bond carries this packet.
///
/// The answer depends on the packet, the members and the policy's own counter alone, and is given for any packet:
/// super-packets, fragments, frames that are not IP.
pub trait XmitPolicy: Send {
    /// Index into `members` of the one that carries `packet`; `None` if none is active.
    fn select(&mut self, packet: &Packet, members: &[Member]) -> Option<usize>;

    /// The name in `xmit_hash_policy` or `mode`.
    fn name(&self) -> &'static str;

    /// Answers for a whole burst at once, one entry per packet in `chosen`.
    fn select_burst(&mut self, burst: &Burst, members: &[Member], chosen: &mut Vec<Option<usize>>) {
        chosen.clear();
        chosen.extend(burst.iter().map(|packet| self.select(packet, members)));
    }
}
