//! Registers and bits of the 8254x and 82574 (82540EP/82545GM/82546GB software developer's manual chapter 13; 82574L
//! datasheet chapter 10).
#![allow(missing_docs)] // names are the datasheet's

pub const CTRL: u32 = 0x0_0000;
pub const CTRL_DUP: u32 = 0x0_0004;
pub const STATUS: u32 = 0x0_0008;
pub const EECD: u32 = 0x0_0010;
pub const EERD: u32 = 0x0_0014;
pub const CTRL_EXT: u32 = 0x0_0018;
pub const MDIC: u32 = 0x0_0020;
pub const FCAL: u32 = 0x0_0028;
pub const FCAH: u32 = 0x0_002c;
pub const FCT: u32 = 0x0_0030;
pub const VET: u32 = 0x0_0038;
pub const ICR: u32 = 0x0_00c0;
pub const ITR: u32 = 0x0_00c4;
pub const ICS: u32 = 0x0_00c8;
pub const IMS: u32 = 0x0_00d0;
pub const IMC: u32 = 0x0_00d8;
pub const EIAC: u32 = 0x0_00dc;
pub const IVAR: u32 = 0x0_00e4;
pub const EITR: u32 = 0x0_00e8;
pub const RCTL: u32 = 0x0_0100;
pub const FCTTV: u32 = 0x0_0170;
pub const TXCW: u32 = 0x0_0178;
pub const RXCW: u32 = 0x0_0180;
pub const TCTL: u32 = 0x0_0400;
pub const TIPG: u32 = 0x0_0410;
pub const AIT: u32 = 0x0_0458;
pub const EXTCNF_CTRL: u32 = 0x0_0f00;
pub const PBA: u32 = 0x0_1000;
pub const FCRTL: u32 = 0x0_2160;
pub const FCRTH: u32 = 0x0_2168;
pub const RDBAL: u32 = 0x0_2800;
pub const RDBAH: u32 = 0x0_2804;
pub const RDLEN: u32 = 0x0_2808;
pub const RDH: u32 = 0x0_2810;
pub const RDT: u32 = 0x0_2818;
pub const RDTR: u32 = 0x0_2820;
pub const RXDCTL: u32 = 0x0_2828;
pub const RADV: u32 = 0x0_282c;
pub const RSRPD: u32 = 0x0_2c00;
pub const TDBAL: u32 = 0x0_3800;
pub const TDBAH: u32 = 0x0_3804;
pub const TDLEN: u32 = 0x0_3808;
pub const TDH: u32 = 0x0_3810;
pub const TDT: u32 = 0x0_3818;
pub const TIDV: u32 = 0x0_3820;
pub const TXDCTL: u32 = 0x0_3828;
pub const TADV: u32 = 0x0_382c;
pub const TARC0: u32 = 0x0_3840;
/// Distance of the registers of queue 1 from those of queue 0 (82574).
pub const QUEUE: u32 = 0x100;
pub const RXCSUM: u32 = 0x0_5000;
pub const RFCTL: u32 = 0x0_5008;
pub const MTA: u32 = 0x0_5200;
pub const RAL: u32 = 0x0_5400;
pub const RAH: u32 = 0x0_5404;
pub const VFTA: u32 = 0x0_5600;
pub const WUC: u32 = 0x0_5800;
pub const WUFC: u32 = 0x0_5808;
pub const WUS: u32 = 0x0_5810;
pub const MRQC: u32 = 0x0_5818;
pub const MANC: u32 = 0x0_5820;
pub const GCR: u32 = 0x0_5b00;
pub const SWSM: u32 = 0x0_5b50;
pub const GCR2: u32 = 0x0_5b64;
pub const RETA: u32 = 0x0_5c00;
pub const RSSRK: u32 = 0x0_5c80;

/// Receive address registers.
pub const ADDRESSES: u32 = 16;

pub mod ctrl {
    pub const FD: u32 = 1 << 0;
    pub const GIO_MASTER_DISABLE: u32 = 1 << 2;
    pub const LRST: u32 = 1 << 3;
    pub const ASDE: u32 = 1 << 5;
    pub const SLU: u32 = 1 << 6;
    pub const ILOS: u32 = 1 << 7;
    pub const SPEED: u32 = 3 << 8;
    pub const SPEED_100: u32 = 1 << 8;
    pub const SPEED_1000: u32 = 2 << 8;
    pub const FRCSPD: u32 = 1 << 11;
    pub const FRCDPX: u32 = 1 << 12;
    pub const SWDPIN1: u32 = 1 << 19;
    pub const RST: u32 = 1 << 26;
    pub const RFCE: u32 = 1 << 27;
    pub const TFCE: u32 = 1 << 28;
    pub const VME: u32 = 1 << 30;
    pub const PHY_RST: u32 = 1 << 31;
}

pub mod status {
    pub const FD: u32 = 1 << 0;
    pub const LU: u32 = 1 << 1;
    pub const FUNCTION: u32 = 3 << 2;
    pub const TXOFF: u32 = 1 << 4;
    pub const TBIMODE: u32 = 1 << 5;
    pub const SPEED: u32 = 3 << 6;
    pub const SPEED_100: u32 = 1 << 6;
    pub const SPEED_1000: u32 = 2 << 6;
    pub const PCIX: u32 = 1 << 13;
    pub const GIO_MASTER: u32 = 1 << 19;
}

