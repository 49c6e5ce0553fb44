//! Measures of an order of arrival (RFC 4737), and what TCP makes of it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// What was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Reordering {
    /// Packets that arrived, doubles not counted.
    pub packets: u64,
    /// Packets that arrived after a later one (RFC 4737 section 3: reordered).
    pub reordered: u64,
    /// The most packets that overtook one (section 4.2: extent).
    pub max_extent: u64,
    /// All extents together; divided by `reordered`, the mean.
    pub total_extent: u64,
    /// Packets by extent: entry 0 is extent 1. The last entry, the 128th, counts all that are longer.
    pub extents: Vec<u64>,
    /// Out-of-order packets: each makes a duplicate ACK.
    pub duplicate_acks: u64,
    /// The smallest threshold at which no duplicate ACKs or SACKs trigger a retransmit: RFC 5681 and 6675, and
    /// `tcp_reordering` of Linux without FACK.
    pub dupthresh: u64,
    /// The smallest `tcp_reordering` at which FACK (Linux until 4.14) triggers none: it counts holes too.
    pub dupthresh_fack: u64,
}

/// Takes arrivals of packets that are numbered in the order they were sent.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// All below have arrived.
    next: u64,
    /// Those above that have arrived.
    above: BTreeSet<u64>,
    report: Reordering,
    most_above: u64,
    farthest: u64,
}

impl Order {
    /// Extents that are told apart.
    pub const EXTENTS: usize = 128;

    /// Nothing has arrived; the first packet is number 0.
    pub const fn new() -> Self {
        Self {
            next: 0,
            above: BTreeSet::new(),
            report: Reordering {
                packets: 0,
                reordered: 0,
                max_extent: 0,
                total_extent: 0,
                extents: Vec::new(),
                duplicate_acks: 0,
                dupthresh: 0,
                dupthresh_fack: 0,
            },
            most_above: 0,
            farthest: 0,
        }
    }

    /// A packet arrived. One that arrived before is not counted.
    pub fn arrived(&mut self, packet: u64) {
        if packet < self.next || self.above.contains(&packet) {
            return;
        }
        let r = &mut self.report;
        r.packets += 1;
        let extent = self.above.range(packet + 1..).count() as u64;
        if extent > 0 {
            r.reordered += 1;
            r.total_extent += extent;
            r.max_extent = r.max_extent.max(extent);
            if r.extents.is_empty() {
                r.extents.resize(Self::EXTENTS, 0);
            }
            let last = Self::EXTENTS - 1;
            r.extents[usize::try_from(extent - 1).unwrap_or(last).min(last)] += 1;
        }
        if packet > self.next {
            r.duplicate_acks += 1;
            self.above.insert(packet);
            // What the ACK that this packet makes tells the sender.
            self.most_above = self.most_above.max(self.above.len() as u64);
            let highest = self.above.last().copied().unwrap_or(packet);
            self.farthest = self.farthest.max(highest - self.next + 1);
            return;
        }
        self.next += 1;
        while self.above.remove(&self.next) {
            self.next += 1;
        }
        // The sender still sees what is above the next hole.
        if let Some(highest) = self.above.last() {
            self.most_above = self.most_above.max(self.above.len() as u64);
            self.farthest = self.farthest.max(highest - self.next + 1);
        }
    }

    /// Packets that have not arrived although later ones have.
    pub fn missing(&self) -> u64 {
        self.above.last().map_or(0, |highest| highest - self.next + 1 - self.above.len() as u64)
    }

    /// What was measured so far.
    pub fn report(&self) -> Reordering {
        let mut report = self.report.clone();
        report.dupthresh = self.most_above + 1;
        report.dupthresh_fack = self.farthest.max(1);
        report
    }
}
