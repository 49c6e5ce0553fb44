//! Any number of senders and receivers.
//!
//! Every slot has a turn: the position of the sender or receiver that may use it next (D. Vyukov, "Bounded MPMC queue"). A
//! batch claims as many slots in a row as are ready with one compare-exchange.

use super::orderings::{Orderings, SOUND};
use super::{Batch, RingError};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicUsize, Ordering};
use alloc::boxed::Box;
use core::fmt;
use core::mem::MaybeUninit;
use crossbeam_utils::CachePadded;

struct Slot<T> {
    /// `position` if it is free for the sender at that position, `position + 1` if it is full for the receiver there.
    turn: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A ring that all threads share by reference.
pub struct Mpmc<T> {
    slots: Box<[Slot<T>]>,
    /// Next position to receive from; wraps.
    head: CachePadded<AtomicUsize>,
    /// Next position to send to; wraps.
    tail: CachePadded<AtomicUsize>,
    #[cfg(loom)]
    orderings: Orderings,
}

// SAFETY: a slot is accessed by whoever claimed its position, and its turn hands it over; values move between threads.
unsafe impl<T: Send> Send for Mpmc<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mpmc<T> {}

impl<T> Mpmc<T> {
    /// A ring for at least `capacity` values (rounded up to a power of two, 2 at least).
    ///
    /// # Errors
    /// [`RingError`] if `capacity` is 0 or above 2^30.
    pub fn new(capacity: usize) -> Result<Self, RingError> {
        Self::with_orderings(capacity, SOUND)
    }

    #[cfg_attr(not(loom), allow(unused_variables))]
    fn with_orderings(capacity: usize, orderings: Orderings) -> Result<Self, RingError> {
        // With one slot, "full for this turn" and "free for the next" would be the same number.
        let slots = super::slots(capacity)?.max(2);
        Ok(Self {
            slots: (0..slots)
                .map(|position| Slot {
                    turn: AtomicUsize::new(position),
                    value: UnsafeCell::new(MaybeUninit::uninit()),
                })
                .collect(),
            head: CachePadded::new(AtomicUsize::new(0)),
            tail: CachePadded::new(AtomicUsize::new(0)),
            #[cfg(loom)]
            orderings,
        })
    }

    /// Constants, except to a model.
    #[inline(always)]
    fn orderings(&self) -> Orderings {
        #[cfg(loom)]
        return self.orderings;
        #[cfg(not(loom))]
        SOUND
    }

    /// Values that fit into the ring.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> &Slot<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Claims up to `most` positions in a row from `counter` on whose slots are at their turn, `ahead` of the position. Gives
    /// the first and how many.
    #[inline(always)]
    fn claim(&self, counter: &AtomicUsize, ahead: usize, most: usize) -> (usize, usize) {
        let observe = if ahead == 0 { self.orderings().observe_free } else { self.orderings().observe_full };
        let mut position = counter.load(Ordering::Relaxed);
        loop {
            let mut n = 0;
            while n < most {
                let at = position.wrapping_add(n);
                if self.slot(at).turn.load(observe) != at.wrapping_add(ahead) {
                    break;
                }
                n += 1;
            }
            if n == 0 {
                // Nothing is ready here, unless somebody else has claimed this position meanwhile.
                let now = counter.load(Ordering::Relaxed);
                if now == position || most == 0 {
                    return (position, 0);
                }
                position = now;
                continue;
            }
            let claimed = position.wrapping_add(n);
            match counter.compare_exchange_weak(position, claimed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (position, n),
                Err(now) => position = now,
            }
        }
    }

    #[inline(always)]
    fn write(&self, position: usize, value: T) {
        let slot = self.slot(position);
        slot.value.with_mut(|cell| {
            // SAFETY: the position was claimed by this thread, and the slot's turn, read with `Acquire`, said that it is
            // free.
            unsafe { (*cell).write(value) };
        });
        slot.turn.store(position.wrapping_add(1), self.orderings().publish_full);
    }

    #[inline(always)]
    fn read(&self, position: usize) -> T {
        let slot = self.slot(position);
        let value = slot.value.with(|cell| {
            // SAFETY: the position was claimed by this thread, and the slot's turn, read with `Acquire`, said that it is
            // full; it is read once.
            unsafe { (*cell).assume_init_read() }
        });
        slot.turn.store(position.wrapping_add(self.slots.len()), self.orderings().publish_free);
        value
    }

    /// Sends one value.
    ///
    /// # Errors
    /// The value, if the ring is full.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), T> {
        let (position, n) = self.claim(&self.tail, 0, 1);
        if n == 0 {
            return Err(value);
        }
        self.write(position, value);
        Ok(())
    }

    /// Receives one value.
    #[inline]
    pub fn receive(&self) -> Option<T> {
        let (position, n) = self.claim(&self.head, 1, 1);
        (n > 0).then(|| self.read(position))
    }

