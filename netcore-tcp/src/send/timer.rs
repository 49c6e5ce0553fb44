//! Retransmission, probe and keep-alive timers.

use crate::endpoint::Endpoint;
use crate::error::ConnectionError;
use crate::rtt::{RTO_MAX_US, RTO_MIN_US};
use crate::state::State;
use crate::timers::Pending;
use netcore::Instant;

impl Endpoint {
    /// Timeout from now on.
    fn rto_at(&self, now: Instant) -> Instant {
        now.plus_nanos(u64::from(self.rtt.backed_off(self.snd.backoff)) * 1000)
    }

    /// Arms or disarms the retransmission timer after an ACK (`tcp_rearm_rto`).
    pub(crate) fn rearm_rto(&mut self, now: Instant) {
        if self.snd.queue.is_empty() {
            self.timers.retransmit = None;
            return;
        }
        let mut at = self.rto_at(now);
        // A probe or reordering timer was armed in between: the timeout counts from the transmission.
        if self.config.profile.is_rack()
            && (self.timers.is(Pending::LossProbe) || self.timers.is(Pending::Reorder))
            && let Some(head) = self.snd.queue.front()
        {
            let rto_ns = u64::from(self.rtt.backed_off(self.snd.backoff)) * 1000;
            at = head.sent.plus_nanos(rto_ns).max(now.plus_nanos(1_000));
        }
        self.timers.retransmit = Some((Pending::Retransmit, at));
    }

    /// Something was sent: the timer runs if it did not.
    pub(crate) fn start_rto(&mut self, now: Instant) {
        if self.timers.retransmit.is_none() || self.timers.is(Pending::Probe0) {
            self.timers.retransmit = Some((Pending::Retransmit, self.rto_at(now)));
        }
    }

    /// The retransmission timer expired (`tcp_retransmit_timer`).
    pub(crate) fn retransmit_timer(&mut self, now: Instant) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.syn_timer(now);
            return;
        }
        if self.snd.queue.is_empty() {
            return;
        }
        let first = *self.snd.first_unanswered.get_or_insert(now);
        if self.snd.retransmits >= self.config.profile.retries2 || self.gave_up(first, now) {
            self.counters.abort_on_timeout += 1;
            self.time_out(ConnectionError::TimedOut { retransmissions: self.snd.retransmits });
            return;
        }
        self.enter_loss(now);
        self.snd.retransmits += 1;
        self.snd.backoff += 1;
        let at = self.rto_at(now);
        self.timers.retransmit = Some((Pending::Retransmit, at));
    }

    /// `retries2` timeouts with the smallest timeout would be over (`retransmits_timed_out`).
    fn gave_up(&self, first: Instant, now: Instant) -> bool {
        let boundary = u64::from(self.config.profile.retries2);
        let (min, max) = (u64::from(RTO_MIN_US), u64::from(RTO_MAX_US));
        let threshold = 9; // log2(RTO_MAX / RTO_MIN)
        let us = if boundary <= threshold {
            ((2 << boundary) - 1) * min
        } else {
            ((2 << threshold) - 1) * min + (boundary - threshold) * max
        };
        self.snd.retransmits > 0 && now.nanos_since(first) / 1000 >= us
    }

    /// Ends the connection without a word to the peer.
    fn time_out(&mut self, error: ConnectionError) {
        self.error = Some(error);
        self.state = State::Closed;
        self.timers.stop_all();
        self.snd.queue.clear();
        self.snd.syn = false;
        self.rcv.ack.now = false;
        self.cs.packets_out = 0;
    }

    /// Data waits, nothing is in flight and the window is closed: probe it (`tcp_check_probe_timer`).
    pub(crate) fn check_probe(&mut self, now: Instant) {
        let (bytes, fin) = self.snd.unsent();
        if self.snd.queue.is_empty()
            && (bytes > 0 || fin)
            && self.timers.retransmit.is_none()
            && self.state.is_synchronized()
        {
            let when = u64::from(self.rtt.backed_off(self.snd.backoff).max(RTO_MIN_US)) * 1000;
            self.timers.retransmit = Some((Pending::Probe0, now.plus_nanos(when)));
        }
    }

    /// The probe timer expired (`tcp_probe_timer`).
    pub(crate) fn probe_timer(&mut self, now: Instant) {
        let (bytes, fin) = self.snd.unsent();
        if !self.snd.queue.is_empty() || (bytes == 0 && !fin) {
            self.snd.probes = 0;
            return;
        }
        if self.snd.probes >= self.config.profile.retries2 {
            self.counters.abort_on_timeout += 1;
            self.time_out(ConnectionError::TimedOut { retransmissions: self.snd.probes });
            return;
        }
        self.snd.probes += 1;
        self.snd.probe = true;
        if self.snd.backoff < self.config.profile.retries2 {
            self.snd.backoff += 1;
        }
        let when = u64::from(self.rtt.backed_off(self.snd.backoff).max(RTO_MIN_US)) * 1000;
        self.timers.retransmit = Some((Pending::Probe0, now.plus_nanos(when)));
    }

    /// Starts the keep-alive timer anew.
    pub(crate) fn arm_keep_alive(&mut self, now: Instant) {
        if let Some(keep_alive) = self.config.keep_alive
            && self.state.is_synchronized()
            && self.state != State::TimeWait
        {
            self.snd.keep_alive_probes = 0;
            self.timers.keep_alive = Some(now + keep_alive.idle);
        }
    }

    /// The keep-alive timer expired (`tcp_keepalive_timer`).
    pub(crate) fn keep_alive_timer(&mut self, now: Instant) {
        let Some(keep_alive) = self.config.keep_alive else { return };
        let (bytes, _) = self.snd.unsent();
        if !self.snd.queue.is_empty() || bytes > 0 {
            // The retransmission and probe timers look after the connection.
            self.timers.keep_alive = Some(now + keep_alive.idle);
            return;
        }
        let idle_since = self.rcv.last_arrival;
        if self.snd.keep_alive_probes == 0 && idle_since + keep_alive.idle > now {
            self.timers.keep_alive = Some(idle_since + keep_alive.idle);
            return;
        }
        if self.snd.keep_alive_probes >= keep_alive.probes {
            self.snd.rst = Some(self.snd.space.wire(self.snd.nxt));
            self.time_out(ConnectionError::KeepAlive { probes: self.snd.keep_alive_probes });
            return;
        }
        self.snd.keep_alive_probes += 1;
        self.snd.keep_alive_probe = true;
        self.counters.keep_alive += 1;
        self.timers.keep_alive = Some(now + keep_alive.interval);
    }
}
