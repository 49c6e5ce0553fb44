//! [`Bond`]: several drivers as one.
//!
//! ```text
//!   transmit ─► policy ─► stage of a member ─► its driver        receive ◄─ filter ◄─ every member's driver
//!                 │                                                           │
//!   poll ─► links, timers ─► MII or ARP monitor ─► active member, usable members ◄─ LACP
//! ```
//!
//! - `transmit.rs`, `receive.rs`: the data path.
//! - `membership.rs`: add and remove; `settings.rs`: options; `driver.rs`: the bond as a [`Driver`].
//! - `mii.rs`, `arp.rs`: link monitors; `active.rs`: which member is the active one; `aggregate.rs`: LACP.
//! - `notify.rs`: telling peers and switches after a failover.
//! - `adaptive/`: balance-tlb and balance-alb.

mod active;
mod adaptive;
mod aggregate;
mod arp;
mod driver;
mod event;
mod frames;
mod member;
mod membership;
mod mii;
mod notify;
mod receive;
mod settings;
#[cfg(test)]
mod tests;
mod transmit;

pub use event::BondEvent;
pub use member::{MemberCounters, MemberInfo, MemberLink};

use crate::lacp::{Lacp, LacpConfig};
use crate::options::{FailOverMac, Mode, Options};
use crate::policy::{Era, Failover, Hash, Policy, RoundRobin};
use adaptive::Adaptive;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use event::Events;
use member::Slave;
use netcore::{Burst, Capabilities, Driver, Instant, LinkState, MacAddress, Member, PoolCache, Segmenter, XmitPolicy};

/// Most members of a bond.
pub const MAX_MEMBERS: usize = 256;

/// Packets that may wait for room in one transmit queue of a member before the bond takes no more for it.
const STAGE: usize = 64;

/// Counters of the bond itself; those of members are in [`MemberCounters`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BondCounters {
    /// Packets for which there was no member that can send.
    pub tx_dropped: u64,
    /// Copies of a broadcast that could not be made: no free windows.
    pub tx_no_copy: u64,
    /// Super-packets and checksums done in software because the member's device does not do them.
    pub tx_software: u64,
    /// Super-packets that could not be cut.
    pub tx_not_segmented: u64,
    /// Peer notifications sent, one per address.
    pub peer_notifications: u64,
    /// IGMP reports sent.
    pub igmp_reports: u64,
    /// Probes of the ARP monitor sent.
    pub arp_probes: u64,
    /// ARP replies that moved peers of a balance-alb bond to their member.
    pub arp_updates: u64,
    /// Learning packets sent.
    pub learning_packets: u64,
    /// Times another member became the active one.
    pub failovers: u64,
}

/// An address of the host that uses the bond: peers are told of it after a failover, and ARP probes come from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostAddress {
    /// The address.
    pub ip: IpAddr,
    /// Tag control information of the VLAN it is in; `None` for no VLAN.
    pub vlan: Option<u16>,
}

/// Several drivers as one. See the [module](self).
///
/// ```
/// use netcore::{PacketPool, PoolConfig};
/// use netcore_bond::{Bond, options::Options};
///
/// let pool = PacketPool::new(PoolConfig::with_buffers(256))?;
/// let options: Options = "mode active-backup miimon 100 primary nic0".parse()?;
/// let bond: Bond = Bond::new("bond0", options, pool.cache(), 1);
/// assert_eq!(bond.option("primary_reselect").unwrap(), "always 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Bond<D: Driver = Box<dyn Driver>> {
    options: Options,
    capabilities: Capabilities,
    cache: PoolCache,
    segmenter: Option<Box<dyn Segmenter>>,
    members: Vec<Slave<D>>,
    next_id: u16,
    random: u64,
    up: bool,
    carrier: bool,
    mac: MacAddress,
    /// The address is the first member's, or was set; otherwise it is random.
    mac_assigned: bool,
    /// What the policy chooses from, and the place in `members` of each.
    view: Vec<Member>,
    view_of: Vec<u16>,
    policy: Policy,
    user_policy: bool,
    failover: Failover,
    era: Era,
    round_robin_in_aggregate: bool,
    source_per_member: bool,
    /// Numbers of members.
    current: Option<u16>,
    primary: Option<u16>,
    force_primary: bool,
    arp_member: Option<u16>,
    lacp: Option<Lacp>,
    adaptive: Option<Box<Adaptive>>,
    addresses: Vec<HostAddress>,
    groups: Vec<Ipv4Addr>,
    multicast: Vec<MacAddress>,
    promiscuous: bool,
    vlans: Option<Vec<u16>>,
    next_mii: Option<Instant>,
    next_arp: Option<Instant>,
    next_adaptive: Option<Instant>,
    next_igmp: Option<Instant>,
    peer_notifications_left: u32,
    igmp_left: u32,
    events: Events,
    counters: BondCounters,
    received: Burst,
    one: Burst,
}

