//! Tracer, fault injector and capture tap around a device that gives back what was sent.

use core::time::Duration;
use netcore::checksum::{Sum, sum};
use netcore::dissect::{ChecksumVerdict, TunnelPorts, dissect};
use netcore::driver::{Completion, Completions, Driver, DriverError, LinkState, Refusal, Statistics};
use netcore::packet::{Gso, GsoKind, PartialChecksum, VlanTag};
use netcore::{Burst, Capabilities, Features, Instant, Packet, PacketPool, PoolCache, PoolConfig, ReceiveChecksum};
use netcore_drivers::middleware::{CaptureTap, Chance, Direction, FaultConfig, FaultInjector, Faults, Trace, Tracer};
use netcore_drivers::pcap::{CaptureReader, Format, Precision};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Receives what it transmits. Takes as many packets at once as it has room for.
struct Loop {
    capabilities: Capabilities,
    room: usize,
    ring: VecDeque<Packet>,
    completions: Vec<Completion>,
}

impl Loop {
    fn new(room: usize) -> Self {
        let mut capabilities = Capabilities::default();
        capabilities.features = Features::TSO | Features::TX_CHECKSUM_GENERIC | Features::TX_VLAN;
        capabilities.gso = GsoKind::TCPV4;
        Self { capabilities, room, ring: VecDeque::new(), completions: Vec::new() }
    }
}

impl Driver for Loop {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn link(&self) -> LinkState {
        LinkState::up(1000)
    }
    fn transmit(&mut self, queue: u16, burst: &mut Burst, _now: Instant) -> Result<usize, DriverError> {
        if queue > 0 {
            return Err(DriverError::NoSuchQueue { queue, queues: 1 });
        }
        let mut sent = 0;
        while self.ring.len() < self.room {
            if let Some(front) = burst.front().filter(|front| front.len() > 9000 && !front.is_super()) {
                let reason = Refusal::TooLong { len: front.len(), max: 9000 };
                return Err(DriverError::Refused { reason });
            }
            let Some(mut packet) = burst.pop() else { break };
            self.completions.push(Completion {
                flow_id: packet.flow_id(),
                truesize: packet.truesize() as u32,
                bytes: packet.len() as u32,
            });
            packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: 1 });
            self.ring.push_back(packet);
            sent += 1;
        }
        Ok(sent)
    }
    fn receive(&mut self, _queue: u16, burst: &mut Burst, budget: usize, _now: Instant) -> Result<usize, DriverError> {
        let n = self.ring.len().min(budget);
        burst.extend(self.ring.drain(..n));
        Ok(n)
    }
    fn reclaim(&mut self, _queue: u16, completions: &mut Completions, _now: Instant) -> Result<usize, DriverError> {
        let n = self.completions.len();
        self.completions.drain(..).for_each(|completion| completions.push(completion));
        Ok(n)
    }
    fn statistics(&self, statistics: &mut Statistics) {
        statistics.add("tx_packets", 0);
    }
}

/// A TCP segment whose sequence number is `n`, of 40 bytes, with right checksums.
fn frame(n: u32) -> Vec<u8> {
    let mut tcp = vec![0x12, 0x34, 0x13, 0x89];
    tcp.extend(n.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    tcp.extend([7; 40]);
    let pseudo = Sum::pseudo_ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, tcp.len() as u32);
    let checksum = pseudo.plus(sum(&tcp)).finish();
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    let mut ip = vec![0x45, 0, 0, 80, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let checksum = sum(&ip).finish();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &ip, &tcp].concat()
}

fn number(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.to_vec()[38..42].try_into().unwrap())
}

fn pool() -> PacketPool {
    PacketPool::new(PoolConfig::with_buffers(8192)).unwrap()
}

fn packets(cache: &mut PoolCache, numbers: impl IntoIterator<Item = u32>) -> Burst {
    let with_flow = |n| {
        let mut packet = cache.copy_from_slice(&frame(n)).unwrap();
        packet.set_flow_id(Some(u64::from(n)));
        packet
    };
    numbers.into_iter().map(with_flow).collect()
}

