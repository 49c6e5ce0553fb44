//! Opening a connection: SYN, SYN-ACK, and what their options settle.

use crate::endpoint::Endpoint;
use crate::error::ConnectionError;
use crate::segment::{Emit, Parsed};
use crate::send::queue::{Seg, SegFlags};
use crate::seq::{ORIGIN, SeqSpace};
use crate::state::State;
use crate::timers::Pending;
use netcore::wire::TcpFlags;
use netcore::{Instant, Packet, PoolCache};

impl Endpoint {
    /// Active open.
    pub(crate) fn start_connect(&mut self, now: Instant) {
        self.select_initial_window();
        self.state = State::SynSent;
        self.snd.syn = true;
        self.rcv.last_arrival = now;
        self.cs.last_sent = now;
    }

    /// The SYN or SYN-ACK.
    pub(crate) fn send_syn(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        let p = &self.config.profile;
        let answer = self.state == State::SynReceived;
        let timestamps = if answer { self.rcv.timestamps } else { p.timestamps };
        let mut flags = TcpFlags::SYN;
        let ack = if answer {
            flags |= TcpFlags::ACK;
            if self.rcv.ecn_ok {
                flags |= TcpFlags::ECE;
            }
            self.rcv.space_of_peer.wire(self.rcv.nxt)
        } else {
            if p.ecn && self.snd.retransmits == 0 {
                flags |= TcpFlags::ECE | TcpFlags::CWR;
            }
            0
        };
        let echo = if answer { self.rcv.ts_recent } else { 0 };
        let emit = Emit {
            seq: self.snd.space.wire(ORIGIN),
            ack,
            flags,
            // Windows of SYNs are never scaled (RFC 7323 section 2.2).
            window: self.rcv.wnd.min(65_535) as u16,
            timestamps: timestamps.then(|| (self.timestamp(now), echo)),
            sack: &[],
            syn: Some(self.syn_options(answer)),
            ecn: 0,
            mss: self.cs.mss,
        };
        let mut frame = self.frame.build(&emit, None, cache).ok()?;
        let truesize = self.truesize(0) as u32;
        self.decorate(&mut frame, truesize, None);
        self.snd.below.hand(ORIGIN, ORIGIN + 1, truesize);
        self.snd.syn = false;
        if answer {
            self.rcv.wup = self.rcv.nxt;
        }
        match self.snd.queue.is_empty() && self.snd.una == ORIGIN {
            true => {
                let seg = Seg {
                    start: ORIGIN,
                    sent: now,
                    delivered: 0,
                    delivered_at: now,
                    first_sent: now,
                    len: 1,
                    flags: SegFlags::SYN,
                };
                self.snd.queue.push(seg);
                self.snd.nxt = ORIGIN + 1;
                self.cs.packets_out = 1;
                self.counters.out_segs += 1;
            }
            false => {
                if let Some(seg) = self.snd.queue.get_mut(self.snd.queue.head_index()) {
                    seg.flags |= SegFlags::EVER_RETRANS;
                    seg.sent = now;
                }
                self.counters.syn_retrans += 1;
                self.counters.retrans_segs += 1;
            }
        }
        self.start_rto(now);
        Some(frame)
    }

    /// The SYN or SYN-ACK was not answered in time.
    pub(crate) fn syn_timer(&mut self, now: Instant) {
        // Linux retries a SYN `tcp_syn_retries` times and a SYN-ACK `tcp_synack_retries` (5) times.
        let most = if self.state == State::SynSent { self.config.profile.syn_retries } else { 5 };
        if self.snd.retransmits >= most {
            self.counters.abort_on_timeout += 1;
            self.state = State::Closed;
            self.error = Some(ConnectionError::TimedOut { retransmissions: self.snd.retransmits });
            self.timers.stop_all();
            return;
        }
        self.counters.timeouts += 1;
        self.snd.retransmits += 1;
        self.snd.backoff += 1;
        self.snd.syn = true;
        let at = now.plus_nanos(u64::from(self.rtt.backed_off(self.snd.backoff)) * 1000);
        self.timers.retransmit = Some((Pending::Retransmit, at));
    }

