//! Marker PDU: asks the other end to say when it has taken all frames sent before.

use crate::driver::MacAddress;
use crate::wire::{EtherType, EthernetHeader, SlowProtocol, WireError};
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const NAME: &str = "Marker PDU";
const INFORMATION: u8 = 1;
const RESPONSE: u8 = 2;
/// Type, length, port, system, transaction and pad.
const LENGTH: u8 = 16;
/// What those write who read the 16 of the standard as hexadecimal (Linux's `struct bond_marker` says so).
const LENGTH_MISREAD: u8 = 0x16;

/// The 110 bytes of a Marker or Marker Response PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Marker {
    subtype: u8,
    version: u8,
    tlv_type: u8,
    length: u8,
    requester_port: U16,
    requester_system: [u8; 6],
    transaction: U32,
    pad: [u8; 2],
    terminator_type: u8,
    terminator_length: u8,
    reserved: [u8; 90],
}

impl Marker {
    /// Bytes in a Marker PDU.
    pub const LEN: usize = 110;
    /// Bytes in a frame with a Marker PDU, without frame check sequence.
    pub const FRAME_LEN: usize = EthernetHeader::LEN + Self::LEN;

    /// A request for a response.
    pub const fn new(requester_system: MacAddress, requester_port: u16, transaction: u32) -> Self {
        Self {
            subtype: SlowProtocol::Marker.subtype(),
            version: 1,
            tlv_type: INFORMATION,
            length: LENGTH,
            requester_port: U16::new(requester_port),
            requester_system: requester_system.0,
            transaction: U32::new(transaction),
            pad: [0; 2],
            terminator_type: 0,
            terminator_length: 0,
            reserved: [0; 90],
        }
    }

    /// The Marker PDU at the start of `bytes` (what follows the Ethernet header), and what follows. Version and reserved
    /// bytes are not looked at (IEEE 802.1AX clause 6.5.4.2; 802.3ad 43.5.4.1).
    ///
    /// # Errors
    /// [`WireError`] if bytes are missing, the subtype is another, the TLV is neither information nor response, or its
    /// length is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        if let [subtype, ..] = bytes
            && *subtype != SlowProtocol::Marker.subtype()
        {
            return Err(field("subtype", 0, *subtype, "2"));
        }
        let (marker, rest) = crate::wire::prefix::<Self>(bytes, NAME)?;
        if !matches!(marker.tlv_type, INFORMATION | RESPONSE) {
            return Err(field("TLV type", 2, marker.tlv_type, "1 (information) or 2 (response)"));
        }
        if !matches!(marker.length, LENGTH | LENGTH_MISREAD) {
            return Err(field("TLV length", 3, marker.length, "16 (or 22, a known misreading)"));
        }
        Ok((marker, rest))
    }

    /// The answer: all bytes as they came, marked as a response.
    #[must_use]
    pub const fn response(&self) -> Self {
        Self { tlv_type: RESPONSE, ..*self }
    }

    /// True for a response, false for a request.
    pub const fn is_response(&self) -> bool {
        self.tlv_type == RESPONSE
    }

    /// The frame that carries this PDU, without frame check sequence. `source` is the port's own address.
    pub fn frame(&self, source: MacAddress) -> [u8; Self::FRAME_LEN] {
        let mut frame = [0; Self::FRAME_LEN];
        let (header, pdu) = frame.split_at_mut(EthernetHeader::LEN);
        header.copy_from_slice(EthernetHeader::new(SlowProtocol::ADDRESS, source, EtherType::SLOW).as_bytes());
        pdu.copy_from_slice(self.as_bytes());
        frame
    }

    /// Port that asked.
    pub fn requester_port(&self) -> u16 {
        self.requester_port.get()
    }

    /// System that asked.
    pub const fn requester_system(&self) -> MacAddress {
        MacAddress(self.requester_system)
    }

    /// Number that pairs a response with its request.
    pub fn transaction(&self) -> u32 {
        self.transaction.get()
    }
}

const fn field(field: &'static str, offset: usize, value: u8, allowed: &'static str) -> WireError {
    WireError::Field { header: NAME, field, offset, value: value as u32, allowed }
}
