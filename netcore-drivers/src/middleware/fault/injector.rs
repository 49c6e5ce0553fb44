//! The driver around the faults.

use super::lane::{Lane, completion};
use super::{Chance, FaultConfig, FaultConfigError};
use crate::middleware::Direction;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use netcore::driver::{Completion, Completions, Driver, DriverError, Features, LinkState, MacAddress, Refusal};
use netcore::{Burst, Capabilities, GsoKind, Instant, Packet, PacketPool, PoolCache, Statistics};

/// Drops, doubles, reorders, damages and delays packets on their way to and from a device, by chance from a seed. See the
/// [module](crate::middleware).
///
/// - On transmit, if packets can be doubled, damaged, reordered or delayed, the device is said to have no segmentation, checksum
///   or tag insertion, so that a [`Port`](netcore::Port) above sends final frames: what is damaged then has the checksum of what
///   it was. A packet that asks for any of these is refused.
/// - A packet that is lost is completed to its sender like one that was sent; a copy is not.
/// - What is held back goes on in [`Driver::poll`] (see [`Driver::poll_at`]) or with the next call for the queue.
/// - A damaged packet loses the device's word for its checksums. The bit turned over is within as many bytes as a buffer of the
///   pool holds.
/// - Control frames ([`Driver::transmit_control`]) are dropped and damaged like others, but not doubled, reordered or delayed.
///
/// Counters: `fault_tx_drop`, `…_duplicate`, `…_corrupt`, `…_reorder`, `…_delay`; `…_no_room` and `…_no_buffer` for faults that
/// could not be made; `…_lost` for packets that the device refused after they had been taken, or that were held back when it
/// stopped. The same with `fault_rx_`.
pub struct FaultInjector<D> {
    inner: D,
    config: FaultConfig,
    /// What the device could do when it was asked last, and what is said of it.
    seen: Capabilities,
    capabilities: Capabilities,
    cache: PoolCache,
    /// Bytes that a damaged packet has in its first buffer.
    reach: usize,
    transmit: Vec<TransmitLane>,
    receive: Vec<Lane>,
    /// Storage that is used again.
    one: Burst,
    fresh: Burst,
    reclaimed: Completions,
}

struct TransmitLane {
    lane: Lane,
    sent: Sent,
    /// Packets that never reached the device.
    completions: Vec<Completion>,
    /// The packet at the front of the caller's burst was spared, but the device had no room.
    spared: bool,
}

/// For each packet in the device, in order: is it a copy? Kept as runs, of which there are as many as copies at most.
#[derive(Default)]
struct Sent(VecDeque<(bool, usize)>);

impl Sent {
    fn push(&mut self, copy: bool, n: usize) {
        match self.0.back_mut() {
            Some((last, count)) if *last == copy => *count += n,
            _ if n > 0 => self.0.push_back((copy, n)),
            _ => {}
        }
    }

    fn pop(&mut self) -> Option<bool> {
        let (copy, count) = self.0.front_mut()?;
        let copy = *copy;
        *count -= 1;
        if *count == 0 {
            self.0.pop_front();
        }
        Some(copy)
    }
}

impl TransmitLane {
    /// A packet that the device never sees.
    fn complete(&mut self, packet: Packet, cache: &mut PoolCache) {
        self.completions.push(completion(&packet));
        cache.put(packet);
    }
}

impl<D: Driver> FaultInjector<D> {
    /// Faults around `inner`. Copies and damaged packets take their memory from `pool`.
    ///
    /// # Errors
    /// [`FaultConfigError`].
    pub fn new(inner: D, pool: &PacketPool, config: FaultConfig) -> Result<Self, FaultConfigError> {
        config.check()?;
        let c = inner.capabilities();
        let seed = |direction: u64, queue: u16| {
            config.seed ^ (direction << 16 | u64::from(queue)).wrapping_mul(0xd6e8_feb8_6659_fd93)
        };
        let transmit = (0..c.transmit_queues).map(|queue| TransmitLane {
            lane: Lane::new(seed(1, queue)),
            sent: Sent::default(),
            completions: Vec::new(),
            spared: false,
        });
        let mut this = Self {
            transmit: transmit.collect(),
            receive: (0..c.receive_queues).map(|queue| Lane::new(seed(2, queue))).collect(),
            seen: inner.capabilities().clone(),
            capabilities: Capabilities::default(),
            one: Burst::new(),
            fresh: Burst::new(),
            reclaimed: Completions::new(),
            inner,
            config,
            cache: pool.cache(),
            reach: pool.buffer_size() - pool.headroom(),
        };
        this.hide();
        Ok(this)
    }

    /// The driver inside.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The driver inside.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The configuration.
    pub const fn config(&self) -> &FaultConfig {
        &self.config
    }

