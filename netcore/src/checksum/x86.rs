//! Summing with AVX-512 and AVX2.
//!
//! AVX-512 with VNNI: `vpdpbusd` adds four products of a byte with 0 or 1 to a 32-bit lane, so two of them per 64 bytes
//! give the sums of the bytes at even and at odd offsets. AVX2: words of 64 bits are added to 64-bit lanes, and their high
//! halves to others, from which the carries that got lost follow.

use core::arch::x86_64::*;

cpufeatures::new!(has_avx512bw, "avx512f", "avx512bw");
cpufeatures::new!(has_avx2, "avx2");

/// Whether the processor has AVX-512 with VNNI, found out once. `cpufeatures` checks that the operating system saves the
/// wide registers; it does not know VNNI, so that bit is read here.
mod has_avx512 {
    use core::sync::atomic::{AtomicU8, Ordering};

    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 0;
    const ABSENT: u8 = 1;
    const PRESENT: u8 = 2;

    #[inline(always)]
    pub(super) fn get() -> bool {
        match STATE.load(Ordering::Relaxed) {
            UNKNOWN => detect(),
            state => state == PRESENT,
        }
    }

    #[cold]
    fn detect() -> bool {
        // Intel SDM, CPUID leaf 7 subleaf 0: ECX bit 11 is AVX512_VNNI.
        let present = super::has_avx512bw::get() && core::arch::x86_64::__cpuid_count(7, 0).ecx & 1 << 11 != 0;
        STATE.store(if present { PRESENT } else { ABSENT }, Ordering::Relaxed);
        present
    }
}

/// Blocks after which the 32-bit lanes of the VNNI path are emptied: the lanes of one parity add up to at most 32 x 255
/// per block, and that total must stay below 2^32, which 526,344 blocks would reach.
const BLOCKS_PER_ROUND: usize = 1 << 18;

/// The sum of `bytes` as a 64-bit native value; `None` if the processor has neither extension.
#[inline(always)]
pub(super) fn sum(bytes: &[u8]) -> Option<u64> {
    if has_avx512::get() {
        // SAFETY: the processor has every extension that the function is compiled for.
        return Some(unsafe { sum_avx512(bytes) });
    }
    sum_avx2_checked(bytes)
}

pub(super) fn sum_avx2_checked(bytes: &[u8]) -> Option<u64> {
    // SAFETY: the processor has AVX2.
    has_avx2::get().then(|| unsafe { sum_avx2(bytes) })
}

pub(super) fn name() -> Option<&'static str> {
    if has_avx512::get() { Some("avx512") } else { has_avx2::get().then_some("avx2") }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sum_avx512(bytes: &[u8]) -> u64 {
    let even_bytes = _mm512_set1_epi16(0x0001);
    let odd_bytes = _mm512_set1_epi16(0x0100);
    let mut even_total = 0u64;
    let mut odd_total = 0u64;
    for round in bytes.chunks(BLOCKS_PER_ROUND * 64) {
        let mut even = [_mm512_setzero_si512(); 2];
        let mut odd = [_mm512_setzero_si512(); 2];
        let (pairs, rest) = round.as_chunks::<128>();
        for pair in pairs {
            // SAFETY: `pair` has 128 bytes; the load needs no alignment.
            let low = unsafe { _mm512_loadu_si512(pair.as_ptr().cast()) };
            // SAFETY: as above, from byte 64 on.
            let high = unsafe { _mm512_loadu_si512(pair.as_ptr().add(64).cast()) };
            even[0] = _mm512_dpbusd_epi32(even[0], low, even_bytes);
            odd[0] = _mm512_dpbusd_epi32(odd[0], low, odd_bytes);
            even[1] = _mm512_dpbusd_epi32(even[1], high, even_bytes);
            odd[1] = _mm512_dpbusd_epi32(odd[1], high, odd_bytes);
        }
        for (lane, chunk) in rest.chunks(64).enumerate() {
            let mask = u64::MAX >> (64 - chunk.len());
            // SAFETY: the mask covers the bytes of `chunk` only; masked-off bytes are not accessed.
            let block = unsafe { _mm512_maskz_loadu_epi8(mask, chunk.as_ptr().cast()) };
            even[lane] = _mm512_dpbusd_epi32(even[lane], block, even_bytes);
            odd[lane] = _mm512_dpbusd_epi32(odd[lane], block, odd_bytes);
        }
        even_total += horizontal(even[0], even[1]);
        odd_total += horizontal(odd[0], odd[1]);
    }
    even_total + (odd_total << 8)
}

/// The sum of all 32-bit lanes of two vectors, whose lanes are positive and add up below 2^32.
#[target_feature(enable = "avx512f")]
fn horizontal(a: __m512i, b: __m512i) -> u64 {
    _mm512_reduce_add_epi32(_mm512_add_epi32(a, b)) as u32 as u64
}

#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    let mut all = [_mm256_setzero_si256(); 2];
    let mut high = [_mm256_setzero_si256(); 2];
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        for lane in 0..2 {
            // SAFETY: `block` has 64 bytes and `lane` is 0 or 1; the load needs no alignment.
            let v = unsafe { _mm256_loadu_si256(block.as_ptr().add(lane * 32).cast()) };
            all[lane] = _mm256_add_epi64(all[lane], v);
            high[lane] = _mm256_add_epi64(high[lane], _mm256_srli_epi64::<32>(v));
        }
    }
    let (all, high) = (_mm256_add_epi64(all[0], all[1]), _mm256_add_epi64(high[0], high[1]));
    // A 64-bit lane takes 2^32 words of 32 bits, more than a slice on this architecture can have. `all` wraps around, but what
    // it is without the high words is the sum of the low ones, which does not.
    let low = _mm256_sub_epi64(all, _mm256_slli_epi64::<32>(high));
    let sum = _mm256_add_epi64(low, high);
    let half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    let total = super::add(_mm_extract_epi64::<0>(half) as u64, _mm_extract_epi64::<1>(half) as u64);
    super::add(total, super::portable::short(rest))
}
