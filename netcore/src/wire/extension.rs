//! The extension headers of IPv6 (RFC 8200 section 4; authentication RFC 4302; jumbograms RFC 2675; home address option RFC
//! 6275; segment routing RFC 8754).

use super::{Ipv6Header, Protocol, WireError};
use crate::checksum::Sum;
use core::net::Ipv6Addr;

/// Extension headers beyond this number end the walk with an error.
const MAX_EXTENSIONS: usize = 16;
/// The jumbo payload option.
const JUMBO: u8 = 194;
/// The home address option.
const HOME_ADDRESS: u8 = 201;

impl Ipv6Header {
    /// The extension headers in `rest`, the bytes after this header.
    pub const fn extensions<'a>(&self, rest: &'a [u8]) -> ExtensionHeaders<'a> {
        ExtensionHeaders { next: self.next_header(), rest, offset: 0, count: 0, done: false }
    }

    /// Walks the extension headers to the upper layer.
    ///
    /// # Errors
    /// [`WireError`] if an extension header is cut off or malformed; or if a jumbo payload option is in a packet that has a
    /// payload length or is a fragment, or says less than 65,536 (RFC 2675 section 3: such packets are discarded).
    pub fn upper<'a>(&self, rest: &'a [u8]) -> Result<Upper<'a>, WireError> {
        let mut walk = self.extensions(rest);
        let mut upper = Upper {
            protocol: walk.next,
            offset: 0,
            bytes: rest,
            fragment: false,
            fragment_offset: 0,
            source: self.source(),
            destination: self.destination(),
            jumbo_len: None,
        };
        for extension in &mut walk {
            upper.look_at(&extension?);
        }
        if let Some(len) = upper.jumbo_len
            && (self.payload_len() != 0 || len <= 65535 || upper.fragment)
        {
            return Err(WireError::Field {
                header: "IPv6 jumbo payload option",
                field: "length",
                offset: 2,
                value: len,
                allowed: "65536 or more, in a packet with payload length 0 that is no fragment",
            });
        }
        upper.protocol = walk.next;
        upper.offset = walk.offset;
        upper.bytes = walk.rest;
        Ok(upper)
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
    fn look_at(&mut self, extension: &ExtensionHeader<'_>) {
        let bytes = extension.bytes;
        let option = |wanted| {
            extension.options().map_while(Result::ok).find(|option| option.kind == wanted).map(|option| option.data)
        };
        match extension.kind {
            Protocol::FRAGMENT => {
                let word = u16::from_be_bytes([bytes[2], bytes[3]]);
                // A fragment header with offset 0 and nothing more is an atomic fragment (RFC 6946).
                self.fragment |= word & 0xfff9 != 0;
                self.fragment_offset = usize::from(word & 0xfff8);
            }
            // The pseudo-header has the final destination (RFC 8200 section 8.1), which is in the routing header while there
            // are addresses to visit: the last one in types 0 and 2, the first in segment routing (RFC 8754 section 2).
            Protocol::ROUTING if bytes[3] > 0 => {
                let addresses = bytes[8..].as_chunks::<16>().0;
                let last = match bytes[2] {
                    0 | 2 => addresses.last(),
                    4 => addresses.first(),
                    _ => None,
                };
                if let Some(last) = last {
                    self.destination = Ipv6Addr::from(*last);
                }
            }
            // RFC 6275 section 11.3.1.
            Protocol::DESTINATION_OPTIONS => {
                if let Some(home) = option(HOME_ADDRESS).and_then(|data| data.first_chunk::<16>()) {
                    self.source = Ipv6Addr::from(*home);
                }
            }
            Protocol::HOP_BY_HOP => {
                if let Some(len) = option(JUMBO).and_then(|data| data.first_chunk::<4>()) {
                    self.jumbo_len = Some(u32::from_be_bytes(*len));
                }
            }
            _ => {}
        }
    }

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

impl<'a> ExtensionHeader<'a> {
    /// The options of a hop-by-hop or destination options header; none of any other.
    pub fn options(&self) -> Ipv6Options<'a> {
        let has_options = matches!(self.kind, Protocol::HOP_BY_HOP | Protocol::DESTINATION_OPTIONS);
        Ipv6Options { bytes: if has_options { self.bytes.get(2..).unwrap_or(&[]) } else { &[] } }
    }
}

/// One option of a hop-by-hop or destination options header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Option<'a> {
    /// Type; the first two bits say what a node does that does not know it, the third whether it changes on the way.
    pub kind: u8,
    /// Bytes after type and length.
    pub data: &'a [u8],
}

/// The options of a hop-by-hop or destination options header. Skips padding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Options<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Ipv6Options<'a> {
    type Item = Result<Ipv6Option<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.bytes {
                [] => return None,
                [0, rest @ ..] => self.bytes = rest,
                [kind, len, rest @ ..] if usize::from(*len) <= rest.len() => {
                    let (data, rest) = rest.split_at(usize::from(*len));
                    self.bytes = rest;
                    if *kind != 1 {
                        return Some(Ok(Ipv6Option { kind: *kind, data }));
                    }
                }
                rest => {
                    self.bytes = &[];
                    return Some(Err(WireError::Field {
                        header: "IPv6 option",
                        field: "length",
                        offset: 1,
                        value: rest.get(1).map_or(0, |len| u32::from(*len)),
                        allowed: "up to the end of the extension header",
                    }));
                }
            }
        }
    }
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
            return fail(WireError::truncated("IPv6 extension header", self.rest.len(), 8));
        };
        let len = match kind {
            Protocol::FRAGMENT => 8,
            // RFC 4302 section 2.2: in words of four bytes, less two; index and sequence number are always there.
            Protocol::AH if len == 0 => {
                return fail(WireError::Field {
                    header: "AH",
                    field: "payload length",
                    offset: self.offset + 1,
                    value: 0,
                    allowed: "1 or more",
                });
            }
            Protocol::AH => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return fail(WireError::truncated("IPv6 extension header", self.rest.len(), len));
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
