//! Vector helpers for crates that forbid unsafe code.

/// Fetches a cache line; any address will do.
#[inline(always)]
pub(crate) fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `prfm` is a hint without effect on memory, registers or flags.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64 processor, and a prefetch of any address is a hint without effect on memory.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Asks the processor for the cache line that `value` starts in, a few hundred cycles before it is needed: what is looked up for
/// the next packets of a burst while this one is worked on.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_line(core::ptr::from_ref(value).cast());
}

/// True if `a` and `b` have the same bits wherever `mask` has ones. `N` is a multiple of 16.
#[inline(always)]
pub fn masked_equal<const N: usize>(a: &[u8; N], b: &[u8; N], mask: &[u8; N]) -> bool {
    const { assert!(N.is_multiple_of(16)) }
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
            _mm_setzero_si128, _mm_xor_si128,
        };
        // SAFETY: SSE2 is part of every x86-64 processor; all loads are of 16 bytes inside arrays of `N`, a multiple of 16, and
        // need no alignment.
        unsafe {
            let mut different = _mm_setzero_si128();
            for at in (0..N).step_by(16) {
                let load = |bytes: &[u8; N]| _mm_loadu_si128(bytes.as_ptr().add(at).cast::<__m128i>());
                let xor = _mm_xor_si128(load(a), load(b));
                different = _mm_or_si128(different, _mm_and_si128(xor, load(mask)));
            }
            _mm_movemask_epi8(_mm_cmpeq_epi8(different, _mm_setzero_si128())) == 0xffff
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    masked_equal_portable(a, b, mask)
}

/// Vector operations with the widest vectors there are: [`dispatch`] gives one.
pub trait Vectors: Copy {
    /// As the function [`masked_equal`]; `N` is a multiple of 32.
    fn masked_equal<const N: usize>(self, a: &[u8; N], b: &[u8; N], mask: &[u8; N]) -> bool;
}

/// A loop that is compiled once for each kind of [`Vectors`].
pub trait VectorTask {
    /// What it gives.
    type Output;
    /// The loop. To be `#[inline(always)]`, so that it is compiled for the processor that `vectors` stands for.
    fn run<V: Vectors>(self, vectors: V) -> Self::Output;
}

/// Runs a task with the widest vectors that this processor has.
#[inline]
pub fn dispatch<T: VectorTask>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(vectors) = avx2::Avx2::new() {
        return vectors.run(task);
    }
    task.run(Baseline)
}

/// What every processor of this architecture has.
#[derive(Clone, Copy)]
struct Baseline;

impl Vectors for Baseline {
    #[inline(always)]
    fn masked_equal<const N: usize>(self, a: &[u8; N], b: &[u8; N], mask: &[u8; N]) -> bool {
        masked_equal(a, b, mask)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{VectorTask, Vectors};
    use core::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_testz_si256,
        _mm256_xor_si256,
    };

    cpufeatures::new!(has_avx2, "avx2", "bmi1", "bmi2");

    /// The processor has AVX2 and both sets of bit instructions: a value of this type is the proof.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Avx2 {
        #[inline(always)]
        pub(super) fn new() -> Option<Self> {
            has_avx2::get().then_some(Self(()))
        }

