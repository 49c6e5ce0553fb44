//! The tick counter that Linux algorithms read.

use crate::time::Instant;

/// Turns [`Instant`] into jiffies.
///
/// Linux congestion controls measure epochs, and before 2.6.39 also round-trip times, in ticks of 1/HZ second. The
/// phase matters: two instants 1 µs apart can lie in different ticks. `jiffies_at_zero` sets the counter's value at
/// [`Instant::ZERO`]; it may be any number, so that a counter about to wrap, or one whose top bit is set as during the
/// first five minutes after a Linux boot, can be had.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Clock {
    hz: u32,
    /// Value of the 32-bit tick counter (`tcp_jiffies32`) at [`Instant::ZERO`].
    pub jiffies_at_zero: u32,
}

impl Clock {
    /// The most ticks per second that a clock may have (Linux: 100, 250, 300, 1000; Alpha: 1024).
    pub const MAX_HZ: u32 = 1200;

    /// A clock of `hz` ticks per second whose counter is 0 at [`Instant::ZERO`]. `None` unless `1 <= hz <= 1200`.
    #[inline]
    pub const fn new(hz: u32) -> Option<Self> {
        if hz == 0 || hz > Self::MAX_HZ { None } else { Some(Self { hz, jiffies_at_zero: 0 }) }
    }

    /// The same clock with another counter value at [`Instant::ZERO`].
    #[inline]
    pub const fn with_jiffies_at_zero(mut self, jiffies: u32) -> Self {
        self.jiffies_at_zero = jiffies;
        self
    }

    /// Ticks per second (`HZ`).
    #[inline]
    pub const fn hz(&self) -> u32 {
        self.hz
    }

    /// The tick counter at `now` (`tcp_jiffies32`), wrapping.
    ///
    /// Ticks are counted in whole microseconds, exact for every HZ that divides 1,000,000.
    #[inline]
    pub const fn jiffies(&self, now: Instant) -> u32 {
        // At 1200 Hz the product wraps after 487 years, where the counter wraps as well.
        (now.as_micros().wrapping_mul(self.hz as u64) / 1_000_000).wrapping_add(self.jiffies_at_zero as u64) as u32
    }

    /// Microseconds as ticks, rounded up (`usecs_to_jiffies`).
    #[inline]
    pub const fn jiffies_from_micros(&self, us: u64) -> u32 {
        let ticks = (us as u128 * self.hz as u128).div_ceil(1_000_000);
        if ticks > u32::MAX as u128 { u32::MAX } else { ticks as u32 }
    }

    /// Milliseconds as ticks, rounded up (`msecs_to_jiffies`).
    #[inline]
    pub const fn jiffies_from_millis(&self, ms: u64) -> u32 {
        self.jiffies_from_micros(ms.saturating_mul(1000))
    }

    /// This clock moved so that its counter reads `jiffies` at `now`. For replaying a trace that records both.
    #[inline]
    pub const fn synchronised(mut self, now: Instant, jiffies: u32) -> Self {
        self.jiffies_at_zero = self.jiffies_at_zero.wrapping_add(jiffies.wrapping_sub(self.jiffies(now)));
        self
    }
}

impl Default for Clock {
    /// 250 Hz, the usual configuration of distribution kernels.
    fn default() -> Self {
        Self { hz: 250, jiffies_at_zero: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_floor_and_conversions_round_up() {
        let clock = Clock::new(250).unwrap();
        assert_eq!(clock.jiffies(Instant::from_micros(3_999)), 0);
        assert_eq!(clock.jiffies(Instant::from_micros(4_000)), 1);
        assert_eq!(clock.jiffies_from_micros(1), 1);
        assert_eq!(clock.jiffies_from_micros(4_000), 1);
        assert_eq!(clock.jiffies_from_millis(5), 2);
        assert_eq!(clock.jiffies_from_micros(0), 0);
        assert_eq!(clock.jiffies_from_micros(u64::MAX), u32::MAX);
    }

    #[test]
    fn only_a_positive_and_sane_hz_makes_a_clock() {
        assert!(Clock::new(0).is_none());
        assert!(Clock::new(1201).is_none());
        assert_eq!(Clock::new(1200).unwrap().hz(), 1200);
    }

    #[test]
    fn counter_wraps_at_32_bits() {
        let clock = Clock::new(1000).unwrap().with_jiffies_at_zero(u32::MAX);
        assert_eq!(clock.jiffies(Instant::from_millis(1)), 0);
        let late = Clock::new(1000).unwrap();
        assert_eq!(late.jiffies(Instant::from_secs(5_000_000)), (5_000_000_000_u64 % (1 << 32)) as u32);
    }

    #[test]
    fn synchronised_reads_the_given_counter() {
        let now = Instant::from_micros(7_291_298_713);
        let clock = Clock::default().with_jiffies_at_zero(77).synchronised(now, 12);
        assert_eq!(clock.jiffies(now), 12);
    }
}
