//! The e1000 family: 82540EM, 82545EM/GM, 82546EB/GB ([`E1000`]) and the 82574L ([`E1000e`]).
//!
//! ```no_run
//! # fn open(mut bus: Box<dyn netcore_drivers::Bus>) -> Result<(), Box<dyn core::error::Error>> {
//! use netcore::{Driver, Instant, PoolConfig};
//! use netcore_drivers::e1000::E1000;
//! use netcore_drivers::nic::{Nic, NicConfig, packet_pool};
//!
//! let pool = packet_pool(&mut *bus, PoolConfig::with_buffers(1024))?;
//! let mut nic = Nic::new(E1000::probe(bus)?, NicConfig::new(pool))?;
//! nic.start(Instant::ZERO)?;
//! # Ok(()) }
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `part` | which parts there are |
//! | [`regs`] | registers |
//! | `reset` | reset rules and errata |
//! | `nvm` | EERD and Microwire |
//! | `phy` | MDIC, the Marvell PHYs |
//! | `link` | copper, fibre, SerDes; flow control |
//! | `start` | the order of initialisation; stop |
//! | `filters` | addresses, multicast, VLANs |
//! | `interrupt` | causes, moderation, MSI-X of the 82574 |
//! | `statistics` | registers and ethtool's names |
//! | `transmit`, `receive` | descriptors |
//! | `selftest` | registers, NVM, loopback |

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
mod start;
mod statistics;
mod transmit;

pub use part::{Generation, Medium, PARTS, Part};
pub use receive::{Extended, Legacy};
pub use transmit::Transmit;

use crate::bus::{Bus, InterruptMode, pci};
use crate::error::NicError;
use crate::mmio::{Csr, Mmio};
use crate::nic::statistics::Sums;
use crate::nic::{Causes, Hardware, Limits, RingAddress, Settings};
use crate::ring::ReceiveLayout;
use alloc::boxed::Box;
use alloc::string::String;
use core::marker::PhantomData;
use netcore::{Features, GsoKind, Instant, LinkState, MacAddress, Statistics};
use receive::Switches;
use regs::{QUEUE, RDT, STATUS, TDT, status};
use transmit::Abilities;

/// A part with legacy receive descriptors: 82540, 82545, 82546.
pub type E1000 = Family<Legacy>;
/// A part with extended receive descriptors: 82574L.
pub type E1000e = Family<Extended>;

/// The receive layouts of the family.
pub trait Format: ReceiveLayout + Sized {
    /// Name of the driver as `ethtool -i` has it.
    const DRIVER: &'static str;
    /// True for the generations that use it.
    fn serves(generation: Generation) -> bool;
    #[doc(hidden)]
    fn with(switches: FormatSwitches) -> Self;
}

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct FormatSwitches(Switches);

impl Format for Legacy {
    const DRIVER: &'static str = "e1000";
    fn serves(generation: Generation) -> bool {
        generation != Generation::E82574
    }
    fn with(switches: FormatSwitches) -> Self {
        Self(switches.0)
    }
}

impl Format for Extended {
    const DRIVER: &'static str = "e1000e";
    fn serves(generation: Generation) -> bool {
        generation == Generation::E82574
    }
    fn with(switches: FormatSwitches) -> Self {
        Self(switches.0)
    }
}

/// Longest frame of the 8254x, FCS included: what Intel's drivers allow of the 16 KiB that the receive path can chain.
const JUMBO_8254X: usize = 0x3f00;
/// Longest frame of the 82574, FCS included.
const JUMBO_82574: usize = 9234;

/// The registers of one part.
pub struct Family<F: Format> {
    bus: Box<dyn Bus>,
    csr: Csr,
    /// The I/O window, for the reset of the parts before revision 3.
    io: Option<Mmio>,
    part: Part,
    limits: Limits,
    mac: MacAddress,
    /// On a PCI-X bus.
    pcix: bool,
    /// Number of this function on the part.
    function: u8,
    link: link::State,
    interrupts: (InterruptMode, u16),
    format: PhantomData<fn() -> F>,
}

