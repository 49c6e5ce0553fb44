//! ARP monitoring (Linux: `bond_loadbalance_arp_mon`, `bond_activebackup_arp_mon`, `bond_arp_rcv`).

use super::{Bond, HostAddress, MemberLink, Slave, frames};
use crate::options::{ArpAllTargets, Mode};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use netcore::wire::{ArpIpv4, ArpOperation};
use netcore::{Driver, Instant};

/// True if `at` is at most `intervals` and a half ago (Linux: `bond_time_in_interval`).
fn recent(at: Option<Instant>, intervals: u32, interval: Duration, now: Instant) -> bool {
    at.is_some_and(|at| now <= at + interval * intervals + interval / 2)
}

impl<D: Driver> Bond<D> {
    pub(super) fn arp_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.options.arp_interval))
    }

    /// When a member was last heard: the latest sign of life, or with `arp_all_targets all` that of the target that was
    /// silent longest.
    fn last_heard(&self, m: &Slave<D>) -> Option<Instant> {
        let targets = self.options.arp_targets.len();
        if self.options.arp_all_targets == ArpAllTargets::All
            && self.options.arp_validate.checks(!m.backup)
            && targets > 0
        {
            return m.target_rx[..targets].iter().copied().min().flatten();
        }
        m.last_rx
    }

    pub(super) fn arp_tick(&mut self, now: Instant) {
        if self.mode() == Mode::ActiveBackup {
            self.arp_tick_active_backup(now);
            self.peer_notification_tick(now);
        } else {
            self.arp_tick_balance(now);
        }
    }

    /// Modes in which every member sends: a link is up if it both sends and hears.
    fn arp_tick_balance(&mut self, now: Instant) {
        let (interval, missed) = (self.arp_interval(), self.options.missed_max);
        let (mut changed, mut failover) = (false, false);
        for index in 0..self.members.len() {
            let m = &self.members[index];
            let (sent, heard) = (m.last_tx, m.last_rx);
            let alive = |intervals| recent(sent, intervals, interval, now) && recent(heard, intervals, interval, now);
            if m.link != MemberLink::Up {
                if alive(1) {
                    failover |= self.current.is_none();
                    self.set_link(index, MemberLink::Up);
                    self.set_backup(index, false);
                    changed = true;
                }
            } else if !alive(missed) {
                failover |= self.current == Some(m.id);
                self.fail_by_arp(index);
                self.set_backup(index, true);
                changed = true;
            }
            if self.members[index].is_up() {
                self.probe(index, now);
            }
        }
        if failover {
            self.select_active(now);
        }
        if changed {
            self.refresh();
        }
    }

    fn fail_by_arp(&mut self, index: usize) {
        let m = &mut self.members[index];
        m.counters.link_failures = m.counters.link_failures.saturating_add(1);
        self.set_link(index, MemberLink::Down);
        self.drop_stages(index);
    }

    fn arp_tick_active_backup(&mut self, now: Instant) {
        self.arp_inspect(now);
        self.arp_probe(now);
        self.refresh();
    }

    fn arp_inspect(&mut self, now: Instant) {
        let (interval, missed) = (self.arp_interval(), self.options.missed_max);
        let mut failover = false;
        for index in 0..self.members.len() {
            let m = &self.members[index];
            let heard = self.last_heard(m);
            let proposed = if m.link != MemberLink::Up {
                if recent(heard, 1, interval, now) {
                    Some(MemberLink::Up)
                } else {
                    (m.link == MemberLink::Back).then_some(MemberLink::Fail)
                }
            } else if recent(m.last_link_up, 2, interval, now) {
                // Time to answer after it was added or made active.
                None
            } else if m.backup {
                let silent = self.arp_member.is_none() && !recent(heard, missed.saturating_add(1), interval, now);
                silent.then_some(MemberLink::Down)
            } else {
                let dead = !recent(m.last_tx, missed, interval, now) || !recent(heard, missed, interval, now);
                dead.then_some(MemberLink::Down)
            };
            self.members[index].proposed = proposed;
        }
        for index in 0..self.members.len() {
            let id = self.members[index].id;
            match self.members[index].proposed.take() {
                Some(MemberLink::Up) => {
                    if self.current == Some(id) {
                        continue;
                    }
                    self.set_link(index, MemberLink::Up);
                    if let Some(searching) = self.arp_member.take().and_then(|id| self.index_of(id)) {
                        self.set_inactive(searching);
                    }
                    let current = self.current.and_then(|id| self.index_of(id));
                    failover |= self.primary == Some(id)
                        || current.is_none_or(|c| self.members[index].priority > self.members[c].priority);
                }
                Some(MemberLink::Down) => {
                    self.fail_by_arp(index);
                    self.set_inactive(index);
                    if self.current == Some(id) {
                        self.arp_member = None;
                        failover = true;
                    }
                }
                Some(MemberLink::Fail) => {
                    self.set_link(index, MemberLink::Fail);
                    self.set_inactive(index);
                    if self.current.is_some() {
                        self.arp_member = None;
                    }
                }
                _ => {}
            }
        }
        if failover {
            self.select_active(now);
        }
    }

    /// The active member asks; without one, members take turns until one hears an answer.
    fn arp_probe(&mut self, now: Instant) {
        if let Some(current) = self.current.and_then(|id| self.index_of(id)) {
            self.probe(current, now);
            return;
        }
        if self.members.is_empty() {
            return;
        }
        let last = self.arp_member.and_then(|id| self.index_of(id)).unwrap_or(0);
        for index in 0..self.members.len() {
            if !self.members[index].is_up() && self.members[index].link == MemberLink::Up {
                self.fail_by_arp(index);
                self.set_inactive(index);
            }
        }
        let n = self.members.len();
        let Some(next) = (1..=n).map(|step| (last + step) % n).find(|&i| self.members[i].is_up()) else { return };
        if let Some(previous) = self.arp_member.and_then(|id| self.index_of(id)).filter(|&i| i != next) {
            self.set_inactive(previous);
        }
        self.set_link(next, MemberLink::Back);
        self.set_active(next);
        self.probe(next, now);
        self.members[next].last_link_up = Some(now);
        self.arp_member = Some(self.members[next].id);
    }

    /// Asks every target on a member (Linux: `bond_arp_send_all`). Without an address of its own the host asks from 0.0.0.0.
    fn probe(&mut self, index: usize, now: Instant) {
        for t in 0..self.options.arp_targets.len() {
            let target = self.options.arp_targets[t];
            let (source, vlan) = self.source_for(target);
            let frame = frames::arp_request(self.members[index].address, source, target, vlan);
            if self.send_own(index, &frame, now) {
                self.members[index].last_tx = Some(now);
                self.counters.arp_probes += 1;
            }
        }
    }

    /// The host's address with the longest prefix in common with `target`.
    fn source_for(&self, target: Ipv4Addr) -> (Ipv4Addr, Option<u16>) {
        let own = self.addresses.iter().filter_map(|a: &HostAddress| match a.ip {
            IpAddr::V4(ip) => Some((ip, a.vlan)),
            IpAddr::V6(_) => None,
        });
        let common = |ip: Ipv4Addr| (u32::from(ip) ^ u32::from(target)).leading_zeros();
        own.reduce(|best, a| if common(a.0) > common(best.0) { a } else { best })
            .unwrap_or((Ipv4Addr::UNSPECIFIED, None))
    }

    fn has_ip(&self, ip: Ipv4Addr) -> bool {
        self.addresses.iter().any(|a| a.ip == IpAddr::V4(ip))
    }

    /// Takes note of a frame that a member received (Linux: `bond_rcv_validate`).
    pub(super) fn heard(&mut self, index: usize, frame: &[u8], now: Instant) {
        let validate = self.options.arp_validate;
        let is_arp = frame.get(12..14) == Some(&[0x08, 0x06]);
        if !validate.checks(!self.members[index].backup) {
            if is_arp || !validate.only_arp() {
                self.members[index].last_rx = Some(now);
            }
            return;
        }
        if !is_arp {
            return;
        }
        let Some(Ok((arp, _))) = frame.get(14..).map(ArpIpv4::parse) else { return };
        let (sender, target) = (arp.sender_ip(), arp.target_ip());
        let current = self.current.and_then(|id| self.index_of(id)).map(|i| &self.members[i]);
        let searching = self.arp_member.and_then(|id| self.index_of(id)).map(|i| &self.members[i]);
        if !self.members[index].backup {
            self.validate(index, sender, target, now);
        } else if current.is_some_and(|c| self.last_heard(c) > c.last_link_up) {
            // A backup member hears the request that the active one broadcast.
            self.validate(index, target, sender, now);
        } else if arp.operation() == ArpOperation::REPLY
            && searching.is_some_and(|s| recent(s.last_tx, 1, self.arp_interval(), now))
        {
            self.validate(index, sender, target, now);
        }
    }

    fn validate(&mut self, index: usize, target: Ipv4Addr, own: Ipv4Addr, now: Instant) {
        if target.is_unspecified() || !self.has_ip(own) {
            return;
        }
        if let Some(t) = self.options.arp_targets.iter().position(|t| *t == target) {
            self.members[index].last_rx = Some(now);
            self.members[index].target_rx[t] = Some(now);
        }
    }
}
