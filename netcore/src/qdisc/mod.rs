//! [`Qdisc`]: a packet scheduler.

mod fifo;

pub use fifo::{Fifo, FifoLimit};

use crate::packet::{Burst, Packet};
use crate::time::Instant;
use alloc::string::String;
use alloc::vec::Vec;

/// Why a qdisc dropped a packet (Linux: `enum skb_drop_reason`, `QDISC_*`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// The qdisc as a whole is full (`QDISC_OVERLIMIT`).
    OverLimit,
    /// The packet's flow is full (`FQ_FLOW_LIMIT`).
    FlowLimit,
    /// The departure time is too far in the future (`FQ_HORIZON_LIMIT`).
    Horizon,
    /// The priority band is full (`FQ_BAND_LIMIT`).
    BandLimit,
    /// An active queue management algorithm decided so (`QDISC_CONGESTED`).
    Congested,
    /// The packet is longer than a token bucket ever holds.
    TooLong,
    /// The qdisc was reset, or changed to a smaller limit.
    Reset,
    /// The device queue below was stopped or went away.
    DeviceDown,
}

impl DropReason {
    /// The name in counters and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OverLimit => "overlimit",
            Self::FlowLimit => "flow_limit",
            Self::Horizon => "horizon",
            Self::BandLimit => "band_limit",
            Self::Congested => "congested",
            Self::TooLong => "too_long",
            Self::Reset => "reset",
            Self::DeviceDown => "device_down",
        }
    }
}

/// A packet that a qdisc did not keep.
#[derive(Debug)]
pub struct Dropped {
    /// The packet.
    pub packet: Packet,
    /// Why.
    pub reason: DropReason,
}

/// Packets that a qdisc dropped, given back to the caller. The storage is reused.
#[derive(Debug, Default)]
pub struct Drops {
    list: Vec<Dropped>,
}

impl Drops {
    /// An empty list.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, packet: Packet, reason: DropReason) {
        self.list.push(Dropped { packet, reason });
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, first dropped first.
    #[inline]
    pub fn as_slice(&self) -> &[Dropped] {
        &self.list
    }

    /// Takes all of them out.
    pub fn drain(&mut self) -> impl Iterator<Item = Dropped> + '_ {
        self.list.drain(..)
    }
}

/// What a dequeue gave.
#[derive(Debug)]
pub enum Dequeue {
    /// The next packet.
    Packet(Packet),
    /// Nothing is queued.
    Empty,
    /// Packets are queued, but none may leave before this time.
    Throttled(Instant),
}

/// Why a qdisc refused options. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QdiscError {
    /// No such option.
    #[error("{qdisc}: unknown option \"{option}\"; allowed are {allowed}")]
    UnknownOption {
        /// The qdisc's name.
        qdisc: &'static str,
        /// What was given.
        option: String,
        /// The options there are.
        allowed: &'static str,
    },
    /// An option needs a value.
    #[error("{qdisc}: option \"{option}\" needs a value: {allowed}")]
    MissingValue {
        /// The qdisc's name.
        qdisc: &'static str,
        /// The option.
        option: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A value is malformed or out of range.
    #[error("{qdisc}: \"{value}\" is no valid value of \"{option}\": {allowed}")]
    InvalidValue {
        /// The qdisc's name.
        qdisc: &'static str,
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// The counters that `tc -s qdisc` shows for every qdisc.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct QdiscStatistics {
    /// Bytes dequeued.
    pub bytes: u64,
    /// Wire packets dequeued; a super-packet counts as its segments, as in Linux (`qdisc_bstats_update`).
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// How often a packet had to wait although the device was ready.
    pub overlimits: u64,
    /// How often a packet came back from the device.
    pub requeues: u64,
    /// Packets queued now.
    pub qlen: u64,
    /// Bytes queued now.
    pub backlog: u64,
}

/// A packet scheduler: enqueue, dequeue at a time, when next.
///
/// Between two calls, packets enqueued = packets dequeued + packets dropped + packets queued. A packet that is dropped,
/// the one being enqueued or another, is given back in `drops` with the reason.
pub trait Qdisc: Send {
    /// Takes a packet. Packets that had to make room, or the packet itself, are added to `drops`.
    fn enqueue(&mut self, packet: Packet, now: Instant, drops: &mut Drops);

    /// The next packet that may leave at `now`. A time that goes backwards is taken as the latest one seen.
    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Dequeue;

    /// Packets queued (a super-packet counts as one).
    fn len(&self) -> usize;

    /// Bytes queued.
    fn backlog(&self) -> usize;

    /// The counters that every qdisc has.
    fn statistics(&self) -> QdiscStatistics;

    /// The name that `tc` uses.
    fn name(&self) -> &'static str;

    /// Drops everything queued into `drops` with [`DropReason::Reset`].
    fn reset(&mut self, drops: &mut Drops);

    /// True if nothing is queued.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves up to `budget` packets that may leave at `now` to the back of `burst`. What stopped it is returned: `Empty`,
    /// `Throttled`, or `None` if the budget did.
    fn dequeue_burst(&mut self, burst: &mut Burst, budget: usize, now: Instant, drops: &mut Drops) -> Option<Dequeue> {
        for _ in 0..budget {
            match self.dequeue(now, drops) {
                Dequeue::Packet(packet) => burst.push(packet),
                stopped => return Some(stopped),
            }
        }
        None
    }

    /// Changes options of a live qdisc, in `tc` syntax: `["limit", "100", "pacing"]`. Packets that no longer fit are added
    /// to `drops`.
    ///
    /// # Errors
    /// [`QdiscError`]; nothing was changed.
    fn change(&mut self, options: &[&str], now: Instant, drops: &mut Drops) -> Result<(), QdiscError> {
        let _ = (now, drops);
        match options.first() {
            None => Ok(()),
            Some(option) => {
                Err(QdiscError::UnknownOption { qdisc: self.name(), option: String::from(*option), allowed: "none" })
            }
        }
    }

    /// The options in `tc` syntax, as `tc qdisc show` prints them.
    fn options(&self) -> String {
        String::new()
    }

    /// The qdisc's own counters, by the names that `tc -s` prints.
    fn extended_statistics(&self, statistics: &mut crate::Statistics) {
        let _ = statistics;
    }
}
