//! The ixgbe family: 82599 (SFP+, backplane, CX4) and X540.
//!
//! ```no_run
//! # fn open(mut bus: Box<dyn netcore_drivers::Bus>) -> Result<(), Box<dyn core::error::Error>> {
//! use netcore::{Driver, Instant, PoolConfig};
//! use netcore_drivers::ixgbe::Ixgbe;
//! use netcore_drivers::nic::{Nic, NicConfig, packet_pool};
//!
//! let pool = packet_pool(&mut *bus, PoolConfig::with_buffers(16384))?;
//! let mut config = NicConfig::new(pool);
//! config.queues = 16;
//! let mut nic = Nic::new(Ixgbe::probe(bus)?, config)?;
//! nic.start(Instant::ZERO)?;
//! # Ok(()) }
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `part` | which parts there are |
//! | [`regs`] | registers |
//! | `reset` | reset rules; the security block around reception |
//! | `semaphore` | what is shared with firmware and the other port |
//! | `nvm` | EERD, checksum, station address |
//! | `sfp` | the module in the cage |
//! | `phy` | MDIO, the 10GBASE-T PHY of the X540 |
//! | `link` | AUTOC, LINKS; flow control |
//! | `start` | the order of initialisation; stop |
//! | `filters` | addresses, multicast, VLANs, receive hash |
//! | `director` | Flow Director |
//! | `interrupt` | MSI-X, MSI, the line; moderation |
//! | `statistics` | registers and ethtool's names |
//! | `receive` | receive descriptors with merged packets |
//! | `selftest` | registers, loopback |
//!
//! Transmit descriptors are those of [`nic::advanced`](crate::nic::advanced).

mod director;
mod filters;
mod interrupt;
mod link;
mod nvm;
mod part;
mod phy;
mod receive;
pub mod regs;
mod reset;
mod selftest;
mod semaphore;
mod sfp;
mod start;
mod statistics;

pub use director::{Flow, FlowAction, FlowProtocol};
pub use part::{Generation, Medium, PARTS, Part};
pub use receive::Descriptors;
pub use sfp::Module;

use crate::bus::{Bus, InterruptMode, pci};
use crate::error::NicError;
use crate::mmio::Csr;
use crate::nic::advanced::{Abilities, Contexts, Switches, Transmit};
use crate::nic::statistics::Sums;
use crate::nic::{Causes, Hardware, Limits, RingAddress, Settings};
use alloc::boxed::Box;
use alloc::string::String;
use netcore::{Features, GsoKind, Instant, LinkState, MacAddress, Statistics};
use regs::{AUTOC, FACTPS, STATUS, TFCS, receive_queue, rx, status, transmit_queue, tx};

/// Queues of the part in each direction.
pub(crate) const QUEUES: u16 = 128;
/// Queues that can transmit without virtualisation or traffic classes.
pub(crate) const TRANSMIT_QUEUES: u16 = 64;
/// Queues that the hash reaches.
pub(crate) const RSS_QUEUES: u16 = 16;
/// Receive address registers.
pub(crate) const ADDRESSES: u32 = 128;
/// Longest frame, FCS included: what Intel's drivers allow of the 15.5 KiB of the part.
const JUMBO: usize = 9728;
/// Bytes of a data descriptor: what Linux's driver uses, below the 16 bits of the field.
const DESCRIPTOR_BYTES: u32 = 16 << 10;
/// Largest receive buffer, bytes.
const LARGEST_BUFFER: usize = 16 << 10;
/// FACTPS: functions and ports are exchanged.
const LAN_FUNCTION_SELECT: u32 = 1 << 30;

/// The registers of one port.
pub struct Ixgbe {
    bus: Box<dyn Bus>,
    csr: Csr,
    part: Part,
    limits: Limits,
    mac: MacAddress,
    /// Number of this port on the part.
    port: u8,
    /// Address of the PHY on the management bus.
    phy: u8,
    /// AUTOC as the NVM sets it.
    original_autoc: u32,
    link: link::State,
    filters: director::Filters,
    director_runs: bool,
    interrupts: (InterruptMode, u16),
    queues_in_use: u16,
    /// The register semaphore may have been left by a driver that crashed, and is taken away if it does not come free.
    semaphore_may_be_stuck: bool,
}

