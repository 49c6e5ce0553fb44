//! A port: what it is, what it knows of its partner, and where its machines stand.

use super::machine::{ChurnMonitor, MuxState, PeriodicState, ReceiveState};
use super::{LacpConfig, LacpRate, LacpStatistics, PortConfig, port_key, timing};
use netcore::driver::Duplex;
use netcore::wire::{LacpState, Lacpdu, PortInformation};
use netcore::{Instant, LinkState, MacAddress};

/// One end of a link in machine byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Participant {
    pub(super) system_priority: u16,
    pub(super) system: MacAddress,
    pub(super) key: u16,
    pub(super) port_priority: u16,
    pub(super) port: u16,
    pub(super) state: LacpState,
}

impl Participant {
    /// What a port believes of a partner that it has not heard (Linux: `ad_initialize_port`).
    pub(super) const UNKNOWN: Self = Self {
        system_priority: 0xffff,
        system: MacAddress([0; 6]),
        key: 1,
        port_priority: 255,
        port: 1,
        state: LacpState::empty(),
    };

    pub(super) fn of(info: &PortInformation) -> Self {
        Self {
            system_priority: info.system_priority(),
            system: info.system(),
            key: info.key(),
            port_priority: info.port_priority(),
            port: info.port(),
            state: info.state(),
        }
    }

    pub(super) const fn wire(&self) -> PortInformation {
        PortInformation::new(self.system_priority, self.system, self.key, self.port_priority, self.port, self.state)
    }

    /// True if both are the same port of the same system with the same key, and the state bits of `mask` are equal.
    pub(super) fn is_same(&self, other: &Self, mask: LacpState) -> bool {
        Self { state: self.state & mask, ..*self } == Self { state: other.state & mask, ..*other }
    }
}

/// A port of the aggregation system.
#[derive(Clone, Debug)]
pub struct Port {
    pub(super) address: MacAddress,
    pub(super) link: LinkState,
    /// Link up: the machines may run.
    pub(super) enabled: bool,
    /// LACP runs on it: the link is full duplex.
    pub(super) lacp_enabled: bool,
    pub(super) fixed_key: Option<u16>,
    pub(super) individual: bool,
    pub(super) begin: bool,
    pub(super) moved: bool,
    pub(super) selected: bool,
    pub(super) matched: bool,
    pub(super) ready_n: bool,
    pub(super) ntt: bool,
    pub(super) actor: Participant,
    pub(super) partner: Participant,
    pub(super) partner_admin: Participant,
    /// Index of its aggregator.
    pub(super) aggregator: Option<usize>,
    pub(super) rx: ReceiveState,
    pub(super) current_while: Option<Instant>,
    pub(super) periodic: PeriodicState,
    pub(super) periodic_timer: Option<Instant>,
    pub(super) mux: MuxState,
    pub(super) wait_while: Option<Instant>,
    /// Earliest next transmission, in ticks; the last transmissions, if event driven.
    pub(super) tx_at: Instant,
    pub(super) sent_at: [Option<Instant>; timing::MAX_TX_IN_SECOND],
    pub(super) churned: bool,
    pub(super) actor_churn: ChurnMonitor,
    pub(super) partner_churn: ChurnMonitor,
    /// May take data in.
    pub(super) collecting: bool,
    /// May send data, if its aggregator is the active one.
    pub(super) active: bool,
    pub(super) transaction: u32,
    pub(super) told: Told,
    pub(super) statistics: LacpStatistics,
}

/// What the caller has been told of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Told {
    pub(super) collecting: bool,
    pub(super) distributing: bool,
    pub(super) aggregator: Option<u16>,
    pub(super) response: Option<u32>,
    pub(super) loopback: bool,
}

impl Port {
    pub(super) fn new(config: &LacpConfig, port: &PortConfig, number: u16, link: LinkState, tx_at: Instant) -> Self {
        let mut state = LacpState::empty();
        state.set(LacpState::ACTIVITY, config.lacp_active);
        state.set(LacpState::TIMEOUT, config.lacp_rate == LacpRate::Fast);
        state.set(LacpState::AGGREGATION, !port.individual);
        Self {
            address: port.address,
            link,
            enabled: link.up,
            lacp_enabled: is_full_duplex(link),
            fixed_key: port.key,
            individual: port.individual,
            begin: true,
            moved: false,
            selected: false,
            matched: false,
            ready_n: false,
            ntt: false,
            actor: Participant {
                system_priority: config.ad_actor_sys_prio,
                system: config.ad_actor_system,
                key: port.key.unwrap_or(port_key(link, config.ad_user_port_key)),
                port_priority: port.actor_port_prio,
                port: number,
                state,
            },
            partner: Participant::UNKNOWN,
            partner_admin: Participant::UNKNOWN,
            aggregator: None,
            rx: ReceiveState::Initialize,
            current_while: None,
            periodic: PeriodicState::NoPeriodic,
            periodic_timer: None,
            mux: MuxState::Detached,
            wait_while: None,
            tx_at,
            sent_at: [None; timing::MAX_TX_IN_SECOND],
            churned: false,
            actor_churn: ChurnMonitor::default(),
            partner_churn: ChurnMonitor::default(),
            collecting: false,
            active: false,
            transaction: 0,
            told: Told::default(),
            statistics: LacpStatistics::default(),
        }
    }

