//! The list of tests that every NIC driver passes, on every part and every back end.
//!
//! [`run`] takes a bench (a [`Peer`] at the other end of the line and a bus), a way to probe the part, and a table of what the
//! part or its emulation lacks ([`Expect`]).
#![allow(dead_code, unreachable_pub)] // each test program uses a part of it

pub mod cases;
pub mod frames;
pub mod model;
pub mod qemu;

use core::time::Duration;
use netcore::{
    Burst, Completions, Driver, DriverError, Instant, MacAddress, Packet, PacketPool, PoolCache, PoolConfig, Statistics,
};
use netcore_drivers::bus::{Bus, InterruptMode};
use netcore_drivers::nic::{Hardware, Nic, NicConfig, packet_pool};

/// The station address of every device on a test bench.
pub const MAC: MacAddress = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
/// The address of the other end.
pub const PEER: MacAddress = MacAddress([0x52, 0x54, 0, 0xaa, 0xbb, 0xcc]);

/// The other end of the line, and the clock.
pub trait Peer {
    /// Sends a frame to the device.
    fn send(&mut self, frame: &[u8]);
    /// Frames that the device has sent since the last call.
    fn take(&mut self) -> Vec<Vec<u8>>;
    /// Lets time pass.
    fn settle(&mut self, span: Duration);
    /// The time.
    fn now(&self) -> Instant;
    /// Plugs the cable in or pulls it.
    fn cable(&mut self, plugged: bool);
    /// Pulls the device; false if the bench cannot.
    fn remove(&mut self) -> bool {
        false
    }
    /// What the device recorded against the driver.
    fn violations(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Time from doing something to its effect: 0 in virtual time.
    fn patience(&self) -> Duration;
}

/// What a part, or the emulation of it, does and lacks.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Part and back end, for messages.
    pub name: &'static str,
    /// Checksums are verified on receive.
    pub receive_checksum: bool,
    /// UDP with checksum zero counts as not checked.
    pub largest_mtu: usize,
    /// FIN and PSH stay on the last segment.
    pub last_segment_flags: bool,
    /// A super-packet of whole segments is followed by one without payload (QEMU's e1000; no hardware does that).
    pub empty_last_segment: bool,
    /// TCP over IPv6 can be cut.
    pub segments_ipv6: bool,
    /// Receive queues, for the hash test; 1: no test.
    pub queues: u16,
    /// Hash types of IPv6 are those of the datasheet.
    pub hashes: bool,
    /// Short frames arrive padded to 60 bytes.
    pub pads_receive: bool,
    /// From start to the first frame that is received.
    pub deaf_after_start: Duration,
    /// Bound of the time to link.
    pub link_within: Duration,
    /// Stops and starts.
    pub cycles: usize,
    /// Interrupts to be tried.
    pub interrupts: &'static [InterruptMode],
    /// Frames beyond the ring are dropped or kept by the device; false: the back end stalls instead.
    pub overrun: bool,
    /// Frames of 1000 bytes that ring and packet buffer cannot hold.
    pub overrun_frames: u32,
    /// A wrong UDP checksum is told from none (82599: it is not, an erratum).
    pub udp_errors: bool,
    /// Byte counters count.
    pub byte_counters: bool,
    /// VLAN filter can be tested.
    pub vlan_filter: bool,
    /// Every size is tried; otherwise every so many bytes.
    pub size_step: usize,
    /// Tests that run at once.
    pub at_once: usize,
}

impl Expect {
    /// A model: everything there, nothing slow.
    pub fn model(name: &'static str) -> Self {
        Self {
            name,
            receive_checksum: true,
            largest_mtu: 9000,
            last_segment_flags: true,
            empty_last_segment: false,
            segments_ipv6: true,
            queues: 1,
            hashes: true,
            pads_receive: false,
            deaf_after_start: Duration::ZERO,
            link_within: Duration::from_secs(5),
            cycles: 100,
            interrupts: &[InterruptMode::Intx, InterruptMode::Msi],
            overrun: true,
            overrun_frames: 300,
            udp_errors: true,
            byte_counters: true,
            vlan_filter: true,
            size_step: 1,
            at_once: 1,
        }
    }

    /// An emulation in QEMU.
    pub fn qemu(name: &'static str) -> Self {
        Self { cycles: 10, interrupts: &[], overrun: false, at_once: 6, ..Self::model(name) }
    }
}

