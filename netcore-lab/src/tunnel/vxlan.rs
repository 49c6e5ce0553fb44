//! The transmitting half of a VXLAN device (RFC 7348; Linux: `drivers/net/vxlan`).

use netcore::checksum::Sum;
use netcore::flow::layer34_hash;
use netcore::wire::{EtherType, EthernetHeader, Ipv4Header, Protocol, UdpHeader, VxlanHeader};
use netcore::{
    Burst, Capabilities, Completion, Completions, Driver, DriverError, Features, GsoKind, HeaderOffsets, Instant,
    LinkState, MacAddress, Packet, PacketError, PoolCache, Segmenter, Statistics,
};
use netcore_offload::SoftwareSegmenter;
use std::net::Ipv4Addr;
use zerocopy::IntoBytes;

/// Bytes in front of the inner frame: Ethernet, IPv4 without options, UDP, VXLAN.
pub(super) const OVERHEAD: usize = 14 + 20 + 8 + 8;

/// Source ports: the local port range of Linux (`udp_flow_src_port`).
const SOURCE_PORTS: (u16, u16) = (32_768, 60_999);

/// A point-to-point VXLAN device over IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VxlanConfig {
    /// Network identifier, 24 bits.
    pub vni: u32,
    /// UDP port (`dstport`): 4789, or 8472 where Linux's old default is in use.
    pub port: u16,
    /// Our outer addresses.
    pub local: (MacAddress, Ipv4Addr),
    /// The peer's outer addresses.
    pub remote: (MacAddress, Ipv4Addr),
    /// Time to live of the outer header.
    pub ttl: u8,
    /// Outer UDP checksums (`udpcsum`); otherwise they are zero, as RFC 7348 section 5 wants.
    pub udp_checksum: bool,
}

impl VxlanConfig {
    /// The device of the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { local: self.remote, remote: self.local, ..self }
    }
}

/// Counters of the transmitting half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VxlanCounters {
    /// Packets encapsulated; a super-packet is one.
    pub tx_packets: u64,
    /// Bytes of those before encapsulation.
    pub tx_bytes: u64,
    /// Packets that could not be encapsulated.
    pub tx_errors: u64,
}

/// Puts inner frames into VXLAN and hands them to the device below; super-packets stay whole.
pub struct Vxlan {
    config: VxlanConfig,
    lower: Box<dyn Driver>,
    capabilities: Capabilities,
    cache: PoolCache,
    segmenter: SoftwareSegmenter,
    /// Outer IPv4 identification of the next frame.
    id: u16,
    lost: Completions,
    scratch: Burst,
    counters: VxlanCounters,
}

impl Vxlan {
    /// A device over `lower`, whose MTU leaves room for the outer headers.
    pub fn new(config: VxlanConfig, lower: Box<dyn Driver>, cache: PoolCache) -> Self {
        let mut capabilities = lower.capabilities().clone();
        capabilities.mtu = capabilities.mtu.saturating_sub(OVERHEAD);
        Self {
            config,
            lower,
            capabilities,
            cache,
            segmenter: SoftwareSegmenter::new(),
            id: 0,
            lost: Completions::new(),
            scratch: Burst::new(),
            counters: VxlanCounters::default(),
        }
    }

    /// What was counted.
    pub fn counters(&self) -> VxlanCounters {
        self.counters
    }

    /// The device below.
    pub fn lower(&self) -> &dyn Driver {
        &*self.lower
    }

