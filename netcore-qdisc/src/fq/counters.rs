//! What fq counts (Linux: `tc_fq_qd_stats`).

use super::options::BANDS;
use core::fmt;
use core::time::Duration;

/// fq's own counters, as `tc -s qdisc` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FqCounters {
    /// Flows, idle ones included.
    pub flows: u32,
    /// Flows with no packet.
    pub inactive_flows: u32,
    /// Flows that wait for their time.
    pub throttled_flows: u32,
    /// Time from now to the next departure of a throttled flow, timer slack included.
    pub next_packet_delay: Option<Duration>,
    /// Packets of each band queued now.
    pub band_packets: [u32; BANDS],
    /// Flows freed after being idle.
    pub gc: u64,
    /// Packets of control priority that bypassed flows (up to 6.6).
    pub highprio: u64,
    /// Packets that bypassed flows because nothing else could be sent (6.7 and later).
    pub fastpath: u64,
    /// How often a flow was throttled.
    pub throttled: u64,
    /// By how much flows were served later than due, moving average over eight, nanoseconds.
    pub unthrottle_latency: u64,
    /// Packets that left later than `ce_threshold` allows.
    pub ce_mark: u64,
    /// Packets dropped because of `flow_limit`.
    pub flows_plimit: u64,
    /// Packets that would have taken more than a second at their rate.
    pub pkts_too_long: u64,
    /// Flows that could not be made.
    pub allocation_errors: u64,
    /// Packets dropped beyond the horizon.
    pub horizon_drops: u64,
    /// Packets brought back to the horizon.
    pub horizon_caps: u64,
    /// Packets dropped because their band was full.
    pub band_drops: [u64; BANDS],
}

impl FqCounters {
    /// All counters by name.
    pub fn named(&self) -> [(&'static str, u64); 21] {
        [
            ("flows", self.flows.into()),
            ("inactive", self.inactive_flows.into()),
            ("throttled_flows", self.throttled_flows.into()),
            ("next_packet_delay", self.next_packet_delay.map_or(0, |d| d.as_nanos().min(u64::MAX.into()) as u64)),
            ("band0_pkts", self.band_packets[0].into()),
            ("band1_pkts", self.band_packets[1].into()),
            ("band2_pkts", self.band_packets[2].into()),
            ("gc", self.gc),
            ("highprio", self.highprio),
            ("fastpath", self.fastpath),
            ("throttled", self.throttled),
            ("latency", self.unthrottle_latency),
            ("ce_mark", self.ce_mark),
            ("flows_plimit", self.flows_plimit),
            ("pkts_too_long", self.pkts_too_long),
            ("alloc_errors", self.allocation_errors),
            ("horizon_drops", self.horizon_drops),
            ("horizon_caps", self.horizon_caps),
            ("band0_drops", self.band_drops[0]),
            ("band1_drops", self.band_drops[1]),
            ("band2_drops", self.band_drops[2]),
        ]
    }
}

impl fmt::Display for FqCounters {
    /// As `tc -s` prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, inactive_flows, throttled_flows, .. } = self;
        write!(f, "  flows {flows} (inactive {inactive_flows} throttled {throttled_flows})")?;
        if let Some(delay) = self.next_packet_delay {
            write!(f, " next_packet_delay {}", crate::tc::time_ns(delay))?;
        }
        let [a, b, c] = self.band_packets;
        write!(f, "\n  band0_pkts {a} band1_pkts {b} band2_pkts {c}")?;
        let Self { gc, highprio, fastpath, throttled, .. } = self;
        write!(f, "\n  gc {gc} highprio {highprio} fastpath {fastpath} throttled {throttled}")?;
        if self.unthrottle_latency > 0 {
            write!(f, " latency {}", crate::tc::time_ns(Duration::from_nanos(self.unthrottle_latency)))?;
        }
        for (name, value) in [("ce_mark", self.ce_mark), ("flows_plimit", self.flows_plimit)] {
            if value > 0 {
                write!(f, " {name} {value}")?;
            }
        }
        if self.pkts_too_long > 0 || self.allocation_errors > 0 {
            write!(f, "\n  pkts_too_long {} alloc_errors {}", self.pkts_too_long, self.allocation_errors)?;
        }
        if self.horizon_drops > 0 || self.horizon_caps > 0 {
            write!(f, "\n  horizon_drops {} horizon_caps {}", self.horizon_drops, self.horizon_caps)?;
        }
        if self.band_drops != [0; BANDS] {
            let [a, b, c] = self.band_drops;
            write!(f, "\n  band0_drops {a} band1_drops {b} band2_drops {c}")?;
        }
        Ok(())
    }
}
