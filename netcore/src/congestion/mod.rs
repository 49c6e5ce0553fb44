//! [`CongestionOps`]: how fast a sender may go.
//!
//! The events are those of Linux's `struct tcp_congestion_ops`, in the same units: windows in segments, round-trip
//! times in µs. The endpoint owns the [`SendState`] and lends it to every call; an algorithm keeps only what is its
//! own. On one ACK the order of calls is [`pkts_acked`], [`in_ack_event`], then either [`cong_control`] or
//! [`cong_avoid`]; [`on_ack`] makes them in one virtual call.
//!
//! ```text
//!                 SendState (owned by the endpoint)
//!                    ▲ │
//!   ACK ──────────▶ on_ack ─▶ pkts_acked → in_ack_event → cong_control or cong_avoid
//!   loss, ECN ────▶ ssthresh, then set_state(Recovery or Cwr)
//!   timeout ──────▶ ssthresh, then set_state(Loss)
//!   false alarm ──▶ undo_cwnd
//!   idle, ECN ────▶ cwnd_event
//!   transmit ◀──── cwnd, pacing_rate, send_quantum, min_tso_segs
//! ```
//!
//! [`pkts_acked`]: CongestionOps::pkts_acked
//! [`in_ack_event`]: CongestionOps::in_ack_event
//! [`cong_control`]: CongestionOps::cong_control
//! [`cong_avoid`]: CongestionOps::cong_avoid
//! [`on_ack`]: CongestionOps::on_ack

mod clock;
mod events;
mod state;

pub use clock::Clock;
pub use events::{
    AckEvent, AckFlags, AckSample, CaState, CongestionInfo, CwndEvent, HystartCounters, PacketInfo, RateSample,
};
pub use state::{LimitedRule, PacingStatus, SendState};

use crate::time::{Instant, Rate};

/// A congestion control algorithm for one connection.
///
/// Required methods take plain structs only, so that a table of C functions or a Python class can implement the trait.
/// No call allocates, blocks or reads a clock; `now` never runs backwards within a connection.
pub trait CongestionOps: Send {
    /// The name as in `net.ipv4.tcp_available_congestion_control`.
    fn name(&self) -> &'static str;

    /// The connection is established (`init`).
    fn init(&mut self, state: &mut SendState, now: Instant);

    /// The connection is closed or gets another algorithm (`release`).
    fn release(&mut self, state: &mut SendState, now: Instant) {
        let _ = (state, now);
    }

    /// Congestion was detected: the new slow-start threshold in segments (`ssthresh`). Called once per episode, before
    /// the state changes; the caller stores the value and reduces the window.
    fn ssthresh(&mut self, state: &mut SendState, now: Instant) -> u32;

    /// `acked` packets were acknowledged outside recovery: the window may grow (`cong_avoid`).
    fn cong_avoid(&mut self, state: &mut SendState, acked: u32, now: Instant);

    /// The window to return to after a reduction that proved wrong, in segments (`undo_cwnd`).
    fn undo_cwnd(&mut self, state: &mut SendState, now: Instant) -> u32;

    /// The loss-recovery state becomes `new` (`set_state`). [`SendState::ca_state`] still tells the one before.
    fn set_state(&mut self, state: &mut SendState, new: CaState, now: Instant) {
        let _ = (state, new, now);
    }

    /// A window event (`cwnd_event`).
    fn cwnd_event(&mut self, state: &mut SendState, event: CwndEvent, now: Instant) {
        let _ = (state, event, now);
    }

    /// An ACK arrived (`in_ack_event`).
    fn in_ack_event(&mut self, state: &mut SendState, flags: AckFlags, now: Instant) {
        let _ = (state, flags, now);
    }

    /// Packets left the retransmit queue (`pkts_acked`).
    fn pkts_acked(&mut self, state: &mut SendState, sample: &AckSample, now: Instant) {
        let _ = (state, sample, now);
    }

