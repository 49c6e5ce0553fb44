//! GRO of UDP, tunnels and time: one test per rule.

mod common;

use common::stack::{Outer, Stack, Wrap};
use common::{Tcp, poll, pool};
use netcore::offload::{GroEnd, ReceiveOffload};
use netcore::{Burst, Gso, GsoKind, Instant, Packet, ReceiveChecksum};
use netcore_offload::{Gro, GroCells, GroConfig, GroConfigError, UdpGro};
use std::time::Duration;

fn datagram(number: u16, len: usize) -> Stack {
    let tcp = Tcp { id: number, payload: vec![number as u8; len], ..Tcp::default() };
    Stack { udp: true, tcp, ..Stack::default() }
}

fn config(udp: UdpGro) -> GroConfig {
    let mut config = GroConfig::default();
    config.udp = udp;
    config
}

fn wire_packets(config: GroConfig, packets: &[Stack]) -> Vec<usize> {
    let frames: Vec<_> = packets.iter().map(Stack::frame).collect();
    poll(config, &frames, &mut pool().cache()).iter().map(Packet::wire_packets).collect()
}

#[test]
fn datagrams_merge_only_where_somebody_asked_for_it() {
    let train: Vec<_> = (0..4).map(|i| datagram(i, 500)).collect();
    assert_eq!(wire_packets(config(UdpGro::Off), &train), [1; 4]);
    assert_eq!(wire_packets(config(UdpGro::Ports(vec![53])), &train), [1; 4]);
    assert_eq!(wire_packets(config(UdpGro::Ports(vec![8000])), &train), [4]);
    assert_eq!(wire_packets(config(UdpGro::All), &train), [4]);
}

#[test]
fn a_shorter_datagram_ends_the_aggregate_and_a_longer_one_starts_another() {
    let lengths = [500, 500, 300, 500, 600, 600];
    let train: Vec<_> = lengths.iter().enumerate().map(|(i, len)| datagram(i as u16, *len)).collect();
    assert_eq!(wire_packets(config(UdpGro::All), &train), [3, 1, 2]);
}

#[test]
fn sixty_four_datagrams_fill_an_aggregate() {
    let train: Vec<_> = (0..100).map(|i| datagram(i, 100)).collect();
    let frames: Vec<_> = train.iter().map(Stack::frame).collect();
    let packets = poll(config(UdpGro::All), &frames, &mut pool().cache());
    let gso = |segments| Some(Gso { kind: GsoKind::UDP_L4, size: 100, segments });
    assert_eq!(packets.iter().map(Packet::gso).collect::<Vec<_>>(), [gso(64), gso(36)]);
}

/// Without a checksum, empty or padded: it goes up at once and what is held of its flow stays held, as in Linux.
#[test]
fn datagrams_that_cannot_merge_overtake_what_is_held() {
    let mut without = datagram(2, 500);
    without.no_checksum = true;
    for odd in [without, datagram(2, 0)] {
        let packets = [datagram(0, 500), datagram(1, 500), odd, datagram(2, 500)];
        assert_eq!(wire_packets(config(UdpGro::All), &packets), [1, 3]);
    }
}

#[test]
fn one_tunnel_is_followed_and_more_only_if_asked_for() {
    let outer = Outer::default();
    let vxlan = Wrap::Vxlan { outer, vni: 5, sport: 50_000, dport: 4789, checksum: false, bad: false };
    let around = Wrap::Gre { outer, key: None, checksum: false, ethernet: false };
    let train: Vec<_> = common::train(&Tcp::default(), 3, 500)
        .into_iter()
        .map(|tcp| Stack { tcp, wraps: vec![vxlan.clone(), around.clone()], ..Stack::default() })
        .collect();
    for (allowed, expected) in [(0, vec![1; 3]), (1, vec![1; 3]), (2, vec![3])] {
        let mut config = GroConfig::default();
        config.max_tunnels = allowed;
        assert_eq!(wire_packets(config, &train), expected, "{allowed} tunnels");
    }
    let mut config = GroConfig::default();
    config.max_tunnels = 4;
    assert!(matches!(Gro::new(config), Err(GroConfigError::OutOfRange { what: "max_tunnels", .. })));
}

