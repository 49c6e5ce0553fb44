//! The igb family: 82575, 82576, and I350 and I210 where they are the same.
//!
//! ```no_run
//! # fn open(mut bus: Box<dyn netcore_drivers::Bus>) -> Result<(), Box<dyn core::error::Error>> {
//! use netcore::{Driver, Instant, PoolConfig};
//! use netcore_drivers::igb::Igb;
//! use netcore_drivers::nic::{Nic, NicConfig, packet_pool};
//!
//! let pool = packet_pool(&mut *bus, PoolConfig::with_buffers(4096))?;
//! let mut config = NicConfig::new(pool);
//! config.queues = 4;
//! let mut nic = Nic::new(Igb::probe(bus)?, config)?;
//! nic.start(Instant::ZERO)?;
//! # Ok(()) }
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `part` | which parts there are |
//! | [`regs`] | registers |
//! | `reset` | reset rules |
//! | `semaphore` | what is shared with firmware and other ports |
//! | `nvm` | EERD, checksum, station address |
//! | `phy` | MDIC, the internal PHYs |
//! | `link` | copper, SerDes; flow control |
//! | `start` | the order of initialisation; stop |
//! | `filters` | addresses, multicast, VLANs, receive hash |
//! | `interrupt` | MSI-X, MSI, the line; moderation |
//! | `statistics` | registers and ethtool's names |
//! | `selftest` | registers |
//!
//! Descriptors are those of [`nic::advanced`](crate::nic::advanced).

mod filters;
mod interrupt;
mod link;
mod nvm;
mod part;
mod phy;
pub mod regs;
mod reset;
mod selftest;
mod semaphore;
mod start;
mod statistics;

pub use part::{Generation, PARTS, Part};

use crate::bus::{Bus, InterruptMode, pci};
use crate::error::NicError;
use crate::mmio::Csr;
use crate::nic::advanced::{Abilities, Contexts, IgbBits, Receive, Switches, Transmit};
use crate::nic::statistics::Sums;
use crate::nic::{Causes, Hardware, Limits, RingAddress, Settings};
use alloc::boxed::Box;
use alloc::string::String;
use netcore::{Features, GsoKind, Instant, LinkState, MacAddress, Statistics};
use regs::{CTRL_EXT, STATUS, ctrl_ext, receive_queue, rx, status, transmit_queue, tx};

/// Longest frame, FCS included (82576 datasheet 1.3).
const JUMBO: usize = 9728;
/// Bytes of a data descriptor: what Linux's driver uses, below the 16 bits of the field.
const DESCRIPTOR_BYTES: u32 = 32 << 10;
/// Largest receive buffer that is used, bytes.
const LARGEST_BUFFER: usize = 16 << 10;

/// What the line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Medium {
    /// Twisted pair, internal PHY.
    Copper,
    /// 1000BASE-X or -KX: optical module or backplane.
    Serdes,
}

/// The registers of one port.
pub struct Igb {
    bus: Box<dyn Bus>,
    csr: Csr,
    part: Part,
    medium: Medium,
    limits: Limits,
    mac: MacAddress,
    /// Number of this port on the part.
    port: u8,
    link: link::State,
    interrupts: (InterruptMode, u16),
    queues_in_use: u16,
    /// The register semaphore may have been left by a driver that crashed, and is taken away if it does not come free.
    semaphore_may_be_stuck: bool,
}

impl Igb {
    /// Takes a device over: identifies it, resets it, checks its NVM and reads its address.
    ///
    /// # Errors
    /// [`NicError::UnknownDevice`] if it is none of this family; [`NicError::NvmChecksum`]; [`NicError::NvmMac`];
    /// [`NicError::Semaphore`]; [`NicError::Removed`]; [`NicError::Unsupported`] if its line goes to an external PHY (SGMII).
    pub fn probe(mut bus: Box<dyn Bus>) -> Result<Self, NicError> {
        let identity = pci::identify(&mut *bus)?;
        let part = (identity.vendor == pci::VENDOR_INTEL)
            .then(|| part::find(identity.device))
            .flatten()
            .ok_or(NicError::UnknownDevice { vendor: identity.vendor, device: identity.device, family: "igb" })?;
        pci::enable(&mut *bus)?;
        let csr = Csr::new(bus.map_bar(0)?);
        let state = csr.read(STATUS)?;
        let mut this = Self {
            bus,
            csr,
            part,
            medium: Medium::Copper,
            limits: limits(part),
            mac: MacAddress::default(),
            port: ((state & status::FUNCTION) >> 2) as u8,
            link: link::State::default(),
            interrupts: (InterruptMode::Polling, 0),
            queues_in_use: 1,
            semaphore_may_be_stuck: true,
        };
        this.find_port()?;
        this.reset()?;
        this.medium = match (this.csr.read(CTRL_EXT)? & ctrl_ext::LINK_MODE) >> ctrl_ext::LINK_MODE_SHIFT {
            0 => Medium::Copper,
            2 => return Err(NicError::Unsupported { what: "SGMII to an external PHY" }),
            _ => Medium::Serdes,
        };
        this.check_nvm()?;
        this.mac = this.station_address()?;
        Ok(this)
    }

    /// The part.
    pub const fn part(&self) -> Part {
        self.part
    }

    /// What the line is.
    pub const fn medium(&self) -> Medium {
        self.medium
    }

    /// Where the device is, for people: shown in the driver's name.
    pub fn set_location(&mut self, location: impl Into<String>) {
        self.limits.location = location.into();
    }
}

