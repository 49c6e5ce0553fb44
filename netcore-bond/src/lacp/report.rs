//! State as `/proc/net/bonding` prints it.

use super::{Lacp, Port};
use core::fmt;
use netcore::wire::PortInformation;

/// The section `802.3ad info` of `/proc/net/bonding/…`, as root sees it. [`Lacp::info`] makes it.
#[derive(Clone, Copy, Debug)]
pub struct LacpInfo<'a>(&'a Lacp);

/// A port's part of `/proc/net/bonding/…`, from `Aggregator ID` on, as root sees it. [`Lacp::port_info`] makes it.
#[derive(Clone, Copy, Debug)]
pub struct PortInfo<'a>(&'a Lacp, &'a Port);

impl Lacp {
    /// The bond's section of `/proc/net/bonding`.
    pub const fn info(&self) -> LacpInfo<'_> {
        LacpInfo(self)
    }

    /// A port's section of `/proc/net/bonding`.
    pub const fn port_info<'a>(&'a self, port: &'a Port) -> PortInfo<'a> {
        PortInfo(self, port)
    }
}

impl fmt::Display for LacpInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.0.config();
        writeln!(f, "802.3ad info")?;
        writeln!(f, "LACP active: {}", if config.lacp_active { "on" } else { "off" })?;
        writeln!(f, "LACP rate: {}", config.lacp_rate)?;
        writeln!(f, "Min links: {}", config.min_links)?;
        writeln!(f, "Aggregator selection policy (ad_select): {}", config.ad_select)?;
        writeln!(f, "System priority: {}", config.ad_actor_sys_prio)?;
        writeln!(f, "System MAC address: {}", config.ad_actor_system)?;
        let Some(active) = self.0.active_aggregator() else {
            return writeln!(f, "bond has no active aggregator");
        };
        writeln!(f, "Active Aggregator Info:")?;
        writeln!(f, "\tAggregator ID: {}", active.aggregator_id)?;
        writeln!(f, "\tNumber of ports: {}", active.ports)?;
        writeln!(f, "\tActor Key: {}", active.actor_key)?;
        writeln!(f, "\tPartner Key: {}", active.partner_key)?;
        writeln!(f, "\tPartner Mac Address: {}", active.partner_system)
    }
}

impl fmt::Display for PortInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(lacp, port) = self;
        match lacp.aggregator_of(port) {
            Some(id) => writeln!(f, "Aggregator ID: {id}")?,
            None => return writeln!(f, "Aggregator ID: N/A"),
        }
        writeln!(f, "Actor Churn State: {}", port.actor_churn().state())?;
        writeln!(f, "Partner Churn State: {}", port.partner_churn().state())?;
        writeln!(f, "Actor Churned Count: {}", port.actor_churn().count())?;
        writeln!(f, "Partner Churned Count: {}", port.partner_churn().count())?;
        writeln!(f, "details actor lacp pdu:")?;
        pdu(f, &port.actor(), "port key")?;
        writeln!(f, "details partner lacp pdu:")?;
        pdu(f, &port.partner(), "oper key")
    }
}

fn pdu(f: &mut fmt::Formatter<'_>, info: &PortInformation, key: &str) -> fmt::Result {
    writeln!(f, "    system priority: {}", info.system_priority())?;
    writeln!(f, "    system mac address: {}", info.system())?;
    writeln!(f, "    {key}: {}", info.key())?;
    writeln!(f, "    port priority: {}", info.port_priority())?;
    writeln!(f, "    port number: {}", info.port())?;
    writeln!(f, "    port state: {}", info.state().bits())
}
