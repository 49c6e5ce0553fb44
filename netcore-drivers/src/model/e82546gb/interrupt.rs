//! Interrupt causes, mask and throttle (manual 13.4.17 to 13.4.22).

use super::{Core, E82546Gb, Event};

pub(super) const TXDW: u32 = 1 << 0;
pub(super) const TXQE: u32 = 1 << 1;
pub(super) const LSC: u32 = 1 << 2;
pub(super) const RXDMT0: u32 = 1 << 4;
pub(super) const RXO: u32 = 1 << 6;
pub(super) const RXT0: u32 = 1 << 7;
const ASSERTED: u32 = 1 << 31;

/// MSI control word: enabled.
const MSI_ENABLE: u32 = 1 << 16;

impl E82546Gb {
    pub(super) fn raise(&mut self, core: &mut Core, causes: u32) {
        self.icr |= causes;
        self.update_interrupts(core);
    }

    pub(super) fn read_icr(&mut self, core: &mut Core) -> u32 {
        let asserted = if self.icr & self.ims != 0 { ASSERTED } else { 0 };
        let value = self.icr | asserted;
        self.icr = 0;
        self.update_interrupts(core);
        value
    }

    /// Drives the line or sends the message, not more often than ITR says.
    pub(super) fn update_interrupts(&mut self, core: &mut Core) {
        if self.icr & self.ims == 0 {
            core.set_line(false);
            self.timers.cancel(&Event::Interrupt);
            return;
        }
        let interval = u64::from(self.itr) * 256;
        if let Some(last) = self.last_interrupt {
            let free = last.plus_nanos(interval);
            if core.now() < free && !core.line() {
                if !self.timers.is_armed(&Event::Interrupt) {
                    self.timers.arm(free, Event::Interrupt);
                }
                return;
            }
        }
        if core.config.get(0xf0) & MSI_ENABLE != 0 {
            self.last_interrupt = Some(core.now());
            core.message(0);
        } else if !core.line() {
            self.last_interrupt = Some(core.now());
            core.set_line(true);
        }
    }
}
