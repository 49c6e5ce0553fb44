//! Sequence numbers: 32 bits on the wire, 64 bits inside.
//!
//! A position counts from [`ORIGIN`], where the SYN lies; positions never wrap, so comparisons are plain.

/// The position of a SYN. Old duplicates may lie up to 2^31 before it.
pub(crate) const ORIGIN: u64 = 1 << 32;

/// One direction's mapping between positions and wire numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SeqSpace {
    /// Wire number of the SYN.
    pub(crate) initial: u32,
}

impl SeqSpace {
    /// The wire number of `position`.
    #[inline]
    pub(crate) const fn wire(self, position: u64) -> u32 {
        self.initial.wrapping_add(position.wrapping_sub(ORIGIN) as u32)
    }

    /// The position nearest to `reference` that has the wire number `wire`.
    #[inline]
    pub(crate) const fn position(self, wire: u32, reference: u64) -> u64 {
        let distance = wire.wrapping_sub(self.wire(reference)) as i32;
        reference.wrapping_add_signed(distance as i64)
    }
}

/// Whether timestamp or 32-bit sequence `a` is before `b` (RFC 7323 section 5.2).
#[inline]
pub(crate) const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_the_wrap_of_wire_numbers() {
        let space = SeqSpace { initial: u32::MAX - 5 };
        assert_eq!(space.wire(ORIGIN), u32::MAX - 5);
        assert_eq!(space.wire(ORIGIN + 10), 4);
        assert_eq!(space.position(4, ORIGIN), ORIGIN + 10);
        assert_eq!(space.position(u32::MAX - 5, ORIGIN + 10), ORIGIN);
        let far = ORIGIN + (1 << 40) + 77;
        assert_eq!(space.position(space.wire(far + 1_000_000_000), far), far + 1_000_000_000);
        assert_eq!(space.position(space.wire(far - 1_000_000_000), far), far - 1_000_000_000);
    }

    #[test]
    fn before_is_modular() {
        assert!(before(u32::MAX, 3) && !before(3, u32::MAX) && !before(3, 3));
    }
}
