//! A member and what the bond knows of it.

use crate::options::MAX_ARP_TARGETS;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use netcore::{Burst, Driver, Instant, LinkState, MacAddress, Member};

/// How the link monitor sees a member (Linux: `BOND_LINK_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MemberLink {
    /// In use.
    Up,
    /// Seen down; `downdelay` runs.
    Fail,
    /// Given up.
    Down,
    /// Seen up again; `updelay` runs.
    Back,
}

impl fmt::Display for MemberLink {
    /// As `/proc/net/bonding` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Fail => "going down",
            Self::Down => "down",
            Self::Back => "going back",
        })
    }
}

/// Counters of one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberCounters {
    /// Packets handed to the member's driver, or waiting for room there.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets that were meant for this member and lost: its link went away while they waited, or its driver refused them.
    pub tx_dropped: u64,
    /// Packets from the member that the bond delivered.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Packets that came in while the member was inactive.
    pub rx_nohandler: u64,
    /// Control frames (LACP, ARP, learning) that the driver had no room for.
    pub control_dropped: u64,
    /// Times that the link was given up.
    pub link_failures: u32,
}

/// What can be asked of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemberInfo<'a> {
    /// Number, stable as long as it is a member.
    pub id: u16,
    /// Name.
    pub name: &'a str,
    /// How the link monitor sees it.
    pub link: MemberLink,
    /// What its driver says of the link.
    pub state: LinkState,
    /// It may send data.
    pub active: bool,
    /// What comes in on it is delivered.
    pub receives: bool,
    /// Address that its frames have or would have as their source.
    pub address: MacAddress,
    /// Address before it became a member.
    pub permanent_address: MacAddress,
    /// Preference among members (`prio`); more is better.
    pub priority: i32,
    /// Transmit queue of the bond that is bound to this member; 0 is none.
    pub queue_id: u16,
    /// Port number of LACP, in an 802.3ad bond.
    pub port: Option<u16>,
    /// Counters.
    pub counters: MemberCounters,
}

pub(crate) struct Slave<D> {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) driver: D,
    pub(crate) permanent: MacAddress,
    pub(crate) original_mtu: usize,
    /// What it sends as; in balance-tlb its hardware listens to the bond's address all the same.
    pub(crate) address: MacAddress,
    pub(crate) link: MemberLink,
    pub(crate) proposed: Option<MemberLink>,
    /// Intervals of the link check that a delay still lasts.
    pub(crate) delay: u32,
    /// The driver's word, as of the last poll.
    pub(crate) seen: LinkState,
    /// Does not send.
    pub(crate) backup: bool,
    /// What comes in is not delivered.
    pub(crate) inactive: bool,
    pub(crate) priority: i32,
    pub(crate) queue_id: u16,
    pub(crate) port: Option<u16>,
    pub(crate) last_rx: Option<Instant>,
    pub(crate) last_tx: Option<Instant>,
    pub(crate) last_link_up: Option<Instant>,
    pub(crate) target_rx: [Option<Instant>; MAX_ARP_TARGETS],
    /// Packets that wait for room, one list per transmit queue.
    pub(crate) stages: Vec<Burst>,
    /// Bytes per second that balance-tlb has given it.
    pub(crate) load: u64,
    /// Packets before these were counted as sent and lost.
    pub(crate) counters: MemberCounters,
}

impl<D: Driver> Slave<D> {
    /// Carrier (Linux: `bond_slave_is_up`).
    pub(crate) const fn is_up(&self) -> bool {
        self.seen.up
    }

    /// May send data (Linux: `bond_slave_can_tx`).
    pub(crate) fn can_send(&self) -> bool {
        self.seen.up && self.link == MemberLink::Up && !self.backup
    }

    pub(crate) fn view(&self) -> Member {
        Member { id: self.id, active: self.can_send(), link: self.seen }
    }

    pub(crate) fn info(&self) -> MemberInfo<'_> {
        MemberInfo {
            id: self.id,
            name: &self.name,
            link: self.link,
            state: self.seen,
            active: self.can_send(),
            receives: !self.inactive,
            address: self.address,
            permanent_address: self.permanent,
            priority: self.priority,
            queue_id: self.queue_id,
            port: self.port,
            counters: self.counters,
        }
    }

    /// Speed in Mbit/s, 0 if unknown.
    pub(crate) fn speed(&self) -> u32 {
        self.seen.speed_mbps.unwrap_or(0)
    }
}
