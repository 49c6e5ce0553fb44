//! Options of the bond and of its members, by name.

use super::{Bond, MemberLink, owned};
use crate::error::BondError;
use crate::options::{BondState, Mode, OptionError};
use alloc::format;
use alloc::string::{String, ToString};
use netcore::{Driver, Instant, MacAddress};

impl<D: Driver> Bond<D> {
    /// Sets an option, by its name in sysfs or `ip link`, live where Linux allows that.
    ///
    /// # Errors
    /// [`BondError::Option`]; nothing is changed then.
    pub fn set_option(&mut self, name: &str, value: &str, now: Instant) -> Result<(), BondError> {
        let state = BondState { up: self.up, has_members: !self.members.is_empty() };
        if name == "active_slave" {
            self.options.check(name, state)?;
            return self.set_active_slave(value.trim(), now);
        }
        let before = self.options.clone();
        self.options.set_in(name, value, state)?;
        if self.options.mode != before.mode {
            self.apply_mode();
        }
        self.apply_policy();
        if self.options.primary != before.primary || name == "primary" {
            let primary = self.index_by_name(&self.options.primary);
            self.primary = primary.map(|i| self.members[i].id);
            self.force_primary = primary.is_some();
            self.select_active(now);
        }
        if self.options.primary_reselect != before.primary_reselect {
            self.select_active(now);
        }
        if self.options.all_slaves_active != before.all_slaves_active {
            let on = self.options.all_slaves_active;
            let current = self.current;
            let adaptive = self.mode().is_adaptive();
            for m in self.members.iter_mut().filter(|m| m.backup || adaptive && Some(m.id) != current) {
                m.inactive = !on;
            }
        }
        if self.options.arp_targets != before.arp_targets {
            self.targets_changed(&before.arp_targets, now);
        }
        self.apply_lacp(now)?;
        // A monitor that starts or changes its pace starts now.
        if self.options.miimon != before.miimon {
            self.next_mii = None;
        }
        if self.options.arp_interval != before.arp_interval {
            self.next_arp = None;
        }
        self.schedule(now);
        self.refresh();
        Ok(())
    }

    fn targets_changed(&mut self, before: &[core::net::Ipv4Addr], now: Instant) {
        for m in &mut self.members {
            let old = m.target_rx;
            m.target_rx = [None; crate::options::MAX_ARP_TARGETS];
            for (slot, target) in m.target_rx.iter_mut().zip(&self.options.arp_targets) {
                // A new target has until the next checks to answer.
                *slot = before.iter().position(|t| t == target).map_or(Some(now), |i| old[i]);
            }
        }
    }

    fn apply_lacp(&mut self, now: Instant) -> Result<(), BondError> {
        let wanted = self.lacp_config();
        let Some(lacp) = &mut self.lacp else { return Ok(()) };
        lacp.set_system(wanted.ad_actor_system, wanted.ad_actor_sys_prio, now)?;
        lacp.set_user_port_key(wanted.ad_user_port_key, now)?;
        lacp.set_lacp_rate(wanted.lacp_rate, now);
        lacp.set_lacp_active(wanted.lacp_active, now);
        lacp.set_ad_select(wanted.ad_select, now);
        lacp.set_min_links(wanted.min_links);
        lacp.set_coupled_control(wanted.coupled_control);
        self.lacp_output(now);
        Ok(())
    }

    /// The bond's address changed.
    pub(super) fn lacp_system_changed(&mut self, now: Instant) {
        let (address, priority) = (self.lacp_system(), self.options.ad_actor_sys_prio);
        if let Some(lacp) = &mut self.lacp {
            // The address is one that a station can have: the bond's, or checked when it was set.
            let _ = lacp.set_system(address, priority, now);
        }
    }

    fn set_active_slave(&mut self, name: &str, now: Instant) -> Result<(), BondError> {
        if name.is_empty() {
            self.change_active(None, now);
            self.select_active(now);
            return Ok(());
        }
        let missing = || OptionError::NoMember { option: "active_slave", member: owned(name) };
        let index = self.index_by_name(name).ok_or_else(missing)?;
        if self.current == Some(self.members[index].id) {
            return Ok(());
        }
        if self.members[index].link != MemberLink::Up || !self.members[index].is_up() {
            return Err(OptionError::Invalid {
                option: "active_slave",
                value: owned(name),
                allowed: "a member whose link is up".to_string(),
            }
            .into());
        }
        self.change_active(Some(index), now);
        Ok(())
    }

