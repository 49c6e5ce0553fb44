//! Incremental update of a checksum field (RFC 1624).

/// The checksum after a 16-bit word of the message changed from `old` to `new`: HC' = ~(~HC + ~m + m') (RFC 1624
/// equation 3, which unlike RFC 1141 never turns a checksum into the other zero).
#[inline(always)]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(sum as u16)
}

/// The checksum after a 32-bit number at an even offset changed from `old` to `new`.
#[inline(always)]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    let high = update16(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update16(high, old as u16, new as u16)
}
