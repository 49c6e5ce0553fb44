//! A store-and-forward switch: learned addresses, port groups, a buffer per port.

use super::egress::{Admission, Egress, EgressCounters};
use super::link::{ecn_capable, set_congestion_experienced};
use super::{ETHERNET_OVERHEAD, Red};
use crate::engine::{Component, Context};
use netcore::flow::{layer2_hash, layer23_hash, layer34_hash};
use netcore::{Instant, LinkState, MacAddress, Packet, Rate};
use netcore_bond::lacp::{Handled, Lacp, LacpConfig, LacpEvent, PortConfig, Timing};
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

/// Ports that are one link.
#[derive(Clone, Debug)]
pub struct PortGroup {
    /// Its ports.
    pub members: Vec<u16>,
    /// How frames to the group are spread.
    pub distribution: Distribution,
    /// LACP decides which members are used; otherwise all that are up are.
    pub lacp: bool,
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
    /// Port groups.
    pub groups: Vec<PortGroup>,
}

/// Counters of a switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchCounters {
    /// By port.
    pub ports: Vec<EgressCounters>,
    /// Frames sent to all ports because the address was not known, or broadcast.
    pub flooded: u64,
    /// LACPDUs taken in.
    pub control_in: u64,
    /// LACPDUs sent.
    pub control_out: u64,
    /// LACPDUs that could not be sent.
    pub control_dropped: u64,
    /// Frames to addresses that bridges keep, from ports that do not collect, and for groups without a usable member.
    pub filtered: u64,
    /// Frames that waited at a port, or were meant for it, when its link was gone.
    pub link_lost: u64,
}

struct Port {
    egress: Egress,
    /// Frames with the time at which their transmission starts.
    queue: VecDeque<(Instant, Packet)>,
    group: Option<usize>,
    up: bool,
    /// What LACP says; always true without it.
    collecting: bool,
    distributing: bool,
}

struct Group {
    members: Vec<u16>,
    distribution: Distribution,
    next: usize,
    /// Ports have the numbers of their places among the members, from 1.
    lacp: Option<Lacp>,
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
    counters: SwitchCounters,
    usable: Vec<u16>,
    started: bool,
    rng: fastrand::Rng,
    scheduled: Option<Instant>,
}

