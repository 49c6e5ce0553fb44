//! [`Mmio`]: access to the registers of a device. All unsafe code that touches registers is here.

use crate::error::NicError;
use alloc::sync::Arc;
use core::any::Any;
use core::ptr::NonNull;

/// Registers that are reached by a call, not by a load: a model, an emulator in another process.
pub trait Registers: Send + Sync {
    /// Reads the aligned 32-bit register at `offset` of the window. All ones if the device is gone.
    fn read(&self, offset: u32) -> u32;

    /// Writes the aligned 32-bit register at `offset` of the window.
    fn write(&self, offset: u32, value: u32);

    /// Bytes in the window.
    fn window_len(&self) -> u32;
}

/// A window of 32-bit little-endian registers (a memory BAR). Clones are the same window.
///
/// Only aligned 32-bit accesses exist, as the datasheets require (82576 datasheet 8.1.3: "All registers should be accessed
/// as 32 bit width on 32 bit boundaries").
#[derive(Clone)]
pub struct Mmio(Window);

#[derive(Clone)]
enum Window {
    Memory { base: NonNull<u8>, len: u32, _owner: Arc<dyn Any + Send + Sync> },
    Device(Arc<dyn Registers>),
}

// SAFETY: `base` points at device registers (or memory standing in for them) that stay mapped while `_owner` lives; they are
// only accessed by single aligned 32-bit volatile loads and stores, which any thread may do.
unsafe impl Send for Mmio {}
// SAFETY: as above.
unsafe impl Sync for Mmio {}

impl Mmio {
    /// A window that is mapped into memory.
    ///
    /// # Safety
    /// `base..base + len` must be readable and writable by 32-bit accesses, aligned to 4 bytes, mapped uncached if it is a
    /// device, accessed by others only through volatile or atomic accesses, and stay mapped until `owner` is dropped.
    pub unsafe fn from_raw_parts(base: NonNull<u8>, len: u32, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Window::Memory { base, len: len & !3, _owner: owner })
    }

    /// A window reached by calls.
    pub fn from_registers(registers: Arc<dyn Registers>) -> Self {
        Self(Window::Device(registers))
    }

    /// A window of ordinary memory, `len` bytes of zeros: for benches of drivers without a device.
    pub fn plain(len: u32) -> Self {
        let words: Arc<[core::sync::atomic::AtomicU32]> =
            (0..len / 4).map(|_| core::sync::atomic::AtomicU32::new(0)).collect();
        let base = NonNull::from(&*words).cast();
        // SAFETY: the words are owned by the `Arc`, aligned, writable through atomics.
        unsafe { Self::from_raw_parts(base, len & !3, Arc::new(words)) }
    }

    /// Bytes in the window.
    pub fn window_len(&self) -> u32 {
        match &self.0 {
            Window::Memory { len, .. } => *len,
            Window::Device(registers) => registers.window_len(),
        }
    }

    /// Reads a register. A misaligned offset or one outside the window reads as all ones, as a device that is not there.
    #[inline]
    pub fn read(&self, offset: u32) -> u32 {
        match &self.0 {
            Window::Memory { base, len, .. } => {
                if offset & 3 != 0 || offset >= *len {
                    return u32::MAX;
                }
                // SAFETY: aligned, and inside the window because `offset` and `len` are multiples of 4; see `from_raw_parts`.
                u32::from_le(unsafe { base.as_ptr().add(offset as usize).cast::<u32>().read_volatile() })
            }
            Window::Device(registers) => registers.read(offset),
        }
    }

    /// Writes a register. A misaligned offset or one outside the window is ignored, as a device that is not there does.
    #[inline]
    pub fn write(&self, offset: u32, value: u32) {
        match &self.0 {
            Window::Memory { base, len, .. } => {
                if offset & 3 != 0 || offset >= *len {
                    return;
                }
                // SAFETY: as in `read`.
                unsafe { base.as_ptr().add(offset as usize).cast::<u32>().write_volatile(value.to_le()) }
            }
            Window::Device(registers) => registers.write(offset, value),
        }
    }
}

impl core::fmt::Debug for Mmio {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mmio").field("len", &self.window_len()).finish_non_exhaustive()
    }
}

/// Offset of the device status register in every Intel family; reading it has no side effect.
pub const STATUS: u32 = 0x0_0008;

/// Control-path access to the registers of an Intel NIC: reads notice that the device is gone.
#[derive(Clone, Debug)]
pub struct Csr(Mmio);

impl Csr {
    /// The registers in `window` (BAR 0).
    pub const fn new(window: Mmio) -> Self {
        Self(window)
    }

    /// The window.
    pub const fn window(&self) -> &Mmio {
        &self.0
    }

    /// Reads a register.
    ///
    /// # Errors
    /// [`NicError::Removed`] if it and STATUS read as all ones.
    pub fn read(&self, offset: u32) -> Result<u32, NicError> {
        let value = self.0.read(offset);
        if value == u32::MAX && self.0.read(STATUS) == u32::MAX {
            return Err(NicError::Removed);
        }
        Ok(value)
    }

    /// Writes a register. The write is posted: it has arrived after the next read.
    pub fn write(&self, offset: u32, value: u32) {
        self.0.write(offset, value);
    }

    /// Sets and clears bits of a register and says what it holds now.
    ///
    /// # Errors
    /// As [`Csr::read`].
    pub fn modify(&self, offset: u32, clear: u32, set: u32) -> Result<u32, NicError> {
        let value = self.read(offset)? & !clear | set;
        self.write(offset, value);
        Ok(value)
    }

    /// Makes sure that all writes so far have arrived (a read of STATUS).
    ///
    /// # Errors
    /// [`NicError::Removed`].
    pub fn flush(&self) -> Result<(), NicError> {
        self.read(STATUS).map(|_| ())
    }
}
