//! What can be configured.

use super::Limits;
use crate::bus::Bus;
use crate::error::NicError;
use alloc::vec::Vec;
use core::time::Duration;
use netcore::driver::Duplex;
use netcore::{Features, MacAddress, PacketPool, PoolConfig};

/// Which speeds autonegotiation offers. All by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertise {
    /// 10 Mbit/s half duplex.
    pub half_10: bool,
    /// 10 Mbit/s full duplex.
    pub full_10: bool,
    /// 100 Mbit/s half duplex.
    pub half_100: bool,
    /// 100 Mbit/s full duplex.
    pub full_100: bool,
    /// 1000 Mbit/s full duplex.
    pub full_1000: bool,
    /// 10 Gbit/s full duplex.
    pub full_10000: bool,
}

impl Default for Advertise {
    fn default() -> Self {
        Self { half_10: true, full_10: true, half_100: true, full_100: true, full_1000: true, full_10000: true }
    }
}

/// Pause frames (IEEE 802.3 annex 31B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum FlowControl {
    /// Neither sent nor obeyed.
    None,
    /// Obeyed only.
    Receive,
    /// Sent only.
    Transmit,
    /// Both.
    #[default]
    Full,
}

impl FlowControl {
    /// From the two directions.
    pub const fn from_directions(transmit: bool, receive: bool) -> Self {
        match (transmit, receive) {
            (false, false) => Self::None,
            (false, true) => Self::Receive,
            (true, false) => Self::Transmit,
            (true, true) => Self::Full,
        }
    }

    /// Pause frames are sent when the receive buffer fills.
    pub const fn sends(self) -> bool {
        matches!(self, Self::Transmit | Self::Full)
    }

    /// Transmission stops when the partner asks.
    pub const fn obeys(self) -> bool {
        matches!(self, Self::Receive | Self::Full)
    }
}

/// The link that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkSettings {
    /// Agree with the partner.
    Negotiate(Advertise),
    /// This speed and duplex whatever the partner says (10 and 100 Mbit/s on copper; 1000 Mbit/s needs negotiation).
    Forced {
        /// Mbit/s.
        speed_mbps: u32,
        /// Duplex mode.
        duplex: Duplex,
    },
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self::Negotiate(Advertise::default())
    }
}

/// How often a vector interrupts at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moderation {
    /// At once.
    Off,
    /// This long after the one before, at least.
    Interval(Duration),
}

impl Default for Moderation {
    /// 8000 interrupts a second, what Linux's drivers start from in bulk traffic.
    fn default() -> Self {
        Self::Interval(Duration::from_micros(125))
    }
}

impl Moderation {
    /// The interval in nanoseconds, 0 for none; saturates.
    pub fn nanos(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Interval(span) => u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Which fields go into the receive hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RssHash {
    /// Addresses and ports of TCP over IPv4.
    pub tcp4: bool,
    /// Addresses and ports of TCP over IPv6.
    pub tcp6: bool,
    /// Addresses of IPv4.
    pub ipv4: bool,
    /// Addresses of IPv6.
    pub ipv6: bool,
    /// Addresses and ports of UDP over IPv4.
    pub udp4: bool,
    /// Addresses and ports of UDP over IPv6.
    pub udp6: bool,
}

impl Default for RssHash {
    /// What Linux's drivers switch on: no UDP ports, because fragments would go elsewhere than whole datagrams.
    fn default() -> Self {
        Self { tcp4: true, tcp6: true, ipv4: true, ipv6: true, udp4: false, udp6: false }
    }
}

/// Receive side scaling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RssSettings {
    /// The Toeplitz key.
    pub key: [u8; 40],
    /// Receive queue for each hash, modulo the length; parts with 128 entries repeat or cut it. Empty: round robin over all
    /// queues.
    pub table: Vec<u16>,
    /// What is hashed.
    pub hash: RssHash,
}

impl Default for RssSettings {
    /// Microsoft's published verification key, so that hashes can be compared with their vectors.
    fn default() -> Self {
        const KEY: [u8; 40] = [
            0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca,
            0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b,
            0xbe, 0xac, 0x01, 0xfa,
        ];
        Self { key: KEY, table: Vec::new(), hash: RssHash::default() }
    }
}

impl RssSettings {
    /// The queue of entry `index` of an indirection table, for `queues` queues.
    pub fn queue(&self, index: usize, queues: u16) -> u16 {
        let queues = queues.max(1);
        match self.table.len() {
            0 => (index % usize::from(queues)) as u16,
            n => self.table[index % n] % queues,
        }
    }
}

/// What a NIC driver is made with.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// Receive buffers. Its memory must come from the device's [`Bus::allocate`]; see [`packet_pool`].
    pub pool: PacketPool,
    /// Further pools that the device reaches, whose packets are sent without a copy.
    pub transmit_pools: Vec<PacketPool>,
    /// Queue pairs; as many as the part has at most.
    pub queues: u16,
    /// Descriptors of each transmit ring, a multiple of 8 (Linux: `ethtool -G tx`).
    pub transmit_descriptors: u16,
    /// Descriptors of each receive ring, a multiple of 8 (Linux: `ethtool -G rx`).
    pub receive_descriptors: u16,
    /// Buffers of 2 KiB per transmit queue for bytes that the device cannot reach where they are.
    pub copy_buffers: usize,
    /// Bytes after the link header.
    pub mtu: usize,
    /// The station address, if not the one in NVM.
    pub mac: Option<MacAddress>,
    /// The features that are on; `None`: what Linux's driver of the family switches on.
    pub features: Option<Features>,
    /// The link.
    pub link: LinkSettings,
    /// Pause frames.
    pub flow_control: FlowControl,
    /// Interrupt rate.
    pub moderation: Moderation,
    /// Receive side scaling.
    pub rss: RssSettings,
}

