//! Checksums, segmentation, tags.

use crate::list::frames::{Ip, numbered, sums_are_right, tagged};
use crate::list::{MAC, Maker, PEER};
use netcore::{
    Burst, Driver, DriverError, Features, Gso, GsoKind, Packet, PartialChecksum, ReceiveChecksum, Refusal, VlanTag,
};

pub fn request(packet: &mut Packet, ip: &Ip) {
    packet.set_transmit_checksum(Some(PartialChecksum {
        start: ip.transport() as u16,
        offset: (ip.field() - ip.transport()) as u16,
    }));
}

pub fn checksums_are_filled_in(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let mut expected = Vec::new();
    let mut packets = Vec::new();
    for ip in [Ip::tcp4(100), Ip::udp4(101), Ip::tcp6(1), Ip::tcp4(1400), Ip::udp4(3), Ip::tcp4(7), Ip::tcp4(7)] {
        let ip = ip.outbound();
        let mut packet = bench.packet(&ip.build_partial());
        request(&mut packet, &ip);
        packets.push(packet);
        expected.push(ip.build());
        // A packet without a request in between keeps its bytes.
        let plain = numbered(PEER, MAC, 80, 9);
        packets.push(bench.packet(&plain));
        expected.push(plain);
    }
    let n = packets.len();
    let seen = bench.transmit(packets, n);
    for (seen, expected) in seen.iter().zip(&expected) {
        // Short frames are padded by the driver, or by the part; QEMU's 82574 does not pad.
        let pad = |frame: &[u8]| [frame, &[0; 60][..60 - frame.len().min(60)]].concat();
        assert!(pad(seen) == pad(expected), "{}:\n{seen:02x?}\n{expected:02x?}", bench.expect.name);
    }
    bench.assert_no_violations();
    bench.down();
}

pub fn received_checksums_are_judged(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let good = ReceiveChecksum::Unnecessary { levels: 1 };
    let none = ReceiveChecksum::None;
    let damage = |mut frame: Vec<u8>, at: usize| {
        frame[at] ^= 0x55;
        frame
    };
    let udp = Ip::udp4(100);
    let mut zero = udp.build();
    zero[40..42].fill(0);
    let mut fragment = Ip::tcp4(100).build();
    fragment[20] = 0x20;
    let header = !netcore::checksum::sum(&[&fragment[14..24], &fragment[26..34]].concat()).fold();
    fragment[24..26].copy_from_slice(&header.to_be_bytes());
    let cases = [
        ("TCP good", Ip::tcp4(100).build(), good, 0),
        ("TCP bad", damage(Ip::tcp4(100).build(), 60), none, 1),
        ("IP header bad", damage(Ip::tcp4(100).build(), 24), none, 1),
        ("UDP good", udp.build(), good, 0),
        ("UDP bad", damage(udp.build(), 60), none, u64::from(bench.expect.udp_errors)),
        ("UDP without checksum", zero, none, 0),
        ("fragment", fragment, none, 0),
        ("not IP", numbered(MAC, PEER, 100, 1), none, 0),
    ];
    for (what, frame, verdict, errors) in cases {
        let before = bench.statistics().get("rx_csum_offload_errors").unwrap_or(0);
        bench.peer.send(&frame);
        let packet = bench.receive(1).remove(0);
        assert!(packet.to_vec() == frame, "{}: {what}", bench.expect.name);
        let (verdict, errors) = if bench.expect.receive_checksum { (verdict, errors) } else { (none, 0) };
        assert_eq!(packet.receive_checksum(), verdict, "{}: {what}", bench.expect.name);
        let after = bench.statistics().get("rx_csum_offload_errors").unwrap_or(0);
        assert_eq!(after - before, errors, "{}: {what}", bench.expect.name);
    }
    bench.assert_no_violations();
    bench.down();
}

/// What software makes of the super-packet.
fn segments(ip: Ip, mss: usize, last_flags: bool) -> Vec<Vec<u8>> {
    let whole = ip.build();
    let headers = ip.headers();
    let count = (whole.len() - headers).div_ceil(mss);
    let cut = |(n, part): (usize, &[u8])| {
        let mut frame = [&whole[..headers], part].concat();
        let l4 = frame.len() - ip.transport();
        if ip.version == 4 {
            frame[16..18].copy_from_slice(&((20 + l4) as u16).to_be_bytes());
            frame[18..20].copy_from_slice(&(0x1234 + n as u16).to_be_bytes());
            frame[24..26].fill(0);
            let sum = !netcore::checksum::sum(&frame[14..34]).fold();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        } else {
            frame[18..20].copy_from_slice(&(l4 as u16).to_be_bytes());
        }
        let at = ip.transport();
        frame[at + 4..at + 8].copy_from_slice(&(1000 + (n * mss) as u32).to_be_bytes());
        frame[at + 13] = if n + 1 == count && last_flags { 0x19 } else { 0x10 };
        let field = ip.field();
        frame[field..field + 2].fill(0);
        let (source, destination) = ip.addresses();
        let sum = netcore::checksum::sum(&source)
            .plus(netcore::checksum::sum(&destination))
            .plus_word(6)
            .plus_u32(l4 as u32)
            .plus(netcore::checksum::sum(&frame[at..]));
        frame[field..field + 2].copy_from_slice(&(!sum.fold()).to_be_bytes());
        frame
    };
    whole[headers..].chunks(mss).enumerate().map(cut).collect()
}

