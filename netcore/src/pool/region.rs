//! The memory that a pool's buffers live in, and how a device addresses it.

use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use core::alloc::Layout;
use core::any::Any;
use core::fmt;
use core::ptr::NonNull;

/// Size from which heap regions are aligned for transparent huge pages.
const HUGE_PAGE: usize = 2 << 20;
/// Alignment of every region: one cache line.
const CACHE_LINE: usize = 64;

/// How a device addresses a region (IO virtual address).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Iova {
    /// The region is not mapped for any device; drivers copy out of it.
    #[default]
    Unmapped,
    /// Byte `n` of the region is at this address plus `n` (an IOMMU mapping, or an AF_XDP umem with base 0).
    Linear(u64),
    /// The region is made of physical pages of `1 << shift` bytes, each at the address listed (no IOMMU).
    Pages {
        /// Base-2 logarithm of the page size in bytes.
        shift: u32,
        /// Address of each page of the region, in order.
        pages: Box<[u64]>,
    },
}

/// A block of memory, zero-filled at creation, that stays where it is until its owner is dropped.
pub struct DmaRegion {
    start: NonNull<u8>,
    len: usize,
    iova: Iova,
    /// Keeps the memory alive: a heap block, a mapping, a umem.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the region only describes memory; whoever reads or writes it (the pool) arranges exclusive access, and the
// owner is itself `Send + Sync`.
unsafe impl Send for DmaRegion {}
// SAFETY: as above; no method of the region reads or writes the memory.
unsafe impl Sync for DmaRegion {}

/// A zeroed block of the global allocator.
struct HeapBlock {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block is owned memory, not tied to the thread that allocated it.
unsafe impl Send for HeapBlock {}
// SAFETY: a shared `HeapBlock` gives no access to the memory.
unsafe impl Sync for HeapBlock {}

impl Drop for HeapBlock {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this very layout and is freed once, here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl DmaRegion {
    /// `len` bytes of ordinary memory, aligned to a cache line, or to 2 MiB from that size on so that transparent huge
    /// pages can back it. `None` if the allocator has no such block, or if `len` is zero.
    pub fn heap(len: usize) -> Option<Self> {
        if len == 0 {
            return None;
        }
        let align = if len >= HUGE_PAGE { HUGE_PAGE } else { CACHE_LINE };
        // A little more than needed, aligned by hand: allocators hand out untouched pages for zeroed blocks only if no
        // alignment beyond their own is asked for, and otherwise write every byte.
        let layout = Layout::from_size_align(len.checked_add(align)?, 16).ok()?;
        // SAFETY: the layout has a size above zero.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = block.as_ptr().align_offset(align);
        if skip > align {
            // SAFETY: `block` came from `alloc_zeroed` with this layout, and nothing refers to it.
            unsafe { dealloc(block.as_ptr(), layout) };
            return None;
        }
        // SAFETY: `skip` is at most `align`, so `start..start + len` lies within the block.
        let start = unsafe { block.add(skip) };
        Some(Self { start, len, iova: Iova::Unmapped, _owner: Box::new(HeapBlock { start: block, layout }) })
    }

    /// A region of memory that somebody else mapped: a memfd, huge pages, an AF_XDP umem, memory behind VFIO.
    ///
    /// # Safety
    /// `start..start + len` must be readable, writable, initialised, aligned to 64 bytes, used by nobody else, and
    /// must stay so until `owner` is dropped.
    pub unsafe fn from_raw_parts(
        start: NonNull<u8>,
        len: usize,
        iova: Iova,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self { start, len, iova, _owner: owner }
    }

    /// The same memory with another device mapping, for instance after a driver mapped the region.
    pub fn with_iova(mut self, iova: Iova) -> Self {
        self.iova = iova;
        self
    }

    /// First byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)] // a region is never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// How a device addresses the region.
    pub fn iova(&self) -> &Iova {
        &self.iova
    }

    /// Device address of the `len` bytes at `offset`; `None` if they are outside the region, not mapped, or spread over
    /// pages that are not adjacent for the device.
    pub fn iova_of(&self, offset: usize, len: usize) -> Option<u64> {
        let end = offset.checked_add(len)?;
        if end > self.len {
            return None;
        }
        match &self.iova {
            Iova::Unmapped => None,
            Iova::Linear(base) => base.checked_add(offset as u64),
            Iova::Pages { shift, pages } => {
                let size = 1usize.checked_shl(*shift)?;
                let first = offset >> shift;
                let last = end.saturating_sub(1).max(offset) >> shift;
                let base = *pages.get(first)?;
                for page in first..last {
                    if pages.get(page + 1)? != &pages.get(page)?.checked_add(size as u64)? {
                        return None;
                    }
                }
                base.checked_add((offset & (size - 1)) as u64)
            }
        }
    }
}

impl fmt::Debug for DmaRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmaRegion")
            .field("start", &self.start)
            .field("len", &self.len)
            .field("iova", &self.iova)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn linear_and_paged_regions_translate_to_device_addresses() {
        let region = DmaRegion::heap(4 * 4096).unwrap();
        assert_eq!(region.iova_of(0, 1), None);
        let region = region.with_iova(Iova::Linear(0x10_0000));
        assert_eq!(region.iova_of(4096, 8192), Some(0x10_1000));
        assert_eq!(region.iova_of(4096, 4 * 4096), None);
        let pages = vec![0x9000, 0x4000, 0x5000, 0x1000].into_boxed_slice();
        let region = region.with_iova(Iova::Pages { shift: 12, pages });
        assert_eq!(region.iova_of(10, 100), Some(0x900a));
        assert_eq!(region.iova_of(4090, 100), None, "pages 0 and 1 are not adjacent");
        assert_eq!(region.iova_of(8190, 100), Some(0x4ffe), "pages 1 and 2 are");
    }

    #[test]
    fn an_empty_region_is_refused() {
        assert!(DmaRegion::heap(0).is_none());
    }
}
