//! What all Intel NIC drivers share: the [`Driver`](netcore::Driver) over a family's [`Hardware`], and parts for families.
//!
//! | file | subject |
//! | --- | --- |
//! | `driver` | [`Nic`]: start, stop, link, filters, features, statistics, watchdog |
//! | `device` | [`NicDevice`]: a NIC of any family, found by its PCI id |
//! | `queues` | queue pairs, shared between the driver and queue handles |
//! | `settings` | what can be configured |
//! | `advanced` | descriptors that igb and ixgbe share |
//! | [`nvm`] | checksum and station address of the non-volatile memory |
//! | [`phy`] | IEEE 802.3 clause 22 registers, autonegotiation, pause resolution |
//! | [`filter`] | receive address, multicast hash, VLAN table |
//! | [`offload`] | where headers are, and templates for segmentation |
//! | [`statistics`] | clear-on-read registers into counters that do not wrap |

#[cfg(any(feature = "igb", feature = "ixgbe"))]
pub mod advanced;
mod device;
mod driver;
pub mod filter;
pub mod nvm;
pub mod offload;
pub mod phy;
mod queues;
mod settings;
pub mod statistics;

pub use device::{KnownPart, NicDevice, known_part, open};
pub use driver::Nic;
pub use queues::QueueHandle;
pub use settings::{
    Advertise, FlowControl, LinkSettings, Moderation, NicConfig, RssHash, RssSettings, Settings, packet_pool,
};

use crate::bus::{Bus, InterruptMode};
use crate::error::NicError;
use crate::mmio::Csr;
use crate::ring::{ReceiveLayout, TransmitLayout};
use alloc::string::String;
use netcore::{Features, GsoKind, Instant, LinkState, MacAddress, Statistics};
use statistics::Sums;

/// What a part can do; fixed once it is probed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Name of the part ("82546GB").
    pub part: &'static str,
    /// Name of the driver as `ethtool -i` has it ("e1000").
    pub driver: &'static str,
    /// Where the device is, for people; empty if unknown.
    pub location: String,
    /// Longest frame, bytes, without FCS and without a VLAN tag.
    pub max_frame: usize,
    /// Transmit queues.
    pub transmit_queues: u16,
    /// Receive queues.
    pub receive_queues: u16,
    /// Most descriptors of a ring.
    pub max_descriptors: u16,
    /// Features that can be switched on.
    pub supported: Features,
    /// Features that are on unless the configuration says otherwise.
    pub default_features: Features,
    /// Super-packets that the part cuts.
    pub gso: GsoKind,
    /// Longest super-packet, bytes.
    pub gso_max_size: usize,
    /// Most segments of a super-packet.
    pub gso_max_segments: usize,
    /// Most pieces of one packet.
    pub max_segments: usize,
    /// No receive buffer may cross a 64 KiB boundary.
    pub buffers_within_64k: bool,
}

/// A ring as the queue registers describe it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingAddress {
    /// Device address of the first descriptor, a multiple of 128.
    pub iova: u64,
    /// Bytes in the ring, a multiple of 128.
    pub bytes: u32,
}

