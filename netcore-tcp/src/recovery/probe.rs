//! Tail loss probes (RFC 8985 section 7; `tcp_schedule_loss_probe`, `tcp_send_loss_probe`, `tcp_process_tlp_ack`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::rtt::RTO_MIN_US;
use crate::timers::Pending;
use netcore::congestion::CaState;
use netcore::{Instant, Packet, PoolCache};

impl Endpoint {
    /// Arms the probe timer instead of the timeout, if the tail may need one. `advancing`: an ACK has just restarted the
    /// timeout.
    pub(crate) fn schedule_loss_probe(&mut self, advancing: bool, now: Instant) {
        if !self.config.profile.tail_loss_probe
            || !self.rec.sack_ok
            || self.snd.queue.is_empty()
            || self.rec.tlp_high_seq.is_some()
            || !matches!(self.cs.ca_state, CaState::Open | CaState::Cwr)
            || self.timers.is(Pending::Reorder)
        {
            return;
        }
        let tick_us =
            u64::from(self.cs.clock.jiffies_from_micros(1).max(1)) * 1_000_000 / u64::from(self.cs.clock.hz());
        let timeout_us = if self.rtt.srtt_us8 == 0 {
            u64::from(self.config.profile.initial_rto_us)
        } else {
            let two_rtt = u64::from(self.rtt.srtt_us8 >> 2);
            // One packet out: the peer may delay its ACK for as long as the smallest timeout.
            two_rtt + if self.cs.packets_out == 1 { u64::from(RTO_MIN_US) } else { 2 * tick_us }
        };
        let rto_us = u64::from(self.rtt.backed_off(self.snd.backoff));
        // Never later than the timeout would be, which counts from the last transmission of the head.
        let since = if advancing { now } else { self.snd.queue.front().map_or(now, |seg| seg.sent) };
        let rto_at = since.plus_nanos(rto_us * 1000);
        let mut at = now.plus_nanos(timeout_us * 1000);
        if rto_at > now {
            at = at.min(rto_at);
        }
        self.timers.retransmit = Some((Pending::LossProbe, at));
    }

    /// The probe timer expired.
    pub(crate) fn loss_probe_timer(&mut self, now: Instant) {
        if self.rec.tlp_high_seq.is_none() && !self.snd.queue.is_empty() {
            self.rec.tlp_pending = true;
        }
        self.rearm_rto(now);
    }

    /// The probe: new data if there is any, else the last segment again.
    pub(crate) fn poll_loss_probe(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        if !self.rec.tlp_pending {
            return None;
        }
        let (available, _) = self.snd.unsent();
        let mss = self.current_mss();
        let window = self.snd.window_end().saturating_sub(self.snd.nxt);
        if available > 0 && window >= available.min(u64::from(mss)) {
            let len = available.min(u64::from(mss));
            let fin = self.snd.fin && len == available && window > len;
            let frame = self.send_data(self.snd.nxt, len, fin, mss, crate::send::Purpose::New, cache, now)?;
            self.rec.tlp_pending = false;
            self.rec.tlp_retrans = false;
            self.rec.tlp_high_seq = Some(self.snd.nxt);
            self.counters.loss_probes += 1;
            self.rearm_rto(now);
            return Some(frame);
        }
        let Some(last) = self.snd.queue.back().copied() else {
            self.rec.tlp_pending = false;
            return None;
        };
        if self.config.profile.is_rack() && self.snd.below.holds(last.start) {
            self.rec.tlp_pending = false;
            self.counters.spurious_rtx_host_queues += 1;
            return None;
        }
        let index = self.snd.queue.end_index() - 1;
        let frame = self.retransmit(index, 1, cache, now)?;
        self.rec.tlp_pending = false;
        self.rec.tlp_retrans = true;
        self.rec.tlp_high_seq = Some(self.snd.nxt);
        self.counters.loss_probes += 1;
        self.rearm_rto(now);
        Some(frame)
    }

    /// Did the probe repair a loss?
    pub(crate) fn process_loss_probe_ack(&mut self, ack: u64, s: &AckSummary, now: Instant) {
        let Some(end) = self.rec.tlp_high_seq else { return };
        if ack < end {
            return;
        }
        if !self.rec.tlp_retrans || s.dsack {
            // New data, or original and probe both arrived: nothing was lost.
            self.rec.tlp_high_seq = None;
        } else if ack > end {
            // Something after the probe is acknowledged and no duplicate was reported: the probe repaired a loss.
            self.begin_reduction(now);
            self.set_ca_state(CaState::Cwr, now);
            self.end_reduction(now);
            self.try_keep_open(now);
            self.counters.loss_probe_recovery += 1;
            self.rec.tlp_high_seq = None;
        } else if s.is_dup() && !s.data_sacked {
            // A pure duplicate: the original had arrived.
            self.rec.tlp_high_seq = None;
        }
    }
}
