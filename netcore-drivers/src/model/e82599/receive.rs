//! The receive engine: filters, the packet buffer, the hash, descriptors (82599 datasheet 7.1).

use super::interrupt::RX_MISS;
use super::map::{
    FCCFG, FCRTH, FCRTL, FCTRL, FCTTV, HLREG0, MAXFRS, MCSTCTRL, MFLCN, MRQC, MTA, QUEUES, RAL, RDRXCTL, RETA, RSSRK,
    RXCSUM, RXCTRL, RXPBSIZE, VFTA, VLNCTRL, bit, queue,
};
use super::registers::rx;
use super::{Core, E82599, Event, statistics::at};
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
const ADDRESSES: u32 = 128;
/// KiB of the packet buffer.
const BUFFER_KIB: u32 = 512;

const SBP: u32 = 1 << 1;
const MPE: u32 = 1 << 8;
const UPE: u32 = 1 << 9;
const BAM: u32 = 1 << 10;
const VFE: u32 = 1 << 30;
const MFE: u32 = 1 << 2;

/// Status and errors, low half of the second word.
pub(super) mod status {
    pub(crate) const DD: u32 = 1 << 0;
    pub(crate) const EOP: u32 = 1 << 1;
    pub(crate) const FLM: u32 = 1 << 2;
    pub(crate) const VP: u32 = 1 << 3;
    pub(crate) const UDPCS: u32 = 1 << 4;
    pub(crate) const L4CS: u32 = 1 << 5;
    pub(crate) const IPCS: u32 = 1 << 6;
    pub(crate) const PIF: u32 = 1 << 7;
    pub(crate) const CE: u32 = 1 << 24;
    pub(crate) const RXE: u32 = 1 << 29;
    pub(crate) const L4E: u32 = 1 << 30;
    pub(crate) const IPE: u32 = 1 << 31;
}

/// MRQC: mode, and what is hashed.
mod mrqc {
    pub(super) const RSS: u32 = 1;
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
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    pub(super) queue: usize,
    pub(super) status: u32,
    /// First half of the first word: types.
    pub(super) info: u32,
    /// Hash, or filter, or identification and checksum.
    pub(super) hash: u32,
    pub(super) vlan: u16,
    pub(super) seen: Seen,
}

/// One receive queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) head: u16,
    pub(super) hung: bool,
    /// Packets that are being merged.
    pub(super) merging: Vec<super::merge::Merging>,
}

impl Queue {
    pub(super) fn stopped(&mut self) {
        self.merging.clear();
    }
}

#[derive(Debug)]
pub(super) struct ReceiveEngine {
    pub(super) queues: Vec<Queue>,
    pub(super) toeplitz: Option<Toeplitz>,
    fifo: VecDeque<Stored>,
    fifo_bytes: usize,
    /// XOFF was sent and not yet XON.
    stopped_partner: bool,
}

impl Default for ReceiveEngine {
    fn default() -> Self {
        Self {
            queues: (0..QUEUES).map(|_| Queue::default()).collect(),
            toeplitz: None,
            fifo: VecDeque::new(),
            fifo_bytes: 0,
            stopped_partner: false,
        }
    }
}

impl ReceiveEngine {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Reception was switched off: what is in the packet buffer goes no further.
    pub(super) fn stop(&mut self) {
        self.fifo.clear();
        self.fifo_bytes = 0;
    }
}

impl E82599 {
    /// What must fit together when reception is enabled.
    pub(super) fn check_receive_setup(&self, core: &mut Core) {
        let (mac, dma) = (self.word(HLREG0) & bit::RXCRCSTRP, self.word(RDRXCTL) & bit::CRCSTRIP);
        if mac != dma {
            core.violate("crc-strip", "HLREG0.RXCRCSTRP and RDRXCTL.CRCSTRIP differ");
        }
        if self.word(FCRTH) & 0x7_ffe0 == 0 {
            core.violate("watermark-zero", "FCRTH(0) is zero: the internal switch hangs transmission");
        }
        let kib: u32 = (0..8).map(|n| self.word(RXPBSIZE + 4 * n) >> 10 & 0x3ff).sum();
        if kib + self.director.kib() > BUFFER_KIB {
            core.violate(
                "packet-buffers",
                format!("{kib} KiB of packet buffers and {} of filters", self.director.kib()),
            );
        }
    }

