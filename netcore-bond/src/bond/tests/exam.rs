//! The cases of `exams/bonding.json`, and bugs that others had.

use super::*;

#[test]
fn round_robin_is_even_and_takes_nothing_without_a_link() {
    let mut b = Bench::new("mode balance-rr miimon 100", 2);
    assert_eq!((b.send(40), b.sent()), (40, vec![20, 20]));
    b.nics.iter().for_each(|nic| nic.up(false));
    b.run(200);
    assert_eq!((b.send(40), b.sent()), (0, vec![20, 20]));
    assert!(!b.bond.link().up);
}

#[test]
fn turns_of_members_that_are_down_go_to_their_successors_and_their_rings_are_not_read() {
    let mut b = Bench::new("mode balance-rr miimon 100", 4);
    b.nics[1].up(false);
    b.nics[3].up(false);
    b.run(200);
    assert_eq!((b.send(20), b.sent()), (20, vec![10, 0, 10, 0]));
    b.nics.iter().for_each(|nic| nic.get().incoming = (0..20).map(udp).collect());
    assert_eq!(b.receive().len(), 40);
    let delivered: u64 = b.bond.members().map(|m| m.counters.rx_packets).sum();
    assert_eq!(delivered, 40);
}

#[test]
fn all_members_have_the_first_ones_address_and_follow_a_change() {
    let mut b = Bench::new("mode balance-rr miimon 100", 3);
    let first = MacAddress([2, 0, 0, 0, 0xff, 0]);
    let macs = |b: &Bench| b.nics.iter().map(|nic| nic.get().capabilities.mac).collect::<Vec<_>>();
    assert_eq!((macs(&b), b.bond.capabilities().mac), (vec![first; 3], first));
    let other = MacAddress([2, 9, 9, 9, 9, 9]);
    b.bond.set_mac(other).unwrap();
    assert_eq!((macs(&b), b.bond.capabilities().mac), (vec![other; 3], other));
    b.bond.set_promiscuous(true).unwrap();
    assert!(b.nics.iter().all(|nic| nic.get().promiscuous));
    b.bond.set_promiscuous(false).unwrap();
    assert!(b.nics.iter().all(|nic| !nic.get().promiscuous));
}

#[test]
fn a_hash_parts_flows_by_the_fields_of_its_policy() {
    for (policy, field) in [("layer2", 5), ("layer2+3", 33), ("layer3+4", 33), ("layer3+4", 35), ("encap3+4", 33)] {
        let mut b = Bench::new(&std::format!("mode balance-xor miimon 100 xmit_hash_policy {policy}"), 2);
        let mut burst = Burst::new();
        for n in 0..30 {
            let mut frame = udp(4);
            // Ports lose their lowest bit.
            frame[field] ^= if n < 20 { 0 } else { 2 | u8::from(field == 5 || policy == "layer2+3") };
            burst.push(b.cache.copy_from_slice(&frame).unwrap());
        }
        assert_eq!(b.bond.transmit(0, &mut burst, b.now), Ok(30));
        let mut sent = b.sent();
        sent.sort_unstable();
        assert_eq!(sent, [10, 20], "{policy} by byte {field}");
    }
}

#[test]
fn active_backup_sends_and_receives_on_the_primary_and_fails_over() {
    let mut b = Bench::new("mode active-backup miimon 100 primary m0", 4);
    assert_eq!((b.send(17), b.sent()), (17, vec![17, 0, 0, 0]));
    for (n, expected) in [(0, 17), (2, 0)] {
        b.nics[n].get().incoming = (0..17).map(udp).collect();
        assert_eq!(b.receive().len(), expected);
    }
    b.nics[0].up(false);
    b.run(200);
    b.clear();
    assert_eq!((b.send(17), b.sent()), (17, vec![0, 17, 0, 0]));
    b.nics[0].up(true);
    b.run(200);
    assert_eq!(b.bond.active_member(), Some("m0"));
}

#[test]
fn broadcast_sends_everything_everywhere() {
    let mut b = Bench::new("mode broadcast miimon 100", 3);
    assert_eq!((b.send(10), b.sent()), (10, vec![10; 3]));
    b.nics.iter().for_each(|nic| nic.up(false));
    b.run(200);
    assert_eq!((b.send(10), b.sent()), (0, vec![10; 3]));
}

#[test]
fn exactly_as_many_gratuitous_arps_as_asked_for_at_their_distance() {
    for n in [1, 10, 20, 30, 50] {
        let options = std::format!("mode active-backup miimon 100 num_grat_arp {n} peer_notif_delay 1000");
        let mut b = Bench::new(&options, 2);
        let ip = "192.0.2.1".parse().unwrap();
        b.bond.set_host_addresses(&[HostAddress { ip, vlan: None }]);
        b.run(60_000);
        b.clear();
        b.nics[0].up(false);
        b.run((n + 2) * 1000);
        let control = b.nics[1].get().control.clone();
        let arps = control.iter().filter(|f| f[12..14] == [8, 6] && f[28..32] == f[38..42]).count() as u64;
        assert_eq!(arps, n);
        b.run(60_000);
        assert_eq!(b.nics[1].get().control.len() as u64, n);
    }
}

