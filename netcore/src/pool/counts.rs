//! Counting references: who may write a buffer, who frees a pool.

use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

/// The orderings that make the last owner see what the others did. A value so that a model can show that weaker ones fail.
#[derive(Clone, Copy)]
struct Orderings {
    /// Of finding out that there is one reference.
    observe: Ordering,
    /// Of giving one back.
    release: Ordering,
    /// A fence after giving the last one back.
    fence: bool,
}

const SOUND: Orderings = Orderings { observe: Ordering::Acquire, release: Ordering::Release, fence: true };

/// References to one buffer. A free buffer has one, which is its descriptor's.
#[derive(Debug)]
pub(crate) struct References(AtomicU32);

impl References {
    pub(super) fn one() -> Self {
        Self(AtomicU32::new(1))
    }

    /// True if there is one reference, the caller's: nobody else reads the buffer any more.
    #[inline(always)]
    pub(crate) fn is_one(&self) -> bool {
        self.is_one_with(SOUND)
    }

    #[inline(always)]
    fn is_one_with(&self, orderings: Orderings) -> bool {
        // Acquire: reads by a window that has gone happen before the writes this permits.
        self.0.load(orderings.observe) == 1
    }

    /// Adds `n` references; the caller has one.
    #[inline(always)]
    pub(crate) fn add(&self, n: u32) {
        // Relaxed, as in `Arc::clone`: the caller's own reference keeps the buffer alive.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Gives back `n` references; true if they were the last, and then there is one again, for the buffer's next owner.
    #[inline(always)]
    pub(crate) fn give_back(&self, n: u32) -> bool {
        self.give_back_with(n, SOUND)
    }

    #[inline(always)]
    fn give_back_with(&self, n: u32, orderings: Orderings) -> bool {
        if self.0.load(orderings.observe) == n {
            // Nobody else can add references: all there are belong to the caller.
            if n != 1 {
                self.0.store(1, Ordering::Relaxed);
            }
            return true;
        }
        if self.0.fetch_sub(n, orderings.release) == n {
            if orderings.fence {
                fence(Ordering::Acquire);
            }
            self.0.store(1, Ordering::Relaxed);
            return true;
        }
        false
    }
}

/// What keeps a pool alive: handles, and descriptors that are not on a shared list.
#[derive(Debug)]
pub(super) struct Holds(AtomicUsize);

impl Holds {
    pub(super) fn one() -> Self {
        Self(AtomicUsize::new(1))
    }

    /// Adds `n`; the caller has one.
    #[inline(always)]
    pub(super) fn add(&self, n: usize) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Gives back `n`; true if they were the last, and then everything that others did with the pool has happened.
    #[inline(always)]
    pub(super) fn give_back(&self, n: usize) -> bool {
        self.give_back_with(n, SOUND)
    }

    #[inline(always)]
    fn give_back_with(&self, n: usize, orderings: Orderings) -> bool {
        let last = self.0.fetch_sub(n, orderings.release) == n;
        if last && orderings.fence {
            fence(Ordering::Acquire);
        }
        last
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Two windows into one buffer are read and released; whoever finds itself alone writes the buffer. loom reports a race if
    /// the other's reads have not happened before.
    fn the_last_window_writes(orderings: Orderings) {
        loom::model(move || {
            let shared = Arc::new((References::one(), UnsafeCell::new(0u32)));
            shared.0.add(1);
            let work = move |shared: &(References, UnsafeCell<u32>)| {
                // SAFETY: read while a reference is held.
                shared.1.with(|bytes| unsafe { *bytes });
                if shared.0.give_back_with(1, orderings) {
                    // SAFETY: the reference was the last.
                    shared.1.with_mut(|bytes| unsafe { *bytes += 1 });
                }
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || work(&shared))
            };
            work(&shared);
            other.join().unwrap();
            assert!(shared.0.is_one(), "a reference was lost or doubled");
        });
    }

    /// One window is read and released while the packet it was taken from waits to be writable.
    fn an_exclusive_owner_writes(orderings: Orderings) {
        loom::model(move || {
            let shared = Arc::new((References::one(), UnsafeCell::new(0u32)));
            shared.0.add(1);
            let other = {
                let shared = shared.clone();
                thread::spawn(move || {
                    // SAFETY: read while a reference is held.
                    shared.1.with(|bytes| unsafe { *bytes });
                    assert!(!shared.0.give_back_with(1, orderings));
                })
            };
            while !shared.0.is_one_with(orderings) {
                thread::yield_now();
            }
            // SAFETY: the only reference is this one.
            shared.1.with_mut(|bytes| unsafe { *bytes += 1 });
            other.join().unwrap();
        });
    }

    fn the_last_hold_frees(orderings: Orderings) {
        loom::model(move || {
            let shared = Arc::new((Holds::one(), UnsafeCell::new(0u32)));
            shared.0.add(1);
            let work = move |shared: &(Holds, UnsafeCell<u32>)| {
                // SAFETY: read while a hold is kept.
                shared.1.with(|bytes| unsafe { *bytes });
                if shared.0.give_back_with(1, orderings) {
                    // SAFETY: the hold was the last. Freeing is a write.
                    shared.1.with_mut(|bytes| unsafe { *bytes += 1 });
                }
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || work(&shared))
            };
            work(&shared);
            other.join().unwrap();
        });
    }

    #[test]
    fn buffers_are_written_by_their_last_owner_alone() {
        the_last_window_writes(SOUND);
        an_exclusive_owner_writes(SOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn references_relaxed_observation_before_writing_is_caught() {
        an_exclusive_owner_writes(Orderings { observe: Ordering::Relaxed, ..SOUND });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn references_relaxed_observation_before_reuse_is_caught() {
        the_last_window_writes(Orderings { observe: Ordering::Relaxed, ..SOUND });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn references_relaxed_release_is_caught() {
        the_last_window_writes(Orderings { release: Ordering::Relaxed, ..SOUND });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn references_without_a_fence_are_caught() {
        the_last_window_writes(Orderings { fence: false, ..SOUND });
    }

    #[test]
    fn a_pool_is_freed_by_its_last_hold_alone() {
        the_last_hold_frees(SOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn holds_relaxed_release_is_caught() {
        the_last_hold_frees(Orderings { release: Ordering::Relaxed, ..SOUND });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn holds_without_a_fence_are_caught() {
        the_last_hold_frees(Orderings { fence: false, ..SOUND });
    }
}
