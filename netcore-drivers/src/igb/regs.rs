//! Registers and bits of the 82575, 82576, I350 and I210 (82576 datasheet chapter 8).
#![allow(missing_docs)] // names are the datasheet's

pub const CTRL: u32 = 0x0_0000;
pub const STATUS: u32 = 0x0_0008;
pub const EECD: u32 = 0x0_0010;
pub const EERD: u32 = 0x0_0014;
pub const CTRL_EXT: u32 = 0x0_0018;
pub const MDIC: u32 = 0x0_0020;
pub const SCTL: u32 = 0x0_0024;
pub const FCAL: u32 = 0x0_0028;
pub const FCAH: u32 = 0x0_002c;
pub const FCT: u32 = 0x0_0030;
pub const VET: u32 = 0x0_0038;
pub const ICR: u32 = 0x0_00c0;
pub const ICS: u32 = 0x0_00c8;
pub const IMS: u32 = 0x0_00d0;
pub const IMC: u32 = 0x0_00d8;
pub const IAM: u32 = 0x0_00e0;
pub const RCTL: u32 = 0x0_0100;
pub const FCTTV: u32 = 0x0_0170;
pub const TCTL: u32 = 0x0_0400;
pub const PHPM: u32 = 0x0_0e14;
pub const PBA: u32 = 0x0_1000;
pub const EEMNGCTL: u32 = 0x0_1010;
pub const GPIE: u32 = 0x0_1514;
pub const EIMS: u32 = 0x0_1524;
pub const EIMC: u32 = 0x0_1528;
pub const EIAC: u32 = 0x0_152c;
pub const EIAM: u32 = 0x0_1530;
pub const EICR: u32 = 0x0_1580;
pub const MSIXBM: u32 = 0x0_1600;
pub const EITR: u32 = 0x0_1680;
pub const IVAR0: u32 = 0x0_1700;
pub const IVAR_MISC: u32 = 0x0_1740;
pub const FCRTL: u32 = 0x0_2160;
pub const FCRTH: u32 = 0x0_2168;
pub const RXPBS: u32 = 0x0_2404;
pub const FCRTV: u32 = 0x0_2460;
pub const PCS_CFG0: u32 = 0x0_4200;
pub const PCS_LCTL: u32 = 0x0_4208;
pub const PCS_LSTAT: u32 = 0x0_420c;
pub const PCS_ANADV: u32 = 0x0_4218;
pub const PCS_LPAB: u32 = 0x0_421c;
pub const RXCSUM: u32 = 0x0_5000;
pub const RLPML: u32 = 0x0_5004;
pub const RFCTL: u32 = 0x0_5008;
pub const MTA: u32 = 0x0_5200;
pub const VFTA: u32 = 0x0_5600;
pub const WUC: u32 = 0x0_5800;
pub const WUFC: u32 = 0x0_5808;
pub const WUS: u32 = 0x0_5810;
pub const MRQC: u32 = 0x0_5818;
pub const MANC: u32 = 0x0_5820;
pub const VMOLR: u32 = 0x0_5ad0;
pub const GCR: u32 = 0x0_5b00;
pub const FACTPS: u32 = 0x0_5b30;
pub const SWSM: u32 = 0x0_5b50;
pub const SW_FW_SYNC: u32 = 0x0_5b5c;
pub const DCA_CTRL: u32 = 0x0_5b74;
pub const RETA: u32 = 0x0_5c00;
pub const RSSRK: u32 = 0x0_5c80;
pub const UTA: u32 = 0x0_a000;
pub const DVMOLR: u32 = 0x0_c038;
/// Where the I210 has EECD and EERD.
pub const EECD_I210: u32 = 0x1_2010;
pub const EERD_I210: u32 = 0x1_2014;

