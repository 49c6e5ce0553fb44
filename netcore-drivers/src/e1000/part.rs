//! Which parts there are, and how they differ.

/// The generations within the family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Generation {
    /// 82540EM and EP.
    E82540,
    /// 82545EM.
    E82545,
    /// 82546EB.
    E82546,
    /// 82545GM ("revision 3" of Intel's drivers).
    E82545Rev3,
    /// 82546GB ("revision 3").
    E82546Rev3,
    /// 82574L.
    E82574,
}

impl Generation {
    /// 82545GM and 82546GB.
    pub const fn is_rev3(self) -> bool {
        matches!(self, Self::E82545Rev3 | Self::E82546Rev3)
    }

    /// 82545 and 82546 of every revision.
    pub const fn is_82545_or_82546(self) -> bool {
        matches!(self, Self::E82545 | Self::E82546 | Self::E82545Rev3 | Self::E82546Rev3)
    }
}

/// What the line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Medium {
    /// Twisted pair, internal PHY.
    Copper,
    /// 1000BASE-X with an optical module.
    Fibre,
    /// 1000BASE-X over a backplane.
    Serdes,
}

/// A part of the family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// PCI device id.
    pub device: u16,
    /// Name.
    pub name: &'static str,
    /// Generation.
    pub generation: Generation,
    /// Line.
    pub medium: Medium,
    /// Four ports behind a bridge: relaxed ordering must be off.
    pub quad: bool,
}

const fn part(device: u16, name: &'static str, generation: Generation, medium: Medium) -> Part {
    Part { device, name, generation, medium, quad: false }
}

const fn quad(device: u16, name: &'static str, generation: Generation) -> Part {
    Part { device, name, generation, medium: Copper, quad: true }
}

use Generation::{E82540, E82545, E82545Rev3, E82546, E82546Rev3, E82574};
use Medium::{Copper, Fibre, Serdes};

/// Every part that the driver knows, by PCI device id.
pub const PARTS: &[Part] = &[
    part(0x100e, "82540EM", E82540, Copper),
    part(0x1015, "82540EM", E82540, Copper),
    part(0x1016, "82540EP", E82540, Copper),
    part(0x1017, "82540EP", E82540, Copper),
    part(0x101e, "82540EP", E82540, Copper),
    part(0x100f, "82545EM", E82545, Copper),
    part(0x1011, "82545EM", E82545, Fibre),
    part(0x1026, "82545GM", E82545Rev3, Copper),
    part(0x1027, "82545GM", E82545Rev3, Fibre),
    part(0x1028, "82545GM", E82545Rev3, Serdes),
    part(0x1010, "82546EB", E82546, Copper),
    part(0x1012, "82546EB", E82546, Fibre),
    quad(0x101d, "82546EB", E82546),
    part(0x1079, "82546GB", E82546Rev3, Copper),
    part(0x107a, "82546GB", E82546Rev3, Fibre),
    part(0x107b, "82546GB", E82546Rev3, Serdes),
    part(0x108a, "82546GB", E82546Rev3, Copper),
    quad(0x1099, "82546GB", E82546Rev3),
    quad(0x10b5, "82546GB", E82546Rev3),
    part(0x10d3, "82574L", E82574, Copper),
    part(0x10f6, "82574LA", E82574, Copper),
];

/// The part with this PCI device id.
pub(super) fn find(device: u16) -> Option<Part> {
    PARTS.iter().copied().find(|part| part.device == device)
}