fn limits(part: Part) -> Limits {
    let mut supported = Features::SCATTER_GATHER
        | Features::TX_CHECKSUM_GENERIC
        | Features::TX_VLAN
        | Features::RX_CHECKSUM
        | Features::RX_VLAN
        | Features::RX_VLAN_FILTER
        | Features::RX_HASH
        | Features::TSO
        | Features::RX_ALL;
    let mut gso = GsoKind::TCPV4 | GsoKind::TCPV6;
    if part.generation != Generation::I82575 {
        supported |= Features::TX_CHECKSUM_SCTP;
        gso |= GsoKind::UDP_L4 | GsoKind::UDP_TUNNEL | GsoKind::UDP_TUNNEL_CSUM;
    }
    // The I211 has half the queues of the I210.
    let queues = if part.name == "I211" { 2 } else { part.generation.queues() };
    Limits {
        part: part.name,
        driver: "igb",
        location: String::new(),
        max_frame: JUMBO - 8,
        transmit_queues: queues,
        receive_queues: queues,
        max_descriptors: 4096,
        supported,
        default_features: supported - Features::RX_ALL - Features::RX_VLAN_FILTER,
        gso,
        gso_max_size: 65536,
        gso_max_segments: 65535,
        max_segments: 32,
        buffers_within_64k: false,
    }
}

impl Hardware for Igb {
    type Transmit = Transmit;
    type Receive = Receive<IgbBits>;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn permanent_mac(&self) -> MacAddress {
        self.mac
    }

    fn csr(&self) -> &Csr {
        &self.csr
    }

    fn bus(&mut self) -> &mut dyn Bus {
        &mut *self.bus
    }

    fn transmit_tail(&self, queue: u16) -> u32 {
        transmit_queue(queue) + tx::TDT
    }

    fn receive_tail(&self, queue: u16) -> u32 {
        receive_queue(queue) + rx::RDT
    }

    fn transmit_layout(&self, settings: &Settings, queue: u16) -> Transmit {
        let on = |feature| settings.features.contains(feature);
        // 82575: all queues share the contexts, so each has one of its own. Later: two for each queue.
        let contexts = match self.part.generation {
            Generation::I82575 => Contexts { first: queue as u8, count: 1 },
            _ => Contexts { first: 0, count: 2 },
        };
        Transmit::new(Abilities {
            max_frame: settings.max_frame(),
            checksum: on(Features::TX_CHECKSUM_GENERIC),
            sctp: on(Features::TX_CHECKSUM_SCTP),
            gso: if on(Features::TSO) { self.limits.gso } else { GsoKind::empty() },
            vlan: on(Features::TX_VLAN),
            limit: DESCRIPTOR_BYTES,
            contexts,
        })
    }

    fn receive_layout(&self, settings: &Settings, _queue: u16) -> Receive<IgbBits> {
        let on = |feature| settings.features.contains(feature);
        Receive::new(Switches {
            checksum: on(Features::RX_CHECKSUM),
            strip: on(Features::RX_VLAN),
            keep_bad: on(Features::RX_ALL),
            hash: on(Features::RX_HASH),
        })
    }

    fn receive_buffer(&self, room: usize) -> Option<u32> {
        let bytes = room.min(LARGEST_BUFFER) & !1023;
        (bytes > 0).then_some(bytes as u32)
    }

    fn start(
        &mut self,
        settings: &Settings,
        transmit: &[RingAddress],
        receive: &[RingAddress],
    ) -> Result<(), NicError> {
        self.queues_in_use = settings.queues;
        self.bring_up(settings, transmit, receive)
    }

    fn stop(&mut self) -> Result<(), NicError> {
        self.shut_down()
    }

    fn apply_filters(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.program_filters(settings)?;
        self.update_rctl(settings)
    }

    fn apply_features(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.program_offloads(settings)?;
        self.update_rctl(settings)
    }

    fn poll_link(&mut self, settings: &Settings, _now: Instant) -> Result<LinkState, NicError> {
        self.check_link(settings)
    }

    fn harvest(&self, sums: &mut Sums) {
        self.collect(sums);
    }

    fn counters(&self) -> &'static [&'static str] {
        statistics::NAMES
    }

    fn derive(&self, sums: &Sums, statistics: &mut Statistics) {
        statistics::derive(sums, statistics);
    }

    fn is_paused(&self) -> Result<bool, NicError> {
        Ok(self.csr.read(STATUS)? & status::TXOFF != 0)
    }

    fn enable_interrupts(&mut self, mode: InterruptMode, vectors: u16, settings: &Settings) -> Result<(), NicError> {
        self.set_interrupts(mode, vectors, settings)
    }

    fn acknowledge(&mut self, mode: InterruptMode, vector: u16) -> Result<Causes, NicError> {
        self.acknowledge_interrupt(mode, vector)
    }

    fn rearm_interrupt(&mut self, mode: InterruptMode, vector: u16) -> Result<(), NicError> {
        self.rearm(mode, vector)
    }

    fn test_registers(&mut self) -> Result<(), NicError> {
        self.registers_hold()
    }

    fn test_nvm(&mut self) -> Result<(), NicError> {
        self.check_nvm()
    }

    fn set_loopback(&mut self, on: bool) -> Result<(), NicError> {
        self.loop_back(on)
    }
}

impl core::fmt::Debug for Igb {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Igb").field("part", &self.part).field("mac", &self.mac).finish_non_exhaustive()
    }
}
