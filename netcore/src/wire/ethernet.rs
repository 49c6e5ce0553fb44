//! Ethernet (IEEE 802.3, clause 3).

use super::WireError;
use crate::driver::MacAddress;
use core::fmt;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What follows a link header. Values below 1536 are lengths of LLC frames (IEEE 802.3 clause 3.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// 802.1Q tag.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// Slow protocols: LACP, markers.
    pub const SLOW: Self = Self(0x8809);
    /// 802.1ad service tag.
    pub const QINQ: Self = Self(0x88a8);
    /// An Ethernet frame inside GRE or GENEVE (Linux: `ETH_P_TEB`).
    pub const TRANSPARENT_ETHERNET: Self = Self(0x6558);
    /// MPLS, unicast.
    pub const MPLS: Self = Self(0x8847);
    /// MPLS, multicast.
    pub const MPLS_MULTICAST: Self = Self(0x8848);
    /// Link layer discovery.
    pub const LLDP: Self = Self(0x88cc);
    /// Cisco's metadata header, and what is behind it.
    pub const CISCO_METADATA: Self = Self(0x8909);
    /// PPP inside GRE version 1.
    pub const PPP: Self = Self(0x880b);

    /// True if the field is the length of an LLC frame.
    #[inline]
    pub const fn is_length(self) -> bool {
        self.0 < 1536
    }

    /// True for both kinds of VLAN tag.
    #[inline(always)]
    pub const fn is_vlan(self) -> bool {
        self.0 == Self::VLAN.0 || self.0 == Self::QINQ.0
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::IPV4 => f.write_str("IPv4"),
            Self::ARP => f.write_str("ARP"),
            Self::VLAN => f.write_str("802.1Q"),
            Self::IPV6 => f.write_str("IPv6"),
            Self::SLOW => f.write_str("slow protocol"),
            Self::QINQ => f.write_str("802.1ad"),
            Self::TRANSPARENT_ETHERNET => f.write_str("Ethernet"),
            Self::MPLS | Self::MPLS_MULTICAST => f.write_str("MPLS"),
            Self::LLDP => f.write_str("LLDP"),
            Self::PPP => f.write_str("PPP"),
            Self(len) if self.is_length() => write!(f, "LLC, length {len}"),
            Self(other) => write!(f, "ethertype {other:#06x}"),
        }
    }
}

/// A 14-byte Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EthernetHeader {
    destination: [u8; 6],
    source: [u8; 6],
    ethertype: U16,
}

impl EthernetHeader {
    /// Bytes in the header.
    pub const LEN: usize = 14;

    /// A header.
    pub const fn new(destination: MacAddress, source: MacAddress, ethertype: EtherType) -> Self {
        Self { destination: destination.0, source: source.0, ethertype: U16::new(ethertype.0) }
    }

    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        super::prefix(bytes, "Ethernet")
    }

    /// As [`EthernetHeader::parse`], writable.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "Ethernet")
    }

    /// Where the frame goes.
    pub const fn destination(&self) -> MacAddress {
        MacAddress(self.destination)
    }

    /// Where it comes from.
    pub const fn source(&self) -> MacAddress {
        MacAddress(self.source)
    }

    /// What follows.
    #[inline(always)]
    pub fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }

    /// Sets where the frame goes.
    pub fn set_destination(&mut self, mac: MacAddress) {
        self.destination = mac.0;
    }

    /// Sets where it comes from.
    pub fn set_source(&mut self, mac: MacAddress) {
        self.source = mac.0;
    }

    /// Sets what follows.
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        self.ethertype = U16::new(ethertype.0);
    }
}