impl Switch {
    /// A switch; `seed` feeds RED and gives it the addresses that LACP needs.
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
                collecting: true,
                distributing: true,
            })
            .collect();
        let mut groups = Vec::new();
        for (index, PortGroup { members, distribution, lacp }) in config.groups.iter().enumerate() {
            for member in members {
                if let Some(port) = ports.get_mut(usize::from(*member)) {
                    port.group = Some(index);
                    (port.collecting, port.distributing) = (!lacp, !lacp);
                }
            }
            let rates = members.iter().map(|member| config.ports.get(usize::from(*member)).copied());
            let lacp = lacp.then(|| partner(seed, rates)).flatten();
            groups.push(Group { members: members.clone(), distribution: *distribution, next: 0, lacp });
        }
        Self {
            config,
            ports,
            groups,
            addresses: FxHashMap::default(),
            counters: SwitchCounters::default(),
            usable: Vec::new(),
            started: false,
            rng: fastrand::Rng::with_seed(seed),
            scheduled: None,
        }
    }

    /// What was counted.
    pub fn counters(&self) -> SwitchCounters {
        SwitchCounters { ports: self.ports.iter().map(|p| p.egress.counters()).collect(), ..self.counters.clone() }
    }

    /// Frames that wait at ports.
    pub fn waiting(&self) -> usize {
        self.ports.iter().map(|p| p.queue.len()).sum()
    }

    /// LACP of the group with this number, if it speaks it.
    pub fn lacp(&self, group: usize) -> Option<&Lacp> {
        self.groups.get(group)?.lacp.as_ref()
    }

    /// Says that an address lives behind `port`, as if a frame from it had been seen.
    pub fn learn(&mut self, mac: MacAddress, port: u16) {
        let place = match self.ports.get(usize::from(port)).and_then(|p| p.group) {
            Some(group) => Place::Group(group),
            None => Place::Port(port),
        };
        self.addresses.insert(mac, place);
    }

    /// A port's link goes up or down; a group does not use members that are down. What waits there is lost, counted. The
    /// switch wants a [`nudge`](crate::engine::Lab::nudge).
    pub fn set_port(&mut self, port: u16, up: bool, now: Instant) {
        let Some(p) = self.ports.get_mut(usize::from(port)) else { return };
        p.up = up;
        if !up {
            self.counters.link_lost += p.queue.len() as u64;
            p.queue.clear();
        }
        let Some(group) = p.group else { return };
        let link = if up { link_of(self.config.ports[usize::from(port)]) } else { LinkState::DOWN };
        let g = &mut self.groups[group];
        let number = g.members.iter().position(|member| *member == port).map(|at| at as u16 + 1);
        if let (Some(lacp), Some(number)) = (&mut g.lacp, number) {
            // The port was added with the group.
            let _ = lacp.set_link(number, link, now);
        }
    }

    fn member(&mut self, group: usize, packet: &Packet) -> Option<u16> {
        let Self { ports, groups, usable, .. } = self;
        let g = &mut groups[group];
        usable.clear();
        usable.extend(g.members.iter().copied().filter(|m| {
            let port = &ports[usize::from(*m)];
            port.up && port.distributing
        }));
        if usable.is_empty() {
            return None;
        }
        let index = match g.distribution {
            Distribution::RoundRobin => {
                g.next = g.next.wrapping_add(1);
                g.next % usable.len()
            }
            Distribution::Layer2 => layer2_hash(packet.head()) as usize % usable.len(),
            Distribution::Layer23 => layer23_hash(packet.head()) as usize % usable.len(),
            Distribution::Layer34 => layer34_hash(packet.head()) as usize % usable.len(),
        };
        Some(usable[index])
    }

    /// Does what LACP decided, and sends what it wants sent.
    fn lacp_output(&mut self, ctx: &mut Context<'_>) {
        for group in 0..self.groups.len() {
            let g = &mut self.groups[group];
            let Some(lacp) = &mut g.lacp else { continue };
            while let Some(event) = lacp.next_event() {
                if let LacpEvent::Port { port, collecting, distributing } = event
                    && let Some(p) =
                        g.members.get(usize::from(port) - 1).and_then(|m| self.ports.get_mut(usize::from(*m)))
                {
                    (p.collecting, p.distributing) = (collecting, distributing);
                }
            }
            let mut frames = Vec::new();
            while let Some(frame) = lacp.next_frame() {
                if let Some(member) = g.members.get(usize::from(frame.port) - 1) {
                    frames.push((*member, frame.bytes));
                }
            }
            for (member, bytes) in frames {
                match ctx.cache.copy_from_slice(&bytes) {
                    Ok(packet) => {
                        self.counters.control_out += 1;
                        self.enqueue(member, packet, ctx);
                    }
                    Err(_) => self.counters.control_dropped += 1,
                }
            }
        }
    }

    /// A frame to an address that bridges never forward: LACP's is taken in, any other is dropped.
    fn reserved(&mut self, port: u16, packet: &Packet, ctx: &mut Context<'_>) {
        let group = self.ports.get(usize::from(port)).and_then(|p| p.group);
        let handled = group.and_then(|group| {
            let g = &mut self.groups[group];
            let number = g.members.iter().position(|member| *member == port)? as u16 + 1;
            g.lacp.as_mut()?.handle(number, &packet.to_vec(), ctx.now).ok()
        });
        match handled {
            Some(Handled::Pass) | None => self.counters.filtered += 1,
            Some(_) => self.counters.control_in += 1,
        }
        self.lacp_output(ctx);
    }

    fn enqueue(&mut self, port: u16, mut packet: Packet, ctx: &mut Context<'_>) {
        let latency = self.config.latency;
        let p = &mut self.ports[usize::from(port)];
        if !p.up {
            self.counters.link_lost += 1;
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
        let queues = self.ports.iter().filter_map(|p| p.queue.front().map(|(at, _)| *at)).min();
        let lacp = self.groups.iter().filter_map(|g| g.lacp.as_ref()?.poll_at()).min();
        let next = [queues, lacp].into_iter().flatten().min();
        ctx.wake_by(&mut self.scheduled, next);
    }
}

