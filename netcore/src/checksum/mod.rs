//! The Internet checksum (RFC 1071): sums, pseudo-headers, verification and incremental updates.
//!
//! A [`Sum`] is a one's complement sum of 16-bit words in memory order. Because that sum is the same in either byte order
//! up to a final swap (RFC 1071 section 2(B)), it is formed with native loads and turned to network order once, at the end.
//! The widest vectors that the processor has are used, chosen at run time; the portable path is their test.

mod portable;
mod update;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use update::{update16, update32};

/// Slices below this length are summed by the inlined portable path: a vector would not pay.
const SHORT: usize = 64;

/// A one's complement sum of bytes, not yet complemented.
///
/// Sums of adjacent parts of a message combine with [`Sum::plus`] if the first part has an even length, and with
/// [`Sum::plus_at`] in general.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum(u64);

/// Adds with end-around carry.
#[inline(always)]
const fn add(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u64
}

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Self = Self(0);

    /// A sum whose value, folded and read as a big-endian word, is `word`: the inverse of [`Sum::fold`].
    #[inline(always)]
    pub const fn from_word(word: u16) -> Self {
        Self(word.to_be() as u64)
    }

    /// Adds a 16-bit word at an even offset.
    #[inline(always)]
    pub const fn plus_word(self, word: u16) -> Self {
        Self(add(self.0, word.to_be() as u64))
    }

    /// Adds a 32-bit number at an even offset.
    #[inline(always)]
    pub const fn plus_u32(self, value: u32) -> Self {
        Self(add(self.0, value.to_be() as u64))
    }

    /// Adds the sum of bytes that follow an even number of bytes.
    #[inline(always)]
    pub const fn plus(self, other: Self) -> Self {
        Self(add(self.0, other.0))
    }

    /// Adds the sum of bytes that start at `offset` from the start of the message.
    #[inline(always)]
    pub const fn plus_at(self, other: Self, offset: usize) -> Self {
        if offset & 1 == 0 { self.plus(other) } else { self.plus(Self(other.fold_native().swap_bytes() as u64)) }
    }

    /// Takes away the sum of bytes that were counted at an even offset.
    #[inline(always)]
    pub const fn minus(self, other: Self) -> Self {
        Self(add(self.0, !other.0))
    }

    /// Folds to 16 bits in native order.
    #[inline(always)]
    const fn fold_native(self) -> u16 {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        sum as u16
    }

    /// The sum as a 16-bit number; 0xffff and 0 both stand for zero.
    #[inline(always)]
    pub const fn fold(self) -> u16 {
        u16::from_be(self.fold_native())
    }

    /// The value of a checksum field over these bytes: the complement of the sum.
    #[inline(always)]
    pub const fn finish(self) -> u16 {
        !self.fold()
    }

    /// As [`Sum::finish`], for UDP, where a computed zero is sent as 0xffff because zero means "no checksum" (RFC 768).
    #[inline(always)]
    pub const fn finish_udp(self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// True if bytes that include their checksum field, and the pseudo-header where there is one, sum up as they should.
    #[inline(always)]
    pub const fn is_valid(self) -> bool {
        // Folding keeps the remainder by 0xffff, because 2^16 leaves 1; only the sum of nothing folds to zero.
        // Divisibility by an odd number is one multiplication by its inverse modulo 2^64.
        const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
        const { assert!(INVERSE.wrapping_mul(0xffff) == 1) }
        self.0.wrapping_mul(INVERSE) <= u64::MAX / 0xffff && self.0 != 0
    }

    /// The pseudo-header of TCP and UDP over IPv4 (RFC 9293 section 3.1): addresses in network order, `len` the bytes of
    /// transport header and payload.
    #[inline(always)]
    pub const fn pseudo_ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, len: u32) -> Self {
        let addresses = u32::from_ne_bytes(source) as u64 + u32::from_ne_bytes(destination) as u64;
        Self(addresses + ((len & 0xffff) as u16).to_be() as u64 + ((len >> 16) as u16).to_be() as u64)
            .plus_word(protocol as u16)
    }

    /// The pseudo-header of upper layers over IPv6 (RFC 8200 section 8.1).
    #[inline(always)]
    pub fn pseudo_ipv6(source: &[u8; 16], destination: &[u8; 16], next_header: u8, len: u32) -> Self {
        fn halves(address: &[u8; 16]) -> u64 {
            let (low, high) = address.split_at(8);
            // Splitting 16 bytes in the middle gives two arrays of 8.
            let word = |half: &[u8]| half.try_into().map_or(0, u64::from_ne_bytes);
            add(word(low), word(high))
        }
        Self(add(halves(source), halves(destination))).plus_u32(len).plus_word(u16::from(next_header))
    }
}

/// The sum of `bytes`; an odd last byte counts as the high byte of a word (RFC 1071 section 1).
#[inline(always)]
pub fn sum(bytes: &[u8]) -> Sum {
    if bytes.len() < SHORT { Sum(portable::short(bytes)) } else { long(bytes) }
}

#[inline]
fn long(bytes: &[u8]) -> Sum {
    #[cfg(target_arch = "x86_64")]
    if let Some(sum) = x86::sum(bytes) {
        return Sum(sum);
    }
    Sum(portable::sum(bytes))
}

/// The sum of an IPv4 header without options, which is valid if [`Sum::is_valid`].
#[inline(always)]
pub fn ipv4_header_sum(header: &[u8; 20]) -> Sum {
    let word = |at: usize| u64::from(u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    Sum(word(0) + word(4) + word(8) + word(12) + word(16))
}

/// What [`ipv4_header_sum`] is without identification and checksum, which differ from packet to packet of a flow; and the sum
/// of these two.
#[inline(always)]
pub fn ipv4_header_sums(header: &[u8; 20]) -> (Sum, Sum) {
    let word = |at: usize| u64::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let long = |at: usize| word(at) + word(at + 2);
    (Sum(long(0) + word(6) + word(8) + long(12) + long(16)), Sum(word(4) + word(10)))
}

/// Which implementation [`sum`] uses on this processor for slices of 64 bytes and more: "avx512", "avx2" or "portable".
pub fn implementation() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if let Some(name) = x86::name() {
        return name;
    }
    "portable"
}

/// The portable path alone, for tests and benches.
#[doc(hidden)]
pub fn sum_portable(bytes: &[u8]) -> Sum {
    Sum(portable::sum(bytes))
}

/// The AVX2 path alone, for tests and benches; `None` where the processor lacks it.
#[doc(hidden)]
pub fn sum_avx2(bytes: &[u8]) -> Option<Sum> {
    #[cfg(target_arch = "x86_64")]
    return x86::sum_avx2_checked(bytes).map(Sum);
    #[cfg(not(target_arch = "x86_64"))]
    return bytes.is_empty().then_some(Sum::ZERO);
}

#[cfg(test)]
mod tests;
