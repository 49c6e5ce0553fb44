//! Statistics registers with ethtool's names.

use super::Igb;
use super::regs::{receive_queue, rx};
use crate::nic::statistics::{Register, Sums, Width};
use netcore::Statistics;

const fn low(name: &'static str, offset: u32) -> Register {
    Register { name, offset, width: Width::Low32 }
}

const fn pair(name: &'static str, offset: u32) -> Register {
    Register { name, offset, width: Width::Pair }
}

/// Every counter of the family (82576 datasheet 8.18).
const REGISTERS: &[Register] = &[
    low("rx_packets", 0x4074),
    low("tx_packets", 0x4080),
    pair("rx_bytes", 0x4088),
    pair("tx_bytes", 0x4090),
    low("rx_broadcast", 0x4078),
    low("tx_broadcast", 0x40f4),
    low("rx_multicast", 0x407c),
    low("tx_multicast", 0x40f0),
    low("rx_crc_errors", 0x4000),
    low("rx_align_errors", 0x4004),
    low("rx_symbol_errors", 0x4008),
    low("rx_frame_errors", 0x400c),
    low("rx_missed_errors", 0x4010),
    low("tx_single_coll_ok", 0x4014),
    low("tx_abort_excessive_coll", 0x4018),
    low("tx_multi_coll_ok", 0x401c),
    low("tx_abort_late_coll", 0x4020),
    low("collisions", 0x4028),
    low("tx_deferred_ok", 0x4030),
    low("tx_carrier_errors", 0x4034),
    low("rx_sequence_errors", 0x4038),
    low("tx_dma_dropped", 0x403c),
    low("rx_length_field_errors", 0x4040),
    low("rx_flow_control_xon", 0x4048),
    low("tx_flow_control_xon", 0x404c),
    low("rx_flow_control_xoff", 0x4050),
    low("tx_flow_control_xoff", 0x4054),
    low("rx_flow_control_unsupported", 0x4058),
    low("rx_size_64", 0x405c),
    low("rx_size_65_to_127", 0x4060),
    low("rx_size_128_to_255", 0x4064),
    low("rx_size_256_to_511", 0x4068),
    low("rx_size_512_to_1023", 0x406c),
    low("rx_size_1024_to_max", 0x4070),
    low("rx_no_buffer_count", 0x40a0),
    low("rx_short_length_errors", 0x40a4),
    low("rx_fragment_errors", 0x40a8),
    low("rx_long_length_errors", 0x40ac),
    low("rx_jabber_errors", 0x40b0),
    low("rx_smbus", 0x40b4),
    low("dropped_smbus", 0x40b8),
    low("tx_smbus", 0x40bc),
    pair("rx_long_byte_count", 0x40c0),
    pair("tx_long_byte_count", 0x40c8),
    low("rx_total_packets", 0x40d0),
    low("tx_total_packets", 0x40d4),
    low("tx_size_64", 0x40d8),
    low("tx_size_65_to_127", 0x40dc),
    low("tx_size_128_to_255", 0x40e0),
    low("tx_size_256_to_511", 0x40e4),
    low("tx_size_512_to_1023", 0x40e8),
    low("tx_size_1024_to_max", 0x40ec),
    low("tx_tcp_seg_good", 0x40f8),
    low("rx_packets_to_host", 0x4104),
    low("tx_packets_of_host", 0x4118),
];

/// Frames dropped for want of a descriptor, one counter for each receive queue.
const DROPS: [&str; 16] = [
    "rx_queue_0_drops",
    "rx_queue_1_drops",
    "rx_queue_2_drops",
    "rx_queue_3_drops",
    "rx_queue_4_drops",
    "rx_queue_5_drops",
    "rx_queue_6_drops",
    "rx_queue_7_drops",
    "rx_queue_8_drops",
    "rx_queue_9_drops",
    "rx_queue_10_drops",
    "rx_queue_11_drops",
    "rx_queue_12_drops",
    "rx_queue_13_drops",
    "rx_queue_14_drops",
    "rx_queue_15_drops",
];

/// Names of all counters: those of [`REGISTERS`], then [`DROPS`].
pub(super) const NAMES: &[&str] = &{
    let mut names = [""; REGISTERS.len() + DROPS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = if i < REGISTERS.len() { REGISTERS[i].name } else { DROPS[i - REGISTERS.len()] };
        i += 1;
    }
    names
};

impl Igb {
    /// Reads every counter, which clears it.
    pub(super) fn collect(&self, sums: &mut Sums) {
        sums.harvest(&self.csr, REGISTERS);
        for queue in 0..self.part.generation.queues() {
            let Ok(drops) = self.csr.read(receive_queue(queue) + rx::RQDPC) else { return };
            sums.add(REGISTERS.len() + usize::from(queue), drops.into());
        }
    }
}

/// The sums that Linux's driver forms of them (`igb_update_stats`).
pub(super) fn derive(sums: &Sums, statistics: &mut Statistics) {
    let get = |name: &str| NAMES.iter().position(|n| *n == name).map_or(0, |index| sums.get(index));
    let length = get("rx_short_length_errors") + get("rx_long_length_errors");
    statistics.add("rx_length_errors", length);
    statistics.add("rx_errors", get("rx_frame_errors") + get("rx_crc_errors") + get("rx_align_errors") + length);
    let drops = DROPS.iter().map(|name| get(name)).sum();
    statistics.add("rx_fifo_errors", drops);
    statistics.add("tx_aborted_errors", get("tx_abort_excessive_coll"));
    statistics.add("tx_window_errors", get("tx_abort_late_coll"));
    statistics.add("tx_errors", get("tx_abort_excessive_coll") + get("tx_abort_late_coll") + get("tx_carrier_errors"));
    statistics.add("multicast", get("rx_multicast"));
}
