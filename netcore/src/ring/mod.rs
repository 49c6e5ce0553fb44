//! Bounded rings between threads: [`spsc`] for one sender and one receiver, [`Mpmc`] for any number of both.
//!
//! Nothing waits: a full ring gives the value back, an empty one gives nothing. Batches cost one synchronisation for all
//! their values. What is in a ring when its last handle goes is dropped with it.

mod mpmc;
mod orderings;
mod spsc;

#[cfg(all(test, not(loom)))]
mod tests;

pub use mpmc::Mpmc;
pub use spsc::{Receiver, Sender, spsc};

use crate::packet::{Burst, Packet};
use alloc::collections::VecDeque;

mod sealed {
    /// Rings rely on a batch giving as many values as it says.
    pub trait Sealed {}
    impl<T> Sealed for alloc::collections::VecDeque<T> {}
    impl Sealed for crate::packet::Burst {}
}

/// Values to be sent in a batch, first in first out; what does not fit stays. A `VecDeque` of anything, or a `Burst`.
pub trait Batch<T>: sealed::Sealed {
    /// How many values there are.
    fn len(&self) -> usize;
    /// Takes the first one.
    fn take(&mut self) -> Option<T>;
    /// True if there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Batch<T> for VecDeque<T> {
    fn len(&self) -> usize {
        Self::len(self)
    }
    fn take(&mut self) -> Option<T> {
        self.pop_front()
    }
}

impl Batch<Packet> for Burst {
    fn len(&self) -> usize {
        Self::len(self)
    }
    #[inline(always)]
    fn take(&mut self) -> Option<Packet> {
        self.pop()
    }
}

/// Why a ring could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("ring capacity is {0}, allowed is 1 to 2^30")]
pub struct RingError(pub usize);

/// The capacity as a power of two.
fn slots(capacity: usize) -> Result<usize, RingError> {
    if capacity == 0 || capacity > 1 << 30 {
        return Err(RingError(capacity));
    }
    Ok(capacity.next_power_of_two())
}
