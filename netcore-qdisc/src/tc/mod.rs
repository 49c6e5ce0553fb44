//! The syntax of `tc`: numbers with units, read and printed as iproute2 does, without floating point.
//!
//! | kind | bare number | units |
//! | --- | --- | --- |
//! | rate | bit/s | `bit kbit mbit gbit tbit`, `bps kbps …` (bytes), `kibit kibps …` (powers of 1024) |
//! | size | bytes | `b k kb m mb g gb` (powers of 1024), `kbit mbit gbit` |
//! | time | µs (ns for options with nanosecond resolution) | `s sec secs ms msec msecs us usec usecs ns nsec nsecs` |
//!
//! Decimal fractions are allowed (`1.5mbit`); what does not divide is rounded down. Rates end at 2³² − 1 bytes/s
//! (34.36 Gbit/s): that is the width of the field in the kernel's interface. Options set by API have no such limit.

mod print;
mod words;

pub use print::{rate, size, time, time_ns};
pub use words::Words;

use core::time::Duration;
use netcore::Rate;

/// Splits a decimal number from its unit: digits as an integer, how many of them are behind the point, the rest.
fn decimal(text: &str) -> Option<(u128, u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 30 {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes());
    let value = digits.fold(0u128, |value, digit| value * 10 + u128::from(digit - b'0'));
    Some((value, fraction.len() as u32, unit))
}

/// `number × numerator / denominator`, rounded down.
fn scale(number: (u128, u32), numerator: u64, denominator: u64) -> Option<u64> {
    let (value, fraction) = number;
    let scaled = value.checked_mul(u128::from(numerator))?;
    let divisor = 10u128.checked_pow(fraction)?.checked_mul(u128::from(denominator))?;
    u64::try_from(scaled / divisor).ok()
}

/// A whole number in decimal, hexadecimal (`0x`) or octal (leading `0`), as `strtoul` with base 0 reads it.
pub fn parse_u32(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return unsigned(hex, 16);
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => unsigned(octal, 8),
        _ => unsigned(text, 10),
    }
}

fn unsigned(digits: &str, base: u32) -> Option<u32> {
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, base).ok() }
}

/// A rate (iproute2: `get_rate`). `None` if malformed or above 2³² − 1 bytes/s.
pub fn parse_rate(text: &str) -> Option<Rate> {
    let (value, fraction, unit) = decimal(text)?;
    let bytes = rate_of(value, fraction, unit)?;
    (bytes <= u64::from(u32::MAX)).then(|| Rate::from_bytes_per_sec(bytes))
}

/// A rate without the limit of the kernel's interface.
pub fn parse_rate64(text: &str) -> Option<Rate> {
    let (value, fraction, unit) = decimal(text)?;
    rate_of(value, fraction, unit).map(Rate::from_bytes_per_sec)
}

fn rate_of(value: u128, fraction: u32, unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let (prefix, in_bits) = match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
        _ if unit.is_empty() => ("", true),
        (Some(prefix), _) => (prefix, true),
        (None, Some(prefix)) => (prefix, false),
        (None, None) => return None,
    };
    let (prefix, base) = match prefix.strip_suffix('i') {
        Some(prefix) if !prefix.is_empty() => (prefix, 1024u64),
        _ => (prefix, 1000),
    };
    let power = match prefix {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    scale((value, fraction), base.pow(power), if in_bits { 8 } else { 1 })
}

/// A size in bytes (iproute2: `get_size`). `None` if malformed or above 2³² − 1.
pub fn parse_size(text: &str) -> Option<u32> {
    let (value, fraction, unit) = decimal(text)?;
    let unit = unit.to_ascii_lowercase();
    let (numerator, denominator) = match unit.as_str() {
        "" | "b" => (1, 1),
        "k" | "kb" => (1 << 10, 1),
        "m" | "mb" => (1 << 20, 1),
        "g" | "gb" => (1 << 30, 1),
        "kbit" => (1 << 10, 8),
        "mbit" => (1 << 20, 8),
        "gbit" => (1 << 30, 8),
        _ => return None,
    };
    u32::try_from(scale((value, fraction), numerator, denominator)?).ok()
}

/// A time whose bare number is microseconds (iproute2: `get_time`). `None` if malformed or above 2³² − 1 µs (71 minutes).
pub fn parse_time(text: &str) -> Option<Duration> {
    let ns = nanoseconds(text, 1_000)?;
    (ns / 1_000 <= u64::from(u32::MAX)).then(|| Duration::from_micros(ns / 1_000))
}

/// A time whose bare number is nanoseconds (iproute2: `get_time64`). `None` if malformed or above 2³² − 1 ns.
pub fn parse_time_ns(text: &str) -> Option<Duration> {
    let ns = nanoseconds(text, 1)?;
    (ns <= u64::from(u32::MAX)).then(|| Duration::from_nanos(ns))
}

fn nanoseconds(text: &str, bare: u64) -> Option<u64> {
    let (value, fraction, unit) = decimal(text)?;
    let unit = unit.to_ascii_lowercase();
    let numerator = match unit.as_str() {
        "" => bare,
        "s" | "sec" | "secs" => 1_000_000_000,
        "ms" | "msec" | "msecs" => 1_000_000,
        "us" | "usec" | "usecs" => 1_000,
        "ns" | "nsec" | "nsecs" => 1,
        _ => return None,
    };
    scale((value, fraction), numerator, 1)
}

#[cfg(test)]
mod tests;
