//! QEMU's emulated NICs without a guest: a processor that is parked, and a device driven through the qtest protocol.
//!
//! ```text
//!   driver ── QtestBus ── socket ──► QEMU ── device ── datagrams ──► test
//!      │                                       │
//!      └───────── memfd: rings, buffers ───────┘
//! ```
//!
//! The memory of the machine is a memfd that this process maps too, so descriptors and packets need no round trip; only
//! registers do (about 10 µs each). Message signalled interrupts are aimed at words of that memory.
//!
//! QEMU runs in real time: sleeping sleeps.

mod machine;
mod memory;
mod protocol;

pub use machine::{EmulatedNic, Machine};

use super::pci::{self, capability};
use super::{Bus, InterruptMode, InterruptVectors};
use crate::dma::DmaBlock;
use crate::error::NicError;
use crate::mmio::{Mmio, Registers};
use core::time::Duration;
use memory::Memory;
use netcore::DmaRegion;
use protocol::Connection;
use std::sync::Arc;
use std::time::Instant as Clock;

/// Configuration address port.
const ADDRESS_PORT: u32 = 0xcf8;
/// Configuration data port.
const DATA_PORT: u32 = 0xcfc;
/// Where BARs are placed: 16 MiB for each device.
const FIRST_BAR: u64 = 0xe000_0000;
/// Where I/O BARs are placed: 4 KiB for each device.
const FIRST_IO: u64 = 0xc000;
/// Time between looks for an interrupt.
const LOOK: Duration = Duration::from_micros(200);

/// A BAR that was sized and placed.
#[derive(Clone, Copy, Debug)]
struct Bar {
    io: bool,
    at: u64,
    len: u32,
}

struct Window {
    connection: Arc<Connection>,
    bar: Bar,
}

impl Registers for Window {
    fn read(&self, offset: u32) -> u32 {
        if offset & 3 != 0 || offset >= self.bar.len {
            return u32::MAX;
        }
        let at = self.bar.at + u64::from(offset);
        let value = if self.bar.io { self.connection.in_32(at as u32) } else { self.connection.read_32(at) };
        // A connection that is gone is a device that is gone.
        value.unwrap_or(u32::MAX)
    }

    fn write(&self, offset: u32, value: u32) {
        if offset & 3 == 0 && offset < self.bar.len {
            let at = self.bar.at + u64::from(offset);
            let _ = if self.bar.io {
                self.connection.out_32(at as u32, value)
            } else {
                self.connection.write_32(at, value)
            };
        }
    }

    fn window_len(&self) -> u32 {
        self.bar.len
    }
}

/// The bus of a device in QEMU.
pub struct QtestBus {
    connection: Arc<Connection>,
    memory: Memory,
    /// Device number on bus 0.
    slot: u8,
    bars: [Option<Bar>; 6],
    mode: InterruptMode,
    /// One word per vector, which a message sets.
    mailbox: Option<DmaBlock>,
    vectors: u16,
    line_masked: bool,
}

impl QtestBus {
    fn new(connection: Arc<Connection>, memory: Memory, slot: u8) -> Result<Self, NicError> {
        let mut this = Self {
            connection,
            memory,
            slot,
            bars: [None; 6],
            mode: InterruptMode::Polling,
            mailbox: None,
            vectors: 0,
            line_masked: false,
        };
        this.place_bars()?;
        Ok(this)
    }

    /// Does what firmware does: finds the size of each BAR and gives it a place.
    fn place_bars(&mut self) -> Result<(), NicError> {
        let device = u64::from(self.slot);
        let mut memory = FIRST_BAR + (device << 24);
        let mut io = FIRST_IO + (device << 8);
        let mut index = 0;
        while index < 6 {
            let at = 0x10 + 4 * index as u16;
            self.config_write(at, u32::MAX)?;
            let mask = self.config_read(at)?;
            if mask == 0 {
                index += 1;
                continue;
            }
            if mask & 1 != 0 {
                let len = (!(mask & !3) + 1) & 0xffff;
                self.config_write(at, io as u32)?;
                self.bars[index] = Some(Bar { io: true, at: io, len });
                io += u64::from(len.max(64));
                index += 1;
                continue;
            }
            let len = !(mask & !0xf) + 1;
            memory = memory.next_multiple_of(u64::from(len));
            self.config_write(at, memory as u32)?;
            self.bars[index] = Some(Bar { io: false, at: memory, len });
            memory += u64::from(len);
            if mask & 4 != 0 {
                self.config_write(at + 4, 0)?;
                index += 1;
            }
            index += 1;
        }
        Ok(())
    }

    fn address(&self, offset: u16) -> Result<u32, NicError> {
        if offset & 3 != 0 || offset > 0xfc {
            return Err(NicError::OutOfRange {
                what: "offset in configuration space",
                value: offset.into(),
                allowed: "multiples of 4 below 256 (ports CF8 and CFC)",
            });
        }
        Ok(0x8000_0000 | u32::from(self.slot) << 11 | u32::from(offset))
    }

    /// Aims messages at the words of the mailbox.
    fn aim_msi(&mut self, on: bool) -> Result<(), NicError> {
        let at = pci::find_capability(self, capability::MSI)?;
        let at = at.ok_or(NicError::Unsupported { what: "MSI" })?;
        let control = self.config_read(at)?;
        if on {
            let iova = self.mailbox.as_ref().map_or(0, DmaBlock::iova);
            self.config_write(at + 4, iova as u32)?;
            let wide = control >> 16 & 0x80 != 0;
            if wide {
                self.config_write(at + 8, (iova >> 32) as u32)?;
            }
            let data = at + if wide { 12 } else { 8 };
            self.config_write(data, 1)?;
        }
        let enable = if on { 1 << 16 } else { 0 };
        self.config_write(at, control & !(0x71 << 16) | enable)
    }

