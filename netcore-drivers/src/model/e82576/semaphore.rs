//! The semaphores SWSM and SW_FW_SYNC (82576 datasheet 4.5.12).

use super::{Core, E82576};

const SMBI: u32 = 1 << 0;
const SWESMBI: u32 = 1 << 1;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Semaphores {
    smbi: bool,
    swesmbi: bool,
    sync: u32,
}

impl Semaphores {
    /// SW_FW_SYNC as it reads.
    pub(super) fn sync(&self, core: &Core) -> u32 {
        // Firmware that holds everything.
        self.sync | if core.faults.semaphore_held { 0x03ff_0000 } else { 0 }
    }

    /// True if software holds a resource.
    pub(super) const fn holds(&self, mask: u32) -> bool {
        self.sync & mask != 0
    }
}

impl E82576 {
    pub(super) fn read_swsm(&mut self, core: &Core) -> u32 {
        let s = &mut self.semaphores;
        let granted = s.swesmbi && !core.faults.semaphore_held;
        let value = if s.smbi { SMBI } else { 0 } | if granted { SWESMBI } else { 0 };
        // The read takes it.
        s.smbi = true;
        value
    }

    pub(super) fn write_swsm(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, super::reg::SWSM, value, !0xf);
        let s = &mut self.semaphores;
        if value & SWESMBI != 0 && !s.smbi {
            core.violate("semaphore-order", "SWESMBI taken without SMBI");
        }
        s.smbi = value & SMBI != 0;
        s.swesmbi = value & SWESMBI != 0 && !core.faults.semaphore_held;
    }

    pub(super) fn write_sync(&mut self, core: &mut Core, value: u32) {
        let s = &mut self.semaphores;
        if !(s.smbi && s.swesmbi) {
            core.violate("semaphore-not-held", "SW_FW_SYNC written without SWSM");
        }
        s.sync = value & 0xffff;
    }
}
