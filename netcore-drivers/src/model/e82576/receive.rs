//! The receive engine: filters, the packet buffer, the hash, descriptors (82576 datasheet 7.1).

use super::{Core, E82576, Event, interrupt, registers as reg, statistics::at};
use crate::model::Frame;
use crate::model::frames::{self, Check, Seen};
use crate::nic::filter::{address_of, multicast_hash_of};
use netcore::MacAddress;
use netcore::flow::{RssInput, Toeplitz};
use std::collections::VecDeque;
use std::vec::Vec;

/// Where pause frames go (IEEE 802.3 annex 31B).
const PAUSE_ADDRESS: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 1]);
/// Receive address registers.
const ADDRESSES: u32 = 24;

/// Status and errors, low half of the second word.
mod status {
    pub(super) const DD: u32 = 1 << 0;
    pub(super) const EOP: u32 = 1 << 1;
    pub(super) const VP: u32 = 1 << 3;
    pub(super) const UDPCS: u32 = 1 << 4;
    pub(super) const L4CS: u32 = 1 << 5;
    pub(super) const IPCS: u32 = 1 << 6;
    pub(super) const PIF: u32 = 1 << 7;
    pub(super) const CE: u32 = 1 << 24;
    pub(super) const L4E: u32 = 1 << 29;
    pub(super) const IPE: u32 = 1 << 30;
    pub(super) const RXE: u32 = 1 << 31;
}

/// MRQC: mode, and what is hashed.
mod mrqc {
    pub(super) const RSS: u32 = 2;
    pub(super) const TCP4: u32 = 1 << 16;
    pub(super) const IPV4: u32 = 1 << 17;
    pub(super) const TCP6_EX: u32 = 1 << 18;
    pub(super) const IPV6: u32 = 1 << 20;
    pub(super) const TCP6: u32 = 1 << 21;
    pub(super) const UDP4: u32 = 1 << 22;
    pub(super) const UDP6: u32 = 1 << 23;
}

/// A frame in the packet buffer, ready to be moved.
#[derive(Debug)]
struct Stored {
    bytes: Vec<u8>,
    queue: usize,
    status: u32,
    /// First half of the first word: types.
    info: u32,
    /// Hash, or identification and checksum.
    hash: u32,
    vlan: u16,
}

/// One receive queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) head: u16,
    pub(super) dropped: u32,
    pub(super) hung: bool,
}

#[derive(Debug, Default)]
pub(super) struct ReceiveEngine {
    pub(super) queues: [Queue; reg::QUEUES],
    pub(super) toeplitz: Option<Toeplitz>,
    fifo: VecDeque<Stored>,
    fifo_bytes: usize,
    /// XOFF was sent and not yet XON.
    stopped_partner: bool,
}

const fn rx(queue: usize) -> u32 {
    reg::RX + 0x40 * queue as u32
}

impl E82576 {
    pub(super) fn write_rdt(&mut self, core: &mut Core, n: usize, value: u32) {
        let base = rx(n);
        let tail = base + reg::queue::TAIL;
        let count = self.ring_count(base);
        if !self.queue_enabled(base) {
            // Silicon ignores it: descriptors given before the queue is enabled are lost.
            if value != 0 {
                core.violate("tail-before-enable", format!("RDT({n}) = {value} with RXDCTL.ENABLE off"));
            }
            self.set_word(tail, 0);
            return;
        }
        let (old, new) = (self.word(tail) as u16, value as u16);
        if u32::from(new) != value || new >= count {
            core.violate("tail-outside-ring", format!("RDT({n}) = {value} in a ring of {count}"));
            return;
        }
        let distance = |from: u16, to: u16| if to >= from { to - from } else { count - from + to };
        let outstanding = distance(self.receive.queues[n].head, old);
        let added = distance(old, new);
        if u32::from(outstanding) + u32::from(added) >= u32::from(count) {
            core.violate("ring-overrun", format!("{added} buffers added to {outstanding} in a ring of {count}"));
        }
        self.set_word(tail, u32::from(new));
        if !core.config.master() {
            core.violate("dma-without-master", "RDT moved while bus mastering is off");
            self.receive.queues[n].hung = true;
            return;
        }
        self.run_receive(core);
    }

