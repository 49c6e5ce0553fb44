use super::*;
use crate::rtt::DelayUnit;

const HZ: u32 = 250;

/// The start of tick `jiffies` of a 250 Hz clock.
fn tick(jiffies: u32) -> Instant {
    Instant::from_millis(u64::from(jiffies) * 4)
}

fn state(cwnd: u32) -> SendState {
    SendState::new(cwnd, 1448)
}

fn rtt(us: u32) -> DelayMin {
    DelayMin { unit: DelayUnit::Micros, value: us }
}

fn cubic() -> Cubic {
    Cubic::new(CubicParameters::default(), true)
}

#[test]
fn rtt_samples_are_discarded_for_one_second_after_an_epoch_begins_and_never_without_one() {
    let (mut c, mut s) = (cubic(), state(100));
    assert!(!c.discards_rtt(&s, tick(1)), "no epoch");
    c.avoid(&mut s, 1, &rtt(40_000), tick(1000));
    for (jiffies, discards) in [(1000, true), (1000 + HZ - 1, true), (1000 + HZ, false), (1000 + HZ + 1, false)] {
        assert_eq!(c.discards_rtt(&s, tick(jiffies)), discards, "{jiffies}");
    }
    assert!(!c.ignores_packets());
    c.ssthresh(&s, tick(1001));
    assert!(!c.discards_rtt(&s, tick(1001)), "the reduction ended the epoch");
    assert!(c.ignores_packets());
}

#[test]
fn an_unchanged_window_is_looked_at_again_after_more_than_a_32nd_of_a_second() {
    let (mut c, mut s) = (cubic(), state(1000));
    c.fields.last_max_cwnd = 2000;
    c.avoid(&mut s, 0, &rtt(40_000), tick(1000));
    let first = c.fields;
    assert_eq!((first.last_cwnd, first.last_time, first.epoch_start), (1000, 1000, 1000));
    c.avoid(&mut s, 0, &rtt(40_000), tick(1007));
    assert_eq!(c.fields, first, "250 / 32 = 7 ticks");
    c.avoid(&mut s, 0, &rtt(40_000), tick(1008));
    assert_eq!(c.fields.last_time, 1008);
}

#[test]
fn the_target_lies_one_smallest_rtt_ahead_on_the_curve_around_the_plateau() {
    // After a reduction from 1000 to 700: K = 9.08 s.
    let (mut c, mut s) = (cubic(), state(1000));
    s.cwnd = c.ssthresh(&s, tick(1));
    assert_eq!(s.cwnd, 700);
    let cnt_at = |c: &mut Cubic, jiffies: u32| {
        let mut s = state(700);
        c.fields.last_cwnd = 0;
        c.avoid(&mut s, 0, &rtt(40_000), tick(jiffies));
        c.fields.cnt
    };
    assert_eq!(cnt_at(&mut c, 1000), 700 / 5, "the curve at 40 ms: 1000 - 0.4004 * 9.04^3 = 705");
    assert_eq!((c.fields.k, c.fields.origin_point), (cube_root((1 << 40) / 410 * 300), 1000));
    assert_eq!(cnt_at(&mut c, 1000 + 3 * HZ), 700 / (1000 - 88 - 700), "6.03 s before the plateau: 88 below");
    let mut later = state(1000);
    c.avoid(&mut later, 0, &rtt(40_000), tick(1000 + 12 * HZ));
    assert_eq!(c.fields.cnt, 1000 / 10, "2.97 s past it: 10 above");
    let mut other = cubic();
    other.fields.last_max_cwnd = 700;
    assert_eq!(cnt_at(&mut other, 1000), 70_000, "on the plateau: 100 windows per segment");
    assert_eq!((other.fields.k, other.fields.origin_point), (0, 700), "the maximum is not above the window");
}

#[test]
fn without_a_loss_the_window_grows_by_a_twentieth_per_round_trip_at_least() {
    for (last_max, cnt) in [(0, 20), (1, 100_000)] {
        let (mut c, mut s) = (cubic(), state(1000));
        c.fields.last_max_cwnd = last_max;
        c.avoid(&mut s, 0, &rtt(40_000), tick(1000));
        assert_eq!(c.fields.cnt, cnt);
    }
}

#[test]
fn the_friendly_estimate_grows_by_one_for_each_step_of_packets_and_bounds_the_count() {
    // Step 15/8 of the window: 18 packets at a window of 10.
    let after = |acked: u32| {
        let (mut c, mut s) = (cubic(), state(10));
        c.fields.last_max_cwnd = 10;
        s.cwnd_clamp = 10;
        c.avoid(&mut s, acked, &rtt(10), tick(1000));
        (c.fields.tcp_cwnd, c.fields.ack_cnt, c.fields.cnt)
    };
    assert_eq!(after(18), (10, 18, 1000), "must be more than a step");
    assert_eq!(after(19), (11, 1, 10));
    assert_eq!(after(36), (11, 18, 10));
    assert_eq!(after(37), (12, 1, 5), "10 / (12 - 10)");
    assert_eq!(after(5 * 18 + 1), (15, 1, 2));
    assert_eq!(after(11 * 18 + 1), (21, 1, 2), "10 / 11 = 0: at most one and a half windows per round trip");
    let parameters = CubicParameters { tcp_friendliness: false, ..CubicParameters::default() };
    let (mut c, mut s) = (Cubic::new(parameters, true), state(10));
    c.fields.last_max_cwnd = 10;
    c.avoid(&mut s, 100, &rtt(10), tick(1000));
    assert_eq!((c.fields.tcp_cwnd, c.fields.ack_cnt), (10, 100));
}

#[test]
fn idle_time_moves_the_epoch_but_not_past_now_nor_without_an_epoch() {
    let epoch_after = |shift: bool, epoch_start: u32, sent: u32, now: u32| {
        let (mut c, mut s) = (Cubic::new(CubicParameters::default(), shift), state(100));
        c.fields.epoch_start = epoch_start;
        s.last_sent = tick(sent);
        c.tx_start(&s, tick(now));
        c.fields.epoch_start
    };
    assert_eq!(epoch_after(true, 1000, 2000, 2500), 1500);
    assert_eq!(epoch_after(true, 2200, 2000, 2500), 2500, "not past now");
    assert_eq!(epoch_after(true, 2000, 2000, 2500), 2500);
    assert_eq!(epoch_after(true, 1000, 2500, 2500), 1000, "not idle");
    assert_eq!(epoch_after(true, 1000, 2501, 2500), 1000, "a clock that ran backwards");
    assert_eq!(epoch_after(true, 0, 2000, 2500), 0, "no epoch");
    assert_eq!(epoch_after(false, 1000, 2000, 2500), 1000, "before 4.3");
}

#[test]
fn name_and_remembered_maximum() {
    let mut c = cubic();
    assert_eq!((c.name(), c.w_max()), ("cubic", None));
    c.ssthresh(&state(77), tick(1));
    assert_eq!(c.w_max(), Some(77));
    let mut s = state(50);
    s.prior_cwnd = 77;
    assert_eq!(c.undo_cwnd(&s), 77);
    s.cwnd = 90;
    assert_eq!(c.undo_cwnd(&s), 90);
    assert_eq!(c.min_cwnd(&s), 90);
    s.ssthresh = Some(53);
    assert_eq!(c.min_cwnd(&s), 53);
}
