//! IPv6 (RFC 8200). Extension headers are in `extension.rs`.

use super::{Protocol, WireError};
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 40 bytes of an IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6Header {
    version_class_flow: U32,
    payload_len: U16,
    next_header: u8,
    hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl Ipv6Header {
    /// Bytes in the header.
    pub const LEN: usize = 40;

    /// A header.
    pub fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_header: Protocol,
        payload_len: u16,
        hop_limit: u8,
    ) -> Self {
        Self {
            version_class_flow: U32::new(6 << 28),
            payload_len: U16::new(payload_len),
            next_header: next_header.0,
            hop_limit,
            source: source.octets(),
            destination: destination.octets(),
        }
    }

    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError`] if the version is not 6 or bytes are missing.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        let (header, rest) = super::prefix::<Self>(bytes, "IPv6")?;
        let version = header.version_class_flow.get() >> 28;
        if version != 6 {
            return Err(WireError::field("IPv6", "version", 0, version, "6"));
        }
        Ok((header, rest))
    }

    /// As [`Ipv6Header::parse`], writable and without checks beyond the 40 bytes being there.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "IPv6")
    }

    /// Sets the traffic class: DSCP and ECN.
    pub fn set_traffic_class(&mut self, class: u8) {
        self.version_class_flow = U32::new(self.version_class_flow.get() & 0xf00f_ffff | u32::from(class) << 20);
    }

    /// Sets the flow label, 20 bits.
    pub fn set_flow_label(&mut self, label: u32) {
        self.version_class_flow = U32::new(self.version_class_flow.get() & 0xfff0_0000 | label & 0xf_ffff);
    }

    /// Sets the bytes after this header; 0 in jumbograms.
    pub fn set_payload_len(&mut self, len: u16) {
        self.payload_len = U16::new(len);
    }

    /// Sets what follows.
    pub fn set_next_header(&mut self, protocol: Protocol) {
        self.next_header = protocol.0;
    }

    /// Sets the hop limit.
    pub fn set_hop_limit(&mut self, limit: u8) {
        self.hop_limit = limit;
    }

    /// Sets both addresses.
    pub fn set_addresses(&mut self, source: Ipv6Addr, destination: Ipv6Addr) {
        (self.source, self.destination) = (source.octets(), destination.octets());
    }

    /// Traffic class: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
    }

    /// Bytes after this header, as it says. Zero in jumbograms.
    pub fn payload_len(&self) -> u16 {
        self.payload_len.get()
    }

    /// What follows.
    #[inline(always)]
    pub const fn next_header(&self) -> Protocol {
        Protocol(self.next_header)
    }

    /// Hop limit.
    pub const fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.source)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.destination)
    }
}