    /// A frame from the line, or from the loop.
    pub(super) fn frame_arrived(&mut self, core: &mut Core, frame: Frame) {
        let bytes = frame.bytes;
        if self.link().is_none() || bytes.len() < 14 {
            return;
        }
        let destination = MacAddress([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]);
        if !frame.bad_fcs && self.is_pause(destination, &bytes) {
            self.pause_frame(core, &bytes);
            return;
        }
        if self.rctl & reg::RCTL_EN == 0 {
            return;
        }
        let wire = bytes.len() + 4;
        self.counters.add(at::TPR, 1);
        self.counters.add(at::TOR, wire as u64);
        let seen = frames::look(&bytes);
        let exact = self.matches_station(destination);
        if !exact && !self.passes(destination) {
            return;
        }
        let keep_bad = self.rctl & reg::RCTL_SBP != 0;
        let limit = if self.rctl & reg::RCTL_LPE != 0 {
            self.word(reg::RLPML) as usize
        } else {
            1518 + 4 * usize::from(seen.tags > 0)
        };
        if wire > limit {
            self.counters.add(at::ROC, 1);
            return;
        }
        if wire < 64 {
            self.counters.add(at::RUC, 1);
            if !keep_bad {
                return;
            }
        }
        if frame.bad_fcs {
            self.counters.add(at::CRCERRS, 1);
            if !keep_bad {
                return;
            }
        }
        let tpid = self.word(reg::VET) as u16;
        let tagged = bytes.len() >= 18 && bytes[12..14] == tpid.to_be_bytes();
        let tci = if tagged { u16::from_be_bytes([bytes[14], bytes[15]]) } else { 0 };
        if tagged && self.rctl & reg::RCTL_VFE != 0 {
            let id = u32::from(tci & 0xfff);
            if self.word(reg::VFTA + 4 * (id >> 5)) >> (id & 31) & 1 == 0 {
                return;
            }
        }
        if !frame.bad_fcs {
            self.counters.add(at::GPRC, 1);
            self.counters.add(at::GORC, wire as u64);
            self.counters.add_size(at::PRC64, wire);
            if destination == MacAddress::BROADCAST {
                self.counters.add(at::BPRC, 1);
            } else if destination.is_multicast() {
                self.counters.add(at::MPRC, 1);
            }
        }
        self.store(core, bytes, frame.bad_fcs, (tagged, tci), exact, &seen);
    }

    /// Puts a frame that passed the filters into the packet buffer.
    fn store(
        &mut self,
        core: &mut Core,
        mut bytes: Vec<u8>,
        bad_fcs: bool,
        (tagged, tci): (bool, u16),
        exact: bool,
        seen: &Seen,
    ) {
        let room = (self.word(reg::RXPBS) & 0x7f) as usize * 1024;
        if self.receive.fifo_bytes + bytes.len() + 4 > room {
            self.counters.add(at::MPC, 1);
            self.raise(core, interrupt::RXO);
            return;
        }
        let mut status = status::DD | self.verdict(&bytes, seen);
        if bad_fcs {
            status |= status::CE | status::RXE;
        }
        if !exact {
            status |= status::PIF;
        }
        let (kind, hash) = self.hash(&bytes, seen);
        let queue = if kind == 0 { 0 } else { self.indirect(hash) };
        let rxcsum = self.word(reg::RXCSUM);
        let hash = if rxcsum & reg::RXCSUM_PCSD != 0 {
            hash
        } else {
            let raw = frames::folded(bytes.get((rxcsum & 0xff) as usize..).unwrap_or(&[]));
            u32::from(raw) << 16
        };
        let mut vlan = 0;
        // The tag is removed if the MAC and the queue's pool say so.
        let pool = self.word(reg::VMOLR + 4 * (queue as u32 & 7));
        if tagged && self.ctrl & reg::CTRL_VME != 0 && pool & 1 << 30 != 0 {
            bytes.drain(12..16);
            status |= status::VP;
            vlan = tci;
        }
        if self.rctl & reg::RCTL_SECRC == 0 {
            bytes.extend_from_slice(&[0xfc; 4]);
        }
        self.receive.fifo_bytes += bytes.len();
        self.receive.fifo.push_back(Stored { bytes, queue, status, info: kind | packet_type(seen), hash, vlan });
        if self.receive.queues[queue].head == self.word(rx(queue) + reg::queue::TAIL) as u16 {
            self.counters.add(at::RNBC, 1);
        }
        self.flow_control(core);
        if core.timing.dma.is_zero() {
            self.run_receive(core);
        } else if !self.timers.is_armed(&Event::Receive) {
            self.timers.arm(core.now() + core.timing.dma, Event::Receive);
        }
    }

