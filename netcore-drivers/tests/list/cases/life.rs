//! Statistics, interrupts, stop and start, removal.

use crate::list::frames::{number, numbered};
use crate::list::{MAC, Maker, PEER, is_removed};
use core::time::Duration;
use netcore::{Burst, Driver, MacAddress};
use netcore_drivers::bus::InterruptMode;

pub fn statistics_count(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let before = bench.statistics();
    let packets: Vec<_> = (0..10).map(|n| bench.packet(&numbered(PEER, MAC, 100 + 10 * n as usize, n))).collect();
    bench.transmit(packets, 10);
    let group = numbered(MacAddress::BROADCAST, PEER, 200, 1);
    for n in 0..7 {
        bench.peer.send(&numbered(MAC, PEER, 100, n));
    }
    bench.peer.send(&group);
    bench.receive(8);
    let after = bench.statistics();
    let grown = |name: &str| after.get(name).unwrap_or(0) - before.get(name).unwrap_or(0);
    assert_eq!((grown("tx_packets"), grown("rx_packets")), (10, 8), "{}\n{after}", bench.expect.name);
    assert_eq!((grown("tx_queue_0_packets"), grown("rx_queue_0_packets")), (10, 8));
    assert_eq!(grown("tx_queue_0_bytes"), (0..10).map(|n| 100 + 10 * n).sum::<u64>());
    if bench.expect.byte_counters {
        assert_eq!(grown("rx_broadcast"), 1, "{}", bench.expect.name);
        // Registers count the FCS.
        assert_eq!(grown("rx_bytes"), 7 * 104 + 204, "{}", bench.expect.name);
    }
    // Read twice, counted once: the registers clear, the sums do not.
    assert_eq!(bench.statistics().get("tx_packets"), after.get("tx_packets"));
    bench.assert_no_violations();
}

pub fn interrupts_come(maker: &impl Maker) {
    let expect = maker.expect();
    for &mode in expect.interrupts {
        let mut bench = maker.bench(|_| {});
        bench.nic.set_interrupts(mode).unwrap_or_else(|error| panic!("{}: {mode:?}: {error}", expect.name));
        bench.up();
        let mut causes_seen = (false, false);
        // Whatever the link left behind.
        while let Some((vector, _)) = bench.nic.wait(Duration::from_millis(5)).expect("wait") {
            bench.nic.rearm(vector).expect("rearm");
        }
        for n in 0..20 {
            bench.peer.send(&numbered(MAC, PEER, 100, n));
            let limit = Duration::from_millis(500);
            let (vector, causes) = bench
                .nic
                .wait(limit)
                .expect("wait")
                .unwrap_or_else(|| panic!("{}: {mode:?}: no interrupt for frame {n}", expect.name));
            assert!(causes.mine && causes.receive != 0, "{}: {mode:?} {causes:?}", expect.name);
            causes_seen.0 = true;
            let packet = bench.receive(1).remove(0);
            assert_eq!(number(&packet.to_vec()), n);
            bench.nic.rearm(vector).expect("rearm");
        }
        let packet = bench.packet(&numbered(PEER, MAC, 100, 1));
        let mut burst: Burst = [packet].into_iter().collect();
        let now = bench.now();
        bench.nic.transmit(0, &mut burst, now).expect("transmit");
        if let Some((vector, causes)) = bench.nic.wait(Duration::from_millis(500)).expect("wait") {
            causes_seen.1 = causes.transmit != 0;
            bench.nic.rearm(vector).expect("rearm");
        }
        assert_eq!(causes_seen, (true, true), "{}: {mode:?}", expect.name);
        bench.nic.set_interrupts(InterruptMode::Polling).expect("polling");
        bench.assert_no_violations();
        bench.down();
    }
}

pub fn stop_and_start_lose_no_buffer(maker: &impl Maker) {
    let mut bench = maker.bench(|_| {});
    for cycle in 0..bench.expect.cycles {
        bench.up();
        let packets: Vec<_> = (0..8).map(|n| bench.packet(&numbered(PEER, MAC, 500, n))).collect();
        // Every other time with packets still in both rings.
        if cycle % 2 == 0 {
            bench.transmit(packets, 8);
            bench.peer.send(&numbered(MAC, PEER, 100, cycle as u32));
            assert_eq!(number(&bench.receive(1)[0].to_vec()), cycle as u32);
        } else {
            let mut burst: Burst = packets.into_iter().collect();
            let now = bench.now();
            bench.nic.transmit(0, &mut burst, now).expect("transmit");
            bench.peer.send(&numbered(MAC, PEER, 100, cycle as u32));
        }
        bench.down();
        assert!(matches!(
            bench.nic.receive(0, &mut Burst::new(), 1, bench.peer.now()),
            Err(netcore::DriverError::Down)
        ));
    }
    bench.assert_no_violations();
}

pub fn a_pulled_device_is_an_error(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    if !bench.peer.remove() {
        return;
    }
    bench.peer.settle(Duration::from_secs(2));
    let now = bench.now();
    assert!(is_removed(&bench.nic.poll(now)), "{}", bench.expect.name);
    assert!(is_removed(&bench.nic.stop(now)), "{}", bench.expect.name);
    bench.assert_all_back();
    assert!(is_removed(&bench.nic.start(now)), "{}", bench.expect.name);
    bench.assert_all_back();
}
