//! [`SendState`]: the part of a connection that congestion control reads and writes.

use super::clock::Clock;
use super::events::CaState;
use crate::time::{Instant, Rate};
use core::time::Duration;

/// Who spaces the packets of a connection (`sk_pacing_status`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum PacingStatus {
    /// Nobody.
    #[default]
    None = 0,
    /// The endpoint itself.
    Needed = 1,
    /// The fq qdisc.
    Fq = 2,
}

/// When the congestion window counts as the limit of a sender (`tcp_is_cwnd_limited`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum LimitedRule {
    /// Linux before 2.6.26: the window is full, or with TSO less than a third of it is unused.
    TsoDivisor,
    /// Linux 2.6.26 to 3.15: the window is full, or with GSO less than a third of it and less than one GSO packet is
    /// unused, or no more than `reordering` packets are unused.
    InFlight,
    /// Linux since 3.16: whether the window was full at any time of the last window of data; in slow start also while
    /// the window is below twice the packets sent in it.
    #[default]
    Remembered,
}

/// Window, sequence and timing state of one sender. The endpoint owns it and passes it with each event; recovery,
/// undo and window validation write the window as well.
///
/// Windows are in segments, times in µs or [`Instant`], sequence numbers in bytes modulo 2^32. "No limit" is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SendState {
    /// Congestion window (`snd_cwnd`), segments, at least 1.
    pub cwnd: u32,
    /// Packets acknowledged since the window last grew (`snd_cwnd_cnt`).
    pub cwnd_cnt: u32,
    /// Slow-start threshold (`snd_ssthresh`), `None` before the first reduction (Linux: 2147483647).
    pub ssthresh: Option<u32>,
    /// Largest window allowed (`snd_cwnd_clamp`), `u32::MAX` if there is none.
    pub cwnd_clamp: u32,
    /// Window before the last reduction (`prior_cwnd`), for undo.
    pub prior_cwnd: u32,
    /// Threshold before the last reduction (`prior_ssthresh`): the outer `None` is "nothing to restore", the inner one
    /// "there was no threshold".
    pub prior_ssthresh: Option<Option<u32>>,
    /// First byte not yet acknowledged.
    pub snd_una: u32,
    /// Next byte to be sent.
    pub snd_nxt: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of those, selectively acknowledged.
    pub sacked_out: u32,
    /// Of those, taken for lost.
    pub lost_out: u32,
    /// Retransmitted packets still out.
    pub retrans_out: u32,
    /// Packets in flight before the ACK at hand; read by the rules up to Linux 3.15.
    pub prior_in_flight: u32,
    /// Most packets out during the last window of data (`max_packets_out`).
    pub max_packets_out: u32,
    /// Whether the window was the limit during the last window of data (`is_cwnd_limited`).
    pub is_cwnd_limited: bool,
    /// Which test [`SendState::cwnd_limited`] applies.
    pub limited_rule: LimitedRule,
    /// Whether the application, not the window, limited the last transmission.
    pub app_limited: bool,
    /// Reordering tolerated before a packet counts as lost (`reordering`), packets.
    pub reordering: u32,
    /// Loss-recovery state.
    pub ca_state: CaState,
    /// Segment size without headers (`mss_cache`), bytes, at least 1.
    pub mss: u32,
    /// Smoothed RTT in eighths of a µs (`srtt_us`), 0 if not known.
    pub srtt_us8: u32,
    /// Smallest RTT the endpoint has seen lately, µs.
    pub min_rtt_us: Option<u32>,
    /// Packets delivered so far (`delivered`).
    pub delivered: u64,
    /// Of those, with a congestion mark (`delivered_ce`).
    pub delivered_ce: u64,
    /// Packets lost so far (`lost`).
    pub lost: u64,
    /// When data was last sent (`lsndtime`).
    pub last_sent: Instant,
    /// Who paces.
    pub pacing_status: PacingStatus,
    /// Rate at which packets may leave (`sk_pacing_rate`), `None` if unlimited.
    pub pacing_rate: Option<Rate>,
    /// Upper limit of the pacing rate (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<Rate>,
    /// Largest super-packet that the path accepts, bytes (`sk_gso_max_size`); 0 if segmentation offload is off.
    pub gso_max_size: u32,
    /// The tick counter.
    pub clock: Clock,
}

impl SendState {
    /// A sender at rest with a window of `cwnd` segments of `mss` bytes. Zeros are taken as 1.
    pub const fn new(cwnd: u32, mss: u32) -> Self {
        Self {
            cwnd: if cwnd == 0 { 1 } else { cwnd },
            cwnd_cnt: 0,
            ssthresh: None,
            cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            prior_ssthresh: None,
            snd_una: 0,
            snd_nxt: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            prior_in_flight: 0,
            max_packets_out: 0,
            is_cwnd_limited: false,
            limited_rule: LimitedRule::Remembered,
            app_limited: false,
            reordering: 3,
            ca_state: CaState::Open,
            mss: if mss == 0 { 1 } else { mss },
            srtt_us8: 0,
            min_rtt_us: None,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            last_sent: Instant::ZERO,
            pacing_status: PacingStatus::None,
            pacing_rate: None,
            max_pacing_rate: None,
            gso_max_size: 65_536,
            clock: DEFAULT_CLOCK,
        }
    }

