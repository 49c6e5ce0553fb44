//! GENEVE (RFC 8926).

use super::{EtherType, WireError};
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 8 bytes in front of the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct GeneveHeader {
    version_len: u8,
    flags: u8,
    protocol: U16,
    vni: U32,
}

impl GeneveHeader {
    /// Bytes without options.
    pub const LEN: usize = 8;
    /// UDP port assigned by IANA.
    pub const PORT: u16 = 6081;
    /// The O flag: a control packet.
    pub const CONTROL: u8 = 0x80;
    /// The C flag: critical options are present.
    pub const CRITICAL: u8 = 0x40;
    /// Most bytes that options can take.
    pub const MAX_OPTIONS: usize = 63 * 4;

    /// A header for this network (24 bits) in front of `options` bytes of options, a multiple of 4 and 252 at most.
    ///
    /// # Errors
    /// [`WireError::Field`] if `options` is neither.
    pub fn new(protocol: EtherType, vni: u32, options: usize) -> Result<Self, WireError> {
        if !options.is_multiple_of(4) || options > Self::MAX_OPTIONS {
            return Err(WireError::Field {
                header: "GENEVE",
                field: "options length",
                offset: 0,
                value: u32::try_from(options).unwrap_or(u32::MAX),
                allowed: "a multiple of 4, 252 bytes at most",
            });
        }
        Ok(Self { version_len: (options / 4) as u8, flags: 0, protocol: U16::new(protocol.0), vni: U32::new(vni << 8) })
    }

    /// The header at the start of `bytes`, its options, and the payload.
    ///
    /// # Errors
    /// [`WireError`] if the version is not 0 (RFC 8926 section 3.4: such packets are dropped) or bytes are missing.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, GeneveOptions<'_>, &[u8]), WireError> {
        let (header, _) = super::prefix::<Self>(bytes, "GENEVE")?;
        let version = header.version_len >> 6;
        if version != 0 {
            return Err(WireError::field("GENEVE", "version", 0, u32::from(version), "0"));
        }
        let needed = header.header_len();
        match bytes.split_at_checked(needed) {
            Some((own, rest)) => Ok((header, GeneveOptions { bytes: &own[Self::LEN..] }, rest)),
            None => Err(WireError::truncated("GENEVE", bytes.len(), needed)),
        }
    }

    /// As [`GeneveHeader::parse`], writable and without checks beyond the first 8 bytes being there.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "GENEVE")
    }

    /// Bytes in the header with options.
    #[inline]
    pub const fn header_len(&self) -> usize {
        Self::LEN + (self.version_len & 0x3f) as usize * 4
    }

    /// True for control packets, whose payload is not forwarded.
    pub const fn is_control(&self) -> bool {
        self.flags & Self::CONTROL != 0
    }

    /// True if the header says that there are critical options: a receiver that does not know one of them must drop the
    /// packet (RFC 8926 section 3.4).
    pub const fn has_critical(&self) -> bool {
        self.flags & Self::CRITICAL != 0
    }

    /// Both flags and the six reserved bits.
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// Sets both flags and the six reserved bits.
    pub fn set_flags(&mut self, flags: u8) {
        self.flags = flags;
    }

    /// What the payload is: [`EtherType::TRANSPARENT_ETHERNET`] for a frame.
    #[inline]
    pub fn protocol(&self) -> EtherType {
        EtherType(self.protocol.get())
    }

    /// Virtual network identifier, 24 bits.
    #[inline]
    pub fn vni(&self) -> u32 {
        self.vni.get() >> 8
    }

    /// Sets the virtual network identifier, 24 bits.
    pub fn set_vni(&mut self, vni: u32) {
        self.vni = U32::new(vni << 8 | self.vni.get() & 0xff);
    }
}

/// One GENEVE option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GeneveOption<'a> {
    /// Namespace of the type.
    pub class: u16,
    /// Type, with the critical bit at the top.
    pub kind: u8,
    /// Data, a multiple of 4 bytes, 124 at most.
    pub data: &'a [u8],
}

impl GeneveOption<'_> {
    /// True if a receiver that does not know the option must drop the packet.
    pub const fn is_critical(&self) -> bool {
        self.kind & 0x80 != 0
    }

    /// Writes the option to the start of `to` and says how many bytes that took.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there is no room; [`WireError::Field`] if the data's length is not a multiple of 4 up to
    /// 124.
    pub fn write(&self, to: &mut [u8]) -> Result<usize, WireError> {
        let len = self.data.len();
        if !len.is_multiple_of(4) || len > 124 {
            return Err(WireError::Field {
                header: "GENEVE option",
                field: "length",
                offset: 3,
                value: u32::try_from(len).unwrap_or(u32::MAX),
                allowed: "a multiple of 4, 124 bytes at most",
            });
        }
        let (room, needed) = (to.len(), 4 + len);
        let truncated = WireError::Truncated { header: "GENEVE option", len: room, needed };
        let to = to.get_mut(..needed).ok_or(truncated)?;
        to[..2].copy_from_slice(&self.class.to_be_bytes());
        to[2] = self.kind;
        to[3] = (len / 4) as u8;
        to[4..].copy_from_slice(self.data);
        Ok(needed)
    }
}

/// The options of a GENEVE header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GeneveOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> GeneveOptions<'a> {
    /// Options from their bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All bytes of the options.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for GeneveOptions<'a> {
    type Item = Result<GeneveOption<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = core::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            return None;
        }
        let Some(&[a, b, kind, len]) = bytes.first_chunk() else {
            return Some(Err(WireError::Truncated { header: "GENEVE option", len: bytes.len(), needed: 4 }));
        };
        let needed = 4 + usize::from(len & 0x1f) * 4;
        match bytes.split_at_checked(needed) {
            Some((own, rest)) => {
                self.bytes = rest;
                Some(Ok(GeneveOption { class: u16::from_be_bytes([a, b]), kind, data: &own[4..] }))
            }
            None => Some(Err(WireError::Truncated { header: "GENEVE option", len: bytes.len(), needed })),
        }
    }
}