/// Registers of a receive queue, from [`receive_queue`].
pub mod rx {
    pub const RDBAL: u32 = 0x00;
    pub const RDBAH: u32 = 0x04;
    pub const RDLEN: u32 = 0x08;
    pub const SRRCTL: u32 = 0x0c;
    pub const RDH: u32 = 0x10;
    pub const RDT: u32 = 0x18;
    pub const RXDCTL: u32 = 0x28;
    pub const RQDPC: u32 = 0x30;
}

/// Registers of a transmit queue, from [`transmit_queue`].
pub mod tx {
    pub const TDBAL: u32 = 0x00;
    pub const TDBAH: u32 = 0x04;
    pub const TDLEN: u32 = 0x08;
    pub const TDH: u32 = 0x10;
    pub const DCA_TXCTRL: u32 = 0x14;
    pub const TDT: u32 = 0x18;
    pub const TXDCTL: u32 = 0x28;
    pub const TDWBAL: u32 = 0x38;
    pub const TDWBAH: u32 = 0x3c;
}

/// Where the registers of a receive queue are: the first four have two places, the 82575 knows the older one only.
pub const fn receive_queue(queue: u16) -> u32 {
    let queue = queue as u32;
    if queue < 4 { 0x0_2800 + 0x100 * queue } else { 0x0_c000 + 0x40 * queue }
}

/// Where the registers of a transmit queue are.
pub const fn transmit_queue(queue: u16) -> u32 {
    let queue = queue as u32;
    if queue < 4 { 0x0_3800 + 0x100 * queue } else { 0x0_e000 + 0x40 * queue }
}

/// Low word of a receive address; the high one is behind it.
pub const fn receive_address(index: u32) -> u32 {
    if index < 16 { 0x0_5400 + 8 * index } else { 0x0_54e0 + 8 * (index - 16) }
}

pub mod ctrl {
    pub const FD: u32 = 1 << 0;
    pub const GIO_MASTER_DISABLE: u32 = 1 << 2;
    pub const SLU: u32 = 1 << 6;
    pub const SPEED: u32 = 3 << 8;
    pub const SPEED_100: u32 = 1 << 8;
    pub const SPEED_1000: u32 = 2 << 8;
    pub const FRCSPD: u32 = 1 << 11;
    pub const FRCDPX: u32 = 1 << 12;
    pub const SWDPIN0: u32 = 1 << 18;
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
    pub const SPEED: u32 = 3 << 6;
    pub const SPEED_100: u32 = 1 << 6;
    pub const GIO_MASTER: u32 = 1 << 19;
}

pub mod eecd {
    pub const PRES: u32 = 1 << 8;
    pub const AUTO_RD: u32 = 1 << 9;
    /// I210: there is a flash; without it the image is in the part, and loaded by itself.
    pub const FLASH_DETECTED: u32 = 1 << 19;
}

pub mod ctrl_ext {
    pub const SDP3_DATA: u32 = 1 << 7;
    pub const LINK_MODE: u32 = 3 << 22;
    pub const LINK_MODE_SHIFT: u32 = 22;
    /// 82575: mask by itself.
    pub const EIAME: u32 = 1 << 24;
    pub const DRV_LOAD: u32 = 1 << 28;
    /// 82575: pending bits are cleared when read.
    pub const PBA_CLR: u32 = 1 << 31;
    /// 82575: acknowledge causes by reading.
    pub const IRCA: u32 = 1 << 0;
}

pub mod mdic {
    pub const WRITE: u32 = 1 << 26;
    pub const READ: u32 = 2 << 26;
    pub const READY: u32 = 1 << 28;
    pub const ERROR: u32 = 1 << 30;
}

pub mod interrupt {
    pub const TXDW: u32 = 1 << 0;
    pub const LSC: u32 = 1 << 2;
    pub const RXDMT0: u32 = 1 << 4;
    pub const RXO: u32 = 1 << 6;
    pub const RXDW: u32 = 1 << 7;
    pub const ASSERTED: u32 = 1 << 31;
    /// What a driver listens to without MSI-X.
    pub const NORMAL: u32 = TXDW | LSC | RXDMT0 | RXO | RXDW;
}

