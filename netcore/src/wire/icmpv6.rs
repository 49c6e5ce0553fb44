//! ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861).

use super::WireError;
use crate::checksum::{self, Sum};
use crate::driver::MacAddress;
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 8 bytes that every ICMPv6 message starts with; what the last four mean depends on the type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmpv6Header {
    kind: u8,
    code: u8,
    checksum: U16,
    rest: U32,
}

/// What an ICMPv6 header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Icmpv6Message {
    /// Type 1. The packet that could not be delivered follows.
    Unreachable {
        /// 0 no route, 1 prohibited, 3 address, 4 port, and others.
        code: u8,
    },
    /// Type 2. The packet follows.
    PacketTooBig {
        /// MTU of the next hop.
        mtu: u32,
    },
    /// Type 3. The packet follows.
    TimeExceeded {
        /// 0 in transit, 1 in reassembly.
        code: u8,
    },
    /// Type 4. The packet follows.
    ParameterProblem {
        /// 0 header field, 1 next header, 2 option.
        code: u8,
        /// Byte of the packet that is wrong.
        pointer: u32,
    },
    /// Types 128 and 129.
    Echo {
        /// False for the request.
        reply: bool,
        /// Which sender of requests.
        id: u16,
        /// Which request.
        seq: u16,
    },
    /// Type 135: a target address and options follow ([`NeighbourMessage`]).
    NeighbourSolicitation,
    /// Type 136: a target address and options follow.
    NeighbourAdvertisement {
        /// The sender is a router.
        router: bool,
        /// In answer to a solicitation.
        solicited: bool,
        /// Replaces what is cached.
        override_cache: bool,
    },
    /// Anything else.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// Bytes 4 to 7.
        rest: u32,
    },
}

impl Icmpv6Header {
    /// Bytes in the header.
    pub const LEN: usize = 8;
    /// Offset of the checksum field.
    pub const CHECKSUM: usize = 2;

