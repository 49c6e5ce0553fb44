//! What the igb driver does when things go wrong, and two of them back to back, on the model of the 82576.

mod list;

use core::time::Duration;
use list::frames::{number, numbered};
use list::model::ModelPeer;
use list::{Expect, MAC, PEER};
use netcore::driver::Duplex;
use netcore::{Burst, Completions, Driver, DriverError, Instant, MacAddress, PoolConfig};
use netcore_drivers::igb::Igb;
use netcore_drivers::model::e82576::E82576;
use netcore_drivers::model::{Bench, Port, WireConfig};
use netcore_drivers::nic::{Advertise, FlowControl, LinkSettings, Nic, NicConfig, packet_pool};
use netcore_drivers::{Bus, NicError};
use netcore_offload::SoftwareSegmenter;

struct Fixture {
    bench: Bench,
    port: Port,
}

impl Fixture {
    fn new() -> (Self, Box<dyn Bus>) {
        let bench = Bench::new();
        let (port, bus) = bench.add(Box::new(E82576::new()), MAC);
        (Self { bench, port }, Box::new(bus))
    }

    fn driver(adjust: impl FnOnce(&mut NicConfig)) -> (Self, list::Bench<Igb>) {
        let (fixture, bus) = Self::new();
        let peer = Box::new(ModelPeer { bench: fixture.bench.clone(), port: fixture.port });
        let probe = |bus| Igb::probe(bus).expect("one of the family");
        let mut driver = list::Bench::new(bus, peer, probe, Expect::model("82576"), adjust);
        driver.up();
        (fixture, driver)
    }

    /// Polls until `span` has passed.
    fn run(&self, driver: &mut list::Bench<Igb>, span: Duration) {
        let end = self.bench.now() + span;
        while self.bench.now() < end {
            self.bench.advance(Duration::from_millis(50));
            driver.nic.poll(self.bench.now()).expect("poll");
        }
    }
}

#[test]
fn a_damaged_nvm_is_refused_at_probe() {
    let (fixture, bus) = Fixture::new();
    fixture.bench.faults(fixture.port, |faults| faults.nvm_damaged = true);
    assert!(matches!(Igb::probe(bus), Err(NicError::NvmChecksum { .. })));
}

#[test]
fn a_missing_nvm_is_refused_at_probe() {
    let (fixture, bus) = Fixture::new();
    fixture.bench.faults(fixture.port, |faults| faults.nvm_absent = true);
    assert_eq!(Igb::probe(bus).err(), Some(NicError::NvmAbsent));
}

#[test]
fn a_phy_that_does_not_answer_is_an_error_at_start_and_leaves_no_buffer_behind() {
    let (fixture, bus) = Fixture::new();
    let peer = Box::new(ModelPeer { bench: fixture.bench.clone(), port: fixture.port });
    let probe = |bus| Igb::probe(bus).expect("one of the family");
    let mut driver = list::Bench::new(bus, peer, probe, Expect::model("82576"), |_| {});
    fixture.bench.faults(fixture.port, |faults| faults.phy_absent = true);
    assert!(driver.nic.start(fixture.bench.now()).is_err());
    driver.assert_all_back();
    fixture.bench.faults(fixture.port, |faults| faults.phy_absent = false);
    driver.up();
    driver.down();
    driver.assert_no_violations();
}

#[test]
fn a_transmit_hang_is_found_and_cured_by_a_restart() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    fixture.bench.faults(fixture.port, |faults| faults.transmit_hang = true);
    let packet = driver.packet(&numbered(PEER, MAC, 100, 1));
    let mut burst: Burst = [packet].into_iter().collect();
    assert_eq!(driver.nic.transmit(0, &mut burst, fixture.bench.now()), Ok(1));
    fixture.run(&mut driver, Duration::from_millis(1500));
    assert_eq!(driver.statistics().get("tx_timeout_count"), Some(0), "not yet");
    fixture.run(&mut driver, Duration::from_secs(3));
    fixture.bench.faults(fixture.port, |faults| faults.transmit_hang = false);
    let statistics = driver.statistics();
    assert!(statistics.get("tx_timeout_count") >= Some(1), "{statistics}");
    assert_eq!(statistics.get("tx_aborted_errors"), Some(1));
    fixture.run(&mut driver, Duration::from_secs(5));
    let packets = vec![driver.packet(&numbered(PEER, MAC, 100, 2))];
    let seen = driver.transmit(packets, 1);
    assert_eq!(number(&seen[0]), 2);
}

