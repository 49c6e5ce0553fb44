//! The queue in front of a transmitter: drop-tail by bytes or packets, or RED with or without ECN.

use super::wire_bytes;
use netcore::{Instant, Rate};
use std::collections::VecDeque;

/// Random early detection (Floyd and Jacobson 1993; `tc-red`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Red {
    /// Average queue below which nothing happens, bytes.
    pub min: u64,
    /// Average queue from which every packet is marked or dropped, bytes.
    pub max: u64,
    /// Probability at `max`, in 1/65536.
    pub probability: u32,
    /// Weight of a new queue length in the average: `2^-weight`.
    pub weight: u8,
    /// Mark packets that can be marked instead of dropping them.
    pub ecn: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Its first bit leaves at `start`, its last at `end`.
    At {
        /// Start of transmission.
        start: Instant,
        /// End of transmission.
        end: Instant,
        /// It is to be marked as having met congestion.
        mark: bool,
    },
    /// No room.
    Full,
    /// RED dropped it.
    Early,
}

/// Counters of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EgressCounters {
    /// Packets taken.
    pub packets: u64,
    /// Bytes taken.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
    /// Packets dropped early.
    pub early: u64,
    /// Packets marked.
    pub marked: u64,
    /// Most bytes that waited.
    pub peak_bytes: u64,
}

/// A transmitter with a FIFO in front. A departure is known when a packet arrives, so nothing needs to happen between.
#[derive(Clone, Debug)]
pub struct Egress {
    rate: Option<Rate>,
    overhead: u32,
    limit_bytes: Option<u64>,
    limit_packets: Option<u32>,
    red: Option<Red>,
    /// Average queue, bytes × 2^16.
    average: u64,
    /// Packets since the last mark.
    since_mark: u32,
    free_at: Instant,
    /// Sub-nanosecond remainder of transmission times, in bytes × 10^9 modulo the rate.
    remainder: u64,
    waiting: VecDeque<(Instant, u32)>,
    backlog: u64,
    counters: EgressCounters,
}

impl Egress {
    /// An unlimited queue before a transmitter of `rate` (`None`: no transmission time) with `overhead` bytes per frame.
    pub fn new(rate: Option<Rate>, overhead: u32) -> Self {
        Self {
            rate,
            overhead,
            limit_bytes: None,
            limit_packets: None,
            red: None,
            average: 0,
            since_mark: 0,
            free_at: Instant::ZERO,
            remainder: 0,
            waiting: VecDeque::new(),
            backlog: 0,
            counters: EgressCounters::default(),
        }
    }

    /// Limits the bytes that wait, the packet in transmission included.
    pub fn with_limit_bytes(mut self, limit: Option<u64>) -> Self {
        self.limit_bytes = limit;
        self
    }

    /// Limits the packets that wait, the packet in transmission included.
    pub fn with_limit_packets(mut self, limit: Option<u32>) -> Self {
        self.limit_packets = limit;
        self
    }

    /// Random early detection.
    pub fn with_red(mut self, red: Option<Red>) -> Self {
        self.red = red;
        self
    }

    /// What was counted.
    pub fn counters(&self) -> EgressCounters {
        self.counters
    }

    /// Bytes waiting at `now`.
    pub fn backlog(&mut self, now: Instant) -> u64 {
        while let Some(&(end, len)) = self.waiting.front() {
            if end > now {
                break;
            }
            self.waiting.pop_front();
            self.backlog -= u64::from(len);
        }
        self.backlog
    }

