//! The register file: what each offset is, and what it does (manual chapter 13).

use super::{Core, E82546Gb, statistics};

/// Bytes of BAR 0.
pub(super) const WINDOW: u32 = 128 << 10;

pub(super) const CTRL: u32 = 0x00000;
pub(super) const CTRL_DUP: u32 = 0x00004;
pub(super) const STATUS: u32 = 0x00008;
pub(super) const EECD: u32 = 0x00010;
pub(super) const EERD: u32 = 0x00014;
pub(super) const CTRL_EXT: u32 = 0x00018;
pub(super) const MDIC: u32 = 0x00020;
pub(super) const FCAL: u32 = 0x00028;
pub(super) const FCAH: u32 = 0x0002c;
pub(super) const FCT: u32 = 0x00030;
pub(super) const VET: u32 = 0x00038;
pub(super) const ICR: u32 = 0x000c0;
pub(super) const ITR: u32 = 0x000c4;
pub(super) const ICS: u32 = 0x000c8;
pub(super) const IMS: u32 = 0x000d0;
pub(super) const IMC: u32 = 0x000d8;
pub(super) const RCTL: u32 = 0x00100;
pub(super) const FCTTV: u32 = 0x00170;
pub(super) const TXCW: u32 = 0x00178;
pub(super) const RXCW: u32 = 0x00180;
pub(super) const TCTL: u32 = 0x00400;
pub(super) const TIPG: u32 = 0x00410;
pub(super) const AIT: u32 = 0x00458;
pub(super) const LEDCTL: u32 = 0x00e00;
pub(super) const PBA: u32 = 0x01000;
pub(super) const FCRTL: u32 = 0x02160;
pub(super) const FCRTH: u32 = 0x02168;
pub(super) const RDBAL: u32 = 0x02800;
pub(super) const RDBAH: u32 = 0x02804;
pub(super) const RDLEN: u32 = 0x02808;
pub(super) const RDH: u32 = 0x02810;
pub(super) const RDT: u32 = 0x02818;
pub(super) const RDTR: u32 = 0x02820;
pub(super) const RXDCTL: u32 = 0x02828;
pub(super) const RADV: u32 = 0x0282c;
pub(super) const RSRPD: u32 = 0x02c00;
pub(super) const TXDMAC: u32 = 0x03000;
pub(super) const TDBAL: u32 = 0x03800;
pub(super) const TDBAH: u32 = 0x03804;
pub(super) const TDLEN: u32 = 0x03808;
pub(super) const TDH: u32 = 0x03810;
pub(super) const TDT: u32 = 0x03818;
pub(super) const TIDV: u32 = 0x03820;
pub(super) const TXDCTL: u32 = 0x03828;
pub(super) const TADV: u32 = 0x0382c;
pub(super) const TSPMT: u32 = 0x03830;
pub(super) const RXCSUM: u32 = 0x05000;
pub(super) const MTA: u32 = 0x05200;
pub(super) const RAL: u32 = 0x05400;
pub(super) const RAH: u32 = 0x05404;
pub(super) const VFTA: u32 = 0x05600;
pub(super) const WUC: u32 = 0x05800;
pub(super) const WUFC: u32 = 0x05808;
pub(super) const WUS: u32 = 0x05810;
pub(super) const MANC: u32 = 0x05820;

pub(super) const CTRL_FD: u32 = 1 << 0;
pub(super) const CTRL_SLU: u32 = 1 << 6;
pub(super) const CTRL_SPEED_SHIFT: u32 = 8;
pub(super) const CTRL_SPEED_1000: u32 = 2 << 8;
pub(super) const CTRL_FRCSPD: u32 = 1 << 11;
pub(super) const CTRL_FRCDPX: u32 = 1 << 12;
pub(super) const CTRL_RST: u32 = 1 << 26;
pub(super) const CTRL_RFCE: u32 = 1 << 27;
pub(super) const CTRL_TFCE: u32 = 1 << 28;
pub(super) const CTRL_VME: u32 = 1 << 30;
pub(super) const CTRL_PHY_RST: u32 = 1 << 31;
/// Bits 1, 2, 4, 10, 17:13, 25:24 and 29.
const CTRL_RESERVED: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 10 | 0x1f << 13 | 3 << 24 | 1 << 29;

pub(super) const RCTL_EN: u32 = 1 << 1;
pub(super) const RCTL_SBP: u32 = 1 << 2;
pub(super) const RCTL_UPE: u32 = 1 << 3;
pub(super) const RCTL_MPE: u32 = 1 << 4;
pub(super) const RCTL_LPE: u32 = 1 << 5;
pub(super) const RCTL_BAM: u32 = 1 << 15;
pub(super) const RCTL_VFE: u32 = 1 << 18;
pub(super) const RCTL_BSEX: u32 = 1 << 25;
pub(super) const RCTL_SECRC: u32 = 1 << 26;
/// Bits 0, 11:10, 14, 21, 24 and 31:27.
const RCTL_RESERVED: u32 = 1 | 3 << 10 | 1 << 14 | 1 << 21 | 1 << 24 | 0x1f << 27;

