//! The two experiments with bonds: hosts with several cards, a switch between them.

pub(super) mod ad_round_robin;
pub(super) mod balance_rr;

use super::LabError;
use crate::engine::{ComponentId, Lab};
use crate::host::{Application, Bulk, Cost, Host, Interface};
use crate::net::{Distribution, Link, LinkConfig, Switch, SwitchConfig};
use crate::nic::{Moderation, Nic, NicConfig};
use crate::topology::{TopologyError, mac, path};
use netcore::{Driver, Fifo, FifoLimit, Instant, Port, Rate};
use netcore_bond::Bond;
use netcore_bond::options::Options;
use netcore_offload::SoftwareSegmenter;
use netcore_tcp::{Config, Counters};
use std::time::Duration;

/// One end.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// Cards; more than one are bonded.
    pub(super) cards: u8,
    pub(super) rate_mbps: u64,
    pub(super) mtu: u16,
    /// Time from a card to the switch and back, one for each card.
    pub(super) latency_us: Vec<f64>,
    /// Added to that at random, up to this, order kept.
    pub(super) jitter_us: f64,
    pub(super) moderation: Moderation,
    pub(super) receive_ring: usize,
    pub(super) txqueuelen: usize,
    pub(super) cost: Cost,
    /// Options of the bond, as for `ip link`.
    pub(super) bond: String,
    /// Each card sends with an address of its own.
    pub(super) own_source: bool,
    /// What the switch spreads traffic to this end by.
    pub(super) switch: Distribution,
}

/// What runs over it.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) config: Config,
    /// Streams from the first end to the second, and back.
    pub(super) streams: [u16; 2],
    pub(super) seconds: f64,
    pub(super) bulk: Bulk,
    pub(super) buffer_bytes: u64,
    pub(super) switch_latency_us: f64,
    /// Pulls this card of the first end after so many seconds.
    pub(super) pull: Option<(usize, f64)>,
    pub(super) seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Payload taken by receivers, Mbit/s, per direction.
    pub(super) mbps: [f64; 2],
    /// Counters of the endpoints at each end.
    pub(super) counters: [Counters; 2],
    /// Frames that left the first end, arrived at the second, and were lost on the way or in a ring.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) lost: u64,
    /// Frames per card of the first end.
    pub(super) per_card: Vec<u64>,
    /// After a card was pulled: frames that left on it later than one interval of the link check.
    pub(super) after_pull: u64,
    /// Mbit/s from the first end to the second in each tenth.
    pub(super) steps: Vec<f64>,
}

fn micros(us: f64) -> Duration {
    Duration::from_nanos((us * 1000.0).round().max(0.0) as u64)
}

fn host(lab: &mut Lab, end: &End, number: u8) -> Result<Host, LabError> {
    let pool = lab.pool().clone();
    let options: Options = end.bond.parse().map_err(|_| LabError::Broken("options of the bond"))?;
    let mut bond: Bond = Bond::new("bond0", options, pool.cache(), u64::from(number));
    bond.set_round_robin_in_aggregate(end.own_source, end.own_source);
    let mut interfaces = Vec::new();
    for card in 0..end.cards {
        let rate = Rate::from_bits_per_sec(end.rate_mbps * 1_000_000);
        // Cards that send as themselves keep their own addresses; what is sent to the bond goes to the first one's.
        let mut config =
            NicConfig::new(&format!("eth{card}"), mac(number, if end.own_source { card } else { 0 }), rate);
        config.mtu = usize::from(end.mtu);
        config.tso = false;
        config.receive_ring = end.receive_ring;
        config.moderation = end.moderation;
        let (nic, driver) = Nic::shared(config, pool.cache());
        interfaces.push(Interface::new(nic));
        let port = Port::builder(driver, pool.cache())
            .segmenter(Box::new(SoftwareSegmenter::new()))
            .qdisc(Box::new(Fifo::new(FifoLimit::Packets(end.txqueuelen))))
            .build();
        bond.set_mtu(usize::from(end.mtu)).map_err(|_| LabError::Broken("the bond's MTU"))?;
        bond.add_member(&format!("eth{card}"), Box::new(port), Instant::ZERO)
            .map_err(|_| LabError::Broken("a card does not become a member"))?;
    }
    bond.start(Instant::ZERO).map_err(|_| LabError::Broken("the bond does not start"))?;
    Ok(Host::new(&format!("host{number}"), Box::new(bond), interfaces, end.cost))
}

struct Built {
    lab: Lab,
    ends: [ComponentId; 2],
    switch: ComponentId,
}

