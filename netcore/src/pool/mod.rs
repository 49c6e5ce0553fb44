//! Packet pools: fixed-size, reference-counted buffers from one block of memory that a driver can map for DMA.
//!
//! ```text
//!    PacketPool ──────────── shared, lock-free lists: free with buffer, free without
//!      │   ▲                      ▲             ▲
//!      │   └── plain drop ────────┘             │ batches of 32
//!      ▼                                        ▼
//!    PoolCache (one per poller) ── get / put / windows, no atomics
//! ```
//!
//! A buffer and a descriptor meet when the last reference to the buffer is released, so a packet taken from the pool
//! costs one pop. Exhaustion is an error value ([`PoolError`]), never a wait.

mod cache;
mod counts;
mod free_list;
mod region;
mod shared;
mod stack;

pub use cache::PoolCache;
pub use region::{DmaRegion, Iova};
pub(crate) use shared::{Free, Shared};

use crate::packet::descriptor::Descriptor;
use crate::sync::atomic::Ordering;
use alloc::boxed::Box;
use core::fmt;
use core::ptr::NonNull;

/// Alignment of every buffer: one cache line.
const BUFFER_ALIGN: usize = 64;

/// Why a pool could not give a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Every buffer is in use.
    #[error("all {buffers} buffers of the pool are in use")]
    NoBuffer {
        /// How many the pool has.
        buffers: u32,
    },
    /// Every descriptor that could become a window into a buffer is in use.
    #[error("all {windows} descriptors for windows into the pool's buffers are in use")]
    NoWindow {
        /// How many the pool has beyond its buffers.
        windows: u32,
    },
}

/// Why a pool could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolConfigError {
    /// The configuration cannot be met.
    #[error("pool {what} is {value}, allowed is {allowed}")]
    OutOfRange {
        /// Which setting.
        what: &'static str,
        /// What was asked for.
        value: usize,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The allocator has no block of that size.
    #[error("no memory for {bytes} bytes of packet buffers")]
    NoMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

/// The geometry of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolConfig {
    /// Number of buffers, 1 to 2^24.
    pub buffers: usize,
    /// Bytes per buffer including headroom; rounded up to a multiple of 64; at most 1 MiB.
    pub buffer_size: usize,
    /// Bytes left free in front of a fresh packet for headers to be pushed; less than `buffer_size`.
    pub headroom: usize,
    /// Descriptors beyond one per buffer: how many windows (clones, GSO and GRO pieces, caller memory, virtual payload)
    /// can exist besides; 0 to 2^24.
    pub windows: usize,
}

impl PoolConfig {
    /// Headroom for a VXLAN over IPv6 encapsulation with a VLAN tag, rounded up to cache lines.
    pub const DEFAULT_HEADROOM: usize = 128;

    /// `buffers` buffers that take a frame of MTU 1500 each (2 KiB data and 128 bytes headroom), and as many windows.
    pub const fn with_buffers(buffers: usize) -> Self {
        Self { buffers, buffer_size: 2048 + Self::DEFAULT_HEADROOM, headroom: Self::DEFAULT_HEADROOM, windows: buffers }
    }

    fn check(&self) -> Result<usize, PoolConfigError> {
        // Reference counts of 32 bits then never overflow: every descriptor holds one reference, and a `Cutter`, which has a
        // descriptor of its own, at most `cut::RESERVE` more.
        const LIMIT: usize = 1 << 24;
        let config = |what, value, allowed| Err(PoolConfigError::OutOfRange { what, value, allowed });
        if self.buffers == 0 || self.buffers > LIMIT {
            return config("buffers", self.buffers, "1 to 2^24");
        }
        if self.windows > LIMIT {
            return config("windows", self.windows, "0 to 2^24");
        }
        if self.buffer_size == 0 || self.buffer_size > 1 << 20 {
            return config("buffer_size", self.buffer_size, "1 to 1048576");
        }
        if self.headroom >= self.buffer_size {
            return config("headroom", self.headroom, "less than buffer_size");
        }
        Ok(self.buffer_size.next_multiple_of(BUFFER_ALIGN))
    }
}

/// A pool of packet buffers; clones are handles on the same pool. See the [module](self).
pub struct PacketPool {
    shared: NonNull<Shared>,
}

// SAFETY: all that handles share is behind atomics, or belongs to whoever took it off a list.
unsafe impl Send for PacketPool {}
// SAFETY: as above.
unsafe impl Sync for PacketPool {}

impl PacketPool {
    /// A pool in ordinary memory.
    pub fn new(config: PoolConfig) -> Result<Self, PoolConfigError> {
        let size = config.check()?;
        let bytes = size.checked_mul(config.buffers).ok_or(PoolConfigError::OutOfRange {
            what: "buffers",
            value: config.buffers,
            allowed: "a total below the address space",
        })?;
        let region = DmaRegion::heap(bytes).ok_or(PoolConfigError::NoMemory { bytes })?;
        Self::from_region(region, config)
    }

    /// A pool in a given region (huge pages, a memfd, an AF_XDP umem). As many buffers as fit are made if the region is
    /// smaller than `config.buffers` asks for.
    pub fn from_region(region: DmaRegion, config: PoolConfig) -> Result<Self, PoolConfigError> {
        let size = config.check()?;
        let buffers = config.buffers.min(region.len() / size);
        if buffers == 0 {
            return Err(PoolConfigError::OutOfRange {
                what: "region length",
                value: region.len(),
                allowed: "at least one buffer",
            });
        }
        let descriptors = buffers + config.windows;
        if descriptors.checked_mul(size_of::<Descriptor>()).is_none_or(|n| n > isize::MAX as usize) {
            return Err(PoolConfigError::NoMemory { bytes: usize::MAX });
        }
        let bytes = descriptors * size_of::<Descriptor>();
        let shared = Shared::new(region, buffers as u32, size as u32, config.headroom as u32, descriptors as u32);
        shared.map(|shared| Self { shared }).ok_or(PoolConfigError::NoMemory { bytes })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: this handle holds the pool.
        unsafe { self.shared.as_ref() }
    }

    /// A cache of free packets for one poller.
    pub fn cache(&self) -> PoolCache {
        self.shared().hold();
        PoolCache::new(self.shared)
    }

    /// Number of buffers.
    pub fn buffers(&self) -> usize {
        self.shared().buffer_count as usize
    }

    /// Bytes per buffer, headroom included.
    pub fn buffer_size(&self) -> usize {
        self.shared().buffer_size as usize
    }

    /// Bytes in front of a fresh packet.
    pub fn headroom(&self) -> usize {
        self.shared().headroom as usize
    }

    /// The memory of the buffers, for a driver that maps it.
    pub fn region(&self) -> &DmaRegion {
        &self.shared().region
    }

    /// How often a packet or window was asked for when there was none.
    pub fn exhausted(&self) -> u64 {
        self.shared().exhausted.load(Ordering::Relaxed)
    }
}

impl Clone for PacketPool {
    fn clone(&self) -> Self {
        self.shared().hold();
        Self { shared: self.shared }
    }
}

impl Drop for PacketPool {
    fn drop(&mut self) {
        // SAFETY: the handle gives up its one hold.
        unsafe { Shared::release_holds(self.shared, 1) }
    }
}

impl fmt::Debug for PacketPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketPool")
            .field("buffers", &self.buffers())
            .field("buffer_size", &self.buffer_size())
            .field("headroom", &self.headroom())
            .finish_non_exhaustive()
    }
}

/// An owned copy of caller memory or any other byte owner, boxed for a packet segment.
pub(crate) type ByteOwner = Box<dyn AsRef<[u8]> + Send + Sync>;