impl NicConfig {
    /// One queue pair of 256 descriptors each, MTU 1500.
    pub fn new(pool: PacketPool) -> Self {
        Self {
            pool,
            transmit_pools: Vec::new(),
            queues: 1,
            transmit_descriptors: 256,
            receive_descriptors: 256,
            copy_buffers: 128,
            mtu: 1500,
            mac: None,
            features: None,
            link: LinkSettings::default(),
            flow_control: FlowControl::default(),
            moderation: Moderation::default(),
            rss: RssSettings::default(),
        }
    }
}

/// A packet pool in memory that the device of `bus` reaches.
///
/// # Errors
/// [`NicError::NoDmaMemory`]; [`NicError::Io`] with the pool's complaint.
pub fn packet_pool(bus: &mut dyn Bus, config: PoolConfig) -> Result<PacketPool, NicError> {
    let bytes = config.buffer_size.next_multiple_of(64).saturating_mul(config.buffers);
    let region = bus.allocate(bytes)?;
    PacketPool::from_region(region, config)
        .map_err(|error| NicError::Io { what: "packet pool", message: alloc::format!("{error}") })
}

/// The settings in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Station address.
    pub mac: MacAddress,
    /// Bytes after the link header.
    pub mtu: usize,
    /// Receive every frame.
    pub promiscuous: bool,
    /// Group addresses to receive besides broadcast.
    pub groups: Vec<MacAddress>,
    /// VLAN ids to receive; `None`: all.
    pub vlans: Option<Vec<u16>>,
    /// Features that are on.
    pub features: Features,
    /// Queue pairs in use.
    pub queues: u16,
    /// Bytes that hardware may write into a receive buffer.
    pub receive_buffer: u32,
    /// The link.
    pub link: LinkSettings,
    /// Pause frames.
    pub flow_control: FlowControl,
    /// Interrupt rate.
    pub moderation: Moderation,
    /// Receive side scaling.
    pub rss: RssSettings,
}

impl Settings {
    /// Longest frame without FCS and without VLAN tag.
    pub const fn max_frame(&self) -> usize {
        self.mtu + 14
    }

    /// Longest frame on the wire: one VLAN tag and the FCS included.
    pub const fn max_wire_frame(&self) -> usize {
        self.mtu + 14 + 4 + 4
    }

    pub(super) fn new(config: &NicConfig, limits: &Limits, mac: MacAddress) -> Self {
        Self {
            mac: config.mac.unwrap_or(mac),
            mtu: config.mtu,
            promiscuous: false,
            groups: Vec::new(),
            vlans: None,
            features: config.features.unwrap_or(limits.default_features) & limits.supported,
            queues: config.queues,
            receive_buffer: 0,
            link: config.link,
            flow_control: config.flow_control,
            moderation: config.moderation,
            rss: config.rss.clone(),
        }
    }
}
