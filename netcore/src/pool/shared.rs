//! The part of a pool that all threads share.

use super::counts::{Holds, References};
use super::free_list::FreeList;
use super::region::DmaRegion;
use crate::packet::descriptor::{Descriptor, Fresh, SegmentKind};
use crate::sync::atomic::AtomicU64;
use alloc::alloc::{alloc, dealloc};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Which free list a released descriptor belongs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Free {
    /// It has a buffer that nobody else references, and is an empty packet but for the handle.
    Full,
    /// It has no buffer.
    Bare,
}

/// Descriptors, buffers, reference counts and the two shared free lists.
///
/// A descriptor and a buffer meet when the buffer's last reference is released: the descriptor that held it goes
/// free as "full", all others go free as "bare". So there are always exactly as many full descriptors as free
/// buffers, and no separate list of buffers.
pub(crate) struct Shared {
    descriptors: NonNull<Descriptor>,
    descriptor_count: u32,
    buffers: NonNull<u8>,
    pub(crate) buffer_size: u32,
    pub(crate) headroom: u32,
    pub(crate) buffer_count: u32,
    pub(crate) fresh: Fresh,
    references: Box<[References]>,
    full: FreeList,
    bare: FreeList,
    /// Pool and cache handles, plus descriptors that are not on a shared list. The memory goes when it reaches zero.
    holds: Holds,
    pub(crate) exhausted: AtomicU64,
    pub(crate) region: DmaRegion,
}

/// Makes packets that are given back empty ones again.
#[derive(Clone, Copy)]
pub(crate) struct Renewal {
    pool: *const Shared,
    fresh: Fresh,
    references: *const References,
}

impl Renewal {
    /// If a packet is one segment of this pool that nobody shares, as most are, makes it an empty packet and answers true: its
    /// descriptor is then free and full.
    ///
    /// # Safety
    /// The caller owns the packet that starts with the descriptor, and the pool is held.
    #[inline(always)]
    pub(crate) unsafe fn renew(self, descriptor: NonNull<Descriptor>) -> bool {
        // SAFETY: the caller owns the descriptor.
        let d = unsafe { descriptor.as_ref() };
        if !d.next.is_null() || d.kind != SegmentKind::Pool || !core::ptr::eq(d.pool, self.pool) {
            return false;
        }
        // SAFETY: the pool has a count for each of its buffers, and the descriptor has one of them.
        let references = unsafe { &*self.references.add(d.buffer as usize) };
        if !references.is_one() {
            return false;
        }
        // SAFETY: owned; `next` is null, and so `last`, the last segment of the packet, is the descriptor itself; its reference
        // to the buffer is the only one.
        unsafe { self.fresh.write(descriptor) };
        true
    }
}

impl Shared {
    /// All descriptors on the shared lists, one handle held; `None` if there is no memory for them.
    pub(crate) fn new(
        region: DmaRegion,
        buffer_count: u32,
        buffer_size: u32,
        headroom: u32,
        descriptor_count: u32,
    ) -> Option<NonNull<Self>> {
        let layout = Self::descriptor_layout(descriptor_count);
        // SAFETY: the layout has a size above zero; the pool has at least one descriptor.
        let raw = unsafe { alloc(layout) };
        let descriptors = NonNull::new(raw.cast::<Descriptor>())?;
        let shared = Box::new(Self {
            descriptors,
            descriptor_count,
            buffers: region.start(),
            buffer_size,
            headroom,
            buffer_count,
            // SAFETY: the region has `buffer_count` buffers of `buffer_size` bytes, more than the headroom.
            fresh: unsafe { Fresh::new(region.start().as_ptr(), buffer_size, headroom) },
            references: (0..buffer_count).map(|_| References::one()).collect(),
            full: FreeList::new(descriptor_count),
            bare: FreeList::new(descriptor_count),
            holds: Holds::one(),
            exhausted: AtomicU64::new(0),
            region,
        });
        let shared = NonNull::from(Box::leak(shared));
        for index in 0..descriptor_count {
            let mut content = Descriptor::bare(shared.as_ptr());
            // SAFETY: `shared` was leaked just now and is freed only by `release_holds`.
            let fresh = unsafe { (*shared.as_ptr()).fresh };
            // SAFETY: `index` is below `descriptor_count`, for which the block was allocated; nobody else knows the
            // descriptor, and buffer `index` is there and has one reference, which is this descriptor's.
            unsafe {
                let descriptor = descriptors.add(index as usize);
                if index < buffer_count {
                    content.buffer = index;
                    descriptor.write(content);
                    fresh.write_all(descriptor);
                } else {
                    descriptor.write(content);
                }
            }
        }
        // SAFETY: as above.
        let this = unsafe { shared.as_ref() };
        this.full.push(&(0..buffer_count).collect::<alloc::vec::Vec<_>>());
        this.bare.push(&(buffer_count..descriptor_count).collect::<alloc::vec::Vec<_>>());
        Some(shared)
    }

