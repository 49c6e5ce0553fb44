//! Probe, link, frames of every size, rings.

use crate::list::frames::{number, numbered};
use crate::list::{MAC, Maker, PEER};
use core::time::Duration;
use netcore::{Driver, MacAddress};
use netcore_drivers::nic::Hardware;

pub fn probe_reads_the_address(maker: &impl Maker) {
    let mut bench = maker.bench(|_| {});
    assert_eq!(bench.nic.hardware().permanent_mac(), MAC);
    assert_eq!(bench.nic.capabilities().mac, MAC);
    assert!(!bench.nic.link().up);
    bench.assert_no_violations();
}

pub fn the_link_comes_goes_and_comes(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let link = bench.nic.link();
    assert!(link.up && link.speed_mbps.is_some(), "{link:?}");
    bench.peer.cable(false);
    bench.wait_link(false);
    bench.peer.cable(true);
    bench.wait_link(true);
    bench.assert_no_violations();
}

/// Sizes from 60 to the largest frame of 9018 bytes with FCS.
fn sizes(step: usize, mtu: usize) -> impl Iterator<Item = usize> {
    (60..=1518 - 4).chain((1515..=mtu + 14).step_by(step)).chain([mtu + 14])
}

pub fn every_size_is_transmitted(maker: &impl Maker) {
    let expect = maker.expect();
    let mtu = expect.largest_mtu;
    let mut bench = maker.up(|config| config.mtu = mtu);
    let all: Vec<usize> = sizes(expect.size_step, mtu).collect();
    for (round, chunk) in all.chunks(16).enumerate() {
        let frames: Vec<Vec<u8>> =
            chunk.iter().zip(0..).map(|(len, n)| numbered(PEER, MAC, *len, round as u32 * 16 + n)).collect();
        let packets = frames.iter().map(|frame| bench.packet(frame)).collect();
        let seen = bench.transmit(packets, frames.len());
        assert!(seen == frames, "{}: frames of {chunk:?} bytes arrived differently", expect.name);
    }
    bench.reclaim_all(0);
    bench.assert_no_violations();
    bench.down();
}

pub fn every_size_is_received(maker: &impl Maker) {
    let expect = maker.expect();
    let mtu = expect.largest_mtu;
    let mut bench = maker.up(|config| config.mtu = mtu);
    let all: Vec<usize> = sizes(expect.size_step, mtu).collect();
    for (round, chunk) in all.chunks(16).enumerate() {
        let frames: Vec<Vec<u8>> =
            chunk.iter().zip(0..).map(|(len, n)| numbered(MAC, PEER, *len, round as u32 * 16 + n)).collect();
        for frame in &frames {
            bench.peer.send(frame);
        }
        let received = bench.receive(frames.len());
        for (packet, frame) in received.into_iter().zip(&frames) {
            assert!(packet.to_vec() == *frame, "{}: {} bytes, received {packet:?}", expect.name, frame.len());
            bench.cache.put(packet);
        }
    }
    bench.assert_no_violations();
    bench.down();
}

pub fn scattered_packets_arrive_in_one_piece(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let mut expected = Vec::new();
    let mut packets = Vec::new();
    for pieces in [2usize, 3, 5, 8, 17] {
        let frame = numbered(PEER, MAC, 1400, pieces as u32);
        let mut packet = bench.packet(&frame[..40]);
        let rest: Vec<&[u8]> = frame[40..].chunks((1360usize).div_ceil(pieces - 1)).collect();
        for (n, piece) in rest.into_iter().enumerate() {
            // Every other piece is memory that the device cannot reach.
            let tail = if n % 2 == 0 {
                bench.packet(piece)
            } else {
                bench.cache.from_owner(piece.to_vec()).expect("a window")
            };
            packet.append(tail).expect("it fits");
        }
        expected.push(frame);
        packets.push(packet);
    }
    let n = packets.len();
    let seen = bench.transmit(packets, n);
    assert!(seen == expected, "{}: scattered packets arrived differently", bench.expect.name);
    assert!(bench.statistics().get("tx_copied").unwrap_or(0) >= 4);
    bench.assert_no_violations();
    bench.down();
}

pub fn rings_wrap_three_times(maker: &impl Maker) {
    let mut bench = maker.up(|config| {
        config.transmit_descriptors = 64;
        config.receive_descriptors = 64;
    });
    let total = 64 * 3 + 32;
    let mut next = 0;
    while next < total {
        let frames: Vec<Vec<u8>> = (next..next + 16).map(|n| numbered(PEER, MAC, 200, n)).collect();
        let packets = frames.iter().map(|frame| bench.packet(frame)).collect();
        let seen = bench.transmit(packets, 16);
        assert!(seen == frames, "{}", bench.expect.name);
        for n in next..next + 16 {
            bench.peer.send(&numbered(MAC, PEER, 200, n));
        }
        for (n, packet) in (next..).zip(bench.receive(16)) {
            assert_eq!(number(&packet.to_vec()), n);
        }
        next += 16;
    }
    bench.assert_no_violations();
    bench.down();
}

pub fn an_overrun_ring_recovers(maker: &impl Maker) {
    if !maker.expect().overrun {
        return;
    }
    let mut bench = maker.up(|config| config.receive_descriptors = 32);
    let frames = bench.expect.overrun_frames;
    for n in 0..frames {
        bench.peer.send(&numbered(MAC, PEER, 1000, n));
    }
    bench.peer.settle(Duration::from_millis(20));
    // What is received is in order and starts at the front; the rest is counted.
    let mut burst = netcore::Burst::new();
    for _ in 0..1000 {
        bench.receive_into(&mut burst);
        bench.peer.settle(Duration::from_micros(50));
    }
    let numbers: Vec<u32> = burst.drain().map(|packet| number(&packet.to_vec())).collect();
    assert!(
        numbers.len() >= 31 && numbers.len() < frames as usize,
        "{}: {} received",
        bench.expect.name,
        numbers.len()
    );
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{}: order", bench.expect.name);
    let statistics = bench.statistics();
    let missed = ["rx_missed_errors", "rx_no_buffer_count", "rx_fifo_errors", "rx_no_dma_resources"];
    assert!(
        missed.iter().any(|name| statistics.get(name).unwrap_or(0) > 0),
        "{}: nothing counted\n{statistics}",
        bench.expect.name
    );
    bench.peer.send(&numbered(MAC, PEER, 1000, 1000));
    assert_eq!(number(&bench.receive(1)[0].to_vec()), 1000);
    bench.assert_no_violations();
    bench.down();
}

pub fn a_station_address_can_be_changed(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let other = MacAddress([0x02, 0, 0, 0, 0, 0x77]);
    bench.nic.set_mac(other).expect("a station address");
    bench.peer.send(&numbered(MAC, PEER, 100, 1));
    bench.peer.send(&numbered(other, PEER, 100, 2));
    let received = bench.receive(1);
    assert_eq!(number(&received[0].to_vec()), 2);
    assert!(bench.receive_any().is_empty());
    assert!(bench.nic.set_mac(MacAddress::BROADCAST).is_err());
    bench.assert_no_violations();
}
