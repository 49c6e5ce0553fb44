//! HyStart through the years on one synthetic path.

use netcore::{Instant, Rate, SendState};
use netcore_cc::path::Run;
use netcore_cc::{Profile, SyntheticPath};

fn exit(profile: Profile, rtt_us: u64, rate_mbit: u64) -> (u32, Run) {
    let path = SyntheticPath {
        rate: Rate::from_bits_per_sec(rate_mbit * 1_000_000),
        rtt_us,
        queue: 100_000,
        mss: 1448,
        packets_per_ack: 1,
        start: Instant::from_micros(10_001_700),
    };
    let mut state = SendState::new(profile.initial_window(1448), 1448);
    profile.prepare(&mut state);
    let run = path.run(&mut profile.build(), &mut state, 60 * rtt_us.max(1000), 400_000);
    (path.bdp(), run)
}

const HZ: [u32; 3] = [100, 250, 1000];

/// Exit window as a share of the path's capacity, in percent.
fn percent(profile: Profile, hz: u32, rtt_us: u64) -> u64 {
    let (bdp, run) = exit(profile.with_hz(hz).unwrap(), rtt_us, 1000);
    assert!(!run.exit_by_loss);
    u64::from(run.exit_cwnd.expect("slow start ends")) * 100 / u64::from(bdp)
}

#[test]
fn as_first_shipped_a_coarse_clock_ends_slow_start_near_20_packets() {
    for (rtt_us, hz, expected) in [(1_000, 250, 16), (5_000, 100, 24), (5_000, 250, 16), (10_000, 100, 16)] {
        let (bdp, run) = exit(Profile::linux_2_6_35().with_hz(hz).unwrap(), rtt_us, 1000);
        assert_eq!(run.exit_cwnd, Some(expected), "RTT {rtt_us} us, HZ {hz}");
        assert!(expected * 5 < bdp || rtt_us == 1_000);
    }
}

#[test]
fn as_first_shipped_the_exit_depends_on_the_clock_and_later_it_does_not() {
    let exits = |profile: Profile, rtt_us| HZ.map(|hz| percent(profile, hz, rtt_us));
    let first = exits(Profile::linux_2_6_35(), 10_000);
    assert!(first[0] < first[1] && first[1] < first[2], "{first:?}");
    for later in [Profile::linux_3_6(), Profile::linux_4_0(), Profile::linux_5_6(), Profile::linux_current()] {
        for rtt_us in [5_000, 10_000, 20_000, 200_000] {
            let [a, b, c] = exits(later, rtt_us);
            assert!(a == b && b == c, "{} at {rtt_us} us", later.name);
        }
    }
}

#[test]
fn since_the_repairs_slow_start_ends_near_the_capacity_of_the_path() {
    for profile in [Profile::linux_3_6(), Profile::linux_4_0(), Profile::linux_4_3(), Profile::linux_current()] {
        for rtt_us in [5_000, 10_000, 20_000, 40_000, 80_000, 200_000] {
            let share = percent(profile, 250, rtt_us);
            assert!((90..=140).contains(&share), "{} at {rtt_us} us: {share} %", profile.name);
        }
    }
}

#[test]
fn from_5_16_to_6_13_the_rounds_below_16_stretch_the_first_long_one() {
    let (_, long) = exit(Profile::linux_5_16(), 200_000, 1000);
    let (_, now) = exit(Profile::linux_current(), 200_000, 1000);
    assert_ne!(long.exit_cwnd, now.exit_cwnd);
    assert!(percent(Profile::linux_5_16(), 250, 200_000) < 50);
}

#[test]
fn a_millisecond_round_trip_ends_slow_start_early_until_the_6_14_cycle() {
    for profile in [Profile::linux_3_6(), Profile::linux_4_3(), Profile::linux_5_6(), Profile::linux_5_16()] {
        assert!(percent(profile, 250, 1_000) < 40, "{}", profile.name);
    }
    assert!(percent(Profile::linux_current(), 250, 1_000) > 90);
}
