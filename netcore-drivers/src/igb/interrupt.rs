//! Interrupts: MSI-X with a vector for each queue pair, or one cause register on MSI and the line.

use super::regs::{
    CTRL_EXT, EIAC, EIAM, EICR, EIMC, EIMS, EITR, GPIE, IAM, ICR, IMC, IMS, IVAR_MISC, IVAR0, MSIXBM, ctrl_ext, gpie,
    interrupt,
};
use super::{Generation, Igb};
use crate::bus::InterruptMode;
use crate::error::NicError;
use crate::nic::{Causes, Settings};

/// An entry of a routing register.
const VALID: u32 = 0x80;
/// 82575: causes of EICR.
mod cause_82575 {
    pub(super) const RX: u32 = 1 << 0;
    pub(super) const TX: u32 = 1 << 8;
    pub(super) const OTHER: u32 = 1 << 31;
}

impl Igb {
    pub(super) fn set_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
        settings: &Settings,
    ) -> Result<(), NicError> {
        self.csr.write(IMC, u32::MAX);
        self.csr.write(EIMC, u32::MAX);
        self.csr.write(EIAC, 0);
        self.csr.write(EIAM, 0);
        self.csr.write(IAM, 0);
        self.csr.flush()?;
        self.interrupts = (mode, vectors);
        self.program_throttle(settings);
        match mode {
            InterruptMode::Polling => {
                self.csr.read(ICR)?;
                self.csr.read(EICR)?;
            }
            InterruptMode::Intx | InterruptMode::Msi => {
                self.csr.write(GPIE, gpie::NSICR);
                self.route(settings.queues, |_| 0);
                self.csr.write(IMS, interrupt::NORMAL);
            }
            InterruptMode::MsiX => {
                if vectors < settings.queues + 1 || u32::from(vectors) > self.part.generation.throttles() {
                    return Err(NicError::Unsupported { what: "MSI-X with that many vectors" });
                }
                self.enable_messages(settings.queues, vectors - 1)?;
            }
        }
        self.csr.flush()
    }

    /// The interval in microseconds, whose counter is left running.
    fn program_throttle(&mut self, settings: &Settings) {
        let micros = (settings.moderation.nanos() / 1000).min(0x1fff) as u32;
        let value = micros << 2;
        // 82575: the counter has the interval too.
        let value = if self.part.generation == Generation::I82575 { value | value << 16 } else { value | 1 << 31 };
        for vector in 0..self.part.generation.throttles() {
            self.csr.write(EITR + 4 * vector, value);
        }
    }

    /// Sends both sides of queue `q` to vector `vector(q)`.
    fn route(&mut self, queues: u16, vector: impl Fn(u16) -> u32) {
        if self.part.generation == Generation::I82575 {
            return;
        }
        // 82576: register q mod 8, lower half for queues below 8. I350 and I210: register q / 2.
        let mut registers = [0u32; 8];
        for queue in 0..queues {
            let (register, byte) = if self.part.generation == Generation::I82576 {
                (queue & 7, if queue < 8 { 0 } else { 2 })
            } else {
                (queue >> 1, 2 * (queue & 1))
            };
            let entry = vector(queue) | VALID;
            registers[usize::from(register & 7)] |= (entry | entry << 8) << (8 * byte);
        }
        let used = match self.part.generation {
            Generation::I210 => 2,
            Generation::I350 => 4,
            _ => 8,
        };
        for (index, value) in (0u32..).zip(&registers[..used]) {
            self.csr.write(IVAR0 + 4 * index, *value);
        }
    }

    /// Queue pair n on vector n, everything else on `other`.
    fn enable_messages(&mut self, queues: u16, other: u16) -> Result<(), NicError> {
        let mut causes: u32 = (1 << (u32::from(other) + 1)) - 1;
        if self.part.generation == Generation::I82575 {
            self.csr.modify(CTRL_EXT, 0, ctrl_ext::PBA_CLR | ctrl_ext::EIAME | ctrl_ext::IRCA)?;
            causes = cause_82575::OTHER;
            for queue in 0..u32::from(queues) {
                let mine = (cause_82575::RX | cause_82575::TX) << queue;
                self.csr.write(MSIXBM + 4 * queue, mine);
                causes |= mine;
            }
            self.csr.write(MSIXBM + 4 * u32::from(other), cause_82575::OTHER);
        } else {
            self.csr.write(GPIE, gpie::NSICR | gpie::MSIX_MODE | gpie::EIAME | gpie::PBA);
            self.route(queues, u32::from);
            self.csr.write(IVAR_MISC, (u32::from(other) | VALID) << 8);
        }
        self.csr.write(EIAC, causes);
        self.csr.write(EIAM, causes);
        self.csr.write(EIMS, causes);
        self.csr.write(IMS, interrupt::LSC);
        Ok(())
    }

    /// Bits of EIMS that belong to a vector.
    fn vector_causes(&self, vector: u16) -> u32 {
        if self.part.generation != Generation::I82575 {
            return 1 << (vector & 31);
        }
        if vector + 1 < self.interrupts.1 { (cause_82575::RX | cause_82575::TX) << vector } else { cause_82575::OTHER }
    }

    pub(super) fn acknowledge_interrupt(&mut self, mode: InterruptMode, vector: u16) -> Result<Causes, NicError> {
        if mode == InterruptMode::MsiX {
            // The message has cleared and masked its causes.
            if vector + 1 < self.interrupts.1 {
                self.csr.flush()?;
                let bit = 1 << vector;
                return Ok(Causes { mine: true, receive: bit, transmit: bit, ..Causes::default() });
            }
            let causes = self.csr.read(ICR)?;
            let link = causes & interrupt::LSC != 0;
            return Ok(Causes { mine: true, link, overrun: causes & interrupt::RXO != 0, ..Causes::default() });
        }
        let causes = self.csr.read(ICR)?;
        if causes & interrupt::NORMAL == 0 {
            return Ok(Causes::default());
        }
        self.csr.write(IMC, u32::MAX);
        self.csr.flush()?;
        let queues = (1 << self.queues_in_use) - 1;
        Ok(Causes {
            mine: true,
            receive: if causes & (interrupt::RXDW | interrupt::RXDMT0 | interrupt::RXO) != 0 { queues } else { 0 },
            transmit: if causes & interrupt::TXDW != 0 { queues } else { 0 },
            link: causes & interrupt::LSC != 0,
            overrun: causes & interrupt::RXO != 0,
        })
    }

    pub(super) fn rearm(&mut self, mode: InterruptMode, vector: u16) -> Result<(), NicError> {
        // A cause that came meanwhile interrupts at once, so none is lost.
        match mode {
            InterruptMode::Polling => return Ok(()),
            InterruptMode::MsiX => {
                if vector + 1 == self.interrupts.1 {
                    self.csr.write(IMS, interrupt::LSC);
                }
                self.csr.write(EIMS, self.vector_causes(vector));
            }
            InterruptMode::Intx | InterruptMode::Msi => self.csr.write(IMS, interrupt::NORMAL),
        }
        self.csr.flush()
    }
}
