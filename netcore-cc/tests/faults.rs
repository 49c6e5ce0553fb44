//! Faults that others had in congestion control, each with the case that would show it here. Tests carry the list's identifiers.
//!
//! | fault | test |
//! | --- | --- |
//! | B07: fast convergence lowers the window too | `facts.rs`, `fc_neqo_and_fault_b07_window_is_reduced_once` |
//! | B09: idle time counted, or gaps between trains | `fault_b09_a_pause_is_not_time_in_the_epoch`, `fault_b09_gaps_between_trains_hold_nothing_back` |
//! | B11: growth counted twice | `fault_b11_growth_is_counted_once`, `fault_b11_credit_in_avoidance_is_used_once` |
//! | B13: RTT of zero | `fault_b13_zero_rtt`, `fault_b13_zero_is_no_baseline` |
//!
//! Below them faults that Linux itself had or has.

mod common;

use common::{ack, ms, state};
use netcore::congestion::{CaState, CongestionOps, CwndEvent};
use netcore::{Instant, SendState};
use netcore_cc::profile::Exit;
use netcore_cc::slow_start::{Growth, HyStartPlusPlus, SlowStart};
use netcore_cc::window::{Cubic, CubicParameters, WindowAdjustment};
use netcore_cc::{Algorithm, DelayMin, DelayUnit, Profile};

/// B09: a pause is not time in the epoch, in Linux by the event, in RFC mode also by ACKs that find the window not the limit.
#[test]
fn fault_b09_a_pause_is_not_time_in_the_epoch() {
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

/// B09: trains of packets with gaps of less than an RTT grow the window as one stream does.
#[test]
fn fault_b09_gaps_between_trains_hold_nothing_back() {
    let grown = |trains: bool| {
        let mut ops = Profile::rfc9438().build();
        let mut s = state(100, None);
        ops.init(&mut s, ms(0));
        s.srtt_us8 = 320_000;
        let ssthresh = ops.ssthresh(&mut s, ms(0));
        (s.ssthresh, s.cwnd) = (Some(ssthresh), ssthresh);
        for round in 0..50_u64 {
            for index in 0..u64::from(s.cwnd) {
                ops.on_ack(&mut s, &ack(40_000, 1), Instant::from_micros(10_000_000 + round * 40_000 + index * 200));
            }
            // In the last third of the round nothing is in flight.
            if trains {
                s.last_sent = ms(round * 40);
                ops.cwnd_event(&mut s, CwndEvent::TxStart, ms(round * 40 + 39));
            }
        }
        s.cwnd
    };
    assert_eq!(grown(true), grown(false));
    assert!(grown(true) > 90);
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

/// B11: in avoidance one ACK of 20 segments counts as 20 ACKs of one, and what made the window grow is gone.
#[test]
fn fault_b11_credit_in_avoidance_is_used_once() {
    for algorithm in [Algorithm::Cubic, Algorithm::Rfc9438] {
        let profile = Profile::linux_current().with_algorithm(algorithm).with_exit(Exit::None);
        let window = |acks: &[u32]| {
            let mut ops = profile.build();
            let mut s = state(1000, Some(10));
            s.srtt_us8 = 320_000;
            ops.init(&mut s, ms(0));
            let ssthresh = ops.ssthresh(&mut s, ms(0));
            (s.ssthresh, s.cwnd) = (Some(ssthresh), ssthresh);
            ops.on_ack(&mut s, &ack(40_000, 1), ms(1));
            for acked in acks.iter().cycle().take(acks.len() * 50) {
                ops.on_ack(&mut s, &ack(40_000, *acked), ms(3_000));
            }
            s.cwnd
        };
        let (many, few) = (window(&[1; 20]), window(&[20]));
        assert!(few.abs_diff(many) <= 1 && few > 700, "{algorithm:?}: {few} {many}");
        // 1000 segments acknowledged: at most half of that in growth.
        assert!(few <= 1200);
    }
    let mut s = state(10, Some(5));
    for (cwnd, credit) in [(12, 0), (13, 8), (15, 2)] {
        let w = s.cwnd;
        netcore_cc::window::cong_avoid_ai(&mut s, w, 20);
        assert_eq!((s.cwnd, s.cwnd_cnt), (cwnd, credit));
    }
}

/// B13: after samples of 0 a sample of 50 us is no rise.
#[test]
fn fault_b13_zero_is_no_baseline() {
    let mut ops = Profile::linux_current().build();
    let mut s = state(100, None);
    ops.init(&mut s, ms(0));
    s.snd_nxt = 1 << 30;
    for (index, rtt_us) in [0; 20].into_iter().chain([50; 20]).enumerate() {
        // 3 ms apart: no train.
        ops.on_ack(&mut s, &ack(rtt_us, 1), ms(3 * index as u64 + 3));
    }
    assert_eq!((s.cwnd, s.ssthresh), (140, None));
    assert_eq!(ops.info(&s).min_rtt_us, Some(1));
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
