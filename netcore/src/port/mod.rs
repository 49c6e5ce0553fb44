//! [`Port`]: a driver with a qdisc above each transmit queue and receive offload below each receive queue.
//!
//! ```text
//!   transmit ─► Qdisc ─► (Segmenter, checksum in software if the device cannot) ─► Driver
//!                 ▲                                                                  │
//!                 └────────────── byte queue limit ◄── reclaim ◄────────────────────┘
//!   receive  ◄─ ReceiveOffload ◄─────────────────────────────────────────────────── Driver
//! ```
//!
//! A port is itself a [`Driver`], so ports and bonds nest as devices do in Linux.

mod dql;
#[cfg(test)]
mod tests;

pub use dql::QueueLimit;

use crate::driver::{
    Capabilities, Completion, Completions, Driver, DriverError, Features, LinkState, MacAddress, Refusal, Statistics,
};
use crate::offload::{ReceiveOffload, Segmenter};
use crate::packet::{Burst, GsoKind, Packet};
use crate::pool::PoolCache;
use crate::qdisc::{Dequeue, Drops, Fifo, Qdisc, QdiscError};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Packets taken from a qdisc at a time (Linux: `dev_weight`).
const QUOTA: usize = 64;

/// Every way a device can fill in TCP and UDP checksums.
const CHECKSUMS: Features =
    Features::TX_CHECKSUM_GENERIC.union(Features::TX_CHECKSUM_IPV4).union(Features::TX_CHECKSUM_IPV6);

struct TransmitQueue {
    qdisc: Box<dyn Qdisc>,
    limit: Option<QueueLimit>,
    /// Packets that left the qdisc but did not fit into the ring yet, wire-ready, in order.
    ready: Burst,
    /// When the qdisc has something again.
    next: Option<Instant>,
}

/// Builds a [`Port`]. Without any call beyond [`PortBuilder::build`] it is a plain pfifo over the driver.
pub struct PortBuilder<D> {
    driver: D,
    cache: PoolCache,
    segmenter: Option<Box<dyn Segmenter>>,
    offloads: Vec<Box<dyn ReceiveOffload>>,
    qdiscs: Vec<Box<dyn Qdisc>>,
    byte_limits: bool,
    accept_super: bool,
}

impl<D: Driver> PortBuilder<D> {
    /// A port over `driver` that takes buffers for headers from `cache`.
    pub fn new(driver: D, cache: PoolCache) -> Self {
        Self {
            driver,
            cache,
            segmenter: None,
            offloads: Vec::new(),
            qdiscs: Vec::new(),
            byte_limits: true,
            accept_super: false,
        }
    }

    /// Segments and fills checksums in software where the device cannot. Without one, packets that the device cannot send
    /// as they are are dropped and counted.
    pub fn segmenter(mut self, segmenter: Box<dyn Segmenter>) -> Self {
        self.segmenter = Some(segmenter);
        self
    }

    /// Receive offload for the next receive queue (first call: queue 0). Takes effect only with
    /// [`PortBuilder::accept_super`].
    pub fn receive_offload(mut self, offload: Box<dyn ReceiveOffload>) -> Self {
        self.offloads.push(offload);
        self
    }

    /// The qdisc of the next transmit queue (first call: queue 0); queues without one get a default [`Fifo`].
    pub fn qdisc(mut self, qdisc: Box<dyn Qdisc>) -> Self {
        self.qdiscs.push(qdisc);
        self
    }

    /// Byte queue limits, on unless switched off.
    pub fn byte_queue_limits(mut self, on: bool) -> Self {
        self.byte_limits = on;
        self
    }

    /// The receiver takes super-packets. Without this call it never sees one.
    pub fn accept_super(mut self) -> Self {
        self.accept_super = true;
        self
    }

