//! LLC and SNAP (IEEE 802.2; IEEE 802, clause 9): what follows a link header with a length instead of a type.

use super::{EtherType, WireError};

/// An LLC header, with its SNAP extension if it has one.
///
/// This one is a value and not laid over the bytes, because its length depends on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LlcHeader {
    /// Destination service access point. 0x42 is spanning tree, 0xaa SNAP.
    pub destination: u8,
    /// Source service access point.
    pub source: u8,
    /// Control: one byte in unnumbered frames (0x03 is unnumbered information), else two, the first in the low half.
    pub control: u16,
    /// What a SNAP header says.
    pub snap: Option<Snap>,
}

/// The 5 bytes of a SNAP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snap {
    /// Whose numbers the protocol is from; 0 for EtherTypes.
    pub oui: [u8; 3],
    /// Which protocol.
    pub protocol: EtherType,
}

impl LlcHeader {
    /// Access point of SNAP.
    pub const SNAP: u8 = 0xaa;
    /// Access point of spanning tree.
    pub const SPANNING_TREE: u8 = 0x42;
    /// Unnumbered information.
    pub const UI: u16 = 0x03;

    /// A SNAP header in front of an EtherType (RFC 1042).
    pub const fn snap(protocol: EtherType) -> Self {
        Self {
            destination: Self::SNAP,
            source: Self::SNAP,
            control: Self::UI,
            snap: Some(Snap { oui: [0; 3], protocol }),
        }
    }

    /// The header at the start of `bytes`, and what follows.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let truncated = |needed| WireError::Truncated { header: "LLC", len: bytes.len(), needed };
        let Some((&[destination, source, first], rest)) = bytes.split_first_chunk() else { return Err(truncated(3)) };
        let mut header = Self { destination, source, control: u16::from(first), snap: None };
        // Formats I and S have a second control byte, format U has not (IEEE 802.2 clause 5.2).
        if first & 3 != 3 {
            let (&second, rest) = rest.split_first().ok_or(truncated(4))?;
            header.control |= u16::from(second) << 8;
            return Ok((header, rest));
        }
        if destination != Self::SNAP || source != Self::SNAP || header.control != Self::UI {
            return Ok((header, rest));
        }
        let Some((&[a, b, c, d, e], rest)) = rest.split_first_chunk() else { return Err(truncated(8)) };
        header.snap = Some(Snap { oui: [a, b, c], protocol: EtherType(u16::from_be_bytes([d, e])) });
        Ok((header, rest))
    }

    /// Bytes in the header.
    pub const fn header_len(&self) -> usize {
        match self.snap {
            Some(_) => 8,
            None if self.control & 3 == 3 => 3,
            None => 4,
        }
    }

    /// Writes the header to the start of `to` and says how many bytes that took.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there is no room.
    pub fn write(&self, to: &mut [u8]) -> Result<usize, WireError> {
        let (room, needed) = (to.len(), self.header_len());
        let to = to.get_mut(..needed).ok_or(WireError::Truncated { header: "LLC", len: room, needed })?;
        let [first, second] = self.control.to_le_bytes();
        to[..3].copy_from_slice(&[self.destination, self.source, first]);
        match self.snap {
            Some(snap) => {
                to[3..6].copy_from_slice(&snap.oui);
                to[6..8].copy_from_slice(&snap.protocol.0.to_be_bytes());
            }
            None if needed == 4 => to[3] = second,
            None => {}
        }
        Ok(needed)
    }
}