/// The registers of one family. [`Nic`] makes a [`Driver`](netcore::Driver) of it.
///
/// Methods run on the control path and may sleep through the bus, each within a bound.
pub trait Hardware: Send + 'static {
    /// Transmit descriptors.
    type Transmit: TransmitLayout;
    /// Receive descriptors.
    type Receive: ReceiveLayout;

    /// What the part can do.
    fn limits(&self) -> &Limits;

    /// The station address in NVM.
    fn permanent_mac(&self) -> MacAddress;

    /// The registers.
    fn csr(&self) -> &Csr;

    /// The bus.
    fn bus(&mut self) -> &mut dyn Bus;

    /// Offset of the transmit tail register of a queue.
    fn transmit_tail(&self, queue: u16) -> u32;

    /// Offset of the receive tail register of a queue.
    fn receive_tail(&self, queue: u16) -> u32;

    /// The transmit layout of a queue, remembering nothing yet.
    fn transmit_layout(&self, settings: &Settings, queue: u16) -> Self::Transmit;

    /// The receive layout of a queue.
    fn receive_layout(&self, settings: &Settings, queue: u16) -> Self::Receive;

    /// The largest buffer size the hardware can be told that is not above `room` bytes; `None` if there is none.
    fn receive_buffer(&self, room: usize) -> Option<u32>;

    /// Resets the part and programs everything `settings` says; enables the queues, which then wait for their tails.
    ///
    /// # Errors
    /// Any; the part is then stopped.
    fn start(&mut self, settings: &Settings, transmit: &[RingAddress], receive: &[RingAddress])
    -> Result<(), NicError>;

    /// Called after the first receive tails were written; enables what must come after that.
    ///
    /// # Errors
    /// [`NicError::Removed`], [`NicError::Timeout`].
    fn started(&mut self, settings: &Settings) -> Result<(), NicError> {
        let _ = settings;
        Ok(())
    }

    /// Stops all queues and DMA: afterwards the hardware touches no memory. Interrupts are masked.
    ///
    /// # Errors
    /// [`NicError::Timeout`] if a queue did not stop; [`Nic`] then takes bus mastering away before it frees memory.
    fn stop(&mut self) -> Result<(), NicError>;

    /// Programs station address, multicast, promiscuous mode and VLAN filter. May be called while running.
    ///
    /// # Errors
    /// [`NicError::Removed`].
    fn apply_filters(&mut self, settings: &Settings) -> Result<(), NicError>;

    /// Programs the features that are switched while running. The layouts were changed before.
    ///
    /// # Errors
    /// [`NicError::Removed`].
    fn apply_features(&mut self, settings: &Settings) -> Result<(), NicError>;

    /// Looks at the link, and does what a change of it needs. Does not sleep for longer than a millisecond.
    ///
    /// # Errors
    /// [`NicError::Removed`], [`NicError::Phy`].
    fn poll_link(&mut self, settings: &Settings, now: Instant) -> Result<LinkState, NicError>;

    /// Adds what the clear-on-read statistics registers hold to `sums`.
    fn harvest(&self, sums: &mut Sums);

    /// The names of the sums, in order: ethtool's.
    fn counters(&self) -> &'static [&'static str];

    /// Adds counters that are formed of others to `statistics`.
    fn derive(&self, sums: &Sums, statistics: &mut Statistics) {
        let _ = (sums, statistics);
    }

    /// The nearest set of features that the part can have at once (Linux: `ndo_fix_features`).
    fn fix_features(&self, features: Features) -> Features {
        features
    }

    /// True if transmission stands still for a reason other than a hang (the partner sent PAUSE).
    ///
    /// # Errors
    /// [`NicError::Removed`].
    fn is_paused(&self) -> Result<bool, NicError> {
        Ok(false)
    }

    /// Routes and enables interrupts of all queues, `vectors` of them; link changes come on the last vector. With
    /// [`InterruptMode::Polling`] everything is masked.
    ///
    /// # Errors
    /// [`NicError::Unsupported`], [`NicError::Removed`].
    fn enable_interrupts(&mut self, mode: InterruptMode, vectors: u16, settings: &Settings) -> Result<(), NicError>;

    /// Acknowledges an interrupt on `vector` and says what it was. The cause stays masked until
    /// [`Hardware::rearm_interrupt`].
    ///
    /// # Errors
    /// [`NicError::Removed`].
    fn acknowledge(&mut self, mode: InterruptMode, vector: u16) -> Result<Causes, NicError>;

    /// Lets the causes of `vector` interrupt again.
    ///
    /// # Errors
    /// [`NicError::Removed`].
    fn rearm_interrupt(&mut self, mode: InterruptMode, vector: u16) -> Result<(), NicError>;

    /// Tests that registers hold what is written to them, with the part stopped.
    ///
    /// # Errors
    /// [`NicError::Io`] naming the register.
    fn test_registers(&mut self) -> Result<(), NicError>;

    /// Reads the whole NVM and checks its checksum.
    ///
    /// # Errors
    /// [`NicError::NvmChecksum`].
    fn test_nvm(&mut self) -> Result<(), NicError>;

    /// Connects transmit to receive inside the MAC, or ends that. Called while running.
    ///
    /// # Errors
    /// [`NicError::Unsupported`].
    fn set_loopback(&mut self, on: bool) -> Result<(), NicError>;
}

/// Why a NIC interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Causes {
    /// It was this device that interrupted.
    pub mine: bool,
    /// Received frames, one bit per queue.
    pub receive: u64,
    /// Transmitted frames, one bit per queue.
    pub transmit: u64,
    /// The link may have changed.
    pub link: bool,
    /// A receive queue ran out of descriptors or buffer space.
    pub overrun: bool,
}