    /// Encapsulates (`vxlan_build_skb`, `udp_tunnel_xmit_skb`).
    fn encapsulate(&mut self, packet: &mut Packet) -> Result<(), PacketError> {
        let inner = packet.offsets();
        let source = source_port(packet);
        let ecn = inner_ecn(packet);
        let frames = packet.wire_packets() as u16;
        let udp_len = (packet.len() + 16) as u32;
        if self.config.udp_checksum && !packet.is_super() && packet.transmit_checksum().is_some() {
            // The outer sum covers the inner checksum field, so that is filled in first.
            let _ = self.segmenter.fill_checksum(packet, &mut self.cache);
        }
        let VxlanConfig { vni, port, local, remote, ttl, udp_checksum } = self.config;
        let head = packet.push(OVERHEAD)?;
        let ethernet = EthernetHeader::new(remote.0, local.0, EtherType::IPV4);
        head[..14].copy_from_slice(ethernet.as_bytes());
        // Lengths of super-packets beyond 64 KiB are set when they are cut.
        let ip_len = u16::try_from(udp_len + 20).unwrap_or(u16::MAX);
        let mut ip = Ipv4Header::new(local.1, remote.1, Protocol::UDP, ip_len, self.id, ttl, false);
        ip.set_tos(ecn);
        head[14..34].copy_from_slice(ip.as_bytes());
        // In range: the header is whole.
        let _ = Ipv4Header::fill_checksum(&mut head[14..34]);
        let udp = UdpHeader::new(source, port, u16::try_from(udp_len).unwrap_or(u16::MAX));
        head[34..42].copy_from_slice(udp.as_bytes());
        head[42..50].copy_from_slice(VxlanHeader::new(vni).as_bytes());
        self.id = self.id.wrapping_add(frames);
        let pseudo = Sum::pseudo_ipv4(local.1.octets(), remote.1.octets(), 17, udp_len);
        if let Some(mut gso) = packet.gso() {
            gso.kind |= if udp_checksum { GsoKind::UDP_TUNNEL_CSUM } else { GsoKind::UDP_TUNNEL };
            packet.set_gso(Some(gso));
            if udp_checksum {
                packet.head_mut()?[40..42].copy_from_slice(&pseudo.fold().to_be_bytes());
            }
        } else if udp_checksum {
            let sum = pseudo.plus(packet.sum_from(34)).finish_udp();
            packet.head_mut()?[40..42].copy_from_slice(&sum.to_be_bytes());
        }
        let shift = OVERHEAD as u16;
        packet.set_offsets(inner.map(|inner| HeaderOffsets {
            network: 14,
            transport: 34,
            inner_mac: shift,
            inner_network: inner.network + shift,
            inner_transport: inner.transport + shift,
        }));
        Ok(())
    }
}

/// The same for all packets of an inner flow (`udp_flow_src_port`).
fn source_port(packet: &Packet) -> u16 {
    let (least, most) = SOURCE_PORTS;
    let span = u64::from(most - least);
    // Linux scales the upper bits of the hash; the bonding hash has its entropy below, so it is spread first.
    let hash = layer34_hash(packet.head()).wrapping_mul(0x9e37_79b1);
    least + ((u64::from(hash) * span) >> 32) as u16
}

/// ECN field of the inner packet: the outer one is a copy (RFC 6040 section 4.1).
fn inner_ecn(packet: &Packet) -> u8 {
    match packet.head().get(12..16) {
        Some([0x08, 0x00, _, tos]) => tos & 3,
        Some([0x86, 0xdd, _, second]) => second >> 4 & 3,
        _ => 0,
    }
}

impl Driver for Vxlan {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        self.lower.link()
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        let mut taken = 0;
        while let Some(mut packet) = burst.pop() {
            taken += 1;
            let bytes = packet.len() as u64;
            match self.encapsulate(&mut packet) {
                Ok(()) => {
                    self.counters.tx_packets += 1;
                    self.counters.tx_bytes += bytes;
                    self.scratch.push(packet);
                }
                Err(_) => {
                    self.counters.tx_errors += 1;
                    let truesize = packet.truesize() as u32;
                    self.lost.push(Completion { flow_id: packet.flow_id(), truesize, bytes: 0 });
                    self.cache.put(packet);
                }
            }
        }
        let result = self.lower.transmit(queue, &mut self.scratch, now);
        // A port takes everything; what a bare device leaves has nowhere to wait.
        while let Some(packet) = self.scratch.pop() {
            self.counters.tx_errors += 1;
            let truesize = packet.truesize() as u32;
            self.lost.push(Completion { flow_id: packet.flow_id(), truesize, bytes: 0 });
            self.cache.put(packet);
        }
        result.map(|_| taken)
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        self.lower.receive(queue, burst, budget, now)
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        let n = self.lower.reclaim(queue, completions, now)?;
        for lost in self.lost.as_slice() {
            completions.push(*lost);
        }
        self.lost.clear();
        Ok(n)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.lower.statistics(statistics);
        statistics.add("vxlan_tx_packets", self.counters.tx_packets);
        statistics.add("vxlan_tx_bytes", self.counters.tx_bytes);
        statistics.add("vxlan_tx_errors", self.counters.tx_errors);
    }

    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        self.lower.poll(now)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.lower.poll_at()
    }

    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        self.lower.start(now)
    }

    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        self.lower.stop(now)
    }

    fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
        self.lower.set_features(features)
    }
}

impl std::fmt::Debug for Vxlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vxlan").field("config", &self.config).finish_non_exhaustive()
    }
}
