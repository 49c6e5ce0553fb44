//! Is a candidate of a held packet's flow, and may it merge?

use super::Held;
use super::layout::{Candidate, Layout, be16, tcp_flags};
use super::rules::{GroRules, IpIdRule};
use netcore::offload::GroEnd;

/// Headers up to this length are compared at once.
const MASKED: usize = 160;

/// Which header bits two segments of one flow must have in common to merge.
pub(super) struct Mask {
    key: u128,
    bits: [u8; MASKED],
    /// Blocks of 16 bytes to compare; 0 if the headers are longer than the mask.
    blocks: usize,
}

impl Mask {
    fn new(layout: Layout, rules: &GroRules) -> Self {
        let mut mask = Self { key: layout.key(), bits: [0; MASKED], blocks: 0 };
        let payload = usize::from(layout.payload);
        if payload > MASKED {
            return mask;
        }
        mask.blocks = payload.div_ceil(16);
        mask.bits[..payload].fill(0xff);
        mask.ignore_lengths(layout.network, layout.outer_v6);
        if layout.is_tunnel() {
            // UDP length and checksum. Whether the checksum is zero is compared apart.
            mask.ignore(layout.tunnel, 4, 4);
            mask.ignore_lengths(layout.inner_network, layout.inner_v6);
        }
        let tcp = layout.tcp;
        mask.ignore(tcp, 4, 4); // sequence number
        mask.ignore(tcp, 16, 4); // checksum, urgent pointer
        let carried = tcp_flags::FIN | tcp_flags::PSH | if rules.cwr_takes_successor { tcp_flags::CWR } else { 0 };
        mask.bits[usize::from(tcp) + 13] &= !((carried >> 16) as u8);
        mask
    }

    fn ignore_lengths(&mut self, network: u16, v6: bool) {
        if v6 {
            self.ignore(network, 4, 2); // payload length
        } else {
            self.ignore(network, 2, 4); // total length, identification
            self.ignore(network, 10, 2); // header checksum
        }
    }

    fn ignore(&mut self, header: u16, offset: usize, len: usize) {
        let start = usize::from(header) + offset;
        self.bits[start..start + len].fill(0);
    }

    /// As [`Mask::agrees`] for headers within `HEAD` bytes of two packets that are at least so long.
    #[inline(always)]
    pub(super) fn agrees_within<const HEAD: usize>(&self, a: &[u8; HEAD], b: &[u8; HEAD]) -> bool {
        const { assert!(HEAD <= MASKED && HEAD.is_multiple_of(16)) }
        let Some(m) = self.bits.first_chunk::<HEAD>() else { return false };
        // The number of blocks is a constant, so that the loop unrolls into vector operations.
        let mut different = [0u8; 16];
        for block in 0..HEAD / 16 {
            for i in 0..16 {
                let at = block * 16 + i;
                different[i] |= (a[at] ^ b[at]) & m[at];
            }
        }
        u128::from_ne_bytes(different) == 0
    }

    /// True if all bits that must agree do. False also if a packet ends too early to be compared in blocks; the caller
    /// then looks field by field.
    #[inline(always)]
    pub(super) fn agrees(&self, a: &[u8], b: &[u8]) -> bool {
        let n = self.blocks * 16;
        let (Some(a), Some(b), Some(m)) = (a.get(..n), b.get(..n), self.bits.get(..n)) else { return false };
        let (a, b, m) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0, m.as_chunks::<16>().0);
        // Byte by byte on whole blocks: the compiler makes one vector operation of each line.
        let mut different = [0u8; 16];
        for ((a, b), m) in a.iter().zip(b).zip(m) {
            for i in 0..16 {
                different[i] |= (a[i] ^ b[i]) & m[i];
            }
        }
        u128::from_ne_bytes(different) == 0 && n > 0
    }
}

/// The masks of the layouts seen lately.
pub(super) struct Masks {
    masks: [Option<Mask>; 8],
    last: usize,
    rules: GroRules,
}

impl Masks {
    pub(super) fn new(rules: GroRules) -> Self {
        Self { masks: [const { None }; 8], last: 0, rules }
    }

