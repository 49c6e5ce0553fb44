//! Interrupt causes, routing, masks and throttles (82599 datasheet 7.3, 8.2.3.5).
//!
//! Queue causes are kept per vector, 64 of them; the lower sixteen are bits 15:0 of EICR as well.

use super::map::{
    EIAC, EIAM, EIAM_EX, EICR, EICS, EICS_EX, EIMC, EIMC_EX, EIMS, EIMS_EX, EITR, EITR_HIGH, GPIE, IVAR, IVAR_MISC,
};
use super::{Core, E82599, Event};
use core::time::Duration;
use netcore::Instant;

pub(super) const RX_MISS: u32 = 1 << 17;
pub(super) const LSC: u32 = 1 << 20;
pub(super) const SDP2: u32 = 1 << 26;
/// Causes that are not queues'.
const OTHER: u32 = 0xffff_0000;

const GPIE_MSIX: u32 = 1 << 4;
const GPIE_OCD: u32 = 1 << 5;
const GPIE_EIAME: u32 = 1 << 30;
/// Entry of a routing register: valid.
const VALID: u8 = 0x80;
/// Throttles: those of the virtual functions count, too.
pub(super) const THROTTLES: usize = 129;
const MSI_ENABLE: u32 = 1 << 16;
pub(super) const MSIX_ENABLE: u32 = 1 << 31;

/// EITR of one vector.
#[derive(Clone, Copy, Debug, Default)]
struct Throttle {
    value: u32,
    last: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(super) struct Interrupts {
    /// Causes 31:16.
    causes: u32,
    cause_mask: u32,
    /// Queue causes, a bit for each vector.
    queues: u64,
    queue_mask: u64,
    auto_clear: u32,
    auto_mask: u32,
    queue_auto_mask: u64,
    throttles: [Throttle; THROTTLES],
}

impl Default for Interrupts {
    fn default() -> Self {
        Self {
            causes: 0,
            cause_mask: 0,
            queues: 0,
            queue_mask: 0,
            auto_clear: 0,
            auto_mask: 0,
            queue_auto_mask: 0,
            throttles: [Throttle::default(); THROTTLES],
        }
    }
}

/// The throttle at an offset.
fn throttle_at(offset: u32) -> Option<usize> {
    match offset {
        EITR..0x00880 => Some(((offset - EITR) / 4) as usize),
        EITR_HIGH..0x124a4 => Some(24 + ((offset - EITR_HIGH) / 4) as usize),
        _ => None,
    }
    .filter(|index| *index < THROTTLES)
}

/// Half of a 64-bit set.
const fn half(bits: u64, n: u32) -> u32 {
    (bits >> (32 * n)) as u32
}

impl E82599 {
    fn msix_mode(&self) -> bool {
        self.word(GPIE) & GPIE_MSIX != 0
    }

    /// The routing entry of a queue.
    fn entry(&self, queue: usize, transmit: bool) -> u8 {
        let register = self.word(IVAR + 4 * (queue as u32 / 2));
        (register >> (16 * (queue & 1) + if transmit { 8 } else { 0 })) as u8
    }

    /// The vector of a queue, if it has one.
    pub(super) fn route(&self, queue: usize, transmit: bool) -> Option<usize> {
        let entry = self.entry(queue, transmit);
        (entry & VALID != 0).then_some(usize::from(entry & 0x3f))
    }

    /// Time between two interrupts of a vector.
    pub(super) fn interval(&self, vector: usize) -> Duration {
        let units = self.interrupts.throttles.get(vector).map_or(0, |throttle| throttle.value >> 3 & 0x1ff);
        Duration::from_nanos(u64::from(units) * 2048)
    }

    /// Descriptors of a queue were written back.
    pub(super) fn raise_queue(&mut self, core: &mut Core, queue: usize, transmit: bool) {
        if let Some(vector) = self.route(queue, transmit) {
            self.interrupts.queues |= 1 << vector;
            self.update_interrupts(core);
        }
    }

    /// Something else happened.
    pub(super) fn raise(&mut self, core: &mut Core, causes: u32) {
        self.interrupts.causes |= causes;
        self.update_other(core);
        self.update_interrupts(core);
    }

    fn cause_register(&self) -> u32 {
        self.interrupts.causes & OTHER | (self.interrupts.queues & 0xffff) as u32
    }