    /// A packet of `len` bytes arrives. `dice` is a uniformly random number, used if RED has to decide.
    pub fn offer(&mut self, len: usize, ecn_capable: bool, dice: u32, now: Instant) -> Admission {
        let backlog = self.backlog(now);
        let mut mark = false;
        if let Some(red) = self.red {
            match self.red(red, backlog, ecn_capable, dice) {
                None => {}
                Some(true) => mark = true,
                Some(false) => {
                    self.counters.early += 1;
                    return Admission::Early;
                }
            }
        }
        let over_bytes = self.limit_bytes.is_some_and(|limit| backlog + len as u64 > limit && backlog > 0);
        let over_packets = self.limit_packets.is_some_and(|limit| self.waiting.len() as u64 >= u64::from(limit));
        if over_bytes || over_packets {
            self.counters.dropped += 1;
            return Admission::Full;
        }
        let start = self.free_at.max(now);
        let end = match self.rate {
            None => start,
            Some(rate) => {
                if start > self.free_at {
                    self.remainder = 0;
                }
                // Exact over any number of packets: what a division leaves counts for the next one.
                let r = u128::from(rate.bytes_per_sec().max(1));
                let scaled = u128::from(wire_bytes(len, self.overhead)) * 1_000_000_000 + u128::from(self.remainder);
                self.remainder = (scaled % r) as u64;
                start.plus_nanos((scaled / r) as u64)
            }
        };
        self.free_at = end;
        if self.limit_bytes.is_some() || self.limit_packets.is_some() || self.red.is_some() {
            self.waiting.push_back((end, len as u32));
            self.backlog += len as u64;
            self.counters.peak_bytes = self.counters.peak_bytes.max(self.backlog);
        }
        self.counters.packets += 1;
        self.counters.bytes += len as u64;
        self.counters.marked += u64::from(mark);
        Admission::At { start, end, mark }
    }

    /// `Some(true)`: mark, `Some(false)`: drop.
    fn red(&mut self, red: Red, backlog: u64, ecn_capable: bool, dice: u32) -> Option<bool> {
        let target = backlog << 16;
        let weight = u32::from(red.weight.min(31));
        self.average = self.average - (self.average >> weight) + (target >> weight);
        let average = self.average >> 16;
        if average < red.min {
            self.since_mark = 0;
            return None;
        }
        let hit = if average >= red.max {
            true
        } else {
            self.since_mark += 1;
            // p = probability × (average - min) / (max - min), spread out evenly between marks.
            let span = (red.max - red.min).max(1);
            let p = u64::from(red.probability) * (average - red.min) / span;
            let p = p * u64::from(self.since_mark);
            u64::from(dice & 0xffff) < p
        };
        if !hit {
            return None;
        }
        self.since_mark = 0;
        Some(red.ecn && ecn_capable && average < red.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(a: Admission) -> u64 {
        match a {
            Admission::At { end, .. } => end.as_nanos(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn transmission_times_add_up_exactly() {
        // 1538 bytes at 10 Gbit/s are 1230.4 ns.
        let mut e = Egress::new(Some(Rate::from_bits_per_sec(10_000_000_000)), 24);
        let ends: Vec<_> = (0..5).map(|_| end(e.offer(1514, false, 0, Instant::ZERO))).collect();
        assert_eq!(ends, [1230, 2460, 3691, 4921, 6152]);
    }

    #[test]
    fn short_frames_are_padded_on_the_wire() {
        let mut e = Egress::new(Some(Rate::from_bits_per_sec(1_000_000_000)), 24);
        assert_eq!(end(e.offer(54, false, 0, Instant::ZERO)), 84 * 8);
    }

    #[test]
    fn a_full_queue_drops_and_drains_with_time() {
        let rate = Rate::from_bits_per_sec(8_000_000); // 1 byte/µs
        let mut e = Egress::new(Some(rate), 0).with_limit_bytes(Some(2500));
        for _ in 0..2 {
            assert!(matches!(e.offer(1000, false, 0, Instant::ZERO), Admission::At { .. }));
        }
        assert_eq!(e.offer(1000, false, 0, Instant::ZERO), Admission::Full);
        assert_eq!(end(e.offer(1000, false, 0, Instant::from_micros(1000))), 3_000_000);
        assert_eq!((e.counters().dropped, e.counters().peak_bytes), (1, 2000));
    }

    #[test]
    fn red_marks_what_can_be_marked_and_drops_the_rest() {
        let red = Red { min: 1000, max: 100_000, probability: 65_535, weight: 0, ecn: true };
        let mut e = Egress::new(Some(Rate::from_bits_per_sec(8_000)), 0).with_red(Some(red));
        for _ in 0..60 {
            e.offer(1000, true, u32::MAX, Instant::ZERO);
        }
        assert!(matches!(e.offer(1000, true, 0, Instant::ZERO), Admission::At { mark: true, .. }));
        assert_eq!(e.offer(1000, false, 0, Instant::ZERO), Admission::Early);
    }
}
