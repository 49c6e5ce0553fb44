//! Receive offload at the tunnel device (Linux: `net/core/gro_cells.c`).
//!
//! A tunnel takes its headers off and puts the inner frame into a cell: a bounded queue with a receive offload of its own. So
//! frames merge there that the device in front could not merge, after the outer headers have cost their time packet by packet.

use super::{Gro, GroConfig, GroConfigError};
use netcore::offload::ReceiveOffload;
use netcore::packet::PacketQueue;
use netcore::{Burst, Instant, Packet, PoolCache, Statistics};

/// Counters of [`GroCells`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellCounters {
    /// Frames queued.
    pub queued: u64,
    /// Frames refused because the queue was full (Linux: `rx_dropped` of the tunnel device).
    pub dropped: u64,
    /// Polls that took frames.
    pub polls: u64,
}

/// One processor's cell of a tunnel device.
pub struct GroCells {
    queue: PacketQueue,
    limit: usize,
    gro: Gro,
    burst: Burst,
    counters: CellCounters,
}

impl GroCells {
    /// Frames queued at most, unless said otherwise (Linux: `net.core.netdev_max_backlog`).
    pub const MAX_BACKLOG: usize = 1000;
    /// Frames of one poll (Linux: the weight of a NAPI instance).
    pub const BUDGET: usize = 64;

    /// A cell that holds nothing. `config` is that of the tunnel device's receive offload.
    ///
    /// # Errors
    /// [`GroConfigError`].
    pub fn new(config: GroConfig) -> Result<Self, GroConfigError> {
        Ok(Self {
            queue: PacketQueue::new(),
            limit: Self::MAX_BACKLOG,
            gro: Gro::new(config)?,
            burst: Burst::with_capacity(Self::BUDGET),
            counters: CellCounters::default(),
        })
    }

    /// Takes at most `limit` frames into the queue.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Queues a frame whose outer headers are gone; the checksum levels that its verdict still has are those of the frame.
    ///
    /// # Errors
    /// The frame, if the queue is full; it was counted as dropped.
    pub fn receive(&mut self, frame: Packet) -> Result<(), Packet> {
        // Linux compares with "greater than": one more than the limit fits.
        if self.queue.len() > self.limit {
            self.counters.dropped += 1;
            return Err(frame);
        }
        self.counters.queued += 1;
        self.queue.push_back(frame);
        Ok(())
    }

    /// One poll: takes up to [`GroCells::BUDGET`] frames through receive offload. True if more are waiting.
    pub fn poll(&mut self, out: &mut Burst, cache: &mut PoolCache, now: Instant) -> bool {
        let mut taken = 0;
        while taken < Self::BUDGET
            && let Some(frame) = self.queue.pop_front()
        {
            self.burst.push(frame);
            taken += 1;
        }
        self.counters.polls += u64::from(taken > 0);
        self.gro.receive(&mut self.burst, out, cache, now);
        self.gro.end_poll(taken == Self::BUDGET, out, cache, now);
        !self.queue.is_empty()
    }

    /// Frames queued.
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// The receive offload of the tunnel device.
    pub fn gro(&self) -> &Gro {
        &self.gro
    }

    /// What happened so far.
    pub fn counters(&self) -> CellCounters {
        self.counters
    }

    /// Writes all counters to `statistics`.
    pub fn statistics(&self, statistics: &mut Statistics) {
        statistics.add("gro_cells_queued", self.counters.queued);
        statistics.add("gro_cells_dropped", self.counters.dropped);
        self.gro.statistics(statistics);
    }
}
