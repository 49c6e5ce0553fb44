//! The same scenario, settings and seed give the same output, byte for byte.

use crate::common::{Shared, scenario};
use netcore_lab::report;

/// Result as JSON, curves and capture of one run.
fn run(seed: u64) -> (String, String, Vec<u8>) {
    let capture = Shared::default();
    let request = capture.request("path");
    let mut world = scenario("lossy-path", &["duration=3 s"]).with_seed(seed).build(vec![request]).unwrap();
    let outcome = world.run(&mut |_| ()).unwrap();
    (serde_json::to_string(&outcome).unwrap(), report::csv(&outcome.flows[0]), capture.bytes())
}

#[test]
fn two_runs_with_one_seed_are_identical() {
    let (first, second) = (run(1), run(1));
    assert!(first.2.len() > 1_000_000, "{}", first.2.len());
    assert!(first == second);
}

#[test]
fn another_seed_loses_other_frames() {
    assert_ne!(run(1).2, run(2).2);
}

#[test]
fn a_run_in_steps_is_the_same_run() {
    let whole = scenario("lossy-path", &["duration=2 s"]).run(&mut |_| ()).unwrap();
    let steps = scenario("lossy-path", &["duration=2 s", "interval=130 ms"]).run(&mut |_| ()).unwrap();
    assert_eq!(serde_json::to_string(&whole.hosts).unwrap(), serde_json::to_string(&steps.hosts).unwrap());
    assert_eq!(serde_json::to_string(&whole.links).unwrap(), serde_json::to_string(&steps.links).unwrap());
}
