//! The calls of `linux/vfio.h`: structures, numbers, and functions that make them safe.

use core::ffi::c_void;
use rustix::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{Errno, Result};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::CString;
use std::vec::Vec;

/// VFIO_TYPE, and where its calls start.
const TYPE: u8 = b';';
const BASE: u8 = 100;

/// VFIO_API_VERSION.
pub(super) const API_VERSION: i32 = 0;
/// VFIO_TYPE1v2_IOMMU.
pub(super) const TYPE1V2: usize = 3;
/// VFIO_GROUP_FLAGS_VIABLE.
const VIABLE: u32 = 1;
/// VFIO_DMA_MAP_FLAG_READ and WRITE.
const MAP_READ_WRITE: u32 = 3;
/// VFIO_REGION_INFO_FLAG_MMAP.
pub(super) const REGION_MMAP: u32 = 4;
/// VFIO_PCI_CONFIG_REGION_INDEX.
pub(super) const CONFIG_REGION: u32 = 7;
/// VFIO_PCI_INTX_IRQ_INDEX.
pub(super) const IRQ_INTX: u32 = 0;
/// VFIO_PCI_MSI_IRQ_INDEX.
pub(super) const IRQ_MSI: u32 = 1;
/// VFIO_PCI_MSIX_IRQ_INDEX.
pub(super) const IRQ_MSIX: u32 = 2;
/// VFIO_IRQ_SET_*.
const SET_DATA_NONE: u32 = 1;
const SET_DATA_EVENTFD: u32 = 4;
const SET_ACTION_UNMASK: u32 = 0x10;
const SET_ACTION_TRIGGER: u32 = 0x20;

/// A call with a number or a pointer as argument; its result is what the call returns.
struct Call {
    number: u8,
    argument: *mut c_void,
}

// SAFETY: the opcode is one of VFIO's, whose arguments are numbers or pointers to structures that start with their size; the
// callers below pass those. Output may be written, so it counts as mutating.
unsafe impl Ioctl for Call {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::none(TYPE, BASE + self.number)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(out)
    }
}

/// A call whose argument is a number.
fn call_number(fd: impl AsFd, number: u8, argument: usize) -> Result<i32> {
    // SAFETY: a call that takes a number touches no memory.
    unsafe { ioctl(fd, Call { number, argument: core::ptr::without_provenance_mut(argument) }) }
}

/// A call whose argument is a structure of VFIO's.
fn call<T>(fd: impl AsFd, number: u8, argument: &mut T) -> Result<i32> {
    // SAFETY: `T` is the structure that the call reads and writes, as its size field says; it is borrowed exclusively.
    unsafe { ioctl(fd, Call { number, argument: (&raw mut *argument).cast() }) }
}

/// VFIO_GET_API_VERSION.
pub(super) fn version(container: impl AsFd) -> Result<i32> {
    call_number(container, 0, 0)
}

/// VFIO_CHECK_EXTENSION.
pub(super) fn has_extension(container: impl AsFd, extension: usize) -> bool {
    call_number(container, 1, extension).is_ok_and(|value| value > 0)
}

/// VFIO_SET_IOMMU.
pub(super) fn set_iommu(container: impl AsFd, kind: usize) -> Result<()> {
    call_number(container, 2, kind).map(|_| ())
}

#[repr(C)]
struct GroupStatus {
    size: u32,
    flags: u32,
}

/// VFIO_GROUP_GET_STATUS: true if all devices of the group are free or bound to VFIO.
pub(super) fn is_viable(group: impl AsFd) -> Result<bool> {
    let mut status = GroupStatus { size: 8, flags: 0 };
    call(group, 3, &mut status)?;
    Ok(status.flags & VIABLE != 0)
}

/// VFIO_GROUP_SET_CONTAINER.
pub(super) fn set_container(group: impl AsFd, container: RawFd) -> Result<()> {
    let mut container = container;
    call(group, 4, &mut container).map(|_| ())
}

