//! Which parts there are, and how they differ.

/// The generations within the family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Generation {
    /// 82599.
    I82599,
    /// X540.
    X540,
}

/// What the line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Medium {
    /// A cage for SFP+ modules and direct attach cables.
    SfpPlus,
    /// KX4, KX and KR over a backplane.
    Backplane,
    /// CX4 or XAUI: parallel, without negotiation.
    Parallel,
    /// 10GBASE-T.
    Copper,
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
    /// What the line is.
    pub medium: Medium,
}

const fn part(device: u16, name: &'static str, generation: Generation, medium: Medium) -> Part {
    Part { device, name, generation, medium }
}

use Generation::{I82599, X540};
use Medium::{Backplane, Copper, Parallel, SfpPlus};

/// Every part that the driver knows, by PCI device id. QSFP (1558) and 10GBASE-T through an external PHY (151C) are not
/// among them.
pub const PARTS: &[Part] = &[
    part(0x10fb, "82599ES", I82599, SfpPlus),
    part(0x1529, "82599", I82599, SfpPlus),
    part(0x1507, "82599", I82599, SfpPlus),
    part(0x154d, "82599", I82599, SfpPlus),
    part(0x154a, "82599", I82599, SfpPlus),
    part(0x1557, "82599EN", I82599, SfpPlus),
    part(0x154f, "82599", I82599, SfpPlus),
    part(0x10f7, "82599", I82599, Backplane),
    part(0x1514, "82599", I82599, Backplane),
    part(0x1517, "82599", I82599, Backplane),
    part(0x10f8, "82599", I82599, Backplane),
    part(0x152a, "82599", I82599, Backplane),
    part(0x10f9, "82599", I82599, Parallel),
    part(0x10fc, "82599", I82599, Parallel),
    part(0x1528, "X540-AT2", X540, Copper),
    part(0x1560, "X540-T1", X540, Copper),
];

/// The part with this PCI device id.
pub(super) fn find(device: u16) -> Option<Part> {
    PARTS.iter().copied().find(|part| part.device == device)
}
