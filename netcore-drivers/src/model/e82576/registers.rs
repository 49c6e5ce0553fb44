//! The register file: what each offset is, and what it does (82576 datasheet chapter 8).

use super::{Core, E82576, statistics};

/// Bytes of BAR 0.
pub(super) const WINDOW: u32 = 128 << 10;
/// Queues in each direction.
pub(super) const QUEUES: usize = 16;

pub(super) const CTRL: u32 = 0x00000;
pub(super) const STATUS: u32 = 0x00008;
pub(super) const EECD: u32 = 0x00010;
pub(super) const EERD: u32 = 0x00014;
pub(super) const CTRL_EXT: u32 = 0x00018;
pub(super) const MDIC: u32 = 0x00020;
pub(super) const SCTL: u32 = 0x00024;
pub(super) const FCAL: u32 = 0x00028;
pub(super) const FCAH: u32 = 0x0002c;
pub(super) const FCT: u32 = 0x00030;
pub(super) const VET: u32 = 0x00038;
pub(super) const ICR: u32 = 0x000c0;
pub(super) const ICS: u32 = 0x000c8;
pub(super) const IMS: u32 = 0x000d0;
pub(super) const IMC: u32 = 0x000d8;
pub(super) const IAM: u32 = 0x000e0;
pub(super) const RCTL: u32 = 0x00100;
pub(super) const FCTTV: u32 = 0x00170;
pub(super) const TCTL: u32 = 0x00400;
pub(super) const EEMNGCTL: u32 = 0x01010;
pub(super) const GPIE: u32 = 0x01514;
pub(super) const EICS: u32 = 0x01520;
pub(super) const EIMS: u32 = 0x01524;
pub(super) const EIMC: u32 = 0x01528;
pub(super) const EIAC: u32 = 0x0152c;
pub(super) const EIAM: u32 = 0x01530;
pub(super) const EICR: u32 = 0x01580;
pub(super) const EITR: u32 = 0x01680;
pub(super) const IVAR0: u32 = 0x01700;
pub(super) const IVAR_MISC: u32 = 0x01740;
pub(super) const FCRTL: u32 = 0x02160;
pub(super) const FCRTH: u32 = 0x02168;
pub(super) const RXPBS: u32 = 0x02404;
pub(super) const FCRTV: u32 = 0x02460;
pub(super) const TXPBS: u32 = 0x03404;
pub(super) const DTXTCPFLGL: u32 = 0x0359c;
pub(super) const DTXTCPFLGH: u32 = 0x035a0;
pub(super) const PCS_CFG0: u32 = 0x04200;
pub(super) const PCS_LCTL: u32 = 0x04208;
pub(super) const PCS_LSTAT: u32 = 0x0420c;
pub(super) const PCS_ANADV: u32 = 0x04218;
pub(super) const PCS_LPAB: u32 = 0x0421c;
pub(super) const RXCSUM: u32 = 0x05000;
pub(super) const RLPML: u32 = 0x05004;
pub(super) const RFCTL: u32 = 0x05008;
pub(super) const MTA: u32 = 0x05200;
pub(super) const RAL: u32 = 0x05400;
pub(super) const VFTA: u32 = 0x05600;
pub(super) const MRQC: u32 = 0x05818;
pub(super) const VMOLR: u32 = 0x05ad0;
pub(super) const GCR: u32 = 0x05b00;
pub(super) const FACTPS: u32 = 0x05b30;
pub(super) const SWSM: u32 = 0x05b50;
pub(super) const FWSM: u32 = 0x05b54;
pub(super) const SW_FW_SYNC: u32 = 0x05b5c;
pub(super) const WUS: u32 = 0x05810;
pub(super) const RETA: u32 = 0x05c00;
pub(super) const RSSRK: u32 = 0x05c80;
/// Receive queues, 0x40 apart.
pub(super) const RX: u32 = 0x0c000;
/// Transmit queues, 0x40 apart.
pub(super) const TX: u32 = 0x0e000;

/// Registers of a queue, from its base.
pub(super) mod queue {
    pub(crate) const BAL: u32 = 0x00;
    pub(crate) const BAH: u32 = 0x04;
    pub(crate) const LEN: u32 = 0x08;
    pub(crate) const SRRCTL: u32 = 0x0c;
    pub(crate) const HEAD: u32 = 0x10;
    pub(crate) const DCA: u32 = 0x14;
    pub(crate) const TAIL: u32 = 0x18;
    pub(crate) const CONTROL: u32 = 0x28;
    pub(crate) const RQDPC: u32 = 0x30;
    pub(crate) const WBAL: u32 = 0x38;
    pub(crate) const WBAH: u32 = 0x3c;
}

