//! Registers and bits of the 82599 and X540 (82599 datasheet chapter 8).
#![allow(missing_docs)] // names are the datasheet's

pub const CTRL: u32 = 0x0_0000;
pub const STATUS: u32 = 0x0_0008;
pub const CTRL_EXT: u32 = 0x0_0018;
pub const ESDP: u32 = 0x0_0020;
pub const I2CCTL: u32 = 0x0_0028;
pub const EICR: u32 = 0x0_0800;
pub const EICS: u32 = 0x0_0808;
pub const EIAC: u32 = 0x0_0810;
pub const EITR: u32 = 0x0_0820;
pub const EITR_HIGH: u32 = 0x1_2300;
pub const EIMS: u32 = 0x0_0880;
pub const EIMC: u32 = 0x0_0888;
pub const EIAM: u32 = 0x0_0890;
pub const GPIE: u32 = 0x0_0898;
pub const IVAR: u32 = 0x0_0900;
pub const IVAR_MISC: u32 = 0x0_0a00;
pub const EIMS_EX: u32 = 0x0_0aa0;
pub const EIMC_EX: u32 = 0x0_0ab0;
pub const EIAM_EX: u32 = 0x0_0ad0;
pub const RQSMR: u32 = 0x0_2300;
pub const RDRXCTL: u32 = 0x0_2f00;
pub const RXCTRL: u32 = 0x0_3000;
pub const FCTTV: u32 = 0x0_3200;
pub const FCRTL: u32 = 0x0_3220;
pub const FCRTH: u32 = 0x0_3260;
pub const FCRTV: u32 = 0x0_32a0;
pub const RXPBSIZE: u32 = 0x0_3c00;
pub const FCCFG: u32 = 0x0_3d00;
pub const PCS1GLCTL: u32 = 0x0_4208;
pub const PCS1GLSTA: u32 = 0x0_420c;
pub const PCS1GANA: u32 = 0x0_4218;
pub const PCS1GANLP: u32 = 0x0_421c;
pub const HLREG0: u32 = 0x0_4240;
pub const MSCA: u32 = 0x0_425c;
pub const MSRWD: u32 = 0x0_4260;
pub const MAXFRS: u32 = 0x0_4268;
pub const MFLCN: u32 = 0x0_4294;
pub const AUTOC: u32 = 0x0_42a0;
pub const LINKS: u32 = 0x0_42a4;
pub const AUTOC2: u32 = 0x0_42a8;
pub const ANLP1: u32 = 0x0_42b0;
pub const MMNGC: u32 = 0x0_42d0;
pub const LINKS2: u32 = 0x0_4324;
pub const RTTDCS: u32 = 0x0_4900;
pub const RTTDQSEL: u32 = 0x0_4904;
pub const TXPBTHRESH: u32 = 0x0_4950;
pub const RTTBCNRC: u32 = 0x0_4984;
pub const DMATXCTL: u32 = 0x0_4a80;
pub const RXCSUM: u32 = 0x0_5000;
pub const RFCTL: u32 = 0x0_5008;
pub const FCTRL: u32 = 0x0_5080;
pub const VLNCTRL: u32 = 0x0_5088;
pub const MCSTCTRL: u32 = 0x0_5090;
pub const MTA: u32 = 0x0_5200;
pub const PSRTYPE: u32 = 0x0_5480;
pub const MRQC: u32 = 0x0_5818;
pub const RETA: u32 = 0x0_5c00;
pub const RSSRK: u32 = 0x0_5c80;
pub const DTXMXSZRQ: u32 = 0x0_8100;
pub const MTQC: u32 = 0x0_8120;
pub const TQSM: u32 = 0x0_8600;
pub const SECRXCTRL: u32 = 0x0_8d00;
pub const SECRXSTAT: u32 = 0x0_8d04;
pub const VFTA: u32 = 0x0_a000;
pub const RAL: u32 = 0x0_a200;
pub const RAH: u32 = 0x0_a204;
pub const MPSAR: u32 = 0x0_a600;
pub const TXPBSIZE: u32 = 0x0_cc00;
pub const TFCS: u32 = 0x0_ce00;
pub const UTA: u32 = 0x0_f400;
pub const FDIRCTRL: u32 = 0x0_ee00;
pub const FDIRSIPV6: u32 = 0x0_ee0c;
pub const FDIRIPSA: u32 = 0x0_ee18;
pub const FDIRIPDA: u32 = 0x0_ee1c;
pub const FDIRPORT: u32 = 0x0_ee20;
pub const FDIRVLAN: u32 = 0x0_ee24;
pub const FDIRHASH: u32 = 0x0_ee28;
pub const FDIRCMD: u32 = 0x0_ee2c;
pub const FDIRDIP4M: u32 = 0x0_ee3c;
pub const FDIRSIP4M: u32 = 0x0_ee40;
pub const FDIRTCPM: u32 = 0x0_ee44;
pub const FDIRUDPM: u32 = 0x0_ee48;
pub const FDIRHKEY: u32 = 0x0_ee68;
pub const FDIRSKEY: u32 = 0x0_ee6c;
pub const FDIRM: u32 = 0x0_ee70;
pub const FDIRIP6M: u32 = 0x0_ee74;
pub const EEC: u32 = 0x1_0010;
pub const EERD: u32 = 0x1_0014;
pub const SWSM: u32 = 0x1_0140;
pub const FACTPS: u32 = 0x1_0150;
pub const SW_FW_SYNC: u32 = 0x1_0160;
pub const GCR_EXT: u32 = 0x1_1050;
pub const CORECTL: u32 = 0x1_4f00;

