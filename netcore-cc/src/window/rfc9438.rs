//! CUBIC by the text of RFC 9438, windows in 1/65536 segment.

use super::WindowAdjustment;
use crate::rtt::DelayMin;
use netcore::Instant;
use netcore::congestion::SendState;

/// Fraction bits of a window.
const FRACTION: u32 = 16;
const ONE: u64 = 1 << FRACTION;

/// One epoch's state; undo restores all of it (section 4.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Epoch {
    /// Section 4.1.2: W_max, 0 if there was no congestion yet.
    w_max: u64,
    /// Window at the last reduction.
    cwnd_prior: u64,
    /// Reno-friendly estimate.
    w_est: u64,
    /// K in µs.
    k_us: u64,
    /// When the epoch began.
    start: Option<Instant>,
    /// Fraction of the window that `SendState::cwnd` cannot hold.
    fraction: u64,
    /// The window of the last event, to notice that others wrote it.
    cwnd: u32,
}

/// CUBIC by RFC 9438 with C = 0.4 and beta = 0.7.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rfc9438 {
    epoch: Epoch,
    saved: Epoch,
    /// The last ACK in avoidance, whether it found the window the limit or not.
    last_ack: Option<Instant>,
    after_timeout: bool,
}

/// Integer cube root, rounded down.
fn exact_cube_root(a: u128) -> u64 {
    let mut root = 0_u128;
    for bit in (0..42).rev() {
        let with = root | 1 << bit;
        if with * with * with <= a {
            root = with;
        }
    }
    root as u64
}

impl Rfc9438 {
    /// At rest.
    pub fn new() -> Self {
        Self::default()
    }

    /// K in µs for a window of `cwnd` below `w_max` (section 4.2, figure 2), both in 1/65536 segment.
    pub fn k_us(w_max: u64, cwnd: u64) -> u64 {
        if cwnd >= w_max {
            return 0;
        }
        // K³ = (w_max - cwnd) / 0.4, in µs³: × 10^18 × 5 / 2 / 2^16.
        exact_cube_root((u128::from(w_max - cwnd) * 2_500_000_000_000_000_000) >> FRACTION)
    }

    /// `W_cubic(t) = C (t - K)³ + W_max` (section 4.2, figure 1), windows in 1/65536 segment, times in µs.
    pub fn w_cubic(t_us: u64, k_us: u64, w_max: u64) -> u64 {
        // 2^35 µs are 9.5 hours: the cube is 10^13 segments by then, and the product below still fits 128 bits.
        let distance = u128::from(t_us.abs_diff(k_us).min(1 << 35));
        // 0.4 in 1/65536 segment; µs³ are 10^-18 s³.
        let scaled = distance * distance * distance * u128::from(ONE) * 2 / 5;
        let delta = (scaled / 1_000_000_000_000_000_000) as u64;
        if t_us < k_us { w_max.saturating_sub(delta) } else { w_max.saturating_add(delta) }
    }

    /// The Reno-friendly estimate W_est in 1/65536 segment (section 4.3), 0 before the first epoch.
    pub const fn w_est(&self) -> u64 {
        self.epoch.w_est
    }

    /// When the epoch began (t_epoch), moved by the time that does not count; `None` while none is running.
    pub const fn epoch_start(&self) -> Option<Instant> {
        self.epoch.start
    }

    /// Section 4.2: time in which the application was the limit, from `since` to `now`, is not part of t.
    fn exclude(&mut self, since: Instant, now: Instant) {
        self.epoch.start = self.epoch.start.map(|start| start.plus_nanos(now.nanos_since(since)));
        self.last_ack = Some(now);
    }

    /// The window with its fraction; the fraction is dropped if somebody else wrote the window.
    fn window(&self, state: &SendState) -> u64 {
        let whole = u64::from(state.cwnd) << FRACTION;
        if self.epoch.cwnd == state.cwnd { whole + self.epoch.fraction } else { whole }
    }

    fn store(&mut self, state: &mut SendState, window: u64) {
        let whole = (window >> FRACTION).clamp(1, u64::from(state.cwnd_clamp.max(1))) as u32;
        self.epoch.fraction = if u64::from(whole) == window >> FRACTION { window & (ONE - 1) } else { 0 };
        self.epoch.cwnd = whole;
        state.cwnd = whole;
    }

