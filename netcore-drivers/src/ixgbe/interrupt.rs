//! Interrupts: MSI-X with a vector for each queue pair, or one cause register on MSI and the line.

use super::Ixgbe;
use super::regs::{
    EIAC, EIAM, EIAM_EX, EICR, EICS, EIMC, EIMC_EX, EIMS, EIMS_EX, GPIE, IVAR, IVAR_MISC, gpie, interrupt, throttle,
};
use crate::bus::InterruptMode;
use crate::error::NicError;
use crate::nic::{Causes, Settings};

/// An entry of a routing register.
const VALID: u32 = 0x80;
/// Vectors of the part.
const VECTORS: u16 = 64;
/// Causes besides the queues'.
const OTHER: u32 = interrupt::NORMAL & !interrupt::QUEUES;
/// Queue causes on the line and with MSI: both directions on vector 0.
const LINE: u32 = interrupt::NORMAL & !interrupt::QUEUES | 1;

impl Ixgbe {
    pub(super) fn set_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
        settings: &Settings,
    ) -> Result<(), NicError> {
        self.mask_all();
        self.csr.write(EIAC, 0);
        self.csr.write(EIAM, 0);
        self.csr.write(EIAM_EX, 0);
        self.csr.write(EIAM_EX + 4, 0);
        self.csr.flush()?;
        self.interrupts = (mode, vectors);
        self.program_throttle(settings);
        match mode {
            InterruptMode::Polling => {
                self.csr.write(GPIE, 0);
                self.csr.read(EICR)?;
            }
            InterruptMode::Intx | InterruptMode::Msi => {
                self.csr.write(GPIE, gpie::SDP2);
                self.route_queues(settings.queues, |_| 0);
                // Reading the causes masks the queues'.
                self.csr.write(EIAM, interrupt::QUEUES);
                self.csr.read(EICR)?;
                self.csr.write(EIMS, LINE);
            }
            InterruptMode::MsiX => {
                if vectors < settings.queues + 1 || vectors > VECTORS {
                    return Err(NicError::Unsupported { what: "MSI-X with that many vectors" });
                }
                self.enable_messages(settings.queues, vectors - 1);
            }
        }
        self.csr.flush()
    }

    /// The interval, in units of 2.048 µs at 1 and 10 Gbit/s, whose counter is left running.
    pub(super) fn program_throttle(&mut self, settings: &Settings) {
        let mut units = (settings.moderation.nanos() / 2048).min(0x1ff) as u32;
        if units == 0 && settings.features.contains(netcore::Features::LRO) {
            // Merged packets end with the interval.
            units = 1;
        }
        for vector in 0..u32::from(VECTORS) {
            self.csr.write(throttle(vector), units << 3 | 1 << 31);
        }
    }

    /// Sends both sides of queue `q` to vector `vector(q)`.
    pub(super) fn route_queues(&mut self, queues: u16, vector: impl Fn(u16) -> u32) {
        for pair in 0..queues.div_ceil(2) {
            let entry = |queue: u16| {
                let entry = vector(queue) | VALID;
                if queue < queues { entry | entry << 8 } else { 0 }
            };
            self.csr.write(IVAR + 4 * u32::from(pair), entry(2 * pair) | entry(2 * pair + 1) << 16);
        }
    }

    /// Queue pair n on vector n, everything else on `other`.
    fn enable_messages(&mut self, queues: u16, other: u16) {
        self.csr.write(GPIE, gpie::MSIX | gpie::PBA | gpie::OCD | gpie::EIAME | gpie::SDP2);
        self.route_queues(queues, u32::from);
        self.csr.write(IVAR_MISC, (u32::from(other) | VALID) << 8);
        self.csr.write(EIAM_EX, u32::MAX);
        self.csr.write(EIAM_EX + 4, u32::MAX);
        let mask = if queues >= 64 { u64::MAX } else { (1 << queues) - 1 };
        self.csr.write(EIAC, (mask as u32) & interrupt::QUEUES | interrupt::TCP_TIMER);
        self.csr.write(EIMS_EX, mask as u32);
        self.csr.write(EIMS_EX + 4, (mask >> 32) as u32);
        self.csr.write(EIMS, OTHER);
    }

    pub(super) fn acknowledge_interrupt(&mut self, mode: InterruptMode, vector: u16) -> Result<Causes, NicError> {
        if mode == InterruptMode::MsiX {
            // The message has cleared and masked its causes.
            if vector + 1 < self.interrupts.1 {
                self.csr.flush()?;
                let bit = 1 << vector;
                return Ok(Causes { mine: true, receive: bit, transmit: bit, ..Causes::default() });
            }
            // A read of EICS tells the causes and clears none: those of queues are not lost.
            let causes = self.csr.read(EICS)? & !interrupt::QUEUES;
            self.csr.write(EIMC, OTHER);
            self.csr.write(EICR, causes);
            self.csr.flush()?;
            return Ok(Causes { mine: true, ..self.causes(causes) });
        }
        let causes = self.csr.read(EICR)?;
        if causes & interrupt::NORMAL == 0 {
            return Ok(Causes::default());
        }
        self.csr.write(EIMC, LINE);
        self.csr.write(EIMC_EX, 1);
        self.csr.flush()?;
        let queues = if self.queues_in_use >= 64 { u64::MAX } else { (1 << self.queues_in_use) - 1 };
        let queues = if causes & interrupt::QUEUES != 0 { queues } else { 0 };
        Ok(Causes { mine: true, receive: queues, transmit: queues, ..self.causes(causes) })
    }

    fn causes(&self, causes: u32) -> Causes {
        Causes {
            link: causes & (interrupt::LSC | interrupt::SDP2) != 0,
            overrun: causes & interrupt::RX_MISS != 0,
            ..Causes::default()
        }
    }

    pub(super) fn rearm(&mut self, mode: InterruptMode, vector: u16) -> Result<(), NicError> {
        // A cause that came meanwhile interrupts at once, so none is lost.
        match mode {
            InterruptMode::Polling => return Ok(()),
            InterruptMode::MsiX if vector + 1 == self.interrupts.1 => self.csr.write(EIMS, OTHER),
            InterruptMode::MsiX => {
                self.csr.write(EIMS_EX + 4 * u32::from(vector >> 5 & 1), 1 << (vector & 31));
            }
            InterruptMode::Intx | InterruptMode::Msi => self.csr.write(EIMS, LINE),
        }
        self.csr.flush()
    }
}
