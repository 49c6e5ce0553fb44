//! Spacing of packets (`tcp_update_pacing_rate`, `tcp_update_skb_after_send`).

use crate::endpoint::Endpoint;
use netcore::congestion::PacingStatus;
use netcore::{Instant, Rate};

impl Endpoint {
    /// Recomputes the pacing rate after an ACK: what the algorithm says if it is a user's, Linux's ratios otherwise.
    pub(crate) fn update_pacing_rate(&mut self) {
        let p = &self.config.profile;
        if !p.pacing_rate {
            self.cs.pacing_rate = self.cs.max_pacing_rate;
            return;
        }
        if self.cc_custom {
            self.cs.pacing_rate = self.cc.pacing_rate(&self.cs);
            return;
        }
        if self.cs.srtt_us8 == 0 {
            self.cs.pacing_rate = self.cs.max_pacing_rate;
            return;
        }
        let slow_start = self.cs.cwnd < self.cs.ssthresh_or_max() / 2;
        let ratio = u64::from(if slow_start { p.pacing_ss_ratio } else { p.pacing_ca_ratio });
        let cwnd = u64::from(self.cs.cwnd.max(self.cs.packets_out));
        // mss × cwnd is below 2^47, the factor 80,000 × ratio below 2^34: 128 bits where 64 may not do.
        let scaled = u128::from(u64::from(self.cs.mss) * cwnd) * u128::from(80_000 * ratio);
        let rate = Rate::from_bytes_per_sec((scaled / u128::from(self.cs.srtt_us8)).min(u128::from(u64::MAX)) as u64);
        self.cs.pacing_rate = Some(self.cs.max_pacing_rate.map_or(rate, |most| rate.min(most)));
    }

    /// Whether the endpoint's own pacing holds the next packet back; arms the timer then.
    pub(crate) fn paced(&mut self, now: Instant) -> bool {
        if self.cs.pacing_status != PacingStatus::Needed || self.snd.pace_at <= now {
            return false;
        }
        self.timers.pacing = Some(self.snd.pace_at);
        true
    }

    /// The departure time of a packet, if a rate is to be kept, and the time of the next one.
    pub(crate) fn departure(&mut self, len: u64, now: Instant) -> Option<Instant> {
        if self.cs.pacing_status == PacingStatus::None || !self.config.profile.is_rack() {
            return None;
        }
        let prior = self.snd.pace_at;
        let at = prior.max(now);
        self.snd.pace_at = at;
        if let Some(rate) = self.cs.pacing_rate
            && self.snd.data_segs_out >= 10
            && let Some(len_ns) = rate.nanos_for(len)
        {
            // Part of the time that a late transmission lost is made good.
            let credit = at.nanos_since(prior);
            self.snd.pace_at = at.plus_nanos(len_ns - (len_ns / 2).min(credit));
        }
        Some(at)
    }
}
