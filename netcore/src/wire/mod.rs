//! Zero-copy header views.
//!
//! One protocol per file, each with a `…Header` struct that is laid over the bytes ([`zerocopy`]), a `parse` that gives the
//! header and what follows it, and iterators over options.
//!
//! **Contract.** A parser is total: any byte string gives a view or a [`WireError`] that says what is wrong, at which
//! offset, and what is allowed. Nothing here panics or reads past the end. A view says what the bytes are, not that they
//! make sense: checksums and lengths beyond the header are checked where they are used.

mod arp;
mod cisco_metadata;
mod ethernet;
mod extension;
mod geneve;
mod gre;
mod icmp;
mod icmpv6;
mod ip;
mod ipv4;
mod ipv6;
mod lacp;
mod llc;
mod slow_protocols;
mod tcp;
mod udp;
mod vlan;
mod vxlan;

pub use arp::{ArpAddresses, ArpHeader, ArpIpv4, ArpOperation};
pub use cisco_metadata::CiscoMetadata;
pub use ethernet::{EtherType, EthernetHeader};
pub use extension::{ExtensionHeader, ExtensionHeaders, Ipv6Option, Ipv6Options, Upper};
pub use geneve::{GeneveHeader, GeneveOption, GeneveOptions};
pub use gre::{GreFlags, GreHeader};
pub use icmp::{IcmpHeader, IcmpMessage};
pub use icmpv6::{Icmpv6Header, Icmpv6Message, NeighbourMessage, NeighbourOption, NeighbourOptions};
pub use ip::IpHeader;
pub use ipv4::{Ipv4Header, Ipv4Option, Ipv4Options, Protocol};
pub use ipv6::Ipv6Header;
pub use lacp::{LacpState, Lacpdu, LacpduTlv, LacpduTlvs, Marker, PortInformation};
pub use llc::{LlcHeader, Snap};
pub use slow_protocols::SlowProtocol;
pub use tcp::{SackBlock, TcpFlags, TcpHeader, TcpOption, TcpOptions};
pub use udp::UdpHeader;
pub use vlan::VlanHeader;
pub use vxlan::VxlanHeader;

/// Why bytes are not a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Fewer bytes than the header has.
    #[error("{header}: {len} bytes, {needed} are needed")]
    Truncated {
        /// Which header.
        header: &'static str,
        /// Bytes there are.
        len: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// A field has a value that makes no header.
    #[error("{header}: {field} at byte {offset} is {value}, allowed is {allowed}")]
    Field {
        /// Which header.
        header: &'static str,
        /// Which field.
        field: &'static str,
        /// Offset of the field from the start of the header.
        offset: usize,
        /// What it is.
        value: u32,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// Errors are made out of line: they are rare, and their text would take registers from what is frequent.
impl WireError {
    #[cold]
    #[inline(never)]
    pub(crate) fn truncated(header: &'static str, len: usize, needed: usize) -> Self {
        Self::Truncated { header, len, needed }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn field(
        header: &'static str,
        field: &'static str,
        offset: usize,
        value: u32,
        allowed: &'static str,
    ) -> Self {
        Self::Field { header, field, offset, value, allowed }
    }
}

/// A header of type `T` at the start of `bytes`, and what follows.
#[inline(always)]
fn prefix<'a, T>(bytes: &'a [u8], header: &'static str) -> Result<(&'a T, &'a [u8]), WireError>
where
    T: zerocopy::FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    match T::ref_from_prefix(bytes) {
        Ok(parsed) => Ok(parsed),
        Err(_) => Err(WireError::truncated(header, bytes.len(), size_of::<T>())),
    }
}

/// As `prefix`, writable.
#[inline(always)]
fn prefix_mut<'a, T>(bytes: &'a mut [u8], header: &'static str) -> Result<(&'a mut T, &'a mut [u8]), WireError>
where
    T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::KnownLayout + zerocopy::Unaligned,
{
    let len = bytes.len();
    T::mut_from_prefix(bytes).map_err(|_| WireError::Truncated { header, len, needed: size_of::<T>() })
}

/// An option of the form that IPv4 and TCP share: kind, length of all of it, data. Says how many bytes it took.
fn write_option(header: &'static str, kind: u8, data: &[u8], to: &mut [u8]) -> Result<usize, WireError> {
    // Both headers have room for 40 bytes of options.
    if data.len() > 38 {
        let value = u32::try_from(data.len()).unwrap_or(u32::MAX);
        return Err(WireError::Field {
            header,
            field: "length",
            offset: 1,
            value,
            allowed: "38 bytes of data at most",
        });
    }
    let (room, needed) = (to.len(), 2 + data.len());
    let to = to.get_mut(..needed).ok_or(WireError::Truncated { header, len: room, needed })?;
    to[..2].copy_from_slice(&[kind, needed as u8]);
    to[2..].copy_from_slice(data);
    Ok(needed)
}

#[cfg(test)]
mod tests;