    /// What the checksum engine says.
    fn verdict(&self, bytes: &[u8], seen: &Seen) -> u32 {
        let rxcsum = self.word(reg::RXCSUM);
        let mut status = 0;
        if rxcsum & reg::RXCSUM_IPOFL != 0 && seen.ip != Check::Absent {
            status |= status::IPCS | if seen.ip == Check::Bad { status::IPE } else { 0 };
        }
        if rxcsum & reg::RXCSUM_TUOFL != 0 && seen.transport != Check::Absent {
            let udp = seen.protocol == Some(17);
            status |= status::L4CS
                | if udp { status::UDPCS } else { 0 }
                | if seen.transport == Check::Bad { status::L4E } else { 0 };
        }
        if rxcsum & reg::RXCSUM_CRCOFL != 0 {
            match frames::sctp(bytes, seen) {
                Check::Absent => {}
                Check::Good => status |= status::L4CS,
                Check::Bad => status |= status::L4CS | status::L4E,
            }
        }
        status
    }

    /// Type and value of the receive hash; type 0: none.
    fn hash(&mut self, bytes: &[u8], seen: &Seen) -> (u32, u32) {
        let mode = self.word(reg::MRQC);
        if mode & 7 != mrqc::RSS || seen.version == 0 {
            return (0, 0);
        }
        let on = |bit: u32| mode & bit != 0;
        let (network, upper) = (usize::from(seen.network), usize::from(seen.upper));
        let protocol = seen.protocol.filter(|_| bytes.len() >= upper + 4);
        let kind = match (seen.version, protocol) {
            (4, Some(6)) if on(mrqc::TCP4) => 1,
            (4, Some(17)) if on(mrqc::UDP4) => 7,
            (4, _) if on(mrqc::IPV4) => 2,
            (6, Some(6)) if on(mrqc::TCP6) => 3,
            (6, Some(6)) if on(mrqc::TCP6_EX) => 6,
            (6, Some(17)) if on(mrqc::UDP6) => 8,
            (6, _) if on(mrqc::IPV6) => 5,
            _ => return (0, 0),
        };
        let input = if seen.version == 4 {
            let part = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            RssInput::ipv4(part(network + 12).into(), part(network + 16).into())
        } else {
            let part = |at: usize| {
                let mut address = [0; 16];
                address.copy_from_slice(&bytes[at..at + 16]);
                address
            };
            RssInput::ipv6(part(network + 8).into(), part(network + 24).into())
        };
        let input = if matches!(kind, 1 | 3 | 6 | 7 | 8) {
            let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            input.with_ports(port(upper), port(upper + 2))
        } else {
            input
        };
        let mut key = [0; 40];
        for (index, word) in (0u32..).zip(key.chunks_exact_mut(4)) {
            word.copy_from_slice(&self.word(reg::RSSRK + 4 * index).to_le_bytes());
        }
        let toeplitz = self.receive.toeplitz.get_or_insert_with(|| Toeplitz::new(&key));
        (kind, toeplitz.hash(&input))
    }