    /// What reading an option from sysfs gives; `None` if there is no such option.
    pub fn option(&self, name: &str) -> Option<String> {
        match name {
            "active_slave" => Some(owned(self.active_member().filter(|_| self.mode().uses_primary()).unwrap_or(""))),
            "primary" => {
                Some(owned(self.primary.and_then(|id| self.index_of(id)).map_or("", |i| &self.members[i].name)))
            }
            "mii_status" => Some(owned(if self.carrier { "up" } else { "down" })),
            "slaves" => Some(self.joined(|m| m.name.clone())),
            "queue_id" => Some(self.joined(|m| format!("{}:{}", m.name, m.queue_id))),
            "ad_aggregator" | "ad_num_ports" | "ad_actor_key" | "ad_partner_key" | "ad_partner_mac" => {
                let Some(lacp) = &self.lacp else { return Some(String::new()) };
                let Some(active) = lacp.active_aggregator() else { return Some(owned("0")) };
                Some(match name {
                    "ad_aggregator" => active.aggregator_id.to_string(),
                    "ad_num_ports" => active.ports.to_string(),
                    "ad_actor_key" => active.actor_key.to_string(),
                    "ad_partner_key" => active.partner_key.to_string(),
                    _ => active.partner_system.to_string(),
                })
            }
            _ => self.options.get(name),
        }
    }

    fn joined(&self, text: impl Fn(&super::Slave<D>) -> String) -> String {
        let mut all = String::new();
        for m in &self.members {
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(&text(m));
        }
        all
    }

    /// Preference of a member among those that can be active (`ip link set … type bond_slave prio`); more is better, 0 by
    /// default.
    ///
    /// # Errors
    /// [`BondError::NoSuchMember`]; [`OptionError::Mode`] if the bond has no active member.
    pub fn set_member_priority(&mut self, name: &str, priority: i32, now: Instant) -> Result<(), BondError> {
        let index = self.index_by_name(name).ok_or_else(|| BondError::NoSuchMember { name: owned(name) })?;
        if !self.mode().uses_primary() {
            return Err(OptionError::Mode { option: "prio", mode: self.mode() }.into());
        }
        self.members[index].priority = priority;
        self.select_active(now);
        Ok(())
    }

    /// Binds a transmit queue of the bond to a member: what is sent on it goes there as long as the member can send. 0 is
    /// none.
    ///
    /// # Errors
    /// [`BondError::NoSuchMember`], [`BondError::QueueId`].
    pub fn set_member_queue(&mut self, name: &str, queue: u16) -> Result<(), BondError> {
        let index = self.index_by_name(name).ok_or_else(|| BondError::NoSuchMember { name: owned(name) })?;
        let taken = self.members.iter().enumerate().any(|(i, m)| i != index && queue != 0 && m.queue_id == queue);
        if taken || queue != 0 && queue >= self.capabilities.transmit_queues {
            return Err(BondError::QueueId { member: owned(name), queue });
        }
        self.members[index].queue_id = queue;
        Ok(())
    }

    /// LACP priority of a member's port (`actor_port_prio`), 255 by default.
    ///
    /// # Errors
    /// [`BondError::NoSuchMember`]; [`OptionError::Mode`] unless the mode is 802.3ad.
    pub fn set_member_port_priority(&mut self, name: &str, priority: u16, now: Instant) -> Result<(), BondError> {
        let index = self.index_by_name(name).ok_or_else(|| BondError::NoSuchMember { name: owned(name) })?;
        let (Some(lacp), Some(port)) = (&mut self.lacp, self.members[index].port) else {
            return Err(OptionError::Mode { option: "actor_port_prio", mode: self.mode() }.into());
        };
        lacp.set_port_priority(port, priority, now)?;
        self.lacp_output(now);
        Ok(())
    }

    /// Sets the bond's address (Linux: `bond_set_mac_address`): on every member, or on none if one does not take it.
    ///
    /// # Errors
    /// [`BondError::Address`] with the member that did not take it.
    pub fn set_address(&mut self, mac: MacAddress, now: Instant) -> Result<(), BondError> {
        // The bond's address follows its members'.
        if self.keeps_addresses() {
            return Ok(());
        }
        if self.mode() == Mode::BalanceAlb {
            self.adaptive_mac(mac, now);
        } else {
            for index in 0..self.members.len() {
                let old = self.members[index].driver.capabilities().mac;
                if old == mac {
                    continue;
                }
                if let Err(error) = self.members[index].driver.set_mac(mac) {
                    let member = self.members[index].name.clone();
                    let before = self.mac;
                    for m in &mut self.members[..index] {
                        let _ = m.driver.set_mac(before);
                    }
                    return Err(BondError::Address { member, mac, error });
                }
            }
            if self.mode() != Mode::BalanceTlb {
                for m in &mut self.members {
                    m.address = mac;
                }
            }
        }
        self.adopt_mac(mac);
        self.mac_assigned = true;
        self.lacp_system_changed(now);
        self.lacp_output(now);
        Ok(())
    }
}
