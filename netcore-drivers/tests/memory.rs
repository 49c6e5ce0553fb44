//! Packet pools in memory of the operating system.
#![cfg(target_os = "linux")]

use netcore::{Iova, PacketPool, PoolConfig};
use netcore_drivers::memory::{self, MemoryError, PageSize};
use std::fs::File;
use std::os::unix::fs::FileExt;

#[test]
fn what_a_pool_in_a_memfd_holds_is_in_the_file() {
    let shared = memory::memfd(c"netcore-test", 100_000, PageSize::Base).unwrap();
    assert_eq!(shared.region().len() % PageSize::Base.bytes(), 0);
    let (region, file) = shared.into_parts();
    let start = region.start().as_ptr() as usize;
    let file = File::from(file);
    assert!(file.set_len(0).is_err(), "the memory cannot be taken away");
    let pool = PacketPool::from_region(region, PoolConfig::with_buffers(10)).unwrap();
    let packet = pool.cache().copy_from_slice(b"in both places").unwrap();
    let offset = packet.head().as_ptr() as usize - start;
    let mut seen = [0; 14];
    file.read_exact_at(&mut seen, offset as u64).unwrap();
    assert_eq!(&seen, b"in both places");
    // The mapping outlives every handle but the packet's.
    drop(pool);
    assert_eq!(packet.head(), b"in both places");
}

#[test]
fn a_pool_lives_in_huge_pages() {
    let region = match memory::huge_pages(3 << 20, PageSize::Huge2M) {
        Ok(region) => region,
        Err(error @ MemoryError::NoHugePages { .. }) => {
            assert!(PageSize::Huge2M.free().unwrap_or(0) < 2, "{error}");
            return netcore_test::skip("hugepages", &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(region.len(), 4 << 20, "whole pages");
    match memory::physical_pages(&region, PageSize::Huge2M) {
        Ok(iova) => {
            let Iova::Pages { shift: 21, ref pages } = iova else { panic!("{iova:?}") };
            assert!(pages.len() == 2 && pages.iter().all(|page| page % (2 << 20) == 0));
            let (first, region) = (pages[0], region.with_iova(iova));
            assert_eq!(region.iova_of(5000, 2000), Some(first + 5000));
        }
        Err(MemoryError::NoPhysicalAddresses) => netcore_test::skip("root", "physical addresses are hidden"),
        Err(error) => panic!("{error}"),
    }
    let Ok(shared) = memory::memfd(c"netcore-test", 1, PageSize::Huge2M) else { return };
    let pool = PacketPool::from_region(shared.into_parts().0, PoolConfig::with_buffers(100)).unwrap();
    assert_eq!(pool.cache().copy_from_slice(&[7; 2000]).unwrap().head(), [7; 2000]);
}

#[test]
fn regions_that_cannot_be_are_refused_with_the_reason() {
    assert!(matches!(memory::huge_pages(0, PageSize::Base), Err(MemoryError::Length { len: 0, .. })));
    assert!(matches!(memory::memfd(c"x", usize::MAX, PageSize::Base), Err(MemoryError::Length { .. })));
    match memory::huge_pages(1 << 46, PageSize::Huge2M) {
        Err(MemoryError::NoHugePages { wanted, free, page }) => {
            assert!(wanted == 1 << 25 && free < wanted && page == 2 << 20)
        }
        other => panic!("{other:?}"),
    }
}
