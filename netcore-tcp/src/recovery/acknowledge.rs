//! An acknowledgement arrives (`tcp_ack`).

use super::AckSummary;
use crate::endpoint::Endpoint;
use crate::rtt::RTO_MIN_US;
use crate::segment::Parsed;
use netcore::congestion::{AckFlags, AckSample, CaState, RateSample};
use netcore::wire::TcpFlags;
use netcore::{Instant, PoolCache};

impl Endpoint {
    /// Handles the acknowledgement of a segment from `seq` to `end`. False if the segment is to be dropped.
    pub(crate) fn ack_arrives(
        &mut self,
        seg: &Parsed,
        seq: u64,
        end: u64,
        cache: &mut PoolCache,
        now: Instant,
    ) -> bool {
        let ack = self.snd.space.position(seg.ack, self.snd.una);
        let una = self.snd.una;
        if ack < una {
            // RFC 5961 section 5.2: blind acknowledgements far behind are challenged.
            if una - ack > self.snd.max_window {
                self.challenge_ack();
                return false;
            }
            self.old_ack(seg, ack, now);
            return true;
        }
        if ack > self.snd.nxt {
            self.rcv.ack.scheduled = true;
            self.rcv.ack.now = true;
            return false;
        }
        if end == seq {
            self.counters.pure_acks += 1;
        }
        let legacy = !self.config.profile.fine_rtt;
        let mut s = AckSummary {
            prior_in_flight: self.cs.in_flight(),
            prior_fack: self.rec.highest_sack.map_or(self.snd.queue.head_index(), |i| i + 1),
            una_advanced: ack > una,
            data: end > seq,
            ece: self.rcv.ecn_ok && seg.flags.contains(TcpFlags::ECE),
            echo: seg.timestamps.filter(|_| self.rcv.timestamps).map(|(_, echo)| echo),
            segments: seg.segments,
            lost_before: self.cs.lost,
            ..AckSummary::default()
        };
        self.rec.current_echo = s.echo;
        self.cs.prior_in_flight = s.prior_in_flight;
        self.snd.probes = 0;
        self.snd.keep_alive_probes = 0;
        self.snd.first_unanswered = None;
        s.win_update = self.update_window(seg, ack, seq, end);
        self.process_ece(&s);
        if seg.sacks > 0 && self.rec.sack_ok {
            self.tag_sacked(seg, ack, &mut s, now);
        }
        let prior_packets = self.cs.packets_out;
        if prior_packets == 0 {
            self.snd.una = ack;
            self.cs.snd_una = self.snd.space.wire(ack);
            self.no_queue(now);
            return true;
        }
        self.clean_queue(ack, &mut s, cache, now);
        self.rack_update_reo_wnd(&s);
        if self.config.profile.tail_loss_probe {
            self.process_loss_probe_ack(ack, &s, now);
        }
        let flags = {
            let mut flags = AckFlags::empty();
            flags.set(AckFlags::WIN_UPDATE, s.win_update);
            flags.set(AckFlags::ECE, s.ece);
            flags.set(AckFlags::SLOWPATH, seg.sacks > 0 || s.ece || s.data);
            flags
        };
        self.cc.in_ack_event(&mut self.cs, flags, now);
        let dubious = s.is_dup() || s.data_sacked || s.ece || s.dsack || self.cs.ca_state != CaState::Open;
        if legacy {
            // Before 3.15 the window grew before loss was looked for.
            if s.data_acked && (!dubious || self.may_raise_legacy(&s)) {
                self.grow_window_by_ack(s.acked, now);
            }
            if dubious {
                self.fast_retransmit_alert(&mut s, prior_packets, now);
            }
        } else {
            if dubious || self.cs.sacked_out > 0 && s.una_advanced {
                self.fast_retransmit_alert(&mut s, prior_packets, now);
            }
            self.control_congestion(&s, flags, now);
        }
        if s.una_advanced {
            self.rearm_after_ack(&s, now);
        }
        self.update_pacing_rate();
        self.grow_send_buffer();
        true
    }

    /// An acknowledgement below `una`: only its SACK blocks may tell something.
    fn old_ack(&mut self, seg: &Parsed, ack: u64, now: Instant) {
        if seg.sacks == 0 || !self.rec.sack_ok || self.cs.packets_out == 0 {
            return;
        }
        let head = self.snd.queue.head_index();
        let mut s = AckSummary {
            prior_in_flight: self.cs.in_flight(),
            prior_fack: self.rec.highest_sack.map_or(head, |i| i + 1),
            data: true,
            segments: seg.segments,
            lost_before: self.cs.lost,
            ..AckSummary::default()
        };
        self.tag_sacked(seg, ack, &mut s, now);
        if s.data_sacked || s.dsack {
            let packets = self.cs.packets_out;
            self.fast_retransmit_alert(&mut s, packets, now);
        }
    }