/// VFIO_GROUP_GET_DEVICE_FD.
pub(super) fn device(group: impl AsFd, address: &str) -> Result<OwnedFd> {
    let name = CString::new(address).map_err(|_| Errno::INVAL)?;
    // SAFETY: the call reads a string that ends with zero, which `name` is.
    let fd = unsafe { ioctl(group, Call { number: 6, argument: name.as_ptr().cast_mut().cast() }) }?;
    // SAFETY: the call returned a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Where a region is in the device's file.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Region {
    argsz: u32,
    pub(super) flags: u32,
    index: u32,
    cap_offset: u32,
    pub(super) size: u64,
    pub(super) offset: u64,
}

/// VFIO_DEVICE_GET_REGION_INFO.
pub(super) fn region(device: impl AsFd, index: u32) -> Result<Region> {
    let mut region = Region { argsz: size_of::<Region>() as u32, flags: 0, index, cap_offset: 0, size: 0, offset: 0 };
    call(device, 8, &mut region)?;
    Ok(region)
}

#[repr(C)]
struct IrqInfo {
    argsz: u32,
    flags: u32,
    index: u32,
    count: u32,
}

/// VFIO_DEVICE_GET_IRQ_INFO: vectors of a kind.
pub(super) fn interrupt_count(device: impl AsFd, index: u32) -> Result<u32> {
    let mut info = IrqInfo { argsz: 16, flags: 0, index, count: 0 };
    call(device, 9, &mut info)?;
    Ok(info.count)
}

/// VFIO_DEVICE_SET_IRQS with a variable tail: header words, then descriptors.
fn set_interrupts(device: impl AsFd, flags: u32, index: u32, count: u32, fds: &[RawFd]) -> Result<()> {
    let size = (20 + 4 * fds.len()) as u32;
    // argsz, flags, index, start, count, data.
    let mut words: Vec<u32> = [size, flags, index, 0, count].into();
    words.extend(fds.iter().map(|fd| *fd as u32));
    // SAFETY: the call reads `argsz` bytes, which is the length of `words`.
    unsafe { ioctl(device, Call { number: 10, argument: words.as_mut_ptr().cast() }) }.map(|_| ())
}

/// Lets vectors 0.. of a kind signal these events.
pub(super) fn enable_interrupts(device: impl AsFd, index: u32, fds: &[RawFd]) -> Result<()> {
    set_interrupts(device, SET_DATA_EVENTFD | SET_ACTION_TRIGGER, index, fds.len() as u32, fds)
}

/// Takes all vectors of a kind back.
pub(super) fn disable_interrupts(device: impl AsFd, index: u32) -> Result<()> {
    set_interrupts(device, SET_DATA_NONE | SET_ACTION_TRIGGER, index, 0, &[])
}

/// The line was masked when it interrupted; lets it through again.
pub(super) fn unmask_line(device: impl AsFd) -> Result<()> {
    set_interrupts(device, SET_DATA_NONE | SET_ACTION_UNMASK, IRQ_INTX, 1, &[])
}

#[repr(C)]
struct DmaMap {
    argsz: u32,
    flags: u32,
    vaddr: u64,
    iova: u64,
    size: u64,
}

/// VFIO_IOMMU_MAP_DMA: the device reads and writes `len` bytes at `address` of this process as `iova`.
///
/// # Safety
/// The memory stays mapped in this process until [`unmap`], and is only accessed as memory that a device shares.
pub(super) unsafe fn map(container: impl AsFd, address: usize, iova: u64, len: u64) -> Result<()> {
    let mut map = DmaMap { argsz: 32, flags: MAP_READ_WRITE, vaddr: address as u64, iova, size: len };
    call(container, 13, &mut map).map(|_| ())
}

#[repr(C)]
struct DmaUnmap {
    argsz: u32,
    flags: u32,
    iova: u64,
    size: u64,
}

/// VFIO_IOMMU_UNMAP_DMA.
pub(super) fn unmap(container: impl AsFd, iova: u64, len: u64) -> Result<()> {
    let mut unmap = DmaUnmap { argsz: 24, flags: 0, iova, size: len };
    call(container, 14, &mut unmap).map(|_| ())
}
