//! The options of fq: the table of the kernel's own tests, what is refused, what is printed.

use netcore::{Drops, Instant, Qdisc, QdiscError, Rate};
use netcore_qdisc::{Fq, FqOptions, HorizonPolicy};
use serde_json::Value;
use std::time::Duration;

fn parse(line: &str) -> Result<FqOptions, QdiscError> {
    FqOptions::default().with_words(&line.split_whitespace().collect::<Vec<_>>())
}

/// The value that the kernel's test names `field`.
fn field(o: &FqOptions, field: &str) -> Value {
    match field {
        "limit" => o.limit.into(),
        "flow_limit" => o.flow_limit.into(),
        "quantum" => o.quantum.into(),
        "initial_quantum" => o.initial_quantum.into(),
        "maxrate_bps" => o.maxrate.map(Rate::bits_per_sec).into(),
        "pacing" => o.pacing.into(),
        "refill_delay_ms" => (o.refill_delay.as_millis() as u64).into(),
        "low_rate_threshold_bps" => o.low_rate_threshold.bits_per_sec().into(),
        "orphan_mask" => o.orphan_mask.into(),
        "timer_slack_ns" => (o.timer_slack.as_nanos() as u64).into(),
        "horizon_us" => (o.horizon.as_micros() as u64).into(),
        "horizon_policy" => match o.horizon_policy {
            HorizonPolicy::Cap => "cap".into(),
            HorizonPolicy::Drop => "drop".into(),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn every_row_of_the_kernels_option_table_is_accepted_and_means_what_it_says() {
    let Some(path) = netcore_test::shared("exams/fq.json") else { return };
    let table: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut rows = 0;
    for row in table["options"].as_array().unwrap() {
        let value = match &row["value"] {
            Value::Null => String::new(),
            Value::String(s) => s.replace("bit/s", "bit").replace(' ', ""),
            number => number.to_string(),
        };
        let words = match row["opt"].as_str() {
            None | Some("(none)") => String::new(),
            Some(option) => format!("{option} {value}"),
        };
        let mut fq = Fq::new(FqOptions::default()).unwrap();
        let mut drops = Drops::new();
        fq.change(&words.split_whitespace().collect::<Vec<_>>(), Instant::ZERO, &mut drops).unwrap();
        let expected = row["expect"].as_object().into_iter().chain(row["defaults"].as_object());
        for (name, value) in expected.flatten() {
            assert_eq!(&field(fq.config(), name), value, "{row}");
        }
        rows += 1;
    }
    assert_eq!(rows, 17);
}

#[test]
fn defaults_are_those_of_linux_and_print_as_tc_prints_them() {
    let text = "limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 bands 3 \
        priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536 quantum 3028b initial_quantum 15140b \
        low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop";
    assert_eq!(FqOptions::default().to_words(), text);
}

#[test]
fn what_is_printed_is_read_back_as_the_same() {
    for line in [
        "",
        "nopacing maxrate 10mbit ce_threshold 100us horizon 100us horizon_cap timer_slack 100ns",
        "bands 3 priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 weights 16384 16384 2147483647 buckets 3",
        "quantum 1mb initial_quantum 0 low_rate_threshold 8bit refill_delay 1s orphan_mask 0xffffffff limit 0",
    ] {
        let options = parse(line).unwrap();
        assert_eq!(parse(&options.to_words()).unwrap(), options, "{line}");
    }
}

#[test]
fn a_quantum_out_of_range_is_brought_into_it_and_an_initial_quantum_is_refused() {
    // Linux: clamp to 256..2^20; a range in the netlink policy.
    for (quantum, becomes) in [(0, 256), (1, 256), (256, 256), (1 << 20, 1 << 20), (u32::MAX, 1 << 20)] {
        assert_eq!(parse(&format!("quantum {quantum}")).unwrap().quantum, becomes);
    }
    assert_eq!(parse("initial_quantum 1048576").unwrap().initial_quantum, 1 << 20);
    assert!(parse("initial_quantum 1048577").is_err());
    // Beyond 2^31 credits of older kernels became negative, and dequeue never ended.
    assert!(parse("initial_quantum 2147483648").is_err());
}

#[test]
fn rates_end_where_the_interface_of_tc_ends_and_not_by_api() {
    assert_eq!(parse("maxrate 34359738352bit").unwrap().maxrate, Some(Rate::from_bytes_per_sec(4_294_967_294)));
    assert_eq!(parse("maxrate 34359738360bit").unwrap().maxrate, None);
    assert!(parse("maxrate 40gbit").is_err());
    let fast = FqOptions { maxrate: Some(Rate::from_bits_per_sec(400_000_000_000)), ..FqOptions::default() };
    assert!(Fq::new(fast).unwrap().options().contains("maxrate 400Gbit"));
}

#[test]
fn wrong_options_say_what_was_wrong_and_change_nothing() {
    for line in [
        "limit",
        "limit x",
        "limit -1",
        "limit 4294967296",
        "flow_limit 1.5",
        "quantum 1parsec",
        "maxrate 10%",
        "maxrate",
        "buckets 1",
        "buckets 262145",
        "refill_delay 2h",
        "timer_slack 5s",
        "horizon -1us",
        "bands 4",
        "priomap 0 1 2",
        "priomap 0 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0",
        "weights 16383 16384 16384",
        "weights 1 2",
        "offload_horizon 1us",
        "colour blue",
        "limit 5 colour blue",
    ] {
        let mut fq = Fq::new(FqOptions::default()).unwrap();
        let before = fq.options();
        let words: Vec<&str> = line.split_whitespace().collect();
        let error = fq.change(&words, Instant::ZERO, &mut Drops::new()).expect_err(line);
        assert!(error.to_string().starts_with("fq: "), "{error}");
        assert_eq!(fq.options(), before, "{line}");
    }
}

#[test]
fn values_set_by_api_are_checked_as_those_of_tc() {
    let default = FqOptions::default();
    for wrong in [
        FqOptions { buckets: 1000, ..default },
        FqOptions { buckets: 1, ..default },
        FqOptions { initial_quantum: u32::MAX, ..default },
        FqOptions { weights: [0, 1, 2], ..default },
        FqOptions { priomap: [3; 16], ..default },
        FqOptions { horizon: Duration::MAX, ..default },
        FqOptions { offload_horizon: Duration::from_secs(1), ..default },
    ] {
        assert!(Fq::new(wrong).is_err(), "{wrong:?}");
    }
    for mtu in [0, 68, 1500, 65_535, u32::MAX] {
        Fq::new(FqOptions::for_mtu(mtu)).unwrap();
    }
    assert_eq!(FqOptions::for_mtu(9000).quantum, 18_028);
}
