//! Which member carries a packet.
//!
//! [`RoundRobin`] and [`Hash`](struct@Hash) are what Linux has; [`FnPolicy`] makes a policy of a closure, and any [`XmitPolicy`] can be given
//! to a bond ([`Bond::set_policy`](crate::Bond::set_policy)).

mod hash;
mod round_robin;
#[cfg(test)]
mod tests;

pub use hash::{Era, Failover, Hash};
pub use round_robin::RoundRobin;

use alloc::boxed::Box;
use core::fmt;
use netcore::{Member, Packet, XmitPolicy};

/// A policy made of a closure.
///
/// ```
/// use netcore_bond::policy::FnPolicy;
///
/// // Short packets on the first member that is up, long ones on the last.
/// let by_size = FnPolicy::new("by-size", |packet, members| match packet.len() {
///     0..256 => members.iter().position(|m| m.active),
///     _ => members.iter().rposition(|m| m.active),
/// });
/// # let _ = by_size;
/// ```
pub struct FnPolicy<F> {
    name: &'static str,
    choose: F,
}

impl<F: FnMut(&Packet, &[Member]) -> Option<usize> + Send> FnPolicy<F> {
    /// A policy of this name that asks `choose` for an index into the members.
    pub const fn new(name: &'static str, choose: F) -> Self {
        Self { name, choose }
    }
}

impl<F> fmt::Debug for FnPolicy<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnPolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F: FnMut(&Packet, &[Member]) -> Option<usize> + Send> XmitPolicy for FnPolicy<F> {
    fn select(&mut self, packet: &Packet, members: &[Member]) -> Option<usize> {
        (self.choose)(packet, members)
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

/// The policy of a bond: the built-in ones without a virtual call.
pub(crate) enum Policy {
    RoundRobin(RoundRobin),
    Hash(Hash),
    User(Box<dyn XmitPolicy>),
}

impl Policy {
    /// Index into `members` of an active one.
    #[inline]
    pub(crate) fn select(&mut self, packet: &Packet, members: &[Member]) -> Option<usize> {
        match self {
            Self::RoundRobin(policy) => policy.select(packet, members),
            Self::Hash(policy) => policy.select(packet, members),
            // A user's answer is not trusted with a member that must not send.
            Self::User(policy) => {
                policy.select(packet, members).filter(|&i| members.get(i).is_some_and(|member| member.active))
            }
        }
    }

    /// Takes the last choice back: the packet stays with the caller.
    pub(crate) fn undo(&mut self) {
        if let Self::RoundRobin(policy) = self {
            policy.undo();
        }
    }
}

/// The first active member from `start` on, and around.
#[inline]
fn walk(members: &[Member], start: usize) -> Option<usize> {
    let active = |range: &[Member]| range.iter().position(|member| member.active);
    let (before, after) = members.split_at_checked(start)?;
    active(after).map(|i| start + i).or_else(|| active(before))
}
