//! Setting options from text.

use super::table::{Values, find};
use super::{
    AdSelect, ArpAllTargets, ArpValidate, FailOverMac, LacpRate, MAX_ARP_TARGETS, Mode, OptionDescription, OptionError,
    Options, PrimaryReselect, XmitHashPolicy,
};
use alloc::string::{String, ToString};
use core::net::Ipv4Addr;
use core::str::FromStr;
use netcore::MacAddress;

/// What of the bond decides whether an option can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BondState {
    /// The bond is up.
    pub up: bool,
    /// It has members.
    pub has_members: bool,
}

/// The value that a text stands for (Linux: `bond_opt_parse`).
fn parse(option: &'static OptionDescription, text: &str) -> Result<u32, OptionError> {
    let invalid = || OptionError::invalid(option.name, text);
    let word = text.split_ascii_whitespace().next().unwrap_or("");
    let word = if word == "default" { option.default } else { word };
    let number: Option<u32> = word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok()).flatten();
    match option.values {
        Values::Names(names) => {
            let found = names.iter().find(|(name, value)| *name == word || Some(*value) == number);
            found.map(|(_, value)| *value).ok_or_else(invalid)
        }
        Values::Switch => match word {
            "off" | "0" => Ok(0),
            "on" | "1" => Ok(1),
            _ => Err(invalid()),
        },
        Values::Number { min, max, has_off } => match word {
            "off" if has_off => Ok(0),
            "maxval" => Ok(max),
            "minval" if min > 0 => Ok(min),
            _ => number.filter(|n| (min..=max).contains(n)).ok_or_else(invalid),
        },
        Values::Text => Err(invalid()),
    }
}

