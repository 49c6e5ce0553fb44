//! The path of the most frequent packets: TCP over IPv4 without options in the network header, plain or in VXLAN over IPv4.
//!
//! Every offset is a constant here, and what a packet is gets checked by comparing it with the packet held: if all bits that
//! must agree do, its headers are as right as those were, and only what differs from segment to segment is left to look at.
//! Whatever is not at its place, does not merge or cannot be told quickly is left to [`Gro::receive_any`], so this path
//! changes the cost of a packet and nothing else; a test compares the two.

use super::compare::field_at;
use super::rules::{BucketHash, IpIdRule};
use super::table::Held;
use super::walk::{gather, tag_of, tcp_flags};
use super::{Gro, append, make_growable, table_tag};
use crate::layout::{Carrier, Layout, Level};
use netcore::checksum::{Sum, ipv4_header_sum};
use netcore::offload::GroEnd;
use netcore::packet::ReceiveState;
use netcore::{Burst, Packet, PoolCache, ReceiveChecksum};

/// Bytes that every packet on this path has in its head segment: VXLAN and all headers with full TCP options.
pub(super) const HEAD: usize = 144;

pub(super) const ETHERNET: usize = 14;
pub(super) const VXLAN_UDP: usize = 34;
const VXLAN_INNER_MAC: usize = 50;
pub(super) const VXLAN_INNER: usize = 64;

/// FIN and PSH as the flags byte has them.
const FIN: u8 = (tcp_flags::FIN >> 16) as u8;
const PSH: u8 = (tcp_flags::PSH >> 16) as u8;
const CWR: u8 = (tcp_flags::CWR >> 16) as u8;
/// Flags that this path leaves alone.
const UNUSUAL: u8 = ((tcp_flags::ENDING & !tcp_flags::PSH | tcp_flags::CWR) >> 16) as u8;

#[inline(always)]
pub(super) fn word16(h: &[u8; HEAD], at: usize) -> u16 {
    u16::from_be_bytes([h[at], h[at + 1]])
}

#[inline(always)]
pub(super) fn word32(h: &[u8; HEAD], at: usize) -> u32 {
    u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]])
}

#[inline(always)]
fn native64(h: &[u8; HEAD], at: usize) -> u64 {
    u64::from_ne_bytes([h[at], h[at + 1], h[at + 2], h[at + 3], h[at + 4], h[at + 5], h[at + 6], h[at + 7]])
}

#[inline(always)]
fn network_sum(h: &[u8; HEAD], at: usize) -> Sum {
    let mut header = [0; 20];
    header.copy_from_slice(&h[at..at + 20]);
    ipv4_header_sum(&header)
}

/// True if an IPv4 header at `at` has no options, is no fragment, says `len` bytes, carries `protocol` and sums up.
#[inline(always)]
fn is_plain_ipv4(h: &[u8; HEAD], at: usize, len: usize, protocol: u8) -> bool {
    h[at] == 0x45
        && h[at + 9] == protocol
        && word16(h, at + 6) & 0xbfff == 0
        && usize::from(word16(h, at + 2)) == len
        && network_sum(h, at).is_valid()
}

/// The layout of a frame of this path with its payload at this offset.
#[inline(always)]
pub(super) fn layout<const VXLAN: bool>(payload: usize) -> Layout {
    let mut layout = Layout::plain(ETHERNET as u16, false);
    if VXLAN {
        layout.push(Level {
            network: VXLAN_INNER as u16,
            carrier_at: VXLAN_UDP as u16,
            mac: VXLAN_INNER_MAC as u16,
            v6: false,
            carrier: Carrier::Udp,
        });
    }
    layout.transport = if VXLAN { VXLAN_INNER } else { ETHERNET } as u16 + 20;
    layout.payload = payload as u16;
    layout
}

/// 1 for a layout of the plain kind, 2 for VXLAN, 0 for any other.
pub(super) fn kind(other: &Layout) -> u8 {
    let payload = usize::from(other.payload);
    match other {
        other if *other == layout::<false>(payload) => 1,
        other if *other == layout::<true>(payload) => 2,
        _ => 0,
    }
}

