//! What a device can do, and the state of its link.

use crate::packet::{Gso, GsoKind};
use bitflags::bitflags;
use core::fmt;
use core::str::FromStr;

/// A 48-bit station or group address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// ff:ff:ff:ff:ff:ff
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// True for group addresses, broadcast included (lowest bit of the first byte).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// True for addresses that were not assigned by a manufacturer.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// True if a station can have this address: no group address, not all zeros (Linux: `is_valid_ether_addr`).
    pub fn is_valid_station(self) -> bool {
        !self.is_multicast() && self != Self::default()
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a MAC address: six two-digit hexadecimal bytes separated by ':' or '-' are allowed")]
pub struct MacAddressError;

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<Self, MacAddressError> {
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|p| p.len() == 2 && p.bytes().all(|c| c.is_ascii_hexdigit()));
            *byte = u8::from_str_radix(part.ok_or(MacAddressError)?, 16).map_err(|_| MacAddressError)?;
        }
        if parts.next().is_some() {
            return Err(MacAddressError);
        }
        Ok(Self(bytes))
    }
}

bitflags! {
    /// Offloads of a device that can be switched (Linux: `ethtool -k`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct Features: u32 {
        /// Transmit from more than one segment (`tx-scatter-gather`).
        const SCATTER_GATHER = 1 << 0;
        /// Fill in a checksum anywhere in the packet (`tx-checksum-ip-generic`).
        const TX_CHECKSUM_GENERIC = 1 << 1;
        /// Fill in TCP and UDP checksums over IPv4 (`tx-checksum-ipv4`).
        const TX_CHECKSUM_IPV4 = 1 << 2;
        /// Fill in TCP and UDP checksums over IPv6 (`tx-checksum-ipv6`).
        const TX_CHECKSUM_IPV6 = 1 << 3;
        /// Fill in SCTP checksums (`tx-checksum-sctp`).
        const TX_CHECKSUM_SCTP = 1 << 4;
        /// Insert VLAN tags (`tx-vlan-offload`).
        const TX_VLAN = 1 << 5;
        /// Verify checksums on receive (`rx-checksumming`).
        const RX_CHECKSUM = 1 << 6;
        /// Remove VLAN tags on receive (`rx-vlan-offload`).
        const RX_VLAN = 1 << 7;
        /// Receive hash in packet metadata (`receive-hashing`).
        const RX_HASH = 1 << 8;
        /// Merge segments on receive in hardware (`large-receive-offload`).
        const LRO = 1 << 9;
        /// Accept only listed VLANs (`rx-vlan-filter`).
        const RX_VLAN_FILTER = 1 << 10;
        /// Accept super-packets, see [`Capabilities::gso`] for the kinds (`tx-tcp-segmentation` and others).
        const TSO = 1 << 11;
        /// Deliver frames with a bad frame check sequence (`rx-all`).
        const RX_ALL = 1 << 12;
    }
}

/// Which checksums the device fills in; a shorthand on [`Features`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChecksumOffload {
    /// None.
    None,
    /// TCP and UDP in the outermost IPv4 or IPv6 header only.
    OuterTransport,
    /// Any 16-bit one's complement sum at any place.
    Generic,
}

/// What a device can do. Start from `Default` (a plain device with one queue and MTU 1500) and set what differs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Name for people: driver, part, or path.
    pub name: alloc::string::String,
    /// Station address.
    pub mac: MacAddress,
    /// Bytes after the link header in the longest frame.
    pub mtu: usize,
    /// Smallest MTU that can be set.
    pub min_mtu: usize,
    /// Largest MTU that can be set.
    pub max_mtu: usize,
    /// Transmit queues, 1 or more.
    pub transmit_queues: u16,
    /// Receive queues, 1 or more.
    pub receive_queues: u16,
    /// Features that can be switched on.
    pub supported: Features,
    /// Features that are on.
    pub features: Features,
    /// Kinds of super-packet that the device cuts itself. A packet's whole [`Gso::kind`] must be within this set.
    pub gso: GsoKind,
    /// Longest super-packet the device cuts, bytes (Linux: `tso_max_size`).
    pub gso_max_size: usize,
    /// Most segments of a super-packet the device cuts (Linux: `tso_max_segs`).
    pub gso_max_segments: usize,
    /// Most scatter-gather segments of one packet.
    pub max_segments: usize,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            name: alloc::string::String::new(),
            mac: MacAddress::default(),
            mtu: 1500,
            min_mtu: 68,
            max_mtu: 1500,
            transmit_queues: 1,
            receive_queues: 1,
            supported: Features::empty(),
            features: Features::empty(),
            gso: GsoKind::empty(),
            gso_max_size: 65536,
            gso_max_segments: 65535,
            max_segments: 1,
        }
    }
}

impl Capabilities {
    /// True if the device cuts this super-packet of `len` bytes itself (Linux: `netif_needs_gso`, negated).
    #[inline]
    pub fn segments(&self, gso: Gso, len: usize) -> bool {
        self.features.contains(Features::TSO)
            && self.gso.contains(gso.kind - GsoKind::DODGY)
            && len <= self.gso_max_size
            && usize::from(gso.segments) <= self.gso_max_segments
    }

    /// Which checksums the device fills in.
    pub fn checksum_offload(&self) -> ChecksumOffload {
        if self.features.contains(Features::TX_CHECKSUM_GENERIC) {
            ChecksumOffload::Generic
        } else if self.features.intersects(Features::TX_CHECKSUM_IPV4 | Features::TX_CHECKSUM_IPV6) {
            ChecksumOffload::OuterTransport
        } else {
            ChecksumOffload::None
        }
    }
}

/// Whether both directions can be used at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Duplex {
    /// One at a time.
    Half,
    /// Both.
    #[default]
    Full,
}

/// The state of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct LinkState {
    /// Carrier is present.
    pub up: bool,
    /// Mbit/s; `None` if unknown.
    pub speed_mbps: Option<u32>,
    /// Duplex mode; meaningless while down.
    pub duplex: Duplex,
}

impl LinkState {
    /// No carrier.
    pub const DOWN: Self = Self { up: false, speed_mbps: None, duplex: Duplex::Full };

    /// Up, full duplex, at this speed.
    pub const fn up(speed_mbps: u32) -> Self {
        Self { up: true, speed_mbps: Some(speed_mbps), duplex: Duplex::Full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn mac_addresses_parse_and_print() {
        let mac: MacAddress = "02:00:5e:0A-00:01".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:0a:00:01");
        assert!(mac.is_local() && !mac.is_multicast() && mac.is_valid_station());
        for bad in
            ["", "02:00:5e:0a:00", "02:00:5e:0a:00:01:02", "2:0:5e:a:0:1", "gg:00:00:00:00:00", "+2:00:00:00:00:00"]
        {
            assert_eq!(bad.parse::<MacAddress>(), Err(MacAddressError), "{bad:?}");
        }
    }

    #[test]
    fn a_device_cuts_only_kinds_and_sizes_it_declares() {
        let mut caps = Capabilities { gso: GsoKind::TCPV4, features: Features::TSO, ..Capabilities::default() };
        let gso = Gso { kind: GsoKind::TCPV4, size: 1448, segments: 45 };
        assert!(caps.segments(gso, 65226));
        assert!(caps.segments(Gso { kind: GsoKind::TCPV4 | GsoKind::DODGY, ..gso }, 65226));
        assert!(!caps.segments(gso, 65537));
        assert!(!caps.segments(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL, ..gso }, 65226));
        caps.gso_max_segments = 44;
        assert!(!caps.segments(gso, 65226));
    }
}
