//! Interrupts of a card: how moderation and the poll budget shape what the host does.

use crate::common::scenario;
use netcore_lab::scenario::{HostOutcome, Outcome};

fn receiver(settings: &[&str]) -> HostOutcome {
    let fast = ["duration=2 s", "link.0.rate=1gbit", "link.0.loss=0", "link.0.jitter=0", "link.0.queue=4MiB"];
    let outcome: Outcome = scenario("lossy-path", &[&fast, settings].concat()).run(&mut |_| ()).unwrap();
    outcome.hosts.into_iter().find(|host| host.name == "receiver").unwrap()
}

#[test]
fn interrupts_come_no_faster_than_the_interval() {
    let every = receiver(&[]);
    let moderated = receiver(&["host.receiver.interrupt_interval=1 ms"]);
    assert!(every.interrupts > 5_000, "{}", every.interrupts);
    assert!(moderated.interrupts <= 2_001, "{} in two seconds", moderated.interrupts);
    assert!(moderated.interrupts > 500, "{}", moderated.interrupts);
}

#[test]
fn fewer_interrupts_merge_more_frames() {
    let factor = |host: HostOutcome| host.wire_packets as f64 / host.delivered as f64;
    let every = factor(receiver(&[]));
    let moderated = factor(receiver(&["host.receiver.interrupt_interval=200 us"]));
    let off = factor(receiver(&["host.receiver.interrupt_interval=200 us", "host.receiver.gro=off"]));
    assert!(moderated > 5.0 * every, "{moderated} and {every} frames a packet");
    assert!((off - 1.0).abs() < f64::EPSILON, "{off}");
}

#[test]
fn a_budget_divides_a_batch_into_polls() {
    let whole = receiver(&["host.receiver.interrupt_interval=400 us"]);
    let small = receiver(&["host.receiver.interrupt_interval=400 us", "host.receiver.budget=4"]);
    assert!(small.polls > 3 * whole.polls, "{} and {} polls", small.polls, whole.polls);
    assert!(small.interrupts < small.polls / 3, "{} interrupts, {} polls", small.interrupts, small.polls);
}