    /// Packets in the network (`tcp_packets_in_flight`): sent, minus selectively acknowledged and lost, plus
    /// retransmitted.
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        self.packets_out.saturating_sub(self.sacked_out.saturating_add(self.lost_out)).saturating_add(self.retrans_out)
    }

    /// The threshold as a number, `u32::MAX` if there is none.
    #[inline]
    pub const fn ssthresh_or_max(&self) -> u32 {
        match self.ssthresh {
            Some(value) => value,
            None => u32::MAX,
        }
    }

    /// Whether the window is below the threshold (`tcp_in_slow_start` since Linux 4.3).
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh_or_max()
    }

    /// Smoothed RTT, `None` if not known.
    #[inline]
    pub const fn srtt(&self) -> Option<Duration> {
        if self.srtt_us8 == 0 { None } else { Some(Duration::from_nanos(self.srtt_us8 as u64 * 125)) }
    }

    /// Whether the congestion window limits this sender, by [`SendState::limited_rule`]. If not, it must not grow.
    #[inline]
    pub const fn cwnd_limited(&self) -> bool {
        match self.limited_rule {
            LimitedRule::Remembered => {
                self.is_cwnd_limited || (self.in_slow_start() && self.cwnd < self.max_packets_out.saturating_mul(2))
            }
            LimitedRule::InFlight => self.limited_in_flight(),
            LimitedRule::TsoDivisor => self.limited_tso_divisor(),
        }
    }

    /// Unused part of the window below a third of it (`tcp_tso_win_divisor` 3).
    const fn unused_below_third(&self, unused: u32) -> bool {
        (unused as u64) * 3 < self.cwnd as u64
    }

    const fn limited_in_flight(&self) -> bool {
        if self.prior_in_flight >= self.cwnd {
            return true;
        }
        let unused = self.cwnd - self.prior_in_flight;
        if self.gso_max_size != 0
            && self.unused_below_third(unused)
            && (unused as u64) * (self.mss as u64) < self.gso_max_size as u64
        {
            return true;
        }
        unused <= self.reordering
    }

    const fn limited_tso_divisor(&self) -> bool {
        if self.prior_in_flight >= self.cwnd {
            return true;
        }
        self.gso_max_size != 0 && self.unused_below_third(self.cwnd - self.prior_in_flight)
    }
}

/// 250 Hz; `Default::default` is not `const`.
const DEFAULT_CLOCK: Clock = match Clock::new(250) {
    Some(clock) => clock,
    None => panic!("250 is a valid HZ"),
};

impl Default for SendState {
    /// Initial window 10, segments of 1448 bytes.
    fn default() -> Self {
        Self::new(10, 1448)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(cwnd: u32) -> SendState {
        SendState { ssthresh: Some(1), ..SendState::new(cwnd, 1448) }
    }

    #[test]
    fn in_flight_never_goes_below_zero() {
        let s = SendState { packets_out: 3, sacked_out: 2, lost_out: 2, retrans_out: 1, ..sender(10) };
        assert_eq!(s.in_flight(), 1);
    }

    #[test]
    fn remembered_rule_lets_slow_start_reach_twice_what_is_used() {
        let mut s = SendState { max_packets_out: 5, ssthresh: None, ..sender(9) };
        assert!(s.cwnd_limited());
        s.cwnd = 10;
        assert!(!s.cwnd_limited());
        s.is_cwnd_limited = true;
        assert!(s.cwnd_limited());
        let avoiding = SendState { max_packets_out: 100, ..sender(9) };
        assert!(!avoiding.cwnd_limited());
    }

    #[test]
    fn in_flight_rule_allows_a_third_one_gso_packet_or_the_reordering() {
        let mut s = SendState { limited_rule: LimitedRule::InFlight, prior_in_flight: 90, ..sender(100) };
        assert!(s.cwnd_limited(), "10 of 100 unused: less than one GSO packet of 45");
        s.gso_max_size = 0;
        assert!(!s.cwnd_limited());
        s.prior_in_flight = 97;
        assert!(s.cwnd_limited(), "3 unused are the reordering allowance");
        s = SendState { gso_max_size: 65_536, cwnd: 1000, prior_in_flight: 950, ..s };
        assert!(!s.cwnd_limited(), "50 unused segments exceed one GSO packet");
        s = SendState { cwnd: 30, prior_in_flight: 20, ..s };
        assert!(!s.cwnd_limited(), "exactly a third unused");
        s.prior_in_flight = 30;
        assert!(s.cwnd_limited());
    }

    #[test]
    fn tso_divisor_rule_has_no_reordering_allowance() {
        let mut s = SendState { limited_rule: LimitedRule::TsoDivisor, prior_in_flight: 7, ..sender(9) };
        assert!(s.cwnd_limited());
        s.prior_in_flight = 6;
        assert!(!s.cwnd_limited());
        s = SendState { gso_max_size: 0, prior_in_flight: 8, ..s };
        assert!(!s.cwnd_limited());
        s.prior_in_flight = 9;
        assert!(s.cwnd_limited());
    }

    #[test]
    fn zero_window_and_zero_mss_are_taken_as_one() {
        let s = SendState::new(0, 0);
        assert_eq!((s.cwnd, s.mss), (1, 1));
        assert_eq!(SendState { srtt_us8: 8_000, ..s }.srtt(), Some(Duration::from_millis(1)));
        assert_eq!(s.srtt(), None);
    }
}