pub mod eecd {
    pub const SK: u32 = 1 << 0;
    pub const CS: u32 = 1 << 1;
    pub const DI: u32 = 1 << 2;
    pub const DO: u32 = 1 << 3;
    pub const REQ: u32 = 1 << 6;
    pub const GNT: u32 = 1 << 7;
    pub const PRES: u32 = 1 << 8;
    /// 8254x: 256 words. 82574: automatic load done.
    pub const SIZE_OR_AUTO_RD: u32 = 1 << 9;
}

pub mod ctrl_ext {
    pub const EE_RST: u32 = 1 << 13;
    pub const RO_DIS: u32 = 1 << 17;
    pub const LINK_MODE_LOW: u32 = 1 << 22;
    pub const LINK_MODE_HIGH: u32 = 1 << 23;
    pub const EIAME: u32 = 1 << 24;
    pub const IAME: u32 = 1 << 27;
    pub const DRV_LOAD: u32 = 1 << 28;
    pub const PBA_CLR: u32 = 1 << 31;
}

pub mod mdic {
    pub const WRITE: u32 = 1 << 26;
    pub const READ: u32 = 2 << 26;
    pub const READY: u32 = 1 << 28;
    pub const ERROR: u32 = 1 << 30;
}

pub mod interrupt {
    pub const TXDW: u32 = 1 << 0;
    pub const TXQE: u32 = 1 << 1;
    pub const LSC: u32 = 1 << 2;
    pub const RXSEQ: u32 = 1 << 3;
    pub const RXDMT0: u32 = 1 << 4;
    pub const RXO: u32 = 1 << 6;
    pub const RXT0: u32 = 1 << 7;
    pub const MDAC: u32 = 1 << 9;
    pub const RXQ0: u32 = 1 << 20;
    pub const RXQ1: u32 = 1 << 21;
    pub const TXQ0: u32 = 1 << 22;
    pub const TXQ1: u32 = 1 << 23;
    pub const OTHER: u32 = 1 << 24;
    pub const ASSERTED: u32 = 1 << 31;
    /// What a driver listens to.
    pub const NORMAL: u32 = TXDW | LSC | RXSEQ | RXDMT0 | RXO | RXT0;
}

pub mod rctl {
    pub const EN: u32 = 1 << 1;
    pub const SBP: u32 = 1 << 2;
    pub const UPE: u32 = 1 << 3;
    pub const MPE: u32 = 1 << 4;
    pub const LPE: u32 = 1 << 5;
    pub const LBM_MAC: u32 = 1 << 6;
    pub const LBM: u32 = 3 << 6;
    pub const BAM: u32 = 1 << 15;
    pub const BSIZE_SHIFT: u32 = 16;
    pub const VFE: u32 = 1 << 18;
    pub const CFIEN: u32 = 1 << 19;
    pub const DPF: u32 = 1 << 22;
    pub const BSEX: u32 = 1 << 25;
    pub const SECRC: u32 = 1 << 26;
}

pub mod tctl {
    pub const EN: u32 = 1 << 1;
    pub const PSP: u32 = 1 << 3;
    pub const CT_SHIFT: u32 = 4;
    pub const COLD_SHIFT: u32 = 12;
    pub const COLD: u32 = 0x3ff << 12;
    pub const RTLC: u32 = 1 << 24;
    pub const MULR: u32 = 1 << 28;
    /// Retries after a collision.
    pub const COLLISION_THRESHOLD: u32 = 15;
    /// Collision distance in full duplex.
    pub const COLD_FULL: u32 = 0x3f;
    /// Collision distance in half duplex (byte times of a slot).
    pub const COLD_HALF: u32 = 0x200;
}

pub mod txcw {
    pub const FD: u32 = 1 << 5;
    pub const PAUSE: u32 = 1 << 7;
    pub const ASM: u32 = 1 << 8;
    pub const ANE: u32 = 1 << 31;
}

pub mod rxcw {
    pub const IV: u32 = 1 << 27;
    pub const C: u32 = 1 << 29;
    pub const SYNC: u32 = 1 << 30;
    pub const ANC: u32 = 1 << 31;
}

pub mod rxcsum {
    pub const IPOFL: u32 = 1 << 8;
    pub const TUOFL: u32 = 1 << 9;
    pub const PCSD: u32 = 1 << 13;
}

pub mod rfctl {
    pub const ACK_DIS: u32 = 1 << 12;
    pub const EXTEN: u32 = 1 << 15;
}

/// Command byte of transmit descriptors, in the second word.
pub mod txd {
    pub const EOP: u64 = 1 << 24;
    pub const IFCS: u64 = 1 << 25;
    pub const TSE: u64 = 1 << 26;
    pub const RS: u64 = 1 << 27;
    pub const DEXT: u64 = 1 << 29;
    pub const VLE: u64 = 1 << 30;
    /// Data descriptor.
    pub const DTYP_DATA: u64 = 1 << 20;
    /// Context: the transport is TCP.
    pub const TUCMD_TCP: u64 = 1 << 24;
    /// Context: the network layer is IPv4.
    pub const TUCMD_IP: u64 = 1 << 25;
    /// Insert the IPv4 header checksum.
    pub const IXSM: u64 = 1 << 40;
    /// Insert the transport checksum.
    pub const TXSM: u64 = 1 << 41;
}
