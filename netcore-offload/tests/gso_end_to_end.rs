//! Sender's port, wire, receiver's port: the cases of the kernel's `udpgro.sh` and the matrix of `tso.py`, on a device with
//! every combination of segmentation features.

mod common;

use common::stack::{Outer, Stack, Wrap};
use common::{Tcp, pool};
use netcore::dissect::{ChecksumVerdict, TunnelPorts, dissect};
use netcore::driver::{Completion, Completions, Driver, DriverError, Statistics};
use netcore::offload::Segmenter;
use netcore::{Burst, Capabilities, Features, Gso, GsoKind, Instant, LinkState, Packet, PoolCache, Port};
use netcore_offload::{Gro, GroConfig, Large, SoftwareSegmenter, UdpGro};

/// A device that cuts what it declares, as hardware does, and keeps the frames of its wire.
struct Device {
    capabilities: Capabilities,
    cache: PoolCache,
    hardware: SoftwareSegmenter,
    /// Super-packets that reached it, and the wire frames made of them.
    supers: usize,
    from_supers: usize,
    wire: Burst,
    sent: Vec<Completion>,
}

impl Device {
    fn new(cache: PoolCache, gso: GsoKind) -> Self {
        let mut capabilities = Capabilities::default();
        capabilities.features = Features::SCATTER_GATHER | Features::TX_CHECKSUM_GENERIC;
        if !gso.is_empty() {
            capabilities.features |= Features::TSO;
        }
        capabilities.supported = capabilities.features;
        capabilities.gso = gso;
        capabilities.max_segments = usize::MAX;
        let hardware = SoftwareSegmenter::new();
        Self { capabilities, cache, hardware, supers: 0, from_supers: 0, wire: Burst::new(), sent: Vec::new() }
    }
}

impl Driver for Device {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn link(&self) -> LinkState {
        LinkState::up(10_000)
    }
    fn transmit(&mut self, _queue: u16, burst: &mut Burst, _now: Instant) -> Result<usize, DriverError> {
        let mut taken = 0;
        while let Some(mut packet) = burst.pop() {
            taken += 1;
            let (truesize, bytes) = (packet.truesize() as u32, packet.len() as u32);
            self.sent.push(Completion { flow_id: packet.flow_id(), truesize, bytes });
            if packet.is_super() {
                self.supers += 1;
                let n = self.hardware.segment(packet, Features::empty(), &mut self.cache, &mut self.wire);
                self.from_supers += n.expect("the port checks what the device declares");
            } else {
                self.hardware.fill_checksum(&mut packet, &mut self.cache).unwrap();
                self.wire.push(packet);
            }
        }
        Ok(taken)
    }
    fn receive(&mut self, _queue: u16, burst: &mut Burst, budget: usize, _now: Instant) -> Result<usize, DriverError> {
        let mut n = 0;
        while n < budget
            && let Some(packet) = self.wire.pop()
        {
            burst.push(packet);
            n += 1;
        }
        Ok(n)
    }
    fn reclaim(&mut self, _queue: u16, completions: &mut Completions, _now: Instant) -> Result<usize, DriverError> {
        let n = self.sent.len();
        self.sent.drain(..).for_each(|completion| completions.push(completion));
        Ok(n)
    }
    fn statistics(&self, _statistics: &mut Statistics) {}
}

/// A datagram as a socket with `UDP_SEGMENT` sends it; `size` 0 is none.
fn send(v6: bool, len: usize, size: usize, cache: &mut PoolCache) -> Packet {
    let stack = Stack { udp: true, tcp: Tcp { v6, payload: vec![7; len], ..Tcp::default() }, ..Stack::default() };
    let mut packet = cache.copy_chain(&stack.frame()).unwrap();
    if size > 0 {
        packet.set_gso(Some(Gso { kind: GsoKind::UDP_L4, size: size as u16, segments: len.div_ceil(size) as u16 }));
    }
    packet
}

