//! The next frame (`tcp_write_xmit`, `tcp_xmit_retransmit_queue`, `tcp_send_ack`).

use super::chrono::Limit;
use super::queue::{Seg, SegFlags};
use crate::endpoint::Endpoint;
use crate::segment::{Emit, MAX_SACK_BLOCKS, SynOptions};
use crate::state::State;
use netcore::congestion::{CaState, CwndEvent, PacketInfo};
use netcore::wire::{SackBlock, TcpFlags};
use netcore::{Instant, Packet, PoolCache};

/// A pure ACK is charged two bytes (`skb_set_tcp_pure_ack`).
const PURE_ACK_TRUESIZE: u32 = 2;

/// What a data segment is sent for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    New,
    Retransmission,
}

impl Endpoint {
    /// The next frame to send, `None` if there is nothing or nothing may go now. Super-packets have `gso` set.
    ///
    /// If `cache` cannot give a buffer, nothing is lost: the frame is tried again at the next call, at the latest when a
    /// timer runs.
    pub fn poll_transmit(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        if let Some(frame) = self.poll_reset(cache) {
            return Some(frame);
        }
        if self.snd.syn {
            return self.send_syn(cache, now);
        }
        if self.state.is_synchronized() {
            if let Some(frame) = self.poll_data(cache, now) {
                self.snd.burst += 1;
                return Some(frame);
            }
            self.end_burst(now);
        }
        if self.rcv.ack.now && !matches!(self.state, State::Closed | State::Listen | State::SynSent) {
            return self.send_pure_ack(self.snd.nxt, cache);
        }
        None
    }

    /// Tells that a packet with this connection's flow id and `truesize` left the device or was dropped below
    /// (`tcp_wfree`).
    pub fn completed(&mut self, truesize: u32, now: Instant) {
        let _ = now;
        self.snd.below.complete(truesize);
        self.snd.throttled = false;
    }

    /// Tells that a packet was dropped in this host, by a full qdisc: the window is reduced as upon a congestion echo
    /// (`tcp_transmit_skb` upon `NET_XMIT_DROP`). The packet itself is found lost like any other.
    pub fn local_congestion(&mut self, now: Instant) {
        if self.cs.packets_out > 0 {
            self.enter_cwr(now);
        }
    }

    fn poll_data(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        if self.snd.probe {
            self.snd.probe = false;
            if let Some(frame) = self.send_window_probe(cache, now) {
                return Some(frame);
            }
        }
        if self.snd.keep_alive_probe {
            self.snd.keep_alive_probe = false;
            let old = self.snd.una.wrapping_sub(1);
            return self.send_pure_ack(old, cache);
        }
        if let Some(frame) = self.poll_loss_probe(cache, now) {
            return Some(frame);
        }
        if let Some(frame) = self.poll_retransmit(cache, now) {
            return Some(frame);
        }
        self.poll_new_data(cache, now)
    }

    /// New data (`tcp_write_xmit`).
    fn poll_new_data(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        let (available, fin) = self.snd.unsent();
        if available == 0 && !fin {
            return None;
        }
        let mss = self.current_mss();
        let fin_only = available == 0;
        if self.cs.packets_out == 0 && self.snd.burst == 0 {
            self.check_idle_restart(now);
        }
        if self.paced(now) {
            return None;
        }
        let quota = self.cs.cwnd.saturating_sub(self.cs.in_flight());
        // A FIN alone is not held back by the window (`tcp_cwnd_test`).
        if quota == 0 && !(fin_only && self.cs.packets_out < 3) {
            self.snd.burst_limited = true;
            return None;
        }
        let window = self.snd.window_end().saturating_sub(self.snd.nxt);
        let first = available.min(u64::from(mss)) + u64::from(fin_only);
        if window < first.max(1) {
            self.snd.chrono.set(Limit::Window, now);
            return None;
        }
        if fin_only {
            return self.send_data(self.snd.nxt, 0, true, mss, Purpose::New, cache, now);
        }
        let len = self.next_skb_len(mss);
        let is_tail = self.snd.nxt + len == self.snd.buffer.end();
        let max_segs = self.autosize(mss);
        let modern_quota = if self.config.profile.is_rack() { quota.min(max_segs) } else { quota };
        let mut send = len;
        if len <= u64::from(mss) {
            let partial = len < u64::from(mss);
            if is_tail && partial && !fin && self.nagle_holds(true) {
                return None;
            }
        } else if self.should_defer(len, is_tail, max_segs, mss, now) {
            return None;
        } else {
            send = self.split_point(len, mss, modern_quota.min(max_segs), window, is_tail && !fin);
        }
        if len <= u64::from(mss) && len > window {
            send = window;
        }
        if send == 0 {
            return None;
        }
        if self.small_queue_full(self.truesize(send), false) {
            self.snd.throttled = true;
            self.counters.small_queue_stops += 1;
            return None;
        }
        let with_fin = fin && self.snd.nxt + send == self.snd.buffer.end() && send < window;
        self.send_data(self.snd.nxt, send, with_fin, mss, Purpose::New, cache, now)
    }