    pub(super) fn write_rdt(&mut self, core: &mut Core, n: usize, value: u32) {
        let base = rx(n);
        let tail = base + queue::TAIL;
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
        if !frame.bad_fcs && is_pause(destination, &bytes) {
            return self.pause_frame(core, &bytes);
        }
        if self.word(RXCTRL) & 1 == 0 {
            return;
        }
        let wire = bytes.len() + 4;
        self.statistics.add(at::TPR, 1);
        self.statistics.add(at::TOR, wire as u64);
        let seen = frames::look(&bytes);
        let exact = self.matches_station(destination);
        if !exact && !self.passes(destination) {
            return;
        }
        let keep_bad = self.word(FCTRL) & SBP != 0;
        let tpid = self.word(VLNCTRL) as u16;
        let tagged = bytes.len() >= 18 && bytes[12..14] == tpid.to_be_bytes();
        let most = if self.word(HLREG0) & bit::JUMBOEN != 0 { (self.word(MAXFRS) >> 16) as usize } else { 1518 };
        if wire > most + if tagged { 4 } else { 0 } {
            return self.statistics.add(at::ROC, 1);
        }
        if wire < 64 {
            self.statistics.add(at::RUC, 1);
            if !keep_bad {
                return;
            }
        }
        if frame.bad_fcs {
            self.statistics.add(at::CRCERRS, 1);
            if !keep_bad {
                return;
            }
        }
        let tci = if tagged { u16::from_be_bytes([bytes[14], bytes[15]]) } else { 0 };
        if tagged && self.word(VLNCTRL) & VFE != 0 {
            let id = u32::from(tci & 0xfff);
            if self.word(VFTA + 4 * (id >> 5)) >> (id & 31) & 1 == 0 {
                return;
            }
        }
        if !frame.bad_fcs {
            self.statistics.add(at::GPRC, 1);
            self.statistics.add(at::GORC, wire as u64);
            self.statistics.counters.add_size(at::PRC64, wire);
            if destination == MacAddress::BROADCAST {
                self.statistics.add(at::BPRC, 1);
            } else if destination.is_multicast() {
                self.statistics.add(at::MPRC, 1);
            }
        }
        self.store(core, bytes, frame.bad_fcs, (tagged, tci), exact, seen);
    }

    /// Puts a frame that passed the filters into the packet buffer.
    fn store(
        &mut self,
        core: &mut Core,
        mut bytes: Vec<u8>,
        bad_fcs: bool,
        (tagged, tci): (bool, u16),
        exact: bool,
        seen: Seen,
    ) {
        let room = (self.word(RXPBSIZE) >> 10 & 0x3ff) as usize * 1024;
        if self.receive.fifo_bytes + bytes.len() + 4 > room {
            self.statistics.add(at::MPC, 1);
            return self.raise(core, RX_MISS);
        }
        let mut status = status::DD | verdict(&bytes, &seen);
        if bad_fcs {
            status |= status::CE | status::RXE;
        }
        if !exact {
            status |= status::PIF;
        }
        let (kind, mut hash) = self.hash(&bytes, &seen);
        let mut queue = if kind == 0 { 0 } else { self.indirect(hash) };
        if self.word(RXCSUM) & bit::PCSD == 0 {
            hash = u32::from(frames::folded(&bytes)) << 16;
        }
        let mut info = kind | packet_type(&seen);
        match self.direct(&bytes, &seen, if tagged { tci } else { 0 }) {
            super::director::Verdict::None => {}
            super::director::Verdict::Drop => return,
            super::director::Verdict::Queue { queue: to, id, report } => {
                queue = to;
                status |= status::FLM;
                if report {
                    hash = id;
                    info &= !0xf;
                }
            }
        }
        let mut vlan = 0;
        if tagged && self.word(rx(queue) + queue::CONTROL) & bit::VME != 0 {
            bytes.drain(12..16);
            status |= status::VP;
            vlan = tci;
        }
        if self.word(HLREG0) & bit::RXCRCSTRP == 0 {
            bytes.extend_from_slice(&[0xfc; 4]);
        }
        self.receive.fifo_bytes += bytes.len();
        self.receive.fifo.push_back(Stored { bytes, queue, status, info, hash, vlan, seen });
        self.flow_control(core);
        if core.timing.dma.is_zero() {
            self.run_receive(core);
        } else if !self.timers.is_armed(&Event::Receive) {
            self.timers.arm(core.now() + core.timing.dma, Event::Receive);
        }
    }

