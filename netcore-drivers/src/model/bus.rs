//! [`ModelBus`]: the driver's side of a modelled device.

use super::bench::Slot;
use super::{Bench, Port};
use crate::bus::pci::{capability, find_capability, read_u16};
use crate::bus::{Bus, InterruptMode, InterruptVectors};
use crate::error::NicError;
use crate::mmio::{Mmio, Registers};
use core::time::Duration;
use netcore::DmaRegion;
use std::sync::Arc;

/// Largest BAR of any model.
const BAR_LEN: u32 = 128 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Memory(u8),
    Io,
}

/// A window into a modelled device.
struct Window {
    bench: Bench,
    port: Port,
    space: Space,
    len: u32,
}

impl Window {
    fn with<R>(&self, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let mut inner = self.bench.inner.lock();
        let now = inner.now();
        let slot = inner.slots.get_mut(self.port.0)?;
        // A device that was pulled, or does not decode memory, does not answer: all ones.
        if slot.core.faults.removed || !slot.core.config.memory_enabled() {
            return None;
        }
        slot.core.set_now(now);
        let result = f(slot);
        inner.pump();
        Some(result)
    }
}

impl Registers for Window {
    fn read(&self, offset: u32) -> u32 {
        if offset & 3 != 0 || offset >= self.len {
            return u32::MAX;
        }
        self.with(|slot| match self.space {
            Space::Memory(0) => slot.device.read(&mut slot.core, offset),
            Space::Memory(bar) => slot.device.bar_read(&mut slot.core, bar, offset),
            Space::Io => slot.device.io_read(&mut slot.core, offset),
        })
        .unwrap_or(u32::MAX)
    }

    fn write(&self, offset: u32, value: u32) {
        if offset & 3 != 0 || offset >= self.len {
            return;
        }
        self.with(|slot| match self.space {
            Space::Memory(0) => slot.device.write(&mut slot.core, offset, value),
            Space::Memory(bar) => slot.device.bar_write(&mut slot.core, bar, offset, value),
            Space::Io => slot.device.io_write(&mut slot.core, offset, value),
        });
    }

    fn window_len(&self) -> u32 {
        self.len
    }
}

/// The bus of a modelled device. Sleeping advances the bench's virtual time.
#[derive(Debug)]
pub struct ModelBus {
    bench: Bench,
    port: Port,
    interrupts: (InterruptMode, u16),
    /// The line is masked until the driver asks for it again.
    line_masked: bool,
}

impl ModelBus {
    pub(super) fn new(bench: Bench, port: Port) -> Self {
        Self { bench, port, interrupts: (InterruptMode::Polling, 0), line_masked: false }
    }

    /// The bench that the device is on.
    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    /// The device's port.
    pub fn port(&self) -> Port {
        self.port
    }

    fn with<R>(&self, f: impl FnOnce(&mut Slot) -> R) -> Result<R, NicError> {
        let mut inner = self.bench.inner.lock();
        let result = match inner.slots.get_mut(self.port.0) {
            Some(slot) if !slot.core.faults.removed => Ok(f(slot)),
            _ => Err(NicError::Removed),
        };
        inner.pump();
        result
    }

    /// A vector that has something pending.
    fn take_interrupt(&mut self) -> Option<u16> {
        let (mode, vectors) = self.interrupts;
        let masked = self.line_masked;
        let taken = self
            .with(|slot| match mode {
                InterruptMode::Polling => None,
                InterruptMode::Intx => (slot.core.line && !masked).then_some(0),
                InterruptMode::Msi | InterruptMode::MsiX => (0..vectors).find(|vector| {
                    let pending = &mut slot.core.pending[usize::from(*vector)];
                    core::mem::take(pending) > 0
                }),
            })
            .ok()
            .flatten();
        if taken.is_some() && mode == InterruptMode::Intx {
            self.line_masked = true;
        }
        taken
    }
}

