//! [`Builtin`]: the algorithms of this crate behind one type without allocation or virtual calls.

use crate::classic::Classic;
use crate::slow_start::{HyStart, HyStartPlusPlus, UntilLoss};
use crate::window::{Cubic, CubicLegacy, Reno, Rfc9438};
use netcore::congestion::{
    AckEvent, AckFlags, AckSample, CaState, CongestionInfo, CongestionOps, CwndEvent, PacketInfo, RateSample, SendState,
};
use netcore::{Instant, Rate};

/// Every combination that a [`crate::Profile`] can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Builtin {
    /// Reno, slow start until loss.
    Reno(Classic<UntilLoss, Reno>),
    /// Reno with HyStart.
    RenoHyStart(Classic<HyStart, Reno>),
    /// Reno with HyStart++.
    RenoHyStartPlusPlus(Classic<HyStartPlusPlus, Reno>),
    /// CUBIC since Linux 4.0, with the HyStart of its era.
    Cubic(Classic<HyStart, Cubic>),
    /// CUBIC since Linux 4.0 with HyStart++.
    CubicHyStartPlusPlus(Classic<HyStartPlusPlus, Cubic>),
    /// CUBIC before Linux 4.0, with the HyStart of its era.
    CubicLegacy(Classic<HyStart, CubicLegacy>),
    /// CUBIC by RFC 9438, slow start until loss.
    Rfc9438(Classic<UntilLoss, Rfc9438>),
    /// CUBIC by RFC 9438 with HyStart++.
    Rfc9438HyStartPlusPlus(Classic<HyStartPlusPlus, Rfc9438>),
    /// CUBIC by RFC 9438 with HyStart.
    Rfc9438HyStart(Classic<HyStart, Rfc9438>),
}

macro_rules! each {
    ($self:expr, $it:ident => $body:expr) => {
        match $self {
            Builtin::Cubic($it) => $body,
            Builtin::Reno($it) => $body,
            Builtin::RenoHyStart($it) => $body,
            Builtin::RenoHyStartPlusPlus($it) => $body,
            Builtin::CubicHyStartPlusPlus($it) => $body,
            Builtin::CubicLegacy($it) => $body,
            Builtin::Rfc9438($it) => $body,
            Builtin::Rfc9438HyStartPlusPlus($it) => $body,
            Builtin::Rfc9438HyStart($it) => $body,
        }
    };
}

impl CongestionOps for Builtin {
    fn name(&self) -> &'static str {
        each!(self, it => it.name())
    }
    fn init(&mut self, state: &mut SendState, now: Instant) {
        each!(self, it => it.init(state, now));
    }
    fn release(&mut self, state: &mut SendState, now: Instant) {
        each!(self, it => it.release(state, now));
    }
    fn ssthresh(&mut self, state: &mut SendState, now: Instant) -> u32 {
        each!(self, it => it.ssthresh(state, now))
    }
    #[inline]
    fn cong_avoid(&mut self, state: &mut SendState, acked: u32, now: Instant) {
        each!(self, it => it.cong_avoid(state, acked, now));
    }
    fn undo_cwnd(&mut self, state: &mut SendState, now: Instant) -> u32 {
        each!(self, it => it.undo_cwnd(state, now))
    }
    fn set_state(&mut self, state: &mut SendState, new: CaState, now: Instant) {
        each!(self, it => it.set_state(state, new, now));
    }
    fn cwnd_event(&mut self, state: &mut SendState, event: CwndEvent, now: Instant) {
        each!(self, it => it.cwnd_event(state, event, now));
    }
    #[inline]
    fn in_ack_event(&mut self, state: &mut SendState, flags: AckFlags, now: Instant) {
        each!(self, it => it.in_ack_event(state, flags, now));
    }
    #[inline]
    fn pkts_acked(&mut self, state: &mut SendState, sample: &AckSample, now: Instant) {
        each!(self, it => it.pkts_acked(state, sample, now));
    }
    fn cong_control(&mut self, state: &mut SendState, flags: AckFlags, sample: &RateSample, now: Instant) -> bool {
        each!(self, it => it.cong_control(state, flags, sample, now))
    }
    fn min_cwnd(&self, state: &SendState) -> u32 {
        each!(self, it => it.min_cwnd(state))
    }
    fn min_tso_segs(&self, state: &SendState) -> u32 {
        each!(self, it => it.min_tso_segs(state))
    }
    fn sndbuf_expand(&self, state: &SendState) -> u32 {
        each!(self, it => it.sndbuf_expand(state))
    }
    fn info(&self, state: &SendState) -> CongestionInfo {
        each!(self, it => it.info(state))
    }
    fn packet_sent(&mut self, state: &mut SendState, packet: &PacketInfo, now: Instant) {
        each!(self, it => it.packet_sent(state, packet, now));
    }
    fn packet_acked(&mut self, state: &mut SendState, packet: &PacketInfo, now: Instant) {
        each!(self, it => it.packet_acked(state, packet, now));
    }
    fn packet_lost(&mut self, state: &mut SendState, packet: &PacketInfo, now: Instant) {
        each!(self, it => it.packet_lost(state, packet, now));
    }
    fn pacing_rate(&self, state: &SendState) -> Option<Rate> {
        each!(self, it => it.pacing_rate(state))
    }
    fn send_quantum(&self, state: &SendState) -> u32 {
        each!(self, it => it.send_quantum(state))
    }
    #[inline]
    fn on_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) {
        // The usual algorithm is told by a comparison, the others by a table.
        if let Self::Cubic(it) = self
            && it.quick_ack(state, event, now)
        {
            return;
        }
        self.slow_ack(state, event, now);
    }
}

