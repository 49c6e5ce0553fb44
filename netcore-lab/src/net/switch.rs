//! A store-and-forward switch: learned addresses, port groups, a buffer per port.

use super::egress::{Admission, Egress, EgressCounters};
use super::link::{ecn_capable, set_congestion_experienced};
use super::{ETHERNET_OVERHEAD, Red};
use crate::engine::{Component, Context};
use netcore::flow::{layer2_hash, layer23_hash, layer34_hash};
use netcore::{Instant, MacAddress, Packet, Rate};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Duration;

/// How a switch spreads frames over a port group (its link aggregation).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// Hash of the MAC addresses.
    Layer2,
    /// Hash of the IP addresses and MAC addresses.
    Layer23,
    /// Hash of IP addresses and ports.
    Layer34,
    /// Frame by frame.
    RoundRobin,
}

/// Properties of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Rate of each port.
    pub ports: Vec<Rate>,
    /// Bytes that may wait at each port.
    pub buffer_bytes: u64,
    /// Time from the last bit in to the first bit out of an idle port.
    pub latency: Duration,
    /// Random early detection at each port.
    pub red: Option<Red>,
    /// Port groups: members, and how frames to the group are spread.
    pub groups: Vec<(Vec<u16>, Distribution)>,
}

/// Counters of a switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchCounters {
    /// By port.
    pub ports: Vec<EgressCounters>,
    /// Frames sent to all ports because the address was not known, or broadcast.
    pub flooded: u64,
}

struct Port {
    egress: Egress,
    /// Frames with the time at which their transmission starts.
    queue: VecDeque<(Instant, Packet)>,
    group: Option<usize>,
    up: bool,
}

struct Group {
    members: Vec<u16>,
    distribution: Distribution,
    next: usize,
}

/// Where an address lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Port(u16),
    Group(usize),
}

/// A switch.
pub struct Switch {
    config: SwitchConfig,
    ports: Vec<Port>,
    groups: Vec<Group>,
    addresses: FxHashMap<MacAddress, Place>,
    flooded: u64,
    rng: fastrand::Rng,
    scheduled: Option<Instant>,
}

impl Switch {
    /// A switch; `seed` feeds RED.
    pub fn new(config: SwitchConfig, seed: u64) -> Self {
        let mut ports: Vec<_> = config
            .ports
            .iter()
            .map(|rate| Port {
                egress: Egress::new(Some(*rate), ETHERNET_OVERHEAD)
                    .with_limit_bytes(Some(config.buffer_bytes))
                    .with_red(config.red),
                queue: VecDeque::new(),
                group: None,
                up: true,
            })
            .collect();
        let mut groups = Vec::new();
        for (index, (members, distribution)) in config.groups.iter().enumerate() {
            for member in members {
                if let Some(port) = ports.get_mut(usize::from(*member)) {
                    port.group = Some(index);
                }
            }
            groups.push(Group { members: members.clone(), distribution: *distribution, next: 0 });
        }
        Self {
            config,
            ports,
            groups,
            addresses: FxHashMap::default(),
            flooded: 0,
            rng: fastrand::Rng::with_seed(seed),
            scheduled: None,
        }
    }

    /// What was counted.
    pub fn counters(&self) -> SwitchCounters {
        SwitchCounters { ports: self.ports.iter().map(|p| p.egress.counters()).collect(), flooded: self.flooded }
    }

    /// Says that an address lives behind `port`, as if a frame from it had been seen.
    pub fn learn(&mut self, mac: MacAddress, port: u16) {
        let place = match self.ports.get(usize::from(port)).and_then(|p| p.group) {
            Some(group) => Place::Group(group),
            None => Place::Port(port),
        };
        self.addresses.insert(mac, place);
    }

    /// A port's link goes up or down; a group does not use members that are down.
    pub fn set_port(&mut self, port: u16, up: bool) {
        if let Some(p) = self.ports.get_mut(usize::from(port)) {
            p.up = up;
            if !up {
                p.queue.clear();
            }
        }
    }

