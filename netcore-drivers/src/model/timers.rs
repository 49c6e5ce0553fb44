//! [`Timers`]: what a model does later.

use netcore::Instant;
use std::vec::Vec;

/// A few timers, each with a tag. The earliest fires first; of two at the same time the one armed first.
#[derive(Clone, Debug)]
pub struct Timers<T> {
    armed: Vec<(Instant, u64, T)>,
    sequence: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { armed: Vec::new(), sequence: 0 }
    }
}

impl<T: PartialEq> Timers<T> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires `tag` at `at`, besides others with the same tag.
    pub fn arm(&mut self, at: Instant, tag: T) {
        self.sequence += 1;
        self.armed.push((at, self.sequence, tag));
    }

    /// Takes back every timer with this tag.
    pub fn cancel(&mut self, tag: &T) {
        self.armed.retain(|(_, _, armed)| armed != tag);
    }

    /// Takes back all.
    pub fn clear(&mut self) {
        self.armed.clear();
    }

    /// True if a timer with this tag is armed.
    pub fn is_armed(&self, tag: &T) -> bool {
        self.armed.iter().any(|(_, _, armed)| armed == tag)
    }

    /// When the next one fires.
    pub fn next(&self) -> Option<Instant> {
        self.armed.iter().map(|(at, ..)| *at).min()
    }

    /// Takes the earliest timer that is due.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        let due = self.armed.iter().enumerate().filter(|(_, (at, ..))| *at <= now);
        let (index, _) = due.min_by_key(|(_, (at, sequence, _))| (*at, *sequence))?;
        Some(self.armed.remove(index).2)
    }
}
