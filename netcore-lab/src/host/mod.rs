//! A host: connections and their applications, what they send through, what it costs to receive.
//!
//! ```text
//!   application ─ Endpoint ─▶ Driver (Port with a qdisc, Bond, …) ─▶ NicDriver ┐
//!                     ▲                                                        │ Nic ⇄ port of the component
//!                     └──── cost of the CPU ◀── merging ◀── poll ◀── interrupt ┘
//! ```

mod application;
mod cost;
mod flow;

pub use application::{Application, Bulk};
pub use cost::Cost;
pub use flow::{Flow, FlowId, Sample};

use crate::engine::{Component, Context};
use crate::nic::{SharedNic, lock};
use netcore::{Burst, Completions, Driver, Instant, Packet, ReceiveOffload, Statistics};
use netcore_bond::Bond;
use netcore_tcp::{Config, ConfigError, Endpoint, FourTuple, Incoming, Path};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

/// A card of the host and what its poll does to frames.
pub struct Interface {
    nic: SharedNic,
    offload: Option<Box<dyn ReceiveOffload>>,
    /// A tunnel device above, and what a packet costs below it, ns.
    tunnel: Option<(Box<dyn ReceiveOffload>, u64)>,
    /// Frames polled, waiting for the CPU.
    polled: VecDeque<(Instant, Burst)>,
    /// The poll goes on at this time.
    poll_at: Option<Instant>,
}

impl Interface {
    /// A card without receive offload.
    pub fn new(nic: SharedNic) -> Self {
        Self { nic, offload: None, tunnel: None, polled: VecDeque::new(), poll_at: None }
    }

    /// Merges what a poll brings.
    pub fn with_offload(mut self, offload: Box<dyn ReceiveOffload>) -> Self {
        self.offload = Some(offload);
        self
    }

    /// Hands what was merged to a tunnel device; each packet costs `outer_ns` below it.
    pub fn with_tunnel(mut self, tunnel: Box<dyn ReceiveOffload>, outer_ns: u64) -> Self {
        self.tunnel = Some((tunnel, outer_ns));
        self
    }
}

/// What a host counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// Polls.
    pub polls: u64,
    /// Wire packets received.
    pub wire_packets: u64,
    /// Packets delivered to connections.
    pub delivered: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Packets for no connection of this host, or not TCP.
    pub unmatched: u64,
    /// Time the CPU was busy, ns.
    pub busy_ns: u64,
    /// Packets that the transmit path refused.
    pub transmit_errors: u64,
    /// Polls that a member's driver refused.
    pub receive_errors: u64,
}

/// What a host sends through, and, if it is a bond, receives through.
enum Below {
    Driver(Box<dyn Driver>),
    Bond(Box<Bond>),
}

impl Below {
    fn driver(&self) -> &dyn Driver {
        match self {
            Self::Driver(driver) => &**driver,
            Self::Bond(bond) => &**bond,
        }
    }

    fn driver_mut(&mut self) -> &mut dyn Driver {
        match self {
            Self::Driver(driver) => &mut **driver,
            Self::Bond(bond) => &mut **bond,
        }
    }
}

/// A host. Port `i` of the component is the link of its card `i`.
pub struct Host {
    name: String,
    below: Below,
    interfaces: Vec<Interface>,
    flows: Vec<Flow>,
    by_tuple: HashMap<FourTuple, usize>,
    cost: Cost,
    cpu_free: Instant,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    dirty: Vec<usize>,
    out: Burst,
    /// Frames that the CPU is at work on, with the time at which each is handed down.
    sending: VecDeque<(Instant, Packet)>,
    scratch: Burst,
    completions: Completions,
    scheduled: Option<Instant>,
    counters: HostCounters,
    last_tuple: Option<(FourTuple, usize)>,
    sampling: Option<Duration>,
    next_sample: Instant,
    started: bool,
}

impl Host {
    /// A host that sends through `transmit` and receives from `interfaces`. The cards that `transmit` ends in must be
    /// among the interfaces.
    pub fn new(name: &str, transmit: Box<dyn Driver>, interfaces: Vec<Interface>, cost: Cost) -> Self {
        Self::over(name, Below::Driver(transmit), interfaces, cost)
    }

