//! Arrangements of components that experiments share.

use crate::engine::{ComponentId, EngineError, Lab};
use crate::host::{Cost, Host, Interface};
use crate::net::{Link, LinkConfig};
use crate::nic::{Nic, NicConfig};
use netcore::{MacAddress, Port, Qdisc};
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter};
use netcore_tcp::{LinkAddress, Path};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// One side of a pair of hosts.
pub struct Side {
    /// The card.
    pub nic: NicConfig,
    /// The qdisc; `None`: a FIFO of 1000 packets.
    pub qdisc: Option<Box<dyn Qdisc>>,
    /// Byte queue limits.
    pub byte_queue_limits: bool,
    /// Receive offload.
    pub gro: Option<GroConfig>,
    /// Cost of receiving.
    pub cost: Cost,
}

impl Side {
    /// A host with this card, a FIFO of 1000 packets, byte queue limits and receive offload.
    pub fn new(nic: NicConfig) -> Self {
        Self { nic, qdisc: None, byte_queue_limits: true, gro: Some(GroConfig::default()), cost: Cost::default() }
    }

    /// The host, its card connected to nothing.
    pub fn build(self, lab: &mut Lab, name: &str) -> Result<Host, TopologyError> {
        let pool = lab.pool().clone();
        let (nic, driver) = Nic::shared(self.nic, pool.cache());
        let mut port = Port::builder(driver, pool.cache())
            .segmenter(Box::new(SoftwareSegmenter::new()))
            .byte_queue_limits(self.byte_queue_limits);
        if let Some(qdisc) = self.qdisc {
            port = port.qdisc(qdisc);
        }
        let mut interface = Interface::new(nic);
        if let Some(config) = self.gro {
            interface = interface.with_offload(Box::new(Gro::new(config)?));
        }
        Ok(Host::new(name, Box::new(port.build()), vec![interface], self.cost))
    }
}

/// Why an arrangement could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Receive offload refused.
    #[error(transparent)]
    Gro(#[from] netcore_offload::GroConfigError),
    /// A connection's configuration is wrong.
    #[error(transparent)]
    Config(#[from] netcore_tcp::ConfigError),
}

/// Two hosts and the link between them.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The first host.
    pub left: ComponentId,
    /// The second host.
    pub right: ComponentId,
    /// The link; its port 0 is at the first host.
    pub link: ComponentId,
}

/// Two hosts, each with one card, joined by one link.
///
/// # Errors
/// [`TopologyError`].
pub fn pair(lab: &mut Lab, left: Side, right: Side, link: LinkConfig) -> Result<Pair, TopologyError> {
    let (left, right) = (left.build(lab, "left")?, right.build(lab, "right")?);
    let (left, right) = (lab.add(left), lab.add(right));
    let seed = lab.derive_seed();
    let link = lab.add(Link::new(link, seed));
    lab.connect((left, 0), (link, 0))?;
    lab.connect((link, 1), (right, 0))?;
    Ok(Pair { left, right, link })
}

/// A locally administered station address.
pub const fn mac(host: u8, card: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, host, card])
}

/// The path of flow `flow` from host `from` to host `to`, between 10.0.0.`from` and 10.0.0.`to`.
pub fn path(from: u8, to: u8, flow: u16, mtu: u16) -> Path {
    let address = |host| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    let link = LinkAddress { local: mac(from, 0), remote: mac(to, 0), vlan: None };
    let local = SocketAddr::new(address(from), 40_000 + flow);
    let remote = SocketAddr::new(address(to), 5001);
    Path::new(link, local, remote).with_mtu(mtu)
}