impl Options {
    /// Sets an option of a bond that is down and has no members.
    ///
    /// # Errors
    /// [`OptionError`]; nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        self.set_in(name, value, BondState::default())
    }

    /// Checks whether an option can be set now (Linux: `bond_opt_check_deps`).
    pub(crate) fn check(&self, name: &str, state: BondState) -> Result<&'static OptionDescription, OptionError> {
        let option = find(name).ok_or_else(|| OptionError::Unknown { name: name.to_string() })?;
        if !option.conditions.has(self.mode) {
            return Err(OptionError::Mode { option: option.name, mode: self.mode });
        }
        if option.conditions.no_members && state.has_members {
            return Err(OptionError::HasMembers { option: option.name });
        }
        if option.conditions.bond_down && state.up {
            return Err(OptionError::IsUp { option: option.name });
        }
        Ok(option)
    }

    /// Sets an option of a bond in this state. `active_slave` concerns members: only a [`Bond`](crate::Bond) has it.
    ///
    /// # Errors
    /// [`OptionError`]; nothing is changed then.
    pub fn set_in(&mut self, name: &str, value: &str, state: BondState) -> Result<(), OptionError> {
        let option = self.check(name, state)?;
        let text = value.trim_end_matches('\n');
        match option.name {
            "primary" => {
                self.primary = text.to_string();
                return Ok(());
            }
            "arp_ip_target" => return self.set_targets(text),
            "ad_actor_system" => {
                let mac: MacAddress = text.parse().map_err(|_| OptionError::invalid("ad_actor_system", text))?;
                if mac.is_multicast() {
                    return Err(OptionError::invalid("ad_actor_system", text));
                }
                self.ad_actor_system = mac;
                return Ok(());
            }
            "active_slave" => {
                return Err(OptionError::NoMember { option: option.name, member: text.to_string() });
            }
            _ => {}
        }
        let n = parse(option, text)?;
        let invalid = || OptionError::invalid(option.name, text);
        match option.name {
            "mode" => self.change_mode(Mode::from_number(n).ok_or_else(invalid)?),
            "miimon" => {
                self.miimon = n;
                if n > 0 {
                    // One monitor at a time.
                    (self.arp_interval, self.arp_validate) =
                        if self.arp_interval > 0 { (0, ArpValidate::None) } else { (0, self.arp_validate) };
                }
            }
            "updelay" => self.updelay = self.ticks(option.name, n)?,
            "downdelay" => self.downdelay = self.ticks(option.name, n)?,
            "peer_notif_delay" => self.peer_notif_delay = self.ticks(option.name, n)?,
            "use_carrier" => self.use_carrier = n != 0,
            "arp_interval" => {
                self.arp_interval = n;
                if n > 0 {
                    self.miimon = 0;
                }
            }
            "arp_missed_max" => self.missed_max = n,
            "arp_validate" => self.arp_validate = ArpValidate::from_number(n).ok_or_else(invalid)?,
            "arp_all_targets" => self.arp_all_targets = ArpAllTargets::from_number(n).ok_or_else(invalid)?,
            "primary_reselect" => self.primary_reselect = PrimaryReselect::from_number(n).ok_or_else(invalid)?,
            "fail_over_mac" => self.fail_over_mac = FailOverMac::from_number(n).ok_or_else(invalid)?,
            "xmit_hash_policy" => self.xmit_hash_policy = XmitHashPolicy::from_number(n).ok_or_else(invalid)?,
            "resend_igmp" => self.resend_igmp = n,
            "num_grat_arp" => self.num_peer_notif = n,
            "all_slaves_active" => self.all_slaves_active = n != 0,
            "min_links" => self.min_links = n,
            "lp_interval" => self.lp_interval = n,
            "packets_per_slave" => self.packets_per_slave = n,
            "lacp_active" => self.lacp_active = n != 0,
            "lacp_rate" => self.lacp_rate = if n == 0 { LacpRate::Slow } else { LacpRate::Fast },
            "ad_select" => {
                self.ad_select = match n {
                    0 => AdSelect::Stable,
                    1 => AdSelect::Bandwidth,
                    2 => AdSelect::Count,
                    _ => AdSelect::Prio,
                }
            }
            "ad_actor_sys_prio" => self.ad_actor_sys_prio = u16::try_from(n).map_err(|_| invalid())?,
            "ad_user_port_key" => self.ad_user_port_key = u16::try_from(n).map_err(|_| invalid())?,
            "coupled_control" => self.coupled_control = n != 0,
            "tlb_dynamic_lb" => self.tlb_dynamic_lb = n != 0,
            _ => return Err(OptionError::Unknown { name: name.to_string() }),
        }
        Ok(())
    }

    /// Milliseconds in intervals of the link check, rounded down.
    fn ticks(&self, option: &'static str, ms: u32) -> Result<u32, OptionError> {
        ms.checked_div(self.miimon).ok_or(OptionError::NeedsMii { option })
    }

    /// `+a.b.c.d` adds, `-a.b.c.d` removes; a list with commas, as `ip link` has it, replaces all.
    fn set_targets(&mut self, text: &str) -> Result<(), OptionError> {
        let invalid = || OptionError::invalid("arp_ip_target", text);
        let usable = |ip: &Ipv4Addr| !ip.is_unspecified() && !ip.is_broadcast();
        let address = |text: &str| text.parse().ok().filter(usable);
        if let Some(rest) = text.strip_prefix('+') {
            let target = address(rest).ok_or_else(invalid)?;
            if self.arp_targets.contains(&target) || self.arp_targets.len() == MAX_ARP_TARGETS {
                return Err(invalid());
            }
            self.arp_targets.push(target);
            return Ok(());
        }
        if let Some(rest) = text.strip_prefix('-') {
            let target = address(rest).ok_or_else(invalid)?;
            let at = self.arp_targets.iter().position(|t| *t == target).ok_or_else(invalid)?;
            self.arp_targets.remove(at);
            return Ok(());
        }
        Err(OptionError::NoCommand { option: "arp_ip_target", value: text.to_string() })
    }
}

impl FromStr for Options {
    type Err = OptionError;

    /// The arguments of `ip link add … type bond`: names and values in turn. ARP targets are a list with commas.
    fn from_str(text: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        let mut words = text.split_ascii_whitespace();
        // The mode comes first, whatever its place, as netlink has it.
        let mut mode = text.split_ascii_whitespace();
        while let Some(word) = mode.next() {
            let value = mode.next().unwrap_or("");
            if word == "mode" {
                options.set("mode", value)?;
            }
        }
        while let Some(name) = words.next() {
            let value = words.next().unwrap_or("");
            match name {
                "mode" => {}
                "arp_ip_target" => {
                    options.arp_targets.clear();
                    for target in value.split(',').filter(|t| !t.is_empty()) {
                        let mut command = String::from("+");
                        command.push_str(target);
                        options.set(name, &command)?;
                    }
                }
                // What is so already needs no leave to be changed.
                _ if options.get(name).is_some_and(|now| !value.is_empty() && now.split(' ').any(|w| w == value)) => {}
                _ => options.set(name, value)?,
            }
        }
        Ok(options)
    }
}
