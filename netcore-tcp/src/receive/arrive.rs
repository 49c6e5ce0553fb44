//! A segment arrives (RFC 9293 section 3.10.7, RFC 5961, RFC 7323; `tcp_rcv_state_process`).

use crate::endpoint::Endpoint;
use crate::error::ConnectionError;
use crate::segment::Parsed;
use crate::seq::before;
use crate::state::State;
use netcore::wire::TcpFlags;
use netcore::{Instant, Packet, PoolCache};

/// After this long a timestamp says nothing about the order of segments (`TCP_PAWS_24DAYS`).
const PAWS_EXPIRY_NS: u64 = 24 * 86_400 * 1_000_000_000;

impl Endpoint {
    pub(crate) fn segment_arrives(&mut self, seg: &Parsed, packet: Packet, cache: &mut PoolCache, now: Instant) {
        match self.state {
            State::Closed => {
                self.answer_with_rst(seg);
                cache.put(packet);
            }
            State::Listen => {
                self.listen_arrives(seg, now);
                cache.put(packet);
            }
            State::SynSent => self.syn_sent_arrives(seg, packet, cache, now),
            _ => self.synchronized_arrives(seg, packet, cache, now),
        }
    }

    fn synchronized_arrives(&mut self, seg: &Parsed, packet: Packet, cache: &mut PoolCache, now: Instant) {
        let seq = self.rcv.space_of_peer.position(seg.seq, self.rcv.nxt);
        let end = seq + seg.len as u64 + u64::from(seg.flags.contains(TcpFlags::FIN));
        self.rcv.last_arrival = now;
        if !self.acceptable(seg, seq, end, now) {
            cache.put(packet);
            return;
        }
        if seg.flags.contains(TcpFlags::RST) {
            self.reset_arrives(seq, cache);
            cache.put(packet);
            return;
        }
        if seg.flags.contains(TcpFlags::SYN) {
            if self.state == State::SynReceived && !seg.flags.contains(TcpFlags::ACK) {
                // Our SYN-ACK was lost.
                self.snd.syn = true;
            } else {
                // RFC 5961 section 4.2.
                self.counters.syn_challenge += 1;
                self.challenge_ack();
            }
            cache.put(packet);
            return;
        }
        if !seg.flags.contains(TcpFlags::ACK) {
            cache.put(packet);
            return;
        }
        self.update_ts_recent(seg, seq, now);
        if self.state == State::SynReceived && !self.handshake_completed(seg, now) {
            cache.put(packet);
            return;
        }
        if !self.ack_arrives(seg, seq, end, cache, now) {
            cache.put(packet);
            return;
        }
        self.close_progress(now, cache);
        if self.state == State::Closed {
            cache.put(packet);
            return;
        }
        if let Some((_, echo)) = seg.timestamps
            && self.rcv.timestamps
            && seg.len > 0
        {
            self.measure_receive_rtt_by_timestamp(echo, seg.len, now);
        }
        self.data_arrives(seg, seq, packet, cache, now);
        self.check_ack(now);
        self.arm_keep_alive(now);
    }

    /// PAWS and the sequence check (`tcp_validate_incoming`).
    fn acceptable(&mut self, seg: &Parsed, seq: u64, end: u64, now: Instant) -> bool {
        let rst = seg.flags.contains(TcpFlags::RST);
        if self.rcv.timestamps
            && let Some((value, _)) = seg.timestamps
            && before(value, self.rcv.ts_recent)
            && now.nanos_since(self.rcv.ts_recent_at) < PAWS_EXPIRY_NS
            && !rst
            && !self.is_disordered_ack(seg, seq, end)
        {
            self.counters.paws_estab += 1;
            self.rcv.ack.scheduled = true;
            self.send_dup_ack(seq, end);
            return false;
        }
        let right_edge = self.rcv.nxt + self.rcv.window_left();
        let acceptable = end >= self.rcv.wup && seq <= right_edge;
        if !acceptable {
            if rst {
                self.counters.out_of_window_rst += 1;
            } else if !seg.flags.contains(TcpFlags::SYN) {
                self.send_dup_ack(seq, end);
            } else {
                self.counters.syn_challenge += 1;
                self.challenge_ack();
            }
            return false;
        }
        true
    }

    /// A pure ACK that only repeats what is known may have been overtaken (`tcp_disordered_ack`).
    fn is_disordered_ack(&self, seg: &Parsed, seq: u64, end: u64) -> bool {
        let ack = self.snd.space.position(seg.ack, self.snd.una);
        let window = u64::from(seg.window) << self.snd.wscale;
        let Some((value, _)) = seg.timestamps else { return false };
        let ticks = self.rcv.ts_recent.wrapping_sub(value);
        let age_us = u64::from(ticks) * 1_000_000 / u64::from(self.config.profile.timestamp_hz);
        seq == end
            && seq == self.rcv.nxt
            && ack == self.snd.una
            && window <= self.snd.wnd
            && age_us <= u64::from(self.rtt.rto_us)
    }

    /// Answers a segment that is not wanted (`tcp_send_dupack`).
    fn send_dup_ack(&mut self, seq: u64, end: u64) {
        if end != seq && seq < self.rcv.nxt {
            self.duplicate(seq, end);
        }
        self.rcv.ack.scheduled = true;
        self.rcv.ack.now = true;
    }

    /// RFC 5961 section 3.2: only a RST at exactly the next sequence number counts.
    fn reset_arrives(&mut self, seq: u64, cache: &mut PoolCache) {
        if seq != self.rcv.nxt {
            self.challenge_ack();
            return;
        }
        self.counters.estab_resets += 1;
        let error = match self.state {
            State::TimeWait => None,
            _ => Some(ConnectionError::Reset),
        };
        self.finish(error, cache);
    }

    pub(crate) fn challenge_ack(&mut self) {
        self.counters.challenge_ack += 1;
        self.rcv.ack.scheduled = true;
        self.rcv.ack.now = true;
    }

    /// Remembers the timestamp to echo: that of the latest segment that advanced the window (`tcp_replace_ts_recent`).
    fn update_ts_recent(&mut self, seg: &Parsed, seq: u64, now: Instant) {
        if let Some((value, _)) = seg.timestamps
            && self.rcv.timestamps
            && seq <= self.rcv.wup
            && !before(value, self.rcv.ts_recent)
        {
            self.rcv.ts_recent = value;
            self.rcv.ts_recent_at = now;
        }
    }

    /// RFC 9293 section 3.5.2: a RST that the sender of `seg` will believe.
    fn answer_with_rst(&mut self, seg: &Parsed) {
        if seg.flags.contains(TcpFlags::RST) {
            return;
        }
        if seg.flags.contains(TcpFlags::ACK) {
            self.snd.rst = Some(seg.ack);
        } else {
            let len = seg.len as u32
                + u32::from(seg.flags.contains(TcpFlags::SYN))
                + u32::from(seg.flags.contains(TcpFlags::FIN));
            self.snd.rst = Some(0);
            self.snd.rst_ack = Some(seg.seq.wrapping_add(len));
        }
    }
}