/// A driver at work, and the other end of its line.
pub struct Bench<H: Hardware> {
    pub nic: Nic<H>,
    pub pool: PacketPool,
    pub cache: PoolCache,
    pub peer: Box<dyn Peer>,
    pub expect: Expect,
}

/// Buffers of the pool that every test has.
pub const BUFFERS: usize = 1024;

impl<H: Hardware> Bench<H> {
    pub fn new(
        mut bus: Box<dyn Bus>,
        peer: Box<dyn Peer>,
        probe: impl FnOnce(Box<dyn Bus>) -> H,
        expect: Expect,
        adjust: impl FnOnce(&mut NicConfig),
    ) -> Self {
        let config = PoolConfig { windows: 2 * BUFFERS, ..PoolConfig::with_buffers(BUFFERS) };
        let pool = packet_pool(&mut *bus, config).expect("a bench has memory");
        let hardware = probe(bus);
        let mut config = NicConfig::new(pool.clone());
        adjust(&mut config);
        let nic = Nic::new(hardware, config).expect("the configuration is within the part's limits");
        let cache = pool.cache();
        Self { nic, pool, cache, peer, expect }
    }

    pub fn now(&self) -> Instant {
        self.peer.now()
    }

    /// Starts and waits for the link, and until frames are received.
    pub fn up(&mut self) {
        let now = self.now();
        self.nic.start(now).unwrap_or_else(|error| panic!("{}: start: {error}", self.expect.name));
        self.wait_link(true);
        let deaf = self.expect.deaf_after_start;
        if !deaf.is_zero() {
            self.peer.settle(deaf);
        }
        self.peer.take();
        self.drain();
    }

    pub fn wait_link(&mut self, up: bool) {
        let end = self.now() + self.expect.link_within;
        loop {
            self.nic.poll(self.peer.now()).expect("poll");
            if self.nic.link().up == up {
                return;
            }
            assert!(self.now() < end, "{}: the link did not become {up}", self.expect.name);
            self.peer.settle(Duration::from_millis(10));
        }
    }

    /// Takes everything that was received away.
    pub fn drain(&mut self) {
        let mut burst = Burst::new();
        while self.receive_into(&mut burst) > 0 {}
        self.cache.put_burst(&mut burst);
    }

    pub fn receive_into(&mut self, burst: &mut Burst) -> usize {
        let now = self.now();
        let queues = self.nic.capabilities().receive_queues;
        (0..queues).map(|queue| self.nic.receive(queue, burst, 64, now).expect("receive")).sum()
    }

    /// Waits until `n` packets were received.
    pub fn receive(&mut self, n: usize) -> Vec<Packet> {
        let mut burst = Burst::new();
        let end = self.now() + self.peer.patience();
        while burst.len() < n {
            if self.receive_into(&mut burst) == 0 {
                assert!(
                    self.now() < end,
                    "{}: {} of {n} packets received; {}",
                    self.expect.name,
                    burst.len(),
                    self.statistics()
                );
                self.peer.settle(Duration::from_micros(50));
            }
        }
        burst.drain().collect()
    }

    /// Receives whatever comes within a while; for frames that must not come.
    pub fn receive_any(&mut self) -> Vec<Packet> {
        let mut burst = Burst::new();
        self.peer.settle(self.quiet());
        while self.receive_into(&mut burst) > 0 {}
        burst.drain().collect()
    }

    /// How long nothing must happen for nothing to have happened.
    pub fn quiet(&self) -> Duration {
        Duration::from_millis(20)
    }

    pub fn packet(&mut self, bytes: &[u8]) -> Packet {
        self.cache.copy_chain(bytes).expect("the pool has buffers")
    }

    /// Transmits everything and returns the frames that the other end has seen, at least `frames`.
    pub fn transmit(&mut self, packets: Vec<Packet>, frames: usize) -> Vec<Vec<u8>> {
        let mut burst: Burst = packets.into_iter().collect();
        let mut completions = Completions::new();
        let mut seen = Vec::new();
        let end = self.now() + self.peer.patience();
        while !burst.is_empty() || seen.len() < frames {
            let now = self.now();
            let sent = match self.nic.transmit(0, &mut burst, now) {
                Ok(sent) => sent,
                Err(error) => panic!("{}: transmit: {error}", self.expect.name),
            };
            self.nic.reclaim(0, &mut completions, now).expect("reclaim");
            let before = seen.len();
            seen.extend(self.peer.take());
            if sent == 0 && seen.len() == before {
                assert!(
                    self.now() < end,
                    "{}: {} of {frames} frames seen, {} packets left; {}",
                    self.expect.name,
                    seen.len(),
                    burst.len(),
                    self.statistics()
                );
                self.peer.settle(Duration::from_micros(50));
            }
        }
        seen
    }

