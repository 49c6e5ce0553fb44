//! A bond as a [`Driver`].

use super::{Bond, MemberLink, next_time};
use crate::lacp::Lacp;
use alloc::vec::Vec;
use core::time::Duration;
use netcore::driver::DriverError;
use netcore::{
    Burst, Capabilities, Completions, Driver, Features, GsoKind, Instant, LinkState, MacAddress, Statistics,
};

/// Features that any member's having them gives the bond, since the others are helped in software.
const ONE_FOR_ALL: Features = Features::SCATTER_GATHER
    .union(Features::TSO)
    .union(Features::TX_CHECKSUM_GENERIC)
    .union(Features::TX_CHECKSUM_IPV4)
    .union(Features::TX_CHECKSUM_IPV6)
    .union(Features::RX_CHECKSUM)
    .union(Features::RX_HASH);

/// The tick of the adaptive modes (Linux: `ALB_TIMER_TICKS_PER_SEC` 10).
const ADAPTIVE_TICK: Duration = Duration::from_millis(100);

impl<D: Driver> Bond<D> {
    /// What the members offer together (Linux: `bond_compute_features`). Sizes are minima.
    pub(super) fn rebuild_capabilities(&mut self) {
        let union = self.segmenter.is_some();
        let mut all = self.members.iter().map(|m| m.driver.capabilities());
        let c = &mut self.capabilities;
        let Some(first) = all.next() else {
            (c.supported, c.features, c.gso) = (Features::empty(), Features::empty(), GsoKind::empty());
            return;
        };
        let mut merged = first.clone();
        for other in all {
            let supported = (merged.supported & other.supported, (merged.supported | other.supported) & ONE_FOR_ALL);
            let features = (merged.features & other.features, (merged.features | other.features) & ONE_FOR_ALL);
            merged.supported = if union { supported.0 | supported.1 } else { supported.0 };
            merged.features = if union { features.0 | features.1 } else { features.0 };
            merged.gso = if union { merged.gso | other.gso } else { merged.gso & other.gso };
            merged.gso_max_size = merged.gso_max_size.min(other.gso_max_size);
            merged.gso_max_segments = merged.gso_max_segments.min(other.gso_max_segments);
            merged.max_segments = merged.max_segments.min(other.max_segments);
            merged.min_mtu = merged.min_mtu.max(other.min_mtu);
            merged.max_mtu = merged.max_mtu.min(other.max_mtu);
            merged.transmit_queues = merged.transmit_queues.min(other.transmit_queues);
            merged.receive_queues = merged.receive_queues.max(other.receive_queues);
        }
        (merged.name, merged.mac, merged.mtu) = (core::mem::take(&mut c.name), c.mac, c.mtu);
        *c = merged;
    }

    fn queue_error(&self, queue: u16) -> DriverError {
        DriverError::NoSuchQueue { queue, queues: self.capabilities.transmit_queues }
    }

    /// Takes note of what drivers say of their links.
    fn look_at_links(&mut self, now: Instant) {
        let mut changed = false;
        for index in 0..self.members.len() {
            let m = &mut self.members[index];
            let seen = m.driver.link();
            if seen == m.seen {
                continue;
            }
            let lost = m.seen.up && !seen.up;
            let renegotiated = seen.up && m.link == MemberLink::Up;
            m.seen = seen;
            changed = true;
            if lost {
                // Nothing is sent on it from now on, whatever its delay.
                self.drop_stages(index);
            }
            if renegotiated || lost {
                self.lacp_link(index, now);
            }
        }
        if changed {
            self.refresh();
        }
    }

    /// A call for each member; stops at the first that fails and takes the others back.
    fn on_all(
        &mut self,
        mut set: impl FnMut(&mut D) -> Result<(), DriverError>,
        mut undo: impl FnMut(&mut D),
    ) -> Result<(), DriverError> {
        for index in 0..self.members.len() {
            if let Err(error) = set(&mut self.members[index].driver) {
                self.members[..index].iter_mut().for_each(|m| undo(&mut m.driver));
                return Err(error);
            }
        }
        Ok(())
    }
}

