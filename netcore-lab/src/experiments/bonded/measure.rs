//! A run, and what is counted in it.

use super::{Built, LabError, Load};
use crate::engine::{ComponentId, Lab};
use crate::host::Host;
use crate::net::{Link, Switch};
use crate::nic::{NicCounters, lock};
use netcore::Instant;
use netcore_tcp::Counters;
use std::time::Duration;

/// The curve has this many points.
const STEPS: u32 = 50;

/// A cable that is pulled.
#[derive(Clone, Copy, Debug)]
pub(in crate::experiments) struct Pull {
    /// Card of the first end.
    pub(in crate::experiments) card: usize,
    /// Seconds after the start of the load.
    pub(in crate::experiments) after: f64,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub(in crate::experiments) struct Outcome {
    /// Payload taken by receivers, Mbit/s, per direction.
    pub(in crate::experiments) mbps: [f64; 2],
    /// Counters of the endpoints at each end.
    pub(in crate::experiments) counters: [Counters; 2],
    /// Members that sent data when the load began, at each end.
    pub(in crate::experiments) members: [usize; 2],
    /// Frames per card of the first end.
    pub(in crate::experiments) per_card: Vec<u64>,
    /// Frames that cards, or the switch for LACP, put on a link.
    pub(in crate::experiments) sent: u64,
    /// Frames that cards, or the switch for LACP, took in.
    pub(in crate::experiments) received: u64,
    /// Frames lost in rings, switch and on a pulled cable.
    pub(in crate::experiments) lost: u64,
    /// Of those, in receive rings.
    pub(in crate::experiments) lost_in_rings: u64,
    /// After a card's cable was pulled: frames that the bond gave it later than one interval of the link check.
    pub(in crate::experiments) after_pull: u64,
    /// Frames lost with the cable: on it, at the switch's port, in the card's ring and queue, and given to it before the bond
    /// noticed.
    pub(in crate::experiments) lost_by_pull: u64,
    /// Mbit/s from the first end to the second in each step.
    pub(in crate::experiments) steps: Vec<f64>,
    /// CPU time used of what there was, each end.
    pub(in crate::experiments) busy: [f64; 2],
}

impl Outcome {
    /// Retransmitted of all segments sent by an end, percent.
    pub(in crate::experiments) fn retransmitted(&self, end: usize) -> f64 {
        let c = &self.counters[end];
        c.retrans_segs as f64 / (c.out_segs + c.retrans_segs).max(1) as f64 * 100.0
    }
}

fn received(lab: &Lab, id: ComponentId) -> u64 {
    let flows = lab.get::<Host>(id).map(Host::flows).unwrap_or_default();
    flows.iter().filter_map(|flow| flow.endpoint()).map(|e| e.info().bytes_received).sum()
}

fn cards(lab: &Lab, id: ComponentId) -> Vec<NicCounters> {
    let host = lab.get::<Host>(id);
    (0..).map_while(|i| host.and_then(|host| host.nic(i))).map(|nic| lock(nic).counters()).collect()
}

/// Packets that the bond of the first end gave to this member, and those of them that waited in vain.
fn given(lab: &Lab, id: ComponentId, card: usize) -> (u64, u64) {
    let bond = lab.get::<Host>(id).and_then(Host::bond);
    let member = bond.and_then(|bond| bond.members().nth(card).map(|m| m.counters));
    member.map_or((0, 0), |c| (c.tx_packets, c.tx_dropped))
}

fn pull(built: &mut Built, card: usize) {
    let Built { lab, ends, links, switch } = built;
    let now = lab.now();
    if let Some(nic) = lab.get::<Host>(ends[0]).and_then(|host| host.nic(card)) {
        lock(nic).set_link(false);
    }
    if let Some(link) = links[0].get(card).and_then(|id| lab.get_mut::<Link>(*id)) {
        link.set_up(false);
    }
    if let Some(switch) = lab.get_mut::<Switch>(*switch) {
        // The ports of the first end come first.
        switch.set_port(card as u16, false, now);
    }
    lab.nudge(ends[0]);
    lab.nudge(*switch);
}

/// Runs to `stop` and beyond, until what is under way has arrived.
pub(super) fn run(built: &mut Built, load: &Load, start: Instant, stop: Instant) -> Result<Outcome, LabError> {
    let ids = built.ends;
    let mut outcome = Outcome::default();
    for (n, id) in ids.into_iter().enumerate() {
        let bond = built.lab.get::<Host>(id).and_then(Host::bond);
        let (all, active) =
            bond.map_or((0, 0), |bond| (bond.members().len(), bond.members().filter(|m| m.active).count()));
        outcome.members[n] = active;
        if active < all {
            return Err(LabError::Broken("the links were not aggregated in time"));
        }
    }
    let step = Duration::from_secs_f64(load.seconds / f64::from(STEPS));
    let (mut last, mut pulled, mut frozen) = (0, false, None);
    for i in 1..=STEPS {
        let at = start + step * i;
        built.lab.run_until(at);
        if let Some(Pull { card, after }) = load.pull
            && !pulled
            && at >= start + Duration::from_secs_f64(after)
        {
            pulled = true;
            pull(built, card);
            // One interval of the link check later nothing may be given to it any more.
            built.lab.run_until(at + Duration::from_millis(100));
            frozen = Some((card, given(&built.lab, ids[0], card).0));
        }
        if std::env::var("TRACE").is_ok() && pulled {
            /*DEV*/
            let h = built.lab.get::<Host>(ids[0]).unwrap();
            let e = h.flows()[0].endpoint().unwrap();
            let t = e.info();
            let c = e.counters();
            println!(
                "{:?} {:?} cwnd {} ssthr {:?} unacked {} sacked {} lost {} retrans {} infl {} reord {} rto {} backoff {} wnd {} notsent {} below {} acked {} fast {} ss {} to {} paws peer {} cpu",
                built.lab.now(),
                t.ca_state,
                t.cwnd,
                t.ssthresh,
                t.unacked,
                t.sacked,
                t.lost,
                t.retrans,
                t.in_flight,
                t.reordering,
                t.rto_us,
                t.backoff,
                t.snd_wnd,
                t.notsent,
                t.queued_below,
                t.bytes_acked,
                c.fast_retrans,
                c.slow_start_retrans,
                c.timeouts,
                built.lab.get::<Host>(ids[1]).unwrap().flows()[0].endpoint().unwrap().counters().paws_estab
            );
        }
        let now = received(&built.lab, ids[1]);
        outcome.steps.push((now - last) as f64 * 8.0 / step.as_secs_f64() / 1e6);
        last = now;
    }
    let seconds = load.seconds;
    outcome.mbps =
        [received(&built.lab, ids[1]), received(&built.lab, ids[0])].map(|bytes| bytes as f64 * 8.0 / seconds / 1e6);
    for (n, id) in ids.into_iter().enumerate() {
        let busy = built.lab.get::<Host>(id).map_or(0, |host| host.counters().busy_ns);
        outcome.busy[n] = busy as f64 / 1e9 / seconds;
    }
    // What is under way arrives, a timeout of 200 ms and its backoff included.
    built.lab.run_until(stop + Duration::from_millis(1500));
    count(built, &mut outcome)?;
    if let Some((card, before)) = frozen {
        outcome.after_pull = given(&built.lab, ids[0], card).0 - before;
        let link = built.lab.get::<Link>(built.links[0][card]).map_or(0, |l| l.counters(0).lost + l.counters(1).lost);
        let nic = cards(&built.lab, ids[0])[card];
        let (all, in_vain) = given(&built.lab, ids[0], card);
        // What the card never saw: dropped from the queue in front of it.
        let queued = all - nic.tx_packets.min(all) - nic.tx_carrier_errors.min(all - nic.tx_packets.min(all));
        let switch = built.lab.get::<Switch>(built.switch).map_or(0, |s| s.counters().link_lost);
        outcome.lost_by_pull = link + switch + nic.tx_carrier_errors + queued + in_vain;
    }
    Ok(outcome)
}

/// Where every frame went.
fn count(built: &Built, outcome: &mut Outcome) -> Result<(), LabError> {
    let lab = &built.lab;
    let switch = lab.get::<Switch>(built.switch).ok_or(LabError::Broken("the switch is missing"))?.counters();
    outcome.sent = switch.control_out;
    outcome.received = switch.control_in;
    outcome.lost = switch.filtered + switch.link_lost + switch.ports.iter().map(|p| p.dropped + p.early).sum::<u64>();
    for (n, id) in built.ends.into_iter().enumerate() {
        let host = lab.get::<Host>(id).ok_or(LabError::Broken("a host is missing"))?;
        for endpoint in host.flows().iter().filter_map(|flow| flow.endpoint()) {
            outcome.counters[n].merge(&endpoint.counters());
        }
        for card in cards(lab, id) {
            outcome.sent += card.tx_packets;
            outcome.received += card.rx_packets;
            outcome.lost += card.rx_missed;
            outcome.lost_in_rings += card.rx_missed;
        }
        for link in &built.links[n] {
            let link = lab.get::<Link>(*link).ok_or(LabError::Broken("a link is missing"))?;
            outcome.lost += link.counters(0).lost + link.counters(1).lost;
        }
    }
    outcome.per_card = cards(lab, built.ends[0]).iter().map(|c| c.tx_packets).collect();
    Ok(())
}