    /// The port.
    pub fn build(self) -> Port<D> {
        let mut capabilities = self.driver.capabilities().clone();
        let queues = usize::from(capabilities.transmit_queues);
        let mut qdiscs = self.qdiscs.into_iter();
        let transmit = (0..queues)
            .map(|_| TransmitQueue {
                qdisc: qdiscs.next().unwrap_or_else(|| Box::new(Fifo::default())),
                limit: self.byte_limits.then(QueueLimit::new),
                ready: Burst::new(),
                next: None,
            })
            .collect();
        if self.segmenter.is_some() {
            add_software_features(&mut capabilities);
        }
        Port {
            driver: self.driver,
            capabilities,
            cache: self.cache,
            segmenter: self.segmenter,
            offloads: self.offloads,
            transmit,
            accept_super: self.accept_super,
            drops: Drops::new(),
            lost: Completions::new(),
            scratch: Burst::new(),
            counters: PortCounters::default(),
            deactivated: false,
            was_up: false,
        }
    }
}

/// What a segmenter adds to a device: it takes every kind of super-packet, checksum request and segment list.
fn add_software_features(capabilities: &mut Capabilities) {
    let software = Features::SCATTER_GATHER | Features::TX_CHECKSUM_GENERIC | Features::TSO;
    capabilities.supported |= software;
    capabilities.features |= software;
    capabilities.gso = GsoKind::all() - GsoKind::PARTIAL;
    capabilities.gso_max_size = 65536;
    capabilities.gso_max_segments = 65535;
    capabilities.max_segments = usize::MAX;
}

/// What a port counts itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PortCounters {
    /// Super-packets cut in software before the device.
    pub software_segmented: u64,
    /// Checksums filled in software before the device.
    pub software_checksummed: u64,
    /// Packets that the device refused at transmit although its capabilities promised otherwise, and that were then done
    /// in software.
    pub degraded: u64,
    /// Packets dropped because neither device nor software could send them.
    pub tx_dropped: u64,
    /// Packets dropped by qdiscs.
    pub qdisc_dropped: u64,
    /// Super-packets cut on receive because the receiver does not accept them.
    pub rx_segmented: u64,
    /// Super-packets dropped on receive because they could not be cut.
    pub rx_dropped: u64,
}

/// A driver with qdiscs and offloads. See the [module](self).
pub struct Port<D = Box<dyn Driver>> {
    driver: D,
    capabilities: Capabilities,
    cache: PoolCache,
    segmenter: Option<Box<dyn Segmenter>>,
    offloads: Vec<Box<dyn ReceiveOffload>>,
    transmit: Vec<TransmitQueue>,
    accept_super: bool,
    drops: Drops,
    /// Packets dropped before the device: their senders wait for a completion all the same.
    lost: Completions,
    scratch: Burst,
    counters: PortCounters,
    /// The link went down: what is queued was dropped, and so is what comes, until it is up again.
    deactivated: bool,
    was_up: bool,
}

impl<D: Driver> Port<D> {
    /// See [`PortBuilder`].
    pub fn builder(driver: D, cache: PoolCache) -> PortBuilder<D> {
        PortBuilder::new(driver, cache)
    }

    /// The driver below.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver below, for its own settings.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// The qdisc of a transmit queue.
    pub fn qdisc(&self, queue: u16) -> Option<&dyn Qdisc> {
        self.transmit.get(usize::from(queue)).map(|q| &*q.qdisc)
    }

    /// The byte queue limit of a transmit queue, if switched on.
    pub fn queue_limit(&mut self, queue: u16) -> Option<&mut QueueLimit> {
        self.transmit.get_mut(usize::from(queue))?.limit.as_mut()
    }

    /// What the port itself did and dropped.
    pub fn counters(&self) -> PortCounters {
        self.counters
    }

    /// Changes options of a queue's qdisc, in `tc` syntax.
    ///
    /// # Errors
    /// [`QdiscError`]; nothing was changed. A queue that does not exist has no options.
    pub fn change_qdisc(&mut self, queue: u16, options: &[&str], now: Instant) -> Result<(), QdiscError> {
        let Some(q) = self.transmit.get_mut(usize::from(queue)) else { return Ok(()) };
        q.qdisc.change(options, now, &mut self.drops)?;
        self.release_drops();
        Ok(())
    }

    fn queue_error(&self, queue: u16) -> DriverError {
        DriverError::NoSuchQueue { queue, queues: self.transmit.len() as u16 }
    }