impl Ixgbe {
    /// Takes a device over: identifies it, its module, resets it, checks its NVM and reads its address.
    ///
    /// # Errors
    /// [`NicError::UnknownDevice`] if it is none of this family; [`NicError::Unsupported`] for a module that is none of the
    /// known kinds; [`NicError::NvmChecksum`]; [`NicError::NvmMac`]; [`NicError::Semaphore`]; [`NicError::Removed`].
    pub fn probe(mut bus: Box<dyn Bus>) -> Result<Self, NicError> {
        let identity = pci::identify(&mut *bus)?;
        let part = (identity.vendor == pci::VENDOR_INTEL)
            .then(|| part::find(identity.device))
            .flatten()
            .ok_or(NicError::UnknownDevice { vendor: identity.vendor, device: identity.device, family: "ixgbe" })?;
        pci::enable(&mut *bus)?;
        let csr = Csr::new(bus.map_bar(0)?);
        let state = csr.read(STATUS)?;
        let swapped = csr.read(FACTPS)? & LAN_FUNCTION_SELECT != 0;
        let mut this = Self {
            bus,
            csr,
            part,
            limits: limits(part),
            mac: MacAddress::default(),
            port: ((state & status::FUNCTION) >> 2) as u8 ^ u8::from(swapped),
            phy: 0,
            original_autoc: 0,
            link: link::State::default(),
            filters: director::Filters::default(),
            director_runs: false,
            interrupts: (InterruptMode::Polling, 0),
            queues_in_use: 1,
            semaphore_may_be_stuck: true,
        };
        // A module that cannot be used is told before anything is changed.
        this.identify_module()?;
        this.reset(true)?;
        if part.generation == Generation::X540 {
            this.find_phy()?;
        } else {
            this.original_autoc = this.csr.read(AUTOC)?;
        }
        this.check_nvm()?;
        this.mac = this.station_address()?;
        Ok(this)
    }

    /// The part.
    pub const fn part(&self) -> Part {
        self.part
    }

    /// Where the device is, for people: shown in the driver's name.
    pub fn set_location(&mut self, location: impl Into<String>) {
        self.limits.location = location.into();
    }
}

fn limits(part: Part) -> Limits {
    let supported = Features::SCATTER_GATHER
        | Features::TX_CHECKSUM_GENERIC
        | Features::TX_CHECKSUM_SCTP
        | Features::TX_VLAN
        | Features::RX_CHECKSUM
        | Features::RX_VLAN
        | Features::RX_VLAN_FILTER
        | Features::RX_HASH
        | Features::LRO
        | Features::TSO
        | Features::RX_ALL;
    let gso = GsoKind::TCPV4 | GsoKind::TCPV6 | GsoKind::UDP_L4 | GsoKind::UDP_TUNNEL | GsoKind::UDP_TUNNEL_CSUM;
    Limits {
        part: part.name,
        driver: "ixgbe",
        location: String::new(),
        max_frame: JUMBO - 8,
        transmit_queues: TRANSMIT_QUEUES,
        receive_queues: QUEUES,
        max_descriptors: 4096,
        supported,
        // Merged packets must not be forwarded, so merging waits until it is asked for.
        default_features: supported - Features::RX_ALL - Features::RX_VLAN_FILTER - Features::LRO,
        gso,
        gso_max_size: 65536,
        gso_max_segments: 65535,
        max_segments: 32,
        buffers_within_64k: false,
    }
}

impl Hardware for Ixgbe {
    type Transmit = Transmit;
    type Receive = Descriptors;

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

    fn transmit_layout(&self, settings: &Settings, _queue: u16) -> Transmit {
        let on = |feature| settings.features.contains(feature);
        Transmit::new(Abilities {
            max_frame: settings.max_frame(),
            checksum: on(Features::TX_CHECKSUM_GENERIC),
            sctp: on(Features::TX_CHECKSUM_SCTP),
            gso: if on(Features::TSO) { self.limits.gso } else { GsoKind::empty() },
            vlan: on(Features::TX_VLAN),
            limit: DESCRIPTOR_BYTES,
            contexts: Contexts { first: 0, count: 2 },
        })
    }

    fn receive_layout(&self, settings: &Settings, _queue: u16) -> Descriptors {
        let on = |feature| settings.features.contains(feature);
        let switches = Switches {
            checksum: on(Features::RX_CHECKSUM),
            strip: on(Features::RX_VLAN),
            keep_bad: on(Features::RX_ALL),
            hash: on(Features::RX_HASH),
        };
        Descriptors::new(switches, on(Features::LRO))
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

    fn started(&mut self, _settings: &Settings) -> Result<(), NicError> {
        // Reception comes after all tails.
        self.enable_receive()
    }

    fn stop(&mut self) -> Result<(), NicError> {
        self.director_runs = false;
        self.shut_down()
    }

    fn apply_filters(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.program_filters(settings)
    }

    fn apply_features(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.program_filters(settings)?;
        self.program_offloads(settings)?;
        self.program_stripping(settings)
    }

    fn poll_link(&mut self, settings: &Settings, now: Instant) -> Result<LinkState, NicError> {
        self.check_link(settings, now)
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
        Ok(self.csr.read(TFCS)? & 1 != 0)
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

impl core::fmt::Debug for Ixgbe {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ixgbe").field("part", &self.part).field("mac", &self.mac).finish_non_exhaustive()
    }
}
