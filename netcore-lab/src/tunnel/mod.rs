//! Tunnel devices of hosts.

mod receive;
#[cfg(test)]
mod tests;
mod vxlan;

pub use receive::{VxlanReceive, VxlanReceiveCounters};
pub use vxlan::{Vxlan, VxlanConfig, VxlanCounters};
