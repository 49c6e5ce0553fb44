//! Aggregators, and which of them is the active one (Linux: `ad_agg_selection_logic`).

use super::{AdSelect, Lacp, Port};
use netcore::MacAddress;
use netcore::wire::LacpState;

/// What ports that are used together have in common. There are as many as ports.
#[derive(Clone, Debug)]
pub(super) struct Aggregator {
    pub(super) id: u16,
    pub(super) active: bool,
    pub(super) individual: bool,
    /// The partner uses another aggregator; see `deadlock`.
    pub(super) refused: bool,
    pub(super) actor_key: u16,
    pub(super) partner_system: MacAddress,
    pub(super) partner_system_priority: u16,
    pub(super) partner_key: u16,
}

impl Aggregator {
    pub(super) fn new(id: u16) -> Self {
        Self {
            id,
            active: false,
            individual: false,
            refused: false,
            actor_key: 0,
            partner_system: MacAddress::default(),
            partner_system_priority: 0,
            partner_key: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.id);
    }

    /// Takes the identity of its first port.
    pub(super) fn found(&mut self, port: &Port) {
        self.individual = port.is_individual();
        self.actor_key = port.actor.key;
        self.partner_system = port.partner.system;
        self.partner_system_priority = port.partner.system_priority;
        self.partner_key = port.partner.key;
    }

    pub(super) fn has_partner(&self) -> bool {
        self.partner_system != MacAddress::default()
    }

    /// True if the port can be used together with those that are here. A port without a partner cannot: who knows where
    /// its link leads.
    pub(super) fn admits(&self, port: &Port) -> bool {
        self.has_partner()
            && !self.individual
            && !port.is_individual()
            && self.actor_key == port.actor.key
            && self.partner_system == port.partner.system
            && self.partner_system_priority == port.partner.system_priority
            && self.partner_key == port.partner.key
    }
}

/// The active aggregator (Linux: `struct ad_info`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveAggregator {
    /// Its identifier.
    pub aggregator_id: u16,
    /// Its enabled ports.
    pub ports: usize,
    /// Key of its ports.
    pub actor_key: u16,
    /// Key of the partner's ports.
    pub partner_key: u16,
    /// System of the partner; zero if it has none.
    pub partner_system: MacAddress,
}

/// What an aggregator is judged by, the most important first; the greater wins, and the incumbent if they are equal.
type Merit = (bool, bool, bool, u64, u64, u64);

impl Lacp {
    pub(super) fn members(&self, aggregator: usize) -> impl Iterator<Item = &Port> {
        self.ports.iter().filter(move |port| port.aggregator == Some(aggregator))
    }

    pub(super) fn enabled_ports(&self, aggregator: usize) -> usize {
        self.members(aggregator).filter(|port| port.enabled).count()
    }

    fn merit(&self, aggregator: usize) -> Merit {
        let (mut ports, mut bandwidth, mut priority) = (0u64, 0u64, 0u64);
        for port in self.members(aggregator).filter(|port| port.enabled) {
            ports += 1;
            bandwidth += u64::from(port.link.speed_mbps.unwrap_or(0));
            priority += u64::from(port.actor.port_priority);
        }
        let of = &self.aggregators[aggregator];
        let (a, b, c) = match self.config.ad_select {
            AdSelect::Stable | AdSelect::Bandwidth => (bandwidth, 0, 0),
            AdSelect::Count => (ports, bandwidth, 0),
            AdSelect::Prio => (priority, ports, bandwidth),
        };
        (!of.individual, of.has_partner(), !of.refused, a, b, c)
    }

    /// True if `ad_select=stable` keeps the incumbent although the rival is better.
    fn is_sticky(&self, incumbent: usize, rival: usize) -> bool {
        let (old, new) = (&self.aggregators[incumbent], &self.aggregators[rival]);
        self.config.ad_select == AdSelect::Stable
            && self.enabled_ports(incumbent) > 0
            && (old.has_partner() || !new.has_partner())
            && !(old.actor_key == 0 && new.actor_key != 0)
            && (!old.refused || new.refused)
    }

    /// Chooses the active aggregator. True if anything changed.
    pub(super) fn elect(&mut self) -> bool {
        let incumbent = self.aggregators.iter().position(|a| a.active);
        let mut best = incumbent.filter(|&a| self.enabled_ports(a) > 0);
        for rival in 0..self.aggregators.len() {
            if self.enabled_ports(rival) > 0 && best.is_none_or(|best| self.merit(rival) > self.merit(best)) {
                best = Some(rival);
            }
        }
        if let (Some(old), Some(rival)) = (incumbent, best)
            && self.is_sticky(old, rival)
        {
            best = incumbent;
        }
        let mut changed = best != incumbent;
        if changed {
            if let Some(old) = incumbent {
                self.aggregators[old].active = false;
                self.withdraw(old);
            }
            if let Some(new) = best {
                self.aggregators[new].active = true;
            }
        }
        // The partner does no LACP, or is not heard yet: use the port as if there were no bond.
        if let Some(active) = best.filter(|&a| !self.aggregators[a].has_partner()) {
            for port in self.ports.iter_mut().filter(|p| p.aggregator == Some(active)) {
                if port.enabled && !port.active && !port.has_partner() {
                    port.enable();
                    changed = true;
                }
            }
        }
        changed
    }

    /// Takes the ports of an aggregator that is no longer active out of use, and tells the partner: Linux goes on saying
    /// that they collect, and drops what comes.
    fn withdraw(&mut self, aggregator: usize) {
        for port in self.ports.iter_mut().filter(|port| port.aggregator == Some(aggregator)) {
            port.disable();
            if port.in_sync() {
                port.set_actor(LacpState::SYNCHRONIZATION, false);
                port.ntt = true;
            }
        }
    }

    /// The active aggregator; `None` if no port has a link.
    pub fn active_aggregator(&self) -> Option<ActiveAggregator> {
        let index = self.aggregators.iter().position(|a| a.active)?;
        let of = &self.aggregators[index];
        Some(ActiveAggregator {
            aggregator_id: of.id,
            ports: self.enabled_ports(index),
            actor_key: of.actor_key,
            partner_key: of.partner_key,
            partner_system: of.partner_system,
        })
    }

    /// True if the bond has carrier: the active aggregator has `min_links` enabled ports (Linux: `bond_3ad_set_carrier`).
    pub fn carrier(&self) -> bool {
        let needed = usize::try_from(self.config.min_links.max(1)).unwrap_or(usize::MAX);
        self.active_aggregator().is_some_and(|active| active.ports >= needed)
    }
}
