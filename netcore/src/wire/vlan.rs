//! VLAN tags (IEEE 802.1Q, clause 9.6; 802.1ad service tags have the same form).

use super::{EtherType, WireError};
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The four bytes between a tag's EtherType and the next: control information and what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlanHeader {
    tci: U16,
    ethertype: U16,
}

impl VlanHeader {
    /// Bytes in the header.
    pub const LEN: usize = 4;

    /// A tag with this control information.
    pub const fn new(tci: u16, ethertype: EtherType) -> Self {
        Self { tci: U16::new(tci), ethertype: U16::new(ethertype.0) }
    }

    /// The tag at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        super::prefix(bytes, "VLAN")
    }

    /// As [`VlanHeader::parse`], writable.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "VLAN")
    }

    /// Control information: priority, drop eligible, VLAN id.
    #[inline(always)]
    pub fn tci(&self) -> u16 {
        self.tci.get()
    }

    /// VLAN id, 0 to 4095; 0 is a priority tag.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        self.tci.get() & 0x0fff
    }

    /// Priority code point, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.tci.get() >> 13) as u8
    }

    /// Drop eligible indicator.
    pub fn is_drop_eligible(&self) -> bool {
        self.tci.get() & 0x1000 != 0
    }

    /// Sets priority, drop eligible indicator and VLAN id.
    pub fn set_tci(&mut self, tci: u16) {
        self.tci = U16::new(tci);
    }

    /// Sets what follows.
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        self.ethertype = U16::new(ethertype.0);
    }

    /// What follows.
    #[inline(always)]
    pub fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }
}
