//! Receive offload of protocols that a user registered.
//!
//! These packets have a list of their own, at most eight held, oldest first, apart from the built-in table.

use super::compare::{field_at, same_ip_fields, same_network};
use super::complete::{get16, pseudo_sum, put16, set_network_len};
use super::rules::IpIdRule;
use super::verdict::raise;
use super::{Gro, GroEnd};
use crate::protocols::{Chain, Link, Protocols};
use netcore::offload::{GroMerge, GroPair};
use netcore::packet::PartialChecksum;
use netcore::{Burst, Gso, GsoKind, Packet, PoolCache};

/// Packets held at most.
const DEPTH: usize = 8;

/// A held packet of a registered protocol.
pub(super) struct RegisteredHeld {
    packet: Packet,
    chain: Chain,
    segment: usize,
    count: u16,
    fixed_id: bool,
    receive_key: u64,
    gained: u8,
    pub(super) age: u64,
}

/// A registered header of a packet.
fn header<'a>(bytes: &'a [u8], link: &Link) -> &'a [u8] {
    bytes.get(link.offset..link.offset + link.len).unwrap_or(&[])
}

/// What becomes of a new packet beside a held one.
enum Relation {
    Other,
    Same(GroMerge),
}

impl RegisteredHeld {
    fn relate(
        &self,
        chain: &Chain,
        new: &Packet,
        key: u64,
        protocols: &Protocols,
        config: &super::GroConfig,
    ) -> Relation {
        let (old_bytes, new_bytes) = (self.packet.head(), new.head());
        let outer = chain.outer;
        let equal = |from: usize, to: usize| old_bytes.get(from..to) == new_bytes.get(from..to);
        if self.chain != *chain || self.receive_key != key || !equal(0, outer.network) {
            return Relation::Other;
        }
        if let Some((_, transport)) = outer.transport
            && !same_network(old_bytes, new_bytes, outer.network as u16, transport as u16, outer.v6)
        {
            return Relation::Other;
        }
        if let Some((udp, _)) = outer.udp {
            let absent = |bytes: &[u8]| field_at::<2>(bytes, udp + 6) == [0; 2];
            if !equal(udp, udp + 4) || absent(old_bytes) != absent(new_bytes) {
                return Relation::Other;
            }
        }
        for link in chain.links() {
            if !protocols.handler(link.handler).same_flow(header(old_bytes, link), header(new_bytes, link)) {
                return Relation::Other;
            }
        }
        if outer.transport.is_some() {
            if !same_ip_fields(old_bytes, new_bytes, outer.network, outer.v6) {
                return Relation::Same(GroMerge::DeliverHeld(GroEnd::IpFields));
            }
            let id = |bytes: &[u8]| u16::from_be_bytes(field_at(bytes, outer.network + 4));
            let step = id(new_bytes).wrapping_sub(id(old_bytes));
            let constant = self.may_be_constant(config) && step == 0 && (self.count == 1 || self.fixed_id);
            if !outer.v6 && !constant && (self.fixed_id || step != self.count) {
                return Relation::Same(GroMerge::DeliverHeld(GroEnd::IpId));
            }
        }
        let payload = new.len() - chain.payload;
        if self.packet.len() - outer.network + payload >= config.max_size {
            return Relation::Same(GroMerge::DeliverHeld(GroEnd::Size));
        }
        if payload == 0 {
            return Relation::Same(GroMerge::DeliverBoth(GroEnd::Empty));
        }
        let mut result = GroMerge::Merge;
        for link in chain.links() {
            let pair = GroPair {
                held: header(old_bytes, link),
                new: header(new_bytes, link),
                held_payload: self.packet.len() - chain.payload,
                segment_size: self.segment,
                new_payload: payload,
                segments: self.count,
            };
            result = protocols.handler(link.handler).merge(&pair);
            if !matches!(result, GroMerge::Merge | GroMerge::MergeAndDeliver) {
                break;
            }
        }
        // Segmentation cuts equal pieces: whatever a handler says, a longer packet never follows, and a shorter one is the last.
        match (result, payload.cmp(&self.segment)) {
            (GroMerge::Merge | GroMerge::MergeAndDeliver, core::cmp::Ordering::Greater) => {
                Relation::Same(GroMerge::DeliverHeld(GroEnd::Longer))
            }
            (GroMerge::Merge, core::cmp::Ordering::Less) => Relation::Same(GroMerge::MergeAndDeliver),
            (result, _) => Relation::Same(result),
        }
    }

    fn may_be_constant(&self, config: &super::GroConfig) -> bool {
        config.rules.ip_id == IpIdRule::ConstantOrIncrement
    }