    /// A header with checksum 0; see [`Icmpv6Header::fill_checksum`].
    pub const fn new(message: Icmpv6Message) -> Self {
        let (kind, code, rest) = match message {
            Icmpv6Message::Unreachable { code } => (1, code, 0),
            Icmpv6Message::PacketTooBig { mtu } => (2, 0, mtu),
            Icmpv6Message::TimeExceeded { code } => (3, code, 0),
            Icmpv6Message::ParameterProblem { code, pointer } => (4, code, pointer),
            Icmpv6Message::Echo { reply, id, seq } => {
                (if reply { 129 } else { 128 }, 0, (id as u32) << 16 | seq as u32)
            }
            Icmpv6Message::NeighbourSolicitation => (135, 0, 0),
            Icmpv6Message::NeighbourAdvertisement { router, solicited, override_cache } => {
                (136, 0, (router as u32) << 31 | (solicited as u32) << 30 | (override_cache as u32) << 29)
            }
            Icmpv6Message::Other { kind, code, rest } => (kind, code, rest),
        };
        Self { kind, code, checksum: U16::ZERO, rest: U32::new(rest) }
    }

    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        super::prefix(bytes, "ICMPv6")
    }

    /// As [`Icmpv6Header::parse`], writable.
    ///
    /// # Errors
    /// As there.
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "ICMPv6")
    }

    /// Type.
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// Code.
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// The checksum field: pseudo-header, header and everything behind it.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// What the header says.
    pub fn message(&self) -> Icmpv6Message {
        let (code, rest) = (self.code, self.rest.get());
        match (self.kind, code) {
            (1, _) => Icmpv6Message::Unreachable { code },
            (2, 0) => Icmpv6Message::PacketTooBig { mtu: rest },
            (3, _) => Icmpv6Message::TimeExceeded { code },
            (4, _) => Icmpv6Message::ParameterProblem { code, pointer: rest },
            (128 | 129, 0) => {
                Icmpv6Message::Echo { reply: self.kind == 129, id: (rest >> 16) as u16, seq: rest as u16 }
            }
            (135, 0) => Icmpv6Message::NeighbourSolicitation,
            (136, 0) => Icmpv6Message::NeighbourAdvertisement {
                router: rest & 1 << 31 != 0,
                solicited: rest & 1 << 30 != 0,
                override_cache: rest & 1 << 29 != 0,
            },
            (kind, code) => Icmpv6Message::Other { kind, code, rest },
        }
    }

    /// True if the message is about a packet whose first bytes follow: types below 128 (RFC 4443 section 2.1).
    pub const fn is_error(&self) -> bool {
        self.kind < 128
    }

    /// Writes the checksum of a whole ICMPv6 message between these addresses. Does nothing to fewer than 8 bytes.
    pub fn fill_checksum(message: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr) {
        let len = message.len() as u32;
        if let Ok((header, _)) = Self::parse_mut(message) {
            header.checksum = U16::ZERO;
            let pseudo = Sum::pseudo_ipv6(&source.octets(), &destination.octets(), 58, len);
            let checksum = pseudo.plus(checksum::sum(message)).finish();
            message[Self::CHECKSUM..Self::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// A neighbour solicitation or advertisement: 24 bytes, then options (RFC 4861 sections 4.3 and 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NeighbourMessage {
    header: Icmpv6Header,
    target: [u8; 16],
}

impl NeighbourMessage {
    /// Bytes in front of the options.
    pub const LEN: usize = 24;

    /// A message about `target` with checksum 0; `message` is one of the two neighbour messages.
    pub const fn new(message: Icmpv6Message, target: Ipv6Addr) -> Self {
        Self { header: Icmpv6Header::new(message), target: target.octets() }
    }

    /// The message at the start of `bytes`, and its options.
    ///
    /// # Errors
    /// [`WireError`] if bytes are missing or it is of another type.
    pub fn parse(bytes: &[u8]) -> Result<(&Self, NeighbourOptions<'_>), WireError> {
        let (message, rest) = super::prefix::<Self>(bytes, "neighbour discovery")?;
        if !matches!(message.header.kind, 135 | 136) {
            return Err(WireError::Field {
                header: "neighbour discovery",
                field: "type",
                offset: 0,
                value: u32::from(message.header.kind),
                allowed: "135 or 136",
            });
        }
        Ok((message, NeighbourOptions { bytes: rest }))
    }

    /// The ICMPv6 header.
    pub const fn header(&self) -> &Icmpv6Header {
        &self.header
    }

    /// Who is asked for, or who answers.
    pub fn target(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.target)
    }
}

/// One neighbour discovery option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourOption<'a> {
    /// 1 source and 2 target link-layer address, 3 prefix, 4 redirected header, 5 MTU, and others.
    pub kind: u8,
    /// Bytes after type and length: 6 or more.
    pub data: &'a [u8],
}

impl NeighbourOption<'_> {
    /// Bytes of a link-layer address option for Ethernet.
    pub const LINK_ADDRESS_LEN: usize = 8;

    /// The Ethernet address of a link-layer address option.
    pub fn mac(&self) -> Option<MacAddress> {
        let mac = self.data.first_chunk::<6>()?;
        matches!(self.kind, 1 | 2).then_some(MacAddress(*mac))
    }

    /// A link-layer address option: the sender's own (type 1, in solicitations) or the target's (type 2).
    pub const fn link_address(of_target: bool, mac: MacAddress) -> [u8; 8] {
        let [a, b, c, d, e, f] = mac.0;
        [1 + of_target as u8, 1, a, b, c, d, e, f]
    }
}

/// The options of a neighbour discovery message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> NeighbourOptions<'a> {
    /// Options from their bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl<'a> Iterator for NeighbourOptions<'a> {
    type Item = Result<NeighbourOption<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, &words) = (self.bytes.first()?, self.bytes.get(1).unwrap_or(&0));
        let len = usize::from(words) * 8;
        // A length of zero makes the whole packet invalid (RFC 4861 section 4.6).
        match self.bytes.split_at_checked(len).filter(|_| len > 0) {
            Some((option, rest)) => {
                self.bytes = rest;
                Some(Ok(NeighbourOption { kind, data: &option[2..] }))
            }
            None => {
                self.bytes = &[];
                Some(Err(WireError::Field {
                    header: "neighbour discovery option",
                    field: "length",
                    offset: 1,
                    value: u32::from(words),
                    allowed: "1 to the end of the message, in words of 8 bytes",
                }))
            }
        }
    }
}
