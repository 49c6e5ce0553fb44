//! IPv6 and its extension headers (RFC 8200; jumbograms RFC 2675; home address option RFC 6275).

use super::{Protocol, WireError};
use crate::checksum::Sum;
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Extension headers beyond this number end the walk with an error.
const MAX_EXTENSIONS: usize = 16;

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
            return Err(WireError::Field { header: "IPv6", field: "version", offset: 0, value: version, allowed: "6" });
        }
        Ok((header, rest))
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

    /// The extension headers in `rest`, the bytes after this header.
    pub const fn extensions<'a>(&self, rest: &'a [u8]) -> ExtensionHeaders<'a> {
        ExtensionHeaders { next: Protocol(self.next_header), rest, offset: 0, count: 0, done: false }
    }

    /// Walks the extension headers to the upper layer.
    ///
    /// # Errors
    /// [`WireError`] if an extension header is cut off or malformed.
    pub fn upper<'a>(&self, rest: &'a [u8]) -> Result<Upper<'a>, WireError> {
        let mut walk = self.extensions(rest);
        let mut upper = Upper {
            protocol: Protocol(self.next_header),
            offset: 0,
            bytes: rest,
            fragment: false,
            fragment_offset: 0,
            source: self.source(),
            destination: self.destination(),
            jumbo_len: None,
        };
        for extension in &mut walk {
            let extension = extension?;
            match extension.kind {
                Protocol::FRAGMENT => {
                    let word = u16::from_be_bytes([extension.bytes[2], extension.bytes[3]]);
                    // A fragment header with offset 0 and nothing more is an atomic fragment (RFC 6946).
                    upper.fragment |= word & 0xfff9 != 0;
                    upper.fragment_offset = usize::from(word & 0xfff8);
                }
                // The pseudo-header has the final destination: the last address of a routing header that is still to be
                // visited (RFC 8200 section 8.1).
                Protocol::ROUTING if extension.bytes[3] > 0 && matches!(extension.bytes[2], 0 | 2) => {
                    if let Some(last) = extension.bytes[8..].as_chunks::<16>().0.last() {
                        upper.destination = Ipv6Addr::from(*last);
                    }
                }
                Protocol::DESTINATION_OPTIONS => {
                    // Home address (RFC 6275 section 11.3.1).
                    if let Some(home) = option(extension.bytes, 201).and_then(|data| data.first_chunk::<16>()) {
                        upper.source = Ipv6Addr::from(*home);
                    }
                }
                Protocol::HOP_BY_HOP => {
                    if let Some(len) = option(extension.bytes, 194).and_then(|data| data.first_chunk::<4>()) {
                        upper.jumbo_len = Some(u32::from_be_bytes(*len));
                    }
                }
                _ => {}
            }
        }
        upper.protocol = walk.next;
        upper.offset = walk.offset;
        upper.bytes = walk.rest;
        Ok(upper)
    }
}

/// The data of an option in a hop-by-hop or destination options header.
fn option(header: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = header.get(2..)?;
    loop {
        match rest {
            [] => return None,
            [0, after @ ..] => rest = after,
            [kind, len, after @ ..] => {
                let (data, after) = after.split_at_checked(usize::from(*len))?;
                if *kind == wanted {
                    return Some(data);
                }
                rest = after;
            }
            [_] => return None,
        }
    }
}

/// What is behind the extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upper<'a> {
    /// The upper-layer protocol.
    pub protocol: Protocol,
    /// Bytes of extension headers in front of it.
    pub offset: usize,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// True if the packet is one of several fragments.
    pub fragment: bool,
    /// Offset of the fragment in the datagram, bytes.
    pub fragment_offset: usize,
    /// Source address for the pseudo-header.
    pub source: Ipv6Addr,
    /// Destination address for the pseudo-header.
    pub destination: Ipv6Addr,
    /// Payload length of a jumbogram.
    pub jumbo_len: Option<u32>,
}

impl Upper<'_> {
    /// The pseudo-header for a transport part of `len` bytes.
    pub fn pseudo(&self, len: u32) -> Sum {
        Sum::pseudo_ipv6(&self.source.octets(), &self.destination.octets(), self.protocol.0, len)
    }
}

/// One extension header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionHeader<'a> {
    /// Which.
    pub kind: Protocol,
    /// What follows it.
    pub next: Protocol,
    /// All its bytes, 8 or more.
    pub bytes: &'a [u8],
}

/// The extension headers of a packet in order; ends at the upper layer, or at a fragment that is not the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionHeaders<'a> {
    next: Protocol,
    rest: &'a [u8],
    offset: usize,
    count: usize,
    done: bool,
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = Result<ExtensionHeader<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = self.next;
        let known = matches!(
            kind,
            Protocol::HOP_BY_HOP
                | Protocol::ROUTING
                | Protocol::FRAGMENT
                | Protocol::DESTINATION_OPTIONS
                | Protocol::AH
        );
        if self.done || !known {
            return None;
        }
        let mut fail = |error| {
            self.done = true;
            Some(Err(error))
        };
        if self.count == MAX_EXTENSIONS {
            return fail(WireError::Field {
                header: "IPv6 extension headers",
                field: "number",
                offset: self.offset,
                value: MAX_EXTENSIONS as u32 + 1,
                allowed: "at most 16",
            });
        }
        let Some(&[next, len, ..]) = self.rest.first_chunk::<8>() else {
            return fail(WireError::Truncated { header: "IPv6 extension header", len: self.rest.len(), needed: 8 });
        };
        let len = match kind {
            Protocol::FRAGMENT => 8,
            // RFC 4302 section 2.2: in words of four bytes, less two.
            Protocol::AH => ((usize::from(len) + 2) * 4).max(8),
            _ => (usize::from(len) + 1) * 8,
        };
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return fail(WireError::Truncated { header: "IPv6 extension header", len: self.rest.len(), needed: len });
        };
        self.next = Protocol(next);
        self.rest = rest;
        self.offset += len;
        self.count += 1;
        // What follows a later fragment's header is a piece of payload.
        self.done = kind == Protocol::FRAGMENT && u16::from_be_bytes([bytes[2], bytes[3]]) & 0xfff8 != 0;
        Some(Ok(ExtensionHeader { kind, next: self.next, bytes }))
    }
}
