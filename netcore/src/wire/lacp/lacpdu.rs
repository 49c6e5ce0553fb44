//! LACPDU.

use super::PortInformation;
use crate::driver::MacAddress;
use crate::wire::{EtherType, EthernetHeader, SlowProtocol, WireError};
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const NAME: &str = "LACPDU";

/// The 110 bytes of a LACPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Lacpdu {
    subtype: u8,
    version: u8,
    actor_type: u8,
    actor_length: u8,
    actor: PortInformation,
    partner_type: u8,
    partner_length: u8,
    partner: PortInformation,
    collector_type: u8,
    collector_length: u8,
    collector_max_delay: U16,
    collector_reserved: [u8; 12],
    /// Terminator and padding; from version 2 on, further TLVs come first.
    tail: [u8; 52],
}

impl Lacpdu {
    /// Bytes in a LACPDU.
    pub const LEN: usize = 110;
    /// Bytes in a frame with a LACPDU, without frame check sequence.
    pub const FRAME_LEN: usize = EthernetHeader::LEN + Self::LEN;
    /// The version written by [`Lacpdu::new`].
    pub const VERSION: u8 = 1;

    /// A version 1 LACPDU. `collector_max_delay` is in tens of microseconds.
    pub const fn new(actor: PortInformation, partner: PortInformation, collector_max_delay: u16) -> Self {
        Self {
            subtype: SlowProtocol::Lacp.subtype(),
            version: Self::VERSION,
            actor_type: 1,
            actor_length: 20,
            actor,
            partner_type: 2,
            partner_length: 20,
            partner,
            collector_type: 3,
            collector_length: 16,
            collector_max_delay: U16::new(collector_max_delay),
            collector_reserved: [0; 12],
            tail: [0; 52],
        }
    }

    /// The LACPDU at the start of `bytes` (what follows the Ethernet header), and what follows.
    ///
    /// As the standard demands (IEEE 802.1AX clause 6.4.12; 802.3ad 43.4.12), any version is accepted, and TLV types and
    /// reserved bytes are not looked at. The lengths of the three TLVs, which the same clause allows to check, must be
    /// right, or the fields would not be where they are read.
    ///
    /// # Errors
    /// [`WireError`] if bytes are missing, the subtype is another, or a TLV has another length.
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        if let [subtype, ..] = bytes
            && *subtype != SlowProtocol::Lacp.subtype()
        {
            return Err(field("subtype", 0, *subtype, "1"));
        }
        let (pdu, rest) = crate::wire::prefix::<Self>(bytes, NAME)?;
        if pdu.actor_length != 20 {
            return Err(field("actor information length", 3, pdu.actor_length, "20"));
        }
        if pdu.partner_length != 20 {
            return Err(field("partner information length", 23, pdu.partner_length, "20"));
        }
        if pdu.collector_length != 16 {
            return Err(field("collector information length", 43, pdu.collector_length, "16"));
        }
        Ok((pdu, rest))
    }

    /// The frame that carries this LACPDU, without frame check sequence. `source` is the port's own address, not the
    /// aggregate's.
    pub fn frame(&self, source: MacAddress) -> [u8; Self::FRAME_LEN] {
        let mut frame = [0; Self::FRAME_LEN];
        let (header, pdu) = frame.split_at_mut(EthernetHeader::LEN);
        header.copy_from_slice(EthernetHeader::new(SlowProtocol::ADDRESS, source, EtherType::SLOW).as_bytes());
        pdu.copy_from_slice(self.as_bytes());
        frame
    }

    /// Version number: 1 for 802.3ad and 802.1AX-2008, 2 from 802.1AX-2014 on.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// What the sender says about itself.
    pub const fn actor(&self) -> &PortInformation {
        &self.actor
    }

    /// What the sender knows about the receiver.
    pub const fn partner(&self) -> &PortInformation {
        &self.partner
    }

    /// Longest time the sender's collector holds a frame, tens of microseconds.
    pub fn collector_max_delay(&self) -> u16 {
        self.collector_max_delay.get()
    }

    /// TLVs between collector information and terminator: none in version 1; port algorithm, conversation digest and mask
    /// in version 2 (802.1AX-2014 clause 6.4.2.4).
    pub const fn tlvs(&self) -> LacpduTlvs<'_> {
        LacpduTlvs { bytes: &self.tail, at: 0 }
    }
}

const fn field(field: &'static str, offset: usize, value: u8, allowed: &'static str) -> WireError {
    WireError::Field { header: NAME, field, offset, value: value as u32, allowed }
}

/// One further TLV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LacpduTlv<'a> {
    /// Type.
    pub kind: u8,
    /// Value, without type and length.
    pub value: &'a [u8],
}

/// Iterator over the TLVs behind the collector information, up to the terminator or the first length that makes no sense.
#[derive(Clone, Debug)]
pub struct LacpduTlvs<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for LacpduTlvs<'a> {
    type Item = Result<LacpduTlv<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, &length) = (self.bytes.get(self.at)?, self.bytes.get(self.at + 1)?);
        if kind == 0 {
            return None;
        }
        let offset = Lacpdu::LEN - 52 + self.at + 1;
        let value = usize::from(length).checked_sub(2).and_then(|n| self.bytes[self.at + 2..].get(..n));
        let Some(value) = value else {
            self.at = self.bytes.len();
            return Some(Err(field("TLV length", offset, length, "2 to what is left of the PDU")));
        };
        self.at += usize::from(length);
        Some(Ok(LacpduTlv { kind, value }))
    }
}
