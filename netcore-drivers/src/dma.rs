//! [`DmaBlock`]: memory that a device reads and writes. All unsafe code that touches such memory is here.
//!
//! A device writes behind the compiler's back, so nothing here ever forms a reference to the memory: words are relaxed
//! atomic accesses, bytes are copied. Order between them is the rings' business ([`crate::ring`]).

use crate::error::NicError;
use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use netcore::{DmaRegion, Iova};

/// Alignment of rings: every family's descriptor base register takes multiples of 128 (82599 requires them).
pub const RING_ALIGN: usize = 128;

/// A block of memory, contiguous for the device.
pub struct DmaBlock {
    region: DmaRegion,
    iova: u64,
}

// SAFETY: the block owns its region; accesses are atomic words or copies through raw pointers, see the module.
unsafe impl Sync for DmaBlock {}

impl DmaBlock {
    /// Takes a region for word and byte access.
    ///
    /// # Errors
    /// [`NicError::NoDmaMemory`] if the region is not mapped, or not contiguous for the device.
    pub fn new(region: DmaRegion) -> Result<Self, NicError> {
        let iova = region.iova_of(0, region.len()).ok_or_else(|| NicError::NoDmaMemory {
            bytes: region.len(),
            message: "the region is not contiguous for the device".into(),
        })?;
        Ok(Self { region, iova })
    }

    /// The region.
    pub fn into_region(self) -> DmaRegion {
        self.region
    }

    /// Bytes in the block.
    pub fn size(&self) -> usize {
        self.region.len()
    }

    /// The device's address of the first byte.
    pub const fn iova(&self) -> u64 {
        self.iova
    }

    #[inline]
    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if offset.checked_add(len)? > self.region.len() {
            return None;
        }
        // SAFETY: the end of the range is inside the region.
        Some(unsafe { self.region.start().as_ptr().add(offset) })
    }

    /// Reads the little-endian word at `offset`, a multiple of 8; zero outside the block.
    #[inline]
    pub fn read_u64(&self, offset: usize) -> u64 {
        match self.at(offset & !7, 8) {
            // SAFETY: inside the region, aligned to 8 because regions are aligned to 64; the memory lives as long as `self`
            // and is only accessed through raw pointers or atomics.
            Some(at) => u64::from_le(unsafe { AtomicU64::from_ptr(at.cast()) }.load(Ordering::Relaxed)),
            None => 0,
        }
    }

    /// Writes the little-endian word at `offset`, a multiple of 8; ignored outside the block.
    #[inline]
    pub fn write_u64(&self, offset: usize, value: u64) {
        if let Some(at) = self.at(offset & !7, 8) {
            // SAFETY: as in `read_u64`.
            unsafe { AtomicU64::from_ptr(at.cast()) }.store(value.to_le(), Ordering::Relaxed);
        }
    }

    /// Reads the little-endian word at `offset`, a multiple of 4; zero outside the block.
    #[inline]
    pub fn read_u32(&self, offset: usize) -> u32 {
        match self.at(offset & !3, 4) {
            // SAFETY: as in `read_u64`, aligned to 4.
            Some(at) => u32::from_le(unsafe { AtomicU32::from_ptr(at.cast()) }.load(Ordering::Relaxed)),
            None => 0,
        }
    }

    /// Copies `bytes` to `offset`. False, and nothing is copied, if they do not fit.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(at) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: the range is inside the region, which `bytes` is not part of: nobody holds references into a block.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        true
    }

    /// Copies from `offset` into `bytes`. False, and nothing is copied, if the range is not inside the block.
    #[inline]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let Some(at) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: as in `write`.
        unsafe { core::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Fills `len` bytes at `offset` with zeros.
    pub fn zero(&self, offset: usize, len: usize) {
        if let Some(at) = self.at(offset, len) {
            // SAFETY: as in `write`.
            unsafe { core::ptr::write_bytes(at, 0, len) };
        }
    }
}

impl core::fmt::Debug for DmaBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DmaBlock").field("iova", &self.iova).field("len", &self.region.len()).finish()
    }
}

