//! Offsets and bits.

/// Bytes of BAR 0 that have registers.
pub(super) const WINDOW: u32 = 128 << 10;
/// Queues of each direction.
pub(super) const QUEUES: usize = 128;

pub(super) const CTRL: u32 = 0x00000;
pub(super) const STATUS: u32 = 0x00008;
pub(super) const CTRL_EXT: u32 = 0x00018;
pub(super) const ESDP: u32 = 0x00020;
pub(super) const I2CCTL: u32 = 0x00028;
pub(super) const EICR: u32 = 0x00800;
pub(super) const EICS: u32 = 0x00808;
pub(super) const EIAC: u32 = 0x00810;
pub(super) const EITR: u32 = 0x00820;
pub(super) const EITR_HIGH: u32 = 0x12300;
pub(super) const EIMS: u32 = 0x00880;
pub(super) const EIMC: u32 = 0x00888;
pub(super) const EIAM: u32 = 0x00890;
pub(super) const GPIE: u32 = 0x00898;
pub(super) const IVAR: u32 = 0x00900;
pub(super) const IVAR_MISC: u32 = 0x00a00;
pub(super) const EICS_EX: u32 = 0x00a90;
pub(super) const EIMS_EX: u32 = 0x00aa0;
pub(super) const EIMC_EX: u32 = 0x00ab0;
pub(super) const EIAM_EX: u32 = 0x00ad0;
pub(super) const RX: u32 = 0x01000;
pub(super) const RX_HIGH: u32 = 0x0d000;
pub(super) const RQSMR: u32 = 0x02300;
pub(super) const RDRXCTL: u32 = 0x02f00;
pub(super) const RXCTRL: u32 = 0x03000;
pub(super) const FCTTV: u32 = 0x03200;
pub(super) const FCRTL: u32 = 0x03220;
pub(super) const FCRTH: u32 = 0x03260;
pub(super) const RXPBSIZE: u32 = 0x03c00;
pub(super) const FCCFG: u32 = 0x03d00;
pub(super) const PCS1GLCTL: u32 = 0x04208;
pub(super) const PCS1GLSTA: u32 = 0x0420c;
pub(super) const PCS1GANA: u32 = 0x04218;
pub(super) const PCS1GANLP: u32 = 0x0421c;
pub(super) const HLREG0: u32 = 0x04240;
pub(super) const MSCA: u32 = 0x0425c;
pub(super) const MSRWD: u32 = 0x04260;
pub(super) const MAXFRS: u32 = 0x04268;
pub(super) const MFLCN: u32 = 0x04294;
pub(super) const AUTOC: u32 = 0x042a0;
pub(super) const LINKS: u32 = 0x042a4;
pub(super) const AUTOC2: u32 = 0x042a8;
pub(super) const ANLP1: u32 = 0x042b0;
pub(super) const LINKS2: u32 = 0x04324;
pub(super) const RTTDCS: u32 = 0x04900;
pub(super) const DMATXCTL: u32 = 0x04a80;
pub(super) const DTXTCPFLGL: u32 = 0x04a88;
pub(super) const DTXTCPFLGH: u32 = 0x04a8c;
pub(super) const RXCSUM: u32 = 0x05000;
pub(super) const RFCTL: u32 = 0x05008;
pub(super) const FCTRL: u32 = 0x05080;
pub(super) const VLNCTRL: u32 = 0x05088;
pub(super) const MCSTCTRL: u32 = 0x05090;
pub(super) const MTA: u32 = 0x05200;
pub(super) const WUS: u32 = 0x05810;
pub(super) const TX: u32 = 0x06000;
pub(super) const MTQC: u32 = 0x08120;
pub(super) const DTXMXSZRQ: u32 = 0x08100;
pub(super) const TQSM: u32 = 0x08600;
pub(super) const SECTXSTAT: u32 = 0x08804;
pub(super) const SECRXCTRL: u32 = 0x08d00;
pub(super) const SECRXSTAT: u32 = 0x08d04;
pub(super) const VFTA: u32 = 0x0a000;
pub(super) const RAL: u32 = 0x0a200;
pub(super) const TXPBSIZE: u32 = 0x0cc00;
pub(super) const PSRTYPE: u32 = 0x0ea00;
pub(super) const RETA: u32 = 0x0eb00;
pub(super) const RSSRK: u32 = 0x0eb80;
pub(super) const MRQC: u32 = 0x0ec80;
pub(super) const UTA: u32 = 0x0f400;
pub(super) const EEC: u32 = 0x10010;
pub(super) const EERD: u32 = 0x10014;
pub(super) const SWSM: u32 = 0x10140;
pub(super) const FWSM: u32 = 0x10148;
pub(super) const FACTPS: u32 = 0x10150;
pub(super) const SW_FW_SYNC: u32 = 0x10160;
pub(super) const CORECTL: u32 = 0x14f00;

/// Flow Director.
pub(super) const FDIR_FIRST: u32 = 0x0ee00;
pub(super) const FDIR_LAST: u32 = 0x0ee7c;

