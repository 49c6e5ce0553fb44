//! What the user takes.

use crate::endpoint::Endpoint;
use netcore::{Instant, PoolCache};

impl Endpoint {
    /// Bytes that can be read now.
    pub const fn readable(&self) -> u64 {
        self.rcv.ready.len()
    }

    /// Whether the peer has closed its side and everything was read.
    pub fn is_finished(&self) -> bool {
        self.rcv.fin.is_some_and(|fin| self.rcv.nxt > fin) && self.rcv.ready.len() == 0
    }

    /// Reads into `out`; virtual bytes read as zeros. Returns the number of bytes.
    pub fn read(&mut self, out: &mut [u8], cache: &mut PoolCache, now: Instant) -> usize {
        let n = out.len() as u64;
        self.take(n, Some(out), cache, now) as usize
    }

    /// Takes up to `n` bytes without looking at them (`MSG_TRUNC`). Returns the number of bytes.
    pub fn discard(&mut self, n: u64, cache: &mut PoolCache, now: Instant) -> u64 {
        self.take(n, None, cache, now)
    }

    fn take(&mut self, n: u64, out: Option<&mut [u8]>, cache: &mut PoolCache, now: Instant) -> u64 {
        let (taken, freed) = self.rcv.ready.take(n, out, cache);
        if taken == 0 {
            return 0;
        }
        self.rcv.rmem = self.rcv.rmem.saturating_sub(freed);
        self.rcv.copied += taken;
        self.adjust_receive_space(now);
        self.data_taken();
        taken
    }

    /// An ACK may be due because the user has read (`tcp_cleanup_rbuf`).
    fn data_taken(&mut self) {
        let ack = &self.rcv.ack;
        if ack.scheduled {
            let two_segments = self.rcv.nxt - self.rcv.wup > u64::from(ack.rcv_mss);
            if two_segments || (ack.pushed && !ack.pingpong && self.rcv.ready.len() == 0) {
                self.rcv.ack.now = true;
                return;
            }
        }
        if !self.state.may_receive() {
            return;
        }
        // The window has at least doubled: the peer may be waiting for it.
        let left = self.rcv.window_left();
        if 2 * left <= self.rcv.window_clamp {
            let new = self.desired_window();
            if new > 0 && new >= 2 * left {
                self.rcv.ack.scheduled = true;
                self.rcv.ack.now = true;
            }
        }
    }
}
