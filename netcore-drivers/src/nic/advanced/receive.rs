//! Advanced receive descriptors, one buffer per descriptor.

use super::rxd;
use crate::ring::{ReceiveFault, ReceiveLayout, Received, Words};
use core::marker::PhantomData;
use netcore::ReceiveChecksum;

/// Packet type bit in the first word: UDP (82599 datasheet table 7-16, bit 5 of the type).
const TYPE_UDP: u32 = 1 << 9;
/// Hash types that cover ports: TCP and UDP, over IPv4, IPv6, and IPv6 with extension headers.
const HASHES_WITH_PORTS: u32 = 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9;

/// Where a family has its error bits.
pub trait Flavour: Send + 'static {
    /// The transport checksum is wrong.
    const L4E: u32;
    /// The IPv4 header checksum is wrong.
    const IPE: u32;
    /// The MAC says that the frame is bad.
    const RXE: u32;
    /// A UDP datagram without checksum may be reported as wrong (82599 specification update).
    const ZERO_UDP_IS_WRONG: bool;
}

/// igb (82576 datasheet 7.1.5.2).
#[derive(Debug)]
pub struct IgbBits;

impl Flavour for IgbBits {
    const L4E: u32 = 1 << 29;
    const IPE: u32 = 1 << 30;
    const RXE: u32 = 1 << 31;
    const ZERO_UDP_IS_WRONG: bool = false;
}

/// ixgbe (82599 datasheet 7.1.6.2).
#[derive(Debug)]
pub struct IxgbeBits;

impl Flavour for IxgbeBits {
    const L4E: u32 = 1 << 30;
    const IPE: u32 = 1 << 31;
    const RXE: u32 = 1 << 29;
    const ZERO_UDP_IS_WRONG: bool = true;
}

/// What a receive queue is switched to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    /// Believe the checksum verdicts.
    pub checksum: bool,
    /// Tags are removed.
    pub strip: bool,
    /// Deliver frames that are bad.
    pub keep_bad: bool,
    /// Pass the hash on.
    pub hash: bool,
}

/// Advanced receive descriptors of a family.
#[derive(Debug)]
pub struct Receive<F> {
    switches: Switches,
    flavour: PhantomData<fn() -> F>,
}

impl<F: Flavour> Receive<F> {
    /// The layout with these switches.
    pub const fn new(switches: Switches) -> Self {
        Self { switches, flavour: PhantomData }
    }

    /// The switches.
    pub const fn switches(&self) -> Switches {
        self.switches
    }
}

impl<F: Flavour> ReceiveLayout for Receive<F> {
    const DONE: u64 = rxd::DD as u64;

    #[inline(always)]
    fn arm(&self, iova: u64) -> Words {
        // The header buffer is not used; its lowest bit is where hardware will say that it is done.
        [iova, 0]
    }

    #[inline(always)]
    fn parse(&self, [first, second]: Words) -> Received {
        let bits = second as u32;
        let mut received = Received { len: (second >> 32) as u16, end: bits & rxd::EOP != 0, ..Received::default() };
        if !received.end {
            return received;
        }
        let s = self.switches;
        if bits & F::RXE != 0 && !s.keep_bad {
            received.fault = Some(if bits & rxd::CE != 0 { ReceiveFault::Crc } else { ReceiveFault::Data });
            return received;
        }
        if s.strip && bits & rxd::VP != 0 {
            received.vlan = Some((second >> 48) as u16);
        }
        if s.checksum {
            let doubtful = F::ZERO_UDP_IS_WRONG && first as u32 & TYPE_UDP != 0;
            if bits & F::IPE != 0 || (bits & F::L4E != 0 && !doubtful) {
                received.checksum_error = true;
            } else if bits & (rxd::L4CS | F::L4E) == rxd::L4CS {
                received.checksum = ReceiveChecksum::Unnecessary { levels: 1 };
            }
        }
        let kind = first as u32 & 0xf;
        if s.hash && kind != 0 {
            received.hash = Some(((first >> 32) as u32, HASHES_WITH_PORTS >> kind & 1 != 0));
        }
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Switches = Switches { checksum: true, strip: true, keep_bad: false, hash: true };

    fn igb(info: u32, status: u32, len: u16, vlan: u16) -> Received {
        let words =
            [u64::from(info) | 0xaabb_ccdd << 32, u64::from(status) | u64::from(len) << 32 | u64::from(vlan) << 48];
        Receive::<IgbBits>::new(ALL).parse(words)
    }

    /// The words that QEMU's 82576 writes for frames of each kind.
    #[test]
    fn each_verdict_of_the_82576_is_understood() {
        let good = ReceiveChecksum::Unnecessary { levels: 1 };
        let none = ReceiveChecksum::None;
        for (what, info, status, checksum, wrong, hash) in [
            ("TCP good", 0x0111, 0x63, good, false, Some(true)),
            ("TCP wrong", 0x0111, 0x2000_0063, none, true, Some(true)),
            ("IP header wrong", 0x0111, 0x4000_0063, none, true, Some(true)),
            ("UDP good", 0x0217, 0x73, good, false, Some(true)),
            ("UDP without checksum", 0x0217, 0x43, none, false, Some(true)),
            ("UDP wrong", 0x0217, 0x2000_0073, none, true, Some(true)),
            ("TCP over IPv6", 0x0145, 0x23, good, false, Some(false)),
            ("fragment", 0x0012, 0x43, none, false, Some(false)),
            ("ARP", 0, 0x03, none, false, None),
        ] {
            let received = igb(info, status, 100, 0);
            assert_eq!((received.checksum, received.checksum_error), (checksum, wrong), "{what}");
            assert_eq!(received.hash, hash.map(|ports| (0xaabb_ccdd, ports)), "{what}");
            assert!(received.end && received.len == 100 && received.fault.is_none());
        }
        assert_eq!(igb(0x0111, 0x6b, 100, 0xa064).vlan, Some(0xa064));
        assert_eq!(igb(0, 0x8100_0003, 100, 0).fault, Some(ReceiveFault::Crc));
        assert_eq!(igb(0, 0x8000_0003, 100, 0).fault, Some(ReceiveFault::Data));
        assert!(!igb(0, 0x01, 2048, 0).end);
    }

    #[test]
    fn the_82599_has_its_error_bits_elsewhere_and_its_verdict_on_udp_alone_is_not_believed() {
        let parse = |info: u64, status: u64| Receive::<IxgbeBits>::new(ALL).parse([info, status]);
        assert!(parse(0x0111, 0x4000_0063).checksum_error, "L4E");
        assert!(parse(0x0111, 0x8000_0063).checksum_error, "IPE");
        assert_eq!(parse(0x0111, 0x2000_0063).fault, Some(ReceiveFault::Data), "RXE");
        let doubtful = parse(0x0217, 0x4000_0073);
        assert_eq!((doubtful.checksum_error, doubtful.checksum), (false, ReceiveChecksum::None));
        assert!(parse(0x0217, 0x8000_0073).checksum_error);
        assert_eq!(parse(0x0217, 0x73).checksum, ReceiveChecksum::Unnecessary { levels: 1 });
    }
}