    /// Changes what happens to packets from now on; the seed is that of the start.
    ///
    /// # Errors
    /// [`FaultConfigError`]; nothing is changed then.
    pub fn set_config(&mut self, config: FaultConfig) -> Result<(), FaultConfigError> {
        config.check()?;
        self.config = config;
        self.hide();
        Ok(())
    }

    /// How often each fault was made: `fault_…` of [`Driver::statistics`] alone.
    pub fn counters(&self, direction: Direction) -> Statistics {
        let mut statistics = Statistics::new();
        match direction {
            Direction::Transmit => {
                self.transmit.iter().for_each(|lane| lane.lane.counters.write("tx", &mut statistics));
            }
            Direction::Receive => self.receive.iter().for_each(|lane| lane.counters.write("rx", &mut statistics)),
        }
        statistics
    }

    /// Takes over what the device can do, if that has changed.
    fn refresh(&mut self) {
        if self.inner.capabilities() != &self.seen {
            self.seen = self.inner.capabilities().clone();
            self.hide();
        }
    }

    /// What the device can do, less what would hide faults.
    fn hide(&mut self) {
        self.capabilities = self.seen.clone();
        if self.config.transmit.touches_packets() {
            let hidden = Features::TSO
                | Features::TX_VLAN
                | Features::TX_CHECKSUM_GENERIC
                | Features::TX_CHECKSUM_IPV4
                | Features::TX_CHECKSUM_IPV6
                | Features::TX_CHECKSUM_SCTP;
            self.capabilities.features.remove(hidden);
            self.capabilities.supported.remove(hidden);
            self.capabilities.gso = GsoKind::empty();
        }
    }

    /// Why a packet is not a final frame.
    fn refusal(&self, packet: &Packet) -> Option<Refusal> {
        if !self.config.transmit.touches_packets() {
            None
        } else if packet.is_super() {
            Some(Refusal::Segmentation)
        } else if packet.transmit_checksum().is_some() {
            Some(Refusal::Checksum)
        } else {
            packet.vlan().map(|_| Refusal::Vlan)
        }
    }

