//! Where the frames of a connection go: addresses and ports.

use crate::error::ConfigError;
use core::net::{IpAddr, SocketAddr};
use netcore::{MacAddress, VlanTag};

/// Link-layer addresses of the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkAddress {
    /// Our station address.
    pub local: MacAddress,
    /// The next hop's station address.
    pub remote: MacAddress,
    /// VLAN tag, carried in the packet's metadata.
    pub vlan: Option<VlanTag>,
}

/// The four-tuple of a connection and how its frames are addressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Ethernet addresses.
    pub link: LinkAddress,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Maximum transmission unit: bytes of an IP packet, at least 576 for IPv4 and 1280 for IPv6.
    pub mtu: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
}

impl Path {
    /// A path with MTU 1500 and TTL 64.
    pub const fn new(link: LinkAddress, local: SocketAddr, remote: SocketAddr) -> Self {
        Self { link, local, remote, mtu: 1500, ttl: 64 }
    }

    /// The same path with another MTU, bytes.
    pub const fn with_mtu(mut self, mtu: u16) -> Self {
        self.mtu = mtu;
        self
    }

    /// The path as the peer sees it.
    pub const fn reversed(self) -> Self {
        let link = LinkAddress { local: self.link.remote, remote: self.link.local, vlan: self.link.vlan };
        Self { link, local: self.remote, remote: self.local, ..self }
    }

    /// Bytes of the IP header.
    pub(crate) const fn ip_header_len(&self) -> usize {
        if self.local.is_ipv4() { 20 } else { 40 }
    }

    /// Checks that both addresses are of one family and the MTU is in range.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (least, allowed) = match (self.local.ip(), self.remote.ip()) {
            (IpAddr::V4(_), IpAddr::V4(_)) => (88, "88 to 65535"),
            (IpAddr::V6(_), IpAddr::V6(_)) => (1280, "1280 to 65535"),
            (local, remote) => return Err(ConfigError::MixedFamilies { local, remote }),
        };
        if self.mtu < least {
            return Err(ConfigError::OutOfRange { name: "mtu", value: u64::from(self.mtu), allowed });
        }
        Ok(())
    }
}
