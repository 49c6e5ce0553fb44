//! Loss, reordering and what is done about them, rule by rule.

mod common;

use common::{Fate, Pair};
use netcore::congestion::CaState;
use netcore_tcp::profile::Detection;
use netcore_tcp::{Config, ConnectionError, Counters, Profile, State};
use std::time::Duration;

const MBIT: u64 = 1_000_000;

/// Loses the client's frames with these numbers (0 is the SYN, 1 the ACK of the handshake).
fn losing(pair: &mut Pair, lost: &'static [u64]) {
    pair.judge =
        Box::new(move |from_client, n, _| if from_client && lost.contains(&n) { Fate::Drop } else { Fate::Deliver });
}

/// Every retransmission has one cause.
fn identities(c: &Counters) {
    let causes = c.fast_retrans + c.forward_retrans + c.slow_start_retrans + c.syn_retrans;
    assert!(
        c.retrans_segs >= causes && c.retrans_segs <= causes + c.loss_probes,
        "retransmitted {} = fast {} + forward {} + slow start {} + SYN {} + probes up to {}",
        c.retrans_segs,
        c.fast_retrans,
        c.forward_retrans,
        c.slow_start_retrans,
        c.syn_retrans,
        c.loss_probes
    );
}

#[test]
fn one_lost_segment_is_repaired_by_one_fast_retransmission_in_every_era() {
    for profile in Profile::all() {
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        losing(&mut pair, &[20]);
        assert_eq!(pair.run(300_000, Duration::from_secs(5)), 300_000);
        let c = pair.client.counters();
        assert_eq!((c.retrans_segs, c.fast_retrans, c.timeouts), (1, 1, 0), "{}: {c:?}", profile.name);
        assert_eq!((c.sack_recovery, c.full_undo, c.dsack_recv), (1, 0, 0), "{}", profile.name);
        assert_eq!(pair.client.info().ca_state, CaState::Open, "{}", profile.name);
        identities(&c);
    }
}

#[test]
fn the_window_goes_down_once_for_all_losses_of_a_round_trip() {
    for profile in Profile::all() {
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        losing(&mut pair, &[60, 64, 70, 75, 76, 77]);
        assert_eq!(pair.run(1_000_000, Duration::from_secs(10)), 1_000_000);
        let c = pair.client.counters();
        assert_eq!((c.retrans_segs, c.timeouts), (6, 0), "{}: {c:?}", profile.name);
        assert_eq!(c.sack_recovery, 1, "{}", profile.name);
        identities(&c);
    }
}

#[test]
fn a_tail_loss_is_repaired_by_a_probe_where_there_are_probes_and_by_a_timeout_before() {
    // 14,480 bytes are ten segments; the last is lost. The first of them acknowledges the handshake.
    for (profile, probes) in
        [(Profile::linux_current(), true), (Profile::linux_4_3(), true), (Profile::linux_2_6_35(), false)]
    {
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        losing(&mut pair, &[10]);
        assert_eq!(pair.run(14_480, Duration::from_secs(10)), 14_480, "{}", profile.name);
        let c = pair.client.counters();
        assert_eq!(c.loss_probes > 0, probes, "{}: {c:?}", profile.name);
        assert_eq!(c.timeouts > 0, !probes, "{}: {c:?}", profile.name);
        if probes {
            // Whether the probe repaired a loss is told by the next acknowledgement beyond it.
            pair.client.write_virtual(1000);
            pair.run(0, Duration::from_secs(1));
            let c = pair.client.counters();
            assert_eq!(c.loss_probe_recovery + c.sack_recovery, 1, "{}: {c:?}", profile.name);
        }
        identities(&c);
    }
}

#[test]
fn timeouts_double_and_the_connection_ends_after_fifteen() {
    let mut profile = Profile::linux_current();
    profile.tail_loss_probe = false;
    let mut pair = Pair::profile(profile);
    pair.run(1000, Duration::from_secs(1));
    pair.judge = Box::new(|_, _, _| Fate::Drop);
    let mut times = Vec::new();
    let begin = pair.now;
    pair.client.write_virtual(1000);
    let end = begin + Duration::from_secs(3000);
    let mut seen = 0;
    while pair.step(end) {
        let timeouts = pair.client.counters().timeouts;
        if timeouts > seen {
            seen = timeouts;
            times.push(pair.now.duration_since(begin).as_millis());
        }
        if pair.client.state() == State::Closed {
            break;
        }
    }
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).take(7).all(|g| g[1].abs_diff(2 * g[0]) <= 2), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 120_000), "{gaps:?}");
    assert!(matches!(pair.client.error(), Some(ConnectionError::TimedOut { .. })), "{:?}", pair.client.error());
    // RFC 1122 section 4.2.3.5: at least 100 s; with Linux's defaults 924.6 s after the first timeout's base of 200 ms.
    let total = pair.now.duration_since(begin).as_secs();
    assert!((800..1300).contains(&total), "{total} s");
}

