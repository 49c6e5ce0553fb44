//! Which ports are used together, and which aggregator is the active one.

use netcore::driver::Duplex;
use netcore::wire::{LacpState, Lacpdu};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{
    AdSelect, FrameKind, Handled, Lacp, LacpConfig, LacpEvent, LacpRate, MuxState, PortConfig, ReceiveState, Timing,
};
use std::time::Duration;

/// Any number of systems, and cables between their ports.
struct World {
    now: Instant,
    systems: Vec<Lacp>,
    cables: Vec<[(usize, u16); 2]>,
}

fn mac(system: usize, port: u16) -> MacAddress {
    MacAddress([2, 0, 0, system as u8, 0, port as u8])
}

impl World {
    fn new(systems: usize, tune: impl Fn(usize, LacpConfig) -> LacpConfig) -> Self {
        let build = |n| {
            let config =
                LacpConfig { lacp_rate: LacpRate::Fast, timing: Timing::EventDriven, ..LacpConfig::new(mac(n, 0)) };
            let mut lacp = Lacp::new(tune(n, config)).unwrap();
            lacp.open(Instant::ZERO);
            lacp
        };
        // The selection timer of 8 s runs from the first port of an open bond; here, ports come first.
        Self { now: Instant::ZERO, systems: (0..systems).map(build).collect(), cables: Vec::new() }
    }

    fn port(&mut self, system: usize, link: LinkState) -> (usize, u16) {
        let number = self.systems[system].ports().last().map_or(1, |p| p.number() + 1);
        let port = PortConfig::new(mac(system, number));
        (system, self.systems[system].add_port(&port, link, self.now).unwrap())
    }

    fn cable(&mut self, a: usize, b: usize, link: LinkState) {
        let ends = [self.port(a, link), self.port(b, link)];
        self.cables.push(ends);
    }

    fn step(&mut self) {
        loop {
            let mut any = false;
            for from in 0..self.systems.len() {
                while let Some(frame) = self.systems[from].next_frame() {
                    any = true;
                    let end = (from, frame.port);
                    let other = self.cables.iter().find_map(|&[a, b]| {
                        if a == end {
                            Some(b)
                        } else if b == end {
                            Some(a)
                        } else {
                            None
                        }
                    });
                    if let Some((to, port)) = other {
                        let _ = self.systems[to].handle(port, &frame.bytes, self.now);
                    }
                }
            }
            if !any {
                return;
            }
        }
    }

    fn run(&mut self, secs: u64) {
        let until = self.now + Duration::from_secs(secs);
        self.step();
        while let Some(at) = self.systems.iter().filter_map(Lacp::poll_at).min().filter(|&at| at <= until) {
            self.now = at.max(self.now);
            for system in &mut self.systems {
                system.poll(self.now);
            }
            self.step();
        }
        self.now = until;
    }

    fn link(&mut self, (system, port): (usize, u16), link: LinkState) {
        self.systems[system].set_link(port, link, self.now).unwrap();
        self.step();
    }

    fn flap(&mut self, cable: usize) {
        for end in self.cables[cable] {
            self.link(end, LinkState::DOWN);
        }
        for end in self.cables[cable] {
            self.link(end, LinkState::up(1000));
        }
        self.run(5);
    }

    fn distributing(&self, system: usize) -> Vec<u16> {
        let lacp = &self.systems[system];
        lacp.ports().iter().filter(|p| lacp.distributes(p)).map(|p| p.number()).collect()
    }
}

const GIG: LinkState = LinkState::up(1000);

#[test]
fn links_to_one_partner_with_equal_keys_are_used_together_others_are_not() {
    let mut world = World::new(2, |_, c| c);
    for speed in [1000, 1000, 10_000, 1000] {
        world.cable(0, 1, LinkState::up(speed));
    }
    world.run(15);
    let groups: Vec<_> = world.systems[0].ports().iter().map(|p| world.systems[0].aggregator_of(p).unwrap()).collect();
    assert!(groups[0] == groups[1] && groups[1] == groups[3] && groups[2] != groups[0], "{groups:?}");
}

