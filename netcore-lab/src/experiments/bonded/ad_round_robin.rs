//! `bond-8023ad-rr`: one TCP stream over all links of an aggregate, as proposed in 2011.

use super::{End, Load, Outcome, Pull, run};
use crate::experiment::{Experiment, Row, Series};
use crate::experiments::LabError;
use crate::host::{Bulk, Cost};
use crate::net::Distribution;
use crate::nic::Moderation;
use crate::parallel;
use netcore_tcp::{Config, Profile};
use serde::Deserialize;
use std::time::Duration;

const NAME: &str = "bond-8023ad-rr";
const SCENARIO: &str = include_str!("../../../scenarios/bond-8023ad-rr.toml");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    end: EndSettings,
    switch: SwitchSettings,
    run: RunSettings,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndSettings {
    links: u8,
    rate_mbps: u64,
    mtu: u16,
    latency_us: Vec<f64>,
    jitter_us: f64,
    interrupt_interval_us: f64,
    interrupt_jitter_us: f64,
    receive_ring: usize,
    receive_buffer: usize,
    txqueuelen: usize,
    poll_ns: u64,
    frame_ns: u64,
    byte_ps: u64,
    window_bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchSettings {
    latency_us: f64,
    buffer_bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunSettings {
    seconds: f64,
    seed: u64,
}

/// How the sender chooses a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Policy {
    /// In turn, each link with an address of its own.
    RoundRobin,
    /// In turn, all with the bond's address.
    FixedMac,
    /// By a hash of addresses and ports.
    Layer34,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    links: u8,
    streams: [u16; 2],
    policy: Policy,
    today: bool,
    pull: bool,
}

impl Scenario {
    fn parse(text: &str) -> Result<Self, LabError> {
        let s: Self =
            toml::from_str(text).map_err(|source| LabError::Scenario { name: NAME, source: Box::new(source) })?;
        let check = |setting, value: u64, range: std::ops::RangeInclusive<u64>, allowed| {
            if range.contains(&value) { Ok(()) } else { Err(LabError::Setting { name: NAME, setting, value, allowed }) }
        };
        check("end.links", u64::from(s.end.links), 1..=16, "1 to 16")?;
        check("end.mtu", u64::from(s.end.mtu), 576..=9216, "576 to 9216")?;
        check("run.seconds", s.run.seconds as u64, 0..=600, "600 at most")?;
        Ok(s)
    }

    fn run(&self, case: &Case) -> Result<Outcome, LabError> {
        let e = &self.end;
        let bond = match case.policy {
            Policy::Layer34 => "mode 802.3ad miimon 100 xmit_hash_policy layer3+4",
            _ => "mode 802.3ad miimon 100",
        };
        let end = End {
            cards: case.links,
            rate_mbps: e.rate_mbps,
            mtu: e.mtu,
            latency_us: e.latency_us.clone(),
            jitter_us: e.jitter_us,
            wait_us: 0.0,
            moderation: Moderation {
                interval: Duration::from_nanos((e.interrupt_interval_us * 1000.0) as u64),
                jitter: Duration::from_nanos((e.interrupt_jitter_us * 1000.0) as u64),
                ..Moderation::default()
            },
            receive_ring: e.receive_ring,
            receive_buffer: Some(e.receive_buffer),
            txqueuelen: e.txqueuelen,
            cost: Cost {
                poll_ns: e.poll_ns,
                wire_ns: e.frame_ns,
                delivered_ns: 0,
                byte_ps: e.byte_ps,
                sent_ns: e.frame_ns,
                sent_byte_ps: e.byte_ps,
                ..Cost::default()
            },
            merge: false,
            bond: bond.into(),
            in_turn: case.policy != Policy::Layer34,
            own_source: case.policy == Policy::RoundRobin,
            switch: Distribution::Layer2,
        };
        let mut config = Config::new(Profile::by_name(if case.today { "linux-current" } else { "linux-2.6.32" })?);
        config.sndbuf = Some(e.window_bytes * 2);
        config.rcvbuf = Some(e.window_bytes * 4 / 3);
        config.gso_max_size = 0;
        let load = Load {
            config,
            streams: case.streams,
            seconds: self.run.seconds,
            bulk: Bulk::default(),
            buffer_bytes: self.switch.buffer_bytes,
            switch_latency_us: self.switch.latency_us,
            pull: case.pull.then_some(Pull { card: 1, after: self.run.seconds / 2.0 }),
            seed: self.run.seed,
        };
        run([&end, &end], &load)
    }
}

/// Runs the experiment.
pub(in crate::experiments) fn experiment(progress: &mut dyn FnMut(f64)) -> Result<Experiment, LabError> {
    let text = std::env::var("AD").map_or(SCENARIO.to_string(), |f| std::fs::read_to_string(f).unwrap()); /*DEV*/
    let s = Scenario::parse(&text)?;
    let one = Case { links: s.end.links, streams: [1, 0], policy: Policy::RoundRobin, today: false, pull: false };
    let cases = [
        ("one stream, four links", one),
        ("8 streams each way, four links", Case { streams: [8, 8], ..one }),
        ("8 streams each way, two links", Case { streams: [8, 8], links: 2, ..one }),
        ("one stream, fixed addresses, the switch hashes", Case { policy: Policy::FixedMac, ..one }),
        ("one stream by layer3+4", Case { policy: Policy::Layer34, ..one }),
        ("one stream, a link pulled half-way", Case { pull: true, ..one }),
        ("one stream, four links, today's stack", Case { today: true, ..one }),
        ("8 streams each way, four links, today's stack", Case { streams: [8, 8], today: true, ..one }),
    ];
    if std::env::var("AD").is_ok() {
        /*DEV*/
        if std::env::var("TRACE").is_ok() {
            s.run(&cases[5].1)?;
            std::process::exit(0);
        }
        let cases = &cases[..std::env::var("N").map_or(8, |n| n.parse().unwrap())];
        let out = parallel::map(cases, progress, |(_, case)| s.run(case))?;
        for ((l, _), o) in cases.iter().zip(out) {
            let c = &o.counters[0];
            println!(
                "{l}: {:.0} {:.0} retr {:.4} {:.4} % rec {} fack/sack/ts {}/{}/{} dsack {} fast/fwd/ss {}/{}/{} rto {} paws {} lost {} rings {} d {} busy {:.2} {:.2} members {:?} after {} by pull {} cards {:?} late {:.0}",
                o.mbps[0],
                o.mbps[1],
                o.retransmitted(0),
                o.retransmitted(1),
                c.sack_recovery,
                c.fack_reorder,
                c.sack_reorder,
                c.ts_reorder,
                c.dsack_recv,
                c.fast_retrans,
                c.forward_retrans,
                c.slow_start_retrans,
                c.timeouts,
                c.paws_estab,
                o.lost,
                o.lost_in_rings,
                o.sent as i64 - o.received as i64 - o.lost as i64,
                o.busy[0],
                o.busy[1],
                o.members,
                o.after_pull,
                o.lost_by_pull,
                o.per_card,
                o.steps[35..].iter().sum::<f64>() / 15.0
            );
        }
        std::process::exit(0);
    }
    let change = |change: &dyn Fn(&mut Scenario)| {
        let mut changed = s.clone();
        change(&mut changed);
        changed
    };
    let variants = [
        ("jitter 10 µs instead of 3", change(&|s| s.end.jitter_us = 10.0)),
        ("a receive ring of 4096", change(&|s| s.end.receive_ring = 4096)),
        ("twice the cost per frame", change(&|s| s.end.frame_ns *= 2)),
    ];
    let both = cases[1].1;
    let tasks: Vec<(&Scenario, Case)> =
        cases.iter().map(|(_, case)| (&s, *case)).chain(variants.iter().map(|(_, v)| (v, both))).collect();
    let outcomes = parallel::map(&tasks, progress, |(s, case)| s.run(case))?;
    let mut rows = Vec::new();
    for (n, ((label, case), o)) in cases.iter().zip(&outcomes).enumerate() {
        let profile = if case.today { "linux-current" } else { "linux-2.6.32" };
        let rate = |of: f64| of * 100.0;
        let retransmitted = |n: usize| {
            rate(
                o.counters[n].retrans_segs as f64 / (o.counters[n].out_segs + o.counters[n].retrans_segs).max(1) as f64,
            )
        };
        let goodput = one_link(&s);
        match n {
            0 => {
                rows.push(Row::compared(label, profile, "throughput", "Mbit/s", 3961.0, o.mbps[0], 1.5));
                rows.push(Row {
                    published: Some(0.0029),
                    // Of order 1e-5 to 1e-4.
                    pass: Some((0.001..=0.01).contains(&retransmitted(0))),
                    ..Row::ours_only(label, profile, "retransmitted", "%", retransmitted(0))
                });
            }
            1 => {
                rows.push(Row::compared(label, profile, "throughput forth", "Mbit/s", 3117.0, o.mbps[0], 4.0));
                rows.push(Row::compared(label, profile, "throughput back", "Mbit/s", 3086.0, o.mbps[1], 4.0));
                rows.push(Row {
                    published: Some(0.176),
                    pass: Some((0.1..=0.3).contains(&retransmitted(0))),
                    ..Row::ours_only(label, profile, "retransmitted forth", "%", retransmitted(0))
                });
                rows.push(Row {
                    published: Some(0.193),
                    pass: Some((0.1..=0.3).contains(&retransmitted(1))),
                    ..Row::ours_only(label, profile, "retransmitted back", "%", retransmitted(1))
                });
            }
            2 => {
                rows.push(Row::compared(label, profile, "throughput forth", "Mbit/s", 1933.0, o.mbps[0], 2.5));
                rows.push(Row::compared(label, profile, "throughput back", "Mbit/s", 1944.0, o.mbps[1], 2.5));
            }
            // What one link carries.
            3 | 4 => rows.push(Row::compared(label, profile, "throughput", "Mbit/s", goodput, o.mbps[0], 1.5)),
            5 => {
                rows.push(Row::compared(
                    label,
                    profile,
                    "frames on the pulled link after one interval",
                    "",
                    0.0,
                    o.after_pull as f64,
                    0.0,
                ));
                let second: f64 =
                    o.steps[o.steps.len() * 7 / 10..].iter().sum::<f64>() / (o.steps.len() * 3 / 10) as f64;
                rows.push(Row::ours_only(label, profile, "throughput after it", "Mbit/s", second));
            }
            _ => {
                rows.push(Row::ours_only(label, profile, "throughput forth", "Mbit/s", o.mbps[0]));
                rows.push(Row::ours_only(label, profile, "throughput back", "Mbit/s", o.mbps[1]));
                rows.push(Row::ours_only(label, profile, "retransmitted forth", "%", retransmitted(0)));
            }
        }
        let c = &o.counters[0];
        let published = |values: [f64; 8]| match n {
            0 => values[0..4].iter().map(|v| Some(*v)).collect::<Vec<_>>(),
            1 => values[4..8].iter().map(|v| Some(*v)).collect(),
            _ => vec![None; 4],
        };
        let shown = published([185.0, 8.0, 297.0, 0.0, 10_983.0, 10_095.0, 14_169.0, 698_540.0]);
        for ((metric, ours), published) in [
            ("SACK recoveries", c.sack_recovery),
            ("reordering seen by SACK", c.sack_reorder),
            ("DSACKs received", c.dsack_recv),
            ("segments rejected by timestamp", c.paws_estab),
        ]
        .into_iter()
        .zip(shown)
        {
            rows.push(Row { published, ..Row::ours_only(label, profile, metric, "", ours as f64) });
        }
        rows.push(Row::ours_only(label, profile, "frames lost in switch and rings", "", o.lost as f64));
    }
    let step = s.run.seconds / 50.0;
    let series = [0, 1, 5]
        .map(|n| Series {
            name: cases[n].0.into(),
            x: "second".into(),
            y: "Mbit/s".into(),
            points: outcomes[n].steps.iter().enumerate().map(|(i, v)| ((i + 1) as f64 * step, *v)).collect(),
        })
        .to_vec();
    let sensitivity = variants
        .iter()
        .zip(&outcomes[cases.len()..])
        .map(|((what, _), o)| format!("{what}: 8 streams each way get {:.0} and {:.0} Mbit/s", o.mbps[0], o.mbps[1]))
        .collect();
    Ok(Experiment {
        name: NAME.into(),
        title: "One TCP stream over four links of an aggregate, packet by packet".into(),
        rows,
        sensitivity,
        series,
    })
}

/// Payload that one link carries, Mbit/s: TCP with timestamps in full frames.
fn one_link(s: &Scenario) -> f64 {
    let mtu = f64::from(s.end.mtu);
    s.end.rate_mbps as f64 * (mtu - 52.0) / (mtu + 38.0)
}
