//! Retransmissions (`tcp_xmit_retransmit_queue`, `tcp_retransmit_skb`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::send::Purpose;
use crate::send::queue::SegFlags;
use netcore::congestion::CaState;
use netcore::{Instant, Packet, PoolCache};

impl Endpoint {
    /// The next retransmission, if one is due and the window allows.
    pub(crate) fn poll_retransmit(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        if self.cs.lost_out == 0 && self.cs.ca_state != CaState::Recovery {
            return None;
        }
        if self.rec.send_new_first && self.cs.ca_state == CaState::Loss {
            return None;
        }
        if self.paced(now) {
            return None;
        }
        let in_flight = self.cs.in_flight();
        let room = self.cs.cwnd.saturating_sub(in_flight);
        if room == 0 && !self.rec.force {
            return None;
        }
        if let Some(index) = self.next_lost() {
            return self.retransmit_lost(index, room.max(1), cache, now);
        }
        if room > 0 {
            return self.forward_retransmit(cache, now);
        }
        None
    }

    /// Index of the first lost segment of which no retransmission is out.
    fn next_lost(&mut self) -> Option<u64> {
        if self.cs.lost_out <= self.cs.retrans_out && self.cs.lost_out == 0 {
            return None;
        }
        let mut index = self.rec.retransmit_hint.max(self.snd.queue.head_index());
        // Nothing beyond what is marked can be lost.
        while let Some(seg) = self.snd.queue.get(index) {
            if seg.has(SegFlags::LOST) && !seg.has(SegFlags::RETRANS | SegFlags::SACKED) {
                self.rec.retransmit_hint = index;
                return Some(index);
            }
            index += 1;
        }
        self.rec.retransmit_hint = index;
        None
    }

    fn retransmit_lost(&mut self, index: u64, room: u32, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        let first = *self.snd.queue.get(index)?;
        if self.config.profile.is_rack() && self.snd.below.holds(first.start) {
            // The original still waits in this host.
            self.counters.spurious_rtx_host_queues += 1;
            self.rec.force = false;
            return None;
        }
        if self.small_queue_full(self.truesize(u64::from(first.len)), true) && !self.rec.force {
            self.snd.throttled = true;
            return None;
        }
        let mss = self.current_mss();
        let most = if self.config.profile.retransmit_super { room.min(self.autosize(mss)) } else { 1 };
        let mut count = 1;
        let mut end = first.end();
        while count < most {
            match self.snd.queue.get(index + u64::from(count)) {
                Some(seg)
                    if seg.has(SegFlags::LOST)
                        && !seg.has(SegFlags::RETRANS | SegFlags::SACKED)
                        && seg.start == end
                        && first.len == mss
                        && seg.len <= mss
                        && !seg.has(SegFlags::FIN) =>
                {
                    end = seg.end();
                    count += 1;
                    if seg.len < mss {
                        break;
                    }
                }
                _ => break,
            }
        }
        let state = self.cs.ca_state;
        let frame = self.retransmit(index, count, cache, now)?;
        self.rec.force = false;
        self.rec.retransmit_hint = index + u64::from(count);
        if state == CaState::Loss {
            self.counters.slow_start_retrans += u64::from(count);
        } else {
            self.counters.fast_retrans += u64::from(count);
        }
        if matches!(state, CaState::Recovery | CaState::Cwr) {
            self.rec.prr_out += count;
        }
        Some(frame)
    }

    /// Before 4.17: unmarked segments below the highest SACK, while no new data may go.
    fn forward_retransmit(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        if !self.config.profile.forward_retransmit || self.cs.ca_state != CaState::Recovery || !self.rec.sack_ok {
            return None;
        }
        // New data is preferred (`tcp_can_forward_retransmit`).
        let (available, _) = self.snd.unsent();
        let window = self.snd.window_end().saturating_sub(self.snd.nxt);
        if available > 0 && window >= available.min(u64::from(self.cs.mss)) {
            return None;
        }
        let highest = self.rec.highest_sack?;
        let mut index = self.rec.forward_hint.max(self.snd.queue.head_index());
        while index < highest {
            let seg = self.snd.queue.get(index)?;
            if !seg.has(SegFlags::SACKED | SegFlags::LOST | SegFlags::EVER_RETRANS | SegFlags::RETRANS) {
                let frame = self.retransmit(index, 1, cache, now)?;
                self.rec.forward_hint = index + 1;
                self.counters.forward_retrans += 1;
                self.rec.prr_out += 1;
                return Some(frame);
            }
            index += 1;
        }
        self.rec.forward_hint = index;
        None
    }

