//! Rules of switch, link and card, each alone.

use netcore::{Instant, MacAddress, Packet, Rate};
use netcore_lab::engine::{Component, ComponentId, Context, Lab};
use netcore_lab::net::{Distribution, Link, LinkConfig, PortGroup, Switch, SwitchConfig};
use netcore_lab::topology::mac;
use std::time::Duration;

/// Frames to send and when; frames received and when.
#[derive(Default)]
struct Station {
    send: Vec<(u64, Vec<u8>)>,
    received: Vec<(u64, Vec<u8>)>,
}

impl Component for Station {
    fn receive(&mut self, _: u16, packet: Packet, ctx: &mut Context<'_>) {
        self.received.push((ctx.now.as_nanos(), packet.to_vec()));
        ctx.cache.put(packet);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now.as_nanos();
        for (_, bytes) in self.send.extract_if(.., |(at, _)| *at <= now) {
            let packet = ctx.cache.copy_chain(&bytes).unwrap();
            ctx.send(0, packet);
        }
        if let Some(next) = self.send.iter().map(|(at, _)| *at).min() {
            ctx.wake_at(Instant::from_nanos(next));
        }
    }
}

/// A UDP frame with `port` as its source port, 100 bytes long unless `len` says otherwise.
fn frame(to: MacAddress, from: MacAddress, port: u16, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..6].copy_from_slice(&to.0);
    bytes[6..12].copy_from_slice(&from.0);
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    bytes[23] = 17;
    bytes[26..34].copy_from_slice(&[10, 0, 0, from.0[4], 10, 0, 0, to.0[4]]);
    bytes[34..36].copy_from_slice(&port.to_be_bytes());
    bytes
}

const GIGABIT: Rate = Rate::from_bits_per_sec(1_000_000_000);

/// A switch with a station at each port.
fn bench(config: SwitchConfig) -> (Lab, ComponentId, Vec<ComponentId>) {
    let mut lab = Lab::new(1, 4096).unwrap();
    let ports = config.ports.len();
    let switch = lab.add(Switch::new(config, 1));
    let stations: Vec<_> = (0..ports)
        .map(|port| {
            let station = lab.add(Station::default());
            lab.connect((switch, port as u16), (station, 0)).unwrap();
            station
        })
        .collect();
    (lab, switch, stations)
}

fn plain(ports: usize) -> SwitchConfig {
    let groups = Vec::new();
    SwitchConfig { ports: vec![GIGABIT; ports], buffer_bytes: 10_000, latency: Duration::ZERO, red: None, groups }
}

fn send(lab: &mut Lab, station: ComponentId, frames: impl IntoIterator<Item = (u64, Vec<u8>)>) {
    lab.get_mut::<Station>(station).unwrap().send.extend(frames);
}

fn received(lab: &Lab, station: ComponentId) -> usize {
    lab.get::<Station>(station).unwrap().received.len()
}

#[test]
fn a_switch_floods_what_it_does_not_know_and_learns_who_speaks() {
    let (mut lab, switch, s) = bench(plain(3));
    send(&mut lab, s[0], [(0, frame(mac(2, 0), mac(1, 0), 1, 100)), (2000, frame(mac(2, 0), mac(1, 0), 1, 100))]);
    send(&mut lab, s[1], [(1000, frame(mac(1, 0), mac(2, 0), 1, 100))]);
    lab.run_until(Instant::from_millis(1));
    assert_eq!(lab.get::<Switch>(switch).unwrap().counters().flooded, 1);
    assert_eq!(s.iter().map(|id| received(&lab, *id)).collect::<Vec<_>>(), [1, 2, 1]);
}

#[test]
fn a_port_with_a_full_buffer_drops_and_counts() {
    let (mut lab, switch, s) = bench(plain(2));
    lab.get_mut::<Switch>(switch).unwrap().learn(mac(2, 0), 1);
    send(&mut lab, s[0], (0..30).map(|port| (0, frame(mac(2, 0), mac(1, 0), port, 1000))));
    lab.run_until(Instant::from_millis(10));
    let port = lab.get::<Switch>(switch).unwrap().counters().ports[1];
    assert_eq!((received(&lab, s[1]), port.dropped, port.peak_bytes), (10, 20, 10_000));
}

/// Frames per member of a group of ports 1 to 3 for 30 frames of 10 flows.
fn spread(distribution: Distribution) -> Vec<usize> {
    let mut config = plain(4);
    config.buffer_bytes = 1 << 20;
    config.groups = vec![PortGroup { members: vec![1, 2, 3], distribution, lacp: false }];
    let (mut lab, switch, s) = bench(config);
    lab.get_mut::<Switch>(switch).unwrap().learn(mac(2, 0), 1);
    send(&mut lab, s[0], (0..30).map(|n| (0, frame(mac(2, 0), mac(1, 0), 100 + n % 10, 100))));
    lab.run_until(Instant::from_millis(10));
    s[1..].iter().map(|id| received(&lab, *id)).collect()
}