    /// Sends as many values as fit, and says how many; the rest stays in `batch`.
    #[inline]
    pub fn send_batch(&self, batch: &mut impl Batch<T>) -> usize {
        let mut sent = 0;
        loop {
            let (position, n) = self.claim(&self.tail, 0, batch.len());
            if n == 0 {
                return sent;
            }
            for at in 0..n {
                let Some(value) = batch.take() else {
                    unreachable!("a batch gives as many values as its length says");
                };
                self.write(position.wrapping_add(at), value);
            }
            sent += n;
        }
    }

    /// Adds up to `most` values to `to`, and says how many.
    #[inline]
    pub fn receive_batch(&self, to: &mut impl Extend<T>, most: usize) -> usize {
        let (position, n) = self.claim(&self.head, 1, most);
        let mut claimed = Claimed { ring: self, position, left: n };
        while let Some(value) = claimed.next() {
            to.extend(Some(value));
        }
        n
    }
}

/// Positions claimed for receiving. Those not read when it goes are read then: if the caller's `extend` panics, the slots are
/// freed all the same.
struct Claimed<'a, T> {
    ring: &'a Mpmc<T>,
    position: usize,
    left: usize,
}

impl<T> Claimed<'_, T> {
    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.left == 0 {
            return None;
        }
        let value = self.ring.read(self.position);
        self.position = self.position.wrapping_add(1);
        self.left -= 1;
        Some(value)
    }
}

impl<T> Drop for Claimed<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        while let Some(value) = self.next() {
            drop(value);
        }
    }
}

impl<T> Drop for Mpmc<T> {
    fn drop(&mut self) {
        while let Some(value) = self.receive() {
            drop(value);
        }
    }
}

impl<T> fmt::Debug for Mpmc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpmc").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::super::orderings::WEAKER;
    use super::*;
    use loom::sync::Arc;

    fn model(orderings: Orderings) {
        loom::model(move || {
            let ring = Arc::new(Mpmc::<Box<u32>>::with_orderings(2, orderings).unwrap());
            let senders: alloc::vec::Vec<_> = (1..=2)
                .map(|value| {
                    let ring = ring.clone();
                    loom::thread::spawn(move || assert!(ring.send(Box::new(value)).is_ok()))
                })
                .collect();
            let mut sum = 0;
            if let Some(value) = ring.receive() {
                sum += *value;
            }
            for sender in senders {
                sender.join().unwrap();
            }
            while let Some(value) = ring.receive() {
                sum += *value;
            }
            assert_eq!(sum, 3, "a value was lost or doubled");
        });
    }

    /// Three values through two slots, so that one slot is used twice.
    fn reuse(orderings: Orderings) {
        loom::model(move || {
            let ring = Arc::new(Mpmc::<Box<u32>>::with_orderings(2, orderings).unwrap());
            let other = {
                let ring = ring.clone();
                loom::thread::spawn(move || {
                    let mut left = 3;
                    while left > 0 {
                        match ring.send(Box::new(left)) {
                            Ok(()) => left -= 1,
                            Err(_) => loom::thread::yield_now(),
                        }
                    }
                })
            };
            let mut expected = 3;
            while expected > 0 {
                match ring.receive() {
                    Some(value) => {
                        assert_eq!(*value, expected);
                        expected -= 1;
                    }
                    None => loom::thread::yield_now(),
                }
            }
            other.join().unwrap();
        });
    }

    #[test]
    fn mpmc_hands_values_over() {
        model(SOUND);
        reuse(SOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mpmc_relaxed_publication_of_values_is_caught() {
        reuse(WEAKER[0]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mpmc_relaxed_observation_of_values_is_caught() {
        reuse(WEAKER[1]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mpmc_relaxed_publication_of_space_is_caught() {
        reuse(WEAKER[2]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mpmc_relaxed_observation_of_space_is_caught() {
        reuse(WEAKER[3]);
    }

    #[test]
    fn mpmc_two_receivers_share_a_batch() {
        loom::model(|| {
            let ring = Arc::new(Mpmc::<u32>::new(2).unwrap());
            let mut batch: alloc::collections::VecDeque<u32> = [1, 2].into();
            assert_eq!(ring.send_batch(&mut batch), 2);
            let other = {
                let ring = ring.clone();
                loom::thread::spawn(move || {
                    let mut got = alloc::vec::Vec::new();
                    ring.receive_batch(&mut got, 2);
                    got.iter().sum::<u32>()
                })
            };
            let mut got = alloc::vec::Vec::new();
            ring.receive_batch(&mut got, 1);
            let mut sum = got.iter().sum::<u32>() + other.join().unwrap();
            while let Some(value) = ring.receive() {
                sum += value;
            }
            assert_eq!(sum, 3);
        });
    }
}