impl<D: Driver> Bond<D> {
    /// A bond without members, down. Frames of its own come from `cache`; `seed` decides what is random: the address until
    /// there is a member, and turns with `packets_per_slave` 0.
    pub fn new(name: &str, options: Options, cache: PoolCache, seed: u64) -> Self {
        let mut capabilities = Capabilities::default();
        capabilities.name = name.to_string();
        let b = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        // A local station address.
        let mac = MacAddress([b[0] & 0xfc | 2, b[1], b[2], b[3], b[4], b[5]]);
        capabilities.mac = mac;
        let mut bond = Self {
            capabilities,
            cache,
            segmenter: None,
            members: Vec::new(),
            next_id: 0,
            random: seed,
            up: false,
            carrier: false,
            mac,
            mac_assigned: false,
            view: Vec::new(),
            view_of: Vec::new(),
            policy: Policy::RoundRobin(RoundRobin::new(options.packets_per_slave, seed)),
            user_policy: false,
            failover: Failover::Array,
            era: Era::Current,
            round_robin_in_aggregate: false,
            source_per_member: false,
            current: None,
            primary: None,
            force_primary: false,
            arp_member: None,
            lacp: None,
            adaptive: None,
            addresses: Vec::new(),
            groups: Vec::new(),
            multicast: Vec::new(),
            promiscuous: false,
            vlans: None,
            next_mii: None,
            next_arp: None,
            next_adaptive: None,
            next_igmp: None,
            peer_notifications_left: 0,
            igmp_left: 0,
            events: Events::default(),
            counters: BondCounters::default(),
            received: Burst::new(),
            one: Burst::new(),
            options,
        };
        bond.apply_mode();
        bond.rebuild_capabilities();
        bond
    }

    /// Does in software what a member's device does not, so that the bond offers what any member can (Linux:
    /// `netdev_increment_features`). Without a segmenter it offers what every member can.
    pub fn set_segmenter(&mut self, segmenter: Box<dyn Segmenter>) {
        self.segmenter = Some(segmenter);
        self.rebuild_capabilities();
    }

    /// Chooses members by a policy of the caller instead of the mode's; `None` goes back. Modes that have one active member
    /// or send everywhere do not ask it.
    pub fn set_policy(&mut self, policy: Option<Box<dyn XmitPolicy>>) {
        self.user_policy = policy.is_some();
        match policy {
            Some(policy) => self.policy = Policy::User(policy),
            None => self.apply_policy(),
        }
        self.refresh();
    }

    /// What happens to flows when a member fails: see [`Failover`].
    pub fn set_failover(&mut self, failover: Failover) {
        self.failover = failover;
        self.apply_policy();
        self.refresh();
    }

    /// Whose hash formulas: see [`Era`].
    pub fn set_era(&mut self, era: Era) {
        self.era = era;
        self.apply_policy();
    }

    /// Sends packets of an 802.3ad bond in turn over the ports of the active aggregator instead of by hash, as proposed in
    /// 2011. This reorders frames of a conversation, which IEEE 802.1AX does not allow a distributor. With
    /// `source_per_member` each frame has its member's own source address, so that a switch that hashes addresses spreads
    /// one conversation, too.
    pub fn set_round_robin_in_aggregate(&mut self, on: bool, source_per_member: bool) {
        (self.round_robin_in_aggregate, self.source_per_member) = (on, on && source_per_member);
        self.apply_policy();
        self.refresh();
    }

    /// Addresses of the host that uses the bond.
    pub fn set_host_addresses(&mut self, addresses: &[HostAddress]) {
        self.addresses.clear();
        self.addresses.extend_from_slice(addresses);
    }

    /// IPv4 multicast groups that are joined anew after a failover.
    pub fn set_groups(&mut self, groups: &[Ipv4Addr]) {
        self.groups.clear();
        self.groups.extend_from_slice(groups);
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.capabilities.name
    }

    /// The options.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Counters of the bond itself.
    pub const fn counters(&self) -> BondCounters {
        self.counters
    }

