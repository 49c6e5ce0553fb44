//! Reset rules (82599 datasheet 4.2, 4.6.3, 5.2.5.3.2).

use super::regs::{
    CTRL, CTRL_EXT, EEC, EICR, EIMC, EIMC_EX, GCR_EXT, HLREG0, RDRXCTL, RXCTRL, SECRXCTRL, SECRXSTAT, STATUS, ctrl,
    ctrl_ext, dctl, eec, hlreg0, rdrxctl, receive_queue, rx, status, transmit_queue, tx,
};
use super::{Ixgbe, QUEUES, TRANSMIT_QUEUES};
use crate::bus::{pci, wait_until};
use crate::error::NicError;
use core::time::Duration;

/// What a master disable takes at most: the longest PCI Express completion time-out.
const MASTER_DISABLE: Duration = Duration::from_millis(80);
const MASTER_STEP: Duration = Duration::from_micros(100);
/// Word of the PCI Express capability with "transactions pending", and that bit.
const DEVICE_STATUS: u16 = 0x0a;
const PENDING: u16 = 1 << 5;
/// Offset of device control 2 in that capability; completion time-out of 16 to 55 ms.
const DEVICE_CONTROL_2: u16 = 0x28;
const TIMEOUT_16_MS: u16 = 5;
/// SECRXCTRL: hold the security block. SECRXSTAT: it is empty.
const RX_DIS: u32 = 1 << 1;
const READY: u32 = 1;
const SECURITY_LIMIT: Duration = Duration::from_millis(40);
/// GCR_EXT: forget what is in the buffers.
const BUFFERS_CLEAR: u32 = 1 << 30;

/// A wait whose end is not needed to go on: only a device that is gone counts.
pub(super) fn tolerate(result: Result<(), NicError>) -> Result<(), NicError> {
    match result {
        Err(NicError::Timeout { .. }) => Ok(()),
        other => other,
    }
}

impl Ixgbe {
    pub(super) fn mask_all(&self) {
        self.csr.write(EIMC, u32::MAX);
        self.csr.write(EIMC_EX, u32::MAX);
        self.csr.write(EIMC_EX + 4, u32::MAX);
    }

    /// Stops everything and sets the part to its reset state; interrupts are masked. `with_link`: the link, too.
    pub(super) fn reset(&mut self, with_link: bool) -> Result<(), NicError> {
        self.mask_all();
        self.csr.flush()?;
        // Firmware, or a driver before this one, may have left queues on.
        self.disable_receive()?;
        for queue in 0..TRANSMIT_QUEUES {
            self.csr.write(transmit_queue(queue) + tx::TXDCTL, dctl::SWFLSH);
        }
        for queue in 0..QUEUES {
            let at = receive_queue(queue) + rx::RXDCTL;
            let value = self.csr.read(at)?;
            self.csr.write(at, value & !dctl::ENABLE | dctl::SWFLSH);
        }
        self.csr.flush()?;
        self.bus.sleep(Duration::from_millis(2));
        let stopped = match self.disable_master() {
            Err(NicError::Timeout { .. }) => false,
            other => {
                other?;
                true
            }
        };
        self.reset_once(with_link)?;
        if !stopped {
            // Transactions that did not end are forgotten at a second reset, with the transmit buffers emptied before it.
            self.empty_buffers()?;
            self.reset_once(with_link)?;
        }
        self.mask_all();
        self.csr.read(EICR)?;
        self.semaphore_may_be_stuck = true;
        self.set_completion_timeout()
    }

    fn reset_once(&mut self, with_link: bool) -> Result<(), NicError> {
        let value = self.csr.read(CTRL)? | if with_link { ctrl::LRST } else { ctrl::RST };
        self.csr.write(CTRL, value);
        let csr = &self.csr;
        // Both bits clear themselves. Nothing else may be touched for a millisecond, and the NVM is loaded after ten.
        wait_until(&mut *self.bus, "reset", Duration::from_micros(10), Duration::from_micros(1), || {
            Ok(csr.read(CTRL)? & (ctrl::LRST | ctrl::RST) == 0)
        })?;
        self.bus.sleep(Duration::from_millis(50));
        let csr = &self.csr;
        let (limit, step) = (Duration::from_millis(10), Duration::from_millis(1));
        // A part without the automatic load is seen by its NVM.
        tolerate(wait_until(&mut *self.bus, "automatic load of the NVM", limit, step, || {
            Ok(csr.read(EEC)? & eec::AUTO_RD != 0)
        }))?;
        wait_until(&mut *self.bus, "start of DMA", limit, step, || Ok(csr.read(RDRXCTL)? & rdrxctl::DMAIDONE != 0))
    }

