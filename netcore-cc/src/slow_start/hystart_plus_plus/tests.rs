use super::*;
use crate::rtt::DelayUnit;

const RTT: DelayMin = DelayMin { unit: DelayUnit::Micros, value: 40_000 };

fn state(ssthresh: Option<u32>) -> SendState {
    let mut state = SendState::new(20, 1448);
    state.ssthresh = ssthresh;
    state.snd_nxt = 1_000;
    state
}

/// Reset at the start of a connection.
fn started() -> (HyStartPlusPlus, SendState) {
    let (mut plus, s) = (HyStartPlusPlus::new(), state(None));
    plus.reset(&s, Instant::ZERO);
    (plus, s)
}

/// A round of `samples` samples of `delay_us`; its first ACK passes the end of the round before.
fn round(plus: &mut HyStartPlusPlus, s: &mut SendState, samples: u32, delay_us: u32) {
    s.snd_una = s.snd_nxt.wrapping_add(1);
    s.snd_nxt = s.snd_una.wrapping_add(100_000);
    for _ in 0..samples {
        plus.rtt_sample(s, delay_us, &RTT, Instant::ZERO);
    }
}

#[test]
fn the_rise_asked_for_is_an_eighth_of_the_last_rounds_minimum_within_4_and_16_ms() {
    let cases = [(40_000, 44_999, false), (40_000, 45_000, true), (16_000, 19_999, false), (16_000, 20_000, true)];
    for (last, now, conservative) in cases.into_iter().chain([(400_000, 415_999, false), (400_000, 416_000, true)]) {
        let (mut plus, mut s) = started();
        round(&mut plus, &mut s, 8, last);
        assert!(!plus.is_conservative(), "no round to compare with");
        round(&mut plus, &mut s, 8, now);
        assert_eq!(plus.is_conservative(), conservative, "{last} then {now}");
    }
}

#[test]
fn a_round_is_judged_from_its_eighth_sample_on_and_by_its_minimum() {
    let (mut plus, mut s) = started();
    round(&mut plus, &mut s, 8, 40_000);
    round(&mut plus, &mut s, 7, 60_000);
    assert!(!plus.is_conservative());
    plus.rtt_sample(&mut s, 44_000, &RTT, Instant::ZERO);
    assert!(!plus.is_conservative(), "one sample below is the minimum");
    // The round after compares with this one's minimum of 44 ms.
    round(&mut plus, &mut s, 8, 49_499);
    assert!(!plus.is_conservative());
    round(&mut plus, &mut s, 8, 55_686);
    assert!(plus.is_conservative());
}

#[test]
fn a_round_without_samples_is_no_base_to_compare_with() {
    let (mut plus, mut s) = started();
    plus.last_round_min = u32::MAX;
    plus.samples = 8;
    plus.current_round_min = 40_000;
    plus.judge();
    assert_eq!(plus.phase, Phase::SlowStart);
    plus.current_round_min = u32::MAX;
    plus.last_round_min = 40_000;
    plus.judge();
    assert_eq!(plus.phase, Phase::SlowStart);
    round(&mut plus, &mut s, 0, 0);
}

#[test]
fn the_round_ends_when_its_last_byte_is_passed_not_when_it_is_reached() {
    let (mut plus, mut s) = started();
    s.snd_nxt = 9_000;
    s.snd_una = 1_000;
    plus.rtt_sample(&mut s, 40_000, &RTT, Instant::ZERO);
    assert_eq!((plus.window_end, plus.samples), (1_000, 1), "everything up to 1000 acknowledged: the round's end");
    s.snd_una = 1_001;
    plus.rtt_sample(&mut s, 41_000, &RTT, Instant::ZERO);
    assert_eq!((plus.window_end, plus.samples, plus.last_round_min), (9_000, 1, 40_000));
}

#[test]
fn conservative_slow_start_returns_only_below_its_baseline_and_ends_after_five_rounds() {
    let enter = || {
        let (mut plus, mut s) = started();
        round(&mut plus, &mut s, 8, 40_000);
        round(&mut plus, &mut s, 8, 60_000);
        assert_eq!(plus.phase, Phase::Conservative { baseline_us: 60_000, rounds: 0 });
        (plus, s)
    };
    let (mut plus, mut s) = enter();
    round(&mut plus, &mut s, 8, 60_000);
    assert!(plus.is_conservative(), "equal is not below");
    round(&mut plus, &mut s, 7, 59_999);
    assert!(plus.is_conservative(), "seven samples do not count");
    round(&mut plus, &mut s, 8, 59_999);
    assert_eq!(plus.phase, Phase::SlowStart);
    let (mut plus, mut s) = enter();
    for rounds in 1..5 {
        round(&mut plus, &mut s, 8, 60_000);
        assert_eq!(plus.phase, Phase::Conservative { baseline_us: 60_000, rounds });
    }
    assert_eq!((s.ssthresh, plus.counters), (None, HystartCounters::default()));
    s.cwnd = 77;
    round(&mut plus, &mut s, 8, 60_000);
    assert_eq!((s.ssthresh, plus.phase), (Some(77), Phase::Done));
    assert_eq!((plus.counters.delay_detect, plus.counters.delay_cwnd), (1, 77));
    let done = plus;
    round(&mut plus, &mut s, 8, 10_000);
    assert_eq!(plus, done, "nothing after the end");
}

#[test]
fn only_the_initial_slow_start_is_watched_and_counters_outlive_a_timeout() {
    let (mut plus, _) = started();
    plus.counters.delay_detect = 3;
    plus.window_end = 5;
    plus.reset(&state(Some(10)), Instant::ZERO);
    assert_eq!(
        (plus.phase, plus.saved, plus.window_end, plus.counters.delay_detect),
        (Phase::Done, Phase::Done, 1_000, 3)
    );
    plus.reset(&state(None), Instant::ZERO);
    assert_eq!((plus.phase, plus.saved), (Phase::SlowStart, Phase::SlowStart));
    assert_eq!(HyStartPlusPlus::default(), HyStartPlusPlus::new());
}

#[test]
fn congestion_ends_it_and_undo_takes_that_back() {
    let (mut plus, mut s) = started();
    round(&mut plus, &mut s, 8, 40_000);
    round(&mut plus, &mut s, 8, 60_000);
    let before = plus.phase;
    plus.congestion();
    assert_eq!(plus.phase, Phase::Done);
    plus.undo();
    assert_eq!(plus.phase, before);
}

#[test]
fn growth_counts_eight_segments_per_ack_at_most_unless_paced() {
    for (pacing, grown) in [(PacingStatus::None, 8), (PacingStatus::Needed, 100), (PacingStatus::Fq, 100)] {
        let (mut plus, mut s) = started();
        s.pacing_status = pacing;
        assert_eq!(plus.grow(Growth::PerPacket, &mut s, 100), 0);
        assert_eq!(s.cwnd, 20 + grown);
        // After the end growth is ordinary, and so is what is left over.
        plus.congestion();
        (s.cwnd, s.ssthresh) = (20, Some(50));
        assert_eq!(plus.grow(Growth::PerPacket, &mut s, 100), 70);
    }
}
