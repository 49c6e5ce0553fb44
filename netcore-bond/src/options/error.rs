//! What can be wrong with an option.

use super::Mode;
use super::table::{Values, find};
use alloc::string::{String, ToString};

/// Why an option was not set; nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// There is no such option.
    #[error("there is no option {name}")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The option cannot have this value.
    #[error("option {option}: {value:?} is not allowed: {allowed}")]
    Invalid {
        /// The option.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What can be.
        allowed: String,
    },
    /// Bonds of this mode do not have the option.
    #[error("option {option} is not supported in mode {mode}")]
    Mode {
        /// The option.
        option: &'static str,
        /// The bond's mode.
        mode: Mode,
    },
    /// The option can be set only while the bond has no members.
    #[error("option {option} cannot be set while the bond has members")]
    HasMembers {
        /// The option.
        option: &'static str,
    },
    /// The option can be set only while the bond is down.
    #[error("option {option} cannot be set while the bond is up")]
    IsUp {
        /// The option.
        option: &'static str,
    },
    /// A delay is counted in intervals of the MII monitor, which is off.
    #[error("option {option} cannot be set while miimon is 0")]
    NeedsMii {
        /// The option.
        option: &'static str,
    },
    /// A value that adds or removes something starts with + or -.
    #[error("option {option}: {value:?} must start with + to add or - to remove")]
    NoCommand {
        /// The option.
        option: &'static str,
        /// What was asked for.
        value: String,
    },
    /// The member is not there.
    #[error("option {option}: the bond has no member {member}")]
    NoMember {
        /// The option.
        option: &'static str,
        /// The member's name.
        member: String,
    },
}

impl OptionError {
    pub(super) fn invalid(option: &'static str, value: &str) -> Self {
        let allowed = match find(option).map(|description| description.values) {
            Some(Values::Names(names)) => {
                let mut text = String::new();
                for (name, number) in names {
                    if !text.is_empty() {
                        text.push_str(", ");
                    }
                    text.push_str(name);
                    text.push_str(" (");
                    text.push_str(&number.to_string());
                    text.push(')');
                }
                text
            }
            Some(Values::Switch) => "off (0), on (1)".to_string(),
            Some(Values::Number { min, max, .. }) => alloc::format!("{min} to {max}"),
            _ => match option {
                "arp_ip_target" => "16 IPv4 addresses, none of them twice, 0.0.0.0 or 255.255.255.255".to_string(),
                "ad_actor_system" => "a station address, or all zeros for the bond's".to_string(),
                _ => "the name of a member".to_string(),
            },
        };
        Self::Invalid { option, value: value.to_string(), allowed }
    }

    /// The name of the error number that writing to sysfs gives.
    pub const fn errno(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "ENOENT",
            Self::Invalid { .. } => "EINVAL",
            Self::Mode { .. } => "EACCES",
            Self::HasMembers { .. } => "ENOTEMPTY",
            Self::IsUp { .. } => "EBUSY",
            Self::NeedsMii { .. } | Self::NoCommand { .. } => "EPERM",
            Self::NoMember { .. } => "ENODEV",
        }
    }
}
