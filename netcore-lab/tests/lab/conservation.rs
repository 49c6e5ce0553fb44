//! Nothing is lost silently: what was sent is what arrived, was counted as dropped, or is on its way.

use crate::common::scenario;
use netcore_lab::host::Host;
use netcore_lab::net::Link;
use netcore_lab::nic::{NicCounters, lock};
use netcore_lab::scenario::{LinkOutcome, Outcome, World};

fn nic(world: &mut World, host: &str) -> NicCounters {
    let id = world.component(host).unwrap();
    let host = world.lab().get::<Host>(id).unwrap();
    let nic = lock(host.nic(0).unwrap());
    nic.counters()
}

fn check(world: &mut World, link: &LinkOutcome, from: usize) {
    let [a, b] = [&link.directions[from], &link.directions[1 - from]];
    let id = world.component(&link.name).unwrap();
    let taken = world.lab().get::<Link>(id).unwrap().counters(from as u16).queue.packets;
    let sent = nic(world, &a.from).tx_packets;
    assert_eq!(sent, taken + a.queue_dropped + a.queue_early, "{} sends what the link took or dropped", a.from);
    let on_the_way = taken - a.delivered - a.lost - a.crc_errors;
    assert!(on_the_way as usize <= link.in_flight, "{on_the_way} of {}", link.in_flight);
    let receiver = nic(world, &b.from);
    assert_eq!(a.delivered, receiver.rx_packets + receiver.rx_missed, "{} counts what arrives", b.from);
}

fn run(settings: &[&str]) -> (World, Outcome) {
    let mut world = scenario("lossy-path", settings).build(Vec::new()).unwrap();
    let outcome = world.run(&mut |_| ()).unwrap();
    (world, outcome)
}

#[test]
fn every_frame_is_delivered_or_counted() {
    let (mut world, outcome) =
        run(&["duration=4 s", "host.sender.rate=100mbit", "link.0.queue=6KiB", "link.0.bit_error_rate=1e-7"]);
    let link = &outcome.links[0];
    let d = &link.directions[0];
    assert!(d.lost > 0 && d.crc_errors > 0 && d.queue_dropped > 0, "{d:?}");
    check(&mut world, link, 0);
    check(&mut world, link, 1);
}

#[test]
fn a_full_receive_ring_is_counted() {
    let slow = ["host.receiver.rx_ring=8", "host.receiver.cost.delivered_ns=3000000", "duration=3 s"];
    let (mut world, outcome) = run(&slow);
    assert!(nic(&mut world, "receiver").rx_missed > 0);
    check(&mut world, &outcome.links[0], 0);
}

#[test]
fn every_byte_arrives_once_although_frames_are_lost() {
    let (_, outcome) = run(&["duration=20 s", "flow.0.bytes=2 MB", "link.0.loss=1 %"]);
    let flow = &outcome.flows[0];
    assert_eq!((flow.bytes, flow.error.as_deref()), (2_000_000, None));
    assert!(flow.retransmits > 0);
    assert_eq!(outcome.links[0].in_flight, 0, "both ends have closed");
}