    /// LISTEN: a connection request.
    pub(crate) fn listen_arrives(&mut self, seg: &Parsed, now: Instant) {
        if seg.flags.contains(TcpFlags::RST) {
            return;
        }
        if seg.flags.contains(TcpFlags::ACK) {
            self.snd.rst = Some(seg.ack);
            return;
        }
        if !seg.flags.contains(TcpFlags::SYN) {
            return;
        }
        self.peer_syn(seg, now);
        let p = &self.config.profile;
        let both = TcpFlags::ECE | TcpFlags::CWR;
        self.rcv.ecn_ok = p.ecn && seg.flags.contains(both);
        self.select_initial_window();
        if !self.rcv.wscale_ok {
            self.rcv.wscale = 0;
        }
        self.state = State::SynReceived;
        self.snd.syn = true;
    }

    /// SYN-SENT: the answer to our SYN, or a SYN that crossed it.
    pub(crate) fn syn_sent_arrives(&mut self, seg: &Parsed, packet: Packet, cache: &mut PoolCache, now: Instant) {
        let ack = seg.flags.contains(TcpFlags::ACK);
        if ack && seg.ack != self.snd.space.wire(ORIGIN + 1) {
            if !seg.flags.contains(TcpFlags::RST) {
                self.snd.rst = Some(seg.ack);
            }
            cache.put(packet);
            return;
        }
        if seg.flags.contains(TcpFlags::RST) {
            if ack {
                self.finish(Some(ConnectionError::Refused), cache);
            }
            cache.put(packet);
            return;
        }
        if !seg.flags.contains(TcpFlags::SYN) {
            cache.put(packet);
            return;
        }
        self.peer_syn(seg, now);
        self.rcv.ecn_ok = self.config.profile.ecn
            && seg.flags.contains(TcpFlags::ECE)
            && (!ack || !seg.flags.contains(TcpFlags::CWR));
        if !self.rcv.wscale_ok {
            self.rcv.wscale = 0;
            self.rcv.window_clamp = self.rcv.window_clamp.min(65_535);
        }
        if ack {
            self.syn_acknowledged(seg, now);
            self.state = State::Established;
            self.established(u64::from(seg.window), now);
            self.rcv.ack.scheduled = true;
            self.rcv.ack.now = true;
        } else {
            // Simultaneous open.
            self.state = State::SynReceived;
            self.snd.syn = true;
        }
        cache.put(packet);
    }

    /// SYN-RECEIVED: the third segment. Returns whether the segment's contents are to be handled.
    pub(crate) fn handshake_completed(&mut self, seg: &Parsed, now: Instant) -> bool {
        if seg.ack != self.snd.space.wire(ORIGIN + 1) {
            let position = self.snd.space.position(seg.ack, self.snd.una);
            if position <= ORIGIN || position > self.snd.nxt {
                self.snd.rst = Some(seg.ack);
                return false;
            }
        }
        self.syn_acknowledged(seg, now);
        self.state = if self.snd.fin { State::FinWait1 } else { State::Established };
        self.established(u64::from(seg.window) << self.snd.wscale, now);
        true
    }