    /// A host that sends and receives through `bond`, whose members are the drivers of `interfaces`, in their order: LACP,
    /// link monitors and the filter on inactive members see every frame.
    pub fn bonded(name: &str, bond: Bond, interfaces: Vec<Interface>, cost: Cost) -> Self {
        Self::over(name, Below::Bond(Box::new(bond)), interfaces, cost)
    }

    fn over(name: &str, below: Below, interfaces: Vec<Interface>, cost: Cost) -> Self {
        Self {
            name: name.into(),
            below,
            interfaces,
            flows: Vec::new(),
            by_tuple: HashMap::new(),
            cost,
            cpu_free: Instant::ZERO,
            timers: BinaryHeap::new(),
            dirty: Vec::new(),
            out: Burst::new(),
            sending: VecDeque::new(),
            scratch: Burst::new(),
            completions: Completions::new(),
            scheduled: None,
            counters: HostCounters::default(),
            last_tuple: None,
            sampling: None,
            next_sample: Instant::ZERO,
            started: false,
        }
    }

    /// Records a [`Sample`] of each flow every `interval`.
    pub fn sample_every(&mut self, interval: Duration) {
        self.sampling = Some(interval);
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a connection that is opened at `start`.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn connect(
        &mut self,
        mut config: Config,
        path: Path,
        seed: u64,
        start: Instant,
        application: Application,
    ) -> Result<FlowId, ConfigError> {
        let id = self.flows.len();
        config.flow_id = id as u64;
        // Checked now, opened later.
        Endpoint::listen(config.clone(), path, seed)?;
        self.flows.push(Flow::active(config, path, seed, start, application));
        self.by_tuple.insert(FourTuple { local: path.local, remote: path.remote }, id);
        self.timers.push(Reverse((start, id)));
        Ok(FlowId(id))
    }

    /// Adds a connection that waits for the peer of `path`.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn listen(
        &mut self,
        mut config: Config,
        path: Path,
        seed: u64,
        application: Application,
    ) -> Result<FlowId, ConfigError> {
        let id = self.flows.len();
        config.flow_id = id as u64;
        let endpoint = Endpoint::listen(config, path, seed)?;
        self.flows.push(Flow::passive(endpoint, application));
        self.by_tuple.insert(FourTuple { local: path.local, remote: path.remote }, id);
        Ok(FlowId(id))
    }

