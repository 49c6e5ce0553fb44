//! An 802.3ad bond: LACP decides which members send and receive.

use super::{Bond, BondEvent};
use crate::lacp::{LacpEvent, PortConfig};
use netcore::{Driver, Instant, LinkState};

impl<D: Driver> Bond<D> {
    /// A new member becomes a port.
    pub(super) fn lacp_add(&mut self, index: usize, now: Instant) {
        let Some(lacp) = &mut self.lacp else { return };
        let m = &mut self.members[index];
        let config = PortConfig::new(m.permanent);
        let link = if m.link == super::MemberLink::Up { m.seen } else { LinkState::DOWN };
        m.port = lacp.add_port(&config, link, now).ok();
    }

    /// The port of a member that leaves says so to its partner.
    pub(super) fn lacp_remove(&mut self, index: usize, now: Instant) {
        let Some(port) = self.members[index].port else { return };
        if let Some(lacp) = &mut self.lacp {
            // The port was added with the member.
            let _ = lacp.remove_port(port, now);
        }
        self.lacp_output(now);
        self.members[index].port = None;
    }

    /// Tells LACP of a member's link, as the link monitor has it.
    pub(super) fn lacp_link(&mut self, index: usize, now: Instant) {
        let m = &self.members[index];
        let link = if m.link == super::MemberLink::Up { m.seen } else { LinkState::DOWN };
        if let (Some(lacp), Some(port)) = (&mut self.lacp, m.port) {
            let _ = lacp.set_link(port, link, now);
        }
    }

    /// Sends what LACP wants sent, and does what it decided.
    pub(super) fn lacp_output(&mut self, now: Instant) {
        let mut changed = false;
        while let Some(event) = self.lacp.as_mut().and_then(crate::lacp::Lacp::next_event) {
            changed = true;
            match event {
                LacpEvent::Port { port, collecting, distributing } => {
                    let Some(index) = self.members.iter().position(|m| m.port == Some(port)) else { continue };
                    self.set_backup(index, !distributing);
                    self.members[index].inactive = !collecting && !self.options.all_slaves_active;
                }
                LacpEvent::ActiveAggregator { aggregator } => self.events.push(BondEvent::Aggregator { aggregator }),
                LacpEvent::Loopback { port } => {
                    if let Some(m) = self.members.iter().find(|m| m.port == Some(port)) {
                        self.events.push(BondEvent::Loopback { member: m.id });
                    }
                }
                _ => {}
            }
        }
        while let Some(frame) = self.lacp.as_mut().and_then(crate::lacp::Lacp::next_frame) {
            if let Some(index) = self.members.iter().position(|m| m.port == Some(frame.port)) {
                self.send_own(index, &frame.bytes, now);
            }
        }
        if changed {
            self.refresh();
        }
    }
}
