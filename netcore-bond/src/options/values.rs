//! Options that have named values.

use super::OptionError;
use core::fmt;
use core::str::FromStr;

macro_rules! named {
    ($(#[$meta:meta])* $name:ident, $option:literal { $($(#[$doc:meta])* $variant:ident = $number:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All values, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            pub(super) const NAMES: &'static [(&'static str, u32)] = &[$(($text, $number)),*];

            /// The name in sysfs and in `ip link`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The number in sysfs, netlink and module parameters.
            pub const fn number(self) -> u32 {
                match self { $(Self::$variant => $number),* }
            }

            pub(super) fn from_number(number: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.number() == number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = OptionError;

            /// By name or number.
            fn from_str(text: &str) -> Result<Self, OptionError> {
                let number = text.parse().ok();
                let found = Self::ALL.iter().find(|v| v.name() == text || Some(v.number()) == number);
                found.copied().ok_or_else(|| OptionError::invalid($option, text))
            }
        }
    };
}

named!(
    /// How a bond uses its members (`mode`).
    Mode, "mode" {
        /// Each packet on the next member.
        BalanceRr = 0 "balance-rr",
        /// One member carries all, another takes over when it fails.
        ActiveBackup = 1 "active-backup",
        /// A hash of the packet chooses.
        BalanceXor = 2 "balance-xor",
        /// Every packet on every member.
        Broadcast = 3 "broadcast",
        /// Link aggregation with LACP.
        Ieee8023ad = 4 "802.3ad",
        /// Transmit by load, receive on the active member.
        BalanceTlb = 5 "balance-tlb",
        /// The same, and receive spread by what ARP tells the peers.
        BalanceAlb = 6 "balance-alb",
    }
);

impl Mode {
    /// True if ARP monitoring can watch the links (Linux: `bond_mode_uses_arp`).
    pub const fn uses_arp(self) -> bool {
        !matches!(self, Self::Ieee8023ad | Self::BalanceTlb | Self::BalanceAlb)
    }

    /// True if one member is special and may be given preference (Linux: `bond_mode_uses_primary`).
    pub const fn uses_primary(self) -> bool {
        matches!(self, Self::ActiveBackup | Self::BalanceTlb | Self::BalanceAlb)
    }

    /// True for balance-tlb and balance-alb.
    pub const fn is_adaptive(self) -> bool {
        matches!(self, Self::BalanceTlb | Self::BalanceAlb)
    }
}

named!(
    /// What a hash is made of (`xmit_hash_policy`).
    XmitHashPolicy, "xmit_hash_policy" {
        /// MAC addresses and EtherType.
        Layer2 = 0 "layer2",
        /// IP addresses and ports.
        Layer34 = 1 "layer3+4",
        /// MAC and IP addresses.
        Layer23 = 2 "layer2+3",
        /// As `layer2+3`, of the innermost packet.
        Encap23 = 3 "encap2+3",
        /// As `layer3+4`, of the innermost packet.
        Encap34 = 4 "encap3+4",
        /// VLAN tag and source MAC address.
        VlanSrcMac = 5 "vlan+srcmac",
    }
);

named!(
    /// Whose ARP traffic counts as a sign of life (`arp_validate`).
    ArpValidate, "arp_validate" {
        /// Any traffic counts.
        None = 0 "none",
        /// Replies are checked on the active member.
        Active = 1 "active",
        /// Requests are checked on backup members.
        Backup = 2 "backup",
        /// Both.
        All = 3 "all",
        /// Only ARP counts, unchecked.
        Filter = 4 "filter",
        /// Only ARP counts; checked on the active member.
        FilterActive = 5 "filter_active",
        /// Only ARP counts; checked on backup members.
        FilterBackup = 6 "filter_backup",
    }
);

impl ArpValidate {
    /// True if members in this role are checked (Linux: `slave_do_arp_validate`).
    pub const fn checks(self, active: bool) -> bool {
        self.number() & if active { 1 } else { 2 } != 0
    }

    /// True if only ARP counts (Linux: `slave_do_arp_validate_only`).
    pub const fn only_arp(self) -> bool {
        self.number() & 4 != 0
    }
}

named!(
    /// How many ARP targets must be heard (`arp_all_targets`).
    ArpAllTargets, "arp_all_targets" {
        /// One of them.
        Any = 0 "any",
        /// Every one.
        All = 1 "all",
    }
);

named!(
    /// Which MAC addresses members of an active-backup bond have (`fail_over_mac`).
    FailOverMac, "fail_over_mac" {
        /// All have the bond's.
        None = 0 "none",
        /// Each keeps its own; the bond has that of the active member.
        Active = 1 "active",
        /// The active member has the bond's, the others keep their own.
        Follow = 2 "follow",
    }
);

named!(
    /// When the primary member takes over again (`primary_reselect`).
    PrimaryReselect, "primary_reselect" {
        /// As soon as it is up.
        Always = 0 "always",
        /// If it is up and faster than the active one.
        Better = 1 "better",
        /// Only if the active one fails.
        Failure = 2 "failure",
    }
);