    /// Keeps the part from starting transactions, and waits for those it has started.
    fn disable_master(&mut self) -> Result<(), NicError> {
        self.csr.modify(CTRL, 0, ctrl::GIO_DISABLE)?;
        let csr = &self.csr;
        let master = wait_until(&mut *self.bus, "end of DMA", MASTER_DISABLE, MASTER_STEP, || {
            Ok(csr.read(STATUS)? & status::GIO_MASTER == 0)
        });
        let Err(error @ NicError::Timeout { .. }) = master else { return master };
        self.pending_ends().and(Err(error))
    }

    /// Waits until configuration space says that no transaction is pending.
    fn pending_ends(&mut self) -> Result<(), NicError> {
        let Some(at) = pci::find_capability(&mut *self.bus, pci::capability::EXPRESS)? else { return Ok(()) };
        for _ in 0..MASTER_DISABLE.as_micros() / MASTER_STEP.as_micros() {
            if pci::read_u16(&mut *self.bus, at + DEVICE_STATUS)? & PENDING == 0 {
                break;
            }
            self.bus.sleep(MASTER_STEP);
        }
        Ok(())
    }

    /// Empties the transmit buffers of a part whose master did not stop: in loopback nothing leaves.
    fn empty_buffers(&mut self) -> Result<(), NicError> {
        let mac = self.csr.read(HLREG0)?;
        self.csr.write(HLREG0, mac | hlreg0::LPBK);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_millis(3));
        self.pending_ends()?;
        let control = self.csr.read(GCR_EXT)?;
        self.csr.write(GCR_EXT, control | BUFFERS_CLEAR);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_micros(20));
        self.csr.write(GCR_EXT, control);
        self.csr.write(HLREG0, mac);
        self.csr.flush()
    }

    /// Runs `change` while the security block in front of the receive path is held: otherwise half a frame may stay in it.
    fn with_security_block(&mut self, change: impl FnOnce(&mut Self)) -> Result<(), NicError> {
        self.csr.modify(SECRXCTRL, 0, RX_DIS)?;
        let csr = &self.csr;
        tolerate(wait_until(
            &mut *self.bus,
            "the security block",
            SECURITY_LIMIT,
            Duration::from_micros(1000),
            || Ok(csr.read(SECRXSTAT)? & READY != 0),
        ))?;
        change(self);
        self.csr.modify(SECRXCTRL, RX_DIS, 0)?;
        self.csr.flush()
    }

    pub(super) fn enable_receive(&mut self) -> Result<(), NicError> {
        self.with_security_block(|this| this.csr.write(RXCTRL, 1))
    }

    pub(super) fn disable_receive(&mut self) -> Result<(), NicError> {
        if self.csr.read(RXCTRL)? & 1 == 0 {
            return Ok(());
        }
        self.with_security_block(|this| this.csr.write(RXCTRL, 0))
    }

    /// The part can come up with a completion time-out that is too short.
    fn set_completion_timeout(&mut self) -> Result<(), NicError> {
        let Some(at) = pci::find_capability(&mut *self.bus, pci::capability::EXPRESS)? else { return Ok(()) };
        let control = pci::read_u16(&mut *self.bus, at + DEVICE_CONTROL_2)?;
        if control & 0xf == TIMEOUT_16_MS {
            return Ok(());
        }
        pci::write_u16(&mut *self.bus, at + DEVICE_CONTROL_2, control & !0xf | TIMEOUT_16_MS)
    }

    /// Tells firmware that a driver is here, or not.
    pub(super) fn announce(&mut self, loaded: bool) -> Result<(), NicError> {
        let set = if loaded { ctrl_ext::DRV_LOAD } else { 0 };
        self.csr.modify(CTRL_EXT, ctrl_ext::DRV_LOAD, set).map(|_| ())
    }
}
