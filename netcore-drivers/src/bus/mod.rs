//! [`Bus`]: everything a NIC driver asks of the machine: configuration space, registers, memory for DMA, interrupts, time.
//!
//! | back end | registers | DMA | feature |
//! | --- | --- | --- | --- |
//! | `crate::model` | calls into a model in this process | memory registered with it | `model` |
//! | `vfio` | mapped by VFIO | memory that the IOMMU maps | `vfio` |
//! | `sysfs` | `resource0` of sysfs | huge pages, by physical address, without protection | `sysfs` |
//! | `qtest` | QEMU's qtest protocol | a memfd that QEMU maps as guest memory | `qtest` |
//!
//! A bus is driven by one owner at a time and only on the control path: the data path uses the [`Mmio`] window and the
//! [`DmaBlock`](crate::dma::DmaBlock)s that it got from it.

pub mod pci;
#[cfg(feature = "qtest")]
pub mod qtest;
#[cfg(any(feature = "qtest", feature = "vfio", feature = "sysfs", test))]
mod ranges;
#[cfg(feature = "sysfs")]
pub mod sysfs;
#[cfg(feature = "vfio")]
pub mod vfio;

use crate::error::NicError;
use crate::mmio::Mmio;
use alloc::boxed::Box;
use core::time::Duration;
use netcore::DmaRegion;

/// How a device interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum InterruptMode {
    /// Not at all: the rings are polled.
    #[default]
    Polling,
    /// A shared, level-triggered line.
    Intx,
    /// Message signalled, one vector.
    Msi,
    /// Message signalled, a table of vectors.
    MsiX,
}

/// How many vectors a device has of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InterruptVectors {
    /// Has an interrupt line.
    pub intx: bool,
    /// MSI vectors, 0 or 1 (multiple-message MSI is not used).
    pub msi: u16,
    /// MSI-X table entries.
    pub msix: u16,
}

/// What a NIC driver asks of the machine.
///
/// Every method is bounded in time. A device that was removed shows as [`NicError::Removed`], or as registers that read as
/// all ones, which [`Csr`](crate::mmio::Csr) turns into that error.
pub trait Bus: Send {
    /// Reads the aligned 32-bit word at `offset` of configuration space.
    ///
    /// # Errors
    /// [`NicError::OutOfRange`] beyond configuration space; [`NicError::Removed`]; [`NicError::Io`].
    fn config_read(&mut self, offset: u16) -> Result<u32, NicError>;

    /// Writes the aligned 32-bit word at `offset` of configuration space.
    ///
    /// # Errors
    /// As [`Bus::config_read`].
    fn config_write(&mut self, offset: u16, value: u32) -> Result<(), NicError>;

    /// The memory window of base address register `bar` (0 to 5), mapped uncached.
    ///
    /// # Errors
    /// [`NicError::Unsupported`] if that register is no memory window; [`NicError::Io`].
    fn map_bar(&mut self, bar: u8) -> Result<Mmio, NicError>;

    /// The I/O window of the device, for the resets that the datasheets route through it. Offsets are those of the window.
    ///
    /// # Errors
    /// [`NicError::Unsupported`] if the device has none or the back end cannot reach it; the driver then uses memory.
    fn map_io(&mut self) -> Result<Mmio, NicError> {
        Err(NicError::Unsupported { what: "I/O window" })
    }

    /// Memory that the device can reach: `len` zero bytes, aligned to 4 KiB, contiguous for the device as far as the back
    /// end can arrange it ([`DmaRegion::iova`] says). Up to 64 KiB do not cross a 64 KiB boundary: 82545 and 82546 forbid that
    /// for rings. Dropping the region unmaps it.
    ///
    /// Ring memory and the memory of packet pools ([`PacketPool::from_region`](netcore::PacketPool::from_region)) come from
    /// here.
    ///
    /// # Errors
    /// [`NicError::NoDmaMemory`].
    fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError>;

    /// Which interrupts the device can raise.
    ///
    /// # Errors
    /// As [`Bus::config_read`].
    fn interrupt_vectors(&mut self) -> Result<InterruptVectors, NicError>;

    /// Switches the machine's side of interrupts to `mode` with `vectors` vectors (1 for INTx and MSI, 0 for polling).
    ///
    /// # Errors
    /// [`NicError::Unsupported`], [`NicError::OutOfRange`], [`NicError::Io`].
    fn set_interrupts(&mut self, mode: InterruptMode, vectors: u16) -> Result<(), NicError>;

    /// Waits up to `limit` for an interrupt and says on which vector one came; `None` if none did. Several on one vector may
    /// count as one. For INTx the line stays masked until [`Bus::unmask_interrupt`].
    ///
    /// # Errors
    /// [`NicError::Unsupported`] while polling; [`NicError::Io`].
    fn wait_interrupt(&mut self, limit: Duration) -> Result<Option<u16>, NicError>;

    /// Lets the interrupt line through again after the driver has silenced the device. Nothing to do for MSI and MSI-X.
    ///
    /// # Errors
    /// [`NicError::Io`].
    fn unmask_interrupt(&mut self) -> Result<(), NicError> {
        Ok(())
    }

    /// Lets `span` pass. On a model that is virtual time. Drivers sleep only during reset, start and stop, at most some
    /// hundred milliseconds in all.
    fn sleep(&mut self, span: Duration);
}

impl<B: Bus + ?Sized> Bus for Box<B> {
    fn config_read(&mut self, offset: u16) -> Result<u32, NicError> {
        (**self).config_read(offset)
    }
    fn config_write(&mut self, offset: u16, value: u32) -> Result<(), NicError> {
        (**self).config_write(offset, value)
    }
    fn map_bar(&mut self, bar: u8) -> Result<Mmio, NicError> {
        (**self).map_bar(bar)
    }
    fn map_io(&mut self) -> Result<Mmio, NicError> {
        (**self).map_io()
    }
    fn allocate(&mut self, len: usize) -> Result<DmaRegion, NicError> {
        (**self).allocate(len)
    }
    fn interrupt_vectors(&mut self) -> Result<InterruptVectors, NicError> {
        (**self).interrupt_vectors()
    }
    fn set_interrupts(&mut self, mode: InterruptMode, vectors: u16) -> Result<(), NicError> {
        (**self).set_interrupts(mode, vectors)
    }
    fn wait_interrupt(&mut self, limit: Duration) -> Result<Option<u16>, NicError> {
        (**self).wait_interrupt(limit)
    }
    fn unmask_interrupt(&mut self) -> Result<(), NicError> {
        (**self).unmask_interrupt()
    }
    fn sleep(&mut self, span: Duration) {
        (**self).sleep(span);
    }
}

/// Asks `done` until it says so, sleeping `step` in between, at most `limit` in all. The bound is one of sleeps, so it holds
/// on every bus.
///
/// # Errors
/// [`NicError::Timeout`] with `what`; whatever `done` fails with.
pub fn wait_until(
    bus: &mut dyn Bus,
    what: &'static str,
    limit: Duration,
    step: Duration,
    mut done: impl FnMut() -> Result<bool, NicError>,
) -> Result<(), NicError> {
    let mut slept = Duration::ZERO;
    loop {
        if done()? {
            return Ok(());
        }
        if slept >= limit {
            return Err(NicError::Timeout { what, limit_us: limit.as_micros() as u64 });
        }
        bus.sleep(step);
        slept += step.max(Duration::from_nanos(1));
    }
}
