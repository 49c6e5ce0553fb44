//! Statistics registers with ethtool's names.

use super::Ixgbe;
use crate::nic::statistics::{Register, Sums, Width};
use netcore::Statistics;

const fn low(name: &'static str, offset: u32) -> Register {
    Register { name, offset, width: Width::Low32 }
}

const fn pair(name: &'static str, offset: u32) -> Register {
    Register { name, offset, width: Width::Pair }
}

/// Counters of the MAC and the filters (82599 datasheet 8.2.3.23).
const REGISTERS: &[Register] = &[
    low("rx_pkts_nic", 0x4074),
    low("tx_pkts_nic", 0x4080),
    pair("rx_bytes_nic", 0x4088),
    pair("tx_bytes_nic", 0x4090),
    low("rx_broadcast", 0x4078),
    low("tx_broadcast", 0x40f4),
    low("rx_multicast", 0x407c),
    low("tx_multicast", 0x40f0),
    low("rx_crc_errors", 0x4000),
    low("rx_illegal_byte_errors", 0x4004),
    low("rx_byte_errors", 0x4008),
    low("rx_missed_0", 0x3fa0),
    low("mac_local_faults", 0x4034),
    low("mac_remote_faults", 0x4038),
    low("rx_length_errors", 0x4040),
    low("tx_flow_control_xon", 0x3f60),
    low("tx_flow_control_xoff", 0x3f68),
    low("rx_flow_control_xon", 0x41a4),
    low("rx_flow_control_xoff", 0x41a8),
    low("rx_size_64", 0x405c),
    low("rx_size_65_to_127", 0x4060),
    low("rx_size_128_to_255", 0x4064),
    low("rx_size_256_to_511", 0x4068),
    low("rx_size_512_to_1023", 0x406c),
    low("rx_size_1024_to_max", 0x4070),
    low("rx_short_length_errors", 0x40a4),
    low("rx_fragment_errors", 0x40a8),
    low("rx_long_length_errors", 0x40ac),
    low("rx_jabber_errors", 0x40b0),
    low("rx_smbus", 0x40b4),
    low("dropped_smbus", 0x40b8),
    low("tx_smbus", 0xcf90),
    pair("rx_total_bytes", 0x40c0),
    low("rx_total_packets", 0x40d0),
    low("tx_total_packets", 0x40d4),
    low("tx_size_64", 0x40d8),
    low("tx_size_65_to_127", 0x40dc),
    low("tx_size_128_to_255", 0x40e0),
    low("tx_size_256_to_511", 0x40e4),
    low("tx_size_512_to_1023", 0x40e8),
    low("tx_size_1024_to_max", 0x40ec),
    low("fdir_match", 0xee58),
    low("fdir_miss", 0xee5c),
];

/// Sums over the sixteen counter sets of queues.
const SETS: u32 = 16;
const QUEUE_SUMS: &[&str] = &["rx_packets", "rx_no_dma_resources", "tx_packets", "rx_queue_bytes", "tx_queue_bytes"];

/// Names of all counters: those of [`REGISTERS`], then [`QUEUE_SUMS`].
pub(super) const NAMES: &[&str] = &{
    let mut names = [""; REGISTERS.len() + QUEUE_SUMS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = if i < REGISTERS.len() { REGISTERS[i].name } else { QUEUE_SUMS[i - REGISTERS.len()] };
        i += 1;
    }
    names
};

impl Ixgbe {
    /// Reads every counter, which clears it.
    pub(super) fn collect(&self, sums: &mut Sums) {
        sums.harvest(&self.csr, REGISTERS);
        let base = REGISTERS.len();
        for set in 0..SETS {
            // Good packets of the MAC count those that are dropped later, so packets are those of the queues.
            for (n, at) in [0x1030 + 0x40 * set, 0x1430 + 0x40 * set, 0x6030 + 0x40 * set].into_iter().enumerate() {
                let Ok(value) = self.csr.read(at) else { return };
                sums.add(base + n, value.into());
            }
            // 36 bits, lower half first.
            for (n, at) in [(3, 0x1034 + 0x40 * set), (4, 0x8700 + 8 * set)] {
                let (Ok(low), Ok(high)) = (self.csr.read(at), self.csr.read(at + 4)) else { return };
                sums.add(base + n, u64::from(low) | u64::from(high & 0xf) << 32);
            }
        }
    }
}

/// The sums that Linux's driver forms of them (`ixgbe_update_stats`).
pub(super) fn derive(sums: &Sums, statistics: &mut Statistics) {
    let get = |name: &str| NAMES.iter().position(|n| *n == name).map_or(0, |index| sums.get(index));
    statistics.add("rx_bytes", get("rx_bytes_nic"));
    statistics.add("tx_bytes", get("tx_bytes_nic"));
    statistics.add("rx_errors", get("rx_crc_errors") + get("rx_length_errors"));
    statistics.add("rx_missed_errors", get("rx_missed_0"));
    statistics.add("rx_fifo_errors", get("rx_no_dma_resources"));
    statistics.add("multicast", get("rx_multicast"));
}
