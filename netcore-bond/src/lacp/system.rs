//! The aggregation system: its ports and the run of the machines.

use super::aggregator::Aggregator;
use super::deadlock::Deadlock;
use super::machine::{self, Control, OPPORTUNITY};
use super::output::Outbox;
use super::port::Port;
use super::timing::{AGGREGATOR_SELECTION, Clock, Timing};
use super::{LacpConfig, LacpError, LacpStatistics, PortConfig};
use alloc::vec::Vec;
use netcore::wire::LacpState;
use netcore::{Instant, LinkState};

/// LACP of one bond. See the [module](super) for how it is used.
#[derive(Clone, Debug)]
pub struct Lacp {
    pub(super) config: LacpConfig,
    pub(super) ports: Vec<Port>,
    /// As many as ports.
    pub(super) aggregators: Vec<Aggregator>,
    last_aggregator_id: u16,
    /// When the bond was opened; ticks count from here.
    opened: Option<Instant>,
    /// The last run of the machines; `None` before the first since the bond was opened.
    last_run: Option<Instant>,
    pub(super) selection_timer: Option<Instant>,
    pub(super) deadlock: Deadlock,
    pub(super) outbox: Outbox,
    pub(super) told_aggregator: Option<u16>,
    pub(super) told_carrier: bool,
    /// Counters of ports that were removed.
    pub(super) departed: LacpStatistics,
}

impl Lacp {
    /// A system without ports, closed.
    ///
    /// # Errors
    /// [`LacpError::OutOfRange`], [`LacpError::SystemAddress`].
    pub fn new(config: LacpConfig) -> Result<Self, LacpError> {
        config.validate()?;
        Ok(Self {
            config,
            ports: Vec::new(),
            aggregators: Vec::new(),
            last_aggregator_id: 0,
            opened: None,
            last_run: None,
            selection_timer: None,
            deadlock: Deadlock::default(),
            outbox: Outbox::default(),
            told_aggregator: None,
            told_carrier: false,
            departed: LacpStatistics::default(),
        })
    }

    /// The settings.
    pub const fn config(&self) -> &LacpConfig {
        &self.config
    }

    /// Starts the machines (the bond goes up). An aggregator is chosen with their first run.
    pub fn open(&mut self, now: Instant) {
        if self.opened.is_none() {
            (self.opened, self.last_run) = (Some(now), None);
            // The first run is now, and what Linux counts down from there is over one tick sooner than what starts later.
            self.selection_timer = Some(now);
            let first = self.clock(now).after(OPPORTUNITY - Timing::TICK);
            self.ports.iter_mut().for_each(|port| port.tx_at = first);
            self.settle(now);
        }
    }

    /// Stops the machines (the bond goes down): nothing is sent or taken in until it is opened again, and what waited
    /// to be sent is dropped. The partners notice by silence.
    pub fn close(&mut self) {
        (self.opened, self.selection_timer) = (None, None);
        self.outbox.clear();
    }

    /// True between [`Lacp::open`] and [`Lacp::close`].
    pub const fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Adds a port with its link as it is now, and says its number.
    ///
    /// The first port of an open bond starts the selection timer of 8 seconds, as in Linux; ports that are there when the
    /// bond is opened need not wait for that.
    ///
    /// # Errors
    /// [`LacpError::PortNumber`], [`LacpError::PortsExhausted`], [`LacpError::SystemAddress`].
    pub fn add_port(&mut self, port: &PortConfig, link: LinkState, now: Instant) -> Result<u16, LacpError> {
        super::config::system(port.address)?;
        let taken = |number: u16| self.ports.iter().any(|p| p.number() == number);
        let number = match port.number {
            Some(number) if number == 0 || taken(number) => return Err(LacpError::PortNumber { port: number }),
            Some(number) => number,
            None => {
                let next = self.ports.last().map_or(Some(1), |last| last.number().checked_add(1));
                let free = next.filter(|&n| !taken(n)).or_else(|| (1..=u16::MAX).find(|&n| !taken(n)));
                free.ok_or(LacpError::PortsExhausted)?
            }
        };
        let id = loop {
            self.last_aggregator_id = self.last_aggregator_id.wrapping_add(1).max(1);
            if self.aggregators.iter().all(|a| a.id != self.last_aggregator_id) {
                break self.last_aggregator_id;
            }
        };
        let clock = self.clock(now);
        if self.ports.is_empty() && self.is_open() {
            self.selection_timer = Some(clock.after(AGGREGATOR_SELECTION));
        }
        self.ports.push(Port::new(&self.config, port, number, link, clock.after(OPPORTUNITY)));
        self.aggregators.push(Aggregator::new(id));
        self.outbox.reserve(self.ports.len());
        self.settle(now);
        Ok(number)
    }

