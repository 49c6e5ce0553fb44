//! Two systems that chose different aggregators.
//!
//! Between two systems there can be several aggregators: links of different speed have different keys. Each system chooses
//! its active one, and says on the links of the others that it is not in sync. If the choices differ, no link is used, and
//! in Linux that is for good. Here, the system with the worse identifier follows its partner after five seconds, since in the
//! standard it is the better system's priorities that count; the better one does after ten, for a partner that never gives
//! in.

use super::Lacp;
use super::timing::Clock;
use core::time::Duration;
use netcore::Instant;

/// Patience of the system with the worse identifier; the other has twice as much.
const PATIENCE: Duration = Duration::from_secs(5);

/// Watches whether the active aggregator is one that the partner does not want.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deadlock {
    pub(super) timer: Option<Instant>,
}

impl Lacp {
    /// Gives up the active aggregator if the partner, on purpose, uses another. True if something moved.
    pub(super) fn resolve_deadlock(&mut self, clock: Clock) -> bool {
        let mut moved = false;
        for index in 0..self.aggregators.len() {
            if self.aggregators[index].refused && self.is_wanted(index) {
                self.aggregators[index].refused = false;
                moved |= self.elect();
            }
        }
        let Some(active) = self.refused_choice() else {
            self.deadlock.timer = None;
            return moved;
        };
        match self.deadlock.timer {
            None => {
                let patience = if self.is_better_than_partner(active) { PATIENCE * 2 } else { PATIENCE };
                self.deadlock.timer = Some(clock.after(patience));
            }
            Some(at) if at <= clock.at => {
                self.deadlock.timer = None;
                self.aggregators[active].refused = true;
                moved |= self.elect();
            }
            Some(_) => {}
        }
        moved
    }

    /// Chooses an aggregator by options that have changed, also one that the partner did not want before.
    pub(super) fn think_anew(&mut self) {
        self.aggregators.iter_mut().for_each(|a| a.refused = false);
        self.elect();
    }

    /// The active aggregator, if its partner wants another one.
    fn refused_choice(&self) -> Option<usize> {
        let active = self.aggregators.iter().position(|a| a.active && a.has_partner())?;
        let partner = self.aggregators[active].partner_system;
        let other = |index: usize| {
            index != active && self.aggregators[index].partner_system == partner && self.is_wanted(index)
        };
        (!self.is_wanted(active) && (0..self.aggregators.len()).any(other)).then_some(active)
    }

    /// True if the partner is in sync on a link of the aggregator.
    fn is_wanted(&self, aggregator: usize) -> bool {
        self.members(aggregator).any(|port| port.enabled && port.partner_in_sync())
    }

    fn is_better_than_partner(&self, aggregator: usize) -> bool {
        let partner = &self.aggregators[aggregator];
        let ours = (self.config.ad_actor_sys_prio, self.config.ad_actor_system);
        ours < (partner.partner_system_priority, partner.partner_system)
    }
}
