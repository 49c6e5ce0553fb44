//! Each trait can be written in a few lines, as an object, and does its job behind a `dyn`.

use netcore::driver::{Capabilities, Completions, DriverError, LinkState};
use netcore::offload::{GroEnd, GroHandler, GroHeader, GroMerge, GroNext, GroPair, GroView};
use netcore::{
    Burst, Dequeue, Driver, Drops, Fifo, Instant, Member, Packet, PacketPool, PoolCache, PoolConfig, Qdisc,
    QdiscStatistics, ReceiveChecksum, Statistics, XmitPolicy,
};

/// Loses everything, and counts it.
#[derive(Default)]
struct Null(Capabilities, u64);

impl Driver for Null {
    fn capabilities(&self) -> &Capabilities {
        &self.0
    }
    fn link(&self) -> LinkState {
        LinkState::up(10)
    }
    fn transmit(&mut self, _: u16, burst: &mut Burst, _: Instant) -> Result<usize, DriverError> {
        let n = burst.len();
        self.1 += n as u64;
        burst.clear();
        Ok(n)
    }
    fn receive(&mut self, _: u16, _: &mut Burst, _: usize, _: Instant) -> Result<usize, DriverError> {
        Ok(0)
    }
    fn reclaim(&mut self, _: u16, _: &mut Completions, _: Instant) -> Result<usize, DriverError> {
        Ok(0)
    }
    fn statistics(&self, statistics: &mut Statistics) {
        statistics.add("tx_dropped", self.1);
    }
}

/// The next active member each time.
#[derive(Default)]
struct RoundRobin(usize);

impl XmitPolicy for RoundRobin {
    fn select(&mut self, _: &Packet, members: &[Member]) -> Option<usize> {
        self.0 += 1;
        (0..members.len()).map(|i| (self.0 + i) % members.len()).find(|i| members[*i].active)
    }
    fn name(&self) -> &'static str {
        "round-robin"
    }
}

/// Last in, first out.
#[derive(Default)]
struct Lifo(Vec<Packet>);

impl Qdisc for Lifo {
    fn enqueue(&mut self, packet: Packet, _: Instant, _: &mut Drops) {
        self.0.push(packet);
    }
    fn dequeue(&mut self, _: Instant, _: &mut Drops) -> Dequeue {
        self.0.pop().map_or(Dequeue::Empty, Dequeue::Packet)
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn backlog(&self) -> usize {
        self.0.iter().map(Packet::len).sum()
    }
    fn statistics(&self) -> QdiscStatistics {
        QdiscStatistics::default()
    }
    fn name(&self) -> &'static str {
        "lifo"
    }
    fn reset(&mut self, _: &mut Drops) {
        self.0.clear();
    }
}

/// A protocol with a two-byte flow and a two-byte length.
struct Tiny;

impl GroHandler for Tiny {
    fn parse(&self, view: &GroView<'_>) -> Result<GroHeader, GroEnd> {
        let header: &[u8; 4] = view.bytes.first_chunk().ok_or(GroEnd::Malformed)?;
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if len == view.len { Ok(GroHeader { len: 4, next: GroNext::Payload }) } else { Err(GroEnd::Malformed) }
    }
    fn same_flow(&self, held: &[u8], new: &[u8]) -> bool {
        held[..2] == new[..2]
    }
    fn merge(&self, pair: &GroPair<'_>) -> GroMerge {
        match pair.new_payload.cmp(&pair.segment_size) {
            core::cmp::Ordering::Equal => GroMerge::Merge,
            core::cmp::Ordering::Less => GroMerge::MergeAndDeliver,
            core::cmp::Ordering::Greater => GroMerge::DeliverHeld(GroEnd::Longer),
        }
    }
    fn complete(&self, header: &mut [u8], len: usize, _: u16) {
        header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    }
    fn segment(&self, header: &mut [u8], len: usize, _: u16) {
        header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    }
}

fn cache() -> PoolCache {
    PacketPool::new(PoolConfig::with_buffers(8)).unwrap().cache()
}

#[test]
fn driver() {
    let mut driver: Box<dyn Driver> = Box::new(Null::default());
    let mut burst: Burst = [cache().copy_from_slice(b"x").unwrap()].into_iter().collect();
    assert_eq!(driver.transmit(0, &mut burst, Instant::ZERO), Ok(1));
    let mut statistics = Statistics::new();
    driver.statistics(&mut statistics);
    assert_eq!(statistics.get("tx_dropped"), Some(1));
    assert!(matches!(driver.set_mtu(9000), Err(DriverError::Unsupported { what: "MTU" })));
    assert!(driver.take_queue(0).is_err());
}

#[test]
fn xmit_policy() {
    let mut policy: Box<dyn XmitPolicy> = Box::new(RoundRobin::default());
    let member = |id, active| Member { id, active, link: LinkState::up(1000) };
    let members = [member(0, true), member(1, false), member(2, true)];
    let burst: Burst = (0..4).map(|_| cache().copy_from_slice(b"x").unwrap()).collect();
    let mut chosen = Vec::new();
    policy.select_burst(&burst, &members, &mut chosen);
    assert_eq!(chosen, [Some(2), Some(2), Some(0), Some(2)]);
    assert_eq!(policy.select(burst.front().unwrap(), &[member(0, false)]), None);
}

#[test]
fn qdisc() {
    let mut cache = cache();
    for (mut qdisc, first) in [(Box::new(Lifo::default()) as Box<dyn Qdisc>, 1), (Box::new(Fifo::default()), 0)] {
        let mut drops = Drops::new();
        for byte in 0..2 {
            qdisc.enqueue(cache.copy_from_slice(&[byte]).unwrap(), Instant::ZERO, &mut drops);
        }
        let mut burst = Burst::new();
        let stopped = qdisc.dequeue_burst(&mut burst, 8, Instant::ZERO, &mut drops);
        assert!(matches!(stopped, Some(Dequeue::Empty)));
        assert_eq!((burst.len(), burst.front().unwrap().head()[0]), (2, first));
        assert!(qdisc.change(&["nonsense"], Instant::ZERO, &mut drops).is_err());
    }
}

#[test]
fn gro_handler() {
    let handler: Box<dyn GroHandler> = Box::new(Tiny);
    let view = |bytes| GroView { bytes, len: bytes.len(), checksum: ReceiveChecksum::None, encapsulated: false };
    assert_eq!(handler.parse(&view(b"ab\0\x06xy")), Ok(GroHeader { len: 4, next: GroNext::Payload }));
    assert_eq!(handler.parse(&view(b"ab\0\x07xy")), Err(GroEnd::Malformed));
    assert!(handler.same_flow(b"ab\0\x06", b"ab\0\x05") && !handler.same_flow(b"ab", b"ac"));
    let pair =
        |new_payload| GroPair { held: b"ab", new: b"ab", held_payload: 2, segment_size: 2, new_payload, segments: 1 };
    assert_eq!(handler.merge(&pair(2)), GroMerge::Merge);
    assert_eq!(handler.merge(&pair(1)), GroMerge::MergeAndDeliver);
    let mut header = *b"ab\0\x06";
    handler.complete(&mut header, 8, 2);
    assert_eq!(&header, b"ab\0\x08");
}
