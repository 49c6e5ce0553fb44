//! What lies between hosts: links, queues, switches.

mod egress;
mod link;
mod switch;

pub use egress::{Admission, Egress, EgressCounters, Red};
pub use link::{Link, LinkConfig, LinkCounters};
pub(crate) use link::{ecn_capable, set_congestion_experienced};
pub use switch::{Distribution, PortGroup, Switch, SwitchConfig, SwitchCounters};

/// Bytes that a frame takes on an Ethernet wire besides those between destination address and payload: preamble 8, FCS 4,
/// inter-frame gap 12.
pub const ETHERNET_OVERHEAD: u32 = 24;

/// Shortest Ethernet frame without FCS, bytes; shorter ones are padded on the wire.
pub const ETHERNET_MIN: usize = 60;

/// Bytes of wire time of a frame of `len` bytes.
pub const fn wire_bytes(len: usize, overhead: u32) -> u64 {
    let padded = if len < ETHERNET_MIN && overhead > 0 { ETHERNET_MIN } else { len };
    padded as u64 + overhead as u64
}
