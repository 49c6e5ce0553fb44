use super::*;
use crate::rtt::DelayUnit;

const RTT: DelayMin = DelayMin { unit: DelayUnit::Micros, value: 40_000 };

fn at(us: u64) -> Instant {
    Instant::from_micros(10_000_000 + us)
}

fn state(cwnd: u32, srtt_us: u32) -> SendState {
    let mut state = SendState::new(cwnd, 1448);
    state.srtt_us8 = srtt_us * 8;
    state
}

/// After a reduction from `w_max` segments: the algorithm and the state it left.
fn reduced(w_max: u32, srtt_us: u32) -> (Rfc9438, SendState) {
    let (mut cubic, mut s) = (Rfc9438::new(), state(w_max, srtt_us));
    s.prior_cwnd = w_max;
    let ssthresh = cubic.ssthresh(&s, at(0));
    (s.cwnd, s.ssthresh) = (ssthresh, Some(ssthresh));
    (cubic, s)
}

fn segments(window: u64) -> f64 {
    window as f64 / ONE as f64
}

#[test]
fn section_4_2_k_and_the_curve_are_exact() {
    assert_eq!(exact_cube_root(26), 2);
    assert_eq!(exact_cube_root(27), 3);
    assert_eq!(exact_cube_root(u128::from(u64::MAX)), 2_642_245);
    assert_eq!(Rfc9438::k_us(70 * ONE, 70 * ONE), 0);
    assert_eq!(Rfc9438::k_us(71 * ONE, 70 * ONE), 1_357_208, "cube root of 2.5 s");
    let w = |t_us| Rfc9438::w_cubic(t_us, 2_000_000, 100 * ONE);
    assert_eq!(w(2_000_000), 100 * ONE);
    assert_eq!(w(0), 100 * ONE - ONE * 16 / 5, "0.4 * 2^3");
    assert_eq!(w(5_000_000), 100 * ONE + ONE * 54 / 5, "0.4 * 3^3");
    assert_eq!(Rfc9438::w_cubic(0, 1 << 40, ONE), 0, "never below zero");
}

#[test]
fn section_4_3_the_estimate_gains_nine_seventeenths_per_window_and_one_from_the_last_maximum_on() {
    let (mut cubic, mut s) = reduced(100, 100_000);
    cubic.avoid(&mut s, 0, &RTT, at(0));
    assert_eq!(segments(cubic.w_est()), 70.0);
    let mut gains = [0.0; 62];
    for (round, gain) in gains.iter_mut().enumerate() {
        let before = cubic.w_est();
        // Others write the window: 100 segments, no fraction.
        s.cwnd = 100;
        cubic.epoch.cwnd = 0;
        cubic.avoid(&mut s, 100, &RTT, at(round as u64 * 1000));
        *gain = segments(cubic.w_est() - before);
    }
    // From 70 to cwnd_prior = 100 in steps of 9/17: 57 of them.
    let (below, above) = gains.split_at(57);
    assert!(below.iter().all(|gain| (gain - 9.0 / 17.0).abs() < 1e-4), "{below:?}");
    assert!(above.iter().all(|gain| (gain - 1.0).abs() < 1e-4), "{above:?}");
}

#[test]
fn section_4_3_in_the_reno_friendly_region_the_window_is_the_estimate() {
    // 10 ms RTT: the estimate overtakes the curve.
    let (mut cubic, mut s) = reduced(20, 10_000);
    let mut now = 0;
    for _ in 0..100 {
        for _ in 0..s.cwnd {
            now += 10_000 / u64::from(s.cwnd);
            cubic.avoid(&mut s, 1, &RTT, at(now));
        }
    }
    assert_eq!(u64::from(s.cwnd), cubic.w_est() >> FRACTION);
    assert_eq!(cubic.window(&s), cubic.w_est());
    assert!(s.cwnd > 60, "{}", s.cwnd);
    assert!(Rfc9438::w_cubic(now, cubic.epoch.k_us, cubic.epoch.w_max) < cubic.w_est());
}