    /// Type and value of the receive hash; type 0: none.
    fn hash(&mut self, bytes: &[u8], seen: &Seen) -> (u32, u32) {
        let mode = self.word(MRQC);
        if mode & 0xf != mrqc::RSS || seen.version == 0 {
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
            word.copy_from_slice(&self.word(RSSRK + 4 * index).to_le_bytes());
        }
        let toeplitz = self.receive.toeplitz.get_or_insert_with(|| Toeplitz::new(&key));
        (kind, toeplitz.hash(&input))
    }

    /// The queue of a hash.
    fn indirect(&self, hash: u32) -> usize {
        let entry = hash & 0x7f;
        (self.word(RETA + (entry & !3)) >> (8 * (entry & 3)) & 0xf) as usize
    }

    fn matches_station(&self, destination: MacAddress) -> bool {
        (0..ADDRESSES).any(|index| {
            let (low, high) = (self.word(RAL + 8 * index), self.word(RAL + 8 * index + 4));
            high & 1 << 31 != 0 && address_of(low, high) == destination
        })
    }

    fn passes(&self, destination: MacAddress) -> bool {
        let fctrl = self.word(FCTRL);
        if destination == MacAddress::BROADCAST {
            return fctrl & (BAM | MPE) != 0;
        }
        if !destination.is_multicast() {
            return fctrl & UPE != 0;
        }
        if fctrl & MPE != 0 {
            return true;
        }
        let control = self.word(MCSTCTRL);
        let hash = multicast_hash_of(destination, (control & 3) as u8);
        control & MFE != 0 && self.word(MTA + 4 * u32::from(hash >> 5)) >> (hash & 31) & 1 != 0
    }

    fn pause_frame(&mut self, core: &mut Core, bytes: &[u8]) {
        let quanta = u16::from_be_bytes([bytes[16], bytes[17]]);
        self.statistics.add(if quanta == 0 { at::LXONRXCNT } else { at::LXOFFRXCNT }, 1);
        if self.word(MFLCN) & 1 << 3 != 0 {
            self.pause(core, quanta);
        }
    }

    /// Stops and starts the partner by how full the packet buffer is.
    fn flow_control(&mut self, core: &mut Core) {
        let (high, low) = (self.word(FCRTH), self.word(FCRTL));
        if self.word(FCCFG) & 1 << 3 == 0 || high & 1 << 31 == 0 {
            return;
        }
        let level = self.receive.fifo_bytes;
        if level >= (high & 0x7_ffe0) as usize && !self.receive.stopped_partner {
            self.receive.stopped_partner = true;
            self.statistics.add(at::LXOFFTXC, 1);
            self.send_pause(core, self.word(FCTTV) as u16);
        } else if level <= (low & 0x7_ffe0) as usize && self.receive.stopped_partner {
            self.receive.stopped_partner = false;
            if low & 1 << 31 != 0 {
                self.statistics.add(at::LXONTXC, 1);
                self.send_pause(core, 0);
            }
        }
    }