pub(super) const CTRL_FD: u32 = 1 << 0;
pub(super) const CTRL_GIO_DIS: u32 = 1 << 2;
pub(super) const CTRL_SLU: u32 = 1 << 6;
pub(super) const CTRL_SPEED_SHIFT: u32 = 8;
pub(super) const CTRL_FRCSPD: u32 = 1 << 11;
pub(super) const CTRL_FRCDPX: u32 = 1 << 12;
pub(super) const CTRL_RST: u32 = 1 << 26;
pub(super) const CTRL_RFCE: u32 = 1 << 27;
pub(super) const CTRL_TFCE: u32 = 1 << 28;
pub(super) const CTRL_VME: u32 = 1 << 30;
pub(super) const CTRL_PHY_RST: u32 = 1 << 31;
/// Bits 1, 5:4, 7, 10, 17:13, 25:24 and 29.
const CTRL_RESERVED: u32 = 1 << 1 | 3 << 4 | 1 << 7 | 1 << 10 | 0x1f << 13 | 3 << 24 | 1 << 29;

pub(super) const RCTL_EN: u32 = 1 << 1;
pub(super) const RCTL_SBP: u32 = 1 << 2;
pub(super) const RCTL_UPE: u32 = 1 << 3;
pub(super) const RCTL_MPE: u32 = 1 << 4;
pub(super) const RCTL_LPE: u32 = 1 << 5;
pub(super) const RCTL_BAM: u32 = 1 << 15;
pub(super) const RCTL_VFE: u32 = 1 << 18;
pub(super) const RCTL_SECRC: u32 = 1 << 26;
/// Bits 0, 11:8, 14, 21, 25:24 and 31:27.
const RCTL_RESERVED: u32 = 1 | 0xf << 8 | 1 << 14 | 1 << 21 | 3 << 24 | 0x1f << 27;

pub(super) const TCTL_EN: u32 = 1 << 1;
/// Bits 0, 2, 23:22, and 31:26 but for those that are one at reset.
const TCTL_RESERVED: u32 = 1 | 1 << 2;

pub(super) const CONTROL_ENABLE: u32 = 1 << 25;
/// Thresholds, enable, flush, priority.
const RXDCTL_BITS: u32 = 0x1f | 0x1f << 8 | 0x1f << 16 | 3 << 25;
const TXDCTL_BITS: u32 = RXDCTL_BITS | 1 << 27;
const WTHRESH_SHIFT: u32 = 16;

pub(super) const RXCSUM_IPOFL: u32 = 1 << 8;
pub(super) const RXCSUM_TUOFL: u32 = 1 << 9;
pub(super) const RXCSUM_CRCOFL: u32 = 1 << 11;
pub(super) const RXCSUM_PCSD: u32 = 1 << 13;
pub(super) const RFCTL_IPV6_EX_DIS: u32 = 1 << 16;
pub(super) const SRRCTL_DROP_EN: u32 = 1 << 31;

/// MSI-X control in configuration space: enabled.
pub(super) const MSIX_ENABLE: u32 = 1 << 31;

