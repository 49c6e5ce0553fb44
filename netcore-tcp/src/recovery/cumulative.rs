//! Segments leave the retransmit queue (`tcp_clean_rtx_queue`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::send::queue::{Seg, SegFlags};
use crate::timers::Pending;
use netcore::congestion::PacketInfo;
use netcore::{Instant, PoolCache};

impl Endpoint {
    /// Removes everything below `ack`.
    pub(crate) fn clean_queue(&mut self, ack: u64, s: &mut AckSummary, cache: &mut PoolCache, now: Instant) {
        let mut reord: Option<u64> = None;
        while let Some(seg) = self.snd.queue.front().copied() {
            if seg.end() > ack {
                if seg.start < ack {
                    self.trim_front(ack);
                }
                break;
            }
            let index = self.snd.queue.head_index();
            self.snd.queue.pop_front();
            self.leave(&seg, index, s, &mut reord, now);
        }
        if ack > self.snd.una {
            self.snd.bytes_acked += ack - self.snd.una;
            self.snd.una = ack;
            self.cs.snd_una = self.snd.space.wire(ack);
            s.data_acked |= s.acked > 0;
            let data_end = ack.min(self.snd.buffer.end());
            self.snd.buffer.release(data_end, cache);
            while self.snd.skb_ends.front().is_some_and(|&end| end <= ack) {
                self.snd.skb_ends.pop_front();
            }
        }
        let head = self.snd.queue.head_index();
        if self.rec.highest_sack.is_some_and(|index| index < head) {
            self.rec.highest_sack = None;
        }
        if s.una_advanced && !self.rec.sack_ok {
            self.remove_reno_sacks(s.acked);
        }
        self.take_rtt(s, now);
        if self.rec.sack_ok
            && (s.sack_blocks || self.config.profile.reordering_by_ack)
            && let Some(index) = reord
            && index < s.prior_fack
        {
            // A hole that was never retransmitted got filled: that is reordering.
            self.check_sack_reordering(index, s.prior_fack);
        }
        if s.delivered > 0 {
            self.snd.delivered_at = now;
            if self.cs.app_limited && self.cs.delivered > self.snd.app_limited_until {
                self.cs.app_limited = false;
            }
        }
    }

    fn leave(&mut self, seg: &Seg, index: u64, s: &mut AckSummary, reord: &mut Option<u64>, now: Instant) {
        let sacked = seg.has(SegFlags::SACKED);
        if seg.has(SegFlags::RETRANS | SegFlags::EVER_RETRANS) {
            if seg.has(SegFlags::RETRANS) {
                self.cs.retrans_out -= 1;
            }
            s.retrans_data_acked = true;
        } else if !sacked {
            s.last_acked = Some(seg.sent);
            s.first_acked.get_or_insert(seg.sent);
            *reord = Some(reord.map_or(index, |low| low.min(index)));
            if seg.end() <= self.rec.high_seq {
                s.orig_acked = true;
            }
        }
        if sacked {
            self.cs.sacked_out -= 1;
        } else {
            self.cs.delivered += 1;
            s.delivered += 1;
            if s.ece {
                self.cs.delivered_ce += 1;
            }
            self.rack_advance(seg, now);
            self.note_newest(seg, s);
            self.packet_acked(seg, now);
        }
        if seg.has(SegFlags::LOST) {
            self.cs.lost_out -= 1;
        }
        self.cs.packets_out -= 1;
        s.acked += 1;
    }

    /// The newest segment delivered determines the rate sample.
    pub(crate) fn note_newest(&self, seg: &Seg, s: &mut AckSummary) {
        if self.cc_custom && s.newest.is_none_or(|newest| seg.delivered >= newest.delivered) {
            s.newest = Some(*seg);
        }
    }

    /// Tells the algorithm about one packet.
    pub(crate) fn packet_acked(&mut self, seg: &Seg, now: Instant) {
        if self.cc_custom {
            let info = PacketInfo {
                number: seg.start,
                bytes: seg.payload(),
                sent_at: seg.sent,
                delivered_at_send: seg.delivered,
                app_limited: seg.has(SegFlags::APP_LIMITED),
                retransmission: seg.has(SegFlags::EVER_RETRANS),
            };
            self.cc.packet_acked(&mut self.cs, &info, now);
        }
    }

    /// Part of the first segment was acknowledged.
    fn trim_front(&mut self, ack: u64) {
        if let Some(seg) = self.snd.queue.get_mut(self.snd.queue.head_index()) {
            seg.len -= (ack - seg.start) as u32;
            seg.start = ack;
        }
    }

    /// Progress: the timeout counts from now.
    pub(crate) fn rearm_after_ack(&mut self, s: &AckSummary, now: Instant) {
        self.snd.retransmits = if self.cs.ca_state == netcore::congestion::CaState::Loss && s.acked == 0 {
            self.snd.retransmits
        } else {
            0
        };
        if s.acked == 0 && self.timers.retransmit.is_some() {
            return;
        }
        if !self.timers.is(Pending::Reorder) {
            self.timers.retransmit = None;
            self.rearm_rto(now);
        } else if self.snd.queue.is_empty() {
            self.timers.retransmit = None;
        }
        self.schedule_loss_probe(true, now);
    }
}