/// Registers of a queue, from its base.
pub(super) mod queue {
    pub(crate) const BAL: u32 = 0x00;
    pub(crate) const BAH: u32 = 0x04;
    pub(crate) const LEN: u32 = 0x08;
    pub(crate) const DCA: u32 = 0x0c;
    pub(crate) const HEAD: u32 = 0x10;
    /// Receive only.
    pub(crate) const SRRCTL: u32 = 0x14;
    pub(crate) const TAIL: u32 = 0x18;
    pub(crate) const CONTROL: u32 = 0x28;
    /// Receive only.
    pub(crate) const RSCCTL: u32 = 0x2c;
    /// Transmit only: head write-back.
    pub(crate) const WBAL: u32 = 0x38;
    pub(crate) const WBAH: u32 = 0x3c;
}

/// Bits.
pub(super) mod bit {
    pub(crate) const GIO_DIS: u32 = 1 << 2;
    pub(crate) const LRST: u32 = 1 << 3;
    pub(crate) const RST: u32 = 1 << 26;
    /// RXDCTL and TXDCTL.
    pub(crate) const ENABLE: u32 = 1 << 25;
    pub(crate) const SWFLSH: u32 = 1 << 26;
    /// RXDCTL: strip tags.
    pub(crate) const VME: u32 = 1 << 30;
    pub(crate) const DROP_EN: u32 = 1 << 28;
    pub(crate) const RESTART_AN: u32 = 1 << 12;
    pub(crate) const FLU: u32 = 1;
    pub(crate) const DMAIDONE: u32 = 1 << 3;
    pub(crate) const ARBDIS: u32 = 1 << 6;
    pub(crate) const RXCRCSTRP: u32 = 1 << 1;
    pub(crate) const JUMBOEN: u32 = 1 << 2;
    pub(crate) const LPBK: u32 = 1 << 15;
    pub(crate) const CRCSTRIP: u32 = 1 << 1;
    pub(crate) const PCSD: u32 = 1 << 13;
    pub(crate) const RSC_DIS: u32 = 1 << 5;
    /// SDP 2: a module is in the cage. SDP 3: the laser is off.
    pub(crate) const SDP2: u32 = 1 << 2;
    pub(crate) const SDP3: u32 = 1 << 3;
}

