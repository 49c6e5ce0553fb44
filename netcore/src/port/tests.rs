//! A port over a scripted driver. The driver, qdisc, offload and segmenter here also show that each trait can be written
//! in a few lines.

use super::*;
use crate::driver::Completion;
use crate::offload::{NotSegmented, SegmentError};
use crate::packet::{Gso, PartialChecksum};
use crate::pool::{PacketPool, PoolConfig};
use alloc::vec;
use core::time::Duration;

/// A driver with a ring of `room` packets that loops what it sent back to receive.
struct Loopback {
    capabilities: Capabilities,
    room: usize,
    ring: Burst,
    done: Burst,
    refuse: bool,
}

impl Driver for Loopback {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn link(&self) -> LinkState {
        LinkState::up(1000)
    }
    fn transmit(&mut self, _queue: u16, burst: &mut Burst, _now: Instant) -> Result<usize, DriverError> {
        let mut n = 0;
        while self.ring.len() < self.room {
            if self.refuse && burst.front().is_some_and(Packet::is_super) {
                return Err(DriverError::Refused { reason: Refusal::Segmentation });
            }
            let Some(packet) = burst.pop() else { break };
            self.ring.push(packet);
            n += 1;
        }
        Ok(n)
    }
    fn receive(&mut self, _queue: u16, burst: &mut Burst, budget: usize, _now: Instant) -> Result<usize, DriverError> {
        let n = budget.min(self.done.len());
        burst.extend(self.done.drain().take(n).collect::<Vec<_>>());
        Ok(n)
    }
    fn reclaim(&mut self, _queue: u16, completions: &mut Completions, _now: Instant) -> Result<usize, DriverError> {
        let n = self.ring.len();
        while let Some(packet) = self.ring.pop() {
            completions.push(Completion {
                flow_id: packet.flow_id(),
                truesize: packet.truesize() as u32,
                bytes: packet.len() as u32,
            });
            self.done.push(packet);
        }
        Ok(n)
    }
    fn statistics(&self, statistics: &mut Statistics) {
        statistics.add("tx_packets", self.done.len() as u64);
    }
}

/// Cuts a packet into pieces of `gso.size` bytes, headers and all.
struct Chopper;

impl Segmenter for Chopper {
    fn segment(
        &mut self,
        mut packet: Packet,
        _features: Features,
        cache: &mut PoolCache,
        out: &mut Burst,
    ) -> Result<usize, NotSegmented> {
        let size = packet.gso().map_or(packet.len(), |gso| usize::from(gso.size));
        packet.set_transmit_checksum(None);
        let pieces: Vec<_> = packet.to_vec().chunks(size).map(|c| cache.copy_from_slice(c).unwrap()).collect();
        let n = pieces.len();
        out.extend(pieces);
        Ok(n)
    }
    fn fill_checksum(&mut self, packet: &mut Packet, _cache: &mut PoolCache) -> Result<(), SegmentError> {
        packet.set_transmit_checksum(None);
        Ok(())
    }
}

/// Holds everything until the end of the poll.
#[derive(Default)]
struct Holder(Burst);

impl ReceiveOffload for Holder {
    fn receive(&mut self, burst: &mut Burst, _out: &mut Burst, _cache: &mut PoolCache, _now: Instant) {
        self.0.append(burst);
    }
    fn end_poll(&mut self, _budget_exhausted: bool, out: &mut Burst, cache: &mut PoolCache, _now: Instant) {
        self.flush(out, cache);
    }
    fn flush(&mut self, out: &mut Burst, _cache: &mut PoolCache) {
        let packets: Vec<_> = self.0.drain().collect();
        let n = packets.len() as u16;
        out.extend(packets.into_iter().map(|mut packet| {
            packet.set_gso(Some(Gso { kind: GsoKind::TCPV4, size: 4, segments: n }));
            packet
        }));
    }
    fn held(&self) -> usize {
        self.0.len()
    }
    fn statistics(&self, _statistics: &mut Statistics) {}
}

/// Lets one packet go per millisecond.
struct Pacer(Fifo, Instant);

impl Qdisc for Pacer {
    fn enqueue(&mut self, packet: Packet, now: Instant, drops: &mut Drops) {
        self.0.enqueue(packet, now, drops);
    }
    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Dequeue {
        if now < self.1 && !self.0.is_empty() {
            return Dequeue::Throttled(self.1);
        }
        self.1 = now + Duration::from_millis(1);
        self.0.dequeue(now, drops)
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn backlog(&self) -> usize {
        self.0.backlog()
    }
    fn statistics(&self) -> crate::QdiscStatistics {
        self.0.statistics()
    }
    fn name(&self) -> &'static str {
        "pacer"
    }
    fn reset(&mut self, drops: &mut Drops) {
        self.0.reset(drops);
    }
}

fn loopback(room: usize, features: Features, gso: GsoKind) -> Loopback {
    let capabilities = Capabilities { features, gso, ..Capabilities::default() };
    Loopback { capabilities, room, ring: Burst::new(), done: Burst::new(), refuse: false }
}

fn super_packet(cache: &mut PoolCache) -> Packet {
    let mut packet = cache.copy_from_slice(&[7; 10]).unwrap();
    packet.set_gso(Some(Gso { kind: GsoKind::TCPV4, size: 4, segments: 3 }));
    packet
}

#[test]
fn a_device_that_cannot_segment_gets_wire_packets() {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).unwrap();
    let mut cache = pool.cache();
    let mut port = Port::builder(loopback(64, Features::empty(), GsoKind::empty()), pool.cache())
        .segmenter(Box::new(Chopper))
        .build();
    let mut burst: Burst = [super_packet(&mut cache)].into_iter().collect();
    assert_eq!(port.transmit(0, &mut burst, Instant::ZERO), Ok(1));
    let lens: Vec<_> = port.driver().ring.iter().map(Packet::len).collect();
    assert_eq!(lens, [4, 4, 2]);
    assert_eq!(port.counters().software_segmented, 1);
}

