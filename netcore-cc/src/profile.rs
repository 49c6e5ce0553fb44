//! [`Profile`]: what an era of Linux had, as one value.

use crate::builtin::Builtin;
use crate::classic::Classic;
use crate::rtt::DelayUnit;
use crate::slow_start::{Detectors, Growth, HyStart, HyStartPlusPlus, HyStartRules, UntilLoss};
use crate::window::reno::UndoRule;
use crate::window::{Cubic, CubicLegacy, CubicParameters, LegacyRules, ParameterError, Reno, Rfc9438};
use netcore::SendState;
use netcore::congestion::{Clock, LimitedRule};

/// Which window adjustment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Algorithm {
    /// NewReno.
    Reno,
    /// CUBIC as the era's Linux computes it.
    Cubic,
    /// CUBIC by RFC 9438.
    Rfc9438,
}

/// What ends slow start before loss does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Exit {
    /// Nothing.
    None,
    /// HyStart of one generation.
    HyStart(HyStartRules),
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
}

/// The module parameters of HyStart (`hystart`, `hystart_detect`, `hystart_low_window`, `hystart_ack_delta_us`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HyStartParameters {
    /// Whether it is on.
    pub enabled: bool,
    /// Signals: bit 0 ACK train, bit 1 delay.
    pub detect: u32,
    /// Window from which it acts, segments.
    pub low_window: u32,
    /// Largest gap within a train, µs.
    pub ack_delta_us: u32,
}

impl Default for HyStartParameters {
    fn default() -> Self {
        Self { enabled: true, detect: 3, low_window: 16, ack_delta_us: 2_000 }
    }
}

/// The congestion control of an era.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Its name, such as `linux-2.6.35`.
    pub name: &'static str,
    /// Window adjustment.
    pub algorithm: Algorithm,
    /// Slow-start exit.
    pub exit: Exit,
    /// Parameters of the exit.
    pub hystart: HyStartParameters,
    /// Parameters of CUBIC.
    pub cubic: CubicParameters,
    /// Rules of CUBIC before 4.0, `None` from 4.0 on.
    pub legacy: Option<LegacyRules>,
    /// CUBIC does not count idle time (since 4.3).
    pub shift_epoch_over_idle: bool,
    /// Growth in slow start.
    pub growth: Growth,
    /// When the window counts as the limit.
    pub limited_rule: LimitedRule,
    /// Where Reno's undo returns to.
    pub reno_undo: UndoRule,
    /// The tick counter.
    pub clock: Clock,
    /// Initial window of 10 (since 2.6.39), else by RFC 3390.
    pub initial_window_10: bool,
}

impl Profile {
    const fn linux(name: &'static str, exit: Exit, clock: Clock) -> Self {
        Self {
            name,
            algorithm: Algorithm::Cubic,
            exit,
            hystart: HyStartParameters { enabled: true, detect: 3, low_window: 16, ack_delta_us: 2_000 },
            cubic: CubicParameters {
                fast_convergence: true,
                beta: 717,
                initial_ssthresh: 0,
                bic_scale: 41,
                tcp_friendliness: true,
                restore_epoch_on_undo: false,
            },
            legacy: None,
            shift_epoch_over_idle: true,
            growth: Growth::PerPacket,
            limited_rule: LimitedRule::Remembered,
            reno_undo: UndoRule::PriorCwnd,
            clock,
            initial_window_10: true,
        }
    }

    /// The rules that all kernels before 3.13 share.
    fn old(name: &'static str, exit: Exit, rules: LegacyRules) -> Self {
        Self {
            legacy: Some(rules),
            shift_epoch_over_idle: false,
            growth: Growth::PerAck,
            limited_rule: LimitedRule::InFlight,
            reno_undo: UndoRule::TwiceSsthresh,
            initial_window_10: false,
            ..Self::linux(name, exit, Clock::default())
        }
    }

