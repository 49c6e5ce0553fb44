//! How the window goes down in recovery: rate halving, or proportional rate reduction (RFC 6937).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::profile::Reduction;
use netcore::Instant;
use netcore::congestion::{CaState, CwndEvent};

impl Endpoint {
    /// A reduction begins (`tcp_init_cwnd_reduction`).
    pub(crate) fn begin_reduction(&mut self, now: Instant) {
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_high_seq = None;
        self.cs.cwnd_cnt = 0;
        self.cs.prior_cwnd = self.cs.cwnd;
        self.rec.prr_delivered = 0;
        self.rec.prr_out = 0;
        self.rec.halving_count = 0;
        let ssthresh = self.cc.ssthresh(&mut self.cs, now);
        self.cs.ssthresh = Some(ssthresh);
        if self.rcv.ecn_ok {
            self.snd.ecn_cwr = true;
        }
    }

    /// One ACK of recovery (`tcp_cwnd_reduction`).
    pub(crate) fn reduce_window(&mut self, delivered: u32, newly_lost: bool, una_advanced: bool) {
        if self.config.profile.reduction != Reduction::Prr || delivered == 0 || self.cs.prior_cwnd == 0 {
            return;
        }
        let ssthresh = self.cs.ssthresh_or_max();
        let in_flight = self.cs.in_flight();
        self.rec.prr_delivered += delivered;
        let (delivered_sum, out) = (self.rec.prr_delivered, self.rec.prr_out);
        let send = if in_flight > ssthresh {
            let dividend = u64::from(ssthresh) * u64::from(delivered_sum) + u64::from(self.cs.prior_cwnd) - 1;
            (dividend / u64::from(self.cs.prior_cwnd)) as i64 - i64::from(out)
        } else {
            let mut send = (i64::from(delivered_sum) - i64::from(out)).max(i64::from(delivered));
            if una_advanced && !newly_lost {
                send += 1;
            }
            i64::from(ssthresh - in_flight).min(send)
        };
        // At least one retransmission goes on entry.
        let least = i64::from(self.rec.prr_out == 0);
        self.cs.cwnd = in_flight.saturating_add(send.max(least) as u32).max(1);
    }

    /// Rate halving: one segment for every second ACK (`tcp_cwnd_down`).
    pub(crate) fn halve_rate(&mut self, s: &AckSummary) {
        let progress = s.una_advanced || s.data_sacked || s.dsack;
        if !progress && self.rec.sack_ok {
            return;
        }
        self.rec.halving_count += 1;
        let step = self.rec.halving_count / 2;
        self.rec.halving_count %= 2;
        let floor = self.cc.min_cwnd(&self.cs).max(1);
        if step > 0 && self.cs.cwnd > floor {
            self.cs.cwnd = self.cs.cwnd.saturating_sub(step).max(floor);
        }
        self.cs.cwnd = self.cs.cwnd.min(self.cs.in_flight() + 1).max(1);
    }

    /// The reduction is over (`tcp_end_cwnd_reduction`, `tcp_complete_cwr`).
    pub(crate) fn end_reduction(&mut self, now: Instant) {
        if self.is_legacy() {
            // Never up: rate halving may have ended below.
            if let Some(ssthresh) = self.cs.ssthresh {
                self.cs.cwnd = self.cs.cwnd.min(ssthresh).max(1);
            }
        } else if let Some(ssthresh) = self.cs.ssthresh
            && (self.cs.ca_state == CaState::Cwr || self.rec.undo_marker.is_some())
        {
            self.cs.cwnd = ssthresh.max(1);
        }
        self.snd.cwnd_stamp = now;
        self.cc.cwnd_event(&mut self.cs, CwndEvent::CompleteCwr, now);
    }

    /// Before 3.x: no burst after a state is left (`tcp_moderate_cwnd`).
    pub(crate) fn moderate_window(&mut self) {
        if self.config.profile.moderate_cwnd {
            let most = self.cs.in_flight() + self.cs.reordering;
            self.cs.cwnd = self.cs.cwnd.min(most).max(1);
        }
    }
}
