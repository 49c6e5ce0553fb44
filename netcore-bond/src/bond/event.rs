//! What a bond tells its caller.

use super::MemberLink;
use alloc::collections::VecDeque;

/// Something that changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BondEvent {
    /// A member was added.
    Added {
        /// Its number.
        member: u16,
    },
    /// A member was removed.
    Removed {
        /// Its number.
        member: u16,
    },
    /// The link monitor sees a member's link otherwise.
    Link {
        /// The member's number.
        member: u16,
        /// Its link.
        link: MemberLink,
    },
    /// A member may send data from now on, or may not.
    Sends {
        /// The member's number.
        member: u16,
        /// It may.
        sends: bool,
    },
    /// Another member is the active one.
    Active {
        /// Its number; `None` if there is none.
        member: Option<u16>,
    },
    /// Another LACP aggregator is the active one.
    Aggregator {
        /// Its identifier; `None` if there is none.
        aggregator: Option<u16>,
    },
    /// The bond has carrier, or has not.
    Carrier {
        /// It has.
        up: bool,
    },
    /// Peers were told where the bond's addresses are now (Linux: `NETDEV_NOTIFY_PEERS`). A stack with addresses that the bond
    /// does not know tells of them now.
    NotifyPeers,
    /// Multicast groups are joined anew (Linux: `NETDEV_RESEND_IGMP`). A stack with groups that the bond does not know reports
    /// them now.
    ResendIgmp,
    /// A member hears LACPDUs of this bond: it is connected to another member.
    Loopback {
        /// Its number.
        member: u16,
    },
}

/// Events that wait to be asked for; the oldest are dropped and counted when there are too many.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<BondEvent>,
    pub(super) lost: u64,
}

impl Events {
    const MOST: usize = 1024;

    pub(super) fn push(&mut self, event: BondEvent) {
        if self.queue.len() == Self::MOST {
            self.queue.pop_front();
            self.lost += 1;
        }
        self.queue.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<BondEvent> {
        self.queue.pop_front()
    }
}
