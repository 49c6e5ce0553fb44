//! Packets out (Linux: `bond_start_xmit`).

use super::{Bond, STAGE};
use crate::options::Mode;
use netcore::{Burst, Driver, DriverError, Features, Gso, Instant, MacAddress, Packet, Refusal};

const CHECKSUMS: Features =
    Features::TX_CHECKSUM_GENERIC.union(Features::TX_CHECKSUM_IPV4).union(Features::TX_CHECKSUM_IPV6);

/// What becomes of the packet at the front.
enum Choice {
    /// To this member.
    Member(usize),
    /// To this member, with this source address.
    As(usize, MacAddress),
    /// To every member that can send.
    All,
    /// There is none: it is lost.
    None,
}

impl<D: Driver> Bond<D> {
    /// Takes packets from the front until a member has no more room.
    pub(super) fn transmit_all(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        if !self.up {
            return Err(DriverError::Down);
        }
        // Without carrier nothing is asked of a device; what there is waits with the caller, who sees that.
        if !self.carrier {
            return Ok(0);
        }
        let q = usize::from(queue);
        let mut taken = 0;
        let mut error = None;
        while let Some(packet) = burst.front() {
            let choice = self.choose(queue, packet, now);
            let index = match choice {
                Choice::None => {
                    if let Some(packet) = burst.pop() {
                        self.counters.tx_dropped += 1;
                        self.cache.put(packet);
                    }
                    taken += 1;
                    continue;
                }
                Choice::All => {
                    if let Some(packet) = burst.pop() {
                        self.broadcast(q, packet, now);
                    }
                    taken += 1;
                    continue;
                }
                Choice::Member(index) | Choice::As(index, _) => index,
            };
            if self.members[index].stages[q].len() >= STAGE {
                self.flush(index, queue, now);
                if self.members[index].stages[q].len() >= STAGE {
                    self.policy.undo();
                    break;
                }
            }
            let Some(packet) = burst.front() else { break };
            let caps = self.members[index].driver.capabilities();
            let refusal = match packet.gso() {
                Some(gso) if !caps.segments(gso, packet.len()) => Some(Refusal::Segmentation),
                None if packet.transmit_checksum().is_some() && !caps.features.intersects(CHECKSUMS) => {
                    Some(Refusal::Checksum)
                }
                _ => None,
            };
            if let Some(reason) = refusal.filter(|_| self.segmenter.is_none()) {
                self.policy.undo();
                error = Some(DriverError::Refused { reason });
                break;
            }
            let Some(mut packet) = burst.pop() else { break };
            taken += 1;
            if let Choice::As(_, source) = choice
                && !self.write_source(&mut packet, source)
            {
                self.counters.tx_dropped += 1;
                self.cache.put(packet);
                continue;
            }
            if refusal.is_some() {
                self.in_software(index, q, packet);
            } else {
                self.stage(index, q, packet);
            }
        }
        for index in 0..self.members.len() {
            if !self.members[index].stages[q].is_empty() {
                self.flush(index, queue, now);
            }
        }
        error.map_or(Ok(taken), Err)
    }

    #[inline]
    fn choose(&mut self, queue: u16, packet: &Packet, now: Instant) -> Choice {
        let bound = queue > 0;
        if bound && let Some(index) = self.members.iter().position(|m| m.queue_id == queue && m.can_send()) {
            return Choice::Member(index);
        }
        match self.options.mode {
            Mode::BalanceRr | Mode::BalanceXor | Mode::Ieee8023ad => match self.policy.select(packet, &self.view) {
                Some(chosen) => {
                    let index = usize::from(self.view_of[chosen]);
                    if self.source_per_member {
                        Choice::As(index, self.members[index].permanent)
                    } else {
                        Choice::Member(index)
                    }
                }
                None => Choice::None,
            },
            Mode::ActiveBackup => {
                let current = self.current.and_then(|id| self.index_of(id));
                current.filter(|&i| self.members[i].can_send()).map_or(Choice::None, Choice::Member)
            }
            Mode::Broadcast => Choice::All,
            Mode::BalanceTlb | Mode::BalanceAlb => {
                let index = self.choose_adaptive(packet, now);
                match index.filter(|&i| self.members[i].can_send()) {
                    Some(index) if Some(self.members[index].id) == self.current => Choice::Member(index),
                    Some(index) => Choice::As(index, self.members[index].address),
                    None => Choice::None,
                }
            }
        }
    }