/// Registers that hold what is written: first offset, how many, distance, bits that exist. Writing others is a violation.
const HOLDING: &[(u32, u32, u32, u32)] = &[
    (SCTL, 1, 4, u32::MAX),
    (FCAL, 1, 4, u32::MAX),
    (FCAH, 1, 4, 0xffff),
    (FCT, 1, 4, 0xffff),
    (VET, 1, 4, u32::MAX),
    (IAM, 1, 4, u32::MAX),
    (FCTTV, 1, 4, 0xffff),
    // TCTL_EXT, TIPG, LEDCTL.
    (0x00404, 1, 4, 0x000f_fc00),
    (0x00410, 1, 4, 0x3fff_ffff),
    (0x00e00, 1, 4, u32::MAX),
    (EEMNGCTL, 1, 4, u32::MAX),
    (GPIE, 1, 4, 0xc000_0f91),
    (FCRTL, 1, 4, 0x8000_fff0),
    (FCRTH, 1, 4, 0xfff0),
    (RXPBS, 1, 4, 0x8000_007f),
    (FCRTV, 1, 4, 0xffff),
    (TXPBS, 1, 4, 0x7f),
    // DTXSWC, DTXMXSZRQ, DTXCTL.
    (0x03500, 1, 4, u32::MAX),
    (0x03540, 1, 4, 0xfff),
    (0x03590, 1, 4, u32::MAX),
    (DTXTCPFLGL, 1, 4, 0x0fff_0fff),
    (DTXTCPFLGH, 1, 4, 0x0fff),
    (PCS_CFG0, 1, 4, 0x8),
    (PCS_LCTL, 1, 4, 0x0fff_ffff),
    (PCS_ANADV, 1, 4, 0xffff),
    (RXCSUM, 1, 4, 0x3fff),
    (RLPML, 1, 4, 0x3fff),
    (RFCTL, 1, 4, 0x007f_ffff),
    (MTA, 128, 4, u32::MAX),
    // PSRTYPE.
    (0x05480, 8, 4, u32::MAX),
    (VFTA, 128, 4, u32::MAX),
    // WUC, WUFC, IPAV, IP4AT, WUPL.
    (0x05800, 1, 4, 0x1f),
    (0x05808, 1, 4, 0xf_80ff),
    (0x05838, 1, 4, u32::MAX),
    (0x05840, 4, 8, u32::MAX),
    (MRQC, 1, 4, 0x01ff_0007),
    // VT_CTL, MANC.
    (0x0581c, 1, 4, u32::MAX),
    (0x05820, 1, 4, u32::MAX),
    (VMOLR, 8, 4, 0xfd03_3fff),
    (GCR, 1, 4, u32::MAX),
    // 5-tuple and SYN filters, immediate interrupts: SAQF, DAQF, SPQF, FTQF, SYNQF, IMIR, IMIREXT, IMIRVP.
    (0x05980, 8, 4, u32::MAX),
    (0x059a0, 8, 4, u32::MAX),
    (0x059c0, 8, 4, u32::MAX),
    (0x059e0, 8, 4, u32::MAX),
    (0x055fc, 1, 4, u32::MAX),
    (0x05a80, 8, 4, u32::MAX),
    (0x05aa0, 8, 4, u32::MAX),
    (0x05ac0, 1, 4, u32::MAX),
    // DCA_ID, DCA_CTRL.
    (0x05b70, 1, 4, u32::MAX),
    (0x05b74, 1, 4, 0x1f),
    (RETA, 32, 4, 0x0f0f_0f0f),
    (RSSRK, 10, 4, u32::MAX),
    // ETQF.
    (0x05cb0, 8, 4, u32::MAX),
    // UTA.
    (0x0a000, 128, 4, u32::MAX),
    // Virtual functions: VFRE, VFTE, WVBR, QDE, VLVF, VMVIR, mailboxes.
    (0x00c8c, 1, 4, 0xff),
    (0x00c90, 1, 4, 0xff),
    (0x00c40, 8, 4, 0xff),
    (0x00c00, 8, 4, 0xff),
    (0x00800, 128, 4, u32::MAX),
    (0x05d00, 32, 4, u32::MAX),
    (0x03700, 8, 4, u32::MAX),
    // Time stamps: TSYNCRXCTL .. TSSDP.
    (0x0b600, 32, 4, u32::MAX),
    (0x05f50, 1, 4, u32::MAX),
];

/// Registers that only read.
const READ_ONLY: &[u32] = &[STATUS, PCS_LSTAT, PCS_LPAB, FACTPS, FWSM];

/// Which bits of a register are held.
fn holding(offset: u32) -> Option<u32> {
    if (RAL..RAL + 128).contains(&offset) || (0x054e0..0x05520).contains(&offset) {
        return Some(if offset & 4 == 0 { u32::MAX } else { 0x83fc_ffff });
    }
    HOLDING
        .iter()
        .find(|(first, count, step, _)| {
            offset >= *first && (offset - first).is_multiple_of(*step) && (offset - first) / step < *count
        })
        .map(|(.., bits)| *bits)
}

/// The place of a register that has several: queues 0 to 3 and the interrupt registers of older parts.
fn canonical(offset: u32) -> u32 {
    match offset {
        0x02800..0x02c00 if offset & 0xff < 0x40 => RX + (offset >> 8 & 3) * 0x40 + (offset & 0x3f),
        0x03800..0x03c00 if offset & 0xff < 0x40 => TX + (offset >> 8 & 3) * 0x40 + (offset & 0x3f),
        0x01500 => ICR,
        0x01504 => ICS,
        0x01508 => IMS,
        0x0150c => IMC,
        0x01510 => IAM,
        other => other,
    }
}

/// The queue, and the register in it.
fn queue_register(offset: u32) -> Option<(bool, usize, u32)> {
    let receive = (RX..RX + 0x400).contains(&offset);
    let transmit = (TX..TX + 0x400).contains(&offset);
    (receive || transmit).then_some((receive, (offset >> 6 & 0xf) as usize, offset & 0x3f))
}

