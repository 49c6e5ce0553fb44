//! Queue pairs, shared between the driver and the handles it gives away.

use super::Hardware;
use crate::ring::{ReceiveCounters, ReceiveRing, TransmitCounters, TransmitRing};
use crate::sync::Lock;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use netcore::{Burst, Completions, DriverError, DriverQueue, Instant, PoolCache};

/// A transmit ring, a receive ring and the poller's cache. The rings are there while the device runs.
pub(super) struct QueuePair<H: Hardware> {
    pub(super) transmit: Option<TransmitRing<H::Transmit>>,
    pub(super) receive: Option<ReceiveRing<H::Receive>>,
    pub(super) cache: PoolCache,
}

/// A queue pair and who may use it. The lock is not contended: whoever owns the queue takes it once per burst; the driver
/// takes it to start and stop.
pub(super) struct QueueCell<H: Hardware> {
    pub(super) pair: Lock<QueuePair<H>>,
    pub(super) taken: AtomicBool,
    pub(super) transmit_counters: Arc<TransmitCounters>,
    pub(super) receive_counters: Arc<ReceiveCounters>,
}

impl<H: Hardware> QueueCell<H> {
    pub(super) fn new(cache: PoolCache) -> Self {
        Self {
            pair: Lock::new(QueuePair { transmit: None, receive: None, cache }),
            taken: AtomicBool::new(false),
            transmit_counters: Arc::default(),
            receive_counters: Arc::default(),
        }
    }

    pub(super) fn transmit(&self, burst: &mut Burst, control: bool) -> Result<usize, DriverError> {
        let mut pair = self.pair.lock();
        let ring = pair.transmit.as_mut().ok_or(DriverError::Down)?;
        match ring.transmit(burst, control) {
            (_, Some(reason)) => Err(DriverError::Refused { reason }),
            (sent, None) => Ok(sent),
        }
    }

    pub(super) fn receive(&self, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        let pair = &mut *self.pair.lock();
        let ring = pair.receive.as_mut().ok_or(DriverError::Down)?;
        Ok(ring.receive(burst, budget, &mut pair.cache, now))
    }

    pub(super) fn reclaim(&self, completions: &mut Completions) -> Result<usize, DriverError> {
        let pair = &mut *self.pair.lock();
        let ring = pair.transmit.as_mut().ok_or(DriverError::Down)?;
        Ok(ring.reclaim(completions, &mut pair.cache))
    }

    /// Releases all packets and the rings' memory. The hardware must have been stopped.
    pub(super) fn release(&self) {
        let pair = &mut *self.pair.lock();
        if let Some(mut ring) = pair.transmit.take() {
            ring.release(&mut pair.cache);
        }
        if let Some(mut ring) = pair.receive.take() {
            ring.release(&mut pair.cache);
        }
        pair.cache.flush();
    }
}

/// One queue pair of a NIC, owned by one poller. It stays valid over stop and start of the driver, and answers
/// [`DriverError::Down`] in between. Dropping it gives the queue back.
pub struct QueueHandle<H: Hardware>(pub(super) Arc<QueueCell<H>>);

impl<H: Hardware> DriverQueue for QueueHandle<H> {
    fn transmit(&mut self, burst: &mut Burst, _now: Instant) -> Result<usize, DriverError> {
        self.0.transmit(burst, false)
    }

    fn receive(&mut self, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        self.0.receive(burst, budget, now)
    }

    fn reclaim(&mut self, completions: &mut Completions, _now: Instant) -> Result<usize, DriverError> {
        self.0.reclaim(completions)
    }
}

impl<H: Hardware> Drop for QueueHandle<H> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

impl<H: Hardware> core::fmt::Debug for QueueHandle<H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("QueueHandle").finish_non_exhaustive()
    }
}
