//! [`Ranges`]: address space given out in blocks.

use alloc::collections::BTreeMap;

/// Free ranges of an address space, by their start. Blocks are multiples of a page, and a block of up to 64 KiB crosses no
/// 64 KiB boundary ([`Bus::allocate`](super::Bus::allocate)).
#[derive(Debug)]
pub(crate) struct Ranges {
    free: BTreeMap<u64, u64>,
}

const PAGE: u64 = 4096;
const BOUNDARY: u64 = 1 << 16;

impl Ranges {
    /// `len` free bytes at `start`.
    pub(crate) fn new(start: u64, len: u64) -> Self {
        Self { free: BTreeMap::from([(start, len)]) }
    }

    /// The first place for a block of `len` bytes, rounded up to pages, in the free range at `start`.
    fn place(start: u64, len: u64) -> u64 {
        if start / BOUNDARY == (start + len - 1) / BOUNDARY { start } else { start.next_multiple_of(BOUNDARY) }
    }

    /// A block of `len` bytes, rounded up to pages; `None` if there is none.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let len = len.max(1).checked_next_multiple_of(PAGE)?;
        let fits = |(start, size): &(&u64, &u64)| Self::place(**start, len).saturating_add(len) <= **start + **size;
        let (&range, &size) = self.free.iter().find(fits)?;
        self.free.remove(&range);
        let start = Self::place(range, len);
        if start > range {
            self.free.insert(range, start - range);
        }
        if start + len < range + size {
            self.free.insert(start + len, range + size - start - len);
        }
        Some(start)
    }

    /// Gives a block back that was taken with the same length.
    pub(crate) fn give(&mut self, start: u64, len: u64) {
        let (mut start, mut len) = (start, len.max(1).next_multiple_of(PAGE));
        if let Some(next) = self.free.remove(&(start + len)) {
            len += next;
        }
        if let Some((&before, &before_len)) = self.free.range(..start).next_back()
            && before + before_len == start
        {
            start = before;
            len += before_len;
        }
        self.free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn blocks_cross_no_boundary_and_come_back_as_one() {
        let mut ranges = Ranges::new(0x10_0000, 1 << 20);
        let blocks: Vec<(u64, u64)> =
            [4096, 60_000, 65_536, 5000, 200_000].map(|len| (ranges.take(len).unwrap(), len)).into();
        for (start, len) in &blocks {
            assert!(*len > BOUNDARY || start / BOUNDARY == (start + len - 1) / BOUNDARY, "{start:#x}");
        }
        assert_eq!(ranges.take(1 << 20), None);
        for (start, len) in blocks {
            ranges.give(start, len);
        }
        assert_eq!(ranges.take(1 << 20), Some(0x10_0000));
    }
}
