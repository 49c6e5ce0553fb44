//! Receive machine (IEEE 802.1AX clause 6.4.12; Linux: `ad_rx_machine`).

use crate::lacp::port::{Participant, Port};
use crate::lacp::timing::{Clock, LONG_TIMEOUT, SHORT_TIMEOUT};
use netcore::wire::{LacpState, Lacpdu};

/// Where the receive machine stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ReceiveState {
    /// Just created, or restarted by a change of speed.
    Initialize,
    /// The link is down.
    PortDisabled,
    /// The partner was not heard in time, or not yet.
    Expired,
    /// The link is half duplex: LACP does not run.
    LacpDisabled,
    /// The partner is presumed to be what was configured.
    Defaulted,
    /// The partner is heard.
    Current,
}

/// Runs the machine, with what was received if it was called for that. True if it moved.
pub(in crate::lacp) fn receive(port: &mut Port, pdu: Option<&Lacpdu>, clock: Clock) -> bool {
    use ReceiveState::{Current, Defaulted, Expired, Initialize, LacpDisabled, PortDisabled};
    let last = port.rx;
    let moved = core::mem::take(&mut port.moved) && last == PortDisabled && !port.enabled;
    if port.begin || moved {
        port.rx = Initialize;
        port.churned |= port.begin;
    } else if !port.enabled {
        port.rx = PortDisabled;
    } else if let Some(pdu) = pdu
        && matches!(last, Expired | Defaulted | Current)
    {
        port.churned |= last != Current;
        port.rx = Current;
        current(port, pdu, clock);
        return true;
    } else if clock.is_over(port.current_while) {
        port.current_while = None;
        port.rx = match last {
            Expired => Defaulted,
            Current => Expired,
            other => other,
        };
    } else {
        port.rx = match last {
            Initialize => PortDisabled,
            PortDisabled if port.lacp_enabled => Expired,
            PortDisabled => LacpDisabled,
            LacpDisabled if port.lacp_enabled => PortDisabled,
            other => other,
        };
    }
    if port.rx == last && port.rx != Initialize {
        return false;
    }
    match port.rx {
        Initialize => {
            port.selected = false;
            record_default(port);
            port.set_actor(LacpState::EXPIRED, false);
            port.rx = PortDisabled;
            port_disabled(port);
        }
        PortDisabled => port_disabled(port),
        Expired => {
            port.partner.state.remove(LacpState::SYNCHRONIZATION);
            port.partner.state.insert(LacpState::TIMEOUT);
            port.matched = false;
            port.current_while = Some(clock.after(SHORT_TIMEOUT));
            port.set_actor(LacpState::EXPIRED, true);
            port.churned = true;
        }
        LacpDisabled => {
            port.selected = false;
            record_default(port);
            port.partner.state.remove(LacpState::AGGREGATION);
            port.matched = true;
            port.set_actor(LacpState::EXPIRED, false);
        }
        Defaulted => {
            // Clause 6.4.9, update_Default_Selected: judged by what was believed until now.
            port.selected &= port.partner_admin.is_same(&port.partner, LacpState::AGGREGATION);
            record_default(port);
            port.matched = true;
            port.set_actor(LacpState::EXPIRED, false);
        }
        Current => {}
    }
    true
}

/// A link that is down carries nothing, whatever its partner last said. Linux leaves the partner's Synchronization as it
/// was; the standard does not, and so the mux leaves its distributing state at once.
fn port_disabled(port: &mut Port) {
    port.matched = false;
    port.current_while = None;
    port.partner.state.remove(LacpState::SYNCHRONIZATION);
}

/// Takes in a LACPDU; the order of the steps matters.
fn current(port: &mut Port, pdu: &Lacpdu, clock: Clock) {
    let (sender, of_us) = (Participant::of(pdu.actor()), Participant::of(pdu.partner()));
    // update_Selected: another partner, or the same with another key, needs another aggregator.
    port.selected &= sender.is_same(&port.partner, LacpState::AGGREGATION);
    // update_NTT: the partner does not know what we are.
    let told = LacpState::ACTIVITY | LacpState::TIMEOUT | LacpState::SYNCHRONIZATION | LacpState::AGGREGATION;
    port.ntt |= !of_us.is_same(&port.actor, told);
    // recordPDU
    port.matched = of_us.is_same(&port.actor, LacpState::AGGREGATION) || !sender.state.contains(LacpState::AGGREGATION);
    port.partner = sender;
    if !port.matched {
        port.partner.state.remove(LacpState::SYNCHRONIZATION);
    }
    port.set_actor(LacpState::DEFAULTED | LacpState::EXPIRED, false);
    let short = port.actor.state.contains(LacpState::TIMEOUT);
    port.current_while = Some(clock.after(if short { SHORT_TIMEOUT } else { LONG_TIMEOUT }));
}

fn record_default(port: &mut Port) {
    port.partner = port.partner_admin;
    port.set_actor(LacpState::DEFAULTED, true);
}
