//! Saying what passes.

use super::{Direction, pass_on};
use alloc::vec::Vec;
use core::fmt;
use netcore::dissect::{TunnelPorts, dissect};
use netcore::driver::{Completions, Driver, DriverError, Statistics};
use netcore::packet::{Gso, VlanTag};
use netcore::wire::{EtherType, Protocol, TcpFlags, TcpHeader};
use netcore::{Burst, Capabilities, FlowKey, Instant, Packet};

/// One packet that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Trace {
    /// When.
    pub at: Instant,
    /// Which way.
    pub direction: Direction,
    /// Through which queue of the device.
    pub queue: u16,
    /// Bytes, link header included.
    pub len: usize,
    /// What follows the link header.
    pub ethertype: EtherType,
    /// Its flow, if it is IP.
    pub flow: Option<FlowKey>,
    /// Flags, sequence and acknowledgement number, if it is TCP.
    pub tcp: Option<(TcpFlags, u32, u32)>,
    /// Bytes behind the innermost header.
    pub payload: usize,
    /// Set for super-packets.
    pub gso: Option<Gso>,
    /// The tag beside the bytes.
    pub vlan: Option<VlanTag>,
}

impl Trace {
    /// Reads the headers in the packet's head segment.
    fn of(packet: &Packet, at: Instant, direction: Direction, queue: u16, ports: &TunnelPorts) -> Self {
        let head = packet.head();
        let d = dissect(head, ports);
        let tcp = d.innermost().filter(|network| network.protocol == Protocol::TCP && network.fragment_offset == 0);
        let tcp = tcp.and_then(|network| TcpHeader::parse(head.get(usize::from(network.upper)..)?).ok());
        Self {
            at,
            direction,
            queue,
            len: packet.len(),
            ethertype: d.ethertype,
            flow: FlowKey::of(head, &d),
            tcp: tcp.map(|(header, _, _)| (header.flags(), header.seq(), header.ack())),
            payload: match d.innermost() {
                Some(_) if packet.is_linear() => d.payload_len(),
                // Without a length of its own, or with one that the head alone does not reach: up to the end.
                _ => packet.len().saturating_sub(d.payload as usize),
            },
            gso: packet.gso(),
            vlan: packet.vlan(),
        }
    }
}

impl fmt::Display for Trace {
    /// `12.000345678 tx 0 1514 TCP 203.0.113.1:44190 > 203.0.113.2:5001 [P.] seq 1 ack 1 len 1448`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.at.as_nanos();
        let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        write!(f, "{seconds}.{fraction:09} {} {} {} ", self.direction, self.queue, self.len)?;
        match &self.flow {
            Some(flow) => write!(f, "{flow}")?,
            None => write!(f, "{}", self.ethertype)?,
        }
        if let Some((flags, seq, ack)) = self.tcp {
            write!(f, " [{flags}] seq {seq} ack {ack}")?;
        }
        write!(f, " len {}", self.payload)?;
        if let Some(gso) = self.gso {
            write!(f, " gso {}x{}", gso.segments, gso.size)?;
        }
        if let Some(tag) = self.vlan {
            write!(f, " tag {} prio {}", tag.tci & 0xfff, tag.tci >> 13)?;
        }
        Ok(())
    }
}

/// Gives a [`Trace`] of every packet to `sink`: those that the device took, and those that it delivered. See the
/// [module](super).
pub struct Tracer<D, S> {
    inner: D,
    sink: S,
    ports: TunnelPorts,
    offered: Vec<Trace>,
}

impl<D: Driver, S: FnMut(&Trace) + Send> Tracer<D, S> {
    /// Traces `inner`, with tunnels on the ports assigned to them.
    pub fn new(inner: D, sink: S) -> Self {
        Self::with_ports(inner, sink, TunnelPorts::default())
    }

    /// Traces `inner`, with tunnels on these ports.
    pub fn with_ports(inner: D, sink: S, ports: TunnelPorts) -> Self {
        Self { inner, sink, ports, offered: Vec::new() }
    }

    /// The driver inside.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The driver inside.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// Stops tracing.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Sends through `send` and traces what was taken from the front of the burst, whatever `send` answers.
    fn traced(
        &mut self,
        queue: u16,
        burst: &mut Burst,
        now: Instant,
        send: impl FnOnce(&mut D, &mut Burst) -> Result<usize, DriverError>,
    ) -> Result<usize, DriverError> {
        let ports = &self.ports;
        self.offered.clear();
        self.offered.extend(burst.iter().map(|packet| Trace::of(packet, now, Direction::Transmit, queue, ports)));
        let result = send(&mut self.inner, burst);
        let taken = self.offered.len().saturating_sub(burst.len());
        self.offered.iter().take(taken).for_each(&mut self.sink);
        result
    }
}

impl<D: Driver, S: FnMut(&Trace) + Send> Driver for Tracer<D, S> {
    pass_on!(inner);

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        self.traced(queue, burst, now, |inner, burst| inner.transmit(queue, burst, now))
    }

    fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        self.traced(0, burst, now, |inner, burst| inner.transmit_control(burst, now))
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        let before = burst.len();
        let result = self.inner.receive(queue, burst, budget, now);
        for packet in burst.iter().skip(before) {
            (self.sink)(&Trace::of(packet, now, Direction::Receive, queue, &self.ports));
        }
        result
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        self.inner.reclaim(queue, completions, now)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.inner.statistics(statistics);
    }

    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.poll(now)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.inner.poll_at()
    }

    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.start(now)
    }

    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.stop(now)
    }
}