    /// Number of the port.
    pub const fn number(&self) -> u16 {
        self.actor.port
    }

    /// The address that its LACPDUs come from.
    pub const fn address(&self) -> MacAddress {
        self.address
    }

    /// The link as last told.
    pub const fn link(&self) -> LinkState {
        self.link
    }

    /// What the port says about itself, with its operational key and state.
    pub const fn actor(&self) -> PortInformation {
        self.actor.wire()
    }

    /// What the port knows, or presumes, about its partner.
    pub const fn partner(&self) -> PortInformation {
        self.partner.wire()
    }

    /// State of the receive machine.
    pub const fn receive_state(&self) -> ReceiveState {
        self.rx
    }

    /// State of the mux machine.
    pub const fn mux_state(&self) -> MuxState {
        self.mux
    }

    /// State of the periodic transmission machine.
    pub const fn periodic_state(&self) -> PeriodicState {
        self.periodic
    }

    /// True if an aggregator was selected for the port.
    pub const fn is_selected(&self) -> bool {
        self.selected
    }

    /// True if the partner's view of this port is right.
    pub const fn is_matched(&self) -> bool {
        self.matched
    }

    /// True if a LACPDU is to be sent as soon as the transmit limit allows.
    pub const fn needs_to_transmit(&self) -> bool {
        self.ntt
    }

    /// Whether this end comes into sync in time.
    pub const fn actor_churn(&self) -> &ChurnMonitor {
        &self.actor_churn
    }

    /// Whether the other end comes into sync in time.
    pub const fn partner_churn(&self) -> &ChurnMonitor {
        &self.partner_churn
    }

    /// Counters.
    pub const fn statistics(&self) -> &LacpStatistics {
        &self.statistics
    }

    /// The LACPDU that would be sent now.
    pub const fn lacpdu(&self) -> Lacpdu {
        Lacpdu::new(self.actor(), self.partner(), 0)
    }

    /// Takes in a change of link (Linux: `bond_3ad_handle_link_change`). A link that is up is a new one: what was agreed
    /// held for the link as it was.
    pub(super) fn update_link(&mut self, link: LinkState, user_key: u16) {
        (self.link, self.enabled, self.lacp_enabled) = (link, link.up, is_full_duplex(link));
        self.update_key(user_key);
        if link.up {
            self.begin = true;
        } else {
            self.disable();
        }
    }

    /// Sets the operational key (Linux: `ad_update_actor_keys`).
    pub(super) fn update_key(&mut self, user_key: u16) {
        let key = self.fixed_key.unwrap_or(port_key(self.link, user_key));
        self.begin |= key != self.actor.key && self.link.up;
        self.actor.key = key;
    }

    /// True if the port must have an aggregator of its own.
    pub(super) fn is_individual(&self) -> bool {
        let partner_refuses = self.has_partner() && !self.partner.state.contains(LacpState::AGGREGATION);
        self.individual || !is_full_duplex(self.link) || partner_refuses
    }

    pub(super) fn set_actor(&mut self, bits: LacpState, on: bool) {
        self.actor.state.set(bits, on);
    }

    pub(super) const fn partner_in_sync(&self) -> bool {
        self.partner.state.contains(LacpState::SYNCHRONIZATION)
    }

    pub(super) const fn in_sync(&self) -> bool {
        self.actor.state.contains(LacpState::SYNCHRONIZATION)
    }

    /// True if the mux machine lets data be sent.
    pub(super) const fn is_in_use(&self) -> bool {
        matches!(self.mux, MuxState::CollectingDistributing | MuxState::Distributing)
    }

    /// A port that served without LACP has a partner now, and waits for it to be in sync. Linux lets data flow on.
    pub(super) fn stop_serving_alone(&mut self) {
        if self.active && !self.is_in_use() && self.has_partner() {
            self.disable();
        }
    }

    pub(super) fn has_partner(&self) -> bool {
        self.partner.system != MacAddress::default()
    }

    /// Data may flow both ways (Linux: `__enable_port`).
    pub(super) fn enable(&mut self) {
        if self.enabled {
            (self.collecting, self.active) = (true, true);
        }
    }

    /// Data may flow neither way (Linux: `__disable_port`).
    pub(super) fn disable(&mut self) {
        (self.collecting, self.active) = (false, false);
    }
}

/// LACP runs on full duplex links only.
fn is_full_duplex(link: LinkState) -> bool {
    link.up && link.duplex == Duplex::Full
}