    fn begin_epoch(&mut self, cwnd: u64, now: Instant) {
        let e = &mut self.epoch;
        e.start = Some(now);
        e.w_est = cwnd;
        // Sections 4.8 and 4.10: after a timeout, or without any congestion yet, K = 0 and W_max = cwnd.
        if e.w_max == 0 || self.after_timeout {
            e.w_max = cwnd;
            self.after_timeout = false;
        }
        e.k_us = Self::k_us(e.w_max, cwnd);
        if cwnd > e.w_max {
            e.w_max = cwnd;
        }
    }
}

impl WindowAdjustment for Rfc9438 {
    fn name(&self) -> &'static str {
        "cubic-rfc9438"
    }

    fn reset(&mut self) {
        // Section 4.8: W_max and K are set afresh when avoidance begins after the timeout.
        self.epoch.start = None;
        self.after_timeout = true;
        self.last_ack = None;
    }

    fn avoid(&mut self, state: &mut SendState, acked: u32, delay_min: &DelayMin, now: Instant) {
        let cwnd = self.window(state);
        self.last_ack = Some(now);
        if self.epoch.start.is_none() {
            self.begin_epoch(cwnd, now);
        }
        let e = &mut self.epoch;
        let t_us = e.start.map_or(0, |start| now.nanos_since(start) / 1000);
        let rtt_us = match state.srtt_us8 >> 3 {
            0 => u64::from(delay_min.unit.micros(delay_min.value, &state.clock)),
            srtt => u64::from(srtt),
        };
        // Section 4.3: W_est += alpha × acked / cwnd, alpha = 3 (1 - beta) / (1 + beta) = 9 / 17, 1 from cwnd_prior on.
        let (numerator, denominator) = if e.w_est >= e.cwnd_prior { (1, 1) } else { (9_u128, 17_u128) };
        let credit = u128::from(acked) << (2 * FRACTION);
        let step = credit * numerator / denominator / u128::from(cwnd.max(1));
        e.w_est = e.w_est.saturating_add(step as u64);
        let grown = if Self::w_cubic(t_us, e.k_us, e.w_max) < e.w_est {
            // Section 4.3: Reno-friendly region.
            cwnd.max(e.w_est)
        } else {
            // Sections 4.4 and 4.5: towards the target one RTT ahead, which is at most 1.5 windows.
            let target = Self::w_cubic(t_us.saturating_add(rtt_us), e.k_us, e.w_max).clamp(cwnd, cwnd + cwnd / 2);
            cwnd + (u128::from(target - cwnd) * u128::from(acked) * u128::from(ONE) / u128::from(cwnd.max(1))) as u64
        };
        self.store(state, grown);
    }

    fn not_limited(&mut self, _: &SendState, now: Instant) {
        // The window was not the limit since the last ACK.
        self.exclude(self.last_ack.unwrap_or(now), now);
    }

    fn ssthresh(&mut self, state: &SendState, _: Instant) -> u32 {
        self.saved = self.epoch;
        let cwnd = self.window(state);
        let e = &mut self.epoch;
        // Section 4.7, fast convergence, before the reduction: W_max = cwnd × (1 + beta) / 2.
        e.w_max = if cwnd < e.w_max { cwnd * 17 / 20 } else { cwnd };
        e.cwnd_prior = cwnd;
        e.start = None;
        // Section 4.6, figure 5: ssthresh = cwnd × beta, at least 2 segments; whole segments, rounded down.
        let reduced = (cwnd * 7 / 10).max(2 * ONE);
        e.fraction = reduced & (ONE - 1);
        e.cwnd = (reduced >> FRACTION).min(u64::from(u32::MAX)) as u32;
        e.cwnd
    }

    fn undo_cwnd(&mut self, state: &SendState) -> u32 {
        // Section 4.9: all state from before the event, if the window is still below the one saved.
        if state.cwnd < state.prior_cwnd {
            self.epoch = self.saved;
            self.epoch.cwnd = state.prior_cwnd;
        }
        state.cwnd.max(state.prior_cwnd)
    }

    fn tx_start(&mut self, state: &SendState, now: Instant) {
        // Nothing has been in flight since the last ACK. Less than an RTT of that is a gap between packet trains, not idleness.
        let srtt_ns = u64::from(state.srtt_us8) * 125;
        let since = self.last_ack.unwrap_or(state.last_sent.plus_nanos(srtt_ns));
        if now.nanos_since(since) > srtt_ns {
            self.exclude(since, now);
        }
    }

    fn w_max(&self) -> Option<u32> {
        (self.epoch.w_max != 0).then_some((self.epoch.w_max >> FRACTION).min(u64::from(u32::MAX)) as u32)
    }
}

#[cfg(test)]
mod tests;
