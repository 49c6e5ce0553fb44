//! The lock-free list of free descriptors that all threads of a pool share.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use alloc::boxed::Box;
use crossbeam_utils::CachePadded;

/// End of the list.
const END: u32 = u32::MAX;

/// A Treiber stack of indices with a tagged head, moved in batches.
///
/// The head is one 64-bit word: a 32-bit tag that changes with every operation (so that a head which was popped and
/// pushed again between a load and its compare-exchange is noticed) and the index of the first entry. Links live in
/// an array of their own: a reader may follow a link that is already stale, but never reads a descriptor that
/// somebody else owns, and the tag then makes its compare-exchange fail.
#[derive(Debug)]
pub(crate) struct FreeList {
    head: CachePadded<AtomicU64>,
    next: Box<[AtomicU32]>,
}

/// The orderings that make a push visible to a pop. A parameter so that a model can show that weaker ones fail.
pub(crate) struct Orderings {
    pub(crate) push: Ordering,
    pub(crate) pop: Ordering,
}

/// What the pool uses.
pub(crate) const SOUND: Orderings = Orderings { push: Ordering::Release, pop: Ordering::Acquire };

const fn pack(tag: u32, index: u32) -> u64 {
    (tag as u64) << 32 | index as u64
}

const fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl FreeList {
    /// An empty list for indices below `capacity`.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            head: CachePadded::new(AtomicU64::new(pack(0, END))),
            next: (0..capacity).map(|_| AtomicU32::new(END)).collect(),
        }
    }

    /// Puts all of `indices` onto the list with one compare-exchange. What the caller wrote to the objects behind
    /// them happens before whatever their next owner does.
    pub(crate) fn push(&self, indices: &[u32]) {
        self.push_with(indices, &SOUND);
    }

    pub(crate) fn push_with(&self, indices: &[u32], orderings: &Orderings) {
        let (Some(&first), Some(&last)) = (indices.first(), indices.last()) else { return };
        for pair in indices.windows(2) {
            self.next[pair[0] as usize].store(pair[1], Ordering::Relaxed);
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            let (tag, index) = unpack(head);
            self.next[last as usize].store(index, Ordering::Relaxed);
            let new = pack(tag.wrapping_add(1), first);
            match self.head.compare_exchange_weak(head, new, orderings.push, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    /// Takes up to `out.len()` indices off the list with one compare-exchange and says how many.
    pub(crate) fn pop(&self, out: &mut [u32]) -> usize {
        self.pop_with(out, &SOUND)
    }

    pub(crate) fn pop_with(&self, out: &mut [u32], orderings: &Orderings) -> usize {
        let mut head = self.head.load(orderings.pop);
        loop {
            let (tag, mut index) = unpack(head);
            let mut taken = 0;
            while taken < out.len() && index != END {
                out[taken] = index;
                taken += 1;
                index = self.next[index as usize].load(Ordering::Relaxed);
            }
            if taken == 0 {
                return 0;
            }
            let new = pack(tag.wrapping_add(1), index);
            match self.head.compare_exchange_weak(head, new, orderings.pop, orderings.pop) {
                Ok(_) => return taken,
                Err(found) => head = found,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn batches_come_back_last_in_first_out() {
        let list = FreeList::new(8);
        list.push(&[0, 1, 2]);
        list.push(&[5]);
        let mut out = [0; 8];
        assert_eq!(list.pop(&mut out[..3]), 3);
        assert_eq!(out[..3], [5, 0, 1]);
        assert_eq!(list.pop(&mut out), 1);
        assert_eq!(out[0], 2);
        assert_eq!(list.pop(&mut out), 0);
    }

    #[test]
    fn threads_neither_lose_nor_double_an_index() {
        const N: u32 = 64;
        let list = FreeList::new(N);
        list.push(&(0..N).collect::<Vec<_>>());
        std::thread::scope(|scope| {
            for thread in 0..3usize {
                let list = &list;
                scope.spawn(move || {
                    let mut held = [0; 7];
                    for _ in 0..20_000 {
                        let n = list.pop(&mut held[..1 + thread * 3]);
                        list.push(&held[..n]);
                    }
                });
            }
        });
        let mut out = [0; N as usize + 1];
        assert_eq!(list.pop(&mut out), N as usize);
        let mut seen = out[..N as usize].to_vec();
        seen.sort_unstable();
        assert_eq!(seen, (0..N).collect::<Vec<_>>());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// Two threads take an index, write the object behind it, and put it back; loom reports a data race on the
    /// object if the orderings do not hand it over.
    fn hand_over(orderings: &'static Orderings) {
        loom::model(move || {
            let list = Arc::new((FreeList::new(2), [UnsafeCell::new(0u32), UnsafeCell::new(0u32)]));
            list.0.push(&[0, 1]);
            let work = move |list: &(FreeList, [UnsafeCell<u32>; 2])| {
                let mut out = [0; 1];
                if list.0.pop_with(&mut out, orderings) == 1 {
                    list.1[out[0] as usize].with_mut(|value| {
                        // SAFETY: the index was popped, so this thread owns the object until it pushes it back.
                        unsafe { *value += 1 }
                    });
                    list.0.push_with(&out, orderings);
                }
            };
            let other = {
                let list = list.clone();
                loom::thread::spawn(move || work(&list))
            };
            work(&list);
            other.join().unwrap();
            let mut out = [0; 3];
            assert_eq!(list.0.pop(&mut out), 2, "an index was lost or doubled");
        });
    }

    #[test]
    fn free_list_hands_over_ownership() {
        hand_over(&SOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_push_is_caught() {
        hand_over(&Orderings { push: Ordering::Relaxed, pop: Ordering::Acquire });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_pop_is_caught() {
        hand_over(&Orderings { push: Ordering::Release, pop: Ordering::Relaxed });
    }

    #[test]
    fn batches_survive_interleaving() {
        loom::model(|| {
            let list = Arc::new(FreeList::new(3));
            list.push(&[0, 1, 2]);
            let other = {
                let list = list.clone();
                loom::thread::spawn(move || {
                    let mut out = [0; 2];
                    let n = list.pop(&mut out);
                    list.push(&out[..n]);
                })
            };
            let mut out = [0; 1];
            let n = list.pop(&mut out);
            list.push(&out[..n]);
            other.join().unwrap();
            let mut out = [0; 4];
            assert_eq!(list.pop(&mut out), 3);
            out[..3].sort_unstable();
            assert_eq!(out[..3], [0, 1, 2]);
        });
    }
}
