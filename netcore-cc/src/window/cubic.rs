//! CUBIC's window as Linux computes it since 4.0 (`net/ipv4/tcp_cubic.c`): packets are counted, not ACKs.

use super::parameters::{CubicParameters, Factors};
use super::{WindowAdjustment, cong_avoid_ai, cube_root};
use crate::rtt::DelayMin;
use netcore::Instant;
use netcore::congestion::SendState;

/// The fields of `struct bictcp` that concern the window, under the kernel's names. Times in jiffies, windows in
/// segments, `k` in 1/1024 s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CubicState {
    /// Acknowledged packets per step of the window.
    pub cnt: u32,
    /// Window before the last reduction, lowered by fast convergence; 0 if there was none.
    pub last_max_cwnd: u32,
    /// Window at the last recomputation.
    pub last_cwnd: u32,
    /// Time of the last recomputation.
    pub last_time: u32,
    /// The plateau of the cubic.
    pub origin_point: u32,
    /// Time from the epoch's start to the plateau.
    pub k: u32,
    /// When the epoch began, 0 if none is running.
    pub epoch_start: u32,
    /// Packets acknowledged since the Reno-friendly estimate last grew.
    pub ack_cnt: u32,
    /// The Reno-friendly estimate.
    pub tcp_cwnd: u32,
}

/// CUBIC, Linux 4.0 to today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cubic {
    /// The algorithm's own fields. Public so that traces can be compared and replayed.
    pub fields: CubicState,
    saved: CubicState,
    parameters: CubicParameters,
    factors: Factors,
    shift_epoch_over_idle: bool,
}

impl Cubic {
    /// CUBIC with these parameters. With `shift_epoch_over_idle` an idle period does not count as time in the epoch
    /// (Linux since 4.3).
    pub fn new(parameters: CubicParameters, shift_epoch_over_idle: bool) -> Self {
        Self {
            fields: CubicState::default(),
            saved: CubicState::default(),
            factors: parameters.factors(),
            parameters,
            shift_epoch_over_idle,
        }
    }

    fn start_epoch(&mut self, cwnd: u32, acked: u32, jiffies: u32) {
        let f = &mut self.fields;
        f.epoch_start = jiffies;
        f.ack_cnt = acked;
        f.tcp_cwnd = cwnd;
        if f.last_max_cwnd <= cwnd {
            f.k = 0;
            f.origin_point = cwnd;
        } else {
            f.k = cube_root(self.factors.cube_factor.saturating_mul(u64::from(f.last_max_cwnd - cwnd)));
            f.origin_point = f.last_max_cwnd;
        }
    }

    /// The cubic part of `bictcp_update`: once per tick at most.
    #[cold]
    #[inline(never)]
    fn recompute(&mut self, cwnd: u32, acked: u32, jiffies: u32, state: &SendState, delay_min: &DelayMin) {
        self.fields.last_cwnd = cwnd;
        self.fields.last_time = jiffies;
        if self.fields.epoch_start == 0 {
            self.start_epoch(cwnd, acked, jiffies);
        }
        let f = &mut self.fields;
        let elapsed = jiffies.wrapping_sub(f.epoch_start) as i32;
        let ticks = i64::from(elapsed) + i64::from(delay_min.jiffies(&state.clock));
        // A negative span cannot come from a clock that runs forward; the kernel would see a huge unsigned number.
        let t = ((ticks.max(0) as u64) << 10) / u64::from(state.clock.hz());
        let k = u64::from(f.k);
        let target = if t < k {
            f.origin_point.saturating_sub(self.factors.cube(k - t))
        } else {
            f.origin_point.saturating_add(self.factors.cube(t - k))
        };
        f.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        // No loss yet: at least 5 % per RTT.
        if f.last_max_cwnd == 0 && f.cnt > 20 {
            f.cnt = 20;
        }
    }

    /// The Reno-friendly part of `bictcp_update`.
    #[inline]
    fn friendly(&mut self, cwnd: u32) {
        let f = &mut self.fields;
        let step = self.factors.friendly_step(cwnd);
        if f.ack_cnt > step {
            let steps = (f.ack_cnt - 1) / step;
            f.ack_cnt -= steps * step;
            f.tcp_cwnd = f.tcp_cwnd.saturating_add(steps);
        }
        if f.tcp_cwnd > cwnd {
            f.cnt = f.cnt.min(cwnd / (f.tcp_cwnd - cwnd));
        }
    }

    #[inline(always)]
    fn update(&mut self, acked: u32, state: &SendState, delay_min: &DelayMin, now: Instant) {
        let cwnd = state.cwnd;
        let jiffies = state.clock.jiffies(now);
        let f = &mut self.fields;
        f.ack_cnt = f.ack_cnt.saturating_add(acked);
        let age = jiffies.wrapping_sub(f.last_time) as i32;
        if f.last_cwnd == cwnd && age <= (state.clock.hz() >> 5) as i32 {
            return;
        }
        // The cubic part runs once per tick at most.
        if f.epoch_start == 0 || age != 0 {
            self.recompute(cwnd, acked, jiffies, state, delay_min);
        }
        if self.parameters.tcp_friendliness {
            self.friendly(cwnd);
        }
        // At most 1.5 times per RTT.
        self.fields.cnt = self.fields.cnt.max(2);
    }
}

impl WindowAdjustment for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn reset(&mut self) {
        self.fields = CubicState::default();
    }

    #[inline(always)]
    fn discards_rtt(&self, state: &SendState, now: Instant) -> bool {
        let start = self.fields.epoch_start;
        start != 0 && (state.clock.jiffies(now).wrapping_sub(start) as i32) < state.clock.hz() as i32
    }

    #[inline(always)]
    fn avoid(&mut self, state: &mut SendState, acked: u32, delay_min: &DelayMin, now: Instant) {
        self.update(acked, state, delay_min, now);
        cong_avoid_ai(state, self.fields.cnt, acked);
    }

    fn ssthresh(&mut self, state: &SendState, _: Instant) -> u32 {
        self.saved = self.fields;
        let f = &mut self.fields;
        f.epoch_start = 0;
        f.last_max_cwnd = self.parameters.new_maximum(state.cwnd, f.last_max_cwnd, self.factors.beta);
        self.factors.reduced(state.cwnd)
    }

    fn undo_cwnd(&mut self, state: &SendState) -> u32 {
        if self.parameters.restore_epoch_on_undo {
            self.fields = self.saved;
        }
        state.cwnd.max(state.prior_cwnd)
    }

    fn tx_start(&mut self, state: &SendState, now: Instant) {
        let f = &mut self.fields;
        let jiffies = state.clock.jiffies(now);
        let idle = jiffies.wrapping_sub(state.clock.jiffies(state.last_sent)) as i32;
        if self.shift_epoch_over_idle && f.epoch_start != 0 && idle > 0 {
            f.epoch_start = f.epoch_start.wrapping_add(idle as u32);
            if (f.epoch_start.wrapping_sub(jiffies) as i32) > 0 {
                f.epoch_start = jiffies;
            }
        }
    }

    fn w_max(&self) -> Option<u32> {
        (self.fields.last_max_cwnd != 0).then_some(self.fields.last_max_cwnd)
    }
}
