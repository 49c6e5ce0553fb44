//! What an unusual ACK means (`tcp_fastretrans_alert`): the state machine of loss recovery.

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::profile::Reduction;
use netcore::Instant;
use netcore::congestion::CaState;

impl Endpoint {
    pub(crate) fn fast_retransmit_alert(&mut self, s: &mut AckSummary, prior_packets: u32, now: Instant) {
        let is_dup = s.is_dup() && !s.una_advanced;
        let duplicates = if is_dup { s.segments.max(1) } else { 0 };
        if self.cs.packets_out == 0 {
            self.cs.sacked_out = 0;
        }
        if s.ece {
            self.cs.prior_ssthresh = None;
        }
        if self.check_reneging(s, now) {
            return;
        }
        self.mark_by_head_timeout(s, now);
        let done = self.snd.una >= self.rec.high_seq;
        match self.cs.ca_state {
            CaState::Open if self.cs.retrans_out == 0 => self.rec.retrans_stamp = None,
            CaState::Loss if done && self.is_legacy() => {
                self.snd.retransmits = 0;
                if self.try_undo_recovery(now) {
                    return;
                }
            }
            // CWR is kept until something beyond it is acknowledged, so that a second mark does not reduce again.
            CaState::Cwr if self.snd.una > self.rec.high_seq => {
                self.end_reduction(now);
                self.set_ca_state(CaState::Open, now);
            }
            CaState::Disorder if done && self.is_legacy() => {
                self.try_undo_dsack(now);
                if self.rec.undo_marker.is_none() || !self.rec.sack_ok || self.snd.una != self.rec.high_seq {
                    self.rec.undo_marker = None;
                    self.set_ca_state(CaState::Open, now);
                }
            }
            CaState::Recovery if done => {
                if !self.rec.sack_ok {
                    self.cs.sacked_out = 0;
                }
                if self.try_undo_recovery(now) {
                    return;
                }
                self.end_reduction(now);
            }
            _ => {}
        }
        let mut look_for_loss = is_dup || (s.data_sacked && self.fackets_out() > self.cs.reordering);
        let mut entered = false;
        match self.cs.ca_state {
            CaState::Recovery => {
                if s.una_advanced {
                    if self.is_legacy() {
                        look_for_loss = self.try_undo_partial_legacy(s);
                    } else if self.try_undo_partial(s, &mut look_for_loss, now) {
                        return;
                    }
                } else if !self.rec.sack_ok && is_dup {
                    self.add_reno_sack(duplicates);
                }
                if self.try_undo_dsack(now) {
                    self.try_to_open(s, now);
                }
                self.identify_loss(s, now);
                if self.cs.ca_state != CaState::Recovery {
                    if !self.time_to_recover(now) {
                        return;
                    }
                    self.enter_recovery(s, now);
                    entered = true;
                }
            }
            CaState::Loss => {
                self.process_loss(s, duplicates, now);
                self.identify_loss(s, now);
                if self.cs.ca_state != CaState::Open && !s.lost_retrans {
                    return;
                }
                if !self.default_state(s, is_dup, duplicates, now) {
                    return;
                }
                entered = true;
            }
            _ => {
                if !self.default_state(s, is_dup, duplicates, now) {
                    return;
                }
                entered = true;
            }
        }
        let _ = prior_packets;
        if !self.config.profile.is_rack() && (look_for_loss || self.head_timed_out(now)) {
            self.update_scoreboard(entered, now);
        }
        if self.config.profile.reduction == Reduction::RateHalving {
            self.halve_rate(s);
        }
    }

    /// Open, Disorder or CWR: is there enough evidence of loss? True if recovery was entered.
    fn default_state(&mut self, s: &mut AckSummary, is_dup: bool, duplicates: u32, now: Instant) -> bool {
        if !self.rec.sack_ok {
            if s.una_advanced {
                self.cs.sacked_out = 0;
            }
            if is_dup {
                self.add_reno_sack(duplicates);
            }
        }
        if self.cs.ca_state <= CaState::Disorder {
            self.try_undo_dsack(now);
        }
        self.identify_loss(s, now);
        if !self.time_to_recover(now) {
            self.try_to_open(s, now);
            return false;
        }
        self.enter_recovery(s, now);
        true
    }

