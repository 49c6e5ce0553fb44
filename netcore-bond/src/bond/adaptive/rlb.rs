//! Receive balancing: each peer is told, by ARP, to send to a member of its own.

use super::super::{Bond, frames};
use super::{TICKS, simple_hash};
use crate::options::Mode;
use core::net::Ipv4Addr;
use netcore::wire::{ArpIpv4, ArpOperation};
use netcore::{Driver, Instant, MacAddress, Packet};

/// Peers that are told apart (`RLB_HASH_TABLE_SIZE`).
pub(super) const TABLE: usize = 256;
/// Replies that one update of a peer takes (`RLB_ARP_BURST_SIZE`).
const REPLIES: usize = 2;
/// Further updates after one that matters (`RLB_UPDATE_RETRY`).
const RETRIES: u32 = 3;
/// Ticks without updates after one, so that peers are not confused (`RLB_UPDATE_DELAY`).
const DELAY: u32 = 2 * TICKS;

/// A peer, by the hash of its IP address.
#[derive(Clone, Debug)]
pub(super) struct Client {
    assigned: bool,
    own_ip: Ipv4Addr,
    peer_ip: Ipv4Addr,
    own_mac: MacAddress,
    /// Broadcast until the peer has answered.
    peer_mac: MacAddress,
    member: Option<u16>,
    vlan: Option<u16>,
    update: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            assigned: false,
            own_ip: Ipv4Addr::UNSPECIFIED,
            peer_ip: Ipv4Addr::UNSPECIFIED,
            own_mac: MacAddress::default(),
            peer_mac: MacAddress::BROADCAST,
            member: None,
            vlan: None,
            update: false,
        }
    }
}

impl<D: Driver> Bond<D> {
    /// The next member for a peer: in turn, faster ones first (`rlb_next_rx_slave`).
    fn next_receiver(&mut self) -> Option<usize> {
        let last = self.adaptive.as_ref()?.receiver.and_then(|id| self.index_of(id));
        let able = |i: &usize| self.members[*i].can_send();
        // The first of the fastest.
        let fastest =
            |best: usize, i: usize| if self.members[i].speed() > self.members[best].speed() { i } else { best };
        let split = last.filter(|i| able(i)).map_or(self.members.len(), |last| last + 1);
        let before = (0..split).filter(able).reduce(fastest);
        let after = (split..self.members.len()).filter(able).reduce(fastest);
        let chosen = match (after, before) {
            (Some(after), Some(before)) if self.members[before].speed() > self.members[after].speed() => Some(before),
            (Some(after), _) => Some(after),
            (None, before) => before,
        };
        if let (Some(index), Some(a)) = (chosen, &mut self.adaptive) {
            a.receiver = Some(self.members[index].id);
        }
        chosen
    }

    /// An ARP packet that the host sends (`rlb_arp_xmit`): replies go out on, and name, the member that is the peer's;
    /// requests are noted and go out on the active one.
    pub(super) fn arp_sent(&mut self, frame: &[u8], packet: &Packet, now: Instant) -> Option<usize> {
        let arp = *ArpIpv4::parse(frame.get(14..)?).ok()?.0;
        // What is only passed on (by a bridge) is left alone.
        if arp.sender_mac() != self.mac && !self.members.iter().any(|m| m.address == arp.sender_mac()) {
            return None;
        }
        let vlan = packet.vlan().map(|tag| tag.tci);
        if arp.operation() == ArpOperation::REPLY {
            return self.client_member(&arp, vlan, now);
        }
        if arp.operation() == ArpOperation::REQUEST {
            self.client_member(&arp, vlan, now);
            // The request makes all peers of the subnet send to the active member: they are told otherwise, but later.
            let mac = self.mac;
            let members: alloc::vec::Vec<(u16, MacAddress)> = self.members.iter().map(|m| (m.id, m.address)).collect();
            if let Some(a) = &mut self.adaptive {
                a.update_delay = DELAY;
                for client in a.clients.iter_mut().filter(|c| c.assigned && c.own_ip == arp.sender_ip()) {
                    let elsewhere = members.iter().any(|(id, address)| Some(*id) == client.member && *address != mac);
                    if elsewhere && client.peer_mac != MacAddress::BROADCAST {
                        client.update = true;
                        a.update = true;
                    }
                }
            }
        }
        None
    }

    /// The member that a peer is to send to (`rlb_choose_channel`).
    fn client_member(&mut self, arp: &ArpIpv4, vlan: Option<u16>, now: Instant) -> Option<usize> {
        let slot = simple_hash(&arp.target_ip().octets());
        let client = self.adaptive.as_mut()?.clients.get_mut(slot)?;
        let target = if arp.target_mac() == MacAddress::default() { MacAddress::BROADCAST } else { arp.target_mac() };
        if client.assigned {
            if (client.own_ip, client.peer_ip) == (arp.sender_ip(), arp.target_ip()) {
                if target != MacAddress::BROADCAST {
                    client.peer_mac = target;
                }
                client.own_mac = arp.sender_mac();
                if let Some(index) = client.member.and_then(|id| self.index_of(id)) {
                    return Some(index);
                }
            } else if self.current.is_some() && client.member != self.current {
                // Two peers have one place: the one that was here goes back to the active member.
                client.member = self.current;
                self.update_client(slot, now);
            }
        }
        let index = self.next_receiver()?;
        let id = self.members[index].id;
        let a = self.adaptive.as_mut()?;
        let update = target != MacAddress::BROADCAST;
        a.update |= update;
        a.clients[slot] = Client {
            assigned: true,
            own_ip: arp.sender_ip(),
            peer_ip: arp.target_ip(),
            own_mac: arp.sender_mac(),
            peer_mac: target,
            member: Some(id),
            vlan,
            update,
        };
        Some(index)
    }

