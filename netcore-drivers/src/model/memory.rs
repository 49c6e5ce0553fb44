//! The memory that modelled devices reach by DMA.

use crate::dma::{RawView, heap_region};
use crate::error::NicError;
use crate::sync::Lock;
use netcore::DmaRegion;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Where device addresses start: above 4 GiB, so that a driver that forgets the upper half is noticed.
const FIRST_IOVA: u64 = 0x1_2340_0000;
/// Unmapped space between regions, so that running over an end is noticed.
const GUARD: u64 = 0x1_0000;

/// A DMA access outside every mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("device address {iova:#x}, {len} bytes, is not mapped")]
pub struct DmaFault {
    /// Device address.
    pub iova: u64,
    /// Bytes.
    pub len: usize,
}

#[derive(Default)]
struct Map {
    regions: BTreeMap<u64, RawView>,
    next: u64,
}

/// Memory that devices reach; clones are the same memory. A region that is dropped is unmapped at once.
#[derive(Clone, Default)]
pub struct Memory {
    map: Arc<Lock<Map>>,
}

/// Unmaps a region before its memory goes.
struct Mapping {
    map: Weak<Lock<Map>>,
    iova: u64,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(map) = self.map.upgrade() {
            map.lock().regions.remove(&self.iova);
        }
    }
}

impl Memory {
    /// No memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// `len` zero bytes, mapped, contiguous.
    ///
    /// # Errors
    /// [`NicError::NoDmaMemory`].
    pub fn allocate(&self, len: usize) -> Result<DmaRegion, NicError> {
        let bytes = len.max(1).next_multiple_of(4096);
        let iova = {
            let mut map = self.map.lock();
            let mut iova = map.next.max(FIRST_IOVA);
            // See `Bus::allocate`: a block of up to 64 KiB does not cross a boundary of that size.
            if iova >> 16 != (iova + bytes as u64 - 1) >> 16 {
                iova = iova.next_multiple_of(1 << 16);
            }
            map.next = (iova + bytes as u64 + GUARD).next_multiple_of(4096);
            iova
        };
        heap_region(bytes, iova, |view| {
            self.map.lock().regions.insert(iova, view);
            Mapping { map: Arc::downgrade(&self.map), iova }
        })
        .ok_or_else(|| NicError::NoDmaMemory { bytes, message: "the allocator has none".into() })
    }

    /// Regions that are mapped now: none after everything was released.
    pub fn mapped(&self) -> usize {
        self.map.lock().regions.len()
    }

    fn find(map: &Map, iova: u64, len: usize) -> Option<(RawView, usize)> {
        let (start, view) = map.regions.range(..=iova).next_back()?;
        let offset = usize::try_from(iova - start).ok()?;
        (offset.checked_add(len)? <= view.len()).then_some((*view, offset))
    }

    /// A device reads memory.
    ///
    /// # Errors
    /// [`DmaFault`] if a byte is not mapped.
    pub fn read(&self, iova: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        let map = self.map.lock();
        let fault = DmaFault { iova, len: bytes.len() };
        let (view, offset) = Self::find(&map, iova, bytes.len()).ok_or(fault)?;
        // SAFETY: the region is registered; its `Mapping` takes it out under the lock, which is held, before it is freed.
        if unsafe { view.read(offset, bytes) } { Ok(()) } else { Err(fault) }
    }

    /// A device writes memory. Sixteen aligned bytes (a descriptor) arrive with the last word last.
    ///
    /// # Errors
    /// [`DmaFault`] if a byte is not mapped; nothing is written then.
    pub fn write(&self, iova: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let map = self.map.lock();
        let fault = DmaFault { iova, len: bytes.len() };
        let (view, offset) = Self::find(&map, iova, bytes.len()).ok_or(fault)?;
        // SAFETY: as in `read`.
        if unsafe { view.write(offset, bytes) } { Ok(()) } else { Err(fault) }
    }
}

impl core::fmt::Debug for Memory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Memory").field("regions", &self.mapped()).finish()
    }
}
