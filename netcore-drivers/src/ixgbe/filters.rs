//! Addresses, multicast, VLANs, and the receive hash.

use super::regs::{FCTRL, MCSTCTRL, MPSAR, MRQC, MTA, RAH, RAL, RETA, RSSRK, UTA, VFTA, VLNCTRL, fctrl};
use super::{ADDRESSES, Ixgbe, RSS_QUEUES};
use crate::error::NicError;
use crate::nic::{Settings, filter};
use netcore::Features;

/// Bits of MRQC that name hash fields (82599 datasheet 8.2.3.7.12).
mod fields {
    pub(super) const TCP4: u32 = 1 << 16;
    pub(super) const IPV4: u32 = 1 << 17;
    pub(super) const IPV6: u32 = 1 << 20;
    pub(super) const TCP6: u32 = 1 << 21;
    pub(super) const UDP4: u32 = 1 << 22;
    pub(super) const UDP6: u32 = 1 << 23;
}

/// MRQC 3:0: the hash chooses the queue.
const RSS: u32 = 1;
/// VLNCTRL: EtherType of tags; filter.
const TAG: u32 = 0x8100;
const VFE: u32 = 1 << 30;
/// MCSTCTRL: the table of groups is used.
const MFE: u32 = 1 << 2;

impl Ixgbe {
    /// Tables that no setting fills: other addresses, their pools, the unicast hash. Reset leaves them undefined.
    pub(super) fn clear_tables(&mut self) -> Result<(), NicError> {
        for index in 0..ADDRESSES {
            if index > 0 {
                self.csr.write(RAH + 8 * index, 0);
                self.csr.write(RAL + 8 * index, 0);
            }
            self.csr.write(MPSAR + 8 * index, 0);
            self.csr.write(MPSAR + 8 * index + 4, 0);
        }
        for index in 0..filter::MULTICAST_WORDS as u32 {
            self.csr.write(UTA + 4 * index, 0);
        }
        self.csr.flush()
    }

    /// Station address, multicast and VLAN tables, promiscuous mode.
    pub(super) fn program_filters(&mut self, settings: &Settings) -> Result<(), NicError> {
        let (low, high) = filter::receive_address(settings.mac);
        // The address is invalid while it changes.
        self.csr.write(RAH, 0);
        self.csr.flush()?;
        self.csr.write(RAL, low);
        self.csr.flush()?;
        self.csr.write(RAH, high);
        for (index, word) in (0u32..).zip(filter::multicast_table(&settings.groups)) {
            self.csr.write(MTA + 4 * index, word);
        }
        for (index, word) in (0u32..).zip(filter::vlan_table(settings.vlans.as_deref().unwrap_or(&[]))) {
            self.csr.write(VFTA + 4 * index, word);
        }
        self.csr.write(MCSTCTRL, MFE);
        let on = |feature| settings.features.contains(feature);
        let filters = settings.vlans.is_some() && on(Features::RX_VLAN_FILTER) && !settings.promiscuous;
        self.csr.write(VLNCTRL, TAG | if filters { VFE } else { 0 });
        let mut value = fctrl::BAM;
        if settings.promiscuous {
            value |= fctrl::UPE | fctrl::MPE;
        }
        if on(Features::RX_ALL) {
            value |= fctrl::SBP;
        }
        self.csr.write(FCTRL, value);
        self.csr.flush()
    }

    /// Hash and queue choice.
    pub(super) fn program_rss(&mut self, settings: &Settings) {
        if !settings.features.contains(Features::RX_HASH) && settings.queues < 2 {
            self.csr.write(MRQC, 0);
            return;
        }
        for (index, word) in (0u32..).zip(settings.rss.key.chunks_exact(4)) {
            self.csr.write(RSSRK + 4 * index, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
        // An entry has four bits: the hash reaches the first sixteen queues, filters reach all.
        let queues = settings.queues.min(RSS_QUEUES);
        for index in 0..32usize {
            let mut word = 0;
            for entry in 0..4 {
                word |= u32::from(settings.rss.queue(4 * index + entry, queues)) << (8 * entry);
            }
            self.csr.write(RETA + 4 * index as u32, word);
        }
        let hash = settings.rss.hash;
        let mut value = RSS;
        for (on, bits) in [
            (hash.tcp4, fields::TCP4),
            (hash.ipv4, fields::IPV4),
            (hash.tcp6, fields::TCP6),
            (hash.ipv6, fields::IPV6),
            (hash.udp4, fields::UDP4),
            (hash.udp6, fields::UDP6),
        ] {
            if on {
                value |= bits;
            }
        }
        self.csr.write(MRQC, value);
    }
}
