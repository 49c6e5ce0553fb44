use super::*;
use crate::options::XmitHashPolicy;
use netcore::{LinkState, PacketPool, PoolCache, PoolConfig};
use std::vec::Vec;

fn members(active: &[bool]) -> Vec<Member> {
    let member = |(id, &active): (usize, &bool)| Member { id: id as u16, active, link: LinkState::up(1000) };
    active.iter().enumerate().map(member).collect()
}

fn cache() -> PoolCache {
    PacketPool::new(PoolConfig::with_buffers(64)).unwrap().cache()
}

/// An IPv4 packet with `protocol` and both ports equal to `n`.
fn packet(cache: &mut PoolCache, protocol: u8, n: u8) -> Packet {
    let mut frame = std::vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, n, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 7, n, 7, 8]);
    frame.extend([0; 16]);
    cache.copy_from_slice(&frame).unwrap()
}

fn turns(policy: &mut impl XmitPolicy, members: &[Member], n: usize) -> Vec<Option<usize>> {
    let mut cache = cache();
    let p = packet(&mut cache, 17, 1);
    (0..n).map(|_| policy.select(&p, members)).collect()
}

#[test]
fn one_packet_per_turn_starts_at_the_second_member_and_goes_round() {
    let mut policy = RoundRobin::new(1, 0);
    assert_eq!(turns(&mut policy, &members(&[true; 3]), 5), [1, 2, 0, 1, 2].map(Some));
}

#[test]
fn several_packets_per_turn_divide_the_counter() {
    let mut policy = RoundRobin::new(3, 0);
    assert_eq!(turns(&mut policy, &members(&[true; 2]), 9), [0, 0, 1, 1, 1, 0, 0, 0, 1].map(Some));
}

#[test]
fn a_dead_members_turn_goes_to_its_successor() {
    let mut policy = RoundRobin::new(1, 0);
    let chosen = turns(&mut policy, &members(&[true, false, true, true]), 400);
    let count = |n| chosen.iter().filter(|c| **c == Some(n)).count();
    assert_eq!([0, 1, 2, 3].map(count), [100, 0, 200, 100]);
    assert_eq!(turns(&mut policy, &members(&[false; 2]), 1), [None]);
    assert_eq!(turns(&mut policy, &[], 1), [None]);
}

#[test]
fn random_turns_are_even_and_come_from_the_seed() {
    let chosen = turns(&mut RoundRobin::new(0, 7), &members(&[true; 4]), 4000);
    assert_eq!(chosen, turns(&mut RoundRobin::new(0, 7), &members(&[true; 4]), 4000));
    assert_ne!(chosen, turns(&mut RoundRobin::new(0, 8), &members(&[true; 4]), 4000));
    for n in 0..4 {
        let count = chosen.iter().filter(|c| **c == Some(n)).count();
        assert!((900..1100).contains(&count), "{count}");
    }
}

#[test]
fn igmp_stays_on_one_member_and_takes_no_turn() {
    let mut cache = cache();
    let (igmp, udp) = (packet(&mut cache, 2, 1), packet(&mut cache, 17, 1));
    let mut policy = RoundRobin::new(1, 0);
    let all = members(&[true; 3]);
    assert_eq!(policy.select(&igmp, &all), Some(0));
    policy.set_igmp_member(Some(2));
    assert_eq!(
        [policy.select(&igmp, &all), policy.select(&udp, &all), policy.select(&igmp, &all)],
        [2, 1, 2].map(Some)
    );
    assert_eq!(policy.select(&igmp, &members(&[true, true, false])), Some(0));
}

#[test]
fn arrays_move_most_flows_and_successors_only_those_of_the_dead_member() {
    let mut cache = cache();
    let flows: Vec<Packet> = (0..64).map(|n| packet(&mut cache, 17, n)).collect();
    let (all, three) = (members(&[true; 4]), members(&[true, true, false, true]));
    for (failover, least, most) in [(Failover::Array, 20, 64), (Failover::Successor, 0, 0)] {
        let mut policy = Hash::new(XmitHashPolicy::Layer2).with_failover(failover);
        let mut moved = 0;
        for flow in &flows {
            let before = policy.select(flow, &all).unwrap();
            let after = policy.select(flow, &three).unwrap();
            assert!(three[after].active);
            if before == 2 {
                assert!(failover == Failover::Array || after == 3);
            } else if before != after {
                moved += 1;
            }
        }
        assert!((least..=most).contains(&moved), "{failover:?} moved {moved}");
    }
}

#[test]
fn the_formulas_of_linux_26() {
    let mut cache = cache();
    let p = packet(&mut cache, 17, 6);
    let hash = |policy| Hash::new(policy).with_era(Era::Linux26).of(&p);
    assert_eq!(hash(XmitHashPolicy::Layer2), 9 ^ 6);
    assert_eq!(hash(XmitHashPolicy::Layer23), (1 ^ 2) ^ 9 ^ 6);
    assert_eq!(hash(XmitHashPolicy::Layer34), (0x0706 ^ 0x0708) ^ (1 ^ 2));
}

#[test]
fn headers_in_further_segments_are_read() {
    let mut cache = cache();
    let whole = packet(&mut cache, 17, 3);
    let bytes = whole.to_vec();
    let mut split = cache.copy_from_slice(&bytes[..20]).unwrap();
    split.append(cache.copy_from_slice(&bytes[20..]).unwrap()).unwrap();
    for policy in XmitHashPolicy::ALL {
        assert_eq!(Hash::new(*policy).of(&split), Hash::new(*policy).of(&whole), "{policy}");
    }
}

#[test]
fn a_hash_over_ports_serves_encap34_as_it_is() {
    let mut cache = cache();
    let mut p = packet(&mut cache, 17, 3);
    let plain = Hash::new(XmitHashPolicy::Encap34).of(&p);
    p.set_hash(Some(0xdead_beef), false);
    assert_eq!(Hash::new(XmitHashPolicy::Encap34).of(&p), plain);
    p.set_hash(Some(0xdead_beef), true);
    assert_eq!(Hash::new(XmitHashPolicy::Encap34).of(&p), 0xdead_beef);
    assert_ne!(Hash::new(XmitHashPolicy::Layer34).of(&p), 0xdead_beef);
}
