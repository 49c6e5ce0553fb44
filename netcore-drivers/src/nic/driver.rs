//! [`Nic`]: the driver that is the same for every family.

use super::queues::{QueueCell, QueuePair};
use super::statistics::Sums;
use super::{Causes, Hardware, Limits, NicConfig, QueueHandle, RingAddress, Settings};
use crate::bus::{InterruptMode, pci};
use crate::error::NicError;
use crate::ring::{Arenas, ReceiveBuffers, ReceiveRing, TransmitRing, ring_bytes};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use netcore::{
    Burst, Capabilities, Completions, Driver, DriverError, DriverQueue, Features, GsoKind, Instant, LinkState,
    MacAddress, PoolConfig, Statistics,
};

/// Time between looks at the link.
const LINK_INTERVAL: Duration = Duration::from_millis(100);
/// Time between harvests of statistics and looks for a transmit hang. The fastest 32-bit byte counter of the gigabit parts
/// fills in 34 s at line rate.
const WATCHDOG_INTERVAL: Duration = Duration::from_secs(1);
/// A transmit queue that has work and makes no progress over this many watchdog intervals hangs.
const HANG_INTERVALS: u8 = 2;

#[derive(Clone, Copy, Default)]
struct Watch {
    progress: u16,
    stuck: u8,
}

/// A NIC: implements [`Driver`] over the registers of a family.
pub struct Nic<H: Hardware> {
    hardware: H,
    config: NicConfig,
    settings: Settings,
    capabilities: Capabilities,
    arenas: Arc<Arenas>,
    queues: Vec<Arc<QueueCell<H>>>,
    running: bool,
    /// The latest time that was told.
    now: Instant,
    interrupts: (InterruptMode, u16),
    link: LinkState,
    link_changes: u64,
    link_due: Option<Instant>,
    watchdog_due: Option<Instant>,
    watches: Vec<Watch>,
    hangs: u64,
    restarts: u64,
    sums: RefCell<Sums>,
}

impl<H: Hardware> Nic<H> {
    /// A driver for hardware that was probed. It is down until [`Driver::start`].
    ///
    /// # Errors
    /// [`NicError::OutOfRange`] if the configuration is outside the part's limits.
    pub fn new(hardware: H, config: NicConfig) -> Result<Self, NicError> {
        let limits = hardware.limits();
        let range = |what, value: usize, allowed| Err(NicError::OutOfRange { what, value: value as u64, allowed });
        let most = limits.transmit_queues.min(limits.receive_queues);
        if config.queues == 0 || config.queues > most {
            return range("queue pairs", config.queues.into(), "1 to as many as the part has");
        }
        for descriptors in [config.transmit_descriptors, config.receive_descriptors] {
            if !(16..=limits.max_descriptors).contains(&descriptors) || !descriptors.is_multiple_of(8) {
                return range("ring length", descriptors.into(), "a multiple of 8 from 16 to the part's maximum");
            }
        }
        if config.mtu < 68 || config.mtu + 14 > limits.max_frame {
            return range("MTU", config.mtu, "68 to the part's longest frame less 14");
        }
        if config.mac.is_some_and(|mac| !mac.is_valid_station()) {
            return range("station address", 0, "no group address and not zero");
        }
        let mut settings = Settings::new(&config, limits, hardware.permanent_mac());
        settings.features = hardware.fix_features(settings.features);
        let capabilities = capabilities(limits, &settings);
        let mut arenas = Arenas::new();
        arenas.add(config.pool.clone());
        for pool in &config.transmit_pools {
            arenas.add(pool.clone());
        }
        let sums = Sums::new(hardware.counters().len());
        let queues = (0..config.queues).map(|_| Arc::new(QueueCell::new(config.pool.cache()))).collect();
        let watches = alloc::vec![Watch::default(); config.queues.into()];
        Ok(Self {
            hardware,
            config,
            settings,
            capabilities,
            arenas: Arc::new(arenas),
            queues,
            running: false,
            now: Instant::ZERO,
            interrupts: (InterruptMode::Polling, 0),
            link: LinkState::DOWN,
            link_changes: 0,
            link_due: None,
            watchdog_due: None,
            watches,
            hangs: 0,
            restarts: 0,
            sums: RefCell::new(sums),
        })
    }

    /// The hardware.
    pub const fn hardware(&self) -> &H {
        &self.hardware
    }

