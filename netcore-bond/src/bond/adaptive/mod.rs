//! balance-tlb and balance-alb: transmit by load, receive where ARP says (Linux: `bond_alb.c`).

mod rlb;
mod tlb;

use super::{Bond, Slave, frames};
use crate::options::Mode;
use alloc::vec::Vec;
use netcore::{Driver, Instant, MacAddress, Packet};
use rlb::Client;
use tlb::Flow;

/// Ticks in a second.
const TICKS: u32 = 10;
/// Seconds after which flows are given to members anew (`BOND_TLB_REBALANCE_INTERVAL`).
const REBALANCE: u64 = 10;
/// Ticks for which the active member receives all, when the address of one that failed is taught to the switch there
/// (`RLB_PROMISC_TIMEOUT`).
const PROMISCUOUS: u32 = 10 * TICKS;

/// What the adaptive modes remember.
pub(super) struct Adaptive {
    /// By the low byte of a hash.
    flows: Vec<Flow>,
    /// By a hash of the peer's IP address; empty in balance-tlb.
    clients: Vec<Client>,
    /// Bytes that were not balanced, since the last rebalance.
    unbalanced: u64,
    rebalance_in: u32,
    learning_in: u32,
    /// Member that the last client was given.
    receiver: Option<u16>,
    rebalance_clients: bool,
    update: bool,
    update_delay: u32,
    update_retry: u32,
    /// Ticks left of promiscuous mode on the active member.
    promiscuous: u32,
}

impl Adaptive {
    pub(super) fn new(mode: Mode) -> Self {
        let clients = if mode == Mode::BalanceAlb { rlb::TABLE } else { 0 };
        Self {
            flows: (0..tlb::TABLE).map(|_| Flow::default()).collect(),
            clients: (0..clients).map(|_| Client::default()).collect(),
            unbalanced: 0,
            rebalance_in: 0,
            learning_in: TICKS,
            receiver: None,
            rebalance_clients: false,
            update: false,
            update_delay: 0,
            update_retry: 0,
            promiscuous: 0,
        }
    }
}

/// XOR of all bytes (`_simple_hash`).
fn simple_hash(bytes: &[u8]) -> usize {
    usize::from(bytes.iter().fold(0, |hash, byte| hash ^ byte))
}

/// What of a frame decides how it is balanced.
struct Headers {
    bytes: [u8; 80],
    len: usize,
}

