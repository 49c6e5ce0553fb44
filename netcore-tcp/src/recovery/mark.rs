//! Marking by counting: FACK, RFC 6675, NewReno (`tcp_update_scoreboard`, `tcp_mark_head_lost`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::send::queue::SegFlags;
use netcore::Instant;
use netcore::congestion::PacketInfo;

impl Endpoint {
    /// Marks what the evidence so far makes lost. `entered`: recovery has just begun.
    pub(crate) fn update_scoreboard(&mut self, entered: bool, now: Instant) {
        if !self.rec.sack_ok {
            self.mark_head_lost(1, now);
        } else if self.rec.fack {
            let lost = self.fackets_out().saturating_sub(self.cs.reordering).max(1);
            self.mark_head_lost(lost, now);
        } else if !self.config.profile.conservative_sack {
            // What is out again is waited for.
            if self.snd.queue.front().is_some_and(|seg| !seg.has(SegFlags::RETRANS)) {
                self.mark_head_lost(1, now);
            }
        } else {
            let above = self.cs.sacked_out.saturating_sub(self.cs.reordering);
            if above > 0 {
                self.mark_below_sacked(self.cs.reordering, now);
            } else if entered {
                self.mark_head_lost(1, now);
            }
        }
        if self.head_timed_out(now) {
            self.mark_timed_out(now);
        }
    }

    /// Marks the first `packets` segments lost, as far as they are not SACKed.
    pub(crate) fn mark_head_lost(&mut self, packets: u32, now: Instant) {
        let head = self.snd.queue.head_index();
        let end = head + u64::from(packets);
        let mut index = self.rec.lost_hint.max(head);
        while index < end {
            match self.snd.queue.get(index) {
                // Only what was sent before recovery began.
                Some(seg) if seg.end() <= self.rec.high_seq || self.rec.high_seq == 0 || index == head => {}
                _ => break,
            }
            self.mark_lost(index, now);
            index += 1;
        }
        self.rec.lost_hint = index;
    }

    /// Marks every hole with more than `reordering` SACKed segments above it.
    fn mark_below_sacked(&mut self, reordering: u32, now: Instant) {
        let head = self.snd.queue.head_index();
        let Some(highest) = self.rec.highest_sack else { return };
        // From the top: the segment above which more than `reordering` are SACKed.
        let (mut above, mut index) = (0, highest + 1);
        while index > head && above < reordering.max(1) {
            index -= 1;
            if self.snd.queue.get(index).is_some_and(|seg| seg.has(SegFlags::SACKED)) {
                above += 1;
            }
        }
        if above < reordering.max(1) {
            return;
        }
        let end = index;
        let mut index = self.rec.lost_hint.max(head);
        while index < end {
            self.mark_lost(index, now);
            index += 1;
        }
        self.rec.lost_hint = self.rec.lost_hint.max(end);
    }

    /// 2.6 with FACK: everything from the head on that has been out for a timeout.
    fn mark_timed_out(&mut self, now: Instant) {
        let rto_ns = u64::from(self.rtt.rto_us) * 1000;
        let mut index = self.snd.queue.head_index();
        while let Some(seg) = self.snd.queue.get(index) {
            if now.nanos_since(seg.sent) <= rto_ns {
                break;
            }
            self.mark_lost(index, now);
            index += 1;
        }
    }

    /// Whether the first segment has been out for longer than the timeout (`tcp_head_timedout`).
    pub(crate) fn head_timed_out(&self, now: Instant) -> bool {
        self.is_legacy()
            && (self.rec.fack || !self.config.profile.conservative_sack && self.rec.sack_ok)
            && self.snd.queue.front().is_some_and(|seg| now.nanos_since(seg.sent) > u64::from(self.rtt.rto_us) * 1000)
    }

