//! Frames for tests.

use super::{MAC, PEER};
use netcore::MacAddress;
use netcore::checksum::{self, Sum};

/// An Ethernet frame of `len` bytes from the other end, with a number in it.
pub fn numbered(destination: MacAddress, source: MacAddress, len: usize, number: u32) -> Vec<u8> {
    let mut frame = Vec::with_capacity(len);
    frame.extend(destination.0);
    frame.extend(source.0);
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..len.max(18)).map(|i| (i as u32).wrapping_mul(7).wrapping_add(number) as u8));
    frame.truncate(len.max(18));
    frame
}

/// The number in a frame made by [`numbered`].
pub fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])
}

/// An IP packet in an Ethernet frame.
#[derive(Clone, Copy, Debug)]
pub struct Ip {
    pub version: u8,
    pub protocol: u8,
    pub source_port: u16,
    pub destination_port: u16,
    pub payload: usize,
    pub to_nic: bool,
    pub host: u8,
}

impl Ip {
    pub fn tcp4(payload: usize) -> Self {
        Self { version: 4, protocol: 6, source_port: 1000, destination_port: 2000, payload, to_nic: true, host: 1 }
    }

    pub fn udp4(payload: usize) -> Self {
        Self { protocol: 17, ..Self::tcp4(payload) }
    }

    pub fn tcp6(payload: usize) -> Self {
        Self { version: 6, ..Self::tcp4(payload) }
    }

    pub fn outbound(self) -> Self {
        Self { to_nic: false, ..self }
    }

    pub fn ports(self, source: u16, destination: u16) -> Self {
        Self { source_port: source, destination_port: destination, ..self }
    }

    /// Offset of the transport header.
    pub fn transport(&self) -> usize {
        14 + if self.version == 4 { 20 } else { 40 }
    }

    /// Bytes of all headers.
    pub fn headers(&self) -> usize {
        self.transport() + if self.protocol == 6 { 20 } else { 8 }
    }

    /// Offset of the transport checksum.
    pub fn field(&self) -> usize {
        self.transport() + if self.protocol == 6 { 16 } else { 6 }
    }

    pub fn addresses(&self) -> (Vec<u8>, Vec<u8>) {
        if self.version == 4 {
            (vec![10, 0, 0, self.host], vec![10, 0, 0, 200])
        } else {
            let mut source = vec![0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, self.host];
            let mut destination = source.clone();
            source[7] = 1;
            destination[15] = 200;
            (source, destination)
        }
    }

    fn pseudo(&self, len: usize) -> Sum {
        let (source, destination) = self.addresses();
        checksum::sum(&source).plus(checksum::sum(&destination)).plus_word(self.protocol.into()).plus_u32(len as u32)
    }

    /// The frame with all checksums right.
    pub fn build(&self) -> Vec<u8> {
        let mut frame = self.build_partial();
        let (at, field) = (self.transport(), self.field());
        let sum = !checksum::sum(&frame[at..]).fold();
        let sum = if sum == 0 && self.protocol == 17 { 0xffff } else { sum };
        frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// The frame as a stack leaves it for the device: the checksum field holds the pseudo-header sum.
    pub fn build_partial(&self) -> Vec<u8> {
        let (to, from) = if self.to_nic { (MAC, PEER) } else { (PEER, MAC) };
        let mut frame = [to.0, from.0].concat();
        let l4 = self.headers() - self.transport() + self.payload;
        let (source, destination) = self.addresses();
        if self.version == 4 {
            let total = (20 + l4).min(0xffff) as u16;
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend(total.to_be_bytes());
            frame.extend([0x12, 0x34, 0x40, 0, 64, self.protocol, 0, 0]);
            frame.extend(&source);
            frame.extend(&destination);
            let sum = !checksum::sum(&frame[14..34]).fold();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((l4.min(0xffff) as u16).to_be_bytes());
            frame.extend([self.protocol, 64]);
            frame.extend(&source);
            frame.extend(&destination);
        }
        frame.extend(self.source_port.to_be_bytes());
        frame.extend(self.destination_port.to_be_bytes());
        if self.protocol == 6 {
            // Sequence 1000, ACK PSH FIN.
            frame.extend([0, 0, 0x03, 0xe8, 0x22, 0x22, 0x22, 0x22, 0x50, 0x19, 0x70, 0, 0, 0, 0, 0]);
        } else {
            frame.extend((l4.min(0xffff) as u16).to_be_bytes());
            frame.extend([0, 0]);
        }
        frame.extend((0..self.payload).map(|i| (i * 7) as u8));
        let seed = self.pseudo(l4).fold();
        let field = self.field();
        frame[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        frame
    }
}

/// Puts an 802.1Q tag into a frame.
pub fn tagged(frame: &[u8], tci: u16) -> Vec<u8> {
    [&frame[..12], &[0x81, 0x00], &tci.to_be_bytes(), &frame[12..]].concat()
}

/// True if the IPv4 header and transport checksums of a frame are right.
pub fn sums_are_right(frame: &[u8]) -> bool {
    let seen = netcore_drivers::model::frames::look(frame);
    use netcore_drivers::model::frames::Check;
    seen.ip != Check::Bad && seen.transport == Check::Good
}

/// VXLAN over UDP over IPv4 or IPv6 around a frame; the outer UDP checksum is zero.
pub fn vxlan(inner: &[u8], version: u8) -> Vec<u8> {
    let outer = Ip { version, ..Ip::udp4(8 + inner.len()) }.outbound().ports(12_345, 4789);
    let mut frame = outer.build();
    frame.truncate(outer.headers());
    let field = outer.field();
    frame[field..field + 2].fill(0);
    frame.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    frame.extend(inner);
    frame
}

/// An SCTP packet over IPv4 with its checksum right, or zero as a stack leaves it for the device.
pub fn sctp(payload: usize, finished: bool) -> Vec<u8> {
    let mut frame = Ip::tcp4(payload).outbound().build();
    // 12 bytes of header in place of the 20 of TCP.
    let total = (20 + 12 + payload) as u16;
    frame.drain(38..58);
    frame.splice(38..38, [0, 0, 0, 7, 0, 0, 0, 0]);
    frame.truncate(14 + usize::from(total));
    frame.resize(14 + usize::from(total), 0);
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[23] = 132;
    frame[24..26].fill(0);
    let sum = !checksum::sum(&frame[14..34]).fold();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[42..46].fill(0);
    if finished {
        let crc = netcore_drivers::model::frames::crc32c(&frame[34..]);
        frame[42..46].copy_from_slice(&crc.to_le_bytes());
    }
    frame
}
