//! `netcore run` as its users and their scripts see it.

use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let scenario = netcore_test::workspace().join("netcore-lab/scenarios/lossy-path.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netcore"));
    command.arg("run").arg(scenario).args(["--set", "duration=2 s"]).args(arguments).output().unwrap()
}

#[test]
fn json_curves_capture_and_plot_come_out_of_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let pcap = format!("path@receiver={}", file("path.pcapng"));
    let output = run(&["--json", "--csv", &file("curves"), "--plot", &file("curves.svg"), "--pcap", &pcap]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flow = &json["flows"][0];
    let intervals = flow["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 2);
    let bytes: u64 = intervals.iter().map(|interval| interval["bytes"].as_u64().unwrap()).sum();
    assert_eq!(flow["bytes"].as_u64(), Some(bytes));
    let curves = std::fs::read_to_string(file("curves/1-sender-receiver.csv")).unwrap();
    assert!(curves.starts_with("time_s,goodput_bps,cwnd,ssthresh,srtt_us,in_flight,"), "{curves}");
    assert_eq!(curves.lines().count(), 21, "a sample every 100 ms");
    assert!(std::fs::read_to_string(file("curves.svg")).unwrap().contains("goodput, Mbit/s"));
    let frames = Command::new(env!("CARGO_BIN_EXE_netcore")).args(["gro", &file("path.pcapng"), "--json"]).output();
    let gro: Value = serde_json::from_slice(&frames.unwrap().stdout).unwrap();
    assert!(gro["frames_in"].as_u64() > Some(1000), "the capture is one that the other commands read: {gro}");
}

#[test]
fn the_table_looks_like_iperf_and_the_summary_like_netstat() {
    let output = run(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Mbits/sec") && text.contains("1.00-2.00"), "{text}");
    assert!(text.contains("TcpOutSegs") && text.contains("link path"), "{text}");
}

#[test]
fn mistakes_name_the_place_and_what_is_allowed() {
    let error = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["--set", "link.9.delay=1ms"]).contains("there is no \"9\""));
    assert!(error(&["--set", "flow.0.profile=bsd"]).contains("linux-current"));
    assert!(error(&["--pcap", "wan=/dev/null"]).contains("path (ends sender, receiver)"));
    assert!(error(&["--plot", "curves.gif"]).contains(".svg or .png"));
}
