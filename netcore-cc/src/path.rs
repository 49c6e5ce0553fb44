//! [`SyntheticPath`]: one bulk flow over one bottleneck, enough to watch a window evolve.
//!
//! Packets queue before a link of fixed rate with a drop-tail queue; everything else is a fixed delay. Each packet (or
//! each `n`th) is acknowledged. A lost packet is noticed when its acknowledgement would have come; the window then goes
//! to the threshold at once, without proportional rate reduction, and lost data is not sent again. For windows and
//! slow-start exits that is enough; for whole TCP behaviour use an endpoint.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use netcore::congestion::{AckEvent, AckSample, CaState, CongestionOps, SendState};
use netcore::{Instant, Rate};

/// The path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyntheticPath {
    /// Rate of the bottleneck.
    pub rate: Rate,
    /// Round-trip time without queueing, µs.
    pub rtt_us: u64,
    /// Packets that may wait at the bottleneck.
    pub queue: u32,
    /// Segment size, bytes.
    pub mss: u32,
    /// Packets per ACK, at least 1.
    pub packets_per_ack: u32,
    /// When the connection starts on the clock; sets the phase of ticks.
    pub start: Instant,
}

/// One point of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Time since the start, µs.
    pub t_us: u64,
    /// Window, segments.
    pub cwnd: u32,
    /// Threshold, segments.
    pub ssthresh: Option<u32>,
}

/// What a run showed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// A point at each change of window or threshold.
    pub points: Vec<Point>,
    /// Window at which slow start first ended.
    pub exit_cwnd: Option<u32>,
    /// Whether a loss ended it.
    pub exit_by_loss: bool,
    /// Packets lost.
    pub lost: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Reductions.
    pub reductions: u64,
}

#[derive(Clone, Copy)]
struct Outstanding {
    sent: Instant,
    back: Instant,
    lost: bool,
}

impl SyntheticPath {
    /// Packets that fit the path without queueing, at least 1.
    pub fn bdp(&self) -> u32 {
        let bytes = u128::from(self.rate.bytes_per_sec()) * u128::from(self.rtt_us) / 1_000_000;
        ((bytes / u128::from(self.mss.max(1))).min(u128::from(u32::MAX)) as u32).max(1)
    }

    /// Runs one flow for `duration_us` of virtual time, at most `packets` packets.
    pub fn run(&self, ops: &mut dyn CongestionOps, state: &mut SendState, duration_us: u64, packets: u64) -> Run {
        let mut run = Run::default();
        let mut flight: VecDeque<Outstanding> = VecDeque::new();
        let transmit_ns = self.rate.nanos_for(u64::from(self.mss)).unwrap_or(u64::MAX).max(1);
        let rtt_ns = self.rtt_us * 1000;
        let end = self.start.plus_nanos(duration_us.saturating_mul(1000));
        let mut now = self.start;
        let mut link_free = self.start;
        let mut recovery_point = None;
        ops.init(state, now);
        let (mut sent, mut last) = (0_u64, None);
        loop {
            let limit = u64::from(state.cwnd);
            while (flight.len() as u64) < limit && sent < packets {
                let waiting = link_free.nanos_since(now) / transmit_ns;
                let lost = waiting > u64::from(self.queue);
                let leaves = link_free.max(now).plus_nanos(if lost { 0 } else { transmit_ns });
                if !lost {
                    link_free = leaves;
                }
                flight.push_back(Outstanding { sent: now, back: leaves.plus_nanos(rtt_ns), lost });
                state.snd_nxt = state.snd_nxt.wrapping_add(self.mss);
                state.last_sent = now;
                sent += 1;
            }
            state.packets_out = flight.len() as u32;
            state.max_packets_out = state.packets_out;
            state.is_cwnd_limited = state.packets_out >= state.cwnd;
            let Some(first) = flight.front() else { break };
            now = first.back;
            if now > end {
                break;
            }
            state.prior_in_flight = state.packets_out;
            if first.lost {
                flight.pop_front();
                state.snd_una = state.snd_una.wrapping_add(self.mss);
                state.lost += 1;
                run.lost += 1;
                if recovery_point.is_none() {
                    recovery_point = Some(state.snd_nxt);
                    run.reductions += 1;
                    if run.exit_cwnd.is_none() {
                        run.exit_cwnd = Some(state.cwnd);
                        run.exit_by_loss = true;
                    }
                    state.prior_cwnd = state.cwnd;
                    let ssthresh = ops.ssthresh(state, now);
                    ops.set_state(state, CaState::Recovery, now);
                    state.ca_state = CaState::Recovery;
                    state.ssthresh = Some(ssthresh);
                    state.cwnd = ssthresh;
                    state.cwnd_cnt = 0;
                }
            } else {
                let mut acked = 0;
                let mut newest = *first;
                while acked < self.packets_per_ack.max(1) {
                    match flight.front() {
                        Some(packet) if !packet.lost && (acked == 0 || packet.back <= now.plus_nanos(transmit_ns)) => {
                            newest = *packet;
                            now = now.max(packet.back);
                            flight.pop_front();
                            acked += 1;
                        }
                        _ => break,
                    }
                }
                state.snd_una = state.snd_una.wrapping_add(self.mss.wrapping_mul(acked));
                state.delivered += u64::from(acked);
                run.delivered += u64::from(acked);
                if recovery_point.is_some_and(|point| (point.wrapping_sub(state.snd_una) as i32) <= 0) {
                    recovery_point = None;
                    ops.set_state(state, CaState::Open, now);
                    state.ca_state = CaState::Open;
                }
                let rtt_us = (now.nanos_since(newest.sent) / 1000).min(u64::from(u32::MAX / 8)) as u32;
                state.srtt_us8 =
                    if state.srtt_us8 == 0 { rtt_us * 8 } else { state.srtt_us8 - state.srtt_us8 / 8 + rtt_us };
                let sample = AckSample { pkts_acked: acked, rtt_us: Some(rtt_us), in_flight: 0 };
                let may_raise = recovery_point.is_none();
                ops.on_ack(state, &AckEvent { sample, acked, may_raise, ..AckEvent::default() }, now);
                state.pacing_rate = ops.pacing_rate(state);
                if run.exit_cwnd.is_none() && state.ssthresh.is_some() {
                    run.exit_cwnd = state.ssthresh;
                }
            }
            if last != Some((state.cwnd, state.ssthresh)) {
                last = Some((state.cwnd, state.ssthresh));
                run.points.push(Point {
                    t_us: now.nanos_since(self.start) / 1000,
                    cwnd: state.cwnd,
                    ssthresh: state.ssthresh,
                });
            }
        }
        run
    }
}