    /// Gives the device what is ready; true if it took all.
    fn flush(&mut self, queue: u16, now: Instant) -> Result<bool, DriverError> {
        let Some(TransmitLane { lane, sent, completions, .. }) = self.transmit.get_mut(usize::from(queue)) else {
            return Err(DriverError::NoSuchQueue { queue, queues: self.capabilities.transmit_queues });
        };
        while !lane.ready.is_empty() {
            let before = lane.ready.len();
            let result = self.inner.transmit(queue, &mut lane.ready, now);
            lane.copies.drain(..before - lane.ready.len()).for_each(|copy| sent.push(copy, 1));
            match result {
                Ok(_) => return Ok(lane.ready.is_empty()),
                Err(DriverError::Refused { .. }) => {
                    // The sender has been told that it was taken.
                    let (Some(packet), Some(copy)) = (lane.ready.pop(), lane.copies.pop_front()) else { continue };
                    lane.counters.lost += 1;
                    if !copy {
                        completions.push(completion(&packet));
                    }
                    self.cache.put(packet);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Passes on a packet that is not touched, refusals included, if nothing waits in front of it.
    fn transmit_untouched(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        let before = burst.len();
        let result = self.inner.transmit(queue, burst, now);
        if let Some(lane) = self.transmit.get_mut(usize::from(queue)) {
            lane.sent.push(false, before - burst.len());
        }
        result
    }
}

impl<D: Driver> Driver for FaultInjector<D> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        self.inner.link()
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        if let Some(lane) = self.transmit.get_mut(usize::from(queue)) {
            lane.lane.release(now);
        }
        if !self.flush(queue, now)? {
            return Ok(0);
        }
        let faults = self.config.transmit;
        if !faults.touches_packets() && faults.drop == Chance::NEVER {
            return self.transmit_untouched(queue, burst, now);
        }
        let mut taken = 0;
        let mut one = core::mem::take(&mut self.one);
        let result = loop {
            let Some(packet) = burst.front() else { break Ok(taken) };
            if let Some(reason) = self.refusal(packet) {
                break Err(DriverError::Refused { reason });
            }
            let (Some(packet), Some(lane)) = (burst.pop(), self.transmit.get_mut(usize::from(queue))) else {
                break Ok(taken);
            };
            if !core::mem::take(&mut lane.spared) && lane.lane.loses(&faults) {
                lane.complete(packet, &mut self.cache);
                taken += 1;
                continue;
            }
            if faults.touches_packets() {
                lane.lane.offer(packet, &faults, self.reach, &mut self.cache, now);
                taken += 1;
                match self.flush(queue, now) {
                    Ok(true) => continue,
                    Ok(false) => break Ok(taken),
                    Err(error) => break Err(error),
                }
            }
            one.push(packet);
            let result = self.transmit_untouched(queue, &mut one, now);
            if let Some(packet) = one.pop() {
                burst.unpop(packet);
                if let Some(lane) = self.transmit.get_mut(usize::from(queue)) {
                    lane.spared = true;
                }
                break result.map(|_| taken);
            }
            taken += 1;
            if let Err(error) = result {
                break Err(error);
            }
        };
        self.one = one;
        result
    }

    fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        let faults = self.config.transmit;
        let mut taken = 0;
        let mut one = Burst::new();
        while let Some(mut packet) = burst.pop() {
            let Some(lane) = self.transmit.first_mut() else {
                burst.unpop(packet);
                return Err(DriverError::NoSuchQueue { queue: 0, queues: 0 });
            };
            if lane.lane.loses(&faults) {
                lane.complete(packet, &mut self.cache);
                taken += 1;
                continue;
            }
            lane.lane.maybe_corrupt(&mut packet, &faults, self.reach, &mut self.cache);
            one.push(packet);
            let result = self.inner.transmit_control(&mut one, now);
            if let Some(packet) = one.pop() {
                burst.unpop(packet);
                return result.map(|_| taken);
            }
            lane.sent.push(false, 1);
            taken += 1;
            result?;
        }
        Ok(taken)
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        let queues = self.capabilities.receive_queues;
        let Some(lane) = self.receive.get_mut(usize::from(queue)) else {
            return Err(DriverError::NoSuchQueue { queue, queues });
        };
        lane.release(now);
        let fresh = &mut self.fresh;
        let result = match budget.saturating_sub(lane.ready.len()) {
            0 => Ok(0),
            room => self.inner.receive(queue, fresh, room, now),
        };
        while let Some(packet) = fresh.pop() {
            if lane.loses(&self.config.receive) {
                self.cache.put(packet);
            } else {
                lane.offer(packet, &self.config.receive, self.reach, &mut self.cache, now);
            }
        }
        let mut delivered = 0;
        while delivered < budget {
            let Some(packet) = lane.ready.pop() else { break };
            lane.copies.pop_front();
            burst.push(packet);
            delivered += 1;
        }
        // What was delivered stays in the burst, error or not.
        result.map(|_| delivered)
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        let Some(lane) = self.transmit.get_mut(usize::from(queue)) else {
            return Err(DriverError::NoSuchQueue { queue, queues: self.capabilities.transmit_queues });
        };
        let mut n = lane.completions.len();
        lane.completions.drain(..).for_each(|completion| completions.push(completion));
        self.reclaimed.clear();
        let result = self.inner.reclaim(queue, &mut self.reclaimed, now);
        for completion in self.reclaimed.as_slice() {
            // Devices complete a queue's packets in order.
            if lane.sent.pop() != Some(true) {
                completions.push(*completion);
                n += 1;
            }
        }
        result.map(|_| n)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.inner.statistics(statistics);
        self.transmit.iter().for_each(|lane| lane.lane.counters.write("tx", statistics));
        self.receive.iter().for_each(|lane| lane.counters.write("rx", statistics));
    }

    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.poll(now)?;
        self.refresh();
        for queue in 0..self.transmit.len() {
            self.transmit[queue].lane.release(now);
            self.flush(queue as u16, now)?;
        }
        Ok(())
    }

    fn poll_at(&self) -> Option<Instant> {
        let transmit = self.transmit.iter().filter_map(|lane| lane.lane.due());
        let receive = self.receive.iter().filter_map(Lane::due);
        transmit.chain(receive).chain(self.inner.poll_at()).min()
    }

    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        let result = self.inner.start(now);
        self.refresh();
        result
    }

    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        for TransmitLane { lane, completions, .. } in &mut self.transmit {
            lane.give_up(&mut self.cache, |completion| completions.push(completion));
        }
        for lane in &mut self.receive {
            lane.give_up(&mut self.cache, |_| {});
        }
        self.inner.stop(now)
    }

    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        let result = self.inner.set_mac(mac);
        self.refresh();
        result
    }

    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        let result = self.inner.set_mtu(mtu);
        self.refresh();
        result
    }

    fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
        self.inner.set_multicast(groups)
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> {
        self.inner.set_promiscuous(on)
    }

    fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), DriverError> {
        self.inner.set_vlan_filter(vlans)
    }

    fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
        // What is hidden stays as it is inside.
        let hidden = self.inner.capabilities().features.difference(self.capabilities.features);
        let result = self.inner.set_features(features | hidden);
        self.refresh();
        result
    }
}