    /// Drops everything queued before the device, counted.
    fn purge(&mut self) {
        for q in &mut self.transmit {
            q.qdisc.reset(&mut self.drops);
            self.counters.tx_dropped += q.ready.len() as u64;
            for packet in q.ready.iter() {
                self.lost.push(completion_of(packet));
            }
            self.cache.put_burst(&mut q.ready);
            q.next = None;
        }
        self.release_drops();
    }

    fn release_drops(&mut self) {
        for dropped in self.drops.drain() {
            self.counters.qdisc_dropped += 1;
            self.lost.push(completion_of(&dropped.packet));
            self.cache.put(dropped.packet);
        }
    }

    /// Drops a packet that nobody can send.
    fn discard(&mut self, packet: Packet) {
        self.counters.tx_dropped += 1;
        self.lost.push(completion_of(&packet));
        self.cache.put(packet);
    }

    /// Moves packets from the qdisc to the ring until the ring, its byte limit or the qdisc says stop (Linux:
    /// `__qdisc_run`, `dev_hard_start_xmit`).
    fn run_queue(&mut self, queue: u16, now: Instant) -> Result<(), DriverError> {
        let index = usize::from(queue);
        loop {
            self.transmit_ready(queue, now)?;
            let q = &mut self.transmit[index];
            if !q.ready.is_empty() || q.limit.as_ref().is_some_and(|limit| limit.available() < 0) {
                q.next = None;
                return Ok(());
            }
            // Linux takes a bulk up to what the byte limit leaves (`try_bulk_dequeue_skb`), at least one packet.
            let mut room = q.limit.as_ref().map_or(i64::MAX, QueueLimit::available);
            let mut taken = 0;
            let mut stopped = None;
            while taken < QUOTA && (room > 0 || taken == 0) {
                match q.qdisc.dequeue(now, &mut self.drops) {
                    Dequeue::Packet(packet) => {
                        room = room.saturating_sub_unsigned(packet.len() as u64);
                        self.scratch.push(packet);
                        taken += 1;
                    }
                    Dequeue::Empty => {
                        stopped = Some(None);
                        break;
                    }
                    Dequeue::Throttled(until) => {
                        stopped = Some(Some(until));
                        break;
                    }
                }
            }
            self.release_drops();
            let mut dequeued = core::mem::take(&mut self.scratch);
            while let Some(packet) = dequeued.pop() {
                self.prepare(index, packet);
            }
            self.scratch = dequeued;
            if let Some(next) = stopped {
                self.transmit_ready(queue, now)?;
                self.transmit[index].next = next;
                return Ok(());
            }
        }
    }

    /// Does in software what the device does not, and queues the result for the ring.
    fn prepare(&mut self, queue: usize, packet: Packet) {
        let caps = self.driver.capabilities();
        let needs_segmenter = match packet.gso() {
            Some(gso) => !caps.segments(gso, packet.len()),
            None => false,
        };
        let needs_checksum =
            !needs_segmenter && packet.transmit_checksum().is_some() && !caps.features.intersects(CHECKSUMS);
        if needs_segmenter {
            self.counters.software_segmented += 1;
            self.in_software(queue, packet, Features::empty());
        } else if needs_checksum {
            self.counters.software_checksummed += 1;
            self.in_software(queue, packet, Features::empty());
        } else {
            self.transmit[queue].ready.push(packet);
        }
    }

    /// Segments, or fills the checksum of a packet that is no super-packet, without using the features `withheld`.
    fn in_software(&mut self, queue: usize, packet: Packet, withheld: Features) {
        let Some(segmenter) = &mut self.segmenter else { return self.discard(packet) };
        let features = self.driver.capabilities().features - withheld;
        let whole = completion_of(&packet);
        let ready = &mut self.transmit[queue].ready;
        let first = ready.len();
        match segmenter.segment(packet, features, &mut self.cache, ready) {
            Err(failed) => self.discard(failed.packet),
            // The sender was charged for one packet: the last piece completes it.
            Ok(pieces) => {
                for index in first..first + pieces {
                    if let Some(piece) = ready.get_mut(index) {
                        let last = index + 1 == first + pieces;
                        piece.set_flow_id(whole.flow_id.filter(|_| last));
                        piece.set_truesize(if last { whole.truesize as usize } else { 0 });
                    }
                }
            }
        }
    }

