//! Slow start: how the window grows in it, and what ends it before loss does.

pub mod hystart;
pub mod hystart_plus_plus;

pub use hystart::{Detectors, HyStart, HyStartRules, RoundReset};
pub use hystart_plus_plus::HyStartPlusPlus;

use crate::rtt::DelayMin;
use netcore::Instant;
use netcore::congestion::{HystartCounters, SendState};

/// How an ACK grows the window in slow start, and up to where slow start reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Growth {
    /// One segment per ACK, while `cwnd <= ssthresh` (Linux before 3.13).
    PerAck,
    /// The acknowledged packets, while `cwnd <= ssthresh`, up to `ssthresh + 1` (Linux 3.13 to 4.2).
    PerPacketInclusive,
    /// The acknowledged packets, while `cwnd < ssthresh`, up to `ssthresh` (Linux since 4.3).
    #[default]
    PerPacket,
}

impl Growth {
    /// Whether the sender is in slow start.
    #[inline(always)]
    pub fn in_slow_start(self, state: &SendState) -> bool {
        if self == Self::PerPacket { state.in_slow_start() } else { state.cwnd <= state.ssthresh_or_max() }
    }

    /// Grows the window (`tcp_slow_start`); gives the packets left over for avoidance.
    #[inline]
    pub fn grow(self, state: &mut SendState, acked: u32) -> u32 {
        let end = match self {
            Self::PerAck => {
                if state.cwnd < state.cwnd_clamp {
                    state.cwnd = state.cwnd.saturating_add(1);
                }
                return 0;
            }
            Self::PerPacketInclusive => state.ssthresh_or_max().saturating_add(1),
            Self::PerPacket => state.ssthresh_or_max(),
        };
        let cwnd = state.cwnd.saturating_add(acked).min(end).max(state.cwnd);
        let left = acked - (cwnd - state.cwnd);
        state.cwnd = cwnd.min(state.cwnd_clamp).max(1);
        left
    }
}

/// The slow-start half of an algorithm. It ends slow start by setting `ssthresh` to the window.
pub trait SlowStart: Send {
    /// A connection starts, or a retransmission timeout begins a new slow start.
    fn reset(&mut self, state: &SendState, now: Instant);

    /// An RTT sample in slow start; `delay_min` has taken it in already.
    fn rtt_sample(&mut self, state: &mut SendState, delay: u32, delay_min: &DelayMin, now: Instant);

    /// [`SlowStart::rtt_sample`] and [`SlowStart::limited_ack`] for a sample of `delay` µs that cannot end anything, if it is
    /// one, and if the window grows by [`Growth`] alone: `true`. Else nothing was changed: `false`.
    fn quick_sample(&mut self, state: &SendState, delay: u32, now: Instant) -> bool {
        let _ = (state, delay, now);
        false
    }

    /// The smallest delay became smaller, in slow start or elsewhere.
    fn new_minimum(&mut self) {}

    /// An ACK in slow start while the window is the limit, before the window grows.
    fn limited_ack(&mut self, state: &SendState, now: Instant) {
        let _ = (state, now);
    }

    /// Grows the window; gives the packets left over for avoidance.
    #[inline(always)]
    fn grow(&mut self, growth: Growth, state: &mut SendState, acked: u32) -> u32 {
        growth.grow(state, acked)
    }

    /// Congestion was detected by other means.
    fn congestion(&mut self) {}

    /// A reduction is taken back.
    fn undo(&mut self) {}

    /// Whether early exit is on; CUBIC ignores `initial_ssthresh` then.
    fn enabled(&self) -> bool {
        true
    }

    /// Exits so far.
    fn counters(&self) -> HystartCounters {
        HystartCounters::default()
    }
}

/// Slow start until loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UntilLoss;

impl SlowStart for UntilLoss {
    fn reset(&mut self, _: &SendState, _: Instant) {}
    fn rtt_sample(&mut self, _: &mut SendState, _: u32, _: &DelayMin, _: Instant) {}
    #[inline(always)]
    fn quick_sample(&mut self, _: &SendState, _: u32, _: Instant) -> bool {
        true
    }
    fn enabled(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(cwnd: u32, ssthresh: Option<u32>) -> SendState {
        let mut state = SendState::new(cwnd, 1448);
        state.ssthresh = ssthresh;
        state
    }

    #[test]
    fn packets_beyond_the_threshold_are_left_for_avoidance() {
        let mut s = state(10, Some(12));
        assert_eq!(Growth::PerPacket.grow(&mut s, 5), 3);
        assert_eq!(s.cwnd, 12);
        assert!(!Growth::PerPacket.in_slow_start(&s));
        let mut s = state(10, Some(12));
        assert_eq!(Growth::PerPacketInclusive.grow(&mut s, 5), 2);
        assert_eq!(s.cwnd, 13);
        assert!(!Growth::PerPacketInclusive.in_slow_start(&s));
        assert!(Growth::PerPacketInclusive.in_slow_start(&state(12, Some(12))));
    }

    #[test]
    fn before_3_13_an_ack_adds_one_segment_whatever_it_covers() {
        let mut s = state(10, Some(12));
        assert_eq!(Growth::PerAck.grow(&mut s, 5), 0);
        assert_eq!(s.cwnd, 11);
        s.cwnd_clamp = 11;
        Growth::PerAck.grow(&mut s, 5);
        assert_eq!(s.cwnd, 11);
    }

    #[test]
    fn the_clamp_holds_and_nothing_overflows() {
        let mut s = state(10, None);
        s.cwnd_clamp = 15;
        assert_eq!(Growth::PerPacket.grow(&mut s, 100), 0);
        assert_eq!(s.cwnd, 15);
        let mut s = state(u32::MAX - 1, None);
        assert_eq!(Growth::PerPacket.grow(&mut s, u32::MAX), u32::MAX - 1);
        assert_eq!(s.cwnd, u32::MAX);
    }
}