    /// A connection and its record.
    pub fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.0)
    }

    /// All connections.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// What was counted.
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// The card with this number.
    pub fn nic(&self, index: usize) -> Option<&SharedNic> {
        self.interfaces.get(index).map(|interface| &interface.nic)
    }

    /// The transmit path, for its counters.
    pub fn transmit_path(&self) -> &dyn Driver {
        self.below.driver()
    }

    /// The transmit path, for its settings.
    pub fn transmit_path_mut(&mut self) -> &mut dyn Driver {
        self.below.driver_mut()
    }

    /// The bond, if there is one.
    pub fn bond(&self) -> Option<&Bond> {
        match &self.below {
            Below::Bond(bond) => Some(bond),
            Below::Driver(_) => None,
        }
    }

    /// Adds all counters of cards, transmit path and connections.
    pub fn statistics(&self, statistics: &mut Statistics) {
        self.below.driver().statistics(statistics);
        for (tunnel, _) in self.interfaces.iter().filter_map(|interface| interface.tunnel.as_ref()) {
            tunnel.statistics(statistics);
        }
        for flow in &self.flows {
            if let Some(endpoint) = flow.endpoint() {
                endpoint.counters().write(statistics);
            }
        }
    }

    fn touch(&mut self, flow: usize) {
        if let Some(f) = self.flows.get_mut(flow)
            && !f.dirty
        {
            f.dirty = true;
            self.dirty.push(flow);
        }
    }

    /// Polls a card: completions first, then frames, as drivers do.
    fn poll(&mut self, index: usize, ctx: &mut Context<'_>) {
        self.counters.polls += 1;
        let mut completions = std::mem::take(&mut self.completions);
        if self.below.driver_mut().reclaim(0, &mut completions, ctx.now).is_err() {
            self.counters.transmit_errors += 1;
        }
        for completion in completions.as_slice() {
            if let Some(flow) = completion.flow_id {
                let flow = flow as usize;
                if let Some(endpoint) = self.flows.get_mut(flow).and_then(Flow::endpoint_mut) {
                    endpoint.completed(completion.truesize, ctx.now);
                    if completion.bytes == 0 {
                        endpoint.local_congestion(ctx.now);
                    }
                }
                self.touch(flow);
            }
        }
        completions.clear();
        self.completions = completions;
        let interface = &mut self.interfaces[index];
        let mut received = std::mem::take(&mut self.scratch);
        let budget = lock(&interface.nic).config().budget;
        let n = match &mut self.below {
            Below::Bond(bond) => {
                let n = lock(&interface.nic).receive_backlog().min(budget);
                // Members have the numbers of their cards: they were added in that order, and none is ever removed.
                if bond.receive_member(index as u16, 0, &mut received, budget, ctx.now).is_err() {
                    self.counters.receive_errors += 1;
                }
                n
            }
            Below::Driver(_) => lock(&interface.nic).take_received(&mut received, budget),
        };
        if n > 0 {
            let bytes = received.bytes() as u64;
            let mut up = Burst::new();
            match &mut interface.offload {
                Some(offload) => {
                    offload.receive(&mut received, &mut up, ctx.cache, ctx.now);
                    offload.end_poll(n >= budget, &mut up, ctx.cache, ctx.now);
                }
                None => up.append(&mut received),
            }
            let mut below = Duration::ZERO;
            if let Some((tunnel, outer_ns)) = &mut interface.tunnel {
                below = Duration::from_nanos(*outer_ns * up.len() as u64);
                let mut outer = std::mem::take(&mut up);
                tunnel.receive(&mut outer, &mut up, ctx.cache, ctx.now);
                tunnel.end_poll(n >= budget, &mut up, ctx.cache, ctx.now);
            }
            self.counters.wire_packets += n as u64;
            let cost = self.cost.of(n, up.len(), bytes) + below;
            if cost.is_zero() {
                self.deliver(&mut up, ctx);
            } else {
                let done = self.cpu_free.max(ctx.now) + cost;
                self.counters.busy_ns += cost.as_nanos() as u64;
                self.cpu_free = done;
                self.interfaces[index].polled.push_back((done, up));
            }
        }
        self.scratch = received;
        let interface = &mut self.interfaces[index];
        let more = n >= budget;
        let next = self.cpu_free.max(ctx.now);
        if more || next > ctx.now {
            // The CPU is busy with what was polled; then it looks again.
            interface.poll_at = Some(next);
        } else {
            interface.poll_at = None;
            lock(&interface.nic).poll_complete(ctx.now);
        }
    }

    fn deliver(&mut self, burst: &mut Burst, ctx: &mut Context<'_>) {
        while let Some(packet) = burst.pop() {
            self.deliver_one(packet, ctx);
        }
    }

    fn deliver_one(&mut self, packet: Packet, ctx: &mut Context<'_>) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += packet.len() as u64;
        let Ok(incoming) = Incoming::parse(&packet) else {
            self.counters.unmatched += 1;
            ctx.cache.put(packet);
            return;
        };
        let found = match self.last_tuple {
            Some((tuple, index)) if tuple == incoming.tuple => Some(index),
            _ => self.by_tuple.get(&incoming.tuple).copied(),
        };
        let Some(index) = found else {
            self.counters.unmatched += 1;
            ctx.cache.put(packet);
            return;
        };
        self.last_tuple = Some((incoming.tuple, index));
        match self.flows[index].endpoint_mut() {
            Some(endpoint) => {
                // The tuple was matched above.
                let _ = endpoint.handle_parsed(incoming, packet, ctx.cache, ctx.now);
            }
            None => ctx.cache.put(packet),
        }
        // Each packet is answered before the next is looked at, as in the kernel's receive path.
        self.service(index, ctx);
    }

    /// Lets application and connection do what they can, and sends what results.
    fn service(&mut self, index: usize, ctx: &mut Context<'_>) {
        let flow = &mut self.flows[index];
        flow.dirty = false;
        if self.cost.has_calls() {
            self.take_turn(index, ctx);
        } else {
            flow.run(ctx.cache, ctx.now);
        }
        let flow = &mut self.flows[index];
        if let Some(endpoint) = flow.endpoint_mut() {
            while let Some(frame) = endpoint.poll_transmit(ctx.cache, ctx.now) {
                if self.cost.has_sending() {
                    let cost = self.cost.of_sending(frame.len());
                    self.counters.busy_ns += cost.as_nanos() as u64;
                    self.cpu_free = self.cpu_free.max(ctx.now) + cost;
                    self.sending.push_back((self.cpu_free, frame));
                } else {
                    self.out.push(frame);
                }
            }
        }
        if let Some(at) = flow.next_event(ctx.now)
            && flow.armed.is_none_or(|armed| at < armed || armed <= ctx.now)
        {
            flow.armed = Some(at);
            self.timers.push(Reverse((at, index)));
        }
        self.hand_down(ctx);
    }

    /// One system call of an application whose turn has come; it may want another turn.
    fn take_turn(&mut self, index: usize, ctx: &mut Context<'_>) {
        let now = ctx.now;
        let flow = &mut self.flows[index];
        if flow.turn.map_or(self.cpu_free <= now, |turn| turn <= now) {
            flow.turn = None;
            if let Some(moved) = flow.call(ctx.cache, now) {
                let cost = self.cost.of_call(moved);
                self.counters.busy_ns += cost.as_nanos() as u64;
                self.cpu_free = self.cpu_free.max(now) + cost;
            }
        }
        flow.note_arrival(now);
        if flow.turn.is_none() && flow.wants_call(now) {
            let at = self.cpu_free.max(now.plus_nanos(1));
            flow.turn = Some(at);
            self.timers.push(Reverse((at, index)));
        }
    }

    /// Hands frames to the transmit path.
    fn hand_down(&mut self, ctx: &mut Context<'_>) {
        if self.out.is_empty() {
            return;
        }
        if self.below.driver_mut().transmit(0, &mut self.out, ctx.now).is_err() {
            self.counters.transmit_errors += 1;
        }
        // What the path did not take has nowhere to wait: a port always takes everything.
        while let Some(packet) = self.out.pop() {
            self.counters.transmit_errors += 1;
            let flow = packet.flow_id().and_then(|flow| self.flows.get_mut(flow as usize));
            if let Some(endpoint) = flow.and_then(Flow::endpoint_mut) {
                endpoint.completed(packet.truesize() as u32, ctx.now);
            }
            ctx.cache.put(packet);
        }
    }

    /// Frames that the CPU is done with.
    fn hand_down_due(&mut self, ctx: &mut Context<'_>) {
        while self.sending.front().is_some_and(|(at, _)| *at <= ctx.now) {
            if let Some((_, frame)) = self.sending.pop_front() {
                self.out.push(frame);
            }
        }
        self.hand_down(ctx);
    }

    fn run_timers(&mut self, ctx: &mut Context<'_>) {
        while let Some(&Reverse((at, index))) = self.timers.peek() {
            if at > ctx.now {
                break;
            }
            self.timers.pop();
            let flow = &mut self.flows[index];
            if flow.armed == Some(at) {
                flow.armed = None;
            }
            flow.open_if_due(ctx.now);
            if let Some(endpoint) = flow.endpoint_mut()
                && endpoint.poll_at().is_some_and(|due| due <= ctx.now)
            {
                endpoint.poll(ctx.now);
            }
            self.service(index, ctx);
        }
    }

    fn service_dirty(&mut self, ctx: &mut Context<'_>) {
        while let Some(index) = self.dirty.pop() {
            if self.flows[index].dirty {
                self.service(index, ctx);
            }
        }
    }

    /// What the cards can put on their links now.
    fn kick(&mut self, ctx: &mut Context<'_>) {
        for (port, interface) in self.interfaces.iter().enumerate() {
            lock(&interface.nic).transmit_train(ctx.now, &mut self.scratch);
            while let Some(frame) = self.scratch.pop() {
                ctx.send(port as u16, frame);
            }
        }
    }

    fn sample(&mut self, now: Instant) {
        let Some(interval) = self.sampling else { return };
        while self.next_sample <= now {
            let at = self.next_sample;
            for flow in &mut self.flows {
                flow.sample(at);
            }
            self.next_sample = at + interval;
        }
    }

    fn schedule(&mut self, ctx: &mut Context<'_>) {
        let mut next = self.timers.peek().map(|Reverse((at, _))| *at);
        let mut note = |at: Option<Instant>| {
            if let Some(at) = at {
                next = Some(next.map_or(at, |n: Instant| n.min(at)));
            }
        };
        note(self.below.driver().poll_at());
        note(self.sending.front().map(|(at, _)| *at));
        for interface in &self.interfaces {
            note(interface.poll_at);
            note(interface.polled.front().map(|(at, _)| *at));
            if let Some(offload) = &interface.offload {
                note(offload.poll_at());
            }
            let nic = lock(&interface.nic);
            note(nic.interrupt_at().filter(|_| interface.poll_at.is_none()));
            note(nic.transmit_at());
        }
        if self.sampling.is_some() {
            note(Some(self.next_sample));
        }
        ctx.wake_by(&mut self.scheduled, next);
    }
}

