//! CoDel: drop at the head so that packets do not wait longer than the target for a whole interval (RFC 8289; Linux:
//! `include/net/codel_impl.h`, whose fixed-point arithmetic this is).

/// Nanoseconds to CoDel's unit of 1024 ns. Linux keeps 32 bits of it, which wrap after 73 minutes; here it is 54.
pub(super) const fn units(ns: u64) -> u64 {
    ns >> 10
}

/// Parameters, times in units of 1024 ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) target: u64,
    pub(super) interval: u64,
    /// Backlog at or below which nothing is dropped, bytes.
    pub(super) mtu: u32,
}

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// Packets dropped since dropping began.
    pub(super) count: u32,
    last_count: u32,
    dropping: bool,
    /// 1/√count in 16 bits of fraction.
    inverse_root: u16,
    first_above: u64,
    drop_next: u64,
    /// How long the packet looked at last had waited.
    pub(super) delay: u64,
}

/// What to do with a packet at the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It leaves.
    Pass,
    /// It is marked, and leaves; if it cannot be marked it is dropped.
    MarkOrDrop,
}

/// A packet at the head, or none, and what is queued behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// When it was queued, units; `None` if the queue is empty.
    pub(super) queued_at: Option<u64>,
    /// Bytes left in the whole qdisc.
    pub(super) backlog: usize,
}

impl Codel {
    /// One step of Newton's method for 1/√count.
    fn newton(&mut self) {
        let root = u64::from(self.inverse_root) << 16;
        let square = (root * root) >> 32;
        let value = ((3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square))) >> 2;
        self.inverse_root = ((value.wrapping_mul(root) >> 31) >> 16) as u16;
    }

    fn law(&self, from: u64, interval: u64) -> u64 {
        from.saturating_add((interval * (u64::from(self.inverse_root) << 16)) >> 32)
    }

    fn above(&mut self, head: Head, parameters: &Parameters, now: u64) -> bool {
        let Some(queued_at) = head.queued_at else {
            self.first_above = 0;
            return false;
        };
        self.delay = now.saturating_sub(queued_at);
        if self.delay < parameters.target || head.backlog <= parameters.mtu as usize {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now + parameters.interval;
            return false;
        }
        now > self.first_above
    }

    /// Looks at the first packet of a turn. If it is to be marked or dropped, [`Codel::marked`] or [`Codel::dropped`] must
    /// follow.
    pub(super) fn first(&mut self, head: Head, parameters: &Parameters, now: u64) -> Verdict {
        if head.queued_at.is_none() {
            self.dropping = false;
            return Verdict::Pass;
        }
        let above = self.above(head, parameters, now);
        if !self.dropping {
            return if above { Verdict::MarkOrDrop } else { Verdict::Pass };
        }
        if !above {
            self.dropping = false;
            return Verdict::Pass;
        }
        self.next(now)
    }

    /// In the dropping state: is it time for the next one?
    fn next(&mut self, now: u64) -> Verdict {
        if !self.dropping || now < self.drop_next {
            return Verdict::Pass;
        }
        self.count = self.count.wrapping_add(1);
        self.newton();
        Verdict::MarkOrDrop
    }

    /// The packet was marked and leaves.
    pub(super) fn marked(&mut self, parameters: &Parameters, now: u64) {
        if self.dropping {
            self.drop_next = self.law(self.drop_next, parameters.interval);
        } else {
            self.begin(parameters, now);
        }
    }

    /// The packet was dropped and `head` follows it.
    pub(super) fn dropped(&mut self, head: Head, parameters: &Parameters, now: u64) -> Verdict {
        let above = self.above(head, parameters, now);
        if !self.dropping {
            self.begin(parameters, now);
            return Verdict::Pass;
        }
        if !above {
            self.dropping = false;
            return Verdict::Pass;
        }
        self.drop_next = self.law(self.drop_next, parameters.interval);
        self.next(now)
    }

    /// Enters the dropping state; soon after the last time, with the rate of drops that helped then.
    fn begin(&mut self, parameters: &Parameters, now: u64) {
        self.dropping = true;
        let before = self.count.wrapping_sub(self.last_count);
        if before > 1 && now.saturating_sub(self.drop_next) < 16 * parameters.interval {
            self.count = before;
            self.newton();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.law(now, parameters.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_come_at_intervals_over_the_root_of_their_number() {
        let parameters = Parameters { target: units(5_000_000), interval: units(100_000_000), mtu: 1514 };
        let mut codel = Codel::default();
        let mut drops = std::vec::Vec::new();
        // Every packet has waited 20 ms; one leaves each 100 µs.
        for n in 0..20_000u64 {
            let now = units(1_000_000_000 + n * 100_000);
            let head = Head { queued_at: Some(now - units(20_000_000)), backlog: 100_000 };
            let mut verdict = codel.first(head, &parameters, now);
            while verdict == Verdict::MarkOrDrop {
                drops.push(n as f64 / 10.0);
                verdict = codel.dropped(head, &parameters, now);
            }
        }
        // The first after one interval; then 100/√k ms apart, where the root is followed by one step of Newton's method per
        // drop, which takes a few drops to get there.
        assert!((drops[0] - 100.0).abs() < 0.3, "{}", drops[0]);
        let mut root = 1.0;
        for (k, pair) in drops.windows(2).enumerate().take(200) {
            let count = (k + 1) as f64;
            if k > 0 {
                root *= (3.0 - count * root * root) / 2.0;
            }
            assert!((pair[1] - pair[0] - 100.0 * root).abs() < 0.2, "{k}: {pair:?} {root}");
            assert!(k < 5 || (root * count.sqrt() - 1.0).abs() < 0.02, "{k}: {root}");
        }
    }

    #[test]
    fn nothing_is_dropped_below_the_target_or_with_one_packet_left() {
        let parameters = Parameters { target: units(5_000_000), interval: units(100_000_000), mtu: 1514 };
        for (wait, backlog) in [(4_900_000u64, 1_000_000), (50_000_000, 1514)] {
            let mut codel = Codel::default();
            for n in 0..10_000u64 {
                let now = units(1_000_000_000 + n * 1_000_000);
                let head = Head { queued_at: Some(now - units(wait)), backlog };
                assert_eq!(codel.first(head, &parameters, now), Verdict::Pass);
            }
        }
    }
}
