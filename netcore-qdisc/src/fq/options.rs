//! The options of fq, their defaults and ranges (Linux 6.18: `fq_init`, `fq_change`, `fq_policy`).

use super::NAME;
use alloc::string::{String, ToString};
use core::time::Duration;
use netcore::{QdiscError, Rate};

/// What happens to a packet whose departure time lies beyond the horizon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HorizonPolicy {
    /// It is dropped (`horizon_drop`).
    #[default]
    Drop,
    /// It leaves at the horizon (`horizon_cap`).
    Cap,
}

/// Number of priority bands (`FQ_BANDS`).
pub const BANDS: usize = 3;

/// The options of fq.
///
/// | option | default | range by `tc` | remark |
/// | --- | --- | --- | --- |
/// | `limit` | 10000 packets | 0 to 2³² − 1 | per band |
/// | `flow_limit` | 100 packets | 0 to 2³² − 1 | per flow |
/// | `quantum` | 2 × (MTU + 14) | brought into 256 to 2²⁰ bytes | |
/// | `initial_quantum` | 10 × (MTU + 14) | 0 to 2²⁰ bytes | more is refused |
/// | `maxrate` | none | 0 to 2³² − 2 bytes/s | per flow; by API any rate |
/// | `buckets` | 1024 | 2 to 262144, up to a power of two | flows that the index starts with |
/// | `pacing`, `nopacing` | `pacing` | | |
/// | `refill_delay` | 40 ms | 0 to 2³² − 1 µs | Linux rounds to a tick |
/// | `low_rate_threshold` | 550 kbit/s | 0 to 2³² − 1 bytes/s | |
/// | `orphan_mask` | 1023 | 0 to 2³² − 1 | |
/// | `timer_slack` | 10 µs | 0 to 2³² − 1 ns | |
/// | `ce_threshold` | off (2³² − 1 µs) | 0 to 2³² − 1 µs | |
/// | `horizon` | 10 s | 0 to 2³² − 1 µs | |
/// | `horizon_drop`, `horizon_cap` | `horizon_drop` | | |
/// | `bands`, `priomap` | `1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1` | 3; 16 numbers 0 to 2 | |
/// | `weights` | 589824 196608 65536 bytes | 16384 to 2³¹ − 1 | |
/// | `offload_horizon` | 0 | 0 to what the device allows | |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqOptions {
    /// Most packets in a band.
    pub limit: u32,
    /// Most packets of a flow; a super-packet is one.
    pub flow_limit: u32,
    /// Bytes a flow sends per turn.
    pub quantum: u32,
    /// Credit of a flow that is new, bytes.
    pub initial_quantum: u32,
    /// Most that any flow sends; `None`: no limit.
    pub maxrate: Option<Rate>,
    /// Flows that the index is made for; it grows with their number. A power of two.
    pub buckets: u32,
    /// Whether rates are obeyed.
    pub pacing: bool,
    /// A flow that was idle for longer returns with a credit of at least one quantum.
    pub refill_delay: Duration,
    /// At or below this rate every packet is paced, not only every quantum.
    pub low_rate_threshold: Rate,
    /// Packets without a socket are spread over at most this many flows plus one.
    pub orphan_mask: u32,
    /// How much later than asked for the owner of the qdisc may come back.
    pub timer_slack: Duration,
    /// Packets that leave later than due by more than this are marked "congestion experienced"; `None`: never.
    pub ce_threshold: Option<Duration>,
    /// How far ahead a departure time may lie.
    pub horizon: Duration,
    /// What happens to packets beyond.
    pub horizon_policy: HorizonPolicy,
    /// Band of each priority, 0 to 15, of which Linux uses the low four bits.
    pub priomap: [u8; 16],
    /// Bytes a band sends per turn.
    pub weights: [u32; BANDS],
    /// How much earlier than due packets go to a device that paces them itself.
    pub offload_horizon: Duration,
}

/// What 32 bits of microseconds hold: the ceiling of times in the kernel's interface.
const MAX_US: Duration = Duration::from_micros(u32::MAX as u64);

impl FqOptions {
    /// Least weight (`FQ_MIN_WEIGHT`), bytes.
    pub const MIN_WEIGHT: u32 = 16_384;
    /// Range of `quantum`, bytes.
    pub const QUANTUM: core::ops::RangeInclusive<u32> = 256..=1 << 20;
    /// Most that `initial_quantum` may be, bytes.
    pub const MAX_INITIAL_QUANTUM: u32 = 1 << 20;

    /// The defaults for a device whose largest frame payload is `mtu` bytes, with Ethernet's header of 14.
    pub fn for_mtu(mtu: u32) -> Self {
        let frame = mtu.saturating_add(14).clamp(1, 1 << 20);
        Self {
            limit: 10_000,
            flow_limit: 100,
            quantum: (2 * frame).clamp(*Self::QUANTUM.start(), *Self::QUANTUM.end()),
            initial_quantum: (10 * frame).min(Self::MAX_INITIAL_QUANTUM),
            maxrate: None,
            buckets: 1024,
            pacing: true,
            refill_delay: Duration::from_millis(40),
            low_rate_threshold: Rate::from_bits_per_sec(550_000),
            orphan_mask: 1023,
            timer_slack: Duration::from_micros(10),
            ce_threshold: None,
            horizon: Duration::from_secs(10),
            horizon_policy: HorizonPolicy::Drop,
            priomap: crate::PRIO2BAND,
            weights: [9 << 16, 3 << 16, 1 << 16],
            offload_horizon: Duration::ZERO,
        }
    }

    /// Checks ranges; a `quantum` outside its range is brought into it, as Linux does.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`].
    pub fn validated(mut self) -> Result<Self, QdiscError> {
        let wrong = |option: &str, value: String, allowed| QdiscError::InvalidValue {
            qdisc: NAME,
            option: option.to_string(),
            value,
            allowed,
        };
        self.quantum = self.quantum.clamp(*Self::QUANTUM.start(), *Self::QUANTUM.end());
        if self.initial_quantum > Self::MAX_INITIAL_QUANTUM {
            let value = self.initial_quantum.to_string();
            return Err(wrong("initial_quantum", value, "0 to 1048576 bytes"));
        }
        if !self.buckets.is_power_of_two() || !(2..=1 << 18).contains(&self.buckets) {
            return Err(wrong("buckets", self.buckets.to_string(), "2 to 262144, a power of two"));
        }
        if let Some(band) = self.priomap.iter().find(|&&band| usize::from(band) >= BANDS) {
            return Err(wrong("priomap", band.to_string(), "bands 0, 1 and 2"));
        }
        let weights = Self::MIN_WEIGHT..=i32::MAX as u32;
        if let Some(weight) = self.weights.iter().find(|weight| !weights.contains(weight)) {
            return Err(wrong("weights", weight.to_string(), "16384 to 2147483647 bytes"));
        }
        for (option, time) in [("refill_delay", self.refill_delay), ("horizon", self.horizon)] {
            if time > MAX_US {
                return Err(wrong(option, alloc::format!("{time:?}"), "up to 4294967295 microseconds"));
            }
        }
        Ok(self)
    }
}

impl Default for FqOptions {
    /// For an MTU of 1500.
    fn default() -> Self {
        Self::for_mtu(1500)
    }
}
