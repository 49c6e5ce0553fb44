//! The options of a bond, with the names, values, ranges, defaults and errors of Linux's bonding driver.
//!
//! [`Options::set`] takes what is written to sysfs or given to `ip link`, [`Options::get`] answers as sysfs does, and
//! `Display` prints as `ip -d link show` does. A recorded list of what a kernel answered to hundreds of settings is compared
//! with both.
//!
//! ```
//! use netcore_bond::options::{Mode, Options};
//!
//! let options: Options = "mode 802.3ad lacp_rate fast xmit_hash_policy layer3+4".parse()?;
//! assert_eq!(options.mode(), Mode::Ieee8023ad);
//! assert_eq!(options.get("lacp_rate").unwrap(), "fast 1");
//! assert_eq!(options.get("miimon").unwrap(), "100");
//! # Ok::<(), netcore_bond::options::OptionError>(())
//! ```

mod error;
mod set;
mod show;
mod table;
#[cfg(test)]
mod tests;
mod values;

pub use crate::lacp::{AdSelect, LacpRate};
pub use error::OptionError;
pub use set::BondState;
pub use table::{Conditions, OPTIONS, OptionDescription, Values};
pub use values::{ArpAllTargets, ArpValidate, FailOverMac, Mode, PrimaryReselect, XmitHashPolicy};

use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use netcore::MacAddress;

/// Most ARP targets of a bond (Linux: `BOND_MAX_ARP_TARGETS`).
pub const MAX_ARP_TARGETS: usize = 16;
/// The link check that modes without ARP monitoring always have, milliseconds (Linux: `BOND_DEFAULT_MIIMON`).
pub const DEFAULT_MIIMON: u32 = 100;

/// All options of a bond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub(crate) mode: Mode,
    /// Milliseconds.
    pub(crate) miimon: u32,
    /// These three in intervals of `miimon`.
    pub(crate) updelay: u32,
    pub(crate) downdelay: u32,
    pub(crate) peer_notif_delay: u32,
    pub(crate) use_carrier: bool,
    /// Milliseconds.
    pub(crate) arp_interval: u32,
    pub(crate) missed_max: u32,
    pub(crate) arp_targets: Vec<Ipv4Addr>,
    pub(crate) arp_validate: ArpValidate,
    pub(crate) arp_all_targets: ArpAllTargets,
    pub(crate) primary: String,
    pub(crate) primary_reselect: PrimaryReselect,
    pub(crate) fail_over_mac: FailOverMac,
    pub(crate) xmit_hash_policy: XmitHashPolicy,
    pub(crate) resend_igmp: u32,
    pub(crate) num_peer_notif: u32,
    pub(crate) all_slaves_active: bool,
    pub(crate) min_links: u32,
    /// Seconds.
    pub(crate) lp_interval: u32,
    pub(crate) packets_per_slave: u32,
    pub(crate) lacp_active: bool,
    pub(crate) lacp_rate: LacpRate,
    pub(crate) ad_select: AdSelect,
    pub(crate) ad_actor_sys_prio: u16,
    pub(crate) ad_user_port_key: u16,
    pub(crate) ad_actor_system: MacAddress,
    pub(crate) coupled_control: bool,
    pub(crate) tlb_dynamic_lb: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::BalanceRr,
            miimon: 0,
            updelay: 0,
            downdelay: 0,
            peer_notif_delay: 0,
            use_carrier: true,
            arp_interval: 0,
            missed_max: 2,
            arp_targets: Vec::new(),
            arp_validate: ArpValidate::None,
            arp_all_targets: ArpAllTargets::Any,
            primary: String::new(),
            primary_reselect: PrimaryReselect::Always,
            fail_over_mac: FailOverMac::None,
            xmit_hash_policy: XmitHashPolicy::Layer2,
            resend_igmp: 1,
            num_peer_notif: 1,
            all_slaves_active: false,
            min_links: 0,
            lp_interval: 1,
            packets_per_slave: 1,
            lacp_active: true,
            lacp_rate: LacpRate::Slow,
            ad_select: AdSelect::Stable,
            ad_actor_sys_prio: 65535,
            ad_user_port_key: 0,
            ad_actor_system: MacAddress([0; 6]),
            coupled_control: true,
            tlb_dynamic_lb: true,
        }
    }
}

impl Options {
    /// The defaults of a bond of this mode (`ip link add … type bond mode …`).
    pub fn new(mode: Mode) -> Self {
        let mut options = Self::default();
        options.change_mode(mode);
        options
    }

    /// How the members are used.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Interval of the link check, milliseconds; 0 is none.
    pub const fn miimon(&self) -> u32 {
        self.miimon
    }

    /// How long a link is up before it is used, milliseconds.
    pub const fn updelay(&self) -> u32 {
        self.updelay.saturating_mul(self.miimon)
    }

    /// How long a link is down before it is given up, milliseconds.
    pub const fn downdelay(&self) -> u32 {
        self.downdelay.saturating_mul(self.miimon)
    }

    /// Interval of ARP monitoring, milliseconds; 0 is none.
    pub const fn arp_interval(&self) -> u32 {
        self.arp_interval
    }

    /// Who is asked by ARP monitoring.
    pub fn arp_ip_targets(&self) -> &[Ipv4Addr] {
        &self.arp_targets
    }

    /// What the hash is made of.
    pub const fn xmit_hash_policy(&self) -> XmitHashPolicy {
        self.xmit_hash_policy
    }

    /// Packets on a member before the next one's turn; 0 is at random.
    pub const fn packets_per_slave(&self) -> u32 {
        self.packets_per_slave
    }

    /// What a change of mode brings with it (Linux: `bond_option_mode_set`).
    pub(crate) fn change_mode(&mut self, mode: Mode) {
        if !mode.uses_arp() {
            self.arp_interval = 0;
            if self.miimon == 0 {
                self.miimon = DEFAULT_MIIMON;
            }
        }
        if mode == Mode::BalanceAlb {
            self.tlb_dynamic_lb = true;
        }
        self.arp_validate = ArpValidate::None;
        self.mode = mode;
    }
}
