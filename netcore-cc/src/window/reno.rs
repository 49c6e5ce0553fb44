//! NewReno's window (RFC 5681, RFC 6582; `tcp_reno_ssthresh`, `tcp_reno_cong_avoid`).

use super::{WindowAdjustment, cong_avoid_ai, cong_avoid_ai_per_ack};
use crate::rtt::DelayMin;
use netcore::Instant;
use netcore::congestion::SendState;

/// Where an undo returns to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum UndoRule {
    /// The window before the reduction (Linux since 4.15).
    #[default]
    PriorCwnd,
    /// Twice the threshold (Linux before 4.15).
    TwiceSsthresh,
}

/// Half on loss, one segment per window otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reno {
    /// Grow per ACK, not per packet: Linux before 4.0.
    pub per_ack: bool,
    /// Where an undo returns to.
    pub undo: UndoRule,
}

impl WindowAdjustment for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn reset(&mut self) {}

    #[inline(always)]
    fn ignores_packets(&self) -> bool {
        true
    }

    #[inline]
    fn avoid(&mut self, state: &mut SendState, acked: u32, _: &DelayMin, _: Instant) {
        let w = state.cwnd;
        if self.per_ack { cong_avoid_ai_per_ack(state, w) } else { cong_avoid_ai(state, w, acked) }
    }

    fn ssthresh(&mut self, state: &SendState, _: Instant) -> u32 {
        (state.cwnd >> 1).max(2)
    }

    fn undo_cwnd(&mut self, state: &SendState) -> u32 {
        match (self.undo, state.ssthresh) {
            (UndoRule::TwiceSsthresh, Some(ssthresh)) => state.cwnd.max(ssthresh.saturating_mul(2)),
            _ => state.cwnd.max(state.prior_cwnd),
        }
    }

    fn min_cwnd(&self, state: &SendState) -> u32 {
        state.ssthresh.unwrap_or(state.cwnd) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::DelayUnit;

    #[test]
    fn half_on_loss_with_a_floor_of_two() {
        for (cwnd, expected) in [(10, 5), (5, 2), (3, 2), (1, 2)] {
            assert_eq!(Reno::default().ssthresh(&SendState::new(cwnd, 1448), Instant::ZERO), expected);
        }
    }

    #[test]
    fn one_segment_per_window() {
        let mut state = SendState::new(10, 1448);
        let rtt = DelayMin::new(DelayUnit::Micros);
        Reno::default().avoid(&mut state, 9, &rtt, Instant::ZERO);
        assert_eq!((state.cwnd, state.cwnd_cnt), (10, 9));
        Reno::default().avoid(&mut state, 1, &rtt, Instant::ZERO);
        assert_eq!((state.cwnd, state.cwnd_cnt), (11, 0));
        let mut old = Reno { per_ack: true, ..Reno::default() };
        old.avoid(&mut state, 50, &rtt, Instant::ZERO);
        assert_eq!((state.cwnd, state.cwnd_cnt), (11, 1));
    }

    #[test]
    fn undo_by_era_never_lowers_the_window() {
        let mut state = SendState::new(7, 1448);
        state.ssthresh = Some(5);
        state.prior_cwnd = 11;
        let mut old = Reno { undo: UndoRule::TwiceSsthresh, ..Reno::default() };
        assert_eq!(Reno::default().undo_cwnd(&state), 11);
        assert_eq!(old.undo_cwnd(&state), 10);
        state.cwnd = 20;
        assert_eq!((Reno::default().undo_cwnd(&state), old.undo_cwnd(&state)), (20, 20));
        assert_eq!(Reno::default().min_cwnd(&state), 2);
        assert_eq!(Reno::default().name(), "reno");
    }
}
