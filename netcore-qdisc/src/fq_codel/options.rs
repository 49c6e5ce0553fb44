//! The options of fq_codel, also in `tc` syntax.

use super::NAME;
use crate::tc::{self, Words};
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;
use netcore::QdiscError;

/// The options of fq_codel.
///
/// | option | default | range |
/// | --- | --- | --- |
/// | `limit` | 10240 packets | 0 to 2³² − 1 |
/// | `flows` | 1024 | 1 to 65536; fixed once the qdisc exists |
/// | `quantum` | MTU + 14 | up to 2²⁰ bytes, at least 256 |
/// | `target` | 5 ms | 0 to 2³² − 1 µs |
/// | `interval` | 100 ms | 0 to 2³² − 1 µs |
/// | `memory_limit` | 32 MiB | up to 2³¹ bytes |
/// | `ecn`, `noecn` | `ecn` | |
/// | `drop_batch` | 64 packets | 1 or more |
/// | `ce_threshold` | off | 0 to 2³² − 1 µs |
/// | `ce_threshold_selector` | 0/0 | VALUE/MASK of the traffic class |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelOptions {
    /// Most packets.
    pub limit: u32,
    /// Number of queues that flows are hashed to.
    pub flows: u32,
    /// Bytes a queue sends per turn.
    pub quantum: u32,
    /// Delay that is acceptable as a standing one.
    pub target: Duration,
    /// How long it may be exceeded before the first drop.
    pub interval: Duration,
    /// Most memory, bytes.
    pub memory_limit: u32,
    /// Whether packets are marked rather than dropped where their sender can do with that.
    pub ecn: bool,
    /// Most packets dropped at once when there is no room.
    pub drop_batch: u32,
    /// Packets that waited longer are marked; `None`: never.
    pub ce_threshold: Option<Duration>,
    /// Only packets whose traffic class under `ce_threshold_mask` equals this are marked by `ce_threshold`.
    pub ce_threshold_selector: u8,
    /// 0: all packets.
    pub ce_threshold_mask: u8,
}

const OPTIONS: &str = "limit, flows, quantum, target, interval, memory_limit, ecn, noecn, drop_batch, ce_threshold, \
    ce_threshold_selector";
const WHOLE: &str = "a whole number from 0 to 4294967295";
const TIME: &str = "a time such as 5ms; a bare number is microseconds; up to 4294967295us";

impl FqCodelOptions {
    /// The defaults for a device whose largest frame payload is `mtu` bytes.
    pub fn for_mtu(mtu: u32) -> Self {
        Self {
            limit: 10_240,
            flows: 1024,
            quantum: mtu.saturating_add(14).clamp(256, 1 << 20),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            memory_limit: 32 << 20,
            ecn: true,
            drop_batch: 64,
            ce_threshold: None,
            ce_threshold_selector: 0,
            ce_threshold_mask: 0,
        }
    }

    /// Checks ranges; a small `quantum` is raised, as in Linux.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`].
    pub fn validated(mut self) -> Result<Self, QdiscError> {
        let wrong = |option: &str, value: u32, allowed| QdiscError::InvalidValue {
            qdisc: NAME,
            option: option.to_string(),
            value: value.to_string(),
            allowed,
        };
        if !(1..=65_536).contains(&self.flows) {
            return Err(wrong("flows", self.flows, "1 to 65536"));
        }
        self.quantum = self.quantum.max(256);
        if self.quantum > 1 << 20 {
            return Err(wrong("quantum", self.quantum, "up to 1048576 bytes"));
        }
        self.drop_batch = self.drop_batch.max(1);
        self.memory_limit = self.memory_limit.min(1 << 31);
        Ok(self)
    }

    /// These options with those that `words` names replaced.
    ///
    /// # Errors
    /// [`QdiscError`].
    pub fn with_words(mut self, words: &[&str]) -> Result<Self, QdiscError> {
        let mut words = Words::new(NAME, OPTIONS, words);
        let packets = |text: &str| tc::parse_u32(text.strip_suffix('p').unwrap_or(text));
        while let Some(option) = words.option() {
            match option {
                "limit" => self.limit = words.value(WHOLE, packets)?,
                "flows" => self.flows = words.value("1 to 65536", tc::parse_u32)?,
                "quantum" => self.quantum = words.value("256 to 1048576 bytes", tc::parse_size)?,
                "target" => self.target = words.value(TIME, tc::parse_time)?,
                "interval" => self.interval = words.value(TIME, tc::parse_time)?,
                "memory_limit" => self.memory_limit = words.value("a size up to 2gb", tc::parse_size)?,
                "ecn" => self.ecn = true,
                "noecn" => self.ecn = false,
                "drop_batch" => self.drop_batch = words.value("1 or more packets", tc::parse_u32)?,
                "ce_threshold" => self.ce_threshold = Some(words.value(TIME, tc::parse_time)?),
                "ce_threshold_selector" => {
                    let pair = |text: &str| {
                        let (value, mask) = text.split_once('/')?;
                        Some((tc::parse_u32(value)?.try_into().ok()?, tc::parse_u32(mask)?.try_into().ok()?))
                    };
                    (self.ce_threshold_selector, self.ce_threshold_mask) =
                        words.value("VALUE/MASK, each 0 to 0xff", pair)?;
                }
                _ => return Err(words.unknown()),
            }
        }
        self.validated()
    }

    /// The options as `tc qdisc show` prints them.
    pub fn to_words(&self) -> String {
        let mut s = format!(
            "limit {}p flows {} quantum {} target {} interval {}",
            self.limit,
            self.flows,
            self.quantum,
            tc::time(self.target),
            tc::time(self.interval)
        );
        if let Some(time) = self.ce_threshold {
            s += &format!(" ce_threshold {}", tc::time(time));
            if self.ce_threshold_mask != 0 {
                let (value, mask) = (self.ce_threshold_selector, self.ce_threshold_mask);
                s += &format!(" ce_threshold_selector {value:#x}/{mask:#x}");
            }
        }
        s += &format!(" memory_limit {}", tc::size(self.memory_limit));
        s += if self.ecn { " ecn" } else { "" };
        s += &format!(" drop_batch {}", self.drop_batch);
        s
    }
}

impl Default for FqCodelOptions {
    /// For an MTU of 1500.
    fn default() -> Self {
        Self::for_mtu(1500)
    }
}
