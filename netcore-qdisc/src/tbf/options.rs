//! The options of tbf, also in `tc` syntax.

use super::NAME;
use crate::tc::{self, Words};
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;
use netcore::{QdiscError, Rate};

/// How bytes become time on the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkLayer {
    /// As they are.
    #[default]
    Ethernet,
    /// In cells of 48 bytes with 5 of header each.
    Atm,
}

/// The options of tbf. There are no defaults: `rate`, `burst` and `limit` must be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TbfOptions {
    /// Rate that tokens come at; not zero.
    pub rate: Rate,
    /// Size of the bucket, bytes (`burst`, `buffer`, `maxburst`); not zero. The longest packet that passes.
    pub burst: u32,
    /// Bytes that may wait; 0 lets nothing through.
    pub limit: u32,
    /// Rate of the second bucket, above `rate`.
    pub peakrate: Option<Rate>,
    /// Size of the second bucket, bytes (`mtu`, `minburst`).
    pub mtu: u32,
    /// Packets cost at least as much as one of this length, bytes.
    pub mpu: u16,
    /// Added to the length of each packet, bytes.
    pub overhead: u16,
    /// How bytes become time.
    pub link_layer: LinkLayer,
}

const OPTIONS: &str =
    "limit, latency, burst, buffer, maxburst, rate, peakrate, mtu, minburst, mpu, overhead, linklayer";
const SIZE: &str = "a size such as 32kb, up to 4294967295 bytes";
const RATE: &str = "a rate such as 10mbit, not zero";
const TIME: &str = "a time such as 50ms; a bare number is microseconds";

impl TbfOptions {
    /// Options with a bucket of `burst` bytes and room for `limit` bytes.
    pub const fn new(rate: Rate, burst: u32, limit: u32) -> Self {
        Self { rate, burst, limit, peakrate: None, mtu: 0, mpu: 0, overhead: 0, link_layer: LinkLayer::Ethernet }
    }

    /// Length of the longest packet that passes, bytes.
    pub const fn max_size(&self) -> u32 {
        if self.peakrate.is_some() && self.mtu < self.burst { self.mtu } else { self.burst }
    }

