//! Loss detection by time (RFC 8985; `tcp_recovery.c`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::send::queue::{Seg, SegFlags};
use crate::timers::Pending;
use netcore::Instant;
use netcore::congestion::CaState;

/// Recoveries after which a widened window is narrowed again (`TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u8 = 16;

/// What RACK remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// Send time of the newest segment delivered, and its end.
    sent: Option<(Instant, u64)>,
    /// RTT of that segment, ns.
    rtt_ns: u64,
    /// Reordering window in quarters of the smallest RTT.
    steps: u8,
    /// Recoveries until `steps` goes back to 1.
    persist: u8,
    /// A DSACK arrived; the window widens once per round trip.
    dsack: bool,
    last_delivered: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Self { sent: None, rtt_ns: 0, steps: 1, persist: 0, dsack: false, last_delivered: 0 }
    }
}

impl Rack {
    /// A duplicate was reported; those of a loss probe, or without reordering seen, say nothing of the window.
    pub(crate) fn dsack(&mut self, reordering_seen: bool, of_probe: bool) {
        if reordering_seen && !of_probe {
            self.dsack = true;
        }
    }

    /// A recovery ended (`tcp_rack_*persist`).
    pub(crate) fn recovery_ended(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Segment `a` was sent after segment `b` (`tcp_rack_sent_after`).
    const fn sent_after(a: (Instant, u64), b: (Instant, u64)) -> bool {
        a.0.as_nanos() > b.0.as_nanos() || (a.0.as_nanos() == b.0.as_nanos() && a.1 > b.1)
    }
}

impl Endpoint {
    /// A segment was delivered (`tcp_rack_advance`).
    pub(crate) fn rack_advance(&mut self, seg: &Seg, now: Instant) {
        let rtt_ns = now.nanos_since(seg.sent);
        let retransmitted = seg.has(SegFlags::EVER_RETRANS);
        if retransmitted && rtt_ns / 1000 < u64::from(self.rtt.min_rtt_us().unwrap_or(0)) {
            // Probably the original that arrived.
            return;
        }
        let key = (seg.sent, seg.end());
        self.rec.rack.rtt_ns = rtt_ns;
        if self.rec.rack.sent.is_none_or(|newest| Rack::sent_after(key, newest)) {
            self.rec.rack.sent = Some(key);
        }
    }

    /// The reordering window, ns (`tcp_rack_reo_wnd`).
    fn rack_window_ns(&self) -> u64 {
        let enough = self.cs.ca_state >= CaState::Recovery || self.cs.sacked_out >= self.cs.reordering;
        if self.rec.reord_seen == 0 && enough {
            return 0;
        }
        let min_rtt = u64::from(self.rtt.min_rtt_us().unwrap_or(0)) * 1000;
        let srtt = u64::from(self.rtt.srtt_us8 / 8) * 1000;
        (min_rtt / 4 * u64::from(self.rec.rack.steps)).min(srtt)
    }

    /// DSACKs widen the window (`tcp_rack_update_reo_wnd`).
    pub(crate) fn rack_update_reo_wnd(&mut self, s: &AckSummary) {
        if !self.config.profile.is_rack() {
            return;
        }
        let rack = &mut self.rec.rack;
        // Once per round trip: the segment that triggered it was sent after the last change.
        if s.newest.map_or(self.cs.delivered, |seg| seg.delivered) < rack.last_delivered {
            rack.dsack = false;
        }
        if rack.dsack {
            rack.steps = rack.steps.saturating_add(1);
            rack.dsack = false;
            rack.last_delivered = self.cs.delivered;
            rack.persist = PERSIST;
        }
    }

    /// Marks what is lost by now, and arms the timer for what may be lost soon.
    pub(crate) fn rack_mark_lost(&mut self, now: Instant) {
        if let Some(timeout_ns) = self.rack_detect(now) {
            let at = now.plus_nanos(timeout_ns + 2_000_000);
            self.timers.retransmit = Some((Pending::Reorder, at));
        }
    }

    /// `tcp_rack_detect_loss`: the longest time that something within the window still has, if anything is.
    fn rack_detect(&mut self, now: Instant) -> Option<u64> {
        let newest = self.rec.rack.sent?;
        let limit_ns = self.rec.rack.rtt_ns + self.rack_window_ns();
        let mut timeout: Option<u64> = None;
        // Originals, in the order they were sent.
        let mut index = self.rec.original_hint.max(self.snd.queue.head_index());
        let mut settled = true;
        while let Some(seg) = self.snd.queue.get(index) {
            let open = !seg.has(SegFlags::SACKED | SegFlags::LOST | SegFlags::EVER_RETRANS);
            if open {
                if !Rack::sent_after(newest, (seg.sent, seg.end())) {
                    break;
                }
                let elapsed = now.nanos_since(seg.sent);
                if elapsed >= limit_ns {
                    self.mark_lost(index, now);
                } else {
                    timeout = Some(timeout.unwrap_or(0).max(limit_ns - elapsed));
                    settled = false;
                }
            }
            index += 1;
            if settled {
                self.rec.original_hint = index;
            }
        }
        // Retransmissions, in the order they were made.
        while let Some(&(index, at)) = self.rec.resent.front() {
            let Some(seg) = self.snd.queue.get(index).filter(|seg| seg.has(SegFlags::RETRANS) && seg.sent == at) else {
                self.rec.resent.pop_front();
                continue;
            };
            if !Rack::sent_after(newest, (seg.sent, seg.end())) {
                break;
            }
            let elapsed = now.nanos_since(at);
            if elapsed < limit_ns {
                timeout = Some(timeout.unwrap_or(0).max(limit_ns - elapsed));
                break;
            }
            self.rec.resent.pop_front();
            self.mark_retransmission_lost(index);
        }
        timeout
    }

    /// Whether a segment has been out for less than RACK waits (`tcp_rack_skb_timeout` > 0).
    pub(crate) fn rack_recent(&self, seg: &Seg, now: Instant) -> bool {
        now.nanos_since(seg.sent) < self.rec.rack.rtt_ns
    }

    /// The reordering timer expired (`tcp_rack_reo_timeout`).
    pub(crate) fn reorder_timer(&mut self, now: Instant) {
        if self.snd.queue.is_empty() {
            return;
        }
        if !self.config.profile.is_rack() {
            // Delayed early retransmit.
            let mut s = AckSummary { lost_before: self.cs.lost, ..AckSummary::default() };
            self.delayed_early_retransmit(&mut s, now);
            self.rearm_rto(now);
            return;
        }
        let before = self.cs.lost;
        self.rack_detect(now);
        if self.cs.lost > before {
            if self.cs.ca_state != CaState::Recovery {
                self.start_recovery_by_timer(now);
            }
            self.rec.force = true;
        }
        if self.timers.retransmit.is_none() {
            self.rearm_rto(now);
        }
    }
}
