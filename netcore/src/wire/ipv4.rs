//! IPv4 (RFC 791; DSCP RFC 2474, ECN RFC 3168).

use super::WireError;
use crate::checksum::{self, Sum};
use core::fmt;
use core::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IP protocol number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP.
    pub const ICMP: Self = Self(1);
    /// IGMP.
    pub const IGMP: Self = Self(2);
    /// IPv4 in IP.
    pub const IPIP: Self = Self(4);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// IPv6 in IP.
    pub const IPV6: Self = Self(41);
    /// IPv6 routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// GRE.
    pub const GRE: Self = Self(47);
    /// Authentication header.
    pub const AH: Self = Self(51);
    /// ICMPv6.
    pub const ICMPV6: Self = Self(58);
    /// IPv6 "no next header".
    pub const NO_NEXT: Self = Self(59);
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: Self = Self(60);
    /// SCTP.
    pub const SCTP: Self = Self(132);
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::HOP_BY_HOP => "HOPOPT",
            Self::ICMP => "ICMP",
            Self::IGMP => "IGMP",
            Self::IPIP => "IPIP",
            Self::TCP => "TCP",
            Self::UDP => "UDP",
            Self::IPV6 => "IPv6",
            Self::ROUTING => "routing",
            Self::FRAGMENT => "fragment",
            Self::GRE => "GRE",
            Self::AH => "AH",
            Self::ICMPV6 => "ICMPv6",
            Self::NO_NEXT => "no next header",
            Self::DESTINATION_OPTIONS => "destination options",
            Self::SCTP => "SCTP",
            Self(other) => return write!(f, "protocol {other}"),
        })
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The first 20 bytes of an IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    version_ihl: u8,
    tos: u8,
    total_len: U16,
    id: U16,
    fragment: U16,
    ttl: u8,
    protocol: u8,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

impl Ipv4Header {
    /// Bytes without options.
    pub const LEN: usize = 20;
    /// Don't fragment, in the fragment word.
    pub const DF: u16 = 0x4000;
    /// More fragments, in the fragment word.
    pub const MF: u16 = 0x2000;