    #[inline(always)]
    pub(super) fn of(&mut self, layout: &Layout) -> &Mask {
        if !matches!(&self.masks[self.last & 7], Some(mask) if mask.key == layout.key()) {
            self.switch_to(layout);
        }
        self.masks[self.last].get_or_insert_with(|| Mask::new(*layout, &self.rules))
    }

    fn switch_to(&mut self, layout: &Layout) {
        match self.masks.iter().position(|mask| matches!(mask, Some(mask) if mask.key == layout.key())) {
            Some(found) => self.last = found,
            None => {
                self.last = (self.last + 1) % self.masks.len();
                self.masks[self.last] = None;
            }
        }
    }
}

/// The mask of one fixed shape, whose only variable is where the payload starts.
pub(super) struct ShapeMask {
    payload: u16,
    mask: Mask,
}

impl ShapeMask {
    /// The mask for `layout`; `slot` keeps the one used last.
    #[inline(always)]
    pub(super) fn of<'a>(
        slot: &'a mut Option<Self>,
        payload: u16,
        layout: impl FnOnce() -> Layout,
        rules: &GroRules,
    ) -> &'a Mask {
        if !matches!(slot, Some(shape) if shape.payload == payload) {
            *slot = None;
        }
        &slot.get_or_insert_with(|| Self { payload, mask: Mask::new(layout(), rules) }).mask
    }
}

/// How a candidate relates to a held packet.
pub(super) enum Relation {
    /// Another flow.
    Other,
    /// The same flow, and it merges.
    Merges,
    /// The same flow, but it does not merge.
    Refused(GroEnd),
}

