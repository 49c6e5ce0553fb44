//! Telling peers and switches where the bond's addresses and groups are after a failover.

use super::{Bond, BondEvent, HostAddress, frames, next_time};
use core::net::IpAddr;
use core::time::Duration;
use netcore::{Driver, Instant};

/// Time between two rounds of IGMP reports (Linux: `HZ / 5`).
const IGMP_INTERVAL: Duration = Duration::from_millis(200);

impl<D: Driver> Bond<D> {
    /// `num_grat_arp` notifications, `peer_notif_delay` apart, the first at once.
    pub(super) fn start_peer_notifications(&mut self, now: Instant) {
        self.peer_notifications_left = self.options.num_peer_notif.saturating_mul(self.options.peer_notif_delay.max(1));
        self.peer_notification_tick(now);
    }

    /// Once per interval of the link monitor.
    pub(super) fn peer_notification_tick(&mut self, now: Instant) {
        if self.peer_notifications_left == 0 {
            return;
        }
        let due = self.peer_notifications_left.is_multiple_of(self.options.peer_notif_delay.max(1));
        if due && !self.carrier {
            return;
        }
        self.peer_notifications_left -= 1;
        let Some(index) = self.current.and_then(|id| self.index_of(id)) else { return };
        if !due {
            return;
        }
        self.events.push(BondEvent::NotifyPeers);
        for a in 0..self.addresses.len() {
            let HostAddress { ip, vlan } = self.addresses[a];
            let frame = match ip {
                IpAddr::V4(ip) => frames::arp_request(self.mac, ip, ip, vlan),
                IpAddr::V6(ip) => frames::neighbour_advertisement(self.mac, ip, vlan),
            };
            if self.send_own(index, &frame, now) {
                self.counters.peer_notifications += 1;
            }
        }
    }

    /// `resend_igmp` rounds of reports, 200 ms apart, the first at the next poll.
    pub(super) fn start_igmp(&mut self, now: Instant) {
        self.igmp_left = self.options.resend_igmp;
        self.next_igmp = (self.igmp_left > 0).then_some(now);
    }

    pub(super) fn igmp_tick(&mut self, now: Instant) {
        self.igmp_left = self.igmp_left.saturating_sub(1);
        self.next_igmp = (self.igmp_left > 0).then(|| next_time(now, IGMP_INTERVAL, now));
        let index = match self.current.and_then(|id| self.index_of(id)) {
            Some(index) => Some(index),
            None => self.members.iter().position(super::Slave::can_send),
        };
        let Some(index) = index else { return };
        self.events.push(BondEvent::ResendIgmp);
        let source = self.addresses.iter().find_map(|a| match a.ip {
            IpAddr::V4(ip) => Some((ip, a.vlan)),
            IpAddr::V6(_) => None,
        });
        let (source, vlan) = source.unwrap_or((core::net::Ipv4Addr::UNSPECIFIED, None));
        for g in 0..self.groups.len() {
            let frame = frames::igmp_report(self.mac, source, self.groups[g], vlan);
            if self.send_own(index, &frame, now) {
                self.counters.igmp_reports += 1;
            }
        }
    }
}
