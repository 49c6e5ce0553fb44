//! [`Container`]: an IOMMU domain, the groups in it, and the memory mapped for it.

use super::interface as kernel;
use super::{failed, io};
use crate::bus::ranges::Ranges;
use crate::error::NicError;
use crate::sync::Lock;
use netcore::{DmaRegion, Iova};
use rustix::fs::{Mode, OFlags, open};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::string::String;
use std::sync::Arc;

/// Device addresses that are given out: above the windows that platforms reserve below 4 GiB, within the 39 bits of the
/// smallest IOMMUs.
const FIRST_IOVA: u64 = 1 << 32;
const LAST_IOVA: u64 = 1 << 38;
/// Memory from this size on is backed by huge pages if there are any.
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

struct Inner {
    fd: OwnedFd,
    groups: Lock<BTreeMap<String, Arc<OwnedFd>>>,
    addresses: Lock<Ranges>,
}

/// An IOMMU domain; clones are the same.
#[derive(Clone)]
pub struct Container(Arc<Inner>);

/// Memory mapped into the process and for the device.
struct Mapped {
    container: Arc<Inner>,
    start: NonNull<u8>,
    len: usize,
    iova: u64,
}

// SAFETY: a mapping is an address range, not tied to a thread.
unsafe impl Send for Mapped {}
// SAFETY: a shared `Mapped` gives no access.
unsafe impl Sync for Mapped {}

impl Drop for Mapped {
    fn drop(&mut self) {
        // The device loses access before the memory goes. If the kernel refuses, the memory stays: better leaked than
        // written to.
        if kernel::unmap(&self.container.fd, self.iova, self.len as u64).is_ok() {
            // SAFETY: mapped in `allocate` with this length, unmapped once.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
            self.container.addresses.lock().give(self.iova, self.len as u64);
        }
    }
}

fn open_rw(path: &str) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

impl Container {
    /// An empty domain.
    ///
    /// # Errors
    /// [`NicError::Io`] if `/dev/vfio/vfio` cannot be opened; [`NicError::Unsupported`] if the kernel speaks another version
    /// or has no type 1 IOMMU.
    pub fn new() -> Result<Self, NicError> {
        let fd = open_rw("/dev/vfio/vfio").map_err(failed("/dev/vfio/vfio"))?;
        if kernel::version(&fd).map_err(failed("VFIO version"))? != kernel::API_VERSION {
            return Err(NicError::Unsupported { what: "this version of VFIO" });
        }
        if !kernel::has_extension(&fd, kernel::TYPE1V2) {
            return Err(NicError::Unsupported { what: "VFIO without a type 1 IOMMU" });
        }
        let addresses = Lock::new(Ranges::new(FIRST_IOVA, LAST_IOVA - FIRST_IOVA));
        Ok(Self(Arc::new(Inner { fd, groups: Lock::new(BTreeMap::new()), addresses })))
    }

    /// The group of a device, in this domain.
    pub(super) fn group(&self, address: &str) -> Result<Arc<OwnedFd>, NicError> {
        let link = format!("/sys/bus/pci/devices/{address}/iommu_group");
        let target = std::fs::read_link(&link).map_err(|error| io("IOMMU group", format!("{link}: {error}")))?;
        let number = target.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let mut groups = self.0.groups.lock();
        if let Some(group) = groups.get(number) {
            return Ok(group.clone());
        }
        let path = format!("/dev/vfio/{number}");
        let group = open_rw(&path).map_err(|error| io("VFIO group", format!("{path}: {error}")))?;
        if !kernel::is_viable(&group).map_err(failed("VFIO group"))? {
            return Err(io("VFIO group", format!("{path}: a device of the group has another driver")));
        }
        kernel::set_container(&group, self.0.fd.as_raw_fd()).map_err(failed("VFIO container"))?;
        if groups.is_empty() {
            kernel::set_iommu(&self.0.fd, kernel::TYPE1V2).map_err(failed("VFIO IOMMU"))?;
        }
        let group = Arc::new(group);
        groups.insert(number.into(), group.clone());
        Ok(group)
    }

    /// Memory for every device of the domain. There must be one.
    pub(super) fn allocate(&self, len: usize) -> Result<DmaRegion, NicError> {
        let none = |message: String| NicError::NoDmaMemory { bytes: len, message };
        let size = len.max(1).next_multiple_of(if len >= HUGE { HUGE } else { PAGE });
        let map = |flags| {
            // SAFETY: a fresh private mapping at an address of the kernel's choice.
            unsafe { mmap_anonymous(core::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, flags) }
        };
        let plain = MapFlags::PRIVATE | MapFlags::POPULATE;
        let start = match size >= HUGE {
            true => map(plain | MapFlags::HUGETLB | MapFlags::HUGE_2MB).or_else(|_| map(plain)),
            false => map(plain),
        };
        let start = start.map_err(|error| none(format!("{error}")))?.cast::<u8>();
        let start = NonNull::new(start).ok_or_else(|| none("mapped at zero".into()))?;
        let release = || {
            // SAFETY: mapped just now with this length.
            let _ = unsafe { munmap(start.as_ptr().cast(), size) };
        };
        let Some(iova) = self.0.addresses.lock().take(size as u64) else {
            release();
            return Err(none("the domain's addresses are used up".into()));
        };
        // SAFETY: the memory stays mapped until `Mapped` has taken it from the device.
        if let Err(error) = unsafe { kernel::map(&self.0.fd, start.as_ptr().expose_provenance(), iova, size as u64) } {
            self.0.addresses.lock().give(iova, size as u64);
            release();
            return Err(none(format!("the IOMMU maps no more: {error} (ulimit -l?)")));
        }
        let owner = Mapped { container: self.0.clone(), start, len: size, iova };
        // SAFETY: fresh zeroed memory, page aligned, nobody else's, alive until `owner` is dropped.
        Ok(unsafe { DmaRegion::from_raw_parts(start, size, Iova::Linear(iova), Box::new(owner)) })
    }
}

impl core::fmt::Debug for Container {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Container").field("groups", &self.0.groups.lock().keys()).finish()
    }
}
