//! How often which fault happens.

use core::time::Duration;

/// How likely something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Chance(u64);

impl Chance {
    /// It does not happen.
    pub const NEVER: Self = Self(0);
    /// It always happens.
    pub const ALWAYS: Self = Self(1 << 32);

    /// `parts` in a million; a million and more is always.
    pub const fn per_million(parts: u32) -> Self {
        let parts = if parts > 1_000_000 { 1_000_000 } else { parts };
        Self(((parts as u64) << 32) / 1_000_000)
    }

    /// `parts` in a hundred; a hundred and more is always.
    pub const fn percent(parts: u32) -> Self {
        Self::per_million(parts.saturating_mul(10_000))
    }

    /// Once in `n` times on average; never if `n` is 0.
    pub const fn one_in(n: u32) -> Self {
        if n == 0 { Self::NEVER } else { Self((1 << 32) / n as u64) }
    }

    /// In units of 2^-32.
    pub const fn of_2_32(self) -> u64 {
        self.0
    }
}

/// What happens to packets of one direction. Start from `Default` (nothing happens) and set what differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Faults {
    /// The packet is lost.
    pub drop: Chance,
    /// A second one follows it.
    pub duplicate: Chance,
    /// One bit of it is turned over, anywhere in it.
    pub corrupt: Chance,
    /// Later packets overtake it.
    pub reorder: Chance,
    /// Most packets that overtake it, 1 or more; how many is a matter of chance.
    pub reorder_gap: u32,
    /// If fewer follow, it goes on after this time.
    pub reorder_hold: Duration,
    /// It is held back for a time, so that others overtake it if they are not.
    pub delay: Chance,
    /// Shortest time.
    pub delay_min: Duration,
    /// Longest time; which one is a matter of chance.
    pub delay_max: Duration,
    /// Most packets held back at once. Those for which there is no room go on, and are counted (`fault_…_no_room`).
    pub room: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            drop: Chance::NEVER,
            duplicate: Chance::NEVER,
            corrupt: Chance::NEVER,
            reorder: Chance::NEVER,
            reorder_gap: 1,
            reorder_hold: Duration::from_millis(1),
            delay: Chance::NEVER,
            delay_min: Duration::from_millis(1),
            delay_max: Duration::from_millis(1),
            room: 1024,
        }
    }
}

impl Faults {
    /// True if something can happen but loss.
    pub(super) fn touches_packets(&self) -> bool {
        [self.duplicate, self.corrupt, self.reorder, self.delay].iter().any(|chance| *chance > Chance::NEVER)
    }
}

/// What a [`FaultInjector`](super::FaultInjector) does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FaultConfig {
    /// To packets on their way to the device.
    pub transmit: Faults,
    /// To packets that the device delivers.
    pub receive: Faults,
    /// Where chance starts from: the same seed and packets give the same faults.
    pub seed: u64,
}

/// Why a configuration is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultConfigError {
    /// Nothing could overtake a packet.
    #[error("reorder_gap is 0, allowed is 1 or more")]
    NoGap,
    /// The shortest delay is longer than the longest.
    #[error("delay_min is {min:?}, longer than delay_max, {max:?}")]
    DelayRange {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
}

impl FaultConfig {
    pub(super) fn check(&self) -> Result<(), FaultConfigError> {
        for faults in [&self.transmit, &self.receive] {
            if faults.reorder_gap == 0 {
                return Err(FaultConfigError::NoGap);
            }
            if faults.delay_min > faults.delay_max {
                return Err(FaultConfigError::DelayRange { min: faults.delay_min, max: faults.delay_max });
            }
        }
        Ok(())
    }
}
