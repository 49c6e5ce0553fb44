//! ICMP (RFC 792; router discovery RFC 1256; path MTU RFC 1191).

use super::WireError;
use crate::checksum;
use core::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 8 bytes of an ICMP header; what the last four mean depends on the type ([`IcmpHeader::message`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IcmpHeader {
    kind: u8,
    code: u8,
    checksum: U16,
    rest: [u8; 4],
}

/// What an ICMP header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IcmpMessage {
    /// Types 8 and 0.
    Echo {
        /// False for the request.
        reply: bool,
        /// Which sender of requests.
        id: u16,
        /// Which request.
        seq: u16,
    },
    /// Type 3. The packet that could not be delivered follows.
    Unreachable {
        /// 0 net, 1 host, 2 protocol, 3 port, 4 fragmentation needed, and others.
        code: u8,
        /// Next-hop MTU for code 4 (RFC 1191 section 4), else 0.
        mtu: u16,
    },
    /// Type 5. The packet follows.
    Redirect {
        /// 0 net, 1 host, 2 and 3 with type of service.
        code: u8,
        /// The better gateway.
        gateway: Ipv4Addr,
    },
    /// Type 11. The packet follows.
    TimeExceeded {
        /// 0 in transit, 1 in reassembly.
        code: u8,
    },
    /// Type 12. The packet follows.
    ParameterProblem {
        /// 0 if the pointer is valid.
        code: u8,
        /// Byte of the packet that is wrong.
        pointer: u8,
    },
    /// Types 13 and 14.
    Timestamp {
        /// False for the request.
        reply: bool,
        /// Which sender of requests.
        id: u16,
        /// Which request.
        seq: u16,
    },
    /// Anything else.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// Bytes 4 to 7.
        rest: [u8; 4],
    },
}

impl IcmpHeader {
    /// Bytes in the header.
    pub const LEN: usize = 8;
    /// Offset of the checksum field.
    pub const CHECKSUM: usize = 2;

    /// A header with checksum 0; see [`IcmpHeader::fill_checksum`].
    pub const fn new(message: IcmpMessage) -> Self {
        const fn words(a: u16, b: u16) -> [u8; 4] {
            let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
            [a, b, c, d]
        }
        let (kind, code, rest) = match message {
            IcmpMessage::Echo { reply, id, seq } => (if reply { 0 } else { 8 }, 0, words(id, seq)),
            IcmpMessage::Unreachable { code, mtu } => (3, code, words(0, mtu)),
            IcmpMessage::Redirect { code, gateway } => (5, code, gateway.octets()),
            IcmpMessage::TimeExceeded { code } => (11, code, [0; 4]),
            IcmpMessage::ParameterProblem { code, pointer } => (12, code, [pointer, 0, 0, 0]),
            IcmpMessage::Timestamp { reply, id, seq } => (if reply { 14 } else { 13 }, 0, words(id, seq)),
            IcmpMessage::Other { kind, code, rest } => (kind, code, rest),
        };
        Self { kind, code, checksum: U16::ZERO, rest }
    }

    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        super::prefix(bytes, "ICMP")
    }

    /// As [`IcmpHeader::parse`], writable.
    ///
    /// # Errors
    /// As there.
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "ICMP")
    }

    /// Type.
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// Code.
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// The checksum field: header and everything behind it, no pseudo-header.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// What the header says.
    pub const fn message(&self) -> IcmpMessage {
        let [a, b, c, d] = self.rest;
        let (id, seq) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let code = self.code;
        match (self.kind, code) {
            (0 | 8, 0) => IcmpMessage::Echo { reply: self.kind == 0, id, seq },
            (3, _) => IcmpMessage::Unreachable { code, mtu: if code == 4 { seq } else { 0 } },
            (5, _) => IcmpMessage::Redirect { code, gateway: Ipv4Addr::new(a, b, c, d) },
            (11, _) => IcmpMessage::TimeExceeded { code },
            (12, _) => IcmpMessage::ParameterProblem { code, pointer: a },
            (13 | 14, 0) => IcmpMessage::Timestamp { reply: self.kind == 14, id, seq },
            (kind, code) => IcmpMessage::Other { kind, code, rest: self.rest },
        }
    }

    /// True if the message is about a packet whose first bytes follow (`icmp_is_err`).
    pub const fn is_error(&self) -> bool {
        matches!(self.kind, 3 | 4 | 5 | 11 | 12)
    }

    /// Writes the checksum of a whole ICMP message. Does nothing to fewer than 8 bytes.
    pub fn fill_checksum(message: &mut [u8]) {
        if let Ok((header, _)) = Self::parse_mut(message) {
            header.checksum = U16::ZERO;
            let checksum = checksum::sum(message).finish();
            message[Self::CHECKSUM..Self::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}
