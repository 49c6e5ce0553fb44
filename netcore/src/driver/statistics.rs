//! Counters with ethtool's names, and transmit completions.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

/// One counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    /// The name that `ethtool -S` or `ip -s link` has for it.
    pub name: Cow<'static, str>,
    /// Its value since the device was made.
    pub value: u64,
}

/// A list of counters, in the order in which they were added.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    counters: Vec<Counter>,
}

impl Statistics {
    /// An empty list.
    pub const fn new() -> Self {
        Self { counters: Vec::new() }
    }

    /// Adds a counter; one of the same name is added to, so that a device made of others sums them up.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, value: u64) {
        let name = name.into();
        match self.counters.iter_mut().find(|counter| counter.name == name) {
            Some(counter) => counter.value = counter.value.wrapping_add(value),
            None => self.counters.push(Counter { name, value }),
        }
    }

    /// The value of a counter; `None` if the device has no such counter.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|counter| counter.name == name).map(|counter| counter.value)
    }

    /// All counters.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Forgets all counters, keeping the storage.
    pub fn clear(&mut self) {
        self.counters.clear();
    }
}

impl fmt::Display for Statistics {
    /// One counter a line, aligned as `ethtool -S` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.counters.iter().map(|counter| counter.name.len()).max().unwrap_or(0);
        for Counter { name, value } in &self.counters {
            writeln!(f, "     {name:>width$}: {value}")?;
        }
        Ok(())
    }
}

/// A transmitted packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Completion {
    /// The packet's flow id, if it had one.
    pub flow_id: Option<u64>,
    /// The memory it kept busy ([`Packet::truesize`](crate::Packet::truesize)).
    pub truesize: u32,
    /// Bytes of the packet; 0 if it was dropped above the device and never sent.
    pub bytes: u32,
}

/// Transmitted packets in order. The storage is reused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completions {
    list: Vec<Completion>,
}

impl Completions {
    /// An empty list.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, completion: Completion) {
        self.list.push(completion);
    }

    /// All of them.
    #[inline]
    pub fn as_slice(&self) -> &[Completion] {
        &self.list
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets all, keeping the storage.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
    }
}