impl Builtin {
    #[inline(never)]
    fn slow_ack(&mut self, state: &mut SendState, event: &AckEvent, now: Instant) {
        match self {
            Self::Cubic(it) => it.whole_ack(state, event, now),
            _ => each!(self, it => it.on_ack(state, event, now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use crate::profile::{Exit, Profile};
    use netcore::congestion::default_pacing_rate;

    #[test]
    fn what_an_algorithm_leaves_alone_is_linuxs_default() {
        for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Rfc9438] {
            let mut ops = Profile::linux_current().with_algorithm(algorithm).build();
            let mut s = SendState::new(100, 1448);
            s.srtt_us8 = 320_000;
            assert_eq!((ops.min_tso_segs(&s), ops.sndbuf_expand(&s)), (2, 2));
            assert_eq!(ops.pacing_rate(&s), default_pacing_rate(&s));
            assert_eq!(ops.send_quantum(&s), (default_pacing_rate(&s).unwrap().bytes_per_sec() >> 10) as u32);
            assert!(!ops.cong_control(&mut s, AckFlags::empty(), &RateSample::default(), Instant::ZERO));
            s.ssthresh = Some(70);
            let reno = algorithm == Algorithm::Reno;
            assert_eq!(ops.min_cwnd(&s), if reno { 35 } else { 70 }, "rate halving");
            // Hooks that window-based algorithms do not need.
            let before = (ops, s);
            ops.in_ack_event(&mut s, AckFlags::ECE, Instant::ZERO);
            ops.packet_sent(&mut s, &PacketInfo::default(), Instant::ZERO);
            ops.packet_acked(&mut s, &PacketInfo::default(), Instant::ZERO);
            ops.packet_lost(&mut s, &PacketInfo::default(), Instant::ZERO);
            ops.release(&mut s, Instant::ZERO);
            assert_eq!((ops, s), before);
        }
    }

    #[test]
    fn each_variant_takes_whole_acks() {
        let current = Profile::linux_current();
        let exits = [Exit::None, current.exit, Exit::HyStartPlusPlus];
        let algorithms = [Algorithm::Reno, Algorithm::Cubic, Algorithm::Rfc9438];
        let all = algorithms.into_iter().flat_map(|it| exits.map(|exit| current.with_algorithm(it).with_exit(exit)));
        for profile in all.chain([Profile::linux_2_6_35()]) {
            let (mut ops, mut s) = (profile.build(), SendState::new(10, 1448));
            profile.prepare(&mut s);
            ops.init(&mut s, Instant::from_secs(1));
            (s.is_cwnd_limited, s.prior_in_flight) = (true, 10);
            let sample = AckSample { pkts_acked: 1, rtt_us: Some(40_000), in_flight: 0 };
            let ack = AckEvent { sample, acked: 1, may_raise: true, ..AckEvent::default() };
            ops.on_ack(&mut s, &ack, Instant::from_secs(2));
            ops.on_ack(&mut s, &AckEvent { may_raise: false, ..ack }, Instant::from_secs(2));
            assert_eq!((s.cwnd, ops.info(&s).min_rtt_us), (11, Some(40_000)), "{ops:?}");
        }
    }
}