    /// Our SYN left the retransmit queue.
    fn syn_acknowledged(&mut self, seg: &Parsed, now: Instant) {
        let Some(syn) = self.snd.queue.pop_front() else { return };
        self.snd.una = ORIGIN + 1;
        self.snd.nxt = self.snd.nxt.max(ORIGIN + 1);
        self.cs.packets_out = 0;
        self.cs.snd_una = self.snd.space.wire(self.snd.una);
        self.cs.snd_nxt = self.snd.space.wire(self.snd.nxt);
        let fresh = !syn.has(SegFlags::EVER_RETRANS);
        let by_timestamp = seg.timestamps.filter(|_| self.rcv.timestamps).map(|(_, echo)| {
            let ticks = self.timestamp(now).wrapping_sub(echo);
            (u64::from(ticks) * 1_000_000 / u64::from(self.config.profile.timestamp_hz)).clamp(1, 60_000_000) as u32
        });
        let rtt =
            if fresh { Some((now.nanos_since(syn.sent) / 1000).clamp(1, 60_000_000) as u32) } else { by_timestamp };
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, self.snd.una, self.snd.nxt);
            self.rtt.note_min(rtt, now);
            self.cs.srtt_us8 = self.rtt.srtt_us8;
            self.cs.min_rtt_us = self.rtt.min_rtt_us();
        } else if self.snd.retransmits > 0 {
            // RFC 6298 section 5.7: the SYN was lost and nothing is known, so be careful.
            self.rtt.rto_us = self.rtt.rto_us.max(3_000_000);
        }
        if self.snd.retransmits > 1 {
            // Linux starts with a window of one after losing SYNs (`tcp_init_cwnd` upon total_retrans > 1).
            self.rec.syn_lost = true;
        }
        self.snd.retransmits = 0;
        self.snd.backoff = 0;
        self.snd.first_unanswered = None;
        self.timers.retransmit = None;
    }

    /// The peer's SYN: where its stream begins, and its options.
    fn peer_syn(&mut self, seg: &Parsed, now: Instant) {
        let p = self.config.profile;
        self.rcv.space_of_peer = SeqSpace { initial: seg.seq };
        self.rcv.nxt = ORIGIN + 1;
        self.rcv.wup = ORIGIN + 1;
        self.rcv.copied = ORIGIN + 1;
        self.rcv.last_arrival = now;
        self.rec.sack_ok = p.sack && seg.sack_permitted;
        self.rcv.timestamps = p.timestamps && seg.timestamps.is_some();
        if let Some((value, _)) = seg.timestamps.filter(|_| self.rcv.timestamps) {
            self.rcv.ts_recent = value;
            self.rcv.ts_recent_at = now;
        }
        self.rcv.wscale_ok = p.window_scaling && seg.window_scale.is_some();
        self.snd.wscale = seg.window_scale.filter(|_| self.rcv.wscale_ok).unwrap_or(0);
        self.snd.wnd = u64::from(seg.window);
        self.snd.max_window = self.snd.wnd;
        self.snd.wl1 = ORIGIN;
        // RFC 9293 section 3.7.1: no option means 536; smaller than 88 is refused, as Linux does (`TCP_MIN_MSS`).
        self.snd.mss_clamp = u32::from(seg.mss.unwrap_or(536)).max(88).min(self.rcv.advmss);
        let timestamps = if self.rcv.timestamps { 12 } else { 0 };
        self.cs.mss = (self.snd.mss_clamp - timestamps).max(48);
        self.rcv.ack.rcv_mss = self.rcv.ack.rcv_mss.min(self.cs.mss).max(48);
    }

    /// Everything a connection needs once the handshake is over (`tcp_finish_connect`, `tcp_init_transfer`).
    fn established(&mut self, window: u64, now: Instant) {
        self.snd.wnd = window;
        self.snd.max_window = self.snd.max_window.max(window);
        let metric = self.config.reordering_metric;
        if let Some(reordering) = metric {
            self.cs.reordering = reordering.min(self.config.profile.max_reordering).max(self.cs.reordering);
            if reordering > self.config.profile.reordering {
                self.rec.fack = false;
            }
        }
        self.cs.cwnd = if self.rec.syn_lost { 1 } else { self.initial_window() };
        self.snd.cwnd_stamp = now;
        self.cs.last_sent = now;
        self.rcv.ack.last_data = now;
        self.cc.init(&mut self.cs, now);
        self.update_pacing_rate();
        self.fix_up_buffers();
        self.rcv.window_clamp = self.rcv.window_clamp.min(self.full_space().max(self.rcv.wnd));
        self.rcv.ssthresh = self.rcv.ssthresh.min(self.rcv.window_clamp);
        self.init_receive_tuning(now);
        self.arm_keep_alive(now);
    }
}
