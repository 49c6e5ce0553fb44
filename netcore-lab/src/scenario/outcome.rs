//! What a run brought: intervals, totals, counters; the curves of each flow.

use super::run::{Connection, World};
use crate::host::{Flow, Host, HostCounters, Sample};
use crate::net::{EgressCounters, Link, LinkCounters, Switch};
use crate::nic::lock;
use netcore::Statistics;
use serde::Serialize;
use std::collections::BTreeMap;

/// One line of the table of a flow. Windows and thresholds in segments, at the end of the interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Interval {
    /// Begin, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
    /// Bytes that the receiver had in order.
    pub bytes: u64,
    /// Bytes the other way, if both ends send.
    pub bytes_back: Option<u64>,
    /// Segments that the sender retransmitted.
    pub retransmits: u64,
    /// Congestion window.
    pub cwnd: Option<u32>,
    /// Slow-start threshold.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT, µs.
    pub srtt_us: Option<u32>,
    /// Segments in the network.
    pub in_flight: Option<u32>,
}

impl Interval {
    /// Rate of [`Interval::bytes`], Mbit/s.
    pub fn mbits_per_sec(&self) -> f64 {
        mbits(self.bytes, self.to_ns - self.from_ns)
    }
}

fn mbits(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 8000.0 / ns as f64 }
}

/// What became of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// Host that opened it.
    pub from: String,
    /// Host that accepted it.
    pub to: String,
    /// Era of the sender.
    pub profile: String,
    /// When it was opened, ns.
    pub start_ns: u64,
    /// Bytes that the receiver had in order.
    pub bytes: u64,
    /// Bytes the other way.
    pub bytes_back: u64,
    /// Average over the time from opening to the end, Mbit/s.
    pub mbits_per_sec: f64,
    /// Segments retransmitted by the sender.
    pub retransmits: u64,
    /// How the connection ended, if it failed.
    pub error: Option<String>,
    /// State of the sender, as `ss -ti` prints it.
    pub ss: String,
    /// The intervals.
    pub intervals: Vec<Interval>,
    /// Counters of the sender by their `nstat` names, those that are not zero.
    pub sender_counters: BTreeMap<&'static str, u64>,
    /// Counters of the receiver.
    pub receiver_counters: BTreeMap<&'static str, u64>,
    /// Curves of the sender.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// Curves of the receiver.
    #[serde(skip)]
    pub receiver_samples: Vec<Sample>,
}

/// What a host counted.
#[derive(Clone, Debug, Serialize)]
pub struct HostOutcome {
    /// Its name.
    pub name: String,
    /// Polls.
    pub polls: u64,
    /// Interrupts of its cards.
    pub interrupts: u64,
    /// Frames received.
    pub wire_packets: u64,
    /// Packets delivered to connections after merging.
    pub delivered: u64,
    /// Packets for nobody here.
    pub unmatched: u64,
    /// Packets that the transmit path refused.
    pub transmit_errors: u64,
    /// Time spent on receiving, ns.
    pub busy_ns: u64,
    /// Counters of cards, qdiscs and connections by their Linux names, those that are not zero.
    pub counters: BTreeMap<String, u64>,
}

/// One direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// The end that sends.
    pub from: String,
    /// Frames delivered.
    pub delivered: u64,
    /// Bytes delivered.
    pub bytes: u64,
    /// Frames lost at random, or because the cable was pulled.
    pub lost: u64,
    /// Frames with a bit error.
    pub crc_errors: u64,
    /// Frames dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames dropped early by RED.
    pub queue_early: u64,
    /// Frames marked by RED.
    pub queue_marked: u64,
    /// Most bytes that waited.
    pub queue_peak_bytes: u64,
}

/// What a link counted.
#[derive(Clone, Debug, Serialize)]
pub struct LinkOutcome {
    /// Its name.
    pub name: String,
    /// Both directions.
    pub directions: [Direction; 2],
    /// Frames still on the way.
    pub in_flight: usize,
}

/// What a switch counted.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchOutcome {
    /// Its name.
    pub name: String,
    /// Frames sent everywhere.
    pub flooded: u64,
    /// Frames dropped, by port.
    pub dropped: Vec<u64>,
    /// Most bytes that waited, by port.
    pub peak_bytes: Vec<u64>,
}