fn transmit_faults(change: impl FnOnce(&mut Faults)) -> FaultConfig {
    let mut config = FaultConfig::default();
    config.seed = 7;
    change(&mut config.transmit);
    config
}

/// Sends 1000 packets, lets a second pass, and gives what arrives and what was completed.
fn run(config: FaultConfig) -> (Vec<Packet>, Vec<u64>, Statistics) {
    let pool = pool();
    let mut driver = FaultInjector::new(Loop::new(usize::MAX), &pool, config).unwrap();
    let mut burst = packets(&mut pool.cache(), 0..1000);
    let mut got = Burst::new();
    let mut now = Instant::ZERO;
    while !burst.is_empty() {
        driver.transmit(0, &mut burst, now).unwrap();
        driver.receive(0, &mut got, 64, now).unwrap();
        now += Duration::from_micros(10);
    }
    while let Some(at) = driver.poll_at() {
        now = now.max(at);
        driver.poll(now).unwrap();
        driver.receive(0, &mut got, 64, now).unwrap();
    }
    while driver.receive(0, &mut got, 64, now).unwrap() > 0 {}
    let mut completions = Completions::new();
    driver.reclaim(0, &mut completions, now).unwrap();
    let completed = completions.as_slice().iter().filter_map(|completion| completion.flow_id).collect();
    let mut statistics = Statistics::new();
    driver.statistics(&mut statistics);
    (got.drain().collect(), completed, statistics)
}

fn numbers(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(number).collect()
}

#[test]
fn without_faults_everything_passes_in_order() {
    let (got, completed, _) = run(FaultConfig::default());
    assert_eq!(numbers(&got), (0..1000).collect::<Vec<_>>());
    assert_eq!(completed, (0..1000).collect::<Vec<_>>());
}

#[test]
fn lost_packets_are_counted_and_completed_and_the_rest_is_in_order() {
    for direction in [Direction::Transmit, Direction::Receive] {
        let mut config = FaultConfig::default();
        let name = match direction {
            Direction::Transmit => {
                config.transmit.drop = Chance::percent(20);
                "fault_tx_drop"
            }
            Direction::Receive => {
                config.receive.drop = Chance::percent(20);
                "fault_rx_drop"
            }
        };
        let (got, completed, statistics) = run(config);
        let lost = statistics.get(name).unwrap();
        assert!((150..250).contains(&lost), "{lost}");
        assert_eq!(got.len() as u64 + lost, 1000);
        assert!(numbers(&got).is_sorted());
        assert_eq!(completed.len(), 1000, "every sender hears of its packet");
    }
}

#[test]
fn copies_follow_their_packet_and_are_not_completed() {
    let (got, completed, statistics) = run(transmit_faults(|faults| faults.duplicate = Chance::percent(10)));
    let copies = statistics.get("fault_tx_duplicate").unwrap();
    assert!((60..140).contains(&copies), "{copies}");
    assert_eq!(got.len() as u64, 1000 + copies);
    let mut once = numbers(&got);
    assert!(once.is_sorted());
    once.dedup();
    assert_eq!(once.len(), 1000);
    assert_eq!(completed, (0..1000).collect::<Vec<_>>());
}

#[test]
fn reordered_packets_are_overtaken_by_no_more_than_the_gap() {
    let (got, completed, statistics) = run(transmit_faults(|faults| {
        faults.reorder = Chance::percent(5);
        faults.reorder_gap = 3;
    }));
    let got = numbers(&got);
    let reordered = statistics.get("fault_tx_reorder").unwrap();
    assert!((25..80).contains(&reordered), "{reordered}");
    assert_eq!((got.len(), completed.len()), (1000, 1000));
    let late = got.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(late > 10, "{late}");
    for (at, n) in got.iter().enumerate() {
        let overtaken_by = got[..at].iter().filter(|before| *before > n).count();
        assert!(overtaken_by <= 3 + 3, "{n} was overtaken by {overtaken_by}");
    }
    let mut sorted = got.clone();
    sorted.sort();
    assert!(sorted.into_iter().eq(0..1000));
}