/// Delays every `every`th data frame by `ns`.
fn delaying(pair: &mut Pair, every: u64, ns: u64) {
    pair.judge =
        Box::new(
            move |from_client, n, _| {
                if from_client && n > 20 && n.is_multiple_of(every) { Fate::Delay(ns) } else { Fate::Deliver }
            },
        );
}

#[test]
fn reordering_below_the_threshold_retransmits_nothing_and_above_it_does() {
    for (threshold, spurious) in [(3, true), (12, false)] {
        let mut profile = Profile::linux_2_6_35();
        profile.reordering = threshold;
        profile.save_metrics = false;
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        // A late frame is overtaken by six others: 6 × 123 µs.
        delaying(&mut pair, 50, 780_000);
        assert_eq!(pair.run(1_000_000, Duration::from_secs(20)), 1_000_000);
        let c = pair.client.counters();
        assert_eq!(c.retrans_segs > 0, spurious, "threshold {threshold}: {c:?}");
        if spurious {
            assert!(c.fack_reorder <= 1, "FACK goes off at the first sight of reordering: {c:?}");
            assert!(pair.client.info().reordering > 3);
        }
        identities(&c);
    }
}

#[test]
fn a_learned_reordering_degree_is_a_metric_of_the_route() {
    let mut pair = Pair::profile(Profile::linux_2_6_35()).rate(100 * MBIT);
    delaying(&mut pair, 50, 780_000);
    pair.run(1_000_000, Duration::from_secs(20));
    let learned = pair.client.reordering_metric();
    assert!(learned.is_some_and(|degree| degree > 3), "{learned:?}");
    let mut config = Config::new(Profile::linux_2_6_35());
    config.reordering_metric = learned;
    let mut pair = Pair::new(config, Config::new(Profile::linux_2_6_35())).rate(100 * MBIT);
    delaying(&mut pair, 50, 780_000);
    pair.run(1_000_000, Duration::from_secs(20));
    let c = pair.client.counters();
    assert_eq!((c.retrans_segs, c.fack_reorder), (0, 0), "{c:?}");
    let mut forgetful = Profile::linux_2_6_35();
    forgetful.save_metrics = false;
    let mut pair = Pair::profile(forgetful).rate(100 * MBIT);
    delaying(&mut pair, 50, 780_000);
    pair.run(1_000_000, Duration::from_secs(20));
    assert_eq!(pair.client.reordering_metric(), None);
}

#[test]
fn rack_tolerates_a_quarter_of_the_rtt_once_reordering_was_seen() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100 * MBIT);
    // RTT 20 ms: 0.8 ms of lateness is well below 5 ms.
    delaying(&mut pair, 50, 780_000);
    assert_eq!(pair.run(3_000_000, Duration::from_secs(20)), 3_000_000);
    let c = pair.client.counters();
    assert!(c.sack_reorder + c.ts_reorder > 0 && c.retrans_segs <= 2, "{c:?}");
}

#[test]
fn fack_is_more_fragile_than_plain_sack() {
    let run = |detection| {
        let mut profile = Profile::linux_2_6_35();
        profile.detection = detection;
        profile.max_reordering = 3;
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        delaying(&mut pair, 50, 500_000);
        pair.run(1_000_000, Duration::from_secs(20));
        pair.client.counters().retrans_segs
    };
    assert!(run(Detection::Fack) >= run(Detection::Sack));
}

#[test]
fn timestamps_prove_a_retransmission_needless_and_the_window_is_restored() {
    for profile in [Profile::linux_2_6_35(), Profile::linux_4_3()] {
        let mut profile = profile;
        profile.timestamp_hz = 1000;
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        // Late by more than the threshold, but not by a round trip.
        pair.judge =
            Box::new(|from_client, n, _| if from_client && n == 60 { Fate::Delay(4_000_000) } else { Fate::Deliver });
        assert_eq!(pair.run(1_000_000, Duration::from_secs(20)), 1_000_000);
        let c = pair.client.counters();
        assert!(c.retrans_segs >= 1, "{}: {c:?}", profile.name);
        assert!(c.full_undo + c.partial_undo + c.dsack_undo >= 1, "{}: {c:?}", profile.name);
        assert_eq!(pair.server.counters().dsack_old_sent, pair.server.counters().delayed_ack_lost);
    }
}

