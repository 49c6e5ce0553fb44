//! The sending side: what was written, what is in flight, what may go next.

pub(crate) mod below;
pub(crate) mod buffer;
pub(crate) mod chrono;
mod defer;
mod idle;
mod pacing;
pub(crate) mod queue;
mod sizing;
mod timer;
mod transmit;
mod user;

use crate::config::Config;
use crate::seq::{ORIGIN, SeqSpace};
use alloc::collections::VecDeque;
use below::Below;
use buffer::SendBuffer;
use chrono::Chrono;
use netcore::Instant;
use queue::RetransmitQueue;
pub(crate) use transmit::Purpose;

/// Everything about our stream.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) space: SeqSpace,
    /// First position not acknowledged.
    pub(crate) una: u64,
    /// Next position to send.
    pub(crate) nxt: u64,
    /// The peer's window, bytes.
    pub(crate) wnd: u64,
    /// Position (of the peer) of the segment that last set `wnd`.
    pub(crate) wl1: u64,
    /// Largest window the peer ever had.
    pub(crate) max_window: u64,
    /// The peer's window scale.
    pub(crate) wscale: u8,
    pub(crate) buffer: SendBuffer,
    pub(crate) queue: RetransmitQueue,
    /// Ends of the packets handed out and not yet wholly acknowledged, in order.
    pub(crate) skb_ends: VecDeque<u64>,
    /// A SYN or SYN-ACK is to be sent.
    pub(crate) syn: bool,
    /// The user has closed: a FIN follows the data.
    pub(crate) fin: bool,
    pub(crate) fin_sent: bool,
    /// A RST with this sequence number is to be sent.
    pub(crate) rst: Option<u32>,
    /// The RST acknowledges this.
    pub(crate) rst_ack: Option<u32>,
    /// MSS that the peer accepts, by its option and the path.
    pub(crate) mss_clamp: u32,
    pub(crate) sndbuf: u64,
    pub(crate) sndbuf_locked: bool,
    /// The last write did not fit (`SOCK_NOSPACE`).
    pub(crate) no_space: bool,
    /// Below us and not completed.
    pub(crate) below: Below,
    /// TCP small queues stopped us.
    pub(crate) throttled: bool,
    /// The packet in the write queue that `nxt` lies in: where it begins and ends.
    pub(crate) skb_start: u64,
    pub(crate) skb_end: u64,
    /// Segments of one super-packet when it was built (`xmit_size_goal_segs`).
    pub(crate) size_goal: u64,
    /// End of the last short segment (`snd_sml`, Minshall).
    pub(crate) small_end: u64,
    /// Earliest time of the next transmission (`tcp_wstamp_ns`).
    pub(crate) pace_at: Instant,
    /// Since when a partial super-packet waits.
    pub(crate) deferred: Option<Instant>,
    pub(crate) defer_expired: bool,
    /// Data packets sent so far; the first ten are not paced.
    pub(crate) data_segs_out: u64,
    /// Timeouts in a row.
    pub(crate) retransmits: u32,
    pub(crate) backoff: u32,
    /// When the first unanswered transmission of this run happened.
    pub(crate) first_unanswered: Option<Instant>,
    /// Zero-window or keep-alive probes without an answer.
    pub(crate) probes: u32,
    pub(crate) keep_alive_probes: u32,
    /// A probe is to be sent.
    pub(crate) probe: bool,
    pub(crate) keep_alive_probe: bool,
    /// Segments sent since the last call of `poll_transmit` that found nothing.
    pub(crate) burst: u32,
    pub(crate) burst_limited: bool,
    /// End of the window of data over which being limited is remembered.
    pub(crate) usage_end: u64,
    /// Most packets out while the application limited.
    pub(crate) cwnd_used: u32,
    pub(crate) cwnd_stamp: Instant,
    /// Rate samples: when the current flight began, when data was last delivered.
    pub(crate) first_sent: Instant,
    pub(crate) delivered_at: Instant,
    /// Delivered count up to which the application limited the flow.
    pub(crate) app_limited_until: u64,
    pub(crate) chrono: Chrono,
    /// Congestion was reduced: tell the peer (`TCP_ECN_QUEUE_CWR`).
    pub(crate) ecn_cwr: bool,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retrans: u64,
}

impl Sender {
    pub(crate) fn new(config: &Config, initial: u32) -> Self {
        Self {
            space: SeqSpace { initial },
            una: ORIGIN,
            nxt: ORIGIN,
            wnd: 0,
            wl1: 0,
            max_window: 0,
            wscale: 0,
            buffer: SendBuffer::at(ORIGIN + 1),
            queue: RetransmitQueue::default(),
            skb_ends: VecDeque::new(),
            syn: false,
            fin: false,
            fin_sent: false,
            rst: None,
            rst_ack: None,
            mss_clamp: 536,
            sndbuf: config.sndbuf.unwrap_or(config.profile.wmem.default),
            sndbuf_locked: config.sndbuf.is_some(),
            no_space: false,
            below: Below::default(),
            throttled: false,
            skb_start: 0,
            skb_end: 0,
            size_goal: 0,
            small_end: 0,
            pace_at: Instant::ZERO,
            deferred: None,
            defer_expired: false,
            data_segs_out: 0,
            retransmits: 0,
            backoff: 0,
            first_unanswered: None,
            probes: 0,
            keep_alive_probes: 0,
            probe: false,
            keep_alive_probe: false,
            burst: 0,
            burst_limited: false,
            usage_end: 0,
            cwnd_used: 0,
            cwnd_stamp: Instant::ZERO,
            first_sent: Instant::ZERO,
            delivered_at: Instant::ZERO,
            app_limited_until: 0,
            chrono: Chrono::default(),
            ecn_cwr: false,
            bytes_acked: 0,
            bytes_sent: 0,
            bytes_retrans: 0,
        }
    }

    /// Right edge of the peer's window.
    pub(crate) const fn window_end(&self) -> u64 {
        self.una + self.wnd
    }

    /// Bytes written and not sent, and whether a FIN waits behind them.
    pub(crate) const fn unsent(&self) -> (u64, bool) {
        (self.buffer.end().saturating_sub(self.nxt), self.fin && !self.fin_sent)
    }
}
