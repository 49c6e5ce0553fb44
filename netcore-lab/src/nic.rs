//! A network card in virtual time: rings, segmentation, interrupt moderation. Not a register-level model of any part, but
//! what such parts have in common and what experiments depend on.
//!
//! [`Nic`] is shared by two halves: [`NicDriver`] is the [`Driver`] that a port or bond sits on, the host component moves
//! frames between the rings and the link.

use netcore::driver::{Completion, Refusal};
use netcore::{
    Burst, Capabilities, Completions, Driver, DriverError, Features, GsoKind, Instant, LinkState, MacAddress, Packet,
    PoolCache, Rate, ReceiveChecksum, Segmenter, Statistics,
};
use netcore_offload::SoftwareSegmenter;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// When a card interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moderation {
    /// Least time between two interrupts (ITR).
    pub interval: Duration,
    /// Time from the event to the handler.
    pub latency: Duration,
    /// Up to this much is added to that, uniformly distributed: what else the CPU has to do first, and how deep it sleeps. It
    /// lets the phases of several cards drift against each other.
    pub jitter: Duration,
    /// Receive interrupts wait until no frame has come for this long (RDTR), at most [`Moderation::interval`].
    pub receive_delay: Duration,
    /// Transmit interrupts wait for this long (TIDV); a receive interrupt before that serves them as well.
    pub transmit_delay: Duration,
}

impl Default for Moderation {
    /// No moderation, no latency.
    fn default() -> Self {
        Self {
            interval: Duration::ZERO,
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            receive_delay: Duration::ZERO,
            transmit_delay: Duration::ZERO,
        }
    }
}

/// Properties of a card.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// Its name.
    pub name: String,
    /// Station address.
    pub mac: MacAddress,
    /// Rate of its link.
    pub rate: Rate,
    /// Maximum transmission unit.
    pub mtu: usize,
    /// Descriptors of the transmit ring.
    pub transmit_ring: usize,
    /// Descriptors of the receive ring.
    pub receive_ring: usize,
    /// Bytes that a receive descriptor takes; a longer frame takes several. `None`: one for any frame.
    pub receive_buffer: Option<usize>,
    /// Segmentation in hardware.
    pub tso: bool,
    /// Largest super-packet, bytes.
    pub tso_max_size: usize,
    /// Checksums in hardware, both ways.
    pub checksums: bool,
    /// Interrupts.
    pub moderation: Moderation,
    /// Frames per poll and card (`NAPI_POLL_WEIGHT`).
    pub budget: usize,
    /// Bytes of memory that a received frame takes (`truesize`); `None`: buffer and bookkeeping of the era for the MTU.
    pub receive_truesize: Option<usize>,
}

impl NicConfig {
    /// A card with rings of 256, TSO and checksum offload, no moderation.
    pub fn new(name: &str, mac: MacAddress, rate: Rate) -> Self {
        Self {
            name: name.into(),
            mac,
            rate,
            mtu: 1500,
            transmit_ring: 256,
            receive_ring: 256,
            receive_buffer: None,
            tso: true,
            tso_max_size: 65_536,
            checksums: true,
            moderation: Moderation::default(),
            budget: 64,
            receive_truesize: None,
        }
    }
}

/// Counters with the names of Intel's drivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NicCounters {
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Super-packets sent.
    pub tx_tso: u64,
    /// Frames received into the ring.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames lost because the ring was full (`rx_missed_errors`).
    pub rx_missed: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Super-packets that could not be cut.
    pub tx_errors: u64,
    /// Times the transmit ring was full.
    pub tx_busy: u64,
    /// Packets in the transmit ring when the link went away, or given to it while there was none (`tx_carrier_errors`).
    pub tx_carrier_errors: u64,
}

/// A card.
pub struct Nic {
    config: NicConfig,
    cache: PoolCache,
    segmenter: SoftwareSegmenter,
    ring: VecDeque<(Packet, usize)>,
    ring_used: usize,
    free_at: Instant,
    remainder: u64,
    /// Sent, not yet seen by the driver: end of transmission.
    sent: VecDeque<(Instant, Completion, usize)>,
    received: VecDeque<Packet>,
    receive_used: usize,
    interrupt_at: Option<Instant>,
    last_interrupt: Option<Instant>,
    /// Interrupts are masked while the host polls.
    polling: bool,
    link_up: bool,
    counters: NicCounters,
    pieces: Burst,
    rng: fastrand::Rng,
    /// What was drawn for the interrupt that is pending.
    delay: Duration,
}

