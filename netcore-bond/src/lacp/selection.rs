//! Selection logic (IEEE 802.1AX clause 6.4.14; Linux: `ad_port_selection_logic`): which aggregator a port belongs to.

use super::Lacp;
use netcore::wire::LacpState;

impl Lacp {
    /// Finds an aggregator for a port that has none, or lost it. True if it did.
    pub(super) fn select(&mut self, port: usize) -> bool {
        if self.ports[port].selected {
            return false;
        }
        self.leave(port);
        let mut empty = None;
        let mut chosen = None;
        for aggregator in 0..self.aggregators.len() {
            if self.members(aggregator).next().is_none() {
                empty = empty.or(Some(aggregator));
            } else if self.aggregators[aggregator].admits(&self.ports[port]) {
                chosen = Some(aggregator);
                break;
            }
        }
        if chosen.is_none()
            && let Some(empty) = empty
        {
            self.aggregators[empty].found(&self.ports[port]);
            chosen = Some(empty);
        }
        // There are as many aggregators as ports, so one was empty.
        let Some(chosen) = chosen else { return false };
        self.ports[port].aggregator = Some(chosen);
        self.ports[port].selected = true;
        self.elect();
        if !self.aggregators[chosen].active {
            self.ports[port].set_actor(LacpState::SYNCHRONIZATION, false);
        }
        true
    }

    /// Takes a port out of its aggregator.
    pub(super) fn leave(&mut self, port: usize) {
        let Some(left) = self.ports[port].aggregator.take() else { return };
        if self.members(left).next().is_none() {
            self.aggregators[left].clear();
        }
    }
}