    /// A header without options, with a right checksum. `len` is the total length with the header.
    pub fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: Protocol,
        len: u16,
        id: u16,
        ttl: u8,
        df: bool,
    ) -> Self {
        let mut header = Self {
            version_ihl: 0x45,
            tos: 0,
            total_len: U16::new(len),
            id: U16::new(id),
            fragment: U16::new(if df { Self::DF } else { 0 }),
            ttl,
            protocol: protocol.0,
            checksum: U16::ZERO,
            source: source.octets(),
            destination: destination.octets(),
        };
        header.checksum = U16::new(checksum::sum(header.as_bytes()).finish());
        header
    }

    /// The header at the start of `bytes`, its options, and what follows them.
    ///
    /// # Errors
    /// [`WireError`] if the version is not 4, the header length is below 20, or bytes are missing.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, Ipv4Options<'_>, &[u8]), WireError> {
        let (header, _) = super::prefix::<Self>(bytes, "IPv4")?;
        if header.version_ihl >> 4 != 4 {
            return Err(WireError::field("IPv4", "version", 0, u32::from(header.version_ihl >> 4), "4"));
        }
        let len = header.header_len();
        if len < Self::LEN {
            let words = u32::from(header.version_ihl & 0x0f);
            return Err(WireError::field("IPv4", "header length", 0, words, "5 to 15 words"));
        }
        match bytes.split_at_checked(len) {
            Some((own, rest)) => Ok((header, Ipv4Options { bytes: &own[Self::LEN..] }, rest)),
            None => Err(WireError::truncated("IPv4", bytes.len(), len)),
        }
    }

    /// As [`Ipv4Header::parse`], writable and without checks beyond the first 20 bytes being there.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "IPv4")
    }

    /// Bytes in the header with options.
    #[inline(always)]
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 0x0f) as usize * 4
    }

    /// DSCP and ECN.
    pub const fn tos(&self) -> u8 {
        self.tos
    }

    /// Bytes of header and payload, as the header says. Zero in packets beyond 64 KiB.
    #[inline(always)]
    pub fn total_len(&self) -> u16 {
        self.total_len.get()
    }

    /// Identification.
    pub fn id(&self) -> u16 {
        self.id.get()
    }

    /// Flags and fragment offset.
    pub fn fragment_word(&self) -> u16 {
        self.fragment.get()
    }

    /// True for every fragment, first ones too.
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.fragment.get() & 0x3fff != 0
    }

    /// Offset of the fragment's payload in the datagram, bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment.get() & 0x1fff) * 8
    }

    /// Don't fragment.
    pub fn df(&self) -> bool {
        self.fragment.get() & Self::DF != 0
    }

    /// Time to live.
    pub const fn ttl(&self) -> u8 {
        self.ttl
    }

    /// What follows.
    #[inline(always)]
    pub const fn protocol(&self) -> Protocol {
        Protocol(self.protocol)
    }

    /// The header checksum field.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Source address.
    pub const fn source(&self) -> Ipv4Addr {
        let [a, b, c, d] = self.source;
        Ipv4Addr::new(a, b, c, d)
    }

    /// Destination address.
    pub const fn destination(&self) -> Ipv4Addr {
        let [a, b, c, d] = self.destination;
        Ipv4Addr::new(a, b, c, d)
    }

    /// Sets DSCP and ECN. Like all setters here it leaves the checksum to [`Ipv4Header::fill_checksum`] or
    /// [`checksum::update16`].
    pub fn set_tos(&mut self, tos: u8) {
        self.tos = tos;
    }

    /// Sets the bytes of header and payload; 0 beyond 64 KiB.
    pub fn set_total_len(&mut self, len: u16) {
        self.total_len = U16::new(len);
    }

    /// Sets the identification.
    pub fn set_id(&mut self, id: u16) {
        self.id = U16::new(id);
    }

    /// Sets flags and fragment offset.
    pub fn set_fragment_word(&mut self, word: u16) {
        self.fragment = U16::new(word);
    }

    /// Sets the time to live.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.ttl = ttl;
    }

    /// Sets what follows.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol.0;
    }

    /// Sets both addresses.
    pub fn set_addresses(&mut self, source: Ipv4Addr, destination: Ipv4Addr) {
        (self.source, self.destination) = (source.octets(), destination.octets());
    }

    /// Sets the header checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Sets the length of the header: 20 and `options` bytes of options, a multiple of 4 and 40 at most.
    ///
    /// # Errors
    /// [`WireError::Field`] if `options` is neither.
    pub fn set_options_len(&mut self, options: usize) -> Result<(), WireError> {
        if !options.is_multiple_of(4) || options > 40 {
            return Err(WireError::Field {
                header: "IPv4",
                field: "options length",
                offset: 0,
                value: u32::try_from(options).unwrap_or(u32::MAX),
                allowed: "a multiple of 4, 40 bytes at most",
            });
        }
        self.version_ihl = 0x45 + (options / 4) as u8;
        Ok(())
    }

    /// Writes the checksum of the header at the start of `packet`, options included.
    ///
    /// # Errors
    /// As [`Ipv4Header::parse`].
    pub fn fill_checksum(packet: &mut [u8]) -> Result<(), WireError> {
        let len = Self::parse(packet)?.0.header_len();
        packet[10..12].fill(0);
        let checksum = checksum::sum(&packet[..len]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    /// The pseudo-header for a transport part of `len` bytes.
    #[inline(always)]
    pub const fn pseudo(&self, len: u32) -> Sum {
        Sum::pseudo_ipv4(self.source, self.destination, self.protocol, len)
    }
}

/// One IPv4 option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Option<'a> {
    /// Copied flag, class and number.
    pub kind: u8,
    /// Bytes after kind and length.
    pub data: &'a [u8],
}

impl Ipv4Option<'_> {
    /// Writes the option to the start of `to` and says how many bytes that took.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there is no room; [`WireError::Field`] if the data is longer than 38 bytes.
    pub fn write(&self, to: &mut [u8]) -> Result<usize, WireError> {
        super::write_option("IPv4 option", self.kind, self.data, to)
    }
}

/// The options of an IPv4 header. Stops at the end-of-options byte; skips no-operation bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Options<'a> {
    bytes: &'a [u8],
}

impl<'a> Ipv4Options<'a> {
    /// All bytes of the options.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Ipv4Options<'a> {
    type Item = Result<Ipv4Option<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.bytes {
                [] | [0, ..] => return None,
                [1, rest @ ..] => self.bytes = rest,
                [kind, len, ..] if *len >= 2 && usize::from(*len) <= self.bytes.len() => {
                    let (option, rest) = self.bytes.split_at(usize::from(*len));
                    self.bytes = rest;
                    return Some(Ok(Ipv4Option { kind: *kind, data: &option[2..] }));
                }
                rest => {
                    self.bytes = &[];
                    let value = rest.get(1).map_or(0, |len| u32::from(*len));
                    return Some(Err(WireError::Field {
                        header: "IPv4 option",
                        field: "length",
                        offset: 1,
                        value,
                        allowed: "2 to the end of the header",
                    }));
                }
            }
        }
    }
}
