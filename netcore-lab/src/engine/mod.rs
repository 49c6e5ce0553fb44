//! Virtual time: components that exchange packets, and the order in which things happen.
//!
//! A [`Component`] takes packets at numbered ports and wake-ups, and gives packets to its own ports and asks for
//! wake-ups. [`Lab`] joins ports by wires without delay; whatever takes time is a component. Equal times are served in
//! the order in which they were asked for, so a run depends on its inputs and seed alone.
//!
//! ```
//! use netcore::{Instant, Packet};
//! use netcore_lab::engine::{Component, Context, Lab};
//! use std::time::Duration;
//!
//! /// Sends a packet every millisecond.
//! struct Ticker;
//! impl Component for Ticker {
//!     fn receive(&mut self, _port: u16, packet: Packet, ctx: &mut Context<'_>) {
//!         ctx.cache.put(packet);
//!     }
//!     fn wake(&mut self, ctx: &mut Context<'_>) {
//!         if let Ok(packet) = ctx.cache.copy_from_slice(&[0; 60]) {
//!             ctx.send(0, packet);
//!         }
//!         ctx.wake_at(ctx.now + Duration::from_millis(1));
//!     }
//! }
//! /// Counts what it gets.
//! #[derive(Default)]
//! struct Counter(u64);
//! impl Component for Counter {
//!     fn receive(&mut self, _port: u16, packet: Packet, ctx: &mut Context<'_>) {
//!         self.0 += 1;
//!         ctx.cache.put(packet);
//!     }
//! }
//!
//! let mut lab = Lab::new(1, 64)?;
//! let (ticker, counter) = (lab.add(Ticker), lab.add(Counter::default()));
//! lab.connect((ticker, 0), (counter, 0))?;
//! lab.run_until(Instant::from_millis(10));
//! assert_eq!(lab.get::<Counter>(counter).map(|counter| counter.0), Some(11));
//! # Ok::<(), netcore_lab::engine::EngineError>(())
//! ```

mod events;

use events::EventQueue;
use netcore::{Instant, Packet, PacketPool, PoolCache, PoolConfig};
use std::any::Any;
use std::collections::VecDeque;

/// Number of a component in its lab.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ComponentId(u32);

/// Why a lab could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The packet pool could not be made.
    #[error(transparent)]
    Pool(#[from] netcore::PoolConfigError),
    /// A port is connected already.
    #[error("port {port} of component {component} is connected already")]
    PortTaken {
        /// The component.
        component: u32,
        /// The port.
        port: u16,
    },
    /// There is no such component.
    #[error("component {component} does not exist; there are {count}")]
    NoComponent {
        /// What was asked for.
        component: u32,
        /// How many there are.
        count: usize,
    },
}

/// Something in the lab.
pub trait Component: Any + Send {
    /// A packet arrives at `port`.
    fn receive(&mut self, port: u16, packet: Packet, ctx: &mut Context<'_>);

    /// A time asked for with [`Context::wake_at`] has come, or the lab starts. Wake-ups may come early or twice: look at
    /// `ctx.now`.
    fn wake(&mut self, ctx: &mut Context<'_>) {
        let _ = ctx;
    }
}

/// What a component may do while it is served.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// Packet memory.
    pub cache: &'a mut PoolCache,
    id: u32,
    events: &'a mut EventQueue,
    ready: &'a mut VecDeque<(u32, u16, Packet)>,
    wires: &'a [Vec<Option<(u32, u16)>>],
    unconnected: &'a mut u64,
}

impl Context<'_> {
    /// Gives a packet to whatever is connected to this component's `port`. A port without a wire drops it, counted
    /// ([`Lab::unconnected`]).
    #[inline]
    pub fn send(&mut self, port: u16, packet: Packet) {
        match self.wires[self.id as usize].get(usize::from(port)).copied().flatten() {
            Some((to, port)) => self.ready.push_back((to, port, packet)),
            None => {
                *self.unconnected += 1;
                self.cache.put(packet);
            }
        }
    }

    /// Asks to be woken at `at`, at once if that is past.
    #[inline]
    pub fn wake_at(&mut self, at: Instant) {
        self.events.push(at.max(self.now), self.id);
    }

    /// Asks to be woken at `at` unless an earlier wake-up is on its way; `scheduled` keeps track. A component that calls
    /// this at the end of each of its functions with its next deadline has at most a few events queued.
    #[inline]
    pub fn wake_by(&mut self, scheduled: &mut Option<Instant>, at: Option<Instant>) {
        let pending = scheduled.filter(|pending| *pending > self.now);
        match (at, pending) {
            (Some(at), Some(pending)) if pending <= at => *scheduled = Some(pending),
            (Some(at), _) => {
                let at = at.max(self.now);
                *scheduled = Some(at);
                self.events.push(at, self.id);
            }
            (None, pending) => *scheduled = pending,
        }
    }
}

