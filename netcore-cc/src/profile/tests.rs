use super::*;
use alloc::string::ToString;
use netcore::Instant;
use netcore::congestion::CongestionOps;

#[test]
fn what_each_era_had() {
    type Era = (&'static str, bool, bool, Growth, LimitedRule, UndoRule, bool, u32);
    let has = |it: Profile| -> Era {
        let idle = it.shift_epoch_over_idle;
        (
            it.name,
            it.legacy.is_some(),
            idle,
            it.growth,
            it.limited_rule,
            it.reno_undo,
            it.initial_window_10,
            it.cubic.beta,
        )
    };
    use Growth::{PerAck, PerPacket, PerPacketInclusive};
    use LimitedRule::{InFlight, Remembered, TsoDivisor};
    use UndoRule::{PriorCwnd, TwiceSsthresh};
    let expected = [
        ("linux-2.6.23", true, false, PerAck, TsoDivisor, TwiceSsthresh, false, 819),
        ("linux-2.6.32", true, false, PerAck, InFlight, TwiceSsthresh, false, 717),
        ("linux-2.6.35", true, false, PerAck, InFlight, TwiceSsthresh, false, 717),
        ("linux-3.6", true, false, PerAck, InFlight, TwiceSsthresh, true, 717),
        ("linux-4.0", false, false, PerPacketInclusive, Remembered, TwiceSsthresh, true, 717),
        ("linux-4.3", false, true, PerPacket, Remembered, TwiceSsthresh, true, 717),
        ("linux-5.6", false, true, PerPacket, Remembered, PriorCwnd, true, 717),
        ("linux-5.16", false, true, PerPacket, Remembered, PriorCwnd, true, 717),
        ("linux-current", false, true, PerPacket, Remembered, PriorCwnd, true, 717),
        ("rfc9438", false, true, PerPacket, Remembered, PriorCwnd, true, 717),
    ];
    assert_eq!(Profile::all().map(has), expected);
    for (name, ..) in expected {
        assert_eq!(Profile::by_name(name).map(|it| it.name), Some(name));
    }
    assert_eq!(Profile::by_name("linux-7.0"), None);
    assert_eq!(Profile::default(), Profile::linux_current());
    let exits = Profile::all().map(|it| it.exit);
    let rules = |it: HyStartRules| Exit::HyStart(it);
    let current = rules(HyStartRules::linux_current());
    assert_eq!(exits[..3], [Exit::None, rules(HyStartRules::linux_2_6_29()), rules(HyStartRules::linux_2_6_29())]);
    assert_eq!(
        exits[3..6],
        [HyStartRules::linux_2_6_39(), HyStartRules::linux_4_0(), HyStartRules::linux_4_0()].map(rules)
    );
    assert_eq!(exits[6..8], [HyStartRules::linux_5_6(), HyStartRules::linux_5_16()].map(rules));
    assert_eq!(exits[8..], [current, Exit::HyStartPlusPlus]);
    assert_eq!(Profile::rfc9438().algorithm, Algorithm::Rfc9438);
    assert!(Profile::all()[..9].iter().all(|it| it.algorithm == Algorithm::Cubic));
    let legacy = [
        LegacyRules::linux_2_6_23(),
        LegacyRules::linux_2_6_35(),
        LegacyRules::linux_2_6_35(),
        LegacyRules::linux_3_6(),
    ];
    assert_eq!(Profile::all().map(|it| it.legacy)[..4], legacy.map(Some));
}

/// A profile with one parameter set.
fn with(name: &str, value: &str) -> Result<Profile, ParameterError> {
    let mut profile = Profile::linux_current();
    profile.set(name, value)?;
    Ok(profile)
}

#[test]
fn each_module_parameter_lands_in_its_field() {
    let default = Profile::linux_current();
    let cubic = |change: fn(&mut CubicParameters)| {
        let mut profile = default;
        change(&mut profile.cubic);
        Ok(profile)
    };
    let hystart = |change: fn(&mut HyStartParameters)| {
        let mut profile = default;
        change(&mut profile.hystart);
        Ok(profile)
    };
    for no in ["0", "n", "N", "false"] {
        assert_eq!(with("fast_convergence", no), cubic(|it| it.fast_convergence = false));
        assert_eq!(with("tcp_friendliness", no), cubic(|it| it.tcp_friendliness = false));
        assert_eq!(with("hystart", no), hystart(|it| it.enabled = false));
    }
    for yes in ["1", "y", "Y", "true"] {
        assert_eq!(with("fast_convergence", yes), Ok(default));
        assert_eq!(with("restore_epoch_on_undo", yes), cubic(|it| it.restore_epoch_on_undo = true));
    }
    assert_eq!(with("beta", "819"), cubic(|it| it.beta = 819));
    assert_eq!(with("initial_ssthresh", "100"), cubic(|it| it.initial_ssthresh = 100));
    assert_eq!(with("bic_scale", "82"), cubic(|it| it.bic_scale = 82));
    assert_eq!(with("hystart_detect", "2"), hystart(|it| it.detect = 2));
    assert_eq!(with("hystart_low_window", "32"), hystart(|it| it.low_window = 32));
    assert_eq!(with("hystart_ack_delta_us", "3000"), hystart(|it| it.ack_delta_us = 3_000));
    assert_eq!(with("hystart_ack_delta", "4"), hystart(|it| it.ack_delta_us = 4_000));
}

#[test]
fn what_is_not_a_parameter_or_not_its_value_is_refused_and_changes_nothing() {
    let text = |name: &str, value: &str| with(name, value).unwrap_err().to_string();
    assert_eq!(text("beta", "1024"), "beta 1024: allowed are 1 to 1023 (1024ths of the window)");
    assert_eq!(text("bic_scale", "0"), "bic_scale 0: allowed are 1 to 100000");
    assert_eq!(text("hystart_detect", "4"), "hystart_detect 4: allowed are 0 to 3 (1 ACK train, 2 delay)");
    for (name, value) in
        [("beta", "x"), ("beta", "-1"), ("hystart", "2"), ("hystart", ""), ("hystart_ack_delta", "4294968")]
    {
        let error = text(name, value);
        assert!(error.starts_with(&alloc::format!("{name}=\"{value}\": ")), "{error}");
    }
    assert!(text("betta", "1").contains("allowed are fast_convergence, beta"));
    let mut profile = Profile::linux_current();
    assert!(profile.set("beta", "0").is_err());
    assert_eq!(profile, Profile::linux_current());
    for detect in 0..=3 {
        profile.hystart.detect = detect;
        assert_eq!(profile.validate(), Ok(()));
    }
    profile.hystart.detect = 4;
    assert_eq!(profile.validate(), Err(ParameterError::Detect(4)));
    assert_eq!(profile.with_hz(0), Err(ParameterError::Hz(0)));
}

#[test]
fn the_initial_window_is_rfc_3390s_as_linux_rounds_it_and_later_ten() {
    let old = Profile::linux_2_6_35();
    assert_eq!([536, 1095, 1096, 1460, 1461, 8960].map(|mss| old.initial_window(mss)), [4, 4, 3, 3, 2, 2]);
    assert_eq!([536, 8960].map(|mss| Profile::linux_3_6().initial_window(mss)), [10, 10]);
}

#[test]
fn each_combination_builds_what_it_names() {
    use Algorithm::{Cubic as C, Reno as R, Rfc9438 as F};
    let current = Exit::HyStart(HyStartRules::linux_current());
    let build = |algorithm, exit| Profile::linux_current().with_algorithm(algorithm).with_exit(exit).build();
    assert!(matches!(build(R, Exit::None), Builtin::Reno(_)));
    assert!(matches!(build(R, current), Builtin::RenoHyStart(_)));
    assert!(matches!(build(R, Exit::HyStartPlusPlus), Builtin::RenoHyStartPlusPlus(_)));
    assert!(matches!(build(C, Exit::None), Builtin::Cubic(_)));
    assert!(matches!(build(C, current), Builtin::Cubic(_)));
    assert!(matches!(build(C, Exit::HyStartPlusPlus), Builtin::CubicHyStartPlusPlus(_)));
    assert!(matches!(build(F, Exit::None), Builtin::Rfc9438(_)));
    assert!(matches!(build(F, current), Builtin::Rfc9438HyStart(_)));
    assert!(matches!(build(F, Exit::HyStartPlusPlus), Builtin::Rfc9438HyStartPlusPlus(_)));
    for exit in [Exit::None, Exit::HyStartPlusPlus, Exit::HyStart(HyStartRules::linux_2_6_29())] {
        assert!(matches!(Profile::linux_2_6_35().with_exit(exit).build(), Builtin::CubicLegacy(_)));
    }
    let names =
        [build(R, current), build(C, current), build(F, current), Profile::linux_2_6_35().build()].map(|it| it.name());
    assert_eq!(names, ["reno", "cubic", "cubic-rfc9438", "cubic"]);
}

#[test]
fn delays_are_in_the_unit_of_the_era() {
    let unit = |profile: Profile| match profile.build() {
        Builtin::Cubic(it) => it.delay_min().unit,
        Builtin::CubicLegacy(it) => it.delay_min().unit,
        Builtin::Rfc9438HyStartPlusPlus(it) => it.delay_min().unit,
        other => panic!("{other:?}"),
    };
    let expected = [DelayUnit::Jiffies8; 3].into_iter().chain([DelayUnit::Millis8; 3]).chain([DelayUnit::Micros; 4]);
    assert!(Profile::all().map(unit).into_iter().eq(expected));
    assert_eq!(unit(Profile::linux_2_6_35().with_exit(Exit::None)), DelayUnit::Jiffies8);
    assert_eq!(unit(Profile::linux_current().with_exit(Exit::None)), DelayUnit::Micros);
}

#[test]
fn an_early_window_counts_acks_and_reno_follows() {
    let mut state = SendState::new(10, 1448);
    let reno = Profile::linux_2_6_35().with_algorithm(Algorithm::Reno).with_exit(Exit::None);
    reno.prepare(&mut state);
    assert_eq!((state.limited_rule, state.clock), (LimitedRule::InFlight, Clock::default()));
    let Builtin::Reno(it) = reno.build() else { panic!() };
    assert_eq!(it.window, Reno { per_ack: true, undo: UndoRule::TwiceSsthresh });
    let Builtin::Reno(it) = Profile::linux_current().with_algorithm(Algorithm::Reno).with_exit(Exit::None).build()
    else {
        panic!()
    };
    assert_eq!(it.window, Reno { per_ack: false, undo: UndoRule::PriorCwnd });
}

/// The sample that would end slow start by delay, and the train that would, each alone.
#[test]
fn hystart_detect_and_low_window_reach_the_detectors() {
    let exits = |detect: &str, low_window: &str, delays: bool| {
        let mut profile = with("hystart_detect", detect).unwrap();
        profile.set("hystart_low_window", low_window).unwrap();
        let (mut ops, mut s) = (profile.build(), SendState::new(100, 1448));
        ops.init(&mut s, Instant::from_secs(1));
        s.snd_nxt = 1 << 20;
        for index in 0..30_u64 {
            // A rise of 20 ms, 3 ms apart; or a train of 1 ms gaps at 20 ms.
            let (gap, rtt_us) = if delays { (3, if index == 0 { 20_000 } else { 40_000 }) } else { (1, 20_000) };
            let sample = netcore::congestion::AckSample { pkts_acked: 1, rtt_us: Some(rtt_us), in_flight: 0 };
            ops.pkts_acked(&mut s, &sample, Instant::from_millis(1_000 + index * gap));
            // The second sample begins a round.
            s.snd_una = 1;
        }
        s.ssthresh.is_some()
    };
    assert_eq!(["0", "1", "2", "3"].map(|detect| exits(detect, "16", true)), [false, false, true, true]);
    assert_eq!(["0", "1", "2", "3"].map(|detect| exits(detect, "16", false)), [false, true, false, true]);
    assert!(exits("3", "100", true) && !exits("3", "101", true));
}

#[test]
fn the_initial_threshold_counts_only_without_early_exit() {
    for (hystart, expected) in [("1", None), ("0", Some(40))] {
        let mut profile = with("initial_ssthresh", "40").unwrap();
        profile.set("hystart", hystart).unwrap();
        let mut state = SendState::new(10, 1448);
        profile.build().init(&mut state, Instant::from_secs(1));
        assert_eq!(state.ssthresh, expected);
    }
    let mut none = with("hystart", "0").unwrap().build();
    let mut state = SendState::new(10, 1448);
    none.init(&mut state, Instant::from_secs(1));
    assert_eq!(state.ssthresh, None, "0 is no threshold");
}
