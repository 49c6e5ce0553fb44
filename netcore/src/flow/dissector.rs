//! What the kernel's flow dissector (`__skb_flow_dissect`, 6.18) takes from a frame for the bonding policies `encap2+3` and
//! `encap3+4`: the innermost addresses and ports behind VLAN tags, PPPoE, GRE, IP in IP and batman-adv.
//!
//! UDP tunnels (VXLAN, GENEVE) are not looked into: their outer source port already differs from flow to flow.

use super::bonding::{Keys, echo_word, word32};

/// Headers that are followed before the walk gives up (`MAX_FLOW_DISSECT_HDRS`).
const MAX_HEADERS: u8 = 15;

/// How a step of the walk ends.
enum Step {
    /// The frame is understood as far as it goes.
    Good,
    /// A header is cut off or unknown: the caller falls back to layer 2.
    Bad,
    /// A network header of this EtherType follows.
    Network(u16),
    /// An upper header of this protocol follows, behind a network header of this EtherType.
    Upper(u8, u16),
}

/// Addresses, ports and ICMP identifier as the policies use them; `None` if the frame is not understood.
///
/// `tagged`: the frame has a VLAN tag outside its bytes. The kernel then takes the first tag that it finds in the bytes, be
/// it inside a tunnel, for that one, and reads what the frame's EtherType says at its place.
pub(super) fn keys(frame: &[u8], tagged: bool) -> Option<Keys> {
    let ethertype = u16::from_be_bytes(*frame.get(12..)?.first_chunk()?);
    let mut keys = Keys { addresses: 0, ports: 0, icmp: None };
    let mut at = 14;
    let mut step = Step::Network(ethertype);
    let mut tag_outside = tagged;
    for _ in 0..=MAX_HEADERS {
        step = match step {
            Step::Good => return Some(keys),
            Step::Bad => return None,
            Step::Network(0x8100 | 0x88a8) if core::mem::take(&mut tag_outside) => Step::Network(ethertype),
            Step::Network(ethertype) => network(frame, ethertype, &mut at, &mut keys),
            Step::Upper(protocol, ethertype) => upper(frame, protocol, ethertype, &mut at, &mut keys),
        };
    }
    // So many headers: what was found so far counts.
    match step {
        Step::Bad => None,
        _ => Some(keys),
    }
}

fn bytes<const N: usize>(frame: &[u8], at: usize) -> Option<&[u8; N]> {
    frame.get(at..)?.first_chunk()
}