/// The flow's tag, as the general walk finds it.
#[inline(always)]
fn flow_tag<const VXLAN: bool>(h: &[u8; HEAD]) -> u32 {
    let tcp = if VXLAN { VXLAN_INNER } else { ETHERNET } + 20;
    let mut gathered = gather(0, native64(h, ETHERNET + 12));
    if VXLAN {
        gathered = gather(gather(gathered, native64(h, 42)), native64(h, VXLAN_INNER + 12));
    }
    tag_of(gather(gathered, u64::from(u32::from_ne_bytes([h[tcp], h[tcp + 1], h[tcp + 2], h[tcp + 3]]))))
}

/// The identifications that the segment after `new`, which stands for `count`, must have, outermost and innermost, and what
/// they grow by, if the bits of `fixed` say which of them stay; those of IPv6 headers are some number.
#[inline(always)]
pub(super) fn next_ids(layout: &Layout, new: &[u8], count: u16, fixed: u8) -> ([u16; 2], [u16; 2]) {
    let innermost = 1 << (layout.levels().len() - 1);
    let steps = [u16::from(fixed & 1 == 0), u16::from(fixed & innermost == 0)];
    let id = |level: Level| u16::from_be_bytes(field_at(new, usize::from(level.network) + 4));
    let next = |level: Level, step: u16| id(level).wrapping_add(step.wrapping_mul(count));
    ([next(layout.outermost(), steps[0]), next(layout.innermost(), steps[1])], steps)
}

/// What a packet of this path does to the held packet of its flow.
struct Successor {
    payload: u32,
    flags: u8,
}

impl Gro {
    /// Merges or holds a packet; gives it back if it is not one of this path.
    #[inline(always)]
    pub(super) fn receive_fast(
        &mut self,
        packet: Packet,
        out: &mut Burst,
        cache: &mut PoolCache,
        tick: u64,
    ) -> Result<(), Packet> {
        let Some(h) = packet.head().first_chunk::<HEAD>() else { return Err(packet) };
        let Some(hash) = packet.plain_receive_key() else { return Err(packet) };
        match h[23] {
            6 if self.fast => self.receive_kind::<false>(packet, hash, out, cache, tick),
            17 if self.fast => self.receive_kind::<true>(packet, hash, out, cache, tick),
            _ => Err(packet),
        }
    }

