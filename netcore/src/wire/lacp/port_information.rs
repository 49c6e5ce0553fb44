//! What a LACPDU says about one end of a link.

use crate::driver::MacAddress;
use bitflags::bitflags;
use core::fmt;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bitflags! {
    /// The state byte of a port (IEEE 802.1AX clause 6.4.2.3 l), bit names of the standard.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct LacpState: u8 {
        /// Sends without being asked (active LACP).
        const ACTIVITY = 0x01;
        /// Wants to hear once a second and gives up after three (short timeout); clear: 30 and 90 seconds.
        const TIMEOUT = 0x02;
        /// May be aggregated with other links; clear: individual.
        const AGGREGATION = 0x04;
        /// Attached to the right aggregator.
        const SYNCHRONIZATION = 0x08;
        /// Takes frames from the link.
        const COLLECTING = 0x10;
        /// Sends frames on the link.
        const DISTRIBUTING = 0x20;
        /// Uses configured information about its partner, for want of received.
        const DEFAULTED = 0x40;
        /// Has not heard from its partner in time.
        const EXPIRED = 0x80;
    }
}

impl fmt::Display for LacpState {
    /// Eight letters as Wireshark has them, highest bit first: `EFDCSGSA`, `*` where a bit is clear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, letter) in "EFDCSGSA".chars().enumerate() {
            fmt::Write::write_char(f, if self.bits() & 0x80 >> i != 0 { letter } else { '*' })?;
        }
        Ok(())
    }
}

/// System, key, port and state of one end, 18 bytes: the value of an Actor or Partner Information TLV.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortInformation {
    system_priority: U16,
    system: [u8; 6],
    key: U16,
    port_priority: U16,
    port: U16,
    state: u8,
    reserved: [u8; 3],
}

impl PortInformation {
    /// Bytes in it.
    pub const LEN: usize = 18;

    /// Information about a port. Lower priorities are better, for system and port alike.
    pub const fn new(
        system_priority: u16,
        system: MacAddress,
        key: u16,
        port_priority: u16,
        port: u16,
        state: LacpState,
    ) -> Self {
        Self {
            system_priority: U16::new(system_priority),
            system: system.0,
            key: U16::new(key),
            port_priority: U16::new(port_priority),
            port: U16::new(port),
            state: state.bits(),
            reserved: [0; 3],
        }
    }

    /// Priority of the system.
    pub fn system_priority(&self) -> u16 {
        self.system_priority.get()
    }

    /// Address of the system.
    pub const fn system(&self) -> MacAddress {
        MacAddress(self.system)
    }

    /// Operational key: ports of a system with equal keys can aggregate.
    pub fn key(&self) -> u16 {
        self.key.get()
    }

    /// Priority of the port.
    pub fn port_priority(&self) -> u16 {
        self.port_priority.get()
    }

    /// Number of the port.
    pub fn port(&self) -> u16 {
        self.port.get()
    }

    /// State byte.
    pub const fn state(&self) -> LacpState {
        LacpState::from_bits_retain(self.state)
    }
}