    /// Hands wire-ready packets to the device. One that it refuses although it declared the feature is done in software
    /// for this very burst; one that nobody can send is dropped and counted.
    fn transmit_ready(&mut self, queue: u16, now: Instant) -> Result<(), DriverError> {
        let index = usize::from(queue);
        loop {
            let q = &mut self.transmit[index];
            if q.ready.is_empty() {
                return Ok(());
            }
            let before: usize = q.ready.bytes();
            let result = self.driver.transmit(queue, &mut q.ready, now);
            if let Some(limit) = &mut q.limit {
                let sent = before - q.ready.bytes();
                if sent > 0 {
                    limit.queued(sent as u64);
                }
            }
            let reason = match result {
                Ok(_) => return Ok(()),
                Err(DriverError::Refused { reason }) => reason,
                Err(error) => return Err(error),
            };
            let Some(packet) = q.ready.pop() else { return Ok(()) };
            let by_software = packet.is_super() || packet.transmit_checksum().is_some() || !packet.is_linear();
            let repairable = matches!(reason, Refusal::Segmentation | Refusal::Checksum | Refusal::Segments);
            if !(repairable && by_software && self.segmenter.is_some()) {
                self.discard(packet);
                continue;
            }
            self.counters.degraded += 1;
            let mut later = core::mem::take(&mut q.ready);
            let mut packet = packet;
            if !packet.is_super() && packet.transmit_checksum().is_none() {
                let len = packet.len();
                if packet.linearize(len, &mut self.cache).is_err() {
                    self.discard(packet);
                } else {
                    self.transmit[index].ready.push(packet);
                }
            } else {
                // What the device refused once is not asked of it again for this packet.
                self.in_software(index, packet, CHECKSUMS);
            }
            self.transmit[index].ready.append(&mut later);
        }
    }

    /// Cuts super-packets for a receiver that does not take them.
    fn without_super(&mut self, from: &mut Burst, to: &mut Burst) {
        while let Some(packet) = from.pop() {
            if !packet.is_super() {
                to.push(packet);
                continue;
            }
            match &mut self.segmenter {
                Some(segmenter) => match segmenter.segment(packet, Features::empty(), &mut self.cache, to) {
                    Ok(_) => self.counters.rx_segmented += 1,
                    Err(failed) => {
                        self.counters.rx_dropped += 1;
                        self.cache.put(failed.packet);
                    }
                },
                None => {
                    self.counters.rx_dropped += 1;
                    self.cache.put(packet);
                }
            }
        }
    }
}

/// What the sender of a packet is told when it was dropped.
fn completion_of(packet: &Packet) -> Completion {
    Completion { flow_id: packet.flow_id(), truesize: packet.truesize() as u32, bytes: 0 }
}

