//! Semaphores that drivers and firmware share (82599 datasheet 10.5.4).

use super::Ixgbe;
use super::regs::{SW_FW_SYNC, SWSM, swsm, sync};
use crate::bus::wait_until;
use crate::error::NicError;
use core::time::Duration;

/// Who holds the register semaphore holds it for less than a millisecond.
const REGISTER_LIMIT: Duration = Duration::from_millis(20);
const REGISTER_STEP: Duration = Duration::from_micros(50);
/// Firmware may hold a resource for a second.
const RESOURCE_TRIES: u32 = 200;
const RESOURCE_STEP: Duration = Duration::from_millis(5);

impl Ixgbe {
    /// Takes SWSM: first from other drivers, then from firmware.
    fn take_register(&mut self) -> Result<(), NicError> {
        let csr = &self.csr;
        // The read that finds it free takes it.
        let mut taken = wait_until(&mut *self.bus, "SWSM.SMBI", REGISTER_LIMIT, REGISTER_STEP, || {
            Ok(csr.read(SWSM)? & swsm::SMBI == 0)
        });
        if matches!(taken, Err(NicError::Timeout { .. })) && self.semaphore_may_be_stuck {
            // A driver that crashed has left it; taken away once, as Intel's drivers do.
            self.csr.modify(SWSM, swsm::SMBI | swsm::SWESMBI, 0)?;
            taken = wait_until(&mut *self.bus, "SWSM.SMBI", REGISTER_LIMIT, REGISTER_STEP, || {
                Ok(csr.read(SWSM)? & swsm::SMBI == 0)
            });
        }
        self.semaphore_may_be_stuck = false;
        held(taken, "SWSM.SMBI")?;
        let granted = wait_until(&mut *self.bus, "SWSM.SWESMBI", REGISTER_LIMIT, REGISTER_STEP, || {
            csr.modify(SWSM, 0, swsm::SWESMBI)?;
            Ok(csr.read(SWSM)? & swsm::SWESMBI != 0)
        });
        if granted.is_err() {
            self.give_register()?;
        }
        held(granted, "SWSM.SWESMBI")
    }

    fn give_register(&self) -> Result<(), NicError> {
        self.csr.modify(SWSM, swsm::SMBI | swsm::SWESMBI, 0).map(|_| ())
    }

    /// Takes a resource from the other drivers and firmware.
    fn take(&mut self, mask: u32) -> Result<(), NicError> {
        for _ in 0..RESOURCE_TRIES {
            self.take_register()?;
            let state = self.csr.read(SW_FW_SYNC)?;
            if state & (mask | mask << sync::FIRMWARE_SHIFT) == 0 {
                self.csr.write(SW_FW_SYNC, state | mask);
                return self.give_register();
            }
            self.give_register()?;
            self.bus.sleep(RESOURCE_STEP);
        }
        Err(NicError::Semaphore { what: "SW_FW_SYNC" })
    }

    fn give(&mut self, mask: u32) -> Result<(), NicError> {
        self.take_register()?;
        let state = self.csr.read(SW_FW_SYNC)?;
        self.csr.write(SW_FW_SYNC, state & !mask);
        self.give_register()
    }

    /// Runs `f` while holding a resource.
    pub(super) fn holding<R>(
        &mut self,
        mask: u32,
        f: impl FnOnce(&mut Self) -> Result<R, NicError>,
    ) -> Result<R, NicError> {
        self.take(mask)?;
        let result = f(self);
        self.give(mask)?;
        result
    }
}

/// A time-out means that somebody else has it.
fn held(result: Result<(), NicError>, what: &'static str) -> Result<(), NicError> {
    match result {
        Err(NicError::Timeout { .. }) => Err(NicError::Semaphore { what }),
        other => other,
    }
}
