//! Which parts there are, and how they differ.

/// The generations within the family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Generation {
    /// 82575.
    I82575,
    /// 82576.
    I82576,
    /// I350.
    I350,
    /// I210 and I211.
    I210,
}

impl Generation {
    /// Queue pairs.
    pub const fn queues(self) -> u16 {
        match self {
            Self::I82575 | Self::I210 => 4,
            Self::I82576 => 16,
            Self::I350 => 8,
        }
    }

    /// Receive address registers.
    pub const fn addresses(self) -> u32 {
        match self {
            Self::I82575 | Self::I210 => 16,
            Self::I82576 => 24,
            Self::I350 => 32,
        }
    }

    /// Interrupt throttles, one per MSI-X vector.
    pub const fn throttles(self) -> u32 {
        match self {
            Self::I82575 => 10,
            Self::I82576 | Self::I350 => 25,
            Self::I210 => 5,
        }
    }
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
}

const fn part(device: u16, name: &'static str, generation: Generation) -> Part {
    Part { device, name, generation }
}

use Generation::{I210, I350, I82575, I82576};

/// Every part that the driver knows, by PCI device id. Whether the line is copper or SerDes is read from the part.
pub const PARTS: &[Part] = &[
    part(0x10a7, "82575EB", I82575),
    part(0x10a9, "82575EB", I82575),
    part(0x10d6, "82575GB", I82575),
    part(0x10c9, "82576", I82576),
    part(0x10e6, "82576", I82576),
    part(0x10e7, "82576", I82576),
    part(0x10e8, "82576", I82576),
    part(0x1526, "82576", I82576),
    part(0x150a, "82576NS", I82576),
    part(0x1518, "82576NS", I82576),
    part(0x150d, "82576", I82576),
    part(0x1521, "I350", I350),
    part(0x1522, "I350", I350),
    part(0x1523, "I350", I350),
    part(0x1533, "I210", I210),
    part(0x1536, "I210", I210),
    part(0x1537, "I210", I210),
    part(0x157b, "I210", I210),
    part(0x157c, "I210", I210),
    part(0x1539, "I211", I210),
];

/// The part with this PCI device id.
pub(super) fn find(device: u16) -> Option<Part> {
    PARTS.iter().copied().find(|part| part.device == device)
}