#[test]
fn delayed_packets_arrive_after_their_time_by_poll_alone() {
    let pool = pool();
    let config = transmit_faults(|faults| {
        faults.delay = Chance::ALWAYS;
        faults.delay_min = Duration::from_millis(5);
        faults.delay_max = Duration::from_millis(7);
    });
    let mut driver = FaultInjector::new(Loop::new(usize::MAX), &pool, config).unwrap();
    let mut burst = packets(&mut pool.cache(), 0..50);
    driver.transmit(0, &mut burst, Instant::ZERO).unwrap();
    assert!(burst.is_empty());
    let mut got = Burst::new();
    let mut last = Instant::ZERO;
    while let Some(at) = driver.poll_at() {
        assert!(at >= last && at >= Instant::ZERO + Duration::from_millis(5));
        assert!(at <= Instant::ZERO + Duration::from_millis(7));
        driver.poll(at).unwrap();
        assert!(driver.receive(0, &mut got, 64, at).unwrap() > 0);
        last = at;
    }
    assert_eq!(got.len(), 50);
}

#[test]
fn damaged_packets_have_one_wrong_bit_and_nobody_vouches_for_them() {
    let (got, _, statistics) = run({
        let mut config = FaultConfig::default();
        config.receive.corrupt = Chance::percent(10);
        config
    });
    let mut damaged = 0;
    for packet in &got {
        let bytes = packet.to_vec();
        let clean = packet.receive_checksum() != ReceiveChecksum::None;
        let checks = dissect(&bytes, &TunnelPorts::none()).outer_checksums(&bytes, bytes.len());
        let good = checks.is_some_and(|checks| {
            checks.header == Some(ChecksumVerdict::Good) && checks.upper == Some(ChecksumVerdict::Good)
        });
        assert!(good || !clean);
        damaged += u64::from(!clean);
    }
    assert_eq!(statistics.get("fault_rx_corrupt"), Some(damaged));
    assert!((60..140).contains(&damaged), "{damaged}");
    let wrong = |packet: &Packet| {
        let mut right = frame(number(packet));
        right.iter_mut().zip(packet.to_vec()).map(|(a, b)| (*a ^ b).count_ones()).sum::<u32>()
    };
    let in_payload = got.iter().filter(|p| p.receive_checksum() == ReceiveChecksum::None && wrong(p) == 1).count();
    assert!(in_payload > 30, "most damage is not in the sequence number, by which the original is found");
}