    /// Length of the packet at the front of the write queue. Packets are built up to the goal while data is written; what
    /// a split leaves over stays a packet of its own.
    fn next_skb_len(&mut self, mss: u32) -> u64 {
        let goal = self.super_goal(mss);
        self.snd.size_goal = goal;
        let (nxt, end) = (self.snd.nxt, self.snd.buffer.end());
        if nxt >= self.snd.skb_end {
            self.snd.skb_start = nxt;
        }
        // The tail of the queue takes more data until it is as large as the goal.
        let limit = (self.snd.skb_start + goal).max(nxt + 1);
        self.snd.skb_end =
            if nxt >= self.snd.skb_end || self.snd.skb_end < limit { limit.min(end) } else { self.snd.skb_end };
        self.snd.skb_end = self.snd.skb_end.clamp(nxt + 1, end);
        self.snd.skb_end - nxt
    }

    /// Bytes to send of a packet of several segments (`tcp_mss_split_point`).
    fn split_point(&self, len: u64, mss: u32, segments: u32, window: u64, is_tail: bool) -> u64 {
        let mss = u64::from(mss);
        let most = mss * u64::from(segments.max(1));
        if most <= window && !is_tail {
            return most.min(len);
        }
        let needed = len.min(window);
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if partial != 0 && self.nagle_holds(true) { needed - partial } else { needed }
    }

    /// A frame with `len` bytes from `start`, and the entries of the retransmit queue if the data is new.
    #[expect(clippy::too_many_arguments, reason = "one call, one segment; a struct would only rename them")]
    pub(crate) fn send_data(
        &mut self,
        start: u64,
        len: u64,
        fin: bool,
        mss: u32,
        purpose: Purpose,
        cache: &mut PoolCache,
        now: Instant,
    ) -> Option<Packet> {
        let payload = match len {
            0 => None,
            _ => Some(self.snd.buffer.payload(start, len as usize, cache).ok()?),
        };
        let end = start + len;
        let new = purpose == Purpose::New;
        let mut flags = TcpFlags::ACK;
        if fin {
            flags |= TcpFlags::FIN;
        }
        let is_tail = end == self.snd.buffer.end();
        if len > 0 && (is_tail || end == self.snd.skb_end) {
            flags |= TcpFlags::PSH;
        }
        let mut ecn = 0;
        if self.rcv.ecn_ok {
            if self.rcv.ecn_demand_cwr {
                flags |= TcpFlags::ECE;
            }
            if new && len > 0 {
                ecn = 2;
                if self.snd.ecn_cwr {
                    self.snd.ecn_cwr = false;
                    flags |= TcpFlags::CWR;
                }
            }
        }
        let in_flight_before = self.cs.in_flight();
        let mut frame = self.emit(start, flags, ecn, mss, payload, cache, now)?;
        let segments = (len as u32).div_ceil(mss).max(1);
        let truesize = self.truesize(len) as u32;
        let departure = self.departure(frame.len() as u64, now);
        self.decorate(&mut frame, truesize, departure);
        self.snd.below.hand(start, end + u64::from(fin), truesize);
        if self.snd.below.charged() > (1 << 40) {
            // Nobody reports completions: without small queues nobody has to.
            self.snd.below = super::below::Below::default();
        }
        self.snd.data_segs_out += u64::from(len > 0) * u64::from(segments);
        self.snd.bytes_sent += len;
        self.ack_sent(segments);
        if new {
            self.counters.out_segs += u64::from(segments);
            self.counters.orig_data_sent += u64::from(segments);
            if in_flight_before == 0 {
                self.cc.cwnd_event(&mut self.cs, CwndEvent::TxStart, now);
            }
            self.note_sent(start, len, fin, mss, in_flight_before, now);
        } else {
            self.counters.retrans_segs += u64::from(segments);
            self.snd.bytes_retrans += len;
        }
        self.cs.last_sent = now;
        if now.nanos_since(self.rcv.ack.last_data) < self.rcv.ack.ato_us * 1000 {
            self.rcv.ack.pingpong = true;
        }
        Some(frame)
    }

