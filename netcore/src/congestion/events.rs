//! What the endpoint tells an algorithm, and what the algorithm tells about itself.

use crate::time::{Instant, Rate};

/// Loss-recovery state of a connection (`enum tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum CaState {
    /// Nothing suspicious.
    #[default]
    Open = 0,
    /// Duplicate acknowledgements or SACK seen, not yet taken for loss.
    Disorder = 1,
    /// The window is being reduced for a reason other than loss (ECN, local congestion).
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// A retransmission timeout.
    Loss = 4,
}

impl CaState {
    /// The state that Linux numbers `value`.
    pub const fn from_linux(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            4 => Self::Loss,
            _ => return None,
        })
    }
}

/// Window events (`enum tcp_ca_event`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum CwndEvent {
    /// First transmission when nothing is in flight. [`super::SendState::last_sent`] still tells the one before.
    TxStart = 0,
    /// The window was restarted after idling (RFC 2861).
    CwndRestart = 1,
    /// The reduction of state [`CaState::Cwr`] or [`CaState::Recovery`] is complete.
    CompleteCwr = 2,
    /// The retransmission timer expired.
    Loss = 3,
    /// A packet arrived without a congestion mark.
    EcnNoCe = 4,
    /// A packet arrived with a congestion mark.
    EcnIsCe = 5,
}

impl CwndEvent {
    /// The event that Linux numbers `value`.
    pub const fn from_linux(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::TxStart,
            1 => Self::CwndRestart,
            2 => Self::CompleteCwr,
            3 => Self::Loss,
            4 => Self::EcnNoCe,
            5 => Self::EcnIsCe,
            _ => return None,
        })
    }
}

bitflags::bitflags! {
    /// What kind of acknowledgement arrived (`enum tcp_ca_ack_event_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AckFlags: u32 {
        /// It was handled in the slow path.
        const SLOWPATH = 1;
        /// It updated the send window.
        const WIN_UPDATE = 2;
        /// It carried an ECN echo.
        const ECE = 4;
    }
}

/// Packets newly acknowledged by one ACK (`struct ack_sample`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckSample {
    /// Packets that left the retransmit queue.
    pub pkts_acked: u32,
    /// Round-trip time in µs, `None` if the ACK gives no unambiguous sample (Karn).
    pub rtt_us: Option<u32>,
    /// Bytes in flight when the newest packet acknowledged was sent.
    pub in_flight: u32,
}

/// All that [`super::CongestionOps::on_ack`] needs to know about one ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckEvent {
    /// Packets newly acknowledged and their RTT.
    pub sample: AckSample,
    /// The kind of ACK.
    pub flags: AckFlags,
    /// Packets cumulatively or selectively acknowledged for the first time; what the window may grow by.
    pub acked: u32,
    /// Whether the window may grow: false in recovery and while the reordering rule of RFC 6675 forbids
    /// (`tcp_may_raise_cwnd`).
    pub may_raise: bool,
}

/// Delivery rate measured between two ACKs (`struct rate_sample`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateSample {
    /// When `prior_delivered` was true.
    pub prior_mstamp: Instant,
    /// Packets delivered when the newest packet acknowledged was sent.
    pub prior_delivered: u64,
    /// Of those, packets delivered with a congestion mark.
    pub prior_delivered_ce: u64,
    /// Packets delivered over the interval; `None` if no sample could be taken.
    pub delivered: Option<u32>,
    /// Of those, packets with a congestion mark.
    pub delivered_ce: u32,
    /// Length of the interval in µs, `None` if not valid.
    pub interval_us: Option<u64>,
    /// The interval measured at the sending side, µs.
    pub snd_interval_us: u32,
    /// The interval measured by arriving ACKs, µs.
    pub rcv_interval_us: u32,
    /// RTT of the newest packet acknowledged, µs.
    pub rtt_us: Option<u32>,
    /// Packets marked lost upon this ACK.
    pub losses: u32,
    /// Packets newly acknowledged, cumulatively or selectively.
    pub acked_sacked: u32,
    /// Packets in flight before this ACK.
    pub prior_in_flight: u32,
    /// End sequence number of the newest packet acknowledged.
    pub last_end_seq: u32,
    /// Whether the sample was taken while the application did not fill the window.
    pub is_app_limited: bool,
    /// Whether the sample comes from a retransmission.
    pub is_retrans: bool,
    /// Whether the ACK was probably delayed.
    pub is_ack_delayed: bool,
}

/// One packet, for algorithms that want per-packet events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketInfo {
    /// First sequence number, or the packet number where packets are numbered.
    pub number: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// When it was last sent.
    pub sent_at: Instant,
    /// [`super::SendState::delivered`] when it was sent.
    pub delivered_at_send: u64,
    /// Whether the application was limiting when it was sent.
    pub app_limited: bool,
    /// Whether it is a retransmission.
    pub retransmission: bool,
}

/// Counts of slow starts that HyStart ended (SNMP: `TCPHystart*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HystartCounters {
    /// Exits by ACK train (`TCPHystartTrainDetect`).
    pub train_detect: u64,
    /// Sum of the windows at those exits (`TCPHystartTrainCwnd`).
    pub train_cwnd: u64,
    /// Exits by delay increase (`TCPHystartDelayDetect`).
    pub delay_detect: u64,
    /// Sum of the windows at those exits (`TCPHystartDelayCwnd`).
    pub delay_cwnd: u64,
}

/// What an algorithm reports for diagnosis (`get_info`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CongestionInfo {
    /// Smallest RTT the algorithm works with, µs.
    pub min_rtt_us: Option<u32>,
    /// Window before the last reduction as the algorithm remembers it (CUBIC: `last_max_cwnd`), segments.
    pub w_max: Option<u32>,
    /// Bandwidth estimate of a rate-based algorithm.
    pub bandwidth: Option<Rate>,
    /// Pacing gain of a rate-based algorithm, 256 = 1.0.
    pub pacing_gain: Option<u32>,
    /// Window gain of a rate-based algorithm, 256 = 1.0.
    pub cwnd_gain: Option<u32>,
    /// Slow starts ended by HyStart.
    pub hystart: HystartCounters,
}
