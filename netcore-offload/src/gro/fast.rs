//! The path of the most frequent packets: TCP over IPv4 without options in the network header, plain or in VXLAN over IPv4.
//!
//! Every offset is a constant here. Whatever is not at its place, does not merge or cannot be told quickly is left to
//! [`Gro::receive_any`], so this path changes the cost of a packet and nothing else; a test compares the two.

use super::compare::{FIXED_INNER, FIXED_OUTER, ShapeMask};
use super::layout::{Candidate, Layout, gather, tag_of, tcp_flags};
use super::rules::IpIdRule;
use super::{Gro, append, make_growable};
use netcore::checksum::{Sum, ipv4_header_sum};
use netcore::{Burst, Packet, PoolCache, ReceiveChecksum};

/// Bytes that every packet on this path has in its head segment: VXLAN and all headers with full TCP options.
const HEAD: usize = 144;

const ETHERNET: usize = 14;
const VXLAN_UDP: usize = 34;
const VXLAN_INNER_MAC: usize = 50;
const VXLAN_INNER: usize = 64;

#[inline(always)]
fn word16(h: &[u8; HEAD], at: usize) -> u16 {
    u16::from_be_bytes([h[at], h[at + 1]])
}

#[inline(always)]
fn word32(h: &[u8; HEAD], at: usize) -> u32 {
    u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]])
}

#[inline(always)]
fn native64(h: &[u8; HEAD], at: usize) -> u64 {
    u64::from_ne_bytes([h[at], h[at + 1], h[at + 2], h[at + 3], h[at + 4], h[at + 5], h[at + 6], h[at + 7]])
}

/// True if an IPv4 header at `at` has no options, is no fragment, says `len` bytes, carries `protocol` and sums up.
#[inline(always)]
fn is_plain_ipv4(h: &[u8; HEAD], at: usize, len: usize, protocol: u8) -> bool {
    let mut header = [0; 20];
    header.copy_from_slice(&h[at..at + 20]);
    header[0] == 0x45
        && header[9] == protocol
        && word16(h, at + 6) & 0xbfff == 0
        && usize::from(word16(h, at + 2)) == len
        && ipv4_header_sum(&header).is_valid()
}

/// The layout of a shape with its payload at this offset.
#[inline(always)]
fn layout<const VXLAN: bool>(payload: usize) -> Layout {
    let network = if VXLAN { VXLAN_INNER } else { ETHERNET };
    Layout {
        network: ETHERNET as u16,
        tunnel: if VXLAN { VXLAN_UDP as u16 } else { 0 },
        inner_mac: if VXLAN { VXLAN_INNER_MAC as u16 } else { 0 },
        inner_network: network as u16,
        tcp: network as u16 + 20,
        payload: payload as u16,
        outer_v6: false,
        inner_v6: false,
    }
}