impl Bus for ModelBus {
    fn config_read(&mut self, offset: u16) -> Result<u32, NicError> {
        if offset & 3 != 0 || offset >= 4096 {
            return Err(NicError::OutOfRange {
                what: "offset in configuration space",
                value: offset.into(),
                allowed: "multiples of 4 below 4096",
            });
        }
        Ok(self.with(|slot| slot.core.config.get(offset)).unwrap_or(u32::MAX))
    }

    fn config_write(&mut self, offset: u16, value: u32) -> Result<(), NicError> {
        // A write to a device that is gone is lost, as on a real bus.
        let _ = self.with(|slot| {
            slot.core.config.write(offset, value);
            slot.device.config_written(&mut slot.core, offset);
        });
        Ok(())
    }

    fn map_bar(&mut self, bar: u8) -> Result<Mmio, NicError> {
        if bar > 5 {
            return Err(NicError::Unsupported { what: "that base address register" });
        }
        let value = self.config_read(0x10 + 4 * u16::from(bar))?;
        if value & 1 != 0 {
            return Err(NicError::Unsupported { what: "an I/O window as memory" });
        }
        let (bench, port) = (self.bench.clone(), self.port);
        let window = Window { bench, port, space: Space::Memory(bar), len: BAR_LEN };
        Ok(Mmio::from_registers(Arc::new(window)))
    }

    fn map_io(&mut self) -> Result<Mmio, NicError> {
        for bar in 0..6 {
            if self.config_read(0x10 + 4 * bar)? & 1 != 0 {
                let (bench, port) = (self.bench.clone(), self.port);
                return Ok(Mmio::from_registers(Arc::new(Window { bench, port, space: Space::Io, len: 8 })));
            }
        }
        Err(NicError::Unsupported { what: "I/O window" })
    }

    fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError> {
        let memory = self.bench.inner.lock().memory().clone();
        memory.allocate(len)
    }

    fn interrupt_vectors(&mut self) -> Result<InterruptVectors, NicError> {
        let msi = find_capability(self, capability::MSI)?.is_some();
        let msix = match find_capability(self, capability::MSIX)? {
            Some(at) => (read_u16(self, at + 2)? & 0x7ff) + 1,
            None => 0,
        };
        Ok(InterruptVectors { intx: self.config_read(0x3c)? & 0xff00 != 0, msi: msi.into(), msix })
    }

    fn set_interrupts(&mut self, mode: InterruptMode, vectors: u16) -> Result<(), NicError> {
        if vectors > 256 {
            return Err(NicError::OutOfRange { what: "vectors", value: vectors.into(), allowed: "0 to 256" });
        }
        for (kind, id) in [(InterruptMode::Msi, capability::MSI), (InterruptMode::MsiX, capability::MSIX)] {
            if let Some(at) = find_capability(self, id)? {
                let enable = if kind == InterruptMode::Msi { 1 << 16 } else { 1 << 31 };
                let word = self.config_read(at)?;
                let word = if mode == kind { word | enable } else { word & !enable };
                self.with(|slot| slot.core.config.set(at, word))?;
            } else if mode == kind {
                return Err(NicError::Unsupported { what: "message signalled interrupts" });
            }
        }
        self.interrupts = (mode, vectors);
        self.line_masked = false;
        self.with(|slot| slot.core.pending.fill(0))
    }

    fn wait_interrupt(&mut self, limit: Duration) -> Result<Option<u16>, NicError> {
        if self.interrupts.0 == InterruptMode::Polling {
            return Err(NicError::Unsupported { what: "waiting for an interrupt while polling" });
        }
        let end = self.bench.now() + limit;
        loop {
            if let Some(vector) = self.take_interrupt() {
                return Ok(Some(vector));
            }
            if !self.bench.inner.lock().step(end) {
                return Ok(self.take_interrupt());
            }
        }
    }

    fn unmask_interrupt(&mut self) -> Result<(), NicError> {
        self.line_masked = false;
        Ok(())
    }

    fn sleep(&mut self, span: Duration) {
        self.bench.advance(span);
    }
}
