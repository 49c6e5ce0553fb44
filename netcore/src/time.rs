//! Time and rate: [`Instant`] and [`Rate`].
//!
//! Nothing in netcore reads a clock. Every call that depends on time takes `now: Instant`, so that the same code
//! runs on a NIC poller, inside a simulator in virtual time, and in a test that steps the clock by hand.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::time::Duration;

/// A point in time: nanoseconds since an arbitrary origin that the caller chooses.
///
/// The origin may be any value (boot, simulation start, 1970); only differences matter. Arithmetic saturates at
/// both ends, so a clock at any origin and any span can be used without overflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// The latest instant that can be told.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// The instant `us` microseconds after the origin; saturates at [`Instant::MAX`].
    #[inline]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// The instant `ms` milliseconds after the origin; saturates at [`Instant::MAX`].
    #[inline]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// The instant `s` seconds after the origin; saturates at [`Instant::MAX`].
    #[inline]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the origin.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds since the origin.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Nanoseconds from `earlier` to `self`, zero if `earlier` is the later one.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The span from `earlier` to `self`, zero if `earlier` is the later one.
    #[inline]
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// This instant moved by `ns` nanoseconds; saturates at [`Instant::MAX`].
    #[inline]
    pub const fn plus_nanos(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}

/// Nanoseconds of a duration, saturating at `u64::MAX` (584 years).
#[inline]
const fn nanos(d: Duration) -> u64 {
    let n = d.as_nanos();
    if n > u64::MAX as u128 { u64::MAX } else { n as u64 }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(d)))
    }
}

impl SubAssign<Duration> for Instant {
    #[inline]
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}

impl Sub for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A data rate in bytes per second.
///
/// "No limit" is `Option::<Rate>::None`, never a magic value. A rate of zero is a rate at which nothing moves:
/// [`Rate::time_for`] then answers `None`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bytes` per second.
    #[inline]
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A rate of `bits` per second, rounded down to whole bytes per second.
    #[inline]
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits / 8)
    }

    /// Bytes per second.
    #[inline]
    pub const fn bytes_per_sec(self) -> u64 {
        self.0
    }

    /// Bits per second; saturates.
    #[inline]
    pub const fn bits_per_sec(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Nanoseconds that `bytes` take at this rate, rounded down as Linux's `div64_ul` does; saturates at `u64::MAX`.
    /// `None` at rate zero.
    #[inline]
    pub const fn nanos_for(self, bytes: u64) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        if let Some(scaled) = bytes.checked_mul(1_000_000_000) {
            return Some(scaled / self.0);
        }
        let ns = bytes as u128 * 1_000_000_000 / self.0 as u128;
        Some(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }

    /// The time that `bytes` take at this rate, see [`Rate::nanos_for`].
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Option<Duration> {
        match self.nanos_for(bytes) {
            Some(ns) => Some(Duration::from_nanos(ns)),
            None => None,
        }
    }

    /// Bytes that pass in `span` at this rate, rounded down; saturates.
    #[inline]
    pub const fn bytes_in(self, span: Duration) -> u64 {
        let bytes = (self.0 as u128).saturating_mul(span.as_nanos()) / 1_000_000_000;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.0) * 8;
        let (unit, scale) = match bits {
            0..1_000 => return write!(f, "{bits} bit/s"),
            1_000..1_000_000 => ("kbit/s", 1_000),
            1_000_000..1_000_000_000 => ("Mbit/s", 1_000_000),
            _ => ("Gbit/s", 1_000_000_000),
        };
        write!(f, "{}.{:03} {unit}", bits / scale, bits % scale * 1_000 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn instants_saturate_instead_of_wrapping() {
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::ZERO - Instant::MAX, Duration::ZERO);
        assert_eq!(Instant::ZERO + Duration::MAX, Instant::MAX);
    }

    #[test]
    fn rate_converts_between_bits_bytes_and_time() {
        let gigabit = Rate::from_bits_per_sec(1_000_000_000);
        assert_eq!(gigabit.bytes_per_sec(), 125_000_000);
        assert_eq!(gigabit.nanos_for(1538), Some(12_304));
        assert_eq!(gigabit.bytes_in(Duration::from_millis(1)), 125_000);
        assert_eq!(Rate::from_bytes_per_sec(0).nanos_for(1), None);
        assert_eq!(Rate::from_bytes_per_sec(1).nanos_for(u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn rate_prints_in_the_units_of_the_trade() {
        assert_eq!(Rate::from_bits_per_sec(94_200_000).to_string(), "94.200 Mbit/s");
        assert_eq!(Rate::from_bits_per_sec(10_000_000_000).to_string(), "10.000 Gbit/s");
        assert_eq!(Rate::from_bytes_per_sec(1).to_string(), "8 bit/s");
    }
}
