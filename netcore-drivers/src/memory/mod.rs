//! Memory of the operating system for packet pools: huge pages, and memory that another process can map (Linux).
//!
//! ```
//! use netcore::{PacketPool, PoolConfig};
//! use netcore_drivers::memory::{self, PageSize};
//!
//! // A pool in huge pages if there are any, else in ordinary memory.
//! let config = PoolConfig::with_buffers(512);
//! let pool = match memory::huge_pages(2 << 20, PageSize::Huge2M) {
//!     Ok(region) => PacketPool::from_region(region, config)?,
//!     Err(_) => PacketPool::new(config)?,
//! };
//! assert!(pool.buffers() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod mapping;
mod physical;

pub use mapping::{SharedRegion, huge_pages, memfd};
pub use physical::physical_pages;

use std::io;

/// Bytes per page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum PageSize {
    /// The processor's ordinary pages: 4 KiB on x86.
    Base,
    /// 2 MiB.
    Huge2M,
    /// 1 GiB.
    Huge1G,
}

impl PageSize {
    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Base => rustix::param::page_size(),
            Self::Huge2M => 2 << 20,
            Self::Huge1G => 1 << 30,
        }
    }

    /// Huge pages that nobody uses (`/sys/kernel/mm/hugepages`); `None` for ordinary pages, or if the kernel has none of that
    /// size.
    pub fn free(self) -> Option<usize> {
        let kib = match self {
            Self::Base => return None,
            _ => self.bytes() >> 10,
        };
        let path = format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/free_hugepages");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }
}

/// Why there is no such memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Nothing, or more than the address space.
    #[error("a region of {len} bytes, allowed is 1 to {max}")]
    Length {
        /// Bytes asked for.
        len: usize,
        /// Most that can be.
        max: usize,
    },
    /// Too few huge pages.
    #[error(
        "{wanted} pages of {page} bytes are wanted, {free} are free: sysctl vm.nr_hugepages sets how many there are"
    )]
    NoHugePages {
        /// Pages asked for.
        wanted: usize,
        /// Pages that are free; 0 if the kernel has none of that size.
        free: usize,
        /// Bytes per page.
        page: usize,
    },
    /// Physical addresses are hidden from this process.
    #[error("physical addresses are hidden: reading them from /proc/self/pagemap takes CAP_SYS_ADMIN")]
    NoPhysicalAddresses,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// Which.
        what: &'static str,
        /// How.
        source: io::Error,
    },
}

impl MemoryError {
    fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::System { what, source: errno.into() }
    }
}