    /// Removes a port. Its partner is told with one last LACPDU, which is to be fetched and sent.
    ///
    /// # Errors
    /// [`LacpError::NoSuchPort`].
    pub fn remove_port(&mut self, port: u16, now: Instant) -> Result<(), LacpError> {
        let index = self.index(port)?;
        self.outbox.forget(port);
        let gone = &mut self.ports[index];
        let usable = LacpState::SYNCHRONIZATION | LacpState::COLLECTING | LacpState::DISTRIBUTING;
        gone.set_actor(usable | LacpState::AGGREGATION, false);
        if gone.may_speak() && self.opened.is_some() {
            self.outbox.lacpdu(gone);
        }
        self.leave(index);
        // The aggregator goes with its port; ports that others put there move to an empty one. Some aggregator is empty:
        // there is one more than there are ports.
        if self.members(index).next().is_some()
            && let Some(empty) = (0..self.aggregators.len()).find(|&a| self.members(a).next().is_none())
        {
            let id = self.aggregators[empty].id;
            self.aggregators[empty] = Aggregator { id, ..self.aggregators[index].clone() };
            for moving in self.ports.iter_mut().filter(|p| p.aggregator == Some(index)) {
                moving.aggregator = Some(empty);
            }
        }
        self.aggregators.remove(index);
        let gone = self.ports.remove(index);
        self.departed.add(&gone.statistics);
        for port in &mut self.ports {
            port.aggregator = port.aggregator.map(|a| if a > index { a - 1 } else { a });
        }
        self.elect();
        self.settle(now);
        Ok(())
    }

    /// Tells of a port's link: after `updelay` and `downdelay`, as the link monitor has it.
    ///
    /// # Errors
    /// [`LacpError::NoSuchPort`].
    pub fn set_link(&mut self, port: u16, link: LinkState, now: Instant) -> Result<(), LacpError> {
        let index = self.index(port)?;
        let user_key = self.config.ad_user_port_key;
        let port = &mut self.ports[index];
        if port.link == link {
            return Ok(());
        }
        port.update_link(link, user_key);
        self.elect();
        self.settle(now);
        Ok(())
    }

    /// Runs what is due. Call it at [`Lacp::poll_at`], or whenever convenient: being late delays timers by as much.
    pub fn poll(&mut self, now: Instant) {
        let clock = self.clock(now);
        if self.opened.is_none() || clock.ticks() && self.last_run.is_some_and(|last| last >= clock.at) {
            return;
        }
        self.last_run = Some(clock.at);
        if clock.ticks() {
            self.run(clock);
        } else {
            self.settle(now);
        }
    }

    /// When [`Lacp::poll`] has something to do. `None`: not before another call.
    pub fn poll_at(&self) -> Option<Instant> {
        let opened = self.opened?;
        if self.ports.is_empty() {
            return None;
        }
        if let Timing::Linux { tick } = self.config.timing {
            return Some(self.last_run.map_or(opened, |last| last + tick));
        }
        let timers = self.ports.iter().flat_map(|port| {
            let periodic = [port.current_while, port.periodic_timer, port.wait_while, port.transmit_at()];
            periodic.into_iter().chain([port.actor_churn.timer(), port.partner_churn.timer()])
        });
        timers.chain([self.selection_timer, self.deadlock.timer]).flatten().min()
    }