    /// Takes over the whole window and rate decision on an ACK (`cong_control`). Returns `false` if the algorithm
    /// leaves it to [`CongestionOps::cong_avoid`] and the endpoint's recovery, as all loss-based ones do.
    fn cong_control(&mut self, state: &mut SendState, flags: AckFlags, sample: &RateSample, now: Instant) -> bool {
        let _ = (state, flags, sample, now);
        false
    }

    /// The window below which rate halving must not go, in segments (`min_cwnd`, Linux before 3.2).
    fn min_cwnd(&self, state: &SendState) -> u32 {
        state.ssthresh.unwrap_or(state.cwnd)
    }

    /// Fewest segments of a super-packet (`min_tso_segs`).
    fn min_tso_segs(&self, state: &SendState) -> u32 {
        let _ = state;
        2
    }

    /// How many windows the send buffer should hold (`sndbuf_expand`).
    fn sndbuf_expand(&self, state: &SendState) -> u32 {
        let _ = state;
        2
    }

    /// What the algorithm tells about itself (`get_info`).
    fn info(&self, state: &SendState) -> CongestionInfo {
        let _ = state;
        CongestionInfo::default()
    }

    /// One packet was sent.
    fn packet_sent(&mut self, state: &mut SendState, packet: &PacketInfo, now: Instant) {
        let _ = (state, packet, now);
    }

    /// One packet was acknowledged, cumulatively or selectively.
    fn packet_acked(&mut self, state: &mut SendState, packet: &PacketInfo, now: Instant) {
        let _ = (state, packet, now);
    }

    /// One packet was declared lost.
    fn packet_lost(&mut self, state: &mut SendState, packet: &PacketInfo, now: Instant) {
        let _ = (state, packet, now);
    }

    /// The rate at which packets should leave, `None` if not limited. The default is Linux's
    /// `tcp_update_pacing_rate`: twice the window per RTT while it is below half the threshold, else 1.2 times.
    fn pacing_rate(&self, state: &SendState) -> Option<Rate> {
        default_pacing_rate(state)
    }

    /// Largest burst in bytes: what leaves in 1/1024 s at the pacing rate, at least [`CongestionOps::min_tso_segs`]
    /// segments and at most one super-packet (`tcp_tso_autosize` without its RTT term).
    fn send_quantum(&self, state: &SendState) -> u32 {
        let least = self.min_tso_segs(state).saturating_mul(state.mss);
        let most = state.gso_max_size.max(least);
        match self.pacing_rate(state) {
            Some(rate) => ((rate.bytes_per_sec() >> 10).min(u64::from(u32::MAX)) as u32).clamp(least, most),
            None => most,
        }
    }

    /// One whole ACK: [`CongestionOps::pkts_acked`], [`CongestionOps::in_ack_event`] and, if the window may be raised,
    /// [`CongestionOps::cong_avoid`], in the kernel's order and in one virtual call.
    #[inline]
    fn on_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) {
        self.pkts_acked(state, &event.sample, now);
        self.in_ack_event(state, event.flags, now);
        if event.may_raise {
            self.cong_avoid(state, event.acked, now);
        }
    }
}

/// Linux's `tcp_update_pacing_rate`: `ratio × mss × max(cwnd, packets_out) / srtt`, the ratio 200 % in slow start while
/// `cwnd < ssthresh / 2` and 120 % afterwards, capped by [`SendState::max_pacing_rate`]. `None` if the RTT is not known.
pub fn default_pacing_rate(state: &SendState) -> Option<Rate> {
    if state.srtt_us8 == 0 {
        return state.max_pacing_rate;
    }
    let ratio = if state.cwnd < state.ssthresh_or_max() / 2 { 200 } else { 120 };
    let scaled = u128::from(state.mss) * 80_000 * ratio * u128::from(state.cwnd.max(state.packets_out));
    let bytes_per_sec = (scaled / u128::from(state.srtt_us8)).min(u128::from(u64::MAX)) as u64;
    let rate = Rate::from_bytes_per_sec(bytes_per_sec);
    Some(state.max_pacing_rate.map_or(rate, |most| rate.min(most)))
}

#[cfg(test)]
mod tests;