    fn descriptor_layout(count: u32) -> Layout {
        Layout::array::<Descriptor>(count as usize).expect("descriptor count is limited to u32 and 128 bytes each")
    }

    /// The descriptor with this index.
    #[inline(always)]
    pub(crate) fn descriptor(&self, index: u32) -> NonNull<Descriptor> {
        debug_assert!(index < self.descriptor_count);
        // SAFETY: only indices that came from a list of this pool get here, and they are below `descriptor_count`.
        unsafe { self.descriptors.add(index as usize) }
    }

    /// The index of a descriptor of this pool.
    #[inline(always)]
    pub(crate) fn index(&self, descriptor: NonNull<Descriptor>) -> u32 {
        // SAFETY: both point into the one allocation of this pool's descriptors.
        let offset = unsafe { descriptor.offset_from(self.descriptors) };
        offset as u32
    }

    /// First byte of a buffer.
    #[inline(always)]
    pub(crate) fn buffer_start(&self, buffer: u32) -> *mut u8 {
        debug_assert!(buffer < self.buffer_count);
        // SAFETY: the region holds `buffer_count` buffers of `buffer_size` bytes.
        unsafe { self.buffers.as_ptr().add(buffer as usize * self.buffer_size as usize) }
    }

    /// Memory that one packet of one segment is accounted for.
    #[inline(always)]
    pub(crate) fn truesize(&self) -> u32 {
        self.buffer_size + size_of::<Descriptor>() as u32
    }

    /// The references to a buffer.
    #[inline(always)]
    pub(crate) fn references(&self, buffer: u32) -> &References {
        &self.references[buffer as usize]
    }

    /// What renewing packets needs, in one value, so that a loop keeps it in registers.
    #[inline(always)]
    pub(crate) fn renewal(&self) -> Renewal {
        Renewal { pool: self, fresh: self.fresh, references: self.references.as_ptr() }
    }

    /// Ends the use of one descriptor: afterwards it is free and belongs on the list returned.
    ///
    /// # Safety
    /// The caller owns the descriptor, which is one of this pool, and uses it no more except to put it on that list.
    #[inline(always)]
    pub(crate) unsafe fn release(&self, descriptor: NonNull<Descriptor>) -> Free {
        // SAFETY: the caller owns the descriptor.
        let d = unsafe { &mut *descriptor.as_ptr() };
        match d.kind {
            SegmentKind::Pool if self.references(d.buffer).give_back(1) => {
                // SAFETY: the caller owns the descriptor, and its reference was the last to a buffer of this pool.
                unsafe { self.fresh.write_all(descriptor) };
                return Free::Full;
            }
            SegmentKind::Pool | SegmentKind::Virtual | SegmentKind::Bare => {}
            SegmentKind::External => {
                // SAFETY: an external descriptor holds one count of the `Arc` that was made raw for it.
                drop(unsafe { Arc::from_raw(d.external) });
                d.external = core::ptr::null();
            }
        }
        d.kind = SegmentKind::Bare;
        Free::Bare
    }

    /// Takes descriptors off a shared list; the caller holds a handle of this pool.
    pub(crate) fn take(&self, list: Free, out: &mut [u32]) -> usize {
        let n = self.list(list).pop(out);
        self.holds.add(n);
        n
    }

    /// Number of descriptors beyond one per buffer.
    pub(crate) fn windows(&self) -> u32 {
        self.descriptor_count - self.buffer_count
    }

    fn list(&self, list: Free) -> &FreeList {
        match list {
            Free::Full => &self.full,
            Free::Bare => &self.bare,
        }
    }

    /// Puts free descriptors onto a shared list.
    ///
    /// # Safety
    /// The caller owns them, uses them no more, and they belong on this list. `this` may be gone afterwards unless the
    /// caller holds a handle.
    pub(crate) unsafe fn give(this: NonNull<Self>, list: Free, indices: &[u32]) {
        // SAFETY: the descriptors given back still hold the pool.
        unsafe { this.as_ref() }.list(list).push(indices);
        // SAFETY: their holds are released once, here.
        unsafe { Self::release_holds(this, indices.len()) };
    }

    /// One more handle.
    pub(crate) fn hold(&self) {
        self.holds.add(1);
    }

    /// Releases `n` holds and frees the pool if they were the last.
    ///
    /// # Safety
    /// The caller owns `n` holds and gives them up.
    pub(crate) unsafe fn release_holds(this: NonNull<Self>, n: usize) {
        if n == 0 {
            return;
        }
        // SAFETY: the holds given up keep the pool alive until the subtraction.
        if unsafe { this.as_ref() }.holds.give_back(n) {
            // SAFETY: no handle and no descriptor outside the lists is left, so nobody can reach the pool any more.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Descriptors own nothing while they are free, so the block goes without visiting them.
        let layout = Self::descriptor_layout(self.descriptor_count);
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.descriptors.as_ptr().cast(), layout) }
    }
}