pub(super) const TCTL_EN: u32 = 1 << 1;
pub(super) const TCTL_PSP: u32 = 1 << 3;
/// Bits 0, 2, 23 and 31:26.
const TCTL_RESERVED: u32 = 1 | 1 << 2 | 1 << 23 | 0x3f << 26;

pub(super) const RXCSUM_IPOFL: u32 = 1 << 8;
pub(super) const RXCSUM_TUOFL: u32 = 1 << 9;

/// Registers that hold what is written, with the bits that exist. Writing others is a violation.
const HOLDING: &[(u32, u32)] = &[
    (CTRL_EXT, 0x1fff_ffff),
    (FCAL, u32::MAX),
    (FCAH, 0xffff),
    (FCT, 0xffff),
    (VET, 0xffff),
    (FCTTV, 0xffff),
    (TXCW, 0xc000_f1e0),
    (TIPG, 0x3fff_ffff),
    (AIT, 0xffff),
    (LEDCTL, u32::MAX),
    (FCRTL, 0x8000_fff8),
    (FCRTH, 0xfff8),
    (RDTR, 0x8000_ffff),
    (RXDCTL, 0x013f_3f3f),
    (RADV, 0xffff),
    (RSRPD, 0xfff),
    (TXDMAC, 1),
    (TIDV, 0x8000_ffff),
    (TXDCTL, 0xff3f_3f3f),
    (TADV, 0xffff),
    (TSPMT, u32::MAX),
    (RXCSUM, 0x7ff),
    (WUC, 0xf),
    (WUFC, 0xf_80ff),
    (MANC, u32::MAX),
];

/// Registers that describe rings; writes have rules of their own.
const RINGS: &[u32] = &[RDBAL, RDBAH, RDLEN, RDH, TDBAL, TDBAH, TDLEN, TDH];

fn holding(offset: u32) -> Option<u32> {
    if (MTA..MTA + 512).contains(&offset) || (VFTA..VFTA + 512).contains(&offset) {
        return Some(u32::MAX);
    }
    if (RAL..RAL + 128).contains(&offset) {
        return Some(if offset & 4 == 0 { u32::MAX } else { 0x8003_ffff });
    }
    HOLDING.iter().find(|(at, _)| *at == offset).map(|(_, bits)| *bits)
}

impl E82546Gb {
    pub(super) fn read_register(&mut self, core: &mut Core, offset: u32) -> u32 {
        match offset {
            CTRL | CTRL_DUP => self.ctrl,
            STATUS => self.status(core),
            EECD => self.nvm.read_eecd(core),
            EERD => self.nvm.read_eerd(core),
            MDIC => self.read_mdic(core),
            ICR => self.read_icr(core),
            ITR => self.itr,
            IMS => self.ims,
            ICS | IMC => 0,
            RCTL => self.rctl,
            TCTL => self.tctl,
            RXCW => 0,
            PBA | WUS => self.word(offset),
            RDT | TDT => self.word(offset),
            RDH => u32::from(self.receive.head),
            TDH => u32::from(self.transmit.head),
            _ if RINGS.contains(&offset) || holding(offset).is_some() => self.word(offset),
            _ => {
                if let Some(counter) = statistics::index(offset) {
                    let value = self.counters.read(counter);
                    if !value.1 {
                        core.violate("counter-pair", format!("{offset:#07x} read before its lower half"));
                    }
                    return value.0;
                }
                core.violate("unknown-register", format!("read of {offset:#07x}"));
                0
            }
        }
    }

    pub(super) fn write_register(&mut self, core: &mut Core, offset: u32, value: u32) {
        match offset {
            CTRL => self.write_ctrl(core, value, false),
            CTRL_DUP => self.write_ctrl(core, value, true),
            EECD => self.nvm.write_eecd(core, value),
            EERD => self.nvm.write_eerd(core, value),
            MDIC => self.write_mdic(core, value),
            ITR => self.itr = value & 0xffff,
            ICS => self.raise(core, value & 0x1ffff),
            IMS => {
                self.ims |= value & 0x1ffff;
                self.update_interrupts(core);
            }
            IMC => {
                self.ims &= !value;
                self.update_interrupts(core);
            }
            RCTL => self.write_rctl(core, value),
            TCTL => self.write_tctl(core, value),
            PBA => {
                if (self.rctl & RCTL_EN) | (self.tctl & TCTL_EN) != 0 {
                    core.violate("ring-change-while-enabled", "the packet buffer was divided anew");
                }
                let receive = (value & 0x7f).min(56);
                self.set_word(PBA, receive | (64 - receive) << 16);
            }
            WUS => {
                let left = self.word(WUS) & !value;
                self.set_word(WUS, left);
            }
            ICR => {
                // Writing ones clears as reading does (manual 13.4.17).
                self.icr &= !value;
                self.update_interrupts(core);
            }
            RDT => self.write_rdt(core, value),
            TDT => self.write_tdt(core, value),
            _ if RINGS.contains(&offset) => self.write_ring(core, offset, value),
            _ => {
                if let Some(bits) = holding(offset) {
                    self.check_reserved(core, offset, value, !bits);
                    if offset == RDTR && value != 0 {
                        core.violate("receive-delay", format!("RDTR = {value:#x}; it can hang reception"));
                    }
                    self.set_word(offset, value & bits);
                } else if offset == STATUS || offset == RXCW || statistics::index(offset).is_some() {
                    core.violate("read-only-register", format!("write of {value:#010x} to {offset:#07x}"));
                } else {
                    core.violate("unknown-register", format!("write of {value:#010x} to {offset:#07x}"));
                }
            }
        }
    }