    /// Linux 2.6.23 (2007): CUBIC 2.1, beta 819/1024, no HyStart.
    pub fn linux_2_6_23() -> Self {
        let mut profile = Self::old("linux-2.6.23", Exit::None, LegacyRules::linux_2_6_23());
        profile.cubic.beta = 819;
        profile.limited_rule = LimitedRule::TsoDivisor;
        profile
    }
    /// Linux 2.6.32 (2009): CUBIC 2.3, HyStart as first shipped.
    pub fn linux_2_6_32() -> Self {
        Self { name: "linux-2.6.32", ..Self::linux_2_6_35() }
    }
    /// Linux 2.6.35 (2010): CUBIC 2.3, HyStart as first shipped.
    pub fn linux_2_6_35() -> Self {
        Self::old("linux-2.6.35", Exit::HyStart(HyStartRules::linux_2_6_29()), LegacyRules::linux_2_6_35())
    }
    /// Linux 3.6 (2012): after the HyStart repairs of March 2011.
    pub fn linux_3_6() -> Self {
        let mut profile = Self::old("linux-3.6", Exit::HyStart(HyStartRules::linux_2_6_39()), LegacyRules::linux_3_6());
        profile.initial_window_10 = true;
        profile
    }
    /// Linux 4.0 (2015): packets counted instead of ACKs, delay threshold an eighth of the RTT.
    pub fn linux_4_0() -> Self {
        Self {
            shift_epoch_over_idle: false,
            growth: Growth::PerPacketInclusive,
            reno_undo: UndoRule::TwiceSsthresh,
            ..Self::linux("linux-4.0", Exit::HyStart(HyStartRules::linux_4_0()), Clock::default())
        }
    }
    /// Linux 4.3 (2015): slow start ends at the threshold; idle time does not count.
    pub fn linux_4_3() -> Self {
        Self { name: "linux-4.3", shift_epoch_over_idle: true, growth: Growth::PerPacket, ..Self::linux_4_0() }
    }
    /// Linux 5.6 (2020): microsecond clock, HyStart aware of pacing.
    pub fn linux_5_6() -> Self {
        Self::linux("linux-5.6", Exit::HyStart(HyStartRules::linux_5_6()), Clock::default())
    }
    /// Linux 5.16 (2022): rounds of HyStart no longer need a limiting window.
    pub fn linux_5_16() -> Self {
        Self::linux("linux-5.16", Exit::HyStart(HyStartRules::linux_5_16()), Clock::default())
    }
    /// Linux today (6.14 and later).
    pub fn linux_current() -> Self {
        Self::linux("linux-current", Exit::HyStart(HyStartRules::linux_current()), Clock::default())
    }
    /// CUBIC by RFC 9438 with HyStart++ by RFC 9406.
    pub fn rfc9438() -> Self {
        Self { algorithm: Algorithm::Rfc9438, ..Self::linux("rfc9438", Exit::HyStartPlusPlus, Clock::default()) }
    }

    /// Every profile, oldest first.
    pub fn all() -> [Self; 10] {
        [
            Self::linux_2_6_23(),
            Self::linux_2_6_32(),
            Self::linux_2_6_35(),
            Self::linux_3_6(),
            Self::linux_4_0(),
            Self::linux_4_3(),
            Self::linux_5_6(),
            Self::linux_5_16(),
            Self::linux_current(),
            Self::rfc9438(),
        ]
    }