#[test]
fn linux_selftest_the_sum_of_port_priorities_decides_at_the_next_change() {
    let mut world = World::new(3, |_, c| LacpConfig { ad_select: AdSelect::Prio, ..c });
    for partner in [1, 1, 2, 2] {
        world.cable(0, partner, GIG);
    }
    let now = world.now;
    world.systems[0].set_port_priority(1, 1000, now).unwrap();
    world.systems[0].set_port_priority(3, 10, now).unwrap();
    world.run(15);
    world.flap(1);
    assert_eq!(world.distributing(0), [1, 2]);
    let now = world.now;
    world.systems[0].set_port_priority(1, 10, now).unwrap();
    world.systems[0].set_port_priority(3, 1000, now).unwrap();
    world.flap(1);
    assert_eq!(world.distributing(0), [3, 4]);
    assert_eq!(world.distributing(1), [0; 0], "the partner that is no longer used does not send");
    assert_eq!(PortConfig::new(mac(0, 0)).actor_port_prio, 255);
}

#[test]
fn stable_keeps_the_aggregator_in_use_until_its_last_link_fails() {
    for (select, better) in [(AdSelect::Stable, false), (AdSelect::Bandwidth, true), (AdSelect::Count, true)] {
        let mut world = World::new(3, |_, c| LacpConfig { ad_select: select, ..c });
        world.cable(0, 1, GIG);
        world.run(15);
        assert_eq!(world.distributing(0), [1], "{select}");
        world.cable(0, 2, GIG);
        world.cable(0, 2, GIG);
        world.run(15);
        assert_eq!(world.distributing(0), if better { vec![2, 3] } else { vec![1] }, "{select}");
        let unused = if better { 1 } else { 2 };
        assert_eq!(world.distributing(unused), [0; 0], "{select}: who is not used is told");
        // Without its last link, the one in use loses.
        for cable in if better { vec![1, 2] } else { vec![0] } {
            for end in world.cables[cable] {
                world.link(end, LinkState::DOWN);
            }
        }
        world.run(5);
        assert_eq!(world.distributing(0), if better { vec![1] } else { vec![2, 3] }, "{select}");
    }
}

#[test]
fn count_prefers_ports_where_bandwidth_prefers_speed() {
    for (select, used) in [(AdSelect::Bandwidth, vec![1]), (AdSelect::Count, vec![2, 3])] {
        let mut world = World::new(3, |_, c| LacpConfig { ad_select: select, ..c });
        world.cable(0, 1, LinkState::up(10_000));
        world.cable(0, 2, GIG);
        world.cable(0, 2, GIG);
        world.run(15);
        assert_eq!(world.distributing(0), used, "{select}");
    }
}

#[test]
fn bandwidth_counts_the_links_that_are_up_whichever_joined_last() {
    let mut world = World::new(3, |_, c| LacpConfig { ad_select: AdSelect::Bandwidth, ..c });
    for partner in [1, 1, 1, 2] {
        world.cable(0, partner, GIG);
    }
    world.run(15);
    assert_eq!(world.distributing(0), [1, 2, 3]);
    for port in 1..=3 {
        world.link((0, port), LinkState::DOWN);
        world.run(1);
        let rest: Vec<u16> = (1..=3).filter(|&p| p != port).collect();
        assert_eq!(world.distributing(0), rest, "two links beat one");
        world.link((0, port), GIG);
        world.run(6);
    }
}

#[test]
fn without_a_partner_one_port_serves_alone_until_one_is_heard() {
    let mut world = World::new(2, |_, c| c);
    let ports = [world.port(0, GIG), world.port(0, GIG)];
    world.run(15);
    assert_eq!(world.distributing(0), [1], "one port, as if there were no bond");
    assert_eq!(world.systems[0].ports()[0].receive_state(), ReceiveState::Defaulted);
    assert_eq!(world.systems[0].active_aggregator().unwrap().partner_system, MacAddress::default());
    // A partner on the other port: it wins, once in sync.
    let far = world.port(1, GIG);
    world.cables.push([ports[1], far]);
    world.run(45);
    assert_eq!((world.distributing(0), world.distributing(1)), (vec![2], vec![1]));
}

#[test]
fn half_duplex_links_do_not_run_lacp_and_lose_to_others() {
    let half = LinkState { duplex: Duplex::Half, ..LinkState::up(100) };
    let mut world = World::new(2, |_, c| c);
    world.cable(0, 1, half);
    world.run(15);
    let lacp = &world.systems[0];
    assert_eq!(lacp.ports()[0].receive_state(), ReceiveState::LacpDisabled);
    assert_eq!((lacp.ports()[0].statistics().lacpdu_tx, world.distributing(0)), (0, vec![1]), "it serves alone");
    world.cable(0, 1, LinkState::up(100));
    world.run(15);
    assert_eq!(world.distributing(0), [2], "a full duplex link with a partner is better");
    // Full duplex now: it joins.
    for end in world.cables[0] {
        world.link(end, LinkState::up(100));
    }
    world.run(6);
    assert_eq!(world.distributing(0), [1, 2]);
}

