//! `netcore bond spread` as its users and their scripts see it.

use serde_json::Value;
use std::process::{Command, Output};

fn netcore(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netcore")).args(arguments).output().unwrap()
}

fn spread(arguments: &[&str]) -> Value {
    let output = netcore(&[&["bond", "spread"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn recorded(name: &str) -> String {
    netcore_test::workspace().join("netcore-bond/testdata").join(name).to_str().unwrap().to_string()
}

#[test]
fn the_spread_is_what_a_real_bond_did_with_the_same_frames() {
    let csv = std::fs::read_to_string(recorded("bond_members.csv")).unwrap();
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let capture = recorded("bond_frames.pcap");
    for n in 2..=5_usize {
        let v = spread(&[
            &capture,
            "--slaves",
            &n.to_string(),
            "--policy",
            "layer2",
            "--policy",
            "layer2+3",
            "--policy",
            "layer3+4",
        ]);
        for (outcome, policy) in v.as_array().unwrap().iter().zip(["layer2", "layer2+3", "layer3+4"]) {
            let column = header.iter().position(|name| *name == format!("{policy}/{n}")).unwrap();
            let mut expected = vec![0_u64; n];
            csv.lines()
                .skip(1)
                .for_each(|line| expected[line.split(',').nth(column).unwrap().parse::<usize>().unwrap()] += 1);
            let ours: Vec<u64> =
                outcome["frames_per_slave"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
            assert_eq!((ours, outcome["policy"].as_str()), (expected, Some(policy)), "{n}");
            assert_eq!(outcome["slaves"], n);
        }
    }
}

#[test]
fn one_stream_stays_on_one_member_by_hash_and_goes_round_with_its_order_measured() {
    let capture = netcore_test::capture("gro_pair_wire.pcap");
    let capture = capture.to_str().unwrap();
    let v =
        spread(&[capture, "--slaves", "4", "--policy", "layer2", "--policy", "balance-rr", "--latency", "0,0,0,400"]);
    let (hash, rr) = (&v[0], &v[1]);
    assert!(hash["reordering"].is_null());
    let frames = |o: &Value| o["frames_per_slave"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).sum::<u64>();
    assert_eq!((frames(hash), frames(rr)), (753, 753));
    assert!(rr["balance"].as_f64().unwrap() > 0.9 && hash["balance"].as_f64().unwrap() < 0.6);
    let order = &rr["reordering"];
    assert!(order["reordered"].as_u64().unwrap() > 0);
    assert!(order["dupthresh"].as_u64() > order["max_extent"].as_u64());
    assert!(order["dupthresh_fack"].as_u64() >= order["dupthresh"].as_u64());
    assert!(rr["largest_flow"]["share"].as_f64().unwrap() > 0.9);
}

#[test]
fn a_plot_is_drawn_and_mistakes_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let capture = recorded("bond_frames.pcap");
    let plot = dir.path().join("spread.svg");
    let output = netcore(&[
        "bond",
        "spread",
        &capture,
        "--slaves",
        "3",
        "--policy",
        "layer3+4",
        "--plot",
        plot.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("layer3+4 over 3 members"));
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.contains("member 2") && svg.contains("layer3+4"));
    for (arguments, message) in [
        (&["--slaves", "2", "--policy", "layer4"][..], "there are layer2"),
        (&["--slaves", "3", "--policy", "rr", "--speed", "10,100"], "one for each"),
        (&["--slaves", "0", "--policy", "rr"], "--slaves"),
        (&["--slaves", "2", "--policy", "rr", "--plot", "x.pdf"], ".svg or .png"),
    ] {
        let output = netcore(&[&["bond", "spread", &capture], arguments].concat());
        assert!(!output.status.success());
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(message),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