#[test]
fn completions_wait_for_a_late_write_back() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    let late = Duration::from_millis(300);
    fixture.bench.faults(fixture.port, |faults| faults.late_write_back = Some(late));
    let packets = (0..4).map(|n| driver.packet(&numbered(PEER, MAC, 100, n))).collect();
    driver.transmit(packets, 4);
    let mut completions = Completions::new();
    assert_eq!(driver.nic.reclaim(0, &mut completions, fixture.bench.now()), Ok(0));
    fixture.bench.advance(late);
    assert_eq!(driver.nic.reclaim(0, &mut completions, fixture.bench.now()), Ok(4));
    driver.assert_no_violations();
}

#[test]
fn a_dma_error_is_cured_by_a_restart() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    fixture.bench.faults(fixture.port, |faults| faults.dma_error = true);
    let packet = driver.packet(&numbered(PEER, MAC, 100, 1));
    let mut burst: Burst = [packet].into_iter().collect();
    driver.nic.transmit(0, &mut burst, fixture.bench.now()).expect("queued");
    fixture.bench.advance(Duration::from_millis(10));
    fixture.bench.faults(fixture.port, |faults| faults.dma_error = false);
    fixture.run(&mut driver, Duration::from_secs(8));
    assert_eq!(driver.statistics().get("tx_timeout_count"), Some(1));
    let packets = vec![driver.packet(&numbered(PEER, MAC, 100, 2))];
    driver.transmit(packets, 1);
    driver.down();
}

#[test]
fn a_flapping_link_loses_no_buffer_and_is_counted() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    for n in 0..5 {
        fixture.bench.partner(fixture.port, |partner| partner.present = false);
        fixture.run(&mut driver, Duration::from_millis(300));
        assert!(!driver.nic.link().up);
        let packet = driver.packet(&numbered(PEER, MAC, 100, n));
        let mut burst: Burst = [packet].into_iter().collect();
        driver.nic.transmit(0, &mut burst, fixture.bench.now()).expect("queued while down");
        fixture.bench.partner(fixture.port, |partner| partner.present = true);
        driver.wait_link(true);
    }
    let statistics = driver.statistics();
    assert_eq!(statistics.get("link_changes"), Some(11), "up once, then five times down and up");
    driver.assert_no_violations();
    driver.down();
}

#[test]
fn speed_and_duplex_follow_the_partner() {
    for (offer, gigabit, speed, duplex) in [
        (0x05e1, true, 1000, Duplex::Full),
        (0x05e1, false, 100, Duplex::Full),
        (0x00a1, false, 100, Duplex::Half),
        (0x0061, false, 10, Duplex::Full),
        (0x0021, false, 10, Duplex::Half),
    ] {
        let (fixture, bus) = Fixture::new();
        fixture.bench.partner(fixture.port, |partner| {
            partner.offer = offer;
            partner.gigabit = gigabit;
        });
        let peer = Box::new(ModelPeer { bench: fixture.bench.clone(), port: fixture.port });
        let probe = |bus| Igb::probe(bus).expect("one of the family");
        let mut driver = list::Bench::new(bus, peer, probe, Expect::model("82576"), |_| {});
        driver.up();
        let link = driver.nic.link();
        assert_eq!((link.speed_mbps, link.duplex), (Some(speed), duplex), "{offer:#x}");
        let packets = vec![driver.packet(&numbered(PEER, MAC, 1000, 1))];
        driver.transmit(packets, 1);
        driver.assert_no_violations();
    }
}

#[test]
fn a_forced_speed_meets_a_partner_that_is_forced_too() {
    for (speed, duplex) in [(10, Duplex::Half), (10, Duplex::Full), (100, Duplex::Half), (100, Duplex::Full)] {
        let (fixture, bus) = Fixture::new();
        fixture.bench.partner(fixture.port, |partner| {
            partner.negotiates = false;
            partner.speed_mbps = speed;
            partner.duplex = duplex;
        });
        let peer = Box::new(ModelPeer { bench: fixture.bench.clone(), port: fixture.port });
        let probe = |bus| Igb::probe(bus).expect("one of the family");
        let forced = LinkSettings::Forced { speed_mbps: speed, duplex };
        let mut driver = list::Bench::new(bus, peer, probe, Expect::model("82576"), |config| config.link = forced);
        driver.up();
        let link = driver.nic.link();
        assert_eq!((link.speed_mbps, link.duplex), (Some(speed), duplex));
        driver.assert_no_violations();
    }
    let (fixture, bus) = Fixture::new();
    let peer = Box::new(ModelPeer { bench: fixture.bench.clone(), port: fixture.port });
    let probe = |bus| Igb::probe(bus).expect("one of the family");
    let forced = LinkSettings::Forced { speed_mbps: 1000, duplex: Duplex::Full };
    let mut driver = list::Bench::new(bus, peer, probe, Expect::model("82576"), |config| config.link = forced);
    assert!(matches!(driver.nic.start(Instant::ZERO), Err(DriverError::OutOfRange { value: 1000, .. })));
}

