//! Growth by one segment per `w` acknowledged ones (`tcp_cong_avoid_ai`).

use netcore::congestion::SendState;

/// Linux since 4.0: counts packets, several steps per ACK if it covers many.
#[inline]
pub fn cong_avoid_ai(state: &mut SendState, w: u32, acked: u32) {
    let w = w.max(1);
    let (mut cwnd, mut credit) = (state.cwnd, state.cwnd_cnt);
    // Credit gathered while `w` was larger is spent gently: one step.
    if credit >= w {
        credit = 0;
        cwnd = cwnd.saturating_add(1);
    }
    credit = credit.saturating_add(acked);
    if credit >= w {
        let steps = credit / w;
        credit -= steps * w;
        cwnd = cwnd.saturating_add(steps);
    }
    state.cwnd_cnt = credit;
    state.cwnd = cwnd.min(state.cwnd_clamp).max(1);
}

/// Linux before 4.0: counts ACKs whatever they cover, and starts again from 0 at each step.
#[inline]
pub fn cong_avoid_ai_per_ack(state: &mut SendState, w: u32) {
    if state.cwnd_cnt >= w {
        if state.cwnd < state.cwnd_clamp {
            state.cwnd += 1;
        }
        state.cwnd_cnt = 0;
    } else {
        state.cwnd_cnt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(cwnd: u32, cwnd_cnt: u32) -> SendState {
        let mut state = SendState::new(cwnd, 1448);
        state.cwnd_cnt = cwnd_cnt;
        state
    }

    #[test]
    fn old_credit_is_spent_as_one_step_and_a_stretch_ack_as_several() {
        let mut s = state(10, 25);
        cong_avoid_ai(&mut s, 10, 1);
        assert_eq!((s.cwnd, s.cwnd_cnt), (11, 1));
        let mut s = state(10, 5);
        cong_avoid_ai(&mut s, 10, 26);
        assert_eq!((s.cwnd, s.cwnd_cnt), (13, 1));
    }

    #[test]
    fn the_clamp_and_the_type_bound_the_window() {
        let mut s = state(10, 0);
        s.cwnd_clamp = 11;
        cong_avoid_ai(&mut s, 2, 100);
        assert_eq!(s.cwnd, 11);
        let mut s = state(u32::MAX, u32::MAX);
        cong_avoid_ai(&mut s, 0, u32::MAX);
        assert_eq!(s.cwnd, u32::MAX);
    }

    #[test]
    fn per_ack_growth_takes_w_plus_one_acks() {
        let mut s = state(4, 0);
        let acks = (1..).take_while(|_| {
            cong_avoid_ai_per_ack(&mut s, 4);
            s.cwnd == 4
        });
        assert_eq!(acks.count(), 4);
        assert_eq!((s.cwnd, s.cwnd_cnt), (5, 0));
        s.cwnd_clamp = 5;
        s.cwnd_cnt = 4;
        cong_avoid_ai_per_ack(&mut s, 4);
        assert_eq!((s.cwnd, s.cwnd_cnt), (5, 0));
    }
}
