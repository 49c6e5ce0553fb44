//! The synthetic path, by hand: 1000-byte packets at one per ms, 10 ms of delay, room for 3 packets.

use netcore::congestion::{AckEvent, CaState, CongestionOps, SendState};
use netcore::{Instant, Rate};
use netcore_cc::SyntheticPath;
use netcore_cc::path::Run;

/// A window that stays as it is, and notes what it is told: ms, packets acknowledged, RTT in ms, whether the window was the
/// limit, packets in flight before.
#[derive(Default)]
struct Fixed {
    acks: Vec<(u64, u32, u32, bool, u32)>,
    states: Vec<(u64, CaState)>,
    srtt_us8: Vec<u32>,
}

impl CongestionOps for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn init(&mut self, _: &mut SendState, _: Instant) {}
    fn ssthresh(&mut self, _: &mut SendState, _: Instant) -> u32 {
        2
    }
    fn cong_avoid(&mut self, _: &mut SendState, _: u32, _: Instant) {}
    fn undo_cwnd(&mut self, state: &mut SendState, _: Instant) -> u32 {
        state.cwnd
    }
    fn set_state(&mut self, _: &mut SendState, new: CaState, now: Instant) {
        self.states.push((now.as_millis(), new));
    }
    fn on_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) {
        let rtt_ms = event.sample.rtt_us.unwrap() / 1000;
        assert_eq!(event.acked, event.sample.pkts_acked);
        assert_eq!(event.may_raise, state.ca_state == CaState::Open);
        assert_eq!(u64::from(state.snd_una), (state.delivered + state.lost) * 1000);
        self.acks.push((now.as_millis(), event.acked, rtt_ms, state.is_cwnd_limited, state.prior_in_flight));
        self.srtt_us8.push(state.srtt_us8);
    }
}

fn run(cwnd: u32, packets_per_ack: u32, duration_ms: u64, packets: u64) -> (Fixed, SendState, Run) {
    let path = SyntheticPath {
        rate: Rate::from_bytes_per_sec(1_000_000),
        rtt_us: 10_000,
        queue: 3,
        mss: 1000,
        packets_per_ack,
        start: Instant::ZERO,
    };
    assert_eq!(path.bdp(), 10);
    let (mut ops, mut state) = (Fixed::default(), SendState::new(cwnd, 1000));
    let run = path.run(&mut ops, &mut state, duration_ms * 1000, packets);
    (ops, state, run)
}

#[test]
fn a_window_of_one_sends_once_per_round_trip() {
    let (ops, state, run) = run(1, 1, 100, 1_000);
    let expected: Vec<_> = (1..=9).map(|round| (round * 11, 1, 11, true, 1)).collect();
    assert_eq!(ops.acks, expected);
    assert_eq!((run.delivered, run.lost, run.reductions, run.exit_cwnd), (9, 0, 0, None));
    assert_eq!((state.snd_una, state.snd_nxt, state.last_sent), (9_000, 10_000, Instant::from_millis(99)));
    assert_eq!((state.packets_out, state.max_packets_out), (1, 1));
    assert_eq!(run.points.len(), 1, "nothing changed after the first");
    assert!(ops.srtt_us8.iter().all(|it| *it == 88_000));
    assert_eq!(state.srtt_us8, 88_000);
}

#[test]
fn packets_leave_one_after_the_other_and_the_rtt_contains_the_wait() {
    let (ops, state, run) = run(4, 1, 16, 1_000);
    assert_eq!(ops.acks, [(11, 1, 11, true, 4), (12, 1, 12, true, 4), (13, 1, 13, true, 4), (14, 1, 14, true, 4)]);
    assert_eq!(run.lost, 0, "three wait, and there is room for three");
    assert_eq!(ops.srtt_us8, [88_000, 89_000, 90_875, 93_516], "seven eighths and the new one");
    assert_eq!((state.packets_out, run.delivered), (4, 4));
}

#[test]
fn an_ack_waits_for_the_next_packet_of_a_train_only() {
    let (ops, _, _) = run(4, 2, 14, 1_000);
    assert_eq!(ops.acks, [(12, 2, 12, true, 4), (14, 2, 14, true, 4)]);
    // One packet in flight: nothing to wait for.
    assert_eq!(run(1, 2, 30, 1_000).0.acks, [(11, 1, 11, true, 1), (22, 1, 11, true, 1)]);
    // 0 is taken as 1.
    assert_eq!(run(1, 0, 30, 1_000).0.acks.len(), 2);
}

