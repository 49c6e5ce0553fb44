//! [`Arenas`]: which packet memory the device can reach.

use alloc::vec::Vec;
use netcore::{Iova, PacketPool};

struct Arena {
    start: usize,
    len: usize,
    /// Device address of the first byte, if the arena is contiguous for the device.
    linear: Option<u64>,
    /// Keeps the memory mapped.
    pool: PacketPool,
}

/// The pools whose memory the device can reach. A packet's bytes that lie in one of them go out without a copy.
///
/// The driver holds the pools, so their memory stays mapped for as long as the device might read it.
#[derive(Default)]
pub struct Arenas {
    list: Vec<Arena>,
}

impl Arenas {
    /// No memory.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Adds a pool. One whose region is not mapped for a device is ignored: its packets are copied.
    pub fn add(&mut self, pool: PacketPool) {
        let region = pool.region();
        let start = region.start().as_ptr().addr();
        let linear = match region.iova() {
            Iova::Unmapped => return,
            Iova::Linear(base) => Some(*base),
            _ => None,
        };
        if self.list.iter().all(|arena| arena.start != start) {
            self.list.push(Arena { start, len: region.len(), linear, pool });
        }
    }

    /// The device's address of `bytes`; `None` if they have to be copied.
    #[inline]
    pub fn iova(&self, bytes: &[u8]) -> Option<u64> {
        let at = bytes.as_ptr().addr();
        for arena in &self.list {
            let offset = at.wrapping_sub(arena.start);
            if offset < arena.len && bytes.len() <= arena.len - offset {
                return match arena.linear {
                    Some(base) => Some(base + offset as u64),
                    None => arena.pool.region().iova_of(offset, bytes.len()),
                };
            }
        }
        None
    }
}

impl core::fmt::Debug for Arenas {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.list.iter().map(|arena| arena.pool.region())).finish()
    }
}