#[test]
fn ports_of_a_partner_that_calls_them_individual_are_not_used_together() {
    let mut world = World::new(2, |_, c| c);
    for _ in 0..2 {
        let near = world.port(0, GIG);
        let number = near.1;
        let port = PortConfig { individual: true, ..PortConfig::new(mac(1, number)) };
        world.systems[1].add_port(&port, GIG, Instant::ZERO).unwrap();
        world.cables.push([near, (1, number)]);
    }
    world.run(15);
    let lacp = &world.systems[0];
    assert_ne!(lacp.aggregator_of(&lacp.ports()[0]), lacp.aggregator_of(&lacp.ports()[1]));
    assert_eq!((world.distributing(0), world.distributing(1)), (vec![1], vec![1]));
}

#[test]
fn a_port_that_is_removed_says_goodbye_and_the_others_go_on() {
    let mut world = World::new(2, |_, c| c);
    for _ in 0..3 {
        world.cable(0, 1, GIG);
    }
    world.run(15);
    let owner = world.systems[0].active_aggregator().unwrap().aggregator_id;
    assert_eq!(owner, 1, "the aggregator of the first port");
    world.systems[0].remove_port(1, world.now).unwrap();
    let frame = world.systems[0].next_frame().unwrap();
    let (pdu, _) = Lacpdu::parse(&frame.bytes[14..]).unwrap();
    assert_eq!((frame.port, pdu.actor().state().bits()), (1, 0x03), "neither in sync nor in use nor aggregatable");
    world.systems[1].handle(1, &frame.bytes, world.now).unwrap();
    assert_eq!(world.distributing(0), [2, 3]);
    assert_eq!(world.distributing(1), [2, 3], "the partner stops at once");
    assert_ne!(world.systems[0].active_aggregator().unwrap().aggregator_id, owner);
    world.run(5);
    assert_eq!(world.distributing(0), [2, 3]);
    // Numbers go on from the last port.
    assert_eq!(world.port(0, GIG).1, 4);
    world.systems[0].remove_port(2, world.now).unwrap();
    world.systems[0].remove_port(3, world.now).unwrap();
    world.systems[0].remove_port(4, world.now).unwrap();
    assert!(world.systems[0].active_aggregator().is_none() && !world.systems[0].carrier());
    assert!(world.systems[0].poll_at().is_none());
}

#[test]
fn a_new_key_or_address_is_agreed_upon_anew() {
    let mut world = World::new(2, |_, c| c);
    world.cable(0, 1, GIG);
    world.cable(0, 1, GIG);
    world.run(15);
    world.systems[0].set_user_port_key(5, world.now).unwrap();
    world.run(5);
    assert_eq!(world.systems[1].ports()[0].partner().key(), 5 << 6 | 9);
    assert_eq!((world.distributing(0), world.distributing(1)), (vec![1, 2], vec![1, 2]));
    world.systems[0].set_system(mac(7, 7), 100, world.now).unwrap();
    world.run(5);
    let partner = world.systems[1].active_aggregator().unwrap();
    assert_eq!((partner.partner_system, partner.ports), (mac(7, 7), 2));
    assert_eq!((world.distributing(0), world.distributing(1)), (vec![1, 2], vec![1, 2]));
    assert!(world.systems[0].set_system(MacAddress::BROADCAST, 1, world.now).is_err());
    assert!(world.systems[0].set_user_port_key(1024, world.now).is_err());
}

#[test]
fn ports_that_hear_their_own_system_say_so_and_have_no_partner() {
    let mut world = World::new(1, |_, c| c);
    world.cable(0, 0, GIG);
    world.run(15);
    let lacp = &mut world.systems[0];
    for port in lacp.ports() {
        assert_eq!(port.partner().system(), MacAddress::default());
        assert_ne!(port.mux_state(), MuxState::CollectingDistributing);
        assert!(port.statistics().lacpdu_loopback > 0);
    }
    assert!(std::iter::from_fn(|| lacp.next_event()).any(|e| matches!(e, LacpEvent::Loopback { port: 1 })));
}