    /// Events that were lost because nobody asked for them.
    pub const fn lost_events(&self) -> u64 {
        self.events.lost
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<BondEvent> {
        self.events.pop()
    }

    /// The members, in the order they were added.
    pub fn members(&self) -> impl ExactSizeIterator<Item = MemberInfo<'_>> {
        self.members.iter().map(Slave::info)
    }

    /// A member by name.
    pub fn member(&self, name: &str) -> Option<MemberInfo<'_>> {
        self.members.iter().find(|m| m.name == name).map(Slave::info)
    }

    /// A member's driver.
    pub fn driver(&self, name: &str) -> Option<&D> {
        self.members.iter().find(|m| m.name == name).map(|m| &m.driver)
    }

    /// A member's driver, for its own settings. What the bond has set (address, MTU, filters) is to be left alone.
    pub fn driver_mut(&mut self, name: &str) -> Option<&mut D> {
        self.members.iter_mut().find(|m| m.name == name).map(|m| &mut m.driver)
    }

    /// Name of the active member (Linux: `curr_active_slave`).
    pub fn active_member(&self) -> Option<&str> {
        let id = self.current?;
        self.members.iter().find(|m| m.id == id).map(|m| m.name.as_str())
    }

    /// LACP of an 802.3ad bond.
    pub const fn lacp(&self) -> Option<&Lacp> {
        self.lacp.as_ref()
    }

    fn index_of(&self, id: u16) -> Option<usize> {
        self.members.iter().position(|m| m.id == id)
    }

    fn index_by_name(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|m| m.name == name)
    }

    fn mode(&self) -> Mode {
        self.options.mode
    }

    /// Members of an active-backup bond keep addresses of their own.
    fn keeps_addresses(&self) -> bool {
        self.mode() == Mode::ActiveBackup && self.options.fail_over_mac != FailOverMac::None
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// What the mode needs: its policy, LACP, the tables of the adaptive modes.
    fn apply_mode(&mut self) {
        self.apply_policy();
        self.lacp = (self.mode() == Mode::Ieee8023ad).then(|| self.new_lacp()).flatten();
        self.adaptive = self.mode().is_adaptive().then(|| Box::new(Adaptive::new(self.mode())));
    }

    fn new_lacp(&self) -> Option<Lacp> {
        Lacp::new(self.lacp_config()).ok()
    }

    fn lacp_config(&self) -> LacpConfig {
        let o = &self.options;
        LacpConfig {
            ad_actor_sys_prio: o.ad_actor_sys_prio,
            ad_user_port_key: o.ad_user_port_key,
            lacp_rate: o.lacp_rate,
            lacp_active: o.lacp_active,
            ad_select: o.ad_select,
            min_links: o.min_links,
            coupled_control: o.coupled_control,
            ..LacpConfig::new(self.lacp_system())
        }
    }

    /// `ad_actor_system`, or the bond's address.
    fn lacp_system(&self) -> MacAddress {
        if self.options.ad_actor_system.is_valid_station() { self.options.ad_actor_system } else { self.mac }
    }

    fn apply_policy(&mut self) {
        if self.user_policy {
            return;
        }
        let hash = Hash::new(self.options.xmit_hash_policy).with_failover(self.failover).with_era(self.era);
        let packets = self.options.packets_per_slave;
        let in_turn =
            self.mode() == Mode::BalanceRr || self.mode() == Mode::Ieee8023ad && self.round_robin_in_aggregate;
        match &mut self.policy {
            // The counter runs on.
            Policy::RoundRobin(policy) if in_turn => policy.set_packets_per_slave(packets),
            policy if in_turn => *policy = Policy::RoundRobin(RoundRobin::new(packets, self.random)),
            policy => *policy = Policy::Hash(hash),
        }
    }

    /// Brings what the policy sees up to date, tells of members that may send or may not, and settles the carrier.
    fn refresh(&mut self) {
        self.view.clear();
        self.view_of.clear();
        // Round robin and the successor walk count all members; a hash counts those that can send, in an 802.3ad bond those
        // of the active aggregator.
        let all = match (&self.policy, self.mode()) {
            (Policy::RoundRobin(_) | Policy::User(_), Mode::BalanceRr) => true,
            (Policy::Hash(hash), _) => hash.failover() == Failover::Successor,
            (Policy::User(_), _) => true,
            (Policy::RoundRobin(_), _) => false,
        };
        let active = self.lacp.as_ref().and_then(|lacp| lacp.active_aggregator()).map(|a| a.aggregator_id);
        for (i, m) in self.members.iter().enumerate() {
            let in_aggregate = match (&self.lacp, m.port) {
                (Some(lacp), Some(port)) => {
                    active.is_some() && lacp.port(port).ok().and_then(|p| lacp.aggregator_of(p)) == active
                }
                _ => true,
            };
            if in_aggregate && (all || m.can_send()) {
                self.view.push(m.view());
                self.view_of.push(i as u16);
            }
        }
        if let Policy::RoundRobin(policy) = &mut self.policy {
            policy.set_igmp_member(self.current);
        }
        self.settle_carrier();
    }

    /// Linux: `bond_set_carrier`.
    fn settle_carrier(&mut self) {
        let up = self.up
            && match &self.lacp {
                Some(lacp) => lacp.carrier(),
                None => self.members.iter().any(|m| m.link == MemberLink::Up),
            };
        if up != self.carrier {
            self.carrier = up;
            self.events.push(BondEvent::Carrier { up });
        }
    }

    /// Speed is the sum of members that can send, or the active one's (Linux: `bond_ethtool_get_link_ksettings`).
    fn link_state(&self) -> LinkState {
        if !self.carrier {
            return LinkState::DOWN;
        }
        let usable = self.members.iter().filter(|m| m.can_send());
        let speeds = usable.clone().filter_map(|m| m.seen.speed_mbps);
        let one = matches!(self.mode(), Mode::ActiveBackup | Mode::Broadcast);
        let speed = if one { speeds.max() } else { Some(speeds.sum()).filter(|sum| *sum > 0) };
        LinkState { up: true, speed_mbps: speed, duplex: usable.map(|m| m.seen.duplex).next().unwrap_or_default() }
    }

    /// Sets a member's link and tells of it.
    fn set_link(&mut self, index: usize, link: MemberLink) {
        let m = &mut self.members[index];
        if m.link != link {
            m.link = link;
            self.events.push(BondEvent::Link { member: m.id, link });
        }
    }

    fn set_backup(&mut self, index: usize, backup: bool) {
        let m = &mut self.members[index];
        if m.backup != backup {
            m.backup = backup;
            self.events.push(BondEvent::Sends { member: m.id, sends: !backup });
        }
        if backup {
            self.drop_stages(index);
        }
    }

    /// Linux: `bond_set_slave_inactive_flags`.
    fn set_inactive(&mut self, index: usize) {
        if !self.mode().is_adaptive() {
            self.set_backup(index, true);
        }
        self.members[index].inactive = !self.options.all_slaves_active;
    }

    /// Linux: `bond_set_slave_active_flags`.
    fn set_active(&mut self, index: usize) {
        self.set_backup(index, false);
        self.members[index].inactive = false;
    }

    /// Packets that wait for a member that may no longer send are lost, and counted.
    fn drop_stages(&mut self, index: usize) {
        let m = &mut self.members[index];
        for stage in &mut m.stages {
            m.counters.tx_dropped += stage.len() as u64;
            m.counters.tx_packets -= stage.len() as u64;
            m.counters.tx_bytes -= stage.bytes() as u64;
            self.cache.put_burst(stage);
        }
    }

    /// Sends a frame of the bond's own on a member; true if its driver took it.
    fn send_own(&mut self, index: usize, frame: &[u8], now: Instant) -> bool {
        let m = &mut self.members[index];
        let Ok(mut packet) = self.cache.copy_from_slice(frame) else {
            m.counters.control_dropped += 1;
            return false;
        };
        packet.set_priority(7);
        self.one.push(packet);
        let sent = matches!(m.driver.transmit_control(&mut self.one, now), Ok(n) if n > 0);
        if !sent {
            m.counters.control_dropped += 1;
        }
        self.cache.put_burst(&mut self.one);
        sent
    }

    /// Starts timers that are to run and stops the others.
    fn schedule(&mut self, now: Instant) {
        let o = &self.options;
        let start = |on: bool, timer: Option<Instant>| if on { timer.or(Some(now)) } else { None };
        self.next_mii = start(self.up && o.miimon > 0, self.next_mii);
        self.next_arp = start(self.up && o.arp_interval > 0 && o.mode.uses_arp(), self.next_arp);
        self.next_adaptive = start(self.up && self.adaptive.is_some(), self.next_adaptive);
        if !self.up {
            self.next_igmp = None;
        }
    }
}

/// The next time of something that is done at an interval: late by more than one interval, it starts anew.
fn next_time(last: Instant, interval: Duration, now: Instant) -> Instant {
    let next = last + interval;
    if next <= now { now + interval } else { next }
}

/// What a name of a member can be in messages.
fn owned(name: &str) -> String {
    name.to_string()
}