fn half(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

fn network(frame: &[u8], ethertype: u16, at: &mut usize, keys: &mut Keys) -> Step {
    match ethertype {
        0x0800 => {
            let Some(h) = bytes::<20>(frame, *at) else { return Step::Bad };
            if h[0] & 0x0f < 5 {
                return Step::Bad;
            }
            *at += usize::from(h[0] & 0x0f) * 4;
            keys.addresses = word32(h, 12).unwrap_or(0) ^ word32(h, 16).unwrap_or(0);
            // Any fragment, the first too, ends here without ports.
            if half(h, 6) & 0x3fff != 0 { Step::Good } else { Step::Upper(h[9], ethertype) }
        }
        0x86dd => {
            let Some(h) = bytes::<40>(frame, *at) else { return Step::Bad };
            *at += 40;
            keys.addresses = (8..40).step_by(4).fold(0, |folded, n| folded ^ word32(h, n).unwrap_or(0));
            Step::Upper(h[6], ethertype)
        }
        // 802.1Q, 802.1ad.
        0x8100 | 0x88a8 => {
            let Some(h) = bytes::<4>(frame, *at) else { return Step::Bad };
            *at += 4;
            Step::Network(half(h, 2))
        }
        0x8864 => pppoe(frame, at),
        // TIPC: the node that sends, unless the message is a keep-alive, which the kernel spreads at random.
        0x88ca => {
            let Some(h) = bytes::<16>(frame, *at) else { return Step::Bad };
            const KEEPALIVE: u32 = 0x0e08_0000;
            let first = u32::from_be_bytes([h[0], h[1], h[2], h[3]]);
            keys.addresses = if first & KEEPALIVE == KEEPALIVE { 0 } else { word32(h, 12).unwrap_or(0) };
            Step::Good
        }
        // FCoE has a header of 38 bytes; MPLS, ARP, RARP, PTP and CFM are known but have no keys.
        0x8906 => {
            if frame.len().saturating_sub(*at) < 38 {
                Step::Bad
            } else {
                Step::Good
            }
        }
        0x8847 | 0x8848 | 0x0806 | 0x8035 | 0x88f7 | 0x8902 => Step::Good,
        // batman-adv: a unicast packet of version 15 carries an Ethernet frame.
        0x4305 => {
            let Some(h) = bytes::<24>(frame, *at) else { return Step::Bad };
            if h[1] != 15 {
                return Step::Bad;
            }
            if h[0] != 0x40 {
                return Step::Bad;
            }
            *at += 24;
            Step::Network(half(h, 22))
        }
        // HSR and PRP tags.
        0x892f | 0x88fb => {
            let Some(h) = bytes::<6>(frame, *at) else { return Step::Bad };
            *at += 6;
            Step::Network(half(h, 4))
        }
        _ => Step::Bad,
    }
}

/// A PPPoE session header and the PPP protocol behind it, compressed or not.
fn pppoe(frame: &[u8], at: &mut usize) -> Step {
    let Some(h) = bytes::<8>(frame, *at) else { return Step::Bad };
    if h[0] != 0x11 || h[1] != 0 {
        return Step::Bad;
    }
    let mut protocol = half(h, 6);
    if protocol & 0x0100 != 0 {
        protocol >>= 8;
        *at += 7;
    } else {
        *at += 8;
    }
    match protocol {
        0x0021 => Step::Network(0x0800),
        0x0057 => Step::Network(0x86dd),
        0x0281 => Step::Network(0x8847),
        0x0283 => Step::Network(0x8848),
        other if other & 0x0101 == 0x0001 => Step::Good,
        _ => Step::Bad,
    }
}

fn upper(frame: &[u8], protocol: u8, ethertype: u16, at: &mut usize, keys: &mut Keys) -> Step {
    let v6 = ethertype == 0x86dd;
    match protocol {
        47 => gre(frame, at),
        // Hop-by-hop, routing and destination options.
        0 | 43 | 60 if v6 => {
            let Some(h) = bytes::<2>(frame, *at) else { return Step::Bad };
            *at += (usize::from(h[1]) + 1) * 8;
            Step::Upper(h[0], ethertype)
        }
        44 if v6 => {
            if bytes::<8>(frame, *at).is_some() {
                Step::Good
            } else {
                Step::Bad
            }
        }
        4 => Step::Network(0x0800),
        41 => Step::Network(0x86dd),
        137 => Step::Network(0x8847),
        _ => {
            if matches!(protocol, 1 | 58) {
                keys.icmp = echo_word(frame, *at);
            }
            let offset = match protocol {
                6 | 17 | 33 | 50 | 132 | 136 => Some(0),
                51 => Some(4),
                _ => None,
            };
            keys.ports = offset.and_then(|offset| word32(frame, *at + offset)).unwrap_or(0);
            Step::Good
        }
    }
}

/// GRE of version 0, and of version 1 as PPTP has it (`__skb_flow_dissect_gre`).
fn gre(frame: &[u8], at: &mut usize) -> Step {
    let Some(h) = bytes::<4>(frame, *at) else { return Step::Bad };
    let flags = half(h, 0);
    let (version, protocol) = (flags & 7, half(h, 2));
    let (checksum, routing, key, sequence, acknowledgement) =
        (flags & 0x8000 != 0, flags & 0x4000 != 0, flags & 0x2000 != 0, flags & 0x1000 != 0, flags & 0x0080 != 0);
    if routing || version > 1 || version == 1 && !(protocol == 0x880b && key) {
        return Step::Good;
    }
    let mut end = *at + 4;
    if checksum {
        end += 4;
    }
    if key {
        if bytes::<4>(frame, end).is_none() {
            return Step::Bad;
        }
        end += 4;
    }
    if sequence {
        end += 4;
    }
    let mut next = protocol;
    if version == 0 {
        // Ethernet in GRE.
        if protocol == 0x6558 {
            let Some(ethernet) = bytes::<14>(frame, end) else { return Step::Bad };
            next = half(ethernet, 12);
            end += 14;
        }
    } else {
        if acknowledgement {
            end += 4;
        }
        let Some(ppp) = bytes::<4>(frame, end) else { return Step::Bad };
        match half(ppp, 2) {
            0x0021 => next = 0x0800,
            0x0057 => next = 0x86dd,
            _ => {}
        }
        end += 4;
    }
    *at = end;
    Step::Network(next)
}
