//! The options of fq in `tc` syntax.

use super::NAME;
use super::options::{BANDS, FqOptions, HorizonPolicy};
use crate::tc::{self, Words};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Write;
use core::time::Duration;
use netcore::{QdiscError, Rate};

const OPTIONS: &str = "limit, flow_limit, quantum, initial_quantum, maxrate, buckets, pacing, nopacing, refill_delay, \
    low_rate_threshold, orphan_mask, timer_slack, ce_threshold, horizon, horizon_drop, horizon_cap, bands, priomap, \
    weights, offload_horizon, defrate";
const WHOLE: &str = "a whole number from 0 to 4294967295";
const RATE: &str = "a rate such as 10mbit, up to 34359738360bit";
const TIME: &str = "a time such as 40ms; a bare number is microseconds; up to 4294967295us";

impl FqOptions {
    /// These options with those that `words` names replaced.
    ///
    /// # Errors
    /// [`QdiscError`], with what was wrong and what is allowed.
    pub fn with_words(mut self, words: &[&str]) -> Result<Self, QdiscError> {
        let mut words = Words::new(NAME, OPTIONS, words);
        while let Some(option) = words.option() {
            match option {
                "limit" => self.limit = words.value(WHOLE, packets)?,
                "flow_limit" => self.flow_limit = words.value(WHOLE, packets)?,
                "quantum" => self.quantum = words.value("256 to 1048576 bytes", tc::parse_size)?,
                "initial_quantum" => self.initial_quantum = words.value("0 to 1048576 bytes", tc::parse_size)?,
                // The largest number stands for "no limit" in the kernel's interface.
                "maxrate" => {
                    let rate = words.value(RATE, tc::parse_rate)?;
                    self.maxrate = (rate.bytes_per_sec() < u64::from(u32::MAX)).then_some(rate);
                }
                // Linux takes this one and does nothing with it.
                "defrate" => words.value(RATE, |text| tc::parse_rate(text).map(|_| ()))?,
                "low_rate_threshold" => self.low_rate_threshold = words.value(RATE, tc::parse_rate)?,
                "buckets" => {
                    let up = |text: &str| tc::parse_u32(text).filter(|n| (2..=1 << 18).contains(n));
                    self.buckets = words.value("2 to 262144", up)?.next_power_of_two();
                }
                "pacing" => self.pacing = true,
                "nopacing" => self.pacing = false,
                "refill_delay" => self.refill_delay = words.value(TIME, tc::parse_time)?,
                "orphan_mask" => self.orphan_mask = words.value(WHOLE, tc::parse_u32)?,
                "timer_slack" => {
                    let allowed = "a time such as 10us; a bare number is nanoseconds; up to 4294967295ns";
                    self.timer_slack = words.value(allowed, tc::parse_time_ns)?;
                }
                "ce_threshold" => {
                    let time = words.value(TIME, tc::parse_time)?;
                    self.ce_threshold = (time < Duration::from_micros(u32::MAX.into())).then_some(time);
                }
                "horizon" => self.horizon = words.value(TIME, tc::parse_time)?,
                "horizon_drop" => self.horizon_policy = HorizonPolicy::Drop,
                "horizon_cap" => self.horizon_policy = HorizonPolicy::Cap,
                "bands" => words.value("3", |text| (text == "3").then_some(()))?,
                "priomap" => {
                    for band in &mut self.priomap {
                        let number = |text: &str| text.parse().ok().filter(|&band: &u8| usize::from(band) < BANDS);
                        *band = words.value("16 bands 0, 1 or 2", number)?;
                    }
                }
                "weights" => {
                    for weight in &mut self.weights {
                        let number =
                            |text: &str| text.parse().ok().filter(|w| (Self::MIN_WEIGHT..=i32::MAX as u32).contains(w));
                        *weight = words.value("3 numbers of bytes from 16384 to 2147483647", number)?;
                    }
                }
                "offload_horizon" => self.offload_horizon = words.value(TIME, tc::parse_time)?,
                _ => return Err(words.unknown()),
            }
        }
        self.validated()
    }

    /// The options as `tc qdisc show` prints them.
    pub fn to_words(&self) -> String {
        let mut s = format!(
            "limit {}p flow_limit {}p buckets {} orphan_mask {}",
            self.limit, self.flow_limit, self.buckets, self.orphan_mask
        );
        if !self.pacing {
            s.push_str(" nopacing");
        }
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<alloc::vec::Vec<_>>().join(" ");
        let _ = write!(s, " bands {BANDS} priomap {}", list(&self.priomap.map(u32::from)));
        let _ = write!(s, " weights {}", list(&self.weights));
        let _ = write!(s, " quantum {} initial_quantum {}", tc::size(self.quantum), tc::size(self.initial_quantum));
        if let Some(rate) = self.maxrate {
            let _ = write!(s, " maxrate {}", tc::rate(rate));
        }
        if self.low_rate_threshold != Rate::from_bytes_per_sec(0) {
            let _ = write!(s, " low_rate_threshold {}", tc::rate(self.low_rate_threshold));
        }
        let _ = write!(s, " refill_delay {}", tc::time(self.refill_delay));
        if let Some(time) = self.ce_threshold {
            let _ = write!(s, " ce_threshold {}", tc::time(time));
        }
        let _ = write!(s, " timer_slack {} horizon {}", tc::time_ns(self.timer_slack), tc::time(self.horizon));
        s.push_str(match self.horizon_policy {
            HorizonPolicy::Drop => " horizon_drop",
            HorizonPolicy::Cap => " horizon_cap",
        });
        if !self.offload_horizon.is_zero() {
            let _ = write!(s, " offload_horizon {}", tc::time(self.offload_horizon));
        }
        s
    }
}

/// A number of packets; `tc` prints it with a `p`, so that is taken, too.
fn packets(text: &str) -> Option<u32> {
    tc::parse_u32(text.strip_suffix('p').unwrap_or(text))
}
