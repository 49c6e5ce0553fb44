//! Receive-buffer autotuning: dynamic right-sizing (`tcp_rcv_space_adjust`).

use crate::endpoint::Endpoint;
use crate::profile::{ReceiveRtt, ReceiveTuning};
use netcore::Instant;

/// What the application takes per RTT.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpaceEstimate {
    /// Bytes it took in the best RTT so far.
    pub(crate) space: u64,
    /// Position up to which it had read when the measurement began.
    seq: u64,
    /// When that was, in units of the receiver's clock.
    time: Option<u32>,
}

/// RTT as the receiver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeasuredRtt {
    /// Smoothed, eighths of a unit of the receiver's clock; 0 is unknown.
    rtt8: u32,
    /// The window measured by arrivals ends here.
    seq: u64,
    time: Option<u32>,
}

impl MeasuredRtt {
    /// Takes a sample (`tcp_rcv_rtt_update`). A sample by window is an upper bound only.
    fn update(&mut self, sample: u32, by_window: bool, rule: ReceiveRtt) {
        let m = i64::from(sample.clamp(1, u32::MAX / 16));
        let old = i64::from(self.rtt8);
        self.rtt8 = match old {
            0 => m << 3,
            _ if !by_window => old + m - (old >> 3),
            // Before 3.4 the sample was compared with eight times the estimate, so nearly every one replaced it.
            _ if rule == ReceiveRtt::TicksUnscaled => {
                if m < old {
                    m << 3
                } else {
                    old
                }
            }
            _ => old.min(m << 3),
        } as u32;
    }
}

/// `MAX_TCP_HEADER + 16 + sizeof(struct sk_buff)` of 2.6 on 64-bit machines.
const PER_SEGMENT_2_6: u64 = 160 + 16 + 232;

impl Endpoint {
    /// Starts the measurement (`tcp_init_buffer_space`).
    pub(crate) fn init_receive_tuning(&mut self, now: Instant) {
        let initial = self.rcv.wnd.min(10 * u64::from(self.rcv.advmss)).max(1);
        self.rcv.space = SpaceEstimate { space: initial, seq: self.rcv.copied, time: Some(self.receive_clock(now)) };
    }

    /// The clock that the receiver measures with: µs, or ticks before 4.13.
    fn receive_clock(&self, now: Instant) -> u32 {
        match self.config.profile.receive_rtt {
            ReceiveRtt::Micros => now.as_micros() as u32,
            ReceiveRtt::Ticks | ReceiveRtt::TicksUnscaled => self.cs.clock.jiffies(now),
        }
    }

    /// The RTT as the receiver sees it, µs.
    pub(crate) fn receive_rtt_us(&self) -> Option<u32> {
        let unit = match self.config.profile.receive_rtt {
            ReceiveRtt::Micros => 1,
            ReceiveRtt::Ticks | ReceiveRtt::TicksUnscaled => 1_000_000 / self.cs.clock.hz(),
        };
        (self.rcv.rtt.rtt8 != 0).then(|| (self.rcv.rtt.rtt8 >> 3).saturating_mul(unit))
    }

    /// Measures the RTT by the time a window of data takes to arrive, for connections without timestamps.
    pub(crate) fn measure_receive_rtt(&mut self, now: Instant) {
        let clock = self.receive_clock(now);
        if let Some(time) = self.rcv.rtt.time {
            if self.rcv.nxt < self.rcv.rtt.seq {
                return;
            }
            self.rcv.rtt.update(clock.wrapping_sub(time), true, self.config.profile.receive_rtt);
        }
        self.rcv.rtt.seq = self.rcv.nxt + self.rcv.wnd;
        self.rcv.rtt.time = Some(clock);
    }