    /// The peer's window (RFC 9293 section 3.10.7.4; `tcp_ack_update_window`).
    fn update_window(&mut self, seg: &Parsed, ack: u64, seq: u64, _end: u64) -> bool {
        let window = u64::from(seg.window) << self.snd.wscale;
        let newer = ack > self.snd.una || seq > self.snd.wl1 || (seq == self.snd.wl1 && window > self.snd.wnd);
        if !newer {
            return false;
        }
        self.snd.wl1 = seq;
        if window == self.snd.wnd {
            return false;
        }
        self.snd.wnd = window;
        self.snd.max_window = self.snd.max_window.max(window);
        // The window field counts from the acknowledgement.
        let opened = ack + window > self.snd.nxt;
        if self.timers.is(crate::timers::Pending::Probe0) && opened {
            self.timers.retransmit = None;
            self.snd.backoff = 0;
        }
        true
    }

    /// Nothing is in flight (`no_queue`).
    fn no_queue(&mut self, now: Instant) {
        let (bytes, fin) = self.snd.unsent();
        if bytes == 0 && !fin {
            return;
        }
        if self.snd.window_end() > self.snd.nxt {
            self.snd.backoff = 0;
            self.timers.retransmit = None;
        } else if self.timers.retransmit.is_none() {
            let when = u64::from(self.rtt.backed_off(self.snd.backoff).max(RTO_MIN_US)) * 1000;
            self.timers.retransmit = Some((crate::timers::Pending::Probe0, now.plus_nanos(when)));
        }
    }

    fn process_ece(&mut self, s: &AckSummary) {
        if s.ece {
            // The reduction is mandatory: nothing to return to.
            self.cs.prior_ssthresh = None;
        }
    }

    /// Whether the window may grow upon a dubious ACK, before 3.15 (`tcp_may_raise_cwnd`).
    fn may_raise_legacy(&self, s: &AckSummary) -> bool {
        (!s.ece || self.cs.in_slow_start()) && !matches!(self.cs.ca_state, CaState::Recovery | CaState::Cwr)
    }

    /// The algorithm may raise the window (`tcp_cong_avoid`).
    fn grow_window_by_ack(&mut self, acked: u32, now: Instant) {
        self.cc.cong_avoid(&mut self.cs, acked, now);
        self.cs.cwnd = self.cs.cwnd.clamp(1, self.cs.cwnd_clamp);
        self.snd.cwnd_stamp = now;
    }

    /// `tcp_cong_control`.
    fn control_congestion(&mut self, s: &AckSummary, flags: AckFlags, now: Instant) {
        if self.cc_custom {
            let sample = self.rate_sample(s, now);
            if self.cc.cong_control(&mut self.cs, flags, &sample, now) {
                return;
            }
        }
        if matches!(self.cs.ca_state, CaState::Recovery | CaState::Cwr) {
            let lost = self.cs.lost > s.lost_before;
            self.reduce_window(s.delivered, lost, s.una_advanced);
        } else if self.may_raise(s) {
            self.grow_window_by_ack(s.delivered, now);
        }
    }

    /// `tcp_may_raise_cwnd`: with much reordering any progress counts, else only cumulative progress.
    fn may_raise(&self, s: &AckSummary) -> bool {
        if self.cs.reordering > self.config.profile.reordering {
            return s.data_acked || s.data_sacked;
        }
        s.data_acked
    }

    /// RTT samples of an ACK go to the estimator and the algorithm (`tcp_ack_update_rtt`, `pkts_acked`).
    pub(crate) fn take_rtt(&mut self, s: &AckSummary, now: Instant) {
        let us = |sent: Option<Instant>| sent.map(|at| (now.nanos_since(at) / 1000).clamp(1, 3_600_000_000) as u32);
        let p = &self.config.profile;
        if !p.fine_rtt {
            self.take_rtt_by_ticks(s, now);
            return;
        }
        let clean = !s.retrans_data_acked;
        let (first, last) = if clean { (us(s.first_acked), us(s.last_acked)) } else { (None, None) };
        let sacked = us(s.first_sacked);
        let mut seq_rtt = first.or(sacked);
        let ca_rtt = last.or_else(|| us(s.last_sacked));
        if seq_rtt.is_none() && s.data_acked {
            seq_rtt = self.rtt_by_timestamp(s.echo, now);
        }
        if let Some(rtt) = ca_rtt {
            self.rtt.note_min(rtt, now);
            self.cs.min_rtt_us = self.rtt.min_rtt_us();
        }
        if let Some(rtt) = seq_rtt {
            self.rtt.sample(rtt, self.snd.una, self.snd.nxt);
            self.cs.srtt_us8 = self.rtt.srtt_us8;
            self.snd.backoff = 0;
        }
        if s.una_advanced {
            let mss = self.cs.mss;
            let in_flight = s.newest.map_or(0, |_| s.prior_in_flight.saturating_mul(mss));
            let sample = AckSample { pkts_acked: s.acked, rtt_us: ca_rtt, in_flight };
            self.cc.pkts_acked(&mut self.cs, &sample, now);
        }
    }