    /// The time that the machines go by: in ticks, that of the last tick.
    pub(super) fn clock(&self, now: Instant) -> Clock {
        let timing = self.config.timing;
        let at = match (timing, self.opened) {
            (Timing::Linux { tick }, Some(opened)) => {
                let tick = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).max(1);
                opened.plus_nanos(now.nanos_since(opened) / tick * tick)
            }
            _ => now,
        };
        Clock { at, timing }
    }

    /// Event driven, runs the machines until nothing moves; in ticks, they wait for the next one.
    pub(super) fn settle(&mut self, now: Instant) {
        let clock = self.clock(now);
        if clock.ticks() || self.opened.is_none() {
            return;
        }
        self.last_run = Some(now);
        // Each port comes to rest within a handful of runs, and can make others move; the bound is a guard only.
        for _ in 0..8 * (1 + self.ports.len()) {
            if !self.run(clock) {
                return;
            }
        }
    }

    /// Runs every machine of every port once (Linux: `bond_3ad_state_machine_handler`). True if one moved.
    fn run(&mut self, clock: Clock) -> bool {
        let mut moved = false;
        if clock.is_over(self.selection_timer) {
            self.selection_timer = None;
            self.elect();
            moved = true;
        }
        for index in 0..self.ports.len() {
            moved |= machine::receive(&mut self.ports[index], None, clock);
            moved |= machine::periodic(&mut self.ports[index], clock);
            moved |= self.select(index);
            let control = self.control(index);
            let port = &mut self.ports[index];
            moved |= machine::mux(port, control, clock);
            if machine::transmit(port, clock) {
                self.outbox.lacpdu(port);
                moved = true;
            }
            moved |= machine::churn(port, clock);
            moved |= core::mem::take(&mut port.begin);
        }
        moved | self.resolve_deadlock(clock)
    }

    pub(super) fn control(&self, index: usize) -> Control {
        let own = self.ports[index].aggregator;
        let aggregator = own.map(|a| &self.aggregators[a]);
        let others = self.ports.iter().enumerate().filter(|&(i, p)| i != index && own.is_some() && p.aggregator == own);
        Control {
            active: aggregator.is_some_and(|a| a.active),
            has_partner: aggregator.is_some_and(Aggregator::has_partner),
            others_ready: others.map(|(_, p)| p).all(|p| p.ready_n),
            selection_pending: self.selection_timer.is_some(),
            coupled: self.config.coupled_control,
        }
    }

    pub(super) fn index(&self, port: u16) -> Result<usize, LacpError> {
        self.ports.iter().position(|p| p.number() == port).ok_or(LacpError::NoSuchPort { port })
    }

    /// The ports, in the order they were added.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// One port.
    ///
    /// # Errors
    /// [`LacpError::NoSuchPort`].
    pub fn port(&self, port: u16) -> Result<&Port, LacpError> {
        Ok(&self.ports[self.index(port)?])
    }

    /// Identifier of a port's aggregator.
    pub fn aggregator_of(&self, port: &Port) -> Option<u16> {
        port.aggregator.and_then(|a| self.aggregators.get(a)).map(|a| a.id)
    }

    /// True if data that comes in on the port is to be taken.
    pub fn collects(&self, port: &Port) -> bool {
        port.enabled && port.collecting
    }

    /// True if data may be sent on the port: it distributes, or serves without LACP for want of a partner, and belongs to
    /// the active aggregator.
    pub fn distributes(&self, port: &Port) -> bool {
        let in_use = port.aggregator.and_then(|a| self.aggregators.get(a)).is_some_and(|a| a.active);
        port.enabled && port.active && in_use && self.opened.is_some()
    }

    /// Counters of all ports together, removed ones included.
    pub fn statistics(&self) -> LacpStatistics {
        let mut sum = self.departed;
        for port in &self.ports {
            sum.add(&port.statistics);
        }
        sum
    }
}
