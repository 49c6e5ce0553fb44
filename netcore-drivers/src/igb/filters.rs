//! Addresses, multicast, VLANs, and the receive hash.

use super::regs::{MRQC, MTA, RETA, RSSRK, UTA, VFTA, receive_address};
use super::{Generation, Igb};
use crate::error::NicError;
use crate::nic::{Settings, filter};
use netcore::Features;

/// Bits of MRQC that name hash fields (82576 datasheet 8.10.18).
mod fields {
    pub(super) const TCP4: u32 = 1 << 16;
    pub(super) const IPV4: u32 = 1 << 17;
    pub(super) const IPV6: u32 = 1 << 20;
    pub(super) const TCP6: u32 = 1 << 21;
    pub(super) const UDP4: u32 = 1 << 22;
    pub(super) const UDP6: u32 = 1 << 23;
}

/// MRQC 2:0: the hash chooses the queue.
const RSS: u32 = 2;
/// How often VFTA has to be written on the I350 (specification update).
const VFTA_WRITES_I350: usize = 10;

impl Igb {
    /// Tables that no setting fills: other addresses, the unicast hash. Reset leaves them undefined.
    pub(super) fn clear_tables(&mut self) -> Result<(), NicError> {
        for index in 1..self.part.generation.addresses() {
            let at = receive_address(index);
            self.csr.write(at + 4, 0);
            self.csr.write(at, 0);
        }
        if self.part.generation != Generation::I82575 {
            for index in 0..filter::MULTICAST_WORDS as u32 {
                self.csr.write(UTA + 4 * index, 0);
            }
        }
        self.csr.flush()
    }

    /// Station address, multicast and VLAN tables. Reset leaves the tables undefined, so every word is written.
    pub(super) fn program_filters(&mut self, settings: &Settings) -> Result<(), NicError> {
        let (low, high) = filter::receive_address(settings.mac);
        let at = receive_address(0);
        // The address is invalid while it changes.
        self.csr.write(at + 4, 0);
        self.csr.flush()?;
        self.csr.write(at, low);
        self.csr.flush()?;
        self.csr.write(at + 4, high);
        self.write_table(MTA, &filter::multicast_table(&settings.groups), 1);
        let times = if self.part.generation == Generation::I350 { VFTA_WRITES_I350 } else { 1 };
        self.write_table(VFTA, &filter::vlan_table(settings.vlans.as_deref().unwrap_or(&[])), times);
        self.csr.flush()
    }

    fn write_table(&mut self, base: u32, words: &[u32], times: usize) {
        for (index, word) in (0u32..).zip(words) {
            for _ in 0..times {
                self.csr.write(base + 4 * index, *word);
            }
        }
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
        // 82575: the queue is in bits 7:6.
        let shift = if self.part.generation == Generation::I82575 { 6 } else { 0 };
        for index in 0..32usize {
            let mut word = 0;
            for entry in 0..4 {
                let queue = settings.rss.queue(4 * index + entry, settings.queues);
                word |= u32::from(queue) << (8 * entry + shift);
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
