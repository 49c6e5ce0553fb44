//! `fq-tso-autosizing`: two flows at 100 Mbit/s under fq, fair without 605ad7f184b6 and unfair with it, and a design that is
//! fair.
//!
//! Nothing here knows the result: sizes come out of pacing rates, shares out of how many packets each flow has in a FIFO
//! ring, windows out of CUBIC with HyStart.

mod run;
mod scenario;

use super::LabError;
use crate::experiment::{Experiment, Row, Series};
use crate::parallel;
use netcore::Rate;
use netcore_qdisc::FqRules;
use netcore_tcp::Profile;
use netcore_tcp::profile::{Autosizing, ReceiveRtt, SmallQueues};
use run::{Case, Outcome, Queueing, jain, ratio};
use scenario::Scenario;
use std::time::Duration;

const NAME: &str = "fq-tso-autosizing";
const FQ_OLD: Queueing = Queueing::Fq(FqRules::LINUX_4_0);
const FQ_NEW: Queueing = Queueing::Fq(FqRules::LINUX_6_18);

/// Linux 4.3 with the commit reverted: size decided when data is written, the small-queue limit a floor.
fn reverted() -> Profile {
    let mut profile = Profile::linux_4_3();
    profile.autosizing = Autosizing::First;
    profile.small_queues = SmallQueues::Floor;
    profile
}

/// One combination of what is not known.
#[derive(Clone, Copy, Debug)]
struct Assumed {
    overhead: u32,
    moderation: u64,
    stagger: u64,
}

impl std::fmt::Display for Assumed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { overhead, moderation, stagger } = self;
        write!(f, "{overhead} bytes per skb, interrupts {moderation} us apart, second flow {stagger} us later")
    }
}

impl Scenario {
    fn combinations(&self) -> Vec<Assumed> {
        let u = &self.unknown;
        let mut all = Vec::new();
        for &overhead in &u.skb_overhead {
            for &moderation in &u.moderation_us {
                all.extend(u.stagger_us.iter().map(|&stagger| Assumed { overhead, moderation, stagger }));
            }
        }
        all
    }

    fn case(&self, mut profile: Profile, queueing: Queueing, assumed: Assumed) -> Case {
        profile.skb_overhead = assumed.overhead;
        if profile.receive_rtt != ReceiveRtt::Micros {
            // Timestamps and the receiver's RTT count ticks.
            profile.timestamp_hz = self.unknown.hz;
            profile.congestion = profile.congestion.with_hz(self.unknown.hz).unwrap_or(profile.congestion);
        }
        Case {
            profile,
            queueing,
            flows: 2,
            rate: Rate::from_bits_per_sec(self.link.rate_mbps * 1_000_000),
            mtu: self.link.mtu,
            tso: true,
            gso_max_size: 65_536,
            ring_limit: None,
            moderation: Duration::from_micros(assumed.moderation),
            delay: Duration::from_micros(self.link.delay_us),
            stagger: Duration::from_micros(assumed.stagger),
            seconds: self.run.seconds,
        }
    }
}

/// What a run came to while its windows stood still.
#[derive(Clone, Debug)]
struct Steady {
    from: usize,
    to: usize,
    /// By how many segments all windows together changed.
    moved: u32,
    /// Mbit/s, lower first.
    low: f64,
    high: f64,
    cwnd: [u32; 2],
}

/// The stretch of `window` seconds in which windows changed least, the last of several.
fn steady(outcome: &Outcome, window: usize) -> Steady {
    let seconds = outcome.flows[0].len();
    let moved = |from: usize| -> u32 {
        let flow = |f: &Vec<run::Second>| {
            f[from..from + window].windows(2).map(|w| w[1].cwnd.abs_diff(w[0].cwnd)).sum::<u32>()
        };
        outcome.flows.iter().map(flow).sum()
    };
    // The first second is the start.
    let from = (1..=seconds - window).rev().min_by_key(|&from| moved(from)).unwrap_or(0);
    let to = from + window;
    let rates = outcome.rates(from, to);
    let slower = usize::from(rates[1] < rates[0]);
    let cwnd = [outcome.flows[slower][to - 1].cwnd, outcome.flows[1 - slower][to - 1].cwnd];
    Steady { from, to, moved: moved(from), low: rates[slower], high: rates[1 - slower], cwnd }
}