    pub(super) fn read_interrupt_register(&mut self, core: &mut Core, offset: u32) -> Option<u32> {
        if let Some(index) = throttle_at(offset) {
            return Some(self.interrupts.throttles[index].value);
        }
        let i = &self.interrupts;
        let ex = |base: u32| (offset - base) / 4;
        Some(match offset {
            // EICS reads as the causes, without clearing any.
            EICS => self.cause_register(),
            EICR => {
                let value = self.cause_register();
                if self.word(GPIE) & GPIE_OCD == 0 {
                    self.interrupts.causes = 0;
                    self.interrupts.queues = 0;
                }
                if !self.msix_mode() {
                    self.interrupts.cause_mask &= !(self.interrupts.auto_mask & OTHER);
                    self.interrupts.queue_mask &= !u64::from(self.interrupts.auto_mask & 0xffff);
                }
                self.update_interrupts(core);
                value
            }
            EIMS => i.cause_mask & OTHER | (i.queue_mask & 0xffff) as u32,
            EIAC => i.auto_clear,
            EIAM => i.auto_mask,
            EIMC | EICS_EX..0x00a98 | EIMC_EX..0x00ab8 => 0,
            EIMS_EX..0x00aa8 => half(i.queue_mask, ex(EIMS_EX)),
            EIAM_EX..0x00ad8 => half(i.queue_auto_mask, ex(EIAM_EX)),
            IVAR..=IVAR_MISC => self.word(offset),
            _ => return None,
        })
    }

    /// Writes one of the interrupt registers; false if it is none.
    pub(super) fn write_interrupt_register(&mut self, core: &mut Core, offset: u32, value: u32) -> bool {
        if let Some(index) = throttle_at(offset) {
            self.check_reserved(core, offset, value, 7 | 7 << 12);
            let throttle = &mut self.interrupts.throttles[index];
            throttle.value = value & 0x0fff_8ff8;
            if value & 1 << 31 == 0 {
                throttle.last = None;
            }
            return true;
        }
        if (IVAR..=IVAR_MISC).contains(&offset) {
            if value & 0x4040_4040 != 0 {
                core.violate("interrupt-route", format!("{offset:#07x} = {value:#010x}: vectors 0 to 63 exist"));
            }
            self.set_word(offset, value);
            return true;
        }
        let wide = |base: u32| u64::from(value) << (8 * (offset - base));
        let queues = u64::from(value & 0xffff);
        let i = &mut self.interrupts;
        match offset {
            EICR => {
                i.causes &= !value;
                i.queues &= !queues;
            }
            EICS => {
                i.causes |= value & OTHER;
                i.queues |= queues;
                self.update_other(core);
            }
            EIMS => {
                i.cause_mask |= value & OTHER;
                i.queue_mask |= queues;
                self.update_other(core);
            }
            EIMC => {
                i.cause_mask &= !value;
                i.queue_mask &= !queues;
            }
            EIAC => i.auto_clear = value,
            EIAM => i.auto_mask = value,
            EICS_EX..0x00a98 => i.queues |= wide(EICS_EX),
            EIMS_EX..0x00aa8 => i.queue_mask |= wide(EIMS_EX),
            EIMC_EX..0x00ab8 => i.queue_mask &= !wide(EIMC_EX),
            EIAM_EX..0x00ad8 => {
                let others = if offset == EIAM_EX { 0xffff_ffff << 32 } else { 0xffff_ffff };
                i.queue_auto_mask = i.queue_auto_mask & others | wide(EIAM_EX);
            }
            _ => return false,
        }
        self.update_interrupts(core);
        true
    }

    /// A cause that is no queue's came, or was unmasked: in MSI-X mode it sends its message.
    fn update_other(&mut self, core: &mut Core) {
        let entry = (self.word(IVAR_MISC) >> 8) as u8;
        if self.uses_msix(core) && self.interrupts.causes & self.interrupts.cause_mask != 0 && entry & VALID != 0 {
            core.message(u16::from(entry & 0x3f));
        }
    }

    fn uses_msix(&self, core: &Core) -> bool {
        self.msix_mode() && core.config.get(0x70) & MSIX_ENABLE != 0
    }

    /// Drives the line or sends messages, not more often than the throttles say.
    pub(super) fn update_interrupts(&mut self, core: &mut Core) {
        if self.uses_msix(core) {
            core.set_line(false);
            let mut ready = self.interrupts.queues & self.interrupts.queue_mask;
            while ready != 0 {
                let vector = ready.trailing_zeros() as usize;
                ready &= ready - 1;
                self.send_message(core, vector);
            }
            return;
        }
        let i = &self.interrupts;
        if i.causes & i.cause_mask == 0 && i.queues & i.queue_mask == 0 {
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

    fn send_message(&mut self, core: &mut Core, vector: usize) {
        if !self.throttle(core, vector) {
            return;
        }
        core.message(vector as u16);
        let bit = 1u64 << vector;
        let clears = vector > 15 || self.interrupts.auto_clear & 1 << vector != 0;
        if clears {
            self.interrupts.queues &= !bit;
        }
        let masks =
            self.interrupts.queue_auto_mask & bit != 0 || vector < 16 && self.interrupts.auto_mask & 1 << vector != 0;
        if self.word(GPIE) & GPIE_EIAME != 0 && masks {
            self.interrupts.queue_mask &= !bit;
        }
    }

    /// True if the vector may interrupt now; otherwise it will be looked at again.
    fn throttle(&mut self, core: &Core, vector: usize) -> bool {
        let interval = self.interval(vector);
        let throttle = &mut self.interrupts.throttles[vector];
        match throttle.last.map(|last| last + interval) {
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
