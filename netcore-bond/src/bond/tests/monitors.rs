use super::*;

fn links(b: &Bench) -> Vec<MemberLink> {
    b.bond.members().map(|m| m.link).collect()
}

#[test]
fn delays_run_in_intervals_of_the_link_check() {
    let mut b = Bench::new("mode balance-xor miimon 100 updelay 300 downdelay 250", 2);
    b.run(1000);
    assert_eq!(links(&b), [MemberLink::Up; 2]);
    // 250 ms are two intervals: seen at the first check, given up at the third after it.
    b.nics[0].up(false);
    b.run(100);
    assert_eq!(links(&b)[0], MemberLink::Fail);
    b.run(100);
    assert_eq!(links(&b)[0], MemberLink::Fail);
    b.run(100);
    assert_eq!(links(&b)[0], MemberLink::Down);
    b.nics[0].up(true);
    b.run(100);
    assert_eq!(links(&b)[0], MemberLink::Back);
    b.run(200);
    assert_eq!(links(&b)[0], MemberLink::Back);
    b.run(100);
    assert_eq!(links(&b)[0], MemberLink::Up);
    assert_eq!(b.bond.members().next().unwrap().counters.link_failures, 1);
}

#[test]
fn a_link_that_recovers_within_downdelay_did_not_fail() {
    let mut b = Bench::new("mode balance-xor miimon 100 downdelay 500", 2);
    b.nics[0].up(false);
    b.run(300);
    b.nics[0].up(true);
    b.run(100);
    assert_eq!(links(&b), [MemberLink::Up; 2]);
    assert_eq!(b.bond.members().next().unwrap().counters.link_failures, 0);
}

#[test]
fn the_active_member_that_fails_is_replaced_by_one_whose_delay_is_cut_short() {
    let mut b = Bench::new("mode active-backup miimon 100 updelay 1000", 2);
    b.run(1500);
    b.nics[1].up(false);
    b.run(200);
    b.nics[1].up(true);
    b.run(200);
    assert_eq!(links(&b)[1], MemberLink::Back);
    b.nics[0].up(false);
    b.run(100);
    assert_eq!((b.bond.active_member(), links(&b)[1]), (Some("m1"), MemberLink::Up));
}

#[test]
fn data_stops_within_one_interval_of_a_lost_link_and_what_is_lost_is_counted() {
    for mode in ["balance-rr", "balance-xor xmit_hash_policy layer2", "active-backup"] {
        let mut b = Bench::new(&std::format!("mode {mode} miimon 100"), 4);
        b.nics.iter().for_each(|nic| nic.get().room = 2);
        let mut taken = b.send(40);
        b.nics[0].up(false);
        // The fake driver panics if a frame goes out on a link that is down.
        b.run(100);
        b.nics.iter().for_each(|nic| nic.get().room = usize::MAX);
        taken += b.send(40);
        b.run(100);
        let sent: usize = b.sent().iter().sum();
        let lost: u64 = b.bond.members().map(|m| m.counters.tx_dropped).sum::<u64>() + b.bond.counters().tx_dropped;
        assert_eq!(sent as u64 + lost, taken as u64, "{mode}");
        assert!(lost > 0, "{mode}: what waited for the lost link is lost");
    }
}

#[test]
fn a_member_without_room_stops_the_bond_and_no_turn_is_lost() {
    let mut b = Bench::new("mode balance-rr miimon 100", 2);
    b.nics[0].get().room = 0;
    let mut burst = Burst::new();
    (0..200).for_each(|i| burst.push(b.frame(i as u8)));
    let taken = b.bond.transmit(0, &mut burst, b.now).unwrap();
    assert_eq!((taken, burst.len()), (129, 71), "64 wait for the one without room");
    b.nics[0].get().room = usize::MAX;
    assert_eq!(b.bond.transmit(0, &mut burst, b.now), Ok(71));
    assert_eq!(b.sent(), [100, 100]);
    for nic in &b.nics {
        let ports: Vec<u8> = nic.get().sent.iter().map(|f| f[5]).collect();
        assert!(ports.is_sorted(), "the order of each member's packets is kept");
    }
}

#[test]
fn igmp_is_reported_anew_after_a_failover() {
    let mut b = Bench::new("mode active-backup miimon 100 resend_igmp 3", 2);
    b.bond.set_groups(&["239.1.2.3".parse().unwrap()]);
    b.run(2000);
    b.clear();
    b.nics[0].up(false);
    b.run(1000);
    let control = b.nics[1].get().control.clone();
    let reports = control.iter().filter(|f| f[12..14] == [8, 0] && f[23] == 2).count();
    assert_eq!((reports, b.bond.counters().igmp_reports >= 3), (3, true));
    let report = control.iter().find(|f| f[23] == 2).unwrap();
    assert_eq!(report[..6], [1, 0, 0x5e, 0, 0, 22]);
    assert!(netcore::checksum::sum(&report[14..38]).is_valid() && netcore::checksum::sum(&report[38..54]).is_valid());
}

