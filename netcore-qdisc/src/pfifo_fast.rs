//! pfifo_fast: three bands in strict order of priority (Linux: `net/sched/sch_generic.c`).

use crate::PRIO2BAND;
use crate::wire::wire_len;
use alloc::format;
use alloc::string::{String, ToString};
use netcore::{
    Dequeue, DropReason, Drops, Instant, Packet, PacketQueue, Qdisc, QdiscError, QdiscStatistics, Statistics,
};

const NAME: &str = "pfifo_fast";
const BANDS: usize = 3;

/// Linux's default qdisc of old: three queues of the device's `txqueuelen` packets each; a packet of a later band leaves
/// only while the earlier ones are empty. It has no options; the length belongs to the device.
#[derive(Debug)]
pub struct PfifoFast {
    bands: [PacketQueue; BANDS],
    queue_len: usize,
    backlog: usize,
    statistics: QdiscStatistics,
    band_drops: [u64; BANDS],
}

impl PfifoFast {
    /// `txqueuelen` of an Ethernet device.
    pub const DEFAULT_QUEUE_LEN: usize = 1000;

    /// Three bands of `queue_len` packets each.
    pub fn new(queue_len: usize) -> Self {
        Self {
            bands: [PacketQueue::new(), PacketQueue::new(), PacketQueue::new()],
            queue_len,
            backlog: 0,
            statistics: QdiscStatistics::default(),
            band_drops: [0; BANDS],
        }
    }

    /// From the words of a `tc` command, of which there must be none.
    ///
    /// # Errors
    /// [`QdiscError::UnknownOption`].
    pub fn from_words(words: &[&str]) -> Result<Self, QdiscError> {
        match words.first() {
            None => Ok(Self::default()),
            Some(option) => Err(no_options(option)),
        }
    }

    /// Changes the length of each band (Linux: `ip link set … txqueuelen`). The last packets of a band that do not fit are
    /// dropped.
    pub fn set_queue_len(&mut self, queue_len: usize, drops: &mut Drops) {
        self.queue_len = queue_len;
        for n in 0..BANDS {
            let mut band = core::mem::take(&mut self.bands[n]);
            while let Some(packet) = band.pop_front() {
                if self.bands[n].len() < queue_len {
                    self.bands[n].push_back(packet);
                } else {
                    self.backlog -= wire_len(&packet) as usize;
                    self.drop_packet(n, packet, DropReason::Reset, drops);
                }
            }
        }
    }

    /// Packets dropped per band.
    pub fn band_drops(&self) -> [u64; BANDS] {
        self.band_drops
    }

    fn drop_packet(&mut self, band: usize, packet: Packet, reason: DropReason, drops: &mut Drops) {
        self.statistics.drops += 1;
        self.band_drops[band] += 1;
        drops.push(packet, reason);
    }
}

impl Default for PfifoFast {
    fn default() -> Self {
        Self::new(Self::DEFAULT_QUEUE_LEN)
    }
}

fn no_options(option: &str) -> QdiscError {
    QdiscError::UnknownOption { qdisc: NAME, option: option.to_string(), allowed: "none" }
}

impl Qdisc for PfifoFast {
    fn enqueue(&mut self, packet: Packet, _now: Instant, drops: &mut Drops) {
        let band = usize::from(PRIO2BAND[(packet.priority() & 15) as usize]);
        if self.bands[band].len() >= self.queue_len {
            return self.drop_packet(band, packet, DropReason::OverLimit, drops);
        }
        self.backlog += wire_len(&packet) as usize;
        self.bands[band].push_back(packet);
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut Drops) -> Dequeue {
        let Some(packet) = self.bands.iter_mut().find_map(PacketQueue::pop_front) else { return Dequeue::Empty };
        let len = wire_len(&packet);
        self.backlog -= len as usize;
        self.statistics.bytes += u64::from(len);
        self.statistics.packets += packet.wire_packets() as u64;
        Dequeue::Packet(packet)
    }

    fn len(&self) -> usize {
        self.bands.iter().map(PacketQueue::len).sum()
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn statistics(&self) -> QdiscStatistics {
        let mut statistics = self.statistics;
        statistics.qlen = self.len() as u64;
        statistics.backlog = self.backlog as u64;
        statistics
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn reset(&mut self, drops: &mut Drops) {
        for band in 0..BANDS {
            while let Some(packet) = self.bands[band].pop_front() {
                self.drop_packet(band, packet, DropReason::Reset, drops);
            }
        }
        self.backlog = 0;
    }

    fn change(&mut self, options: &[&str], _now: Instant, _drops: &mut Drops) -> Result<(), QdiscError> {
        options.first().map_or(Ok(()), |option| Err(no_options(option)))
    }

    fn options(&self) -> String {
        let map: alloc::vec::Vec<String> = PRIO2BAND.iter().map(u8::to_string).collect();
        format!("bands {BANDS} priomap {}", map.join(" "))
    }

    fn extended_statistics(&self, statistics: &mut Statistics) {
        for (name, drops) in ["band0_drops", "band1_drops", "band2_drops"].into_iter().zip(self.band_drops) {
            statistics.add(name, drops);
        }
    }
}