#[test]
fn pause_is_resolved_and_obeyed() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    assert_eq!(driver.nic.hardware().flow_control(), FlowControl::Full, "the partner offers symmetric pause");
    let mut pause = vec![0; 60];
    pause[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 1]);
    pause[12..18].copy_from_slice(&[0x88, 8, 0, 1, 0xff, 0xff]);
    driver.peer.send(&pause);
    let packet = driver.packet(&numbered(PEER, MAC, 100, 1));
    let mut burst: Burst = [packet].into_iter().collect();
    driver.nic.transmit(0, &mut burst, fixture.bench.now()).expect("queued");
    fixture.bench.advance(Duration::from_millis(30));
    assert!(driver.peer.take().is_empty(), "65535 quanta of 512 bits are 33.5 ms");
    fixture.bench.advance(Duration::from_millis(5));
    assert_eq!(driver.peer.take().len(), 1);
    assert_eq!(driver.statistics().get("rx_flow_control_xoff"), Some(1));

    let (_, driver) = Fixture::driver(|config| config.flow_control = FlowControl::None);
    assert_eq!(driver.nic.hardware().flow_control(), FlowControl::None);
    let only_100 = Advertise { full_1000: false, ..Advertise::default() };
    let (_, driver) = Fixture::driver(|config| config.link = LinkSettings::Negotiate(only_100));
    assert_eq!(driver.nic.link().speed_mbps, Some(100));
}

#[test]
fn a_new_mtu_takes_effect_while_running() {
    let (_, mut driver) = Fixture::driver(|_| {});
    driver.nic.set_mtu(9000).expect("within limits");
    driver.wait_link(true);
    let frame = numbered(PEER, MAC, 9014, 1);
    let packets = vec![driver.packet(&frame)];
    assert!(driver.transmit(packets, 1) == [frame]);
    driver.peer.send(&numbered(MAC, PEER, 9014, 2));
    assert_eq!(driver.receive(1)[0].len(), 9014);
    assert!(matches!(driver.nic.set_mtu(20_000), Err(DriverError::OutOfRange { value: 20_000, .. })));
    driver.assert_no_violations();
}

#[test]
fn registers_and_nvm_test_themselves_and_frames_return_through_the_loop() {
    use netcore_drivers::nic::Hardware;
    let (fixture, mut driver) = Fixture::driver(|_| {});
    driver.nic.hardware_mut().set_loopback(true).expect("copper has it");
    fixture.bench.advance(Duration::from_secs(3));
    let packet = driver.packet(&numbered(MAC, MAC, 500, 77));
    let mut burst: Burst = [packet].into_iter().collect();
    driver.nic.transmit(0, &mut burst, fixture.bench.now()).expect("queued");
    assert_eq!(number(&driver.receive(1)[0].to_vec()), 77);
    assert!(driver.peer.take().is_empty(), "nothing leaves");
    driver.nic.hardware_mut().set_loopback(false).expect("copper has it");
    driver.down();
    driver.nic.hardware_mut().test_nvm().expect("a whole NVM");
    driver.nic.hardware_mut().test_registers().expect("registers hold");
    driver.assert_no_violations();
}