#[test]
fn section_4_4_each_segment_adds_its_share_of_the_way_to_the_target() {
    let (mut cubic, mut s) = reduced(1000, 40_000);
    cubic.avoid(&mut s, 0, &RTT, at(0));
    let k = Rfc9438::k_us(1000 * ONE, 700 * ONE);
    assert_eq!(cubic.epoch.k_us, k);
    let before = cubic.window(&s);
    cubic.avoid(&mut s, 3, &RTT, at(2_000_000));
    let target = Rfc9438::w_cubic(2_040_000, k, 1000 * ONE);
    assert_eq!(cubic.window(&s) - before, (target - 700 * ONE) * 3 / 700);
    assert_eq!((cubic.epoch.cwnd, s.cwnd), (700, 700));
    assert_ne!(cubic.epoch.fraction, 0);
    // Without a smoothed RTT the smallest one looks ahead.
    let (mut other, mut t) = reduced(1000, 0);
    other.avoid(&mut t, 0, &RTT, at(0));
    other.avoid(&mut t, 3, &RTT, at(2_000_000));
    assert_eq!(other.window(&t), cubic.window(&s));
}

#[test]
fn a_window_written_by_others_loses_its_fraction_and_the_clamp_holds() {
    let (mut cubic, mut s) = reduced(1000, 40_000);
    cubic.avoid(&mut s, 1, &RTT, at(0));
    cubic.epoch.fraction = 5;
    assert_eq!(cubic.window(&s), u64::from(s.cwnd) * ONE + 5);
    s.cwnd -= 1;
    assert_eq!(cubic.window(&s), u64::from(s.cwnd) * ONE);
    s.cwnd_clamp = 650;
    cubic.store(&mut s, 700 * ONE + 7);
    assert_eq!((s.cwnd, cubic.epoch.fraction), (650, 0));
    cubic.store(&mut s, 600 * ONE + 7);
    assert_eq!((s.cwnd, cubic.epoch.fraction), (600, 7));
    cubic.store(&mut s, 5);
    assert_eq!((s.cwnd, cubic.epoch.fraction), (1, 0), "never below one segment");
}

#[test]
fn section_4_6_the_reduction_keeps_its_fraction_and_two_segments_at_least() {
    let (cubic, s) = reduced(15, 40_000);
    assert_eq!(s.cwnd, 10);
    assert_eq!(cubic.window(&s), 15 * ONE * 7 / 10, "10.5");
    let (cubic, s) = reduced(2, 40_000);
    assert_eq!(cubic.window(&s), 2 * ONE);
    assert_eq!(reduced(u32::MAX, 40_000).1.cwnd, (u64::from(u32::MAX) * 7 / 10) as u32);
}

#[test]
fn section_4_7_fast_convergence_only_below_the_last_maximum() {
    for (second, w_max) in [(99, 99 * 17 / 20), (100, 100), (101, 101)] {
        let (mut cubic, mut s) = reduced(100, 40_000);
        s.cwnd = second;
        cubic.ssthresh(&s, at(1));
        assert_eq!(cubic.w_max(), Some(w_max), "{second}");
        assert_eq!(cubic.epoch.cwnd_prior, u64::from(second) * ONE);
    }
}

#[test]
fn section_4_8_after_a_timeout_the_plateau_is_where_avoidance_begins() {
    let (mut cubic, mut s) = reduced(1000, 40_000);
    cubic.avoid(&mut s, 1, &RTT, at(0));
    cubic.reset();
    assert_eq!(cubic.epoch_start(), None);
    s.cwnd = 500;
    cubic.avoid(&mut s, 1, &RTT, at(5_000_000));
    assert_eq!((cubic.epoch.k_us, cubic.w_max()), (0, Some(500)));
    assert_eq!(cubic.epoch_start(), Some(at(5_000_000)));
    // Only the first epoch after it.
    s.cwnd = 500;
    let ssthresh = cubic.ssthresh(&s, at(6_000_000));
    s.cwnd = ssthresh;
    cubic.avoid(&mut s, 1, &RTT, at(6_000_000));
    assert_eq!(cubic.w_max(), Some(500));
    assert_ne!(cubic.epoch.k_us, 0);
}

