//! Interrupt causes, routing, masks and throttles (82576 datasheet 7.3, 8.8).

use super::{Core, E82576, Event, registers as reg};
use core::time::Duration;
use netcore::Instant;

pub(super) const TXDW: u32 = 1 << 0;
pub(super) const LSC: u32 = 1 << 2;
pub(super) const RXDMT0: u32 = 1 << 4;
pub(super) const RXO: u32 = 1 << 6;
pub(super) const RXDW: u32 = 1 << 7;
const ASSERTED: u32 = 1 << 31;

const GPIE_NSICR: u32 = 1 << 0;
const GPIE_MSIX_MODE: u32 = 1 << 4;
const GPIE_EIAME: u32 = 1 << 30;
/// Entry of a routing register: valid.
const VALID: u8 = 0x80;
/// Vectors of the part.
pub(super) const VECTORS: usize = 25;
/// MSI control word: enabled.
const MSI_ENABLE: u32 = 1 << 16;

/// EITR of one vector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throttle {
    pub(super) value: u32,
    last: Option<Instant>,
}

impl Throttle {
    fn free(&self) -> Option<Instant> {
        let micros = u64::from(self.value >> 2 & 0x1fff);
        self.last.map(|last| last + Duration::from_micros(micros))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    pub(super) icr: u32,
    pub(super) ims: u32,
    pub(super) eicr: u32,
    pub(super) eims: u32,
    pub(super) eiac: u32,
    pub(super) eiam: u32,
    pub(super) throttles: [Throttle; VECTORS],
}

impl E82576 {
    fn msix_mode(&self) -> bool {
        self.word(reg::GPIE) & GPIE_MSIX_MODE != 0
    }

    /// Where a queue's cause goes: the routing entry, if it is valid.
    fn route(&self, queue: usize, transmit: bool) -> Option<usize> {
        let register = self.word(reg::IVAR0 + 4 * (queue as u32 & 7));
        let byte = if queue >= 8 { 2 } else { 0 } + u32::from(transmit);
        let entry = (register >> (8 * byte)) as u8;
        (entry & VALID != 0).then_some(usize::from(entry & 0x1f)).filter(|vector| *vector < VECTORS)
    }

    /// Descriptors of a queue were written back.
    pub(super) fn raise_queue(&mut self, core: &mut Core, queue: usize, transmit: bool) {
        let Some(vector) = self.route(queue, transmit) else { return };
        if self.msix_mode() {
            self.interrupts.eicr |= 1 << vector;
        } else {
            self.interrupts.icr |= if transmit { TXDW } else { RXDW };
        }
        self.update_interrupts(core);
    }

    /// Something else happened.
    pub(super) fn raise(&mut self, core: &mut Core, causes: u32) {
        self.interrupts.icr |= causes;
        self.route_other();
        self.update_interrupts(core);
    }

    /// In MSI-X mode the old cause register is one cause of the new one.
    fn route_other(&mut self) {
        let entry = (self.word(reg::IVAR_MISC) >> 8) as u8;
        let vector = usize::from(entry & 0x1f);
        if self.msix_mode() && self.interrupts.icr & self.interrupts.ims != 0 && entry & VALID != 0 && vector < VECTORS
        {
            self.interrupts.eicr |= 1 << vector;
        }
    }

    pub(super) fn read_icr(&mut self, core: &mut Core) -> u32 {
        let i = &mut self.interrupts;
        let asserted = if i.icr & i.ims != 0 { ASSERTED } else { 0 };
        let value = i.icr | asserted;
        // Without NSICR a read clears only if it found its own interrupt, or nothing is enabled.
        if self.words[reg::GPIE as usize / 4] & GPIE_NSICR != 0 || asserted != 0 || i.ims == 0 {
            i.icr = 0;
        }
        self.update_interrupts(core);
        value
    }

    pub(super) fn read_eicr(&mut self, core: &mut Core) -> u32 {
        let value = self.interrupts.eicr;
        if !self.msix_mode() {
            self.interrupts.eicr = 0;
            self.update_interrupts(core);
        }
        value
    }

