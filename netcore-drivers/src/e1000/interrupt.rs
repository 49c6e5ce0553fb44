//! Interrupts: one cause register on the line or MSI, five vectors with MSI-X on the 82574.

use super::regs::{CTRL_EXT, EIAC, ICR, IMC, IMS, IVAR, ctrl_ext, interrupt};
use super::{Family, Format};
use crate::bus::InterruptMode;
use crate::error::NicError;
use crate::nic::{Causes, Settings};

/// Causes of a queue pair with MSI-X.
const fn queue_causes(queue: u16) -> u32 {
    if queue == 0 { interrupt::RXQ0 | interrupt::TXQ0 } else { interrupt::RXQ1 | interrupt::TXQ1 }
}

impl<F: Format> Family<F> {
    pub(super) fn set_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
        settings: &Settings,
    ) -> Result<(), NicError> {
        self.csr.write(IMC, u32::MAX);
        self.csr.flush()?;
        self.interrupts = (mode, vectors);
        match mode {
            InterruptMode::Polling => {
                self.csr.read(ICR)?;
            }
            InterruptMode::Intx | InterruptMode::Msi => {
                self.csr.write(IMS, interrupt::NORMAL);
            }
            InterruptMode::MsiX => {
                if !self.is_82574() || vectors < settings.queues + 1 {
                    return Err(NicError::Unsupported { what: "MSI-X" });
                }
                self.route(settings.queues, vectors - 1)?;
            }
        }
        self.csr.flush()
    }

    /// Queue pair n on vector n, everything else on `other`.
    fn route(&mut self, queues: u16, other: u16) -> Result<(), NicError> {
        let valid = |vector: u16| u32::from(vector) | 8;
        let mut routes = valid(0) | valid(0) << 8 | valid(other) << 16;
        let mut causes = queue_causes(0);
        if queues > 1 {
            routes |= valid(1) << 4 | valid(1) << 12;
            causes |= queue_causes(1);
        }
        // Bit 31: every transmit write-back interrupts, as with the other modes.
        self.csr.write(IVAR, routes | 1 << 31);
        self.csr.write(EIAC, causes);
        self.csr.modify(CTRL_EXT, 0, ctrl_ext::EIAME | ctrl_ext::PBA_CLR)?;
        self.csr.write(IMS, causes | interrupt::OTHER | interrupt::LSC);
        Ok(())
    }

    pub(super) fn acknowledge_interrupt(&mut self, mode: InterruptMode, vector: u16) -> Result<Causes, NicError> {
        if mode == InterruptMode::MsiX && vector + 1 < self.interrupts.1 {
            // Auto-clear took the cause away; it is masked until the queue is empty.
            self.csr.write(IMC, queue_causes(vector));
            self.csr.flush()?;
            let bit = 1 << vector;
            return Ok(Causes { mine: true, receive: bit, transmit: bit, ..Causes::default() });
        }
        let causes = self.csr.read(ICR)?;
        if mode == InterruptMode::MsiX {
            self.csr.write(IMC, interrupt::OTHER);
        } else {
            if causes & interrupt::NORMAL == 0 {
                return Ok(Causes::default());
            }
            self.csr.write(IMC, u32::MAX);
        }
        self.csr.flush()?;
        Ok(Causes {
            mine: true,
            receive: u64::from(causes & (interrupt::RXT0 | interrupt::RXDMT0 | interrupt::RXO) != 0),
            transmit: u64::from(causes & (interrupt::TXDW | interrupt::TXQE) != 0),
            link: causes & (interrupt::LSC | interrupt::RXSEQ) != 0,
            overrun: causes & interrupt::RXO != 0,
        })
    }

    pub(super) fn rearm(&mut self, mode: InterruptMode, vector: u16) -> Result<(), NicError> {
        // A cause that came meanwhile interrupts at once, so none is lost.
        let causes = match mode {
            InterruptMode::Polling => return Ok(()),
            InterruptMode::MsiX if vector + 1 < self.interrupts.1 => queue_causes(vector),
            InterruptMode::MsiX => interrupt::OTHER | interrupt::LSC,
            InterruptMode::Intx | InterruptMode::Msi => interrupt::NORMAL,
        };
        self.csr.write(IMS, causes);
        self.csr.flush()
    }
}
