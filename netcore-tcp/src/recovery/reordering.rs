//! How much reordering is tolerated (`tcp_update_reordering`, `tcp_check_sack_reordering`).

use crate::endpoint::Endpoint;
use netcore::congestion::CaState;

/// What showed reordering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Evidence {
    Sack,
    Reno,
    Timestamp,
}

impl Endpoint {
    /// A never-retransmitted segment at `index` was delivered although segments up to `high` (exclusive) had been.
    pub(crate) fn check_sack_reordering(&mut self, index: u64, high: u64) {
        if high <= index {
            return;
        }
        let metric = (high - index).min(u64::from(u32::MAX)) as u32;
        let p = &self.config.profile;
        if p.is_rack() {
            // In bytes since 4.15: the same unless segments are short.
            if metric > self.cs.reordering {
                self.cs.reordering = metric.min(p.max_reordering);
            }
            self.rec.reord_seen += 1;
            self.counters.sack_reorder += 1;
            return;
        }
        if self.cs.ca_state == CaState::Loss && self.rec.undo_marker.is_none() {
            return;
        }
        self.raise_reordering(metric, Evidence::Sack);
    }

    /// Raises the tolerance to `metric` if it is larger; the first time switches FACK off.
    pub(crate) fn raise_reordering(&mut self, metric: u32, evidence: Evidence) {
        let p = &self.config.profile;
        if metric <= self.cs.reordering {
            return;
        }
        self.cs.reordering = metric.min(p.max_reordering);
        self.rec.reord_seen += 1;
        match evidence {
            Evidence::Timestamp => self.counters.ts_reorder += 1,
            Evidence::Reno => self.counters.reno_reorder += 1,
            Evidence::Sack if self.rec.fack => self.counters.fack_reorder += 1,
            Evidence::Sack => self.counters.sack_reorder += 1,
        }
        if self.rec.sack_ok {
            self.rec.fack = false;
        }
    }
}
