//! A receiving host: NIC ring, NAPI polls, receive offload, and what each packet costs one CPU.

use netcore::checksum::sum;
use netcore::offload::ReceiveOffload;
use netcore::{Burst, Instant, Packet, PacketError, PoolCache};
use netcore_offload::Gro;
use std::collections::BTreeMap;

use crate::traffic::RepeatedFlow;

/// Costs of one CPU, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverCost {
    /// Per wire packet, up to the point of merging.
    pub wire_ns: u64,
    /// Per delivered packet, above it.
    pub delivered_ns: u64,
    /// The part of `delivered_ns` that is below a tunnel device: what every wire packet pays when merging happens on that
    /// device only.
    pub outer_ns: u64,
}

/// A link and a NIC without a verdict on checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Picoseconds per byte on the link.
    pub ps_per_byte: u64,
    /// Bytes that frame every packet on the link.
    pub framing: usize,
    /// Descriptors in the receive ring.
    pub ring: usize,
    /// Packets per poll at most.
    pub budget: usize,
    /// Delay of the interrupt that starts a poll after the ring was empty, nanoseconds.
    pub interrupt_ns: u64,
}

/// Where packets are merged.
pub enum Merging {
    /// On the device, before the outer stack.
    Device(Box<Gro>),
    /// On the tunnel device, after the outer stack (Linux: GRO cells).
    Tunnel {
        /// The device's own engine, which runs first.
        device: Box<Gro>,
        /// The tunnel device's.
        cell: Box<Gro>,
    },
}

/// What a run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// Virtual time, nanoseconds.
    pub elapsed_ns: u64,
    /// TCP payload delivered, bytes.
    pub payload: u64,
    /// Packets that came off the wire.
    pub wire_packets: u64,
    /// Packets delivered to the top.
    pub delivered: u64,
    /// Delivered packets by payload length.
    pub sizes: BTreeMap<u32, u64>,
}

impl Received {
    /// Payload rate, Gbit/s.
    pub fn gbps(&self) -> f64 {
        self.payload as f64 * 8.0 / self.elapsed_ns as f64
    }

    /// Wire packets per delivered packet.
    pub fn factor(&self) -> f64 {
        self.wire_packets as f64 / self.delivered as f64
    }

    /// Payload of the largest delivered packet, bytes.
    pub fn largest(&self) -> u32 {
        self.sizes.keys().next_back().copied().unwrap_or(0)
    }
}

/// Runs `flow` against a receiver for `duration_ns` of virtual time.
///
/// The sender has always something to send and never overruns the ring: it waits for a free descriptor, which is what
/// TCP's window does to a bulk flow. `prepare` changes each frame before it reaches the NIC.
///
/// # Errors
/// [`PacketError`] if the pool behind `cache` is too small for the ring and what is held.
pub fn run(
    mut flow: RepeatedFlow,
    nic: Nic,
    cost: ReceiverCost,
    mut merging: Merging,
    duration_ns: u64,
    cache: &mut PoolCache,
    mut prepare: impl FnMut(&mut [u8]),
) -> Result<Received, PacketError> {
    let mut result = Received::default();
    let mut ring = Burst::new();
    let mut arrivals = std::collections::VecDeque::new();
    let (mut wire_free, mut now) = (0u64, 0u64);
    let (mut polled, mut out, mut inner, mut top) = (Burst::new(), Burst::new(), Burst::new(), Burst::new());
    while now < duration_ns {
        // Everything that arrives before the poll starts, as far as the ring has room.
        while ring.len() < nic.ring {
            let len = flow.next_len();
            let arrival = wire_free + (len + nic.framing) as u64 * nic.ps_per_byte / 1000;
            if arrival > now && !ring.is_empty() {
                break;
            }
            let mut packet = cache.get()?;
            let bytes = packet.put(len)?;
            flow.write_next(bytes);
            prepare(bytes);
            wire_free = arrival;
            arrivals.push_back(arrival);
            ring.push(packet);
        }
        let first = arrivals.front().copied().unwrap_or(now);
        if first > now {
            // The ring ran empty: the next packet raises an interrupt.
            now = first + nic.interrupt_ns;
            continue;
        }
        let mut n = 0;
        while n < nic.budget && arrivals.front().is_some_and(|arrival| *arrival <= now) {
            arrivals.pop_front();
            polled.extend(ring.pop());
            n += 1;
        }
        // A link that was held up by a full ring goes on when a descriptor is free.
        if ring.len() + n >= nic.ring {
            wire_free = wire_free.max(now);
        }
        result.wire_packets += n as u64;
        let at = Instant::from_nanos(now);
        now += cost.wire_ns * n as u64;
        let exhausted = n == nic.budget;
        match &mut merging {
            Merging::Device(gro) => {
                gro.receive(&mut polled, &mut top, cache, at);
                gro.end_poll(exhausted, &mut top, cache, at);
                now += cost.delivered_ns * top.len() as u64;
            }
            Merging::Tunnel { device, cell } => {
                device.receive(&mut polled, &mut out, cache, at);
                device.end_poll(exhausted, &mut out, cache, at);
                now += cost.outer_ns * out.len() as u64;
                while let Some(mut packet) = out.pop() {
                    packet.pull(VXLAN_OVER_IPV4)?;
                    inner.push(packet);
                }
                let at = Instant::from_nanos(now);
                cell.receive(&mut inner, &mut top, cache, at);
                cell.end_poll(exhausted, &mut top, cache, at);
                now += (cost.delivered_ns - cost.outer_ns) * top.len() as u64;
            }
        }
        while let Some(packet) = top.pop() {
            result.delivered += 1;
            let payload = payload_len(&packet);
            result.payload += u64::from(payload);
            *result.sizes.entry(payload).or_default() += 1;
            cache.put(packet);
        }
    }
    result.elapsed_ns = now;
    cache.put_burst(&mut ring);
    Ok(result)
}

/// Bytes in front of the inner frame of a VXLAN packet over IPv4 without options.
const VXLAN_OVER_IPV4: usize = 14 + 20 + 8 + 8;

/// TCP payload of the innermost packet, from its headers.
pub(crate) fn payload_len(packet: &Packet) -> u32 {
    let offsets = packet.offsets();
    let head = packet.head();
    let tcp = match offsets {
        Some(o) if o.inner_transport != 0 => usize::from(o.inner_transport),
        Some(o) => usize::from(o.transport),
        None => {
            let d = netcore::dissect(head, &netcore::TunnelPorts::default());
            d.innermost().map_or(0, |network| usize::from(network.upper))
        }
    };
    let header = head.get(tcp + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
    (packet.len() - tcp - header) as u32
}

/// Computes the outer UDP checksum of a VXLAN frame over IPv4 without options.
pub fn fill_outer_checksum(frame: &mut [u8]) {
    let (source, destination) =
        ([frame[26], frame[27], frame[28], frame[29]], [frame[30], frame[31], frame[32], frame[33]]);
    frame[40..42].fill(0);
    let udp = &frame[34..];
    let pseudo = netcore::checksum::Sum::pseudo_ipv4(source, destination, 17, udp.len() as u32);
    let checksum = pseudo.plus(sum(udp)).finish_udp();
    frame[40..42].copy_from_slice(&checksum.to_be_bytes());
}