impl E82576 {
    pub(super) fn read_register(&mut self, core: &mut Core, offset: u32) -> u32 {
        let offset = canonical(offset);
        if let Some((receive, n, register)) = queue_register(offset) {
            return self.read_queue(core, receive, n, register, offset);
        }
        match offset {
            CTRL => self.ctrl,
            STATUS => self.status(core),
            EECD => self.nvm.read_eecd(core),
            EERD => self.nvm.read_eerd(core),
            CTRL_EXT => self.ctrl_ext,
            MDIC => self.read_mdic(core),
            ICR => self.read_icr(core),
            IMS => self.interrupts.ims,
            EIMS => self.interrupts.eims,
            EIAC => self.interrupts.eiac,
            EIAM => self.interrupts.eiam,
            EICR => self.read_eicr(core),
            ICS | IMC | EICS | EIMC => 0,
            _ if (EITR..EITR + 100).contains(&offset) => {
                self.interrupts.throttles[((offset - EITR) / 4) as usize].value
            }
            _ if (IVAR0..IVAR0 + 32).contains(&offset) || offset == IVAR_MISC || offset == WUS => self.word(offset),
            RCTL => self.rctl,
            TCTL => self.tctl,
            PCS_LSTAT => self.read_pcs_status(),
            PCS_LPAB => self.read_pcs_partner(core),
            FACTPS | FWSM => 0,
            SWSM => self.read_swsm(core),
            SW_FW_SYNC => self.semaphores.sync(core),
            _ if holding(offset).is_some() => self.word(offset),
            _ => {
                if statistics::is_counter(offset) {
                    let (value, in_order) = self.counters.read(offset);
                    if !in_order {
                        core.violate("counter-pair", format!("{offset:#07x} read before its lower half"));
                    }
                    return value;
                }
                core.violate("unknown-register", format!("read of {offset:#07x}"));
                0
            }
        }
    }

