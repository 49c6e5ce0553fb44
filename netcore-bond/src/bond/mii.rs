//! MII monitoring (Linux: `bond_miimon_inspect`, `bond_miimon_commit`).

use super::{Bond, MemberLink};
use crate::options::Mode;
use netcore::{Driver, Instant};

impl<D: Driver> Bond<D> {
    /// One link check of all members.
    pub(super) fn mii_tick(&mut self, now: Instant) {
        let mut ignore_updelay = match self.mode() {
            Mode::ActiveBackup => self.current.is_none(),
            _ => !self.members.iter().any(super::Slave::can_send),
        };
        let mut any = false;
        for index in 0..self.members.len() {
            let proposed = self.inspect(index, &mut ignore_updelay, now);
            self.members[index].proposed = proposed;
            any |= proposed.is_some();
        }
        if any {
            self.mii_commit(now);
        }
        self.peer_notification_tick(now);
    }

    /// What a member's link is to become for good, if anything.
    fn inspect(&mut self, index: usize, ignore_updelay: &mut bool, now: Instant) -> Option<MemberLink> {
        let (updelay, downdelay) = (self.options.updelay, self.options.downdelay);
        let carrier = self.members[index].is_up();
        let mut link = self.members[index].link;
        if link == MemberLink::Up {
            if carrier {
                return None;
            }
            self.members[index].delay = downdelay;
            link = MemberLink::Fail;
            self.set_link(index, link);
        } else if link == MemberLink::Down {
            if !carrier {
                return None;
            }
            self.members[index].delay = updelay;
            link = MemberLink::Back;
            self.set_link(index, link);
        }
        let m = &mut self.members[index];
        if link == MemberLink::Fail {
            if carrier {
                // It recovered in time: no failure.
                m.last_link_up = Some(now);
                self.set_link(index, MemberLink::Up);
                return None;
            }
            if m.delay == 0 {
                return Some(MemberLink::Down);
            }
            m.delay -= 1;
            return None;
        }
        if !carrier {
            return Some(MemberLink::Down);
        }
        if core::mem::take(ignore_updelay) {
            m.delay = 0;
        }
        if m.delay == 0 {
            *ignore_updelay = false;
            return Some(MemberLink::Up);
        }
        m.delay -= 1;
        None
    }

    fn mii_commit(&mut self, now: Instant) {
        let mut failover = false;
        for index in 0..self.members.len() {
            match self.members[index].proposed.take() {
                Some(MemberLink::Up) => {
                    self.set_link(index, MemberLink::Up);
                    self.members[index].last_link_up = Some(now);
                    match self.mode() {
                        // LACP activates it.
                        Mode::Ieee8023ad => {}
                        Mode::ActiveBackup => {}
                        _ => self.set_backup(index, false),
                    }
                    self.link_changed(index, true, now);
                    let m = &self.members[index];
                    let current = self.current.and_then(|id| self.index_of(id));
                    failover |= self.primary == Some(m.id)
                        || current.is_none_or(|current| m.priority > self.members[current].priority);
                }
                Some(MemberLink::Down) => {
                    let m = &mut self.members[index];
                    m.counters.link_failures = m.counters.link_failures.saturating_add(1);
                    failover |= self.current == Some(m.id);
                    self.set_link(index, MemberLink::Down);
                    if matches!(self.mode(), Mode::ActiveBackup | Mode::Ieee8023ad) {
                        self.set_inactive(index);
                    }
                    self.drop_stages(index);
                    self.link_changed(index, false, now);
                }
                _ => {}
            }
        }
        if failover {
            self.select_active(now);
        }
        self.refresh();
    }

    /// Tells LACP or the tables of the adaptive modes (Linux: `bond_miimon_link_change`).
    pub(super) fn link_changed(&mut self, index: usize, up: bool, now: Instant) {
        self.adaptive_link_changed(index, up, now);
        self.lacp_link(index, now);
    }
}
