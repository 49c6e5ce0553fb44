//! Retransmission timeout and what follows (`tcp_enter_loss`, `tcp_process_loss`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::send::queue::SegFlags;
use netcore::Instant;
use netcore::congestion::{CaState, CwndEvent};

impl Endpoint {
    /// The timer expired, or the peer went back on its SACKs.
    pub(crate) fn enter_loss(&mut self, now: Instant) {
        let state = self.cs.ca_state;
        self.counters.timeouts += 1;
        if self.snd.retransmits == 0 {
            match (state, self.rec.sack_ok) {
                (CaState::Recovery, true) => self.counters.sack_recovery_fail += 1,
                (CaState::Recovery, false) => self.counters.reno_recovery_fail += 1,
                (CaState::Loss, _) => self.counters.loss_failures += 1,
                (CaState::Disorder, true) => self.counters.sack_failures += 1,
                _ => {}
            }
        }
        let new_recovery = state < CaState::Recovery;
        self.mark_all_lost(now);
        let first = state <= CaState::Disorder
            || self.snd.una >= self.rec.high_seq
            || (state == CaState::Loss && self.snd.retransmits == 0);
        if first {
            self.cs.prior_ssthresh = Some(self.current_ssthresh());
            self.cs.prior_cwnd = self.cs.cwnd;
            let ssthresh = self.cc.ssthresh(&mut self.cs, now);
            self.cs.ssthresh = Some(ssthresh);
            self.cc.cwnd_event(&mut self.cs, CwndEvent::Loss, now);
            self.init_undo();
        } else if self.is_legacy() {
            self.rec.undo_marker = Some(self.snd.una);
            self.rec.undo_retrans = Some(self.cs.retrans_out);
        }
        self.cs.cwnd = if self.is_legacy() { 1 } else { self.cs.in_flight() + 1 };
        self.cs.cwnd_cnt = 0;
        self.snd.cwnd_stamp = now;
        // A timeout amid many duplicates: the tolerance was too high.
        let configured = self.config.profile.reordering;
        if self.is_legacy() || (state <= CaState::Disorder && self.cs.sacked_out >= configured) {
            self.cs.reordering = self.cs.reordering.min(configured);
        }
        self.set_ca_state(CaState::Loss, now);
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_high_seq = None;
        if self.rcv.ecn_ok {
            self.snd.ecn_cwr = true;
        }
        self.rec.frto = self.config.profile.frto && self.rec.sack_ok && (new_recovery || self.snd.retransmits > 0);
        self.rec.send_new_first = false;
        self.rec.retransmit_hint = self.snd.queue.head_index();
        self.rec.force = true;
    }

    /// Everything not SACKed is lost, except, with RACK, what was sent only lately (`tcp_timeout_mark_lost`).
    fn mark_all_lost(&mut self, now: Instant) {
        let head = self.snd.queue.head_index();
        let reneged = self.snd.queue.front().is_some_and(|seg| seg.has(SegFlags::SACKED));
        if reneged {
            for seg in self.snd.queue.iter_mut() {
                seg.flags -= SegFlags::SACKED;
            }
            self.cs.sacked_out = 0;
            self.rec.highest_sack = None;
        } else if !self.rec.sack_ok {
            self.cs.sacked_out = 0;
        }
        let rack = self.config.profile.is_rack() && self.rec.sack_ok;
        let mut index = head;
        while let Some(seg) = self.snd.queue.get(index).copied() {
            let spare = rack && index != head && !reneged && self.rack_recent(&seg, now);
            if !seg.has(SegFlags::SACKED) && !spare {
                if seg.has(SegFlags::RETRANS) {
                    self.mark_retransmission_lost(index);
                } else {
                    self.mark_lost(index, now);
                }
            } else if !spare && seg.has(SegFlags::RETRANS) {
                // A forward retransmission of what has arrived: nothing is waited for any more.
                if let Some(seg) = self.snd.queue.get_mut(index) {
                    seg.flags -= SegFlags::RETRANS;
                    self.cs.retrans_out -= 1;
                }
            }
            index += 1;
        }
        self.rec.lost_hint = head;
        self.rec.original_hint = head;
        if !rack {
            self.rec.resent.clear();
        }
    }

    /// An ACK in state Loss: F-RTO (RFC 5682), undo, or on with retransmissions.
    pub(crate) fn process_loss(&mut self, s: &AckSummary, duplicates: u32, now: Instant) {
        let recovered = self.snd.una >= self.rec.high_seq;
        if s.una_advanced && self.try_undo_loss(s, false, now) {
            return;
        }
        if self.rec.frto {
            // Step 3b: data that was never retransmitted arrives, so not everything was lost.
            if s.orig_acked && self.try_undo_loss(s, true, now) {
                return;
            }
            if self.snd.nxt > self.rec.high_seq {
                if s.data_sacked || duplicates > 0 {
                    // Step 3a: the loss was real.
                    self.rec.frto = false;
                    self.rec.send_new_first = false;
                }
            } else if s.una_advanced && !recovered {
                self.rec.high_seq = self.snd.nxt;
                // Step 2b: new data shows what is going on.
                let (available, _) = self.snd.unsent();
                if available > 0 && self.snd.window_end() > self.snd.nxt {
                    self.rec.send_new_first = true;
                    return;
                }
                self.rec.frto = false;
            }
        }
        if recovered {
            self.rec.send_new_first = false;
            self.rec.frto = false;
            self.try_undo_recovery(now);
            return;
        }
        if !self.rec.sack_ok {
            if s.una_advanced {
                self.cs.sacked_out = 0;
            } else if duplicates > 0 && self.snd.nxt > self.rec.high_seq {
                self.cs.sacked_out = (self.cs.sacked_out + duplicates).min(self.cs.packets_out.saturating_sub(1));
            }
        }
        if self.is_legacy() {
            self.moderate_window();
        }
    }
}
