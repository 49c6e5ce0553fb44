//! The window while the application does not use it (RFC 2861; `tcp_cwnd_validate`, `tcp_cwnd_restart`).

use crate::endpoint::Endpoint;
use netcore::Instant;
use netcore::congestion::{CaState, CwndEvent, LimitedRule};

impl Endpoint {
    /// The window a connection starts with, segments (`tcp_init_cwnd`).
    pub(crate) fn initial_window(&self) -> u32 {
        self.config.profile.congestion.initial_window(self.cs.mss)
    }

    /// Threshold to keep when the window shrinks without loss (`tcp_current_ssthresh`).
    pub(crate) fn current_ssthresh(&self) -> Option<u32> {
        if matches!(self.cs.ca_state, CaState::Cwr | CaState::Recovery) {
            return self.cs.ssthresh;
        }
        self.cs.ssthresh.map(|ssthresh| ssthresh.max((self.cs.cwnd >> 1) + (self.cs.cwnd >> 2)))
    }

    /// Sending resumes: after an idle time longer than the timeout the window is restarted.
    pub(crate) fn check_idle_restart(&mut self, now: Instant) {
        if !self.config.profile.slow_start_after_idle || self.cs.packets_out > 0 || self.snd.data_segs_out == 0 {
            return;
        }
        let rto_ns = u64::from(self.rtt.rto_us) * 1000;
        let mut idle = now.nanos_since(self.cs.last_sent);
        if idle <= rto_ns {
            return;
        }
        self.cc.cwnd_event(&mut self.cs, CwndEvent::CwndRestart, now);
        self.cs.ssthresh = self.current_ssthresh();
        let restart = self.initial_window().min(self.cs.cwnd);
        while idle > rto_ns && self.cs.cwnd > restart {
            idle -= rto_ns;
            self.cs.cwnd >>= 1;
        }
        self.cs.cwnd = self.cs.cwnd.max(restart).max(1);
        self.snd.cwnd_stamp = now;
        self.snd.cwnd_used = 0;
    }

    /// After a burst: remembers whether the window was the limit, and lets it decay if it was not for a whole timeout.
    pub(crate) fn validate_window(&mut self, limited: bool, now: Instant) {
        let remembered = self.cs.limited_rule == LimitedRule::Remembered;
        let limited = if remembered {
            let out = self.cs.packets_out;
            if self.snd.una >= self.snd.usage_end
                || limited
                || (!self.cs.is_cwnd_limited && out > self.cs.max_packets_out)
            {
                self.cs.is_cwnd_limited = limited;
                self.cs.max_packets_out = out;
                self.snd.usage_end = self.snd.nxt;
            }
            self.cs.cwnd_limited()
        } else {
            self.cs.packets_out >= self.cs.cwnd
        };
        if limited {
            self.snd.cwnd_used = 0;
            self.snd.cwnd_stamp = now;
            return;
        }
        self.snd.cwnd_used = self.snd.cwnd_used.max(self.cs.packets_out);
        let rto_ns = u64::from(self.rtt.rto_us) * 1000;
        if self.config.profile.slow_start_after_idle && now.nanos_since(self.snd.cwnd_stamp) >= rto_ns {
            self.decay_window(now);
        }
    }

    /// `tcp_cwnd_application_limited`.
    fn decay_window(&mut self, now: Instant) {
        if self.cs.ca_state == CaState::Open && !self.snd.no_space {
            let used = self.snd.cwnd_used.max(self.initial_window());
            if used < self.cs.cwnd {
                self.cs.ssthresh = self.current_ssthresh();
                self.cs.cwnd = (self.cs.cwnd + used) >> 1;
            }
            self.snd.cwnd_used = 0;
        }
        self.snd.cwnd_stamp = now;
    }
}
