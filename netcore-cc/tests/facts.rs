//! Numeric facts that other implementations' tests state, each where it binds, and faults that others had.
//! The identifiers are those of the fact list; what belongs to a TCP endpoint or a pacer is named at the end.

use netcore::congestion::{AckEvent, AckSample, CaState, CongestionOps, CwndEvent, default_pacing_rate};
use netcore::{Instant, Rate, SendState};
use netcore_cc::profile::Exit;
use netcore_cc::slow_start::{Growth, HyStart, HyStartPlusPlus, HyStartRules, SlowStart};
use netcore_cc::window::{Cubic, CubicParameters, WindowAdjustment};
use netcore_cc::{Algorithm, DelayMin, DelayUnit, Profile, Rfc9438};

const ONE: u64 = 1 << 16;

fn ms(value: u64) -> Instant {
    Instant::from_millis(10_000 + value)
}

fn state(cwnd: u32, ssthresh: Option<u32>) -> SendState {
    let mut state = SendState::new(cwnd, 1448);
    state.ssthresh = ssthresh;
    state.is_cwnd_limited = true;
    state.clock.jiffies_at_zero = 1000;
    state
}

fn ack(rtt_us: u32, acked: u32) -> AckEvent {
    let sample = AckSample { pkts_acked: acked, rtt_us: Some(rtt_us), in_flight: 0 };
    AckEvent { sample, acked, may_raise: true, ..AckEvent::default() }
}

/// `wcubic_k12`: W_max 2304, K 12 s, W(0), W(10), W(15).
#[test]
fn wcubic_k12() {
    let k = Rfc9438::k_us(2304 * ONE, 2304 * ONE * 7 / 10);
    assert!(k.abs_diff(12_000_000) <= 10, "{k}");
    for (t_s, expected) in [(0, 1612.8), (10, 2300.8), (15, 2314.8)] {
        let w = Rfc9438::w_cubic(t_s * 1_000_000, k, 2304 * ONE) as f64 / ONE as f64;
        assert!((w - expected).abs() < 0.001, "W({t_s}) = {w}");
    }
}

/// `md_no_fc`, `mvfst_cubic_reduction`: 0.7 of the window; a new maximum is remembered whole.
#[test]
fn md_no_fc_and_mvfst_cubic_reduction() {
    let mut rfc = Rfc9438::new();
    assert_eq!(rfc.ssthresh(&state(1000, None), ms(0)), 700);
    assert_eq!(rfc.w_max(), Some(1000));
    let mut linux = Cubic::new(CubicParameters::default(), true);
    assert_eq!(linux.ssthresh(&state(1000, None), ms(0)), 700);
    assert_eq!(linux.fields().last_max_cwnd, 1000);
}

/// `fc_neqo` and B07: fast convergence lowers the maximum, not the window.
#[test]
fn fc_neqo_and_fault_b07_window_is_reduced_once() {
    let mut rfc = Rfc9438::new();
    rfc.ssthresh(&state(100, None), ms(0));
    assert_eq!(rfc.ssthresh(&state(10, Some(70)), ms(1)), 7);
    assert_eq!(rfc.w_max(), Some(8), "8.5 segments");
    let mut linux = Cubic::new(CubicParameters::default(), true);
    linux.ssthresh(&state(120, None), ms(0));
    assert_eq!(linux.ssthresh(&state(100, Some(84)), ms(1)), 70, "the fault gives 59");
    assert_eq!(linux.fields().last_max_cwnd, 85);
    let mut rfc = Rfc9438::new();
    rfc.ssthresh(&state(120, None), ms(0));
    assert_eq!(rfc.ssthresh(&state(100, Some(84)), ms(1)), 70);
    assert_eq!(rfc.w_max(), Some(85));
}

