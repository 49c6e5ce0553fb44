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
    let mut outcome = Outcome::default();
    events::replay(text, &Profile::linux_current(), &mut outcome).unwrap();
    let json = outcome.json();
    assert_eq!(json["events"], 1);
    assert_eq!(json["mismatches"], 0);
    assert_eq!(json["first_mismatch"], Value::Null);
    assert_eq!(json["windows"][0], json!([0, 10, null]));
    assert_eq!(json["damaged"], Value::Null);
}

#[test]
fn a_wrong_expectation_is_a_mismatch() {
    let text = r#"{"events": [{"t_us": 0, "ev": "established", "cwnd": 10, "expect": {"cwnd": 11}}]}"#;
    let mut outcome = Outcome::default();
    events::replay(text, &Profile::linux_current(), &mut outcome).unwrap();
    assert_eq!(outcome.mismatches, 1);
    assert_eq!(outcome.first_mismatch.as_deref(), Some("event 0: window 10, expected 11"));
}

fn replay_bytes(bytes: &[u8]) -> anyhow::Result<Outcome> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    replay(file.path(), &Profile::linux_current())
}

#[test]
fn bad_files_say_where() {
    let message = |bytes: &[u8]| format!("{:#}", replay_bytes(bytes).err().unwrap());
    assert!(message(b"").contains("empty"));
    assert!(message(b"a,b\n1,2\n").contains("neither"));
    assert!(message(b"[]").contains("neither"));
    assert!(message(b"{").contains("JSON"));
    assert!(message(b"{\"events\": []}").contains("nothing in it"));
    assert!(message(b"{\"events\": 3}").contains("no list \"events\""));
    assert!(message(b"event,cwnd_pkts\nlost,1\n").contains("line 2: unknown event"));
    assert!(message(b"event,cwnd_pkts\n\n\nlost,1\n").contains("line 4: unknown event"));
    assert!(message(b"event,cwnd_pkts\nack\n").contains("line 2: 1 cells, the header has 2"));
    assert!(message(b"event,cwnd_pkts\n").contains("nothing in it"));
    assert!(message(b"\xff\xfe\x00").contains("not text from byte 0 on"));
    assert!(message(b"\x1f\x8b\x08junk").contains("damaged gzip data"));
    let ours = format!("{:#}", replay(Path::new("/nowhere"), &Profile::linux_current()).err().unwrap());
    assert!(ours.starts_with("/nowhere: "), "{ours}");
}

#[test]
fn a_damaged_trace_is_replayed_up_to_the_damage() {
    let whole = std::fs::read(ours("cubic_calls_5mbit_20ms.csv.gz")).unwrap();
    let outcome = replay_bytes(&whole[..whole.len() / 2]).unwrap();
    assert!(outcome.events > 3_000 && outcome.mismatches == 0);
    assert!(outcome.damaged.unwrap().starts_with("damaged gzip data"));
    let (text, _) = read(&ours("cubic_calls_5mbit_20ms.csv.gz")).unwrap();
    let lines: Vec<&str> = text.lines().take(102).collect();
    let with = |line: &str| {
        let mut lines = lines.clone();
        lines[51] = line;
        replay_bytes(lines.join("\r\n").as_bytes()).unwrap()
    };
    for (line, said) in [
        ("1,2,3", "line 52: 3 cells"),
        (&*lines[51].replacen(|it: char| it.is_ascii_digit(), "x", 1), "line 52, column t_us"),
        (&*lines[51].replacen(|it: char| it.is_ascii_digit(), "\u{e9}", 1), "line 52, column t_us"),
    ] {
        let outcome = with(line);
        assert_eq!((outcome.events, outcome.mismatches), (50, 0), "{line}");
        assert!(outcome.damaged.as_deref().unwrap().starts_with(said), "{:?}", outcome.damaged);
    }
    let mut bytes = lines.join("\n").into_bytes();
    let at = bytes.len() - 10;
    bytes[at] = 0xff;
    let outcome = replay_bytes(&bytes).unwrap();
    assert_eq!((outcome.events, outcome.damaged), (100, Some(format!("not text from byte {at} on"))));
    // A byte order mark and empty lines are no damage.
    let text = format!("\u{feff}{}\n\n", lines.join("\n\n"));
    let outcome = replay_bytes(text.as_bytes()).unwrap();
    assert_eq!((outcome.events, outcome.mismatches, outcome.damaged), (101, 0, None));
}
