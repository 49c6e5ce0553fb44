//! The command as its users and their scripts see it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn netcore(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netcore")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = netcore(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn capture() -> String {
    netcore_test::capture("gro_pair_wire.pcap").to_str().unwrap().to_string()
}

#[test]
fn gro_json_has_the_documented_fields_and_adds_up() {
    let v = json(&["gro", &capture(), "--json"]);
    assert_eq!(v["frames_in"], 753);
    assert_eq!(v["largest_payload"], 64308);
    assert_eq!(v["damaged"], Value::Null);
    let reasons: u64 = v["end_reasons"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(Some(reasons), v["packets_out"].as_u64());
    let flows = v["flows"].as_array().unwrap();
    let sum = |key: &str| flows.iter().map(|f| f[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (Some(sum("frames_in")), Some(sum("packets_out"))),
        (v["frames_in"].as_u64(), v["packets_out"].as_u64())
    );
    assert_eq!(flows[0]["payload_bytes"], 1_000_000);
    assert!(v["merge_factor"].as_f64().unwrap() > 9.0);
    assert!(v["bytes_in"].as_u64() > v["bytes_out"].as_u64());
}

#[test]
fn each_flows_reasons_add_up_to_its_packets() {
    let v = json(&["gro", &capture(), "--json"]);
    for flow in v["flows"].as_array().unwrap() {
        let reasons: u64 = flow["end_reasons"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(Some(reasons), flow["packets_out"].as_u64(), "{flow}");
    }
}

#[test]
fn gso_cuts_what_gro_merged_into_the_frames_of_the_capture() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (merged, wire) = (path("merged.pcap"), path("wire.pcap"));
    let gro = json(&["gro", &capture(), "--out", &merged, "--json"]);
    let gso = json(&["gso", &merged, "--mss", "1398", "--out", &wire, "--json"]);
    assert_eq!(gso["frames_in"], gro["packets_out"]);
    assert_eq!(gso["packets_out"], 753);
    assert_eq!(gso["bytes_out"], gro["bytes_in"]);
    assert_eq!(gso["damaged"], Value::Null);
    let passed: u64 = gso["passed"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(passed + gso["super_packets"].as_u64().unwrap(), gso["frames_in"].as_u64().unwrap());
    // By the MTU the pieces are the same: 1500 less 102 bytes of headers.
    assert_eq!(json(&["gso", &merged, "--json"])["packets_out"], 753);
    let output = netcore(&["gso", &merged, "--mss", "0"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn smaller_polls_merge_less_and_old_rules_not_at_all() {
    let out = |arguments: &[&str]| {
        json(&[&["gro", &capture(), "--json"], arguments].concat())["packets_out"].as_u64().unwrap()
    };
    let (one, eight, default) = (out(&["--batch", "1"]), out(&["--batch", "8"]), out(&[]));
    assert_eq!(one, 753);
    assert!(one > eight && eight > default);
    assert_eq!(out(&["--rules", "4.0"]), 753, "zero outer checksum and no verdict");
    assert!(out(&["--usecs", "1000"]) < out(&["--batch-by-time"]));
}

#[test]
fn out_holds_every_packet_with_final_checksums() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["merged.pcap", "merged.pcapng"] {
        let path = dir.path().join(name);
        let path = path.to_str().unwrap();
        let v = json(&["gro", &capture(), "--out", path, "--json"]);
        let output = netcore(&["dissect", path, "--json"]);
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut count = 0;
        for line in lines.lines() {
            let frame: Value = serde_json::from_str(line).unwrap();
            for layer in ["outer", "inner"] {
                for field in ["checksum", "header_checksum"] {
                    let verdict = frame[layer][field].as_str().unwrap_or("good");
                    assert!(verdict == "good" || verdict == "absent", "{line}");
                }
            }
            count += 1;
        }
        assert_eq!(Some(count), v["packets_out"].as_u64());
    }
}

#[test]
fn tshark_reads_the_output_without_a_complaint() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return netcore_test::skip("tshark", "tshark is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    for name in ["merged.pcap", "merged.pcapng"] {
        let path = dir.path().join(name);
        let v = json(&["gro", &capture(), "--out", path.to_str().unwrap(), "--json"]);
        let tshark = |filter: &str| {
            let output = Command::new("tshark")
                .args([
                    "-r",
                    path.to_str().unwrap(),
                    "-o",
                    "tcp.check_checksum:TRUE",
                    "-o",
                    "ip.check_checksum:TRUE",
                    "-Y",
                    filter,
                ])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().lines().count() as u64
        };
        assert_eq!(Some(tshark("frame")), v["packets_out"].as_u64(), "{name}");
        assert_eq!(tshark("_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0"), 0, "{name}");
        assert_eq!(tshark("vxlan.vni == 600"), v["packets_out"].as_u64().unwrap(), "{name}");
    }
}

#[test]
fn a_damaged_capture_gives_what_came_before_and_status_3() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.pcap");
    let bytes = std::fs::read(capture()).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    let output = netcore(&["gro", path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(3));
    let v: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(v["frames_in"], 752);
    assert!(v["damaged"].as_str().unwrap().contains("at byte"), "{}", v["damaged"]);
    assert_eq!(netcore(&["dissect", path.to_str().unwrap()]).status.code(), Some(3));
}

#[test]
fn an_empty_capture_gives_an_empty_capture() {
    let dir = tempfile::tempdir().unwrap();
    let (empty, out) = (dir.path().join("empty.pcap"), dir.path().join("out.pcapng"));
    std::fs::write(&empty, &std::fs::read(capture()).unwrap()[..24]).unwrap();
    let v = json(&["gro", empty.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()]);
    assert_eq!((&v["frames_in"], &v["packets_out"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(json(&["gro", out.to_str().unwrap(), "--json"])["damaged"], Value::Null);
}

#[test]
fn wrong_use_is_told_in_one_line_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "no capture").unwrap();
    let linked = dir.path().join("linked.txt");
    std::fs::hard_link(&text, &linked).unwrap();
    let nowhere = dir.path().join("no/such/folder");
    let (text, linked, nowhere) = (text.to_str().unwrap(), linked.to_str().unwrap(), nowhere.to_str().unwrap());
    let wire = &capture();
    for (arguments, status, word) in [
        (vec!["gro", "/nonexistent.pcap"], 1, "/nonexistent.pcap"),
        (vec!["gro", text], 1, "not a capture"),
        (vec!["gro", text, "--batch", "0"], 2, "--batch"),
        (vec!["gro", text, "--batch", "9", "--usecs", "3"], 2, "--usecs"),
        (vec!["gro", text, "--vxlan-port", "70000"], 2, "70000"),
        (vec!["gro", text, "--rules", "5"], 2, "4.0"),
        (vec!["gro", text, "--out", text], 1, "overwritten"),
        (vec!["gro", text, "--out", linked], 1, "overwritten"),
        (vec!["gso", text, "--out", linked], 1, "overwritten"),
        (vec!["gro", text, "--out", "-"], 1, "standard output"),
        (vec!["gro", wire, "--out", nowhere], 1, "--out"),
        (vec!["gso", wire, "--out", nowhere], 1, "--out"),
        (vec!["reproduce", "nothing"], 2, "vxlan-gro-82599"),
        (vec!["reproduce", "vxlan-gro-82599", "--html", nowhere], 1, "--html"),
        (vec!["frobnicate"], 2, "frobnicate"),
    ] {
        let output = netcore(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
        assert!(errors.contains(word), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(std::fs::read_to_string(text).unwrap(), "no capture");
}

#[test]
fn raw_ip_and_unknown_link_types_pass_through() {
    let bytes = std::fs::read(capture()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    // The same frames without their Ethernet headers, as link type RAW; then as a link type that is not parsed.
    let mut raw = bytes[..20].to_vec();
    raw.extend(101u32.to_le_bytes());
    let mut at = 24;
    while at < bytes.len() {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        raw.extend(&bytes[at..at + 8]);
        raw.extend((len as u32 - 14).to_le_bytes());
        raw.extend((len as u32 - 14).to_le_bytes());
        raw.extend(&bytes[at + 16 + 14..at + 16 + len]);
        at += 16 + len;
    }
    let path = dir.path().join("raw.pcap");
    let out = dir.path().join("out.pcap");
    std::fs::write(&path, &raw).unwrap();
    let (path, out) = (path.to_str().unwrap(), out.to_str().unwrap());
    let ethernet = json(&["gro", &capture(), "--json"]);
    let v = json(&["gro", path, "--json", "--out", out]);
    for key in ["frames_in", "packets_out", "largest_payload", "end_reasons", "flows"] {
        assert_eq!(v[key], ethernet[key], "{key}");
    }
    assert_eq!(v["bytes_in"].as_u64().unwrap() + 14 * 753, ethernet["bytes_in"].as_u64().unwrap());
    assert_eq!(json(&["gro", out, "--json", "--batch", "1"])["bytes_in"], v["bytes_out"]);
    raw[20] = 113;
    std::fs::write(Path::new(path), &raw).unwrap();
    let v = json(&["gro", path, "--json"]);
    assert_eq!((&v["not_parsed"], &v["packets_out"]), (&Value::from(753), &Value::from(753)));
}

#[test]
fn reproduce_prints_rows_that_compare_with_the_publication() {
    let v = json(&["reproduce", "vxlan-gro-82599", "--json"]);
    let rows = v["experiments"][0]["rows"].as_array().unwrap();
    for key in ["label", "profile", "metric", "unit", "published", "ours", "tolerance", "pass"] {
        assert!(rows.iter().all(|row| row.get(key).is_some()), "{key}");
    }
    assert!(rows.iter().any(|row| row["published"] == 8.53 && row["pass"] == true));
    assert!(!v["experiments"][0]["series"].as_array().unwrap().is_empty());
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    use std::process::Stdio;
    for arguments in [vec!["gro", "--json"], vec!["dissect"], vec!["reproduce", "--list"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netcore"));
        command.args(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        if arguments[0] != "reproduce" {
            command.arg(capture());
        }
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