#[test]
fn all_slaves_active_delivers_what_inactive_members_receive() {
    let mut b = Bench::new("mode active-backup miimon 100", 2);
    b.nics[1].get().incoming = vec![udp(1)];
    assert_eq!(b.receive().len(), 0);
    assert_eq!(b.bond.member("m1").unwrap().counters.rx_nohandler, 1);
    // Frames of protocols that stay on the link pass.
    let mut lldp = udp(1);
    lldp[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0x0e]);
    b.nics[1].get().incoming = vec![lldp];
    assert_eq!(b.receive().len(), 1);
    b.bond.set_option("all_slaves_active", "1", b.now).unwrap();
    b.nics[1].get().incoming = vec![udp(1)];
    assert_eq!(b.receive().len(), 1);
}

/// Answers the ARP probes of the members listed.
fn answer(b: &mut Bench, ms: u64, answering: &[usize]) {
    answer_for(b, ms, answering, &[2, 3]);
}

/// Answers for these targets, by their last byte.
fn answer_for(b: &mut Bench, ms: u64, answering: &[usize], targets: &[u8]) {
    for _ in 0..ms / 10 {
        b.run(10);
        for n in 0..b.nics.len() {
            let probes = core::mem::take(&mut b.nics[n].get().control);
            for probe in probes.iter().filter(|f| f[12..14] == [8, 6] && f[21] == 1 && f[28..32] != f[38..42]) {
                let target: [u8; 4] = probe[38..42].try_into().unwrap();
                let sender: [u8; 4] = probe[28..32].try_into().unwrap();
                let reply = frames::arp(
                    &frames::Arp {
                        operation: netcore::wire::ArpOperation::REPLY,
                        sender: (MacAddress([2, 0, 0, 0, 0, 0xaa]), target.into()),
                        target: (MacAddress(probe[6..12].try_into().unwrap()), sender.into()),
                    },
                    MacAddress(probe[6..12].try_into().unwrap()),
                    None,
                );
                if answering.contains(&n) && targets.contains(&target[3]) {
                    b.nics[n].get().incoming.push(reply);
                }
                // Backups hear the broadcast request through the switch.
                for other in (0..b.nics.len()).filter(|o| *o != n && answering.contains(&n) && answering.contains(o)) {
                    b.nics[other].get().incoming.push(probe.clone());
                }
            }
        }
        b.receive();
    }
}

fn arp_bench(options: &str) -> Bench {
    let mut b = Bench::new(&std::format!("{options} arp_interval 100 arp_ip_target 192.0.2.2"), 2);
    b.bond.set_host_addresses(&[HostAddress { ip: "192.0.2.1".parse().unwrap(), vlan: None }]);
    b
}

#[test]
fn arp_monitoring_of_a_balanced_bond_takes_silent_members_out_and_back_in() {
    let mut b = arp_bench("mode balance-rr");
    answer(&mut b, 1000, &[0, 1]);
    assert_eq!(links(&b), [MemberLink::Up; 2]);
    answer(&mut b, 600, &[1]);
    assert_eq!(links(&b), [MemberLink::Down, MemberLink::Up]);
    b.clear();
    assert_eq!((b.send(10), b.sent()), (10, vec![0, 10]));
    answer(&mut b, 600, &[0, 1]);
    assert_eq!(links(&b), [MemberLink::Up; 2]);
}

#[test]
fn arp_monitoring_of_an_active_backup_bond_fails_over_and_finds_a_member_again() {
    for validate in ["none", "all", "filter_active"] {
        let mut b = arp_bench(&std::format!("mode active-backup arp_validate {validate}"));
        answer(&mut b, 1000, &[0, 1]);
        assert_eq!(b.bond.active_member(), Some("m0"), "{validate}");
        answer(&mut b, 1000, &[1]);
        assert_eq!(b.bond.active_member(), Some("m1"), "{validate}");
        answer(&mut b, 2000, &[]);
        assert_eq!(b.bond.active_member(), None, "{validate}");
        answer(&mut b, 2000, &[0]);
        assert_eq!(b.bond.active_member(), Some("m0"), "{validate}");
    }
}

#[test]
fn validated_arp_does_not_take_other_traffic_for_a_sign_of_life() {
    for (validate, alive) in [("none", true), ("active", false), ("filter", false)] {
        let mut b = arp_bench(&std::format!("mode active-backup arp_validate {validate}"));
        answer(&mut b, 1000, &[0, 1]);
        for _ in 0..10 {
            b.nics[0].get().incoming = vec![udp(1)];
            b.receive();
            answer(&mut b, 50, &[]);
        }
        assert_eq!(b.bond.active_member() == Some("m0"), alive, "{validate}");
    }
}

#[test]
fn with_arp_all_targets_every_target_must_answer() {
    for (all, alive) in [("any", true), ("all", false)] {
        let options = std::format!("mode active-backup arp_validate active arp_all_targets {all}");
        let mut b = arp_bench(&options);
        b.bond.set_option("arp_ip_target", "+192.0.2.3", b.now).unwrap();
        answer(&mut b, 1000, &[0, 1]);
        assert!(b.bond.active_member().is_some());
        // From now on only the first target answers, on the active member.
        answer_for(&mut b, 1000, &[0], &[2]);
        assert_eq!(b.bond.member("m0").unwrap().link == MemberLink::Up, alive, "{all}");
    }
}
