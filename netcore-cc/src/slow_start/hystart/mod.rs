//! HyStart (Ha and Rhee, "Taming the Elephants", 2008) in every form that Linux shipped.

mod quick;
mod rules;

pub use rules::{Detectors, HyStartRules, RoundReset};

use super::SlowStart;
use crate::rtt::{DelayMin, DelayUnit};
use netcore::Instant;
use netcore::congestion::{Clock, HystartCounters, PacingStatus, SendState};
use quick::Shortcut;

/// Samples of a round before its RTT is judged (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;

/// The fields of `struct bictcp` that concern HyStart, under the kernel's names. Times in the generation's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyStartState {
    /// Samples in this round, at most 8.
    pub sample_cnt: u8,
    /// Whether an exit was found since the last reset.
    pub found: bool,
    /// When the round began.
    pub round_start: u32,
    /// The round ends when this sequence number is acknowledged.
    pub end_seq: u32,
    /// The last ACK of the train.
    pub last_ack: u32,
    /// Smallest RTT of the round, `u32::MAX` if there is none yet.
    pub curr_rtt: u32,
}

/// HyStart of one generation.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    fields: HyStartState,
    /// Exits so far.
    pub counters: HystartCounters,
    rules: HyStartRules,
    detect: Detectors,
    enabled: bool,
    low_window: u32,
    ack_delta_us: u32,
    shortcut: Shortcut,
}

impl HyStart {
    /// HyStart by `rules`: both detectors, from a window of 16, ACKs no more than 2 ms apart.
    pub const fn new(rules: HyStartRules) -> Self {
        Self {
            fields: HyStartState {
                sample_cnt: 0,
                found: false,
                round_start: 0,
                end_seq: 0,
                last_ack: 0,
                curr_rtt: u32::MAX,
            },
            counters: HystartCounters { train_detect: 0, train_cwnd: 0, delay_detect: 0, delay_cwnd: 0 },
            rules: rules.sane(),
            detect: Detectors { ack_train: true, delay: true },
            enabled: true,
            low_window: 16,
            ack_delta_us: 2_000,
            shortcut: Shortcut::NONE,
        }
        .with_shortcut()
    }

