//! One sender, one receiver.

use super::orderings::{Orderings, SOUND};
use super::{Batch, RingError};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicUsize, Ordering};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::mem::MaybeUninit;
use crossbeam_utils::CachePadded;

struct Shared<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Values received so far; wraps. Written by the receiver.
    head: CachePadded<AtomicUsize>,
    /// Values sent so far; wraps. Written by the sender.
    tail: CachePadded<AtomicUsize>,
    #[cfg(loom)]
    orderings: Orderings,
}

// SAFETY: a slot is accessed by the sender while it is free and by the receiver while it is full, and the counters hand it
// over; so values move between threads, one at a time.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Constants, except to a model.
    #[inline(always)]
    fn orderings(&self) -> Orderings {
        #[cfg(loom)]
        return self.orderings;
        #[cfg(not(loom))]
        SOUND
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (head, tail) = (self.head.load(Ordering::Relaxed), self.tail.load(Ordering::Relaxed));
        let mut position = head;
        while position != tail {
            self.slot(position).with_mut(|slot| {
                // SAFETY: both handles are gone, and slots from `head` to `tail` hold values.
                unsafe { (*slot).assume_init_drop() }
            });
            position = position.wrapping_add(1);
        }
    }
}

/// The sending end.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    /// The receiver's counter as last seen.
    head: usize,
}

/// The receiving end.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    /// The sender's counter as last seen.
    tail: usize,
}

/// A ring for at least `capacity` values (rounded up to a power of two).
///
/// # Errors
/// [`RingError`] if `capacity` is 0 or above 2^30.
pub fn spsc<T: Send>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), RingError> {
    with_orderings(capacity, SOUND)
}

#[cfg_attr(not(loom), allow(unused_variables))]
fn with_orderings<T: Send>(capacity: usize, orderings: Orderings) -> Result<(Sender<T>, Receiver<T>), RingError> {
    let slots = super::slots(capacity)?;
    let shared = Arc::new(Shared {
        slots: (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        head: CachePadded::new(AtomicUsize::new(0)),
        tail: CachePadded::new(AtomicUsize::new(0)),
        #[cfg(loom)]
        orderings,
    });
    Ok((Sender { shared: shared.clone(), tail: 0, head: 0 }, Receiver { shared, head: 0, tail: 0 }))
}

impl<T> Sender<T> {
    /// Values that fit into the ring.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }

    /// Free slots; looks at the receiver's counter only if fewer than `wanted` are known to be free.
    #[inline(always)]
    fn free(&mut self, wanted: usize) -> usize {
        let known = self.capacity() - self.tail.wrapping_sub(self.head);
        if known >= wanted {
            return known;
        }
        self.head = self.shared.head.load(self.shared.orderings().observe_free);
        self.capacity() - self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    fn write(&mut self, value: T) {
        self.shared.slot(self.tail).with_mut(|slot| {
            // SAFETY: the slot is free: the receiver's counter, read with `Acquire`, is past its last value.
            unsafe { (*slot).write(value) };
        });
        self.tail = self.tail.wrapping_add(1);
    }

    /// Sends one value.
    ///
    /// # Errors
    /// The value, if the ring is full.
    #[inline]
    pub fn send(&mut self, value: T) -> Result<(), T> {
        if self.free(1) == 0 {
            return Err(value);
        }
        self.write(value);
        self.shared.tail.store(self.tail, self.shared.orderings().publish_full);
        Ok(())
    }

    /// Sends as many values as fit, and says how many; the rest stays in `batch`.
    #[inline]
    pub fn send_batch(&mut self, batch: &mut impl Batch<T>) -> usize {
        let n = batch.len().min(self.free(batch.len()));
        let mut sent = 0;
        while sent < n {
            let Some(value) = batch.take() else { break };
            self.write(value);
            sent += 1;
        }
        self.shared.tail.store(self.tail, self.shared.orderings().publish_full);
        sent
    }
}

impl<T> Receiver<T> {
    /// Values that are there; looks at the sender's counter only if fewer than `wanted` are known.
    #[inline(always)]
    fn available(&mut self, wanted: usize) -> usize {
        let known = self.tail.wrapping_sub(self.head);
        if known >= wanted {
            return known;
        }
        self.tail = self.shared.tail.load(self.shared.orderings().observe_full);
        self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    fn read(&mut self) -> T {
        let value = self.shared.slot(self.head).with(|slot| {
            // SAFETY: the slot is full: the sender's counter, read with `Acquire`, is past it; it is read once, since
            // `head` moves on.
            unsafe { (*slot).assume_init_read() }
        });
        self.head = self.head.wrapping_add(1);
        value
    }

    /// Receives one value.
    #[inline]
    pub fn receive(&mut self) -> Option<T> {
        if self.available(1) == 0 {
            return None;
        }
        let value = self.read();
        self.shared.head.store(self.head, self.shared.orderings().publish_free);
        Some(value)
    }

    /// Adds up to `most` values to `to`, and says how many.
    #[inline]
    pub fn receive_batch(&mut self, to: &mut impl Extend<T>, most: usize) -> usize {
        let n = self.available(most).min(most);
        let publish = PublishHead(self);
        for _ in 0..n {
            let value = publish.0.read();
            to.extend(Some(value));
        }
        n
    }
}

/// Publishes what was received when it goes, also if the caller's `extend` panics: a value that was read is not in the ring
/// any more.
struct PublishHead<'a, T>(&'a mut Receiver<T>);

impl<T> Drop for PublishHead<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.shared.head.store(self.0.head, self.0.shared.orderings().publish_free);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("capacity", &self.shared.slots.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::super::orderings::WEAKER;
    use super::*;

    /// Three values through two slots, so that one slot is used twice.
    fn model(orderings: Orderings) {
        loom::model(move || {
            let (mut sender, mut receiver) = with_orderings::<Box<u32>>(2, orderings).unwrap();
            let other = loom::thread::spawn(move || {
                let mut left = 3;
                while left > 0 {
                    match sender.send(Box::new(left)) {
                        Ok(()) => left -= 1,
                        Err(_) => loom::thread::yield_now(),
                    }
                }
            });
            let mut expected = 3;
            while expected > 0 {
                match receiver.receive() {
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
    fn spsc_hands_values_over() {
        model(SOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn spsc_relaxed_publication_of_values_is_caught() {
        model(WEAKER[0]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn spsc_relaxed_observation_of_values_is_caught() {
        model(WEAKER[1]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn spsc_relaxed_publication_of_space_is_caught() {
        model(WEAKER[2]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn spsc_relaxed_observation_of_space_is_caught() {
        model(WEAKER[3]);
    }

    #[test]
    fn spsc_batches_are_handed_over() {
        loom::model(|| {
            let (mut sender, mut receiver) = spsc::<Box<u32>>(2).unwrap();
            let other = loom::thread::spawn(move || {
                let mut batch: alloc::collections::VecDeque<_> = (0..3).map(Box::new).collect();
                while !batch.is_empty() {
                    if sender.send_batch(&mut batch) == 0 {
                        loom::thread::yield_now();
                    }
                }
            });
            let mut got = alloc::vec::Vec::new();
            while got.len() < 3 {
                if receiver.receive_batch(&mut got, 2) == 0 {
                    loom::thread::yield_now();
                }
            }
            other.join().unwrap();
            assert!(got.iter().map(|value| **value).eq(0..3));
        });
    }
}
