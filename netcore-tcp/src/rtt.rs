//! Round-trip time and retransmission timeout (RFC 6298 as Linux computes it, `tcp_rtt_estimator`).

use netcore::Instant;

/// Smallest timeout, µs (`TCP_RTO_MIN`, 200 ms).
pub(crate) const RTO_MIN_US: u32 = 200_000;
/// Largest timeout, µs (`TCP_RTO_MAX`, 120 s).
pub(crate) const RTO_MAX_US: u32 = 120_000_000;

/// How long a minimum is remembered, ns (`tcp_min_rtt_wlen`, 300 s).
const MIN_RTT_WINDOW_NS: u64 = 300 * 1_000_000_000;

/// Smoothed RTT, its variation and the timeout that follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// Smoothed RTT in eighths of a µs, 0 before the first sample.
    pub(crate) srtt_us8: u32,
    /// Mean deviation in quarters of a µs.
    mdev_us4: u32,
    /// Largest deviation of the current round, quarters of a µs.
    mdev_max_us4: u32,
    /// Smoothed maximum deviation, quarters of a µs.
    pub(crate) rttvar_us4: u32,
    /// End of the round: the deviation may shrink once this is acknowledged.
    round_end: u64,
    /// The timeout before backoff, µs.
    pub(crate) rto_us: u32,
    min_rtt_us: Option<u32>,
    min_rtt_at: Instant,
}

impl RttEstimator {
    /// No sample yet; the timeout is `initial_rto_us`.
    pub(crate) const fn new(initial_rto_us: u32) -> Self {
        Self {
            srtt_us8: 0,
            mdev_us4: initial_rto_us,
            mdev_max_us4: 0,
            rttvar_us4: 0,
            round_end: 0,
            rto_us: initial_rto_us,
            min_rtt_us: None,
            min_rtt_at: Instant::ZERO,
        }
    }

    /// Takes a sample of `rtt_us`. `una` and `nxt` delimit what is in flight: the deviation shrinks once per round.
    pub(crate) fn sample(&mut self, rtt_us: u32, una: u64, nxt: u64) {
        let m = i64::from(rtt_us.max(1));
        if self.srtt_us8 == 0 {
            let m = rtt_us.clamp(1, u32::MAX / 16);
            self.srtt_us8 = m << 3;
            self.mdev_us4 = m << 1;
            self.rttvar_us4 = self.mdev_us4.max(RTO_MIN_US);
            self.mdev_max_us4 = self.rttvar_us4;
            self.round_end = nxt;
        } else {
            let mut err = m - i64::from(self.srtt_us8 >> 3);
            self.srtt_us8 = (i64::from(self.srtt_us8) + err).clamp(1, i64::from(u32::MAX / 2)) as u32;
            if err < 0 {
                err = -err - i64::from(self.mdev_us4 >> 2);
                // A decrease raises the deviation slowly: it does not make a timeout more likely.
                if err > 0 {
                    err >>= 3;
                }
            } else {
                err -= i64::from(self.mdev_us4 >> 2);
            }
            self.mdev_us4 = (i64::from(self.mdev_us4) + err).clamp(0, i64::from(u32::MAX / 2)) as u32;
            if self.mdev_us4 > self.mdev_max_us4 {
                self.mdev_max_us4 = self.mdev_us4;
                self.rttvar_us4 = self.rttvar_us4.max(self.mdev_max_us4);
            }
            if una > self.round_end {
                if self.mdev_max_us4 < self.rttvar_us4 {
                    self.rttvar_us4 -= (self.rttvar_us4 - self.mdev_max_us4) >> 2;
                }
                self.round_end = nxt;
                self.mdev_max_us4 = RTO_MIN_US;
            }
        }
        self.rto_us = (self.srtt_us8 >> 3).saturating_add(self.rttvar_us4).min(RTO_MAX_US);
    }

    /// Notes a sample for the minimum (`tcp_update_rtt_min`); the minimum is forgotten after 300 s.
    pub(crate) fn note_min(&mut self, rtt_us: u32, now: Instant) {
        let expired = now.nanos_since(self.min_rtt_at) > MIN_RTT_WINDOW_NS;
        if expired || self.min_rtt_us.is_none_or(|min| rtt_us <= min) {
            self.min_rtt_us = Some(rtt_us.max(1));
            self.min_rtt_at = now;
        }
    }

    /// Smallest RTT seen lately, µs.
    pub(crate) const fn min_rtt_us(&self) -> Option<u32> {
        self.min_rtt_us
    }

    /// The timeout doubled `backoff` times, µs.
    pub(crate) fn backed_off(&self, backoff: u32) -> u32 {
        let doubled = u64::from(self.rto_us) << backoff.min(32);
        doubled.min(u64::from(RTO_MAX_US)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_sets_srtt_and_half_of_it_as_deviation() {
        let mut r = RttEstimator::new(1_000_000);
        r.sample(100_000, 0, 10);
        assert_eq!(r.srtt_us8, 800_000);
        assert_eq!(r.rto_us, 100_000 + 200_000, "variance counts at least 200 ms");
    }

    #[test]
    fn srtt_moves_an_eighth_towards_the_sample() {
        let mut r = RttEstimator::new(1_000_000);
        r.sample(100_000, 0, 10);
        r.sample(180_000, 5, 20);
        assert_eq!(r.srtt_us8 / 8, 110_000);
    }

    #[test]
    fn deviation_shrinks_once_per_round_only() {
        let mut r = RttEstimator::new(1_000_000);
        r.sample(10_000, 0, 10);
        r.sample(900_000, 1, 10);
        let high = r.rttvar_us4;
        r.sample(10_000, 5, 10);
        assert_eq!(r.rttvar_us4, high);
        for una in (11..400).step_by(10) {
            r.sample(120_000, una, una + 9);
        }
        assert!(r.rttvar_us4 < high);
    }

    #[test]
    fn backoff_doubles_up_to_two_minutes() {
        let mut r = RttEstimator::new(1_000_000);
        r.sample(10_000, 0, 1);
        assert_eq!(r.backed_off(1), 2 * r.rto_us);
        assert_eq!(r.backed_off(40), RTO_MAX_US);
    }

    #[test]
    fn minimum_is_forgotten_after_five_minutes() {
        let mut r = RttEstimator::new(1_000_000);
        r.note_min(500, Instant::ZERO);
        r.note_min(900, Instant::from_secs(200));
        assert_eq!(r.min_rtt_us(), Some(500));
        r.note_min(900, Instant::from_secs(301));
        assert_eq!(r.min_rtt_us(), Some(900));
    }
}
