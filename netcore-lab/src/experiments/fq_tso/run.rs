//! One run: flows between two cards, second by second.

use crate::engine::Lab;
use crate::experiments::LabError;
use crate::host::{Application, Bulk, Cost, Host, Interface};
use crate::net::{Link, LinkConfig};
use crate::nic::{Moderation, Nic, NicConfig, lock};
use crate::topology::{Side, mac, path};
use netcore::congestion::PacingStatus;
use netcore::{Fifo, FifoLimit, Instant, Port, Qdisc, Rate};
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter};
use netcore_qdisc::{Fq, FqOptions, FqRules};
use netcore_tcp::{Config, Profile};
use std::time::Duration;

/// The qdisc of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queueing {
    Fq(FqRules),
    Fifo,
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) profile: Profile,
    pub(super) queueing: Queueing,
    pub(super) flows: u16,
    pub(super) rate: Rate,
    pub(super) mtu: u16,
    pub(super) tso: bool,
    pub(super) gso_max_size: u32,
    /// A fixed limit of bytes between qdisc and ring; `None`: adapted as in Linux.
    pub(super) ring_limit: Option<u64>,
    /// Least time between two interrupts.
    pub(super) moderation: Duration,
    /// One-way delay of the cable and everything around it.
    pub(super) delay: Duration,
    /// The second flow starts this much after the first, and so on.
    pub(super) stagger: Duration,
    pub(super) seconds: u64,
}

/// One flow in one second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Second {
    /// Payload received in order, Mbit/s.
    pub(super) received: f64,
    pub(super) cwnd: u32,
    pub(super) srtt_us: u32,
}

/// What came out.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// By flow, then by second.
    pub(super) flows: Vec<Vec<Second>>,
    pub(super) retransmitted: u64,
    /// Super-packets, or without TSO packets, per second handed to the card, all flows.
    pub(super) packets_per_second: f64,
}

impl Outcome {
    /// Mean goodput of each flow over whole seconds `from..to`, Mbit/s.
    pub(super) fn rates(&self, from: usize, to: usize) -> Vec<f64> {
        self.flows.iter().map(|f| f[from..to].iter().map(|s| s.received).sum::<f64>() / (to - from) as f64).collect()
    }

    /// Mean smoothed RTT, ms.
    pub(super) fn rtt_ms(&self, from: usize, to: usize) -> f64 {
        let all: Vec<f64> = self.flows.iter().flat_map(|f| &f[from..to]).map(|s| f64::from(s.srtt_us)).collect();
        all.iter().sum::<f64>() / all.len() as f64 / 1000.0
    }
}

/// Jain's index of fairness.
pub(super) fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    sum * sum / (rates.len() as f64 * squares)
}

/// Largest rate over smallest.
pub(super) fn ratio(rates: &[f64]) -> f64 {
    let most = rates.iter().copied().fold(0.0, f64::max);
    most / rates.iter().copied().fold(f64::INFINITY, f64::min)
}

fn card(case: &Case, name: &str, host: u8) -> NicConfig {
    let mut nic = NicConfig::new(name, mac(host, 0), case.rate);
    nic.mtu = case.mtu.into();
    nic.tso = case.tso;
    nic.moderation = Moderation { interval: case.moderation, ..Moderation::default() };
    nic
}

fn sender(case: &Case, lab: &mut Lab) -> Result<Host, LabError> {
    let pool = lab.pool().clone();
    let (nic, driver) = Nic::shared(card(case, "left", 1), pool.cache());
    let qdisc: Box<dyn Qdisc> = match case.queueing {
        Queueing::Fq(rules) => Box::new(Fq::with_rules(FqOptions::default(), rules, Duration::ZERO)?),
        Queueing::Fifo => Box::new(Fifo::new(FifoLimit::Packets(Fifo::DEFAULT_PACKETS))),
    };
    let mut port =
        Port::builder(driver, pool.cache()).segmenter(Box::new(SoftwareSegmenter::new())).qdisc(qdisc).build();
    if let (Some(bytes), Some(limit)) = (case.ring_limit, port.queue_limit(0)) {
        limit.set_range(bytes, bytes);
    }
    let interface = Interface::new(nic).with_offload(Box::new(Gro::new(GroConfig::default())?));
    Ok(Host::new("left", Box::new(port), vec![interface], Cost::default()))
}

/// Runs a case.
pub(super) fn run(case: &Case) -> Result<Outcome, LabError> {
    let mut lab = Lab::new(1, 32_768)?;
    let left = sender(case, &mut lab)?;
    let left = lab.add(left);
    let right = Side::new(card(case, "right", 2)).build(&mut lab, "right")?;
    let right = lab.add(right);
    let link = LinkConfig { delay: case.delay, ..LinkConfig::default() };
    let seed = lab.derive_seed();
    let link = lab.add(Link::new(link, seed));
    lab.connect((left, 0), (link, 0))?;
    lab.connect((link, 1), (right, 0))?;
    for n in 0..case.flows {
        let mut config = Config::new(case.profile);
        config.gso_max_size = if case.tso { case.gso_max_size } else { 0 };
        if matches!(case.queueing, Queueing::Fq(_)) {
            config.pacing = PacingStatus::Fq;
        }
        let start = Instant::ZERO + case.stagger * u32::from(n);
        let bulk = Bulk::default();
        let (there, back) = (path(1, 2, n, case.mtu), path(1, 2, n, case.mtu).reversed());
        let seed = u64::from(n) + 1;
        if let Some(host) = lab.get_mut::<Host>(left) {
            host.connect(config.clone(), there, seed, start, Application::Bulk(bulk))?;
        }
        if let Some(host) = lab.get_mut::<Host>(right) {
            host.listen(config, back, seed + 1000, Application::Sink)?;
        }
    }
    let mut flows = vec![Vec::new(); usize::from(case.flows)];
    let mut before = vec![0u64; usize::from(case.flows)];
    for second in 1..=case.seconds {
        lab.run_until(Instant::from_secs(second));
        for (n, list) in flows.iter_mut().enumerate() {
            let info = lab.get::<Host>(left).and_then(|h| h.flows()[n].endpoint().map(|e| e.info()));
            let received = lab
                .get::<Host>(right)
                .and_then(|h| h.flows()[n].endpoint().map(|e| e.info().bytes_received))
                .unwrap_or(0);
            let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6;
            list.push(Second {
                received: mbit(received - before[n]),
                cwnd: info.map_or(0, |i| i.cwnd),
                srtt_us: info.and_then(|i| i.rtt_us).unwrap_or(0),
            });
            before[n] = received;
        }
    }
    let host = lab.get_mut::<Host>(left).ok_or(LabError::NotYet(super::NAME))?;
    let retransmitted = host.flows().iter().filter_map(|f| f.endpoint()).map(|e| e.counters().retrans_segs).sum();
    // Without segmentation in the card every frame is a packet.
    let handed = host.nic(0).map_or(0, |nic| {
        let counters = lock(nic).counters();
        if case.tso { counters.tx_tso } else { counters.tx_packets }
    });
    Ok(Outcome { flows, retransmitted, packets_per_second: handed as f64 / case.seconds as f64 })
}
