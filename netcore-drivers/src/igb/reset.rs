//! Reset rules, and what the bus needs.

use super::regs::{
    CTRL, CTRL_EXT, EEMNGCTL, EICR, EIMC, GCR, ICR, IMC, RCTL, STATUS, TCTL, ctrl, ctrl_ext, eecd, gcr, status, tctl,
};
use super::{Generation, Igb};
use crate::bus::{pci, wait_until};
use crate::error::NicError;
use core::time::Duration;

/// What a master disable takes at most: the longest PCI Express completion time-out (82576 datasheet 5.2.3.3).
const MASTER_DISABLE: Duration = Duration::from_millis(80);
/// Offset of device control 2 in the PCI Express capability.
const DEVICE_CONTROL_2: u16 = 0x28;
/// Completion time-out of 16 to 55 ms.
const TIMEOUT_16_MS: u16 = 5;

/// A wait whose end is not needed to go on: only a device that is gone counts.
fn tolerate(result: Result<(), NicError>) -> Result<(), NicError> {
    match result {
        Err(NicError::Timeout { .. }) => Ok(()),
        other => other,
    }
}

impl Igb {
    /// Stops everything and sets the part to its reset state; interrupts are masked.
    pub(super) fn reset(&mut self) -> Result<(), NicError> {
        self.mask_all();
        // DMA that is outstanding at a reset can hang the bus, so it is ended first. Past the bound the reset goes on.
        let disabled = self.disable_master();
        self.csr.write(RCTL, 0);
        self.csr.write(TCTL, tctl::PSP);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_millis(10));
        self.reset_once()?;
        match disabled {
            Err(NicError::Timeout { .. }) => {
                // Transactions that did not end are forgotten at a second reset, at least 1 ms after the first.
                self.reset_once()?;
            }
            other => other?,
        }
        self.mask_all();
        self.csr.read(ICR)?;
        self.csr.read(EICR)?;
        self.semaphore_may_be_stuck = true;
        self.set_completion_timeout()
    }

    fn mask_all(&self) {
        self.csr.write(IMC, u32::MAX);
        self.csr.write(EIMC, u32::MAX);
    }

    fn reset_once(&mut self) -> Result<(), NicError> {
        let value = self.csr.read(CTRL)? | ctrl::RST;
        self.csr.write(CTRL, value);
        // No access meanwhile: the NVM is loaded, which changes the device's state.
        self.bus.sleep(Duration::from_millis(1));
        let (csr, at) = (&self.csr, self.eecd());
        let (limit, step) = (Duration::from_millis(10), Duration::from_millis(1));
        wait_until(&mut *self.bus, "reset", limit, step, || Ok(csr.read(CTRL)? & ctrl::RST == 0))?;
        // A part without the automatic load is seen by its NVM; Intel's drivers only note this.
        tolerate(wait_until(&mut *self.bus, "automatic load of the NVM", limit, step, || {
            Ok(csr.read(at)? & eecd::AUTO_RD != 0)
        }))?;
        self.wait_configured()
    }

    /// Firmware configures the PHY after a reset, and it must not be touched meanwhile. Without firmware the bit may never
    /// come.
    pub(super) fn wait_configured(&mut self) -> Result<(), NicError> {
        let done = 1 << (18 + u32::from(self.port));
        let csr = &self.csr;
        tolerate(wait_until(
            &mut *self.bus,
            "configuration of the PHY",
            Duration::from_millis(100),
            Duration::from_millis(1),
            || Ok(csr.read(EEMNGCTL)? & done != 0),
        ))
    }

    /// Keeps the part from starting transactions, and waits for those it has started.
    pub(super) fn disable_master(&mut self) -> Result<(), NicError> {
        self.csr.modify(CTRL, 0, ctrl::GIO_MASTER_DISABLE)?;
        let csr = &self.csr;
        wait_until(&mut *self.bus, "end of DMA", MASTER_DISABLE, Duration::from_micros(100), || {
            Ok(csr.read(STATUS)? & status::GIO_MASTER == 0)
        })
    }

    /// Lets it start transactions again (a reset does not).
    pub(super) fn enable_master(&mut self) -> Result<(), NicError> {
        self.csr.modify(CTRL, ctrl::GIO_MASTER_DISABLE, 0).map(|_| ())
    }

    /// 82575 and 82576 can come up with a completion time-out that is too short, and must not ask twice.
    fn set_completion_timeout(&mut self) -> Result<(), NicError> {
        if self.part.generation > Generation::I82576 {
            return Ok(());
        }
        let mut value = self.csr.read(GCR)? & !(gcr::RESEND | gcr::NO_SNOOP);
        if value & gcr::TIMEOUT == 0 {
            if value & gcr::CAP_VER2 == 0 {
                value |= gcr::TIMEOUT_10_MS;
            } else if let Some(at) = pci::find_capability(&mut *self.bus, pci::capability::EXPRESS)? {
                let control = pci::read_u16(&mut *self.bus, at + DEVICE_CONTROL_2)?;
                pci::write_u16(&mut *self.bus, at + DEVICE_CONTROL_2, control & !0xf | TIMEOUT_16_MS)?;
            }
        }
        self.csr.write(GCR, value);
        Ok(())
    }

    /// Tells firmware that a driver is here, or not.
    pub(super) fn announce(&mut self, loaded: bool) -> Result<(), NicError> {
        let set = if loaded { ctrl_ext::DRV_LOAD } else { 0 };
        self.csr.modify(CTRL_EXT, ctrl_ext::DRV_LOAD, set).map(|_| ())
    }
}
