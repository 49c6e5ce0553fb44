//! The options of Linux's bonding driver: names, values, ranges, defaults, and when they can be set (`bond_opts`, 6.12 to 6.18).

use super::Mode;
use super::values::{ArpAllTargets, ArpValidate, FailOverMac, PrimaryReselect, XmitHashPolicy};

/// What an option can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// One of these names, or its number.
    Names(&'static [(&'static str, u32)]),
    /// On or off, 1 or 0.
    Switch,
    /// A number; `off` is one name of 0 where `has_off`, `maxval` one of the largest.
    Number {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// True if 0 is called `off`.
        has_off: bool,
    },
    /// Text of the option's own kind.
    Text,
}

/// When an option can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Conditions {
    /// Modes that have the option, one bit each by number.
    pub modes: u8,
    /// Only while the bond is down.
    pub bond_down: bool,
    /// Only while the bond has no members.
    pub no_members: bool,
}

impl Conditions {
    /// True if a bond of this mode has the option.
    pub const fn has(self, mode: Mode) -> bool {
        self.modes & 1 << mode.number() != 0
    }
}

/// One option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionDescription {
    /// Its name in sysfs.
    pub name: &'static str,
    /// Other names: in `ip link`, or of old.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub description: &'static str,
    /// What it can be.
    pub values: Values,
    /// What it is unless set.
    pub default: &'static str,
    /// When it can be set.
    pub conditions: Conditions,
}

const ALL: u8 = 0x7f;
const ROUND_ROBIN: u8 = 1;
const AD: u8 = 1 << 4;
const ADAPTIVE: u8 = 3 << 5;
const PRIMARY: u8 = 1 << 1 | ADAPTIVE;
const ARP: u8 = ALL & !AD & !ADAPTIVE;
const INT_MAX: u32 = i32::MAX as u32;
const TICKS: Values = Values::Number { min: 0, max: INT_MAX, has_off: true };

const fn any(modes: u8) -> Conditions {
    Conditions { modes, bond_down: false, no_members: false }
}

const fn down(modes: u8) -> Conditions {
    Conditions { modes, bond_down: true, no_members: false }
}

const fn option(
    name: &'static str,
    values: Values,
    default: &'static str,
    conditions: Conditions,
    description: &'static str,
) -> OptionDescription {
    OptionDescription { name, aliases: &[], description, values, default, conditions }
}

const fn alias(aliases: &'static [&'static str], of: OptionDescription) -> OptionDescription {
    OptionDescription { aliases, ..of }
}

