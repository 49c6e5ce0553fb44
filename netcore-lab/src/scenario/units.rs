//! Quantities in scenario files: a number with a unit, as `tc` writes them or spelled out.

use netcore::Rate;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;

/// A span of time: `"20ms"`, `"1.5 s"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub Duration);

/// A rate: `"10gbit"`, `"100 Mbit/s"`, `"1.25 GB/s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed(pub Rate);

/// A number of bytes: `1500`, `"64k"`, `"1.5 MiB"`, `"100 MB"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Size(pub u64);

/// A part of all: `0.001`, `"0.1 %"`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Share(pub f64);

const TIME: &str = "a time such as \"20ms\" or \"1.5 s\" (ns, us, ms, s, min)";
const SPEED: &str = "a rate such as \"10gbit\", \"100 Mbit/s\" or \"125 MB/s\"";
const SIZE: &str =
    "a number of bytes, or a size such as \"64 KiB\" or \"100 MB\" (k and m without B are binary, as in tc)";
const SHARE: &str = "a number from 0 to 1, or percent such as \"0.1 %\"";

/// Number and unit of `text`.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | 'e' | '-' | '+'))).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number, text[end..].trim().to_ascii_lowercase()))
}

/// `number × factor` if it is a whole number in range after rounding.
fn scaled(number: f64, factor: f64) -> Option<u64> {
    let value = (number * factor).round();
    (value < 1.8e19).then_some(value as u64)
}

impl Time {
    /// Reads a time; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let ns = match unit.as_str() {
            "ns" => 1.0,
            "us" | "µs" | "usec" | "usecs" => 1e3,
            "ms" | "msec" | "msecs" => 1e6,
            "s" | "sec" | "secs" => 1e9,
            "min" => 60e9,
            // Zero needs no unit.
            "" if number == 0.0 => 1.0,
            _ => return None,
        };
        scaled(number, ns).map(|ns| Self(Duration::from_nanos(ns)))
    }
}

impl Speed {
    /// Reads a rate; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(&unit);
        let (bits, prefix) = if let Some(prefix) = unit.strip_suffix("bits").or_else(|| unit.strip_suffix("bit")) {
            (1.0, prefix)
        } else {
            (8.0, unit.strip_suffix('b')?)
        };
        let prefix = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return None,
        };
        scaled(number, bits * prefix).filter(|bits| *bits >= 8).map(|bits| Self(Rate::from_bits_per_sec(bits)))
    }
}

impl Size {
    /// Reads a size; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let factor = match unit.as_str() {
            "" | "b" | "bytes" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1_048_576.0,
            "g" | "gib" => 1_073_741_824.0,
            _ => return None,
        };
        scaled(number, factor).map(Self)
    }
}

impl Share {
    /// Reads a share; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let share = match unit.as_str() {
            "" => number,
            "%" => number / 100.0,
            _ => return None,
        };
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }
}

/// Takes text or a number, and says what is allowed.
struct Reader<T> {
    allowed: &'static str,
    parse: fn(&str) -> Option<T>,
    number: fn(f64) -> Option<T>,
}

impl<T> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.allowed)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        (self.number)(number as f64).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.number)(number as f64).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        (self.number)(number).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Float(number), &self))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = |number: f64| (number == 0.0).then_some(Self::default());
        deserializer.deserialize_any(Reader { allowed: TIME, parse: Self::parse, number })
    }
}

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader { allowed: SPEED, parse: Self::parse, number: |_| None })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(Self(number as u64));
        deserializer.deserialize_any(Reader { allowed: SIZE, parse: Self::parse, number })
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = |number: f64| (0.0..=1.0).contains(&number).then_some(Self(number));
        deserializer.deserialize_any(Reader { allowed: SHARE, parse: Self::parse, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_tc_and_people_write_them() {
        assert_eq!(Time::parse("1.5 ms"), Some(Time(Duration::from_micros(1500))));
        assert_eq!(Time::parse("10"), None);
        assert_eq!(Speed::parse("10gbit"), Some(Speed(Rate::from_bits_per_sec(10_000_000_000))));
        assert_eq!(Speed::parse("125 MB/s"), Speed::parse("1 Gbit/s"));
        assert_eq!(
            Speed::parse("100 Mbps"),
            Some(Speed(Rate::from_bits_per_sec(800_000_000))),
            "bps is bytes, as in tc"
        );
        assert_eq!(Size::parse("64 KiB"), Some(Size(65_536)));
        assert_eq!(Size::parse("100 MB"), Some(Size(100_000_000)));
        assert_eq!(Size::parse("12 apples"), None);
        assert_eq!(Share::parse("0.1 %"), Some(Share(0.001)));
        assert_eq!(Share::parse("2"), None);
    }
}