impl Headers {
    fn of(packet: &Packet) -> Self {
        let mut bytes = [0; 80];
        let len = packet.len().min(bytes.len());
        let _ = packet.copy_to(0, &mut bytes[..len]);
        Self { bytes, len }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<D: Driver> Bond<D> {
    /// A new member: an address that no other has, and flows are given out anew.
    pub(super) fn adaptive_add(&mut self, index: usize, now: Instant) {
        if self.adaptive.is_none() {
            return;
        }
        self.own_address(index);
        if let Some(a) = &mut self.adaptive {
            a.rebalance_in = 0;
            a.rebalance_clients = true;
        }
        let _ = now;
    }

    /// In balance-alb every member listens to an address of its own, one of them to the bond's; in balance-tlb they only send
    /// as such (Linux: `alb_handle_addr_collision_on_attach`).
    fn own_address(&mut self, index: usize) {
        let permanent = self.members[index].permanent;
        let others =
            |bond: &Self, mac: MacAddress| bond.members.iter().enumerate().any(|(i, m)| i != index && m.address == mac);
        let wanted = if index == 0 && self.members.len() == 1 {
            self.mac
        } else if permanent != self.mac && !others(self, permanent) {
            permanent
        } else {
            // The permanent address of a member that uses another one.
            let free = self.members.iter().map(|m| m.permanent).find(|mac| *mac != self.mac && !others(self, *mac));
            free.unwrap_or_else(|| {
                let b = self.random().to_be_bytes();
                MacAddress([b[0] & 0xfc | 2, b[1], b[2], b[3], b[4], b[5]])
            })
        };
        self.set_own_address(index, wanted);
    }

    fn set_own_address(&mut self, index: usize, mac: MacAddress) {
        if self.mode() == Mode::BalanceTlb {
            self.members[index].address = mac;
        } else {
            self.give_mac(index, mac);
        }
    }

    pub(super) fn adaptive_remove(&mut self, index: usize, now: Instant) {
        if self.adaptive.is_none() {
            return;
        }
        // Nobody else may keep the address that goes with the member.
        let m = &self.members[index];
        let permanent = m.permanent;
        if permanent != m.address
            && permanent != self.mac
            && let Some(other) = self.members.iter().position(|o| o.address == permanent)
        {
            self.swap_addresses(index, other);
            self.hasten(index, other, now);
        }
        let id = self.members[index].id;
        self.clear_flows(index, false);
        if let Some(a) = &mut self.adaptive {
            a.receiver = None;
        }
        self.clear_client_member(id, index, now);
    }

    /// A link came or went (Linux: `bond_alb_handle_link_change`).
    pub(super) fn adaptive_link_changed(&mut self, index: usize, up: bool, now: Instant) {
        let Some(a) = &mut self.adaptive else { return };
        if up {
            a.rebalance_in = 0;
            a.rebalance_clients = true;
        } else {
            let id = self.members[index].id;
            self.clear_flows(index, false);
            self.clear_client_member(id, index, now);
        }
    }

    /// Another member becomes the active one and takes the bond's address (Linux: `bond_alb_handle_active_change`).
    pub(super) fn adaptive_active_changes(&mut self, new: Option<usize>, now: Instant) {
        let old = self.current.and_then(|id| self.index_of(id));
        if let Some(a) = &mut self.adaptive
            && core::mem::take(&mut a.promiscuous) > 0
            && let Some(old) = old
            && !self.promiscuous
        {
            let _ = self.members[old].driver.set_promiscuous(false);
        }
        let Some(new) = new else { return };
        let holder = old.or_else(|| self.members.iter().position(|m| m.address == self.mac));
        if let Some(holder) = holder {
            self.clear_flows(holder, true);
        }
        self.clear_flows(new, true);
        let mac = self.mac;
        if self.mode() == Mode::BalanceTlb {
            // Its hardware may have come back with its own address.
            let m = &mut self.members[new];
            if m.driver.capabilities().mac != mac {
                let _ = m.driver.set_mac(mac);
            }
        }
        match holder {
            Some(holder) if holder != new => {
                self.swap_addresses(holder, new);
                self.hasten(holder, new, now);
            }
            Some(_) => {}
            None => {
                self.set_own_address(new, mac);
                self.send_learning(new, mac, now);
            }
        }
    }

    fn swap_addresses(&mut self, a: usize, b: usize) {
        let (first, second) = (self.members[a].address, self.members[b].address);
        self.set_own_address(a, second);
        self.set_own_address(b, first);
    }

    /// Tells the switch and the clients that two members changed addresses (Linux: `alb_fasten_mac_swap`).
    fn hasten(&mut self, a: usize, b: usize, now: Instant) {
        let mut disabled = None;
        let differ = self.members[a].can_send() != self.members[b].can_send();
        for index in [a, b] {
            if self.members[index].can_send() {
                self.send_learning(index, self.members[index].address, now);
                self.update_clients_of(self.members[index].id);
            } else {
                disabled = Some(index);
            }
        }
        if differ
            && self.mode() == Mode::BalanceAlb
            && let Some(disabled) = disabled
        {
            self.teach_disabled(self.members[disabled].address, now);
        }
    }

    /// The active member receives for a while what is sent to a member that cannot (Linux:
    /// `rlb_teach_disabled_mac_on_primary`).
    fn teach_disabled(&mut self, mac: MacAddress, now: Instant) {
        let Some(current) = self.current.and_then(|id| self.index_of(id)) else { return };
        let on = self.promiscuous || self.members[current].driver.set_promiscuous(true).is_ok();
        if let Some(a) = &mut self.adaptive
            && on
        {
            a.promiscuous = PROMISCUOUS;
        }
        self.send_learning(current, mac, now);
    }

    /// One learning packet untagged and one for each VLAN in use.
    fn send_learning(&mut self, index: usize, mac: MacAddress, now: Instant) {
        let mut told = Vec::new();
        told.push(None);
        for address in &self.addresses {
            if !told.contains(&address.vlan) {
                told.push(address.vlan);
            }
        }
        for vlan in told {
            if self.send_own(index, &frames::learning(mac, vlan), now) {
                self.counters.learning_packets += 1;
            }
        }
    }

    /// A tenth of a second passed (Linux: `bond_alb_monitor`).
    pub(super) fn adaptive_tick(&mut self, now: Instant) {
        let lp_interval = self.options.lp_interval.saturating_mul(TICKS);
        let Some(a) = &mut self.adaptive else { return };
        if self.members.is_empty() {
            (a.rebalance_in, a.learning_in) = (REBALANCE as u32 * TICKS, lp_interval);
            return;
        }
        a.learning_in = a.learning_in.saturating_sub(1);
        a.rebalance_in = a.rebalance_in.saturating_sub(1);
        let (learn, rebalance) = (a.learning_in == 0, a.rebalance_in == 0);
        if learn {
            a.learning_in = lp_interval;
            for index in 0..self.members.len() {
                if self.members[index].is_up() {
                    self.send_learning(index, self.members[index].address, now);
                }
            }
        }
        if rebalance {
            self.rebalance_flows();
        }
        self.client_tick(now);
    }

    /// The member that a packet goes to; its own address is its source unless it is the active one.
    pub(super) fn choose_adaptive(&mut self, packet: &Packet, now: Instant) -> Option<usize> {
        let headers = Headers::of(packet);
        let frame = headers.get();
        let chosen = if self.mode() == Mode::BalanceTlb {
            self.choose_tlb(packet, frame)
        } else {
            self.choose_alb(packet, frame, now)
        };
        chosen.or_else(|| {
            if let Some(a) = &mut self.adaptive
                && self.options.tlb_dynamic_lb
            {
                a.unbalanced += packet.len() as u64;
            }
            self.current.and_then(|id| self.index_of(id))
        })
    }

    /// Linux: `bond_tlb_xmit`.
    fn choose_tlb(&mut self, packet: &Packet, frame: &[u8]) -> Option<usize> {
        let multicast = frame.first().is_none_or(|first| first & 1 != 0);
        let ethertype = frame.get(12..14)?;
        // IPv4, IPX, IPv6.
        if multicast || ![[0x08, 0x00], [0x81, 0x37], [0x86, 0xdd]].iter().any(|t| t == ethertype) {
            return None;
        }
        if self.options.tlb_dynamic_lb {
            let crate::policy::Policy::Hash(hash) = &self.policy else { return None };
            let flow = hash.of(packet) as usize & (tlb::TABLE - 1);
            return self.flow_member(flow, packet.len());
        }
        let chosen = self.policy.select(packet, &self.view)?;
        Some(usize::from(self.view_of[chosen]))
    }

    /// Linux: `bond_alb_xmit`.
    fn choose_alb(&mut self, packet: &Packet, frame: &[u8], now: Instant) -> Option<usize> {
        let broadcast = frame.get(..6)? == [0xff; 6];
        let key: &[u8] = match *frame.get(12..14)? {
            [0x08, 0x00] => {
                let (protocol, destination) = (frame.get(23)?, frame.get(30..34)?);
                if broadcast || destination == [0xff; 4] || *protocol == 2 {
                    return None;
                }
                destination
            }
            [0x86, 0xdd] => {
                let (source, destination) = (frame.get(22..38)?, frame.get(38..54)?);
                let all_nodes = frame.get(..6)? == [0x33, 0x33, 0, 0, 0, 1];
                // Probes for duplicate addresses and neighbour discovery tell peers where the bond is: the active member.
                let discovery = frame.get(20) == Some(&58) && matches!(frame.get(54), Some(135 | 136));
                if broadcast || all_nodes || source == [0; 16] || discovery {
                    return None;
                }
                destination
            }
            // IPX without checksum, for NCP.
            [0x81, 0x37] if frame.get(14..16)? == [0xff, 0xff] && frame.get(19) == Some(&0x11) => frame.get(..6)?,
            [0x08, 0x06] => return self.arp_sent(frame, packet, now),
            _ => return None,
        };
        let flow = simple_hash(key);
        if self.options.tlb_dynamic_lb {
            return self.flow_member(flow, packet.len());
        }
        // Without load balancing the hash is of the same bytes.
        let usable = self.members.iter().filter(|m| m.can_send()).count();
        let n = flow.checked_rem(usable)?;
        self.members.iter().enumerate().filter(|(_, m)| m.can_send()).nth(n).map(|(i, _)| i)
    }

    /// The bond's address changes: the member that has the new one, or the active one, takes it (Linux:
    /// `bond_alb_set_mac_address`).
    pub(super) fn adaptive_mac(&mut self, mac: MacAddress, now: Instant) {
        let Some(current) = self.current.and_then(|id| self.index_of(id)) else { return };
        match self.members.iter().position(|m| m.address == mac) {
            Some(holder) if holder != current => {
                self.swap_addresses(holder, current);
                self.hasten(holder, current, now);
            }
            Some(_) => {}
            None => {
                self.set_own_address(current, mac);
                self.send_learning(current, mac, now);
                self.update_clients_of(self.members[current].id);
            }
        }
    }

    /// LACP needs a time, which [`Driver::set_mac`] does not have: that of its last tick will do.
    pub(super) fn lacp_time(&self) -> Instant {
        self.lacp.as_ref().and_then(crate::lacp::Lacp::poll_at).unwrap_or(Instant::ZERO)
    }
}

impl<D: Driver> Slave<D> {
    /// Bits per second that are left of the link (`compute_gap`).
    fn gap(&self) -> i64 {
        (i64::from(self.speed()) << 20) - (i64::try_from(self.load).unwrap_or(i64::MAX >> 3) << 3)
    }
}