#[test]
fn section_4_9_undo_restores_everything_only_while_the_window_is_below_the_one_before() {
    let (mut cubic, mut s) = reduced(1000, 40_000);
    for step in 0..40 {
        cubic.avoid(&mut s, 7, &RTT, at(step * 50_000));
    }
    let before = cubic.epoch;
    s.prior_cwnd = s.cwnd;
    let window = cubic.window(&s);
    let ssthresh = cubic.ssthresh(&s, at(3_000_000));
    let after = cubic.epoch;
    for cwnd in [s.prior_cwnd, s.prior_cwnd + 1] {
        let mut grown = cubic;
        s.cwnd = cwnd;
        assert_eq!(grown.undo_cwnd(&s), cwnd, "not lowered");
        assert_eq!(grown.epoch, after, "and nothing restored");
    }
    s.cwnd = ssthresh;
    s.cwnd = cubic.undo_cwnd(&s);
    assert_eq!((s.cwnd, cubic.epoch), (s.prior_cwnd, before));
    assert_eq!(cubic.window(&s), window);
}

#[test]
fn section_4_10_without_congestion_the_plateau_is_where_avoidance_begins() {
    let (mut cubic, mut s) = (Rfc9438::new(), state(300, 40_000));
    assert_eq!((cubic.w_max(), cubic.name()), (None, "cubic-rfc9438"));
    cubic.avoid(&mut s, 1, &RTT, at(0));
    assert_eq!((cubic.w_max(), cubic.epoch.k_us), (Some(300), 0));
    // A window above the maximum becomes the maximum.
    let (mut cubic, mut s) = reduced(100, 40_000);
    s.cwnd = 150;
    cubic.avoid(&mut s, 0, &RTT, at(0));
    assert_eq!((cubic.w_max(), cubic.epoch.k_us), (Some(150), 0));
}

/// Fact `idle_excluded`: epoch from 10 s, an ACK at 16 s finds the window not to be the limit, one at 25 s does.
#[test]
fn section_4_2_limited_time_moves_the_epoch() {
    let (mut cubic, mut s) = reduced(1000, 40_000);
    cubic.avoid(&mut s, 0, &RTT, at(0));
    cubic.not_limited(&s, at(6_000_000));
    assert_eq!(cubic.epoch_start(), Some(at(6_000_000)), "moves by 6 s");
    cubic.avoid(&mut s, 1, &RTT, at(15_000_000));
    assert_eq!(cubic.epoch_start(), Some(at(6_000_000)), "t at 25 s is 9 s");
    let target = Rfc9438::w_cubic(9_040_000, cubic.epoch.k_us, 1000 * ONE);
    assert_eq!(cubic.window(&s), 700 * ONE + (target - 700 * ONE) / 700);
    // Before the first ACK of avoidance there is nothing to move.
    let mut fresh = Rfc9438::new();
    fresh.not_limited(&s, at(0));
    assert_eq!(fresh.epoch_start(), None);
}

#[test]
fn idleness_counts_from_the_moment_nothing_was_in_flight_and_gaps_between_trains_do_not() {
    for (pause_us, moved_us) in [(39_999, 0), (40_000, 0), (40_001, 40_001), (60_000_000, 60_000_000)] {
        let (mut cubic, mut s) = reduced(1000, 40_000);
        cubic.avoid(&mut s, 1, &RTT, at(1_000_000));
        s.last_sent = at(960_000);
        cubic.tx_start(&s, at(1_000_000 + pause_us));
        assert_eq!(cubic.epoch_start(), Some(at(1_000_000 + moved_us)), "{pause_us}");
        cubic.tx_start(&s, at(1_000_000 + pause_us));
        assert_eq!(cubic.epoch_start(), Some(at(1_000_000 + moved_us)), "the same pause once");
    }
    // No ACK known: what was sent last was acknowledged an RTT later.
    let (mut cubic, mut s) = reduced(1000, 40_000);
    cubic.avoid(&mut s, 1, &RTT, at(0));
    cubic.last_ack = None;
    s.last_sent = at(100_000);
    cubic.tx_start(&s, at(180_000));
    assert_eq!(cubic.epoch_start(), Some(at(0)));
    cubic.tx_start(&s, at(180_001));
    assert_eq!(cubic.epoch_start(), Some(at(40_001)));
}
