use super::*;

fn ours(name: &str) -> PathBuf {
    netcore_test::workspace().join("netcore-cc/testdata").join(name)
}

#[test]
fn call_traces_replay_without_a_difference() {
    let mut events = 0;
    for name in ["cubic_calls_5mbit_20ms.csv.gz", "cubic_calls_100mbit_40ms.csv.gz"] {
        let outcome = replay(&ours(name), &Profile::linux_current()).unwrap();
        assert_eq!(outcome.mismatches, 0, "{name}: {:?}", outcome.first_mismatch);
        events += outcome.events;
    }
    assert_eq!(events, 70_704);
}

#[test]
fn another_era_does_not_replay_todays_kernel() {
    let outcome = replay(&ours("cubic_calls_100mbit_40ms.csv.gz"), &Profile::linux_5_16()).unwrap();
    assert!(outcome.mismatches > 0);
}

#[test]
fn ack_traces_differ_in_at_most_two_percent_and_in_no_threshold() {
    for (name, hystart) in [("cubic_20mbit_40ms_hystart.csv.gz", "1"), ("cubic_20mbit_40ms_nohystart.csv.gz", "0")] {
        let mut profile = Profile::linux_current();
        profile.set("hystart", hystart).unwrap();
        let outcome = replay(&ours(name), &profile).unwrap();
        println!("{name}: {} of {} rows differ, {:?}", outcome.mismatches, outcome.events, outcome.first_mismatch);
        println!("thresholds {:?}", outcome.thresholds);
        assert!(outcome.mismatches * 50 <= outcome.events);
        assert!(outcome.thresholds.len() >= 5);
        assert!(outcome.thresholds.iter().all(|(ours, kernel)| ours == kernel), "{:?}", outcome.thresholds);
    }
}

#[test]
fn event_sequences_hold_at_every_event() {
    let names = [
        "hystart_rtt_rise",
        "rto_slowstart_ca",
        "slow_start_ack_per_1pkt",
        "slow_start_ack_per_2pkt",
        "slow_start_ack_per_2pkt_send_5pkt",
        "slow_start_app_limited",
    ];
    for name in names {
        let Some(path) = netcore_test::shared(&format!("exams/cubic/{name}.json")) else { return };
        for profile in [Profile::linux_current(), Profile::linux_current().with_hz(1000).unwrap()] {
            let outcome = replay(&path, &profile).unwrap();
            assert!(outcome.events > 3);
            assert_eq!(outcome.mismatches, 0, "{name}: {:?}", outcome.first_mismatch);
        }
    }
}

#[test]
fn json_has_the_promised_keys_and_null_for_no_threshold() {
    let text = r#"{"events": [{"t_us": 0, "ev": "established", "cwnd": 10}]}"#;
    let json = events::replay(text, &Profile::linux_current()).unwrap().json();
    assert_eq!(json["events"], 1);
    assert_eq!(json["mismatches"], 0);
    assert_eq!(json["first_mismatch"], Value::Null);
    assert_eq!(json["windows"][0], json!([0, 10, null]));
}

#[test]
fn a_wrong_expectation_is_a_mismatch() {
    let text = r#"{"events": [{"t_us": 0, "ev": "established", "cwnd": 10, "expect": {"cwnd": 11}}]}"#;
    assert_eq!(events::replay(text, &Profile::linux_current()).unwrap().mismatches, 1);
}

#[test]
fn bad_files_say_where() {
    let message = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        format!("{:#}", replay(file.path(), &Profile::linux_current()).err().unwrap())
    };
    assert!(message("").contains("empty"));
    assert!(message("a,b\n1\n").contains("line 2"));
    assert!(message("a,b\n1,2\n").contains("neither"));
    assert!(message("{").contains("JSON"));
    assert!(message("event,cwnd_pkts\nlost,1\n").contains("unknown event"));
}
