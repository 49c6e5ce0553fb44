//! Mapped memory. The unsafe code of [`memory`](super) is here.

use super::{MemoryError, PageSize};
use core::ffi::c_void;
use core::ptr::NonNull;
use netcore::{DmaRegion, Iova};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A mapping that ends when it is dropped.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared `Mapping` gives no access to the memory.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of one mapping, made in `region`, which is used by nobody any more: its owner goes.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "what was mapped can be unmapped");
    }
}

/// A region that lives in a fresh mapping.
///
/// # Safety
/// `start` is the start of a mapping of `len` bytes, readable, writable and used by nobody else.
unsafe fn region(start: *mut c_void, len: usize) -> Result<DmaRegion, MemoryError> {
    let Some(start) = NonNull::new(start.cast::<u8>()) else {
        return Err(MemoryError::System { what: "mmap", source: std::io::ErrorKind::OutOfMemory.into() });
    };
    let owner = Box::new(Mapping { start, len });
    // SAFETY: as the caller says; the kernel fills fresh pages with zeros and aligns mappings to pages; the owner unmaps them.
    Ok(unsafe { DmaRegion::from_raw_parts(start, len, Iova::Unmapped, owner) })
}

/// `len` rounded up to whole pages.
fn whole_pages(len: usize, pages: PageSize) -> Result<usize, MemoryError> {
    let max = isize::MAX as usize;
    let rounded = len.checked_next_multiple_of(pages.bytes()).filter(|rounded| (1..=max).contains(rounded));
    rounded.ok_or(MemoryError::Length { len, max })
}

/// A full pool of huge pages and any other failure look the same to the system call.
fn no_pages(len: usize, pages: PageSize, what: &'static str) -> impl Fn(rustix::io::Errno) -> MemoryError {
    move |errno| {
        let (wanted, free) = (len / pages.bytes(), pages.free().unwrap_or(0));
        if pages != PageSize::Base && free < wanted {
            MemoryError::NoHugePages { wanted, free, page: pages.bytes() }
        } else {
            MemoryError::system(what)(errno)
        }
    }
}

/// `len` bytes, rounded up to whole pages, private to this process, all of them present and kept from being swapped out. Huge
/// pages need one entry of the processor's address cache where ordinary ones need 512, and are contiguous for a device.
///
/// # Errors
/// [`MemoryError::NoHugePages`] if the system has set aside too few, [`MemoryError::System`] if ordinary memory may not be
/// locked (`ulimit -l`), [`MemoryError::Length`].
pub fn huge_pages(len: usize, pages: PageSize) -> Result<DmaRegion, MemoryError> {
    let len = whole_pages(len, pages)?;
    let flags = MapFlags::PRIVATE
        | MapFlags::POPULATE
        | match pages {
            // Huge pages are never swapped out.
            PageSize::Base => MapFlags::LOCKED,
            PageSize::Huge2M => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
            PageSize::Huge1G => MapFlags::HUGETLB | MapFlags::HUGE_1GB,
        };
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let start = unsafe { mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) };
    let start = start.map_err(no_pages(len, pages, "mmap"))?;
    // SAFETY: mapped just now with this length.
    unsafe { region(start, len) }
}

/// A region and the file behind it, which a device in another process (vhost-user, vfio-user) maps, too.
#[derive(Debug)]
pub struct SharedRegion {
    region: DmaRegion,
    file: OwnedFd,
}

impl SharedRegion {
    /// The region.
    pub const fn region(&self) -> &DmaRegion {
        &self.region
    }

    /// The file; offset 0 is the region's first byte. Its length cannot be changed any more.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The region, for a pool, and the file, for the other process.
    pub fn into_parts(self) -> (DmaRegion, OwnedFd) {
        (self.region, self.file)
    }
}

/// `len` bytes, rounded up to whole pages, in an anonymous file (`memfd_create`). `name` shows in `/proc/self/maps`.
///
/// # Errors
/// As [`huge_pages`].
pub fn memfd(name: &CStr, len: usize, pages: PageSize) -> Result<SharedRegion, MemoryError> {
    let len = whole_pages(len, pages)?;
    let flags = MemfdFlags::CLOEXEC
        | MemfdFlags::ALLOW_SEALING
        | match pages {
            PageSize::Base => MemfdFlags::empty(),
            PageSize::Huge2M => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
            PageSize::Huge1G => MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
        };
    let file = memfd_create(name, flags).map_err(no_pages(len, pages, "memfd_create"))?;
    ftruncate(&file, len as u64).map_err(MemoryError::system("ftruncate"))?;
    // Memory is there from now on, or not at all; and nobody can take it away under the mapping.
    fallocate(&file, FallocateFlags::empty(), 0, len as u64).map_err(no_pages(len, pages, "fallocate"))?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals).map_err(MemoryError::system("fcntl F_ADD_SEALS"))?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let start = unsafe { mmap(core::ptr::null_mut(), len, protection, MapFlags::SHARED, &file, 0) };
    let start = start.map_err(no_pages(len, pages, "mmap"))?;
    // SAFETY: mapped just now with this length, from a file that has it and keeps it. Another process that gets the file is a
    // device, which touches only what a driver gave it.
    let region = unsafe { region(start, len) }?;
    Ok(SharedRegion { region, file })
}