    /// Enters new data into the retransmit queue (`tcp_event_new_data_sent`).
    fn note_sent(&mut self, start: u64, len: u64, fin: bool, mss: u32, in_flight_before: u32, now: Instant) {
        let was_empty = self.cs.packets_out == 0;
        if was_empty {
            // The flight begins: rates are measured from here.
            self.snd.first_sent = now;
            self.snd.delivered_at = now;
        }
        let app_limited = self.cs.app_limited;
        let (mut at, end) = (start, start + len);
        let mut count = 0;
        loop {
            let n = (end - at).min(u64::from(mss)) as u32;
            let last = at + u64::from(n) == end;
            let mut flags = SegFlags::empty();
            flags.set(SegFlags::FIN, last && fin);
            flags.set(SegFlags::APP_LIMITED, app_limited);
            let seg = Seg {
                start: at,
                sent: now,
                delivered: self.cs.delivered,
                delivered_at: self.snd.delivered_at,
                first_sent: self.snd.first_sent,
                len: n + u32::from(last && fin),
                flags,
            };
            self.snd.queue.push(seg);
            if self.cc_custom {
                let info = PacketInfo {
                    number: seg.start,
                    bytes: n,
                    sent_at: now,
                    delivered_at_send: seg.delivered,
                    app_limited,
                    retransmission: false,
                };
                self.cc.packet_sent(&mut self.cs, &info, now);
            }
            count += 1;
            at += u64::from(n);
            if last {
                break;
            }
        }
        let nxt = end + u64::from(fin);
        self.snd.skb_ends.push_back(nxt);
        if fin {
            self.snd.fin_sent = true;
        }
        if len < u64::from(count) * u64::from(mss) {
            self.snd.small_end = nxt;
        }
        self.snd.nxt = nxt;
        self.cs.snd_nxt = self.snd.space.wire(nxt);
        self.cs.packets_out += count;
        if matches!(self.cs.ca_state, CaState::Recovery | CaState::Cwr) {
            self.rec.prr_out += count;
        }
        let _ = in_flight_before;
        self.snd.chrono.set(Limit::Busy, now);
        self.start_rto(now);
    }

    /// Nothing more goes: what limited the burst is remembered, the loss probe is armed.
    fn end_burst(&mut self, now: Instant) {
        let (available, fin) = self.snd.unsent();
        if self.snd.burst > 0 {
            self.snd.burst = 0;
            let limited = self.snd.burst_limited || self.cs.in_flight() >= self.cs.cwnd;
            self.schedule_loss_probe(false, now);
            self.validate_window(limited, now);
        } else if self.snd.burst_limited && self.cs.limited_rule == netcore::congestion::LimitedRule::Remembered {
            self.validate_window(true, now);
        }
        self.snd.burst_limited = false;
        if available == 0 && !fin {
            // The application has nothing: rate samples until all this is acknowledged say little.
            if self.cs.in_flight() < self.cs.cwnd && self.cs.lost_out <= self.cs.retrans_out {
                self.snd.app_limited_until = self.cs.delivered + u64::from(self.cs.in_flight().max(1));
                self.cs.app_limited = true;
            }
            if self.snd.queue.is_empty() {
                self.snd.chrono.set(Limit::Idle, now);
            } else if self.snd.no_space {
                self.snd.chrono.set(Limit::Buffer, now);
            }
        } else {
            self.check_probe(now);
        }
    }

    /// A zero-window probe: new data if the window takes any, else an old sequence number (`tcp_write_wakeup`).
    fn send_window_probe(&mut self, cache: &mut PoolCache, now: Instant) -> Option<Packet> {
        self.counters.win_probe += 1;
        let (available, fin) = self.snd.unsent();
        let window = self.snd.window_end().saturating_sub(self.snd.nxt);
        if window > 0 && available > 0 {
            let mss = self.current_mss();
            let len = available.min(window).min(u64::from(mss));
            let with_fin = fin && len == available && window > len;
            return self.send_data(self.snd.nxt, len, with_fin, mss, Purpose::New, cache, now);
        }
        self.send_pure_ack(self.snd.una.wrapping_sub(1), cache)
    }

    /// An acknowledgement without data.
    pub(crate) fn send_pure_ack(&mut self, seq: u64, cache: &mut PoolCache) -> Option<Packet> {
        let mut flags = TcpFlags::ACK;
        if self.rcv.ecn_ok && self.rcv.ecn_demand_cwr {
            flags |= TcpFlags::ECE;
        }
        let now = self.cs.last_sent.max(self.rcv.last_arrival);
        let mut frame = self.emit(seq, flags, 0, self.cs.mss, None, cache, now)?;
        self.decorate(&mut frame, PURE_ACK_TRUESIZE, None);
        self.snd.below.hand(seq, seq, PURE_ACK_TRUESIZE);
        self.counters.out_segs += 1;
        self.counters.pure_acks_sent += 1;
        self.ack_sent(1);
        Some(frame)
    }

