//! CUBIC's window as Linux computed it before 4.0: ACKs are counted and the result divided by the estimated number of
//! packets per ACK.

use super::cubic::CubicState;
use super::parameters::{CubicParameters, Factors};
use super::{WindowAdjustment, cong_avoid_ai_per_ack, cube_root};
use crate::rtt::DelayMin;
use netcore::Instant;
use netcore::congestion::{CaState, SendState};

/// What distinguishes the kernels before 4.0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LegacyRules {
    /// Growth is at most this many segments per 100 ms once past the plateau (`max_increment`, before 2.6.29).
    pub max_increment: Option<u32>,
    /// Without a loss yet the count is exactly this (2.6.23: 50).
    pub lossless_cnt: Option<u32>,
    /// Without a loss yet the count is at most this (since 2.6.39: 20).
    pub lossless_cnt_cap: Option<u32>,
    /// The ACK ratio is limited to 32 (since 2.6.39); before it could wrap at 16 bits.
    pub limit_ack_ratio: bool,
    /// An epoch that is not running does not discard RTT samples (since 3.12).
    pub samples_without_epoch: bool,
    /// Undo to the window at the last loss (since 3.2), else to the remembered maximum.
    pub undo_to_loss_cwnd: bool,
    /// Epoch time is computed in 64 bits (since 3.12).
    pub wide_time: bool,
}

impl LegacyRules {
    /// 2.6.23: CUBIC 2.1.
    pub const fn linux_2_6_23() -> Self {
        Self { max_increment: Some(16), lossless_cnt: Some(50), ..Self::linux_2_6_35() }
    }
    /// 2.6.29 to 2.6.38: CUBIC 2.3.
    pub const fn linux_2_6_35() -> Self {
        Self {
            max_increment: None,
            lossless_cnt: None,
            lossless_cnt_cap: None,
            limit_ack_ratio: false,
            samples_without_epoch: false,
            undo_to_loss_cwnd: false,
            wide_time: false,
        }
    }
    /// 3.6.
    pub const fn linux_3_6() -> Self {
        Self { lossless_cnt_cap: Some(20), limit_ack_ratio: true, undo_to_loss_cwnd: true, ..Self::linux_2_6_35() }
    }
}

/// Fraction bits of the ACK ratio (`ACK_RATIO_SHIFT`).
const RATIO_SHIFT: u32 = 4;

/// CUBIC, Linux 2.6.23 to 3.x.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CubicLegacy {
    fields: CubicState,
    delayed_ack: u32,
    loss_cwnd: u32,
    saved: CubicState,
    rules: LegacyRules,
    parameters: CubicParameters,
    factors: Factors,
}

impl CubicLegacy {
    /// CUBIC with these rules and parameters.
    pub fn new(rules: LegacyRules, parameters: CubicParameters) -> Self {
        Self {
            fields: CubicState::default(),
            delayed_ack: 2 << RATIO_SHIFT,
            loss_cwnd: 0,
            saved: CubicState::default(),
            rules,
            factors: parameters.factors(),
            parameters,
        }
    }

    /// The fields shared with later kernels.
    pub const fn fields(&self) -> CubicState {
        self.fields
    }

    /// Packets per ACK, four fraction bits (`delayed_ack`).
    pub const fn delayed_ack(&self) -> u32 {
        self.delayed_ack
    }

    /// Window at the last loss, segments, 0 if there was none (`loss_cwnd`).
    pub const fn loss_cwnd(&self) -> u32 {
        self.loss_cwnd
    }

    fn epoch_time(&self, jiffies: u32, state: &SendState, delay_min: &DelayMin) -> u64 {
        let ahead = delay_min.jiffies(&state.clock);
        let ticks = jiffies.wrapping_add(ahead).wrapping_sub(self.fields.epoch_start);
        let hz = state.clock.hz();
        if self.rules.wide_time {
            (u64::from(ticks) << 10) / u64::from(hz)
        } else {
            u64::from(ticks.wrapping_shl(10) / hz)
        }
    }

