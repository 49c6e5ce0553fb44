//! Which UDP ports carry a tunnel.

use crate::wire::{GeneveHeader, VxlanHeader};
use alloc::vec::Vec;

/// What carries a packet inside another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum TunnelKind {
    /// VXLAN: an Ethernet frame in UDP.
    Vxlan,
    /// GENEVE: an Ethernet frame or another protocol in UDP.
    Geneve,
    /// GRE: any protocol in IP.
    Gre,
    /// IPv4 or IPv6 in IP (Linux: ipip, sit, ip6tnl).
    Ip,
}

impl core::fmt::Display for TunnelKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Vxlan => "VXLAN",
            Self::Geneve => "GENEVE",
            Self::Gre => "GRE",
            Self::Ip => "IP-in-IP",
        })
    }
}

/// Which UDP destination ports carry a tunnel. GRE and IP-in-IP need no port and are always followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelPorts {
    /// Bit `port % 64` is set if some port of the table has that remainder: most packets are no tunnel, and need only this.
    filter: u64,
    table: Vec<(u16, TunnelKind)>,
}

impl TunnelPorts {
    /// No tunnels in UDP.
    pub const fn none() -> Self {
        Self { filter: 0, table: Vec::new() }
    }

    /// Adds a port whose payload is VXLAN; the port's earlier meaning is forgotten.
    pub fn with_vxlan(self, port: u16) -> Self {
        self.with(port, TunnelKind::Vxlan)
    }

    /// Adds a port whose payload is GENEVE; the port's earlier meaning is forgotten.
    pub fn with_geneve(self, port: u16) -> Self {
        self.with(port, TunnelKind::Geneve)
    }

    fn with(mut self, port: u16, kind: TunnelKind) -> Self {
        self.filter |= 1 << (port % 64);
        match self.table.iter_mut().find(|entry| entry.0 == port) {
            Some(entry) => entry.1 = kind,
            None => self.table.push((port, kind)),
        }
        self
    }

    /// Removes a port.
    pub fn without(mut self, port: u16) -> Self {
        self.table.retain(|entry| entry.0 != port);
        self.filter = self.table.iter().fold(0, |filter, entry| filter | 1 << (entry.0 % 64));
        self
    }

    /// False for most ports that carry no tunnel.
    #[inline(always)]
    pub(super) const fn may_be_tunnel(&self, port: u16) -> bool {
        self.filter >> (port % 64) & 1 != 0
    }

    /// What a UDP destination port carries.
    #[inline(always)]
    pub fn get(&self, port: u16) -> Option<TunnelKind> {
        if self.may_be_tunnel(port) { self.find(port) } else { None }
    }

    /// As [`TunnelPorts::get`] for a port that may be a tunnel's.
    #[inline(always)]
    pub(super) fn find(&self, port: u16) -> Option<TunnelKind> {
        self.table.iter().find(|entry| entry.0 == port).map(|entry| entry.1)
    }

    /// All ports and what they carry.
    pub fn iter(&self) -> impl Iterator<Item = (u16, TunnelKind)> + '_ {
        self.table.iter().copied()
    }
}

impl Default for TunnelPorts {
    /// The ports assigned by IANA: VXLAN 4789, GENEVE 6081. Linux's older VXLAN port is [`VxlanHeader::LINUX_PORT`].
    fn default() -> Self {
        Self::none().with_vxlan(VxlanHeader::PORT).with_geneve(GeneveHeader::PORT)
    }
}
