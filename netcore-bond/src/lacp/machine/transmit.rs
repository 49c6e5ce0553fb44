//! Transmit machine and its limit (IEEE 802.1AX clause 6.4.16; Linux: `ad_tx_machine`).

use super::PeriodicState;
use crate::lacp::port::Port;
use crate::lacp::timing::{Clock, FAST_PERIODIC, MAX_TX_IN_SECOND};
use core::time::Duration;
use netcore::Instant;

/// Time between two opportunities to send, in ticks.
pub(in crate::lacp) const OPPORTUNITY: Duration = Duration::from_millis(300);

/// True if a LACPDU is to be sent now.
///
/// In ticks there is one opportunity every three, as in Linux: from 0.3 s to 0.3 s. Event driven, the last three
/// transmissions are remembered, and the fourth waits until the first is a second ago.
pub(in crate::lacp) fn transmit(port: &mut Port, clock: Clock) -> bool {
    let wanted = port.ntt && port.may_speak();
    if clock.ticks() {
        if clock.at < port.tx_at {
            return false;
        }
        port.tx_at = clock.after(OPPORTUNITY);
    } else if wanted {
        let free = port.sent_at[0].is_none_or(|first| clock.at >= first + FAST_PERIODIC);
        if !free {
            return false;
        }
        port.sent_at.rotate_left(1);
        port.sent_at[MAX_TX_IN_SECOND - 1] = Some(clock.at);
    }
    if wanted {
        port.ntt = false;
    }
    wanted
}

impl Port {
    /// False while LACPDUs may not be sent: LACP does not run, or both ends are passive and wait for the other to speak.
    /// The standard says so; Linux sends a few all the same.
    pub(in crate::lacp) fn may_speak(&self) -> bool {
        self.lacp_enabled && !self.begin && self.periodic != PeriodicState::NoPeriodic
    }

    /// When a pending LACPDU may go out, event driven; `None` if none is pending.
    pub(in crate::lacp) fn transmit_at(&self) -> Option<Instant> {
        (self.ntt && self.may_speak()).then(|| self.sent_at[0].map_or(Instant::ZERO, |first| first + FAST_PERIODIC))
    }
}