#[test]
fn geneve_merges_with_equal_options_critical_ones_too_and_control_packets_never() {
    let outer = Outer::default();
    let geneve = |options: Vec<u8>, flags| Wrap::Geneve { outer, vni: 5, sport: 9, checksum: true, options, flags };
    let train = |wraps: [Wrap; 2]| -> Vec<_> {
        let tcp = common::train(&Tcp::default(), 2, 500);
        tcp.into_iter().zip(wraps).map(|(tcp, wrap)| Stack { tcp, wraps: vec![wrap], ..Stack::default() }).collect()
    };
    let option = |last| vec![1, 2, 0x80, 1, 9, 9, 9, last];
    let merged = |a, b| wire_packets(GroConfig::default(), &train([a, b]));
    assert_eq!(merged(geneve(option(1), 0x40), geneve(option(1), 0x40)), [2]);
    assert_eq!(merged(geneve(option(1), 0x40), geneve(option(2), 0x40)), [1, 1]);
    assert_eq!(merged(geneve(Vec::new(), 0), geneve(option(1), 0)), [1, 1]);
    assert_eq!(merged(geneve(Vec::new(), 0x80), geneve(Vec::new(), 0x80)), [1, 1], "control");
}

/// RFC 2890 sequence numbers would not survive segmentation; with checksum and key Linux never finds the flow again.
#[test]
fn gre_with_sequence_numbers_or_with_checksum_and_key_does_not_merge() {
    let outer = Outer::default();
    let frames = |key, checksum| -> Vec<_> {
        common::train(&Tcp::default(), 3, 500)
            .into_iter()
            .map(|tcp| Stack {
                tcp,
                wraps: vec![Wrap::Gre { outer, key, checksum, ethernet: false }],
                ..Stack::default()
            })
            .collect()
    };
    assert_eq!(wire_packets(GroConfig::default(), &frames(Some(1), false)), [3]);
    assert_eq!(wire_packets(GroConfig::default(), &frames(None, true)), [3]);
    assert_eq!(wire_packets(GroConfig::default(), &frames(Some(1), true)), [1; 3]);
    let mut numbered: Vec<_> = frames(Some(1), false).iter().map(Stack::frame).collect();
    // The S flag makes a sequence number of the key.
    numbered.iter_mut().for_each(|frame| frame[34] = 0x10);
    assert_eq!(poll(GroConfig::default(), &numbered, &mut pool().cache()).len(), 3);
}

/// Levels that the device verified are used up from the outermost header on.
#[test]
fn checksum_levels_are_used_up_header_by_header() {
    let wrap = |checksum| Wrap::Vxlan { outer: Outer::default(), vni: 5, sport: 9, dport: 4789, checksum, bad: false };
    let count = |checksum, bad_inner, levels| {
        let frames: Vec<_> = common::train(&Tcp { bad_checksum: bad_inner, ..Tcp::default() }, 2, 500)
            .into_iter()
            .map(|tcp| Stack { tcp, wraps: vec![wrap(checksum)], ..Stack::default() }.frame())
            .collect();
        let verdict = ReceiveChecksum::Unnecessary { levels };
        common::poll_with(GroConfig::default(), &frames, &mut pool().cache(), |p| p.set_receive_checksum(verdict)).len()
    };
    assert_eq!(count(true, false, 1), 1, "the outer one was verified, and with it the inner one's sum is known");
    assert_eq!(count(true, true, 1), 2, "so a wrong inner one is found");
    assert_eq!(count(true, true, 2), 1, "whoever vouches for both is believed");
    assert_eq!(count(false, true, 2), 1, "a zero checksum uses up a level, too");
    assert_eq!(count(false, true, 1), 2);
}