    fn check_reserved(&self, core: &mut Core, offset: u32, value: u32, reserved: u32) {
        // All ones to a mask or status register is the usual way to say "everything".
        if value & reserved != 0 && value != u32::MAX {
            core.violate(
                "reserved-bits",
                format!("{offset:#07x} = {value:#010x}, reserved {:#010x}", value & reserved),
            );
        }
    }

    fn write_ctrl(&mut self, core: &mut Core, value: u32, duplicate: bool) {
        self.check_reserved(core, CTRL, value, CTRL_RESERVED);
        if value & CTRL_RST != 0 {
            self.reset(core, duplicate);
            return;
        }
        let before = self.ctrl;
        self.ctrl = value & !CTRL_RESERVED;
        if value & CTRL_PHY_RST != 0 && before & CTRL_PHY_RST == 0 {
            self.phy_hardware_reset(core);
        } else if value & CTRL_PHY_RST == 0 && before & CTRL_PHY_RST != 0 {
            self.restart_negotiation(core);
        }
        if (before ^ value) & CTRL_SLU != 0 {
            self.link_may_have_changed(core);
        }
    }

    fn write_rctl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, RCTL, value, RCTL_RESERVED);
        let before = self.rctl;
        self.rctl = value & !RCTL_RESERVED;
        if self.rctl & RCTL_EN != 0 && before & RCTL_EN == 0 {
            self.check_ring(core, RDBAL, RDBAH, RDLEN, "receive");
        }
    }

    fn write_tctl(&mut self, core: &mut Core, value: u32) {
        self.check_reserved(core, TCTL, value, TCTL_RESERVED);
        let before = self.tctl;
        self.tctl = value & !TCTL_RESERVED;
        if self.tctl & TCTL_EN != 0 && before & TCTL_EN == 0 {
            self.check_ring(core, TDBAL, TDBAH, TDLEN, "transmit");
            if self.word(TIPG) == 0 || self.tctl >> 12 & 0x3ff == 0 {
                core.violate("transmit-gap", "transmission enabled with TIPG or the collision distance zero");
            }
        }
    }

    /// What a ring must be when its queue is enabled.
    fn check_ring(&self, core: &mut Core, low: u32, high: u32, len: u32, which: &str) {
        let base = u64::from(self.word(low)) | u64::from(self.word(high)) << 32;
        let bytes = u64::from(self.word(len));
        if bytes == 0 {
            core.violate("ring-length", format!("{which} enabled with a ring of no descriptors"));
        } else if base >> 16 != (base + bytes - 1) >> 16 {
            core.violate("ring-64k", format!("{which} ring {base:#x}, {bytes} bytes, crosses 64 KiB"));
        }
    }

    fn write_ring(&mut self, core: &mut Core, offset: u32, value: u32) {
        let receive = offset < TDBAL;
        let enabled = if receive { self.rctl & RCTL_EN != 0 } else { self.tctl & TCTL_EN != 0 };
        if enabled {
            core.violate("ring-change-while-enabled", format!("{offset:#07x} = {value:#x}"));
        }
        let kept = match offset {
            RDBAL | TDBAL => {
                if value & 0xf != 0 {
                    core.violate("ring-alignment", format!("base {value:#x}, multiples of 16 are allowed"));
                }
                value & !0xf
            }
            RDLEN | TDLEN => {
                if value & !0xf_ff80 != 0 {
                    core.violate("ring-length", format!("{value:#x} bytes, multiples of 128 below 1 MiB are allowed"));
                }
                value & 0xf_ff80
            }
            RDH | TDH => {
                if value != 0 {
                    core.violate("head-write", format!("{offset:#07x} = {value}; only zero may be written"));
                }
                value & 0xffff
            }
            _ => value,
        };
        self.set_word(offset, kept);
        match offset {
            RDH => self.receive.head = kept as u16,
            TDH => self.transmit.head = kept as u16,
            _ => {}
        }
    }

    /// Descriptors in a ring.
    pub(super) fn ring_count(&self, len: u32) -> u16 {
        (self.word(len) / 16).min(0xffff) as u16
    }

    /// Device address of a descriptor.
    pub(super) fn descriptor_at(&self, low: u32, index: u16) -> u64 {
        (u64::from(self.word(low)) | u64::from(self.word(low + 4)) << 32) + u64::from(index) * 16
    }
}