/// Registers that hold what is written: first offset, how many, distance, bits that exist.
pub(super) const HOLDING: &[(u32, u32, u32, u32)] = &[
    (CTRL_EXT, 1, 4, 0x1403_4000),
    // LEDCTL, TCPTIMER.
    (0x00200, 1, 4, u32::MAX),
    (0x0004c, 1, 4, u32::MAX),
    (GPIE, 1, 4, 0xc000_ffff),
    // EITRSEL.
    (0x00894, 1, 4, u32::MAX),
    // RQSMR, RSCDBU, receive arbiter: RTRPCS, RTRUP2TC, RTRPT4C.
    (RQSMR, 32, 4, 0x0f0f_0f0f),
    (0x03028, 1, 4, 0xff),
    (0x02430, 1, 4, u32::MAX),
    (0x03020, 1, 4, u32::MAX),
    (0x02140, 8, 4, u32::MAX),
    // PFQDE.
    (0x02f04, 1, 4, u32::MAX),
    (FCTTV, 4, 4, u32::MAX),
    (FCRTL, 8, 4, 0x8007_ffe0),
    (FCRTH, 8, 4, 0x8007_ffe0),
    // FCRTV.
    (0x032a0, 1, 4, 0xffff),
    (RXPBSIZE, 8, 4, 0x000f_fc00),
    (FCCFG, 1, 4, 0x18),
    // PCS1GCFIG.
    (0x04200, 1, 4, u32::MAX),
    (PCS1GLCTL, 1, 4, u32::MAX),
    (PCS1GANA, 1, 4, 0xffff),
    (HLREG0, 1, 4, u32::MAX),
    (MAXFRS, 1, 4, 0xffff_0000),
    // TREG, MACC, KRPCSFC, MMNGC.
    (0x0426c, 1, 4, u32::MAX),
    (0x04330, 1, 4, u32::MAX),
    (0x042e0, 1, 4, u32::MAX),
    (MFLCN, 1, 4, 0x0ff_0ff),
    (0x04290, 1, 4, u32::MAX),
    // Transmit arbiter and limiter, TXPBTHRESH, RTTBCNRM, RTTBCNRC.
    (RTTDCS, 1, 4, u32::MAX),
    (0x04904, 4, 4, u32::MAX),
    (0x04910, 8, 4, u32::MAX),
    (0x04950, 8, 4, 0x3ff),
    (0x04980, 2, 4, u32::MAX),
    (DTXTCPFLGL, 1, 4, 0x0fff_0fff),
    (DTXTCPFLGH, 1, 4, 0x0fff),
    (RXCSUM, 1, 4, 0x3000),
    (RFCTL, 1, 4, 0x0001_47ff),
    // EXVET.
    (0x05078, 1, 4, 0xffff_0000),
    (FCTRL, 1, 4, 0x702),
    (VLNCTRL, 1, 4, 0xf000_ffff),
    (MCSTCTRL, 1, 4, 0x7),
    // FCRXCTRL, ETQF, RXMTRL, VT_CTL, VFRE, TSYNCRXCTL.
    (0x05100, 1, 4, u32::MAX),
    (0x05128, 8, 4, 0xeff0_ffff),
    (0x05120, 1, 4, u32::MAX),
    (0x051b0, 1, 4, u32::MAX),
    (0x051e0, 2, 4, u32::MAX),
    (0x05188, 1, 4, u32::MAX),
    (MTA, 128, 4, u32::MAX),
    // WUC, WUFC, MANC and the filters of wake-up and management.
    (0x05800, 1, 4, 0x1f),
    (0x05808, 1, 4, u32::MAX),
    (0x05820, 1, 4, u32::MAX),
    (0x05838, 1, 4, u32::MAX),
    (0x05840, 16, 4, u32::MAX),
    (DTXMXSZRQ, 1, 4, 0xfff),
    // VFTE, PFVFSPOOF, PFDTXGSWC, VMVIR, RTTUP2TC.
    (0x08110, 2, 4, u32::MAX),
    (0x08200, 8, 4, u32::MAX),
    (0x08220, 1, 4, 1),
    (0x08000, 64, 4, u32::MAX),
    (0x0c800, 1, 4, u32::MAX),
    (TQSM, 32, 4, 0x0f0f_0f0f),
    // SECTXCTRL, SECTXBUFFAF, SECTXMINIFG.
    (0x08800, 1, 4, 0x7),
    (0x08808, 1, 4, u32::MAX),
    (0x08810, 1, 4, u32::MAX),
    // TSYNCTXCTL, SYSTIM, TIMINCA, TSAUXC and its targets.
    (0x08c00, 20, 4, u32::MAX),
    (SECRXCTRL, 1, 4, 0x3),
    (VFTA, 128, 4, u32::MAX),
    (RAL, 128, 8, u32::MAX),
    (RAL + 4, 128, 8, 0x8000_ffff),
    // MPSAR.
    (0x0a600, 256, 4, u32::MAX),
    // TIPG, TXPBSIZE, PAP.
    (0x0cb00, 1, 4, u32::MAX),
    (TXPBSIZE, 8, 4, 0x000f_fc00),
    (0x0cd10, 1, 4, u32::MAX),
    (0x0cd20, 8, 4, u32::MAX),
    (PSRTYPE, 64, 4, 0xe000_1370),
    (RETA, 32, 4, 0x0f0f_0f0f),
    (RSSRK, 10, 4, u32::MAX),
    // ETQS.
    (0x0ec00, 8, 4, 0x807f_0000),
    (MRQC, 1, 4, 0x01ff_000f),
    // SYNQF, FCoE redirection.
    (0x0ec30, 1, 4, u32::MAX),
    (0x0ed00, 12, 4, u32::MAX),
    // VMOLR, VLVF, VLVFB, VMRCTL, VMRVLAN, VMRVM, UTA.
    (0x0f000, 64, 4, u32::MAX),
    (0x0f100, 64, 4, 0x8000_0fff),
    (0x0f200, 128, 4, u32::MAX),
    (0x0f600, 24, 4, u32::MAX),
    (UTA, 128, 4, u32::MAX),
    // 5-tuple filters: SAQF, DAQF, SDPQF, FTQF, L34TIMIR.
    (0x0e000, 640, 4, u32::MAX),
    // FLA, EEWR, GRC, GCR, GCR_EXT, DCA_ID, DCA_CTRL, CORECTL, EEMNGCTL.
    (0x1001c, 1, 4, u32::MAX),
    (0x10018, 1, 4, u32::MAX),
    (0x10110, 1, 4, u32::MAX),
    (0x10200, 1, 4, 0x3),
    (0x11000, 1, 4, u32::MAX),
    (0x11050, 1, 4, u32::MAX),
    (0x11070, 2, 4, u32::MAX),
    (CORECTL, 1, 4, u32::MAX),
    // SWSR, HICR (no firmware: EN stays off), memory of the host interface, mailboxes.
    (0x15f10, 1, 4, u32::MAX),
    (0x15800, 448, 4, u32::MAX),
    (0x13000, 1024, 4, u32::MAX),
    (0x04b00, 64, 4, u32::MAX),
    // RTTDT1C, RTTDT2C, RTTPT2C.
    (0x0cd00, 1, 4, u32::MAX),
];

/// Registers that only read, as zero unless they have code of their own.
pub(super) const READ_ONLY: &[u32] = &[
    STATUS, FWSM, FACTPS, SECRXSTAT, SECTXSTAT, PCS1GLSTA, PCS1GANLP, ANLP1, LINKS2, 0x00048, 0x15f00, 0x0ce00,
    0x042d0, 0x042b4, 0x042a0, 0x0418c, 0x051e8, 0x051a4, 0x08a3c, 0x10160, 0x00700, 0x00710, 0x00600, 0x0ed10,
];
