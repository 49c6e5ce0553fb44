//! What the QUIC adapters share: how a connection starts, and the episodes of congestion in the kernel's order of calls.

use netcore::congestion::{CaState, CongestionOps, PacingStatus};
use netcore::{Instant, SendState};
use netcore_cc::{Builtin, Profile};

/// Segments below which QUIC does not go (RFC 9002 section 7.2).
pub(crate) const MINIMUM_WINDOW: u32 = 2;
/// Where a connection's clock starts: late enough that a tick counter of 0 never occurs, which would mean "no epoch".
pub(crate) const EPOCH: Instant = Instant::from_secs(1000);

/// A paced connection with datagrams of `mtu` bytes, at its start.
pub(crate) fn start(profile: &Profile, mtu: u32) -> (Builtin, SendState) {
    let mut state = SendState::new(profile.initial_window(mtu), mtu);
    profile.prepare(&mut state);
    state.pacing_status = PacingStatus::Needed;
    let mut ops = profile.build();
    ops.init(&mut state, EPOCH);
    (ops, state)
}

/// Congestion: the one reduction of an episode.
pub(crate) fn reduce(ops: &mut Builtin, state: &mut SendState, now: Instant) {
    state.prior_cwnd = state.cwnd;
    state.prior_ssthresh = Some(state.ssthresh);
    let ssthresh = ops.ssthresh(state, now);
    enter(ops, state, CaState::Recovery, now);
    state.ssthresh = Some(ssthresh);
    state.cwnd = ssthresh.max(MINIMUM_WINDOW);
    state.cwnd_cnt = 0;
}

/// Persistent congestion (RFC 9002 section 7.6): QUIC's retransmission timeout.
pub(crate) fn persistent(ops: &mut Builtin, state: &mut SendState, now: Instant) {
    enter(ops, state, CaState::Loss, now);
    state.cwnd = MINIMUM_WINDOW;
}

/// A packet sent after the episode began was acknowledged (RFC 9002 section 7.3.2).
pub(crate) fn end(ops: &mut Builtin, state: &mut SendState, now: Instant) {
    enter(ops, state, CaState::Open, now);
}

fn enter(ops: &mut Builtin, state: &mut SendState, new: CaState, now: Instant) {
    ops.set_state(state, new, now);
    state.ca_state = new;
}
