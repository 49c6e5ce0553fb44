//! Summing with 64-bit words.

use super::add;

/// Eight bytes as a native word; the caller has checked the length.
#[inline(always)]
fn word64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

/// Up to seven bytes as a native word, zero-padded behind.
#[inline(always)]
fn tail(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    let mut rest = bytes;
    if let Some((word, after)) = rest.split_first_chunk::<4>() {
        sum += u64::from(u32::from_ne_bytes(*word));
        rest = after;
    }
    if let Some((word, after)) = rest.split_first_chunk::<2>() {
        sum += u64::from(u16::from_ne_bytes(*word));
        rest = after;
    }
    if let [last] = rest {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    sum
}

/// Short slices: one accumulator, inlined into the caller.
#[inline(always)]
pub(super) fn short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = 0;
    for word in words {
        sum = add(sum, u64::from_ne_bytes(*word));
    }
    add(sum, tail(rest))
}

/// Any length: four accumulators, so that the additions do not wait for each other.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut lanes = [0u64; 4];
    let mut carries = [0u64; 4];
    for block in blocks {
        for lane in 0..4 {
            let (sum, carry) = lanes[lane].overflowing_add(word64(block, lane * 8));
            lanes[lane] = sum;
            carries[lane] += u64::from(carry);
        }
    }
    let mut total = short(rest);
    for lane in 0..4 {
        total = add(total, lanes[lane]);
        total = add(total, carries[lane]);
    }
    total
}
