//! What happens when: wake-ups in order of time, equal times in order of asking.

use netcore::Instant;
use std::collections::BinaryHeap;

/// A wake-up. Time and order of asking are one number, so that two are compared by one comparison; the earliest is greatest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Event {
    key: u128,
    id: u32,
}

impl Ord for Event {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for Event {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A queue of wake-ups. It is short: each component has a few at most.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Event>,
    order: u64,
}

impl EventQueue {
    #[inline]
    pub(super) fn push(&mut self, at: Instant, id: u32) {
        self.order += 1;
        self.heap.push(Event { key: u128::from(at.as_nanos()) << 64 | u128::from(self.order), id });
    }

    /// The earliest wake-up not after `end`.
    #[inline]
    pub(super) fn pop_until(&mut self, end: Instant) -> Option<(Instant, u32)> {
        let at = Instant::from_nanos((self.heap.peek()?.key >> 64) as u64);
        if at > end {
            return None;
        }
        self.heap.pop().map(|event| (at, event.id))
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
