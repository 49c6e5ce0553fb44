//! The register file: what each offset is, and what it does (82599 datasheet chapter 8).

use super::map::{
    AUTOC, AUTOC2, CORECTL, CTRL, DMATXCTL, EEC, EERD, ESDP, FDIR_FIRST, FDIR_LAST, FWSM, HOLDING, I2CCTL, LINKS, MSCA,
    MSRWD, MTQC, QUEUES, RDRXCTL, READ_ONLY, RSSRK, RTTDCS, RX, RX_HIGH, RXCTRL, SECRXCTRL, SECRXSTAT, SECTXSTAT,
    STATUS, SW_FW_SYNC, SWSM, TX, WUS, bit, queue,
};
use super::semaphore::resource;
use super::{Core, E82599, statistics};

/// Which bits of a register are held.
fn holding(offset: u32) -> Option<u32> {
    HOLDING
        .iter()
        .find(|(first, count, step, _)| {
            offset >= *first && (offset - first).is_multiple_of(*step) && (offset - first) / step < *count
        })
        .map(|(.., bits)| *bits)
}

/// The place of a register that has several: the part keeps addresses of the 82598 alive.
fn canonical(offset: u32) -> u32 {
    match offset {
        // RAL and RAH 0 to 15.
        0x05400..0x05480 => 0x0a200 + (offset - 0x05400),
        // SRRCTL and DCA_RXCTRL 0 to 15.
        0x02100..0x02140 => RX + (offset - 0x02100) / 4 * 0x40 + queue::SRRCTL,
        0x02200..0x02240 => RX + (offset - 0x02200) / 4 * 0x40 + queue::DCA,
        // PSRTYPE 0 to 15, MRQC, RETA, RSSRK.
        0x05480..0x054c0 => 0x0ea00 + (offset - 0x05480),
        0x05818 => 0x0ec80,
        0x05c00..0x05c80 => 0x0eb00 + (offset - 0x05c00),
        0x05c80..0x05ca8 => RSSRK + (offset - 0x05c80),
        other => other,
    }
}

/// Base of the registers of a receive queue.
pub(super) const fn rx(n: usize) -> u32 {
    if n < 64 { RX + 0x40 * n as u32 } else { RX_HIGH + 0x40 * (n as u32 - 64) }
}

/// Base of the registers of a transmit queue.
pub(super) const fn tx(n: usize) -> u32 {
    TX + 0x40 * n as u32
}

/// The queue, and the register in it.
fn queue_register(offset: u32) -> Option<(bool, usize, u32)> {
    let at = offset & 0x3f;
    match offset {
        RX..0x02000 if at < 0x30 => Some((true, ((offset - RX) >> 6) as usize, at)),
        RX_HIGH..0x0e000 if at < 0x30 => Some((true, 64 + ((offset - RX_HIGH) >> 6) as usize, at)),
        TX..0x08000 if at != 0x30 => Some((false, ((offset - TX) >> 6) as usize, at)),
        _ => None,
    }
}

impl E82599 {
    pub(super) fn read_register(&mut self, core: &mut Core, offset: u32) -> u32 {
        let offset = canonical(offset);
        if let Some((receive, n, register)) = queue_register(offset) {
            return self.read_queue(core, receive, n, register, offset);
        }
        if let Some(value) = self.read_interrupt_register(core, offset) {
            return value;
        }
        match offset {
            CTRL => self.read_ctrl(),
            STATUS => u32::from(self.word(CTRL) & bit::GIO_DIS == 0 || core.faults.master_stuck) << 19,
            ESDP => self.read_esdp(core),
            I2CCTL => self.read_i2c(core),
            EEC => self.nvm.read_eec(core),
            EERD => self.nvm.read_eerd(core),
            SWSM => self.read_swsm(core),
            SW_FW_SYNC => self.semaphores.sync(core),
            FWSM => 0,
            LINKS => self.read_links(core),
            AUTOC => self.word(AUTOC) & !bit::RESTART_AN,
            RDRXCTL => self.word(RDRXCTL) | if core.faults.reset_stuck { 0 } else { bit::DMAIDONE },
            SECRXSTAT => self.word(SECRXCTRL) >> 1 & 1,
            SECTXSTAT => 1,
            MSCA => self.read_msca(core),
            MSRWD => self.mdio.data,
            RXCTRL | DMATXCTL | AUTOC2 | MTQC | WUS => self.word(offset),
            FDIR_FIRST..=FDIR_LAST => self.read_director(core, offset),
            _ if self.read_medium(core, offset).is_some() => self.read_medium(core, offset).unwrap_or(0),
            _ if holding(offset).is_some() => self.word(offset),
            _ => {
                if let Some((value, in_order)) = self.statistics.read(offset) {
                    if !in_order {
                        core.violate("counter-pair", format!("{offset:#07x} read before its lower half"));
                    }
                    return value;
                }
                if !READ_ONLY.contains(&offset) {
                    core.violate("unknown-register", format!("read of {offset:#07x}"));
                }
                0
            }
        }
    }