    /// Sends `count` adjacent segments from `index` on again.
    pub(crate) fn retransmit(&mut self, index: u64, count: u32, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        let first = *self.snd.queue.get(index)?;
        let mss = self.current_mss();
        if count == 1 && first.payload() > mss {
            self.snd.queue.split(index, mss);
            self.cs.packets_out += 1;
            self.split_accounting(index);
            return self.retransmit(index, 1, cache, now);
        }
        let last = *self.snd.queue.get(index + u64::from(count) - 1)?;
        // The peer may have taken back its window; then only the head goes (RFC 9293 section 3.8.6.2.1).
        if first.start >= self.snd.window_end() && first.start != self.snd.una {
            return None;
        }
        let fin = last.has(SegFlags::FIN);
        let len = last.end() - first.start - u64::from(fin);
        let Some(frame) = self.send_data(first.start, len, fin, mss, Purpose::Retransmission, cache, now) else {
            self.counters.retrans_fail += 1;
            return None;
        };
        let stamp = self.timestamp(now);
        self.rec.retrans_stamp.get_or_insert((now, stamp));
        for i in index..index + u64::from(count) {
            let (delivered, delivered_at, first_sent) = (self.cs.delivered, self.snd.delivered_at, self.snd.first_sent);
            if let Some(seg) = self.snd.queue.get_mut(i) {
                if !seg.has(SegFlags::RETRANS) {
                    self.cs.retrans_out += 1;
                }
                seg.flags |= SegFlags::RETRANS | SegFlags::EVER_RETRANS;
                seg.sent = now;
                seg.delivered = delivered;
                seg.delivered_at = delivered_at;
                seg.first_sent = first_sent;
            }
            self.rec.resent.push_back((i, now));
        }
        self.rec.undo_retrans = Some(self.rec.undo_retrans.unwrap_or(0) + count);
        self.start_rto(now);
        Some(frame)
    }

    /// After a split at `index`: what is counted for the whole counts for both parts.
    fn split_accounting(&mut self, index: u64) {
        let Some(seg) = self.snd.queue.get(index).copied() else { return };
        if seg.has(SegFlags::SACKED) {
            self.cs.sacked_out += 1;
        }
        if seg.has(SegFlags::LOST) {
            self.cs.lost_out += 1;
        }
        if seg.has(SegFlags::RETRANS) {
            self.cs.retrans_out += 1;
        }
        // Indices behind the split have moved by one.
        for hint in [&mut self.rec.lost_hint, &mut self.rec.original_hint, &mut self.rec.forward_hint] {
            if *hint > index {
                *hint += 1;
            }
        }
        if let Some(highest) = &mut self.rec.highest_sack
            && *highest > index
        {
            *highest += 1;
        }
        for (i, _) in &mut self.rec.resent {
            if *i > index {
                *i += 1;
            }
        }
    }

    /// The reordering timer found losses outside recovery.
    pub(crate) fn start_recovery_by_timer(&mut self, now: Instant) {
        let s = AckSummary { lost_before: self.cs.lost, ..AckSummary::default() };
        self.enter_recovery(&s, now);
        if !self.is_legacy() {
            self.reduce_window(1, false, false);
        }
    }

    /// The delay of early retransmit is over.
    pub(crate) fn delayed_early_retransmit(&mut self, s: &mut AckSummary, now: Instant) {
        if self.cs.ca_state < CaState::Recovery && self.cs.sacked_out > 0 {
            self.enter_recovery(s, now);
            self.mark_head_lost(1, now);
            self.rec.force = true;
        }
    }
}
