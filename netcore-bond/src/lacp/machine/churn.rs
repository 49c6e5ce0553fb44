//! Churn detection machines (IEEE 802.1AX clause 6.4.17; Linux: `ad_churn_machine`).

use crate::lacp::port::Port;
use crate::lacp::timing::{CHURN_DETECTION, Clock};
use core::fmt;
use netcore::Instant;

/// Whether one end of a link comes into sync in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum ChurnState {
    /// The 60 seconds run.
    #[default]
    Monitoring,
    /// It did not.
    Churned,
    /// It did.
    None,
}

impl fmt::Display for ChurnState {
    /// As in `/proc/net/bonding`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Monitoring => "monitoring",
            Self::Churned => "churned",
            Self::None => "none",
        })
    }
}

/// Watches one end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChurnMonitor {
    state: ChurnState,
    timer: Option<Instant>,
    count: u32,
}

impl ChurnMonitor {
    /// What it found.
    pub const fn state(&self) -> ChurnState {
        self.state
    }

    /// How often it found churn.
    pub const fn count(&self) -> u32 {
        self.count
    }

    pub(in crate::lacp) const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    fn run(&mut self, in_sync: bool, clock: Clock) -> bool {
        if !clock.is_over(self.timer) {
            return false;
        }
        self.timer = None;
        self.state = if in_sync { ChurnState::None } else { ChurnState::Churned };
        self.count = self.count.saturating_add(u32::from(!in_sync));
        true
    }
}

/// Runs both machines. True if one moved.
pub(in crate::lacp) fn churn(port: &mut Port, clock: Clock) -> bool {
    if core::mem::take(&mut port.churned) {
        for monitor in [&mut port.actor_churn, &mut port.partner_churn] {
            (monitor.state, monitor.timer) = (ChurnState::Monitoring, Some(clock.after(CHURN_DETECTION)));
        }
        return true;
    }
    let (actor, partner) = (port.in_sync(), port.partner_in_sync());
    port.actor_churn.run(actor, clock) | port.partner_churn.run(partner, clock)
}