#[test]
fn two_drivers_on_one_wire_exchange_a_hundred_thousand_frames_at_line_rate() {
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    let bench = Bench::new();
    let mut nics = Vec::new();
    let mut ports = Vec::new();
    for mac in [MAC, OTHER] {
        let (port, mut bus) = bench.add(Box::new(E82576::new()), mac);
        ports.push(port);
        let pool = packet_pool(&mut bus, PoolConfig::with_buffers(2048)).expect("memory");
        let config = NicConfig::new(pool.clone());
        let hardware = Igb::probe(Box::new(bus)).expect("one of the family");
        nics.push((Nic::new(hardware, config).expect("within limits"), pool.cache()));
    }
    bench.connect(ports[0], ports[1], WireConfig::default());
    for (nic, _) in &mut nics {
        nic.start(bench.now()).expect("start");
    }
    while nics.iter().any(|(nic, _)| !nic.link().up) {
        bench.advance(Duration::from_millis(100));
        for (nic, _) in &mut nics {
            nic.poll(bench.now()).expect("poll");
        }
    }
    let start = bench.now();
    const FRAMES: u32 = 50_000;
    let mut sent = [0; 2];
    let mut received = [0; 2];
    let mut completions = Completions::new();
    let mut burst = Burst::new();
    while received != [FRAMES; 2] {
        for side in 0..2 {
            let (nic, cache) = &mut nics[side];
            let (to, from) = if side == 0 { (OTHER, MAC) } else { (MAC, OTHER) };
            while sent[side] < FRAMES && burst.len() < 32 {
                burst.push(cache.copy_from_slice(&numbered(to, from, 200, sent[side])).expect("a buffer"));
                sent[side] += 1;
            }
            nic.transmit(0, &mut burst, bench.now()).expect("transmit");
            sent[side] -= burst.len() as u32;
            cache.put_burst(&mut burst);
            nic.reclaim(0, &mut completions, bench.now()).expect("reclaim");
            completions.clear();
            nic.receive(0, &mut burst, 64, bench.now()).expect("receive");
            for packet in burst.drain() {
                assert_eq!(number(packet.head()), received[side]);
                received[side] += 1;
            }
        }
        bench.advance(Duration::from_micros(20));
        assert!(bench.now() - start < Duration::from_secs(2), "{received:?} of {FRAMES}");
    }
    // 224 bytes on the line each: 1792 ns at 1 Gbit/s.
    let nanos = (bench.now() - start).as_nanos() as u64;
    let line = u64::from(FRAMES) * 1792;
    assert!(nanos >= line && nanos < line + line / 50, "{nanos} ns, the line needs {line}");
    for port in ports {
        assert_eq!(bench.take_violations(port), []);
    }
}

#[test]
fn firmware_that_holds_the_semaphores_is_an_error_within_a_bound() {
    let (fixture, bus) = Fixture::new();
    fixture.bench.faults(fixture.port, |faults| faults.semaphore_held = true);
    let start = fixture.bench.now();
    assert!(matches!(Igb::probe(bus).err(), Some(NicError::Semaphore { .. })));
    assert!(fixture.bench.now() - start < Duration::from_secs(2));
    assert_eq!(fixture.bench.take_violations(fixture.port), []);
}

#[test]
fn a_semaphore_that_a_crashed_driver_left_is_taken_away_once() {
    let (fixture, mut bus) = Fixture::new();
    netcore_drivers::bus::pci::enable(&mut *bus).expect("configuration space");
    // The read takes it, and nobody gives it back.
    bus.map_bar(0).expect("registers").read(0x5b50);
    assert!(Igb::probe(bus).is_ok());
    assert_eq!(fixture.bench.take_violations(fixture.port), []);
}

#[test]
fn a_bus_master_that_does_not_stop_gets_a_second_reset() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    fixture.bench.faults(fixture.port, |faults| faults.master_stuck = true);
    driver.down();
    driver.up();
    let packets = vec![driver.packet(&numbered(PEER, MAC, 100, 1))];
    driver.transmit(packets, 1);
}

#[test]
fn a_queue_that_does_not_start_or_stop_is_a_time_out_and_leaves_no_buffer_behind() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    fixture.bench.faults(fixture.port, |faults| faults.queue_stuck = true);
    let now = fixture.bench.now();
    assert!(matches!(driver.nic.stop(now), Err(DriverError::Timeout { .. })));
    driver.assert_all_back();
    assert!(matches!(driver.nic.start(now), Err(DriverError::Timeout { .. })));
    driver.assert_all_back();
    fixture.bench.faults(fixture.port, |faults| faults.queue_stuck = false);
    driver.up();
    driver.down();
}

#[test]
fn a_reset_that_does_not_end_is_a_time_out() {
    let (fixture, bus) = Fixture::new();
    fixture.bench.faults(fixture.port, |faults| faults.reset_stuck = true);
    assert!(matches!(Igb::probe(bus).err(), Some(NicError::Timeout { what: "reset", .. })));
}

