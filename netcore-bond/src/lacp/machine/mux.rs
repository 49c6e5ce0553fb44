//! Mux machine (IEEE 802.1AX clause 6.4.15; Linux: `ad_mux_machine`), with coupled and independent control.

use crate::lacp::port::Port;
use crate::lacp::timing::{AGGREGATE_WAIT, Clock};
use netcore::wire::LacpState;

/// Where the mux machine stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MuxState {
    /// Belongs to no aggregator.
    Detached,
    /// Waits for other ports that may join the same aggregator.
    Waiting,
    /// Attached; in sync if the aggregator is the active one.
    Attached,
    /// Takes data in (independent control).
    Collecting,
    /// Takes data in and sends (independent control).
    Distributing,
    /// Takes data in and sends (coupled control).
    CollectingDistributing,
}

/// What the machine needs to know beyond its port.
#[derive(Clone, Copy, Debug)]
pub(in crate::lacp) struct Control {
    /// The port's aggregator is the active one.
    pub(in crate::lacp) active: bool,
    /// The port's aggregator has a partner.
    pub(in crate::lacp) has_partner: bool,
    /// All other ports of the aggregator have waited long enough.
    pub(in crate::lacp) others_ready: bool,
    /// The first choice of an aggregator is still to come.
    pub(in crate::lacp) selection_pending: bool,
    /// Collecting and distributing are switched together.
    pub(in crate::lacp) coupled: bool,
}

/// True if data flows although the partner is no longer ready for it.
pub(in crate::lacp) fn must_stop(port: &Port) -> bool {
    let collects = port.partner.state.contains(LacpState::COLLECTING);
    match port.mux {
        MuxState::CollectingDistributing | MuxState::Collecting => !port.partner_in_sync(),
        MuxState::Distributing => !port.partner_in_sync() || !collects,
        _ => false,
    }
}

/// Runs the machine. True if it moved.
pub(in crate::lacp) fn mux(port: &mut Port, control: Control, clock: Clock) -> bool {
    use MuxState::{Attached, Collecting, CollectingDistributing, Detached, Distributing, Waiting};
    let last = port.mux;
    let steady = port.selected && port.partner_in_sync() && port.in_sync();
    let partner_collects = port.partner.state.contains(LacpState::COLLECTING);
    let mut adjusted = false;
    port.mux = match last {
        _ if port.begin => Detached,
        Detached if port.selected => Waiting,
        Waiting if !port.selected => Detached,
        Waiting => {
            if clock.is_over(port.wait_while) {
                (port.wait_while, port.ready_n) = (None, true);
            }
            if port.ready_n && port.wait_while.is_none() && control.others_ready { Attached } else { Waiting }
        }
        Attached if !port.selected => Detached,
        Attached if port.partner_in_sync() && !control.selection_pending => match (control.active, control.coupled) {
            (true, true) => CollectingDistributing,
            (true, false) => Collecting,
            (false, _) => Attached,
        },
        Attached => {
            if control.active && !port.in_sync() {
                // Linux lets the partner find out with the next periodic LACPDU; it is told at once here.
                port.set_actor(LacpState::SYNCHRONIZATION, true);
                port.ntt = true;
                adjusted = true;
            }
            Attached
        }
        CollectingDistributing | Collecting if !steady => Attached,
        Collecting if partner_collects => Distributing,
        Distributing if !steady || !partner_collects => Collecting,
        // The port may have been disabled and enabled again meanwhile.
        CollectingDistributing | Distributing => {
            if control.active && !port.active && port.enabled {
                port.enable();
                adjusted = true;
            }
            last
        }
        Collecting => {
            if control.active && !port.collecting && port.enabled {
                port.collecting = true;
                adjusted = true;
            }
            last
        }
        Detached => Detached,
    };
    if port.mux == last && !(port.begin && port.mux == Detached) {
        return adjusted;
    }
    let flags = |sync, collecting, distributing| {
        let mut bits = LacpState::empty();
        bits.set(LacpState::SYNCHRONIZATION, sync);
        bits.set(LacpState::COLLECTING, collecting);
        bits.set(LacpState::DISTRIBUTING, distributing);
        bits
    };
    let bits = match port.mux {
        Detached => flags(false, false, false),
        Waiting => {
            port.wait_while = Some(clock.after(AGGREGATE_WAIT));
            return true;
        }
        Attached => flags(control.active, false, false),
        // On the way out, Synchronization stays lost; Linux sets it again, and the port never leaves.
        Collecting => flags(last == Attached || port.in_sync(), true, false),
        Distributing | CollectingDistributing => flags(true, true, true),
    };
    port.actor.state = (port.actor.state - flags(true, true, true)) | bits;
    match port.mux {
        Detached | Attached | Waiting => {
            if port.mux == Detached {
                (port.ready_n, port.wait_while) = (false, None);
            }
            // Without a partner the port may be in use without LACP.
            if control.has_partner {
                port.disable();
            }
        }
        Collecting => {
            port.collecting |= control.active && port.enabled;
            port.active &= !control.has_partner;
        }
        Distributing | CollectingDistributing => {
            if control.active {
                port.enable();
            }
        }
    }
    port.ntt |= port.mux != Distributing;
    true
}
