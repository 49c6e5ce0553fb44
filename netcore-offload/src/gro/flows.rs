//! Counters per flow.

use super::rules::GroConfig;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use netcore::flow::FlowKey;
use netcore::offload::GroEnd;
use netcore::{Packet, TunnelPorts};

/// What receive offload made of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowCounters {
    /// Wire packets that those delivered stand for.
    pub wire_packets: u64,
    /// Packets delivered.
    pub packets_out: u64,
    /// Bytes delivered, link headers included.
    pub bytes_out: u64,
    /// Super-packets among those delivered.
    pub super_packets: u64,
    reasons: [u64; GroEnd::ALL.len()],
}

impl FlowCounters {
    /// All reasons for which packets of the flow were delivered, with their counts; they add up to `packets_out`.
    pub fn reasons(&self) -> impl Iterator<Item = (GroEnd, u64)> + '_ {
        GroEnd::ALL.into_iter().zip(self.reasons).filter(|(_, count)| *count > 0)
    }

    fn add(&mut self, packet: &Packet, reason: GroEnd) {
        self.wire_packets += packet.wire_packets() as u64;
        self.packets_out += 1;
        self.bytes_out += packet.len() as u64;
        self.super_packets += u64::from(packet.is_super());
        self.reasons[reason.index()] += 1;
    }
}

/// One flow and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroFlow {
    /// The flow; `None` for all that is not IP, and for flows beyond the limit, together.
    pub key: Option<FlowKey>,
    /// What became of it.
    pub counters: FlowCounters,
}

/// Counters of up to a number of flows; the rest has one entry.
pub(super) struct Flows {
    flows: BTreeMap<FlowKey, FlowCounters>,
    limit: usize,
    other: FlowCounters,
    ports: TunnelPorts,
}

impl Flows {
    pub(super) fn new(limit: usize, config: &GroConfig) -> Self {
        let ports = config.tunnel_ports();
        Self { flows: BTreeMap::new(), limit, other: FlowCounters::default(), ports }
    }

    pub(super) fn deliver(&mut self, packet: &Packet, reason: GroEnd) {
        let key = FlowKey::of(packet.head(), &netcore::dissect(packet.head(), &self.ports));
        let counters = match key {
            Some(key) if self.flows.len() < self.limit => self.flows.entry(key).or_default(),
            Some(key) => self.flows.get_mut(&key).unwrap_or(&mut self.other),
            None => &mut self.other,
        };
        counters.add(packet, reason);
    }

    pub(super) fn all(&self) -> Vec<GroFlow> {
        let mut all: Vec<GroFlow> =
            self.flows.iter().map(|(key, counters)| GroFlow { key: Some(*key), counters: *counters }).collect();
        all.sort_by_key(|flow| core::cmp::Reverse(flow.counters.wire_packets));
        if self.other.packets_out > 0 {
            all.push(GroFlow { key: None, counters: self.other });
        }
        all
    }
}

impl GroConfig {
    /// The tunnel ports as [`dissect`](netcore::dissect()) takes them.
    pub fn tunnel_ports(&self) -> TunnelPorts {
        let ports = self.geneve_ports.iter().fold(TunnelPorts::none(), |ports, port| ports.with_geneve(*port));
        self.vxlan_ports.iter().fold(ports, |ports, port| ports.with_vxlan(*port))
    }
}