    /// The finished packet.
    fn complete(mut self, protocols: &Protocols) -> Packet {
        raise(&mut self.packet, self.gained);
        if self.count == 1 {
            return self.packet;
        }
        let Self { mut packet, chain, segment, count, fixed_id, .. } = self;
        let (outer, len) = (chain.outer, packet.len());
        let mut kind = GsoKind::empty();
        let mut request = None;
        // Made writable before the first merge.
        if let Ok(bytes) = packet.head_mut() {
            for link in chain.links().iter().rev() {
                let handler = protocols.handler(link.handler);
                handler.complete(&mut bytes[link.offset..link.offset + link.len], len - link.offset, count);
                kind |= handler.gso_kind();
            }
            if let Some((udp, _)) = outer.udp {
                put16(bytes, udp + 4, (len - udp) as u16);
                if get16(bytes, udp + 6) != 0 {
                    let pseudo = pseudo_sum(bytes, outer.network, outer.v6, 17, len - udp);
                    put16(bytes, udp + 6, pseudo.fold());
                    request = Some(PartialChecksum { start: udp as u16, offset: 6 });
                }
            }
            if outer.transport.is_some() {
                set_network_len(bytes, outer.network, outer.v6, len - outer.network);
            }
        }
        if fixed_id {
            kind |= GsoKind::TCP_FIXEDID;
        }
        packet.set_gso(Some(Gso { kind, size: segment as u16, segments: count }));
        packet.set_transmit_checksum(request);
        packet
    }
}

impl Gro {
    /// A packet that no built-in protocol takes.
    pub(super) fn receive_registered(&mut self, mut packet: Packet, out: &mut Burst, cache: &mut PoolCache, tick: u64) {
        let (chain, flush, gained) = match self.protocols.walk(&packet) {
            Ok(walked) => walked,
            Err(reason) => return self.deliver(packet, reason, out),
        };
        let key = packet.receive_key();
        let payload = packet.len() - chain.payload;
        let mut hold = payload > 0 && payload <= usize::from(u16::MAX) && !packet.is_super();
        let mut reason = flush.unwrap_or(if payload == 0 { GroEnd::Empty } else { GroEnd::NotMergeable });
        for position in 0..self.registered.len() {
            let held = &mut self.registered[position];
            let result = match held.relate(&chain, &packet, key, &self.protocols, &self.config) {
                Relation::Other => continue,
                Relation::Same(_) if flush.is_some() || !hold => GroMerge::DeliverBoth(reason),
                Relation::Same(result) => result,
            };
            let merges = matches!(result, GroMerge::Merge | GroMerge::MergeAndDeliver);
            if merges && held.count < u16::MAX && held.packet.make_writable(chain.payload, cache).is_ok() {
                if held.count == 1 && !chain.outer.v6 && chain.outer.transport.is_some() {
                    let id = |p: &Packet| field_at::<2>(p.head(), chain.outer.network + 4);
                    held.fixed_id = id(&held.packet) == id(&packet);
                }
                held.count += 1;
                let appended = held.packet.append_from(packet, chain.payload, cache);
                debug_assert!(appended.is_ok(), "the payload is not empty and the length was checked");
                if result == GroMerge::MergeAndDeliver {
                    self.finish_registered(position, GroEnd::Short, out);
                }
                return;
            }
            reason = match result {
                GroMerge::DeliverHeld(reason) => reason,
                GroMerge::DeliverBoth(reason) => {
                    hold = false;
                    reason
                }
                _ => GroEnd::Count,
            };
            self.finish_registered(position, reason, out);
            break;
        }
        if !hold || flush.is_some() {
            raise(&mut packet, gained);
            return self.deliver(packet, reason, out);
        }
        if self.registered.len() == DEPTH {
            self.finish_registered(0, GroEnd::Evicted, out);
        }
        self.registered.push(RegisteredHeld {
            packet,
            chain,
            segment: payload,
            count: 1,
            fixed_id: false,
            receive_key: key,
            gained,
            age: tick,
        });
    }

    fn finish_registered(&mut self, position: usize, reason: GroEnd, out: &mut Burst) {
        let held = self.registered.remove(position);
        let packet = held.complete(&self.protocols);
        self.deliver(packet, reason, out);
    }

    /// Delivers what is held of registered protocols, oldest first.
    pub(super) fn flush_registered(&mut self, older_than: Option<u64>, reason: GroEnd, out: &mut Burst) {
        while let Some(oldest) = self.registered.first() {
            if older_than.is_some_and(|tick| oldest.age >= tick) {
                break;
            }
            self.finish_registered(0, reason, out);
        }
    }
}