/// `growth_cap_half`: at most half a segment per segment acknowledged.
#[test]
fn growth_cap_half() {
    for algorithm in [Algorithm::Cubic, Algorithm::Rfc9438] {
        let profile = Profile::linux_current().with_algorithm(algorithm).with_exit(Exit::None);
        let mut ops = profile.build();
        let mut s = state(3600, Some(1613));
        ops.init(&mut s, ms(0));
        s.ssthresh = Some(1613);
        s.srtt_us8 = 1_600_000;
        ops.on_ack(&mut s, &ack(200_000, 1), ms(0));
        let before = s.cwnd;
        for _ in 0..100 {
            ops.on_ack(&mut s, &ack(200_000, 1), ms(125_800));
        }
        assert!((45..=51).contains(&(s.cwnd - before)), "{algorithm:?}: {}", s.cwnd - before);
    }
}

/// `cubic_reaches_wmax`: from 70 the window is at W_max = 100 after K = 4.217 s and follows the curve before.
#[test]
fn cubic_reaches_wmax() {
    let mut rfc = Rfc9438::new();
    let mut s = state(100, None);
    let ssthresh = rfc.ssthresh(&s, ms(0));
    s.cwnd = ssthresh;
    s.ssthresh = Some(ssthresh);
    s.srtt_us8 = 800_000;
    let rtt = DelayMin { unit: DelayUnit::Micros, value: 100_000 };
    let k = Rfc9438::k_us(100 * ONE, 70 * ONE);
    assert!(k.abs_diff(4_217_163) < 10, "{k}");
    assert!(Rfc9438::k_us(100 * ONE, 10 * ONE).abs_diff(6_082_202) < 10);
    let mut now = 0_u64;
    while now < 4_300_000 {
        let in_round = u64::from(s.cwnd);
        for index in 0..in_round {
            rfc.avoid(&mut s, 1, &rtt, Instant::from_micros(10_000_000 + now + index * 100_000 / in_round));
        }
        now += 100_000;
        let curve = Rfc9438::w_cubic(now, k, 100 * ONE) / ONE;
        assert!(curve.abs_diff(u64::from(s.cwnd)) <= 1, "at {now} us: {} against {curve}", s.cwnd);
    }
    assert!((99..=100).contains(&s.cwnd));
}

/// `idle_excluded` and B09: a pause is not time in the epoch, in Linux by the event, in RFC mode also by limited ACKs.
#[test]
fn idle_excluded_and_fault_b09() {
    for profile in [Profile::linux_current(), Profile::rfc9438(), Profile::linux_4_3()] {
        let mut ops = profile.build();
        let mut s = state(100, None);
        ops.init(&mut s, ms(0));
        s.srtt_us8 = 320_000;
        let ssthresh = ops.ssthresh(&mut s, ms(0));
        (s.ssthresh, s.cwnd, s.cwnd_cnt) = (Some(ssthresh), ssthresh, 0);
        let second = |ops: &mut netcore_cc::Builtin, s: &mut SendState, from: u64| {
            for round in 0..25 {
                for index in 0..u64::from(s.cwnd) {
                    let t = Instant::from_micros(10_000_000 + from * 1000 + round * 40_000 + index * 400);
                    ops.on_ack(s, &ack(40_000, 1), t);
                    s.last_sent = t;
                }
            }
        };
        second(&mut ops, &mut s, 1);
        let before = s.cwnd;
        ops.cwnd_event(&mut s, CwndEvent::TxStart, ms(61_000));
        s.last_sent = ms(61_000);
        for index in 0..10 {
            ops.on_ack(&mut s, &ack(40_000, 1), ms(61_040 + index));
        }
        assert!(s.cwnd <= before + 1, "{}: {before} became {}", profile.name, s.cwnd);
        second(&mut ops, &mut s, 61_100);
        assert!(s.cwnd > before && s.cwnd < 100, "{}: growth goes on, {}", profile.name, s.cwnd);
    }
}