/// Registers of a receive queue.
pub const fn receive_queue(queue: u16) -> u32 {
    if queue < 64 { 0x0_1000 + 0x40 * queue as u32 } else { 0x0_d000 + 0x40 * (queue as u32 - 64) }
}

/// Registers of a transmit queue.
pub const fn transmit_queue(queue: u16) -> u32 {
    0x0_6000 + 0x40 * queue as u32
}

/// Throttle of a vector.
pub const fn throttle(vector: u32) -> u32 {
    if vector < 24 { EITR + 4 * vector } else { EITR_HIGH + 4 * (vector - 24) }
}

/// Registers of a receive queue, from its base.
pub mod rx {
    pub const RDBAL: u32 = 0x00;
    pub const RDBAH: u32 = 0x04;
    pub const RDLEN: u32 = 0x08;
    pub const DCA_RXCTRL: u32 = 0x0c;
    pub const RDH: u32 = 0x10;
    pub const SRRCTL: u32 = 0x14;
    pub const RDT: u32 = 0x18;
    pub const RXDCTL: u32 = 0x28;
    pub const RSCCTL: u32 = 0x2c;
}

/// Registers of a transmit queue, from its base.
pub mod tx {
    pub const TDBAL: u32 = 0x00;
    pub const TDBAH: u32 = 0x04;
    pub const TDLEN: u32 = 0x08;
    pub const DCA_TXCTRL: u32 = 0x0c;
    pub const TDH: u32 = 0x10;
    pub const TDT: u32 = 0x18;
    pub const TXDCTL: u32 = 0x28;
    pub const TDWBAL: u32 = 0x38;
    pub const TDWBAH: u32 = 0x3c;
}

pub mod ctrl {
    pub const GIO_DISABLE: u32 = 1 << 2;
    pub const LRST: u32 = 1 << 3;
    pub const RST: u32 = 1 << 26;
}

pub mod status {
    pub const FUNCTION: u32 = 3 << 2;
    pub const GIO_MASTER: u32 = 1 << 19;
}

pub mod ctrl_ext {
    pub const NS_DIS: u32 = 1 << 16;
    pub const DRV_LOAD: u32 = 1 << 28;
}

pub mod esdp {
    /// A module is in the cage.
    pub const SDP2: u32 = 1 << 2;
    /// The laser is off.
    pub const SDP3: u32 = 1 << 3;
    /// Rate select: 10 Gbit/s.
    pub const SDP5: u32 = 1 << 5;
    pub const SDP3_DIR: u32 = 1 << 11;
    pub const SDP5_DIR: u32 = 1 << 13;
}

/// RXDCTL and TXDCTL.
pub mod dctl {
    pub const ENABLE: u32 = 1 << 25;
    pub const SWFLSH: u32 = 1 << 26;
    /// RXDCTL: remove tags.
    pub const VME: u32 = 1 << 30;
}

pub mod srrctl {
    pub const ONE_BUFFER: u32 = 1 << 25;
    /// 256 bytes of header buffer, which is not used but wanted by merging.
    pub const HEADER_256: u32 = 4 << 8;
    pub const DROP_EN: u32 = 1 << 28;
}

pub mod rdrxctl {
    pub const CRCSTRIP: u32 = 1 << 1;
    pub const DMAIDONE: u32 = 1 << 3;
    pub const RSCFRSTSIZE: u32 = 0x1f << 17;
    pub const RSCACKC: u32 = 1 << 25;
    pub const FCOE_WRFIX: u32 = 1 << 26;
}