    /// Bytes that a packet is charged for (Linux: `psched_l2t_ns`).
    pub(super) fn charged(&self, len: u32) -> u64 {
        let len = (u64::from(len) + u64::from(self.overhead)).max(u64::from(self.mpu));
        match self.link_layer {
            LinkLayer::Ethernet => len,
            LinkLayer::Atm => len.div_ceil(48) * 53,
        }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`].
    pub fn validate(&self) -> Result<(), QdiscError> {
        let wrong = |option: &str, value: String, allowed| QdiscError::InvalidValue {
            qdisc: NAME,
            option: option.to_string(),
            value,
            allowed,
        };
        if self.rate.bytes_per_sec() == 0 {
            return Err(wrong("rate", tc::rate(self.rate), RATE));
        }
        if self.burst == 0 {
            return Err(wrong("burst", "0".into(), SIZE));
        }
        if let Some(peak) = self.peakrate {
            if peak <= self.rate {
                return Err(wrong("peakrate", tc::rate(peak), "a rate above \"rate\""));
            }
            if self.mtu == 0 {
                return Err(wrong("mtu", "0".into(), "a size, which \"peakrate\" needs"));
            }
        }
        Ok(())
    }

    /// From the words of a `tc` command.
    ///
    /// # Errors
    /// [`QdiscError`].
    pub fn from_words(words: &[&str]) -> Result<Self, QdiscError> {
        let mut words = Words::new(NAME, OPTIONS, words);
        let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
        let mut o = Self::new(Rate::default(), 0, 0);
        // A size may carry the size of a cell of rate tables, which kernels have not used since 3.13.
        let size = |text: &str| tc::parse_size(text.split_once('/').map_or(text, |(size, _)| size));
        let once = |given: bool, words: &Words<'_>, option: &str| match given {
            true => Err(words.invalid(option, "given once; \"limit\" and \"latency\" are one option")),
            false => Ok(()),
        };
        while let Some(option) = words.option() {
            match option {
                "limit" => {
                    once(limit.is_some() || latency.is_some(), &words, option)?;
                    limit = Some(words.value(SIZE, tc::parse_size)?);
                }
                "latency" => {
                    once(limit.is_some() || latency.is_some(), &words, option)?;
                    latency = Some(words.value(TIME, tc::parse_time)?);
                }
                "burst" | "buffer" | "maxburst" => {
                    once(burst.is_some(), &words, option)?;
                    burst = Some(words.value(SIZE, size)?);
                }
                "rate" => {
                    once(rate.is_some(), &words, option)?;
                    rate = Some(words.value(RATE, tc::parse_rate64)?);
                }
                "peakrate" => {
                    once(o.peakrate.is_some(), &words, option)?;
                    o.peakrate = Some(words.value(RATE, tc::parse_rate64)?).filter(|rate| rate.bytes_per_sec() > 0);
                }
                "mtu" | "minburst" => o.mtu = words.value(SIZE, size)?,
                "mpu" => o.mpu = words.value("a size up to 65535", |t| tc::parse_size(t)?.try_into().ok())?,
                "overhead" => o.overhead = words.value("a size up to 65535", |t| tc::parse_size(t)?.try_into().ok())?,
                "linklayer" => {
                    o.link_layer = words.value("ethernet, atm or adsl", |text| match text {
                        "ethernet" => Some(LinkLayer::Ethernet),
                        "atm" | "adsl" => Some(LinkLayer::Atm),
                        _ => None,
                    })?;
                }
                _ => return Err(words.unknown()),
            }
        }
        let missing =
            |option: &str, allowed| QdiscError::MissingValue { qdisc: NAME, option: option.to_string(), allowed };
        o.rate = rate.ok_or_else(|| missing("rate", RATE))?;
        o.burst = burst.ok_or_else(|| missing("burst", SIZE))?;
        o.limit = match (limit, latency) {
            (Some(limit), _) => limit,
            (None, Some(latency)) => o.limit_of(latency),
            (None, None) => return Err(missing("limit", "a size, or \"latency\" with a time")),
        };
        o.validate()?;
        Ok(o)
    }

    /// The limit with which packets wait at most `latency` (iproute2: `tbf_parse_opt`).
    fn limit_of(&self, latency: Duration) -> u32 {
        let limit = |rate: Rate, bucket: u32| rate.bytes_in(latency).saturating_add(u64::from(bucket));
        let by_peak = self.peakrate.map_or(u64::MAX, |peak| limit(peak, self.mtu));
        limit(self.rate, self.burst).min(by_peak).min(u64::from(u32::MAX)) as u32
    }

    /// The longest that a packet waits if the bucket is empty; zero if the bucket holds more than `limit`.
    pub fn latency(&self) -> Duration {
        let wait = |rate: Rate, bucket: u32| {
            rate.time_for(u64::from(self.limit.saturating_sub(bucket))).unwrap_or(Duration::MAX)
        };
        let by_peak = self.peakrate.map_or(Duration::ZERO, |peak| wait(peak, self.mtu));
        wait(self.rate, self.burst).max(by_peak)
    }

    /// The options as `tc qdisc show` prints them.
    pub fn to_words(&self) -> String {
        let mut s = format!("rate {} burst {}", tc::rate(self.rate), tc::size(self.burst));
        if let Some(peak) = self.peakrate {
            s += &format!(" peakrate {} minburst {}", tc::rate(peak), tc::size(self.mtu));
        }
        s += &format!(" lat {}", tc::time(self.latency()));
        if self.overhead > 0 {
            s += &format!(" overhead {}", self.overhead);
        }
        if self.link_layer == LinkLayer::Atm {
            s += " linklayer atm";
        }
        s
    }
}