    #[inline(always)]
    fn receive_kind<const VXLAN: bool>(
        &mut self,
        packet: Packet,
        hash: u32,
        out: &mut Burst,
        cache: &mut PoolCache,
        tick: u64,
    ) -> Result<(), Packet> {
        let Some(h) = packet.head().first_chunk::<HEAD>() else { return Err(packet) };
        // Of a frame that is none of this path, the flow's tag is some number; then nothing agrees below.
        let (tag, index) = match (self.config.table.hash, hash) {
            (BucketHash::Device, 1..) => (hash, self.table.bucket(hash)),
            _ => {
                let tag = flow_tag::<VXLAN>(h);
                (table_tag(hash, tag), self.bucket(hash, tag))
            }
        };
        let Some((position, slot, place)) = self.table.find(index, tag) else {
            return self.first::<VXLAN>(packet, hash, index, tag, out, tick);
        };
        let Some(held) = &mut place.held else { return Err(packet) };
        if held.receive_key != u64::from(hash) {
            return Err(packet);
        }
        let Some(shape) = self.shapes.get(held.shape).filter(|shape| shape.fast == 1 + u8::from(VXLAN)) else {
            return Err(packet);
        };
        let payload_at = usize::from(shape.layout.payload);
        // Numbers first, vectors second: the other way round the compiler takes the numbers out of the vectors.
        let Some(next) = self.config.successor::<VXLAN>(&packet, h, held, payload_at) else {
            return Err(packet);
        };
        let o = held.packet.head();
        let agrees = match (VXLAN, payload_at) {
            (true, ..=128) => shape.agrees_within::<128>(o, h),
            (true, _) => shape.agrees_within::<HEAD>(o, h),
            (false, ..=80) => shape.agrees_within::<80>(o, h),
            (false, _) => shape.agrees_within::<96>(o, h),
        };
        if !agrees || VXLAN && (field_at::<2>(o, 40) == [0; 2]) != (h[40..42] == [0; 2]) {
            return Err(packet);
        }
        let fits = held.packet.len() - ETHERNET + (next.payload as usize) < self.fast_max_size;
        // Beyond 64 KiB, where that is allowed, fewer packets grow; the general path knows which.
        if !fits && (held.count == held.received_count || self.config.max_size > self.fast_max_size) {
            return Err(packet);
        }
        let ids = [word16(h, ETHERNET + 4), word16(h, if VXLAN { VXLAN_INNER } else { ETHERNET } + 4)];
        if held.count == 1 {
            if !self.config.second::<VXLAN>(held, ids) || !make_growable(held, &shape.layout, cache) {
                return Err(packet);
            }
        } else if !self.config.are_next::<VXLAN>(held, ids)
            || held.count == held.received_count && !make_growable(held, &shape.layout, cache)
        {
            return Err(packet);
        }
        if !fits {
            self.finish(index, position, GroEnd::Size, out);
            return self.next::<VXLAN>(packet, hash, index, tag, out, tick);
        }
        held.next_ids = [ids[0].wrapping_add(held.id_steps[0]), ids[1].wrapping_add(held.id_steps[1])];
        held.count += 1;
        held.next_seq = held.next_seq.wrapping_add(next.payload);
        let push = next.flags & PSH;
        let closes = next.payload < held.segment || push != 0;
        held.carried_flags |= push;
        let second = held.count == 2;
        if !closes && second {
            place.start_run::<VXLAN>(&packet, payload_at, &self.config);
        }
        let running = place.state != ReceiveState::NONE;
        let Some(held) = &mut place.held else { return Err(packet) };
        append(held, packet, payload_at, cache);
        if closes {
            let reason = if push != 0 { GroEnd::Push } else { GroEnd::Short };
            self.finish(index, position, reason, out);
        } else if running {
            self.table.guess(hash, slot);
        }
        Ok(())
    }

    /// A packet whose flow has nothing held any more: holds it.
    #[inline(never)]
    fn next<const VXLAN: bool>(
        &mut self,
        packet: Packet,
        hash: u32,
        index: usize,
        tag: u32,
        out: &mut Burst,
        tick: u64,
    ) -> Result<(), Packet> {
        self.first::<VXLAN>(packet, hash, index, tag, out, tick)
    }

    /// A packet whose flow has nothing held: holds it.
    #[inline(always)]
    fn first<const VXLAN: bool>(
        &mut self,
        packet: Packet,
        hash: u32,
        index: usize,
        tag: u32,
        out: &mut Burst,
        tick: u64,
    ) -> Result<(), Packet> {
        let Some(h) = packet.head().first_chunk::<HEAD>() else { return Err(packet) };
        let len = packet.len();
        let network = if VXLAN { VXLAN_INNER } else { ETHERNET };
        let tcp = network + 20;
        if VXLAN {
            let right = is_plain_ipv4(h, ETHERNET, len - ETHERNET, 17)
                && self.config.vxlan_ports.contains(&word16(h, VXLAN_UDP + 2))
                && self.config.max_tunnels > 0
                && h[42] & 0x0c == 0x08
                && word16(h, VXLAN_INNER_MAC + 12) == 0x0800;
            if !right {
                return Err(packet);
            }
        }
        let header_len = usize::from(h[tcp + 12] >> 4) * 4;
        let payload_at = tcp + header_len;
        if word16(h, 12) != 0x0800
            || !is_plain_ipv4(h, network, len - network, 6)
            || header_len < 20
            || payload_at >= len
            || h[tcp + 13] & (UNUSUAL | PSH) != 0
        {
            return Err(packet);
        }
        let Some(gained) = self.config.checksums::<VXLAN>(&packet, h, len) else { return Err(packet) };
        let Some(shape) = self.shapes.fast_number(VXLAN, payload_at, &self.config.rules) else {
            return Err(packet);
        };
        let payload = (len - payload_at) as u32;
        let id = |at: usize| word16(h, at + 4).wrapping_add(1);
        let held = Held {
            next_ids: [id(ETHERNET), id(network)],
            id_steps: [1; 2],
            next_seq: word32(h, tcp + 4).wrapping_add(payload),
            segment: payload,
            count: 1,
            received_count: 1,
            shape,
            fixed_ids: 0,
            gained,
            carried_flags: 0,
            receive_key: u64::from(hash),
            age: tick,
            packet,
        };
        self.hold(index, tag, held, out);
        Ok(())
    }
}

