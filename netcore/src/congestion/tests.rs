use super::*;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Notes the calls it gets.
#[derive(Default)]
struct Recorder(Vec<&'static str>);

impl CongestionOps for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }
    fn init(&mut self, _: &mut SendState, _: Instant) {
        self.0.push("init");
    }
    fn ssthresh(&mut self, state: &mut SendState, _: Instant) -> u32 {
        state.cwnd / 2
    }
    fn cong_avoid(&mut self, _: &mut SendState, _: u32, _: Instant) {
        self.0.push("cong_avoid");
    }
    fn undo_cwnd(&mut self, state: &mut SendState, _: Instant) -> u32 {
        state.prior_cwnd
    }
    fn in_ack_event(&mut self, _: &mut SendState, _: AckFlags, _: Instant) {
        self.0.push("in_ack_event");
    }
    fn pkts_acked(&mut self, _: &mut SendState, _: &AckSample, _: Instant) {
        self.0.push("pkts_acked");
    }
}

#[test]
fn the_trait_is_object_safe_and_send() {
    fn is_send<T: Send + ?Sized>(_: &T) {}
    let boxed: Box<dyn CongestionOps> = Box::new(Recorder::default());
    is_send(&*boxed);
    assert_eq!(boxed.name(), "recorder");
    assert_eq!(boxed.min_tso_segs(&SendState::default()), 2);
    assert_eq!(boxed.sndbuf_expand(&SendState::default()), 2);
    assert_eq!(boxed.min_cwnd(&SendState { ssthresh: Some(5), ..SendState::default() }), 5);
}

#[test]
fn an_ack_makes_the_kernels_calls_in_its_order() {
    let (mut ops, mut state) = (Recorder::default(), SendState::default());
    ops.on_ack(&mut state, &AckEvent { may_raise: true, ..AckEvent::default() }, Instant::ZERO);
    assert_eq!(ops.0, ["pkts_acked", "in_ack_event", "cong_avoid"]);
    ops.0.clear();
    ops.on_ack(&mut state, &AckEvent::default(), Instant::ZERO);
    assert_eq!(ops.0, ["pkts_acked", "in_ack_event"]);
}

#[test]
fn pacing_is_twice_the_window_in_slow_start_and_1_2_times_after() {
    // 10 segments of 1448 bytes in 40185.06 us, from a kernel trace.
    let mut state = SendState { srtt_us8: 321_480, ..SendState::default() };
    assert_eq!(default_pacing_rate(&state), Some(Rate::from_bytes_per_sec(720_666)));
    state.ssthresh = Some(21);
    assert_eq!(default_pacing_rate(&state), Some(Rate::from_bytes_per_sec(432_400)), "10 is not below 21 / 2");
    state.ssthresh = Some(22);
    assert_eq!(default_pacing_rate(&state), Some(Rate::from_bytes_per_sec(720_666)));
    state.packets_out = 20;
    assert_eq!(default_pacing_rate(&state), Some(Rate::from_bytes_per_sec(1_441_333)), "packets_out above cwnd");
    state.max_pacing_rate = Some(Rate::from_bytes_per_sec(1000));
    assert_eq!(default_pacing_rate(&state), state.max_pacing_rate);
    state.srtt_us8 = 0;
    assert_eq!(default_pacing_rate(&state), state.max_pacing_rate);
    state.max_pacing_rate = None;
    assert_eq!(default_pacing_rate(&state), None);
}

#[test]
fn a_burst_is_about_a_millisecond_within_two_segments_and_one_super_packet() {
    let ops = Recorder::default();
    let mut state = SendState { srtt_us8: 321_480, ..SendState::default() };
    assert_eq!(ops.send_quantum(&state), 2 * 1448, "720666 B/s is 703 bytes per ms");
    state.cwnd = 100;
    assert_eq!(ops.send_quantum(&state), (7_206_669 / 1024) as u32);
    state.cwnd = 100_000;
    assert_eq!(ops.send_quantum(&state), 65_536);
    state.srtt_us8 = 0;
    assert_eq!(ops.send_quantum(&state), 65_536);
    state.gso_max_size = 0;
    assert_eq!(ops.send_quantum(&state), 2 * 1448);
}

#[test]
fn linux_numbers_name_states_and_events() {
    for (number, state) in
        [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss].into_iter().enumerate()
    {
        assert_eq!(CaState::from_linux(number as u32), Some(state));
    }
    assert_eq!(CaState::from_linux(5), None);
    let events = [
        CwndEvent::TxStart,
        CwndEvent::CwndRestart,
        CwndEvent::CompleteCwr,
        CwndEvent::Loss,
        CwndEvent::EcnNoCe,
        CwndEvent::EcnIsCe,
    ];
    for (number, event) in events.into_iter().enumerate() {
        assert_eq!(CwndEvent::from_linux(number as u32), Some(event));
    }
    assert_eq!(CwndEvent::from_linux(6), None);
}
