//! How traffic would spread over the members of a bond.

use crate::policy::{Hash, RoundRobin};
use crate::reorder::{Links, Offered, Order, Reordering};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use netcore::{FlowKey, Instant, LinkState, Member, Packet, XmitPolicy};

/// What one flow did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowSpread {
    /// The flow.
    pub key: FlowKey,
    /// Frames.
    pub frames: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// Bytes on the member that carried most of it.
    pub most_bytes: u64,
    /// That member.
    pub member: usize,
}

/// What one policy did with all traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SpreadReport {
    /// Frames per member.
    pub frames: Vec<u64>,
    /// Bytes per member.
    pub bytes: Vec<u64>,
    /// Flows that each member carried, in whole or in part.
    pub flows: Vec<u64>,
    /// Flows in all.
    pub distinct_flows: u64,
    /// Frames that are not IP and belong to no flow.
    pub unkeyed: u64,
    /// The flow with most bytes.
    pub largest: Option<FlowSpread>,
}

impl SpreadReport {
    /// Mean over maximum of the bytes per member, in thousandths: 1000 is even, 1000 divided by the members is all on one.
    pub fn balance_permille(&self) -> u32 {
        let (total, most) = (self.bytes.iter().sum::<u64>(), self.bytes.iter().max().copied().unwrap_or(0));
        if most == 0 {
            return 1000;
        }
        let permille = u128::from(total) * 1000 / (u128::from(most) * self.bytes.len() as u128);
        u32::try_from(permille).unwrap_or(1000)
    }
}

#[derive(Clone, Debug, Default)]
struct Flow {
    frames: u64,
    /// Per member.
    bytes: Vec<u64>,
    sent: u64,
}

/// Deals frames out to members that are all up.
pub struct Spread {
    policy: Chosen,
    members: Vec<Member>,
    report: SpreadReport,
    flows: BTreeMap<FlowKey, Flow>,
    /// For round robin: every frame, and its flow and number in it.
    offered: Vec<Offered>,
    numbers: Vec<Option<(FlowKey, u64)>>,
}

enum Chosen {
    RoundRobin(RoundRobin),
    Hash(Hash),
}

impl Spread {
    /// By a hash.
    pub fn by_hash(policy: Hash, slaves: u16) -> Self {
        Self::new(Chosen::Hash(policy), slaves)
    }

    /// In turn.
    pub fn in_turn(policy: RoundRobin, slaves: u16) -> Self {
        Self::new(Chosen::RoundRobin(policy), slaves)
    }

    fn new(policy: Chosen, slaves: u16) -> Self {
        let n = usize::from(slaves);
        Self {
            policy,
            members: (0..slaves).map(|id| Member { id, active: true, link: LinkState::up(1000) }).collect(),
            report: SpreadReport {
                frames: alloc::vec![0; n],
                bytes: alloc::vec![0; n],
                flows: alloc::vec![0; n],
                distinct_flows: 0,
                unkeyed: 0,
                largest: None,
            },
            flows: BTreeMap::new(),
            offered: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// A frame of `len` bytes on the wire, of which the packet may hold fewer; says which member it goes to.
    pub fn frame(&mut self, packet: &Packet, len: u32, key: Option<FlowKey>, at: Instant) -> Option<usize> {
        let member = match &mut self.policy {
            Chosen::RoundRobin(policy) => policy.select(packet, &self.members),
            Chosen::Hash(policy) => policy.select(packet, &self.members),
        }?;
        self.report.frames[member] += 1;
        self.report.bytes[member] += u64::from(len);
        let number = match key {
            Some(key) => {
                let flow = self.flows.entry(key).or_default();
                flow.bytes.resize(self.members.len(), 0);
                flow.frames += 1;
                flow.bytes[member] += u64::from(len);
                flow.sent += 1;
                Some((key, flow.sent - 1))
            }
            None => {
                self.report.unkeyed += 1;
                None
            }
        };
        if matches!(self.policy, Chosen::RoundRobin(_)) {
            self.offered.push(Offered { at, frame: len, link: member });
            self.numbers.push(number);
        }
        Some(member)
    }

    /// What came of it.
    pub fn report(&self) -> SpreadReport {
        let mut report = self.report.clone();
        report.distinct_flows = self.flows.len() as u64;
        for (key, flow) in &self.flows {
            for (n, bytes) in flow.bytes.iter().enumerate() {
                report.flows[n] += u64::from(*bytes > 0);
            }
            let bytes = flow.bytes.iter().sum();
            if report.largest.is_none_or(|largest| bytes > largest.bytes) {
                let most = flow.bytes.iter().enumerate().max_by_key(|(_, bytes)| **bytes);
                let (member, most_bytes) = most.map_or((0, 0), |(n, bytes)| (n, *bytes));
                report.largest = Some(FlowSpread { key: *key, frames: flow.frames, bytes, most_bytes, member });
            }
        }
        report
    }

    /// For round robin: the order in which these links would deliver each flow, worst and sum over all flows. `None` for a
    /// hash, which keeps order.
    pub fn reordering(&self, links: &Links) -> Option<Reordering> {
        if !matches!(self.policy, Chosen::RoundRobin(_)) {
            return None;
        }
        let mut orders: BTreeMap<FlowKey, Order> = BTreeMap::new();
        for arrival in links.deliver(&self.offered) {
            if let Some((key, number)) = self.numbers[arrival.packet] {
                orders.entry(key).or_default().arrived(number);
            }
        }
        let mut all = Reordering { dupthresh: 1, dupthresh_fack: 1, ..Reordering::default() };
        for order in orders.values() {
            let one = order.report();
            all.packets += one.packets;
            all.reordered += one.reordered;
            all.total_extent += one.total_extent;
            all.duplicate_acks += one.duplicate_acks;
            all.max_extent = all.max_extent.max(one.max_extent);
            all.dupthresh = all.dupthresh.max(one.dupthresh);
            all.dupthresh_fack = all.dupthresh_fack.max(one.dupthresh_fack);
            all.extents.resize(all.extents.len().max(one.extents.len()), 0);
            for (sum, n) in all.extents.iter_mut().zip(&one.extents) {
                *sum += n;
            }
        }
        Some(all)
    }
}
