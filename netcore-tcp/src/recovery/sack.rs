//! Selective acknowledgements mark segments (`tcp_sacktag_write_queue`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::segment::Parsed;
use crate::send::queue::SegFlags;
use netcore::Instant;
use netcore::congestion::CaState;

impl Endpoint {
    /// Applies the SACK option of a segment that acknowledges `ack`.
    pub(crate) fn tag_sacked(&mut self, seg: &Parsed, ack: u64, s: &mut AckSummary, now: Instant) {
        let space = self.snd.space;
        let blocks = seg.sack_blocks();
        s.sack_blocks |= !blocks.is_empty();
        let mut ranges = [(0_u64, 0_u64); 4];
        let mut count = 0;
        let mut duplicate = None;
        for (i, block) in blocks.iter().enumerate() {
            let a = space.position(block.left, self.snd.una);
            let b = space.position(block.right, self.snd.una);
            if i == 0
                && self.is_dsack(
                    a,
                    b,
                    ack,
                    blocks.get(1).map(|next| {
                        (space.position(next.left, self.snd.una), space.position(next.right, self.snd.una))
                    }),
                )
            {
                duplicate = Some((a, b));
                self.dsack_received(a, b, s);
                continue;
            }
            // `tcp_is_sackblock_valid`: within what is outstanding.
            if a >= b || b > self.snd.nxt || b <= self.snd.una {
                if b > self.snd.una || a >= b {
                    self.counters.sack_discard += 1;
                }
                continue;
            }
            s.sacked_beyond |= b > self.rec.high_seq;
            ranges[count] = (a, b);
            count += 1;
        }
        if let Some((a, b)) = duplicate {
            self.tag_duplicate(a, b, s);
        }
        ranges[..count].sort_unstable();
        let cached = self.rec.sack_cache;
        for &(a, b) in &ranges[..count] {
            // Only what the last ACK did not report is new.
            let (mut from, to) = (a, b);
            for &(x, y) in &cached {
                if x <= from && from < y {
                    from = y;
                }
            }
            let known_tail = cached.iter().copied().find(|&(x, y)| x > from && x < to && y >= to);
            let stop = known_tail.map_or(to, |(x, _)| x);
            if from < stop {
                self.tag_range(from, stop, a, b, s, now);
            }
        }
        self.rec.sack_cache = ranges;
        for range in &mut self.rec.sack_cache[count..] {
            *range = (0, 0);
        }
        let plausible = self.cs.ca_state != CaState::Loss || self.rec.undo_marker.is_some();
        if let Some(index) = s.reord
            && plausible
        {
            self.check_sack_reordering(index, self.rec.highest_sack.map_or(index, |high| high + 1));
        }
    }

    /// Marks the segments that lie wholly within `a..b`; only those from `from` to `to` can be new.
    fn tag_range(&mut self, from: u64, to: u64, a: u64, b: u64, s: &mut AckSummary, now: Instant) {
        let mut index = self.snd.queue.index_of(from);
        while let Some(seg) = self.snd.queue.get(index).copied() {
            if seg.start >= to {
                break;
            }
            if seg.start >= a && seg.end() <= b {
                self.tag_one(index, s, now);
            }
            index += 1;
        }
    }

