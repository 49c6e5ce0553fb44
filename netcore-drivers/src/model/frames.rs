//! What receive hardware finds out about a frame.

use netcore::checksum::Sum;
use netcore::{TunnelPorts, checksum, dissect};

/// Result of one checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Check {
    /// Nothing to check, or not understood.
    #[default]
    Absent,
    /// Right.
    Good,
    /// Wrong.
    Bad,
}

/// What a NIC without tunnel support sees of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// IP version, 0 if it is no IP packet.
    pub version: u8,
    /// Protocol above IP, if it is no fragment.
    pub protocol: Option<u8>,
    /// It is a fragment.
    pub fragment: bool,
    /// IPv4 has options, IPv6 has extension headers.
    pub extended: bool,
    /// IPv4 header checksum.
    pub ip: Check,
    /// TCP or UDP checksum.
    pub transport: Check,
    /// It is UDP with a checksum of zero.
    pub udp_zero: bool,
    /// Offset of the network header.
    pub network: u16,
    /// Offset of the transport header.
    pub upper: u16,
    /// VLAN tags in the frame.
    pub tags: u8,
}

/// Looks at a frame as receive hardware does: the outermost headers only, by the lengths that they state.
pub fn look(frame: &[u8]) -> Seen {
    let d = dissect(frame, &TunnelPorts::none());
    let mut seen = Seen { tags: d.tags, ..Seen::default() };
    let Some(outer) = d.outer else { return seen };
    let network = usize::from(outer.offset);
    let upper = usize::from(outer.upper);
    seen.version = outer.version;
    seen.fragment = outer.fragment;
    seen.network = outer.offset;
    seen.upper = outer.upper;
    seen.extended = upper - network > if outer.version == 4 { 20 } else { 40 };
    if outer.version == 4 {
        let sum = checksum::sum(frame.get(network..upper).unwrap_or(&[]));
        seen.ip = if sum.is_valid() { Check::Good } else { Check::Bad };
    }
    if outer.fragment {
        return seen;
    }
    seen.protocol = Some(outer.protocol.0);
    let end = outer.end as usize;
    let Some(payload) = frame.get(upper..end).filter(|_| !outer.cut) else { return seen };
    let minimum = match outer.protocol.0 {
        6 => 20,
        17 => 8,
        _ => return seen,
    };
    if payload.len() < minimum {
        return seen;
    }
    let pseudo = pseudo(frame, network, outer.version, outer.protocol.0, payload.len());
    if outer.protocol.0 == 17 && payload[6..8] == [0, 0] {
        seen.udp_zero = true;
        return seen;
    }
    let sum = pseudo.plus(checksum::sum(payload));
    seen.transport = if sum.is_valid() { Check::Good } else { Check::Bad };
    seen
}

/// The pseudo-header sum of the IP header at `network`.
pub fn pseudo(frame: &[u8], network: usize, version: u8, protocol: u8, len: usize) -> Sum {
    let addresses = if version == 4 { network + 12..network + 20 } else { network + 8..network + 40 };
    checksum::sum(frame.get(addresses).unwrap_or(&[])).plus_word(u16::from(protocol)).plus_u32(len as u32)
}

/// The sum of `bytes`, folded, not complemented, zero as 0.
pub fn folded(bytes: &[u8]) -> u16 {
    checksum::sum(bytes).fold()
}

/// The SCTP checksum of a frame's outermost packet.
pub fn sctp(frame: &[u8], seen: &Seen) -> Check {
    let d = dissect(frame, &TunnelPorts::none());
    let Some(outer) = d.outer.filter(|outer| seen.protocol == Some(132) && !outer.cut) else { return Check::Absent };
    match frame.get(usize::from(outer.upper)..outer.end as usize) {
        Some(packet) => sctp_checksum(packet),
        None => Check::Absent,
    }
}

/// The checksum of an SCTP packet (RFC 9260 appendix A).
pub fn sctp_checksum(packet: &[u8]) -> Check {
    if packet.len() < 12 {
        return Check::Absent;
    }
    let mut copy = packet.to_vec();
    copy[8..12].fill(0);
    if packet[8..12] == crc32c(&copy).to_le_bytes() { Check::Good } else { Check::Bad }
}

/// CRC-32c, bit by bit: reflected polynomial 0x82f63b78. In the packet its lowest byte comes first.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_of_the_vectors_of_rfc_3720() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
