//! An IP header of either version: what IP-in-IP carries (RFC 2003 and 4213 in IPv4, RFC 2473 in IPv6).
//!
//! The tunnel has no header of its own: the outer protocol number says which version follows, [`Protocol::IPIP`] or
//! [`Protocol::IPV6`].

use super::{Ipv4Header, Ipv4Options, Ipv6Header, Protocol, WireError};
use core::net::IpAddr;

/// A header of either version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpHeader<'a> {
    /// IPv4, with its options.
    V4(&'a Ipv4Header, Ipv4Options<'a>),
    /// IPv6.
    V6(&'a Ipv6Header),
}

impl<'a> IpHeader<'a> {
    /// The header at the start of `bytes`, of the version in its first four bits, and what follows.
    ///
    /// # Errors
    /// [`WireError`] if the version is neither 4 nor 6, or as the parser of that version says.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), WireError> {
        match bytes.first().map(|byte| byte >> 4) {
            Some(4) => Ipv4Header::parse(bytes).map(|(header, options, rest)| (Self::V4(header, options), rest)),
            Some(6) => Ipv6Header::parse(bytes).map(|(header, rest)| (Self::V6(header), rest)),
            Some(version) => Err(WireError::Field {
                header: "IP",
                field: "version",
                offset: 0,
                value: u32::from(version),
                allowed: "4 or 6",
            }),
            None => Err(WireError::Truncated { header: "IP", len: 0, needed: Ipv4Header::LEN }),
        }
    }

    /// The header inside an IP-in-IP tunnel whose outer header says `protocol`.
    ///
    /// # Errors
    /// [`WireError`] if `protocol` is neither [`Protocol::IPIP`] nor [`Protocol::IPV6`], if the version is not the one it says,
    /// or as the parser of that version says.
    pub fn parse_inner(protocol: Protocol, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), WireError> {
        match protocol {
            Protocol::IPIP => Ipv4Header::parse(bytes).map(|(header, options, rest)| (Self::V4(header, options), rest)),
            Protocol::IPV6 => Ipv6Header::parse(bytes).map(|(header, rest)| (Self::V6(header), rest)),
            Protocol(other) => Err(WireError::Field {
                header: "IP-in-IP",
                field: "protocol",
                offset: 0,
                value: u32::from(other),
                allowed: "4 (IPv4) or 41 (IPv6)",
            }),
        }
    }

    /// 4 or 6.
    pub const fn version(&self) -> u8 {
        match self {
            Self::V4(..) => 4,
            Self::V6(_) => 6,
        }
    }

    /// What follows the header; for IPv6 it may be an extension header.
    pub const fn next(&self) -> Protocol {
        match self {
            Self::V4(header, _) => header.protocol(),
            Self::V6(header) => header.next_header(),
        }
    }

    /// Source address.
    pub fn source(&self) -> IpAddr {
        match self {
            Self::V4(header, _) => header.source().into(),
            Self::V6(header) => header.source().into(),
        }
    }

    /// Destination address.
    pub fn destination(&self) -> IpAddr {
        match self {
            Self::V4(header, _) => header.destination().into(),
            Self::V6(header) => header.destination().into(),
        }
    }

    /// DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        match self {
            Self::V4(header, _) => header.tos(),
            Self::V6(header) => header.traffic_class(),
        }
    }

    /// Time to live or hop limit.
    pub const fn hop_limit(&self) -> u8 {
        match self {
            Self::V4(header, _) => header.ttl(),
            Self::V6(header) => header.hop_limit(),
        }
    }
}
