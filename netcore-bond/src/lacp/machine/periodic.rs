//! Periodic transmission machine (IEEE 802.1AX clause 6.4.13; Linux: `ad_periodic_machine`).

use crate::lacp::port::Port;
use crate::lacp::timing::{Clock, FAST_PERIODIC, SLOW_PERIODIC, Timing};
use core::time::Duration;
use netcore::wire::LacpState;

/// Where the periodic transmission machine stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum PeriodicState {
    /// Nothing is sent periodically: link down, LACP off, or both ends passive.
    NoPeriodic,
    /// The partner wants to hear every second.
    FastPeriodic,
    /// The partner wants to hear every 30 seconds.
    SlowPeriodic,
    /// It is time to send.
    PeriodicTx,
}

/// Runs the machine. True if it moved.
pub(in crate::lacp) fn periodic(port: &mut Port, clock: Clock) -> bool {
    use PeriodicState::{FastPeriodic, NoPeriodic, PeriodicTx, SlowPeriodic};
    let last = port.periodic;
    let short = port.partner.state.contains(LacpState::TIMEOUT);
    let passive = !(port.actor.state | port.partner.state).contains(LacpState::ACTIVITY);
    port.periodic = if port.begin || !port.lacp_enabled || !port.enabled || passive {
        NoPeriodic
    } else if clock.is_over(port.periodic_timer) {
        PeriodicTx
    } else {
        match last {
            NoPeriodic => FastPeriodic,
            FastPeriodic if !short => SlowPeriodic,
            SlowPeriodic if short => PeriodicTx,
            PeriodicTx if short => FastPeriodic,
            PeriodicTx => SlowPeriodic,
            unchanged => unchanged,
        }
    };
    if port.periodic == last {
        return false;
    }
    port.periodic_timer = match port.periodic {
        NoPeriodic => None,
        FastPeriodic => Some(period(clock, FAST_PERIODIC)),
        SlowPeriodic => Some(period(clock, SLOW_PERIODIC)),
        PeriodicTx => {
            port.ntt = true;
            None
        }
    };
    true
}

/// The machine stays in `PeriodicTx` for one tick, if there are ticks: that tick is part of the period.
fn period(clock: Clock, span: Duration) -> netcore::Instant {
    clock.after(if clock.ticks() { span - Timing::TICK } else { span })
}
