//! Packets by a hash of what they are (Linux: `bond_xmit_hash`, `bond_xmit_3ad_xor_slave_get`).

use super::walk;
use crate::options::XmitHashPolicy;
use netcore::flow;
use netcore::{Member, Packet, XmitPolicy};

/// What happens to flows when a member fails or returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Failover {
    /// The hash counts those that can send: most flows move whenever their number changes (Linux since 3.18).
    #[default]
    Array,
    /// The hash counts all, and what falls on one that cannot send goes to its successor: flows of the others stay (Linux
    /// 2.6).
    Successor,
}

/// Whose formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Era {
    /// Linux 6.
    #[default]
    Current,
    /// Linux 2.6.35, where layer2, layer2+3 and layer3+4 look at fewer bits. The other policies, which are younger, are as they
    /// are now.
    Linux26,
}

/// Packets of one flow on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hash {
    policy: XmitHashPolicy,
    failover: Failover,
    era: Era,
}

/// Bytes at the front of a frame that a hash can depend on: more than all headers of any tunnel that is looked into.
const REACH: usize = 512;

impl Hash {
    /// A policy as the current kernel has it.
    pub const fn new(policy: XmitHashPolicy) -> Self {
        Self { policy, failover: Failover::Array, era: Era::Current }
    }

    /// With another failover behaviour.
    pub const fn with_failover(self, failover: Failover) -> Self {
        Self { failover, ..self }
    }

    /// With the formulas of another time.
    pub const fn with_era(self, era: Era) -> Self {
        Self { era, ..self }
    }

    /// What the hash is made of.
    pub const fn policy(&self) -> XmitHashPolicy {
        self.policy
    }

    /// What happens to flows when a member fails or returns.
    pub const fn failover(&self) -> Failover {
        self.failover
    }

    /// The hash of a packet (Linux: `bond_xmit_hash`).
    #[inline]
    pub fn of(&self, packet: &Packet) -> u32 {
        if self.policy == XmitHashPolicy::Encap34
            && let Some((hash, true)) = packet.hash()
        {
            return hash;
        }
        let head = packet.head();
        if head.len() >= REACH || head.len() == packet.len() {
            return self.of_frame(head, packet);
        }
        // The headers go on in further segments.
        let mut bytes = [0; REACH];
        let n = packet.len().min(REACH);
        match packet.copy_to(0, &mut bytes[..n]) {
            Ok(()) => self.of_frame(&bytes[..n], packet),
            Err(_) => self.of_frame(head, packet),
        }
    }

    #[inline]
    fn of_frame(&self, frame: &[u8], packet: &Packet) -> u32 {
        use XmitHashPolicy as P;
        match (self.policy, self.era) {
            (P::Layer2, Era::Current) => flow::layer2_hash(frame),
            (P::Layer23, Era::Current) => flow::layer23_hash(frame),
            (P::Layer34, Era::Current) => flow::layer34_hash(frame),
            (P::Encap23, _) => flow::encap23_hash(frame, packet.vlan()),
            (P::Encap34, _) => flow::encap34_hash(frame, packet.vlan()),
            (P::VlanSrcMac, _) => flow::vlan_srcmac_hash(frame, packet.vlan()),
            (policy, Era::Linux26) => linux26(policy, frame),
        }
    }
}

/// The formulas of 2.6.35 (`bond_xmit_hash_policy_l2`, `_l23`, `_l34`): IPv4 only, 16 bits of the addresses, no ports of
/// fragments.
fn linux26(policy: XmitHashPolicy, frame: &[u8]) -> u32 {
    let Some(h) = frame.first_chunk::<14>() else { return 0 };
    let layer2 = u32::from(h[5] ^ h[11]);
    let Some(ip) = frame[14..].first_chunk::<20>().filter(|_| h[12..] == [0x08, 0x00]) else { return layer2 };
    let addresses = u32::from(u16::from_be_bytes([ip[14] ^ ip[18], ip[15] ^ ip[19]]));
    match policy {
        XmitHashPolicy::Layer23 => addresses ^ layer2,
        XmitHashPolicy::Layer34 => {
            let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
            let ports = frame.get(14 + usize::from(ip[0] & 0x0f) * 4..).and_then(|rest| rest.first_chunk::<4>());
            let ports = ports.filter(|_| !fragment && matches!(ip[9], 6 | 17));
            ports.map_or(0, |p| u32::from(u16::from_be_bytes([p[0] ^ p[2], p[1] ^ p[3]]))) ^ addresses
        }
        _ => layer2,
    }
}

impl XmitPolicy for Hash {
    #[inline]
    fn select(&mut self, packet: &Packet, members: &[Member]) -> Option<usize> {
        let hash = self.of(packet);
        if self.failover == Failover::Successor {
            return walk(members, hash.checked_rem(members.len() as u32)? as usize);
        }
        let usable = members.iter().filter(|member| member.active).count();
        let n = hash.checked_rem(usable as u32)? as usize;
        if usable == members.len() {
            return Some(n);
        }
        members.iter().enumerate().filter(|(_, member)| member.active).nth(n).map(|(i, _)| i)
    }

    fn name(&self) -> &'static str {
        self.policy.name()
    }
}
