//! ARP (RFC 826; reverse ARP RFC 903; address conflict detection RFC 5227).

use super::{EtherType, WireError};
use crate::driver::MacAddress;
use core::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What an ARP packet does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ArpOperation(pub u16);

impl ArpOperation {
    /// Who has this protocol address?
    pub const REQUEST: Self = Self(1);
    /// The sender has.
    pub const REPLY: Self = Self(2);
    /// Which protocol address has this hardware address? (RFC 903)
    pub const REVERSE_REQUEST: Self = Self(3);
    /// The answer to that.
    pub const REVERSE_REPLY: Self = Self(4);
}

/// The 8 bytes in front of the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ArpHeader {
    hardware: U16,
    protocol: U16,
    hardware_len: u8,
    protocol_len: u8,
    operation: U16,
}

/// The four addresses of an ARP packet, of the lengths that its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpAddresses<'a> {
    /// Hardware address of the sender.
    pub sender_hardware: &'a [u8],
    /// Protocol address of the sender.
    pub sender_protocol: &'a [u8],
    /// Hardware address of the target; means nothing in a request.
    pub target_hardware: &'a [u8],
    /// Protocol address of the target.
    pub target_protocol: &'a [u8],
}

impl ArpHeader {
    /// Bytes in front of the addresses.
    pub const LEN: usize = 8;
    /// Hardware type of Ethernet.
    pub const ETHERNET: u16 = 1;

    /// The header at the start of `bytes`, the addresses, and what follows (padding).
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the addresses are not all there.
    pub fn parse(bytes: &[u8]) -> Result<(&Self, ArpAddresses<'_>, &[u8]), WireError> {
        let (header, rest) = super::prefix::<Self>(bytes, "ARP")?;
        let (hardware, protocol) = (usize::from(header.hardware_len), usize::from(header.protocol_len));
        let needed = Self::LEN + 2 * (hardware + protocol);
        let truncated = WireError::Truncated { header: "ARP", len: bytes.len(), needed };
        let (own, rest) = rest.split_at_checked(needed - Self::LEN).ok_or(truncated)?;
        let (sender, target) = own.split_at(hardware + protocol);
        let (sender_hardware, sender_protocol) = sender.split_at(hardware);
        let (target_hardware, target_protocol) = target.split_at(hardware);
        Ok((header, ArpAddresses { sender_hardware, sender_protocol, target_hardware, target_protocol }, rest))
    }

    /// Kind of link: 1 is Ethernet.
    pub fn hardware(&self) -> u16 {
        self.hardware.get()
    }

    /// Kind of the protocol addresses.
    pub fn protocol(&self) -> EtherType {
        EtherType(self.protocol.get())
    }

    /// Bytes in a hardware address.
    pub const fn hardware_len(&self) -> u8 {
        self.hardware_len
    }

    /// Bytes in a protocol address.
    pub const fn protocol_len(&self) -> u8 {
        self.protocol_len
    }

    /// Request, reply or another.
    pub fn operation(&self) -> ArpOperation {
        ArpOperation(self.operation.get())
    }
}

/// An ARP packet for IPv4 over Ethernet: 28 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ArpIpv4 {
    header: ArpHeader,
    sender_mac: [u8; 6],
    sender_ip: [u8; 4],
    target_mac: [u8; 6],
    target_ip: [u8; 4],
}

impl ArpIpv4 {
    /// Bytes in the packet.
    pub const LEN: usize = 28;

    /// A packet.
    pub const fn new(
        operation: ArpOperation,
        sender_mac: MacAddress,
        sender_ip: Ipv4Addr,
        target_mac: MacAddress,
        target_ip: Ipv4Addr,
    ) -> Self {
        Self {
            header: ArpHeader {
                hardware: U16::new(ArpHeader::ETHERNET),
                protocol: U16::new(EtherType::IPV4.0),
                hardware_len: 6,
                protocol_len: 4,
                operation: U16::new(operation.0),
            },
            sender_mac: sender_mac.0,
            sender_ip: sender_ip.octets(),
            target_mac: target_mac.0,
            target_ip: target_ip.octets(),
        }
    }

    /// Who has `target`? Asked with an all-zero target hardware address, as Linux does. With sender `0.0.0.0` it is a probe
    /// (RFC 5227 section 2.1.1).
    pub const fn request(sender_mac: MacAddress, sender_ip: Ipv4Addr, target: Ipv4Addr) -> Self {
        Self::new(ArpOperation::REQUEST, sender_mac, sender_ip, MacAddress([0; 6]), target)
    }

    /// The packet at the start of `bytes`, and what follows (padding).
    ///
    /// # Errors
    /// [`WireError`] if bytes are missing or it is not about IPv4 over Ethernet.
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        let (packet, rest) = super::prefix::<Self>(bytes, "ARP")?;
        packet.check()?;
        Ok((packet, rest))
    }

    /// As [`ArpIpv4::parse`], writable.
    ///
    /// # Errors
    /// As there.
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        let (packet, rest) = super::prefix_mut::<Self>(bytes, "ARP")?;
        packet.check()?;
        Ok((packet, rest))
    }

    fn check(&self) -> Result<(), WireError> {
        let h = &self.header;
        let fields = [
            ("hardware type", 0, h.hardware.get(), ArpHeader::ETHERNET, "1 (Ethernet)"),
            ("protocol type", 2, h.protocol.get(), EtherType::IPV4.0, "0x0800 (IPv4)"),
            ("hardware address length", 4, u16::from(h.hardware_len), 6, "6"),
            ("protocol address length", 5, u16::from(h.protocol_len), 4, "4"),
        ];
        match fields.into_iter().find(|(_, _, value, right, _)| value != right) {
            None => Ok(()),
            Some((field, offset, value, _, allowed)) => {
                Err(WireError::Field { header: "ARP", field, offset, value: u32::from(value), allowed })
            }
        }
    }

    /// Request, reply or another.
    pub fn operation(&self) -> ArpOperation {
        self.header.operation()
    }

    /// Hardware address of the sender.
    pub const fn sender_mac(&self) -> MacAddress {
        MacAddress(self.sender_mac)
    }

    /// IPv4 address of the sender.
    pub const fn sender_ip(&self) -> Ipv4Addr {
        let [a, b, c, d] = self.sender_ip;
        Ipv4Addr::new(a, b, c, d)
    }

    /// Hardware address of the target; means nothing in a request.
    pub const fn target_mac(&self) -> MacAddress {
        MacAddress(self.target_mac)
    }

    /// IPv4 address of the target.
    pub const fn target_ip(&self) -> Ipv4Addr {
        let [a, b, c, d] = self.target_ip;
        Ipv4Addr::new(a, b, c, d)
    }

    /// True if sender and target address are one: the sender announces itself (RFC 5227 section 2.3).
    pub fn is_gratuitous(&self) -> bool {
        self.sender_ip == self.target_ip
    }

    /// Sets request, reply or another.
    pub fn set_operation(&mut self, operation: ArpOperation) {
        self.header.operation = U16::new(operation.0);
    }

    /// Sets the sender.
    pub fn set_sender(&mut self, mac: MacAddress, ip: Ipv4Addr) {
        (self.sender_mac, self.sender_ip) = (mac.0, ip.octets());
    }

    /// Sets the target.
    pub fn set_target(&mut self, mac: MacAddress, ip: Ipv4Addr) {
        (self.target_mac, self.target_ip) = (mac.0, ip.octets());
    }
}