/// The card as both halves share it.
pub type SharedNic = Arc<Mutex<Nic>>;

/// Locks a card; a panic elsewhere does not spread.
pub fn lock(nic: &SharedNic) -> std::sync::MutexGuard<'_, Nic> {
    nic.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Nic {
    /// A card with packet memory from `cache`; its address is the seed of what is random.
    pub fn new(config: NicConfig, cache: PoolCache) -> Self {
        let seed = config.mac.0.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
        Self {
            config,
            cache,
            segmenter: SoftwareSegmenter::new(),
            ring: VecDeque::new(),
            ring_used: 0,
            free_at: Instant::ZERO,
            remainder: 0,
            sent: VecDeque::new(),
            received: VecDeque::new(),
            receive_used: 0,
            interrupt_at: None,
            last_interrupt: None,
            polling: false,
            link_up: true,
            counters: NicCounters::default(),
            pieces: Burst::new(),
            rng: fastrand::Rng::with_seed(seed),
            delay: Duration::ZERO,
        }
    }

    /// Both halves of a card.
    pub fn shared(config: NicConfig, cache: PoolCache) -> (SharedNic, NicDriver) {
        let capabilities = capabilities(&config);
        let nic = Arc::new(Mutex::new(Self::new(config, cache)));
        (Arc::clone(&nic), NicDriver { nic, capabilities })
    }

    /// What was counted.
    pub fn counters(&self) -> NicCounters {
        self.counters
    }

    /// Its properties.
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// Plugs or pulls the cable; the driver sees it as link state. What the transmit ring holds when it is pulled is lost
    /// and completed, as by the reset that drivers make then.
    pub fn set_link(&mut self, up: bool) {
        self.link_up = up;
        if !up {
            while let Some((packet, descriptors)) = self.ring.pop_front() {
                self.lose(packet, descriptors, self.free_at);
            }
        }
    }

    fn lose(&mut self, packet: Packet, descriptors: usize, at: Instant) {
        self.counters.tx_carrier_errors += 1;
        let completion =
            Completion { flow_id: packet.flow_id(), truesize: packet.truesize() as u32, bytes: packet.len() as u32 };
        self.cache.put(packet);
        self.sent.push_back((at, completion, descriptors));
        self.request_interrupt(at, false);
    }

    /// Whether the link is up.
    pub fn link_up(&self) -> bool {
        self.link_up
    }

    /// Hands the frames of the next packet to `wire` if the transmitter is free at `now`. Each frame carries the time at
    /// which its first bit leaves as its departure time; the transmitter is busy until the last one is out.
    pub(crate) fn transmit_train(&mut self, now: Instant, wire: &mut Burst) {
        if self.free_at > now || !self.link_up {
            return;
        }
        let Some((packet, descriptors)) = self.ring.pop_front() else { return };
        let completion =
            Completion { flow_id: packet.flow_id(), truesize: packet.truesize() as u32, bytes: packet.len() as u32 };
        self.cut(packet);
        if self.free_at < now {
            self.free_at = now;
            self.remainder = 0;
        }
        let rate = u128::from(self.config.rate.bytes_per_sec().max(1));
        while let Some(mut frame) = self.pieces.pop() {
            let len = frame.len();
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += len as u64;
            frame.set_departure(Some(self.free_at));
            let bytes = u128::from(crate::net::wire_bytes(len, crate::net::ETHERNET_OVERHEAD));
            // Exact over any number of frames: what a division leaves counts for the next one.
            let scaled = bytes * 1_000_000_000 + u128::from(self.remainder);
            self.remainder = (scaled % rate) as u64;
            self.free_at = self.free_at.plus_nanos((scaled / rate) as u64);
            wire.push(frame);
        }
        self.sent.push_back((self.free_at, completion, descriptors));
        self.request_interrupt(self.free_at, false);
    }

    /// When the transmitter can take the next frame, if there is one.
    pub(crate) fn transmit_at(&self) -> Option<Instant> {
        (self.link_up && !self.ring.is_empty()).then_some(self.free_at)
    }

    /// Cuts a super-packet, or fills in a checksum, as the hardware does.
    fn cut(&mut self, mut packet: Packet) {
        if packet.is_super() {
            self.counters.tx_tso += 1;
            if let Err(failed) = self.segmenter.segment(packet, Features::empty(), &mut self.cache, &mut self.pieces) {
                self.counters.tx_errors += 1;
                self.cache.put(failed.packet);
            }
            return;
        }
        if packet.transmit_checksum().is_some() {
            // A request that points outside the packet goes out as it is, as from a real card.
            let _ = self.segmenter.fill_checksum(&mut packet, &mut self.cache);
        }
        self.pieces.push(packet);
    }

    /// A frame arrives from the wire.
    pub(crate) fn frame_arrives(&mut self, mut frame: Packet, now: Instant) {
        let descriptors = self.receive_descriptors(frame.len());
        if self.receive_used + descriptors > self.config.receive_ring || !self.link_up {
            self.counters.rx_missed += 1;
            self.cache.put(frame);
            return;
        }
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += frame.len() as u64;
        let payload = frame.len();
        frame.set_timestamp(Some(now));
        frame.set_flow_id(None);
        if self.config.checksums {
            frame.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: 1 });
        }
        // Drivers of the time give each frame a buffer of a power of two and the kernel's bookkeeping.
        let truesize = self.config.receive_truesize.unwrap_or_else(|| {
            let _ = payload;
            (self.config.mtu + 18 + 64).next_power_of_two().max(2048) + 256
        });
        frame.set_truesize(truesize);
        self.receive_used += descriptors;
        self.received.push_back(frame);
        self.request_interrupt(now, true);
    }

    fn receive_descriptors(&self, bytes: usize) -> usize {
        self.config.receive_buffer.map_or(1, |buffer| bytes.div_ceil(buffer.max(1)).max(1))
    }

    /// An event at `at` wants an interrupt.
    fn request_interrupt(&mut self, at: Instant, receive: bool) {
        if self.polling {
            return;
        }
        let m = self.config.moderation;
        let earliest = self.last_interrupt.map_or(at, |last| at.max(last + m.interval));
        let wanted = if receive && !m.receive_delay.is_zero() {
            (at + m.receive_delay).min(earliest.max(at) + m.interval)
        } else if receive {
            at
        } else {
            at + m.transmit_delay
        };
        // The handler's delay is drawn once per interrupt.
        if self.interrupt_at.is_none() && !m.jitter.is_zero() {
            self.delay = Duration::from_nanos(self.rng.u64(0..=m.jitter.as_nanos() as u64));
        }
        let when = wanted.max(earliest) + m.latency + self.delay;
        self.interrupt_at = Some(self.interrupt_at.map_or(when, |pending| pending.min(when)));
    }

    /// When the card interrupts.
    pub(crate) fn interrupt_at(&self) -> Option<Instant> {
        self.interrupt_at
    }

    /// The interrupt is served: masked until [`Nic::poll_complete`].
    pub(crate) fn interrupt(&mut self, now: Instant) {
        self.interrupt_at = None;
        self.last_interrupt = Some(now);
        self.polling = true;
        self.counters.interrupts += 1;
    }

    /// The host has taken everything: interrupts are unmasked.
    pub(crate) fn poll_complete(&mut self, now: Instant) {
        self.polling = false;
        if !self.received.is_empty() {
            self.request_interrupt(now, true);
        }
        if let Some((end, ..)) = self.sent.front() {
            let at = (*end).max(now);
            self.request_interrupt(at, false);
        }
    }

    /// Takes up to `budget` frames from the receive ring.
    pub(crate) fn take_received(&mut self, burst: &mut Burst, budget: usize) -> usize {
        let n = self.received.len().min(budget);
        for _ in 0..n {
            let Some(packet) = self.received.pop_front() else { break };
            self.receive_used -= self.receive_descriptors(packet.len());
            burst.push(packet);
        }
        n
    }

    /// Frames waiting in the receive ring.
    pub fn receive_backlog(&self) -> usize {
        self.received.len()
    }

    /// Bytes and descriptors in the transmit ring.
    pub fn transmit_backlog(&self) -> usize {
        self.ring_used
    }

    fn reclaim(&mut self, completions: &mut Completions, now: Instant) -> usize {
        let mut n = 0;
        while self.sent.front().is_some_and(|(end, ..)| *end <= now) {
            if let Some((_, completion, descriptors)) = self.sent.pop_front() {
                completions.push(completion);
                self.ring_used -= descriptors;
                n += 1;
            }
        }
        n
    }

    fn enqueue(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        let mut n = 0;
        while let Some(packet) = burst.front() {
            if packet.is_super() && !self.config.tso {
                return Err(DriverError::Refused { reason: Refusal::Segmentation });
            }
            // One descriptor a segment of memory, one for the offload's parameters.
            let descriptors = packet.segment_count() + usize::from(packet.is_super());
            if self.ring_used > 0 && self.ring_used + descriptors > self.config.transmit_ring {
                self.counters.tx_busy += 1;
                break;
            }
            let Some(packet) = burst.pop() else { break };
            self.ring_used += descriptors;
            if self.link_up {
                self.ring.push_back((packet, descriptors));
            } else {
                self.lose(packet, descriptors, now);
            }
            n += 1;
        }
        Ok(n)
    }
}