    /// Measures the RTT by the timestamp that full segments echo.
    pub(crate) fn measure_receive_rtt_by_timestamp(&mut self, echo: u32, len: usize, now: Instant) {
        if echo == 0 || (len as u64) < u64::from(self.rcv.ack.rcv_mss) {
            return;
        }
        let ticks = self.timestamp(now).wrapping_sub(echo);
        if ticks < u32::MAX / 2 {
            let rule = self.config.profile.receive_rtt;
            let units = match rule {
                ReceiveRtt::Micros => 1_000_000,
                ReceiveRtt::Ticks | ReceiveRtt::TicksUnscaled => u64::from(self.cs.clock.hz()),
            };
            let sample = u64::from(ticks) * units / u64::from(self.config.profile.timestamp_hz);
            self.rcv.rtt.update(sample.min(u64::from(u32::MAX)) as u32, false, rule);
        }
    }

    /// The user has read: the buffer may have to grow (`tcp_rcv_space_adjust`).
    pub(crate) fn adjust_receive_space(&mut self, now: Instant) {
        let Some(begun) = self.rcv.space.time else { return };
        let clock = self.receive_clock(now);
        if self.rcv.rtt.rtt8 == 0 || clock.wrapping_sub(begun) < self.rcv.rtt.rtt8 >> 3 {
            return;
        }
        let copied = self.rcv.copied - self.rcv.space.seq;
        let p = self.config.profile;
        let tune = p.moderate_rcvbuf && !self.rcv.rcvbuf_locked;
        match p.receive_tuning {
            ReceiveTuning::Twice => {
                let space = (2 * copied).max(self.rcv.space.space);
                if space != self.rcv.space.space {
                    self.rcv.space.space = space;
                    if tune {
                        let advmss = u64::from(self.rcv.advmss);
                        let mut per_segment = advmss + PER_SEGMENT_2_6;
                        while self.window_from_space(per_segment) < advmss {
                            per_segment += 128;
                        }
                        let wanted = ((space / advmss).max(1) * per_segment).min(p.rmem.max);
                        if wanted > self.rcv.rcvbuf {
                            self.rcv.rcvbuf = wanted;
                            self.rcv.window_clamp = space;
                        }
                    }
                }
            }
            ReceiveTuning::Predicted => {
                let before = self.rcv.space.space;
                if copied > before {
                    if tune {
                        let mut window = 2 * copied + 16 * u64::from(self.rcv.advmss);
                        // What a sender in slow start does next, and data waiting behind a hole.
                        window += 2
                            * (u128::from(window) * u128::from(copied - before) / u128::from(before.max(1)))
                                .min(1 << 40) as u64;
                        window += self.rcv.ofo.bytes();
                        let wanted = self.space_from_window(window).min(p.rmem.max);
                        if wanted > self.rcv.rcvbuf {
                            self.rcv.rcvbuf = wanted;
                            self.rcv.window_clamp = self.window_from_space(wanted);
                        }
                    }
                    self.rcv.space.space = copied;
                }
            }
        }
        self.rcv.space.seq = self.rcv.copied;
        self.rcv.space.time = Some(clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rule: ReceiveRtt, samples: &[u32]) -> u32 {
        let mut rtt = MeasuredRtt::default();
        for sample in samples {
            rtt.update(*sample, true, rule);
        }
        rtt.rtt8
    }

    #[test]
    fn by_window_the_least_sample_counts_and_before_3_4_every_sample_below_eight_times_the_estimate() {
        for rule in [ReceiveRtt::Ticks, ReceiveRtt::Micros] {
            assert_eq!(after(rule, &[20, 90, 19, 150]), 19 * 8);
        }
        assert_eq!(after(ReceiveRtt::TicksUnscaled, &[20, 90]), 90 * 8);
        assert_eq!(after(ReceiveRtt::TicksUnscaled, &[20, 159]), 159 * 8);
        assert_eq!(after(ReceiveRtt::TicksUnscaled, &[20, 160]), 20 * 8);
    }

    #[test]
    fn a_sample_within_one_tick_counts_as_one() {
        assert_eq!(after(ReceiveRtt::Ticks, &[0]), 8);
    }
}