    fn read_queue(&mut self, core: &mut Core, receive: bool, n: usize, register: u32, offset: u32) -> u32 {
        match register {
            queue::HEAD if receive => self.receive.queues[n].head.into(),
            queue::HEAD => self.transmit.queues[n].head.into(),
            queue::BAL | queue::BAH | queue::LEN | queue::DCA | queue::TAIL | queue::CONTROL => self.word(offset),
            queue::SRRCTL | queue::RSCCTL if receive => self.word(offset),
            queue::WBAL | queue::WBAH if !receive => self.word(offset),
            _ => {
                core.violate("unknown-register", format!("read of {offset:#07x}"));
                0
            }
        }
    }

    pub(super) fn write_register(&mut self, core: &mut Core, offset: u32, value: u32) {
        let offset = canonical(offset);
        if let Some((receive, n, register)) = queue_register(offset) {
            return self.write_queue(core, receive, n, register, value);
        }
        if self.write_interrupt_register(core, offset, value) {
            return;
        }
        match offset {
            CTRL => self.write_ctrl(core, value),
            ESDP => self.write_esdp(core, value),
            I2CCTL => self.write_i2c(core, value),
            EEC => self.nvm.write_eec(core, value),
            EERD => self.nvm.write_eerd(core, value),
            SWSM => self.write_swsm(core, value),
            SW_FW_SYNC => self.write_sync(core, value),
            AUTOC | AUTOC2 => self.write_autoc(core, offset, value),
            MSCA => self.write_msca(core, value),
            MSRWD => self.mdio.data = value & 0xffff | self.mdio.data & 0xffff_0000,
            RXCTRL => self.write_rxctrl(core, value),
            DMATXCTL => {
                self.set_word(DMATXCTL, value);
                self.run_transmit(core);
            }
            MTQC => {
                if self.word(RTTDCS) & bit::ARBDIS == 0 {
                    core.violate("arbiter", "MTQC written without RTTDCS.ARBDIS");
                }
                self.check_reserved(core, offset, value, !0xf);
                self.set_word(MTQC, value & 0xf);
            }
            RDRXCTL => {
                self.check_reserved(core, offset, value & !bit::DMAIDONE, !0x06bf_0087);
                self.set_word(RDRXCTL, value & !bit::DMAIDONE);
            }
            FDIR_FIRST..=FDIR_LAST => self.write_director(core, offset, value),
            WUS => {
                let left = self.word(WUS) & !value;
                self.set_word(WUS, left);
            }
            _ => {
                if let Some(bits) = holding(offset) {
                    self.check_reserved(core, offset, value, !bits);
                    self.set_word(offset, value & bits);
                    self.held_changed(core, offset);
                } else if READ_ONLY.contains(&offset) || statistics::is_counter(offset) || offset == LINKS {
                    core.violate("read-only-register", format!("write of {value:#010x} to {offset:#07x}"));
                } else {
                    core.violate("unknown-register", format!("write of {value:#010x} to {offset:#07x}"));
                }
            }
        }
    }

