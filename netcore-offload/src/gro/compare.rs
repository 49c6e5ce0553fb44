//! Is a candidate of a held packet's flow, and may it merge?

use super::rules::{GroConfig, GroRules, IpIdRule};
use super::shape::Shape;
use super::table::Held;
use super::walk::{Candidate, be16, tcp_flags};
use crate::layout::{Carrier, Layout};
use netcore::offload::GroEnd;

/// How a candidate relates to a held packet.
pub(super) enum Relation {
    /// Another flow.
    Other,
    /// The same flow, and it merges.
    Merges,
    /// The same flow, but it does not merge.
    Refused(GroEnd),
}

/// Lengths from which on only plain TCP grows (Linux: `GRO_LEGACY_MAX_SIZE`).
const LEGACY_MAX_SIZE: usize = 65536;

/// Relates a candidate with headers `new` to a held packet whose tag is the same. `old` and `shape` are those of the held
/// packet; `alike` says that both have the same shape.
#[inline(always)]
pub(super) fn relate(
    shape: &Shape,
    alike: bool,
    held: &mut Held,
    candidate: &Candidate,
    new: &[u8],
    config: &GroConfig,
) -> Relation {
    let old = held.packet.head();
    let layout = &shape.layout;
    let alike = alike && shape.agrees(old, new) && checksum_presence(layout, old, new);
    if !alike {
        if !same_flow(layout, &candidate.layout, old, new) {
            return Relation::Other;
        }
        if let Some(reason) = candidate.flush.or_else(|| header_reason(layout, candidate, old, new, &config.rules)) {
            return Relation::Refused(reason);
        }
    } else if let Some(reason) = candidate.flush {
        return Relation::Refused(reason);
    }
    let Some(fixed) = ip_ids(held, layout, old, new, &config.rules) else { return Relation::Refused(GroEnd::IpId) };
    if !layout.udp && candidate.word & tcp_flags::CWR != 0 {
        return Relation::Refused(GroEnd::Flags);
    }
    // An empty segment wraps around and is refused here, too.
    if candidate.count > 1 {
        if candidate.segment != held.segment {
            return Relation::Refused(GroEnd::Longer);
        }
    } else if candidate.payload.wrapping_sub(1) >= held.segment {
        return Relation::Refused(if candidate.payload == 0 { GroEnd::Empty } else { GroEnd::Longer });
    }
    if !layout.udp && candidate.seq != held.next_seq {
        return Relation::Refused(GroEnd::Sequence);
    }
    let length = held.packet.len() - usize::from(layout.outermost().network) + candidate.payload as usize;
    if length >= config.max_size || length >= LEGACY_MAX_SIZE && !may_be_big(held, layout) {
        return Relation::Refused(GroEnd::Size);
    }
    if held.count.checked_add(candidate.count).is_none() {
        return Relation::Refused(GroEnd::Count);
    }
    held.fixed_ids = fixed;
    Relation::Merges
}

/// Bytes of the hop-by-hop header with a jumbo payload option (RFC 2675).
pub(super) const JUMBO: usize = 8;

/// Plain TCP only, and for IPv6 with room in front for another header (Linux: `skb_gro_receive`).
fn may_be_big(held: &Held, layout: &Layout) -> bool {
    let first = layout.outermost();
    let room = !first.v6 || layout.transport == first.network + 40 && held.packet.headroom() >= JUMBO;
    !layout.is_tunnel() && !layout.udp && room
}

/// The UDP checksums of tunnels are zero in both packets or in neither.
#[inline(always)]
pub(super) fn checksum_presence(layout: &Layout, old: &[u8], new: &[u8]) -> bool {
    layout.levels().iter().all(|level| {
        let field = usize::from(level.carrier_at) + 6;
        level.carrier != Carrier::Udp || (field_at::<2>(old, field) == [0; 2]) == (field_at::<2>(new, field) == [0; 2])
    })
}

#[inline(always)]
pub(super) fn field_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Linux: `gro_list_prepare` and the loops over held packets in each handler. Receive hash and VLAN metadata were compared
/// by the caller.
#[inline(never)]
fn same_flow(held: &Layout, candidate: &Layout, old: &[u8], new: &[u8]) -> bool {
    if held.levels() != candidate.levels() || held.transport != candidate.transport || held.udp != candidate.udp {
        return false;
    }
    let equal = |from: u16, to: u16| {
        let range = usize::from(from)..usize::from(to);
        old.get(range.clone()) == new.get(range)
    };
    held.levels().iter().enumerate().all(|(index, level)| {
        let (at, network) = (level.carrier_at, level.network);
        let around = match level.carrier {
            Carrier::Link => equal(0, network),
            Carrier::Udp => equal(at, at + 4) && equal(at + 8, network),
            Carrier::Gre => equal(at, network),
            Carrier::GreChecksum => equal(at, at + 4) && equal(at + 8, network),
            // Linux compares the word behind the first four bytes as the key although that is the checksum
            // (`gre_gro_receive`), so a flow is never found again.
            Carrier::GreChecksumKey => false,
            Carrier::Ip => true,
        };
        around && same_network(old, new, network, held.network_end(index), level.v6)
    }) && checksum_presence(held, old, new)
        && equal(held.transport, held.transport + 4)
}