    /// The hardware, for what only its family has.
    pub const fn hardware_mut(&mut self) -> &mut H {
        &mut self.hardware
    }

    /// The settings in force.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the part can do.
    pub fn limits(&self) -> &Limits {
        self.hardware.limits()
    }

    /// True between start and stop.
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// Switches interrupts on, or to polling. Vectors: queue pair `n` on vector `n`, link on the last; with INTx and MSI
    /// everything is on vector 0.
    ///
    /// # Errors
    /// [`NicError::Unsupported`] if the part, or the bus, has no such interrupts.
    pub fn set_interrupts(&mut self, mode: InterruptMode) -> Result<(), NicError> {
        let available = self.hardware.bus().interrupt_vectors()?;
        let vectors = match mode {
            InterruptMode::Polling => 0,
            InterruptMode::Intx if available.intx => 1,
            InterruptMode::Msi if available.msi > 0 => 1,
            InterruptMode::MsiX if available.msix > self.settings.queues => self.settings.queues + 1,
            InterruptMode::Intx => return Err(NicError::Unsupported { what: "an interrupt line" }),
            InterruptMode::Msi => return Err(NicError::Unsupported { what: "MSI" }),
            InterruptMode::MsiX => return Err(NicError::Unsupported { what: "MSI-X with that many vectors" }),
        };
        if self.running {
            self.hardware.enable_interrupts(InterruptMode::Polling, 0, &self.settings)?;
        }
        self.hardware.bus().set_interrupts(mode, vectors)?;
        self.interrupts = (mode, vectors);
        if self.running {
            self.hardware.enable_interrupts(mode, vectors, &self.settings)?;
        }
        Ok(())
    }

    /// Waits up to `limit` for an interrupt, acknowledges it and says what it was. Call [`Nic::rearm`] with the vector when
    /// the queues have been emptied.
    ///
    /// # Errors
    /// [`NicError::Unsupported`] while polling; [`NicError::Removed`].
    pub fn wait(&mut self, limit: Duration) -> Result<Option<(u16, Causes)>, NicError> {
        let Some(vector) = self.hardware.bus().wait_interrupt(limit)? else { return Ok(None) };
        let causes = self.hardware.acknowledge(self.interrupts.0, vector)?;
        if causes.link {
            self.link_due = Some(Instant::ZERO);
        }
        Ok(Some((vector, causes)))
    }

    /// Lets a vector interrupt again.
    ///
    /// # Errors
    /// [`NicError::Removed`].
    pub fn rearm(&mut self, vector: u16) -> Result<(), NicError> {
        self.hardware.rearm_interrupt(self.interrupts.0, vector)?;
        self.hardware.bus().unmask_interrupt()
    }

