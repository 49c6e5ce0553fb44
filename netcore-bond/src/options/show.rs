//! Options as sysfs and `ip -d link show` print them.

use super::table::find;
use super::{Mode, Options};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

impl Options {
    /// What reading the option from sysfs gives, without the line end: named values with their number behind the name.
    /// `None` if there is no such option, or one that a [`Bond`](crate::Bond) alone can tell.
    pub fn get(&self, name: &str) -> Option<String> {
        let name = find(name)?.name;
        let named = |name: &str, number: u32| format!("{name} {number}");
        let switch = |on: bool| u32::from(on).to_string();
        let ad = self.mode == Mode::Ieee8023ad;
        Some(match name {
            "mode" => named(self.mode.name(), self.mode.number()),
            "miimon" => self.miimon.to_string(),
            "updelay" => self.updelay().to_string(),
            "downdelay" => self.downdelay().to_string(),
            "peer_notif_delay" => self.peer_notif_delay.saturating_mul(self.miimon).to_string(),
            "use_carrier" => switch(self.use_carrier),
            "arp_interval" => self.arp_interval.to_string(),
            "arp_missed_max" => self.missed_max.to_string(),
            "arp_ip_target" => self.targets(' '),
            "arp_validate" => named(self.arp_validate.name(), self.arp_validate.number()),
            "arp_all_targets" => named(self.arp_all_targets.name(), self.arp_all_targets.number()),
            "primary" => self.primary.clone(),
            "primary_reselect" => named(self.primary_reselect.name(), self.primary_reselect.number()),
            "fail_over_mac" => named(self.fail_over_mac.name(), self.fail_over_mac.number()),
            "xmit_hash_policy" => named(self.xmit_hash_policy.name(), self.xmit_hash_policy.number()),
            "resend_igmp" => self.resend_igmp.to_string(),
            "num_grat_arp" => self.num_peer_notif.to_string(),
            "all_slaves_active" => switch(self.all_slaves_active),
            "min_links" => self.min_links.to_string(),
            "lp_interval" => self.lp_interval.to_string(),
            "packets_per_slave" => self.packets_per_slave.to_string(),
            "lacp_active" => if self.lacp_active { "on 1" } else { "off 0" }.to_string(),
            "lacp_rate" => if self.lacp_rate == super::LacpRate::Fast { "fast 1" } else { "slow 0" }.to_string(),
            "ad_select" => self.ad_select_text(true),
            "coupled_control" => if self.coupled_control { "on 1" } else { "off 0" }.to_string(),
            "tlb_dynamic_lb" => switch(self.tlb_dynamic_lb),
            "ad_actor_sys_prio" if ad => self.ad_actor_sys_prio.to_string(),
            "ad_user_port_key" if ad => self.ad_user_port_key.to_string(),
            "ad_actor_system" if ad => self.ad_actor_system.to_string(),
            "ad_actor_sys_prio" | "ad_user_port_key" | "ad_actor_system" => String::new(),
            _ => return None,
        })
    }

    fn ad_select_text(&self, number: bool) -> String {
        use super::AdSelect as A;
        let (name, n) = match self.ad_select {
            A::Stable => ("stable", 0),
            A::Bandwidth => ("bandwidth", 1),
            A::Count => ("count", 2),
            A::Prio => ("actor_port_prio", 3),
        };
        if number { format!("{name} {n}") } else { name.to_string() }
    }

    fn targets(&self, separator: char) -> String {
        let mut text = String::new();
        for target in &self.arp_targets {
            if !text.is_empty() {
                text.push(separator);
            }
            text.push_str(&target.to_string());
        }
        text
    }
}

impl fmt::Display for Options {
    /// As `ip -d link show` prints the options of a bond without members.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mode {} miimon {} updelay {} downdelay {}",
            self.mode,
            self.miimon,
            self.updelay(),
            self.downdelay()
        )?;
        let notify = self.peer_notif_delay.saturating_mul(self.miimon);
        write!(f, " peer_notify_delay {notify} use_carrier {}", u32::from(self.use_carrier))?;
        write!(f, " arp_interval {} arp_missed_max {}", self.arp_interval, self.missed_max)?;
        if !self.arp_targets.is_empty() {
            write!(f, " arp_ip_target {}", self.targets(','))?;
        }
        write!(f, " arp_validate {} arp_all_targets {}", self.arp_validate, self.arp_all_targets)?;
        if !self.primary.is_empty() {
            write!(f, " primary {}", self.primary)?;
        }
        write!(f, " primary_reselect {} fail_over_mac {}", self.primary_reselect, self.fail_over_mac)?;
        write!(f, " xmit_hash_policy {} resend_igmp {}", self.xmit_hash_policy, self.resend_igmp)?;
        write!(f, " num_grat_arp {} all_slaves_active {}", self.num_peer_notif, u32::from(self.all_slaves_active))?;
        write!(f, " min_links {} lp_interval {}", self.min_links, self.lp_interval)?;
        write!(f, " packets_per_slave {}", self.packets_per_slave)?;
        write!(f, " lacp_active {}", if self.lacp_active { "on" } else { "off" })?;
        write!(f, " lacp_rate {}", if self.lacp_rate == super::LacpRate::Fast { "fast" } else { "slow" })?;
        write!(f, " ad_select {}", self.ad_select_text(false))?;
        if self.mode == Mode::Ieee8023ad {
            write!(f, " ad_actor_sys_prio {}", self.ad_actor_sys_prio)?;
            write!(f, " ad_user_port_key {} ad_actor_system {}", self.ad_user_port_key, self.ad_actor_system)?;
        }
        write!(f, " tlb_dynamic_lb {}", u32::from(self.tlb_dynamic_lb))
    }
}