    /// A RST that is owed.
    fn poll_reset(&mut self, cache: &mut PoolCache) -> Option<Packet> {
        let seq = self.snd.rst?;
        let ack = self.snd.rst_ack;
        let synchronized = self.rcv.nxt > crate::seq::ORIGIN;
        let (flags, ack) = match ack {
            Some(ack) => (TcpFlags::RST | TcpFlags::ACK, ack),
            None if synchronized => (TcpFlags::RST | TcpFlags::ACK, self.rcv.space_of_peer.wire(self.rcv.nxt)),
            None => (TcpFlags::RST, 0),
        };
        let emit =
            Emit { seq, ack, flags, window: 0, timestamps: None, sack: &[], syn: None, ecn: 0, mss: self.cs.mss };
        let mut frame = self.frame.build(&emit, None, cache).ok()?;
        self.decorate(&mut frame, PURE_ACK_TRUESIZE, None);
        self.snd.rst = None;
        self.snd.rst_ack = None;
        self.counters.out_segs += 1;
        self.counters.out_rsts += 1;
        Some(frame)
    }

    /// Builds a segment of an established connection.
    #[expect(clippy::too_many_arguments, reason = "the fields of one header")]
    fn emit(
        &mut self,
        seq: u64,
        flags: TcpFlags,
        ecn: u8,
        mss: u32,
        payload: Option<Packet>,
        cache: &mut PoolCache,
        now: Instant,
    ) -> Option<Packet> {
        let mut sack = [SackBlock { left: 0, right: 0 }; MAX_SACK_BLOCKS];
        let count = self.fill_sack(&mut sack);
        let window = self.select_window();
        let timestamps = self.rcv.timestamps.then(|| (self.timestamp(now), self.rcv.ts_recent));
        let emit = Emit {
            seq: self.snd.space.wire(seq),
            ack: self.rcv.space_of_peer.wire(self.rcv.nxt),
            flags,
            window,
            timestamps,
            sack: &sack[..count],
            syn: None,
            ecn,
            mss,
        };
        let frame = self.frame.build(&emit, payload, cache).ok()?;
        self.rcv.dsack = None;
        Some(frame)
    }

    /// The SACK option: a duplicate first, then the latest ranges.
    fn fill_sack(&self, out: &mut [SackBlock; MAX_SACK_BLOCKS]) -> usize {
        if !self.rec.sack_ok {
            return 0;
        }
        let most = if self.rcv.timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        let space = self.rcv.space_of_peer;
        let mut n = 0;
        if let Some((a, b)) = self.rcv.dsack {
            out[0] = SackBlock { left: space.wire(a), right: space.wire(b) };
            n = 1;
            // RFC 2883 section 4: a duplicate within held data is followed by the range that holds it.
            if a >= self.rcv.nxt
                && let Some((x, y)) = self.rcv.ofo.range_of(a)
                && n < most
            {
                out[n] = SackBlock { left: space.wire(x), right: space.wire(y) };
                n += 1;
            }
        }
        for block in self.rcv.ofo.blocks(space) {
            if n >= most {
                break;
            }
            if !out[..n].contains(&block) {
                out[n] = block;
                n += 1;
            }
        }
        n
    }

    /// Bytes that SACK blocks take from a data segment.
    pub(crate) fn sack_option_len(&self) -> usize {
        if self.rcv.ofo.is_empty() && self.rcv.dsack.is_none() {
            return 0;
        }
        let mut blocks = [SackBlock { left: 0, right: 0 }; MAX_SACK_BLOCKS];
        match self.fill_sack(&mut blocks) {
            0 => 0,
            n => 4 + 8 * n,
        }
    }

    /// Metadata that the layers below read.
    pub(crate) fn decorate(&self, frame: &mut Packet, truesize: u32, departure: Option<Instant>) {
        frame.set_truesize(truesize as usize);
        frame.set_flow_id(Some(self.config.flow_id));
        frame.set_hash(Some((self.seed >> 16) as u32), true);
        frame.set_pacing_rate(self.cs.pacing_rate);
        if self.config.priority != 0 {
            frame.set_priority(self.config.priority);
        }
        if departure.is_some() {
            frame.set_departure(departure);
        }
    }

    /// The timestamp clock.
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        let hz = u64::from(self.config.profile.timestamp_hz);
        let ticks = match hz {
            1000 => now.as_millis(),
            _ => (u128::from(now.as_micros()) * u128::from(hz) / 1_000_000) as u64,
        };
        (ticks as u32).wrapping_add((self.seed >> 8) as u32)
    }

    /// The options of our SYN.
    pub(crate) fn syn_options(&self, answer: bool) -> SynOptions {
        let p = &self.config.profile;
        SynOptions {
            mss: self.rcv.advmss as u16,
            window_scale: (p.window_scaling && (!answer || self.rcv.wscale_ok)).then_some(self.rcv.wscale),
            sack_permitted: p.sack && (!answer || self.rec.sack_ok),
        }
    }
}