impl Component for Host {
    fn receive(&mut self, port: u16, packet: Packet, ctx: &mut Context<'_>) {
        match self.interfaces.get(usize::from(port)) {
            Some(interface) => {
                let mut nic = lock(&interface.nic);
                nic.frame_arrives(packet, ctx.now);
                let at = nic.interrupt_at().filter(|_| interface.poll_at.is_none());
                drop(nic);
                match at {
                    // No moderation: the handler runs at once.
                    Some(at) if at <= ctx.now && self.started => self.wake(ctx),
                    Some(_) => ctx.wake_by(&mut self.scheduled, at),
                    None => {}
                }
            }
            None => {
                self.counters.unmatched += 1;
                ctx.cache.put(packet);
            }
        }
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if !self.started {
            self.started = true;
            self.next_sample = ctx.now;
            if self.below.driver_mut().start(ctx.now).is_err() {
                self.counters.transmit_errors += 1;
            }
        }
        self.sample(ctx.now);
        self.hand_down_due(ctx);
        for index in 0..self.interfaces.len() {
            while self.interfaces[index].polled.front().is_some_and(|(at, _)| *at <= ctx.now) {
                if let Some((_, mut burst)) = self.interfaces[index].polled.pop_front() {
                    self.deliver(&mut burst, ctx);
                }
            }
            let interface = &mut self.interfaces[index];
            if interface.poll_at.is_some_and(|at| at <= ctx.now) {
                self.poll(index, ctx);
            } else if interface.poll_at.is_none() {
                let due = lock(&interface.nic).interrupt_at().is_some_and(|at| at <= ctx.now);
                if due {
                    lock(&interface.nic).interrupt(ctx.now);
                    self.poll(index, ctx);
                }
            }
            if let Some(offload) = &mut self.interfaces[index].offload
                && offload.poll_at().is_some_and(|at| at <= ctx.now)
            {
                let mut up = Burst::new();
                offload.poll(&mut up, ctx.cache, ctx.now);
                self.deliver(&mut up, ctx);
            }
        }
        self.service_dirty(ctx);
        self.run_timers(ctx);
        let below = self.below.driver_mut();
        if below.poll_at().is_some_and(|at| at <= ctx.now) && below.poll(ctx.now).is_err() {
            self.counters.transmit_errors += 1;
        }
        self.kick(ctx);
        self.schedule(ctx);
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("name", &self.name).field("flows", &self.flows.len()).finish_non_exhaustive()
    }
}
