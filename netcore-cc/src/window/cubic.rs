//! CUBIC's window as Linux computes it since 4.0 (`net/ipv4/tcp_cubic.c`): packets are counted, not ACKs.

use super::parameters::{CubicParameters, Factors};
use super::{WindowAdjustment, cong_avoid_ai, cube_root};
use crate::rtt::DelayMin;
use crate::ticks::Tick;
use netcore::Instant;
use netcore::congestion::{AckEvent, SendState};

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

/// The rest of a tick in which ACKs change nothing but counts: for this clock and window, as long as the estimate does not
/// grow. A cache: any two compare equal.
#[derive(Clone, Copy, Debug, Default)]
struct Calm {
    tick: Tick,
    cwnd: u32,
    /// The Reno-friendly estimate stays as it is up to this `ack_cnt`.
    most_acks: u32,
    discards_rtt: bool,
}

impl PartialEq for Calm {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Calm {}

/// CUBIC, Linux 4.0 to today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cubic {
    fields: CubicState,
    calm: Calm,
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
            calm: Calm::default(),
            saved: CubicState::default(),
            factors: parameters.factors(),
            parameters,
            shift_epoch_over_idle,
        }
    }

    /// The algorithm's own fields, as traces of the kernel show them.
    pub const fn fields(&self) -> CubicState {
        self.fields
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

    /// `bictcp_update`.
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

    /// After an update at `cwnd`: what the next ACKs of this tick can leave uncomputed.
    fn calm_down(&mut self, cwnd: u32, state: &SendState, now: Instant) {
        // `update` has just run: until the tick ends or the window changes it will return early, or else run the friendly part
        // alone.
        if cwnd == 0 {
            return;
        }
        let friendly = self.parameters.tcp_friendliness && self.fields.last_cwnd != cwnd;
        self.calm = Calm {
            tick: Tick::at(&state.clock, now),
            cwnd,
            most_acks: if friendly { self.factors.friendly_step(cwnd) } else { u32::MAX },
            discards_rtt: self.discards_rtt(state, now),
        };
    }
}

impl WindowAdjustment for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn reset(&mut self) {
        self.fields = CubicState::default();
        self.calm = Calm::default();
    }

    fn discards_rtt(&mut self, state: &SendState, now: Instant) -> bool {
        let start = self.fields.epoch_start;
        start != 0 && (state.clock.jiffies(now).wrapping_sub(start) as i32) < state.clock.hz() as i32
    }

    fn avoid(&mut self, state: &mut SendState, acked: u32, delay_min: &DelayMin, now: Instant) {
        let cwnd = state.cwnd;
        self.update(acked, state, delay_min, now);
        cong_avoid_ai(state, self.fields.cnt, acked);
        self.calm_down(cwnd, state, now);
    }

    #[inline(always)]
    fn quick_avoid(&mut self, state: &mut SendState, ack: &AckEvent, delay_min: &DelayMin, now: Instant) -> bool {
        let calm = &self.calm;
        if !calm.tick.holds(&state.clock, now) || calm.cwnd != state.cwnd {
            return false;
        }
        let sampled = ack.sample.rtt_us.is_some_and(|rtt_us| !delay_min.stands(rtt_us));
        if sampled && !calm.discards_rtt {
            return false;
        }
        let Some(ack_cnt) = self.fields.ack_cnt.checked_add(ack.acked) else { return false };
        let Some(credit) = state.cwnd_cnt.checked_add(ack.acked) else { return false };
        if ack_cnt > calm.most_acks || credit >= self.fields.cnt || state.cwnd > state.cwnd_clamp {
            return false;
        }
        self.fields.ack_cnt = ack_cnt;
        state.cwnd_cnt = credit;
        true
    }

    #[inline(always)]
    fn ignores_packets(&self) -> bool {
        self.fields.epoch_start == 0
    }

    fn ssthresh(&mut self, state: &SendState, _: Instant) -> u32 {
        self.saved = self.fields;
        self.calm = Calm::default();
        let f = &mut self.fields;
        f.epoch_start = 0;
        f.last_max_cwnd = self.parameters.new_maximum(state.cwnd, f.last_max_cwnd, self.factors.beta);
        self.factors.reduced(state.cwnd)
    }

    fn undo_cwnd(&mut self, state: &SendState) -> u32 {
        if self.parameters.restore_epoch_on_undo {
            self.fields = self.saved;
            self.calm = Calm::default();
        }
        state.cwnd.max(state.prior_cwnd)
    }

    fn tx_start(&mut self, state: &SendState, now: Instant) {
        let f = &mut self.fields;
        let jiffies = state.clock.jiffies(now);
        let idle = jiffies.wrapping_sub(state.clock.jiffies(state.last_sent)) as i32;
        if self.shift_epoch_over_idle && f.epoch_start != 0 && idle > 0 {
            self.calm = Calm::default();
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

#[cfg(test)]
mod tests;
