//! What can be wrong with a call to a bond.

use crate::lacp::LacpError;
use crate::options::OptionError;
use alloc::string::String;
use netcore::{DriverError, MacAddress};

/// Why a bond refused a call; nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BondError {
    /// An option.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The bond has a member of this name.
    #[error("the bond has a member {name} already")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The bond has no member of this name.
    #[error("the bond has no member {name}")]
    NoSuchMember {
        /// The name.
        name: String,
    },
    /// A bond has 256 members at most.
    #[error("the bond has {members} members, no more are allowed")]
    TooManyMembers {
        /// Members it has.
        members: usize,
    },
    /// A member could not be given the bond's MTU.
    #[error("member {member} cannot have the bond's MTU of {mtu}: {error}")]
    Mtu {
        /// The member.
        member: String,
        /// Bytes after the link header.
        mtu: usize,
        /// What its driver said.
        error: DriverError,
    },
    /// A member could not be given an address.
    #[error("member {member} cannot have the address {mac}: {error}")]
    Address {
        /// The member.
        member: String,
        /// The address.
        mac: MacAddress,
        /// What its driver said.
        error: DriverError,
    },
    /// A member could not be started or given filters.
    #[error("member {member}: {error}")]
    Driver {
        /// The member.
        member: String,
        /// What its driver said.
        error: DriverError,
    },
    /// Two numbers of transmit queues that one member is chosen by.
    #[error("queue id {queue} is not allowed for {member}: queues of the bond, no two members the same, or 0 for none")]
    QueueId {
        /// The member.
        member: String,
        /// The number asked for.
        queue: u16,
    },
    /// LACP.
    #[error(transparent)]
    Lacp(#[from] LacpError),
}

/// A driver that did not become a member; it is as it was.
#[derive(Debug)]
pub struct NotAdded<D> {
    /// The driver.
    pub driver: D,
    /// Why it was not taken.
    pub error: BondError,
}
