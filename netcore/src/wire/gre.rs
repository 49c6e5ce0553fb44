//! GRE (RFC 2784; key and sequence number RFC 2890; the version that PPTP uses RFC 2637).

use super::{EtherType, WireError};
use crate::checksum;
use bitflags::bitflags;

bitflags! {
    /// The flags of a GRE header.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct GreFlags: u16 {
        /// A checksum and a reserved word are present.
        const CHECKSUM = 0x8000;
        /// Source routes are present (RFC 1701; withdrawn).
        const ROUTING = 0x4000;
        /// A key is present.
        const KEY = 0x2000;
        /// A sequence number is present.
        const SEQUENCE = 0x1000;
        /// An acknowledgement number is present (version 1 only).
        const ACKNOWLEDGEMENT = 0x0080;
    }
}

/// A GRE header: which words it has depends on its flags.
///
/// This one is a value and not laid over the bytes, because all but the first four are optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GreHeader {
    /// 0, or 1 for PPTP.
    pub version: u8,
    /// What the payload is. 0 is a keepalive of Cisco's.
    pub protocol: EtherType,
    /// Checksum of header and payload.
    pub checksum: Option<u16>,
    /// Which of several tunnels between the same ends; for version 1 payload length and call id.
    pub key: Option<u32>,
    /// Sequence number.
    pub sequence: Option<u32>,
    /// Acknowledgement number, version 1 only.
    pub acknowledgement: Option<u32>,
}

impl GreHeader {
    /// Bytes without optional words.
    pub const LEN: usize = 4;
    /// Most bytes that a header without source routes has.
    pub const MAX_LEN: usize = 16;

    /// A header of version 0 without optional words.
    pub const fn new(protocol: EtherType) -> Self {
        Self { version: 0, protocol, checksum: None, key: None, sequence: None, acknowledgement: None }
    }

    /// The header at the start of `bytes`, and the payload.
    ///
    /// # Errors
    /// [`WireError`] if bytes are missing, if the version is above 1, if there are source routes (`gre_parse_header`; the
    /// reserved bits behind them are ignored, as Linux does), or if a version 1 header has no key or has a checksum (RFC 2637
    /// section 4.1).
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let Some((&[a, b, c, d], mut rest)) = bytes.split_first_chunk() else {
            return Err(WireError::truncated("GRE", bytes.len(), Self::LEN));
        };
        let word = u16::from_be_bytes([a, b]);
        let flags = GreFlags::from_bits_truncate(word);
        let version = (word & 7) as u8;
        let field =
            |field, allowed| Err(WireError::Field { header: "GRE", field, offset: 0, value: u32::from(word), allowed });
        let mut header = Self::new(EtherType(u16::from_be_bytes([c, d])));
        header.version = version;
        match version {
            0 if flags.contains(GreFlags::ROUTING) => return field("flags", "no source routes"),
            1 if flags.intersects(GreFlags::CHECKSUM | GreFlags::ROUTING) || !flags.contains(GreFlags::KEY) => {
                return field("flags", "a key and neither checksum nor source routes in version 1");
            }
            0 | 1 => {}
            _ => return field("version", "0 or 1"),
        }
        let mut optional = |wanted: bool| -> Result<Option<u32>, WireError> {
            if !wanted {
                return Ok(None);
            }
            let Some((value, after)) = rest.split_first_chunk() else {
                let optional = word & 0xb000 | if version == 1 { word & 0x0080 } else { 0 };
                let needed = Self::LEN + 4 * optional.count_ones() as usize;
                return Err(WireError::truncated("GRE", bytes.len(), needed));
            };
            rest = after;
            Ok(Some(u32::from_be_bytes(*value)))
        };
        header.checksum = optional(flags.contains(GreFlags::CHECKSUM))?.map(|word| (word >> 16) as u16);
        header.key = optional(flags.contains(GreFlags::KEY))?;
        header.sequence = optional(flags.contains(GreFlags::SEQUENCE))?;
        header.acknowledgement = optional(version == 1 && flags.contains(GreFlags::ACKNOWLEDGEMENT))?;
        Ok((header, rest))
    }

    /// The flags that the header has.
    pub const fn flags(&self) -> GreFlags {
        let mut bits = 0;
        if self.checksum.is_some() {
            bits |= GreFlags::CHECKSUM.bits();
        }
        if self.key.is_some() {
            bits |= GreFlags::KEY.bits();
        }
        if self.sequence.is_some() {
            bits |= GreFlags::SEQUENCE.bits();
        }
        if self.acknowledgement.is_some() {
            bits |= GreFlags::ACKNOWLEDGEMENT.bits();
        }
        GreFlags::from_bits_retain(bits)
    }

    /// Bytes in the header.
    pub const fn header_len(&self) -> usize {
        Self::LEN + 4 * self.flags().bits().count_ones() as usize
    }

    /// Writes the header to the start of `to` and says how many bytes that took. A checksum is written as it is; see
    /// [`GreHeader::fill_checksum`].
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there is no room.
    pub fn write(&self, to: &mut [u8]) -> Result<usize, WireError> {
        let (room, needed) = (to.len(), self.header_len());
        let to = to.get_mut(..needed).ok_or(WireError::Truncated { header: "GRE", len: room, needed })?;
        to[..2].copy_from_slice(&(self.flags().bits() | u16::from(self.version & 7)).to_be_bytes());
        to[2..4].copy_from_slice(&self.protocol.0.to_be_bytes());
        let checksum = self.checksum.map(|checksum| u32::from(checksum) << 16);
        let words = [checksum, self.key, self.sequence, self.acknowledgement];
        for (to, word) in to[Self::LEN..].chunks_exact_mut(4).zip(words.into_iter().flatten()) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        Ok(needed)
    }

    /// Writes the checksum of a whole GRE packet, header and payload, if its header has one.
    ///
    /// # Errors
    /// As [`GreHeader::parse`].
    pub fn fill_checksum(packet: &mut [u8]) -> Result<(), WireError> {
        if Self::parse(packet)?.0.checksum.is_some() {
            packet[4..6].fill(0);
            let checksum = checksum::sum(packet).finish();
            packet[4..6].copy_from_slice(&checksum.to_be_bytes());
        }
        Ok(())
    }
}