    /// `bictcp_update`.
    fn update(&mut self, state: &SendState, delay_min: &DelayMin, now: Instant) {
        let cwnd = state.cwnd;
        let jiffies = state.clock.jiffies(now);
        self.fields.ack_cnt = self.fields.ack_cnt.saturating_add(1);
        let age = jiffies.wrapping_sub(self.fields.last_time) as i32;
        if self.fields.last_cwnd == cwnd && age <= (state.clock.hz() / 32) as i32 {
            return;
        }
        self.fields.last_cwnd = cwnd;
        self.fields.last_time = jiffies;
        if self.fields.epoch_start == 0 {
            let f = &mut self.fields;
            f.epoch_start = jiffies;
            f.ack_cnt = 1;
            f.tcp_cwnd = cwnd;
            f.k = 0;
            f.origin_point = cwnd.max(f.last_max_cwnd);
            if f.last_max_cwnd > cwnd {
                f.k = cube_root(self.factors.cube_factor.saturating_mul(u64::from(f.last_max_cwnd - cwnd)));
            }
        }
        let t = self.epoch_time(jiffies, state, delay_min);
        let k = u64::from(self.fields.k);
        let f = &mut self.fields;
        let target = if t < k {
            f.origin_point.saturating_sub(self.factors.cube(k - t))
        } else {
            f.origin_point.saturating_add(self.factors.cube(t - k))
        };
        let mut cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        if let (Some(most), 1..) = (self.rules.max_increment, delay_min.value) {
            let least = u64::from(cwnd) * u64::from(state.clock.hz()) * 8
                / (10 * u64::from(most.max(1)) * u64::from(delay_min.value));
            if t >= k {
                cnt = cnt.max(least.min(u64::from(u32::MAX)) as u32);
            }
        }
        if let (Some(fixed), 0) = (self.rules.lossless_cnt, self.loss_cwnd) {
            cnt = fixed;
        }
        if let (Some(cap), 0) = (self.rules.lossless_cnt_cap, f.last_max_cwnd) {
            cnt = cnt.min(cap);
        }
        if self.parameters.tcp_friendliness {
            let step = self.factors.friendly_step(cwnd);
            if f.ack_cnt > step {
                let steps = (f.ack_cnt - 1) / step;
                f.ack_cnt -= steps * step;
                f.tcp_cwnd = f.tcp_cwnd.saturating_add(steps);
            }
            if f.tcp_cwnd > cwnd {
                cnt = cnt.min(cwnd / (f.tcp_cwnd - cwnd));
            }
        }
        // Where the kernel would divide by a wrapped ratio of 0, 1/16 packet per ACK is taken.
        let per_ack = (u64::from(cnt) << RATIO_SHIFT) / u64::from(self.delayed_ack.max(1));
        f.cnt = per_ack.clamp(1, u64::from(u32::MAX)) as u32;
    }
}

impl WindowAdjustment for CubicLegacy {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn reset(&mut self) {
        self.fields = CubicState::default();
        self.delayed_ack = 2 << RATIO_SHIFT;
        // Since 3.2 the window at the last loss outlives a timeout, so that it can be undone.
        if !self.rules.undo_to_loss_cwnd {
            self.loss_cwnd = 0;
        }
    }

    #[inline]
    fn discards_rtt(&mut self, state: &SendState, now: Instant) -> bool {
        let start = self.fields.epoch_start;
        // Without the check of `epoch_start` a counter whose top bit is set drops every sample (fixed in 3.12).
        !(self.rules.samples_without_epoch && start == 0)
            && (state.clock.jiffies(now).wrapping_sub(start) as i32) < state.clock.hz() as i32
    }

    fn packets_acked(&mut self, state: &SendState, packets: u32) {
        if state.ca_state != CaState::Open {
            return;
        }
        let ratio = self.delayed_ack - (self.delayed_ack >> RATIO_SHIFT);
        self.delayed_ack = if self.rules.limit_ack_ratio {
            ratio.saturating_add(packets).min(32 << RATIO_SHIFT)
        } else {
            ratio.wrapping_add(packets) & 0xffff
        };
    }

    fn avoid(&mut self, state: &mut SendState, _: u32, delay_min: &DelayMin, now: Instant) {
        self.update(state, delay_min, now);
        cong_avoid_ai_per_ack(state, self.fields.cnt);
    }

    fn ssthresh(&mut self, state: &SendState, _: Instant) -> u32 {
        self.saved = self.fields;
        let f = &mut self.fields;
        f.epoch_start = 0;
        f.last_max_cwnd = self.parameters.new_maximum(state.cwnd, f.last_max_cwnd, self.factors.beta);
        self.loss_cwnd = state.cwnd;
        self.factors.reduced(state.cwnd)
    }

    fn undo_cwnd(&mut self, state: &SendState) -> u32 {
        let before = if self.rules.undo_to_loss_cwnd { self.loss_cwnd } else { self.fields.last_max_cwnd };
        if self.parameters.restore_epoch_on_undo {
            self.fields = self.saved;
        }
        state.cwnd.max(before)
    }

    fn w_max(&self) -> Option<u32> {
        (self.fields.last_max_cwnd != 0).then_some(self.fields.last_max_cwnd)
    }
}