/// A view of a region by its address and length, for whoever plays the device's part. It does not keep the region alive:
/// the owner of the region removes it from wherever it is registered when the region goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawView {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a view is an address; who uses it holds the registration that ends before the memory does.
unsafe impl Send for RawView {}
// SAFETY: as above.
unsafe impl Sync for RawView {}

impl RawView {
    #[allow(dead_code, reason = "used by some back ends only")]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Copies out of the region.
    ///
    /// # Safety
    /// The region that this view was made for is alive.
    #[cfg_attr(not(feature = "model"), allow(dead_code))]
    pub(crate) unsafe fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        // SAFETY: in range, alive by contract; `bytes` is the caller's own memory.
        unsafe {
            let at = self.start.as_ptr().add(offset);
            if bytes.len() == 16 && at.addr() & 7 == 0 {
                // Descriptors: whole words, as the bus transfers them.
                for half in 0..2 {
                    let word = AtomicU64::from_ptr(at.add(8 * half).cast()).load(Ordering::Relaxed);
                    bytes[8 * half..8 * half + 8].copy_from_slice(&word.to_ne_bytes());
                }
            } else {
                core::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len());
            }
        }
        true
    }

    /// Copies into the region.
    ///
    /// # Safety
    /// The region that this view was made for is alive.
    #[cfg_attr(not(feature = "model"), allow(dead_code))]
    pub(crate) unsafe fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        // SAFETY: as in `read`.
        unsafe {
            let at = self.start.as_ptr().add(offset);
            if bytes.len() == 16 && at.addr() & 7 == 0 {
                // A descriptor write-back arrives with its status word last.
                for half in 0..2 {
                    let mut word = [0; 8];
                    word.copy_from_slice(&bytes[8 * half..8 * half + 8]);
                    AtomicU64::from_ptr(at.add(8 * half).cast()).store(u64::from_ne_bytes(word), Ordering::Release);
                }
            } else {
                core::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            }
        }
        true
    }
}

/// Zeroed memory of the global allocator.
struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: owned memory, not tied to a thread.
unsafe impl Send for Heap {}
// SAFETY: a shared `Heap` gives no access.
unsafe impl Sync for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `heap_region` with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A region of ordinary memory at a device address of the caller's choice, aligned to a page. `owner` is dropped before
/// the memory is. For models and benches.
pub(crate) fn heap_region<O: Send + Sync + 'static>(
    len: usize,
    iova: u64,
    owner: impl FnOnce(RawView) -> O,
) -> Option<DmaRegion> {
    let align = if len >= 2 << 20 { 2 << 20 } else { 4096 };
    let layout = Layout::from_size_align(len.max(1), align).ok()?;
    // SAFETY: the layout has a size above zero.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    let heap = Heap { start, layout };
    let owner = owner(RawView { start, len });
    // SAFETY: fresh, zeroed, aligned to 64 and more; freed when the pair is dropped, fields in order: owner first.
    Some(unsafe { DmaRegion::from_raw_parts(start, len, Iova::Linear(iova), Box::new((owner, heap))) })
}

/// Two views of the same ordinary memory, for benches and tests that play the device's part: the driver's, whose device
/// addresses are addresses in memory, and the device's.
pub fn shared_blocks(len: usize) -> Option<(DmaRegion, DmaBlock)> {
    let region = plain_region(len)?;
    let (start, len, iova) = (region.start(), region.len(), region.iova().clone());
    let owner = alloc::sync::Arc::new(region);
    let view = |owner| {
        // SAFETY: zeroed memory, page aligned, alive as long as the region that every view owns. Both views are used through
        // `DmaBlock` only, which never forms references.
        unsafe { DmaRegion::from_raw_parts(start, len, iova.clone(), Box::new(owner)) }
    };
    let device = DmaBlock::new(view(owner.clone())).ok()?;
    Some((view(owner), device))
}

/// A region of ordinary memory for benches without a device: the device address is the address in memory.
pub fn plain_region(len: usize) -> Option<DmaRegion> {
    let region = heap_region(len, 0, |_| ())?;
    let iova = region.start().as_ptr().expose_provenance() as u64;
    Some(region.with_iova(Iova::Linear(iova)))
}
