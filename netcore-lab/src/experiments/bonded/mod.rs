//! The two experiments with bonds: hosts with several cards, a switch between them. Both ends are real [`Bond`]s; with
//! `mode 802.3ad` they and the switch's groups agree by LACP before any data goes.

pub(super) mod ad_round_robin;
pub(super) mod balance_rr;
mod measure;

use super::LabError;
use crate::engine::{ComponentId, Lab};
use crate::host::{Application, Bulk, Cost, Host, Interface};
use crate::net::{Distribution, Link, LinkConfig, PortGroup, Switch, SwitchConfig};
use crate::nic::{Moderation, Nic, NicConfig};
use crate::topology::{TopologyError, mac, path};
pub(super) use measure::{Outcome, Pull};
use netcore::{Fifo, FifoLimit, Instant, Port, Rate};
use netcore_bond::Bond;
use netcore_bond::options::{Mode, Options};
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter};
use netcore_tcp::Config;
use std::time::Duration;

/// One end.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// Cards; all are members of a bond.
    pub(super) cards: u8,
    pub(super) rate_mbps: u64,
    pub(super) mtu: u16,
    /// Time from a card to the switch and back, one for each card.
    pub(super) latency_us: Vec<f64>,
    /// Added to that at random, up to this, order kept.
    pub(super) jitter_us: f64,
    /// Mean of an exponentially distributed wait that is added, order kept.
    pub(super) wait_us: f64,
    pub(super) moderation: Moderation,
    pub(super) receive_ring: usize,
    /// Bytes of a receive descriptor.
    pub(super) receive_buffer: Option<usize>,
    pub(super) txqueuelen: usize,
    pub(super) cost: Cost,
    /// Merges segments of a poll, as the driver's LRO did.
    pub(super) merge: bool,
    /// Options of the bond, as for `ip link`.
    pub(super) bond: String,
    /// Packets go in turn although the mode is 802.3ad.
    pub(super) in_turn: bool,
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
    /// Pulls a cable of the first end.
    pub(super) pull: Option<Pull>,
    pub(super) seed: u64,
}

fn micros(us: f64) -> Duration {
    Duration::from_nanos((us * 1000.0).round().max(0.0) as u64)
}

fn is_8023ad(end: &End) -> bool {
    end.bond.parse::<Options>().is_ok_and(|options| options.mode() == Mode::Ieee8023ad)
}

fn host(lab: &mut Lab, end: &End, number: u8) -> Result<Host, LabError> {
    let pool = lab.pool().clone();
    let options: Options = end.bond.parse().map_err(|_| LabError::Broken("options of the bond"))?;
    let mut bond: Bond = Bond::new("bond0", options, pool.cache(), u64::from(number));
    bond.set_round_robin_in_aggregate(end.in_turn, end.own_source);
    let mut interfaces = Vec::new();
    for card in 0..end.cards {
        let rate = Rate::from_bits_per_sec(end.rate_mbps * 1_000_000);
        let mut config = NicConfig::new(&format!("eth{card}"), mac(number, card), rate);
        config.mtu = usize::from(end.mtu);
        config.tso = false;
        config.receive_ring = end.receive_ring;
        config.receive_buffer = end.receive_buffer;
        config.moderation = end.moderation;
        let (nic, driver) = Nic::shared(config, pool.cache());
        let mut interface = Interface::new(nic);
        if end.merge {
            interface = interface.with_offload(Box::new(Gro::new(GroConfig::default())?));
        }
        interfaces.push(interface);
        let port = Port::builder(driver, pool.cache())
            .segmenter(Box::new(SoftwareSegmenter::new()))
            .qdisc(Box::new(Fifo::new(FifoLimit::Packets(end.txqueuelen))))
            .byte_queue_limits(false)
            .build();
        netcore::Driver::set_mtu(&mut bond, usize::from(end.mtu)).map_err(|_| LabError::Broken("the bond's MTU"))?;
        bond.add_member(&format!("eth{card}"), Box::new(port), Instant::ZERO)
            .map_err(|_| LabError::Broken("a card does not become a member"))?;
    }
    Ok(Host::bonded(&format!("host{number}"), bond, interfaces, end.cost))
}

/// A lab with two ends and the switch between them.
struct Built {
    lab: Lab,
    ends: [ComponentId; 2],
    /// Links of each end's cards; port 0 is the card's.
    links: [Vec<ComponentId>; 2],
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
            let members = (first..first + u16::from(end.cards)).collect();
            groups.push(PortGroup { members, distribution: end.switch, lacp: is_8023ad(end) });
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
    let mut links = [Vec::new(), Vec::new()];
    let mut port = 0;
    for (number, end) in (1..).zip(ends) {
        let host = host(&mut lab, end, number)?;
        let id = lab.add(host);
        for card in 0..end.cards {
            let delay = end.latency_us.get(usize::from(card)).copied().unwrap_or(0.0);
            // The card and the switch's port have the rate; the link has time alone.
            let link = LinkConfig {
                delay: micros(delay),
                jitter: micros(end.jitter_us),
                wait: micros(end.wait_us),
                ..LinkConfig::default()
            };
            let seed = lab.derive_seed();
            let link = lab.add(Link::new(link, seed));
            lab.connect((id, u16::from(card)), (link, 0)).map_err(TopologyError::from)?;
            lab.connect((link, 1), (switch, port)).map_err(TopologyError::from)?;
            links[ids.len()].push(link);
            port += 1;
        }
        ids.push(id);
    }
    Ok(Built { lab, ends: [ids[0], ids[1]], links, switch })
}

/// Time until data goes: LACP needs 2 s to aggregate, and the aggregator's selection some more.
const AGGREGATION: Instant = Instant::from_secs(5);

/// Runs `load` between two ends.
pub(super) fn run(ends: [&End; 2], load: &Load) -> Result<Outcome, LabError> {
    let mut built = build(ends, load)?;
    let start = AGGREGATION;
    let stop = start + Duration::from_secs_f64(load.seconds);
    built.lab.run_until(start);
    let bulk = Bulk { stop: Some(stop), close: true, ..load.bulk };
    let mut flow = 0;
    let missing = || LabError::Broken("a host is missing");
    for (direction, streams) in load.streams.into_iter().enumerate() {
        let (from, to) = if direction == 0 { (1, 2) } else { (2, 1) };
        for _ in 0..streams {
            let path = path(from, to, flow, ends[0].mtu);
            let listener = built.lab.get_mut::<Host>(built.ends[1 - direction]).ok_or_else(missing)?;
            listener.listen(load.config.clone(), path.reversed(), 1000 + u64::from(flow), Application::Sink)?;
            let sender = built.lab.get_mut::<Host>(built.ends[direction]).ok_or_else(missing)?;
            // Streams of one program start within a fraction of a millisecond.
            let at = start + Duration::from_micros(37 * u64::from(flow));
            sender.connect(load.config.clone(), path, u64::from(flow), at, Application::Bulk(bulk))?;
            built.lab.nudge(built.ends[direction]);
            flow += 1;
        }
    }
    measure::run(&mut built, load, start, stop)
}
