//! Printing as iproute2 does.

use alloc::format;
use alloc::string::String;
use core::time::Duration;
use netcore::Rate;

/// `10Mbit`, `34359Mbit`: the largest unit that leaves a whole number, or at least four digits (iproute2: `print_rate`).
pub fn rate(rate: Rate) -> String {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];
    let mut bits = u128::from(rate.bytes_per_sec()) * 8;
    let mut unit = 0;
    while unit + 1 < UNITS.len() && bits >= 1000 && (bits % 1000 == 0 || bits >= 1_000_000) {
        bits /= 1000;
        unit += 1;
    }
    format!("{bits}{}bit", UNITS[unit])
}

/// `3028b`, `15Kb`, `1Mb`: a unit if the size is close to a multiple of it (iproute2: `print_size`).
pub fn size(bytes: u32) -> String {
    let near = |unit: u32, within: u32| {
        let nearest = (u64::from(bytes) + u64::from(unit) / 2) / u64::from(unit);
        let off = (nearest * u64::from(unit)).abs_diff(u64::from(bytes));
        (bytes >= unit && off < u64::from(within)).then_some(())
    };
    if near(1 << 20, 1024).is_some() {
        format!("{}Mb", significant(u128::from(bytes), 1 << 20, 6))
    } else if near(1 << 10, 16).is_some() {
        format!("{}Kb", significant(u128::from(bytes), 1 << 10, 6))
    } else {
        format!("{bytes}b")
    }
}

/// `10s`, `40ms`, `100us` (iproute2: `sprint_time`, three significant digits).
pub fn time(time: Duration) -> String {
    let us = time.as_micros();
    match us {
        1_000_000.. => format!("{}s", significant(us, 1_000_000, 3)),
        1_000.. => format!("{}ms", significant(us, 1_000, 3)),
        _ => format!("{us}us"),
    }
}

/// As [`time`], down to nanoseconds (iproute2: `sprint_time64`).
pub fn time_ns(time: Duration) -> String {
    let ns = time.as_nanos();
    match ns {
        1_000_000_000.. => format!("{}s", significant(ns, 1_000_000_000, 3)),
        1_000_000.. => format!("{}ms", significant(ns, 1_000_000, 3)),
        1_000.. => format!("{}us", significant(ns, 1_000, 3)),
        _ => format!("{ns}ns"),
    }
}

/// `value / unit` with up to `digits` significant digits, as `%.<digits>g` prints it while no exponent is needed.
fn significant(value: u128, unit: u128, digits: u32) -> String {
    let whole_digits = (value / unit).max(1).ilog10() + 1;
    let decimals = digits.saturating_sub(whole_digits);
    let scale = 10u128.pow(decimals);
    let rounded = (value * scale + unit / 2) / unit;
    let (whole, fraction) = (rounded / scale, rounded % scale);
    if fraction == 0 {
        return format!("{whole}");
    }
    let text = format!("{whole}.{fraction:0width$}", width = decimals as usize);
    String::from(text.trim_end_matches('0'))
}