impl<F: Format> Family<F> {
    /// Takes a device over: identifies it, resets it, checks its NVM and reads its address.
    ///
    /// # Errors
    /// [`NicError::UnknownDevice`] if it is none of this family; [`NicError::NvmChecksum`]; [`NicError::NvmMac`];
    /// [`NicError::Removed`]; [`NicError::Timeout`].
    pub fn probe(mut bus: Box<dyn Bus>) -> Result<Self, NicError> {
        let identity = pci::identify(&mut *bus)?;
        let part = (identity.vendor == pci::VENDOR_INTEL)
            .then(|| part::find(identity.device))
            .flatten()
            .filter(|part| F::serves(part.generation))
            .ok_or(NicError::UnknownDevice { vendor: identity.vendor, device: identity.device, family: F::DRIVER })?;
        pci::enable(&mut *bus)?;
        let csr = Csr::new(bus.map_bar(0)?);
        // The window serves one step of the reset only, which also works through memory.
        let io = if part.generation == Generation::E82574 { None } else { bus.map_io().ok() };
        let state = csr.read(STATUS)?;
        let mut this = Self {
            bus,
            csr,
            io,
            part,
            limits: limits::<F>(part),
            mac: MacAddress::default(),
            pcix: part.generation != Generation::E82574 && state & status::PCIX != 0,
            function: ((state & status::FUNCTION) >> 2) as u8,
            link: link::State::default(),
            interrupts: (InterruptMode::Polling, 0),
            format: PhantomData,
        };
        this.reset()?;
        this.limit_pcix_reads()?;
        this.check_nvm()?;
        this.mac = this.nvm_mac()?;
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

    const fn is_82574(&self) -> bool {
        matches!(self.part.generation, Generation::E82574)
    }
}

fn limits<F: Format>(part: Part) -> Limits {
    let pcie = part.generation == Generation::E82574;
    let mut supported = Features::SCATTER_GATHER
        | Features::TX_CHECKSUM_GENERIC
        | Features::TX_VLAN
        | Features::RX_CHECKSUM
        | Features::RX_VLAN
        | Features::RX_VLAN_FILTER
        | Features::TSO
        | Features::RX_ALL;
    let mut gso = GsoKind::TCPV4;
    if pcie {
        supported |= Features::RX_HASH;
        gso |= GsoKind::TCPV6;
    }
    Limits {
        part: part.name,
        driver: F::DRIVER,
        location: String::new(),
        max_frame: if pcie { JUMBO_82574 - 8 } else { JUMBO_8254X - 4 },
        transmit_queues: if pcie { 2 } else { 1 },
        receive_queues: if pcie { 2 } else { 1 },
        max_descriptors: 4096,
        supported,
        default_features: supported - Features::RX_ALL - Features::RX_VLAN_FILTER,
        gso,
        gso_max_size: 65536,
        gso_max_segments: 65535,
        max_segments: 32,
        buffers_within_64k: part.generation.is_82545_or_82546(),
    }
}

impl<F: Format> Hardware for Family<F> {
    type Transmit = Transmit;
    type Receive = F;

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
        TDT + QUEUE * u32::from(queue)
    }

    fn receive_tail(&self, queue: u16) -> u32 {
        RDT + QUEUE * u32::from(queue)
    }

    fn transmit_layout(&self, settings: &Settings, _queue: u16) -> Transmit {
        Transmit::new(Abilities {
            max_frame: settings.max_frame(),
            checksum: settings.features.contains(Features::TX_CHECKSUM_GENERIC),
            gso: if settings.features.contains(Features::TSO) { self.limits.gso } else { GsoKind::empty() },
            vlan: settings.features.contains(Features::TX_VLAN),
            pcix: self.pcix,
            sentinel: !self.is_82574(),
            own_contexts: settings.queues == 1,
        })
    }

    fn receive_layout(&self, settings: &Settings, _queue: u16) -> F {
        F::with(FormatSwitches(Switches {
            checksum: settings.features.contains(Features::RX_CHECKSUM),
            strip: settings.features.contains(Features::RX_VLAN),
            keep_bad: settings.features.contains(Features::RX_ALL),
            hash: settings.features.contains(Features::RX_HASH),
        }))
    }

    fn receive_buffer(&self, room: usize) -> Option<u32> {
        // 256 to 1024 exist, too, but chaining a full-sized frame over so many is for no one.
        [16384, 8192, 4096, 2048, 1024, 512, 256].into_iter().find(|size| *size as usize <= room)
    }

    fn start(
        &mut self,
        settings: &Settings,
        transmit: &[RingAddress],
        receive: &[RingAddress],
    ) -> Result<(), NicError> {
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

    fn poll_link(&mut self, settings: &Settings, now: Instant) -> Result<LinkState, NicError> {
        self.check_link(settings, now)
    }

    fn harvest(&self, sums: &mut Sums) {
        sums.harvest(&self.csr, statistics::REGISTERS);
    }

    fn counters(&self) -> &'static [&'static str] {
        statistics::NAMES
    }

    fn derive(&self, sums: &Sums, statistics: &mut Statistics) {
        statistics::derive(sums, statistics);
    }

    fn fix_features(&self, features: Features) -> Features {
        // One bit, CTRL.VME, rules both directions, so a tag is inserted only if tags are removed (as in Linux's driver).
        if features.contains(Features::RX_VLAN) { features } else { features - Features::TX_VLAN }
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

impl<F: Format> core::fmt::Debug for Family<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Family").field("part", &self.part).field("mac", &self.mac).finish_non_exhaustive()
    }
}