/// Relates a candidate with headers `new` to a held packet whose tag is the same.
#[inline(always)]
pub(super) fn relate(
    mask: &Mask,
    held: &mut Held,
    candidate: &Candidate,
    new: &[u8],
    rules: &GroRules,
    max_size: usize,
) -> Relation {
    let old = held.packet.head();
    let alike = candidate.layout.key() == held.layout.key()
        && mask.agrees(old, new)
        && checksum_presence(&held.layout, old, new);
    if !alike {
        if !same_flow(&held.layout, &candidate.layout, old, new) {
            return Relation::Other;
        }
        if let Some(reason) = candidate.flush.or_else(|| header_reason(held, candidate, old, new, rules)) {
            return Relation::Refused(reason);
        }
    } else if let Some(reason) = candidate.flush {
        return Relation::Refused(reason);
    }
    let Some(fixed) = ip_ids(held, old, new, rules) else { return Relation::Refused(GroEnd::IpId) };
    if candidate.word & tcp_flags::CWR != 0 {
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
    if candidate.seq != held.next_seq {
        return Relation::Refused(GroEnd::Sequence);
    }
    let length = held.packet.len() - usize::from(held.layout.network);
    if length + candidate.payload as usize >= max_size {
        return Relation::Refused(GroEnd::Size);
    }
    if held.count.checked_add(candidate.count).is_none() {
        return Relation::Refused(GroEnd::Count);
    }
    held.fixed_ids = fixed;
    Relation::Merges
}

/// Both tunnel checksums are zero or both are not.
#[inline(always)]
fn checksum_presence(layout: &Layout, old: &[u8], new: &[u8]) -> bool {
    if !layout.is_tunnel() {
        return true;
    }
    let field = usize::from(layout.tunnel) + 6;
    (field_at::<2>(old, field) == [0; 2]) == (field_at::<2>(new, field) == [0; 2])
}

#[inline(always)]
fn field_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Linux: `gro_list_prepare` and the loops over held packets in each handler. Receive hash and VLAN metadata were compared
/// by the caller.
#[inline(never)]
fn same_flow(held: &Layout, candidate: &Layout, old: &[u8], new: &[u8]) -> bool {
    let start = (held.network, held.tunnel, held.inner_mac, held.inner_network, held.tcp, held.outer_v6, held.inner_v6);
    let other = (
        candidate.network,
        candidate.tunnel,
        candidate.inner_mac,
        candidate.inner_network,
        candidate.tcp,
        candidate.outer_v6,
        candidate.inner_v6,
    );
    if start != other {
        return false;
    }
    let range = |from: u16, to: u16| usize::from(from)..usize::from(to);
    let equal = |from: u16, to: u16| old.get(range(from, to)) == new.get(range(from, to));
    let network_end = if held.is_tunnel() { held.tunnel } else { held.tcp };
    let mut same = equal(0, held.network)
        && same_network(old, new, held.network, network_end, held.outer_v6)
        && equal(held.tcp, held.tcp + 4);
    if held.is_tunnel() {
        same = same
            && equal(held.tunnel, held.tunnel + 4)
            && checksum_presence(held, old, new)
            && equal(held.tunnel + 8, held.inner_network)
            && same_network(old, new, held.inner_network, held.tcp, held.inner_v6);
    }
    same
}

/// Addresses and protocol; for IPv6 also version, flow label and extension headers.
fn same_network(old: &[u8], new: &[u8], network: u16, end: u16, v6: bool) -> bool {
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
fn header_reason(held: &Held, candidate: &Candidate, old: &[u8], new: &[u8], rules: &GroRules) -> Option<GroEnd> {
    let tcp = usize::from(held.layout.tcp);
    let carried = tcp_flags::FIN | tcp_flags::PSH | if rules.cwr_takes_successor { tcp_flags::CWR } else { 0 };
    let word = u32::from_be_bytes(field_at(old, tcp + 12));
    let different = (word ^ candidate.word) & !carried;
    const OFFSET: u32 = 0xf000_0000;
    const WINDOW: u32 = 0x0000_ffff;
    if candidate.payload == 0 {
        return Some(GroEnd::Empty);
    }
    if candidate.word & tcp_flags::CWR != 0 || different & !(OFFSET | WINDOW) != 0 {
        return Some(GroEnd::Flags);
    }
    if different & OFFSET != 0 {
        return Some(GroEnd::Options);
    }
    if different != 0 || field_at::<4>(old, tcp + 8) != field_at::<4>(new, tcp + 8) {
        return Some(GroEnd::AckOrWindow);
    }
    let options = tcp + 20..usize::from(held.layout.payload);
    if old.get(options.clone()) != new.get(options) {
        return Some(GroEnd::Options);
    }
    let networks = [(held.layout.network, held.layout.outer_v6), (held.layout.inner_network, held.layout.inner_v6)];
    for (network, v6) in networks {
        let n = usize::from(network);
        let same = if v6 {
            field_at::<2>(old, n) == field_at::<2>(new, n) && field_at::<1>(old, n + 7) == field_at::<1>(new, n + 7)
        } else {
            field_at::<2>(old, n) == field_at::<2>(new, n)
                && field_at::<1>(old, n + 6)[0] & 0x40 == field_at::<1>(new, n + 6)[0] & 0x40
                && field_at::<1>(old, n + 8) == field_at::<1>(new, n + 8)
        };
        if !same {
            return Some(GroEnd::IpFields);
        }
    }
    None
}

/// Bits of [`Held::fixed_ids`].
pub(super) const FIXED_OUTER: u8 = 1;
pub(super) const FIXED_INNER: u8 = 2;

/// Checks the identifications of both IPv4 headers; gives which of them stay constant, or `None` if one breaks the rule.
#[inline(always)]
fn ip_ids(held: &Held, old: &[u8], new: &[u8], rules: &GroRules) -> Option<u8> {
    let layout = &held.layout;
    let mut fixed = held.fixed_ids;
    let step = |network: u16| {
        let offset = usize::from(network) + 4;
        be16(&field_at(new, offset)).wrapping_sub(be16(&field_at(old, offset)))
    };
    let inner_is_outer = !layout.is_tunnel();
    match rules.ip_id {
        IpIdRule::Increment => {
            if !layout.inner_v6 && step(layout.inner_network) != held.count {
                return None;
            }
        }
        IpIdRule::ConstantOrIncrement => {
            let headers = [
                (layout.outer_v6, layout.network, FIXED_OUTER),
                (layout.inner_v6 || inner_is_outer, layout.inner_network, FIXED_INNER),
            ];
            for (skip, network, bit) in headers {
                if skip {
                    continue;
                }
                let step = step(network);
                if held.count == 1 && step == 0 {
                    fixed |= bit;
                }
                let expected = if fixed & bit != 0 { 0 } else { held.count };
                if step != expected {
                    return None;
                }
            }
        }
    }
    Some(fixed)
}
