//! [`Bench`]: modelled devices, wires between them, one clock and one memory.

use super::{Core, Device, Faults, Frame, Memory, ModelBus, Partner, Timing, Violation};
use crate::sync::Lock;
use core::time::Duration;
use netcore::{Instant, MacAddress};
use std::collections::VecDeque;
use std::sync::Arc;
use std::vec::Vec;

/// A device on a bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Port(pub(super) usize);

/// A cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireConfig {
    /// Propagation delay of each direction.
    pub delay: Duration,
}

impl Default for WireConfig {
    /// 100 m of copper: 500 ns.
    fn default() -> Self {
        Self { delay: Duration::from_nanos(500) }
    }
}

pub(super) struct Slot {
    pub(super) device: Box<dyn Device>,
    pub(super) core: Core,
    /// The port at the other end of the cable and the delay to there.
    wire: Option<(usize, Duration)>,
    /// Frames on their way to this device.
    arriving: VecDeque<Frame>,
}

pub(super) struct Inner {
    pub(super) slots: Vec<Slot>,
    now: Instant,
    memory: Memory,
}

impl Inner {
    /// Moves frames from devices onto wires.
    pub(super) fn pump(&mut self) {
        for from in 0..self.slots.len() {
            let Some((to, delay)) = self.slots[from].wire else { continue };
            while let Some(mut frame) = self.slots[from].core.sent.pop_front() {
                frame.at += delay;
                self.slots[to].arriving.push_back(frame);
            }
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let of = |slot: &Slot| {
            let arrival = slot.arriving.front().map(|frame| frame.at);
            [slot.device.next_event(), arrival].into_iter().flatten().min()
        };
        self.slots.iter().filter_map(of).min()
    }

    /// Runs everything that is due at `now`.
    fn run_due(&mut self) {
        for slot in &mut self.slots {
            slot.core.set_now(self.now);
            if slot.device.next_event().is_some_and(|at| at <= self.now) {
                slot.device.run(&mut slot.core);
            }
            while slot.arriving.front().is_some_and(|frame| frame.at <= self.now) {
                if let Some(frame) = slot.arriving.pop_front()
                    && !slot.core.faults.removed
                    && slot.core.partner.present
                {
                    slot.device.receive(&mut slot.core, frame);
                }
            }
        }
        self.pump();
    }

    pub(super) fn advance_to(&mut self, target: Instant) {
        // A device whose event does not move would stop time; that is a fault of the model, so time goes on.
        let mut stalled = 0;
        while let Some(at) = self.next_event().filter(|at| *at <= target) {
            stalled = if at > self.now { 0 } else { stalled + 1 };
            if stalled > 1_000_000 {
                break;
            }
            self.now = self.now.max(at);
            self.run_due();
        }
        self.now = self.now.max(target);
        for slot in &mut self.slots {
            slot.core.set_now(self.now);
        }
    }

    /// Advances to the next event, at most to `limit`. False if there was none before it.
    pub(super) fn step(&mut self, limit: Instant) -> bool {
        match self.next_event().filter(|at| *at <= limit) {
            Some(at) => {
                self.now = self.now.max(at);
                self.run_due();
                true
            }
            None => {
                self.advance_to(limit);
                false
            }
        }
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// Modelled devices with one clock and one memory. Clones are the same bench.
#[derive(Clone)]
pub struct Bench {
    pub(super) inner: Arc<Lock<Inner>>,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// An empty bench at time zero.
    pub fn new() -> Self {
        let inner = Inner { slots: Vec::new(), now: Instant::ZERO, memory: Memory::new() };
        Self { inner: Arc::new(Lock::new(inner)) }
    }

    /// Plugs a device in and powers it on; `mac` is the address in its NVM.
    pub fn add(&self, device: Box<dyn Device>, mac: MacAddress) -> (Port, ModelBus) {
        let mut inner = self.inner.lock();
        let port = Port(inner.slots.len());
        let mut core = Core::new(inner.memory.clone(), mac, 0x9e37_79b9_7f4a_7c15 ^ port.0 as u64);
        core.set_now(inner.now);
        let mut slot = Slot { device, core, wire: None, arriving: VecDeque::new() };
        slot.device.power_on(&mut slot.core);
        inner.slots.push(slot);
        drop(inner);
        (port, ModelBus::new(self.clone(), port))
    }

    /// Connects two ports by a cable. A port that is connected twice keeps the last cable.
    pub fn connect(&self, a: Port, b: Port, config: WireConfig) {
        let mut inner = self.inner.lock();
        if a.0 < inner.slots.len() && b.0 < inner.slots.len() {
            inner.slots[a.0].wire = Some((b.0, config.delay));
            inner.slots[b.0].wire = Some((a.0, config.delay));
        }
    }

    /// The memory that all devices reach.
    pub fn memory(&self) -> Memory {
        self.inner.lock().memory.clone()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.inner.lock().now
    }

    /// Lets time pass.
    pub fn advance(&self, span: Duration) {
        let mut inner = self.inner.lock();
        let target = inner.now + span;
        inner.advance_to(target);
    }

    /// Lets time pass until `at`; nothing happens if that is over.
    pub fn advance_to(&self, at: Instant) {
        self.inner.lock().advance_to(at);
    }

    /// When something happens next by itself.
    pub fn next_event(&self) -> Option<Instant> {
        self.inner.lock().next_event()
    }

    /// Frames that a port without cable has sent, oldest first, up to now.
    pub fn take_sent(&self, port: Port) -> Vec<Frame> {
        let mut inner = self.inner.lock();
        let now = inner.now;
        let Some(slot) = inner.slots.get_mut(port.0) else { return Vec::new() };
        let due = slot.core.sent.iter().take_while(|frame| frame.at <= now).count();
        slot.core.sent.drain(..due).collect()
    }

    /// A frame arrives at a port, now.
    pub fn inject(&self, port: Port, frame: Frame) {
        let mut inner = self.inner.lock();
        if let Some(slot) = inner.slots.get_mut(port.0)
            && !slot.core.faults.removed
            && slot.core.partner.present
        {
            slot.device.receive(&mut slot.core, frame);
        }
        inner.pump();
    }

    /// Changes the faults of a device.
    pub fn faults(&self, port: Port, change: impl FnOnce(&mut Faults)) {
        if let Some(slot) = self.inner.lock().slots.get_mut(port.0) {
            change(&mut slot.core.faults);
        }
    }

    /// Changes how long things take at a device.
    pub fn timing(&self, port: Port, timing: Timing) {
        if let Some(slot) = self.inner.lock().slots.get_mut(port.0) {
            slot.core.timing = timing;
        }
    }

    /// Changes what is at the other end of a port's line: pull the cable, plug another partner.
    pub fn partner(&self, port: Port, change: impl FnOnce(&mut Partner)) {
        let mut inner = self.inner.lock();
        if let Some(slot) = inner.slots.get_mut(port.0) {
            change(&mut slot.core.partner);
            if !slot.core.faults.removed {
                slot.device.line_changed(&mut slot.core);
            }
        }
        inner.pump();
    }

    /// Rules broken at a port so far; forgets them.
    pub fn take_violations(&self, port: Port) -> Vec<Violation> {
        self.inner.lock().slots.get_mut(port.0).map(|slot| slot.core.take_violations()).unwrap_or_default()
    }

    /// Looks at a device's common part.
    pub fn with_core<R>(&self, port: Port, f: impl FnOnce(&mut Core) -> R) -> Option<R> {
        self.inner.lock().slots.get_mut(port.0).map(|slot| f(&mut slot.core))
    }
}

impl core::fmt::Debug for Bench {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let inner = self.inner.lock();
        let names: Vec<_> = inner.slots.iter().map(|slot| slot.device.name()).collect();
        f.debug_struct("Bench").field("now", &inner.now).field("devices", &names).finish()
    }
}