    fn aim_msix(&mut self, on: bool, vectors: u16) -> Result<(), NicError> {
        let at = pci::find_capability(self, capability::MSIX)?;
        let at = at.ok_or(NicError::Unsupported { what: "MSI-X" })?;
        let control = self.config_read(at)?;
        if on {
            let table = self.config_read(at + 4)?;
            let window = self.map_bar((table & 7) as u8)?;
            let iova = self.mailbox.as_ref().map_or(0, DmaBlock::iova);
            for vector in 0..u32::from(vectors) {
                let entry = (table & !7) + 16 * vector;
                let target = iova + u64::from(4 * vector);
                window.write(entry, target as u32);
                window.write(entry + 4, (target >> 32) as u32);
                window.write(entry + 8, 1);
                window.write(entry + 12, 0);
            }
        }
        let enable = if on { 1 << 31 } else { 0 };
        self.config_write(at, control & !(3 << 30) | enable)
    }

    fn take_interrupt(&mut self) -> Result<Option<u16>, NicError> {
        match self.mode {
            InterruptMode::Polling => Err(NicError::Unsupported { what: "waiting for an interrupt while polling" }),
            InterruptMode::Intx => {
                if !self.line_masked && self.connection.line_is_high()? {
                    self.line_masked = true;
                    return Ok(Some(0));
                }
                Ok(None)
            }
            InterruptMode::Msi | InterruptMode::MsiX => {
                let Some(mailbox) = &self.mailbox else { return Ok(None) };
                for vector in 0..self.vectors {
                    let at = usize::from(vector) * 4;
                    if mailbox.read_u32(at) != 0 {
                        mailbox.write(at, &[0; 4]);
                        return Ok(Some(vector));
                    }
                }
                Ok(None)
            }
        }
    }
}

impl Bus for QtestBus {
    fn config_read(&mut self, offset: u16) -> Result<u32, NicError> {
        let address = self.address(offset)?;
        self.connection.out_32(ADDRESS_PORT, address)?;
        self.connection.in_32(DATA_PORT)
    }

    fn config_write(&mut self, offset: u16, value: u32) -> Result<(), NicError> {
        let address = self.address(offset)?;
        self.connection.out_32(ADDRESS_PORT, address)?;
        self.connection.out_32(DATA_PORT, value)
    }

    fn map_bar(&mut self, bar: u8) -> Result<Mmio, NicError> {
        match self.bars.get(usize::from(bar)) {
            Some(Some(bar)) if !bar.io => {
                Ok(Mmio::from_registers(Arc::new(Window { connection: self.connection.clone(), bar: *bar })))
            }
            _ => Err(NicError::Unsupported { what: "that base address register as memory" }),
        }
    }

    fn map_io(&mut self) -> Result<Mmio, NicError> {
        let bar = self.bars.iter().flatten().find(|bar| bar.io).copied();
        let bar = bar.ok_or(NicError::Unsupported { what: "I/O window" })?;
        Ok(Mmio::from_registers(Arc::new(Window { connection: self.connection.clone(), bar })))
    }

    fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError> {
        self.memory.allocate(len)
    }

    fn interrupt_vectors(&mut self) -> Result<InterruptVectors, NicError> {
        let msi = pci::find_capability(self, capability::MSI)?.is_some();
        let msix = match pci::find_capability(self, capability::MSIX)? {
            Some(at) => (pci::read_u16(self, at + 2)? & 0x7ff) + 1,
            None => 0,
        };
        Ok(InterruptVectors { intx: self.config_read(0x3c)? & 0xff00 != 0, msi: msi.into(), msix })
    }

    fn set_interrupts(&mut self, mode: InterruptMode, vectors: u16) -> Result<(), NicError> {
        if vectors > 256 {
            return Err(NicError::OutOfRange { what: "vectors", value: vectors.into(), allowed: "0 to 256" });
        }
        match self.mode {
            InterruptMode::Msi => self.aim_msi(false)?,
            InterruptMode::MsiX => self.aim_msix(false, 0)?,
            InterruptMode::Polling | InterruptMode::Intx => {}
        }
        self.mode = InterruptMode::Polling;
        if matches!(mode, InterruptMode::Msi | InterruptMode::MsiX) && self.mailbox.is_none() {
            self.mailbox = Some(DmaBlock::new(self.memory.allocate(4096)?)?);
        }
        if let Some(mailbox) = &self.mailbox {
            mailbox.zero(0, 1024);
        }
        match mode {
            InterruptMode::Msi => self.aim_msi(true)?,
            InterruptMode::MsiX => self.aim_msix(true, vectors)?,
            InterruptMode::Intx => self.connection.intercept_lines()?,
            InterruptMode::Polling => {}
        }
        self.mode = mode;
        self.vectors = vectors;
        self.line_masked = false;
        Ok(())
    }

    fn wait_interrupt(&mut self, limit: Duration) -> Result<Option<u16>, NicError> {
        let end = Clock::now() + limit;
        loop {
            if let Some(vector) = self.take_interrupt()? {
                return Ok(Some(vector));
            }
            if Clock::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn unmask_interrupt(&mut self) -> Result<(), NicError> {
        self.line_masked = false;
        Ok(())
    }

    fn sleep(&mut self, span: Duration) {
        std::thread::sleep(span);
    }
}

impl core::fmt::Debug for QtestBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("QtestBus").field("slot", &self.slot).field("bars", &self.bars).finish_non_exhaustive()
    }
}
