//! NICs bound to `vfio-pci`: the kernel's way to give a device to a process, with an IOMMU in between (type 1).
//!
//! ```text
//!   Container (IOMMU domain) ── DMA mappings ── rings, packet pools
//!      └─ group ── device ── BARs (mmap), configuration space (pread, pwrite), interrupts (eventfd)
//! ```
//!
//! Devices of one [`Container`] share its mappings: a pool made through one of them serves all.
//!
//! Kernel interface: `linux/vfio.h`, documented in the kernel's `driver-api/vfio`.

mod container;
mod interface;

pub use container::Container;

use super::pci::{capability, find_capability, read_u16};
use super::{Bus, InterruptMode, InterruptVectors};
use crate::error::NicError;
use crate::mmio::Mmio;
use core::time::Duration;
use interface as kernel;
use netcore::DmaRegion;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::format;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

/// A mapped BAR.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is an address range, not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared `Mapping` gives no access.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `map_bar` with this length, unmapped once.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The bus of a device behind VFIO.
pub struct VfioBus {
    container: Container,
    device: OwnedFd,
    /// Keeps the group open: closing it resets the device.
    _group: Arc<OwnedFd>,
    address: String,
    /// Offset of configuration space in the device's file.
    config: u64,
    mode: InterruptMode,
    events: Vec<OwnedFd>,
}

fn failed(what: &'static str) -> impl Fn(rustix::io::Errno) -> NicError {
    move |error| NicError::Io { what, message: error.to_string() }
}

impl VfioBus {
    /// Opens the device at a PCI address ("0000:01:00.0") that is bound to `vfio-pci`, into the domain of `container`.
    ///
    /// # Errors
    /// [`NicError::Io`] naming the step: no IOMMU group, group not viable (another device of it has a kernel driver),
    /// no permission.
    pub fn open(container: &Container, address: &str) -> Result<Self, NicError> {
        let group = container.group(address)?;
        let device = kernel::device(&group, address).map_err(failed("VFIO device"))?;
        let config = kernel::region(&device, kernel::CONFIG_REGION).map_err(failed("VFIO configuration space"))?;
        Ok(Self {
            container: container.clone(),
            device,
            _group: group,
            address: address.into(),
            config: config.offset,
            mode: InterruptMode::Polling,
            events: Vec::new(),
        })
    }

    /// The PCI address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The event of a vector, readable when it interrupts: for an event loop. Reading 8 bytes clears it.
    pub fn event(&self, vector: u16) -> Option<&OwnedFd> {
        self.events.get(usize::from(vector))
    }

    fn release_interrupts(&mut self) -> Result<(), NicError> {
        let index = match self.mode {
            InterruptMode::Polling => return Ok(()),
            InterruptMode::Intx => kernel::IRQ_INTX,
            InterruptMode::Msi => kernel::IRQ_MSI,
            InterruptMode::MsiX => kernel::IRQ_MSIX,
        };
        self.mode = InterruptMode::Polling;
        let released = kernel::disable_interrupts(&self.device, index).map_err(failed("VFIO interrupts"));
        self.events.clear();
        released
    }
}

impl Bus for VfioBus {
    fn config_read(&mut self, offset: u16) -> Result<u32, NicError> {
        let mut word = [0; 4];
        let n = rustix::io::pread(&self.device, &mut word, self.config + u64::from(offset))
            .map_err(failed("configuration space"))?;
        // A read beyond configuration space gives fewer bytes.
        if n == 4 {
            return Ok(u32::from_le_bytes(word));
        }
        Err(NicError::OutOfRange {
            what: "offset in configuration space",
            value: offset.into(),
            allowed: "multiples of 4 within it",
        })
    }

    fn config_write(&mut self, offset: u16, value: u32) -> Result<(), NicError> {
        rustix::io::pwrite(&self.device, &value.to_le_bytes(), self.config + u64::from(offset))
            .map_err(failed("configuration space"))?;
        Ok(())
    }