#[test]
fn a_group_spreads_frame_by_frame_or_by_hash() {
    assert_eq!(spread(Distribution::RoundRobin), [10, 10, 10]);
    let by_address = spread(Distribution::Layer2);
    assert_eq!(
        by_address.iter().filter(|frames| **frames > 0).count(),
        1,
        "one pair of hosts, one member: {by_address:?}"
    );
    let by_port = spread(Distribution::Layer34);
    assert_eq!(by_port.iter().sum::<usize>(), 30);
    assert!(by_port.iter().filter(|frames| **frames > 0).count() > 1, "{by_port:?}");
    assert!(by_port.iter().all(|frames| frames % 3 == 0), "the frames of a flow stay together: {by_port:?}");
}

#[test]
fn a_group_goes_on_without_a_member_that_is_down() {
    let mut config = plain(3);
    config.groups = vec![PortGroup { members: vec![1, 2], distribution: Distribution::RoundRobin, lacp: false }];
    let (mut lab, switch, s) = bench(config);
    let component = lab.get_mut::<Switch>(switch).unwrap();
    component.learn(mac(2, 0), 1);
    component.set_port(1, false, Instant::ZERO);
    send(&mut lab, s[0], (0..8).map(|n| (0, frame(mac(2, 0), mac(1, 0), n, 100))));
    lab.run_until(Instant::from_millis(1));
    assert_eq!((received(&lab, s[1]), received(&lab, s[2])), (0, 8));
}

#[test]
fn a_link_delivers_at_the_nanosecond() {
    let mut lab = Lab::new(1, 64).unwrap();
    let ends = [lab.add(Station::default()), lab.add(Station::default())];
    let link = lab.add(Link::new(LinkConfig::ethernet(1_000_000_000, Duration::from_micros(7)), 1));
    lab.connect((ends[0], 0), (link, 0)).unwrap();
    lab.connect((link, 1), (ends[1], 0)).unwrap();
    // 24 bytes of preamble, FCS and gap; 8 ns a byte; both directions at once.
    let frames = || [(0, frame(mac(2, 0), mac(1, 0), 1, 1514)), (0, frame(mac(2, 0), mac(1, 0), 2, 60))];
    send(&mut lab, ends[0], frames());
    send(&mut lab, ends[1], frames());
    lab.run_until(Instant::from_millis(1));
    for end in ends {
        let times: Vec<_> = lab.get::<Station>(end).unwrap().received.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [1538 * 8 + 7000, 1538 * 8 + 84 * 8 + 7000]);
    }
}

#[test]
fn jitter_reorders_only_if_it_may() {
    for (reorder, ordered) in [(false, true), (true, false)] {
        let mut lab = Lab::new(1, 512).unwrap();
        let ends = [lab.add(Station::default()), lab.add(Station::default())];
        let config = LinkConfig { jitter: Duration::from_micros(100), reorder, ..LinkConfig::default() };
        let link = lab.add(Link::new(config, 5));
        lab.connect((ends[0], 0), (link, 0)).unwrap();
        lab.connect((link, 1), (ends[1], 0)).unwrap();
        send(&mut lab, ends[0], (0..100).map(|n| (n * 1000, frame(mac(2, 0), mac(1, 0), n as u16, 100))));
        lab.run_until(Instant::from_millis(10));
        let seen = &lab.get::<Station>(ends[1]).unwrap().received;
        assert_eq!(seen.len(), 100);
        let ports: Vec<_> = seen.iter().map(|(_, bytes)| u16::from_be_bytes([bytes[34], bytes[35]])).collect();
        assert_eq!(ports.is_sorted(), ordered);
    }
}

#[test]
fn a_bond_of_a_scenario_uses_all_its_cards_or_one() {
    let run = |settings: &[&str]| {
        let outcome = crate::common::scenario("bond-round-robin", settings).run(&mut |_| ()).unwrap();
        let frames = |link: &netcore_lab::scenario::LinkOutcome| link.directions[0].delivered;
        (outcome.flows[0].mbits_per_sec, outcome.links[..4].iter().map(frames).collect::<Vec<_>>())
    };
    let (rate, frames) = run(&["duration=500 ms"]);
    assert!(rate > 2000.0, "more than two cards' worth: {rate}");
    assert!(frames.iter().all(|n| *n > 1000), "{frames:?}");
    let (rate, frames) = run(&["duration=500 ms", "host.*.bond=mode balance-xor"]);
    assert!(rate < 1000.0, "one card's worth: {rate}");
    assert_eq!(frames.iter().filter(|n| **n > 10).count(), 1, "{frames:?}");
}