#[test]
fn the_first_port_of_an_open_bond_waits_eight_seconds_others_do_not() {
    let mut world = World::new(2, |_, c| c);
    world.cable(0, 1, GIG);
    world.run(7);
    assert_eq!(world.systems[0].ports()[0].mux_state(), MuxState::Attached);
    world.run(2);
    assert_eq!(world.distributing(0), [1]);
    assert!(world.systems[0].ports()[0].actor().state().contains(LacpState::DISTRIBUTING));
    world.cable(0, 1, GIG);
    world.run(3);
    assert_eq!(world.distributing(0), [1, 2]);
}

#[test]
fn a_closed_bond_is_silent_and_takes_nothing() {
    let mut world = World::new(2, |_, c| c);
    world.cable(0, 1, GIG);
    world.run(15);
    let frame =
        Lacpdu::new(world.systems[1].ports()[0].actor(), world.systems[0].ports()[0].actor(), 0).frame(mac(1, 1));
    world.systems[0].close();
    assert!(world.distributing(0).is_empty() && world.systems[0].poll_at().is_none());
    assert_eq!(world.systems[0].handle(1, &frame, world.now), Ok(Handled::Pass));
    world.run(10);
    assert!(world.systems[1].ports()[0].actor().state().contains(LacpState::DEFAULTED));
    world.systems[0].open(world.now);
    world.run(5);
    assert_eq!((world.distributing(0), world.distributing(1)), (vec![1], vec![1]));
    assert!(world.systems[0].next_frame().is_none_or(|f| f.kind == FrameKind::Lacpdu));
}

#[test]
fn a_cable_moved_to_another_port_takes_the_partner_along() {
    let mut world = World::new(2, |_, c| c);
    world.cable(0, 1, GIG);
    let spare = world.port(0, LinkState::DOWN);
    world.run(15);
    let partner = world.systems[0].ports()[0].partner().system();
    assert_eq!(partner, mac(1, 0));
    world.link((0, 1), LinkState::DOWN);
    assert_eq!(world.systems[0].ports()[0].partner().system(), partner, "it may come back");
    world.cables[0][0] = spare;
    world.link(spare, GIG);
    world.run(5);
    assert_eq!(world.distributing(0), [2]);
    assert_eq!(world.systems[0].ports()[0].partner().system(), MacAddress::default(), "it is elsewhere");
}

#[test]
fn systems_that_chose_different_aggregators_agree_within_ten_seconds() {
    for better in [0, 1] {
        let mut world = World::new(2, |n, c| LacpConfig { ad_actor_sys_prio: if n == better { 1 } else { 2 }, ..c });
        let slow = LinkState::up(100);
        world.cable(0, 1, LinkState::DOWN);
        world.cable(0, 1, LinkState::DOWN);
        world.run(10);
        // Each end sees another link first, hears nothing, and uses it.
        world.link((0, 1), GIG);
        world.link((1, 2), slow);
        world.run(1);
        world.link((0, 2), slow);
        world.link((1, 1), GIG);
        let cables = std::mem::take(&mut world.cables);
        world.run(8);
        // The cables carry frames at last, the slow one a little sooner to one end, the fast one to the other.
        world.cables = cables;
        world.run(60);
        assert!(!world.distributing(0).is_empty());
        assert_eq!(world.distributing(0), world.distributing(1), "better {better}");
    }
}

#[test]
fn the_worse_system_follows_the_better_one() {
    for better in [0, 1] {
        let mut world = World::new(2, |n, c| LacpConfig {
            ad_actor_sys_prio: if n == better { 1 } else { 2 },
            ad_select: AdSelect::Prio,
            ..c
        });
        world.cable(0, 1, GIG);
        world.cable(0, 1, LinkState::up(100));
        // Each wants another one.
        world.systems[0].set_port_priority(1, 1000, Instant::ZERO).unwrap();
        world.systems[1].set_port_priority(2, 1000, Instant::ZERO).unwrap();
        world.run(4);
        let keys = |world: &World| [0, 1].map(|n| world.systems[n].active_aggregator().unwrap().actor_key);
        assert_eq!(keys(&world), [9, 7]);
        world.run(16);
        let wanted = [1, 2][better];
        assert_eq!((world.distributing(0), world.distributing(1)), (vec![wanted], vec![wanted]));
        world.run(300);
        assert_eq!((world.distributing(0), world.distributing(1)), (vec![wanted], vec![wanted]));
    }
}
