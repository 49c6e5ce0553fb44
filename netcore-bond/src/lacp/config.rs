//! Options, with the names, ranges and defaults of Linux's bonding driver.

use super::{LacpError, Timing};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use netcore::MacAddress;

/// How often the partner is asked to send, and how long it may be silent (`lacp_rate`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum LacpRate {
    /// Every 30 seconds; silent for 90 is too long.
    #[default]
    Slow,
    /// Every second; silent for 3 is too long.
    Fast,
}

/// Which aggregator is the active one, and when that is thought over (`ad_select`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum AdSelect {
    /// Largest bandwidth, but only if the active one has no enabled port left (or no partner where another has).
    #[default]
    Stable,
    /// Largest bandwidth, at every change of links or ports.
    Bandwidth,
    /// Most ports, at every change; then bandwidth.
    Count,
    /// Largest sum of port priorities, at every change; then ports, then bandwidth.
    Prio,
}

/// Implements name, number and parsing of an option of few values.
macro_rules! named {
    ($type:ty, $option:literal, $allowed:literal, $($value:path => $name:literal $number:literal),+) => {
        impl $type {
            /// The name that Linux prints.
            pub const fn name(self) -> &'static str {
                match self { $($value => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = LacpError;

            /// Takes the name or the number, as sysfs does.
            fn from_str(text: &str) -> Result<Self, LacpError> {
                match text {
                    $($name | $number => Ok($value),)+
                    _ => Err(LacpError::NotAnOption { option: $option, allowed: $allowed }),
                }
            }
        }
    };
}

named!(LacpRate, "lacp_rate", "slow (0), fast (1)", Self::Slow => "slow" "0", Self::Fast => "fast" "1");
named!(
    AdSelect, "ad_select", "stable (0), bandwidth (1), count (2), prio (3)",
    Self::Stable => "stable" "0", Self::Bandwidth => "bandwidth" "1", Self::Count => "count" "2", Self::Prio => "prio" "3"
);

/// Settings of the aggregation system. The default, but for the address, is what Linux starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LacpConfig {
    /// Address of the system: the bond's, or `ad_actor_system` if that is set.
    pub ad_actor_system: MacAddress,
    /// Priority of the system, 1 to 65535; lower is better.
    pub ad_actor_sys_prio: u16,
    /// User part of the port keys, 0 to 1023.
    pub ad_user_port_key: u16,
    /// How often the partner shall send.
    pub lacp_rate: LacpRate,
    /// Sends unasked. If off, LACPDUs go out only once the partner has spoken.
    pub lacp_active: bool,
    /// How the active aggregator is chosen.
    pub ad_select: AdSelect,
    /// Enabled ports that the active aggregator needs for the bond to have carrier; 0 means 1.
    pub min_links: u32,
    /// Collecting and distributing are switched together. If off, a port collects first and distributes once its
    /// partner collects (independent control, IEEE 802.1AX clause 6.4.15).
    pub coupled_control: bool,
    /// When the machines run.
    pub timing: Timing,
}

impl LacpConfig {
    /// Linux's defaults for a system with this address.
    pub const fn new(ad_actor_system: MacAddress) -> Self {
        Self {
            ad_actor_system,
            ad_actor_sys_prio: 65535,
            ad_user_port_key: 0,
            lacp_rate: LacpRate::Slow,
            lacp_active: true,
            ad_select: AdSelect::Stable,
            min_links: 0,
            coupled_control: true,
            timing: Timing::Linux { tick: Timing::TICK },
        }
    }

    /// Checks all ranges.
    ///
    /// # Errors
    /// [`LacpError::OutOfRange`] names the first option that is outside its range.
    pub fn validate(&self) -> Result<(), LacpError> {
        system(self.ad_actor_system)?;
        if self.ad_actor_sys_prio == 0 {
            return Err(LacpError::OutOfRange { option: "ad_actor_sys_prio", value: 0, allowed: "1 to 65535" });
        }
        if self.ad_user_port_key > 1023 {
            let value = u64::from(self.ad_user_port_key);
            return Err(LacpError::OutOfRange { option: "ad_user_port_key", value, allowed: "0 to 1023" });
        }
        if let Timing::Linux { tick } = self.timing
            && !(Duration::from_millis(10)..=Duration::from_secs(1)).contains(&tick)
        {
            let value = u64::try_from(tick.as_millis()).unwrap_or(u64::MAX);
            return Err(LacpError::OutOfRange { option: "tick, milliseconds,", value, allowed: "10 to 1000" });
        }
        Ok(())
    }
}

/// Checks that a system can have this address.
pub(super) fn system(mac: MacAddress) -> Result<(), LacpError> {
    if mac.is_valid_station() { Ok(()) } else { Err(LacpError::SystemAddress { address: mac }) }
}

/// Settings of one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// The port's own address, which its LACPDUs come from.
    pub address: MacAddress,
    /// Number of the port, 1 to 65535; `None`: one more than the last port's.
    pub number: Option<u16>,
    /// Priority of the port (`actor_port_prio`), 255 by default; lower is better in the standard, but see
    /// [`AdSelect::Prio`].
    pub actor_port_prio: u16,
    /// Operational key, whatever the link; `None`: by speed, duplex and user key, as [`port_key`](super::port_key) says.
    pub key: Option<u16>,
    /// Never aggregated with other ports; the Aggregation bit is then clear in what it sends.
    pub individual: bool,
}

impl PortConfig {
    /// Linux's defaults for a port with this address.
    pub const fn new(address: MacAddress) -> Self {
        Self { address, number: None, actor_port_prio: 255, key: None, individual: false }
    }
}
