//! Reset rules and errata.

use super::regs::{
    CTRL, CTRL_DUP, CTRL_EXT, EECD, EXTCNF_CTRL, ICR, IMC, MANC, RCTL, TCTL, ctrl, ctrl_ext, eecd, status, tctl,
};
use super::{Family, Format, Generation};
use crate::bus::{pci, wait_until};
use crate::error::NicError;
use core::time::Duration;

/// MANC: firmware answers ARP requests.
const MANC_ARP_EN: u32 = 1 << 13;
/// EXTCNF_CTRL: software owns the management interface of the PHY.
const MDIO_SW_OWNERSHIP: u32 = 1 << 5;
/// EECD bits 16:15 of the 82574: the NVM is flash.
const EECD_FLASH: u32 = 3 << 15;

/// What a master disable takes at most: the longest PCI Express completion time-out (82574L datasheet 3.1.3.10).
const MASTER_DISABLE: Duration = Duration::from_millis(80);

impl<F: Format> Family<F> {
    /// Stops everything and sets the part to its reset state; interrupts are masked.
    pub(super) fn reset(&mut self) -> Result<(), NicError> {
        self.csr.write(IMC, u32::MAX);
        self.quiesce()?;
        if self.is_82574() {
            self.reset_82574()?;
        } else {
            self.reset_8254x()?;
        }
        let manc = self.csr.read(MANC)?;
        if manc & MANC_ARP_EN != 0 {
            self.csr.write(MANC, manc & !MANC_ARP_EN);
        }
        self.csr.write(IMC, u32::MAX);
        self.csr.read(ICR)?;
        Ok(())
    }

    /// Ends DMA: no descriptor is fetched any more, and those in flight have had their time.
    pub(super) fn quiesce(&mut self) -> Result<(), NicError> {
        self.csr.write(RCTL, 0);
        self.csr.write(TCTL, tctl::PSP);
        self.csr.flush()?;
        // Longer than the longest frame at 10 Mbit/s takes (manual 14.4: "allow time for pending transactions").
        self.bus.sleep(Duration::from_millis(10));
        Ok(())
    }

    fn reset_8254x(&mut self) -> Result<(), NicError> {
        let value = self.csr.read(CTRL)? | ctrl::RST;
        match (self.part.generation, &self.io) {
            // A 64-bit write that a bridge splits is harmless at the duplicate of the register.
            (generation, _) if generation.is_rev3() => self.csr.write(CTRL_DUP, value),
            // These hang if the reset arrives as a memory write on a 64-bit bus: it goes through the I/O window.
            (_, Some(io)) => {
                io.write(0, CTRL);
                io.write(4, value);
            }
            (_, None) => self.csr.write(CTRL, value),
        }
        // The NVM is loaded, which changes the device's state; no access of any kind is allowed meanwhile.
        self.bus.sleep(Duration::from_millis(5));
        self.csr.flush()
    }

    fn reset_82574(&mut self) -> Result<(), NicError> {
        // DMA that is outstanding at a reset can hang the bus, so it is ended first. Past the bound the reset goes on.
        let disabled = self.disable_master();
        let own = self.own_mdio();
        let value = self.csr.read(CTRL)? | ctrl::RST;
        self.csr.write(CTRL, value);
        self.bus.sleep(Duration::from_millis(2));
        if own.is_ok() {
            self.release_mdio()?;
        }
        if self.csr.read(EECD)? & EECD_FLASH == EECD_FLASH {
            self.bus.sleep(Duration::from_micros(10));
            self.csr.modify(CTRL_EXT, 0, ctrl_ext::EE_RST)?;
            self.csr.flush()?;
        }
        let csr = &self.csr;
        let loaded = wait_until(
            &mut *self.bus,
            "automatic load of the NVM",
            Duration::from_millis(10),
            Duration::from_millis(1),
            || Ok(csr.read(EECD)? & eecd::SIZE_OR_AUTO_RD != 0),
        );
        // An NVM without the automatic load is seen by its checksum; the drivers of Intel only note this.
        if let Err(error @ NicError::Removed) = loaded {
            return Err(error);
        }
        // The PHY is configured from the NVM meanwhile and must not be touched.
        self.bus.sleep(Duration::from_millis(25));
        match disabled {
            Err(error @ NicError::Removed) => Err(error),
            // A master that did not stop needs a second reset, after which its transactions are forgotten.
            Err(_) => {
                let value = self.csr.read(CTRL)? | ctrl::RST;
                self.csr.write(CTRL, value);
                self.bus.sleep(Duration::from_millis(27));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Keeps the part from starting transactions, and waits for those it has started (82574 only; the 8254x have no such
    /// bit).
    pub(super) fn disable_master(&mut self) -> Result<(), NicError> {
        self.csr.modify(CTRL, 0, ctrl::GIO_MASTER_DISABLE)?;
        let csr = &self.csr;
        wait_until(&mut *self.bus, "end of DMA", MASTER_DISABLE, Duration::from_micros(100), || {
            Ok(csr.read(super::STATUS)? & status::GIO_MASTER == 0)
        })
    }

    /// Takes the PHY's management interface from firmware (82574).
    pub(super) fn own_mdio(&mut self) -> Result<(), NicError> {
        let csr = &self.csr;
        wait_until(&mut *self.bus, "MDIO ownership", Duration::from_millis(20), Duration::from_millis(2), || {
            csr.modify(EXTCNF_CTRL, 0, MDIO_SW_OWNERSHIP)?;
            Ok(csr.read(EXTCNF_CTRL)? & MDIO_SW_OWNERSHIP != 0)
        })
        .map_err(|error| match error {
            NicError::Timeout { .. } => NicError::Semaphore { what: "EXTCNF_CTRL.MDIO_SW_OWNERSHIP" },
            other => other,
        })
    }

    /// Gives it back.
    pub(super) fn release_mdio(&self) -> Result<(), NicError> {
        self.csr.modify(EXTCNF_CTRL, MDIO_SW_OWNERSHIP, 0).map(|_| ())
    }

    /// PCI-X parts before revision 3 must not read in larger bursts than the bus can take, at most 2 KiB (two errata).
    pub(super) fn limit_pcix_reads(&mut self) -> Result<(), NicError> {
        if !self.pcix || self.part.generation.is_rev3() || self.part.generation == Generation::E82540 {
            return Ok(());
        }
        let Some(at) = pci::find_capability(&mut *self.bus, pci::capability::PCIX)? else { return Ok(()) };
        let word = self.bus.config_read(at)?;
        let status = self.bus.config_read(at + 4)?;
        // Command bits 3:2: 512 bytes << n. Status bits 22:21: the largest n designed for.
        let command = word >> 16 & 0xffff;
        let allowed = (status >> 21 & 3).min(2);
        let wanted = (command >> 2 & 3).min(allowed);
        let command = command & !0xc | wanted << 2;
        self.bus.config_write(at, command << 16 | word & 0xffff)
    }
}