    /// Before 3.15 RTTs were differences of the tick counter.
    fn take_rtt_by_ticks(&mut self, s: &AckSummary, now: Instant) {
        if !s.una_advanced {
            return;
        }
        let clock = self.cs.clock;
        let tick_us = 1_000_000 / clock.hz();
        let ticks = |sent: Option<Instant>| {
            sent.filter(|_| !s.retrans_data_acked)
                .map(|at| clock.jiffies(now).wrapping_sub(clock.jiffies(at)).min(3_600 * clock.hz()) * tick_us)
        };
        let by_timestamp = self.rtt_by_timestamp(s.echo, now);
        let seq_rtt = by_timestamp.or_else(|| ticks(s.first_acked));
        if let Some(rtt) = seq_rtt {
            self.rtt.note_min(rtt.max(tick_us), now);
            self.rtt.sample(rtt.max(tick_us), self.snd.una, self.snd.nxt);
            self.cs.srtt_us8 = self.rtt.srtt_us8;
            self.cs.min_rtt_us = self.rtt.min_rtt_us();
            self.snd.backoff = 0;
        }
        let sample = AckSample { pkts_acked: s.acked, rtt_us: ticks(s.last_acked), in_flight: 0 };
        self.cc.pkts_acked(&mut self.cs, &sample, now);
    }

    /// RTT by the timestamp echoed (RFC 7323 section 4).
    fn rtt_by_timestamp(&self, echo: Option<u32>, now: Instant) -> Option<u32> {
        let echo = echo.filter(|&echo| echo != 0)?;
        let ticks = self.timestamp(now).wrapping_sub(echo);
        if ticks > u32::MAX / 2 {
            return None;
        }
        let us = u64::from(ticks) * 1_000_000 / u64::from(self.config.profile.timestamp_hz);
        Some(us.clamp(1, 3_600_000_000) as u32)
    }

    /// Delivery rate between two ACKs (`tcp_rate_gen`).
    fn rate_sample(&self, s: &AckSummary, now: Instant) -> RateSample {
        let newest = s.newest;
        let interval = newest.map(|seg| {
            let send = seg.sent.nanos_since(seg.first_sent) / 1000;
            let receive = now.nanos_since(seg.delivered_at) / 1000;
            (send, receive)
        });
        let valid = interval.filter(|&(send, receive)| {
            let floor = u64::from(self.rtt.min_rtt_us().unwrap_or(0));
            send.max(receive) >= floor && send.max(receive) > 0
        });
        RateSample {
            prior_mstamp: newest.map_or(Instant::ZERO, |seg| seg.delivered_at),
            prior_delivered: newest.map_or(0, |seg| seg.delivered),
            delivered: newest.map(|seg| (self.cs.delivered - seg.delivered).min(u64::from(u32::MAX)) as u32),
            interval_us: valid.map(|(send, receive)| send.max(receive)),
            snd_interval_us: interval.map_or(0, |(send, _)| send.min(u64::from(u32::MAX)) as u32),
            rcv_interval_us: interval.map_or(0, |(_, receive)| receive.min(u64::from(u32::MAX)) as u32),
            rtt_us: s
                .last_acked
                .or(s.last_sacked)
                .map(|at| (now.nanos_since(at) / 1000).min(u64::from(u32::MAX)) as u32),
            losses: (self.cs.lost - s.lost_before).min(u64::from(u32::MAX)) as u32,
            acked_sacked: s.delivered,
            prior_in_flight: s.prior_in_flight,
            last_end_seq: newest.map_or(0, |seg| self.snd.space.wire(seg.end())),
            is_app_limited: newest.is_some_and(|seg| seg.has(crate::send::queue::SegFlags::APP_LIMITED)),
            is_retrans: newest.is_some_and(|seg| seg.has(crate::send::queue::SegFlags::EVER_RETRANS)),
            ..RateSample::default()
        }
    }
}