/// The fraction with numerator and denominator up to 12 that is nearest to `ratio`.
fn fraction(ratio: f64) -> (u32, u32) {
    let all = (1..=12u32).flat_map(|q| (q..=12).map(move |p| (p, q)));
    let off = |(p, q): (u32, u32)| (f64::from(p) / f64::from(q) - ratio).abs();
    all.min_by(|&a, &b| off(a).total_cmp(&off(b))).unwrap_or((1, 1))
}

/// Runs the experiment.
pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Experiment, LabError> {
    let s = Scenario::load()?;
    let assumed = s.combinations();
    let mut cases: Vec<Case> = Vec::new();
    for profile in [Profile::linux_4_3(), reverted()] {
        cases.extend(assumed.iter().map(|&a| s.case(profile, FQ_OLD, a)));
    }
    let swept = cases.len();
    let corrected = corrected_cases(&s);
    cases.extend(&corrected);
    let outcomes = parallel::map(&cases, &mut |done| progress(done * 0.9), run::run)?;
    let (with, rest) = outcomes.split_at(assumed.len());
    let (without, corrected_outcomes) = rest.split_at(swept - assumed.len());

    let mut report = Report::default();
    let nearest = report.with(&s, &assumed, with, without);
    report.without(&s, &assumed, without, nearest);
    // The variants are run at the point that is nearest to the published one.
    let at = assumed[nearest];
    let era = Profile::linux_4_3();
    let variants: [(&str, Case); 6] = [
        ("4.3, FIFO instead of fq", s.case(era, Queueing::Fifo, at)),
        ("4.3, TSO off", Case { tso: false, ..s.case(era, FQ_OLD, at) }),
        ("4.3, gso_max_size 16384", Case { gso_max_size: 16_384, ..s.case(era, FQ_OLD, at) }),
        ("4.3, ring limit 16 KB", Case { ring_limit: Some(16_384), ..s.case(era, FQ_OLD, at) }),
        ("commit reverted, FIFO instead of fq", s.case(reverted(), Queueing::Fifo, at)),
        ("today", s.case(Profile::linux_current(), FQ_NEW, at)),
    ];
    let list: Vec<Case> = variants.iter().map(|(_, case)| *case).collect();
    let outcomes = parallel::map(&list, &mut |done| progress(0.9 + done * 0.1), run::run)?;
    for ((label, case), outcome) in variants.iter().zip(&outcomes) {
        report.variant(&s, label, case, outcome);
    }
    report.corrected(&s, &corrected, corrected_outcomes);
    Ok(Experiment {
        name: NAME.into(),
        title: "Two flows at 100 Mbit/s under fq: TSO autosizing with two-packet small queues makes shares follow packet sizes"
            .into(),
        rows: report.rows,
        sensitivity: report.sensitivity,
        series: report.series,
    })
}

fn corrected_cases(s: &Scenario) -> Vec<Case> {
    let c = &s.corrected;
    let mut cases = Vec::new();
    for &flows in &c.flows {
        for &moderation in &c.moderation_us {
            for &bytes in &c.ring_bytes {
                let profile = Profile::netcore();
                let assumed = Assumed { overhead: profile.skb_overhead, moderation, stagger: c.stagger_us };
                let case = s.case(profile, Queueing::Fq(FqRules::NETCORE), assumed);
                cases.push(Case { flows, ring_limit: (bytes > 0).then_some(bytes), seconds: c.seconds, ..case });
            }
        }
    }
    cases
}

#[derive(Default)]
struct Report {
    rows: Vec<Row>,
    sensitivity: Vec<String>,
    series: Vec<Series>,
}

