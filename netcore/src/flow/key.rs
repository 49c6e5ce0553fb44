//! What identifies a flow, tunnel and VLAN included.

use crate::dissect::{Dissection, TunnelKind};
use crate::wire::{Ipv4Header, Ipv6Header, Protocol};
use core::fmt;
use core::net::IpAddr;

/// What identifies a flow: innermost addresses, protocol and ports, and the tunnel network and VLANs around them, so that
/// the same addresses in two networks are two flows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// Innermost source address.
    pub source: IpAddr,
    /// Innermost destination address.
    pub destination: IpAddr,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// Source and destination port; `None` for protocols without ports and for fragments, the first too.
    pub ports: Option<(u16, u16)>,
    /// The innermost tunnel around the packet.
    pub tunnel: Option<TunnelKind>,
    /// Network identifier of the innermost tunnel: VNI of VXLAN and GENEVE, key of GRE.
    pub vni: Option<u32>,
    /// VLAN ids of the outermost link header, the outer first.
    pub vlans: [Option<u16>; 2],
    /// VLAN ids of the link header inside the innermost tunnel.
    pub inner_vlans: [Option<u16>; 2],
}

impl FlowKey {
    /// The flow of a dissected frame; `None` if it is not IP.
    pub fn of(frame: &[u8], d: &Dissection) -> Option<Self> {
        let network = d.innermost()?;
        let bytes = frame.get(usize::from(network.offset)..)?;
        let (source, destination): (IpAddr, IpAddr) = if network.version == 4 {
            let (header, _, _) = Ipv4Header::parse(bytes).ok()?;
            (header.source().into(), header.destination().into())
        } else {
            let (header, _) = Ipv6Header::parse(bytes).ok()?;
            (header.source().into(), header.destination().into())
        };
        let has_ports = matches!(network.protocol, Protocol::TCP | Protocol::UDP | Protocol::SCTP) && !network.fragment;
        let upper = usize::from(network.upper);
        let ports = match frame.get(upper..upper + 4) {
            Some(&[a, b, c, d]) if has_ports => Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
            _ => None,
        };
        let ids = |tags: u8, tci: [u16; 2]| [0, 1].map(|n| (tags > n).then(|| tci[usize::from(n)] & 0x0fff));
        Some(Self {
            source,
            destination,
            protocol: network.protocol.0,
            ports,
            tunnel: d.kind,
            vni: d.vni,
            vlans: ids(d.tags, d.tci),
            inner_vlans: ids(d.inner_tags, d.inner_tci),
        })
    }

    /// The same flow in the other direction.
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, ports: self.ports.map(|(a, b)| (b, a)), ..self }
    }
}

impl fmt::Display for FlowKey {
    /// `TCP 203.0.113.1:44190 > 203.0.113.2:5001 vni 4242`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |f: &mut fmt::Formatter<'_>, address: IpAddr, port: Option<u16>| match (address, port) {
            (address, None) => write!(f, "{address}"),
            (IpAddr::V4(address), Some(port)) => write!(f, "{address}:{port}"),
            (IpAddr::V6(address), Some(port)) => write!(f, "[{address}]:{port}"),
        };
        write!(f, "{} ", Protocol(self.protocol))?;
        end(f, self.source, self.ports.map(|p| p.0))?;
        f.write_str(" > ")?;
        end(f, self.destination, self.ports.map(|p| p.1))?;
        match (self.tunnel, self.vni) {
            (Some(TunnelKind::Gre), Some(key)) => write!(f, " GRE key {key}")?,
            (Some(TunnelKind::Geneve), Some(vni)) => write!(f, " GENEVE vni {vni}")?,
            (_, Some(vni)) => write!(f, " vni {vni}")?,
            (Some(kind), None) => write!(f, " {kind}")?,
            (None, None) => {}
        }
        for vlan in self.inner_vlans.into_iter().flatten() {
            write!(f, " inner vlan {vlan}")?;
        }
        for vlan in self.vlans.into_iter().flatten() {
            write!(f, " vlan {vlan}")?;
        }
        Ok(())
    }
}
