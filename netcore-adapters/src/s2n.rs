//! Congestion control for s2n-quic-core 0.91, whose trait is open to others with its feature
//! `unstable-congestion-controller`.
//!
//! s2n-quic counts bytes and gives one event per ACK frame, so each becomes one kernel-style ACK. Windows are segments times
//! the current datagram size. The controller paces: [`netcore::CongestionOps::pacing_rate`] and
//! [`netcore::CongestionOps::send_quantum`] give the departure times. s2n-quic never takes a loss back, so nothing asks for
//! undo.

use crate::episode::{self, EPOCH};
use netcore::congestion::{AckEvent, AckSample, CongestionOps, CwndEvent};
use netcore::{Instant, SendState};
use netcore_cc::{Builtin, Profile};
use s2n_quic_core::event::builder::SlowStartExitCause;
use s2n_quic_core::random;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint, PathInfo, Publisher};
use s2n_quic_core::time::Timestamp;
use std::time::Duration;

/// Gives every connection a controller by one profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Controllers {
    profile: Profile,
}

impl Controllers {
    /// Controllers for `profile`.
    pub const fn new(profile: Profile) -> Self {
        Self { profile }
    }
}

impl Endpoint for Controllers {
    type CongestionController = S2nController;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> S2nController {
        S2nController::new(&self.profile, path_info.max_datagram_size)
    }
}

/// One path's congestion control.
#[derive(Clone, Debug)]
pub struct S2nController {
    ops: Builtin,
    state: SendState,
    initial_segments: u32,
    bytes_in_flight: u32,
    origin: Option<Timestamp>,
    recovery_start: Option<Timestamp>,
    fast_retransmission: bool,
    app_limited: bool,
    /// Until this sequence number is acknowledged, `is_cwnd_limited` speaks of the window in flight.
    usage_seq: u32,
    /// When the next burst may leave, and bytes left of the one at hand.
    departure: Option<Timestamp>,
    burst: u32,
}

impl S2nController {
    /// A controller for datagrams of `mtu` bytes; its clock starts with the first event.
    pub fn new(profile: &Profile, mtu: u16) -> Self {
        let mtu = u32::from(mtu.max(1));
        let (ops, state) = episode::start(profile, mtu);
        let initial_segments = state.cwnd;
        Self {
            ops,
            state,
            initial_segments,
            bytes_in_flight: 0,
            origin: None,
            recovery_start: None,
            fast_retransmission: false,
            app_limited: false,
            usage_seq: 0,
            departure: None,
            burst: 0,
        }
    }

    /// The state that the algorithm works on.
    pub fn state(&self) -> &SendState {
        &self.state
    }

    fn time(&mut self, at: Timestamp) -> Instant {
        let origin = *self.origin.get_or_insert(at);
        EPOCH + at.saturating_duration_since(origin)
    }

    fn segments(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.state.mss)
    }

    /// Remembers for the window in flight whether it was the limit (Linux: `tcp_cwnd_validate`).
    fn validate(&mut self) {
        let limited = self.is_congestion_limited();
        let passed = self.state.snd_una.wrapping_sub(self.usage_seq) as i32 >= 0;
        let more = !self.state.is_cwnd_limited && self.state.packets_out > self.state.max_packets_out;
        if passed || limited || more {
            self.state.is_cwnd_limited = limited;
            self.state.max_packets_out = self.state.packets_out;
            self.usage_seq = self.state.snd_nxt;
        }
    }

    /// One reduction per episode: packets sent before recovery began belong to it.
    fn reduce<Pub: Publisher>(&mut self, at: Timestamp, publisher: &mut Pub, cause: SlowStartExitCause) {
        if self.recovery_start.is_some() {
            return;
        }
        let now = self.time(at);
        let slow_start = self.state.in_slow_start();
        self.recovery_start = Some(at);
        self.fast_retransmission = true;
        episode::reduce(&mut self.ops, &mut self.state, now);
        if slow_start {
            publisher.on_slow_start_exited(cause, self.congestion_window());
        }
    }
}

impl CongestionController for S2nController {
    /// When the packet was sent is all that is needed of it, and comes back by itself.
    type PacketInfo = ();

    fn congestion_window(&self) -> u32 {
        self.state.cwnd.saturating_mul(self.state.mss)
    }

    fn bytes_in_flight(&self) -> u32 {
        self.bytes_in_flight
    }

