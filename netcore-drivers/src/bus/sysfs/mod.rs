//! NICs through sysfs: `resource0` mapped, configuration space by its file, memory in huge pages addressed physically.
//!
//! Without an IOMMU nothing keeps the device from memory that is not its own; root only. Interrupts do not reach user space
//! this way: the rings are polled.

mod hugepages;

use super::{Bus, InterruptMode, InterruptVectors};
use crate::error::NicError;
use crate::mmio::Mmio;
use core::time::Duration;
use hugepages::HugePages;
use netcore::DmaRegion;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::format;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

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

/// The bus of a device through sysfs.
#[derive(Debug)]
pub struct SysfsBus {
    folder: PathBuf,
    config: File,
    memory: HugePages,
}

fn failed(what: &'static str, path: &std::path::Path) -> impl Fn(std::io::Error) -> NicError {
    let path = path.display().to_string();
    move |error| NicError::Io { what, message: format!("{path}: {error}") }
}

impl SysfsBus {
    /// Opens the device at a PCI address ("0000:01:00.0"), which no kernel driver may be bound to, and enables it.
    ///
    /// # Errors
    /// [`NicError::Io`] if there is no such device, if a driver is bound to it, or without permission.
    pub fn open(address: &str) -> Result<Self, NicError> {
        let folder = PathBuf::from("/sys/bus/pci/devices").join(address);
        if let Ok(driver) = std::fs::read_link(folder.join("driver")) {
            let message = format!("{address} is bound to {}", driver.display());
            return Err(NicError::Io { what: "device", message });
        }
        let enable = folder.join("enable");
        std::fs::write(&enable, "1").map_err(failed("enabling the device", &enable))?;
        let path = folder.join("config");
        let config =
            OpenOptions::new().read(true).write(true).open(&path).map_err(failed("configuration space", &path))?;
        Ok(Self { folder, config, memory: HugePages::default() })
    }
}

impl Bus for SysfsBus {
    fn config_read(&mut self, offset: u16) -> Result<u32, NicError> {
        let mut word = [0; 4];
        self.config.read_exact_at(&mut word, offset.into()).map_err(failed("configuration space", &self.folder))?;
        Ok(u32::from_le_bytes(word))
    }

    fn config_write(&mut self, offset: u16, value: u32) -> Result<(), NicError> {
        self.config
            .write_all_at(&value.to_le_bytes(), offset.into())
            .map_err(failed("configuration space", &self.folder))
    }

    fn map_bar(&mut self, bar: u8) -> Result<Mmio, NicError> {
        let path = self.folder.join(format!("resource{bar}"));
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed("BAR", &path))?;
        let len = file.metadata().map_err(failed("BAR", &path))?.len() as usize;
        // SAFETY: a fresh shared mapping of the BAR's file, at an address of the kernel's choice.
        let start =
            unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0) };
        let start = start.map_err(|error| failed("mapping of a BAR", &path)(error.into()))?.cast::<u8>();
        let start = NonNull::new(start).ok_or(NicError::Unsupported { what: "a BAR at address zero" })?;
        let window = u32::try_from(len).unwrap_or(u32::MAX);
        // SAFETY: sysfs maps `resourceN` uncached (`resourceN_wc` would combine writes); page aligned, alive as long as its
        // owner, and no kernel driver is bound.
        Ok(unsafe { Mmio::from_raw_parts(start, window, Arc::new(Mapping { start, len })) })
    }

    fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError> {
        self.memory.allocate(len)
    }

    fn interrupt_vectors(&mut self) -> Result<InterruptVectors, NicError> {
        Ok(InterruptVectors::default())
    }

    fn set_interrupts(&mut self, mode: InterruptMode, _vectors: u16) -> Result<(), NicError> {
        match mode {
            InterruptMode::Polling => Ok(()),
            _ => Err(NicError::Unsupported { what: "interrupts through sysfs" }),
        }
    }

    fn wait_interrupt(&mut self, _limit: Duration) -> Result<Option<u16>, NicError> {
        Err(NicError::Unsupported { what: "interrupts through sysfs" })
    }

    fn sleep(&mut self, span: Duration) {
        std::thread::sleep(span);
    }
}