#[test]
fn the_same_seed_gives_the_same_faults_and_another_gives_others() {
    let config = |seed| {
        let mut config = transmit_faults(|faults| {
            faults.drop = Chance::percent(5);
            faults.duplicate = Chance::percent(5);
            faults.reorder = Chance::percent(5);
            faults.corrupt = Chance::percent(5);
            faults.delay = Chance::percent(5);
        });
        config.seed = seed;
        config
    };
    let bytes = |seed| run(config(seed)).0.iter().map(Packet::to_vec).collect::<Vec<_>>();
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn a_device_without_room_leaves_packets_with_the_caller_and_loses_none() {
    let pool = pool();
    for config in [
        transmit_faults(|faults| faults.drop = Chance::percent(10)),
        transmit_faults(|faults| faults.duplicate = Chance::percent(30)),
    ] {
        let mut driver = FaultInjector::new(Loop::new(4), &pool, config).unwrap();
        let mut burst = packets(&mut pool.cache(), 0..100);
        let mut got = Burst::new();
        let mut taken = 0;
        while taken < 100 {
            let n = driver.transmit(0, &mut burst, Instant::ZERO).unwrap();
            taken += n;
            assert_eq!(taken + burst.len(), 100);
            driver.receive(0, &mut got, 4, Instant::ZERO).unwrap();
        }
        for _ in 0..100 {
            driver.poll(Instant::ZERO).unwrap();
            driver.receive(0, &mut got, 4, Instant::ZERO).unwrap();
        }
        let counters = driver.counters(Direction::Transmit);
        let count = |name| counters.get(name).unwrap() as usize;
        assert_eq!(got.len(), 100 - count("fault_tx_drop") + count("fault_tx_duplicate"));
        let mut completions = Completions::new();
        assert_eq!(driver.reclaim(0, &mut completions, Instant::ZERO).unwrap(), 100);
        assert_eq!(completions.len(), 100);
    }
}

#[test]
fn offloads_are_hidden_while_packets_can_be_damaged() {
    let pool = pool();
    let mut cache = pool.cache();
    let config = transmit_faults(|faults| faults.corrupt = Chance::percent(1));
    let mut driver = FaultInjector::new(Loop::new(10), &pool, config).unwrap();
    assert!(!driver.capabilities().features.contains(Features::TSO));
    let mut burst = Burst::new();
    let mut packet = cache.copy_from_slice(&frame(1)).unwrap();
    packet.set_transmit_checksum(Some(PartialChecksum { start: 34, offset: 16 }));
    burst.push(packet);
    let refused = driver.transmit(0, &mut burst, Instant::ZERO);
    assert_eq!(refused, Err(DriverError::Refused { reason: Refusal::Checksum }));
    assert_eq!(burst.len(), 1);
    driver.set_config(FaultConfig::default()).unwrap();
    assert!(driver.capabilities().features.contains(Features::TSO));
    assert_eq!(driver.transmit(0, &mut burst, Instant::ZERO), Ok(1));
    let no_gap = transmit_faults(|faults| faults.reorder_gap = 0);
    assert!(driver.set_config(no_gap).is_err());
}

#[test]
fn what_is_held_back_at_a_stop_is_counted_and_completed() {
    let pool = pool();
    let config = transmit_faults(|faults| faults.delay = Chance::ALWAYS);
    let mut driver = FaultInjector::new(Loop::new(10), &pool, config).unwrap();
    let mut burst = packets(&mut pool.cache(), 0..5);
    assert_eq!(driver.transmit(0, &mut burst, Instant::ZERO), Ok(5));
    driver.stop(Instant::ZERO).unwrap();
    assert_eq!(driver.counters(Direction::Transmit).get("fault_tx_lost"), Some(5));
    let mut completions = Completions::new();
    assert_eq!(driver.reclaim(0, &mut completions, Instant::ZERO), Ok(5));
    assert_eq!(driver.poll_at(), None);
}

#[test]
fn the_tracer_says_what_was_taken_and_what_was_delivered() {
    let pool = pool();
    let mut cache = pool.cache();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let mut driver = Tracer::new(Loop::new(2), move |trace: &Trace| sink.lock().unwrap().push(trace.to_string()));
    let mut burst = packets(&mut cache, 0..3);
    let mut arp = cache.copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 0]).unwrap();
    arp.set_vlan(Some(VlanTag { tpid: 0x8100, tci: 0x6005 }));
    burst.push(arp);
    let now = Instant::from_nanos(1_500_000_001);
    assert_eq!(driver.transmit(0, &mut burst, now), Ok(2));
    assert_eq!(burst.len(), 2);
    let mut got = Burst::new();
    driver.receive(0, &mut got, 1, now).unwrap();
    driver.receive(0, &mut got, 1, now).unwrap();
    burst.pop();
    driver.transmit_control(&mut burst, now).unwrap();
    let lines = lines.lock().unwrap();
    let segment = |n: u32| format!("94 TCP 192.0.2.1:4660 > 192.0.2.2:5001 [P.] seq {n} ack 1 len 40");
    assert_eq!(
        *lines,
        [
            format!("1.500000001 tx 0 {}", segment(0)),
            format!("1.500000001 tx 0 {}", segment(1)),
            format!("1.500000001 rx 0 {}", segment(0)),
            format!("1.500000001 rx 0 {}", segment(1)),
            "1.500000001 tx 0 16 ARP len 2 tag 5 prio 3".into(),
        ]
    );
    assert_eq!(driver.into_inner().ring.len(), 1);
}

