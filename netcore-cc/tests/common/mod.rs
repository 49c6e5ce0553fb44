//! What several tests start from.
#![allow(dead_code, reason = "each test binary uses some of it")]

use netcore::congestion::{AckEvent, AckSample};
use netcore::{Instant, SendState};

/// Milliseconds after a start that is not zero.
pub(crate) fn ms(value: u64) -> Instant {
    Instant::from_millis(10_000 + value)
}

/// A sender that its window limits.
pub(crate) fn state(cwnd: u32, ssthresh: Option<u32>) -> SendState {
    let mut state = SendState::new(cwnd, 1448);
    state.ssthresh = ssthresh;
    state.is_cwnd_limited = true;
    state.clock.jiffies_at_zero = 1000;
    state
}

/// An ACK outside recovery.
pub(crate) fn ack(rtt_us: u32, acked: u32) -> AckEvent {
    let sample = AckSample { pkts_acked: acked, rtt_us: Some(rtt_us), in_flight: 0 };
    AckEvent { sample, acked, may_raise: true, ..AckEvent::default() }
}