impl Component for Switch {
    fn receive(&mut self, port: u16, packet: Packet, ctx: &mut Context<'_>) {
        let (Some(to), Some(from)) = (address(&packet, 0), address(&packet, 6)) else {
            self.counters.filtered += 1;
            ctx.cache.put(packet);
            return;
        };
        // IEEE 802.1D: 01-80-C2-00-00-00 to -0F go no further.
        if let [0x01, 0x80, 0xc2, 0, 0, last] = to.0
            && last & 0xf0 == 0
        {
            self.reserved(port, &packet, ctx);
            ctx.cache.put(packet);
            self.schedule(ctx);
            return;
        }
        if self.ports.get(usize::from(port)).is_some_and(|p| !p.up || !p.collecting) {
            self.counters.filtered += 1;
            ctx.cache.put(packet);
            return;
        }
        if !self.addresses.contains_key(&from) {
            self.learn(from, port);
        }
        let own_group = self.ports.get(usize::from(port)).and_then(|p| p.group);
        match self.addresses.get(&to).copied().filter(|_| !to.is_multicast()) {
            Some(Place::Port(out)) if out != port => self.enqueue(out, packet, ctx),
            Some(Place::Group(group)) if Some(group) != own_group => match self.member(group, &packet) {
                Some(out) => self.enqueue(out, packet, ctx),
                None => {
                    self.counters.filtered += 1;
                    ctx.cache.put(packet);
                }
            },
            Some(_) => {
                self.counters.filtered += 1;
                ctx.cache.put(packet);
            }
            None => {
                self.counters.flooded += 1;
                for out in 0..self.ports.len() as u16 {
                    let group = self.ports[usize::from(out)].group;
                    // One copy to each group, none back to where it came from.
                    if out == port || (group.is_some() && group == own_group) {
                        continue;
                    }
                    let first = |g: usize| {
                        let usable = |m: &&u16| {
                            let p = &self.ports[usize::from(**m)];
                            p.up && p.distributing
                        };
                        self.groups[g].members.iter().find(usable) == Some(&out)
                    };
                    if !group.is_none_or(first) {
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
        for lacp in self.groups.iter_mut().filter_map(|g| g.lacp.as_mut()) {
            if !self.started {
                lacp.open(ctx.now);
            }
            if lacp.poll_at().is_some_and(|at| at <= ctx.now) {
                lacp.poll(ctx.now);
            }
        }
        self.started = true;
        self.lacp_output(ctx);
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

fn link_of(rate: Rate) -> LinkState {
    LinkState::up((rate.bits_per_sec() / 1_000_000) as u32)
}

/// LACP of a group over ports of these rates, closed until the lab starts.
fn partner(seed: u64, rates: impl Iterator<Item = Option<Rate>>) -> Option<Lacp> {
    let b = seed.to_be_bytes();
    // A local station address, and one for each port beside it.
    let system = MacAddress([b[0] & 0xfc | 2, b[1], b[2], b[3], b[4], 0]);
    let config = LacpConfig { ad_actor_sys_prio: 32_768, timing: Timing::EventDriven, ..LacpConfig::new(system) };
    let mut lacp = Lacp::new(config).ok()?;
    for (number, rate) in (1..).zip(rates) {
        let mut address = system;
        address.0[5] = number as u8;
        let port = PortConfig { number: Some(number), ..PortConfig::new(address) };
        lacp.add_port(&port, rate.map_or(LinkState::DOWN, link_of), Instant::ZERO).ok()?;
    }
    Some(lacp)
}

fn address(packet: &Packet, at: usize) -> Option<MacAddress> {
    packet.head().get(at..at + 6).and_then(|bytes| bytes.try_into().ok()).map(MacAddress)
}
