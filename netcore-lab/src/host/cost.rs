//! What receiving costs the CPU.

use std::time::Duration;

/// Cost of receiving. All zero: an infinitely fast host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// For each poll, ns.
    pub poll_ns: u64,
    /// For each packet on the wire, ns.
    pub wire_ns: u64,
    /// For each packet delivered to the stack, ns.
    pub delivered_ns: u64,
    /// For each byte, in ps.
    pub byte_ps: u64,
}

impl Cost {
    /// Time for one poll that took `wire` packets with `bytes` bytes and delivered `delivered` packets.
    pub fn of(&self, wire: usize, delivered: usize, bytes: u64) -> Duration {
        let per_packet = self.wire_ns * wire as u64 + self.delivered_ns * delivered as u64;
        let per_poll = if wire > 0 { self.poll_ns } else { 0 };
        Duration::from_nanos(per_poll + per_packet + self.byte_ps * bytes / 1000)
    }
}
