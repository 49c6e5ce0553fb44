//! [`embassy_net_driver::Driver`] 0.2 over any [`Driver`].
//!
//! embassy-net's drivers are told no time, so the adapter gets a clock. They wake a task when there is something to do;
//! whoever receives interrupts calls [`EmbassyDriver::wake`]. Without interrupts the adapter wakes the task each time it
//! found nothing, which polls.

use crate::frames::{Frames, with_bytes};
use core::task::{Context, Waker};
use embassy_net_driver::{Capabilities, Checksum, HardwareAddress, LinkState};
use netcore::{Driver, Instant, Packet, PoolCache, Statistics};

/// A driver as one of embassy-net's. Transmits and receives on queue 0.
#[derive(Debug)]
pub struct EmbassyDriver<D, C> {
    frames: Frames<D>,
    clock: C,
    waker: Option<Waker>,
    polls: bool,
}

impl<D: Driver, C: FnMut() -> Instant> EmbassyDriver<D, C> {
    /// A driver over `driver`, which must be started. Frames to be sent are built in buffers of `cache`. Its task is woken
    /// all the time; see [`EmbassyDriver::with_interrupts`].
    pub fn new(driver: D, cache: PoolCache, clock: C) -> Self {
        Self { frames: Frames::new(driver, cache), clock, waker: None, polls: true }
    }

    /// The task sleeps until [`EmbassyDriver::wake`].
    #[must_use]
    pub fn with_interrupts(mut self) -> Self {
        self.polls = false;
        self
    }

    /// Something happened: an interrupt came.
    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        self.frames.driver()
    }

    /// The driver.
    pub fn driver_mut(&mut self) -> &mut D {
        self.frames.driver_mut()
    }

    /// The driver's counters, and those of the adapter.
    pub fn statistics(&self, statistics: &mut Statistics) {
        self.frames.statistics(statistics);
    }

    /// Nothing to do now: arranges to be asked again.
    fn later(&mut self, context: &Context<'_>) {
        if self.polls {
            context.waker().wake_by_ref();
        } else {
            self.waker = Some(context.waker().clone());
        }
    }
}

impl<D: Driver, C: FnMut() -> Instant> embassy_net_driver::Driver for EmbassyDriver<D, C> {
    type RxToken<'a>
        = RxToken
    where
        Self: 'a;
    type TxToken<'a>
        = TxToken<'a, D>
    where
        Self: 'a;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(RxToken, TxToken<'_, D>)> {
        let now = (self.clock)();
        let Some(packet) = self.frames.receive(now) else {
            self.later(context);
            return None;
        };
        Some((RxToken(packet), TxToken { frames: &mut self.frames, now }))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<TxToken<'_, D>> {
        let now = (self.clock)();
        if !self.frames.can_send(now) {
            self.later(context);
            return None;
        }
        Some(TxToken { frames: &mut self.frames, now })
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        let up = self.frames.driver().link().up;
        self.later(context);
        if up { LinkState::Up } else { LinkState::Down }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = self.frames.capabilities().mtu + 14;
        let transport = || match (self.frames.verifies_checksums(), self.frames.fills_checksums()) {
            (true, true) => Checksum::None,
            (true, false) => Checksum::Tx,
            (false, true) => Checksum::Rx,
            (false, false) => Checksum::Both,
        };
        capabilities.checksum.tcp = transport();
        capabilities.checksum.udp = transport();
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.frames.capabilities().mac.0)
    }
}

/// A received frame.
#[derive(Debug)]
pub struct RxToken(Packet);

impl embassy_net_driver::RxToken for RxToken {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, f: F) -> R {
        let mut packet = self.0;
        if packet.is_linear()
            && let Ok(head) = packet.head_mut()
        {
            return f(head);
        }
        let mut copy = with_bytes(&packet, <[u8]>::to_vec);
        f(&mut copy)
    }
}

/// Room for a frame to be sent.
#[derive(Debug)]
pub struct TxToken<'a, D> {
    frames: &'a mut Frames<D>,
    now: Instant,
}

impl<D: Driver> embassy_net_driver::TxToken for TxToken<'_, D> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        self.frames.send(len, None, self.now, f)
    }
}
