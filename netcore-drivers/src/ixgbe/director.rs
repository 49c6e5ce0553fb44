//! Flow Director: perfect filters, which send a flow to a queue or drop it (82599 datasheet 7.1.2.7).

use super::Ixgbe;
use super::regs::{
    FDIRCMD, FDIRCTRL, FDIRDIP4M, FDIRHASH, FDIRHKEY, FDIRIP6M, FDIRIPDA, FDIRIPSA, FDIRM, FDIRPORT, FDIRSIP4M,
    FDIRSIPV6, FDIRSKEY, FDIRTCPM, FDIRUDPM, FDIRVLAN,
};
use crate::bus::wait_until;
use crate::error::NicError;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

/// Keys of the two hashes (Intel's drivers).
const BUCKET_KEY: u32 = 0x3dad_14e2;
const SIGNATURE_KEY: u32 = 0x174d_3614;
/// Table memory by code, KiB; filters in it.
const TABLE_CODE: u32 = 1;
const TABLE_KIB: u32 = 64;
const TABLE_FILTERS: usize = 2048;
/// FDIRCTRL.
const INIT_DONE: u32 = 1 << 3;
const PERFECT: u32 = 1 << 4;
const DROP_QUEUE: u32 = 127;
const FULL_THRESHOLD: u32 = 4 << 28;
const MAX_LENGTH: u32 = 10 << 24;
/// FDIRCMD.
const ADD: u32 = 1;
const REMOVE: u32 = 2;
const QUERY: u32 = 3;
const COMMAND: u32 = 3;
const VALID: u32 = 1 << 2;
const UPDATE: u32 = 1 << 3;
const DROP: u32 = 1 << 9;
const LAST: u32 = 1 << 11;
const QUEUE_ENABLE: u32 = 1 << 15;
/// FDIRM: the pool, flexible bytes and IPv6 destinations are not looked at; nor are tags.
const IGNORED: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5;

/// Transport protocol of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP; its ports are not compared.
    Sctp,
}

/// An IPv4 flow, by addresses and ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Flow {
    /// Protocol.
    pub protocol: FlowProtocol,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

/// What becomes of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FlowAction {
    /// Receive on this queue.
    Queue(u16),
    /// Drop in hardware.
    Drop,
}

/// Filters that were asked for; they are programmed anew at each start.
#[derive(Debug, Default)]
pub(super) struct Filters {
    on: bool,
    list: Vec<(u16, Flow, FlowAction)>,
}

impl Ixgbe {
    /// KiB of the packet buffer that filters take.
    pub(super) const fn director_kib(&self) -> u32 {
        if self.filters.on { TABLE_KIB } else { 0 }
    }

    /// Reserves room for filters, or gives it back; counts from the next start on.
    pub fn set_flow_filters(&mut self, on: bool) {
        self.filters.on = on;
        if !on {
            self.filters.list.clear();
        }
    }

    /// Adds filter number `id`, or changes it. The device may run.
    ///
    /// # Errors
    /// [`NicError::Unsupported`] if filters are not switched on ([`Ixgbe::set_flow_filters`]); [`NicError::OutOfRange`] for a
    /// queue that does not exist or one filter too many; [`NicError::Timeout`]; [`NicError::Removed`].
    pub fn add_flow_filter(&mut self, id: u16, flow: Flow, action: FlowAction) -> Result<(), NicError> {
        if !self.filters.on {
            return Err(NicError::Unsupported { what: "a flow filter while no room is reserved for them" });
        }
        if let FlowAction::Queue(queue) = action
            && queue >= self.queues_in_use
        {
            return Err(NicError::OutOfRange {
                what: "queue of a flow filter",
                value: queue.into(),
                allowed: "below the number of queues in use",
            });
        }
        let known = self.filters.list.iter().position(|(number, ..)| *number == id);
        if let Some(at) = known {
            self.remove_flow_filter(self.filters.list[at].0)?;
        } else if self.filters.list.len() >= TABLE_FILTERS {
            return Err(NicError::OutOfRange {
                what: "flow filters",
                value: self.filters.list.len() as u64 + 1,
                allowed: "up to 2048",
            });
        }
        self.filters.list.push((id, flow, action));
        if self.director_runs { self.write_filter(id, &flow, action) } else { Ok(()) }
    }