    fn bring_up(&mut self, now: Instant) -> Result<(), NicError> {
        let count = self.settings.queues;
        let room = self.config.pool.buffer_size() - self.config.pool.headroom();
        self.settings.receive_buffer = self.hardware.receive_buffer(room).ok_or(NicError::OutOfRange {
            what: "room in a buffer of the receive pool",
            value: room as u64,
            allowed: "at least the smallest buffer size of the part",
        })?;
        let within_64k = self.hardware.limits().buffers_within_64k;
        let mut transmit = Vec::with_capacity(count.into());
        let mut receive = Vec::with_capacity(count.into());
        // The copy buffers' pools are known to the rings through the arenas, so they come first.
        let mut arenas = Arenas::new();
        arenas.add(self.config.pool.clone());
        for pool in &self.config.transmit_pools {
            arenas.add(pool.clone());
        }
        let mut copies = Vec::with_capacity(count.into());
        for _ in 0..count {
            let config =
                PoolConfig { buffers: self.config.copy_buffers.max(8), buffer_size: 2048, headroom: 0, windows: 0 };
            let pool = super::packet_pool(self.hardware.bus(), config)?;
            arenas.add(pool.clone());
            copies.push(pool.cache());
        }
        self.arenas = Arc::new(arenas);
        for (queue, copies) in (0..count).zip(copies) {
            let cell = &self.queues[usize::from(queue)];
            let window = self.hardware.csr().window().clone();
            let n = self.config.transmit_descriptors;
            let region = self.hardware.bus().allocate(ring_bytes(n).max(4096))?;
            let headers = self.hardware.bus().allocate(TransmitRing::<H::Transmit>::header_bytes(n))?;
            let ring = TransmitRing::new(
                self.hardware.transmit_layout(&self.settings, queue),
                region,
                headers,
                n,
                window.clone(),
                self.hardware.transmit_tail(queue),
                copies,
                self.arenas.clone(),
                cell.transmit_counters.clone(),
            )?;
            transmit.push(RingAddress { iova: ring.iova(), bytes: ring.byte_len() });
            let n = self.config.receive_descriptors;
            let region = self.hardware.bus().allocate(ring_bytes(n).max(4096))?;
            let mut ring_rx = ReceiveRing::new(
                self.hardware.receive_layout(&self.settings, queue),
                region,
                n,
                window,
                self.hardware.receive_tail(queue),
                ReceiveBuffers { len: self.settings.receive_buffer, within_64k },
                queue,
                cell.receive_counters.clone(),
            )?;
            receive.push(RingAddress { iova: ring_rx.iova(), bytes: ring_rx.byte_len() });
            let QueuePair { transmit, receive, cache } = &mut *cell.pair.lock();
            ring_rx.arm(cache);
            *transmit = Some(ring);
            *receive = Some(ring_rx);
        }
        self.hardware.start(&self.settings, &transmit, &receive)?;
        // Queues ignore tails that were written before they were enabled, so the first tails come now.
        for cell in &self.queues {
            if let Some(ring) = &cell.pair.lock().receive {
                ring.publish();
            }
        }
        self.hardware.started(&self.settings)?;
        let (mode, vectors) = self.interrupts;
        self.hardware.enable_interrupts(mode, vectors, &self.settings)?;
        self.watches.fill(Watch::default());
        self.running = true;
        self.link_due = Some(now);
        self.watchdog_due = Some(now + WATCHDOG_INTERVAL);
        Ok(())
    }

    /// Stops the hardware and releases all packets; the latter happens whatever the hardware does.
    fn halt(&mut self) -> Result<(), NicError> {
        if !self.running {
            return Ok(());
        }
        self.sums.borrow_mut_harvest(&self.hardware);
        self.running = false;
        self.link_due = None;
        self.watchdog_due = None;
        self.set_link(LinkState::DOWN);
        let stopped = self.hardware.stop();
        self.release(&stopped);
        stopped
    }

    /// Frees the rings. If the hardware did not stop, it loses access to memory first.
    fn release(&mut self, stopped: &Result<(), NicError>) {
        if stopped.is_err() {
            // Without bus mastering nothing reaches memory. If that fails too, the device is gone.
            let _ = pci::disable_master(self.hardware.bus());
        }
        for cell in &self.queues {
            cell.release();
        }
    }

    fn restart(&mut self, now: Instant) -> Result<(), NicError> {
        self.restarts += 1;
        let _ = self.halt();
        self.bring_up(now).inspect_err(|_| self.abandon())
    }

    /// After a start that failed: stop what was started.
    fn abandon(&mut self) {
        let stopped = self.hardware.stop();
        self.release(&stopped);
        self.running = false;
    }

    fn set_link(&mut self, link: LinkState) {
        if link != self.link {
            self.link = link;
            self.link_changes += 1;
        }
    }

    fn poll_link(&mut self, now: Instant) -> Result<(), NicError> {
        let link = self.hardware.poll_link(&self.settings, now)?;
        self.set_link(link);
        self.link_due = Some(now + LINK_INTERVAL);
        Ok(())
    }

    /// Harvests statistics, and looks for transmit queues that hang.
    fn watchdog(&mut self, now: Instant) -> Result<(), NicError> {
        self.watchdog_due = Some(now + WATCHDOG_INTERVAL);
        self.sums.borrow_mut_harvest(&self.hardware);
        self.hardware.csr().flush()?;
        let mut hang = false;
        for (cell, watch) in self.queues.iter().zip(&mut self.watches) {
            let pair = cell.pair.lock();
            let Some(ring) = &pair.transmit else { continue };
            let progress = ring.progress();
            // Finished packets that nobody has reclaimed are no hang.
            if ring.is_idle() || ring.has_finished() || progress != watch.progress {
                watch.stuck = 0;
            } else {
                watch.stuck = watch.stuck.saturating_add(1);
                hang |= watch.stuck >= HANG_INTERVALS;
            }
            watch.progress = progress;
        }
        if hang && self.link.up {
            if self.hardware.is_paused()? {
                return Ok(());
            }
            self.hangs += 1;
            return self.restart(now);
        }
        Ok(())
    }