/// `spurious_undo_mvfst`: undo gives window and threshold back, and slow start goes on.
#[test]
fn spurious_undo_mvfst() {
    let mut ops = Profile::linux_current().build();
    let mut s = state(40, None);
    ops.init(&mut s, ms(0));
    (s.prior_cwnd, s.prior_ssthresh) = (s.cwnd, Some(s.ssthresh));
    s.ssthresh = Some(ops.ssthresh(&mut s, ms(1)));
    s.cwnd = 28;
    s.cwnd = ops.undo_cwnd(&mut s, ms(2));
    s.ssthresh = s.prior_ssthresh.take().unwrap();
    assert_eq!((s.cwnd, s.ssthresh), (40, None));
    assert!(s.in_slow_start());
}

/// Undo restores the whole epoch in RFC mode, and in Linux mode if asked to; Linux itself restores the window alone.
#[test]
fn undo_restores_the_epoch_where_it_should() {
    let reduce_and_undo = |restore: bool| {
        let parameters = CubicParameters { restore_epoch_on_undo: restore, ..CubicParameters::default() };
        let mut cubic = Cubic::new(parameters, true);
        let mut s = state(100, Some(50));
        let rtt = DelayMin { unit: DelayUnit::Micros, value: 40_000 };
        cubic.avoid(&mut s, 1, &rtt, ms(0));
        let before = cubic.fields();
        s.prior_cwnd = s.cwnd;
        s.cwnd = cubic.ssthresh(&s, ms(5));
        assert_ne!(cubic.fields(), before);
        assert_eq!(cubic.undo_cwnd(&s), 100);
        cubic.fields() == before
    };
    assert!(reduce_and_undo(true));
    assert!(!reduce_and_undo(false));
}

/// `excess_credit_kept`: credit beyond a step is kept.
#[test]
fn excess_credit_kept() {
    let mut s = state(10, Some(5));
    netcore_cc::window::cong_avoid_ai(&mut s, 10, 13);
    assert_eq!((s.cwnd, s.cwnd_cnt), (11, 3));
}

/// `no_overflow_10_days`.
#[test]
fn no_overflow_10_days() {
    for profile in Profile::all() {
        let mut ops = profile.build();
        let mut s = state(100, None);
        ops.init(&mut s, ms(0));
        s.ssthresh = Some(50);
        ops.on_ack(&mut s, &ack(40_000, 1), ms(0));
        ops.on_ack(&mut s, &ack(40_000, 1), ms(864_000_000));
        assert!((100..=101).contains(&s.cwnd), "{}: {}", profile.name, s.cwnd);
    }
}

/// `min_window_floor`.
#[test]
fn min_window_floor() {
    for profile in Profile::all() {
        let mut s = state(2, Some(2));
        assert_eq!(profile.build().ssthresh(&mut s, ms(0)), 2, "{}", profile.name);
    }
}

/// `rto_repeated_holds_ssthresh`, the algorithm's part: 0.7 of the window at the first timeout.
#[test]
fn rto_repeated_holds_ssthresh() {
    let mut ops = Profile::linux_current().build();
    let mut s = state(32, None);
    assert_eq!(ops.ssthresh(&mut s, ms(0)), 22, "22937 / 1024 bytes");
    s.cwnd = 4;
    assert_eq!(ops.ssthresh(&mut s, ms(0)), 2, "2867 / 1024 bytes");
}

fn hystart(base_ms: u32, samples_ms: &[u32]) -> Option<usize> {
    let mut hystart = HyStart::new(HyStartRules::linux_current());
    let mut s = state(100, None);
    let rtt = DelayMin { unit: DelayUnit::Micros, value: base_ms * 1000 };
    hystart.reset(&s, ms(0));
    s.snd_nxt = 1_000_000;
    for (index, sample) in samples_ms.iter().enumerate() {
        // 3 ms apart: no train.
        hystart.rtt_sample(&mut s, sample * 1000, &rtt, ms(3 + 3 * index as u64));
        if s.ssthresh.is_some() {
            return Some(index + 1);
        }
    }
    None
}

