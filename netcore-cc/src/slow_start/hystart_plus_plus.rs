//! HyStart++ (RFC 9406): a rise of the RTT leads into conservative slow start, five rounds of it into avoidance.

use super::{Growth, SlowStart};
use crate::rtt::DelayMin;
use netcore::Instant;
use netcore::congestion::{HystartCounters, PacingStatus, SendState};

/// Least rise of the RTT that counts, µs (RFC 9406 section 4.3).
pub const MIN_RTT_THRESH_US: u32 = 4_000;
/// Most rise of the RTT that is asked for, µs.
pub const MAX_RTT_THRESH_US: u32 = 16_000;
/// The rise asked for is the last round's minimum RTT divided by this, within the two limits.
pub const MIN_RTT_DIVISOR: u32 = 8;
/// Samples of a round before it is judged.
pub const N_RTT_SAMPLE: u32 = 8;
/// Growth in conservative slow start is divided by this.
pub const CSS_GROWTH_DIVISOR: u32 = 4;
/// Rounds of conservative slow start before avoidance.
pub const CSS_ROUNDS: u32 = 5;
/// Most segments that one ACK may add if the sender does not pace.
pub const L_UNPACED: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SlowStart,
    Conservative { baseline_us: u32, rounds: u32 },
    Done,
}

/// HyStart++ of RFC 9406. Delays are in µs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyStartPlusPlus {
    phase: Phase,
    saved: Phase,
    window_end: u32,
    last_round_min: u32,
    current_round_min: u32,
    samples: u32,
    /// Quarter segments of conservative growth not yet added to the window.
    quarters: u32,
    counters: HystartCounters,
}

impl HyStartPlusPlus {
    /// Ready for the first round.
    pub const fn new() -> Self {
        Self {
            phase: Phase::SlowStart,
            saved: Phase::SlowStart,
            window_end: 0,
            last_round_min: u32::MAX,
            current_round_min: u32::MAX,
            samples: 0,
            quarters: 0,
            counters: HystartCounters { train_detect: 0, train_cwnd: 0, delay_detect: 0, delay_cwnd: 0 },
        }
    }

    /// Whether the window grows at a quarter of the speed.
    pub const fn is_conservative(&self) -> bool {
        matches!(self.phase, Phase::Conservative { .. })
    }

    /// Section 4.2, bookkeeping of rounds: on passing windowEnd the minima move on.
    fn end_round(&mut self, state: &mut SendState) {
        self.window_end = state.snd_nxt;
        self.last_round_min = self.current_round_min;
        self.current_round_min = u32::MAX;
        self.samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            // Section 4.2: after CSS_ROUNDS rounds, the partial one of the entry included, avoidance begins.
            if *rounds >= CSS_ROUNDS {
                self.phase = Phase::Done;
                self.counters.delay_detect += 1;
                self.counters.delay_cwnd += u64::from(state.cwnd);
                state.ssthresh = Some(state.cwnd);
            }
        }
    }

    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE || self.current_round_min == u32::MAX {
            return;
        }
        match self.phase {
            Phase::SlowStart if self.last_round_min != u32::MAX => {
                let rise = (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_US, MAX_RTT_THRESH_US);
                if self.current_round_min >= self.last_round_min.saturating_add(rise) {
                    self.phase = Phase::Conservative { baseline_us: self.current_round_min, rounds: 0 };
                }
            }
            Phase::Conservative { baseline_us, .. } if self.current_round_min < baseline_us => {
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }
}

impl Default for HyStartPlusPlus {
    fn default() -> Self {
        Self::new()
    }
}

impl SlowStart for HyStartPlusPlus {
    fn reset(&mut self, state: &SendState, _: Instant) {
        let counters = self.counters;
        // Section 4.3: only the initial slow start, when the threshold is arbitrarily high.
        let phase = if state.ssthresh.is_none() { Phase::SlowStart } else { Phase::Done };
        *self = Self { counters, phase, saved: phase, window_end: state.snd_nxt, ..Self::new() };
    }

    fn rtt_sample(&mut self, state: &mut SendState, delay: u32, _: &DelayMin, _: Instant) {
        if self.phase == Phase::Done {
            return;
        }
        if (self.window_end.wrapping_sub(state.snd_una) as i32) < 0 {
            self.end_round(state);
            if self.phase == Phase::Done {
                return;
            }
        }
        self.current_round_min = self.current_round_min.min(delay);
        self.samples = self.samples.saturating_add(1);
        self.judge();
    }

    fn grow(&mut self, growth: Growth, state: &mut SendState, acked: u32) -> u32 {
        if self.phase == Phase::Done {
            return growth.grow(state, acked);
        }
        // Section 4.2: cwnd += min(N, L * SMSS), a quarter of it in conservative slow start.
        let counted = if state.pacing_status == PacingStatus::None { acked.min(L_UNPACED) } else { acked };
        if !self.is_conservative() {
            return growth.grow(state, counted);
        }
        let quarters = self.quarters.saturating_add(counted);
        self.quarters = quarters % CSS_GROWTH_DIVISOR;
        growth.grow(state, quarters / CSS_GROWTH_DIVISOR);
        0
    }

    fn congestion(&mut self) {
        self.saved = self.phase;
        self.phase = Phase::Done;
    }

    fn undo(&mut self) {
        self.phase = self.saved;
    }

    fn counters(&self) -> HystartCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
