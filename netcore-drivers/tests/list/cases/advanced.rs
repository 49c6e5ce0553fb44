//! What parts with advanced descriptors can do besides: SCTP, datagrams, tunnels, more hash types.

use super::offload::request;
use crate::list::frames::{Ip, sctp, vxlan};
use crate::list::{Maker, PEER};
use netcore::checksum;
use netcore::flow::{RssInput, Toeplitz};
use netcore::{Driver, DriverError, Gso, GsoKind, Packet, PartialChecksum, ReceiveChecksum, Refusal};
use netcore_drivers::model::frames::{Check, look};
use netcore_drivers::nic::RssHash;

fn udp6(payload: usize) -> Ip {
    Ip { version: 6, ..Ip::udp4(payload) }
}

pub fn sctp_and_udp_over_ipv6_are_filled_in(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let ip = udp6(300).outbound();
    let mut packets = vec![bench.packet(&ip.build_partial())];
    request(&mut packets[0], &ip);
    let mut expected = vec![ip.build()];
    for payload in [400, 4] {
        let mut packet = bench.packet(&sctp(payload, false));
        packet.set_transmit_checksum(Some(PartialChecksum { start: 34, offset: 8 }));
        packets.push(packet);
        expected.push(sctp(payload, true));
    }
    let seen = bench.transmit(packets, 3);
    for (seen, expected) in seen.iter().zip(&expected) {
        let pad = |frame: &[u8]| [frame, &[0; 60][..60 - frame.len().min(60)]].concat();
        assert!(pad(seen) == pad(expected), "{}:\n{seen:02x?}\n{expected:02x?}", bench.expect.name);
    }
    bench.assert_no_violations();
    bench.down();
}

pub fn received_sctp_and_ipv6_are_judged(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let to_nic = |mut frame: Vec<u8>| {
        frame[..6].copy_from_slice(&crate::list::MAC.0);
        frame
    };
    let mut damaged = udp6(200).build();
    damaged[100] ^= 1;
    let mut bad_crc = to_nic(sctp(200, true));
    bad_crc[100] ^= 1;
    let good = ReceiveChecksum::Unnecessary { levels: 1 };
    for (what, frame, verdict, errors) in [
        ("UDP over IPv6", udp6(200).build(), good, 0),
        ("damaged", damaged, ReceiveChecksum::None, u64::from(bench.expect.udp_errors)),
        ("TCP over IPv6", Ip::tcp6(200).build(), good, 0),
        ("SCTP", to_nic(sctp(200, true)), good, 0),
        ("damaged SCTP", bad_crc, ReceiveChecksum::None, 1),
    ] {
        let before = bench.statistics().get("rx_csum_offload_errors").unwrap_or(0);
        bench.peer.send(&frame);
        let packet = bench.receive(1).remove(0);
        assert!(packet.to_vec() == frame, "{what}");
        assert_eq!(packet.receive_checksum(), verdict, "{}: {what}", bench.expect.name);
        let after = bench.statistics().get("rx_csum_offload_errors").unwrap_or(0);
        assert_eq!(after - before, errors, "{}: {what}", bench.expect.name);
    }
    bench.assert_no_violations();
}

