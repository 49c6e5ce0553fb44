//! Configuration space: identity, command register, capabilities (PCI Local Bus 3.0 chapter 6, PCI Express Base 7.5).

use super::Bus;
use crate::error::NicError;

/// Intel's vendor id.
pub const VENDOR_INTEL: u16 = 0x8086;

/// Command register bits (offset 4).
pub mod command {
    /// Respond to I/O accesses.
    pub const IO: u32 = 1 << 0;
    /// Respond to memory accesses.
    pub const MEMORY: u32 = 1 << 1;
    /// Be allowed to start DMA and messages.
    pub const MASTER: u32 = 1 << 2;
    /// Do not assert the interrupt line.
    pub const INTX_DISABLE: u32 = 1 << 10;
}

/// Capability ids.
pub mod capability {
    /// Power management.
    pub const POWER: u8 = 0x01;
    /// Message signalled interrupts.
    pub const MSI: u8 = 0x05;
    /// PCI-X.
    pub const PCIX: u8 = 0x07;
    /// PCI Express.
    pub const EXPRESS: u8 = 0x10;
    /// MSI-X.
    pub const MSIX: u8 = 0x11;
}

/// Who a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Identity {
    /// PCI vendor id.
    pub vendor: u16,
    /// PCI device id.
    pub device: u16,
    /// Revision.
    pub revision: u8,
    /// Class code, 24 bits; 0x020000 is an Ethernet controller.
    pub class: u32,
    /// Subsystem vendor id.
    pub subsystem_vendor: u16,
    /// Subsystem id.
    pub subsystem: u16,
}

/// Reads the identity.
///
/// # Errors
/// [`NicError::Removed`] if configuration space reads as all ones; those of [`Bus::config_read`].
pub fn identify(bus: &mut dyn Bus) -> Result<Identity, NicError> {
    let id = bus.config_read(0)?;
    if id == u32::MAX {
        return Err(NicError::Removed);
    }
    let class = bus.config_read(8)?;
    let subsystem = bus.config_read(0x2c)?;
    Ok(Identity {
        vendor: id as u16,
        device: (id >> 16) as u16,
        revision: class as u8,
        class: class >> 8,
        subsystem_vendor: subsystem as u16,
        subsystem: (subsystem >> 16) as u16,
    })
}

/// Lets the device decode memory (and I/O, where it has that) and master the bus.
///
/// Before the reset: it does not clear configuration space, and without bus mastering the DMA engines hang silently.
///
/// # Errors
/// Those of [`Bus::config_read`].
pub fn enable(bus: &mut dyn Bus) -> Result<(), NicError> {
    // The upper half is status: write-one-to-clear bits, written as zeros.
    let value = bus.config_read(4)? & 0xffff;
    bus.config_write(4, (value | command::IO | command::MEMORY | command::MASTER) & !command::INTX_DISABLE)
}

/// Takes bus mastering away: nothing reaches memory any more.
///
/// # Errors
/// Those of [`Bus::config_read`].
pub fn disable_master(bus: &mut dyn Bus) -> Result<(), NicError> {
    let value = bus.config_read(4)? & 0xffff;
    bus.config_write(4, value & !command::MASTER)
}

/// Offset of a capability in configuration space.
///
/// # Errors
/// Those of [`Bus::config_read`].
pub fn find_capability(bus: &mut dyn Bus, id: u8) -> Result<Option<u16>, NicError> {
    if bus.config_read(4)? >> 16 & 0x10 == 0 {
        return Ok(None);
    }
    let mut at = (bus.config_read(0x34)? & 0xfc) as u16;
    // A list of 4-byte aligned offsets in 256 bytes has at most 48 entries; a longer one is a loop.
    for _ in 0..48 {
        if at < 0x40 {
            return Ok(None);
        }
        let word = bus.config_read(at)?;
        if word as u8 == id {
            return Ok(Some(at));
        }
        at = (word >> 8 & 0xfc) as u16;
    }
    Ok(None)
}

/// Reads a 16-bit word at an even offset.
///
/// # Errors
/// Those of [`Bus::config_read`].
pub fn read_u16(bus: &mut dyn Bus, offset: u16) -> Result<u16, NicError> {
    let word = bus.config_read(offset & !3)?;
    Ok(if offset & 2 == 0 { word as u16 } else { (word >> 16) as u16 })
}

/// Writes a 16-bit word at an even offset, leaving its neighbour as it reads.
///
/// # Errors
/// Those of [`Bus::config_read`].
pub fn write_u16(bus: &mut dyn Bus, offset: u16, value: u16) -> Result<(), NicError> {
    let word = bus.config_read(offset & !3)?;
    let word =
        if offset & 2 == 0 { word & 0xffff_0000 | u32::from(value) } else { word & 0xffff | u32::from(value) << 16 };
    bus.config_write(offset & !3, word)
}
