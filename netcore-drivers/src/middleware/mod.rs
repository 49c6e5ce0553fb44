//! Drivers around drivers: each wraps any [`Driver`](netcore::Driver) and is one.
//!
//! | wrapper | what it does |
//! | --- | --- |
//! | [`Tracer`] | says what passes, one [`Trace`] per packet |
//! | [`FaultInjector`] | drops, doubles, reorders, damages and delays packets, from a seed |
//! | [`CaptureTap`] | writes what passes to a capture file |
//!
//! ```text
//!   Port ── Tracer ── FaultInjector ── CaptureTap ── the device
//! ```
//!
//! What is not theirs to do (settings, link, timers) they pass on. They do not hand out queues: a handle would bypass them.

mod fault;
#[cfg(feature = "pcap")]
mod tap;
mod tracer;

pub use fault::{Chance, FaultConfig, FaultConfigError, FaultInjector, Faults};
#[cfg(feature = "pcap")]
pub use tap::CaptureTap;
pub use tracer::{Trace, Tracer};

use core::fmt;

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// To the device.
    Transmit,
    /// From the device.
    Receive,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transmit => "tx",
            Self::Receive => "rx",
        })
    }
}

/// The methods of `Driver` that a wrapper passes on to the field named.
macro_rules! pass_on {
    ($inner:ident) => {
        fn link(&self) -> netcore::LinkState {
            self.$inner.link()
        }
        fn set_mac(&mut self, mac: netcore::MacAddress) -> Result<(), netcore::DriverError> {
            self.$inner.set_mac(mac)
        }
        fn set_mtu(&mut self, mtu: usize) -> Result<(), netcore::DriverError> {
            self.$inner.set_mtu(mtu)
        }
        fn set_multicast(&mut self, groups: &[netcore::MacAddress]) -> Result<(), netcore::DriverError> {
            self.$inner.set_multicast(groups)
        }
        fn set_promiscuous(&mut self, on: bool) -> Result<(), netcore::DriverError> {
            self.$inner.set_promiscuous(on)
        }
        fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), netcore::DriverError> {
            self.$inner.set_vlan_filter(vlans)
        }
        fn set_features(&mut self, features: netcore::Features) -> Result<(), netcore::DriverError> {
            self.$inner.set_features(features)
        }
    };
}
use pass_on;
