//! Adding and removing members while the bond runs (Linux: `bond_enslave`, `bond_release`).

use super::member::MemberCounters;
use super::{Bond, BondEvent, MAX_MEMBERS, MemberLink, Slave, owned};
use crate::error::{BondError, NotAdded};
use crate::options::{FailOverMac, MAX_ARP_TARGETS, Mode};
use alloc::vec::Vec;
use netcore::wire::SlowProtocol;
use netcore::{Burst, Driver, DriverError, Instant, MacAddress};

impl<D: Driver> Bond<D> {
    /// Adds a driver as a member and says its number.
    ///
    /// The member takes the bond's MTU, address (the first one gives the bond its own, unless the bond's was set), filters and
    /// features; if the bond is up it is started. What it was before comes back with [`Bond::remove_member`].
    ///
    /// # Errors
    /// [`NotAdded`] with the driver, which is as it was.
    pub fn add_member(&mut self, name: &str, mut driver: D, now: Instant) -> Result<u16, NotAdded<D>> {
        let original_mtu = driver.capabilities().mtu;
        let permanent = driver.capabilities().mac;
        match self.prepare_member(name, &mut driver, now) {
            Ok(()) => {}
            Err(error) => {
                if driver.capabilities().mtu != original_mtu {
                    let _ = driver.set_mtu(original_mtu);
                }
                if driver.capabilities().mac != permanent {
                    let _ = driver.set_mac(permanent);
                }
                return Err(NotAdded { driver, error });
            }
        }
        let id = self.free_id();
        let seen = driver.link();
        let mode = self.mode();
        let (link, delay) = if self.options.miimon > 0 {
            match (seen.up, self.options.updelay) {
                (true, 0) => (MemberLink::Up, 0),
                (true, delay) => (MemberLink::Back, delay),
                (false, _) => (MemberLink::Down, 0),
            }
        } else if self.options.arp_interval > 0 && !seen.up {
            (MemberLink::Down, 0)
        } else {
            (MemberLink::Up, 0)
        };
        let queues = usize::from(driver.capabilities().transmit_queues.max(1));
        let inactive = mode.uses_primary() || mode == Mode::Ieee8023ad;
        let address = driver.capabilities().mac;
        self.members.push(Slave {
            id,
            name: owned(name),
            driver,
            permanent,
            original_mtu,
            address,
            link,
            proposed: None,
            delay,
            seen,
            backup: matches!(mode, Mode::ActiveBackup | Mode::Ieee8023ad),
            inactive: inactive && !self.options.all_slaves_active,
            priority: 0,
            queue_id: 0,
            port: None,
            last_rx: None,
            last_tx: None,
            last_link_up: Some(now),
            target_rx: [None; MAX_ARP_TARGETS],
            stages: (0..queues).map(|_| Burst::with_capacity(super::STAGE)).collect(),
            load: 0,
            counters: MemberCounters::default(),
        });
        let index = self.members.len() - 1;
        self.events.push(BondEvent::Added { member: id });
        self.rebuild_capabilities();
        self.adaptive_add(index, now);
        self.lacp_add(index, now);
        if mode.uses_primary() {
            if self.options.primary == name {
                self.primary = Some(id);
                self.force_primary = true;
            }
            self.select_active(now);
        } else if self.current.is_none() && link == MemberLink::Up {
            self.current = Some(id);
        }
        self.lacp_output(now);
        self.refresh();
        Ok(id)
    }