/// Addresses and protocol; for IPv6 also version, flow label and extension headers.
pub(super) fn same_network(old: &[u8], new: &[u8], network: u16, end: u16, v6: bool) -> bool {
    let n = usize::from(network);
    if v6 {
        let label = |b: &[u8]| u32::from_be_bytes(field_at(b, n)) & 0xf00f_ffff;
        let rest = n + 8..usize::from(end);
        label(old) == label(new)
            && field_at::<1>(old, n + 6) == field_at::<1>(new, n + 6)
            && old.get(rest.clone()) == new.get(rest)
    } else {
        field_at::<1>(old, n + 9) == field_at::<1>(new, n + 9)
            && field_at::<8>(old, n + 12) == field_at::<8>(new, n + 12)
    }
}

/// Why headers of the same flow do not merge; `None` if they do.
#[inline(never)]
fn header_reason(layout: &Layout, candidate: &Candidate, old: &[u8], new: &[u8], rules: &GroRules) -> Option<GroEnd> {
    if candidate.payload == 0 {
        return Some(GroEnd::Empty);
    }
    if !layout.udp
        && let Some(reason) = tcp_reason(layout, candidate, old, new, rules)
    {
        return Some(reason);
    }
    let differs = |level: &crate::layout::Level| !same_ip_fields(old, new, usize::from(level.network), level.v6);
    layout.levels().iter().any(differs).then_some(GroEnd::IpFields)
}

fn tcp_reason(layout: &Layout, candidate: &Candidate, old: &[u8], new: &[u8], rules: &GroRules) -> Option<GroEnd> {
    let tcp = usize::from(layout.transport);
    let carried = tcp_flags::FIN | tcp_flags::PSH | if rules.cwr_takes_successor { tcp_flags::CWR } else { 0 };
    let word = u32::from_be_bytes(field_at(old, tcp + 12));
    let different = (word ^ candidate.word) & !carried;
    const OFFSET: u32 = 0xf000_0000;
    const WINDOW: u32 = 0x0000_ffff;
    if candidate.word & tcp_flags::CWR != 0 || different & !(OFFSET | WINDOW) != 0 {
        return Some(GroEnd::Flags);
    }
    if different & OFFSET != 0 {
        return Some(GroEnd::Options);
    }
    if different != 0 || field_at::<4>(old, tcp + 8) != field_at::<4>(new, tcp + 8) {
        return Some(GroEnd::AckOrWindow);
    }
    let options = tcp + 20..usize::from(layout.payload);
    (old.get(options.clone()) != new.get(options)).then_some(GroEnd::Options)
}

/// TTL, TOS and DF, or hop limit and traffic class.
pub(super) fn same_ip_fields(old: &[u8], new: &[u8], n: usize, v6: bool) -> bool {
    if v6 {
        field_at::<2>(old, n) == field_at::<2>(new, n) && field_at::<1>(old, n + 7) == field_at::<1>(new, n + 7)
    } else {
        field_at::<2>(old, n) == field_at::<2>(new, n)
            && field_at::<1>(old, n + 6)[0] & 0x40 == field_at::<1>(new, n + 6)[0] & 0x40
            && field_at::<1>(old, n + 8) == field_at::<1>(new, n + 8)
    }
}

/// Checks the identifications of all IPv4 headers; gives which of them stay constant, or `None` if one breaks the rule.
#[inline(always)]
fn ip_ids(held: &Held, layout: &Layout, old: &[u8], new: &[u8], rules: &GroRules) -> Option<u8> {
    let mut fixed = held.fixed_ids;
    let step = |network: u16| {
        let offset = usize::from(network) + 4;
        be16(&field_at(new, offset)).wrapping_sub(be16(&field_at(old, offset)))
    };
    match rules.ip_id {
        IpIdRule::Increment => {
            let inner = layout.innermost();
            if !inner.v6 && step(inner.network) != held.count {
                return None;
            }
        }
        IpIdRule::ConstantOrIncrement => {
            let innermost = layout.levels().len() - 1;
            let mut outer = None;
            for (index, level) in layout.levels().iter().enumerate() {
                if level.v6 {
                    continue;
                }
                let (step, bit) = (step(level.network), 1 << index);
                if held.count == 1 && step == 0 {
                    fixed |= bit;
                }
                let expected = if fixed & bit != 0 { 0 } else { held.count };
                if step != expected {
                    return None;
                }
                // Segmentation knows one rule for all outer headers.
                if index < innermost && *outer.get_or_insert(fixed & bit != 0) != (fixed & bit != 0) {
                    return None;
                }
            }
        }
    }
    Some(fixed)
}
