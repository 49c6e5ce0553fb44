//! The controller for s2n-quic over a path in virtual time: a window's worth of packets per round trip.

use netcore_adapters::s2n::{Controllers, S2nController};
use netcore_cc::Profile;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::path::Config;
use s2n_quic_core::random::testing::Generator;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint, PathInfo, Publisher};
use s2n_quic_core::time::{Clock, Timestamp, testing::Clock as TestClock};
use std::time::Duration;

#[derive(Default)]
struct Exits(Vec<(SlowStartExitCause, u32)>);

impl Publisher for Exits {
    fn on_slow_start_exited(&mut self, cause: SlowStartExitCause, window: u32) {
        self.0.push((cause, window));
    }
    fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: num_rational::Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _: BbrState) {}
}

struct Path {
    controller: S2nController,
    rtt: RttEstimator,
    now: Timestamp,
    exits: Exits,
    random: Generator,
}

const RTT: Duration = Duration::from_millis(50);
const SIZE: usize = 1200;

impl Path {
    fn new() -> Self {
        let now = TestClock::default().get_time();
        let mut rtt = RttEstimator::new(RTT);
        rtt.update_rtt(Duration::ZERO, RTT, now, true, PacketNumberSpace::ApplicationData);
        let controller = S2nController::new(&Profile::linux_current(), SIZE as u16);
        Self { controller, rtt, now, exits: Exits::default(), random: Generator(1) }
    }

    /// Sends a window, then acknowledges it packet by packet, or loses the first packet of it.
    fn round(&mut self, lose: bool) {
        let start = self.now;
        let mut sent = 0;
        while !self.controller.is_congestion_limited() {
            self.controller.on_packet_sent(start, SIZE, Some(false), &self.rtt, &mut self.exits);
            sent += 1;
        }
        self.now = start + RTT;
        for packet in 0..sent {
            self.now += Duration::from_micros(100);
            if packet == 0 && lose {
                self.controller.on_packet_lost(
                    SIZE as u32,
                    (),
                    false,
                    true,
                    &mut self.random,
                    self.now,
                    &mut self.exits,
                );
                continue;
            }
            self.controller.on_rtt_update(start, self.now, &self.rtt, &mut self.exits);
            self.controller.on_ack(start, SIZE, (), &self.rtt, &mut self.random, self.now, &mut self.exits);
        }
        assert_eq!(self.controller.bytes_in_flight(), 0);
    }

    fn window(&self) -> u32 {
        self.controller.congestion_window() / SIZE as u32
    }
}

#[test]
fn slow_start_doubles_a_loss_takes_three_tenths_and_cubic_comes_back() {
    let mut path = Path::new();
    assert_eq!(path.window(), 10);
    path.round(false);
    assert_eq!(path.window(), 20);
    path.round(false);
    assert_eq!(path.window(), 40);
    path.round(true);
    assert_eq!(path.window(), 28, "40 * 717 / 1024");
    assert_eq!(path.exits.0.len(), 1);
    assert!(matches!(path.exits.0[0], (SlowStartExitCause::PacketLoss, window) if window == 28 * SIZE as u32));
    let after = path.window();
    for _ in 0..100 {
        path.round(false);
    }
    assert!(path.window() > 40 && path.window() > after, "{}", path.window());
}

#[test]
fn one_reduction_per_episode_and_persistent_congestion_goes_to_the_minimum() {
    let mut path = Path::new();
    path.round(false);
    path.round(false);
    let start = path.now;
    for _ in 0..40 {
        path.controller.on_packet_sent(start, SIZE, Some(false), &path.rtt, &mut path.exits);
    }
    for _ in 0..5 {
        path.controller.on_packet_lost(SIZE as u32, (), false, false, &mut path.random, start + RTT, &mut path.exits);
    }
    assert_eq!(path.window(), 28);
    assert!(path.controller.requires_fast_retransmission());
    path.controller.on_packet_lost(SIZE as u32, (), true, false, &mut path.random, start + RTT, &mut path.exits);
    assert_eq!(path.window(), 2);
}

#[test]
fn departures_are_paced_and_the_quantum_is_positive() {
    let mut path = Path::new();
    path.round(false);
    let start = path.now;
    for _ in 0..20 {
        path.controller.on_packet_sent(start, SIZE, Some(false), &path.rtt, &mut path.exits);
    }
    let departure = path.controller.earliest_departure_time().unwrap();
    let span = departure.saturating_duration_since(start);
    // Twice the window per round trip in slow start: 20 packets take half of one, give or take a burst.
    assert!(span > RTT / 4 && span < RTT, "{span:?}");
    assert!(path.controller.send_quantum().unwrap() >= SIZE);
}

#[test]
fn an_endpoint_gives_each_path_its_controller() {
    let address = SocketAddress::default();
    let info = PathInfo::new(&Config::default(), &address);
    let size = info.max_datagram_size;
    let controller = Controllers::new(Profile::linux_current()).new_congestion_controller(info);
    assert_eq!(controller.congestion_window(), 10 * u32::from(size));
}

/// Fact `mtu_change`: the window keeps its segments, and is the initial one of the new size at least.
#[test]
fn another_datagram_size_keeps_the_segments() {
    for (old, window, new, expected) in
        [(5000, 100_000, 10_000, 200_000), (9000, 180_000, 1350, 27_000), (9000, 18_000, 1350, 13_500)]
    {
        let mut controller = S2nController::new(&Profile::linux_current(), old);
        // Losses lower the window; acknowledgements of a limiting window raise it.
        let clock = TestClock::default();
        let rtt = RttEstimator::default();
        let (mut exits, mut random) = (Exits::default(), Generator(1));
        while controller.congestion_window() > window {
            controller.on_packet_sent(clock.get_time(), usize::from(old), None, &rtt, &mut exits);
            controller.on_packet_lost(old.into(), (), false, true, &mut random, clock.get_time(), &mut exits);
            controller.on_packet_sent(clock.get_time(), usize::from(old), None, &rtt, &mut exits);
            controller.on_packet_lost(old.into(), (), true, true, &mut random, clock.get_time(), &mut exits);
        }
        while controller.congestion_window() < window {
            while !controller.is_congestion_limited() {
                controller.on_packet_sent(clock.get_time(), usize::from(old), None, &rtt, &mut exits);
            }
            let now = clock.get_time() + Duration::from_millis(1);
            controller.on_ack(clock.get_time(), usize::from(old), (), &rtt, &mut random, now, &mut exits);
        }
        assert_eq!(controller.congestion_window(), window);
        controller.on_mtu_update(new, &mut exits);
        assert_eq!(controller.congestion_window(), expected, "{old} to {new}");
    }
}
