//! Payload that arrives: in order, out of order, known already, beyond the window (`tcp_data_queue`).

use super::reassembly::{Inserted, Payload};
use crate::endpoint::Endpoint;
use crate::segment::Parsed;
use crate::state::State;
use netcore::wire::TcpFlags;
use netcore::{Instant, Packet, PoolCache};

/// Quick ACKs after a duplicate or damaged delivery.
const MAX_QUICKACKS: u32 = 16;

impl Endpoint {
    /// Takes the payload and FIN of an acceptable segment at position `seq`.
    pub(crate) fn data_arrives(&mut self, seg: &Parsed, seq: u64, packet: Packet, cache: &mut PoolCache, now: Instant) {
        let fin = seg.flags.contains(TcpFlags::FIN);
        let len = seg.len as u64;
        let end = seq + len + u64::from(fin);
        if end == seq {
            cache.put(packet);
            return;
        }
        if !self.state.may_receive() && !matches!(self.state, State::SynReceived) && len > 0 {
            // Data behind the peer's FIN, or after we have closed entirely.
            cache.put(packet);
            return;
        }
        self.note_ecn(seg);
        if end <= self.rcv.nxt {
            // All of it was received before: our ACK was lost, or the peer retransmitted needlessly.
            self.duplicate(seq, end);
            cache.put(packet);
            return;
        }
        let truesize = packet.truesize() as u64;
        let right_edge = self.rcv.nxt + self.rcv.window_left();
        if seq >= right_edge {
            if self.rcv.window_left() == 0 {
                self.counters.zero_window_drop += 1;
            }
            self.enter_quick_ack_mode(MAX_QUICKACKS);
            self.rcv.ack.scheduled = true;
            self.rcv.ack.now = true;
            cache.put(packet);
            return;
        }
        if !self.make_room(truesize, seq > self.rcv.nxt, cache) {
            self.counters.rcvq_drop += 1;
            self.rcv.ack.scheduled = true;
            self.rcv.ack.now = true;
            cache.put(packet);
            return;
        }
        let fin_at = fin.then_some(seq + len);
        let mut payload = take_payload(packet, seg.payload, seg.len, cache);
        if let Some(at) = fin_at {
            self.rcv.fin = Some(self.rcv.fin.map_or(at, |old| old.min(at)));
        }
        let psh = seg.flags.contains(TcpFlags::PSH);
        if seq <= self.rcv.nxt {
            if seq < self.rcv.nxt {
                // Partly known.
                self.dsack(seq, self.rcv.nxt);
                payload.trim_front(self.rcv.nxt - seq);
            }
            self.accept(payload, truesize);
            if len > 0 {
                self.data_received(seg.len, seg.gso_size, psh, now);
                self.measure_scaling(len, truesize);
                if len >= 128 {
                    self.grow_window(len, truesize);
                }
            }
            let had_holes = !self.rcv.ofo.is_empty();
            self.drain_reassembly(cache);
            if had_holes && self.rcv.ofo.is_empty() {
                // RFC 5681 section 4.2: acknowledge at once what fills a hole.
                self.rcv.ack.now = true;
            }
            self.rcv.ofo.acknowledge(self.rcv.nxt);
        } else {
            self.counters.ofo_queue += 1;
            self.rcv.ack.scheduled = true;
            self.data_out_of_order(seq, payload, truesize, cache);
            if len >= 128 {
                self.grow_window(len, truesize);
            }
            if len > 0 {
                self.data_received(seg.len, seg.gso_size, psh, now);
            }
        }
        self.check_fin(now);
    }

    fn data_out_of_order(&mut self, seq: u64, payload: Payload, truesize: u64, cache: &mut PoolCache) {
        let end = seq + payload.len();
        if end == seq {
            return;
        }
        match self.rcv.ofo.insert(seq, payload, truesize, cache) {
            Inserted::Duplicate => {
                self.counters.ofo_merge += 1;
                self.dsack(seq, end);
            }
            Inserted::New { overlap: Some((a, b)) } => {
                self.counters.ofo_merge += 1;
                self.dsack(a, b);
            }
            Inserted::New { overlap: None } => {}
        }
    }

    /// A segment below `rcv_nxt` (`tcp_send_dupack`, out_of_window).
    pub(crate) fn duplicate(&mut self, seq: u64, end: u64) {
        self.counters.delayed_ack_lost += 1;
        self.enter_quick_ack_mode(MAX_QUICKACKS);
        self.dsack(seq, end.min(self.rcv.nxt));
        self.rcv.ack.scheduled = true;
        self.rcv.ack.now = true;
    }

