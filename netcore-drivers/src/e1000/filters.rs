//! Addresses, multicast, VLANs, and the 82574's receive hash.

use super::regs::{ADDRESSES, MRQC, MTA, RAH, RAL, RETA, RSSRK, VFTA};
use super::{Family, Format};
use crate::error::NicError;
use crate::nic::{Settings, filter};
use netcore::Features;

/// Bits of MRQC that name hash fields (82574L datasheet 10.2.7.12).
mod fields {
    pub(super) const TCP4: u32 = 1 << 16;
    pub(super) const IPV4: u32 = 1 << 17;
    pub(super) const TCP6: u32 = 1 << 18 | 1 << 21;
    pub(super) const IPV6: u32 = 1 << 19 | 1 << 20;
}

impl<F: Format> Family<F> {
    /// All receive addresses but the first: none.
    pub(super) fn clear_addresses(&mut self) {
        for index in 1..ADDRESSES {
            self.csr.write(RAL + 8 * index, 0);
            self.csr.write(RAH + 8 * index, 0);
        }
    }

    /// Station address, multicast and VLAN tables. Reset leaves the tables undefined, so every word is written; bridges may
    /// merge writes to them, so each is flushed (8254x manual 13.5.1 note).
    pub(super) fn program_filters(&mut self, settings: &Settings) -> Result<(), NicError> {
        let (low, high) = filter::receive_address(settings.mac);
        // The address is invalid while it changes.
        self.csr.write(RAH, 0);
        self.csr.flush()?;
        self.csr.write(RAL, low);
        self.csr.flush()?;
        self.csr.write(RAH, high);
        self.csr.flush()?;
        self.write_table(MTA, &filter::multicast_table(&settings.groups))?;
        self.write_table(VFTA, &filter::vlan_table(settings.vlans.as_deref().unwrap_or(&[])))
    }

    fn write_table(&mut self, base: u32, words: &[u32]) -> Result<(), NicError> {
        for (index, word) in (0u32..).zip(words) {
            self.csr.write(base + 4 * index, *word);
            self.csr.flush()?;
        }
        Ok(())
    }

    /// Hash and queue choice of the 82574.
    pub(super) fn program_rss(&mut self, settings: &Settings) {
        let hash = settings.rss.hash;
        if !settings.features.contains(Features::RX_HASH) && settings.queues < 2 {
            self.csr.write(MRQC, 0);
            return;
        }
        for (index, word) in (0u32..).zip(settings.rss.key.chunks_exact(4)) {
            self.csr.write(RSSRK + 4 * index, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
        for index in 0..32usize {
            let mut word = 0;
            for entry in 0..4 {
                // The queue is bit 7 of each byte.
                let queue = settings.rss.queue(4 * index + entry, settings.queues);
                word |= u32::from(queue & 1) << (8 * entry + 7);
            }
            self.csr.write(RETA + 4 * index as u32, word);
        }
        let mut value = 1;
        for (on, bits) in
            [(hash.tcp4, fields::TCP4), (hash.ipv4, fields::IPV4), (hash.tcp6, fields::TCP6), (hash.ipv6, fields::IPV6)]
        {
            if on {
                value |= bits;
            }
        }
        self.csr.write(MRQC, value);
    }
}
