//! Taking back a reduction that proved wrong (RFC 3522, RFC 3708, RFC 4015; `tcp_try_undo_*`).

use super::AckSummary;
use super::reordering::Evidence;
use crate::endpoint::Endpoint;
use crate::send::queue::SegFlags;
use crate::seq::before;
use netcore::Instant;
use netcore::congestion::CaState;

impl Endpoint {
    /// An episode begins (`tcp_init_undo`).
    pub(crate) fn init_undo(&mut self) {
        self.rec.undo_marker = Some(self.snd.una);
        self.rec.undo_retrans = match self.cs.retrans_out {
            0 if !self.is_legacy() => None,
            n => Some(n),
        };
    }

    /// The ACK answers the original, sent before any retransmission (Eifel detection; `tcp_packet_delayed`).
    fn packet_delayed(&self, s: &AckSummary) -> bool {
        match (self.rec.retrans_stamp, s.echo) {
            // Nothing was retransmitted yet.
            (None, _) => true,
            (Some((_, stamp)), Some(echo)) => echo != 0 && before(echo, stamp),
            (Some(_), None) => false,
        }
    }

    fn may_undo(&self, s: &AckSummary) -> bool {
        self.rec.undo_marker.is_some() && (self.rec.undo_retrans == Some(0) || self.packet_delayed(s))
    }

    /// Restores window and threshold (`tcp_undo_cwnd_reduction`). `unmark`: nothing is lost after all.
    fn undo(&mut self, unmark: bool, ssthresh_too: bool, now: Instant) {
        if unmark {
            for seg in self.snd.queue.iter_mut() {
                seg.flags -= SegFlags::LOST;
            }
            self.cs.lost_out = 0;
            self.rec.lost_hint = self.snd.queue.head_index();
        }
        match self.cs.prior_ssthresh {
            Some(prior) => {
                self.cs.cwnd = self.cc.undo_cwnd(&mut self.cs, now).max(1);
                let higher = prior.is_none_or(|prior| self.cs.ssthresh.is_some_and(|now| prior > now));
                if ssthresh_too && higher {
                    self.cs.ssthresh = prior;
                    self.snd.ecn_cwr = false;
                }
            }
            None if self.is_legacy() => {
                self.cs.cwnd = self.cs.cwnd.max(self.cs.ssthresh.unwrap_or(self.cs.cwnd));
            }
            None => {}
        }
        self.moderate_window();
        self.snd.cwnd_stamp = now;
    }

    /// The recovery point was reached: was it all needless? If that cannot be told yet, a DSACK may still prove it later.
    /// True if the state is kept until more is acknowledged.
    pub(crate) fn try_undo_recovery(&mut self, now: Instant) -> bool {
        let s = AckSummary { echo: self.rec_echo(), ..AckSummary::default() };
        if self.may_undo(&s) {
            let in_loss = self.cs.ca_state == CaState::Loss;
            self.undo(false, true, now);
            if in_loss {
                self.counters.loss_undo += 1;
            } else {
                self.counters.full_undo += 1;
            }
            self.rec.undo_marker = None;
        } else {
            self.rec.rack.recovery_ended();
        }
        if self.snd.una == self.rec.high_seq && !self.rec.sack_ok {
            // RFC 6582 section 3.2: old duplicates may still come.
            self.moderate_window();
            self.rec.retrans_stamp = None;
            return true;
        }
        self.set_ca_state(CaState::Open, now);
        false
    }

    /// The echo of the ACK being handled.
    fn rec_echo(&self) -> Option<u32> {
        self.rec.current_echo
    }

    /// A partial acknowledgement in recovery (`tcp_try_undo_partial`). True: nothing more is to be done.
    pub(crate) fn try_undo_partial(&mut self, s: &AckSummary, look_for_loss: &mut bool, now: Instant) -> bool {
        if self.rec.undo_marker.is_some() && self.packet_delayed(s) {
            // The hole was filled by the original: it is merely late, and so are its successors.
            if self.rec.sack_ok {
                self.check_sack_reordering_by_time(s);
            }
            if self.cs.retrans_out > 0 {
                return true;
            }
            if self.cs.retrans_out == 0 {
                self.rec.retrans_stamp = None;
            }
            self.undo(true, true, now);
            self.counters.partial_undo += 1;
            self.rec.undo_marker = None;
            self.try_keep_open(now);
        } else {
            *look_for_loss = !self.rec.sack_ok || self.fackets_out() > self.cs.reordering;
        }
        false
    }

    /// As [`Endpoint::try_undo_partial`] in 2.6: the window is restored, not the threshold, and the episode goes on.
    /// Returns whether loss is to be looked for.
    pub(crate) fn try_undo_partial_legacy(&mut self, s: &AckSummary) -> bool {
        let mut look = !self.rec.sack_ok || self.fackets_out() > self.cs.reordering;
        if self.may_undo(s) {
            if self.cs.retrans_out == 0 {
                self.rec.retrans_stamp = None;
            }
            let metric = self.fackets_out() + s.acked;
            self.raise_reordering(metric, Evidence::Timestamp);
            let now = self.cs.last_sent.max(self.rcv.last_arrival);
            self.undo(false, false, now);
            self.counters.partial_undo += 1;
            // Hoe's retransmission of the next hole would be as needless.
            look = false;
        }
        look
    }

    fn check_sack_reordering_by_time(&mut self, s: &AckSummary) {
        let metric = self.fackets_out() + s.acked;
        if !self.config.profile.is_rack() {
            self.raise_reordering(metric, Evidence::Timestamp);
        } else {
            self.cs.reordering = self.cs.reordering.max(metric.min(self.config.profile.max_reordering));
            self.rec.reord_seen += 1;
            self.counters.ts_reorder += 1;
        }
    }

    /// DSACKs have accounted for every retransmission (`tcp_try_undo_dsack`).
    pub(crate) fn try_undo_dsack(&mut self, now: Instant) -> bool {
        if self.rec.undo_marker.is_none() || self.rec.undo_retrans != Some(0) {
            return false;
        }
        self.rec.rack.recovery_ended();
        self.undo(false, true, now);
        self.rec.undo_marker = None;
        self.counters.dsack_undo += 1;
        true
    }

    /// A timeout proved needless (`tcp_try_undo_loss`).
    pub(crate) fn try_undo_loss(&mut self, s: &AckSummary, by_frto: bool, now: Instant) -> bool {
        if !by_frto && !self.may_undo(s) {
            return false;
        }
        self.undo(true, true, now);
        self.counters.loss_undo += 1;
        if by_frto {
            self.counters.spurious_rtos += 1;
        }
        self.snd.retransmits = 0;
        self.rec.undo_marker = None;
        if by_frto || self.rec.sack_ok {
            self.set_ca_state(CaState::Open, now);
        }
        true
    }
}