impl<D: Driver> Driver for Port<D> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        self.driver.link()
    }

    /// Queues all packets (a qdisc that is full drops and counts, as in Linux), then sends what may leave now.
    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        let Some(q) = self.transmit.get_mut(usize::from(queue)) else { return Err(self.queue_error(queue)) };
        let mut taken = 0;
        if self.deactivated {
            while let Some(packet) = burst.pop() {
                self.discard(packet);
                taken += 1;
            }
            return Ok(taken);
        }
        while let Some(packet) = burst.pop() {
            q.qdisc.enqueue(packet, now, &mut self.drops);
            taken += 1;
        }
        self.release_drops();
        self.run_queue(queue, now)?;
        Ok(taken)
    }

    /// One poll of the device queue, merged if the receiver accepts super-packets. The answer counts wire packets taken
    /// from the device, so that fewer than `budget` means that its queue is empty.
    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        let mut received = core::mem::take(&mut self.scratch);
        let result = self.driver.receive(queue, &mut received, budget, now);
        if !self.accept_super {
            self.without_super(&mut received, burst);
        } else if let Some(offload) = self.offloads.get_mut(usize::from(queue)) {
            offload.receive(&mut received, burst, &mut self.cache, now);
            offload.end_poll(matches!(result, Ok(n) if n >= budget), burst, &mut self.cache, now);
        } else {
            burst.append(&mut received);
        }
        self.scratch = received;
        result
    }

    /// Also tells of packets that were dropped before the device, so that no sender waits for them.
    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        let Some(q) = self.transmit.get_mut(usize::from(queue)) else { return Err(self.queue_error(queue)) };
        let before = completions.len();
        let n = self.driver.reclaim(queue, completions, now)?;
        if let Some(limit) = &mut q.limit {
            let bytes = completions.as_slice()[before..].iter().map(|completion| u64::from(completion.bytes)).sum();
            limit.completed(bytes, now);
        }
        self.run_queue(queue, now)?;
        // Packets dropped above the device never counted for its byte limit.
        for lost in self.lost.as_slice() {
            completions.push(*lost);
        }
        self.lost.clear();
        Ok(n)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.driver.statistics(statistics);
        let c = &self.counters;
        statistics.add("tx_software_segmented", c.software_segmented);
        statistics.add("tx_software_checksummed", c.software_checksummed);
        statistics.add("tx_offload_degraded", c.degraded);
        statistics.add("tx_dropped", c.tx_dropped);
        statistics.add("tx_qdisc_dropped", c.qdisc_dropped);
        statistics.add("rx_software_segmented", c.rx_segmented);
        statistics.add("rx_dropped", c.rx_dropped);
        for offload in &self.offloads {
            offload.statistics(statistics);
        }
    }

    /// When the link is seen to have gone down, what is queued is dropped, counted, and so is what comes until the link is
    /// up again (Linux: `linkwatch_do_dev`, `dev_deactivate`).
    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        self.driver.poll(now)?;
        let up = self.driver.link().up;
        if self.was_up && !up {
            self.deactivated = true;
            self.purge();
        } else if up {
            self.deactivated = false;
        }
        self.was_up = up;
        for queue in 0..self.transmit.len() {
            let q = &self.transmit[queue];
            if q.next.is_some_and(|next| next <= now) || !q.ready.is_empty() {
                self.run_queue(queue as u16, now)?;
            }
        }
        Ok(())
    }

    fn poll_at(&self) -> Option<Instant> {
        let qdiscs = self.transmit.iter().filter_map(|q| q.next).min();
        let offloads = self.offloads.iter().filter_map(|offload| offload.poll_at()).min();
        [self.driver.poll_at(), qdiscs, offloads].into_iter().flatten().min()
    }

    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        self.driver.start(now)
    }

    /// Stops the device and drops what is queued, counted (Linux: `dev_deactivate`).
    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        let result = self.driver.stop(now);
        self.purge();
        for limit in self.transmit.iter_mut().filter_map(|q| q.limit.as_mut()) {
            limit.reset(now);
        }
        let mut held = Burst::new();
        for offload in &mut self.offloads {
            offload.flush(&mut held, &mut self.cache);
        }
        self.counters.rx_dropped += held.len() as u64;
        self.cache.put_burst(&mut held);
        result
    }

    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        self.driver.set_mac(mac)?;
        self.capabilities.mac = self.driver.capabilities().mac;
        Ok(())
    }

    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        self.driver.set_mtu(mtu)?;
        self.capabilities.mtu = self.driver.capabilities().mtu;
        Ok(())
    }

    fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
        self.driver.set_multicast(groups)
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> {
        self.driver.set_promiscuous(on)
    }

    fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), DriverError> {
        self.driver.set_vlan_filter(vlans)
    }

    fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
        let supported = self.driver.capabilities().supported;
        self.driver.set_features(features & supported)?;
        self.capabilities.features = self.driver.capabilities().features;
        if self.segmenter.is_some() {
            add_software_features(&mut self.capabilities);
        }
        Ok(())
    }

    /// Control frames pass the qdisc by.
    fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        self.driver.transmit_control(burst, now)
    }
}
