//! The orderings that hand slots from thread to thread: a value, so that the loom models can show that each weaker one fails.

use crate::sync::atomic::Ordering;

#[derive(Clone, Copy)]
pub(super) struct Orderings {
    /// The sender says that a slot is full.
    pub(super) publish_full: Ordering,
    /// The receiver finds out.
    pub(super) observe_full: Ordering,
    /// The receiver says that a slot is free.
    pub(super) publish_free: Ordering,
    /// The sender finds out.
    pub(super) observe_free: Ordering,
}

pub(super) const SOUND: Orderings = Orderings {
    publish_full: Ordering::Release,
    observe_full: Ordering::Acquire,
    publish_free: Ordering::Release,
    observe_free: Ordering::Acquire,
};

/// Every way to weaken one of them.
#[cfg(all(test, loom))]
pub(super) const WEAKER: [Orderings; 4] = [
    Orderings { publish_full: Ordering::Relaxed, ..SOUND },
    Orderings { observe_full: Ordering::Relaxed, ..SOUND },
    Orderings { publish_free: Ordering::Relaxed, ..SOUND },
    Orderings { observe_free: Ordering::Relaxed, ..SOUND },
];
