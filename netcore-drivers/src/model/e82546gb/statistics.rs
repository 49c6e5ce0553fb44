//! Which statistics registers there are (manual 13.7).

use crate::model::counters::Counters;

/// Offsets of 32-bit counters and of the lower halves of pairs.
pub(super) mod at {
    pub(crate) const CRCERRS: u32 = 0x4000;
    pub(crate) const MPC: u32 = 0x4010;
    pub(crate) const XONRXC: u32 = 0x4048;
    pub(crate) const XONTXC: u32 = 0x404c;
    pub(crate) const XOFFRXC: u32 = 0x4050;
    pub(crate) const XOFFTXC: u32 = 0x4054;
    pub(crate) const PRC64: u32 = 0x405c;
    pub(crate) const GPRC: u32 = 0x4074;
    pub(crate) const BPRC: u32 = 0x4078;
    pub(crate) const MPRC: u32 = 0x407c;
    pub(crate) const GPTC: u32 = 0x4080;
    pub(crate) const GORC: u32 = 0x4088;
    pub(crate) const GOTC: u32 = 0x4090;
    pub(crate) const RNBC: u32 = 0x40a0;
    pub(crate) const RUC: u32 = 0x40a4;
    pub(crate) const ROC: u32 = 0x40ac;
    pub(crate) const TOR: u32 = 0x40c0;
    pub(crate) const TOT: u32 = 0x40c8;
    pub(crate) const TPR: u32 = 0x40d0;
    pub(crate) const TPT: u32 = 0x40d4;
    pub(crate) const PTC64: u32 = 0x40d8;
    pub(crate) const MPTC: u32 = 0x40f0;
    pub(crate) const BPTC: u32 = 0x40f4;
    pub(crate) const TSCTC: u32 = 0x40f8;
    pub(crate) const TSCTFC: u32 = 0x40fc;
}

const FIRST: u32 = 0x4000;
const LAST: u32 = 0x40fc;
/// Offsets in between where no counter is.
const HOLES: &[u32] = &[0x4024, 0x402c, 0x4044, 0x4084, 0x4098, 0x409c];

/// Lower halves of pairs.
const PAIRS: &[u32] = &[at::GORC, at::GOTC, at::TOR, at::TOT];

/// The counter at an offset of the register file.
pub(super) fn index(offset: u32) -> Option<u32> {
    ((FIRST..=LAST).contains(&offset) && !HOLES.contains(&offset)).then_some(offset)
}

pub(super) fn counters() -> Counters {
    Counters::new(FIRST, LAST, PAIRS)
}
