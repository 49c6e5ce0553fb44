//! The shortcut for ACKs that change nothing but counts has the effect of the whole way, and is taken often.

use super::*;
use crate::profile::{Exit, Profile};
use crate::window::{Cubic, Reno};
use crate::{Builtin, HyStart, UntilLoss};
use alloc::vec;
use netcore::congestion::PacingStatus;
use proptest::prelude::*;

/// Runs one ACK both ways; tells whether the shortcut was taken.
fn both<S, W>(ops: &mut Classic<S, W>, state: &mut SendState, event: &AckEvent, now: Instant) -> bool
where
    S: SlowStart + Copy + PartialEq + core::fmt::Debug,
    W: WindowAdjustment + Copy + PartialEq + core::fmt::Debug,
{
    let before = (*ops, *state);
    let (mut whole, mut whole_state) = before;
    whole.whole_ack(&mut whole_state, event, now);
    let quick = ops.quick_ack(state, event, now);
    let expected = if quick { (whole, whole_state) } else { before };
    assert_eq!((&*ops, &*state), (&expected.0, &expected.1), "quick {quick}, before {before:?}, {event:?} at {now}");
    if !quick {
        ops.whole_ack(state, event, now);
    }
    quick
}

fn both_ways(ops: &mut Builtin, state: &mut SendState, event: &AckEvent, now: Instant) -> bool {
    match ops {
        Builtin::Cubic(it) => both(it, state, event, now),
        Builtin::Reno(it) => both(it, state, event, now),
        Builtin::RenoHyStart(it) => both(it, state, event, now),
        Builtin::Rfc9438HyStart(it) => both(it, state, event, now),
        Builtin::CubicHyStartPlusPlus(it) => both(it, state, event, now),
        Builtin::CubicLegacy(it) => both(it, state, event, now),
        Builtin::Rfc9438(it) => both(it, state, event, now),
        Builtin::RenoHyStartPlusPlus(it) => both(it, state, event, now),
        Builtin::Rfc9438HyStartPlusPlus(it) => both(it, state, event, now),
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// `count` ACKs `gap_ns` apart.
    Acks {
        count: u32,
        acked: u32,
        rtt_us: Option<u32>,
        gap_ns: u64,
        advance: u32,
        may_raise: bool,
        limited: bool,
    },
    Reduce(CaState),
    Undo,
    Idle(u64),
    Clock(u32),
    Clamp(u32),
    Pacing {
        bytes_per_sec: u64,
        fq: bool,
    },
    Window {
        cwnd: u32,
        cwnd_cnt: u32,
        ssthresh: Option<u32>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let gap = prop_oneof![3 => 0_u64..3_000, 4 => 0_u64..3_000_000, 1 => 1_990_000_u64..2_010_000, 1 => any::<u64>()];
    let rtt = prop_oneof![
        8 => (20_000_u32..20_040).prop_map(Some),
        2 => (19_000_u32..30_000).prop_map(Some),
        1 => Just(None),
        1 => any::<u32>().prop_map(Some),
    ];
    let acked = prop_oneof![8 => 1_u32..3, 1 => Just(0), 1 => 0_u32..100, 1 => any::<u32>()];
    let window = prop_oneof![6 => 1_u32..400, 1 => any::<u32>(), 1 => Just(0)];
    let other = prop_oneof![4 => 1_u32..400, 1 => any::<u32>()];
    prop_oneof![
        40 => (1_u32..60, acked, rtt, gap, prop_oneof![Just(1448_u32), Just(0), any::<u32>()], prop::bool::weighted(0.95), prop::bool::weighted(0.95))
            .prop_map(|(count, acked, rtt_us, gap_ns, advance, may_raise, limited)| {
                Step::Acks { count, acked, rtt_us, gap_ns, advance, may_raise, limited }
            }),
        2 => prop::sample::select(vec![CaState::Recovery, CaState::Loss, CaState::Cwr]).prop_map(Step::Reduce),
        1 => Just(Step::Undo),
        1 => (0_u64..1 << 36).prop_map(Step::Idle),
        1 => any::<u32>().prop_map(Step::Clock),
        1 => other.clone().prop_map(Step::Clamp),
        1 => (any::<u64>(), any::<bool>()).prop_map(|(bytes_per_sec, fq)| Step::Pacing { bytes_per_sec, fq }),
        2 => (window, 0_u32..300, prop::option::of(other))
            .prop_map(|(cwnd, cwnd_cnt, ssthresh)| Step::Window { cwnd, cwnd_cnt, ssthresh }),
    ]
}

fn profile() -> impl Strategy<Value = Profile> {
    let current = Profile::linux_current();
    let mut all = Profile::all().to_vec();
    all.extend([current; 10]);
    for (name, value) in
        [("tcp_friendliness", "0"), ("hystart", "0"), ("hystart_detect", "1"), ("hystart_low_window", "0")]
    {
        let mut profile = current;
        profile.set(name, value).unwrap();
        all.push(profile);
    }
    let mut wide = current;
    wide.set("hystart_ack_delta_us", "4294967295").unwrap();
    all.push(wide);
    all.push(current.with_exit(Exit::HyStartPlusPlus));
    all.push(current.with_exit(Exit::HyStartPlusPlus).with_algorithm(crate::Algorithm::Reno));
    all.push(current.with_algorithm(crate::Algorithm::Reno));
    all.push(current.with_algorithm(crate::Algorithm::Reno).with_exit(Exit::None));
    (prop::sample::select(all), prop::sample::select(vec![250_u32, 1000, 100, 300, 1200, 1]))
        .prop_map(|(profile, hz)| profile.with_hz(hz).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_shortcut_has_the_effect_of_the_whole_way(profile in profile(), steps in prop::collection::vec(step(), 1..60)) {
        let mut s = SendState::new(30, 1448);
        profile.prepare(&mut s);
        s.clock.jiffies_at_zero = 1000;
        let mut ops = profile.build();
        let mut now = Instant::from_secs(1);
        ops.init(&mut s, now);
        for step in steps {
            match step {
                Step::Acks { count, acked, rtt_us, gap_ns, advance, may_raise, limited } => {
                    s.is_cwnd_limited = limited;
                    let sample = AckSample { pkts_acked: acked, rtt_us, in_flight: 0 };
                    for _ in 0..count {
                        now = now.plus_nanos(gap_ns);
                        s.snd_una = s.snd_una.wrapping_add(advance);
                        s.snd_nxt = s.snd_una.wrapping_add(1448 * 200);
                        both_ways(&mut ops, &mut s, &AckEvent { sample, acked, may_raise, ..AckEvent::default() }, now);
                    }
                }
                Step::Reduce(new) => {
                    s.prior_cwnd = s.cwnd;
                    s.ssthresh = Some(ops.ssthresh(&mut s, now));
                    ops.set_state(&mut s, new, now);
                    s.cwnd = if new == CaState::Loss { 1 } else { s.ssthresh_or_max() };
                }
                Step::Undo => {
                    s.cwnd = ops.undo_cwnd(&mut s, now);
                    s.ssthresh = s.prior_ssthresh.flatten();
                }
                Step::Idle(ns) => {
                    s.last_sent = now;
                    now = now.plus_nanos(ns);
                    ops.cwnd_event(&mut s, CwndEvent::TxStart, now);
                }
                Step::Clock(jiffies) => s.clock.jiffies_at_zero = jiffies,
                Step::Clamp(clamp) => s.cwnd_clamp = clamp,
                Step::Pacing { bytes_per_sec, fq } => {
                    s.pacing_rate = Some(Rate::from_bytes_per_sec(bytes_per_sec));
                    s.pacing_status = if fq { PacingStatus::Fq } else { PacingStatus::None };
                }
                Step::Window { cwnd, cwnd_cnt, ssthresh } => (s.cwnd, s.cwnd_cnt, s.ssthresh) = (cwnd, cwnd_cnt, ssthresh),
            }
        }
    }
}

/// Share of the ACKs of a bulk flow that take the shortcut, percent: in slow start, and in avoidance after it.
fn shares(profile: &Profile) -> (u32, u32) {
    let mut s = SendState::new(10, 1448);
    profile.prepare(&mut s);
    s.is_cwnd_limited = true;
    s.clock.jiffies_at_zero = 1000;
    let mut ops = profile.build();
    let mut now = Instant::from_secs(1);
    ops.init(&mut s, now);
    let mut share = |acks: u32, ops: &mut Builtin, s: &mut SendState| {
        let quick = (0..acks).filter(|_| {
            now = now.plus_nanos(11_580);
            s.snd_una = s.snd_una.wrapping_add(1448);
            s.snd_nxt = s.snd_una.wrapping_add(s.cwnd.wrapping_mul(1448));
            let sample = AckSample { pkts_acked: 1, rtt_us: Some(80_000), in_flight: 0 };
            both_ways(ops, s, &AckEvent { sample, acked: 1, may_raise: true, ..AckEvent::default() }, now)
        });
        quick.count() as u32 * 100 / acks
    };
    let slow = share(2_000, &mut ops, &mut s);
    s.ssthresh = Some(ops.ssthresh(&mut s, Instant::from_secs(2)));
    s.cwnd = s.ssthresh_or_max();
    (slow, share(200_000, &mut ops, &mut s))
}

#[test]
fn nine_acks_of_ten_take_the_shortcut() {
    let (slow, avoidance) = shares(&Profile::linux_current());
    assert!(slow >= 90 && avoidance >= 90, "{slow} {avoidance}");
    let (slow, avoidance) = shares(&Profile::linux_current().with_hz(1000).unwrap());
    assert!(slow >= 90 && avoidance >= 90, "{slow} {avoidance}");
    let mut off = Profile::linux_current();
    off.set("hystart", "0").unwrap();
    assert!(shares(&off).0 >= 90);
    let reno = Profile::linux_current().with_algorithm(crate::Algorithm::Reno);
    assert!(shares(&reno).0 >= 90 && shares(&reno.with_exit(Exit::None)).0 >= 90);
}

#[test]
fn no_shortcut_where_delays_are_coarse_or_acks_are_counted() {
    for profile in [Profile::linux_2_6_35(), Profile::linux_3_6(), Profile::linux_4_0()] {
        assert_eq!(shares(&profile), (0, 0), "{}", profile.name);
    }
    let cubic = || Cubic::new(crate::CubicParameters::default(), true);
    let quick = |unit, growth| Classic::new(UntilLoss, cubic(), unit, growth).quick;
    assert!(quick(DelayUnit::Micros, Growth::PerPacket));
    assert!(!quick(DelayUnit::Millis8, Growth::PerPacket));
    assert!(!quick(DelayUnit::Micros, Growth::PerPacketInclusive));
    let hystart = HyStart::new(crate::HyStartRules::linux_current());
    assert!(Classic::new(hystart, Reno::default(), DelayUnit::Micros, Growth::PerPacket).quick);
}

#[test]
fn an_initial_threshold_is_ignored_by_every_early_exit_and_reno_remembers_no_maximum() {
    fn threshold<S: SlowStart>(slow_start: S) -> Option<u32> {
        let ops = Classic::new(slow_start, Reno::default(), DelayUnit::Micros, Growth::PerPacket);
        let (mut ops, mut s) = (ops.with_initial_ssthresh(40), SendState::new(10, 1448));
        ops.init(&mut s, Instant::from_secs(1));
        assert_eq!(ops.info(&s).w_max, None);
        s.ssthresh
    }
    assert_eq!(threshold(UntilLoss), Some(40));
    assert_eq!(threshold(crate::HyStartPlusPlus::new()), None);
    assert_eq!(threshold(HyStart::new(crate::HyStartRules::linux_current())), None);
}