/// A tunnelled super-packet whose last segment is shorter than the others.
fn uneven(driver: &mut list::Bench<Igb>) -> netcore::Packet {
    use list::frames::{Ip, vxlan};
    let inner = Ip::tcp4(3500);
    let mut packet = driver.packet(&vxlan(&inner.build_partial(), 4));
    packet.set_transmit_checksum(Some(netcore::PartialChecksum { start: 84, offset: 16 }));
    let kind = netcore::GsoKind::TCPV4 | netcore::GsoKind::UDP_TUNNEL;
    packet.set_gso(Some(netcore::Gso { kind, size: 1000, segments: 4 }));
    packet
}

#[test]
fn what_the_part_refuses_is_done_in_software_within_the_same_burst() {
    let (fixture, mut driver) = Fixture::driver(|_| {});
    let front = driver.packet(&numbered(PEER, MAC, 200, 1));
    let packet = uneven(&mut driver);
    let behind = driver.packet(&numbered(PEER, MAC, 200, 2));
    let list::Bench { nic, cache, mut peer, .. } = driver;
    let mut port = netcore::Port::builder(nic, cache).segmenter(Box::new(SoftwareSegmenter::new())).build();
    let mut burst: Burst = [front, packet, behind].into_iter().collect();
    port.transmit(0, &mut burst, fixture.bench.now()).expect("transmit");
    // Byte queue limits let more through as packets are completed.
    let mut seen = Vec::new();
    for _ in 0..20 {
        fixture.bench.advance(Duration::from_micros(100));
        let now = fixture.bench.now();
        port.reclaim(0, &mut Completions::new(), now).expect("reclaim");
        port.poll(now).expect("poll");
        seen.extend(peer.take());
    }
    let lens: Vec<usize> = seen.iter().map(Vec::len).collect();
    assert_eq!(lens, [200, 1104, 1104, 1104, 604, 200]);
    for frame in &seen[1..5] {
        use netcore_drivers::model::frames::{Check, look};
        assert_eq!((look(frame).ip, look(&frame[50..]).transport), (Check::Good, Check::Good));
    }
    assert_eq!(port.counters().degraded, 1);
    assert_eq!(fixture.bench.take_violations(fixture.port), []);
}

#[test]
fn queues_work_by_themselves_with_a_vector_each() {
    use netcore_drivers::bus::InterruptMode;
    let (fixture, bus) = Fixture::new();
    let peer = Box::new(ModelPeer { bench: fixture.bench.clone(), port: fixture.port });
    let probe = |bus| Igb::probe(bus).expect("one of the family");
    let mut driver = list::Bench::new(bus, peer, probe, Expect::model("82576"), |config| {
        config.queues = 4;
        config.receive_descriptors = 64;
    });
    driver.nic.set_interrupts(InterruptMode::MsiX).expect("25 vectors");
    driver.up();
    while let Some((vector, _)) = driver.nic.wait(Duration::from_millis(5)).expect("wait") {
        driver.nic.rearm(vector).expect("rearm");
    }
    let mut handles: Vec<_> = (0..4).map(|n| driver.nic.take_queue(n).expect("a queue")).collect();
    let mut seen = [0; 4];
    for n in 0..64 {
        let ip = list::frames::Ip::tcp4(50).ports(1000 + n, 80);
        driver.peer.send(&ip.build());
        let (vector, causes) = driver.nic.wait(Duration::from_millis(5)).expect("wait").expect("an interrupt");
        assert_eq!(causes.receive, 1 << vector);
        let mut burst = Burst::new();
        let now = fixture.bench.now();
        assert_eq!(handles[usize::from(vector)].receive(&mut burst, 8, now), Ok(1), "the vector names the queue");
        seen[usize::from(vector)] += 1;
        driver.nic.rearm(vector).expect("rearm");
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    // Each sends on its own queue.
    for (n, handle) in (0u32..).zip(&mut handles) {
        let mut burst: Burst = [driver.packet(&numbered(PEER, MAC, 100, n))].into_iter().collect();
        handle.transmit(&mut burst, fixture.bench.now()).expect("transmit");
    }
    fixture.bench.advance(Duration::from_millis(1));
    let mut numbers: Vec<u32> = driver.peer.take().iter().map(|frame| number(frame)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3]);
    driver.assert_no_violations();
}
