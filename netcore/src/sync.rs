//! Atomics, from `core` or from loom: code that crosses threads imports them from here, so that loom can check it.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic;
#[cfg(loom)]
pub(crate) use loom::sync::atomic;