impl Report {
    /// A figure beside a published one that depends on more than is modelled: shown, not judged.
    fn beside(&mut self, label: &str, profile: &str, metric: &str, unit: &str, published: f64, ours: f64) {
        let mut row = Row::ours_only(label, profile, metric, unit, ours);
        row.published = Some(published);
        self.rows.push(row);
    }

    fn only(&mut self, label: &str, profile: &str, metric: &str, unit: &str, ours: f64) {
        self.rows.push(Row::ours_only(label, profile, metric, unit, ours));
    }

    fn curves(&mut self, label: &str, outcome: &Outcome) {
        for (n, flow) in outcome.flows.iter().enumerate() {
            let line = |name: &str, y: &str, value: &dyn Fn(&run::Second) -> f64| Series {
                name: format!("{label}, flow {}{name}", n + 1),
                x: "second".into(),
                y: y.into(),
                points: flow.iter().enumerate().map(|(second, s)| (second as f64, value(s))).collect(),
            };
            self.series.push(line("", "Mbit/s", &|s| s.received));
            self.series.push(line(", cwnd", "segments", &|s| f64::from(s.cwnd)));
        }
    }

    /// The sweep with the commit; gives the index of the point that is nearest to both published runs: what is not known was
    /// the same in both.
    fn with(&mut self, s: &Scenario, assumed: &[Assumed], outcomes: &[Outcome], without: &[Outcome]) -> usize {
        let (label, profile, p) = ("4.3 with the commit", "linux-4.3", &s.published);
        let steadies: Vec<Steady> = outcomes.iter().map(|o| steady(o, s.run.window as usize)).collect();
        let error = |n: usize| {
            let st = &steadies[n];
            let other = steady(&without[n], s.run.window as usize);
            let off = |ours: f64, published: f64| (ours / published - 1.0).abs();
            let with = off(st.low, p.with_low).max(off(st.high, p.with_high));
            with.max(off(other.low, p.without_each)).max(off(other.high, p.without_each))
        };
        let nearest = (0..outcomes.len()).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0);
        let (st, outcome) = (&steadies[nearest], &outcomes[nearest]);
        let tolerance = p.pair_tolerance_percent;
        let mut compare = |metric: &str, unit: &str, published, ours, tolerance| {
            self.rows.push(Row::compared(label, profile, metric, unit, published, ours, tolerance));
        };
        compare("slower flow, nearest of the sweep", "Mbit/s", p.with_low, st.low, tolerance);
        compare("faster flow, nearest of the sweep", "Mbit/s", p.with_high, st.high, tolerance);
        compare("sum", "Mbit/s", p.with_sum, st.low + st.high, p.sum_tolerance_percent);
        let retransmitted: u64 = outcomes.iter().map(|o| o.retransmitted).sum();
        compare("retransmitted, all runs of the sweep", "segments", 0.0, retransmitted as f64, 0.0);
        compare("windows moved in the steady seconds", "segments", 0.0, f64::from(st.moved), 0.0);
        let ratios: Vec<f64> = steadies.iter().map(|s| s.high / s.low).collect();
        let (least, most) =
            ratios.iter().fold((f64::INFINITY, 0.0f64), |(least, most), &r| (least.min(r), most.max(r)));
        let published = p.with_high / p.with_low;
        let mut row = Row::compared(label, profile, "largest ratio of the sweep", "", published, most, 0.0);
        (row.tolerance, row.pass) = (None, Some((least..=most).contains(&published)));
        self.rows.push(row);
        self.only(label, profile, "smallest ratio of the sweep", "", least);
        self.beside(label, profile, "ratio, nearest of the sweep", "", published, st.high / st.low);
        let (up, down) = fraction(st.high / st.low);
        let off = (st.high / st.low / (f64::from(up) / f64::from(down)) - 1.0).abs() * 100.0;
        self.only(label, profile, &format!("distance from {up}/{down}"), "%", off);
        self.beside(label, profile, "window of the slower flow", "segments", p.with_cwnd[0].into(), st.cwnd[0].into());
        self.beside(label, profile, "window of the faster flow", "segments", p.with_cwnd[1].into(), st.cwnd[1].into());
        self.only(label, profile, "smoothed RTT", "ms", outcome.rtt_ms(st.from, st.to));
        let unfair = ratios.iter().filter(|&&r| r > 1.1).count();
        self.sensitivity.push(format!(
            "{label}: nearest with {}, seconds {} to {}; {unfair} of {} combinations split by more than 1.1",
            assumed[nearest],
            st.from,
            st.to - 1,
            outcomes.len()
        ));
        for (a, st) in assumed.iter().zip(&steadies) {
            self.sensitivity.push(format!(
                "{label}, {a}: {:.1} / {:.1} Mbit/s, windows {} / {}, moved {}",
                st.low, st.high, st.cwnd[0], st.cwnd[1], st.moved
            ));
        }
        self.curves(label, outcome);
        nearest
    }

    fn without(&mut self, s: &Scenario, assumed: &[Assumed], outcomes: &[Outcome], nearest: usize) {
        let (label, profile, p) = ("4.3 without the commit", "linux-4.3", &s.published);
        let steadies: Vec<Steady> = outcomes.iter().map(|o| steady(o, s.run.window as usize)).collect();
        // What is not known must be the same in both published runs.
        let at = &steadies[nearest];
        let mut compare = |metric: &str, unit: &str, published, ours, tolerance| {
            self.rows.push(Row::compared(label, profile, metric, unit, published, ours, tolerance));
        };
        compare("slower flow, same point", "Mbit/s", p.without_each, at.low, p.each_tolerance_percent);
        compare("faster flow, same point", "Mbit/s", p.without_each, at.high, p.each_tolerance_percent);
        let sum = steadies.iter().map(|s| s.low + s.high).fold(f64::INFINITY, f64::min);
        compare("sum, least of the sweep", "Mbit/s", p.without_sum, sum, p.sum_tolerance_percent);
        let retransmitted: u64 = outcomes.iter().map(|o| o.retransmitted).sum();
        compare("retransmitted, all runs of the sweep", "segments", 0.0, retransmitted as f64, 0.0);
        let st = &steadies[nearest];
        let off = steadies.iter().filter(|s| s.high / s.low > 1.02).count();
        self.only(label, profile, &format!("combinations of {} that are unfair", steadies.len()), "", off as f64);
        self.beside(label, profile, "window", "segments", p.without_cwnd.into(), st.cwnd[0].into());
        self.only(label, profile, "smoothed RTT", "ms", outcomes[nearest].rtt_ms(st.from, st.to));
        for (a, st) in assumed.iter().zip(&steadies) {
            self.sensitivity.push(format!(
                "{label}, {a}: {:.1} / {:.1} Mbit/s, windows {} / {}, moved {}",
                st.low, st.high, st.cwnd[0], st.cwnd[1], st.moved
            ));
        }
        self.curves(label, &outcomes[nearest]);
    }

    fn variant(&mut self, s: &Scenario, label: &str, case: &Case, outcome: &Outcome) {
        let st = steady(outcome, s.run.window as usize);
        let profile = case.profile.name;
        self.only(label, profile, "slower flow", "Mbit/s", st.low);
        self.only(label, profile, "faster flow", "Mbit/s", st.high);
        self.only(label, profile, "sum", "Mbit/s", st.low + st.high);
        self.only(label, profile, "Jain's index", "", jain(&[st.low, st.high]));
        self.only(label, profile, "smoothed RTT", "ms", outcome.rtt_ms(st.from, st.to));
        self.only(label, profile, "packets to the card", "1/s", outcome.packets_per_second);
        self.curves(label, outcome);
    }

    fn corrected(&mut self, s: &Scenario, cases: &[Case], outcomes: &[Outcome]) {
        let c = &s.corrected;
        for &flows in &c.flows {
            let label = format!("corrected, {flows} flows, every ring limit");
            let profile = Profile::netcore().name;
            let runs: Vec<(&Case, &Outcome)> =
                cases.iter().zip(outcomes).filter(|(case, _)| case.flows == flows).collect();
            let (from, to) = (c.from_second as usize, c.seconds as usize);
            let (mut least_jain, mut most_ratio, mut least_sum, mut delay) = (1.0f64, 1.0f64, f64::INFINITY, 0.0f64);
            let mut packets = 0.0f64;
            for (case, outcome) in &runs {
                let rates = outcome.rates(from, to);
                let sum: f64 = rates.iter().sum();
                least_jain = least_jain.min(jain(&rates));
                most_ratio = most_ratio.max(ratio(&rates));
                least_sum = least_sum.min(sum);
                delay = delay.max(outcome.rtt_ms(from, to));
                packets = packets.max(outcome.packets_per_second);
                let ring = case.ring_limit.map_or("adapted".into(), |bytes| format!("{bytes} bytes"));
                self.sensitivity.push(format!(
                    "corrected, {flows} flows, ring limit {ring}, interrupts {} us apart: Jain {:.5}, ratio {:.4}, sum {sum:.2} \
                     Mbit/s, RTT {:.1} ms, {:.0} packets/s",
                    case.moderation.as_micros(),
                    jain(&rates),
                    ratio(&rates),
                    outcome.rtt_ms(from, to),
                    outcome.packets_per_second
                ));
            }
            let mut bound = |metric: &str, unit: &str, bound: f64, ours: f64, pass: bool| {
                let mut row = Row::ours_only(&label, profile, metric, unit, ours);
                (row.published, row.pass) = (Some(bound), Some(pass));
                self.rows.push(row);
            };
            bound("Jain's index, least (at least)", "", 0.999, least_jain, least_jain >= 0.999);
            bound("ratio, most (at most)", "", 1.02, most_ratio, most_ratio <= 1.02);
            bound("sum, least (at least)", "Mbit/s", 94.0, least_sum, least_sum >= 94.0);
            self.only(&label, profile, "smoothed RTT, most", "ms", delay);
            self.only(&label, profile, "packets to the card, most", "1/s", packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_named_by_small_fractions() {
        assert_eq!(fraction(5.0 / 3.0 + 0.001), (5, 3));
        assert_eq!(fraction(1.0), (1, 1));
        assert_eq!(fraction(1.6), (8, 5));
    }

    #[test]
    fn reverted_is_fair_and_the_corrected_design_too_and_todays_stack_is_not() {
        let s = Scenario::load().unwrap();
        let at = Assumed { overhead: 1280, moderation: 50, stagger: 1000 };
        let rates = |profile, queueing| {
            let case = Case { seconds: 2, ..s.case(profile, queueing, at) };
            let outcome = run::run(&case).unwrap();
            assert_eq!(outcome.retransmitted, 0);
            let rates = outcome.rates(1, 2);
            assert!((rates.iter().sum::<f64>() - 94.15).abs() < 0.1, "{rates:?}");
            rates
        };
        let r = rates(reverted(), FQ_OLD);
        assert!(ratio(&r) < 1.01, "{r:?}");
        assert!(ratio(&rates(Profile::netcore(), Queueing::Fq(FqRules::NETCORE))) < 1.02);
        assert!(ratio(&rates(Profile::linux_current(), FQ_NEW)) > 1.5);
    }

    #[test]
    fn ten_flows_share_a_ring_that_holds_all_of_them_only_if_no_packet_of_one_segment_is_left_over() {
        let s = Scenario::load().unwrap();
        let at = Assumed { overhead: 1280, moderation: 250, stagger: 1000 };
        let ten = |profile| {
            let case = s.case(profile, Queueing::Fq(FqRules::NETCORE), at);
            let case = Case { flows: 10, ring_limit: Some(131_072), seconds: 5, ..case };
            ratio(&run::run(&case).unwrap().rates(2, 5))
        };
        assert!(ten(Profile::netcore()) < 1.01);
        let mut split_anyhow = Profile::netcore();
        split_anyhow.whole_splits = false;
        assert!(ten(split_anyhow) > 1.05);
    }
}