/// A laboratory in virtual time.
pub struct Lab {
    components: Vec<Box<dyn Component>>,
    wires: Vec<Vec<Option<(u32, u16)>>>,
    events: EventQueue,
    ready: VecDeque<(u32, u16, Packet)>,
    pool: PacketPool,
    cache: PoolCache,
    now: Instant,
    started: bool,
    unconnected: u64,
    served: u64,
    seed: u64,
}

impl Lab {
    /// Bytes of a packet buffer: headers are real, bulk payload is virtual.
    pub const BUFFER: usize = 768;

    /// An empty lab with packet memory for `packets` packets with real headers at a time.
    ///
    /// # Errors
    /// [`EngineError::Pool`].
    pub fn new(seed: u64, packets: usize) -> Result<Self, EngineError> {
        let config = PoolConfig {
            buffer_size: Self::BUFFER,
            windows: (packets * 3).min(1 << 24),
            ..PoolConfig::with_buffers(packets)
        };
        Ok(Self::with_pool(seed, PacketPool::new(config)?))
    }

    /// An empty lab with packets from `pool`.
    pub fn with_pool(seed: u64, pool: PacketPool) -> Self {
        Self {
            components: Vec::new(),
            wires: Vec::new(),
            events: EventQueue::default(),
            ready: VecDeque::new(),
            cache: pool.cache(),
            pool,
            now: Instant::ZERO,
            started: false,
            unconnected: 0,
            served: 0,
            seed,
        }
    }

    /// The pool that packets come from.
    pub fn pool(&self) -> &PacketPool {
        &self.pool
    }

    /// A seed for the next component that needs randomness: different for each call, the same in each run.
    pub fn derive_seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Adds a component. It is woken when the lab starts.
    pub fn add(&mut self, component: impl Component) -> ComponentId {
        let id = self.components.len() as u32;
        self.components.push(Box::new(component));
        self.wires.push(Vec::new());
        if self.started {
            self.events.push(self.now, id);
        }
        ComponentId(id)
    }

    /// Joins two ports, both ways.
    ///
    /// # Errors
    /// [`EngineError`] if a component does not exist or a port is taken.
    pub fn connect(&mut self, a: (ComponentId, u16), b: (ComponentId, u16)) -> Result<(), EngineError> {
        for (ComponentId(component), port) in [a, b] {
            let count = self.components.len();
            let wires = self.wires.get_mut(component as usize).ok_or(EngineError::NoComponent { component, count })?;
            if wires.len() <= usize::from(port) {
                wires.resize(usize::from(port) + 1, None);
            }
            if wires[usize::from(port)].is_some() {
                return Err(EngineError::PortTaken { component, port });
            }
        }
        self.wires[a.0.0 as usize][usize::from(a.1)] = Some((b.0.0, b.1));
        self.wires[b.0.0 as usize][usize::from(b.1)] = Some((a.0.0, a.1));
        Ok(())
    }

    /// The component, if it is of type `T`.
    pub fn get<T: Component>(&self, id: ComponentId) -> Option<&T> {
        let component: &dyn Any = &**self.components.get(id.0 as usize)?;
        component.downcast_ref()
    }

    /// The component, writable. Changes that need attention want a [`Lab::nudge`].
    pub fn get_mut<T: Component>(&mut self, id: ComponentId) -> Option<&mut T> {
        let component: &mut dyn Any = &mut **self.components.get_mut(id.0 as usize)?;
        component.downcast_mut()
    }

    /// Wakes a component at the present time.
    pub fn nudge(&mut self, id: ComponentId) {
        self.events.push(self.now, id.0);
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Packets sent to ports without a wire.
    pub fn unconnected(&self) -> u64 {
        self.unconnected
    }

    /// Events served: packets and wake-ups.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Serves everything up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        if !self.started {
            self.started = true;
            for id in 0..self.components.len() as u32 {
                self.events.push(self.now, id);
            }
        }
        loop {
            while let Some((id, port, packet)) = self.ready.pop_front() {
                self.serve(id, |component, ctx| component.receive(port, packet, ctx));
            }
            let Some((at, id)) = self.events.pop_until(end) else { break };
            self.now = at;
            self.serve(id, |component, ctx| component.wake(ctx));
        }
        self.now = self.now.max(end);
    }

    #[inline]
    fn serve(&mut self, id: u32, call: impl FnOnce(&mut dyn Component, &mut Context<'_>)) {
        self.served += 1;
        let mut ctx = Context {
            now: self.now,
            cache: &mut self.cache,
            id,
            events: &mut self.events,
            ready: &mut self.ready,
            wires: &self.wires,
            unconnected: &mut self.unconnected,
        };
        call(&mut *self.components[id as usize], &mut ctx);
    }
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab")
            .field("now", &self.now)
            .field("components", &self.components.len())
            .finish_non_exhaustive()
    }
}
