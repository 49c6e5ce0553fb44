//! VXLAN (RFC 7348; group policy draft-smith-vxlan-group-policy; GPE draft-ietf-nvo3-vxlan-gpe).

use super::WireError;
use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 8 bytes of a VXLAN header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VxlanHeader {
    flags: U32,
    vni: U32,
}

impl VxlanHeader {
    /// Bytes in the header.
    pub const LEN: usize = 8;
    /// UDP port assigned by IANA.
    pub const PORT: u16 = 4789;
    /// UDP port that Linux used before, and still does unless told otherwise.
    pub const LINUX_PORT: u16 = 8472;
    /// The I flag: the VNI is valid.
    pub const VNI_VALID: u32 = 0x0800_0000;
    /// The P flag of VXLAN-GPE: the payload is not necessarily Ethernet.
    pub const NEXT_PROTOCOL: u32 = 0x0400_0000;
    /// The G flag: bytes 2 and 3 are a group policy id.
    pub const GROUP_POLICY: u32 = 0x8000_0000;
    /// Remote checksum offload (Linux `VXLAN_HF_RCO`).
    pub const REMOTE_CHECKSUM: u32 = 0x0020_0000;

    /// A header for this network, 24 bits.
    pub const fn new(vni: u32) -> Self {
        Self { flags: U32::new(Self::VNI_VALID), vni: U32::new(vni << 8) }
    }

    /// The header at the start of `bytes`, and the inner frame.
    ///
    /// # Errors
    /// [`WireError`] if bytes are missing, the I flag is not set (RFC 7348 section 5), or the P flag makes it VXLAN-GPE.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        let (header, rest) = super::prefix::<Self>(bytes, "VXLAN")?;
        let flags = header.flags.get();
        if flags & (Self::VNI_VALID | Self::NEXT_PROTOCOL) != Self::VNI_VALID {
            return Err(WireError::field("VXLAN", "flags", 0, flags, "I flag set, P flag (VXLAN-GPE) clear"));
        }
        Ok((header, rest))
    }

    /// As [`VxlanHeader::parse`], writable and without checks of the flags.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "VXLAN")
    }

    /// Sets the network identifier, 24 bits.
    pub fn set_vni(&mut self, vni: u32) {
        self.vni = U32::new(vni << 8 | self.vni.get() & 0xff);
    }

    /// Sets the flags word.
    pub fn set_flags(&mut self, flags: u32) {
        self.flags = U32::new(flags);
    }

    /// Group policy id, if the G flag says that there is one.
    pub fn group_policy(&self) -> Option<u16> {
        (self.flags.get() & Self::GROUP_POLICY != 0).then_some(self.flags.get() as u16)
    }

    /// The flags word.
    pub fn flags(&self) -> u32 {
        self.flags.get()
    }

    /// VXLAN network identifier, 24 bits.
    #[inline(always)]
    pub fn vni(&self) -> u32 {
        self.vni.get() >> 8
    }

    /// The reserved byte behind the VNI.
    pub fn reserved(&self) -> u8 {
        self.vni.get() as u8
    }
}