/// What a run brought.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The scenario's title.
    pub title: String,
    /// Its seed.
    pub seed: u64,
    /// Virtual time, ns.
    pub duration_ns: u64,
    /// Connections.
    pub flows: Vec<FlowOutcome>,
    /// Hosts.
    pub hosts: Vec<HostOutcome>,
    /// Links.
    pub links: Vec<LinkOutcome>,
    /// Switches.
    pub switches: Vec<SwitchOutcome>,
}

fn direction(from: &str, counters: LinkCounters) -> Direction {
    let EgressCounters { dropped, early, marked, peak_bytes, .. } = counters.queue;
    Direction {
        from: from.into(),
        delivered: counters.delivered,
        bytes: counters.bytes,
        lost: counters.lost,
        crc_errors: counters.crc_errors,
        queue_dropped: dropped,
        queue_early: early,
        queue_marked: marked,
        queue_peak_bytes: peak_bytes,
    }
}

fn flow(world: &World, connection: &Connection, intervals: Vec<Interval>) -> FlowOutcome {
    let (sender, receiver) = (world.flow(connection.from), world.flow(connection.to));
    let counters = |flow: Option<&Flow>| {
        let counters = flow.and_then(Flow::endpoint).map(netcore_tcp::Endpoint::counters);
        counters.map(|counters| counters.iter().filter(|(_, value)| *value > 0).collect()).unwrap_or_default()
    };
    let samples = |flow: Option<&Flow>| flow.map(|flow| flow.samples().to_vec()).unwrap_or_default();
    let bytes = intervals.iter().map(|interval| interval.bytes).sum();
    let start_ns = connection.start.as_nanos();
    let endpoint = sender.and_then(Flow::endpoint);
    FlowOutcome {
        name: connection.name.clone(),
        from: world.hosts[connection.from.0].name.clone(),
        to: world.hosts[connection.to.0].name.clone(),
        profile: connection.profile.into(),
        start_ns,
        bytes,
        bytes_back: intervals.iter().filter_map(|interval| interval.bytes_back).sum(),
        mbits_per_sec: mbits(bytes, (world.duration.as_nanos() as u64).saturating_sub(start_ns)),
        retransmits: intervals.iter().map(|interval| interval.retransmits).sum(),
        error: endpoint.and_then(netcore_tcp::Endpoint::error).map(|error| error.to_string()),
        ss: endpoint.map(|endpoint| endpoint.info().to_string()).unwrap_or_default(),
        intervals,
        sender_counters: counters(sender),
        receiver_counters: counters(receiver),
        samples: samples(sender),
        receiver_samples: samples(receiver),
    }
}

fn host(host: &Host) -> HostOutcome {
    let HostCounters { polls, wire_packets, delivered, unmatched, busy_ns, transmit_errors, .. } = host.counters();
    let mut statistics = Statistics::new();
    host.statistics(&mut statistics);
    let mut counters = BTreeMap::new();
    for counter in statistics.counters().iter().filter(|counter| counter.value > 0) {
        *counters.entry(counter.name.to_string()).or_insert(0) += counter.value;
    }
    let interrupts = (0..).map_while(|index| host.nic(index)).map(|nic| lock(nic).counters().interrupts).sum();
    HostOutcome {
        name: host.name().into(),
        polls,
        interrupts,
        wire_packets,
        delivered,
        unmatched,
        transmit_errors,
        busy_ns,
        counters,
    }
}

pub(super) fn collect(world: &World, intervals: Vec<Vec<Interval>>) -> Outcome {
    let lab = &world.lab;
    let flows = world.flows.iter().zip(intervals).map(|(connection, i)| flow(world, connection, i)).collect();
    let links = world.links.iter().filter_map(|link| {
        let counted = lab.get::<Link>(link.id)?;
        let directions = [0, 1].map(|port| direction(&link.ends[usize::from(port)], counted.counters(port)));
        Some(LinkOutcome { name: link.name.clone(), directions, in_flight: counted.in_flight() })
    });
    let switches = world.switches.iter().filter_map(|switch| {
        let counters = lab.get::<Switch>(switch.id)?.counters();
        Some(SwitchOutcome {
            name: switch.name.clone(),
            flooded: counters.flooded,
            dropped: counters.ports.iter().map(|port| port.dropped + port.early).collect(),
            peak_bytes: counters.ports.iter().map(|port| port.peak_bytes).collect(),
        })
    });
    Outcome {
        title: world.title.clone(),
        seed: world.seed,
        duration_ns: world.duration.as_nanos() as u64,
        flows,
        hosts: world.hosts.iter().filter_map(|named| lab.get::<Host>(named.id)).map(host).collect(),
        links: links.collect(),
        switches: switches.collect(),
    }
}
