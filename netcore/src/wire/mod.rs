//! Zero-copy header views.
//!
//! One protocol per file, each with a `…Header` struct that is laid over the bytes ([`zerocopy`]), a `parse` that gives the
//! header and what follows it, and iterators over options.
//!
//! **Contract.** A parser is total: any byte string gives a view or a [`WireError`] that says what is wrong, at which
//! offset, and what is allowed. Nothing here panics or reads past the end. A view says what the bytes are, not that they
//! make sense: checksums and lengths beyond the header are checked where they are used.

mod ethernet;
mod ipv4;
mod ipv6;
mod lacp;
mod slow_protocols;
mod tcp;
mod udp;
mod vlan;
mod vxlan;

pub use ethernet::{EtherType, EthernetHeader};
pub use ipv4::{Ipv4Header, Ipv4Option, Ipv4Options, Protocol};
pub use ipv6::{ExtensionHeader, ExtensionHeaders, Ipv6Header, Upper};
pub use lacp::{LacpState, Lacpdu, LacpduTlv, LacpduTlvs, Marker, PortInformation};
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

/// A header of type `T` at the start of `bytes`, and what follows.
#[inline(always)]
fn prefix<'a, T>(bytes: &'a [u8], header: &'static str) -> Result<(&'a T, &'a [u8]), WireError>
where
    T: zerocopy::FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    T::ref_from_prefix(bytes).map_err(|_| WireError::Truncated { header, len: bytes.len(), needed: size_of::<T>() })
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

#[cfg(test)]
mod tests;