    fn check_queue(&self, queue: u16) -> Result<&Arc<QueueCell<H>>, DriverError> {
        let queues = self.settings.queues;
        let cell = self.queues.get(usize::from(queue)).ok_or(DriverError::NoSuchQueue { queue, queues })?;
        if cell.taken.load(Ordering::Acquire) { Err(DriverError::QueueTaken { queue }) } else { Ok(cell) }
    }

    fn refresh_capabilities(&mut self) {
        self.capabilities = capabilities(self.hardware.limits(), &self.settings);
    }
}

/// Harvesting into the sums behind a shared reference.
trait HarvestInto {
    fn borrow_mut_harvest<H: Hardware>(&self, hardware: &H);
}

impl HarvestInto for RefCell<Sums> {
    fn borrow_mut_harvest<H: Hardware>(&self, hardware: &H) {
        if let Ok(mut sums) = self.try_borrow_mut() {
            hardware.harvest(&mut sums);
        }
    }
}

fn capabilities(limits: &Limits, settings: &Settings) -> Capabilities {
    let mut c = Capabilities::default();
    c.name = if limits.location.is_empty() {
        format!("{} ({})", limits.driver, limits.part)
    } else {
        format!("{} ({}) at {}", limits.driver, limits.part, limits.location)
    };
    c.mac = settings.mac;
    c.mtu = settings.mtu;
    c.max_mtu = limits.max_frame - 14;
    c.transmit_queues = settings.queues;
    c.receive_queues = settings.queues;
    c.supported = limits.supported;
    c.features = settings.features;
    c.gso = if settings.features.contains(Features::TSO) { limits.gso } else { GsoKind::empty() };
    c.gso_max_size = limits.gso_max_size;
    c.gso_max_segments = limits.gso_max_segments;
    c.max_segments = limits.max_segments;
    c
}