impl std::fmt::Debug for Nic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nic").field("name", &self.config.name).finish_non_exhaustive()
    }
}

fn capabilities(config: &NicConfig) -> Capabilities {
    let mut features = Features::SCATTER_GATHER;
    if config.checksums {
        features |= Features::TX_CHECKSUM_GENERIC | Features::RX_CHECKSUM;
    }
    let mut c = Capabilities::default();
    if config.tso {
        features |= Features::TSO;
        c.gso = GsoKind::TCPV4 | GsoKind::TCPV6 | GsoKind::TCP_ECN;
    }
    c.name = config.name.clone();
    c.mac = config.mac;
    c.mtu = config.mtu;
    c.max_mtu = 9216;
    c.supported = features;
    c.features = features;
    c.gso_max_size = config.tso_max_size;
    c.max_segments = 64;
    c
}

/// The driver's half of a card.
#[derive(Debug)]
pub struct NicDriver {
    nic: SharedNic,
    capabilities: Capabilities,
}

impl Driver for NicDriver {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        let nic = lock(&self.nic);
        if nic.link_up { LinkState::up((nic.config.rate.bits_per_sec() / 1_000_000) as u32) } else { LinkState::DOWN }
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        if queue > 0 {
            return Err(DriverError::NoSuchQueue { queue, queues: 1 });
        }
        lock(&self.nic).enqueue(burst, now)
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, _now: Instant) -> Result<usize, DriverError> {
        if queue > 0 {
            return Err(DriverError::NoSuchQueue { queue, queues: 1 });
        }
        Ok(lock(&self.nic).take_received(burst, budget))
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        if queue > 0 {
            return Err(DriverError::NoSuchQueue { queue, queues: 1 });
        }
        Ok(lock(&self.nic).reclaim(completions, now))
    }

    fn statistics(&self, statistics: &mut Statistics) {
        let c = lock(&self.nic).counters;
        for (name, value) in [
            ("rx_packets", c.rx_packets),
            ("tx_packets", c.tx_packets),
            ("rx_bytes", c.rx_bytes),
            ("tx_bytes", c.tx_bytes),
            ("rx_missed_errors", c.rx_missed),
            ("tx_tcp_seg_good", c.tx_tso),
            ("tx_tcp_seg_failed", c.tx_errors),
            ("tx_restart_queue", c.tx_busy),
            ("tx_carrier_errors", c.tx_carrier_errors),
        ] {
            statistics.add(name, value);
        }
    }

    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        self.capabilities.mac = mac;
        lock(&self.nic).config.mac = mac;
        Ok(())
    }

    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        if !(68..=9216).contains(&mtu) {
            return Err(DriverError::OutOfRange { what: "MTU", value: mtu as u64, allowed: "68 to 9216".into() });
        }
        self.capabilities.mtu = mtu;
        lock(&self.nic).config.mtu = mtu;
        Ok(())
    }
}