/// What arrives (payload bytes, segment size), one poll per send. Nothing is lost on the way.
fn deliver(v6: bool, sends: &[(usize, usize)], device_gso: GsoKind, udp_gro: bool) -> Vec<(usize, Option<u16>)> {
    let pool = pool();
    let mut cache = pool.cache();
    let sender = Port::builder(Device::new(pool.cache(), device_gso), pool.cache());
    let mut sender = sender.segmenter(Box::new(SoftwareSegmenter::new())).build();
    let mut config = GroConfig::default();
    config.udp = if udp_gro { UdpGro::Ports(vec![8000]) } else { UdpGro::Off };
    let receiver = Port::builder(Device::new(pool.cache(), GsoKind::empty()), pool.cache());
    let receiver = receiver.segmenter(Box::new(SoftwareSegmenter::new()));
    let receiver = receiver.receive_offload(Box::new(Gro::new(config).unwrap()));
    let mut receiver = if udp_gro { receiver.accept_super() } else { receiver }.build();
    let (mut burst, mut up) = (Burst::new(), Burst::new());
    let headers = if v6 { 62 } else { 42 };
    let mut seen = Vec::new();
    for &(len, size) in sends {
        burst.push(send(v6, len, size, &mut cache));
        sender.transmit(0, &mut burst, Instant::ZERO).unwrap();
        sender.reclaim(0, &mut Completions::new(), Instant::ZERO).unwrap();
        receiver.driver_mut().wire.append(&mut sender.driver_mut().wire);
        receiver.receive(0, &mut up, 64, Instant::ZERO).unwrap();
        while let Some(packet) = up.pop() {
            seen.push((packet.len() - headers, packet.gso().map(|gso| gso.size)));
        }
    }
    seen
}