        /// Runs a task compiled for this processor.
        #[inline(always)]
        pub(super) fn run<T: VectorTask>(self, task: T) -> T::Output {
            // SAFETY: `self` proves that the processor has every extension that the function is compiled for.
            unsafe { run(self, task) }
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn run<T: VectorTask>(vectors: Avx2, task: T) -> T::Output {
        task.run(vectors)
    }

    impl Vectors for Avx2 {
        #[inline(always)]
        fn masked_equal<const N: usize>(self, a: &[u8; N], b: &[u8; N], mask: &[u8; N]) -> bool {
            // SAFETY: `self` proves that the processor has AVX2.
            unsafe { masked_equal(a, b, mask) }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn masked_equal<const N: usize>(a: &[u8; N], b: &[u8; N], mask: &[u8; N]) -> bool {
        const { assert!(N.is_multiple_of(32)) }
        let mut different = _mm256_setzero_si256();
        for at in (0..N).step_by(32) {
            // SAFETY: 32 bytes from `at` on are inside an array of `N`, a multiple of 32; the load needs no alignment.
            let load = |bytes: &[u8; N]| unsafe { _mm256_loadu_si256(bytes.as_ptr().add(at).cast::<__m256i>()) };
            let xor = _mm256_xor_si256(load(a), load(b));
            different = _mm256_or_si256(different, _mm256_and_si256(xor, load(mask)));
        }
        _mm256_testz_si256(different, different) == 1
    }
}

/// Which of eight words are `wanted`: one bit each, the first word lowest.
#[inline(always)]
pub fn find8(words: &[u32; 8], wanted: u32) -> u8 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            __m128i, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32,
        };
        // SAFETY: SSE2 is part of every x86-64 processor; both loads are of 16 of the 32 bytes and need no alignment.
        unsafe {
            let wanted = _mm_set1_epi32(wanted.cast_signed());
            let start = words.as_ptr().cast::<__m128i>();
            let low = _mm_cmpeq_epi32(_mm_loadu_si128(start), wanted);
            let high = _mm_cmpeq_epi32(_mm_loadu_si128(start.add(1)), wanted);
            // All ones or all zeros survive saturation.
            let halves = _mm_packs_epi32(low, high);
            _mm_movemask_epi8(_mm_packs_epi16(halves, halves)) as u8
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    words.iter().enumerate().fold(0, |found, (i, word)| found | u8::from(*word == wanted) << i)
}

/// What [`masked_equal`] does without vectors.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn masked_equal_portable<const N: usize>(a: &[u8; N], b: &[u8; N], mask: &[u8; N]) -> bool {
    a.iter().zip(b).zip(mask).all(|((a, b), mask)| (a ^ b) & mask == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_equal_finds_every_single_bit_that_differs_under_the_mask() {
        let a: [u8; 48] = core::array::from_fn(|i| (i * 37) as u8);
        let mask: [u8; 48] = core::array::from_fn(|i| (i * 91) as u8);
        for bit in 0..48 * 8 {
            let mut b = a;
            b[bit / 8] ^= 1 << (bit % 8);
            let expected = masked_equal_portable(&a, &b, &mask);
            assert_eq!(expected, mask[bit / 8] & 1 << (bit % 8) == 0);
            assert_eq!(masked_equal(&a, &b, &mask), expected, "bit {bit}");
        }
        assert!(masked_equal(&a, &a, &[0xff; 48]));
    }

    #[test]
    fn the_widest_vectors_find_every_single_bit_that_differs_under_the_mask() {
        struct Compare<'a>(&'a [u8; 96], &'a [u8; 96], &'a [u8; 96]);
        impl VectorTask for Compare<'_> {
            type Output = bool;
            #[inline(always)]
            fn run<V: Vectors>(self, vectors: V) -> bool {
                vectors.masked_equal(self.0, self.1, self.2)
            }
        }
        let a: [u8; 96] = core::array::from_fn(|i| (i * 37) as u8);
        let mask: [u8; 96] = core::array::from_fn(|i| (i * 91) as u8);
        for bit in 0..96 * 8 {
            let mut b = a;
            b[bit / 8] ^= 1 << (bit % 8);
            let expected = mask[bit / 8] & 1 << (bit % 8) == 0;
            assert_eq!(dispatch(Compare(&a, &b, &mask)), expected, "bit {bit}");
            assert_eq!(Compare(&a, &b, &mask).run(Baseline), expected, "bit {bit}");
        }
        assert!(dispatch(Compare(&a, &a, &[0xff; 96])));
    }

    #[test]
    fn find8_says_which_words_are_equal() {
        let words = [7, 1 << 31, 7, 0, u32::MAX, 6, 7, 1];
        assert_eq!(find8(&words, 7), 0b0100_0101);
        assert_eq!(find8(&words, 1 << 31), 0b10);
        assert_eq!(find8(&words, u32::MAX), 0b1_0000);
        assert_eq!(find8(&words, 5), 0);
    }
}