pub fn super_packets_are_cut_as_software_does(maker: &impl Maker) {
    let expect = maker.expect();
    let mut bench = maker.up(|_| {});
    let mut cases =
        vec![(Ip::tcp4(4000), 1460), (Ip::tcp4(60_000), 1448), (Ip::tcp4(2920), 1460), (Ip::tcp4(1001), 500)];
    if expect.segments_ipv6 {
        cases.push((Ip::tcp6(4000), 1440));
    }
    for (ip, mss) in cases {
        let ip = ip.outbound();
        let mut packet = bench.packet(&ip.build_partial());
        request(&mut packet, &ip);
        let expected = segments(ip, mss, expect.last_segment_flags);
        let kind = if ip.version == 4 { GsoKind::TCPV4 } else { GsoKind::TCPV6 };
        packet.set_gso(Some(Gso { kind, size: mss as u16, segments: expected.len() as u16 }));
        // A plain packet behind it: its end must not overtake (an erratum of the 8254x).
        let plain = numbered(PEER, MAC, 300, 5);
        let mut packets = vec![packet];
        packets.push(bench.packet(&plain));
        let empty = expect.empty_last_segment && ip.payload % mss == 0;
        let mut seen = bench.transmit(packets, expected.len() + 1 + usize::from(empty));
        if empty {
            assert_eq!(seen.remove(expected.len()).len(), ip.headers(), "{}", expect.name);
        }
        assert_eq!(seen.len(), expected.len() + 1, "{}: {} bytes at {mss}", expect.name, ip.payload);
        for (n, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
            assert!(sums_are_right(seen), "{}: segment {n} of {}", expect.name, ip.payload);
            // Hardware pads the last one if it is short; QEMU's does not.
            let pad = |frame: &[u8]| [frame, &[0; 60][..60 - frame.len().min(60)]].concat();
            assert!(pad(seen) == pad(expected), "{}: segment {n}\n{seen:02x?}\n{expected:02x?}", expect.name);
        }
        assert!(seen.last() == Some(&plain), "{}", expect.name);
    }
    bench.assert_no_violations();
    bench.down();
}

pub fn tags_are_inserted_and_removed(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let frame = numbered(PEER, MAC, 300, 1);
    let mut packet = bench.packet(&frame);
    packet.set_vlan(Some(VlanTag { tpid: 0x8100, tci: 0x6064 }));
    // Together with segmentation and a checksum.
    let ip = Ip::tcp4(3000).outbound();
    let mut large = bench.packet(&ip.build_partial());
    request(&mut large, &ip);
    large.set_gso(Some(Gso { kind: GsoKind::TCPV4, size: 1460, segments: 3 }));
    large.set_vlan(Some(VlanTag { tpid: 0x8100, tci: 0x0007 }));
    let mut expected = vec![tagged(&frame, 0x6064)];
    let last_flags = bench.expect.last_segment_flags;
    expected.extend(segments(ip, 1460, last_flags).iter().map(|frame| tagged(frame, 0x0007)));
    let seen = bench.transmit(vec![packet, large], 4);
    assert!(seen == expected, "{}", bench.expect.name);

    let inbound = numbered(MAC, PEER, 1500, 2);
    bench.peer.send(&tagged(&inbound, 0xa064));
    let packet = bench.receive(1).remove(0);
    assert_eq!(packet.vlan(), Some(VlanTag { tpid: 0x8100, tci: 0xa064 }), "{}", bench.expect.name);
    assert!(packet.to_vec() == inbound);
    drop(packet);

    // With the feature off the tag stays in the bytes.
    let features = bench.nic.capabilities().features - Features::RX_VLAN;
    bench.nic.set_features(features).expect("it can be switched off");
    bench.peer.send(&tagged(&inbound, 0xa064));
    let packet = bench.receive(1).remove(0);
    assert_eq!(packet.vlan(), None);
    assert!(packet.to_vec() == tagged(&inbound, 0xa064), "{}", bench.expect.name);
    drop(packet);
    bench.assert_no_violations();
    bench.down();
}

pub fn what_cannot_be_done_is_refused(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let now = bench.now();
    let ip = Ip::tcp4(4000).outbound();
    let mut packet = bench.packet(&ip.build_partial());
    packet.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::GRE, size: 1460, segments: 3 }));
    let good = bench.packet(&numbered(PEER, MAC, 100, 1));
    let behind = bench.packet(&numbered(PEER, MAC, 100, 2));
    let mut burst: Burst = [good, packet, behind].into_iter().collect();
    let result = bench.nic.transmit(0, &mut burst, now);
    assert_eq!(result, Err(DriverError::Refused { reason: Refusal::Segmentation }), "{}", bench.expect.name);
    assert_eq!(burst.len(), 2, "the packet in front went, this one and those behind stay");
    assert!(burst.front().is_some_and(Packet::is_super));
    let long = bench.packet(&numbered(PEER, MAC, 1600, 3));
    let mut burst: Burst = [long].into_iter().collect();
    assert!(matches!(
        bench.nic.transmit(0, &mut burst, now),
        Err(DriverError::Refused { reason: Refusal::TooLong { len: 1600, .. } })
    ));
    assert!(bench.nic.transmit(99, &mut burst, now).is_err());
    bench.assert_no_violations();
}
