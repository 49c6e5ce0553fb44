//! Statistics registers (82599 datasheet 8.2.3.23).

use super::E82599;
use super::map::{RQSMR, TQSM};
use crate::model::counters::Counters;
use std::vec::Vec;

/// Offsets of 32-bit counters and of the lower halves of pairs.
pub(super) mod at {
    pub(crate) const LXONTXC: u32 = 0x3f60;
    pub(crate) const LXOFFTXC: u32 = 0x3f68;
    pub(crate) const MPC: u32 = 0x3fa0;
    pub(crate) const CRCERRS: u32 = 0x4000;
    pub(crate) const PRC64: u32 = 0x405c;
    pub(crate) const GPRC: u32 = 0x4074;
    pub(crate) const BPRC: u32 = 0x4078;
    pub(crate) const MPRC: u32 = 0x407c;
    pub(crate) const GPTC: u32 = 0x4080;
    pub(crate) const GORC: u32 = 0x4088;
    pub(crate) const GOTC: u32 = 0x4090;
    pub(crate) const RUC: u32 = 0x40a4;
    pub(crate) const ROC: u32 = 0x40ac;
    pub(crate) const TOR: u32 = 0x40c0;
    pub(crate) const TPR: u32 = 0x40d0;
    pub(crate) const TPT: u32 = 0x40d4;
    pub(crate) const PTC64: u32 = 0x40d8;
    pub(crate) const MPTC: u32 = 0x40f0;
    pub(crate) const BPTC: u32 = 0x40f4;
    pub(crate) const LXONRXCNT: u32 = 0x41a4;
    pub(crate) const LXOFFRXCNT: u32 = 0x41a8;
}

const FIRST: u32 = 0x3f00;
const LAST: u32 = 0x41fc;
const PAIRS: &[u32] = &[at::GORC, at::GOTC, at::TOR];
/// Counters of each kind of queue event.
const SETS: usize = 16;
/// Counters of management, FCoE, virtual functions, priorities and security, which stay zero here.
const ZERO: &[u32] = &[
    0x0cf90, 0x05118, 0x0241c, 0x02424, 0x02428, 0x0242c, 0x08784, 0x08788, 0x08780, 0x087b0, 0x02f90, 0x02f50,
    0x02f54, 0x02f58, 0x02f5c, 0x05430,
];

/// True if a counter is at this offset.
pub(super) fn is_counter(offset: u32) -> bool {
    matches!(offset, FIRST..=0x3fbc | 0x4000..=LAST | 0x03240..=0x0325c | 0x08700..=0x0877c)
        || ZERO.contains(&offset)
        || queue_counter(offset).is_some()
}

/// Set, and which of its counters.
fn queue_counter(offset: u32) -> Option<(usize, Kind)> {
    let set = |base: u32| ((offset - base) >> 6) as usize;
    match (offset, offset & 0x3f) {
        (0x1000..0x1400, 0x30) => Some((set(0x1000), Kind::Received)),
        (0x1000..0x1400, 0x34) => Some((set(0x1000), Kind::ReceivedLow)),
        (0x1000..0x1400, 0x38) => Some((set(0x1000), Kind::ReceivedHigh)),
        (0x1400..0x1800, 0x30) => Some((set(0x1400), Kind::Dropped)),
        (0x6000..0x6400, 0x30) => Some((set(0x6000), Kind::Sent)),
        (0x8700..0x8780, at) if at & 4 == 0 => Some((((offset - 0x8700) >> 3) as usize, Kind::SentLow)),
        (0x8700..0x8780, _) => Some((((offset - 0x8700) >> 3) as usize, Kind::SentHigh)),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Received,
    Dropped,
    ReceivedLow,
    ReceivedHigh,
    Sent,
    SentLow,
    SentHigh,
}

#[derive(Clone, Copy, Debug, Default)]
struct Set {
    received: u64,
    received_bytes: u64,
    dropped: u64,
    sent: u64,
    sent_bytes: u64,
    /// A lower half was read and not yet its upper one.
    received_low: bool,
    sent_low: bool,
}

#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) counters: Counters,
    sets: Vec<Set>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { counters: Counters::new(FIRST, LAST, PAIRS), sets: vec![Set::default(); SETS] }
    }
}

impl Statistics {
    pub(super) fn clear(&mut self) {
        self.counters.clear();
        self.sets.fill(Set::default());
    }

    pub(super) fn add(&mut self, offset: u32, n: u64) {
        self.counters.add(offset, n);
    }

    /// Reads a counter, which clears it, and says whether it may be read now; `None` if there is none.
    pub(super) fn read(&mut self, offset: u32) -> Option<(u32, bool)> {
        if let Some((set, kind)) = queue_counter(offset) {
            let set = &mut self.sets[set];
            let take = |counter: &mut u64| core::mem::take(counter).min(u64::from(u32::MAX)) as u32;
            return Some(match kind {
                Kind::Received => (take(&mut set.received), true),
                Kind::Dropped => (take(&mut set.dropped), true),
                Kind::Sent => (take(&mut set.sent), true),
                Kind::ReceivedLow => {
                    set.received_low = true;
                    (set.received_bytes as u32, true)
                }
                Kind::SentLow => {
                    set.sent_low = true;
                    (set.sent_bytes as u32, true)
                }
                // 36 bits; reading the upper half clears both.
                Kind::ReceivedHigh => {
                    let high = core::mem::take(&mut set.received_bytes) >> 32;
                    ((high & 0xf) as u32, core::mem::take(&mut set.received_low))
                }
                Kind::SentHigh => {
                    let high = core::mem::take(&mut set.sent_bytes) >> 32;
                    ((high & 0xf) as u32, core::mem::take(&mut set.sent_low))
                }
            });
        }
        if ZERO.contains(&offset) || (0x03240..=0x0325c).contains(&offset) {
            return Some((0, true));
        }
        is_counter(offset).then(|| self.counters.read(offset))
    }
}

impl E82599 {
    /// The counter set of a queue.
    fn set_of(&mut self, register: u32, queue: usize) -> &mut Set {
        let map = self.word(register + (queue as u32 & !3));
        let set = map >> (8 * (queue & 3)) & 0xf;
        &mut self.statistics.sets[set as usize]
    }

    pub(super) fn count_received(&mut self, queue: usize, bytes: usize) {
        let set = self.set_of(RQSMR, queue);
        set.received += 1;
        set.received_bytes += bytes as u64;
    }

    pub(super) fn count_dropped(&mut self, queue: usize) {
        self.set_of(RQSMR, queue).dropped += 1;
    }

    pub(super) fn count_sent(&mut self, queue: usize, bytes: usize) {
        let set = self.set_of(TQSM, queue);
        set.sent += 1;
        set.sent_bytes += bytes as u64;
    }
}