    /// Whether this era is before proportional rate reduction: the older form of each rule applies.
    pub(crate) const fn is_legacy(&self) -> bool {
        matches!(self.config.profile.reduction, Reduction::RateHalving)
    }

    /// Segments up to the highest SACKed one, holes included (`tcp_fackets_out`).
    pub(crate) fn fackets_out(&self) -> u32 {
        match self.rec.highest_sack {
            Some(index) => (index + 1 - self.snd.queue.head_index()) as u32,
            None if !self.rec.sack_ok => self.cs.sacked_out + 1,
            None => 0,
        }
    }

    /// `tcp_time_to_recover`.
    fn time_to_recover(&mut self, now: Instant) -> bool {
        if self.cs.lost_out > 0 {
            return true;
        }
        if self.config.profile.is_rack() {
            return false;
        }
        let holes_count = self.rec.fack || !self.config.profile.conservative_sack;
        let count = if holes_count { self.fackets_out() } else { self.cs.sacked_out + 1 };
        if count > self.cs.reordering {
            return true;
        }
        if self.head_timed_out(now) {
            return true;
        }
        // Few packets are out and no more will come: fewer duplicates must do.
        let out = self.cs.packets_out;
        let (available, fin) = self.snd.unsent();
        let more = (available > 0 || fin) && self.snd.window_end() > self.snd.nxt && self.cs.cwnd > self.cs.in_flight();
        if out <= self.cs.reordering && self.cs.sacked_out >= (out / 2).max(self.config.profile.reordering) && !more {
            return true;
        }
        self.config.profile.early_retransmit && self.early_retransmit(now)
    }

    /// RFC 5827 as Linux had it: with fewer than four packets out, one SACK less than that is enough, after a quarter of
    /// the RTT (`tcp_pause_early_retransmit`).
    fn early_retransmit(&mut self, now: Instant) -> bool {
        let out = self.cs.packets_out;
        let (available, _) = self.snd.unsent();
        if self.rec.reord_seen > 0 || !(2..4).contains(&out) || self.cs.sacked_out + 1 < out || available > 0 {
            return false;
        }
        if self.cs.retrans_out > 0 || self.rtt.srtt_us8 == 0 {
            return true;
        }
        let delay_ns = u64::from(self.rtt.srtt_us8 >> 5).max(2_000) * 1000;
        let Some(head) = self.snd.queue.front() else { return false };
        let srtt_ns = u64::from(self.rtt.srtt_us8 / 8) * 1000;
        let due = head.sent.plus_nanos(srtt_ns + delay_ns);
        if due <= now {
            return true;
        }
        self.timers.retransmit = Some((crate::timers::Pending::Reorder, due));
        false
    }

    /// Not enough evidence: Open or Disorder (`tcp_try_to_open`).
    fn try_to_open(&mut self, s: &AckSummary, now: Instant) {
        if self.cs.retrans_out == 0 {
            self.rec.retrans_stamp = None;
        }
        if s.ece {
            self.enter_cwr(now);
        }
        if self.cs.ca_state == CaState::Cwr {
            if self.is_legacy() {
                self.halve_rate(s);
            }
        } else {
            self.try_keep_open(now);
            if self.is_legacy() {
                self.moderate_window();
            }
        }
    }

    /// `tcp_try_keep_open`.
    pub(crate) fn try_keep_open(&mut self, now: Instant) {
        let left = self.cs.sacked_out + self.cs.lost_out > 0;
        let pending = if self.is_legacy() {
            self.rec.undo_marker.is_some()
        } else {
            // `tcp_any_retrans_done`
            self.snd.queue.front().is_some_and(|seg| seg.has(crate::send::queue::SegFlags::EVER_RETRANS))
        };
        let state = if left || self.cs.retrans_out > 0 || pending { CaState::Disorder } else { CaState::Open };
        if self.cs.ca_state != state {
            self.set_ca_state(state, now);
            self.rec.high_seq = self.snd.nxt;
        }
    }