    /// Turns it on or off (`hystart`).
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self.with_shortcut()
    }
    /// Chooses the signals (`hystart_detect`).
    pub const fn with_detectors(mut self, detect: Detectors) -> Self {
        self.detect = detect;
        self.with_shortcut()
    }
    /// Sets the window from which it acts, segments (`hystart_low_window`).
    pub const fn with_low_window(mut self, segments: u32) -> Self {
        self.low_window = segments;
        self
    }
    /// Sets the largest gap within an ACK train, µs (`hystart_ack_delta_us`, `hystart_ack_delta` × 1000).
    pub const fn with_ack_delta_us(mut self, us: u32) -> Self {
        self.ack_delta_us = us;
        self.with_shortcut()
    }

    #[inline]
    fn clock(&self, clock: &Clock, now: Instant) -> u32 {
        match self.rules.unit {
            DelayUnit::Micros => now.as_micros() as u32,
            DelayUnit::Millis8 => now.as_millis() as u32,
            DelayUnit::Jiffies8 => clock.jiffies(now),
        }
    }

    /// The largest gap within a train, in the generation's clock.
    #[inline]
    fn ack_delta(&self, clock: &Clock) -> u32 {
        match self.rules.unit {
            DelayUnit::Micros => self.ack_delta_us,
            DelayUnit::Millis8 => self.ack_delta_us / 1000,
            DelayUnit::Jiffies8 => clock.jiffies_from_micros(u64::from(self.ack_delta_us)),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_round(&mut self, state: &SendState, now: Instant) {
        let time = self.clock(&state.clock, now);
        self.fields.round_start = time;
        self.fields.last_ack = time;
        self.shortcut.new_round(now);
        self.fields.end_seq = state.snd_nxt;
        self.fields.curr_rtt = u32::MAX;
        self.fields.sample_cnt = 0;
    }

    #[inline]
    fn round_is_over(&self, state: &SendState) -> bool {
        (self.fields.end_seq.wrapping_sub(state.snd_una) as i32) < 0
    }

    /// Time that a super-packet may delay ACKs, µs (`hystart_ack_delay`).
    fn ack_delay(state: &SendState) -> u32 {
        match state.pacing_rate.map(|rate| rate.bytes_per_sec()) {
            None | Some(0) => 0,
            Some(rate) => (u64::from(state.gso_max_size) * 4_000_000 / rate).min(1000) as u32,
        }
    }

    /// How long a train must last.
    #[inline]
    fn train_threshold(&self, state: &SendState, delay_min: u32) -> u32 {
        match self.rules.unit {
            // Fixed point with three fraction bits: one more shift halves.
            DelayUnit::Jiffies8 | DelayUnit::Millis8 => delay_min >> 4,
            DelayUnit::Micros => {
                let cushion = if self.rules.pacing_aware { Self::ack_delay(state) } else { 0 };
                let whole = delay_min.saturating_add(cushion);
                if state.pacing_status == PacingStatus::None { whole >> 1 } else { whole }
            }
        }
    }

    fn train_found(&mut self, state: &SendState, delay_min: u32, now: Instant) -> bool {
        let time = self.clock(&state.clock, now);
        if (time.wrapping_sub(self.fields.last_ack) as i32) > self.ack_delta(&state.clock) as i32 {
            return false;
        }
        self.fields.last_ack = time;
        self.shortcut.train_goes_on(now);
        let lasted = time.wrapping_sub(self.fields.round_start);
        let threshold = self.train_threshold(state, delay_min);
        if self.rules.train_must_exceed { lasted > threshold } else { lasted >= threshold }
    }

    fn delay_found(&mut self, delay: u32, delay_min: u32) -> bool {
        let f = &mut self.fields;
        let judged = f.sample_cnt >= MIN_SAMPLES;
        if !judged || self.rules.minimum_of_all_samples {
            f.curr_rtt = f.curr_rtt.min(delay);
        }
        if !judged {
            f.sample_cnt += 1;
            return false;
        }
        let rules = &self.rules;
        let rise =
            (delay_min >> rules.delay_threshold_shift).clamp(rules.delay_threshold_min, rules.delay_threshold_max);
        f.curr_rtt > delay_min.saturating_add(rise)
    }
}

impl SlowStart for HyStart {
    fn reset(&mut self, state: &SendState, now: Instant) {
        self.fields.found = false;
        self.fields.sample_cnt = 0;
        if self.enabled {
            self.new_round(state, now);
        }
    }

    fn rtt_sample(&mut self, state: &mut SendState, delay: u32, delay_min: &DelayMin, now: Instant) {
        if !self.enabled || self.fields.found {
            return;
        }
        self.leave_shortcut();
        if self.rules.round_reset == RoundReset::AckHook && self.round_is_over(state) {
            self.new_round(state, now);
        }
        if state.cwnd < self.low_window {
            return;
        }
        if self.rules.round_reset == RoundReset::AckHookAboveLowWindow && self.round_is_over(state) {
            self.new_round(state, now);
        }
        let cwnd = u64::from(state.cwnd);
        let judged = self.fields.sample_cnt >= MIN_SAMPLES;
        if self.detect.ack_train && self.train_found(state, delay_min.value, now) {
            self.fields.found = true;
            self.counters.train_detect += 1;
            self.counters.train_cwnd += cwnd;
            state.ssthresh = Some(state.cwnd);
        }
        if self.detect.delay && self.delay_found(delay, delay_min.value) {
            self.fields.found = true;
            self.counters.delay_detect += 1;
            self.counters.delay_cwnd += cwnd;
            state.ssthresh = Some(state.cwnd);
        }
        self.settle(judged, delay_min.value, now);
    }

    fn new_minimum(&mut self) {
        self.leave_shortcut();
    }

    #[inline(always)]
    fn quick_sample(&mut self, state: &SendState, delay: u32, now: Instant) -> bool {
        self.take_shortcut(state, delay, now)
    }

    #[inline(always)]
    fn limited_ack(&mut self, state: &SendState, now: Instant) {
        if self.enabled && self.rules.round_reset == RoundReset::CongAvoid && self.round_is_over(state) {
            self.new_round(state, now);
        }
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn counters(&self) -> HystartCounters {
        self.counters
    }
}
