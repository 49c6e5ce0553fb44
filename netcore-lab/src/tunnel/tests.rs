use super::*;
use crate::capture::Tap;
use crate::engine::Lab;
use crate::host::{Application, Bulk, Cost, Host, Interface};
use crate::net::{Link, LinkConfig};
use crate::nic::{Nic, NicConfig};
use crate::topology::{mac, path};
use netcore::dissect::{ChecksumVerdict, Checksums, Dissection};
use netcore::{
    Burst, Instant, Packet, PacketPool, PoolCache, PoolConfig, Port, Rate, ReceiveOffload, TunnelPorts, dissect,
};
use netcore_drivers::pcap::{CaptureReader, Format};
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter};
use netcore_tcp::Config;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn tunnel(udp_checksum: bool) -> VxlanConfig {
    let outer = |host| (mac(host, 0), Ipv4Addr::new(10, 9, 0, host));
    VxlanConfig { vni: 42, port: 4789, local: outer(1), remote: outer(2), ttl: 64, udp_checksum }
}

/// A flow of 1 MB through the tunnel; what the receiver got, its tunnel's counters, the frames on the link.
fn run(udp_checksum: bool) -> (u64, netcore::Statistics, Vec<u8>) {
    let file = File::default();
    let mut lab = Lab::new(1, 8192).unwrap();
    let mut host = |number, config: VxlanConfig| {
        let mut nic = NicConfig::new("eth0", mac(number, 0), Rate::from_bits_per_sec(1_000_000_000));
        nic.mtu = 9000;
        nic.checksums = false;
        nic.moderation.interval = Duration::from_micros(200);
        let (nic, driver) = Nic::shared(nic, lab.pool().cache());
        let port = Port::builder(driver, lab.pool().cache()).segmenter(Box::new(SoftwareSegmenter::new())).build();
        let vxlan = Vxlan::new(config, Box::new(port), lab.pool().cache());
        let gro = Box::new(Gro::new(GroConfig::linux_current()).unwrap());
        let interface = Interface::new(nic).with_offload(gro).with_tunnel(Box::new(VxlanReceive::new(config)), 0);
        lab.add(Host::new("host", Box::new(vxlan), vec![interface], Cost::default()))
    };
    let (left, right) = (host(1, tunnel(udp_checksum)), host(2, tunnel(udp_checksum).reversed()));
    let link = lab.add(Link::new(LinkConfig::ethernet(1_000_000_000, Duration::from_micros(10)), 1));
    let tap = lab.add(Tap::new(file.clone(), Format::Pcapng).unwrap());
    lab.connect((left, 0), (tap, 0)).unwrap();
    lab.connect((tap, 1), (link, 0)).unwrap();
    lab.connect((link, 1), (right, 0)).unwrap();
    let path = path(1, 2, 0, 1450);
    let config = Config::default();
    let host = lab.get_mut::<Host>(right).unwrap();
    let sink = host.listen(config.clone(), path.reversed(), 2, Application::Sink).unwrap();
    let bulk = Bulk { bytes: Some(1_000_000), ..Bulk::default() };
    let host = lab.get_mut::<Host>(left).unwrap();
    host.connect(config, path, 1, Instant::ZERO, Application::Bulk(bulk)).unwrap();
    lab.run_until(Instant::from_secs(1));
    lab.get_mut::<Tap>(tap).unwrap().finish().unwrap();
    let host = lab.get::<Host>(right).unwrap();
    let mut statistics = netcore::Statistics::new();
    host.statistics(&mut statistics);
    let received = host.flow(sink).unwrap().endpoint().unwrap().info().bytes_received;
    let bytes = file.0.lock().unwrap().clone();
    (received, statistics, bytes)
}

fn each_frame(capture: &[u8], mut check: impl FnMut(&[u8], &Dissection)) -> usize {
    let mut reader = CaptureReader::new(capture).unwrap();
    let mut n = 0;
    while let Some(record) = reader.next().unwrap() {
        check(record.bytes, &dissect(record.bytes, &TunnelPorts::default()));
        n += 1;
    }
    n
}

