//! The layouts of packets held, and which header bits two segments of one flow must have in common.

use super::rules::GroRules;
use super::walk::tcp_flags;
use crate::layout::{Carrier, Layout};
use alloc::vec::Vec;
use netcore::simd::masked_equal;

/// Headers up to this length are compared at once.
const MASKED: usize = 160;

/// Layouts kept at a time. One more, and everything held is delivered first.
const MAX_SHAPES: usize = 64;

/// A layout with the bits that must agree.
pub(super) struct Shape {
    pub(super) layout: Layout,
    bits: [u8; MASKED],
    /// Blocks of 16 bytes to compare; 0 if the headers are longer than the mask.
    blocks: usize,
    /// Which frequent frame it is the layout of: see `fast.rs`.
    pub(super) fast: u8,
}

impl Shape {
    fn new(layout: Layout, rules: &GroRules) -> Self {
        let mut shape = Self { layout, bits: [0; MASKED], blocks: 0, fast: super::fast::kind(&layout) };
        let payload = usize::from(layout.payload);
        if payload > MASKED {
            return shape;
        }
        shape.blocks = payload.div_ceil(16);
        shape.bits[..payload].fill(0xff);
        for level in layout.levels() {
            if level.v6 {
                shape.ignore(level.network, 4, 2); // payload length
            } else {
                shape.ignore(level.network, 2, 4); // total length, identification
                shape.ignore(level.network, 10, 2); // header checksum
            }
            match level.carrier {
                // UDP length and checksum, or the GRE checksum. Whether a UDP checksum is zero is compared apart.
                Carrier::Udp | Carrier::GreChecksum => shape.ignore(level.carrier_at, 4, 4),
                Carrier::Link | Carrier::Gre | Carrier::Ip => {}
                Carrier::GreChecksumKey => {
                    // Nothing ever agrees.
                    shape.blocks = 0;
                    return shape;
                }
            }
        }
        let transport = layout.transport;
        shape.ignore(transport, 4, 4); // TCP sequence number; UDP length and checksum
        if !layout.udp {
            shape.ignore(transport, 16, 4); // checksum, urgent pointer
            let carried = tcp_flags::FIN | tcp_flags::PSH | if rules.cwr_takes_successor { tcp_flags::CWR } else { 0 };
            shape.bits[usize::from(transport) + 13] &= !((carried >> 16) as u8);
        }
        shape
    }

    fn ignore(&mut self, header: u16, offset: usize, len: usize) {
        let start = usize::from(header) + offset;
        self.bits[start..start + len].fill(0);
    }

    /// As [`Shape::agrees`] for headers within `HEAD` bytes of two packets that are at least so long.
    #[inline(always)]
    pub(super) fn agrees_within<const HEAD: usize>(&self, a: &[u8], b: &[u8]) -> bool {
        const { assert!(HEAD <= MASKED && HEAD.is_multiple_of(16)) }
        match (a.first_chunk::<HEAD>(), b.first_chunk::<HEAD>(), self.bits.first_chunk::<HEAD>()) {
            (Some(a), Some(b), Some(mask)) => masked_equal(a, b, mask),
            _ => false,
        }
    }

    /// True if all bits that must agree do. False also if a packet ends too early to be compared in blocks; the caller
    /// then looks field by field.
    #[inline(always)]
    pub(super) fn agrees(&self, a: &[u8], b: &[u8]) -> bool {
        let n = self.blocks * 16;
        let (Some(a), Some(b), Some(mask)) = (a.get(..n), b.get(..n), self.bits.get(..n)) else { return false };
        let (a, b, mask) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0, mask.as_chunks::<16>().0);
        n > 0 && a.iter().zip(b).zip(mask).all(|((a, b), mask)| masked_equal(a, b, mask))
    }
}

/// The layouts seen lately, by number.
#[derive(Default)]
pub(super) struct Shapes {
    shapes: Vec<Shape>,
    last: usize,
    /// For the two kinds of `fast.rs`: payload offset and number of the layout seen last.
    fast: [Option<(u16, u8)>; 2],
}

impl Shapes {
    pub(super) fn new() -> Self {
        Self { shapes: Vec::with_capacity(MAX_SHAPES), last: 0, fast: [None; 2] }
    }

    /// The number of a layout; `None` if there is no room for another.
    #[inline(always)]
    pub(super) fn number(&mut self, layout: &Layout, rules: &GroRules) -> Option<u8> {
        if self.shapes.get(self.last).is_some_and(|shape| shape.layout == *layout) {
            return Some(self.last as u8);
        }
        self.find(layout, rules)
    }

    /// As [`Shapes::number`], for a layout of `fast.rs` that is told from others by its kind and where its payload is.
    #[inline(always)]
    pub(super) fn fast_number(&mut self, vxlan: bool, payload: usize, rules: &GroRules) -> Option<u8> {
        match self.fast[usize::from(vxlan)] {
            Some((at, number)) if usize::from(at) == payload => Some(number),
            _ => self.find_fast(vxlan, payload, rules),
        }
    }

    #[inline(never)]
    fn find_fast(&mut self, vxlan: bool, payload: usize, rules: &GroRules) -> Option<u8> {
        let layout = if vxlan { super::fast::layout::<true>(payload) } else { super::fast::layout::<false>(payload) };
        let number = self.number(&layout, rules)?;
        self.fast[usize::from(vxlan)] = Some((payload as u16, number));
        Some(number)
    }

    #[inline(never)]
    fn find(&mut self, layout: &Layout, rules: &GroRules) -> Option<u8> {
        self.last = match self.shapes.iter().position(|shape| shape.layout == *layout) {
            Some(found) => found,
            None if self.shapes.len() == MAX_SHAPES => return None,
            None => {
                self.shapes.push(Shape::new(*layout, rules));
                self.shapes.len() - 1
            }
        };
        Some(self.last as u8)
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u8) -> Option<&Shape> {
        self.shapes.get(usize::from(number))
    }

    /// Forgets all layouts; nothing is held.
    pub(super) fn clear(&mut self) {
        self.shapes.clear();
        self.last = 0;
        self.fast = [None; 2];
    }
}
