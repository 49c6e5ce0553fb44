//! Settings that change while the system runs.

use super::{AdSelect, Lacp, LacpConfig, LacpError, LacpRate};
use netcore::wire::LacpState;
use netcore::{Instant, MacAddress};

impl Lacp {
    /// Sets how often the partner shall send (`lacp_rate`), and tells it at once.
    pub fn set_lacp_rate(&mut self, rate: LacpRate, now: Instant) {
        self.config.lacp_rate = rate;
        self.set_actor_bit(LacpState::TIMEOUT, rate == LacpRate::Fast, now);
    }

    /// Sets whether LACPDUs are sent unasked (`lacp_active`).
    pub fn set_lacp_active(&mut self, active: bool, now: Instant) {
        self.config.lacp_active = active;
        self.set_actor_bit(LacpState::ACTIVITY, active, now);
    }

    fn set_actor_bit(&mut self, bit: LacpState, on: bool, now: Instant) {
        for port in &mut self.ports {
            if port.actor.state.contains(bit) != on {
                port.set_actor(bit, on);
                port.ntt = true;
            }
        }
        self.settle(now);
    }

    /// Sets address and priority of the system (`ad_actor_system`, `ad_actor_sys_prio`).
    ///
    /// # Errors
    /// [`LacpError::OutOfRange`], [`LacpError::SystemAddress`]; nothing changed then.
    pub fn set_system(&mut self, address: MacAddress, priority: u16, now: Instant) -> Result<(), LacpError> {
        let config = LacpConfig { ad_actor_system: address, ad_actor_sys_prio: priority, ..self.config };
        config.validate()?;
        self.config = config;
        for port in &mut self.ports {
            (port.actor.system, port.actor.system_priority, port.ntt) = (address, priority, true);
        }
        self.settle(now);
        Ok(())
    }

    /// Sets the user's part of the port keys (`ad_user_port_key`); ports whose key changes start over.
    ///
    /// # Errors
    /// [`LacpError::OutOfRange`]; nothing changed then.
    pub fn set_user_port_key(&mut self, key: u16, now: Instant) -> Result<(), LacpError> {
        let config = LacpConfig { ad_user_port_key: key, ..self.config };
        config.validate()?;
        self.config = config;
        for port in &mut self.ports {
            port.update_key(key);
        }
        self.settle(now);
        Ok(())
    }

    /// Sets the priority of a port (`actor_port_prio`).
    ///
    /// # Errors
    /// [`LacpError::NoSuchPort`].
    pub fn set_port_priority(&mut self, port: u16, priority: u16, now: Instant) -> Result<(), LacpError> {
        let index = self.index(port)?;
        let port = &mut self.ports[index];
        (port.actor.port_priority, port.ntt) = (priority, true);
        self.think_anew();
        self.settle(now);
        Ok(())
    }

    /// Sets how the active aggregator is chosen (`ad_select`); it is chosen anew.
    pub fn set_ad_select(&mut self, select: AdSelect, now: Instant) {
        self.config.ad_select = select;
        self.think_anew();
        self.settle(now);
    }

    /// Sets how many enabled ports the bond needs for carrier (`min_links`).
    pub fn set_min_links(&mut self, links: u32) {
        self.config.min_links = links;
    }

    /// Sets whether collecting and distributing are switched together (`coupled_control`). A port that is in use keeps the
    /// way it came there until it leaves.
    pub fn set_coupled_control(&mut self, coupled: bool) {
        self.config.coupled_control = coupled;
    }
}