/// Every option of a bond, in the order in which `ip -d link show` prints those it prints.
pub const OPTIONS: &[OptionDescription] = &[
    option(
        "mode",
        Values::Names(Mode::NAMES),
        "balance-rr",
        Conditions { modes: ALL, bond_down: true, no_members: true },
        "how the members are used",
    ),
    option("active_slave", Values::Text, "", any(PRIMARY), "the member that is active now"),
    option("miimon", TICKS, "0", any(ALL), "interval of the link check, milliseconds; 0 is none"),
    option(
        "updelay",
        TICKS,
        "0",
        any(ALL),
        "a link is up for this long before it is used, milliseconds, a multiple of miimon",
    ),
    option(
        "downdelay",
        TICKS,
        "0",
        any(ALL),
        "a link is down for this long before it is given up, milliseconds, a multiple of miimon",
    ),
    alias(
        &["peer_notify_delay"],
        option(
            "peer_notif_delay",
            Values::Number { min: 0, max: 300_000, has_off: true },
            "0",
            any(ALL),
            "time between two peer notifications, milliseconds, a multiple of miimon",
        ),
    ),
    option(
        "use_carrier",
        Values::Switch,
        "1",
        any(ALL),
        "the carrier tells of the link (there is no other way here; kept for its users)",
    ),
    option("arp_interval", TICKS, "0", any(ARP), "interval of ARP monitoring, milliseconds; 0 is none"),
    alias(
        &["missed_max"],
        option(
            "arp_missed_max",
            Values::Number { min: 1, max: 255, has_off: false },
            "2",
            any(ARP),
            "intervals without an answer after which a link is down",
        ),
    ),
    option(
        "arp_ip_target",
        Values::Text,
        "",
        any(ALL),
        "IPv4 addresses that are asked, 16 at most: +a.b.c.d adds, -a.b.c.d removes",
    ),
    option(
        "arp_validate",
        Values::Names(ArpValidate::NAMES),
        "none",
        any(ARP),
        "which ARP packets count as a sign of life",
    ),
    option("arp_all_targets", Values::Names(ArpAllTargets::NAMES), "any", any(ALL), "one target must answer, or all"),
    option("primary", Values::Text, "", any(PRIMARY), "name of the member that is preferred"),
    option(
        "primary_reselect",
        Values::Names(PrimaryReselect::NAMES),
        "always",
        any(ALL),
        "when the primary takes over again",
    ),
    option(
        "fail_over_mac",
        Values::Names(FailOverMac::NAMES),
        "none",
        Conditions { modes: ALL, bond_down: false, no_members: true },
        "which MAC addresses the members of an active-backup bond have",
    ),
    option(
        "xmit_hash_policy",
        Values::Names(XmitHashPolicy::NAMES),
        "layer2",
        any(ALL),
        "what the hash of balance-xor, 802.3ad and balance-tlb is made of",
    ),
    option(
        "resend_igmp",
        Values::Number { min: 0, max: 255, has_off: true },
        "1",
        any(ALL),
        "IGMP reports after a failover, 200 ms apart",
    ),
    alias(
        &["num_unsol_na"],
        option(
            "num_grat_arp",
            Values::Number { min: 0, max: 255, has_off: true },
            "1",
            any(ALL),
            "peer notifications after a failover",
        ),
    ),
    option("all_slaves_active", Values::Switch, "0", any(ALL), "frames that come in on inactive members are taken too"),
    option("min_links", TICKS, "0", any(ALL), "enabled ports that an 802.3ad aggregator needs for carrier; 0 means 1"),
    option(
        "lp_interval",
        Values::Number { min: 1, max: INT_MAX, has_off: false },
        "1",
        any(ALL),
        "seconds between learning packets of balance-tlb and balance-alb",
    ),
    option(
        "packets_per_slave",
        Values::Number { min: 0, max: 65535, has_off: false },
        "1",
        any(ROUND_ROBIN),
        "packets on a member before the next one's turn; 0 chooses at random",
    ),
    option("lacp_active", Values::Switch, "on", down(AD), "LACPDUs are sent unasked"),
    option(
        "lacp_rate",
        Values::Names(&[("slow", 0), ("fast", 1)]),
        "slow",
        down(AD),
        "how often the partner shall send LACPDUs",
    ),
    option(
        "ad_select",
        Values::Names(&[("stable", 0), ("bandwidth", 1), ("count", 2), ("actor_port_prio", 3), ("prio", 3)]),
        "stable",
        down(ALL),
        "how the active aggregator is chosen",
    ),
    option(
        "ad_actor_sys_prio",
        Values::Number { min: 1, max: 65535, has_off: false },
        "65535",
        any(AD),
        "LACP system priority",
    ),
    option(
        "ad_user_port_key",
        Values::Number { min: 0, max: 1023, has_off: false },
        "0",
        down(AD),
        "upper ten bits of the port key",
    ),
    option("ad_actor_system", Values::Text, "00:00:00:00:00:00", any(AD), "LACP system address; all zeros: the bond's"),
    option("coupled_control", Values::Switch, "on", down(AD), "collecting and distributing are switched together"),
    option(
        "tlb_dynamic_lb",
        Values::Switch,
        "1",
        down(ADAPTIVE),
        "balance-tlb moves flows by load; if off, the hash alone chooses",
    ),
];

/// The option of this name, an alias included.
pub(super) fn find(name: &str) -> Option<&'static OptionDescription> {
    OPTIONS.iter().find(|option| option.name == name || option.aliases.contains(&name))
}
