//! What happens when: wake-ups in order of time, equal times in order of asking.

use netcore::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of wake-ups. It is short: each component has a few at most.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    order: u64,
}

impl EventQueue {
    #[inline]
    pub(super) fn push(&mut self, at: Instant, id: u32) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, id)));
    }

    /// The earliest wake-up not after `end`.
    #[inline]
    pub(super) fn pop_until(&mut self, end: Instant) -> Option<(Instant, u32)> {
        if self.heap.peek()?.0.0 > end {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, id))| (at, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_are_served_in_the_order_of_asking() {
        let mut q = EventQueue::default();
        for id in [7, 3, 5] {
            q.push(Instant::from_millis(1), id);
        }
        q.push(Instant::ZERO, 9);
        let order: Vec<_> = std::iter::from_fn(|| q.pop_until(Instant::from_secs(1))).map(|(_, id)| id).collect();
        assert_eq!(order, [9, 7, 3, 5]);
    }

    #[test]
    fn nothing_beyond_the_end_is_served() {
        let mut q = EventQueue::default();
        q.push(Instant::from_millis(2), 1);
        assert_eq!(q.pop_until(Instant::from_millis(1)), None);
        assert_eq!(q.pop_until(Instant::from_millis(2)), Some((Instant::from_millis(2), 1)));
    }
}
