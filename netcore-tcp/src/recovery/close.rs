//! The end of a connection: what an acknowledgement of our FIN brings about.

use crate::endpoint::Endpoint;
use crate::state::State;
use netcore::{Instant, PoolCache};

impl Endpoint {
    /// Moves the state on if our FIN is acknowledged.
    pub(crate) fn close_progress(&mut self, now: Instant, cache: &mut PoolCache) {
        let acknowledged = self.snd.fin_sent && self.snd.una == self.snd.nxt && self.snd.queue.is_empty();
        if !acknowledged {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => {
                self.state = State::TimeWait;
                self.enter_time_wait(now);
            }
            State::LastAck => self.finish(None, cache),
            _ => {}
        }
    }

    /// Waits for old segments to die out.
    pub(crate) fn enter_time_wait(&mut self, now: Instant) {
        self.timers.retransmit = None;
        self.timers.delayed_ack = None;
        self.timers.keep_alive = None;
        self.timers.time_wait = Some(now + self.config.time_wait);
    }
}
