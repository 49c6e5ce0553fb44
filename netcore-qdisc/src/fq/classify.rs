//! Which flow a packet belongs to (Linux: `fq_classify`, `fq_fastpath_check`).

use super::Fq;
use super::flow::{Key, Place};
use crate::wire::flow_hash;
use netcore::Packet;

/// Flows freed at a time (`FQ_GC_MAX`).
const COLLECT: u32 = 8;
/// A flow idle for longer is freed (`FQ_GC_AGE`), nanoseconds.
const COLLECT_AGE: u64 = 3_000_000_000;
/// Packets in the internal queue up to which it takes more while flows wait.
const FAST_PATH: u32 = 8;
/// `TC_PRIO_CONTROL`.
const CONTROL: u32 = 7;

impl Fq {
    /// The packet's flow, made if there is none; `None` is the internal queue.
    pub(super) fn classify(&mut self, packet: &Packet, time: u64) -> Option<u32> {
        if self.takes_fast_path(packet, time) {
            return None;
        }
        let key = match packet.flow_id() {
            Some(id) => Key::Socket(id),
            None => Key::Orphan(flow_hash(packet) & self.options.orphan_mask),
        };
        self.collect_idle(key);
        let Some(flow) = self.flows.find(key) else {
            return self.add_flow(packet, key);
        };
        if let (Some(_), Some((hash, _))) = (packet.flow_id(), packet.hash()) {
            let initial = self.options.initial_quantum as i32;
            let f = self.flows.get_mut(flow);
            if f.socket_hash != hash {
                // The identity was given to another socket.
                f.socket_hash = hash;
                f.credit = initial;
                f.next_time = 0;
                if f.place == Place::Throttled {
                    self.leave_wheel(flow);
                }
            }
        }
        Some(flow)
    }

    fn add_flow(&mut self, packet: &Packet, key: Key) -> Option<u32> {
        let Some(flow) = self.flows.add(key, self.options.initial_quantum as i32, self.now) else {
            self.counters.allocation_errors += 1;
            return None;
        };
        self.flows.get_mut(flow).socket_hash = packet.hash().map_or(0, |(hash, _)| hash);
        self.counters.inactive_flows += 1;
        Some(flow)
    }

    fn collect_idle(&mut self, keep: Key) {
        let (flows, inactive) = (self.flows.count(), self.counters.inactive_flows);
        if !self.rules.eager_gc && (flows < 2 * self.options.buckets || inactive <= flows / 2) {
            return;
        }
        let Some(limit) = self.now.checked_sub(COLLECT_AGE) else { return };
        let collected = self.flows.collect(limit, keep, COLLECT);
        self.counters.inactive_flows -= collected;
        self.counters.gc += u64::from(collected);
    }

    /// A packet that may leave now goes past all flows if none of them can send anything, unless a rate limits it: fq's
    /// `maxrate`, or the socket's own. A packet with a departure time has its socket's rate in that time already.
    fn takes_fast_path(&mut self, packet: &Packet, time: u64) -> bool {
        if !self.rules.fast_path {
            let control = packet.priority() & 15 == CONTROL;
            self.counters.highprio += u64::from(control);
            return control;
        }
        let due = self.now.saturating_add(self.ns.offload_horizon);
        if time > due {
            return false;
        }
        if self.len != 0 {
            let waiting = self.counters.inactive_flows + self.counters.throttled_flows;
            if self.flows.count() != waiting || self.internal_len >= FAST_PATH {
                return false;
            }
            if self.wheel.earliest().is_some_and(|earliest| earliest <= due) {
                return false;
            }
        }
        if self.ns.maxrate != u64::MAX || (packet.pacing_rate().is_some() && packet.departure().is_none()) {
            return false;
        }
        self.counters.fastpath += 1;
        true
    }
}
