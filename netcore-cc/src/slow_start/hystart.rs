//! HyStart (Ha and Rhee, "Taming the Elephants", 2008) in every form that Linux shipped.

use super::SlowStart;
use crate::rtt::{DelayMin, DelayUnit};
use netcore::Instant;
use netcore::congestion::{Clock, HystartCounters, PacingStatus, SendState};

/// Which signals end slow start (`hystart_detect`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Detectors {
    /// A train of closely spaced ACKs half a round trip long (bit 1).
    pub ack_train: bool,
    /// A rising RTT (bit 2).
    pub delay: bool,
}

/// When a round of HyStart begins anew.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RoundReset {
    /// When the window grows, hence only on ACKs that find it the limit (Linux before 5.16).
    CongAvoid,
    /// On any ACK, from `hystart_low_window` on (Linux 5.16 to 6.13).
    AckHookAboveLowWindow,
    /// On any ACK (Linux since the 6.14 cycle).
    AckHook,
}

/// What distinguishes the generations. Thresholds are in the unit of [`HyStartRules::unit`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HyStartRules {
    /// Clock of both detectors.
    pub unit: DelayUnit,
    /// Least rise of the RTT that counts.
    pub delay_threshold_min: u32,
    /// Most rise of the RTT that is asked for.
    pub delay_threshold_max: u32,
    /// The rise asked for is `delay_min >> this`, within the two limits above.
    pub delay_threshold_shift: u32,
    /// `curr_rtt` may fall after the eighth sample of a round (since 5.8).
    pub minimum_of_all_samples: bool,
    /// The train must exceed half the RTT, not just reach it (since 2.6.39).
    pub train_must_exceed: bool,
    /// The train test knows pacing and the ACK delay of super-packets (since 5.6).
    pub pacing_aware: bool,
    /// When a round begins anew.
    pub round_reset: RoundReset,
}

impl HyStartRules {
    /// 2.6.29 to 2.6.38, as first shipped.
    pub const fn linux_2_6_29() -> Self {
        Self {
            unit: DelayUnit::Jiffies8,
            delay_threshold_min: 2 << 3,
            delay_threshold_max: 16 << 3,
            delay_threshold_shift: 4,
            minimum_of_all_samples: false,
            train_must_exceed: false,
            pacing_aware: false,
            round_reset: RoundReset::CongAvoid,
        }
    }
    /// 2.6.39 to 3.18: millisecond clock, delay floor 4 ms.
    pub const fn linux_2_6_39() -> Self {
        Self { unit: DelayUnit::Millis8, delay_threshold_min: 4 << 3, train_must_exceed: true, ..Self::linux_2_6_29() }
    }
    /// 3.19 to 5.5: delay threshold an eighth of the RTT.
    pub const fn linux_4_0() -> Self {
        Self { delay_threshold_shift: 3, ..Self::linux_2_6_39() }
    }
    /// 5.6 and 5.7: microsecond clock, ACK delay, pacing aware.
    pub const fn linux_5_6() -> Self {
        Self {
            unit: DelayUnit::Micros,
            delay_threshold_min: 4_000,
            delay_threshold_max: 16_000,
            pacing_aware: true,
            ..Self::linux_4_0()
        }
    }
    /// 5.8 to 5.15: the round's minimum RTT may fall.
    pub const fn linux_5_8() -> Self {
        Self { minimum_of_all_samples: true, ..Self::linux_5_6() }
    }
    /// 5.16 to 6.13: rounds no longer need a limiting window.
    pub const fn linux_5_16() -> Self {
        Self { round_reset: RoundReset::AckHookAboveLowWindow, ..Self::linux_5_8() }
    }
    /// 6.14 to today: rounds run below `hystart_low_window` too.
    pub const fn linux_current() -> Self {
        Self { round_reset: RoundReset::AckHook, ..Self::linux_5_16() }
    }
}

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyStart {
    /// The algorithm's own fields. Public so that traces can be compared and replayed.
    pub fields: HyStartState,
    /// Exits so far.
    pub counters: HystartCounters,
    rules: HyStartRules,
    detect: Detectors,
    enabled: bool,
    low_window: u32,
    ack_delta_us: u32,
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
            rules,
            detect: Detectors { ack_train: true, delay: true },
            enabled: true,
            low_window: 16,
            ack_delta_us: 2_000,
        }
    }

    /// Turns it on or off (`hystart`).
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }
    /// Chooses the signals (`hystart_detect`).
    pub const fn with_detectors(mut self, detect: Detectors) -> Self {
        self.detect = detect;
        self
    }
    /// Sets the window from which it acts, segments (`hystart_low_window`).
    pub const fn with_low_window(mut self, segments: u32) -> Self {
        self.low_window = segments;
        self
    }
    /// Sets the largest gap within an ACK train, µs (`hystart_ack_delta_us`, `hystart_ack_delta` × 1000).
    pub const fn with_ack_delta_us(mut self, us: u32) -> Self {
        self.ack_delta_us = us;
        self
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

    #[inline(always)]
    fn train_found(&mut self, state: &SendState, delay_min: u32, now: Instant) -> bool {
        let time = self.clock(&state.clock, now);
        if (time.wrapping_sub(self.fields.last_ack) as i32) > self.ack_delta(&state.clock) as i32 {
            return false;
        }
        self.fields.last_ack = time;
        let lasted = time.wrapping_sub(self.fields.round_start);
        // The threshold is half the RTT at least; only a train that long needs the division in `ack_delay`.
        let half = if self.rules.unit == DelayUnit::Micros { delay_min >> 1 } else { delay_min >> 4 };
        if lasted < half {
            return false;
        }
        let threshold = self.train_threshold(state, delay_min);
        if self.rules.train_must_exceed { lasted as i32 > threshold as i32 } else { lasted >= threshold }
    }

    #[inline(always)]
    fn delay_found(&mut self, delay: u32, delay_min: u32) -> bool {
        let rules = &self.rules;
        let f = &mut self.fields;
        let judged = f.sample_cnt >= MIN_SAMPLES;
        if !judged || rules.minimum_of_all_samples {
            f.curr_rtt = f.curr_rtt.min(delay);
        }
        if !judged {
            f.sample_cnt += 1;
            return false;
        }
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

    #[inline(always)]
    fn rtt_sample(&mut self, state: &mut SendState, delay: u32, delay_min: &DelayMin, now: Instant) {
        if !self.enabled || self.fields.found {
            return;
        }
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