    /// Takes filter number `id` away.
    ///
    /// # Errors
    /// [`NicError::OutOfRange`] if there is none; [`NicError::Timeout`]; [`NicError::Removed`].
    pub fn remove_flow_filter(&mut self, id: u16) -> Result<(), NicError> {
        let at = self.filters.list.iter().position(|(number, ..)| *number == id);
        let Some(at) = at else {
            return Err(NicError::OutOfRange { what: "flow filter", value: id.into(), allowed: "one that was added" });
        };
        let (_, flow, _) = self.filters.list.remove(at);
        if !self.director_runs {
            return Ok(());
        }
        self.csr.write(FDIRHASH, identity(id, &flow));
        self.csr.flush()?;
        self.command(QUERY)?;
        if self.csr.read(FDIRCMD)? & VALID != 0 {
            self.csr.write(FDIRHASH, identity(id, &flow));
            self.csr.flush()?;
            self.command(REMOVE)?;
        }
        Ok(())
    }

    /// Makes the table and fills it; reception is off.
    pub(super) fn program_director(&mut self) -> Result<(), NicError> {
        self.director_runs = false;
        if !self.filters.on {
            return Ok(());
        }
        self.csr.write(FDIRHKEY, BUCKET_KEY);
        self.csr.write(FDIRSKEY, SIGNATURE_KEY);
        // Masks: bits that are set are not compared.
        self.csr.write(FDIRM, IGNORED);
        for at in [FDIRSIP4M, FDIRDIP4M, FDIRTCPM, FDIRUDPM] {
            self.csr.write(at, 0);
        }
        self.csr.write(FDIRIP6M, u32::MAX);
        self.csr.write(FDIRCTRL, TABLE_CODE | PERFECT | DROP_QUEUE << 8 | MAX_LENGTH | FULL_THRESHOLD);
        self.csr.flush()?;
        let csr = &self.csr;
        let (limit, step) = (Duration::from_millis(10), Duration::from_millis(1));
        wait_until(&mut *self.bus, "Flow Director", limit, step, || Ok(csr.read(FDIRCTRL)? & INIT_DONE != 0))?;
        self.director_runs = true;
        for (id, flow, action) in self.filters.list.clone() {
            self.write_filter(id, &flow, action)?;
        }
        Ok(())
    }

    fn write_filter(&mut self, id: u16, flow: &Flow, action: FlowAction) -> Result<(), NicError> {
        for n in 0..3 {
            self.csr.write(FDIRSIPV6 + 4 * n, 0);
        }
        self.csr.write(FDIRIPSA, flow.source.to_bits());
        self.csr.write(FDIRIPDA, flow.destination.to_bits());
        self.csr.write(FDIRPORT, u32::from(flow.source_port) | u32::from(flow.destination_port) << 16);
        self.csr.write(FDIRVLAN, 0);
        self.csr.write(FDIRHASH, identity(id, flow));
        self.csr.flush()?;
        let target = match action {
            FlowAction::Queue(queue) => u32::from(queue) << 16,
            FlowAction::Drop => DROP | DROP_QUEUE << 16,
        };
        self.command(ADD | UPDATE | LAST | QUEUE_ENABLE | flow_type(flow) << 5 | target)
    }

    fn command(&mut self, value: u32) -> Result<(), NicError> {
        self.csr.write(FDIRCMD, value);
        let csr = &self.csr;
        let (limit, step) = (Duration::from_micros(100), Duration::from_micros(10));
        wait_until(&mut *self.bus, "a flow filter", limit, step, || Ok(csr.read(FDIRCMD)? & COMMAND == 0))
    }
}

const fn flow_type(flow: &Flow) -> u32 {
    match flow.protocol {
        FlowProtocol::Udp => 1,
        FlowProtocol::Tcp => 2,
        FlowProtocol::Sctp => 3,
    }
}

/// What the table knows a filter by: its bucket and its number.
fn identity(id: u16, flow: &Flow) -> u32 {
    u32::from(id) << 16 | bucket(flow)
}

/// The bucket of a flow: 13 bits of a hash over type, addresses and ports (82599 datasheet 7.1.2.7.2).
fn bucket(flow: &Flow) -> u32 {
    // As one word in network order: pool, type, tag.
    let head = flow_type(flow) << 16;
    let ports = u32::from(flow.source_port) << 16 | u32::from(flow.destination_port);
    let mut high = flow.destination.to_bits() ^ flow.source.to_bits() ^ ports;
    let mut low = high.rotate_left(16);
    high ^= head ^ head >> 16;
    let mut hash = if BUCKET_KEY & 1 != 0 { low } else { 0 } ^ if BUCKET_KEY & 1 << 16 != 0 { high } else { 0 };
    low ^= head ^ head << 16;
    for n in 1..16 {
        if BUCKET_KEY & 1 << n != 0 {
            hash ^= low >> n;
        }
        if BUCKET_KEY & 1 << (n + 16) != 0 {
            hash ^= high >> n;
        }
    }
    hash & 0x1fff
}
