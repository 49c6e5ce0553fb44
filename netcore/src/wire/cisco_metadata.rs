//! The metadata header that Cisco's security group tagging puts in front of a packet inside GRE (EtherType 0x8909).
//!
//! No specification is public; the form is that of captures and of Wireshark's decoder: what follows, version 1, length of the
//! options in words of four bytes, options (the first: type 1, the tag).

use super::{EtherType, WireError};

/// A metadata header inside GRE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CiscoMetadata {
    /// What follows.
    pub protocol: EtherType,
    /// Security group tag, if the first option has one.
    pub group: Option<u16>,
}

impl CiscoMetadata {
    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError`] if the version is not 1 or bytes are missing.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let truncated = |needed| WireError::Truncated { header: "Cisco metadata", len: bytes.len(), needed };
        let Some((&[a, b, version, words], rest)) = bytes.split_first_chunk() else { return Err(truncated(4)) };
        if version != 1 {
            return Err(WireError::Field {
                header: "Cisco metadata",
                field: "version",
                offset: 2,
                value: u32::from(version),
                allowed: "1",
            });
        }
        let len = usize::from(words) * 4;
        let (options, rest) = rest.split_at_checked(len).ok_or(truncated(4 + len))?;
        let group = match options {
            // The type is in the low 13 bits.
            &[a, 1, c, d, ..] if a & 0x1f == 0 => Some(u16::from_be_bytes([c, d])),
            _ => None,
        };
        Ok((Self { protocol: EtherType(u16::from_be_bytes([a, b])), group }, rest))
    }
}
