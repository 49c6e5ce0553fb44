//! What the user writes.

use crate::endpoint::Endpoint;
use crate::state::State;
use netcore::{Packet, PoolCache};

/// `MAX_TCP_HEADER + 16 + sizeof(struct sk_buff)` of 2.6.
const PER_SEGMENT_2_6: u64 = 160 + 16 + 232;

impl Endpoint {
    /// Memory of what was written and not acknowledged (`sk_wmem_queued`).
    fn queued_memory(&self) -> u64 {
        let len = self.snd.buffer.len();
        let goal = self.snd.size_goal.max(u64::from(self.cs.mss));
        len + len.div_ceil(goal) * u64::from(self.config.profile.skb_overhead)
    }

    /// Bytes that a write would accept now: 0 if the send buffer is full or the connection does not send.
    pub fn writable(&self) -> u64 {
        if !self.state.may_send() || self.snd.fin {
            return 0;
        }
        self.snd.sndbuf.saturating_sub(self.queued_memory())
    }

    /// Whether so much of the send buffer is free that a waiting writer should go on (`sk_stream_is_writeable`).
    pub fn is_writable(&self) -> bool {
        let queued = self.queued_memory();
        self.writable() > 0 && self.snd.sndbuf.saturating_sub(queued) >= queued >> 1
    }

    /// Copies bytes into the send buffer and says how many were accepted; the rest stays with the caller.
    pub fn write(&mut self, bytes: &[u8], cache: &mut PoolCache) -> usize {
        self.grow_send_buffer();
        let room = usize::try_from(self.writable()).unwrap_or(usize::MAX);
        let n = bytes.len().min(room);
        let taken = self.snd.buffer.push_bytes(&bytes[..n], cache);
        self.snd.no_space = taken < bytes.len();
        taken
    }

    /// Adds `len` bytes that exist only as a length and says how many were accepted.
    pub fn write_virtual(&mut self, len: u64) -> u64 {
        self.grow_send_buffer();
        let n = len.min(self.writable());
        self.snd.buffer.push_virtual(n);
        self.snd.no_space = n < len;
        n
    }

    /// Adds a packet's bytes without copying; they may be caller memory. The packet comes back if the send buffer is full
    /// or the connection does not send; a packet larger than what is free is accepted if anything is.
    ///
    /// # Errors
    /// The packet.
    pub fn write_packet(&mut self, packet: Packet) -> Result<(), Packet> {
        self.grow_send_buffer();
        if self.writable() == 0 {
            self.snd.no_space = true;
            return Err(packet);
        }
        self.snd.buffer.push_packet(packet);
        self.snd.no_space = false;
        Ok(())
    }

    /// Uncorks: what was held back by `TCP_CORK` may go (`TCP_CORK` off).
    pub fn set_cork(&mut self, on: bool) {
        self.config.cork = on;
    }

    /// Switches Nagle's algorithm off or on (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, on: bool) {
        self.config.nodelay = on;
    }

    /// Closes our side after everything written so far. Data may still arrive.
    pub fn close(&mut self, cache: &mut PoolCache) {
        match self.state {
            State::Closed | State::Listen | State::SynSent => self.finish(None, cache),
            State::SynReceived | State::Established => {
                self.snd.fin = true;
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.snd.fin = true;
                self.state = State::LastAck;
            }
            _ => {}
        }
    }

    /// Buffers that hold a few segments at least (`tcp_fixup_sndbuf`, `tcp_fixup_rcvbuf`).
    pub(crate) fn fix_up_buffers(&mut self) {
        let p = self.config.profile;
        if !self.snd.sndbuf_locked {
            let least = 3 * (u64::from(self.cs.mss) + PER_SEGMENT_2_6);
            self.snd.sndbuf = self.snd.sndbuf.max(least.min(p.wmem.max));
        }
        if !self.rcv.rcvbuf_locked {
            let advmss = u64::from(self.rcv.advmss);
            let mut per_segment = advmss + PER_SEGMENT_2_6;
            while self.window_from_space(per_segment) < advmss {
                per_segment += 128;
            }
            self.rcv.rcvbuf = self.rcv.rcvbuf.max((4 * per_segment).min(p.rmem.max));
        }
    }

    /// Space was freed or is wanted: the buffer may grow (`tcp_new_space`, `tcp_sndbuf_expand`).
    pub(crate) fn grow_send_buffer(&mut self) {
        let p = &self.config.profile;
        if self.snd.sndbuf_locked || !self.state.is_synchronized() {
            return;
        }
        let cs = &self.cs;
        let legacy = p.moderate_cwnd;
        let busy = if legacy { cs.packets_out >= cs.cwnd } else { cs.in_flight() >= cs.cwnd };
        if busy {
            return;
        }
        let mss = u64::from(self.snd.mss_clamp.max(cs.mss));
        let (segments, per_segment) = if legacy {
            (cs.cwnd.max(cs.reordering + 1), mss + PER_SEGMENT_2_6)
        } else {
            let per = (mss + 320 + 320).next_power_of_two() + 256;
            (cs.cwnd.max(self.initial_window()).max(cs.reordering + 1), per)
        };
        let factor = u64::from(if self.cc_custom { self.cc.sndbuf_expand(cs) } else { 2 });
        let wanted = factor * u64::from(segments) * per_segment;
        if wanted > self.snd.sndbuf {
            self.snd.sndbuf = wanted.min(p.wmem.max).max(self.snd.sndbuf);
        }
    }
}