/// `hystart_thresh_clamp`, `hystart_7_samples`: Linux counts eight samples, then judges.
#[test]
fn hystart_thresh_clamp_and_7_samples() {
    for (base, new, triggers) in [(100, 120, true), (100, 105, false), (10, 15, true), (200, 218, true)] {
        assert_eq!(hystart(base, &[new; 9]).is_some(), triggers, "{base} then {new}");
    }
    assert_eq!(hystart(100, &[120; 8]), None);
    assert_eq!(hystart(100, &[120; 9]), Some(9));
    assert_eq!(hystart(100, &[112; 9]), None, "a rise of 12 ms is below an eighth");
    assert_eq!(hystart(100, &[113; 9]), Some(9));
    assert_eq!(hystart(16, &[20; 9]), None, "must exceed 4 ms");
    assert_eq!(hystart(400, &[416; 9]), None, "must exceed 16 ms");
    assert_eq!(hystart(400, &[417; 9]), Some(9));
}

/// `hystart_60ms_rounds`: with one sample more than RFC 9406.
#[test]
fn hystart_60ms_rounds() {
    assert_eq!(hystart(60, &[60, 61, 62, 63, 64, 65, 66, 67]), None);
    assert_eq!(hystart(60, &[71, 72, 73, 74, 75, 76, 77, 70, 70]), Some(9));
}

/// `hystart_ack_train`, `hystart_ack_train_gap`.
#[test]
fn hystart_ack_train_and_gap() {
    let exits = |offsets_ms: &[u64]| {
        let mut hystart = HyStart::new(HyStartRules::linux_current());
        let mut s = state(100, None);
        let rtt = DelayMin { unit: DelayUnit::Micros, value: 4_000 };
        hystart.reset(&s, ms(0));
        s.snd_nxt = 1_000_000;
        let exit = offsets_ms.iter().find(|offset| {
            hystart.rtt_sample(&mut s, 4_000, &rtt, ms(**offset));
            s.ssthresh.is_some()
        });
        (exit.copied(), hystart.fields().last_ack)
    };
    assert_eq!(exits(&[0, 1, 2, 3]).0, Some(3));
    let start = ms(0).as_micros() as u32;
    assert_eq!(exits(&[0, 3]), (None, start));
    assert_eq!(exits(&[0, 2, 5, 6, 7]), (None, start + 2_000), "a gap ends the train for the round");
}

/// `reno_ss_ns3`: seven segments from a window of two, per ACK and per delayed ACK.
#[test]
fn reno_ss_ns3() {
    for acks in [[1; 7].as_slice(), &[2, 2, 2, 1]] {
        let mut s = state(2, None);
        for acked in acks {
            Growth::PerPacket.grow(&mut s, *acked);
        }
        assert_eq!(s.cwnd, 9);
    }
}

/// `pacing_ratio`: Linux's pair.
#[test]
fn pacing_ratio() {
    let rate = |cwnd: u32, ssthresh| {
        let mut s = state(cwnd, ssthresh);
        s.srtt_us8 = 8_000_000;
        default_pacing_rate(&s).unwrap()
    };
    assert_eq!(rate(100, None), Rate::from_bytes_per_sec(289_600));
    assert_eq!(rate(100, Some(100)), Rate::from_bytes_per_sec(173_760));
}

/// B11: slow start adds what was acknowledged, conservative slow start a quarter, and credit is used once.
#[test]
fn fault_b11_growth_is_counted_once() {
    let mut plus = HyStartPlusPlus::new();
    let mut s = state(20, None);
    plus.reset(&s, ms(0));
    plus.grow(Growth::PerPacket, &mut s, 2);
    assert_eq!(s.cwnd, 22);
    // A round of 40 ms, then one of 60 ms.
    let rtt = DelayMin { unit: DelayUnit::Micros, value: 40_000 };
    for (round, delay) in [(1, 40_000), (2, 60_000)] {
        s.snd_una = round * 1_000_000;
        s.snd_nxt = s.snd_una + 999_999;
        for _ in 0..8 {
            assert!(!plus.is_conservative());
            plus.rtt_sample(&mut s, delay, &rtt, ms(0));
        }
    }
    assert!(plus.is_conservative());
    let grown = (0..4).map(|_| {
        plus.grow(Growth::PerPacket, &mut s, 2);
        s.cwnd
    });
    assert_eq!(grown.collect::<Vec<_>>(), [22, 23, 23, 24]);
    assert_eq!(plus.grow(Growth::PerPacket, &mut s, 100), 0);
    assert_eq!(s.cwnd, 26, "at most L = 8 segments count");
    // Five rounds of it end slow start; four and a half do not.
    for round in 3..8 {
        assert!(s.ssthresh.is_none(), "round {round}");
        s.snd_una = round * 1_000_000;
        s.snd_nxt = s.snd_una + 999_999;
        plus.rtt_sample(&mut s, 60_000, &rtt, ms(0));
    }
    assert_eq!(s.ssthresh, Some(26));
    assert_eq!(plus.counters().delay_detect, 1);
}