    fn read_queue(&mut self, core: &mut Core, receive: bool, n: usize, register: u32, offset: u32) -> u32 {
        match register {
            queue::HEAD if receive => self.receive.queues[n].head.into(),
            queue::HEAD => self.transmit.queues[n].head.into(),
            queue::RQDPC if receive => core::mem::take(&mut self.receive.queues[n].dropped),
            queue::BAL | queue::BAH | queue::LEN | queue::DCA | queue::TAIL | queue::CONTROL => self.word(offset),
            queue::SRRCTL if receive => self.word(offset),
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
        match offset {
            CTRL => self.write_ctrl(core, value),
            EECD => self.nvm.write_eecd(core, value),
            EERD => self.nvm.write_eerd(core, value),
            CTRL_EXT => {
                let fixed = 3 << 22;
                self.check_reserved(core, offset, value, 1 << 29 | 1 << 30 | 1 << 31);
                self.ctrl_ext = value & !fixed | self.ctrl_ext & fixed;
            }
            MDIC => self.write_mdic(core, value),
            RCTL => self.write_rctl(core, value),
            TCTL => self.write_tctl(core, value),
            SWSM => self.write_swsm(core, value),
            SW_FW_SYNC => self.write_sync(core, value),
            WUS => {
                let left = self.word(WUS) & !value;
                self.set_word(WUS, left);
            }
            RXPBS | TXPBS if (self.rctl & RCTL_EN) | (self.tctl & TCTL_EN) != 0 => {
                core.violate("ring-change-while-enabled", "the packet buffer was divided anew");
            }
            _ if self.write_interrupt_register(core, offset, value) => {}
            _ => {
                if let Some(bits) = holding(offset) {
                    self.check_reserved(core, offset, value, !bits);
                    self.set_word(offset, value & bits);
                    if (RSSRK..RSSRK + 40).contains(&offset) {
                        self.receive.toeplitz = None;
                    }
                    if offset == PCS_LCTL {
                        self.pcs_restarted(core);
                    }
                } else if READ_ONLY.contains(&offset) || statistics::is_counter(offset) {
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

    fn write_ctrl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, CTRL, value, CTRL_RESERVED);
        if value & CTRL_RST != 0 {
            self.reset(core);
            return;
        }
        let before = self.ctrl;
        self.ctrl = value & !CTRL_RESERVED;
        if value & CTRL_PHY_RST != 0 && before & CTRL_PHY_RST == 0 {
            self.phy_hardware_reset(core);
        } else if value & CTRL_PHY_RST == 0 && before & CTRL_PHY_RST != 0 {
            self.restart_negotiation(core);
        }
        if (before ^ value) & (CTRL_SLU | CTRL_FRCSPD | CTRL_FRCDPX) != 0 {
            self.link_may_have_changed(core);
        }
    }

    fn write_rctl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, RCTL, value, RCTL_RESERVED);
        let before = self.rctl;
        self.rctl = value & !RCTL_RESERVED;
        if self.rctl & RCTL_EN != 0 && before & RCTL_EN == 0 && self.word(RFCTL) & RFCTL_IPV6_EX_DIS == 0 {
            core.violate("extension-headers", "reception enabled while IPv6 extension headers are parsed (wrongly)");
        }
    }

    fn write_tctl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, TCTL, value, TCTL_RESERVED);
        self.tctl = value & !TCTL_RESERVED;
        if self.tctl & TCTL_EN != 0 {
            self.run_transmit(core);
        }
    }

    fn write_queue(&mut self, core: &mut Core, receive: bool, n: usize, register: u32, value: u32) {
        let base = if receive { RX } else { TX } + 0x40 * n as u32;
        let offset = base + register;
        let enabled = self.word(base + queue::CONTROL) & CONTROL_ENABLE != 0;
        match register {
            queue::TAIL if receive => return self.write_rdt(core, n, value),
            queue::TAIL => return self.write_tdt(core, n, value),
            queue::CONTROL => return self.write_control(core, receive, n, value),
            queue::DCA => return self.set_word(offset, value),
            queue::RQDPC if receive => {
                return core.violate("read-only-register", format!("write of {value:#010x} to {offset:#07x}"));
            }
            _ => {}
        }
        let known = match register {
            queue::BAL | queue::BAH | queue::LEN | queue::HEAD => true,
            queue::SRRCTL => receive,
            queue::WBAL | queue::WBAH => !receive,
            _ => false,
        };
        if !known {
            return core.violate("unknown-register", format!("write of {value:#010x} to {offset:#07x}"));
        }
        if enabled {
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
                // One buffer is what is modelled; a length of zero takes RCTL.BSIZE.
                if value >> 25 & 7 != 1 {
                    core.violate("descriptor-type", format!("SRRCTL = {value:#010x}: not advanced with one buffer"));
                }
                self.check_reserved(core, offset, value, 1 << 7 | 0x3 << 14 | 0x3f << 16 | 7 << 22 | 7 << 28);
                value
            }
            _ => value,
        };
        self.set_word(offset, kept);
    }

    fn write_control(&mut self, core: &mut Core, receive: bool, n: usize, value: u32) {
        let base = if receive { RX } else { TX } + 0x40 * n as u32;
        let offset = base + queue::CONTROL;
        self.check_reserved(core, offset, value, !if receive { RXDCTL_BITS } else { TXDCTL_BITS });
        let before = self.word(offset);
        if core.faults.queue_stuck {
            self.set_word(offset, value & !CONTROL_ENABLE | before & CONTROL_ENABLE);
            return;
        }
        self.set_word(offset, value & TXDCTL_BITS);
        let enabled = value & CONTROL_ENABLE != 0;
        if enabled && value >> WTHRESH_SHIFT & 0x1f > 1 && core.config.get(0x70) & MSIX_ENABLE != 0 {
            core.violate("write-back-threshold", format!("{offset:#07x} = {value:#010x}: above 1 in MSI-X mode"));
        }
        if enabled && before & CONTROL_ENABLE == 0 {
            if self.word(base + queue::LEN) == 0 {
                core.violate("ring-length", format!("queue {n} enabled with a ring of no descriptors"));
            }
            if receive {
                self.receive.queues[n].hung = false;
            } else {
                self.transmit.queues[n].hung = false;
            }
        } else if !enabled && before & CONTROL_ENABLE != 0 && !receive {
            self.transmit.queues[n].stopped();
        }
    }

    /// Descriptors in a ring.
    pub(super) fn ring_count(&self, base: u32) -> u16 {
        (self.word(base + queue::LEN) / 16).min(0xffff) as u16
    }

    pub(super) fn queue_enabled(&self, base: u32) -> bool {
        self.word(base + queue::CONTROL) & CONTROL_ENABLE != 0
    }

    /// Device address of a descriptor.
    pub(super) fn descriptor_at(&self, base: u32, index: u16) -> u64 {
        (u64::from(self.word(base + queue::BAL)) | u64::from(self.word(base + queue::BAH)) << 32)
            + u64::from(index) * 16
    }
}
