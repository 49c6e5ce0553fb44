//! Huge pages and their physical addresses.

use crate::bus::ranges::Ranges;
use crate::error::NicError;
use crate::sync::Lock;
use netcore::{DmaRegion, Iova};
use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};
use std::boxed::Box;
use std::format;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::vec::Vec;

/// Size of a huge page.
const HUGE: usize = 2 << 20;
const HUGE_SHIFT: u32 = 21;
const PAGE: usize = 4096;

/// A run of huge pages.
#[derive(Debug)]
struct Run {
    start: NonNull<u8>,
    len: usize,
    /// Free parts, by physical address; of a single page only.
    free: Lock<Ranges>,
    /// Physical address of each page.
    pages: Vec<u64>,
}

// SAFETY: a run is an address range, not tied to a thread.
unsafe impl Send for Run {}
// SAFETY: a shared `Run` gives out disjoint parts under a lock.
unsafe impl Sync for Run {}

impl Drop for Run {
    fn drop(&mut self) {
        // SAFETY: mapped in `Run::new` with this length, unmapped once; parts hold the run.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A part of a page.
struct Part {
    run: Arc<Run>,
    at: u64,
    len: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.run.free.lock().give(self.at, self.len);
    }
}

/// Physical address of the page at `address`, from pagemap (kernel documentation `admin-guide/mm/pagemap`).
fn physical(address: usize) -> std::io::Result<u64> {
    let mut entry = [0; 8];
    File::open("/proc/self/pagemap")?.read_exact_at(&mut entry, (address / PAGE * 8) as u64)?;
    let entry = u64::from_le_bytes(entry);
    // Bit 63: present. Bits 54:0: frame number, zero without the privilege to see it.
    let frame = entry & ((1 << 55) - 1);
    if entry >> 63 == 0 || frame == 0 {
        return Err(std::io::Error::other("the page has no physical address that may be seen (root is needed)"));
    }
    Ok(frame * PAGE as u64)
}

impl Run {
    fn new(pages: usize) -> Result<Self, NicError> {
        let len = pages * HUGE;
        let none = |message| NicError::NoDmaMemory { bytes: len, message };
        // SAFETY: a fresh private mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB | MapFlags::POPULATE,
            )
        };
        let start = start.map_err(|error| none(format!("huge pages: {error} (/proc/sys/vm/nr_hugepages?)")))?;
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| none("mapped at zero".into()))?;
        let mut run = Self { start, len, free: Lock::new(Ranges::new(0, 0)), pages: Vec::with_capacity(pages) };
        // SAFETY: the range was mapped just now.
        unsafe { mlock(start.as_ptr().cast(), len) }.map_err(|error| none(format!("mlock: {error}")))?;
        for page in 0..pages {
            let address = start.as_ptr().addr() + page * HUGE;
            run.pages.push(physical(address).map_err(|error| none(format!("pagemap: {error}")))?);
        }
        if let [only] = run.pages[..] {
            run.free = Lock::new(Ranges::new(only, HUGE as u64));
        }
        Ok(run)
    }
}

/// Memory in huge pages: small blocks share a page, large ones get a run of their own.
#[derive(Debug, Default)]
pub(super) struct HugePages {
    shared: Vec<Arc<Run>>,
}

impl HugePages {
    pub(super) fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError> {
        if len > HUGE {
            let run = Run::new(len.div_ceil(HUGE))?;
            let (start, len) = (run.start, run.len);
            let iova = Iova::Pages { shift: HUGE_SHIFT, pages: run.pages.clone().into_boxed_slice() };
            // SAFETY: fresh zeroed memory, page aligned, nobody else's, alive until the run is dropped.
            return Ok(unsafe { DmaRegion::from_raw_parts(start, len, iova, Box::new(run)) });
        }
        let size = len.max(1).next_multiple_of(PAGE);
        for run in &self.shared {
            let taken = run.free.lock().take(size as u64);
            if let Some(at) = taken {
                return Ok(Self::part(run, at, size));
            }
        }
        let run = Arc::new(Run::new(1)?);
        self.shared.push(run.clone());
        let taken = run.free.lock().take(size as u64);
        match taken {
            Some(at) => Ok(Self::part(&run, at, size)),
            None => Err(NicError::NoDmaMemory { bytes: len, message: "a huge page is smaller".into() }),
        }
    }

    fn part(run: &Arc<Run>, at: u64, size: usize) -> DmaRegion {
        let offset = (at - run.pages[0]) as usize;
        // SAFETY: `at` is a part of the run's only page.
        let start = unsafe { run.start.add(offset) };
        // SAFETY: inside the page, which was zeroed when it was mapped.
        unsafe { core::ptr::write_bytes(start.as_ptr(), 0, size) };
        let owner = Part { run: run.clone(), at, len: size as u64 };
        // SAFETY: the part is nobody else's until `owner` gives it back, page aligned, initialised, and lives as long.
        unsafe { DmaRegion::from_raw_parts(start, size, Iova::Linear(at), Box::new(owner)) }
    }
}