pub mod rfctl {
    pub const RSC_DIS: u32 = 1 << 5;
    pub const NFSW_DIS: u32 = 1 << 6;
    pub const NFSR_DIS: u32 = 1 << 7;
}

pub mod rxcsum {
    pub const IPPCSE: u32 = 1 << 12;
    pub const PCSD: u32 = 1 << 13;
}

pub mod fctrl {
    pub const SBP: u32 = 1 << 1;
    pub const MPE: u32 = 1 << 8;
    pub const UPE: u32 = 1 << 9;
    pub const BAM: u32 = 1 << 10;
}

pub mod hlreg0 {
    pub const TXCRCEN: u32 = 1 << 0;
    pub const RXCRCSTRP: u32 = 1 << 1;
    pub const JUMBOEN: u32 = 1 << 2;
    pub const TXPADEN: u32 = 1 << 10;
    pub const LPBK: u32 = 1 << 15;
}

pub mod autoc {
    pub const FLU: u32 = 1 << 0;
    pub const PMD_1G_KX: u32 = 1 << 9;
    pub const RESTART_AN: u32 = 1 << 12;
    pub const LMS_SHIFT: u32 = 13;
    pub const LMS: u32 = 7 << LMS_SHIFT;
    pub const LMS_1G: u32 = 0;
    pub const LMS_1G_AN: u32 = 2 << LMS_SHIFT;
    pub const LMS_10G_SERIAL: u32 = 3 << LMS_SHIFT;
    /// Modes 4 to 7: negotiation.
    pub const LMS_NEGOTIATES: u32 = 4 << LMS_SHIFT;
    pub const KR: u32 = 1 << 16;
    pub const SYM_PAUSE: u32 = 1 << 28;
    pub const ASM_PAUSE: u32 = 1 << 29;
    pub const KX: u32 = 1 << 30;
    pub const KX4: u32 = 1 << 31;
}

pub mod autoc2 {
    pub const PMD_10G: u32 = 3 << 16;
    pub const PMD_SFI: u32 = 2 << 16;
    pub const LINK_DISABLE: u32 = 7 << 28;
}

pub mod links {
    pub const UP: u32 = 1 << 30;
    pub const AN_COMPLETE: u32 = 1 << 31;
    pub const SPEED_SHIFT: u32 = 28;
}

pub mod pcs1g {
    pub const FORCE: u32 = 1 << 5;
    pub const LOW_LINK_LATCH: u32 = 1 << 6;
    pub const AN_ENABLE: u32 = 1 << 16;
    pub const AN_TIMEOUT: u32 = 1 << 18;
    pub const STA_COMPLETE: u32 = 1 << 16;
    pub const STA_TIMED_OUT: u32 = 1 << 18;
    pub const SYM: u32 = 1 << 7;
    pub const ASM: u32 = 1 << 8;
}

pub mod eec {
    pub const PRES: u32 = 1 << 8;
    pub const AUTO_RD: u32 = 1 << 9;
}

pub mod swsm {
    pub const SMBI: u32 = 1 << 0;
    pub const SWESMBI: u32 = 1 << 1;
}

/// SW_FW_SYNC: what software holds. Firmware's bits are five places further up.
pub mod sync {
    pub const EEP: u32 = 1 << 0;
    pub const PHY0: u32 = 1 << 1;
    pub const PHY1: u32 = 1 << 2;
    pub const MAC_CSR: u32 = 1 << 3;
    pub const FIRMWARE_SHIFT: u32 = 5;
}

pub mod interrupt {
    pub const QUEUES: u32 = 0xffff;
    pub const FLOW_DIRECTOR: u32 = 1 << 16;
    pub const RX_MISS: u32 = 1 << 17;
    pub const LSC: u32 = 1 << 20;
    /// A module came or went.
    pub const SDP2: u32 = 1 << 26;
    pub const ECC: u32 = 1 << 28;
    pub const TCP_TIMER: u32 = 1 << 30;
    pub const NORMAL: u32 = QUEUES | RX_MISS | LSC | SDP2 | ECC;
}

pub mod gpie {
    pub const SDP1: u32 = 1 << 1;
    pub const SDP2: u32 = 1 << 2;
    pub const MSIX: u32 = 1 << 4;
    pub const OCD: u32 = 1 << 5;
    pub const EIAME: u32 = 1 << 30;
    pub const PBA: u32 = 1 << 31;
}
