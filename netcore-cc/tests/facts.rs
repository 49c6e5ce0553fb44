//! The 27 numeric facts that other implementations' tests state, each where it binds. Tests carry their identifiers.
//!
//! | fact | test |
//! | --- | --- |
//! | `wcubic_k12`, `west_6s`, `growth_cap_half`, `cubic_reaches_wmax`, `excess_credit_kept` | of that name |
//! | `md_no_fc`, `mvfst_cubic_reduction` | `md_no_fc_and_mvfst_cubic_reduction` |
//! | `fc_neqo` | `fc_neqo_and_fault_b07_window_is_reduced_once` |
//! | `idle_excluded` | of that name; its numbers in `window/rfc9438/tests.rs`, `section_4_2_limited_time_moves_the_epoch` |
//! | `spurious_undo_mvfst`, `no_overflow_10_days`, `min_window_floor` | of that name |
//! | `rto_repeated_holds_ssthresh`, `zero_len_ack_in_recovery` | of that name: the algorithm's part |
//! | `hystart_thresh_clamp`, `hystart_7_samples` | `hystart_thresh_clamp_and_7_samples` |
//! | `hystart_60ms_rounds` | of that name |
//! | `hystart_ack_train`, `hystart_ack_train_gap` | `hystart_ack_train_and_gap` |
//! | `pacing_ratio`, `reno_ss_ns3` | of that name |
//!
//! Not of this crate:
//!
//! | fact | where, and why |
//! | --- | --- |
//! | `mtu_change` | `netcore-adapters`, s2n-quic: a rule of QUIC on windows in bytes; windows are in segments here |
//! | `prr_proportional`, `prr_50_to_25`, `prr_burst_20_13` | `netcore-tcp`: proportional rate reduction is the endpoint's |
//! | `pacer_50pps`, `pacer_10kpps` | `netcore-qdisc`: when packets leave is the pacer's and TSO autosizing's |

mod common;

use common::{ack, ms, state};
use netcore::congestion::{AckEvent, CaState, CongestionOps, default_pacing_rate};
use netcore::{Instant, Rate};
use netcore_cc::profile::Exit;
use netcore_cc::slow_start::{Growth, HyStart, HyStartRules, SlowStart};
use netcore_cc::window::{Cubic, CubicParameters, WindowAdjustment};
use netcore_cc::{Algorithm, Builtin, DelayMin, DelayUnit, Profile, Rfc9438};

const ONE: u64 = 1 << 16;

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

/// `idle_excluded`: epoch from 10 s, an ACK at 16 s finds the window not the limit, one at 25 s does: t is 9 s then.
#[test]
fn idle_excluded() {
    let mut ops = Profile::rfc9438().build();
    let mut s = state(1000, None);
    ops.init(&mut s, ms(0));
    s.srtt_us8 = 320_000;
    let ssthresh = ops.ssthresh(&mut s, ms(0));
    (s.ssthresh, s.cwnd) = (Some(ssthresh), ssthresh);
    for (t_ms, limited) in [(0, true), (6_000, false), (15_000, true)] {
        s.is_cwnd_limited = limited;
        s.max_packets_out = 0;
        ops.on_ack(&mut s, &ack(40_000, 1), ms(t_ms));
    }
    let Builtin::Rfc9438HyStartPlusPlus(rfc) = &ops else { panic!("{ops:?}") };
    assert_eq!(rfc.window.epoch_start(), Some(ms(6_000)), "moved by 6 s");
}

/// `west_6s`: W_max 100, 6 s at an RTT of 0.3 s: 70 + 0.5294 × 20 = 80.588.
#[test]
fn west_6s() {
    let mut rfc = Rfc9438::new();
    let mut s = state(100, None);
    s.cwnd = rfc.ssthresh(&s, ms(0));
    s.srtt_us8 = 2_400_000;
    let rtt = DelayMin { unit: DelayUnit::Micros, value: 300_000 };
    rfc.avoid(&mut s, 0, &rtt, ms(0));
    for round in 0..20_u64 {
        // A window acknowledged per RTT; above the curve, so that it stands and has no fraction.
        s.cwnd = 150;
        let acked = s.cwnd;
        rfc.avoid(&mut s, acked, &rtt, ms(round * 300));
    }
    let w_est = rfc.w_est() as f64 / ONE as f64;
    assert!((w_est - 80.588_235).abs() < 0.001, "{w_est}");
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

/// `zero_len_ack_in_recovery`, the algorithm's part: an ACK without new data changes nothing, in recovery or out of it.
#[test]
fn zero_len_ack_in_recovery() {
    for profile in Profile::all() {
        let mut ops = profile.build();
        let mut s = state(32, None);
        ops.init(&mut s, ms(0));
        let ssthresh = ops.ssthresh(&mut s, ms(0));
        ops.set_state(&mut s, CaState::Recovery, ms(0));
        (s.ssthresh, s.cwnd, s.cwnd_cnt) = (Some(ssthresh), ssthresh, 0);
        let nothing = AckEvent { may_raise: false, ..AckEvent::default() };
        ops.on_ack(&mut s, &nothing, ms(1));
        ops.on_ack(&mut s, &AckEvent { may_raise: profile.legacy.is_none(), ..nothing }, ms(2));
        assert_eq!((s.cwnd, s.ssthresh, s.cwnd_cnt), (ssthresh, Some(ssthresh), 0), "{}", profile.name);
    }
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