    /// The queue of a hash.
    fn indirect(&self, hash: u32) -> usize {
        let entry = hash & 0x7f;
        let queue = self.word(reg::RETA + (entry & !3)) >> (8 * (entry & 3)) & 0xf;
        queue as usize
    }

    fn matches_station(&self, destination: MacAddress) -> bool {
        (0..ADDRESSES).any(|index| {
            let at = if index < 16 { reg::RAL + 8 * index } else { 0x054e0 + 8 * (index - 16) };
            let (low, high) = (self.word(at), self.word(at + 4));
            high & 1 << 31 != 0 && address_of(low, high) == destination
        })
    }

    fn passes(&self, destination: MacAddress) -> bool {
        if destination == MacAddress::BROADCAST {
            return self.rctl & (reg::RCTL_BAM | reg::RCTL_MPE) != 0;
        }
        if !destination.is_multicast() {
            return self.rctl & reg::RCTL_UPE != 0;
        }
        if self.rctl & reg::RCTL_MPE != 0 {
            return true;
        }
        let hash = multicast_hash_of(destination, (self.rctl >> 12 & 3) as u8);
        self.word(reg::MTA + 4 * u32::from(hash >> 5)) >> (hash & 31) & 1 != 0
    }

    fn is_pause(&self, destination: MacAddress, bytes: &[u8]) -> bool {
        let kind = self.word(reg::FCT) as u16;
        let address = address_of(self.word(reg::FCAL), self.word(reg::FCAH));
        destination == address && bytes[12..14] == kind.to_be_bytes() && bytes.len() >= 18 && bytes[14..16] == [0, 1]
    }

    fn pause_frame(&mut self, core: &mut Core, bytes: &[u8]) {
        let quanta = u16::from_be_bytes([bytes[16], bytes[17]]);
        self.counters.add(if quanta == 0 { at::XONRXC } else { at::XOFFRXC }, 1);
        if self.ctrl & reg::CTRL_RFCE != 0 {
            self.pause(core, quanta);
        }
    }

    /// Stops and starts the partner by how full the packet buffer is.
    fn flow_control(&mut self, core: &mut Core) {
        let high = (self.word(reg::FCRTH) & 0xfff0) as usize;
        let low = (self.word(reg::FCRTL) & 0xfff0) as usize;
        if self.ctrl & reg::CTRL_TFCE == 0 || high == 0 {
            return;
        }
        let level = self.receive.fifo_bytes;
        if level >= high && !self.receive.stopped_partner {
            self.receive.stopped_partner = true;
            self.counters.add(at::XOFFTXC, 1);
            self.send_pause(core, self.word(reg::FCTTV) as u16);
        } else if level <= low && self.receive.stopped_partner {
            self.receive.stopped_partner = false;
            if self.word(reg::FCRTL) & 1 << 31 != 0 {
                self.counters.add(at::XONTXC, 1);
                self.send_pause(core, 0);
            }
        }
    }