#[test]
fn the_tap_writes_frames_as_they_are_on_the_wire() {
    let pool = pool();
    let mut cache = pool.cache();
    let format = Format::Pcap(Precision::Nanos);
    let mut driver = CaptureTap::new(Loop::new(2), Vec::new(), format).unwrap();
    // A checksum that is left to the device, and a tag beside the bytes.
    let mut bytes = frame(9);
    let pseudo = Sum::pseudo_ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, 60).fold();
    bytes[50..52].copy_from_slice(&pseudo.to_be_bytes());
    let mut packet = cache.copy_from_slice(&bytes).unwrap();
    packet.set_transmit_checksum(Some(PartialChecksum { start: 34, offset: 16 }));
    packet.set_vlan(Some(VlanTag { tpid: 0x8100, tci: 5 }));
    let mut burst = Burst::new();
    burst.push(packet);
    let mut large = cache.copy_from_slice(&frame(10)).unwrap();
    large.set_gso(Some(Gso { kind: GsoKind::TCPV4, size: 20, segments: 2 }));
    burst.push(large);
    burst.push(cache.copy_from_slice(&frame(11)).unwrap());
    let now = Instant::from_nanos(5_000_000_007);
    assert_eq!(driver.transmit(0, &mut burst, now), Ok(2));
    let mut got = Burst::new();
    driver.inner_mut().ring.pop_front();
    driver.receive(0, &mut got, 9, now + Duration::from_nanos(1)).unwrap();
    let mut statistics = Statistics::new();
    driver.statistics(&mut statistics);
    assert_eq!((statistics.get("tap_written"), statistics.get("tap_not_written")), (Some(3), Some(0)));
    let (_, file) = driver.finish().unwrap();
    let mut reader = CaptureReader::new(file.as_slice()).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        records.push((record.timestamp.unwrap().as_nanos(), record.bytes.to_vec()));
    }
    let right = frame(9);
    let tagged = [&right[..12], &[0x81, 0, 0, 5], &right[12..]].concat();
    assert_eq!(records[0], (5_000_000_007, tagged));
    assert_eq!(records[1], (5_000_000_007, frame(10)));
    assert_eq!(records[2], (5_000_000_008, frame(10)));
    assert_eq!(records.len(), 3, "what the device did not take is not written");
}

/// A stream with room for so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_stops_the_capture_and_not_the_traffic() {
    let pool = pool();
    let mut driver = CaptureTap::new(Loop::new(9), Full(200), Format::Pcapng).unwrap();
    let mut burst = packets(&mut pool.cache(), 0..5);
    assert_eq!(driver.transmit(0, &mut burst, Instant::ZERO), Ok(5));
    assert_eq!(driver.error().map(std::io::Error::kind), Some(std::io::ErrorKind::StorageFull));
    let mut statistics = Statistics::new();
    driver.statistics(&mut statistics);
    assert_eq!((driver.records(), statistics.get("tap_not_written")), (1, Some(4)));
    assert!(driver.finish().is_err());
}

#[test]
fn wrappers_nest_and_pass_on_what_is_not_theirs() {
    let pool = pool();
    let tap = CaptureTap::new(Loop::new(9), Vec::new(), Format::Pcapng).unwrap();
    let faults = FaultInjector::new(tap, &pool, FaultConfig::default()).unwrap();
    let mut driver: Box<dyn Driver> = Box::new(Tracer::new(faults, |_: &Trace| {}));
    assert_eq!(driver.link(), LinkState::up(1000));
    assert_eq!(driver.set_mtu(9000), Err(DriverError::Unsupported { what: "MTU" }));
    assert!(matches!(driver.take_queue(0), Err(DriverError::Unsupported { .. })));
    let mut burst = packets(&mut pool.cache(), 0..2);
    assert_eq!(driver.transmit(0, &mut burst, Instant::ZERO), Ok(2));
    let mut statistics = Statistics::new();
    driver.statistics(&mut statistics);
    assert_eq!(statistics.get("tap_written"), Some(2));
    assert_eq!(driver.transmit(3, &mut burst, Instant::ZERO), Err(DriverError::NoSuchQueue { queue: 3, queues: 1 }));
}