    fn tag_one(&mut self, index: u64, s: &mut AckSummary, now: Instant) {
        let highest = self.rec.highest_sack;
        let Some(seg) = self.snd.queue.get_mut(index) else { return };
        if seg.has(SegFlags::SACKED) {
            return;
        }
        let before = *seg;
        if seg.has(SegFlags::RETRANS) {
            // A lost segment of which a retransmission is out: one of them arrived.
            if seg.has(SegFlags::LOST) {
                seg.flags -= SegFlags::LOST | SegFlags::RETRANS;
                self.cs.lost_out -= 1;
                self.cs.retrans_out -= 1;
            }
        } else {
            if !seg.has(SegFlags::EVER_RETRANS) {
                if highest.is_some_and(|high| index < high) {
                    s.reord = Some(s.reord.map_or(index, |low| low.min(index)));
                }
                if seg.end() <= self.rec.high_seq {
                    s.orig_acked = true;
                }
                s.first_sacked.get_or_insert(before.sent);
                s.last_sacked = Some(before.sent);
            }
            if seg.has(SegFlags::LOST) {
                seg.flags -= SegFlags::LOST;
                self.cs.lost_out -= 1;
            }
        }
        seg.flags |= SegFlags::SACKED;
        self.cs.sacked_out += 1;
        self.cs.delivered += 1;
        s.delivered += 1;
        s.data_sacked = true;
        self.rec.highest_sack = Some(highest.map_or(index, |high| high.max(index)));
        self.rack_advance(&before, now);
        self.note_newest(&before, s);
        self.packet_acked(&before, now);
    }

    /// RFC 2883: a first block below the acknowledgement, or inside the second block, reports a duplicate.
    fn is_dsack(&mut self, a: u64, b: u64, ack: u64, next: Option<(u64, u64)>) -> bool {
        if a < ack {
            self.rec.dsack_seen = true;
            self.counters.dsack_recv += 1;
            return true;
        }
        if let Some((x, y)) = next
            && a >= x
            && b <= y
        {
            self.rec.dsack_seen = true;
            self.counters.dsack_ofo_recv += 1;
            return true;
        }
        false
    }

    /// A duplicate was reported: it may prove a retransmission needless.
    fn dsack_received(&mut self, a: u64, b: u64, s: &mut AckSummary) {
        s.dsack = true;
        self.rec
            .rack
            .dsack(self.rec.reord_seen > 0, self.rec.tlp_high_seq.is_some_and(|end| end == b && self.rec.tlp_retrans));
        let mss = u64::from(self.cs.mss.max(1));
        let segments = if b > a { (b - a).div_ceil(mss) } else { 1 } as u32;
        // Data that left the queue before this ACK.
        if b <= self.snd.una
            && self.rec.undo_marker.is_some_and(|marker| b > marker)
            && let Some(left) = &mut self.rec.undo_retrans
        {
            *left = left.saturating_sub(segments);
        }
        if !self.is_valid_dsack(a, b) {
            match self.rec.undo_marker {
                Some(_) => self.counters.dsack_ignored_old += 1,
                None => self.counters.dsack_ignored_no_undo += 1,
            }
        }
    }

    /// Whether a duplicate concerns what is outstanding or what may be undone (`tcp_is_sackblock_valid`).
    fn is_valid_dsack(&self, a: u64, b: u64) -> bool {
        if b > self.snd.nxt || a >= b {
            return false;
        }
        match self.rec.undo_marker {
            _ if a > self.snd.una => true,
            Some(marker) => b <= self.snd.una && b > marker,
            None => false,
        }
    }

    /// A duplicate above the acknowledgement: the segment is still queued.
    fn tag_duplicate(&mut self, a: u64, b: u64, s: &mut AckSummary) {
        if b <= self.snd.una {
            return;
        }
        let mut index = self.snd.queue.index_of(a);
        while let Some(seg) = self.snd.queue.get_mut(index) {
            if seg.start >= b {
                break;
            }
            if seg.start >= a && seg.end() <= b {
                if seg.has(SegFlags::EVER_RETRANS) {
                    if self.rec.undo_marker.is_some_and(|marker| seg.end() > marker)
                        && let Some(left) = &mut self.rec.undo_retrans
                    {
                        *left = left.saturating_sub(1);
                    }
                    if seg.has(SegFlags::SACKED) {
                        s.reord = Some(s.reord.map_or(index, |low| low.min(index)));
                    }
                }
                if seg.has(SegFlags::RETRANS) {
                    seg.flags -= SegFlags::RETRANS;
                    self.cs.retrans_out -= 1;
                }
            }
            index += 1;
        }
    }
}