#[test]
fn without_a_member_a_returning_one_is_used_at_once_whatever_updelay_says() {
    for mode in ["active-backup", "balance-xor", "balance-rr"] {
        for updelay in [0, 200, 500, 1000, 2000, 5000, 10_000] {
            let mut b = Bench::new(&std::format!("mode {mode} miimon 100 updelay {updelay}"), 2);
            b.run(11_000);
            b.nics.iter().for_each(|nic| nic.up(false));
            b.run(300);
            assert_eq!(b.send(4), 0);
            b.clear();
            b.nics[1].up(true);
            b.run(200);
            assert_eq!((b.send(4), b.sent()), (4, vec![0, 4]), "{mode} {updelay}");
        }
    }
}

#[test]
fn members_listen_to_lacp_while_the_bond_is_up_and_lose_the_bonds_groups_when_they_leave() {
    let lacp = netcore::wire::SlowProtocol::ADDRESS;
    let group = MacAddress([1, 0, 0x5e, 1, 2, 3]);
    for mode in ["802.3ad", "active-backup"] {
        let mut b = Bench::new(&std::format!("mode {mode}"), 2);
        let expected = |up: bool| if up && mode == "802.3ad" { vec![lacp] } else { vec![] };
        let groups = |b: &Bench, n: usize| b.nics[n].get().multicast.clone();
        assert_eq!(groups(&b, 0), expected(true));
        b.bond.stop(b.now).unwrap();
        assert_eq!(groups(&b, 0), expected(false));
        b.add();
        assert_eq!(groups(&b, 2), expected(false));
        b.bond.start(b.now).unwrap();
        assert_eq!(groups(&b, 2), expected(true));
        b.bond.set_multicast(&[group]).unwrap();
        assert!(groups(&b, 1).contains(&group));
        b.bond.remove_member("m1", b.now).unwrap();
        assert!(groups(&b, 1).is_empty());
    }
}

/// Feeds every member's LACPDUs to a partner that answers as a switch with one aggregate does.
fn switch(b: &mut Bench, ms: u64) {
    use netcore::wire::{LacpState, Lacpdu, PortInformation};
    for _ in 0..ms / 50 {
        b.run(50);
        for n in 0..b.nics.len() {
            let frames = core::mem::take(&mut b.nics[n].get().control);
            for frame in frames.iter().filter(|f| f[12..15] == [0x88, 0x09, 1]) {
                let (pdu, _) = Lacpdu::parse(&frame[14..]).unwrap();
                let system = MacAddress([2, 0, 0, 0, 0, 1]);
                let actor =
                    PortInformation::new(0x8000, system, 7, 0x80, n as u16 + 1, LacpState::from_bits_retain(0x3d));
                let answer = Lacpdu::new(actor, *pdu.actor(), 0).frame(MacAddress([2, 0, 0, 0, 1, n as u8]));
                if b.nics[n].get().link.up {
                    b.nics[n].get().incoming.push(answer.to_vec());
                }
            }
        }
        b.receive();
    }
}

#[test]
fn an_8023ad_bond_aggregates_and_sends_no_slow_protocol_among_data() {
    let mut b = Bench::new("mode 802.3ad xmit_hash_policy layer2", 4);
    switch(&mut b, 12_000);
    assert!(b.bond.lacp().unwrap().ports().iter().all(|p| p.actor().state().bits() == 0x3d));
    assert_eq!(b.bond.option("ad_num_ports").unwrap(), "4");
    assert_eq!(b.sent(), [0; 4]);
    assert_eq!(b.send(32), 32);
    let sent = b.sent();
    assert!(sent.iter().sum::<usize>() == 32 && sent.iter().all(|n| *n > 0), "{sent:?}");
    assert!(b.nics.iter().all(|nic| nic.get().sent.iter().all(|f| f[12..14] == [8, 0])));
    b.nics[2].up(false);
    switch(&mut b, 300);
    b.clear();
    assert_eq!(b.send(32), 32);
    let sent = b.sent();
    assert!(sent[2] == 0 && sent.iter().sum::<usize>() == 32, "{sent:?}");
}

#[test]
fn without_a_partner_one_port_serves_alone() {
    let mut b = Bench::new("mode 802.3ad", 2);
    for _ in 0..100 {
        b.run(100);
        b.send(4);
    }
    assert!(b.sent()[0] > 0 && b.sent()[1] == 0, "{:?}", b.sent());
}

#[test]
fn lacp_keeps_its_pace_without_any_data() {
    let mut b = Bench::new("mode 802.3ad", 2);
    switch(&mut b, 12_000);
    let before = b.bond.lacp().unwrap().statistics().lacpdu_tx;
    // Both ask for the long timeout: one LACPDU each 30 s and port.
    switch(&mut b, 600_000);
    let sent = b.bond.lacp().unwrap().statistics().lacpdu_tx - before;
    assert!((2 * 19..=2 * 21).contains(&sent), "{sent}");
    assert!(b.bond.link().up);
}

#[test]
fn round_robin_in_an_aggregate_takes_every_port_and_each_ports_own_address() {
    let mut b = Bench::new("mode 802.3ad", 4);
    switch(&mut b, 12_000);
    b.bond.set_round_robin_in_aggregate(true, true);
    assert_eq!((b.send(40), b.sent()), (40, vec![10; 4]));
    for (n, nic) in b.nics.iter().enumerate() {
        let own = b.bond.members().nth(n).unwrap().permanent_address;
        assert!(nic.get().sent.iter().all(|f| f[6..12] == own.0), "member {n}");
    }
    b.nics[1].up(false);
    switch(&mut b, 200);
    b.clear();
    b.send(30);
    assert_eq!(b.sent(), [10, 0, 10, 10], "the array shrinks, the counter runs on");
}
