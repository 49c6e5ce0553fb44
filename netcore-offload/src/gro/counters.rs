//! What receive offload did, and why each delivered packet was delivered when it was.

use netcore::offload::GroEnd;
use netcore::{Packet, Statistics};

/// Counters of a [`Gro`](super::Gro).
///
/// Every delivered packet has one reason, so the reasons add up to `packets_out`; and
/// `packets_in` = `merged` + `packets_out` + packets held now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroCounters {
    /// Packets received.
    pub packets_in: u64,
    /// Bytes received, link headers included.
    pub bytes_in: u64,
    /// Packets merged into a held one.
    pub merged: u64,
    /// Packets delivered.
    pub packets_out: u64,
    /// Bytes delivered, link headers included.
    pub bytes_out: u64,
    /// Super-packets among those delivered.
    pub super_packets: u64,
    reasons: [u64; GroEnd::ALL.len()],
}

impl GroCounters {
    #[inline(always)]
    pub(super) fn deliver(&mut self, packet: &Packet, reason: GroEnd) {
        self.packets_out += 1;
        self.bytes_out += packet.len() as u64;
        self.super_packets += u64::from(packet.is_super());
        self.reasons[reason.index()] += 1;
    }

    /// How many packets were delivered for this reason.
    pub fn ended(&self, reason: GroEnd) -> u64 {
        self.reasons[reason.index()]
    }

    /// All reasons that occurred, with their counts.
    pub fn reasons(&self) -> impl Iterator<Item = (GroEnd, u64)> + '_ {
        GroEnd::ALL.into_iter().map(|reason| (reason, self.ended(reason))).filter(|(_, count)| *count > 0)
    }

    pub(super) fn write(&self, statistics: &mut Statistics) {
        statistics.add("gro_packets_in", self.packets_in);
        statistics.add("gro_merged", self.merged);
        statistics.add("gro_packets_out", self.packets_out);
        statistics.add("gro_super_packets", self.super_packets);
        for (reason, count) in self.reasons() {
            statistics.add(alloc::format!("gro_end_{}", reason.name()), count);
        }
    }
}