#[test]
fn a_flow_passes_and_every_frame_on_the_wire_is_right() {
    for (udp_checksum, outer) in [(false, ChecksumVerdict::Absent), (true, ChecksumVerdict::Good)] {
        let (received, statistics, capture) = run(udp_checksum);
        assert_eq!(received, 1_000_000);
        let mut ids = Vec::new();
        let mut ports = std::collections::BTreeSet::new();
        let frames = each_frame(&capture, |frame, d| {
            let upper = |checksums: Checksums| {
                assert_eq!(checksums.header, Some(ChecksumVerdict::Good));
                checksums.upper.unwrap()
            };
            assert_eq!(upper(d.outer_checksums(frame, frame.len()).unwrap()), outer);
            assert_eq!(upper(d.inner_checksums(frame, frame.len()).unwrap()), ChecksumVerdict::Good);
            assert!(frame.len() <= 1450 + 14 + 50, "{}", frame.len());
            assert_eq!(frame[46..50], [0, 0, 42, 0], "network 42");
            if frame[29] == 1 {
                ids.push(u16::from_be_bytes([frame[18], frame[19]]));
                ports.insert(u16::from_be_bytes([frame[34], frame[35]]));
            }
        });
        assert!(frames > 700, "{frames}");
        assert!(ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "outer identifications count up");
        assert_eq!(ports.len(), 1, "one flow, one source port");
        assert!(ports.iter().all(|port| (32_768..61_000).contains(port)));
        let (packets, of) = (statistics.get("vxlan_rx_packets").unwrap(), statistics.get("vxlan_rx_frames").unwrap());
        assert!(packets * 4 < of, "today's card merges in the tunnel: {of} frames, {packets} packets");
        assert_eq!(statistics.get("vxlan_rx_dropped"), Some(0));
    }
}

/// A data frame of the tunnel, changed.
fn one_frame(cache: &mut PoolCache, change: impl FnOnce(&mut [u8])) -> Packet {
    let mut bytes = Vec::new();
    each_frame(&run(false).2, |frame, _| {
        if frame.len() > 1000 && bytes.is_empty() {
            bytes = frame.to_vec();
        }
    });
    change(&mut bytes);
    cache.copy_chain(&bytes).unwrap()
}

fn receive(change: impl FnOnce(&mut [u8])) -> (Vec<Packet>, VxlanReceiveCounters) {
    let mut cache = PacketPool::new(PoolConfig::with_buffers(64)).unwrap().cache();
    let mut device = VxlanReceive::new(tunnel(false).reversed());
    let (mut burst, mut out) = (Burst::new(), Burst::new());
    burst.push(one_frame(&mut cache, change));
    device.receive(&mut burst, &mut out, &mut cache, Instant::ZERO);
    (out.drain().collect(), device.counters())
}

#[test]
fn frames_of_other_networks_and_ports_are_dropped_and_counted() {
    for change in
        [|b: &mut [u8]| b[48] = 43, |b: &mut [u8]| b[37] ^= 1, |b: &mut [u8]| b[42] = 0, |b: &mut [u8]| b[23] = 6]
    {
        let (out, counters) = receive(change);
        assert_eq!((out.len(), counters.rx_dropped), (0, 1));
    }
    let (out, counters) = receive(|_| ());
    assert_eq!((out.len(), counters.rx_packets), (1, 1));
    assert_eq!(out[0].head()[..6], mac(2, 0).0);
}

#[test]
fn an_outer_mark_reaches_an_inner_packet_that_can_be_marked() {
    let mark = |frame: &mut [u8]| {
        frame[15] |= 3;
        frame[50 + 15] |= 2;
    };
    let (out, _) = receive(mark);
    assert_eq!(out[0].head()[15] & 3, 3);
    let (out, counters) = receive(|frame| frame[15] |= 3);
    assert_eq!((out.len(), counters.rx_ecn_errors), (0, 1), "RFC 6040: a mark on what cannot be marked");
}
