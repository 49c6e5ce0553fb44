//! Flows by load.

use super::super::Bond;
use super::{REBALANCE, TICKS};
use netcore::Driver;

/// Flows that are told apart (`TLB_HASH_TABLE_SIZE`).
pub(super) const TABLE: usize = 256;

/// All traffic with one hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The member that carries it.
    member: Option<u16>,
    /// Bytes since the last rebalance.
    bytes: u64,
    /// Bytes per second before that.
    history: u64,
}

impl<D: Driver> Bond<D> {
    /// The member of a flow; a flow without one goes to the member with most to spare.
    pub(super) fn flow_member(&mut self, flow: usize, len: usize) -> Option<usize> {
        let assigned = self.adaptive.as_ref()?.flows.get(flow)?.member.and_then(|id| self.index_of(id));
        let index = match assigned {
            Some(index) => index,
            None => {
                // The first of those with the largest gap.
                let able = (0..self.members.len()).filter(|&i| self.members[i].can_send());
                let index =
                    able.reduce(|best, i| if self.members[i].gap() > self.members[best].gap() { i } else { best })?;
                let flow = &mut self.adaptive.as_mut()?.flows[flow];
                flow.member = Some(self.members[index].id);
                self.members[index].load += flow.history;
                index
            }
        };
        let flow = &mut self.adaptive.as_mut()?.flows[flow];
        flow.bytes += len as u64;
        if !self.members[index].can_send() {
            // Those that still name it are given to others.
            self.clear_flows(index, false);
            return None;
        }
        Some(index)
    }

    /// Takes all flows from a member; `keep` remembers how much they carried.
    pub(super) fn clear_flows(&mut self, index: usize, keep: bool) {
        let id = self.members[index].id;
        self.members[index].load = 0;
        let Some(a) = &mut self.adaptive else { return };
        for flow in a.flows.iter_mut().filter(|flow| flow.member == Some(id)) {
            flow.member = None;
            if keep {
                flow.history = 1 + flow.bytes / REBALANCE;
                flow.bytes = 0;
            }
        }
    }

    /// Every ten seconds, flows lose their members and find new ones by what they carried.
    pub(super) fn rebalance_flows(&mut self) {
        for index in 0..self.members.len() {
            self.clear_flows(index, true);
        }
        let current = self.current.and_then(|id| self.index_of(id));
        let Some(a) = &mut self.adaptive else { return };
        a.rebalance_in = REBALANCE as u32 * TICKS;
        if let Some(current) = current {
            self.members[current].load = core::mem::take(&mut a.unbalanced) / REBALANCE;
        }
    }
}
