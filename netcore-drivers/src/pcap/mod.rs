//! Capture files: pcap and pcapng, both byte orders, read as a stream and written.
//!
//! [`CaptureReader`] and [`CaptureWriter`] work record by record; [`PcapFile`] is a [`Driver`](netcore::Driver) over them.
//!
//! A damaged file gives every record in front of the damage; then [`CaptureReader::damage`] says what was wrong, at which
//! byte, and what was allowed. That, and the bound on memory whatever a length field claims, is why the formats are read
//! here and not through one of the parsing crates.
//!
//! Formats: draft-ietf-opsawg-pcap (pcap), draft-ietf-opsawg-pcapng (pcapng).

mod driver;
mod reader;
mod sections;
mod writer;

#[cfg(test)]
mod tests;

pub use driver::PcapFile;
pub use reader::{CaptureError, CaptureReader, Damage, Record};
pub use writer::{CaptureWriter, Format, Precision};

use std::fmt;

/// Longest captured packet that is accepted, bytes (libpcap's maximum snapshot length is 256 KiB; super-packets beyond
/// 64 KiB fit well).
pub const MAX_CAPTURED: u32 = 16 << 20;

/// What a record's bytes start with (`LINKTYPE_*`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in the host's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// An IPv4 or IPv6 packet.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: Self = Self(113);
    /// An IPv4 packet.
    pub const IPV4: Self = Self(228);
    /// An IPv6 packet.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// True if the record is an IP packet without link header.
    pub const fn is_raw_ip(self) -> bool {
        matches!(self, Self::RAW | Self::IPV4 | Self::IPV6) || self.0 == 12 || self.0 == 14
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::NULL => "NULL",
            Self::ETHERNET => "EN10MB",
            Self::RAW => "RAW",
            Self::LOOP => "LOOP",
            Self::LINUX_SLL => "LINUX_SLL",
            Self::IPV4 => "IPV4",
            Self::IPV6 => "IPV6",
            Self::LINUX_SLL2 => "LINUX_SLL2",
            Self(other) => return write!(f, "link type {other}"),
        };
        f.write_str(name)
    }
}
