//! [`Device`]: what a model implements.

use super::{Core, Frame};
use netcore::Instant;

/// A modelled NIC. Everything happens in the calls: register accesses, frames from the line, and time passing.
pub trait Device: Send {
    /// Name of the part.
    fn name(&self) -> &'static str;

    /// Power on: fills configuration space, loads the NVM, sets every register to its reset value. Tables whose contents the
    /// datasheet leaves undefined after reset are filled with rubbish, so that a driver that relies on them is found.
    fn power_on(&mut self, core: &mut Core);

    /// Reads a register of BAR 0. Offsets are aligned and inside the BAR.
    fn read(&mut self, core: &mut Core, offset: u32) -> u32;

    /// Writes a register of BAR 0.
    fn write(&mut self, core: &mut Core, offset: u32, value: u32);

    /// Reads a double word of the I/O BAR: IOADDR at 0, IODATA at 4.
    fn io_read(&mut self, core: &mut Core, offset: u32) -> u32 {
        let _ = (core, offset);
        u32::MAX
    }

    /// Writes a double word of the I/O BAR.
    fn io_write(&mut self, core: &mut Core, offset: u32, value: u32) {
        let _ = (core, offset, value);
    }

    /// Reads a register of another memory BAR (MSI-X table, flash).
    fn bar_read(&mut self, core: &mut Core, bar: u8, offset: u32) -> u32 {
        let _ = (core, bar, offset);
        0
    }

    /// Writes a register of another memory BAR.
    fn bar_write(&mut self, core: &mut Core, bar: u8, offset: u32, value: u32) {
        let _ = (core, bar, offset, value);
    }

    /// The word at `offset` of configuration space was written (`core.config` holds it already).
    fn config_written(&mut self, core: &mut Core, offset: u16) {
        let _ = (core, offset);
    }

    /// A frame has arrived from the line.
    fn receive(&mut self, core: &mut Core, frame: Frame);

    /// The partner at the other end of the line came, went, or changed ([`Core::partner`]).
    fn line_changed(&mut self, core: &mut Core);

    /// When the device has something to do by itself.
    fn next_event(&self) -> Option<Instant>;

    /// Does what is due at `core.now()`.
    fn run(&mut self, core: &mut Core);
}
