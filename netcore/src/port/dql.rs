//! Dynamic queue limits, the mechanism of byte queue limits (Linux: `lib/dynamic_queue_limits.c`, BQL).

use crate::time::Instant;
use core::time::Duration;

/// How many bytes may be in a device's transmit ring, adapted so that the ring never runs dry between two completions and
/// holds no more than that takes.
#[derive(Clone, Debug)]
pub struct QueueLimit {
    limit: u64,
    min_limit: u64,
    max_limit: u64,
    hold_time: Duration,
    queued: u64,
    completed: u64,
    last_object: u64,
    previous_over_limit: u64,
    previous_queued: u64,
    previous_last_object: u64,
    lowest_slack: Option<u64>,
    slack_start: Instant,
}

impl QueueLimit {
    /// Largest limit that Linux allows (`DQL_MAX_LIMIT`), bytes.
    pub const MAX_LIMIT: u64 = u32::MAX as u64 / 2 - (u32::MAX as u64 / 16);

    /// A limit that starts at zero, so that the first burst finds it (Linux: `dql_init` with a hold time of one second).
    pub const fn new() -> Self {
        Self {
            limit: 0,
            min_limit: 0,
            max_limit: Self::MAX_LIMIT,
            hold_time: Duration::from_secs(1),
            queued: 0,
            completed: 0,
            last_object: 0,
            previous_over_limit: 0,
            previous_queued: 0,
            previous_last_object: 0,
            lowest_slack: None,
            slack_start: Instant::ZERO,
        }
    }

    /// Keeps the limit within `min..=max` bytes (Linux: `limit_min`, `limit_max` in sysfs). A `min` above `max` is taken as
    /// `max`.
    pub fn set_range(&mut self, min: u64, max: u64) {
        self.max_limit = max.min(Self::MAX_LIMIT);
        self.min_limit = min.min(self.max_limit);
        self.limit = self.limit.clamp(self.min_limit, self.max_limit);
    }

    /// How long slack must last before it is given up (Linux: `hold_time` in sysfs, there in milliseconds). Default one second.
    pub fn set_hold_time(&mut self, hold_time: Duration) {
        self.hold_time = hold_time;
    }

    /// The limit now, bytes.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in the ring.
    pub const fn in_flight(&self) -> u64 {
        self.queued - self.completed
    }

    /// Bytes that may still be queued; negative as soon as the limit is passed, which one packet may do
    /// (Linux: `dql_avail`).
    pub const fn available(&self) -> i64 {
        self.limit as i64 - self.in_flight() as i64
    }

    /// Counts a packet of `bytes` that went into the ring (Linux: `dql_queued`).
    pub fn queued(&mut self, bytes: u64) {
        self.last_object = bytes;
        self.queued += bytes;
    }

    /// Counts `bytes` that the device has sent, all packets of one completion interrupt together, and adapts the limit
    /// (Linux: `dql_completed`). More bytes than are in flight are taken as all of them.
    pub fn completed(&mut self, bytes: u64, now: Instant) {
        let bytes = bytes.min(self.in_flight());
        if bytes == 0 {
            return;
        }
        let completed = self.completed + bytes;
        let mut limit = self.limit;
        let mut over_limit = self.in_flight().saturating_sub(limit);
        let in_progress = self.queued - completed;
        let previously_in_progress = self.previous_queued.saturating_sub(self.completed);
        let previous_done = completed >= self.previous_queued;

        if (over_limit > 0 && in_progress == 0) || (self.previous_over_limit > 0 && previous_done) {
            // The ring ran dry although more was waiting above it: grow by what was sent beyond the previous interval.
            limit += completed.saturating_sub(self.previous_queued) + self.previous_over_limit;
            self.slack_start = now;
            self.lowest_slack = None;
        } else if in_progress > 0 && previously_in_progress > 0 && !previous_done {
            // It did not run dry: whatever was left over in every interval of the hold time is slack.
            let slack = (limit + self.previous_over_limit).saturating_sub(2 * bytes);
            let last_object = match self.previous_over_limit {
                0 => 0,
                over => self.previous_last_object.saturating_sub(over),
            };
            let slack = slack.max(last_object);
            let lowest = self.lowest_slack.map_or(slack, |lowest| lowest.min(slack));
            self.lowest_slack = Some(lowest);
            if now > self.slack_start + self.hold_time {
                limit = limit.saturating_sub(lowest);
                self.slack_start = now;
                self.lowest_slack = None;
            }
        }
        limit = limit.clamp(self.min_limit, self.max_limit);
        if limit != self.limit {
            self.limit = limit;
            over_limit = 0;
        }
        self.previous_over_limit = over_limit;
        self.previous_last_object = self.last_object;
        self.previous_queued = self.queued;
        self.completed = completed;
    }

    /// Forgets what is in the ring and starts over (Linux: `dql_reset`).
    pub fn reset(&mut self, now: Instant) {
        let Self { min_limit, max_limit, hold_time, .. } = *self;
        *self = Self { slack_start: now, min_limit, max_limit, hold_time, limit: min_limit, ..Self::new() };
    }
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_grows_until_the_ring_no_longer_runs_dry() {
        // A device that completes 10 packets of 1000 bytes at a time needs at least 20 in its ring.
        let mut dql = QueueLimit::new();
        let mut now = Instant::ZERO;
        for _ in 0..50 {
            while dql.available() >= 0 {
                dql.queued(1000);
            }
            dql.completed(dql.in_flight().min(10_000), now);
            now += Duration::from_millis(1);
        }
        assert!(dql.limit() >= 10_000, "limit {}", dql.limit());
        assert!(dql.limit() <= 30_000, "limit {}", dql.limit());
    }

    #[test]
    fn slack_that_lasts_the_hold_time_is_given_up() {
        let mut dql = QueueLimit::new();
        dql.set_range(50_000, QueueLimit::MAX_LIMIT);
        dql.set_range(0, QueueLimit::MAX_LIMIT);
        let mut now = Instant::ZERO;
        for _ in 0..3_000 {
            while dql.available() >= 0 {
                dql.queued(1000);
            }
            dql.completed(2_000, now);
            now += Duration::from_millis(1);
        }
        assert!(dql.limit() < 10_000, "limit {}", dql.limit());
    }

    #[test]
    fn settings_outlive_a_reset() {
        let mut dql = QueueLimit::new();
        dql.set_range(3_000, 60_000);
        dql.set_hold_time(Duration::from_millis(100));
        dql.queued(10_000);
        dql.reset(Instant::from_secs(1));
        assert_eq!((dql.limit(), dql.in_flight(), dql.hold_time), (3_000, 0, Duration::from_millis(100)));
    }

    #[test]
    fn more_completed_than_queued_is_taken_as_all() {
        let mut dql = QueueLimit::new();
        dql.queued(100);
        dql.completed(1_000, Instant::ZERO);
        assert_eq!(dql.in_flight(), 0);
    }
}