#[test]
fn what_finds_no_room_is_lost_and_noticed_when_its_ack_is_due_once_per_episode() {
    let (ops, state, run) = run(6, 1, 40, 7);
    // Packets 5 and 6 find 4 waiting; their ACKs would have come at 14 ms. The seventh was sent at 11 ms.
    let expected = [
        (11, 1, 11, true, 6),
        (12, 1, 12, true, 6),
        (13, 1, 13, false, 5),
        (14, 1, 14, false, 4),
        (22, 1, 11, false, 1),
    ];
    assert_eq!(ops.acks[..2], expected[..2]);
    assert_eq!(ops.acks.len(), 5);
    assert_eq!((run.delivered, run.lost, run.reductions), (5, 2, 1));
    assert_eq!((run.exit_cwnd, run.exit_by_loss), (Some(6), true));
    assert_eq!(ops.states, [(14, CaState::Recovery), (22, CaState::Open)]);
    assert_eq!((state.cwnd, state.ssthresh, state.prior_cwnd, state.lost), (2, Some(2), 6, 2));
    assert_eq!(state.pacing_rate, ops.pacing_rate(&state));
    let points: Vec<_> = run.points.iter().map(|it| (it.t_us / 1000, it.cwnd, it.ssthresh)).collect();
    assert_eq!(points, [(11, 6, None), (14, 2, Some(2))]);
}

#[test]
fn the_number_of_packets_ends_a_run() {
    let (ops, state, run) = run(3, 1, 10_000, 5);
    assert_eq!((run.delivered, state.snd_nxt, state.packets_out), (5, 5_000, 0));
    let limited: Vec<_> = ops.acks.iter().map(|it| it.3).collect();
    assert_eq!(limited, [true, true, true, false, false]);
}

/// A rate-based algorithm in small: window and pacing from the delivery rate of [`CongestionOps::cong_control`].
mod rate_based {
    use super::*;
    use netcore::congestion::{AckFlags, CongestionInfo, RateSample};

    #[derive(Default)]
    struct Rated {
        best: Option<Rate>,
        min_rtt_us: u64,
    }

    impl CongestionOps for Rated {
        fn name(&self) -> &'static str {
            "rated"
        }
        fn init(&mut self, state: &mut SendState, _: Instant) {
            state.ssthresh = None;
        }
        fn ssthresh(&mut self, state: &mut SendState, _: Instant) -> u32 {
            state.cwnd
        }
        fn cong_avoid(&mut self, _: &mut SendState, _: u32, _: Instant) {
            unreachable!("cong_control decides");
        }
        fn undo_cwnd(&mut self, state: &mut SendState, _: Instant) -> u32 {
            state.cwnd
        }
        fn cong_control(&mut self, state: &mut SendState, _: AckFlags, sample: &RateSample, _: Instant) -> bool {
            if let (Some(delivered), Some(us @ 1..), Some(rtt_us)) =
                (sample.delivered, sample.interval_us, sample.rtt_us)
            {
                let rate = Rate::from_bytes_per_sec(u64::from(delivered) * u64::from(state.mss) * 1_000_000 / us);
                if !sample.is_app_limited || Some(rate) > self.best {
                    self.best = self.best.max(Some(rate));
                }
                self.min_rtt_us = if self.min_rtt_us == 0 { rtt_us.into() } else { self.min_rtt_us.min(rtt_us.into()) };
                let bdp =
                    rate.bytes_per_sec().max(self.best.map_or(0, Rate::bytes_per_sec)) * self.min_rtt_us / 1_000_000;
                state.cwnd = (2 * bdp / u64::from(state.mss)).clamp(4, 1 << 20) as u32;
            }
            true
        }
        fn min_tso_segs(&self, _: &SendState) -> u32 {
            1
        }
        fn pacing_rate(&self, _: &SendState) -> Option<Rate> {
            self.best
        }
        fn info(&self, _: &SendState) -> CongestionInfo {
            let mut info = CongestionInfo::default();
            (info.bandwidth, info.pacing_gain) = (self.best, Some(256));
            info
        }
    }

    #[test]
    fn an_algorithm_that_lives_on_rate_samples_fits_the_trait() {
        let mut ops: Box<dyn CongestionOps> = Box::new(Rated::default());
        let mut state = SendState::new(10, 1000);
        ops.init(&mut state, Instant::ZERO);
        assert_eq!(ops.pacing_rate(&state), None);
        assert_eq!(ops.send_quantum(&state), 65_536, "not paced: one super-packet");
        // 10 packets per 10 ms, then 40 per 10 ms, then again 10: the window follows the best.
        for (delivered, cwnd) in [(10, 20), (40, 80), (10, 80)] {
            let sample = RateSample {
                delivered: Some(delivered),
                interval_us: Some(10_000),
                rtt_us: Some(10_000),
                acked_sacked: delivered,
                ..RateSample::default()
            };
            assert!(ops.cong_control(&mut state, AckFlags::empty(), &sample, Instant::from_millis(10)));
            assert_eq!(state.cwnd, cwnd);
        }
        // A sample that could not be taken changes nothing.
        assert!(ops.cong_control(&mut state, AckFlags::empty(), &RateSample::default(), Instant::from_millis(20)));
        assert_eq!(state.cwnd, 80);
        assert_eq!(ops.pacing_rate(&state), Some(Rate::from_bytes_per_sec(4_000_000)));
        assert_eq!(ops.send_quantum(&state), 4_000_000 / 1024);
        assert_eq!(ops.info(&state).bandwidth, ops.pacing_rate(&state));
        assert_eq!(ops.ssthresh(&mut state, Instant::from_millis(30)), 80, "loss is no signal");
    }
}
