//! Waiting for more: Nagle's algorithm and TSO deferral.

use crate::endpoint::Endpoint;
use netcore::Instant;
use netcore::congestion::CaState;

impl Endpoint {
    /// Whether a short segment must wait for an acknowledgement (`tcp_nagle_check` with Minshall's change).
    pub(crate) fn nagle_holds(&self, partial: bool) -> bool {
        if !partial {
            return false;
        }
        if self.config.cork {
            return true;
        }
        let small_in_flight = self.snd.small_end > self.snd.una && self.snd.small_end <= self.snd.nxt;
        !self.config.nodelay && self.cs.packets_out > 0 && small_in_flight
    }

    /// Whether a super-packet of `len` bytes should wait to become larger (`tcp_tso_should_defer`).
    pub(crate) fn should_defer(&mut self, len: u64, is_tail: bool, max_segs: u32, mss: u32, now: Instant) -> bool {
        let modern = self.config.profile.is_rack();
        let state = self.cs.ca_state;
        let sends_now = if modern { state >= CaState::Recovery } else { state != CaState::Open };
        if sends_now || (self.snd.fin && is_tail && !modern) {
            return self.send_now();
        }
        if modern {
            // The last transmission is long past: no ACK clock to wait for.
            let last = self.cs.last_sent;
            if now.nanos_since(last) > 1_000_000 {
                return self.send_now();
            }
        } else if self.snd.defer_expired {
            return self.send_now();
        }
        let mss64 = u64::from(mss);
        let send_window = self.snd.window_end().saturating_sub(self.snd.nxt);
        let room = u64::from(self.cs.cwnd.saturating_sub(self.cs.in_flight())) * mss64;
        let limit = send_window.min(room);
        if limit >= u64::from(max_segs) * mss64 {
            return self.send_now();
        }
        if !is_tail && limit >= len {
            return self.send_now();
        }
        let divisor = u64::from(self.config.profile.tso_win_divisor);
        let window = self.snd.wnd.min(u64::from(self.cs.cwnd) * mss64);
        let enough = match window.checked_div(divisor) {
            Some(chunk) => limit >= chunk,
            None => limit > u64::from(self.cs.reordering) * mss64,
        };
        if enough {
            return self.send_now();
        }
        if modern {
            // The ACK that would open the window comes too late to wait for.
            if let Some(head) = self.snd.queue.front() {
                let srtt_ns = u64::from(self.rtt.srtt_us8 / 8) * 1000;
                let expected = head.sent.plus_nanos(srtt_ns).nanos_since(now);
                if expected > (srtt_ns / 2).min(1_000_000) {
                    return self.send_now();
                }
            }
        }
        if room < send_window && room <= len {
            self.snd.burst_limited = true;
        } else if send_window < room && send_window <= len {
            self.snd.chrono.set(super::chrono::Limit::Window, now);
        }
        if modern && (self.snd.fin || self.state != crate::state::State::Established) && is_tail {
            return self.send_now();
        }
        if self.snd.deferred.is_none() {
            self.snd.deferred = Some(now);
            // One tick in old kernels (the timer is what an ACK does otherwise), 1 ms in new ones.
            let tick_ns = if modern { 1_000_000 } else { 1_000_000_000 / u64::from(self.cs.clock.hz()) };
            self.timers.defer = Some(now.plus_nanos(tick_ns));
        }
        true
    }

    fn send_now(&mut self) -> bool {
        self.snd.deferred = None;
        self.snd.defer_expired = false;
        self.timers.defer = None;
        false
    }
}