pub fn datagrams_are_cut(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    for ip in [Ip::udp4(3500).outbound(), udp6(3500).outbound()] {
        let mut packet = bench.packet(&ip.build_partial());
        request(&mut packet, &ip);
        packet.set_gso(Some(Gso { kind: GsoKind::UDP_L4, size: 1000, segments: 4 }));
        let seen = bench.transmit(vec![packet], 4);
        let whole = ip.build();
        for (n, (seen, part)) in seen.iter().zip(whole[ip.headers()..].chunks(1000)).enumerate() {
            let mut expected = Ip { payload: part.len(), ..ip }.build();
            let headers = ip.headers();
            expected[headers..].copy_from_slice(part);
            if ip.version == 4 {
                expected[18..20].copy_from_slice(&(0x1234 + n as u16).to_be_bytes());
                expected[24..26].fill(0);
                let sum = !checksum::sum(&expected[14..34]).fold();
                expected[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            let field = ip.field();
            expected[field..field + 2].copy_from_slice(&seen[field..field + 2]);
            assert!(*seen == expected, "{}: datagram {n}", bench.expect.name);
            assert_eq!(look(seen).transport, Check::Good);
        }
    }
    bench.assert_no_violations();
    bench.down();
}

fn inner_request(packet: &mut Packet, inner: &Ip, at: usize) {
    let start = (at + inner.transport()) as u16;
    packet.set_transmit_checksum(Some(PartialChecksum { start, offset: (inner.field() - inner.transport()) as u16 }));
}

/// Where the inner frame of a [`vxlan`] frame starts.
fn inner_at(version: u8) -> usize {
    if version == 4 { 50 } else { 70 }
}

pub fn checksums_inside_a_tunnel_are_filled_in(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    for outer in [4, 6] {
        for inner in [Ip::tcp4(700), Ip::udp4(701), Ip::tcp6(3), udp6(200)] {
            let mut packet = bench.packet(&vxlan(&inner.build_partial(), outer));
            inner_request(&mut packet, &inner, inner_at(outer));
            let seen = bench.transmit(vec![packet], 1);
            assert!(seen[0] == vxlan(&inner.build(), outer), "{}: {inner:?} in IPv{outer}", bench.expect.name);
        }
    }
    bench.assert_no_violations();
    bench.down();
}

pub fn tunnels_are_cut(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    for outer in [4, 6] {
        for (inner, kind) in [
            (Ip::tcp4(8000), GsoKind::TCPV4 | GsoKind::UDP_TUNNEL),
            (Ip::tcp4(8000), GsoKind::TCPV4 | GsoKind::UDP_TUNNEL_CSUM),
            (Ip::tcp6(8000), GsoKind::TCPV6 | GsoKind::UDP_TUNNEL),
            (Ip::tcp6(8000), GsoKind::TCPV6 | GsoKind::UDP_TUNNEL_CSUM),
        ] {
            let at = inner_at(outer);
            let mut packet = bench.packet(&vxlan(&inner.build_partial(), outer));
            inner_request(&mut packet, &inner, at);
            packet.set_gso(Some(Gso { kind, size: 1000, segments: 8 }));
            let seen = bench.transmit(vec![packet], 8);
            assert_eq!(seen.len(), 8);
            let mut payload: Vec<u8> = Vec::new();
            for (n, frame) in seen.iter().enumerate() {
                let what = format!("{}: segment {n} of {kind:?} in IPv{outer}", bench.expect.name);
                let (whole, inside) = (look(frame), look(&frame[at..]));
                assert_ne!(whole.ip, Check::Bad, "{what}");
                assert_eq!(inside.transport, Check::Good, "{what}");
                assert_ne!(inside.ip, Check::Bad, "{what}");
                let summed = kind.contains(GsoKind::UDP_TUNNEL_CSUM);
                assert_eq!((whole.transport == Check::Good, whole.udp_zero), (summed, !summed), "{what}");
                let tcp = at + inner.transport();
                let sequence = u32::from_be_bytes([frame[tcp + 4], frame[tcp + 5], frame[tcp + 6], frame[tcp + 7]]);
                assert_eq!(sequence, 1000 + 1000 * n as u32, "{what}");
                assert_eq!(frame[tcp + 13], if n == 7 { 0x19 } else { 0x10 }, "{what}");
                payload.extend(&frame[at + inner.headers()..]);
            }
            assert!(payload == inner.build()[inner.headers()..], "{}", bench.expect.name);
        }
    }
    // Segments of different lengths are for software.
    let inner = Ip::tcp4(8001);
    let mut packet = bench.packet(&vxlan(&inner.build_partial(), 4));
    inner_request(&mut packet, &inner, 50);
    packet.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL, size: 1000, segments: 9 }));
    let now = bench.now();
    let mut burst = [packet].into_iter().collect();
    let result = bench.nic.transmit(0, &mut burst, now);
    assert_eq!(result, Err(DriverError::Refused { reason: Refusal::Segmentation }));
    bench.assert_no_violations();
}

/// `exact`: hash types of IPv6 are those of the datasheet.
pub fn the_hash_has_the_fields_that_were_chosen(maker: &impl Maker, exact: bool) {
    for udp in [false, true] {
        let hash = RssHash { udp4: udp, udp6: udp, ..RssHash::default() };
        // All of the table in two queues, in an order of its own.
        let table: Vec<u16> = (0..128).map(|entry| u16::from(entry % 3 == 0)).collect();
        let mut bench = maker.up(|config| {
            config.queues = 2;
            config.rss.hash = hash;
            config.rss.table = table.clone();
        });
        let rss = bench.nic.settings().rss.clone();
        let toeplitz = Toeplitz::new(&rss.key);
        for ip in [Ip::tcp4(40), Ip::udp4(40), Ip::tcp6(40), udp6(40), Ip { protocol: 47, ..Ip::udp4(40) }] {
            if ip.version == 6 && !exact {
                continue;
            }
            bench.peer.send(&ip.build());
            let packet = bench.receive(1).remove(0);
            let (source, destination) = ip.addresses();
            let addresses = if ip.version == 4 {
                let part = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).expect("four bytes");
                RssInput::ipv4(part(&source).into(), part(&destination).into())
            } else {
                let part = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).expect("sixteen bytes");
                RssInput::ipv6(part(&source).into(), part(&destination).into())
            };
            let ports = ip.protocol == 6 || (ip.protocol == 17 && udp);
            let input = if ports { addresses.with_ports(1000, 2000) } else { addresses };
            let value = toeplitz.hash(&input);
            assert_eq!(packet.hash(), Some((value, ports)), "{}: {ip:?}, UDP ports {udp}", bench.expect.name);
            assert_eq!(packet.queue(), Some(table[(value & 0x7f) as usize]), "{}: {ip:?}", bench.expect.name);
        }
        // What is no IP has no hash, and goes to the first queue.
        bench.peer.send(&crate::list::frames::numbered(crate::list::MAC, PEER, 100, 1));
        let packet = bench.receive(1).remove(0);
        assert_eq!((packet.hash(), packet.queue()), (None, Some(0)), "{}", bench.expect.name);
        drop(packet);
        bench.assert_no_violations();
        bench.down();
    }
}

/// All of it, for parts and benches that have all of it.
pub fn run(maker: &impl Maker) {
    sctp_and_udp_over_ipv6_are_filled_in(maker);
    received_sctp_and_ipv6_are_judged(maker);
    datagrams_are_cut(maker);
    checksums_inside_a_tunnel_are_filled_in(maker);
    tunnels_are_cut(maker);
    the_hash_has_the_fields_that_were_chosen(maker, true);
}
