//! What holds for every algorithm, whatever happens to it.

use netcore::congestion::{AckEvent, AckSample, CaState, CongestionOps, CwndEvent, PacketInfo, SendState};
use netcore::{Instant, Rate};
use netcore_cc::profile::Exit;
use netcore_cc::{Algorithm, Builtin, Profile};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Ack { acked: u32, rtt_us: Option<u32>, limited: bool, after_us: u64 },
    Loss,
    Timeout,
    Undo,
    Idle { us: u64 },
    PacingRate(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let rtt = prop_oneof![Just(None), Just(Some(0)), Just(Some(u32::MAX)), (1_u32..500_000).prop_map(Some),];
    prop_oneof![
        20 => (prop_oneof![1_u32..4, Just(0), Just(u32::MAX)], rtt, any::<bool>(), 0_u64..100_000)
            .prop_map(|(acked, rtt_us, limited, after_us)| Step::Ack { acked, rtt_us, limited, after_us }),
        2 => Just(Step::Loss),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
        1 => (0_u64..315_360_000_000_000).prop_map(|us| Step::Idle { us }),
        1 => any::<u64>().prop_map(Step::PacingRate),
    ]
}

fn profile() -> impl Strategy<Value = Profile> {
    let exits = [None, Some(Exit::None), Some(Exit::HyStartPlusPlus)];
    let algorithms = [Algorithm::Reno, Algorithm::Cubic, Algorithm::Rfc9438];
    (
        prop::sample::select(Profile::all().to_vec()),
        prop::sample::select(exits.to_vec()),
        prop::sample::select(algorithms.to_vec()),
        1_u32..=1200,
        any::<bool>(),
    )
        .prop_map(|(profile, exit, algorithm, hz, keep)| {
            let exit = exit.unwrap_or(profile.exit);
            let profile = profile.with_exit(exit).with_hz(hz).unwrap();
            if keep { profile } else { profile.with_algorithm(algorithm) }
        })
}

fn apply(ops: &mut Builtin, s: &mut SendState, now: &mut Instant, step: &Step) {
    match *step {
        Step::Ack { acked, rtt_us, limited, after_us } => {
            *now = now.plus_nanos(after_us * 1000);
            s.snd_una = s.snd_una.wrapping_add(1448);
            s.snd_nxt = s.snd_una.wrapping_add(1448 * 50);
            s.is_cwnd_limited = limited;
            s.prior_in_flight = if limited { s.cwnd } else { 0 };
            s.max_packets_out = if limited { s.cwnd } else { 0 };
            let sample = AckSample { pkts_acked: acked, rtt_us, in_flight: 0 };
            let before = s.cwnd;
            let limit = s.cwnd_limited();
            ops.on_ack(s, &AckEvent { sample, acked, may_raise: true, ..AckEvent::default() }, *now);
            assert!(s.cwnd >= before, "an ACK never shrinks the window");
            if !limit {
                assert_eq!(s.cwnd, before, "no growth without being limited");
            }
        }
        Step::Loss | Step::Timeout => {
            let new = if matches!(step, Step::Loss) { CaState::Recovery } else { CaState::Loss };
            s.prior_cwnd = s.cwnd;
            let ssthresh = ops.ssthresh(s, *now);
            assert!(ssthresh >= 2 && (ssthresh <= s.cwnd || s.cwnd < 2), "a reduction reduces");
            assert!(u64::from(ssthresh) * 2 + 2 >= u64::from(s.cwnd), "and once only");
            ops.set_state(s, new, *now);
            s.ssthresh = Some(ssthresh);
            s.cwnd = if new == CaState::Loss { 1 } else { ssthresh };
            s.cwnd_cnt = 0;
            ops.set_state(s, CaState::Open, *now);
        }
        Step::Undo => {
            let restored = ops.undo_cwnd(s, *now);
            assert!(restored >= s.cwnd, "undo never lowers");
        }
        Step::Idle { us } => {
            s.last_sent = *now;
            *now = now.plus_nanos(us * 1000);
            let before = s.cwnd;
            ops.cwnd_event(s, CwndEvent::TxStart, *now);
            assert_eq!(s.cwnd, before);
        }
        Step::PacingRate(bytes) => s.pacing_rate = Some(Rate::from_bytes_per_sec(bytes)),
    }
    assert!(s.cwnd >= 1 && s.cwnd <= s.cwnd_clamp);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_window_lives_through_anything(profile in profile(), jiffies: u32, start_us in 0_u64..(1 << 50),
                                         steps in prop::collection::vec(step(), 1..200)) {
        let mut s = SendState::new(10, 1448);
        profile.prepare(&mut s);
        s.clock.jiffies_at_zero = jiffies;
        let mut ops = profile.build();
        let mut now = Instant::from_micros(start_us);
        ops.init(&mut s, now);
        for step in &steps {
            apply(&mut ops, &mut s, &mut now, step);
        }
    }

    #[test]
    fn ten_years_of_acks_do_not_overflow(profile in profile(), gap_us in 1_u64..=157_788_000_000) {
        let mut s = SendState::new(10, 1448);
        profile.prepare(&mut s);
        let mut ops = profile.build();
        let mut now = Instant::from_secs(1);
        ops.init(&mut s, now);
        s.ssthresh = Some(2);
        s.is_cwnd_limited = true;
        for _ in 0..2_000 {
            now = now.plus_nanos(gap_us * 1000);
            s.prior_in_flight = s.cwnd;
            let sample = AckSample { pkts_acked: 1, rtt_us: Some(1000), in_flight: 0 };
            let before = s.cwnd;
            ops.on_ack(&mut s, &AckEvent { sample, acked: 1, may_raise: true, ..AckEvent::default() }, now);
            prop_assert!(s.cwnd >= 1 && s.cwnd - before <= 1, "one segment acknowledged adds at most one");
        }
    }

    /// The reduction is made once, by the caller with what `ssthresh` said; neither further losses nor ACKs of the same
    /// episode move window or threshold, and the remembered maximum is that of the first.
    #[test]
    fn one_reduction_per_episode(profile in profile(), cwnd in 2_u32..100_000, events in prop::collection::vec((any::<bool>(), 0_u64..50_000), 0..100)) {
        let mut s = SendState::new(cwnd, 1448);
        profile.prepare(&mut s);
        let mut ops = profile.build();
        let mut now = Instant::from_secs(1);
        ops.init(&mut s, now);
        s.is_cwnd_limited = true;
        s.prior_cwnd = s.cwnd;
        let ssthresh = ops.ssthresh(&mut s, now);
        ops.set_state(&mut s, CaState::Recovery, now);
        s.ca_state = CaState::Recovery;
        (s.ssthresh, s.cwnd, s.cwnd_cnt) = (Some(ssthresh), ssthresh, 0);
        let after = (s.cwnd, s.ssthresh, s.cwnd_cnt, ops.info(&s).w_max);
        for (lost, us) in events {
            now = now.plus_nanos(us * 1000);
            if lost {
                ops.packet_lost(&mut s, &PacketInfo::default(), now);
            } else {
                let sample = AckSample { pkts_acked: 1, rtt_us: Some(20_000), in_flight: 0 };
                ops.on_ack(&mut s, &AckEvent { sample, acked: 1, may_raise: false, ..AckEvent::default() }, now);
            }
            prop_assert_eq!((s.cwnd, s.ssthresh, s.cwnd_cnt, ops.info(&s).w_max), after);
        }
        prop_assert_eq!(ops.undo_cwnd(&mut s, now).max(1) >= s.cwnd, true);
    }
}