    fn map_bar(&mut self, bar: u8) -> Result<Mmio, NicError> {
        let region = kernel::region(&self.device, bar.into()).map_err(failed("VFIO region"))?;
        if region.size == 0 || region.flags & kernel::REGION_MMAP == 0 {
            return Err(NicError::Unsupported { what: "mapping that base address register" });
        }
        let len = usize::try_from(region.size).unwrap_or(usize::MAX);
        // SAFETY: a fresh shared mapping of the device's file, at an address of the kernel's choice.
        let start = unsafe {
            mmap(
                core::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &self.device,
                region.offset,
            )
        };
        let start = start.map_err(failed("mapping of a BAR"))?.cast::<u8>();
        let start = NonNull::new(start).ok_or(NicError::Unsupported { what: "a BAR at address zero" })?;
        let mapping = Arc::new(Mapping { start, len });
        let window = u32::try_from(len).unwrap_or(u32::MAX);
        // SAFETY: vfio-pci maps BARs uncached; the mapping is page aligned, lives as long as its owner, and nobody else in
        // this process accesses it.
        Ok(unsafe { Mmio::from_raw_parts(start, window, mapping) })
    }

    fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError> {
        self.container.allocate(len)
    }

    fn interrupt_vectors(&mut self) -> Result<InterruptVectors, NicError> {
        let intx = kernel::interrupt_count(&self.device, kernel::IRQ_INTX).unwrap_or(0) > 0;
        let msi = kernel::interrupt_count(&self.device, kernel::IRQ_MSI).unwrap_or(0).min(1) as u16;
        let msix = match find_capability(self, capability::MSIX)? {
            Some(at) => (read_u16(self, at + 2)? & 0x7ff) + 1,
            None => 0,
        };
        Ok(InterruptVectors { intx, msi, msix })
    }

    fn set_interrupts(&mut self, mode: InterruptMode, vectors: u16) -> Result<(), NicError> {
        self.release_interrupts()?;
        let index = match mode {
            InterruptMode::Polling => return Ok(()),
            InterruptMode::Intx => kernel::IRQ_INTX,
            InterruptMode::Msi => kernel::IRQ_MSI,
            InterruptMode::MsiX => kernel::IRQ_MSIX,
        };
        let mut events = Vec::with_capacity(vectors.into());
        for _ in 0..vectors {
            events.push(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(failed("eventfd"))?);
        }
        let fds: Vec<i32> = events.iter().map(AsRawFd::as_raw_fd).collect();
        kernel::enable_interrupts(&self.device, index, &fds).map_err(failed("VFIO interrupts"))?;
        self.events = events;
        self.mode = mode;
        Ok(())
    }

    fn wait_interrupt(&mut self, limit: Duration) -> Result<Option<u16>, NicError> {
        if self.mode == InterruptMode::Polling {
            return Err(NicError::Unsupported { what: "waiting for an interrupt while polling" });
        }
        let mut fds: Vec<PollFd<'_>> =
            self.events.iter().map(|event| PollFd::from_borrowed_fd(event.as_fd(), PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            // A signal ends the wait early; the caller asks again.
            Err(rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(failed("poll")(error)),
        }
        let ready = fds.iter().position(|fd| fd.revents().contains(PollFlags::IN));
        if let Some(event) = ready.and_then(|index| self.events.get(index)) {
            // How often it came is of no interest; the read clears it.
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
        Ok(ready.map(|index| index as u16))
    }

    fn unmask_interrupt(&mut self) -> Result<(), NicError> {
        if self.mode == InterruptMode::Intx {
            kernel::unmask_line(&self.device).map_err(failed("VFIO interrupt line"))?;
        }
        Ok(())
    }

    fn sleep(&mut self, span: Duration) {
        std::thread::sleep(span);
    }
}

impl Drop for VfioBus {
    fn drop(&mut self) {
        let _ = self.release_interrupts();
    }
}

impl core::fmt::Debug for VfioBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("VfioBus").field("address", &self.address).field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// For messages that name the device.
pub(super) fn io(what: &'static str, message: impl core::fmt::Display) -> NicError {
    NicError::Io { what, message: format!("{message}") }
}
