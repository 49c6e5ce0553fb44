//! The smallest round-trip time, in the unit that an era measured it in.

use netcore::Instant;
use netcore::congestion::Clock;

/// The unit of delays inside CUBIC and HyStart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DelayUnit {
    /// Ticks times eight: Linux 2.6.29 to 2.6.38. The sample itself is a difference of two tick counts.
    Jiffies8,
    /// Milliseconds times eight: Linux 2.6.39 to 5.5.
    Millis8,
    /// Microseconds: Linux since 5.6.
    Micros,
}

impl DelayUnit {
    /// An RTT that ended at `now`, in this unit; at least 1. `None` if an era's clock saw no time pass and therefore
    /// took no sample.
    #[inline]
    pub fn delay(self, rtt_us: u32, clock: &Clock, now: Instant) -> Option<u32> {
        match self {
            Self::Micros => Some(rtt_us.max(1)),
            Self::Millis8 => Some(((u64::from(rtt_us) * 8 / 1000) as u32).max(1)),
            Self::Jiffies8 => {
                let sent = Instant::from_nanos(now.as_nanos().saturating_sub(u64::from(rtt_us) * 1000));
                match clock.jiffies(now).wrapping_sub(clock.jiffies(sent)) {
                    0 => None,
                    ticks => Some(ticks.saturating_mul(8)),
                }
            }
        }
    }

    /// A delay as ticks (`usecs_to_jiffies`, `msecs_to_jiffies`).
    #[inline]
    pub fn jiffies(self, delay: u32, clock: &Clock) -> u32 {
        match self {
            Self::Micros => clock.jiffies_from_micros(u64::from(delay)),
            Self::Millis8 => clock.jiffies_from_millis(u64::from(delay >> 3)),
            Self::Jiffies8 => delay >> 3,
        }
    }

    /// A delay in µs, for display.
    pub fn micros(self, delay: u32, clock: &Clock) -> u32 {
        let micros = match self {
            Self::Micros => u64::from(delay),
            Self::Millis8 => u64::from(delay) * 125,
            Self::Jiffies8 => u64::from(delay) * 125_000 / u64::from(clock.hz()),
        };
        micros.min(u64::from(u32::MAX)) as u32
    }
}

/// The smallest delay seen (`delay_min`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayMin {
    /// The unit of `value`.
    pub unit: DelayUnit,
    /// The delay, 0 if there is none yet.
    pub value: u32,
}

impl DelayMin {
    /// No delay known.
    pub const fn new(unit: DelayUnit) -> Self {
        Self { unit, value: 0 }
    }

    /// Takes a sample in; tells whether it is the new minimum.
    #[inline]
    pub fn update(&mut self, delay: u32) -> bool {
        let smaller = self.value == 0 || self.value > delay;
        if smaller {
            self.value = delay;
        }
        smaller
    }

    /// Whether a sample would change nothing.
    #[inline(always)]
    pub(crate) fn stands(&self, delay: u32) -> bool {
        self.value.wrapping_sub(1) < delay
    }

    /// The delay as ticks.
    #[inline]
    pub fn jiffies(&self, clock: &Clock) -> u32 {
        self.unit.jiffies(self.value, clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(hz: u32) -> Clock {
        Clock::new(hz).unwrap()
    }

    #[test]
    fn tick_delays_are_differences_of_tick_counts() {
        let now = Instant::from_micros(104_100);
        let unit = DelayUnit::Jiffies8;
        assert_eq!(unit.delay(200, &clock(250), now), Some(8), "a tick passed within 200 us");
        assert_eq!(unit.delay(99, &clock(250), now), None, "no tick passed");
        assert_eq!(unit.delay(20_000, &clock(100), now), Some(16));
        assert_eq!(unit.delay(u32::MAX, &clock(1000), now), Some(104 * 8), "before the origin");
    }

    #[test]
    fn millisecond_delays_keep_three_fraction_bits_and_never_are_zero() {
        let now = Instant::ZERO;
        assert_eq!(DelayUnit::Millis8.delay(1_125, &clock(250), now), Some(9));
        assert_eq!(DelayUnit::Millis8.delay(0, &clock(250), now), Some(1));
        assert_eq!(DelayUnit::Micros.delay(0, &clock(250), now), Some(1));
    }

    #[test]
    fn conversion_to_ticks_rounds_up() {
        assert_eq!(DelayUnit::Micros.jiffies(40_260, &clock(250)), 11);
        assert_eq!(DelayUnit::Millis8.jiffies(40 * 8 + 7, &clock(250)), 10);
        assert_eq!(DelayUnit::Jiffies8.jiffies(31, &clock(250)), 3);
        assert_eq!(DelayUnit::Millis8.micros(9, &clock(250)), 1_125);
        assert_eq!(DelayUnit::Jiffies8.micros(8, &clock(250)), 4_000);
    }

    #[test]
    fn minimum_only_falls() {
        let mut min = DelayMin::new(DelayUnit::Micros);
        for (delay, expected) in [(50, 50), (60, 50), (40, 40)] {
            min.update(delay);
            assert_eq!(min.value, expected);
        }
    }
}