    fn send_pause(&mut self, core: &mut Core, quanta: u16) {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&PAUSE_ADDRESS.0);
        let station = address_of(self.word(reg::RAL), self.word(reg::RAL + 4));
        frame[6..12].copy_from_slice(&station.0);
        frame[12..16].copy_from_slice(&[0x88, 0x08, 0, 1]);
        frame[16..18].copy_from_slice(&quanta.to_be_bytes());
        let mbps = self.link().map_or(1000, |link| link.mbps);
        core.send(frame, mbps);
    }

    fn buffer_len(&self, base: u32) -> usize {
        match self.word(base + reg::queue::SRRCTL) & 0x7f {
            0 => 2048 >> (self.rctl >> 16 & 3),
            kib => kib as usize * 1024,
        }
    }

    /// Moves frames to memory for as long as there are buffers.
    pub(super) fn run_receive(&mut self, core: &mut Core) {
        let mut moved = [false; reg::QUEUES];
        while self.rctl & reg::RCTL_EN != 0 {
            let Some(stored) = self.receive.fifo.front() else { break };
            let n = stored.queue;
            let base = rx(n);
            let count = self.ring_count(base);
            let usable = self.queue_enabled(base) && count > 0 && !self.receive.queues[n].hung;
            let needed = stored.bytes.len().div_ceil(self.buffer_len(base)).max(1);
            let (head, tail) = (self.receive.queues[n].head, self.word(base + reg::queue::TAIL) as u16);
            let free = if tail >= head { tail - head } else { count - head + tail };
            let fits = usable && usize::from(free) >= needed;
            // A queue that starves holds up all others, unless it may drop. One that is off drops.
            let drops = self.word(base + reg::queue::SRRCTL) & reg::SRRCTL_DROP_EN != 0 || !usable;
            if !fits && !drops {
                break;
            }
            let Some(stored) = self.receive.fifo.pop_front() else { break };
            self.receive.fifo_bytes -= stored.bytes.len();
            if !fits {
                self.receive.queues[n].dropped = self.receive.queues[n].dropped.saturating_add(1);
                self.interrupts.icr |= interrupt::RXO;
                continue;
            }
            if !self.write_frame(core, &stored) {
                self.receive.queues[n].hung = true;
                continue;
            }
            self.counters.add(at::RPTHC, 1);
            moved[n] = true;
        }
        self.flow_control(core);
        let mut low = false;
        for (n, _) in moved.iter().enumerate().filter(|(_, moved)| **moved) {
            let base = rx(n);
            let count = self.ring_count(base);
            let (head, tail) = (self.receive.queues[n].head, self.word(base + reg::queue::TAIL) as u16);
            let free = if tail >= head { tail - head } else { count - head + tail };
            low |= free < count / 16;
            self.raise_queue(core, n, false);
        }
        if low {
            self.raise(core, interrupt::RXDMT0);
        }
    }

    fn write_frame(&mut self, core: &mut Core, stored: &Stored) -> bool {
        let base = rx(stored.queue);
        let (size, count) = (self.buffer_len(base), self.ring_count(base));
        let chunks = stored.bytes.chunks(size).count();
        for (n, chunk) in stored.bytes.chunks(size).enumerate() {
            let index = self.receive.queues[stored.queue].head;
            let address = self.descriptor_at(base, index);
            let Some(words) = core.read_descriptor(address) else { return false };
            if words[1] & 1 != 0 {
                core.violate("done-bit-set", format!("receive descriptor {index} already says it is done"));
            }
            if words[0] & 1 != 0 {
                core.violate(
                    "reserved-bits",
                    format!("receive descriptor {index}: odd buffer address {:#x}", words[0]),
                );
            }
            if !core.dma_write(words[0], chunk) {
                return false;
            }
            let end = n + 1 == chunks;
            let (first, status, vlan) = if end {
                let first = u64::from(stored.info) | u64::from(stored.hash) << 32;
                (first, stored.status | status::EOP, stored.vlan)
            } else {
                (0, status::DD, 0)
            };
            let second = u64::from(status) | (chunk.len() as u64) << 32 | u64::from(vlan) << 48;
            if !core.write_descriptor(address, [first, second]) {
                return false;
            }
            self.receive.queues[stored.queue].head = if index + 1 == count { 0 } else { index + 1 };
        }
        true
    }
}

/// Bits 15:4 of the first word.
fn packet_type(seen: &Seen) -> u32 {
    let network = match (seen.version, seen.extended) {
        (4, false) => 1 << 4,
        (4, true) => 1 << 5,
        (6, false) => 1 << 6,
        (6, true) => 1 << 7,
        _ => 0,
    };
    let transport = match seen.protocol {
        Some(6) => 1 << 8,
        Some(17) => 1 << 9,
        Some(132) => 1 << 10,
        _ => 0,
    };
    network | transport
}
