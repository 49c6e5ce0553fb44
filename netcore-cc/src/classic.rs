//! [`Classic`]: slow start × window adjustment.

use crate::rtt::{DelayMin, DelayUnit};
use crate::slow_start::{Growth, SlowStart};
use crate::window::WindowAdjustment;
use netcore::congestion::{
    AckEvent, AckFlags, AckSample, CaState, CongestionInfo, CongestionOps, CwndEvent, LimitedRule, PacketInfo,
    SendState,
};
use netcore::{Instant, Rate};

/// A window-based algorithm made of a slow start and a window adjustment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Classic<S, W> {
    /// The slow-start half.
    pub slow_start: S,
    /// The avoidance half.
    pub window: W,
    delay_min: DelayMin,
    growth: Growth,
    /// Whether delays are in µs and ACKs grow the window by packets up to the threshold.
    quick: bool,
    initial_ssthresh: u32,
}

impl<S: SlowStart, W: WindowAdjustment> Classic<S, W> {
    /// Puts two halves together; delays are measured in `unit`.
    pub const fn new(slow_start: S, window: W, unit: DelayUnit, growth: Growth) -> Self {
        let quick = matches!(unit, DelayUnit::Micros) && matches!(growth, Growth::PerPacket);
        Self { slow_start, window, delay_min: DelayMin::new(unit), growth, quick, initial_ssthresh: 0 }
    }

    /// The smallest delay seen, shared by both halves.
    pub const fn delay_min(&self) -> DelayMin {
        self.delay_min
    }

    /// A threshold at the start, segments, 0 for none; ignored while early exit is on (`initial_ssthresh`).
    pub const fn with_initial_ssthresh(mut self, segments: u32) -> Self {
        self.initial_ssthresh = segments;
        self
    }

    /// An ACK that changes nothing but counts, if it is one: then the effect of [`Self::whole_ack`] and `true`. Else nothing
    /// was changed: `false`. No division, no call: nine ACKs of ten end here.
    #[inline(always)]
    pub(crate) fn quick_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) -> bool {
        let limited = state.limited_rule == LimitedRule::Remembered && state.is_cwnd_limited;
        if !event.may_raise || !limited || !self.quick {
            return false;
        }
        let ssthresh = state.ssthresh_or_max();
        if state.cwnd >= ssthresh {
            return self.window.quick_avoid(state, event, &self.delay_min, now);
        }
        let Some(rtt_us) = event.sample.rtt_us else { return false };
        // Neither the threshold nor the clamp is passed.
        let Some(cwnd) = state.cwnd.checked_add(event.acked) else { return false };
        if cwnd > ssthresh
            || cwnd > state.cwnd_clamp
            || cwnd == 0
            || !self.window.ignores_packets()
            || !self.delay_min.stands(rtt_us)
            || !self.slow_start.quick_sample(state, rtt_us, now)
        {
            return false;
        }
        state.cwnd = cwnd;
        true
    }

    /// What an ACK does, in the kernel's order.
    #[inline(never)]
    pub(crate) fn whole_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) {
        self.pkts_acked(state, &event.sample, now);
        if event.may_raise {
            self.cong_avoid(state, event.acked, now);
        }
    }

    fn reset(&mut self, state: &SendState, now: Instant) {
        self.window.reset();
        self.delay_min.value = 0;
        self.slow_start.reset(state, now);
    }
}

impl<S: SlowStart, W: WindowAdjustment> CongestionOps for Classic<S, W> {
    fn name(&self) -> &'static str {
        self.window.name()
    }

    fn init(&mut self, state: &mut SendState, now: Instant) {
        self.reset(state, now);
        if !self.slow_start.enabled() && self.initial_ssthresh != 0 {
            state.ssthresh = Some(self.initial_ssthresh);
        }
    }

    fn ssthresh(&mut self, state: &mut SendState, now: Instant) -> u32 {
        self.slow_start.congestion();
        self.window.ssthresh(state, now)
    }

    fn cong_avoid(&mut self, state: &mut SendState, acked: u32, now: Instant) {
        if !state.cwnd_limited() {
            self.window.not_limited(state, now);
            return;
        }
        let mut left = acked;
        if self.growth.in_slow_start(state) {
            self.slow_start.limited_ack(state, now);
            left = self.slow_start.grow(self.growth, state, acked);
            if left == 0 {
                return;
            }
        }
        self.window.avoid(state, left, &self.delay_min, now);
    }

    fn undo_cwnd(&mut self, state: &mut SendState, _: Instant) -> u32 {
        self.slow_start.undo();
        self.window.undo_cwnd(state)
    }

    fn set_state(&mut self, state: &mut SendState, new: CaState, now: Instant) {
        if new == CaState::Loss {
            self.reset(state, now);
        }
    }

    fn cwnd_event(&mut self, state: &mut SendState, event: CwndEvent, now: Instant) {
        if event == CwndEvent::TxStart {
            self.window.tx_start(state, now);
        }
    }

    #[inline(always)]
    fn in_ack_event(&mut self, _: &mut SendState, _: AckFlags, _: Instant) {}

    fn pkts_acked(&mut self, state: &mut SendState, sample: &AckSample, now: Instant) {
        self.window.packets_acked(state, sample.pkts_acked);
        let Some(rtt_us) = sample.rtt_us else { return };
        if self.window.discards_rtt(state, now) {
            return;
        }
        let Some(delay) = self.delay_min.unit.delay(rtt_us, &state.clock, now) else { return };
        if self.delay_min.update(delay) {
            self.slow_start.new_minimum();
        }
        if self.growth.in_slow_start(state) {
            self.slow_start.rtt_sample(state, delay, &self.delay_min, now);
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) {
        if !self.quick_ack(state, event, now) {
            self.whole_ack(state, event, now);
        }
    }

    fn min_cwnd(&self, state: &SendState) -> u32 {
        self.window.min_cwnd(state)
    }

    fn pacing_rate(&self, state: &SendState) -> Option<Rate> {
        self.window.pacing_rate(state)
    }

    fn info(&self, state: &SendState) -> CongestionInfo {
        let mut info = CongestionInfo::default();
        let min = self.delay_min;
        info.min_rtt_us = (min.value != 0).then(|| min.unit.micros(min.value, &state.clock));
        info.w_max = self.window.w_max();
        info.hystart = self.slow_start.counters();
        info
    }

    fn packet_sent(&mut self, _: &mut SendState, _: &PacketInfo, _: Instant) {}
}

#[cfg(test)]
mod tests;