    /// An ARP packet that came in (`rlb_arp_recv`).
    pub(in super::super) fn arp_received(&mut self, frame: &[u8]) {
        let Some(Ok((arp, _))) = frame.get(14..).map(ArpIpv4::parse) else { return };
        let Some(a) = &mut self.adaptive else { return };
        // Somebody else has an address that was ours.
        for client in &mut a.clients {
            if client.assigned && client.own_ip == arp.sender_ip() && client.own_mac != arp.sender_mac() {
                *client = Client::default();
            }
        }
        if arp.operation() != ArpOperation::REPLY {
            return;
        }
        let Some(client) = a.clients.get_mut(simple_hash(&arp.sender_ip().octets())) else { return };
        let known = client.assigned && client.own_ip == arp.target_ip() && client.peer_ip == arp.sender_ip();
        if known && client.peer_mac != arp.sender_mac() {
            client.peer_mac = arp.sender_mac();
            client.update = true;
            a.update = true;
        }
    }

    /// Tells one peer where to send.
    fn update_client(&mut self, slot: usize, now: Instant) {
        let Some(client) = self.adaptive.as_ref().and_then(|a| a.clients.get(slot)).cloned() else { return };
        let Some(index) = client.member.and_then(|id| self.index_of(id)) else { return };
        let reply = frames::Arp {
            operation: ArpOperation::REPLY,
            sender: (self.members[index].address, client.own_ip),
            target: (client.peer_mac, client.peer_ip),
        };
        let frame = frames::arp(&reply, client.peer_mac, client.vlan);
        for _ in 0..REPLIES {
            if self.send_own(index, &frame, now) {
                self.counters.arp_updates += 1;
            }
        }
    }

    /// Peers that send to a member are to be told of its address.
    pub(super) fn update_clients_of(&mut self, member: u16) {
        let Some(a) = &mut self.adaptive else { return };
        for client in &mut a.clients {
            if client.assigned && client.member == Some(member) && client.peer_mac != MacAddress::BROADCAST {
                client.update = true;
                a.update = true;
                a.update_retry = RETRIES;
            }
        }
    }

    /// Peers of a member that cannot receive are given to others (`rlb_clear_slave`).
    pub(super) fn clear_client_member(&mut self, member: u16, index: usize, now: Instant) {
        if self.mode() != Mode::BalanceAlb {
            return;
        }
        for slot in 0..TABLE {
            let mine = self
                .adaptive
                .as_ref()
                .is_some_and(|a| a.clients[slot].assigned && a.clients[slot].member == Some(member));
            if !mine {
                continue;
            }
            let next = self.next_receiver().filter(|i| *i != index).map(|i| self.members[i].id);
            let Some(a) = &mut self.adaptive else { return };
            let client = &mut a.clients[slot];
            client.member = next;
            if next.is_some() && client.peer_mac != MacAddress::BROADCAST {
                client.update = true;
                a.update = true;
                a.update_retry = RETRIES;
            }
        }
        if self.current != Some(member) {
            self.teach_disabled(self.members[index].address, now);
        }
    }

    /// The part of a tick that concerns receive balancing.
    pub(super) fn client_tick(&mut self, now: Instant) {
        let Some(a) = &mut self.adaptive else { return };
        if a.clients.is_empty() {
            return;
        }
        if a.promiscuous > 0 {
            a.promiscuous -= 1;
            if a.promiscuous == 0
                && !self.promiscuous
                && let Some(current) = self.current.and_then(|id| self.members.iter().position(|m| m.id == id))
            {
                let _ = self.members[current].driver.set_promiscuous(false);
            }
        }
        if core::mem::take(&mut a.rebalance_clients) {
            for slot in 0..TABLE {
                if !self.adaptive.as_ref().is_some_and(|a| a.clients[slot].assigned) {
                    continue;
                }
                let Some(next) = self.next_receiver().map(|i| self.members[i].id) else { break };
                let Some(a) = &mut self.adaptive else { return };
                if a.clients[slot].member != Some(next) {
                    a.clients[slot].member = Some(next);
                    a.clients[slot].update = true;
                    a.update = true;
                }
            }
        }
        let Some(a) = &mut self.adaptive else { return };
        if !a.update {
            return;
        }
        if a.update_delay > 0 {
            a.update_delay -= 1;
            return;
        }
        let last = a.update_retry == 0;
        for slot in 0..TABLE {
            if self.adaptive.as_ref().is_some_and(|a| a.clients[slot].assigned && a.clients[slot].update) {
                self.update_client(slot, now);
                if last && let Some(a) = &mut self.adaptive {
                    a.clients[slot].update = false;
                }
            }
        }
        let Some(a) = &mut self.adaptive else { return };
        a.update_delay = DELAY;
        if last {
            a.update = false;
        } else {
            a.update_retry -= 1;
        }
    }
}