#[test]
fn without_timestamps_dsacks_prove_it() {
    let mut profile = Profile::linux_current();
    profile.timestamps = false;
    let mut pair = Pair::profile(profile).rate(100 * MBIT);
    pair.judge =
        Box::new(|from_client, n, _| if from_client && n == 60 { Fate::Delay(9_000_000) } else { Fate::Deliver });
    assert_eq!(pair.run(1_000_000, Duration::from_secs(20)), 1_000_000);
    let c = pair.client.counters();
    assert!(c.retrans_segs >= 1 && c.dsack_recv >= 1 && c.dsack_undo >= 1, "{c:?}");
}

#[test]
fn a_needless_timeout_is_recognised_by_frto() {
    let mut profile = Profile::linux_current();
    profile.tail_loss_probe = false;
    profile.timestamps = false;
    let mut pair = Pair::profile(profile).rate(100 * MBIT);
    // The path stalls for 400 ms: nothing is lost.
    pair.judge =
        Box::new(|from_client, n, _| if from_client && n >= 100 { Fate::Delay(400_000_000) } else { Fate::Deliver });
    let got = pair.run(2_000_000, Duration::from_secs(30));
    let c = pair.client.counters();
    assert_eq!(got, 2_000_000);
    assert!(c.timeouts >= 1 && c.spurious_rtos >= 1, "{c:?}");
}

#[test]
fn duplicated_frames_are_reported_once_each_and_harm_nothing() {
    for profile in Profile::all() {
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        pair.judge =
            Box::new(|from_client, n, _| if from_client && n % 10 == 5 { Fate::Duplicate } else { Fate::Deliver });
        assert_eq!(pair.run(500_000, Duration::from_secs(10)), 500_000);
        let (c, s) = (pair.client.counters(), pair.server.counters());
        assert_eq!(c.retrans_segs, 0, "{}: {c:?}", profile.name);
        assert!(s.dsack_old_sent > 20, "{}: {s:?}", profile.name);
        assert_eq!(s.dsack_old_sent, s.delayed_ack_lost, "{}", profile.name);
        assert_eq!(c.dsack_recv, s.dsack_old_sent, "{}", profile.name);
    }
}

#[test]
fn proportional_rate_reduction_ends_at_the_threshold_and_rate_halving_not_above_it() {
    for profile in [Profile::linux_current(), Profile::linux_2_6_35()] {
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        losing(&mut pair, &[150]);
        let end = pair.now + Duration::from_secs(20);
        pair.client.write_virtual(1);
        let mut entered = None;
        while pair.step(end) {
            let room = pair.client.writable();
            pair.client.write_virtual(room.min(65_536));
            let info = pair.client.info();
            match (entered, info.ca_state) {
                (None, CaState::Recovery) => entered = info.ssthresh,
                (Some(ssthresh), CaState::Open) => {
                    assert!(info.cwnd <= ssthresh + 2, "{}: {} > {ssthresh}", profile.name, info.cwnd);
                    if !profile.moderate_cwnd {
                        assert!(info.cwnd >= ssthresh, "{}: {} < {ssthresh}", profile.name, info.cwnd);
                    }
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(pair.client.counters().sack_recovery, 1, "{}", profile.name);
    }
}

#[test]
fn newreno_repairs_several_losses_without_sack() {
    for profile in Profile::all() {
        let mut profile = profile;
        profile.sack = false;
        let mut pair = Pair::profile(profile).rate(100 * MBIT);
        losing(&mut pair, &[60, 63]);
        assert_eq!(pair.run(500_000, Duration::from_secs(30)), 500_000, "{}", profile.name);
        let c = pair.client.counters();
        assert!(c.reno_recovery >= 1 && c.sack_recovery == 0, "{}: {c:?}", profile.name);
    }
}

#[test]
fn a_congestion_mark_reduces_once_and_retransmits_nothing() {
    let mut profile = Profile::linux_current();
    profile.ecn = true;
    let mut pair = Pair::profile(profile).rate(100 * MBIT);
    pair.mark = Box::new(|from_client, n| from_client && n == 100);
    assert_eq!(pair.run(1_000_000, Duration::from_secs(10)), 1_000_000);
    let (c, s) = (pair.client.counters(), pair.server.counters());
    assert!(pair.client.info().ecn);
    assert_eq!((s.in_ce_pkts, c.retrans_segs), (1, 0));
    assert!(pair.client.info().ssthresh.is_some(), "the window was reduced");
}