impl super::GroConfig {
    /// What a packet does to the held packet of its flow if its headers agree with that one's; `None` if it is not the next
    /// segment.
    #[inline(always)]
    fn successor<const VXLAN: bool>(
        &self,
        packet: &Packet,
        h: &[u8; HEAD],
        held: &Held,
        payload_at: usize,
    ) -> Option<Successor> {
        let len = packet.len();
        let network = if VXLAN { VXLAN_INNER } else { ETHERNET };
        let tcp = network + 20;
        let flags = h[tcp + 13];
        // An empty segment wraps around.
        let payload = (len as u32).wrapping_sub(payload_at as u32);
        let right = payload.wrapping_sub(1) < held.segment
            && flags & (FIN | CWR) == 0
            && word32(h, tcp + 4) == held.next_seq
            && usize::from(word16(h, network + 2)) == len - network
            && network_sum(h, network).is_valid()
            && held.count != u16::MAX;
        if !right {
            return None;
        }
        if VXLAN {
            let outer = usize::from(word16(h, ETHERNET + 2)) == len - ETHERNET && network_sum(h, ETHERNET).is_valid();
            if !outer {
                return None;
            }
        }
        self.checksums::<VXLAN>(packet, h, len)?;
        Some(Successor { payload, flags })
    }

    /// Whether the identifications are those of the next segment.
    #[inline(always)]
    fn are_next<const VXLAN: bool>(&self, held: &Held, ids: [u16; 2]) -> bool {
        // The rule of 2015 looks at the innermost header only.
        (!VXLAN || ids[1] == held.next_ids[1])
            && (ids[0] == held.next_ids[0] || VXLAN && self.rules.ip_id == IpIdRule::Increment)
    }

    /// As `are_next`, for the second segment, which decides what identifications stay: here `next_ids` are those of the first
    /// segment plus one.
    #[inline(never)]
    fn second<const VXLAN: bool>(&self, held: &mut Held, ids: [u16; 2]) -> bool {
        if self.rules.ip_id == IpIdRule::Increment {
            return self.are_next::<VXLAN>(held, ids);
        }
        let behind = |i: usize| held.next_ids[i].wrapping_sub(ids[i]);
        if behind(0) > 1 || VXLAN && behind(1) > 1 {
            return false;
        }
        let fixed = [behind(0) == 1, VXLAN && behind(1) == 1];
        held.fixed_ids = u8::from(fixed[0]) | u8::from(fixed[1]) << 1;
        held.id_steps = fixed.map(|fixed| u16::from(!fixed));
        true
    }

    /// Checks what the device left unchecked; gives the checksums found right beyond its verdict, or `None` if the packet
    /// needs a closer look.
    #[inline(always)]
    pub(super) fn checksums<const VXLAN: bool>(&self, packet: &Packet, h: &[u8; HEAD], len: usize) -> Option<u8> {
        let tcp = if VXLAN { VXLAN_INNER } else { ETHERNET } + 20;
        let needed = 1 + VXLAN as u8;
        match packet.receive_checksum() {
            ReceiveChecksum::Unnecessary { levels } if levels >= needed => Some(0),
            ReceiveChecksum::None => {
                if VXLAN && (word16(h, 40) != 0 || !self.rules.zero_checksum_tunnels) {
                    return None;
                }
                let mut addresses = [[0; 4]; 2];
                addresses[0].copy_from_slice(&h[tcp - 8..tcp - 4]);
                addresses[1].copy_from_slice(&h[tcp - 4..tcp]);
                let pseudo = Sum::pseudo_ipv4(addresses[0], addresses[1], 6, (len - tcp) as u32);
                pseudo.plus(packet.sum_from(tcp)).is_valid().then_some(needed)
            }
            _ => None,
        }
    }
}