    pub(crate) fn set_ca_state(&mut self, state: CaState, now: Instant) {
        self.cc.set_state(&mut self.cs, state, now);
        self.cs.ca_state = state;
    }

    /// `tcp_enter_recovery`.
    pub(crate) fn enter_recovery(&mut self, s: &AckSummary, now: Instant) {
        if self.rec.sack_ok {
            self.counters.sack_recovery += 1;
        } else {
            self.counters.reno_recovery += 1;
        }
        self.cs.prior_ssthresh = None;
        self.init_undo();
        if self.cs.ca_state < CaState::Cwr {
            if !s.ece {
                self.cs.prior_ssthresh = Some(self.current_ssthresh());
            }
            self.begin_reduction(now);
        }
        self.rec.high_seq = self.snd.nxt;
        self.cs.cwnd_cnt = 0;
        self.set_ca_state(CaState::Recovery, now);
        self.rec.force = true;
        self.rec.retransmit_hint = self.snd.queue.head_index();
        self.rec.forward_hint = self.snd.queue.head_index();
    }

    /// A congestion echo: reduce without loss (`tcp_enter_cwr`).
    pub(crate) fn enter_cwr(&mut self, now: Instant) {
        self.cs.prior_ssthresh = None;
        if self.cs.ca_state < CaState::Cwr {
            self.rec.undo_marker = None;
            self.begin_reduction(now);
            self.rec.high_seq = self.snd.nxt;
            self.set_ca_state(CaState::Cwr, now);
            if self.is_legacy() {
                self.cs.cwnd = self.cs.cwnd.min(self.cs.in_flight() + 1);
            }
        }
    }

    /// The head was SACKed, but the cumulative ACK stands before it: the peer dropped what it had (`tcp_check_sack_reneging`).
    fn check_reneging(&mut self, s: &AckSummary, now: Instant) -> bool {
        let head_sacked = self.snd.queue.front().is_some_and(|seg| seg.has(crate::send::queue::SegFlags::SACKED));
        if !head_sacked || !s.una_advanced {
            return false;
        }
        self.counters.sack_reneging += 1;
        self.enter_loss(now);
        self.snd.retransmits += 1;
        self.rearm_rto(now);
        true
    }

    /// 2.6: FACK marks more lost once a retransmission proved lost; before 2.6.25 SACKs beyond the recovery point do, with
    /// FACK or without (`FLAG_DATA_LOST`).
    fn mark_by_head_timeout(&mut self, s: &AckSummary, now: Instant) {
        let evidence = match self.config.profile.conservative_sack {
            true => self.rec.fack && s.lost_retrans,
            false => self.rec.sack_ok && s.sacked_beyond,
        };
        if self.is_legacy()
            && evidence
            && self.snd.una < self.rec.high_seq
            && self.cs.ca_state != CaState::Open
            && self.fackets_out() > self.cs.reordering
        {
            let packets = self.fackets_out() - self.cs.reordering;
            self.mark_head_lost(packets, now);
            self.counters.loss += 1;
        }
    }

    /// Reno: a duplicate ACK stands for a segment that left the network (`tcp_add_reno_sack`).
    fn add_reno_sack(&mut self, duplicates: u32) {
        let holes = self.cs.lost_out.max(1).min(self.cs.packets_out);
        self.cs.sacked_out += duplicates;
        if self.cs.sacked_out + holes > self.cs.packets_out {
            let metric = self.cs.packets_out;
            self.cs.sacked_out = self.cs.packets_out - holes;
            self.raise_reordering(metric, super::reordering::Evidence::Reno);
        }
        self.cs.delivered += u64::from(duplicates);
    }

    /// Reno: a cumulative ACK takes SACKs that duplicates stood for (`tcp_remove_reno_sacks`).
    pub(crate) fn remove_reno_sacks(&mut self, acked: u32) {
        if acked > 0 {
            let taken = acked.saturating_sub(1).min(self.cs.sacked_out);
            self.cs.sacked_out -= taken;
        }
        let holes = self.cs.lost_out.max(1).min(self.cs.packets_out);
        self.cs.sacked_out = self.cs.sacked_out.min(self.cs.packets_out - holes);
    }
}
