//! LACPDUs and Marker PDUs (IEEE 802.1AX clauses 6.4.2.3 and 6.5.3.3; 802.3ad clauses 43.4.2.2 and 43.5.3.2).
//!
//! Both are 110 bytes behind the Ethernet header, all numbers big endian.

mod lacpdu;
mod marker;
mod port_information;
#[cfg(test)]
mod tests;

pub use lacpdu::{Lacpdu, LacpduTlv, LacpduTlvs};
pub use marker::Marker;
pub use port_information::{LacpState, PortInformation};
