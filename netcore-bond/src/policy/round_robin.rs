//! Packets in turn (Linux: `bond_rr_gen_slave_id`, `bond_xmit_roundrobin_slave_get`).

use super::walk;
use netcore::{Member, Packet, XmitPolicy};

/// Each packet, or each group of packets, on the next member.
///
/// The unit is the packet handed to the bond: a super-packet of 64 KB goes out on one member. All members have a turn, those
/// that cannot send too: their turn falls to the next that can. IPv4 packets with IGMP stay on one member, so that membership
/// shows at one port of the switch.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    packets_per_slave: u32,
    counter: u32,
    random: u64,
    /// Number of the member that IGMP goes to; the first one if `None`.
    igmp_member: Option<u16>,
}

impl RoundRobin {
    /// `packets_per_slave` packets per turn; 0 chooses at random, by `seed`.
    pub const fn new(packets_per_slave: u32, seed: u64) -> Self {
        Self { packets_per_slave, counter: 0, random: seed, igmp_member: None }
    }

    /// Packets per turn; 0 is at random.
    pub const fn packets_per_slave(&self) -> u32 {
        self.packets_per_slave
    }

    /// Changes the length of a turn; the counter runs on.
    pub const fn set_packets_per_slave(&mut self, packets: u32) {
        self.packets_per_slave = packets;
    }

    /// Sends IGMP to the member of this number as long as it is active.
    pub const fn set_igmp_member(&mut self, member: Option<u16>) {
        self.igmp_member = member;
    }

    /// Takes back the last turn.
    pub(crate) const fn undo(&mut self) {
        self.counter = self.counter.wrapping_sub(1);
    }

    /// The number that, modulo the members, is the index of the next one. The counter is increased first: with one packet per
    /// turn, the first packet of all goes to the second member.
    #[inline]
    fn next(&mut self) -> u32 {
        match self.packets_per_slave {
            0 => {
                // splitmix64 (Steele, Lea and Flood 2014).
                self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z >> 32) as u32
            }
            1 => {
                self.counter = self.counter.wrapping_add(1);
                self.counter
            }
            packets => {
                self.counter = self.counter.wrapping_add(1);
                self.counter / packets
            }
        }
    }
}

/// True for an IPv4 packet with IGMP; listener discovery of IPv6 is not treated so.
#[inline]
fn is_igmp(packet: &Packet) -> bool {
    matches!(packet.head(), [_, _, _, _, _, _, _, _, _, _, _, _, 0x08, 0x00, _, _, _, _, _, _, _, _, _, 2, ..])
}

impl XmitPolicy for RoundRobin {
    #[inline]
    fn select(&mut self, packet: &Packet, members: &[Member]) -> Option<usize> {
        if is_igmp(packet) {
            return members
                .iter()
                .position(|m| Some(m.id) == self.igmp_member && m.active)
                .or_else(|| walk(members, 0));
        }
        let turn = self.next();
        // At most 65535 members: their numbers are 16 bits.
        let start = turn.checked_rem(members.len() as u32)? as usize;
        match members.get(start) {
            Some(member) if member.active => Some(start),
            _ => walk(members, start),
        }
    }

    fn name(&self) -> &'static str {
        "balance-rr"
    }
}