#[test]
fn a_flush_timeout_holds_packets_past_their_poll() {
    let mut config = GroConfig::default();
    config.flush_timeout = Duration::from_micros(50);
    let mut gro = Gro::new(config).unwrap();
    let pool = pool();
    let mut cache = pool.cache();
    let frames: Vec<_> = common::train(&Tcp::default(), 4, 500).iter().map(Tcp::frame).collect();
    let (mut burst, mut out) = (Burst::new(), Burst::new());
    let now = Instant::from_nanos(1_000_000);
    for pair in frames.chunks(2) {
        burst.extend(pair.iter().map(|frame| cache.copy_from_slice(frame).unwrap()));
        gro.receive(&mut burst, &mut out, &mut cache, now);
        gro.end_poll(false, &mut out, &mut cache, now);
        assert_eq!((out.len(), gro.held()), (0, 1));
    }
    assert_eq!(gro.poll_at(), Some(now + Duration::from_micros(50)));
    gro.poll(&mut out, &mut cache, now + Duration::from_micros(49));
    assert!(out.is_empty());
    gro.poll(&mut out, &mut cache, now + Duration::from_micros(50));
    assert_eq!((out.len(), gro.held(), gro.poll_at()), (1, 0, None));
    assert_eq!(out.pop().unwrap().wire_packets(), 4);
    assert_eq!(gro.counters().ended(GroEnd::Timeout), 1);
}

#[test]
fn flows_beyond_the_limit_share_one_entry() {
    let mut config = GroConfig::default();
    config.flow_counters = 2;
    let mut gro = Gro::new(config).unwrap();
    let pool = pool();
    let mut cache = pool.cache();
    let mut burst: Burst = (0..5u16)
        .flat_map(|flow| common::train(&Tcp { sport: flow, ..Tcp::default() }, 3, 100))
        .map(|tcp| cache.copy_from_slice(&tcp.frame()).unwrap())
        .collect();
    let mut out = Burst::new();
    gro.receive(&mut burst, &mut out, &mut cache, Instant::ZERO);
    gro.end_poll(false, &mut out, &mut cache, Instant::ZERO);
    let flows = gro.flows();
    assert_eq!(flows.len(), 3);
    assert_eq!(flows.iter().map(|flow| flow.counters.wire_packets).collect::<Vec<_>>(), [3, 3, 9]);
    assert_eq!(flows.iter().map(|flow| flow.key.is_some()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(flows[0].counters.reasons().collect::<Vec<_>>(), [(GroEnd::EndOfPoll, 1)]);
}

/// More layouts of headers than are kept at a time: what is held goes up, nothing is lost.
#[test]
fn ever_new_layouts_are_bounded() {
    let frames: Vec<_> = (0..200u8)
        .flat_map(|n| {
            let options = vec![1u8; usize::from(n % 50) * 4];
            let wrap = Wrap::Geneve {
                outer: Outer { v6: n % 2 == 0, ..Outer::default() },
                vni: 1,
                sport: 2,
                checksum: false,
                options,
                flags: 0,
            };
            let tcp = Tcp { options: vec![1; usize::from(n % 4) * 4], sport: u16::from(n), ..Tcp::default() };
            common::train(&tcp, 2, 100)
                .into_iter()
                .map(move |tcp| Stack { tcp, wraps: vec![wrap.clone()], ..Stack::default() }.frame())
        })
        .collect();
    let packets = poll(GroConfig::default(), &frames, &mut pool().cache());
    assert_eq!(packets.iter().map(Packet::wire_packets).sum::<usize>(), 400);
    assert_eq!(packets.len(), 200);
}

#[test]
fn a_tunnel_devices_cell_merges_inner_frames_and_drops_beyond_its_backlog() {
    let pool = pool();
    let mut cache = pool.cache();
    let mut cell = GroCells::new(GroConfig::default()).unwrap().with_limit(99);
    let frames: Vec<_> = common::train(&Tcp::default(), 120, 100).iter().map(Tcp::frame).collect();
    let refused = frames.iter().filter_map(|frame| cell.receive(cache.copy_from_slice(frame).unwrap()).err()).count();
    assert_eq!((refused, cell.backlog(), cell.counters().dropped), (20, 100, 20));
    let mut out = Burst::new();
    assert!(cell.poll(&mut out, &mut cache, Instant::ZERO), "64 of 100 frames are one poll");
    assert!(!cell.poll(&mut out, &mut cache, Instant::ZERO));
    assert_eq!(out.iter().map(Packet::wire_packets).collect::<Vec<_>>(), [64, 36]);
    assert_eq!((cell.counters().queued, cell.counters().polls), (100, 2));
}