    /// Takes a segment for lost (`tcp_mark_skb_lost`). A retransmission of it that is out is lost, too, if RACK says so.
    pub(crate) fn mark_lost(&mut self, index: u64, now: Instant) {
        let Some(seg) = self.snd.queue.get_mut(index) else { return };
        if seg.has(SegFlags::LOST | SegFlags::SACKED) {
            return;
        }
        seg.flags |= SegFlags::LOST;
        let seg = *seg;
        self.cs.lost_out += 1;
        self.cs.lost += 1;
        self.rec.retransmit_hint = self.rec.retransmit_hint.min(index);
        if self.cc_custom {
            let info = PacketInfo {
                number: seg.start,
                bytes: seg.payload(),
                sent_at: seg.sent,
                delivered_at_send: seg.delivered,
                app_limited: seg.has(SegFlags::APP_LIMITED),
                retransmission: seg.has(SegFlags::EVER_RETRANS),
            };
            self.cc.packet_lost(&mut self.cs, &info, now);
        }
    }

    /// A retransmission is lost: it may be made again.
    pub(crate) fn mark_retransmission_lost(&mut self, index: u64) {
        let Some(seg) = self.snd.queue.get_mut(index) else { return };
        if seg.has(SegFlags::SACKED) || !seg.has(SegFlags::RETRANS) {
            return;
        }
        seg.flags -= SegFlags::RETRANS;
        let was_lost = seg.has(SegFlags::LOST);
        seg.flags |= SegFlags::LOST;
        self.cs.retrans_out -= 1;
        if !was_lost {
            self.cs.lost_out += 1;
        }
        self.cs.lost += 1;
        self.counters.lost_retransmit += 1;
        self.rec.retransmit_hint = self.rec.retransmit_hint.min(index);
    }

    /// Loss that can be told at once upon an ACK (`tcp_identify_packet_loss`).
    pub(crate) fn identify_loss(&mut self, s: &mut AckSummary, now: Instant) {
        if self.cs.packets_out == 0 {
            return;
        }
        if self.config.profile.is_rack() {
            if !self.rec.sack_ok {
                self.newreno_loss(s, now);
                return;
            }
            let before = self.cs.retrans_out;
            self.rack_mark_lost(now);
            if self.cs.retrans_out < before {
                s.lost_retrans = true;
            }
        } else if self.rec.sack_ok && self.cs.retrans_out > 0 && s.data_sacked {
            self.mark_lost_retransmissions(s);
        }
    }

    /// NewReno without SACK: three duplicates, or a partial acknowledgement in recovery (`tcp_newreno_mark_lost`).
    fn newreno_loss(&mut self, s: &AckSummary, now: Instant) {
        let state = self.cs.ca_state;
        let in_recovery = state >= netcore::congestion::CaState::Recovery;
        let by_duplicates = !in_recovery && self.cs.sacked_out >= self.cs.reordering;
        if by_duplicates || (in_recovery && s.una_advanced) {
            self.mark_lost(self.snd.queue.head_index(), now);
        }
    }

    /// Data sent after a retransmission was SACKed, and more than the tolerated reordering lies in between
    /// (`tcp_mark_lost_retrans`, FACK only).
    fn mark_lost_retransmissions(&mut self, s: &mut AckSummary) {
        if !self.rec.fack && self.rec.reord_seen > 0 {
            return;
        }
        let Some(highest) = self.rec.highest_sack.and_then(|index| self.snd.queue.get(index)) else { return };
        let newest_delivered = highest.sent;
        let margin_ns = u64::from(self.rtt.srtt_us8 / 32) * 1000;
        while let Some(&(index, at)) = self.rec.resent.front() {
            let out = self.snd.queue.get(index).is_some_and(|seg| seg.has(SegFlags::RETRANS) && seg.sent == at);
            if !out {
                self.rec.resent.pop_front();
                continue;
            }
            if at.plus_nanos(margin_ns) >= newest_delivered {
                break;
            }
            self.rec.resent.pop_front();
            self.mark_retransmission_lost(index);
            s.lost_retrans = true;
        }
    }
}