    fn member(&mut self, group: usize, packet: &Packet) -> Option<u16> {
        let up: Vec<u16> = {
            let ports = &self.ports;
            self.groups[group].members.iter().copied().filter(|m| ports[usize::from(*m)].up).collect()
        };
        if up.is_empty() {
            return None;
        }
        let g = &mut self.groups[group];
        let index = match g.distribution {
            Distribution::RoundRobin => {
                g.next = g.next.wrapping_add(1);
                g.next % up.len()
            }
            Distribution::Layer2 => layer2_hash(packet.head()) as usize % up.len(),
            Distribution::Layer23 => layer23_hash(packet.head()) as usize % up.len(),
            Distribution::Layer34 => layer34_hash(packet.head()) as usize % up.len(),
        };
        Some(up[index])
    }

    fn enqueue(&mut self, port: u16, mut packet: Packet, ctx: &mut Context<'_>) {
        let latency = self.config.latency;
        let p = &mut self.ports[usize::from(port)];
        if !p.up {
            ctx.cache.put(packet);
            return;
        }
        let (dice, capable) =
            if self.config.red.is_some() { (self.rng.u32(..), ecn_capable(&packet)) } else { (0, false) };
        match p.egress.offer(packet.len(), capable, dice, ctx.now + latency) {
            Admission::At { start, mark, .. } => {
                if mark {
                    set_congestion_experienced(&mut packet, ctx.cache);
                }
                p.queue.push_back((start, packet));
            }
            Admission::Full | Admission::Early => ctx.cache.put(packet),
        }
    }

    fn schedule(&mut self, ctx: &mut Context<'_>) {
        let next = self.ports.iter().filter_map(|p| p.queue.front().map(|(at, _)| *at)).min();
        ctx.wake_by(&mut self.scheduled, next);
    }
}

impl Component for Switch {
    fn receive(&mut self, port: u16, packet: Packet, ctx: &mut Context<'_>) {
        let (Some(to), Some(from)) = (address(&packet, 0), address(&packet, 6)) else {
            ctx.cache.put(packet);
            return;
        };
        if !self.addresses.contains_key(&from) {
            self.learn(from, port);
        }
        let own_group = self.ports.get(usize::from(port)).and_then(|p| p.group);
        match self.addresses.get(&to).copied().filter(|_| !to.is_multicast()) {
            Some(Place::Port(out)) if out != port => self.enqueue(out, packet, ctx),
            Some(Place::Group(group)) if Some(group) != own_group => match self.member(group, &packet) {
                Some(out) => self.enqueue(out, packet, ctx),
                None => ctx.cache.put(packet),
            },
            Some(_) => ctx.cache.put(packet),
            None => {
                self.flooded += 1;
                for out in 0..self.ports.len() as u16 {
                    let group = self.ports[usize::from(out)].group;
                    // One copy to each group, none back to where it came from.
                    let first = group.is_none_or(|g| self.groups[g].members.first() == Some(&out));
                    if out == port || !first || (group.is_some() && group == own_group) {
                        continue;
                    }
                    if let Ok(copy) = packet.share(ctx.cache) {
                        self.enqueue(out, copy, ctx);
                    }
                }
                ctx.cache.put(packet);
            }
        }
        self.schedule(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        for port in 0..self.ports.len() {
            let p = &mut self.ports[port];
            while p.queue.front().is_some_and(|(at, _)| *at <= ctx.now) {
                if let Some((_, packet)) = p.queue.pop_front() {
                    ctx.send(port as u16, packet);
                }
            }
        }
        self.schedule(ctx);
    }
}

fn address(packet: &Packet, at: usize) -> Option<MacAddress> {
    packet.head().get(at..at + 6).and_then(|bytes| bytes.try_into().ok()).map(MacAddress)
}
