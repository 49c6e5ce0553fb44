//! `hystart`: one flow at 10 Gbit/s over 18 and 80 ms, with and without HyStart, fixed and autotuned buffers.

mod run;

use super::LabError;
use crate::experiment::{Experiment, Row, Series};
use crate::parallel;
use run::{Buffers, Case, Outcome, Slowstart};
use serde::Deserialize;

const NAME: &str = "hystart";
const SCENARIO: &str = include_str!("../../scenarios/hystart.toml");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    path: PathSettings,
    host: HostSettings,
    run: RunSettings,
    published: Tolerances,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathSettings {
    rate_mbps: u64,
    mtu: u16,
    txqueuelen: u32,
    jitter_us: u64,
    overhead_bytes: u32,
    long_from_us: u64,
    long_overhead_bytes: u32,
    long_queue_bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostSettings {
    hz: u32,
    timestamps: bool,
    rmem_default: u64,
    rmem_max: u64,
    wmem_max: u64,
    receive_truesize: usize,
    receive_ring: usize,
    interrupt_interval_us: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunSettings {
    bytes: u64,
    phases: u32,
    seeds: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tolerances {
    steps_tolerance_percent: f64,
}

/// A published run: its label, what was run, the average in Mbit/s, the tolerance of the median in percent, the rate of
/// each whole second.
struct Published {
    case: Case,
    average: f64,
    tolerance: Option<f64>,
    /// Averages of the other published runs of this kind, Mbit/s.
    repeated: &'static [f64],
    steps: &'static [f64],
}

impl Scenario {
    fn parse(text: &str) -> Result<Self, LabError> {
        let s: Self =
            toml::from_str(text).map_err(|source| LabError::Scenario { name: NAME, source: Box::new(source) })?;
        let check = |setting, value: u64, range: std::ops::RangeInclusive<u64>, allowed| {
            if range.contains(&value) { Ok(()) } else { Err(LabError::Setting { name: NAME, setting, value, allowed }) }
        };
        check("path.rate_mbps", s.path.rate_mbps, 1..=400_000, "1 to 400000")?;
        check("path.mtu", u64::from(s.path.mtu), 576..=9216, "576 to 9216")?;
        check("path.txqueuelen", u64::from(s.path.txqueuelen), 1..=1_000_000, "1 to 1000000")?;
        check("path.jitter_us", s.path.jitter_us, 0..=1_000_000, "0 to 1000000")?;
        check("path.long_overhead_bytes", u64::from(s.path.long_overhead_bytes), 0..=9000, "0 to 9000")?;
        check("path.long_queue_bytes", s.path.long_queue_bytes, 20_000..=1 << 40, "20000 to 2^40")?;
        check("host.hz", u64::from(s.host.hz), 1..=1200, "1 to 1200")?;
        check("host.receive_ring", s.host.receive_ring as u64, 1..=65_536, "1 to 65536")?;
        check("host.interrupt_interval_us", s.host.interrupt_interval_us, 0..=1_000_000, "0 to 1000000")?;
        check("run.bytes", s.run.bytes, 1..=1 << 40, "1 to 2^40")?;
        check("run.phases", u64::from(s.run.phases), 1..=1000, "1 to 1000")?;
        check("run.seeds", u64::from(s.run.seeds), 1..=1000, "1 to 1000")?;
        Ok(s)
    }
}

fn published() -> Vec<Published> {
    let old = |rtt_us, buffers, slow_start| Case { profile: "linux-2.6.35", rtt_us, buffers, slow_start };
    let (on, off) = (Slowstart::Hystart, Slowstart::Off);
    let mb = |n: u64| Buffers::Fixed(n * 1_000_000);
    vec![
        Published {
            case: old(18_920, Buffers::Auto, on),
            average: 6102.47,
            tolerance: None,
            repeated: &[],
            steps: &[4344.6, 5775.2, 5812.7, 5855.8, 5871.0, 5960.6, 6113.8, 6302.9, 6575.6, 6921.8, 7344.0],
        },
        Published {
            case: old(18_910, mb(40), on),
            average: 9633.58,
            tolerance: Some(3.0),
            repeated: &[],
            steps: &[8136.8, 9909.0, 9908.6, 9909.9, 9909.1, 9908.8, 9909.1],
        },
        Published {
            case: old(18_920, Buffers::Auto, off),
            average: 9484.45,
            tolerance: Some(3.0),
            repeated: &[],
            steps: &[7091.6, 9910.0, 9907.2, 9910.9, 9908.2, 9909.6, 9908.7],
        },
        Published {
            case: old(18_950, mb(40), off),
            average: 9611.81,
            tolerance: Some(3.0),
            repeated: &[],
            steps: &[8135.7, 9909.4, 9908.9, 9909.4, 9908.8, 9909.1, 9909.4],
        },
        Published {
            case: old(80_810, Buffers::Auto, on),
            average: 5348.97,
            tolerance: None,
            repeated: &[],
            steps: &[94.9, 3704.1, 5765.9, 6002.6, 5955.6, 5799.1, 6028.4, 6023.0, 5905.5, 6151.4, 6198.2, 6139.4],
        },
        Published {
            case: old(80_810, mb(100), on),
            average: 8207.20,
            tolerance: Some(8.0),
            repeated: &[],
            steps: &[871.8, 9114.6, 9283.6, 9305.5, 9322.0, 9334.8, 9341.7, 9398.0],
        },
        Published {
            case: old(80_810, Buffers::Auto, off),
            average: 6259.44,
            tolerance: Some(8.0),
            repeated: &[],
            steps: &[94.4, 4354.2, 7224.8, 7306.4, 7220.4, 7290.3, 7242.8, 7218.1, 7344.3, 7240.8],
        },
        Published {
            case: old(80_810, mb(100), off),
            average: 6647.94,
            tolerance: None,
            repeated: &[7292.99, 5545.76],
            steps: &[862.9, 4386.3, 7394.7, 9766.7, 9819.7, 9788.2, 9729.2, 6804.8, 614.5, 7420.3],
        },
    ]
}

/// Runs for each line of the sensitivity.
const VARIANT_PHASES: u32 = 4;

/// The scenario with something changed.
fn vary(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = scenario.clone();
    change(&mut scenario);
    scenario
}

/// A quantile of sorted values.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = (sorted.len().saturating_sub(1)) as f64 * q;
    sorted.get(at.round() as usize).copied().unwrap_or(f64::NAN)
}

fn sorted_by(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    let mut values: Vec<_> = outcomes.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn sorted(outcomes: &[Outcome]) -> Vec<f64> {
    sorted_by(outcomes, |o| o.average)
}

/// Root mean square of the differences per second, percent of the published mean.
fn rms_percent(ours: &[f64], published: &[f64]) -> f64 {
    let n = ours.len().min(published.len());
    if n == 0 {
        return f64::INFINITY;
    }
    let square: f64 = ours.iter().zip(published).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / n as f64;
    let mean = published.iter().take(n).sum::<f64>() / n as f64;
    square.sqrt() / mean * 100.0
}

/// Runs the experiment.
pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Experiment, LabError> {
    let scenario = Scenario::parse(SCENARIO)?;
    let list = published();
    let mut jobs: Vec<(Case, u32)> = Vec::new();
    let mut spans = Vec::new();
    let mut add = |jobs: &mut Vec<(Case, u32)>, case: Case, count: u32| {
        let from = jobs.len();
        jobs.extend((0..count).map(|phase| (case, phase * scenario.run.phases / count.max(1))));
        spans.push(from..jobs.len());
    };
    for p in &list {
        let count = match (p.case.slow_start, p.case.buffers) {
            (Slowstart::Hystart, _) => scenario.run.phases,
            (_, Buffers::Fixed(100_000_000)) => scenario.run.seeds,
            _ => 1,
        };
        add(&mut jobs, p.case, count);
    }
    let modern: Vec<Case> = [(18_920, Buffers::Auto), (80_810, Buffers::Auto)]
        .into_iter()
        .flat_map(|(rtt_us, buffers)| {
            [Slowstart::Hystart, Slowstart::HystartPlusPlus, Slowstart::Off].map(|slow_start| Case {
                profile: "linux-current",
                rtt_us,
                buffers,
                slow_start,
            })
        })
        .collect();
    for case in &modern {
        add(&mut jobs, *case, 1);
    }
    // What moves when an assumption moves: the published case that depends on it most, a few phases each.
    let exit = list[0].case;
    let long_exit = list[4].case;
    let overshoot = list[7].case;
    let variants = [
        ("HZ 250 instead of 1000", exit, vary(&scenario, |s| s.host.hz = 250)),
        ("HZ 100", exit, vary(&scenario, |s| s.host.hz = 100)),
        ("tcp_rmem default 349520", exit, vary(&scenario, |s| s.host.rmem_default = 349_520)),
        ("no interrupt moderation", exit, vary(&scenario, |s| s.host.interrupt_interval_us = 0)),
        ("jitter 100 µs instead of 20", exit, vary(&scenario, |s| s.path.jitter_us = 100)),
        ("tcp_rmem default 349520", long_exit, vary(&scenario, |s| s.host.rmem_default = 349_520)),
        ("queue of the long path 6 MB", overshoot, vary(&scenario, |s| s.path.long_queue_bytes = 6_000_000)),
        ("queue of the long path 8 MB", overshoot, vary(&scenario, |s| s.path.long_queue_bytes = 8_000_000)),
        ("queue of the long path 12 MB", overshoot, vary(&scenario, |s| s.path.long_queue_bytes = 12_000_000)),
        ("txqueuelen 1000", overshoot, vary(&scenario, |s| s.path.txqueuelen = 1000)),
        ("no encapsulation on the long path", overshoot, vary(&scenario, |s| s.path.long_overhead_bytes = 24)),
    ];
    let tasks: Vec<(&Scenario, Case, u32)> = jobs
        .iter()
        .map(|(case, phase)| (&scenario, *case, *phase))
        .chain(variants.iter().flat_map(|(_, case, s)| (0..VARIANT_PHASES).map(move |i| (s, *case, i * 7))))
        .collect();
    let mut outcomes = parallel::map(&tasks, progress, |(s, case, phase)| run::run(s, *case, *phase))?;
    let varied = outcomes.split_off(jobs.len());
    let sensitivity = variants
        .iter()
        .zip(varied.chunks(VARIANT_PHASES as usize))
        .map(|((what, case, _), outcomes)| {
            let list: Vec<_> = sorted(outcomes).iter().map(|rate| format!("{rate:.0}")).collect();
            format!("{what}: {}: {} Mbit/s", case.label(), list.join(", "))
        })
        .collect();
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (p, span) in list.iter().zip(&spans) {
        report(p, &outcomes[span.clone()], &scenario, &mut rows, &mut series);
    }
    for (case, span) in modern.iter().zip(&spans[list.len()..]) {
        let o = &outcomes[span.start];
        rows.push(Row::ours_only(&case.label(), case.profile, "average", "Mbit/s", o.average));
        let second = o.steps.get(1).copied().unwrap_or(0.0);
        rows.push(Row::ours_only(&case.label(), case.profile, "second 2", "Mbit/s", second));
        if let Some(ssthresh) = o.ssthresh {
            rows.push(Row::ours_only(&case.label(), case.profile, "window left with", "segments", f64::from(ssthresh)));
        }
        series.push(steps_series(&format!("{} ({})", case.label(), case.profile), &o.steps));
    }
    Ok(Experiment {
        name: NAME.into(),
        title: "One flow at 10 Gbit/s over 18 and 80 ms: what HyStart as first shipped costs, and what it saves".into(),
        rows,
        sensitivity,
        series,
    })
}

fn steps_series(name: &str, steps: &[f64]) -> Series {
    let points = steps.iter().enumerate().map(|(i, rate)| ((i + 1) as f64, *rate)).collect();
    Series { name: name.into(), x: "second".into(), y: "Mbit/s".into(), points }
}

fn report(p: &Published, outcomes: &[Outcome], s: &Scenario, rows: &mut Vec<Row>, series: &mut Vec<Series>) {
    let (label, profile) = (p.case.label(), p.case.profile);
    let averages = sorted(outcomes);
    let (low, median, high) = (quantile(&averages, 0.1), quantile(&averages, 0.5), quantile(&averages, 0.9));
    match p.tolerance {
        // The median, or the spread, holds the published run.
        Some(tolerance) => {
            rows.push(Row::compared(&label, profile, "average, median", "Mbit/s", p.average, median, tolerance));
        }
        None => {
            // Within p10 to p90: the published run is one draw of the same lottery.
            let mut row = Row::compared(&label, profile, "average, median", "Mbit/s", p.average, median, 0.0);
            row.tolerance = None;
            row.pass = Some(if p.repeated.is_empty() {
                (low..=high).contains(&p.average)
            } else {
                // Published was a spread: every run of ours lies in it.
                let published = p.repeated.iter().chain([&p.average]);
                let (least, most) = published.fold((p.average, p.average), |(l, m), a| (l.min(*a), m.max(*a)));
                averages.iter().all(|average| (least..=most).contains(average))
            });
            rows.push(row);
        }
    }
    if outcomes.len() > 1 {
        rows.push(Row::ours_only(&label, profile, "average, p10", "Mbit/s", low));
        rows.push(Row::ours_only(&label, profile, "average, p90", "Mbit/s", high));
    }
    let nearest =
        outcomes.iter().min_by(|a, b| rms_percent(&a.steps, p.steps).total_cmp(&rms_percent(&b.steps, p.steps)));
    if let Some(nearest) = nearest {
        let rms = rms_percent(&nearest.steps, p.steps);
        let mut row = Row::ours_only(&label, profile, "RMS per second, nearest phase", "%", rms);
        if p.case == published()[0].case {
            row.tolerance = Some(s.published.steps_tolerance_percent);
            row.pass = Some(rms <= s.published.steps_tolerance_percent);
        }
        rows.push(row);
        series.push(steps_series(&format!("{label}, nearest phase"), &nearest.steps));
        series.push(steps_series(&format!("{label}, published"), p.steps));
    }
    let retransmitted: Vec<f64> = outcomes.iter().map(|o| o.retransmitted as f64).collect();
    let most = retransmitted.iter().copied().fold(0.0, f64::max);
    let loss_free = !matches!((p.case.slow_start, p.case.buffers), (Slowstart::Off, Buffers::Fixed(100_000_000)));
    if loss_free {
        rows.push(Row::compared(&label, profile, "retransmitted, most", "segments", 0.0, most, 0.0));
    } else {
        rows.push(Row::ours_only(&label, profile, "retransmitted, most", "segments", most));
        // Published: three runs, each with one or two whole seconds below 1.2 Gbit/s.
        let collapsed = sorted_by(outcomes, |o| o.collapsed);
        let median = quantile(&collapsed, 0.5);
        rows.push(Row::compared(&label, profile, "time below 1.2 Gbit/s, median", "s", 1.0, median, 50.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_list() {
        let list: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!((quantile(&list, 0.1), quantile(&list, 0.5), quantile(&list, 0.9)), (1.0, 5.0, 9.0));
    }

    #[test]
    fn the_scenario_names_what_is_wrong() {
        let error = Scenario::parse(&SCENARIO.replace("hz = 1000", "hz = 5000")).unwrap_err().to_string();
        assert!(error.contains("host.hz is 5000, allowed is 1 to 1200"), "{error}");
    }
}