fn build(ends: [&End; 2], load: &Load) -> Result<Built, LabError> {
    let mut lab = Lab::new(load.seed, 120_000)?;
    let mut ports = Vec::new();
    let mut groups = Vec::new();
    for end in ends {
        let first = ports.len() as u16;
        ports.extend((0..end.cards).map(|_| Rate::from_bits_per_sec(end.rate_mbps * 1_000_000)));
        if end.cards > 1 {
            groups.push(((first..first + u16::from(end.cards)).collect(), end.switch));
        }
    }
    let config = SwitchConfig {
        ports,
        buffer_bytes: load.buffer_bytes,
        latency: micros(load.switch_latency_us),
        red: None,
        groups,
    };
    let seed = lab.derive_seed();
    let mut switch = Switch::new(config, seed);
    let mut port = 0;
    for (number, end) in (1..).zip(ends) {
        for card in 0..end.cards {
            switch.learn(mac(number, card), port);
            port += 1;
        }
    }
    let switch = lab.add(switch);
    let mut ids = Vec::new();
    let mut port = 0;
    for (number, end) in (1..).zip(ends) {
        let host = host(&mut lab, end, number)?;
        let id = lab.add(host);
        for card in 0..end.cards {
            let delay = end.latency_us.get(usize::from(card)).copied().unwrap_or(0.0);
            // The card and the switch's port have the rate; the link has time alone.
            let link = LinkConfig { delay: micros(delay), jitter: micros(end.jitter_us), ..LinkConfig::default() };
            let seed = lab.derive_seed();
            let link = lab.add(Link::new(link, seed));
            lab.connect((id, u16::from(card)), (link, 0)).map_err(TopologyError::from)?;
            lab.connect((link, 1), (switch, port)).map_err(TopologyError::from)?;
            port += 1;
        }
        ids.push(id);
    }
    Ok(Built { lab, ends: [ids[0], ids[1]], switch })
}

fn received(lab: &Lab, id: ComponentId) -> u64 {
    let flows = lab.get::<Host>(id).map(Host::flows).unwrap_or_default();
    flows.iter().filter_map(|flow| flow.endpoint()).map(|e| e.info().bytes_received).sum()
}

fn cards_sent(lab: &Lab, id: ComponentId, cards: u8) -> Vec<u64> {
    let host = lab.get::<Host>(id);
    (0..usize::from(cards))
        .filter_map(|i| host.and_then(|host| host.nic(i)))
        .map(|nic| crate::nic::lock(nic).counters().tx_packets)
        .collect()
}

/// Runs `load` between two ends.
pub(super) fn run(ends: [&End; 2], load: &Load) -> Result<Outcome, LabError> {
    let Built { mut lab, ends: ids, switch } = build(ends, load)?;
    let missing = || LabError::Broken("a host is missing");
    let start = Instant::from_secs(1);
    let stop = start + Duration::from_secs_f64(load.seconds);
    let bulk = Bulk { stop: Some(stop), close: true, ..load.bulk };
    let mut flow = 0;
    for (direction, streams) in load.streams.into_iter().enumerate() {
        let (from, to) = if direction == 0 { (1, 2) } else { (2, 1) };
        for _ in 0..streams {
            let path = path(from, to, flow, ends[0].mtu);
            let listener = lab.get_mut::<Host>(ids[1 - direction]).ok_or_else(missing)?;
            listener.listen(load.config.clone(), path.reversed(), 1000 + u64::from(flow), Application::Sink)?;
            let sender = lab.get_mut::<Host>(ids[direction]).ok_or_else(missing)?;
            // Streams of one program start within a fraction of a millisecond.
            let at = start + Duration::from_micros(37 * u64::from(flow));
            sender.connect(load.config.clone(), path, u64::from(flow), at, Application::Bulk(bulk))?;
            flow += 1;
        }
    }
    let mut outcome = Outcome::default();
    let (mut last, mut pulled, mut frozen) = (0, false, None);
    const STEPS: u32 = 50;
    let step = Duration::from_secs_f64(load.seconds / f64::from(STEPS));
    for i in 1..=STEPS {
        let at = start + step * i;
        lab.run_until(at);
        if let Some((card, after)) = load.pull
            && !pulled
            && at >= start + Duration::from_secs_f64(after)
        {
            pulled = true;
            if let Some(nic) = lab.get::<Host>(ids[0]).and_then(|host| host.nic(card)) {
                crate::nic::lock(nic).set_link(false);
            }
            if let Some(switch) = lab.get_mut::<Switch>(switch) {
                switch.set_port(card as u16, false);
            }
            // One interval of the link check later nothing may leave there any more.
            lab.run_until(at + Duration::from_millis(100));
            frozen = cards_sent(&lab, ids[0], ends[0].cards).get(card).copied().map(|n| (card, n));
        }
        let now = received(&lab, ids[1]);
        outcome.steps.push((now - last) as f64 * 8.0 / step.as_secs_f64() / 1e6);
        last = now;
    }
    let seconds = load.seconds;
    outcome.mbps = [received(&lab, ids[1]), received(&lab, ids[0])].map(|bytes| bytes as f64 * 8.0 / seconds / 1e6);
    // What is under way arrives.
    lab.run_until(stop + Duration::from_millis(500));
    for (n, id) in ids.into_iter().enumerate() {
        let host = lab.get::<Host>(id).ok_or_else(missing)?;
        for endpoint in host.flows().iter().filter_map(|flow| flow.endpoint()) {
            outcome.counters[n].merge(&endpoint.counters());
        }
    }
    outcome.per_card = cards_sent(&lab, ids[0], ends[0].cards);
    outcome.sent = outcome.per_card.iter().sum();
    let receiver = lab.get::<Host>(ids[1]).ok_or_else(missing)?;
    let cards = (0..usize::from(ends[1].cards)).filter_map(|i| receiver.nic(i));
    for nic in cards {
        let counters = crate::nic::lock(nic).counters();
        outcome.received += counters.rx_packets;
        outcome.lost += counters.rx_missed;
    }
    let counters = lab.get::<Switch>(switch).map(Switch::counters).unwrap_or_default();
    outcome.lost += counters.ports.iter().map(|p| p.dropped).sum::<u64>();
    if let Some((card, n)) = frozen {
        outcome.after_pull = outcome.per_card.get(card).copied().unwrap_or(0) - n;
    }
    Ok(outcome)
}