/// 1 for a layout of the plain shape, 2 for VXLAN, 0 for any other.
pub(super) fn shape(other: &Layout) -> u8 {
    let payload = usize::from(other.payload);
    match other {
        other if *other == layout::<false>(payload) => 1,
        other if *other == layout::<true>(payload) => 2,
        _ => 0,
    }
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
        if word16(h, 12) != 0x0800 || !packet.is_as_received() || !self.fast {
            return Err(packet);
        }
        match h[23] {
            6 => self.receive_shape::<false>(packet, out, cache, tick),
            17 => self.receive_shape::<true>(packet, out, cache, tick),
            _ => Err(packet),
        }
    }

    #[inline(always)]
    fn receive_shape<const VXLAN: bool>(
        &mut self,
        packet: Packet,
        out: &mut Burst,
        cache: &mut PoolCache,
        tick: u64,
    ) -> Result<(), Packet> {
        let Some(h) = packet.head().first_chunk::<HEAD>() else { return Err(packet) };
        let len = packet.len();
        let network = if VXLAN { VXLAN_INNER } else { ETHERNET };
        let tcp = network + 20;
        let mut gathered = gather(0, native64(h, ETHERNET + 12));
        if VXLAN {
            let right = is_plain_ipv4(h, ETHERNET, len - ETHERNET, 17)
                && self.config.vxlan_ports.contains(&word16(h, VXLAN_UDP + 2))
                && h[42] & 0x0c == 0x08
                && word16(h, VXLAN_INNER_MAC + 12) == 0x0800;
            if !right {
                return Err(packet);
            }
            gathered = gather(gather(gathered, native64(h, 42)), native64(h, VXLAN_INNER + 12));
        }
        let header_len = usize::from(h[tcp + 12] >> 4) * 4;
        let payload_at = tcp + header_len;
        if !is_plain_ipv4(h, network, len - network, 6) || header_len < 20 || payload_at >= len {
            return Err(packet);
        }
        let word = word32(h, tcp + 12);
        if word & (tcp_flags::ENDING & !tcp_flags::PSH | tcp_flags::CWR) != 0 {
            return Err(packet);
        }
        let Some(gained) = self.checksums::<VXLAN>(&packet, h, tcp, len) else { return Err(packet) };
        gathered = gather(gathered, u64::from(u32::from_ne_bytes([h[tcp], h[tcp + 1], h[tcp + 2], h[tcp + 3]])));
        let tag = tag_of(gathered);
        let payload = (len - payload_at) as u32;
        let receive_key = packet.receive_key();
        let index = self.bucket(receive_key, tag);
        let candidate = || Candidate {
            layout: layout::<VXLAN>(payload_at),
            tag,
            seq: word32(h, tcp + 4),
            word,
            payload,
            count: 1,
            segment: payload,
            flush: None,
            gained,
        };
        let bucket = &mut self.buckets[index];
        let Some(slot) = bucket.find(tag) else {
            if word & tcp_flags::PSH != 0 {
                return Err(packet);
            }
            let candidate = candidate();
            self.hold(index, packet, &candidate, receive_key, out, tick);
            return Ok(());
        };
        let Some(held) = &mut bucket.slots[slot] else { return Err(packet) };
        if held.shape != 1 + VXLAN as u8
            || usize::from(held.layout.payload) != payload_at
            || held.receive_key != receive_key
        {
            return Err(packet);
        }
        let Some(o) = held.packet.head().first_chunk::<HEAD>() else { return Err(packet) };
        let masks = &mut self.shapes[VXLAN as usize];
        let mask = ShapeMask::of(masks, payload_at as u16, || layout::<VXLAN>(payload_at), &self.config.rules);
        let agrees = if VXLAN {
            mask.agrees_within::<HEAD>(o, h) && (word16(o, 40) == 0) == (word16(h, 40) == 0)
        } else {
            // 34 bytes of network headers and 60 of TCP at most.
            match (o.first_chunk::<96>(), h.first_chunk::<96>()) {
                (Some(o), Some(h)) => mask.agrees_within::<96>(o, h),
                _ => false,
            }
        };
        if !agrees {
            return Err(packet);
        }
        let ids = |at: usize| word16(h, at + 4).wrapping_sub(word16(o, at + 4));
        let mut fixed = held.fixed_ids;
        let right = match self.config.rules.ip_id {
            IpIdRule::Increment => ids(network) == held.count,
            IpIdRule::ConstantOrIncrement => {
                let mut allowed = |step: u16, bit: u8| {
                    if held.count == 1 && step == 0 {
                        fixed |= bit;
                    }
                    step == if fixed & bit != 0 { 0 } else { held.count }
                };
                allowed(ids(ETHERNET), FIXED_OUTER) && (!VXLAN || allowed(ids(network), FIXED_INNER))
            }
        };
        let fits = payload <= held.segment
            && word32(h, tcp + 4) == held.next_seq
            && held.packet.len() - ETHERNET + (payload as usize) < self.config.max_size
            && held.count < u16::MAX;
        if !right || !fits || held.count == held.received_count && !make_growable(held, cache) {
            return Err(packet);
        }
        held.fixed_ids = fixed;
        let closes = payload < held.segment || word & tcp_flags::PSH != 0;
        let last = closes.then(candidate);
        held.count += 1;
        held.next_seq = held.next_seq.wrapping_add(payload);
        held.carried_flags |= word & (tcp_flags::FIN | tcp_flags::PSH);
        append(held, packet, payload_at, cache);
        self.counters.merged += 1;
        if let Some(last) = last {
            self.finish_slot(index, slot, &last, out);
        }
        Ok(())
    }

    /// Checks what the device left unchecked; gives the checksums found right beyond its verdict, or `None` if the packet
    /// needs a closer look.
    #[inline(always)]
    fn checksums<const VXLAN: bool>(&self, packet: &Packet, h: &[u8; HEAD], tcp: usize, len: usize) -> Option<u8> {
        let needed = 1 + VXLAN as u8;
        match packet.receive_checksum() {
            ReceiveChecksum::Unnecessary { levels } if levels >= needed => Some(0),
            ReceiveChecksum::None => {
                if VXLAN && (word16(h, 40) != 0 || !self.config.rules.zero_checksum_tunnels) {
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