#[test]
fn an_offload_refused_at_run_time_falls_back_within_the_burst() {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).unwrap();
    let mut cache = pool.cache();
    let mut driver = loopback(64, Features::TSO, GsoKind::TCPV4);
    driver.refuse = true;
    let mut port = Port::builder(driver, pool.cache()).segmenter(Box::new(Chopper)).byte_queue_limits(false).build();
    let last = cache.copy_from_slice(&[9; 5]).unwrap();
    let mut burst: Burst = [super_packet(&mut cache), last].into_iter().collect();
    port.transmit(0, &mut burst, Instant::ZERO).unwrap();
    let lens: Vec<_> = port.driver().ring.iter().map(Packet::len).collect();
    assert_eq!(lens, [4, 4, 2, 5], "order is kept");
    assert_eq!(port.counters().degraded, 1);
    assert_eq!(port.counters().tx_dropped, 0);
}

#[test]
fn checksum_requests_are_consumed_or_filled() {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).unwrap();
    let mut cache = pool.cache();
    let mut port = Port::builder(loopback(64, Features::empty(), GsoKind::empty()), pool.cache())
        .segmenter(Box::new(Chopper))
        .build();
    let mut packet = cache.copy_from_slice(&[1; 60]).unwrap();
    packet.set_transmit_checksum(Some(PartialChecksum { start: 34, offset: 16 }));
    port.transmit(0, &mut [packet].into_iter().collect(), Instant::ZERO).unwrap();
    assert!(port.driver().ring.iter().all(|p| p.transmit_checksum().is_none()));
    assert_eq!(port.counters().software_checksummed, 1);
}

#[test]
fn only_a_port_that_accepts_super_packets_delivers_them() {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).unwrap();
    for accept in [false, true] {
        let mut cache = pool.cache();
        let mut driver = loopback(64, Features::empty(), GsoKind::empty());
        driver.done.extend([super_packet(&mut cache), cache.copy_from_slice(&[1; 3]).unwrap()]);
        let builder = Port::builder(driver, pool.cache())
            .segmenter(Box::new(Chopper))
            .receive_offload(Box::new(Holder::default()));
        let mut port = if accept { builder.accept_super().build() } else { builder.build() };
        let mut burst = Burst::new();
        assert_eq!(port.receive(0, &mut burst, 64, Instant::ZERO), Ok(2));
        assert_eq!(burst.iter().any(Packet::is_super), accept);
        assert_eq!(burst.len(), if accept { 2 } else { 4 });
    }
}

#[test]
fn the_byte_queue_limit_holds_packets_in_the_qdisc() {
    let pool = PacketPool::new(PoolConfig::with_buffers(256)).unwrap();
    let mut cache = pool.cache();
    let mut port = Port::builder(loopback(128, Features::empty(), GsoKind::empty()), pool.cache()).build();
    let mut burst: Burst = (0..100).map(|_| cache.copy_from_slice(&[0; 1000]).unwrap()).collect();
    port.transmit(0, &mut burst, Instant::ZERO).unwrap();
    let in_ring = port.driver().ring.len();
    assert!(in_ring < 5, "{in_ring} packets in a ring whose limit starts at zero");
    let mut completions = Completions::new();
    for ms in 1..200 {
        port.reclaim(0, &mut completions, Instant::from_millis(ms)).unwrap();
    }
    assert_eq!(completions.len(), 100, "nothing is lost");
}

#[test]
fn a_throttled_qdisc_is_polled_when_it_said() {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).unwrap();
    let mut cache = pool.cache();
    let mut port = Port::builder(loopback(64, Features::empty(), GsoKind::empty()), pool.cache())
        .qdisc(Box::new(Pacer(Fifo::default(), Instant::ZERO)))
        .byte_queue_limits(false)
        .build();
    let mut burst: Burst = (0..3).map(|_| cache.copy_from_slice(&[0; 100]).unwrap()).collect();
    port.transmit(0, &mut burst, Instant::ZERO).unwrap();
    let mut sent = vec![port.driver().ring.len()];
    while let Some(at) = port.poll_at() {
        port.poll(at).unwrap();
        sent.push(port.driver().ring.len());
        if sent.len() > 10 {
            break;
        }
    }
    assert_eq!(sent[..3], [1, 2, 3]);
}

#[test]
fn ports_nest_and_stop_returns_every_buffer() {
    let pool = PacketPool::new(PoolConfig { buffers: 32, ..PoolConfig::with_buffers(32) }).unwrap();
    {
        let mut cache = pool.cache();
        let inner = Port::builder(loopback(4, Features::empty(), GsoKind::empty()), pool.cache()).build();
        let boxed: Box<dyn Driver> = Box::new(inner);
        let mut outer: Port = Port::builder(boxed, pool.cache()).byte_queue_limits(false).build();
        let mut burst: Burst = (0..20).map(|_| cache.copy_from_slice(&[0; 100]).unwrap()).collect();
        outer.transmit(0, &mut burst, Instant::ZERO).unwrap();
        outer.stop(Instant::ZERO).unwrap();
        assert!(matches!(
            outer.transmit(9, &mut burst, Instant::ZERO),
            Err(DriverError::NoSuchQueue { queue: 9, queues: 1 })
        ));
    }
    let mut cache = pool.cache();
    let mut all = Burst::new();
    assert_eq!(cache.get_burst(33, &mut all), 32, "every buffer is back");
}
