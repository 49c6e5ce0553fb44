//! What distinguishes the generations of HyStart.

use crate::rtt::DelayUnit;

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

    /// Rules that no arithmetic stumbles over: a floor not above the ceiling, a shift within 32 bits.
    pub(super) const fn sane(mut self) -> Self {
        if self.delay_threshold_min > self.delay_threshold_max {
            self.delay_threshold_min = self.delay_threshold_max;
        }
        if self.delay_threshold_shift > 31 {
            self.delay_threshold_shift = 31;
        }
        self
    }
}