    fn is_congestion_limited(&self) -> bool {
        self.congestion_window().saturating_sub(self.bytes_in_flight) < self.state.mss
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.fast_retransmission
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        if sent_bytes == 0 {
            // ACK frames alone are not congestion controlled.
            return;
        }
        let now = self.time(time_sent);
        let bytes = u32::try_from(sent_bytes).unwrap_or(u32::MAX);
        if self.bytes_in_flight == 0 && self.state.snd_nxt != self.state.snd_una {
            self.ops.cwnd_event(&mut self.state, CwndEvent::TxStart, now);
        }
        self.fast_retransmission = false;
        self.bytes_in_flight = self.bytes_in_flight.saturating_add(bytes);
        self.state.snd_nxt = self.state.snd_nxt.wrapping_add(bytes);
        self.state.packets_out = self.segments(self.bytes_in_flight);
        self.state.last_sent = now;
        self.app_limited = app_limited.unwrap_or(false);
        self.validate();
        let Some(rate) = self.ops.pacing_rate(&self.state) else { return };
        self.burst = self.burst.saturating_add(bytes);
        if u64::from(self.burst) >= self.send_quantum().unwrap_or(0) as u64 {
            let gap = rate.time_for(u64::from(self.burst)).unwrap_or(Duration::MAX);
            let from = self.departure.map_or(time_sent, |departure| departure.max(time_sent));
            self.departure = from.checked_add(gap).or(self.departure);
            self.burst = 0;
        }
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        _time_sent: Timestamp,
        _now: Timestamp,
        rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        self.state.srtt_us8 = micros(rtt_estimator.smoothed_rtt()).saturating_mul(8);
        self.state.min_rtt_us = Some(micros(rtt_estimator.min_rtt()));
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        _newest_acked_packet_info: (),
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn random::Generator,
        ack_receive_time: Timestamp,
        publisher: &mut Pub,
    ) {
        let now = self.time(ack_receive_time);
        let bytes = u32::try_from(bytes_acknowledged).unwrap_or(u32::MAX);
        let packets = self.segments(bytes);
        if packets == 0 {
            return;
        }
        let slow_start = self.state.in_slow_start();
        self.state.prior_in_flight = self.segments(self.bytes_in_flight);
        self.state.app_limited = self.app_limited;
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.state.packets_out = self.segments(self.bytes_in_flight);
        self.state.snd_una = self.state.snd_nxt.wrapping_sub(self.bytes_in_flight);
        // Recovery ends when a packet sent after it began is acknowledged (RFC 9002 section 7.3.2).
        if self.recovery_start.is_some_and(|start| newest_acked_time_sent > start) {
            self.recovery_start = None;
            episode::end(&mut self.ops, &mut self.state, now);
        }
        let rtt = ack_receive_time.saturating_duration_since(newest_acked_time_sent);
        let sample = AckSample {
            pkts_acked: packets,
            rtt_us: Some(u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX)),
            in_flight: self.bytes_in_flight,
        };
        let may_raise = self.recovery_start.is_none();
        let event = AckEvent { sample, acked: packets, may_raise, ..AckEvent::default() };
        self.ops.on_ack(&mut self.state, &event, now);
        self.state.delivered += u64::from(packets);
        self.state.pacing_rate = self.ops.pacing_rate(&self.state);
        if slow_start && !self.state.in_slow_start() {
            publisher.on_slow_start_exited(SlowStartExitCause::Rtt, self.congestion_window());
        }
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        _packet_info: (),
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn random::Generator,
        timestamp: Timestamp,
        publisher: &mut Pub,
    ) {
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(lost_bytes);
        self.state.packets_out = self.segments(self.bytes_in_flight);
        self.reduce(timestamp, publisher, SlowStartExitCause::PacketLoss);
        if persistent_congestion {
            let now = self.time(timestamp);
            episode::persistent(&mut self.ops, &mut self.state, now);
            self.recovery_start = None;
        }
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, _ce_count: u64, event_time: Timestamp, publisher: &mut Pub) {
        self.reduce(event_time, publisher, SlowStartExitCause::Ecn);
        // Nothing was lost.
        self.fast_retransmission = false;
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        // As in s2n-quic's own controllers the window keeps its segments and is the initial one at least.
        self.state.mss = u32::from(max_data_size.max(1));
        self.state.cwnd = self.state.cwnd.max(self.initial_segments);
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(u32::try_from(bytes_sent).unwrap_or(u32::MAX));
        self.state.packets_out = self.segments(self.bytes_in_flight);
        self.fast_retransmission = false;
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.departure
    }

    fn send_quantum(&self) -> Option<usize> {
        Some(self.ops.send_quantum(&self.state) as usize)
    }
}