impl<H: Hardware> Driver for Nic<H> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        self.link
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, _now: Instant) -> Result<usize, DriverError> {
        self.check_queue(queue)?.transmit(burst, false)
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        self.check_queue(queue)?.receive(burst, budget, now)
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, _now: Instant) -> Result<usize, DriverError> {
        self.check_queue(queue)?.reclaim(completions)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        if self.running {
            self.sums.borrow_mut_harvest(&self.hardware);
        }
        if let Ok(sums) = self.sums.try_borrow() {
            for (index, name) in self.hardware.counters().iter().enumerate() {
                statistics.add(*name, sums.get(index));
            }
            self.hardware.derive(&sums, statistics);
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (n, cell) in self.queues.iter().enumerate() {
            let (t, r) = (&cell.transmit_counters, &cell.receive_counters);
            for (name, value) in [
                ("tx_segmented", load(&t.segmented)),
                ("tx_csum_offload", load(&t.checksums)),
                ("tx_copied", load(&t.copied)),
                ("tx_copied_bytes", load(&t.copied_bytes)),
                ("tx_busy", load(&t.busy)),
                ("tx_no_copy_buffer", load(&t.no_copy_buffer)),
                ("tx_refused", load(&t.refused)),
                ("tx_aborted_errors", load(&t.aborted)),
                ("rx_csum_offload_good", load(&r.checksum_good)),
                ("rx_csum_offload_errors", load(&r.checksum_errors)),
                ("alloc_rx_buff_failed", load(&r.no_buffer)),
                ("rx_dropped_crc", load(&r.crc_errors)),
                ("rx_dropped_frame", load(&r.frame_errors)),
                ("rx_dropped_length", load(&r.length_errors)),
                ("rx_merged", load(&r.merged)),
                ("rx_aborted", load(&r.aborted)),
            ] {
                statistics.add(name, value);
            }
            statistics.add(format!("tx_queue_{n}_packets"), load(&t.packets));
            statistics.add(format!("tx_queue_{n}_bytes"), load(&t.bytes));
            statistics.add(format!("rx_queue_{n}_packets"), load(&r.packets));
            statistics.add(format!("rx_queue_{n}_bytes"), load(&r.bytes));
        }
        statistics.add("tx_timeout_count", self.hangs);
        statistics.add("tx_restart_count", self.restarts);
        statistics.add("link_changes", self.link_changes);
    }

    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        self.now = now;
        if !self.running {
            return Ok(());
        }
        if self.link_due.is_some_and(|due| due <= now) {
            self.poll_link(now)?;
        }
        if self.watchdog_due.is_some_and(|due| due <= now) {
            self.watchdog(now)?;
        }
        Ok(())
    }

    fn poll_at(&self) -> Option<Instant> {
        [self.link_due, self.watchdog_due].into_iter().flatten().min()
    }

    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        self.now = now;
        if self.running {
            return Ok(());
        }
        if let Err(error) = self.bring_up(now) {
            self.abandon();
            return Err(error.into());
        }
        Ok(())
    }

    fn stop(&mut self, _now: Instant) -> Result<(), DriverError> {
        self.halt().map_err(DriverError::from)
    }

    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        if !mac.is_valid_station() {
            return Err(DriverError::OutOfRange {
                what: "station address",
                value: 0,
                allowed: "no group address and not zero".into(),
            });
        }
        self.settings.mac = mac;
        self.refresh_capabilities();
        if self.running { Ok(self.hardware.apply_filters(&self.settings)?) } else { Ok(()) }
    }

    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        let max = self.capabilities.max_mtu;
        if !(68..=max).contains(&mtu) {
            return Err(DriverError::OutOfRange { what: "MTU", value: mtu as u64, allowed: format!("68 to {max}") });
        }
        if mtu == self.settings.mtu {
            return Ok(());
        }
        self.settings.mtu = mtu;
        self.refresh_capabilities();
        if self.running {
            // Buffer sizes and watermarks follow from it, so the part starts anew, as with Linux's drivers.
            self.restart(self.now)?;
        }
        Ok(())
    }

    fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
        self.settings.groups = groups.to_vec();
        if self.running { Ok(self.hardware.apply_filters(&self.settings)?) } else { Ok(()) }
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> {
        self.settings.promiscuous = on;
        if self.running { Ok(self.hardware.apply_filters(&self.settings)?) } else { Ok(()) }
    }

    fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), DriverError> {
        if let Some(id) = vlans.unwrap_or(&[]).iter().find(|id| **id > 4094) {
            return Err(DriverError::OutOfRange {
                what: "VLAN id",
                value: u64::from(*id),
                allowed: "0 to 4094".into(),
            });
        }
        self.settings.vlans = vlans.map(<[u16]>::to_vec);
        self.settings.features.set(
            Features::RX_VLAN_FILTER,
            vlans.is_some() && self.hardware.limits().supported.contains(Features::RX_VLAN_FILTER),
        );
        self.refresh_capabilities();
        if self.running { Ok(self.hardware.apply_filters(&self.settings)?) } else { Ok(()) }
    }

    fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
        if !self.hardware.limits().supported.contains(features) {
            return Err(DriverError::Unsupported { what: "one of the features" });
        }
        self.settings.features = self.hardware.fix_features(features);
        self.refresh_capabilities();
        for (queue, cell) in (0u16..).zip(&self.queues) {
            let pair = &mut *cell.pair.lock();
            if let Some(ring) = &mut pair.transmit {
                *ring.layout_mut() = self.hardware.transmit_layout(&self.settings, queue);
            }
            if let Some(ring) = &mut pair.receive {
                *ring.layout_mut() = self.hardware.receive_layout(&self.settings, queue);
            }
        }
        if self.running { Ok(self.hardware.apply_features(&self.settings)?) } else { Ok(()) }
    }

    fn transmit_control(&mut self, burst: &mut Burst, _now: Instant) -> Result<usize, DriverError> {
        self.check_queue(0)?.transmit(burst, true)
    }

    fn take_queue(&mut self, queue: u16) -> Result<Box<dyn DriverQueue>, DriverError> {
        if self.settings.queues < 2 {
            return Err(DriverError::Unsupported { what: "queue handles on a device with one queue" });
        }
        let cell = self.check_queue(queue)?.clone();
        cell.taken.store(true, Ordering::Release);
        Ok(Box::new(QueueHandle(cell)))
    }
}

impl<H: Hardware> Drop for Nic<H> {
    fn drop(&mut self) {
        // The hardware must not touch memory that is about to be freed; an error leaves it without bus mastering.
        let _ = self.halt();
    }
}

impl<H: Hardware> core::fmt::Debug for Nic<H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Nic")
            .field("name", &self.capabilities.name)
            .field("running", &self.running)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}