/// RFC 9406 section 4.2: a round below the baseline returns to slow start.
#[test]
fn hystart_plus_plus_returns_after_a_jittered_round() {
    let mut plus = HyStartPlusPlus::new();
    let mut s = state(20, None);
    plus.reset(&s, ms(0));
    let rtt = DelayMin { unit: DelayUnit::Micros, value: 40_000 };
    for (round, delay, conservative) in [(1, 40_000, false), (2, 45_000, true), (3, 41_000, false)] {
        s.snd_una = round * 1_000_000;
        s.snd_nxt = s.snd_una + 999_999;
        for _ in 0..8 {
            plus.rtt_sample(&mut s, delay, &rtt, ms(0));
        }
        assert_eq!(plus.is_conservative(), conservative, "round {round}");
    }
}

/// B13: RTT samples of 0, then 1 ns, then 0 and 50 us in turn: the window lives and HyStart is not fooled.
#[test]
fn fault_b13_zero_rtt() {
    for profile in Profile::all() {
        let mut ops = profile.build();
        let mut s = state(10, None);
        ops.init(&mut s, ms(0));
        for index in 0..2_000_u32 {
            let rtt_us = if index > 1000 { (index % 2) * 50 } else { 0 };
            s.snd_una = index * 1448;
            s.snd_nxt = s.snd_una + 50 * 1448;
            ops.on_ack(&mut s, &ack(rtt_us, 1), Instant::from_micros(10_000_000 + u64::from(index) * 3_000));
            assert!(s.cwnd >= 2, "{}", profile.name);
        }
        assert!(s.cwnd > 100, "{}: {}", profile.name, s.cwnd);
    }
}

/// 2.6.35 drops every sample while the tick counter's top bit is set, as in the first five minutes of uptime.
#[test]
fn uptime_switches_hystart_off_before_3_12() {
    let min_rtt = |jiffies: u32| {
        let profile = Profile::linux_2_6_35();
        let mut ops = profile.build();
        let mut s = state(20, None);
        ops.init(&mut s, ms(0));
        s.clock.jiffies_at_zero = jiffies;
        ops.pkts_acked(&mut s, &ack(40_000, 1).sample, ms(0));
        ops.info(&s).min_rtt_us
    };
    assert_eq!(min_rtt(300_u32.wrapping_neg().wrapping_mul(250)), None);
    assert_eq!(min_rtt(1000), Some(40_000));
}

/// A timeout forgets the epoch and arms HyStart again.
#[test]
fn a_timeout_forgets_everything() {
    let mut ops = Profile::linux_current().build();
    let mut s = state(100, Some(50));
    ops.init(&mut s, ms(0));
    ops.on_ack(&mut s, &ack(40_000, 1), ms(40));
    ops.ssthresh(&mut s, ms(50));
    assert_eq!(ops.info(&s).w_max, Some(100));
    ops.set_state(&mut s, CaState::Recovery, ms(50));
    assert_eq!(ops.info(&s).w_max, Some(100));
    ops.set_state(&mut s, CaState::Loss, ms(60));
    let info = ops.info(&s);
    assert_eq!((info.w_max, info.min_rtt_us), (None, None));
}
