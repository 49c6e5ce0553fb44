use super::*;

#[test]
fn rates_are_bits_unless_they_say_bps_and_prefixes_are_decimal_unless_they_have_an_i() {
    let bytes = |text| parse_rate(text).map(Rate::bytes_per_sec);
    for (text, expected) in [
        ("8", 1),
        ("100000bit", 12_500),
        ("550kbit", 68_750),
        ("1.5mbit", 187_500),
        ("10Mbit", 1_250_000),
        ("1kbps", 1_000),
        ("1kibps", 1_024),
        ("8kibit", 1_024),
        ("34359738360", u32::MAX.into()),
        ("0.5gbps", 500_000_000),
    ] {
        assert_eq!(bytes(text), Some(expected), "{text}");
    }
    for wrong in ["", "x", "1xbit", "1.2.3", "-1", "10 mbit", "10%", "1ibit", "34359738368", "5gbps"] {
        assert_eq!(bytes(wrong), None, "{wrong}");
    }
    assert_eq!(parse_rate64("400gbit").map(Rate::bytes_per_sec), Some(50_000_000_000));
}

#[test]
fn sizes_are_powers_of_1024() {
    for (text, expected) in [("3028", 3028), ("15kb", 15_360), ("32kbit", 4096), ("1m", 1 << 20), ("1.5k", 1536)] {
        assert_eq!(parse_size(text), Some(expected), "{text}");
    }
    assert_eq!(parse_size("4gb"), None);
    assert_eq!(parse_size("4kib"), None);
}

#[test]
fn a_bare_time_is_microseconds_or_nanoseconds_as_the_option_has_it() {
    assert_eq!(parse_time("100"), Some(Duration::from_micros(100)));
    assert_eq!(parse_time_ns("100"), Some(Duration::from_nanos(100)));
    assert_eq!(parse_time("40ms"), Some(Duration::from_millis(40)));
    assert_eq!(parse_time("4294967296"), None);
    assert_eq!(parse_time_ns("5s"), None);
    assert_eq!(parse_time("1h"), None);
}

#[test]
fn whole_numbers_are_read_in_the_bases_of_c() {
    assert_eq!(parse_u32("1023"), Some(1023));
    assert_eq!(parse_u32("0x3ff"), Some(1023));
    assert_eq!(parse_u32("0377"), Some(255));
    assert_eq!(parse_u32("0"), Some(0));
    for wrong in ["", "-1", "+1", "1.5", "4294967296", "0x", "09"] {
        assert_eq!(parse_u32(wrong), None, "{wrong}");
    }
}

#[test]
fn what_is_printed_is_what_tc_prints() {
    let bits = |bits| rate(Rate::from_bits_per_sec(bits));
    assert_eq!(bits(10_000_000), "10Mbit");
    assert_eq!(bits(550_000), "550Kbit");
    assert_eq!(bits(1_500_000), "1500Kbit");
    assert_eq!(bits(8), "8bit");
    assert_eq!(bits(34_359_738_360), "34359Mbit");
    assert_eq!(bits(400_000_000_000), "400Gbit");
    assert_eq!(
        (size(3028), size(15_140), size(900_000), size(4096), size(1 << 20)),
        ("3028b".into(), "15140b".into(), "900000b".into(), "4Kb".into(), "1Mb".into())
    );
    assert_eq!(time(Duration::from_millis(40)), "40ms");
    assert_eq!(time(Duration::from_secs(10)), "10s");
    assert_eq!(time(Duration::from_micros(1_234_567)), "1.23s");
    assert_eq!(time_ns(Duration::from_micros(10)), "10us");
    assert_eq!(time_ns(Duration::from_nanos(100)), "100ns");
}