    /// Writes the source address of a frame; in an ARP reply of a balance-alb bond the sender's address, too, which is where
    /// the peer will send to.
    fn write_source(&mut self, packet: &mut Packet, mac: MacAddress) -> bool {
        let arp = self.options.mode == Mode::BalanceAlb && packet.head().get(12..14) == Some(&[0x08, 0x06]);
        let reach = if arp { 28 } else { 12 };
        if packet.len() < reach {
            return false;
        }
        let ready = packet.is_head_writable() && packet.head_len() >= reach;
        if !ready && packet.make_writable(reach, &mut self.cache).is_err() {
            return false;
        }
        let Ok(head) = packet.head_mut() else { return false };
        head[6..12].copy_from_slice(&mac.0);
        if arp {
            head[22..28].copy_from_slice(&mac.0);
        }
        true
    }

    #[inline]
    fn stage(&mut self, index: usize, q: usize, packet: Packet) {
        let m = &mut self.members[index];
        m.counters.tx_packets += 1;
        m.counters.tx_bytes += packet.len() as u64;
        m.stages[q].push(packet);
    }

    /// Cuts a super-packet or fills in a checksum for a member's device.
    fn in_software(&mut self, index: usize, q: usize, packet: Packet) {
        let Some(segmenter) = &mut self.segmenter else { return self.cache.put(packet) };
        let m = &mut self.members[index];
        let features = if packet.gso().is_some() { m.driver.capabilities().features } else { Features::empty() };
        let (before, bytes) = (m.stages[q].len(), m.stages[q].bytes());
        match segmenter.segment(packet, features, &mut self.cache, &mut m.stages[q]) {
            Ok(_) => {
                self.counters.tx_software += 1;
                m.counters.tx_packets += (m.stages[q].len() - before) as u64;
                m.counters.tx_bytes += (m.stages[q].bytes() - bytes) as u64;
            }
            Err(refused) => {
                self.counters.tx_not_segmented += 1;
                self.cache.put(refused.packet);
            }
        }
    }

    /// Clones to every member that can send; the last one takes the original.
    fn broadcast(&mut self, q: usize, packet: Packet, now: Instant) {
        let able = |bond: &Self, i: &usize| bond.members[*i].is_up() && bond.members[*i].link == super::MemberLink::Up;
        let Some(last) = (0..self.members.len()).rfind(|i| able(self, i)) else {
            self.counters.tx_dropped += 1;
            return self.cache.put(packet);
        };
        for index in 0..last {
            if !able(self, &index) {
                continue;
            }
            match packet.share(&mut self.cache) {
                Ok(copy) => self.stage_or_drop(index, q, copy, now),
                Err(_) => self.counters.tx_no_copy += 1,
            }
        }
        self.stage_or_drop(last, q, packet, now);
    }

    fn stage_or_drop(&mut self, index: usize, q: usize, packet: Packet, now: Instant) {
        if self.members[index].stages[q].len() >= STAGE {
            self.flush(index, q as u16, now);
        }
        let m = &mut self.members[index];
        if m.stages[q].len() >= STAGE {
            m.counters.tx_dropped += 1;
            return self.cache.put(packet);
        }
        let caps = m.driver.capabilities();
        let by_device = packet.gso().is_none_or(|gso: Gso| caps.segments(gso, packet.len()))
            && (packet.gso().is_some() || packet.transmit_checksum().is_none() || caps.features.intersects(CHECKSUMS));
        if by_device {
            self.stage(index, q, packet);
        } else if self.segmenter.is_some() {
            self.in_software(index, q, packet);
        } else {
            m.counters.tx_dropped += 1;
            self.cache.put(packet);
        }
    }

    /// Hands waiting packets to a member's driver. One that it refuses although it declared the feature is done in software;
    /// one that nobody can send is lost, and counted.
    pub(super) fn flush(&mut self, index: usize, queue: u16, now: Instant) {
        let q = usize::from(queue);
        loop {
            let m = &mut self.members[index];
            if m.stages[q].is_empty() {
                return;
            }
            match m.driver.transmit(queue, &mut m.stages[q], now) {
                Ok(_) => return,
                Err(DriverError::Refused { reason }) => {
                    let Some(packet) = m.stages[q].pop() else { return };
                    m.counters.tx_packets -= 1;
                    m.counters.tx_bytes -= packet.len() as u64;
                    let repairable = matches!(reason, Refusal::Segmentation | Refusal::Checksum)
                        && (packet.is_super() || packet.transmit_checksum().is_some());
                    if repairable && self.segmenter.is_some() {
                        let mut later = core::mem::take(&mut m.stages[q]);
                        self.in_software(index, q, packet);
                        self.members[index].stages[q].append(&mut later);
                    } else {
                        m.counters.tx_dropped += 1;
                        self.cache.put(packet);
                    }
                }
                Err(_) => return self.drop_stages(index),
            }
        }
    }
}
