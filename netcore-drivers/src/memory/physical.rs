//! Physical addresses, for devices without an IOMMU.

use super::{MemoryError, PageSize};
use netcore::{DmaRegion, Iova};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bit of a pagemap entry: the page is in memory (`Documentation/admin-guide/mm/pagemap.rst`).
const PRESENT: u64 = 1 << 63;
/// Bits of a pagemap entry: the page frame number.
const FRAME: u64 = (1 << 55) - 1;

/// Where the pages of a region are in physical memory, for [`DmaRegion::with_iova`]. They stay there if they are huge, or locked
/// and not moved by compaction (`sysctl vm.compact_unevictable_allowed=0`).
///
/// # Errors
/// [`MemoryError::NoPhysicalAddresses`] without the right to see them; [`MemoryError::System`].
pub fn physical_pages(region: &DmaRegion, pages: PageSize) -> Result<Iova, MemoryError> {
    let system = |source| MemoryError::System { what: "read /proc/self/pagemap", source };
    let map = File::open("/proc/self/pagemap").map_err(system)?;
    let base = PageSize::Base.bytes();
    let start = region.start().as_ptr() as usize;
    let addresses = (start..start + region.len()).step_by(pages.bytes()).map(|address| {
        // One entry of eight bytes per ordinary page.
        let mut entry = [0; 8];
        map.read_exact_at(&mut entry, (address / base * 8) as u64).map_err(system)?;
        let entry = u64::from_ne_bytes(entry);
        // A process without the right sees the frame number 0.
        if entry & PRESENT == 0 || entry & FRAME == 0 {
            return Err(MemoryError::NoPhysicalAddresses);
        }
        Ok((entry & FRAME) * base as u64 + (address % base) as u64)
    });
    let pages_found = addresses.collect::<Result<Box<[u64]>, _>>()?;
    Ok(Iova::Pages { shift: pages.bytes().ilog2(), pages: pages_found })
}
