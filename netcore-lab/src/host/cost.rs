//! What a host's work costs its CPU.

use std::time::Duration;

/// Cost of receiving, sending, and of the applications' system calls. All zero: an infinitely fast host.
///
/// All work is done by one server, first come, first served, in pieces: a poll, a frame sent, one system call. It stands for
/// the slowest thing that all of a host's traffic passes: a core, a socket's lock, or the memory bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// For each poll, ns.
    pub poll_ns: u64,
    /// For each packet on the wire, ns.
    pub wire_ns: u64,
    /// For each packet delivered to the stack, ns.
    pub delivered_ns: u64,
    /// For each byte received, in ps.
    pub byte_ps: u64,
    /// For each packet sent, ns.
    pub sent_ns: u64,
    /// For each byte sent, in ps.
    pub sent_byte_ps: u64,
    /// For each read or write of an application, ns. If this or the next is not zero, applications wait their turn.
    pub call_ns: u64,
    /// For each byte read or written, in ps.
    pub copy_byte_ps: u64,
}

impl Cost {
    /// Time for one poll that took `wire` packets with `bytes` bytes and delivered `delivered` packets.
    pub fn of(&self, wire: usize, delivered: usize, bytes: u64) -> Duration {
        let per_packet = self.wire_ns * wire as u64 + self.delivered_ns * delivered as u64;
        let per_poll = if wire > 0 { self.poll_ns } else { 0 };
        Duration::from_nanos(per_poll + per_packet + self.byte_ps * bytes / 1000)
    }

    /// Time for one packet of `bytes` bytes that is sent.
    pub fn of_sending(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.sent_ns + self.sent_byte_ps * bytes as u64 / 1000)
    }

    /// Time for one read or write of `bytes` bytes.
    pub fn of_call(&self, bytes: u64) -> Duration {
        Duration::from_nanos(self.call_ns + self.copy_byte_ps * bytes / 1000)
    }

    /// Whether applications wait for the CPU.
    pub(super) const fn has_calls(&self) -> bool {
        self.call_ns > 0 || self.copy_byte_ps > 0
    }

    /// Whether sending takes time.
    pub(super) const fn has_sending(&self) -> bool {
        self.sent_ns > 0 || self.sent_byte_ps > 0
    }
}
