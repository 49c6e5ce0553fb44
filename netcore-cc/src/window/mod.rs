//! Window adjustment outside slow start: how the window grows in avoidance and shrinks on congestion.

mod additive;
mod cube_root;
pub mod cubic;
pub mod cubic_legacy;
pub mod parameters;
pub mod reno;
pub mod rfc9438;

pub use additive::{cong_avoid_ai, cong_avoid_ai_per_ack};
pub use cube_root::cube_root;
pub use cubic::Cubic;
pub use cubic_legacy::{CubicLegacy, LegacyRules};
pub use parameters::{CubicParameters, ParameterError};
pub use reno::{Reno, UndoRule};
pub use rfc9438::Rfc9438;

use crate::rtt::DelayMin;
use netcore::congestion::{AckEvent, SendState};
use netcore::{Instant, Rate};

/// The avoidance half of an algorithm. [`crate::Classic`] pairs it with a [`crate::slow_start::SlowStart`].
pub trait WindowAdjustment: Send {
    /// The algorithm's name in Linux.
    fn name(&self) -> &'static str;

    /// Forgets everything: at the start of a connection and after a retransmission timeout.
    fn reset(&mut self);

    /// Whether RTT samples are to be ignored now (CUBIC: right after recovery).
    fn discards_rtt(&mut self, state: &SendState, now: Instant) -> bool {
        let _ = (state, now);
        false
    }

    /// `packets` left the retransmit queue, with or without an RTT sample.
    fn packets_acked(&mut self, state: &SendState, packets: u32) {
        let _ = (state, packets);
    }

    /// `acked` packets were acknowledged in avoidance while the window was the limit.
    fn avoid(&mut self, state: &mut SendState, acked: u32, delay_min: &DelayMin, now: Instant);

    /// [`WindowAdjustment::packets_acked`], [`WindowAdjustment::discards_rtt`] and [`WindowAdjustment::avoid`] for an ACK
    /// that needs no recomputation, if it is one: `true`. Else nothing was changed: `false`.
    fn quick_avoid(&mut self, state: &mut SendState, ack: &AckEvent, delay_min: &DelayMin, now: Instant) -> bool {
        let _ = (state, ack, delay_min, now);
        false
    }

    /// Whether [`WindowAdjustment::packets_acked`] has nothing to do and no RTT sample is discarded.
    fn ignores_packets(&self) -> bool {
        false
    }

    /// An ACK came while the window was not the limit.
    fn not_limited(&mut self, state: &SendState, now: Instant) {
        let _ = (state, now);
    }

    /// The threshold after congestion, segments.
    fn ssthresh(&mut self, state: &SendState, now: Instant) -> u32;

    /// The window to return to after a wrong reduction, segments.
    fn undo_cwnd(&mut self, state: &SendState) -> u32;

    /// The least window of rate halving, segments.
    fn min_cwnd(&self, state: &SendState) -> u32 {
        state.ssthresh.unwrap_or(state.cwnd)
    }

    /// Data is sent after nothing was in flight.
    fn tx_start(&mut self, state: &SendState, now: Instant) {
        let _ = (state, now);
    }

    /// The remembered maximum, segments.
    fn w_max(&self) -> Option<u32> {
        None
    }

    /// The pacing rate; the default is Linux's.
    fn pacing_rate(&self, state: &SendState) -> Option<Rate> {
        netcore::congestion::default_pacing_rate(state)
    }
}
