//! [`Tick`]: one tick of the counter, told by a comparison instead of two divisions per ACK.

use netcore::Instant;
use netcore::congestion::Clock;

/// What was left of a tick when it was looked at. The default is no tick at all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tick {
    start_ns: u64,
    /// 0 if there is no tick.
    left_ns: u64,
    clock: u64,
}

/// A clock as one number, so that one comparison suffices.
#[inline(always)]
fn identity(clock: &Clock) -> u64 {
    u64::from(clock.hz()) | u64::from(clock.jiffies_at_zero) << 32
}

impl Tick {
    /// The tick of `clock` at `now`, from then on.
    pub(crate) fn at(clock: &Clock, now: Instant) -> Self {
        // The clock counts whole microseconds. Past 487 years its product wraps: no tick.
        let (start_ns, micros) = (now.as_nanos(), now.as_micros());
        let Some(product) = micros.checked_mul(u64::from(clock.hz())) else { return Self::default() };
        let left_us = (1_000_000 - (product % 1_000_000) as u32).div_ceil(clock.hz());
        let left_ns = u64::from(left_us) * 1_000 - (start_ns - micros * 1_000);
        Self { start_ns, left_ns, clock: identity(clock) }
    }

    /// Whether [`Clock::jiffies`] of this clock is at `now` what it was when the tick was looked at.
    #[inline(always)]
    pub(crate) fn holds(&self, clock: &Clock, now: Instant) -> bool {
        now.as_nanos().wrapping_sub(self.start_ns) < self.left_ns && self.clock == identity(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tick_holds_exactly_as_long_as_the_counter_stands(
            hz in 1_u32..=1200,
            jiffies: u32,
            ns in prop_oneof![0_u64..10_000_000_000, any::<u64>()],
            steps in prop::collection::vec(prop_oneof![0_u64..2_000, 0_u64..5_000_000, any::<u64>()], 1..50),
        ) {
            let clock = Clock::new(hz).unwrap().with_jiffies_at_zero(jiffies);
            let start = Instant::from_nanos(ns);
            let tick = Tick::at(&clock, start);
            let wraps = start.as_micros().checked_mul(hz.into()).is_none();
            for step in steps {
                let now = start.plus_nanos(step);
                let stands = clock.jiffies(now) == clock.jiffies(start) && step < 2_000_000_000;
                prop_assert_eq!(tick.holds(&clock, now), stands && !wraps);
            }
        }
    }

    #[test]
    fn a_tick_ends_with_its_last_nanosecond_and_belongs_to_one_clock() {
        let (clock, at) = (Clock::default(), Instant::from_nanos);
        let tick = Tick::at(&clock, at(4_001_000_700));
        let held = [4_001_000_699, 4_001_000_700, 4_003_999_999, 4_004_000_000].map(|ns| tick.holds(&clock, at(ns)));
        assert_eq!(held, [false, true, true, false]);
        assert!(!tick.holds(&clock.with_jiffies_at_zero(1), at(4_001_000_700)));
        assert!(!tick.holds(&Clock::new(251).unwrap(), at(4_001_000_700)));
        assert!(!Tick::default().holds(&clock, Instant::ZERO));
        let fast = Clock::new(1200).unwrap();
        assert!(
            !Tick::at(&fast, Instant::MAX).holds(&fast, Instant::MAX),
            "past the wrap of the clock's own arithmetic"
        );
    }
}