    /// Reports a duplicate in the next ACK (RFC 2883).
    fn dsack(&mut self, start: u64, end: u64) {
        if !self.rec.sack_ok || !self.config.profile.dsack || start >= end {
            return;
        }
        if start < self.rcv.nxt {
            self.counters.dsack_old_sent += 1;
        } else {
            self.counters.dsack_ofo_sent += 1;
        }
        self.rcv.dsack = Some((start, end));
        self.rcv.ack.now = true;
    }

    /// Appends in-order payload.
    fn accept(&mut self, payload: Payload, truesize: u64) {
        let len = payload.len();
        if len == 0 {
            return;
        }
        self.rcv.nxt += len;
        self.rcv.bytes_received += len;
        self.rcv.rmem += truesize;
        self.rcv.ready.push(payload, truesize);
    }

    /// Moves what has come into order (`tcp_ofo_queue`).
    fn drain_reassembly(&mut self, cache: &mut PoolCache) {
        while let Some((mut payload, truesize, known)) = self.rcv.ofo.pop(self.rcv.nxt) {
            if known > 0 {
                let end = self.rcv.nxt;
                self.dsack(end - known, end);
                payload.trim_front(known);
            }
            if payload.len() == 0 {
                payload.free(cache);
            } else {
                self.accept(payload, truesize);
            }
        }
    }

    /// Whether `truesize` more bytes of memory may be taken (`tcp_try_rmem_schedule`): out-of-order data is given up for
    /// in-order data, and a buffer is overcommitted by one packet at most.
    fn make_room(&mut self, truesize: u64, out_of_order: bool, cache: &mut PoolCache) -> bool {
        let used = |e: &Self| e.rcv.rmem + e.rcv.ofo.memory();
        if used(self) <= self.rcv.rcvbuf {
            return true;
        }
        // `tcp_clamp_window`: under autotuning the buffer may grow for data already on its way.
        let max = self.config.profile.rmem.max;
        if !self.rcv.rcvbuf_locked && self.rcv.rcvbuf < max {
            self.rcv.rcvbuf = (used(self) + truesize).min(max);
            if used(self) <= self.rcv.rcvbuf {
                return true;
            }
        }
        if !out_of_order {
            while used(self) > self.rcv.rcvbuf && self.rcv.ofo.prune(cache) {}
        }
        used(self) <= self.rcv.rcvbuf
    }

    /// Learns how much of the memory taken is payload (`tcp_measure_rcv_mss`, 6.6).
    fn measure_scaling(&mut self, len: u64, truesize: u64) {
        if truesize == 0 || len < u64::from(self.rcv.ack.rcv_mss) {
            return;
        }
        let ratio = ((len << 8) / truesize).clamp(1, 255) as u8;
        if ratio != self.rcv.scaling_ratio {
            self.rcv.scaling_ratio = ratio;
            if matches!(self.config.profile.window_share, crate::profile::WindowShare::Measured)
                && self.config.window_clamp.is_none()
            {
                self.rcv.window_clamp = self.full_space();
            }
        }
    }

    /// Congestion marks of the peer's packets (`__tcp_ecn_check_ce`).
    fn note_ecn(&mut self, seg: &Parsed) {
        if !self.rcv.ecn_ok {
            return;
        }
        if seg.flags.contains(TcpFlags::CWR) {
            self.rcv.ecn_demand_cwr = false;
        }
        if seg.ecn == 3 && !self.rcv.ecn_demand_cwr {
            self.enter_quick_ack_mode(2);
            self.rcv.ecn_demand_cwr = true;
        }
    }

    /// Handles the peer's FIN once everything before it is here (`tcp_fin`).
    fn check_fin(&mut self, now: Instant) {
        if self.rcv.fin != Some(self.rcv.nxt) {
            return;
        }
        let next = match self.state {
            State::SynReceived | State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            _ => return,
        };
        self.rcv.nxt += 1;
        self.rcv.ack.scheduled = true;
        self.rcv.ack.now = true;
        self.state = next;
        if next == State::TimeWait {
            self.enter_time_wait(now);
        }
    }
}

/// The payload of `packet`: a length if it is virtual, the packet otherwise.
fn take_payload(packet: Packet, from: usize, len: usize, cache: &mut PoolCache) -> Payload {
    let all_virtual =
        packet.head_len() == from && !packet.is_linear() && packet.segments().skip(1).all(|s| s.is_virtual());
    if len == 0 || all_virtual {
        cache.put(packet);
        return Payload::Virtual(len as u64);
    }
    Payload::Bytes { packet, from, to: from + len }
}
