//! The shortcut past HyStart for samples that cannot end slow start: comparisons only, no division.

use super::{HyStart, HyStartState, RoundReset};
use crate::rtt::DelayUnit;
use netcore::Instant;
use netcore::congestion::SendState;

/// How a sample is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// By the rules that run today, with both detectors: the shortcut exists.
    Current,
    /// Not at all.
    Off,
    /// By any rules.
    ByRules,
}

/// What is known beforehand about the next samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortcut {
    way: Way,
    /// Whether the round's RTT was judged since the minimum last changed, and has not risen. Only [`Way::Current`] settles.
    settled: bool,
    /// The last ACK of the train. [`HyStartState::last_ack`] is behind while this is in use.
    last_ack: Instant,
    /// Up to here the train has not lasted half the RTT.
    train_until: Instant,
    /// Largest gap within a train, ns.
    gap_ns: u64,
}

impl Shortcut {
    pub(super) const NONE: Self =
        Self { way: Way::ByRules, settled: false, last_ack: Instant::ZERO, train_until: Instant::ZERO, gap_ns: 0 };

    pub(super) fn new_round(&mut self, now: Instant) {
        self.settled = false;
        self.last_ack = now;
    }

    pub(super) fn train_goes_on(&mut self, now: Instant) {
        self.last_ack = now;
    }
}

/// Equal in what they are and will do; what the shortcut remembers does not count.
impl PartialEq for HyStart {
    fn eq(&self, other: &Self) -> bool {
        (self.fields(), self.counters, self.rules, self.detect)
            == (other.fields(), other.counters, other.rules, other.detect)
            && (self.enabled, self.low_window, self.ack_delta_us)
                == (other.enabled, other.low_window, other.ack_delta_us)
    }
}
impl Eq for HyStart {}

impl HyStart {
    /// The algorithm's own fields, as traces of the kernel show them.
    pub const fn fields(&self) -> HyStartState {
        let mut fields = self.fields;
        if matches!(self.shortcut.way, Way::Current) {
            fields.last_ack = self.shortcut.last_ack.as_micros() as u32;
        }
        fields
    }

    /// Finds out once what every sample would have to ask.
    pub(super) const fn with_shortcut(mut self) -> Self {
        self.fields = self.fields();
        let rules = &self.rules;
        let current = self.detect.ack_train
            && self.detect.delay
            && rules.minimum_of_all_samples
            && rules.train_must_exceed
            // A larger gap would be negative in the kernel's arithmetic.
            && self.ack_delta_us <= i32::MAX as u32
            && matches!(rules.unit, DelayUnit::Micros)
            && matches!(rules.round_reset, RoundReset::AckHook);
        self.shortcut.settled = false;
        self.shortcut.gap_ns = self.ack_delta_us as u64 * 1_000;
        self.shortcut.way = match (self.enabled, current) {
            (false, _) => Way::Off,
            (true, true) => Way::Current,
            (true, false) => Way::ByRules,
        };
        self
    }

    /// The next sample is looked at in full.
    pub(super) fn leave_shortcut(&mut self) {
        self.fields = self.fields();
        self.shortcut.settled = false;
    }

    /// After a sample, `judged` if its delay was: what the next ones leave unasked as long as nothing else changes.
    pub(super) fn settle(&mut self, judged: bool, delay_min: u32, now: Instant) {
        if self.shortcut.way != Way::Current {
            return;
        }
        self.shortcut.settled = judged && !self.fields.found;
        let lasted = (now.as_micros() as u32).wrapping_sub(self.fields.round_start);
        // The threshold is half the RTT at least.
        self.shortcut.train_until = match (delay_min >> 1).checked_sub(lasted) {
            Some(left) => Instant::from_micros(now.as_micros().saturating_add(u64::from(left))).plus_nanos(999),
            None => Instant::ZERO,
        };
    }

    #[inline(always)]
    pub(super) fn take_shortcut(&mut self, state: &SendState, delay: u32, now: Instant) -> bool {
        let (f, s) = (&self.fields, &mut self.shortcut);
        if !s.settled {
            return s.way == Way::Off || f.found && s.way == Way::Current;
        }
        // The round goes on; its RTT does not fall, and was found not to have risen.
        if (f.end_seq.wrapping_sub(state.snd_una) as i32) < 0 || state.cwnd < self.low_window || delay < f.curr_rtt {
            return false;
        }
        let gap = now.as_nanos().wrapping_sub(s.last_ack.as_nanos());
        if gap > s.gap_ns {
            // Surely no part of the train: more than a rounding error above, less than half the range of the clock.
            return gap > s.gap_ns + 1_000 && gap < 1 << 40;
        }
        if now > s.train_until {
            return false;
        }
        s.last_ack = now;
        true
    }
}
