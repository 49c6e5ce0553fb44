//! Congestion control for quinn-proto 0.11.
//!
//! quinn-proto counts bytes, knows one event per acknowledged packet and gives no minimum RTT per sample: the controller
//! gathers the packets of one ACK frame and makes one kernel-style ACK of them when quinn-proto says that the batch is
//! complete. Windows are segments times the current MTU. quinn-proto's pacer computes its own rate from window and RTT,
//! so [`netcore::CongestionOps::pacing_rate`] only shows up in its metrics. Undo is never asked for in 0.11.

use crate::episode::{self, EPOCH, MINIMUM_WINDOW};
use netcore::congestion::{AckEvent, AckSample, CongestionOps, CwndEvent};
use netcore::{Instant, SendState};
use netcore_cc::{Builtin, Profile};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant as QuinnInstant;

/// Builds controllers by one profile: `transport_config.congestion_controller_factory(Arc::new(Factory::new(..)))`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Factory {
    profile: Profile,
}

impl Factory {
    /// A factory for `profile`.
    pub const fn new(profile: Profile) -> Self {
        Self { profile }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: QuinnInstant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(QuinnController::new(&self.profile, now, current_mtu))
    }
}

/// One connection's congestion control.
#[derive(Clone, Debug)]
pub struct QuinnController {
    ops: Builtin,
    state: SendState,
    origin: QuinnInstant,
    initial_segments: u32,
    /// Packets and bytes of the ACK being gathered, and the newest packet's send time.
    packets: u32,
    newest: Option<QuinnInstant>,
    srtt_us8: u32,
    /// Packet number counters stand in for sequence numbers, modulo 2^32.
    largest_sent: u64,
    recovery_start: Option<QuinnInstant>,
    started: bool,
}

impl QuinnController {
    /// A controller whose clock starts at `now`.
    pub fn new(profile: &Profile, now: QuinnInstant, mtu: u16) -> Self {
        let mtu = u32::from(mtu.max(1));
        let (ops, state) = episode::start(profile, mtu);
        let initial_segments = state.cwnd;
        Self {
            ops,
            state,
            origin: now,
            initial_segments,
            packets: 0,
            newest: None,
            srtt_us8: 0,
            largest_sent: 0,
            recovery_start: None,
            started: false,
        }
    }

    /// The state that the algorithm works on.
    pub fn state(&self) -> &SendState {
        &self.state
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &Builtin {
        &self.ops
    }

    fn time(&self, now: QuinnInstant) -> Instant {
        EPOCH + now.saturating_duration_since(self.origin)
    }
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: QuinnInstant, _bytes: u64, last_packet_number: u64) {
        let time = self.time(now);
        if self.state.packets_out == 0 && self.started {
            self.ops.cwnd_event(&mut self.state, CwndEvent::TxStart, time);
        }
        self.started = true;
        self.state.packets_out = self.state.packets_out.saturating_add(1);
        self.largest_sent = last_packet_number;
        self.state.snd_nxt = (last_packet_number as u32).wrapping_add(1);
        self.state.last_sent = time;
    }

    fn on_ack(&mut self, _now: QuinnInstant, sent: QuinnInstant, _bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.packets = self.packets.saturating_add(1);
        self.newest = self.newest.max(Some(sent));
        self.state.app_limited = app_limited;
        self.state.packets_out = self.state.packets_out.saturating_sub(1);
        self.srtt_us8 = (rtt.get().as_micros().min(u128::from(u32::MAX / 8)) as u32) * 8;
        self.state.min_rtt_us = Some(rtt.min().as_micros().min(u128::from(u32::MAX)) as u32);
    }

    fn on_end_acks(
        &mut self,
        now: QuinnInstant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let (packets, newest) = (std::mem::take(&mut self.packets), self.newest.take());
        let (Some(newest), 1..) = (newest, packets) else { return };
        let time = self.time(now);
        if let Some(largest) = largest_packet_num_acked {
            self.state.snd_una = (largest as u32).wrapping_add(1);
        }
        let flight = (in_flight / u64::from(self.state.mss)).min(u64::from(u32::MAX)) as u32;
        self.state.packets_out = flight;
        self.state.prior_in_flight = flight.saturating_add(packets);
        self.state.max_packets_out = self.state.prior_in_flight;
        self.state.is_cwnd_limited = !app_limited && self.state.prior_in_flight >= self.state.cwnd;
        self.state.srtt_us8 = self.srtt_us8;
        // Recovery ends when a packet sent after it began is acknowledged (RFC 9002 section 7.3.2).
        if self.recovery_start.is_some_and(|start| newest > start) {
            self.recovery_start = None;
            episode::end(&mut self.ops, &mut self.state, time);
        }
        let rtt = now.saturating_duration_since(newest).as_micros().min(u128::from(u32::MAX)) as u32;
        let sample =
            AckSample { pkts_acked: packets, rtt_us: Some(rtt), in_flight: in_flight.min(u32::MAX.into()) as u32 };
        let may_raise = self.recovery_start.is_none() && !app_limited;
        let event = AckEvent { sample, acked: packets, may_raise, ..AckEvent::default() };
        self.ops.on_ack(&mut self.state, &event, time);
        self.state.delivered += u64::from(packets);
        self.state.pacing_rate = self.ops.pacing_rate(&self.state);
    }

    fn on_congestion_event(
        &mut self,
        now: QuinnInstant,
        sent: QuinnInstant,
        is_persistent_congestion: bool,
        _lost_bytes: u64,
    ) {
        let time = self.time(now);
        // One reduction per episode: packets sent before recovery began belong to it.
        if self.recovery_start.is_none_or(|start| sent > start) {
            self.recovery_start = Some(now);
            episode::reduce(&mut self.ops, &mut self.state, time);
        }
        if is_persistent_congestion {
            episode::persistent(&mut self.ops, &mut self.state, time);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        // The window keeps its bytes, rounded down, and never falls below the initial one.
        let (old, new) = (u64::from(self.state.mss), u64::from(new_mtu.max(1)));
        let rescale = |segments: u32| (u64::from(segments) * old / new).min(u64::from(u32::MAX)) as u32;
        self.state.cwnd = rescale(self.state.cwnd).max(MINIMUM_WINDOW);
        self.state.ssthresh = self.state.ssthresh.map(|it| rescale(it).max(MINIMUM_WINDOW));
        if self.state.ssthresh.is_none() {
            self.state.cwnd = self.state.cwnd.max(self.initial_segments);
        }
        self.state.mss = u32::from(new_mtu.max(1));
    }

    fn window(&self) -> u64 {
        u64::from(self.state.cwnd) * u64::from(self.state.mss)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.state.ssthresh.map(|it| u64::from(it) * u64::from(self.state.mss));
        metrics.pacing_rate = self.ops.pacing_rate(&self.state).map(|rate| rate.bits_per_sec());
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::from(self.initial_segments) * u64::from(self.state.mss)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