#[test]
fn udp_sends_arrive_as_the_kernels_end_to_end_test_expects() {
    let Some(path) = netcore_test::shared("exams/gso.json") else { return };
    let exam: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = exam["udp_gro_end_to_end"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for device in [GsoKind::empty(), GsoKind::UDP_L4] {
        let one = |case: &serde_json::Value, size: usize| {
            let result = &case["gro_result"];
            let number = |name: &str| result[name].as_u64().unwrap() as usize;
            let got = deliver(false, &[(number("len"), size)], device, true);
            assert_eq!(number("segment_size_reported"), size);
            assert_eq!((got.len(), got[0]), (number("datagrams"), (number("len"), Some(size as u16))), "{case}");
        };
        one(&cases[0], 1472);
        one(&cases[1], 500);
        // Separate sends are separate polls there.
        assert_eq!(deliver(false, &[(1400, 0); 10], device, true), [(1400, None); 10], "{}", cases[2]);
        assert_eq!(deliver(false, &[(14720, 1472)], device, false), [(1472, None); 10], "{}", cases[3]);
        assert_eq!(cases[4]["ipv6"], "14520 bytes, segment 1452 -> 1 datagram 14520");
        assert_eq!(deliver(true, &[(14520, 1452)], device, true), [(14520, Some(1452))]);
    }
}

/// A receiver that does not take super-packets, below a device that hands them up whole (a veth pair).
#[test]
fn a_merged_datagram_is_cut_again_for_a_receiver_that_did_not_ask() {
    let pool = pool();
    let mut cache = pool.cache();
    for (accepts, expected) in [(true, vec![14720]), (false, vec![1472; 10])] {
        let port = Port::builder(Device::new(pool.cache(), GsoKind::empty()), pool.cache());
        let port = port.segmenter(Box::new(SoftwareSegmenter::new()));
        let mut port = if accepts { port.accept_super() } else { port }.build();
        port.driver_mut().wire.push(send(false, 14720, 1472, &mut cache));
        let mut up = Burst::new();
        port.receive(0, &mut up, 64, Instant::ZERO).unwrap();
        assert_eq!(up.iter().map(|packet| packet.len() - 42).collect::<Vec<_>>(), expected);
    }
}

const TOTAL: usize = 4 << 20;
const MTU: usize = 1500;
const MAX_SIZE: usize = 65536;

/// Tunnels of the matrix: what is around, how it is called, and the bits that a device with the ethtool feature declares.
fn tunnels(v6: bool) -> Vec<(&'static str, GsoKind, Option<Wrap>)> {
    let outer = Outer { v6, ..Outer::default() };
    let vxlan = |checksum| Wrap::Vxlan { outer, vni: 100, sport: 50_000, dport: 4789, checksum, bad: false };
    vec![
        ("tx-udp_tnl-segmentation", GsoKind::UDP_TUNNEL, Some(vxlan(false))),
        ("tx-udp_tnl-csum-segmentation", GsoKind::UDP_TUNNEL_CSUM, Some(vxlan(true))),
        ("tx-gre-segmentation", GsoKind::GRE, Some(Wrap::Gre { outer, key: None, checksum: false, ethernet: false })),
    ]
}

/// 4 MiB over TCP in super-packets through a port over a device that declares `gso`: the device and the wire.
fn bulk(v6: bool, wrap: Option<&Wrap>, device_gso: GsoKind, wanted: GsoKind) -> (usize, usize, usize) {
    let pool = pool();
    let mut cache = pool.cache();
    let headers = {
        let stack =
            Stack { tcp: Tcp { v6, ..Tcp::default() }, wraps: wrap.cloned().into_iter().collect(), ..Stack::default() };
        stack.frame().len()
    };
    let mss = MTU - (headers - 14);
    let most = (MAX_SIZE - headers) / mss * mss;
    let port = Port::builder(Device::new(pool.cache(), device_gso), pool.cache());
    let mut port = port.segmenter(Box::new(SoftwareSegmenter::new())).build();
    let (mut sent, mut id, mut wire, mut received) = (0, 0u16, 0, 0u32);
    let mut burst = Burst::new();
    let ports = TunnelPorts::default();
    while sent < TOTAL {
        let len = most.min(TOTAL - sent);
        let tcp = Tcp { v6, seq: 100 + sent as u32, id, payload: vec![(sent >> 12) as u8; len], ..Tcp::default() };
        let mut wrap = wrap.cloned();
        if let Some(wrap) = &mut wrap {
            wrap.outer_mut().id = id;
        }
        let frame = Stack { tcp, wraps: wrap.into_iter().collect(), ..Stack::default() }.frame();
        let mut packet = cache.copy_chain(&frame).unwrap();
        let kind = Large::of(&packet, &ports).unwrap().kind;
        assert_eq!(kind, wanted);
        let segments = len.div_ceil(mss);
        packet.set_gso((segments > 1).then_some(Gso { kind, size: mss as u16, segments: segments as u16 }));
        burst.push(packet);
        port.transmit(0, &mut burst, Instant::ZERO).unwrap();
        port.reclaim(0, &mut Completions::new(), Instant::ZERO).unwrap();
        while let Some(packet) = port.driver_mut().wire.pop() {
            wire += 1;
            let frame = packet.to_vec();
            assert!(frame.len() <= MTU + 14);
            let d = dissect(&frame, &ports);
            for checks in [d.outer_checksums(&frame, frame.len()), d.inner_checksums(&frame, frame.len())] {
                for verdict in checks.into_iter().flat_map(|checks| [checks.header, checks.upper]).flatten() {
                    assert!(matches!(verdict, ChecksumVerdict::Good | ChecksumVerdict::Absent), "{verdict:?}");
                }
            }
            // No retransmission could be needed: the stream is whole and in order.
            let at = usize::from(d.innermost().unwrap().upper) + 4;
            let seq = u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
            assert_eq!(seq, 100 + received);
            received += d.payload_len() as u32;
            cache.put(packet);
        }
        id = id.wrapping_add(segments as u16);
        sent += len;
    }
    assert_eq!((received as usize, port.counters().tx_dropped), (TOTAL, 0));
    (port.driver().supers, port.driver().from_supers, wire)
}

/// The hardware matrix of the kernel's `tso.py`, as properties: with the feature the device sees super-packets, without it
/// (or with the feature of another tunnel) none; the wire carries the same either way.
#[test]
fn a_device_gets_super_packets_of_the_tunnels_it_declares_and_of_no_others() {
    let Some(path) = netcore_test::shared("exams/gso.json") else { return };
    let exam: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let listed: Vec<&str> =
        exam["tso_matrix"]["feature_per_tunnel"].as_object().unwrap().values().map(|v| v.as_str().unwrap()).collect();
    let mut ran = std::collections::BTreeSet::new();
    for v6 in [false, true] {
        let (tcp, feature) =
            if v6 { (GsoKind::TCPV6, "tx-tcp6-segmentation") } else { (GsoKind::TCPV4, "tx-tcp-segmentation") };
        let mut rows = vec![(feature, GsoKind::empty(), None)];
        for outer_v6 in [false, true] {
            rows.extend(tunnels(outer_v6));
        }
        for (feature, tunnel, wrap) in rows {
            let case = format!("{feature}, inner IPv6 {v6}, {wrap:?}");
            let all = GsoKind::TCPV4 | GsoKind::TCPV6 | GsoKind::TUNNEL;
            let (supers, from_supers, wire) = bulk(v6, wrap.as_ref(), tcp | tunnel, tcp | tunnel);
            assert!(supers * 10 >= TOTAL * 9 / MAX_SIZE, "{case}: {supers} super-packets");
            assert!(from_supers * 10 >= TOTAL * 9 / MTU, "{case}: {from_supers} frames of super-packets");
            let (supers, from_supers, without) = bulk(
                v6,
                wrap.as_ref(),
                all - tunnel - if tunnel.is_empty() { tcp } else { GsoKind::empty() },
                tcp | tunnel,
            );
            assert!(supers < 15 && from_supers < 500, "{case}, off: {supers} super-packets, {from_supers} frames");
            assert_eq!((supers, wire), (0, without), "{case}: the wire is the same");
            ran.insert(feature);
        }
    }
    assert!(listed.iter().all(|feature| ran.contains(feature)), "{listed:?}");
}