    fn free_id(&mut self) -> u16 {
        while self.members.iter().any(|m| m.id == self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    fn prepare_member(&mut self, name: &str, driver: &mut D, now: Instant) -> Result<(), BondError> {
        if self.index_by_name(name).is_some() {
            return Err(BondError::NameTaken { name: owned(name) });
        }
        if self.members.len() >= MAX_MEMBERS {
            return Err(BondError::TooManyMembers { members: self.members.len() });
        }
        let mtu = self.capabilities.mtu;
        if driver.capabilities().mtu != mtu {
            driver.set_mtu(mtu).map_err(|error| BondError::Mtu { member: owned(name), mtu, error })?;
        }
        let own = driver.capabilities().mac;
        let first = self.members.is_empty();
        if first && !self.mac_assigned && own.is_valid_station() {
            self.adopt_mac(own);
            self.mac_assigned = true;
            self.lacp_system_changed(now);
        }
        let mut wanted = self.mac;
        if self.keeps_addresses() {
            wanted = own;
            if self.options.fail_over_mac == FailOverMac::Follow && !first && own == self.mac {
                // Two members with one address would confuse the switch.
                let b = self.random().to_be_bytes();
                wanted = MacAddress([b[0] & 0xfc | 2, b[1], b[2], b[3], b[4], b[5]]);
            }
        }
        if own != wanted {
            match driver.set_mac(wanted) {
                Ok(()) => {}
                // A device whose address cannot be set can be in an active-backup bond, which then follows it.
                Err(DriverError::Unsupported { .. }) if first && self.mode() == Mode::ActiveBackup => {
                    self.options.fail_over_mac = FailOverMac::Active;
                }
                Err(error) => return Err(BondError::Address { member: owned(name), mac: wanted, error }),
            }
        }
        let failed = |error| BondError::Driver { member: owned(name), error };
        self.filters(driver).map_err(failed)?;
        if self.up {
            driver.start(now).map_err(failed)?;
        }
        Ok(())
    }

    /// Gives a driver the bond's filters. One that cannot filter at all need not; it then delivers all.
    fn filters(&self, driver: &mut D) -> Result<(), DriverError> {
        let allow = |result| match result {
            Err(DriverError::Unsupported { .. }) => Ok(()),
            other => other,
        };
        let groups = self.groups_of_members();
        if !groups.is_empty() {
            allow(driver.set_multicast(&groups))?;
        }
        if self.promiscuous {
            driver.set_promiscuous(true)?;
        }
        if let Some(vlans) = &self.vlans {
            allow(driver.set_vlan_filter(Some(vlans)))?;
        }
        Ok(())
    }

    /// Group addresses that members listen to: the bond's, and that of LACP while an 802.3ad bond is up.
    pub(super) fn groups_of_members(&self) -> Vec<MacAddress> {
        let mut groups = self.multicast.clone();
        if self.mode() == Mode::Ieee8023ad && self.up && !groups.contains(&SlowProtocol::ADDRESS) {
            groups.push(SlowProtocol::ADDRESS);
        }
        groups
    }

    /// Brings the filters of all members up to date.
    pub(super) fn sync_multicast(&mut self) -> Result<(), DriverError> {
        let groups = self.groups_of_members();
        let mut result = Ok(());
        for m in &mut self.members {
            match m.driver.set_multicast(&groups) {
                Err(DriverError::Unsupported { .. }) | Ok(()) => {}
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Removes a member and gives its driver back, stopped, with its own address and MTU and without the bond's filters.
    /// Packets that waited for it are lost and counted.
    ///
    /// # Errors
    /// [`BondError::NoSuchMember`].
    pub fn remove_member(&mut self, name: &str, now: Instant) -> Result<D, BondError> {
        let index = self.index_by_name(name).ok_or_else(|| BondError::NoSuchMember { name: owned(name) })?;
        self.lacp_remove(index, now);
        self.adaptive_remove(index, now);
        self.drop_stages(index);
        let id = self.members[index].id;
        let was_current = self.current == Some(id);
        if self.primary == Some(id) {
            self.primary = None;
        }
        if self.arp_member == Some(id) {
            self.arp_member = None;
        }
        if was_current {
            self.change_active(None, now);
        }
        let mut gone = self.members.remove(index);
        self.events.push(BondEvent::Removed { member: id });
        if !self.groups_of_members().is_empty() {
            let _ = gone.driver.set_multicast(&[]);
        }
        if self.promiscuous {
            let _ = gone.driver.set_promiscuous(false);
        }
        if self.vlans.is_some() {
            let _ = gone.driver.set_vlan_filter(None);
        }
        if self.up {
            let _ = gone.driver.stop(now);
        }
        if gone.driver.capabilities().mtu != gone.original_mtu {
            let _ = gone.driver.set_mtu(gone.original_mtu);
        }
        if gone.driver.capabilities().mac != gone.permanent {
            let _ = gone.driver.set_mac(gone.permanent);
        }
        if self.members.is_empty() {
            // The next first member gives its address again.
            self.mac_assigned = false;
        } else if was_current {
            self.select_active(now);
        }
        self.rebuild_capabilities();
        self.lacp_output(now);
        self.refresh();
        Ok(gone.driver)
    }
}
