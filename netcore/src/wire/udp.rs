//! UDP (RFC 768; zero checksums over IPv6 RFC 6935).

use super::WireError;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 8 bytes of a UDP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    source: U16,
    destination: U16,
    len: U16,
    checksum: U16,
}

impl UdpHeader {
    /// Bytes in the header.
    pub const LEN: usize = 8;
    /// Offset of the checksum field.
    pub const CHECKSUM: usize = 6;

    /// A header with checksum 0; `len` is header and payload.
    pub const fn new(source: u16, destination: u16, len: u16) -> Self {
        Self { source: U16::new(source), destination: U16::new(destination), len: U16::new(len), checksum: U16::ZERO }
    }

    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        super::prefix(bytes, "UDP")
    }

    /// As [`UdpHeader::parse`], writable.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "UDP")
    }

    /// Source port.
    pub fn source(&self) -> u16 {
        self.source.get()
    }

    /// Destination port.
    #[inline(always)]
    pub fn destination(&self) -> u16 {
        self.destination.get()
    }

    /// Bytes of header and payload, as the header says. Zero in packets beyond 64 KiB.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u16 {
        self.len.get()
    }

    /// The checksum field; 0 stands for "none".
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets both ports.
    pub fn set_ports(&mut self, source: u16, destination: u16) {
        (self.source, self.destination) = (U16::new(source), U16::new(destination));
    }

    /// Sets the bytes of header and payload; 0 beyond 64 KiB.
    pub fn set_len(&mut self, len: u16) {
        self.len = U16::new(len);
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }
}
