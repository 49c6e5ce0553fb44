//! Arrivals through a qdisc into a device.

use super::source::Source;
use netcore::{Dequeue, Drops, Instant, Packet, Qdisc, QdiscStatistics, Rate, Statistics};
use std::collections::BTreeMap;

/// Bytes on the wire beside the frame: preamble, checksum, gap.
const OVERHEAD: u64 = 24;

/// A packet that left.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) time: u64,
    pub(super) flow: u16,
    pub(super) len: u32,
}

/// What a flow came to.
#[derive(Clone, Default)]
pub(super) struct FlowResult {
    pub(super) name: String,
    pub(super) packets_in: u64,
    pub(super) packets_out: u64,
    pub(super) bytes_out: u64,
    pub(super) dropped: u64,
    /// Nanoseconds from arrival to departure, by departure.
    pub(super) delays: Vec<u64>,
}

pub(super) struct Outcome {
    pub(super) qdisc: &'static str,
    pub(super) options: String,
    pub(super) flows: Vec<FlowResult>,
    pub(super) departures: Vec<Departure>,
    pub(super) drops: BTreeMap<&'static str, u64>,
    pub(super) statistics: QdiscStatistics,
    pub(super) counters: Statistics,
    pub(super) damaged: Option<String>,
}

/// Runs everything through; ends when the qdisc is empty.
pub(super) fn run(mut qdisc: Box<dyn Qdisc>, mut source: Source, rate: Option<Rate>) -> Outcome {
    let flows = source.flows.iter().map(|name| FlowResult { name: name.clone(), ..FlowResult::default() }).collect();
    let mut outcome = Outcome {
        qdisc: qdisc.name(),
        options: qdisc.options(),
        flows,
        departures: Vec::new(),
        drops: BTreeMap::new(),
        statistics: QdiscStatistics::default(),
        counters: Statistics::new(),
        damaged: source.damaged.take(),
    };
    let mut drops = Drops::new();
    // The device takes the next packet then.
    let (mut now, mut free) = (0u64, 0u64);
    let (mut next, mut retry) = (0usize, None);
    let count = source.arrivals.len();
    loop {
        while next < count && source.arrivals[next].time <= now {
            let flow = usize::from(source.arrivals[next].flow);
            outcome.flows[flow].packets_in += 1;
            match source.packet(next) {
                Ok(packet) => qdisc.enqueue(packet, Instant::from_nanos(now), &mut drops),
                Err(_) => outcome.flows[flow].dropped += 1,
            }
            next += 1;
            retry = None;
            settle(&mut drops, &mut source, &mut outcome);
        }
        let ready = free <= now && retry.is_none_or(|at| at <= now);
        if ready && !qdisc.is_empty() {
            match qdisc.dequeue(Instant::from_nanos(now), &mut drops) {
                Dequeue::Packet(packet) => {
                    let wire = u64::from(u32::try_from(packet.len()).unwrap_or(u32::MAX)).max(60) + OVERHEAD;
                    free = now + rate.and_then(|rate| rate.nanos_for(wire)).unwrap_or(0);
                    leave(packet, now, &mut source, &mut outcome);
                    retry = None;
                }
                Dequeue::Throttled(at) => retry = Some(at.as_nanos()),
                Dequeue::Empty => {}
            }
            settle(&mut drops, &mut source, &mut outcome);
            continue;
        }
        let arrival = (next < count).then(|| source.arrivals[next].time);
        let service = (!qdisc.is_empty()).then(|| free.max(retry.unwrap_or(0)));
        match [arrival, service].into_iter().flatten().min() {
            Some(at) => now = now.max(at),
            None => break,
        }
    }
    outcome.statistics = qdisc.statistics();
    qdisc.extended_statistics(&mut outcome.counters);
    outcome
}

fn leave(packet: Packet, now: u64, source: &mut Source, outcome: &mut Outcome) {
    let flow = packet.queue().unwrap_or(0);
    let result = &mut outcome.flows[usize::from(flow)];
    let arrived = packet.timestamp().map_or(now, Instant::as_nanos);
    result.packets_out += 1;
    result.bytes_out += packet.len() as u64;
    result.delays.push(now - arrived);
    outcome.departures.push(Departure { time: now, flow, len: packet.len() as u32 });
    source.release(packet);
}

fn settle(drops: &mut Drops, source: &mut Source, outcome: &mut Outcome) {
    for dropped in drops.drain() {
        let flow = usize::from(dropped.packet.queue().unwrap_or(0));
        outcome.flows[flow].dropped += 1;
        *outcome.drops.entry(dropped.reason.name()).or_default() += 1;
        source.release(dropped.packet);
    }
}

/// Value below which a part `q` of sorted values lies.
pub(super) fn percentile(sorted: &[u64], q: f64) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(last as f64 * q).round() as usize])
}

/// Jain's index of fairness over bytes sent; `None` if nothing was.
pub(super) fn jain(flows: &[FlowResult]) -> Option<f64> {
    let active: Vec<f64> = flows.iter().filter(|f| f.packets_in > 0).map(|f| f.bytes_out as f64).collect();
    let (sum, squares) = active.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    (squares > 0.0).then(|| sum * sum / (active.len() as f64 * squares))
}
