//! Two smoltcp stacks over two e1000 drivers over two models of the 82546GB on one wire: ping and TCP.

use netcore::{Driver, MacAddress, PoolConfig, Statistics};
use netcore_adapters::smoltcp::Device;
use netcore_drivers::e1000::E1000;
use netcore_drivers::model::e82546gb::E82546Gb;
use netcore_drivers::model::{Bench, Port, WireConfig};
use netcore_drivers::nic::{Nic, NicConfig, packet_pool};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Checksum, Device as _};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::time::Duration;

struct Host {
    device: Device<Nic<E1000>>,
    interface: Interface,
    sockets: SocketSet<'static>,
    port: Port,
}

fn host(bench: &Bench, number: u8, features: impl FnOnce(&mut NicConfig)) -> Host {
    let mac = MacAddress([2, 0, 0, 0, 0, number]);
    let (port, mut bus) = bench.add(Box::new(E82546Gb::new()), mac);
    let pool = packet_pool(&mut bus, PoolConfig::with_buffers(2048)).expect("memory");
    let mut config = NicConfig::new(pool.clone());
    features(&mut config);
    let hardware = E1000::probe(Box::new(bus)).expect("an 82546GB");
    let mut nic = Nic::new(hardware, config).expect("within limits");
    nic.start(bench.now()).expect("start");
    let mut device = Device::new(nic, pool.cache());
    let now = Instant::from_micros(bench.now().as_micros() as i64);
    let mut interface = Interface::new(Config::new(EthernetAddress(mac.0).into()), &mut device, now);
    interface.update_ip_addrs(|addresses| {
        addresses.push(IpCidr::new(IpAddress::v4(10, 0, 0, number), 24)).expect("room for an address");
    });
    Host { device, interface, sockets: SocketSet::new(Vec::new()), port }
}

fn buffer() -> tcp::SocketBuffer<'static> {
    tcp::SocketBuffer::new(vec![0; 256 << 10])
}

/// Transfers a megabyte and says how many super-packets left the sender.
fn transfer(features: impl Fn(&mut NicConfig)) -> (u64, Statistics) {
    const LEN: usize = 1 << 20;
    let bench = Bench::new();
    let (mut a, mut b) = (host(&bench, 1, &features), host(&bench, 2, &features));
    bench.connect(a.port, b.port, WireConfig::default());
    while !(a.device.driver().link().up && b.device.driver().link().up) {
        bench.advance(Duration::from_millis(100));
        a.device.driver_mut().poll(bench.now()).expect("poll");
        b.device.driver_mut().poll(bench.now()).expect("poll");
    }
    let server = b.sockets.add(tcp::Socket::new(buffer(), buffer()));
    b.sockets.get_mut::<tcp::Socket<'_>>(server).listen(80).expect("a port");
    let client = a.sockets.add(tcp::Socket::new(buffer(), buffer()));
    a.sockets
        .get_mut::<tcp::Socket<'_>>(client)
        .connect(a.interface.context(), (IpAddress::v4(10, 0, 0, 2), 80), 40_000)
        .expect("connect");
    let data: Vec<u8> = (0..LEN).map(|n| (n * 7 + n / 251) as u8).collect();
    let (mut sent, mut received) = (0, Vec::new());
    let start = bench.now();
    while received.len() < LEN {
        let now = Instant::from_micros(bench.now().as_micros() as i64);
        for host in [&mut a, &mut b] {
            host.interface.poll(now, &mut host.device, &mut host.sockets);
        }
        let socket = a.sockets.get_mut::<tcp::Socket<'_>>(client);
        if socket.can_send() {
            sent += socket.send_slice(&data[sent..]).expect("connected");
        }
        let socket = b.sockets.get_mut::<tcp::Socket<'_>>(server);
        while socket.can_recv() {
            let taken = socket.recv(|bytes| (bytes.len(), bytes.to_vec())).expect("connected");
            received.extend(taken);
        }
        bench.advance(Duration::from_micros(50));
        assert!(bench.now() - start < Duration::from_secs(20), "{} of {LEN} bytes", received.len());
    }
    assert!(received == data, "the bytes arrived");
    for host in [&a, &b] {
        assert_eq!(bench.take_violations(host.port), []);
    }
    let mut statistics = Statistics::new();
    a.device.statistics(&mut statistics);
    (statistics.get("tx_tcp_seg_good").unwrap_or(0), statistics)
}

#[test]
fn tcp_runs_with_checksums_and_segmentation_left_to_the_nic() {
    let (segmented, statistics) = transfer(|_| {});
    assert!(segmented > 20, "{statistics}");
    assert!(statistics.get("tx_csum_offload").unwrap_or(0) > 20, "{statistics}");
    assert_eq!(statistics.get("adapter_tx_refused"), Some(0));
}

#[test]
fn tcp_runs_without_any_offload() {
    let (segmented, statistics) = transfer(|config| config.features = Some(netcore::Features::SCATTER_GATHER));
    assert_eq!((segmented, statistics.get("tx_csum_offload")), (0, Some(0)), "{statistics}");
}

#[test]
fn capabilities_say_what_the_nic_does() {
    let bench = Bench::new();
    let plain = host(&bench, 3, |config| config.features = Some(netcore::Features::SCATTER_GATHER));
    let capabilities = plain.device.capabilities();
    assert!(matches!(capabilities.checksum.tcp, Checksum::Both));
    assert_eq!(capabilities.segmentation.tcpv4, None);
    assert_eq!(capabilities.max_transmission_unit, 1514);
    let full = host(&bench, 4, |_| {});
    let capabilities = full.device.capabilities();
    assert!(matches!(capabilities.checksum.tcp, Checksum::None));
    assert!(capabilities.segmentation.tcpv4.is_some() && capabilities.segmentation.tcpv6.is_none());
}

#[test]
fn ping_is_answered() {
    use smoltcp::socket::icmp;
    use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};
    let bench = Bench::new();
    let (mut a, mut b) = (host(&bench, 1, |_| {}), host(&bench, 2, |_| {}));
    bench.connect(a.port, b.port, WireConfig::default());
    bench.advance(Duration::from_secs(3));
    let ring = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 4096]);
    let socket = a.sockets.add(icmp::Socket::new(ring(), ring()));
    let pinger = a.sockets.get_mut::<icmp::Socket<'_>>(socket);
    pinger.bind(icmp::Endpoint::Ident(7)).expect("an identifier");
    let echo = Icmpv4Repr::EchoRequest { ident: 7, seq_no: 1, data: b"how far is it" };
    let room = pinger.send(echo.buffer_len(), IpAddress::v4(10, 0, 0, 2)).expect("room");
    echo.emit(&mut Icmpv4Packet::new_unchecked(room), &smoltcp::phy::ChecksumCapabilities::default());
    for _ in 0..1000 {
        let now = Instant::from_micros(bench.now().as_micros() as i64);
        for host in [&mut a, &mut b] {
            host.interface.poll(now, &mut host.device, &mut host.sockets);
        }
        bench.advance(Duration::from_micros(50));
        let pinger = a.sockets.get_mut::<icmp::Socket<'_>>(socket);
        if let Ok((bytes, from)) = pinger.recv() {
            assert_eq!(from, IpAddress::v4(10, 0, 0, 2));
            assert!(bytes.ends_with(b"how far is it"));
            return;
        }
    }
    panic!("no answer");
}
