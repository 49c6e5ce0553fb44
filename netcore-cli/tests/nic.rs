//! `netcore nic` on the models.

use std::process::{Command, Output};

fn nic(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netcore")).arg("nic").args(arguments).output().expect("the command runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_model_tests_itself() {
    for model in ["model:82546gb", "model:82576"] {
        let output = nic(&["selftest", model]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text(&output), "registers  pass\nNVM        pass\nloopback   pass\n");
    }
}

#[test]
fn info_speaks_the_words_of_ethtool() {
    let output = nic(&["info", "model:82546gb", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(info["driver"], "e1000");
    assert_eq!(info["link"]["speed_mbps"], 1000);
    assert_eq!(info["features"]["tx-tcp-segmentation"], "on");
    assert_eq!(info["features"]["receive-hashing"], "off [fixed]");
    let output = nic(&["info", "model:82576", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&info["driver"], &info["features"]["receive-hashing"]), (&"igb".into(), &"on".into()));
}

#[test]
fn generated_frames_fill_the_line_and_are_counted() {
    let output = nic(&["pktgen", "model:82546gb", "--count", "2000", "--size", "1514"]);
    let said = text(&output);
    assert!(said.starts_with("2000 frames of 1514 bytes in 0.02"), "{said}");
    let output = nic(&["pktgen", "model:82546gb", "--count", "1000", "--rate", "10000"]);
    assert!(text(&output).contains(" in 0.10"), "{}", text(&output));
}

#[test]
fn a_capture_of_an_idle_line_is_a_valid_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("idle.pcapng");
    let output = nic(&["capture", "model:82546gb", "--seconds", "0.01", "--out", path.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{output:?}");
    let file = std::fs::read(&path).expect("the file is there");
    assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
}

#[test]
fn what_is_not_there_is_said_with_what_there_is() {
    for (device, part) in [("model:82598", "models of 82546gb"), ("0000:ff:1f.7", "netcore nic list")] {
        let output = nic(&["info", device]);
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part), "{said}");
    }
    assert!(!nic(&["bind", "../../x"]).status.success());
}

#[test]
fn list_gives_json() {
    let output = nic(&["list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(list.is_array());
}