    /// The profile of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| profile.name == name)
    }

    /// The same era with another window adjustment.
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }
    /// The same era with another slow-start exit.
    pub fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
    /// The same era on a machine of that HZ.
    pub fn with_hz(mut self, hz: u32) -> Result<Self, ParameterError> {
        let clock = Clock::new(hz).ok_or(ParameterError::Hz(hz))?;
        self.clock = clock.with_jiffies_at_zero(self.clock.jiffies_at_zero);
        Ok(self)
    }

    /// Sets a module parameter by its name in `/sys/module/tcp_cubic/parameters`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        let bad = |allowed| ParameterError::Value { name: name.into(), value: value.into(), allowed };
        let number = || value.parse::<u32>().map_err(|_| bad("whole numbers from 0 to 4294967295"));
        let flag = || match value {
            "0" | "n" | "N" | "false" => Ok(false),
            "1" | "y" | "Y" | "true" => Ok(true),
            _ => Err(bad("0, 1, n, y, false, true")),
        };
        let mut changed = *self;
        match name {
            "fast_convergence" => changed.cubic.fast_convergence = flag()?,
            "beta" => changed.cubic.beta = number()?,
            "initial_ssthresh" => changed.cubic.initial_ssthresh = number()?,
            "bic_scale" => changed.cubic.bic_scale = number()?,
            "tcp_friendliness" => changed.cubic.tcp_friendliness = flag()?,
            "hystart" => changed.hystart.enabled = flag()?,
            "hystart_detect" => changed.hystart.detect = number()?,
            "hystart_low_window" => changed.hystart.low_window = number()?,
            "hystart_ack_delta_us" => changed.hystart.ack_delta_us = number()?,
            "hystart_ack_delta" => {
                changed.hystart.ack_delta_us = number()?.checked_mul(1000).ok_or_else(|| bad("0 to 4294967 (ms)"))?
            }
            "restore_epoch_on_undo" => changed.cubic.restore_epoch_on_undo = flag()?,
            _ => {
                return Err(ParameterError::Unknown {
                    name: name.into(),
                    allowed: "fast_convergence, beta, initial_ssthresh, bic_scale, tcp_friendliness, hystart, \
                              hystart_detect, hystart_low_window, hystart_ack_delta_us, hystart_ack_delta, \
                              restore_epoch_on_undo",
                });
            }
        }
        changed.validate()?;
        *self = changed;
        Ok(())
    }

    /// Checks all parameters.
    pub fn validate(&self) -> Result<(), ParameterError> {
        if self.hystart.detect > 3 {
            return Err(ParameterError::Detect(self.hystart.detect));
        }
        self.cubic.validate()
    }

    /// Initial window in segments for segments of `mss` bytes: 10 since 2.6.39, else RFC 3390 as Linux rounds it.
    pub fn initial_window(&self, mss: u32) -> u32 {
        match mss {
            _ if self.initial_window_10 => 10,
            1461.. => 2,
            1096.. => 3,
            _ => 4,
        }
    }

    /// Puts the era's clock and its test of the limiting window into `state`.
    pub fn prepare(&self, state: &mut SendState) {
        state.clock = self.clock;
        state.limited_rule = self.limited_rule;
    }

    fn hystart_of(&self, rules: HyStartRules) -> HyStart {
        let p = self.hystart;
        HyStart::new(rules)
            .with_enabled(p.enabled)
            .with_detectors(Detectors { ack_train: p.detect & 1 != 0, delay: p.detect & 2 != 0 })
            .with_low_window(p.low_window)
            .with_ack_delta_us(p.ack_delta_us)
    }

    /// The unit of delays: that of HyStart, else that of the era.
    fn unit(&self) -> DelayUnit {
        match (self.exit, self.legacy) {
            (Exit::HyStart(rules), _) => rules.unit,
            (Exit::None, Some(_)) => DelayUnit::Jiffies8,
            _ => DelayUnit::Micros,
        }
    }

    /// The algorithm, ready for `init`.
    ///
    /// HyStart++ works in µs and is not combined with a CUBIC before 4.0: such a profile gets the era's CUBIC with
    /// HyStart switched off.
    pub fn build(&self) -> Builtin {
        let (unit, growth) = (self.unit(), self.growth);
        let reno = Reno { per_ack: growth == Growth::PerAck, undo: self.reno_undo };
        let cubic = Cubic::new(self.cubic, self.shift_epoch_over_idle);
        let first = self.cubic.initial_ssthresh;
        let off = || self.hystart_of(HyStartRules::linux_current()).with_enabled(false);
        match (self.algorithm, self.exit) {
            (Algorithm::Reno, Exit::None) => Builtin::Reno(Classic::new(UntilLoss, reno, unit, growth)),
            (Algorithm::Reno, Exit::HyStart(rules)) => {
                Builtin::RenoHyStart(Classic::new(self.hystart_of(rules), reno, unit, growth))
            }
            (Algorithm::Reno, Exit::HyStartPlusPlus) => {
                Builtin::RenoHyStartPlusPlus(Classic::new(HyStartPlusPlus::new(), reno, DelayUnit::Micros, growth))
            }
            (Algorithm::Cubic, exit) => match (self.legacy, exit) {
                (Some(rules), exit) => {
                    let hystart = match exit {
                        Exit::HyStart(generation) => self.hystart_of(generation),
                        _ => off(),
                    };
                    let window = CubicLegacy::new(rules, self.cubic);
                    Builtin::CubicLegacy(Classic::new(hystart, window, unit, growth).with_initial_ssthresh(first))
                }
                (None, Exit::HyStartPlusPlus) => Builtin::CubicHyStartPlusPlus(Classic::new(
                    HyStartPlusPlus::new(),
                    cubic,
                    DelayUnit::Micros,
                    growth,
                )),
                (None, Exit::HyStart(generation)) => Builtin::Cubic(
                    Classic::new(self.hystart_of(generation), cubic, unit, growth).with_initial_ssthresh(first),
                ),
                (None, Exit::None) => {
                    Builtin::Cubic(Classic::new(off(), cubic, unit, growth).with_initial_ssthresh(first))
                }
            },
            (Algorithm::Rfc9438, Exit::None) => {
                Builtin::Rfc9438(Classic::new(UntilLoss, Rfc9438::new(), DelayUnit::Micros, growth))
            }
            (Algorithm::Rfc9438, Exit::HyStart(rules)) => {
                Builtin::Rfc9438HyStart(Classic::new(self.hystart_of(rules), Rfc9438::new(), unit, growth))
            }
            (Algorithm::Rfc9438, Exit::HyStartPlusPlus) => Builtin::Rfc9438HyStartPlusPlus(Classic::new(
                HyStartPlusPlus::new(),
                Rfc9438::new(),
                DelayUnit::Micros,
                growth,
            )),
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::linux_current()
    }
}

#[cfg(test)]
mod tests;