pub mod gpie {
    pub const NSICR: u32 = 1 << 0;
    pub const MSIX_MODE: u32 = 1 << 4;
    pub const EIAME: u32 = 1 << 30;
    pub const PBA: u32 = 1 << 31;
}

pub mod swsm {
    pub const SMBI: u32 = 1 << 0;
    pub const SWESMBI: u32 = 1 << 1;
}

/// Bits of SW_FW_SYNC; firmware's are 16 places further up.
pub mod sync {
    pub const EEP: u32 = 1 << 0;
    /// PHY of a port.
    pub const PHY: [u32; 4] = [1 << 1, 1 << 2, 1 << 5, 1 << 6];
}

pub mod rctl {
    pub const EN: u32 = 1 << 1;
    pub const SBP: u32 = 1 << 2;
    pub const UPE: u32 = 1 << 3;
    pub const MPE: u32 = 1 << 4;
    pub const LPE: u32 = 1 << 5;
    pub const BAM: u32 = 1 << 15;
    pub const VFE: u32 = 1 << 18;
    pub const SECRC: u32 = 1 << 26;
}

pub mod tctl {
    pub const EN: u32 = 1 << 1;
    pub const PSP: u32 = 1 << 3;
    pub const CT: u32 = 0xff << 4;
    pub const CT_SHIFT: u32 = 4;
    pub const COLD: u32 = 0x3ff << 12;
    pub const COLD_SHIFT: u32 = 12;
    pub const RTLC: u32 = 1 << 24;
}

/// Thresholds and switches of queues.
pub mod dctl {
    pub const ENABLE: u32 = 1 << 25;
}

pub mod srrctl {
    pub const ONE_BUFFER: u32 = 1 << 25;
    pub const DROP_EN: u32 = 1 << 31;
}

pub mod rxcsum {
    pub const IPOFL: u32 = 1 << 8;
    pub const TUOFL: u32 = 1 << 9;
    pub const CRCOFL: u32 = 1 << 11;
    pub const PCSD: u32 = 1 << 13;
}

pub mod rfctl {
    pub const IPV6_EX_DIS: u32 = 1 << 16;
}

pub mod vmolr {
    pub const STRVLAN: u32 = 1 << 30;
    pub const STRCRC: u32 = 1 << 31;
}

pub mod gcr {
    pub const NO_SNOOP: u32 = 0x3f;
    pub const TIMEOUT: u32 = 0xf << 12;
    pub const TIMEOUT_10_MS: u32 = 1 << 12;
    pub const RESEND: u32 = 1 << 16;
    pub const CAP_VER2: u32 = 1 << 18;
}

pub mod pcs {
    pub const CFG0_EN: u32 = 1 << 3;
    pub const LCTL_FLV: u32 = 1 << 0;
    pub const LCTL_FSV_1000: u32 = 2 << 1;
    pub const LCTL_FDV: u32 = 1 << 3;
    pub const LCTL_FSD: u32 = 1 << 4;
    pub const LCTL_FORCE_LINK: u32 = 1 << 5;
    pub const LCTL_FORCE_FC: u32 = 1 << 7;
    pub const LCTL_AN_ENABLE: u32 = 1 << 16;
    pub const LCTL_AN_RESTART: u32 = 1 << 17;
    pub const LCTL_AN_TIMEOUT: u32 = 1 << 18;
    pub const LSTAT_LINK_OK: u32 = 1 << 0;
    pub const LSTAT_SPEED: u32 = 3 << 1;
    pub const LSTAT_FD: u32 = 1 << 3;
    pub const LSTAT_SYNC: u32 = 1 << 4;
    pub const LSTAT_AN_COMPLETE: u32 = 1 << 16;
    pub const PAUSE: u32 = 1 << 7;
    pub const ASM: u32 = 1 << 8;
    pub const FULL_DUPLEX: u32 = 1 << 5;
}