    fn send_pause(&mut self, core: &mut Core, quanta: u16) {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&PAUSE_ADDRESS.0);
        frame[6..12].copy_from_slice(&address_of(self.word(RAL), self.word(RAL + 4)).0);
        frame[12..16].copy_from_slice(&[0x88, 0x08, 0, 1]);
        frame[16..18].copy_from_slice(&quanta.to_be_bytes());
        core.send(frame, self.link().unwrap_or(10_000));
    }

    pub(super) fn buffer_len(&self, base: u32) -> usize {
        (self.word(base + queue::SRRCTL) & 0x1f).max(1) as usize * 1024
    }

    /// Descriptors that hardware may fill.
    pub(super) fn free_descriptors(&self, n: usize) -> usize {
        let base = rx(n);
        let (head, tail) = (self.receive.queues[n].head, self.word(base + queue::TAIL) as u16);
        usize::from(if tail >= head { tail - head } else { self.ring_count(base) - head + tail })
    }

    /// Moves frames to memory for as long as there are buffers.
    pub(super) fn run_receive(&mut self, core: &mut Core) {
        let mut moved = 0u128;
        while self.word(RXCTRL) & 1 != 0 {
            let Some(stored) = self.receive.fifo.front() else { break };
            let n = stored.queue;
            let base = rx(n);
            let usable = self.queue_enabled(base) && self.ring_count(base) > 0 && !self.receive.queues[n].hung;
            let needed = stored.bytes.len().div_ceil(self.buffer_len(base)).max(1);
            let fits = usable && self.free_descriptors(n) >= needed;
            // A queue that starves holds up all others, unless it may drop. One that is off drops.
            let drops = self.word(base + queue::SRRCTL) & bit::DROP_EN != 0 || !usable;
            if !fits && !drops {
                break;
            }
            let Some(stored) = self.receive.fifo.pop_front() else { break };
            self.receive.fifo_bytes -= stored.bytes.len();
            if !fits {
                self.count_dropped(n);
                continue;
            }
            self.count_received(n, stored.bytes.len());
            if self.merges(n) {
                moved |= u128::from(self.merge(core, &stored)) << n;
            } else if self.write_frame(core, &stored) {
                moved |= 1 << n;
            } else {
                self.receive.queues[n].hung = true;
            }
        }
        self.flow_control(core);
        for n in (0..QUEUES).filter(|n| moved >> n & 1 != 0) {
            self.raise_queue(core, n, false);
        }
    }

    /// Takes the next buffer of a queue: its descriptor's index, where that is, and the buffer's address.
    pub(super) fn next_buffer(&mut self, core: &mut Core, n: usize) -> Option<(u16, u64, u64)> {
        let base = rx(n);
        let index = self.receive.queues[n].head;
        let address = self.descriptor_at(base, index);
        let words = core.read_descriptor(address)?;
        if words[1] & 1 != 0 {
            core.violate("done-bit-set", format!("receive descriptor {index} already says it is done"));
        }
        if words[0] & 1 != 0 {
            core.violate("reserved-bits", format!("receive descriptor {index}: odd buffer address {:#x}", words[0]));
        }
        let count = self.ring_count(base);
        self.receive.queues[n].head = if index + 1 == count { 0 } else { index + 1 };
        Some((index, address, words[0]))
    }

    pub(super) fn write_frame(&mut self, core: &mut Core, stored: &Stored) -> bool {
        let base = rx(stored.queue);
        let (size, count) = (self.buffer_len(base), self.ring_count(base));
        let chunks = stored.bytes.chunks(size).count();
        for (n, chunk) in stored.bytes.chunks(size).enumerate() {
            let Some((index, address, buffer)) = self.next_buffer(core, stored.queue) else { return false };
            if !core.dma_write(buffer, chunk) {
                return false;
            }
            let end = n + 1 == chunks;
            let words = if end {
                stored.last(chunk.len(), 0)
            } else {
                // Where the packet goes on: the next descriptor.
                let next = if index + 1 == count { 0 } else { index + 1 };
                [0, u64::from(status::DD) | u64::from(next) << 4 | (chunk.len() as u64) << 32]
            };
            if !core.write_descriptor(address, words) {
                return false;
            }
        }
        true
    }
}

impl Stored {
    /// The last descriptor of a packet, `len` bytes in its buffer, `merged` more frames in it.
    pub(super) fn last(&self, len: usize, merged: u32) -> [u64; 2] {
        let first = u64::from(self.info | merged << 17) | u64::from(self.hash) << 32;
        let second = u64::from(self.status | status::EOP) | (len as u64) << 32 | u64::from(self.vlan) << 48;
        [first, second]
    }
}

fn is_pause(destination: MacAddress, bytes: &[u8]) -> bool {
    destination == PAUSE_ADDRESS && bytes[12..14] == [0x88, 0x08] && bytes.len() >= 18 && bytes[14..16] == [0, 1]
}

/// What the checksum engine says.
fn verdict(bytes: &[u8], seen: &Seen) -> u32 {
    let mut status = 0;
    if seen.ip != Check::Absent {
        status |= status::IPCS | if seen.ip == Check::Bad { status::IPE } else { 0 };
    }
    if seen.udp_zero {
        // A datagram without checksum is called wrong (specification update).
        status |= status::UDPCS | status::L4CS | status::L4E;
    } else if seen.transport != Check::Absent {
        let udp = seen.protocol == Some(17);
        status |= status::L4CS
            | if udp { status::UDPCS } else { 0 }
            | if seen.transport == Check::Bad { status::L4E } else { 0 };
    }
    match frames::sctp(bytes, seen) {
        Check::Absent => {}
        Check::Good => status |= status::L4CS,
        Check::Bad => status |= status::L4CS | status::L4E,
    }
    status
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
