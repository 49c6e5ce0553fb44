//! The scenario file.

use super::NAME;
use crate::experiments::LabError;
use serde::Deserialize;

const TEXT: &str = include_str!("../../../scenarios/fq-tso-autosizing.toml");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) link: Link,
    pub(super) run: Run,
    pub(super) unknown: Unknown,
    pub(super) corrected: Corrected,
    pub(super) published: Published,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) rate_mbps: u64,
    pub(super) mtu: u16,
    pub(super) delay_us: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub(super) seconds: u64,
    pub(super) window: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unknown {
    pub(super) hz: u32,
    pub(super) skb_overhead: Vec<u32>,
    pub(super) moderation_us: Vec<u64>,
    pub(super) stagger_us: Vec<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Corrected {
    pub(super) ring_bytes: Vec<u64>,
    pub(super) flows: Vec<u16>,
    pub(super) stagger_us: u64,
    pub(super) moderation_us: Vec<u64>,
    pub(super) seconds: u64,
    pub(super) from_second: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) with_low: f64,
    pub(super) with_high: f64,
    pub(super) with_sum: f64,
    pub(super) with_cwnd: [u32; 2],
    pub(super) without_each: f64,
    pub(super) without_sum: f64,
    pub(super) without_cwnd: u32,
    pub(super) pair_tolerance_percent: f64,
    pub(super) each_tolerance_percent: f64,
    pub(super) sum_tolerance_percent: f64,
}

impl Scenario {
    /// The scenario of the experiment.
    pub(super) fn load() -> Result<Self, LabError> {
        Self::parse(TEXT)
    }

    fn parse(text: &str) -> Result<Self, LabError> {
        let s: Self =
            toml::from_str(text).map_err(|source| LabError::Scenario { name: NAME, source: Box::new(source) })?;
        let check = |setting, value: u64, range: std::ops::RangeInclusive<u64>, allowed| {
            if range.contains(&value) { Ok(()) } else { Err(LabError::Setting { name: NAME, setting, value, allowed }) }
        };
        check("link.rate_mbps", s.link.rate_mbps, 1..=400_000, "1 to 400000")?;
        check("link.mtu", s.link.mtu.into(), 576..=9216, "576 to 9216")?;
        check("run.window", s.run.window, 1..=1000, "1 to 1000")?;
        check("run.seconds", s.run.seconds, s.run.window + 2..=3600, "at least two more than run.window")?;
        check("unknown.hz", s.unknown.hz.into(), 1..=1200, "1 to 1200")?;
        let combinations = s.unknown.skb_overhead.len() * s.unknown.moderation_us.len() * s.unknown.stagger_us.len();
        check("unknown", combinations as u64, 1..=1000, "1 to 1000 combinations")?;
        check("corrected.from_second", s.corrected.from_second, 1..=s.corrected.seconds - 1, "within the run")?;
        check("corrected.flows", s.corrected.flows.len() as u64, 1..=100, "1 to 100 numbers")?;
        Ok(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_names_what_is_wrong() {
        let error = Scenario::parse(&TEXT.replace("window = 10 ", "window = 0 ")).unwrap_err().to_string();
        assert!(error.contains("run.window is 0, allowed is 1 to 1000"), "{error}");
        let error = Scenario::parse(&TEXT.replace("mtu = 1500", "mtu = 1500\ncolour = 1")).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}