    /// Waits until every transmitted packet was reclaimed.
    pub fn reclaim_all(&mut self, n: usize) {
        let mut completions = Completions::new();
        let end = self.now() + self.peer.patience();
        let mut done = 0;
        while done < n {
            done += self.nic.reclaim(0, &mut completions, self.peer.now()).expect("reclaim");
            assert!(self.now() < end, "{}: {done} of {n} packets reclaimed", self.expect.name);
            self.peer.settle(Duration::from_micros(50));
        }
    }

    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new();
        self.nic.statistics(&mut statistics);
        statistics
    }

    /// Stops; afterwards every buffer is in the pool again.
    pub fn down(&mut self) {
        let now = self.now();
        self.nic.stop(now).unwrap_or_else(|error| panic!("{}: stop: {error}", self.expect.name));
        self.assert_all_back();
    }

    pub fn assert_all_back(&mut self) {
        self.cache.flush();
        let mut all = Burst::new();
        let mut cache = self.pool.cache();
        let back = cache.get_burst(BUFFERS, &mut all);
        assert_eq!(back, BUFFERS, "{}: buffers are missing after stop", self.expect.name);
        cache.put_burst(&mut all);
    }

    pub fn assert_no_violations(&mut self) {
        let violations = self.peer.violations();
        assert!(violations.is_empty(), "{}:\n{}", self.expect.name, violations.join("\n"));
    }
}

/// Makes a fresh bench for each test of the list.
pub trait Maker {
    /// The family's registers.
    type H: Hardware;
    /// What the part does.
    fn expect(&self) -> Expect;
    /// A device that was never touched.
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>);
    /// Takes the device over.
    fn probe(&self, bus: Box<dyn Bus>) -> Self::H;
    /// A driver on a fresh device.
    fn bench(&self, adjust: impl FnOnce(&mut NicConfig)) -> Bench<Self::H> {
        let (bus, peer) = self.make();
        Bench::new(bus, peer, |bus| self.probe(bus), self.expect(), adjust)
    }
    /// A driver that is up.
    fn up(&self, adjust: impl FnOnce(&mut NicConfig)) -> Bench<Self::H> {
        let mut bench = self.bench(adjust);
        bench.up();
        bench
    }
}

/// The whole list. On emulations, which sleep in real time, several tests run at once.
pub fn run<M: Maker + Sync>(maker: &M) {
    type Test<M> = (&'static str, fn(&M));
    let list: [Test<M>; 20] = [
        ("stop and start", cases::life::stop_and_start_lose_no_buffer),
        ("filters", cases::filter::groups_and_stations_are_filtered),
        ("transmit sizes", cases::basic::every_size_is_transmitted),
        ("receive sizes", cases::basic::every_size_is_received),
        ("probe", cases::basic::probe_reads_the_address),
        ("link", cases::basic::the_link_comes_goes_and_comes),
        ("scatter", cases::basic::scattered_packets_arrive_in_one_piece),
        ("wrap", cases::basic::rings_wrap_three_times),
        ("overrun", cases::basic::an_overrun_ring_recovers),
        ("address", cases::basic::a_station_address_can_be_changed),
        ("transmit checksums", cases::offload::checksums_are_filled_in),
        ("receive checksums", cases::offload::received_checksums_are_judged),
        ("segmentation", cases::offload::super_packets_are_cut_as_software_does),
        ("tags", cases::offload::tags_are_inserted_and_removed),
        ("refusals", cases::offload::what_cannot_be_done_is_refused),
        ("tag filter", cases::filter::tags_are_filtered),
        ("hash", cases::filter::the_hash_chooses_the_queue),
        ("statistics", cases::life::statistics_count),
        ("interrupts", cases::life::interrupts_come),
        ("removal", cases::life::a_pulled_device_is_an_error),
    ];
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        while let Some((name, test)) = list.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            eprintln!("{}: {name}", maker.expect().name);
            test(maker);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..maker.expect().at_once {
            scope.spawn(work);
        }
        work();
    });
}

/// True if the call says that the device is gone.
pub fn is_removed<T>(result: &Result<T, DriverError>) -> bool {
    matches!(result, Err(DriverError::Removed))
}
