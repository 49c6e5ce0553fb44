//! Filters, and the choice of the queue.

use crate::list::frames::{Ip, number, numbered, tagged};
use crate::list::{MAC, Maker, PEER};
use netcore::flow::{RssInput, Toeplitz};
use netcore::{Driver, MacAddress};

pub fn groups_and_stations_are_filtered(maker: &impl Maker) {
    let mut bench = maker.up(|_| {});
    let group = MacAddress([0x01, 0, 0x5e, 0x01, 0x02, 0x03]);
    // Another hash, so that the imperfect filter cannot let it through.
    let other = MacAddress([0x01, 0, 0x5e, 0x0a, 0x5b, 0x7c]);
    let stranger = MacAddress([0x52, 0x54, 0, 0xde, 0xad, 0x01]);
    let deaf = bench.expect.deaf_after_start;
    let all = [group, other, stranger, MacAddress::BROADCAST, MAC];
    let try_all = |bench: &mut crate::list::Bench<_>, expected: &[u32]| {
        for (n, destination) in (0..).zip(all) {
            bench.peer.send(&numbered(destination, PEER, 100, n));
        }
        let mut seen: Vec<u32> = bench.receive(expected.len()).iter().map(|p| number(&p.to_vec())).collect();
        seen.extend(bench.receive_any().iter().map(|p| number(&p.to_vec())));
        assert_eq!(seen, expected, "{}", bench.expect.name);
    };
    try_all(&mut bench, &[3, 4]);
    bench.nic.set_multicast(&[group]).expect("a filter");
    try_all(&mut bench, &[0, 3, 4]);
    bench.nic.set_promiscuous(true).expect("promiscuous");
    bench.peer.settle(deaf);
    try_all(&mut bench, &[0, 1, 2, 3, 4]);
    bench.nic.set_promiscuous(false).expect("not promiscuous");
    bench.nic.set_multicast(&[]).expect("no groups");
    bench.peer.settle(deaf);
    try_all(&mut bench, &[3, 4]);
    bench.assert_no_violations();
    bench.down();
}

pub fn tags_are_filtered(maker: &impl Maker) {
    let expect = maker.expect();
    if !expect.vlan_filter {
        return;
    }
    let mut bench = maker.up(|_| {});
    bench.nic.set_vlan_filter(Some(&[100, 4094])).expect("a filter");
    bench.peer.settle(expect.deaf_after_start);
    for (n, id) in (0..).zip([100u16, 101, 4094, 0, 33]) {
        bench.peer.send(&tagged(&numbered(MAC, PEER, 100, n), id));
    }
    bench.peer.send(&numbered(MAC, PEER, 100, 9));
    let seen: Vec<u32> = bench.receive(4).iter().map(|p| number(&p.to_vec())).collect();
    assert_eq!(seen, [0, 2, 3, 9], "{}", expect.name);
    assert!(bench.receive_any().is_empty());
    assert!(bench.nic.set_vlan_filter(Some(&[4095])).is_err());
    bench.nic.set_vlan_filter(None).expect("no filter");
    bench.peer.settle(expect.deaf_after_start);
    bench.peer.send(&tagged(&numbered(MAC, PEER, 100, 7), 101));
    assert_eq!(number(&bench.receive(1)[0].to_vec()), 7);
    bench.assert_no_violations();
}

pub fn the_hash_chooses_the_queue(maker: &impl Maker) {
    let expect = maker.expect();
    if expect.queues < 2 {
        return;
    }
    let queues = expect.queues;
    let mut bench = maker.up(|config| {
        config.queues = queues;
        // Sixteen rings share the pool.
        config.receive_descriptors = 32;
    });
    let rss = bench.nic.settings().rss.clone();
    let toeplitz = Toeplitz::new(&rss.key);
    let mut used = std::collections::BTreeSet::new();
    for n in 0..200u16 {
        let ip = Ip { host: (n % 50) as u8 + 1, ..Ip::tcp4(50).ports(1000 + 7 * n, 2000) };
        bench.peer.send(&ip.build());
        let packet = bench.receive(1).remove(0);
        let input = RssInput::ipv4([10, 0, 0, ip.host].into(), [10, 0, 0, 200].into());
        let hash = toeplitz.hash(&input.with_ports(ip.source_port, ip.destination_port));
        if expect.hashes {
            assert_eq!(packet.hash(), Some((hash, true)), "{}", expect.name);
        }
        let queue = rss.queue((hash & 0x7f) as usize, queues);
        assert_eq!(packet.queue(), Some(queue), "{}: hash {hash:#x}", expect.name);
        used.insert(queue);
        bench.cache.put(packet);
    }
    assert_eq!(used.len(), queues.into(), "{}: every queue gets something", expect.name);
    bench.assert_no_violations();
    bench.down();
}
