//! Are the checksums of a frame right?

use super::{Dissection, NetworkLayer};
use crate::checksum::{Sum, sum};
use crate::wire::{GreHeader, Ipv4Header, Ipv6Header, Protocol, UdpHeader};

/// What a checksum field says about the bytes it covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChecksumVerdict {
    /// Right.
    Good,
    /// Wrong.
    Bad {
        /// What the field says.
        found: u16,
        /// What it should say.
        expected: u16,
    },
    /// The field holds the pseudo-header's sum alone: left to a device that fills it in.
    Partial {
        /// What it should say once filled in.
        expected: u16,
    },
    /// The field is zero, which stands for "none".
    Absent,
    /// Not all covered bytes are at hand: the capture was cut, or the packet is a fragment.
    Unverifiable,
}

/// The verdicts on one network layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksums {
    /// The IPv4 header's checksum; `None` for IPv6.
    pub header: Option<ChecksumVerdict>,
    /// The upper layer's; `None` if it has no checksum that is known.
    pub upper: Option<ChecksumVerdict>,
}

impl Dissection {
    /// Verifies the checksums of the outermost network layer. `original_len` is the frame's length on the wire.
    pub fn outer_checksums(&self, frame: &[u8], original_len: usize) -> Option<Checksums> {
        self.outer.map(|network| verify(frame, &network, original_len))
    }

    /// Verifies the checksums of the network layer inside the innermost tunnel.
    pub fn inner_checksums(&self, frame: &[u8], original_len: usize) -> Option<Checksums> {
        self.inner.map(|network| verify(frame, &network, original_len))
    }
}

fn verify(frame: &[u8], network: &NetworkLayer, original_len: usize) -> Checksums {
    let at = usize::from(network.offset);
    let bytes = frame.get(at..network.end as usize).unwrap_or(&[]);
    let upper = frame.get(usize::from(network.upper)..network.end as usize).unwrap_or(&[]);
    // UDP covers what its own length says, which may be less than the packet (RFC 768); 0 is a packet beyond 64 KiB.
    let upper = match (network.protocol, UdpHeader::parse(upper)) {
        (Protocol::UDP, Ok((udp, _))) if usize::from(udp.len()) >= UdpHeader::LEN => {
            upper.get(..usize::from(udp.len())).unwrap_or(upper)
        }
        _ => upper,
    };
    // A length beyond a frame that was captured whole is itself damage: what there is was all that was sent.
    let whole = !network.fragment && original_len <= frame.len();
    let (header, pseudo) = if network.version == 4 {
        let Ok((header, options, _)) = Ipv4Header::parse(bytes) else {
            return Checksums { header: None, upper: None };
        };
        let len = Ipv4Header::LEN + options.as_bytes().len();
        let found = header.checksum();
        let total = sum(&bytes[..len]);
        let verdict = judge(total, found, false, None);
        (Some(verdict), header.pseudo(upper.len() as u32))
    } else {
        let parsed = Ipv6Header::parse(bytes).and_then(|(header, rest)| header.upper(rest));
        let Ok(parsed) = parsed else { return Checksums { header: None, upper: None } };
        (None, parsed.pseudo(upper.len() as u32))
    };
    let none = Sum::ZERO;
    let (field, pseudo, zero_is_absent) = match network.protocol {
        Protocol::TCP => (16, pseudo, false),
        Protocol::UDP => (6, pseudo, true),
        Protocol::ICMPV6 => (2, pseudo, false),
        Protocol::ICMP | Protocol::IGMP => (2, none, false),
        // RFC 2784 section 2.5: header and payload.
        Protocol::GRE => match GreHeader::parse(upper) {
            Ok((gre, _)) if gre.checksum.is_some() => (4, none, false),
            _ => return Checksums { header, upper: None },
        },
        _ => return Checksums { header, upper: None },
    };
    if network.fragment_offset > 0 {
        return Checksums { header, upper: Some(ChecksumVerdict::Unverifiable) };
    }
    let Some(found) = upper.get(field..field + 2).map(|f| u16::from_be_bytes([f[0], f[1]])) else {
        return Checksums { header, upper: Some(ChecksumVerdict::Unverifiable) };
    };
    let upper = if zero_is_absent && found == 0 {
        ChecksumVerdict::Absent
    } else if !whole {
        ChecksumVerdict::Unverifiable
    } else {
        judge(pseudo.plus(sum(upper)), found, zero_is_absent, (pseudo != none).then_some(pseudo))
    };
    Checksums { header, upper: Some(upper) }
}

/// `total` is the sum of everything covered, the field `found` included.
fn judge(total: Sum, found: u16, udp: bool, pseudo: Option<Sum>) -> ChecksumVerdict {
    if total.is_valid() {
        return ChecksumVerdict::Good;
    }
    let without = total.minus(Sum::from_word(found));
    let expected = if udp { without.finish_udp() } else { without.finish() };
    match pseudo {
        Some(pseudo) if pseudo.fold() == found => ChecksumVerdict::Partial { expected },
        _ => ChecksumVerdict::Bad { found, expected },
    }
}
