//! Two smoltcp stacks over two drivers over two models of a NIC on one wire: ping and TCP, on the 82546GB and the 82576.

use netcore::{Driver, MacAddress, PoolConfig, Statistics};
use netcore_adapters::smoltcp::Device;
use netcore_drivers::model::e82546gb::E82546Gb;
use netcore_drivers::model::e82576::E82576;
use netcore_drivers::model::{self, Bench, Port, WireConfig};
use netcore_drivers::nic::{NicConfig, NicDevice, open, packet_pool};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Checksum, Device as _};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::time::Duration;

struct Host {
    device: Device<Box<dyn NicDevice>>,
    interface: Interface,
    sockets: SocketSet<'static>,
    port: Port,
}

/// Makes the model of a part.
type Part = fn() -> Box<dyn model::Device>;

const E1000: Part = || Box::new(E82546Gb::new());
const IGB: Part = || Box::new(E82576::new());

fn host(part: Part, bench: &Bench, number: u8, features: impl FnOnce(&mut NicConfig)) -> Host {
    let mac = MacAddress([2, 0, 0, 0, 0, number]);
    let (port, mut bus) = bench.add(part(), mac);
    let pool = packet_pool(&mut bus, PoolConfig::with_buffers(2048)).expect("memory");
    let mut nic = open(Box::new(bus), pool.clone(), features).expect("a part that a driver knows");
    // smoltcp has no way to ask a device for groups: neighbours are asked for at this one (RFC 4291 section 2.7.1).
    nic.set_multicast(&[MacAddress([0x33, 0x33, 0xff, 0, 0, number])]).expect("a group");
    nic.start(bench.now()).expect("start");
    let mut device = Device::new(nic, pool.cache());
    let now = Instant::from_micros(bench.now().as_micros() as i64);
    let mut interface = Interface::new(Config::new(EthernetAddress(mac.0).into()), &mut device, now);
    interface.update_ip_addrs(|addresses| {
        for address in [address(4, number), address(6, number)] {
            addresses.push(IpCidr::new(address, 24)).expect("room for an address");
        }
    });
    Host { device, interface, sockets: SocketSet::new(Vec::new()), port }
}

fn buffer() -> tcp::SocketBuffer<'static> {
    tcp::SocketBuffer::new(vec![0; 256 << 10])
}

fn address(version: u8, number: u8) -> IpAddress {
    if version == 4 { IpAddress::v4(10, 0, 0, number) } else { IpAddress::v6(0xfd00, 0, 0, 0, 0, 0, 0, number.into()) }
}

/// Transfers a megabyte and says how many super-packets left the sender.
fn transfer(part: Part, version: u8, features: impl Fn(&mut NicConfig)) -> (u64, Statistics) {
    const LEN: usize = 1 << 20;
    let bench = Bench::new();
    let (mut a, mut b) = (host(part, &bench, 1, &features), host(part, &bench, 2, &features));
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
        .connect(a.interface.context(), (address(version, 2), 80), 40_000)
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
    for (part, version) in [(E1000, 4), (IGB, 4), (IGB, 6)] {
        let (segmented, statistics) = transfer(part, version, |_| {});
        // The stack does not hand super-packets over IPv6 to any device.
        assert!(if version == 4 { segmented > 20 } else { segmented == 0 }, "{statistics}");
        assert!(statistics.get("tx_csum_offload").unwrap_or(0) > 20, "{statistics}");
        assert_eq!(statistics.get("adapter_tx_refused"), Some(0));
    }
}

#[test]
fn tcp_runs_without_any_offload() {
    for part in [E1000, IGB] {
        let (segmented, statistics) =
            transfer(part, 4, |config| config.features = Some(netcore::Features::SCATTER_GATHER));
        assert_eq!((segmented, statistics.get("tx_csum_offload")), (0, Some(0)), "{statistics}");
    }
}

#[test]
fn capabilities_say_what_the_nic_does() {
    let bench = Bench::new();
    let plain = host(E1000, &bench, 3, |config| config.features = Some(netcore::Features::SCATTER_GATHER));
    let capabilities = plain.device.capabilities();
    assert!(matches!(capabilities.checksum.tcp, Checksum::Both));
    assert_eq!(capabilities.segmentation.tcpv4, None);
    assert_eq!(capabilities.max_transmission_unit, 1514);
    let full = host(E1000, &bench, 4, |_| {});
    let capabilities = full.device.capabilities();
    assert!(matches!(capabilities.checksum.tcp, Checksum::None));
    assert!(capabilities.segmentation.tcpv4.is_some() && capabilities.segmentation.tcpv6.is_none());
    let capabilities = host(IGB, &bench, 5, |_| {}).device.capabilities();
    assert!(capabilities.segmentation.tcpv4.is_some() && capabilities.segmentation.tcpv6.is_none());
}

#[test]
fn ping_is_answered() {
    for part in [E1000, IGB] {
        ping(part);
    }
}

fn ping(part: Part) {
    use smoltcp::socket::icmp;
    use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};
    let bench = Bench::new();
    let (mut a, mut b) = (host(part, &bench, 1, |_| {}), host(part, &bench, 2, |_| {}));
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