impl<D: Driver> Driver for Bond<D> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        self.link_state()
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        if queue >= self.capabilities.transmit_queues {
            return Err(self.queue_error(queue));
        }
        self.transmit_all(queue, burst, now)
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        if queue >= self.capabilities.receive_queues {
            return Err(DriverError::NoSuchQueue { queue, queues: self.capabilities.receive_queues });
        }
        self.receive_all(queue, burst, budget, now)
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        if queue >= self.capabilities.transmit_queues {
            return Err(self.queue_error(queue));
        }
        let mut n = 0;
        for index in 0..self.members.len() {
            // A member that is gone has nothing to give back; the link monitor sees that it is gone.
            n += self.members[index].driver.reclaim(queue, completions, now).unwrap_or(0);
            self.flush(index, queue, now);
        }
        Ok(n)
    }

    /// Counters of all members summed up, and those of the bond.
    fn statistics(&self, statistics: &mut Statistics) {
        for m in &self.members {
            m.driver.statistics(statistics);
        }
        let c = &self.counters;
        let sum = |of: fn(&super::MemberCounters) -> u64| self.members.iter().map(|m| of(&m.counters)).sum::<u64>();
        statistics.add("bond_tx_packets", sum(|c| c.tx_packets));
        statistics.add("bond_tx_bytes", sum(|c| c.tx_bytes));
        statistics.add("bond_tx_dropped", c.tx_dropped + sum(|c| c.tx_dropped));
        statistics.add("bond_tx_no_copy", c.tx_no_copy);
        statistics.add("bond_tx_software", c.tx_software);
        statistics.add("bond_tx_not_segmented", c.tx_not_segmented);
        statistics.add("bond_rx_packets", sum(|c| c.rx_packets));
        statistics.add("bond_rx_bytes", sum(|c| c.rx_bytes));
        statistics.add("bond_rx_nohandler", sum(|c| c.rx_nohandler));
        statistics.add("bond_control_dropped", sum(|c| c.control_dropped));
        statistics.add("bond_link_failures", sum(|c| u64::from(c.link_failures)));
        statistics.add("bond_failovers", c.failovers);
        statistics.add("bond_peer_notifications", c.peer_notifications);
        statistics.add("bond_igmp_reports", c.igmp_reports);
        statistics.add("bond_arp_probes", c.arp_probes);
        statistics.add("bond_arp_updates", c.arp_updates);
        statistics.add("bond_learning_packets", c.learning_packets);
        if let Some(lacp) = &self.lacp {
            for (name, value) in lacp.statistics().counters() {
                statistics.add(name, value);
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        for m in &mut self.members {
            // A driver that fails shows as a link that is down.
            let _ = m.driver.poll(now);
        }
        self.look_at_links(now);
        if !self.up {
            return Ok(());
        }
        if let Some(due) = self.next_mii.filter(|due| *due <= now) {
            self.mii_tick(now);
            self.next_mii = Some(next_time(due, Duration::from_millis(u64::from(self.options.miimon.max(1))), now));
        }
        if let Some(due) = self.next_arp.filter(|due| *due <= now) {
            self.arp_tick(now);
            self.next_arp = Some(next_time(due, self.arp_interval(), now));
        }
        if let Some(due) = self.next_adaptive.filter(|due| *due <= now) {
            self.adaptive_tick(now);
            self.next_adaptive = Some(next_time(due, ADAPTIVE_TICK, now));
        }
        if self.next_igmp.is_some_and(|due| due <= now) {
            self.igmp_tick(now);
        }
        if let Some(lacp) = &mut self.lacp {
            lacp.poll(now);
            self.lacp_output(now);
        }
        for index in 0..self.members.len() {
            for queue in 0..self.capabilities.transmit_queues {
                self.flush(index, queue, now);
            }
        }
        Ok(())
    }

    fn poll_at(&self) -> Option<Instant> {
        let members = self.members.iter().filter_map(|m| m.driver.poll_at());
        let lacp = self.lacp.as_ref().and_then(Lacp::poll_at);
        let own = [self.next_mii, self.next_arp, self.next_adaptive, self.next_igmp, lacp];
        members.chain(own.into_iter().flatten()).min()
    }

    /// Starts all members; one that does not start counts as down.
    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        if self.up {
            return Ok(());
        }
        for m in &mut self.members {
            m.driver.start(now)?;
        }
        self.up = true;
        if let Some(lacp) = &mut self.lacp {
            lacp.open(now);
        }
        let result = self.sync_multicast();
        self.look_at_links(now);
        self.schedule(now);
        self.lacp_output(now);
        self.refresh();
        result
    }

    /// Stops all members and drops what waits for them, counted.
    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        let mut result = Ok(());
        self.up = false;
        if let Some(lacp) = &mut self.lacp {
            lacp.close();
        }
        let _ = self.sync_multicast();
        for index in 0..self.members.len() {
            self.drop_stages(index);
            result = result.and(self.members[index].driver.stop(now));
        }
        (self.peer_notifications_left, self.igmp_left) = (0, 0);
        self.schedule(now);
        self.refresh();
        result
    }

    /// See [`Bond::set_address`]; LACP hears of it at the next poll.
    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        let now = self.lacp_time();
        self.set_address(mac, now).map_err(|error| match error {
            crate::BondError::Address { error, .. } => error,
            _ => DriverError::Unsupported { what: "this station address" },
        })
    }

    /// On every member, in order; if one does not take it, those before go back and nothing is changed.
    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        let old = self.capabilities.mtu;
        self.on_all(
            |driver| if driver.capabilities().mtu == mtu { Ok(()) } else { driver.set_mtu(mtu) },
            |driver| {
                let _ = driver.set_mtu(old);
            },
        )?;
        self.capabilities.mtu = mtu;
        Ok(())
    }

    /// On every member. Members that cannot filter deliver all.
    fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
        self.multicast.clear();
        self.multicast.extend_from_slice(groups);
        self.sync_multicast()
    }

    /// On every member.
    fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> {
        let old = self.promiscuous;
        self.on_all(
            |driver| driver.set_promiscuous(on),
            |driver| {
                let _ = driver.set_promiscuous(old);
            },
        )?;
        self.promiscuous = on;
        Ok(())
    }

    /// On every member. Members that cannot filter deliver all.
    fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), DriverError> {
        let old = self.vlans.take();
        let result = self.on_all(
            |driver| match driver.set_vlan_filter(vlans) {
                Err(DriverError::Unsupported { .. }) => Ok(()),
                other => other,
            },
            |driver| {
                let _ = driver.set_vlan_filter(old.as_deref());
            },
        );
        self.vlans = match result {
            Ok(()) => vlans.map(Vec::from),
            Err(_) => old,
        };
        result
    }

    /// On every member, as far as it has them.
    fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
        if !self.capabilities.supported.contains(features) {
            return Err(DriverError::Unsupported { what: "a feature that no member has" });
        }
        for m in &mut self.members {
            let wanted = features & m.driver.capabilities().supported;
            if wanted != m.driver.capabilities().features {
                m.driver.set_features(wanted)?;
            }
        }
        self.rebuild_capabilities();
        Ok(())
    }

    /// On the active member, or on the first that can send.
    fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        let current = self.current.and_then(|id| self.index_of(id)).filter(|&i| self.members[i].can_send());
        match current.or_else(|| self.members.iter().position(super::Slave::can_send)) {
            Some(index) => self.members[index].driver.transmit_control(burst, now),
            None => Ok(0),
        }
    }
}
