//! `netcore qdisc` as a user calls it.

use serde_json::Value;
use std::process::{Command, Output};

fn netcore(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netcore")).arg("qdisc").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = netcore(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn fq_shares_a_link_between_unequal_flows_and_a_fifo_does_not() {
    let flows = ["--flow", "len=1514,rate=90mbit", "--flow", "len=1514,rate=30mbit,packets=5", "--rate", "50mbit"];
    let fq = json(&[&flows[..], &["--qdisc", "fq"]].concat());
    let fifo = json(&[&flows[..], &["--qdisc", "pfifo limit 100"]].concat());
    assert!(fq["jain"].as_f64().unwrap() > 0.99, "{}", fq["jain"]);
    assert!(fifo["jain"].as_f64().unwrap() < 0.9, "{}", fifo["jain"]);
    for result in [&fq, &fifo] {
        let flow =
            |key: &str| result["flows"].as_array().unwrap().iter().map(|f| f[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(flow("packets_in"), flow("packets_out") + flow("dropped"));
    }
    assert!(fq["drops"]["flow_limit"].as_u64().unwrap() > 0);
}

#[test]
fn a_maxrate_is_what_each_flow_gets() {
    let result =
        json(&["--flow", "len=1514,rate=50mbit", "--qdisc", "fq maxrate 5mbit flow_limit 100000", "--time", "2s"]);
    let rate = result["flows"][0]["mbit_per_s"].as_f64().unwrap();
    assert!((rate / 5.0 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn the_flows_of_a_capture_are_told_apart_and_nothing_is_lost() {
    let capture = netcore_test::capture("vxlan4789_v4_zerocsum.pcap");
    if !capture.exists() {
        netcore_test::skip("capture", "vxlan4789_v4_zerocsum.pcap is not there");
        return;
    }
    let result = json(&[capture.to_str().unwrap(), "--qdisc", "fq limit 1000000 flow_limit 1000000"]);
    assert_eq!(result["packets_in"], result["packets_out"]);
    assert!(!result["flows"].as_array().unwrap().is_empty());
}

#[test]
fn tables_and_plots_are_written_and_wrong_usage_says_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("flows.svg");
    let output = netcore(&["--flow", "len=1000,rate=8mbit", "--plot", plot.to_str().unwrap(), "--departures", "3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Jain's index 1.0000") && text.contains("2.000000      1000"), "{text}");
    assert!(std::fs::read_to_string(plot).unwrap().starts_with("<svg"));
    for (arguments, says) in [
        (&["--flow", "len=0"][..], "size from 1 to 1mb"),
        (&["--flow", "colour=1"], "there are len, rate"),
        (&["--flow", "len=100", "--qdisc", "htb"], "there are fq, fq_codel"),
        (&["--flow", "len=100", "--qdisc", "fq quantum x"], "256 to 1048576 bytes"),
        (&["--flow", "len=100", "--rate", "fast"], "a rate is such as"),
        (&["--flow", "len=100", "--plot", "x.gif"], ".svg"),
    ] {
        let output = netcore(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says), "{arguments:?}: {error}");
    }
}
