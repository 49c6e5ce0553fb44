//! The memory of the machine: a memfd that both processes map, given out block by block.

use crate::bus::ranges::Ranges;
use crate::dma::DmaBlock;
use crate::error::NicError;
use crate::sync::Lock;
use netcore::{DmaRegion, Iova};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::boxed::Box;
use std::format;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// Firmware and vectors are below this.
const FIRST: usize = 1 << 20;
const PAGE: usize = 4096;

/// The mapping of the memfd.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is an address range, not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared `Mapping` gives no access.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `Memory::new` with this length, unmapped once; regions hold the mapping.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The memory of a machine; clones are the same.
#[derive(Clone)]
pub(super) struct Memory {
    mapping: Arc<Mapping>,
    free: Arc<Lock<Ranges>>,
}

/// Gives a block back.
struct Block {
    free: Arc<Lock<Ranges>>,
    start: usize,
    len: usize,
    _mapping: Arc<Mapping>,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.free.lock().give(self.start as u64, self.len as u64);
    }
}

impl Memory {
    /// `len` bytes, and the file for QEMU to map.
    pub(super) fn new(len: usize) -> Result<(Self, OwnedFd), NicError> {
        let failed =
            |error: rustix::io::Errno| NicError::Io { what: "memory of the machine", message: format!("{error}") };
        // Without close-on-exec: QEMU inherits it.
        let fd = memfd_create("netcore-machine", MemfdFlags::empty()).map_err(failed)?;
        ftruncate(&fd, len as u64).map_err(failed)?;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice.
        let start =
            unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &fd, 0) };
        let start = NonNull::new(start.map_err(failed)?.cast::<u8>())
            .ok_or(NicError::NoDmaMemory { bytes: len, message: "mapped at zero".into() })?;
        let free = Ranges::new(FIRST as u64, (len - FIRST) as u64);
        Ok((Self { mapping: Arc::new(Mapping { start, len }), free: Arc::new(Lock::new(free)) }, fd))
    }

    /// `len` zero bytes; the device's address is the offset in the memory.
    pub(super) fn allocate(&self, len: usize) -> Result<DmaRegion, NicError> {
        let len = len.max(1).next_multiple_of(PAGE);
        let none = NicError::NoDmaMemory { bytes: len, message: "the machine's memory is used up".into() };
        let start = self.free.lock().take(len as u64).ok_or(none)? as usize;
        let owner = Block { free: self.free.clone(), start, len, _mapping: self.mapping.clone() };
        // SAFETY: the block is inside the mapping, page aligned, used by nobody else until `owner` gives it back, and the
        // mapping lives as long as `owner`.
        let region = unsafe {
            let at = self.mapping.start.add(start);
            DmaRegion::from_raw_parts(at, len, Iova::Linear(start as u64), Box::new(owner))
        };
        let block = DmaBlock::new(region)?;
        block.zero(0, len);
        Ok(block.into_region())
    }
}
