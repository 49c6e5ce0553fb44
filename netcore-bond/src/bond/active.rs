//! Which member is the active one (Linux: `bond_find_best_slave`, `bond_change_active_slave`).

use super::{Bond, BondEvent, MemberLink};
use crate::options::{FailOverMac, Mode, PrimaryReselect};
use netcore::{Driver, Instant, MacAddress};

impl<D: Driver> Bond<D> {
    /// The primary member, or the one of highest preference, or the current one, as `primary_reselect` has it.
    fn preferred(&mut self) -> Option<usize> {
        let up = |bond: &Self, i: usize| bond.members[i].link == MemberLink::Up;
        let current = self.current.and_then(|id| self.index_of(id)).filter(|&i| up(self, i));
        let primary = self.primary.and_then(|id| self.index_of(id)).filter(|&i| up(self, i));
        let candidate = match primary {
            Some(primary) => {
                if core::mem::take(&mut self.force_primary) {
                    return Some(primary);
                }
                primary
            }
            None => {
                // The first of those with the highest priority.
                let best = (0..self.members.len())
                    .filter(|&i| up(self, i))
                    .reduce(|best, i| if self.members[i].priority > self.members[best].priority { i } else { best })?;
                // One that is not preferred to the current one does not replace it.
                match current {
                    Some(current) if self.members[best].priority <= self.members[current].priority => {
                        return Some(current);
                    }
                    _ => best,
                }
            }
        };
        let Some(current) = current else { return Some(candidate) };
        let (c, p) = (&self.members[current], &self.members[candidate]);
        let better = p.speed() > c.speed() || p.speed() == c.speed() && duplex(p.seen) > duplex(c.seen);
        Some(match self.options.primary_reselect {
            PrimaryReselect::Always => candidate,
            PrimaryReselect::Better if better => candidate,
            PrimaryReselect::Better | PrimaryReselect::Failure => current,
        })
    }

    /// As [`Bond::preferred`]; if none is up, the one whose delay ends first.
    fn best(&mut self) -> Option<usize> {
        if let Some(found) = self.preferred() {
            return Some(found);
        }
        let returning = |m: &super::Slave<D>| m.link == MemberLink::Back && m.is_up() && m.delay < self.options.updelay;
        (0..self.members.len()).filter(|&i| returning(&self.members[i])).min_by_key(|&i| self.members[i].delay)
    }

    /// Chooses the active member anew (Linux: `bond_select_active_slave`).
    pub(super) fn select_active(&mut self, now: Instant) {
        let best = self.best();
        if best.map(|i| self.members[i].id) != self.current {
            self.change_active(best, now);
        }
        self.refresh();
    }

    /// Makes another member the active one.
    pub(super) fn change_active(&mut self, new: Option<usize>, now: Instant) {
        let old = self.current.and_then(|id| self.index_of(id));
        if let Some(new) = new {
            self.members[new].last_link_up = Some(now);
            if self.members[new].link == MemberLink::Back {
                // It becomes active before its delay is over.
                self.members[new].delay = 0;
                self.set_link(new, MemberLink::Up);
                self.adaptive_link_changed(new, true, now);
            }
        }
        let id = new.map(|i| self.members[i].id);
        match self.mode() {
            Mode::BalanceTlb | Mode::BalanceAlb => {
                self.adaptive_active_changes(new, now);
                self.current = id;
                if let Some(old) = old {
                    self.set_inactive(old);
                }
                if let Some(new) = new {
                    self.set_active(new);
                }
            }
            Mode::ActiveBackup => {
                self.current = id;
                if let Some(old) = old {
                    self.set_inactive(old);
                }
                if let Some(new) = new {
                    self.set_active(new);
                    self.fail_over_mac(new, old, now);
                }
            }
            _ => self.current = id,
        }
        self.counters.failovers += u64::from(old.is_some());
        self.events.push(BondEvent::Active { member: id });
        self.refresh();
        if self.mode() == Mode::ActiveBackup && new.is_some() && self.up {
            self.start_peer_notifications(now);
        }
        if self.up && (self.mode().uses_primary() && new.is_some() || self.mode() == Mode::BalanceRr) {
            self.start_igmp(now);
        }
    }

    /// Moves addresses as `fail_over_mac` has it (Linux: `bond_do_fail_over_mac`).
    fn fail_over_mac(&mut self, new: usize, old: Option<usize>, _now: Instant) {
        match self.options.fail_over_mac {
            FailOverMac::None => {}
            FailOverMac::Active => self.adopt_mac(self.members[new].address),
            FailOverMac::Follow => {
                // The old one takes what the new one had, or its own if there was no old one; the new one takes the bond's.
                let mac = self.mac;
                let freed = self.members[new].address;
                if freed == mac {
                    return;
                }
                if let Some(old) = old {
                    let back = if self.members[old].permanent == mac { freed } else { self.members[old].permanent };
                    self.give_mac(old, back);
                }
                self.give_mac(new, mac);
            }
        }
    }

    /// The bond's own address becomes `mac`.
    pub(super) fn adopt_mac(&mut self, mac: MacAddress) {
        self.mac = mac;
        self.capabilities.mac = mac;
    }

    /// Gives a member an address; one that does not take it keeps what it has.
    pub(super) fn give_mac(&mut self, index: usize, mac: MacAddress) -> bool {
        let m = &mut self.members[index];
        if m.driver.capabilities().mac == mac || m.driver.set_mac(mac).is_ok() {
            m.address = mac;
            return true;
        }
        false
    }
}

fn duplex(link: netcore::LinkState) -> u8 {
    u8::from(link.duplex == netcore::driver::Duplex::Full)
}