    pub(super) fn check_reserved(&self, core: &mut Core, offset: u32, value: u32, reserved: u32) {
        // All ones to a mask or status register is the usual way to say "everything".
        if value & reserved != 0 && value != u32::MAX {
            core.violate(
                "reserved-bits",
                format!("{offset:#07x} = {value:#010x}, reserved {:#010x}", value & reserved),
            );
        }
    }

    /// Both reset bits clear themselves: the read after a reset shows it.
    fn read_ctrl(&mut self) -> u32 {
        self.word(CTRL)
    }

    fn write_ctrl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, CTRL, value, !(bit::GIO_DIS | bit::LRST | bit::RST));
        if value & (bit::LRST | bit::RST) != 0 {
            return self.reset(core, value & bit::LRST != 0);
        }
        self.set_word(CTRL, value & bit::GIO_DIS);
    }

    fn write_rxctrl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, RXCTRL, value, !3);
        let before = self.word(RXCTRL);
        self.set_word(RXCTRL, value & 3);
        if value & 1 != 0 && before & 1 == 0 {
            if self.word(SECRXCTRL) & 2 == 0 {
                core.violate("security-block", "RXEN set while SECRXCTRL.RX_DIS is off");
            }
            self.check_receive_setup(core);
        }
        if value & 1 == 0 {
            self.receive.stop();
        }
        self.run_receive(core);
    }

    fn write_queue(&mut self, core: &mut Core, receive: bool, n: usize, register: u32, value: u32) {
        let base = if receive { rx(n) } else { tx(n) };
        let offset = base + register;
        let enabled = self.word(base + queue::CONTROL) & bit::ENABLE != 0;
        match register {
            queue::TAIL if receive => return self.write_rdt(core, n, value),
            queue::TAIL => return self.write_tdt(core, n, value),
            queue::CONTROL => return self.write_control(core, receive, n, value),
            queue::DCA => {
                if receive && value & 1 << 12 != 0 {
                    core.violate("reserved-bits", format!("DCA_RXCTRL({n}) bit 12 must be clear"));
                }
                return self.set_word(offset, value);
            }
            _ => {}
        }
        let known = match register {
            queue::BAL | queue::BAH | queue::LEN | queue::HEAD => true,
            queue::SRRCTL | queue::RSCCTL => receive,
            queue::WBAL | queue::WBAH => !receive,
            _ => false,
        };
        if !known {
            return core.violate("unknown-register", format!("write of {value:#010x} to {offset:#07x}"));
        }
        // RDH = TDH = 0 changes nothing while the ring has not moved.
        let head = if receive { self.receive.queues[n].head } else { self.transmit.queues[n].head };
        if enabled && !(register == queue::HEAD && value == u32::from(head)) && value != self.word(offset) {
            core.violate("ring-change-while-enabled", format!("{offset:#07x} = {value:#x}"));
        }
        let kept = match register {
            queue::BAL => {
                if value & 0x7f != 0 {
                    core.violate("ring-alignment", format!("base {value:#x}, multiples of 128 are allowed"));
                }
                value & !0x7f
            }
            queue::LEN => {
                if value & !0xf_ff80 != 0 {
                    core.violate("ring-length", format!("{value:#x} bytes, multiples of 128 below 1 MiB are allowed"));
                }
                value & 0xf_ff80
            }
            queue::HEAD => {
                if value != 0 {
                    core.violate("head-write", format!("{offset:#07x} = {value}; only zero may be written"));
                }
                if receive {
                    self.receive.queues[n].head = value as u16;
                } else {
                    self.transmit.queues[n].start_over(value as u16);
                }
                return;
            }
            queue::SRRCTL => {
                if value >> 25 & 7 != 1 {
                    core.violate("descriptor-type", format!("SRRCTL({n}) = {value:#010x}: not advanced, one buffer"));
                }
                if !(1..=16).contains(&(value & 0x1f)) {
                    core.violate("buffer-size", format!("SRRCTL({n}): {} KiB, 1 to 16 are allowed", value & 0x1f));
                }
                self.check_reserved(core, offset, value, 7 << 5 | 3 << 14 | 0x3f << 16 | 7 << 29);
                value
            }
            queue::RSCCTL => {
                self.check_reserved(core, offset, value, !0xd);
                value & 0xd
            }
            _ => value,
        };
        self.set_word(offset, kept);
    }

    fn write_control(&mut self, core: &mut Core, receive: bool, n: usize, value: u32) {
        let base = if receive { rx(n) } else { tx(n) };
        let offset = base + queue::CONTROL;
        let before = self.word(offset);
        if core.faults.queue_stuck {
            return self.set_word(offset, value & !bit::ENABLE | before & bit::ENABLE);
        }
        // The flush bit clears itself.
        self.set_word(offset, value & !bit::SWFLSH);
        let enabled = value & bit::ENABLE != 0;
        if enabled && before & bit::ENABLE == 0 {
            if self.word(base + queue::LEN) == 0 {
                core.violate("ring-length", format!("queue {n} enabled with a ring of no descriptors"));
            }
            if receive {
                self.check_reserved(core, offset, value, !(bit::ENABLE | bit::SWFLSH | bit::VME | 0x003f_7f7f));
                self.receive.queues[n].hung = false;
                self.check_merging(core, n);
            } else {
                self.check_transmit_enable(core, n, value);
            }
        } else if !enabled && before & bit::ENABLE != 0 {
            if receive {
                self.receive.queues[n].stopped();
            } else {
                self.transmit.queues[n].stopped();
            }
        }
    }

    fn check_transmit_enable(&mut self, core: &mut Core, n: usize, value: u32) {
        if self.word(DMATXCTL) & 1 == 0 {
            core.violate("queue-before-engine", format!("TXDCTL({n}).ENABLE before DMATXCTL.TE"));
        }
        self.check_reserved(core, tx(n) + queue::CONTROL, value, !(bit::ENABLE | bit::SWFLSH | 0x007f_7f7f));
        let (prefetch, write_back) = (value & 0x7f, value >> 16 & 0x7f);
        if prefetch + write_back > 40 {
            core.violate(
                "thresholds",
                format!("TXDCTL({n}): PTHRESH {prefetch} + WTHRESH {write_back}, 40 are allowed"),
            );
        }
        if write_back > 0 && self.word(tx(n) + queue::WBAL) & 1 != 0 {
            core.violate("thresholds", format!("TXDCTL({n}): WTHRESH {write_back} with head write-back"));
        }
        if n >= 64 && self.word(MTQC) == 0 {
            core.violate("queue-outside-mode", format!("transmit queue {n}; MTQC has 64 queues"));
        }
        if self.word(tx(n) + queue::DCA) & 1 << 11 != 0 {
            core.violate("relaxed-ordering", format!("DCA_TXCTRL({n}): write-back may pass data"));
        }
        self.transmit.queues[n].hung = false;
    }

    /// Descriptors in a ring.
    pub(super) fn ring_count(&self, base: u32) -> u16 {
        (self.word(base + queue::LEN) / 16).min(0xffff) as u16
    }

    pub(super) fn queue_enabled(&self, base: u32) -> bool {
        self.word(base + queue::CONTROL) & bit::ENABLE != 0
    }

    /// Device address of a descriptor.
    pub(super) fn descriptor_at(&self, base: u32, index: u16) -> u64 {
        (u64::from(self.word(base + queue::BAL)) | u64::from(self.word(base + queue::BAH)) << 32)
            + u64::from(index) * 16
    }

    /// True if a queue of either direction is enabled.
    pub(super) fn any_queue_enabled(&self) -> bool {
        (0..QUEUES).any(|n| self.queue_enabled(tx(n)) || self.queue_enabled(rx(n)))
    }

    /// A register that holds was written, and something follows from it.
    fn held_changed(&mut self, core: &mut Core, offset: u32) {
        match offset {
            // The analogue part of the line is shared with firmware.
            CORECTL if !self.semaphores.holds(resource::MAC_CSR) => {
                core.violate("semaphore-not-held", "CORECTL written without the semaphore of the MAC's registers");
            }
            RSSRK..0x0eba8 => self.receive.toeplitz = None,
            super::map::HLREG0 => self.link_may_have_changed(core),
            super::map::PCS1GLCTL => self.restart_link(core),
            _ => {}
        }
    }
}
