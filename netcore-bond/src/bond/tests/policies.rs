use super::*;
use crate::policy::FnPolicy;

#[test]
fn a_users_policy_chooses_but_not_a_member_that_cannot_send() {
    let mut b = Bench::new("mode balance-xor miimon 100", 3);
    b.bond.set_policy(Some(Box::new(FnPolicy::new("last", |_, members| members.len().checked_sub(1)))));
    assert_eq!((b.send(5), b.sent()), (5, vec![0, 0, 5]));
    b.nics[2].up(false);
    b.run(200);
    b.clear();
    assert_eq!((b.send(5), b.sent(), b.bond.counters().tx_dropped), (5, vec![0, 0, 0], 5));
    b.bond.set_policy(None);
    assert_eq!(b.send(8), 8);
    assert_eq!(b.sent().iter().sum::<usize>(), 8);
}

#[test]
fn tlb_gives_flows_to_the_member_with_most_to_spare_and_rebalances() {
    let mut b = Bench::new("mode balance-tlb xmit_hash_policy layer2", 2);
    // The active member of two equal ones has the first flow, which weighs nothing yet: all stay there until a rebalance.
    b.run(500);
    b.send(100);
    b.run(10_000);
    b.clear();
    b.send(100);
    let sent = b.sent();
    assert!(sent.iter().all(|n| (40..=60).contains(n)), "{sent:?}");
    // The one that is not active sends as itself.
    assert!(b.nics[0].get().sent.iter().all(|f| f[6..12] == [2, 0, 0, 0, 0xff, 0]));
    assert!(b.nics[1].get().sent.iter().all(|f| f[6..12] == [2, 0, 0, 0, 0xff, 1]));
    b.nics[1].up(false);
    b.run(200);
    b.clear();
    b.send(100);
    assert_eq!(b.sent(), [100, 0]);
}

#[test]
fn without_dynamic_balancing_tlb_hashes() {
    let mut b = Bench::new("mode balance-tlb tlb_dynamic_lb 0 xmit_hash_policy layer2", 2);
    b.send(64);
    assert_eq!(b.sent(), [32, 32]);
}

#[test]
fn the_adaptive_modes_send_learning_packets() {
    let mut b = Bench::new("mode balance-alb lp_interval 2", 2);
    b.run(1000);
    b.clear();
    b.run(10_000);
    for nic in &b.nics {
        let learned = nic.get().control.iter().filter(|f| f[12..14] == [0x90, 0] && f[..6] == f[6..12]).count();
        assert_eq!(learned, 5);
    }
}

fn arp(b: &mut Bench, operation: u16, peer: u8) -> Packet {
    let mut frame = vec![0xff; 6];
    let mac = b.bond.capabilities().mac.0;
    frame.extend(mac);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4]);
    frame.extend(operation.to_be_bytes());
    frame.extend(mac);
    frame.extend([192, 0, 2, 1]);
    frame.extend(if operation == 2 { [2, 0, 0, 0, 1, peer] } else { [0; 6] });
    frame.extend([192, 0, 2, peer]);
    frame.resize(60, 0);
    b.cache.copy_from_slice(&frame).unwrap()
}

#[test]
fn alb_answers_each_peer_with_a_member_of_its_own() {
    let mut b = Bench::new("mode balance-alb", 3);
    b.run(500);
    b.clear();
    let mut burst = Burst::new();
    (10..16).for_each(|peer| burst.push(arp(&mut b, 2, peer)));
    b.bond.transmit(0, &mut burst, b.now).unwrap();
    assert_eq!(b.sent(), [2, 2, 2]);
    for (n, nic) in b.nics.iter().enumerate() {
        let own = nic.get().capabilities.mac.0;
        for f in &nic.get().sent {
            assert_eq!((&f[6..12], &f[22..28]), (&own[..], &own[..]), "member {n} says to send to itself");
        }
    }
}

#[test]
fn alb_moves_peers_of_a_failed_member_and_tells_them() {
    let mut b = Bench::new("mode balance-alb", 2);
    b.run(3000);
    let mut burst = Burst::new();
    (10..14).for_each(|peer| burst.push(arp(&mut b, 2, peer)));
    b.bond.transmit(0, &mut burst, b.now).unwrap();
    b.run(5000);
    b.clear();
    b.nics[1].up(false);
    b.run(500);
    assert!(b.nics[0].get().promiscuous, "the active member hears for the failed one");
    b.run(6000);
    let told: std::collections::BTreeSet<u8> =
        b.nics[0].get().control.iter().filter(|f| f[12..14] == [8, 6] && f[21] == 2).map(|f| f[41]).collect();
    assert_eq!(told.len(), 2, "the two peers of the failed member: {told:?}");
    b.run(10_000);
    assert!(!b.nics[0].get().promiscuous);
}

#[test]
fn alb_requests_go_out_on_the_active_member_and_peers_are_told_after_they_answer() {
    let mut b = Bench::new("mode balance-alb", 2);
    b.run(3000);
    b.clear();
    let mut burst = Burst::new();
    burst.push(arp(&mut b, 1, 20));
    burst.push(arp(&mut b, 1, 21));
    b.bond.transmit(0, &mut burst, b.now).unwrap();
    assert_eq!(b.sent(), [2, 0]);
    for peer in [20, 21] {
        let mut reply = arp(&mut b, 2, peer).to_vec();
        reply[22..28].copy_from_slice(&[2, 0, 0, 0, 1, peer]);
        reply[28..32].copy_from_slice(&[192, 0, 2, peer]);
        reply[38..42].copy_from_slice(&[192, 0, 2, 1]);
        b.nics[0].get().incoming.push(reply);
    }
    b.receive();
    b.run(4000);
    let updates = |n: usize| b.nics[n].get().control.iter().filter(|f| f[12..14] == [8, 6]).count();
    assert!(updates(0) + updates(1) >= 4 && updates(1) >= 2, "{} {}", updates(0), updates(1));
}

#[test]
fn alb_delivers_what_a_peer_sends_to_a_members_own_address() {
    let mut b = Bench::new("mode balance-alb", 2);
    let own = b.nics[1].get().capabilities.mac;
    assert_ne!(own, b.bond.capabilities().mac);
    let mut frame = udp(1);
    frame[..6].copy_from_slice(&own.0);
    let mut broadcast = udp(1);
    broadcast[..6].copy_from_slice(&[0xff; 6]);
    b.nics[1].get().incoming = vec![frame, broadcast];
    let received = b.receive();
    assert_eq!(received.len(), 1, "a broadcast comes in on the active member");
    assert_eq!(received[0][..6], b.bond.capabilities().mac.0);
}

#[test]
fn members_of_an_alb_bond_swap_addresses_when_the_active_one_changes() {
    let mut b = Bench::new("mode balance-alb", 2);
    let mac = b.bond.capabilities().mac;
    let other = b.nics[1].get().capabilities.mac;
    b.nics[0].up(false);
    b.run(300);
    assert_eq!(b.bond.active_member(), Some("m1"));
    assert_eq!((b.nics[1].get().capabilities.mac, b.nics[0].get().capabilities.mac), (mac, other));
}