    /// Writes one of the interrupt registers; false if it is none.
    pub(super) fn write_interrupt_register(&mut self, core: &mut Core, offset: u32, value: u32) -> bool {
        let vectors = (1 << VECTORS) - 1;
        if (reg::EITR..reg::EITR + 4 * VECTORS as u32).contains(&offset) {
            self.check_reserved(core, offset, value, 3 | 0xffff << 15);
            let throttle = &mut self.interrupts.throttles[((offset - reg::EITR) / 4) as usize];
            throttle.value = value & 0x7ffc;
            if value & 1 << 31 == 0 {
                throttle.last = None;
            }
            return true;
        }
        if (reg::IVAR0..reg::IVAR0 + 32).contains(&offset) || offset == reg::IVAR_MISC {
            for byte in value.to_le_bytes() {
                if byte & VALID != 0 && usize::from(byte & 0x1f) >= VECTORS || byte & 0x60 != 0 {
                    core.violate("interrupt-route", format!("{offset:#07x}: entry {byte:#04x}, vectors 0 to 24 exist"));
                }
            }
            self.set_word(offset, value);
            return true;
        }
        match offset {
            reg::ICR => self.interrupts.icr &= !value,
            reg::ICS => {
                return {
                    self.raise(core, value & 0x7fff_ffff);
                    true
                };
            }
            reg::IMS => {
                self.interrupts.ims |= value;
                self.route_other();
            }
            reg::IMC => self.interrupts.ims &= !value,
            reg::EICR => self.interrupts.eicr &= !value,
            reg::EICS => self.interrupts.eicr |= value & vectors,
            reg::EIMS => {
                if value != u32::MAX && value & !(vectors | 1 << 30) != 0 {
                    core.violate("reserved-bits", format!("EIMS = {value:#010x}, vectors 0 to 24 exist"));
                }
                self.interrupts.eims |= value & vectors;
            }
            reg::EIMC => self.interrupts.eims &= !value,
            reg::EIAC => self.interrupts.eiac = value & vectors,
            reg::EIAM => self.interrupts.eiam = value & vectors,
            _ => return false,
        }
        self.update_interrupts(core);
        true
    }

    /// Drives the line or sends messages, not more often than the throttles say.
    pub(super) fn update_interrupts(&mut self, core: &mut Core) {
        if self.msix_mode() && core.config.get(0x70) & reg::MSIX_ENABLE != 0 {
            core.set_line(false);
            for vector in 0..VECTORS {
                self.update_vector(core, vector);
            }
            return;
        }
        if self.interrupts.icr & self.interrupts.ims == 0 {
            core.set_line(false);
            return;
        }
        if core.line() || !self.throttle(core, 0) {
            return;
        }
        if core.config.get(0x50) & MSI_ENABLE != 0 {
            core.message(0);
        } else {
            core.set_line(true);
        }
    }

    fn update_vector(&mut self, core: &mut Core, vector: usize) {
        let bit = 1 << vector;
        if self.interrupts.eicr & self.interrupts.eims & bit == 0 || !self.throttle(core, vector) {
            return;
        }
        core.message(vector as u16);
        // What is not cleared by itself stays pending until software clears it, and is not sent again before that.
        if self.interrupts.eiac & bit != 0 {
            self.interrupts.eicr &= !bit;
        }
        if self.word(reg::GPIE) & GPIE_EIAME != 0 && self.interrupts.eiam & bit != 0 {
            self.interrupts.eims &= !bit;
        }
    }

    /// True if the vector may interrupt now; otherwise it will be looked at again.
    fn throttle(&mut self, core: &Core, vector: usize) -> bool {
        let throttle = &mut self.interrupts.throttles[vector];
        match throttle.free() {
            Some(free) if core.now() < free => {
                if !self.timers.is_armed(&Event::Interrupt) {
                    self.timers.arm(free, Event::Interrupt);
                }
                false
            }
            _ => {
                throttle.last = Some(core.now());
                true
            }
        }
    }
}
