//! The receiving half of a VXLAN device, with GRO cells.

use super::vxlan::{OVERHEAD, VxlanConfig};
use crate::net::set_congestion_experienced;
use netcore::wire::{Ipv4Header, UdpHeader, VxlanHeader};
use netcore::{Burst, GsoKind, Instant, Packet, PoolCache, ReceiveChecksum, ReceiveOffload, Statistics};

/// Counters of the receiving half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VxlanReceiveCounters {
    /// Packets decapsulated; a merged one counts once.
    pub rx_packets: u64,
    /// Frames that those came from.
    pub rx_frames: u64,
    /// Most payload bytes, inner headers included, of one of them.
    pub largest: u64,
    /// Packets of other networks, ports or protocols.
    pub rx_dropped: u64,
    /// Packets dropped because the outer header was marked and the inner one cannot be (RFC 6040 section 4.2).
    pub rx_ecn_errors: u64,
}

/// Takes inner frames out of VXLAN, and merges them on the tunnel device if it has GRO cells
/// (`net/core/gro_cells.c`, 4.3 and later).
///
/// What it takes are packets after the device's own receive offload and the outer stack.
pub struct VxlanReceive {
    config: VxlanConfig,
    cells: Option<Box<dyn ReceiveOffload>>,
    inner: Burst,
    counters: VxlanReceiveCounters,
}

impl VxlanReceive {
    /// A device with this configuration (its `local` address is ours).
    pub fn new(config: VxlanConfig) -> Self {
        Self { config, cells: None, inner: Burst::new(), counters: VxlanReceiveCounters::default() }
    }

    /// Merges on the tunnel device.
    #[must_use]
    pub fn with_cells(mut self, cells: Box<dyn ReceiveOffload>) -> Self {
        self.cells = Some(cells);
        self
    }

    /// What was counted.
    pub fn counters(&self) -> VxlanReceiveCounters {
        self.counters
    }

    /// Removes the outer headers; `None` if the packet is not for this device.
    fn decapsulate(&mut self, mut packet: Packet, cache: &mut PoolCache) -> Option<Packet> {
        let outer =
            outer_of(packet.head()).filter(|outer| outer.port == self.config.port && outer.vni == self.config.vni);
        let Some(outer) = outer else {
            self.counters.rx_dropped += 1;
            cache.put(packet);
            return None;
        };
        // In range: the outer headers were read from the head.
        let _ = packet.pull(OVERHEAD);
        if let Some(mut gso) = packet.gso() {
            gso.kind -= GsoKind::TUNNEL;
            packet.set_gso(Some(gso));
        }
        // A verdict on the outer checksum is used up; what was merged has been verified to the innermost one.
        if outer.checksum
            && !packet.is_super()
            && let ReceiveChecksum::Unnecessary { levels } = packet.receive_checksum()
        {
            let left = match levels {
                0 | 1 => ReceiveChecksum::None,
                levels => ReceiveChecksum::Unnecessary { levels: levels - 1 },
            };
            packet.set_receive_checksum(left);
        }
        if outer.ecn == 3 && !crate::net::ecn_capable(&packet) {
            self.counters.rx_ecn_errors += 1;
            cache.put(packet);
            return None;
        }
        if outer.ecn == 3 {
            set_congestion_experienced(&mut packet, cache);
        }
        self.counters.rx_packets += 1;
        self.counters.rx_frames += packet.wire_packets() as u64;
        self.counters.largest = self.counters.largest.max(packet.len() as u64);
        Some(packet)
    }
}

/// What matters of the outer headers.
struct Outer {
    port: u16,
    vni: u32,
    /// The UDP checksum is not zero.
    checksum: bool,
    ecn: u8,
}

fn outer_of(bytes: &[u8]) -> Option<Outer> {
    if bytes.get(12..14)? != [0x08, 0x00] {
        return None;
    }
    let (ip, _, rest) = Ipv4Header::parse(bytes.get(14..)?).ok()?;
    let (udp, rest) = UdpHeader::parse(rest).ok()?;
    let (vxlan, _) = VxlanHeader::parse(rest).ok()?;
    let plain = ip.header_len() == 20 && !ip.is_fragment() && ip.protocol() == netcore::wire::Protocol::UDP;
    plain.then(|| Outer { port: udp.destination(), vni: vxlan.vni(), checksum: udp.checksum() != 0, ecn: ip.tos() & 3 })
}

impl ReceiveOffload for VxlanReceive {
    fn receive(&mut self, burst: &mut Burst, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        while let Some(packet) = burst.pop() {
            if let Some(packet) = self.decapsulate(packet, cache) {
                self.inner.push(packet);
            }
        }
        match &mut self.cells {
            Some(cells) => cells.receive(&mut self.inner, out, cache, now),
            None => out.append(&mut self.inner),
        }
    }

    fn end_poll(&mut self, budget_exhausted: bool, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        if let Some(cells) = &mut self.cells {
            cells.end_poll(budget_exhausted, out, cache, now);
        }
    }

    fn flush(&mut self, out: &mut Burst, cache: &mut PoolCache) {
        if let Some(cells) = &mut self.cells {
            cells.flush(out, cache);
        }
    }

    fn poll(&mut self, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        if let Some(cells) = &mut self.cells {
            cells.poll(out, cache, now);
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        self.cells.as_ref().and_then(|cells| cells.poll_at())
    }

    fn held(&self) -> usize {
        self.cells.as_ref().map_or(0, |cells| cells.held())
    }

    fn statistics(&self, statistics: &mut Statistics) {
        let VxlanReceiveCounters { rx_packets, rx_frames, rx_dropped, rx_ecn_errors, .. } = self.counters;
        statistics.add("vxlan_rx_packets", rx_packets);
        statistics.add("vxlan_rx_frames", rx_frames);
        statistics.add("vxlan_rx_dropped", rx_dropped);
        statistics.add("vxlan_rx_ecn_errors", rx_ecn_errors);
        if let Some(cells) = &self.cells {
            cells.statistics(statistics);
        }
    }
}

impl std::fmt::Debug for VxlanReceive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VxlanReceive").field("config", &self.config).finish_non_exhaustive()
    }
}
