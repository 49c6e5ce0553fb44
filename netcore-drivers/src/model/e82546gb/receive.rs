//! The receive engine: filters, the packet buffer, flow control, descriptors (manual 3.2, 9, 13.4.22).

use super::{Core, E82546Gb, Event, interrupt, registers as reg, statistics::at};
use crate::model::Frame;
use crate::model::frames::{self, Check};
use crate::nic::filter::{address_of, multicast_hash_of};
use netcore::MacAddress;
use std::collections::VecDeque;
use std::vec::Vec;

/// Where pause frames go (IEEE 802.3 annex 31B).
const PAUSE_ADDRESS: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 1]);
/// Longest frame with RCTL.LPE, FCS included.
const LONGEST: usize = 16384;

/// Status byte.
mod status {
    pub(super) const DD: u64 = 1 << 0;
    pub(super) const EOP: u64 = 1 << 1;
    pub(super) const IXSM: u64 = 1 << 2;
    pub(super) const VP: u64 = 1 << 3;
    pub(super) const TCPCS: u64 = 1 << 5;
    pub(super) const IPCS: u64 = 1 << 6;
    pub(super) const PIF: u64 = 1 << 7;
}

/// Error byte.
mod error {
    pub(super) const CE: u64 = 1 << 0;
    pub(super) const TCPE: u64 = 1 << 5;
    pub(super) const IPE: u64 = 1 << 6;
}

/// A frame in the packet buffer, ready to be moved.
#[derive(Debug)]
struct Stored {
    bytes: Vec<u8>,
    status: u64,
    errors: u64,
    special: u16,
    checksum: u16,
}

#[derive(Debug, Default)]
pub(super) struct ReceiveEngine {
    pub(super) head: u16,
    fifo: VecDeque<Stored>,
    fifo_bytes: usize,
    /// XOFF was sent and not yet XON.
    stopped_partner: bool,
    hung: bool,
}

impl E82546Gb {
    pub(super) fn write_rdt(&mut self, core: &mut Core, value: u32) {
        let count = self.ring_count(reg::RDLEN);
        let old = self.word(reg::RDT) as u16;
        let new = value as u16;
        if self.rctl & reg::RCTL_EN == 0 {
            if value != 0 {
                core.violate("tail-before-enable", format!("RDT = {value} with RCTL.EN off"));
            }
            self.set_word(reg::RDT, value & 0xffff);
            return;
        }
        if u32::from(new) != value || new >= count {
            core.violate("tail-outside-ring", format!("RDT = {value} in a ring of {count}"));
            return;
        }
        let distance = |from: u16, to: u16| if to >= from { to - from } else { count - from + to };
        let outstanding = distance(self.receive.head, old);
        let added = distance(old, new);
        if u32::from(outstanding) + u32::from(added) >= u32::from(count) {
            core.violate("ring-overrun", format!("{added} buffers added to {outstanding} in a ring of {count}"));
        }
        self.set_word(reg::RDT, u32::from(new));
        if !core.config.master() {
            core.violate("dma-without-master", "RDT moved while bus mastering is off");
            self.receive.hung = true;
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
        let limit = if self.rctl & reg::RCTL_LPE != 0 { LONGEST } else { 1518 + 4 * usize::from(seen.tags > 0) };
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
        seen: &frames::Seen,
    ) {
        let room = (self.word(reg::PBA) & 0xffff) as usize * 1024;
        if self.receive.fifo_bytes + bytes.len() + 4 > room {
            self.counters.add(at::MPC, 1);
            self.raise(core, interrupt::RXO);
            return;
        }
        let start = (self.word(reg::RXCSUM) & 0xff) as usize;
        let raw = frames::folded(bytes.get(start..).unwrap_or(&[]));
        let mut status = status::DD;
        let mut errors = if bad_fcs { error::CE } else { 0 };
        if !exact {
            status |= status::PIF;
        }
        let rxcsum = self.word(reg::RXCSUM);
        let ip = rxcsum & reg::RXCSUM_IPOFL != 0 && seen.ip != Check::Absent;
        // IPv6 is not parsed by this part (the IPv6 bit of RXCSUM belongs to later ones).
        let transport = rxcsum & reg::RXCSUM_TUOFL != 0 && seen.transport != Check::Absent && seen.version == 4;
        if ip {
            status |= status::IPCS;
            if seen.ip == Check::Bad {
                errors |= error::IPE;
            }
        }
        if transport {
            status |= status::TCPCS;
            if seen.transport == Check::Bad {
                errors |= error::TCPE;
            }
        }
        if !ip && !transport {
            status |= status::IXSM;
        }
        let mut special = 0;
        if tagged && self.ctrl & reg::CTRL_VME != 0 {
            bytes.drain(12..16);
            status |= status::VP;
            special = tci;
        }
        if self.rctl & reg::RCTL_SECRC == 0 {
            bytes.extend_from_slice(&[0xfc; 4]);
        }
        self.receive.fifo_bytes += bytes.len();
        self.receive.fifo.push_back(Stored { bytes, status, errors, special, checksum: raw });
        if self.receive.head == self.word(reg::RDT) as u16 {
            self.counters.add(at::RNBC, 1);
        }
        self.flow_control(core);
        if core.timing.dma.is_zero() {
            self.run_receive(core);
        } else if !self.timers.is_armed(&Event::Receive) {
            self.timers.arm(core.now() + core.timing.dma, Event::Receive);
        }
    }

    fn matches_station(&self, destination: MacAddress) -> bool {
        (0..16).any(|index| {
            let (low, high) = (self.word(reg::RAL + 8 * index), self.word(reg::RAH + 8 * index));
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
        let high = (self.word(reg::FCRTH) & 0xfff8) as usize;
        let low = (self.word(reg::FCRTL) & 0xfff8) as usize;
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
        let station = address_of(self.word(reg::RAL), self.word(reg::RAH));
        frame[6..12].copy_from_slice(&station.0);
        frame[12..16].copy_from_slice(&[0x88, 0x08, 0, 1]);
        frame[16..18].copy_from_slice(&quanta.to_be_bytes());
        let mbps = self.link().map_or(1000, |link| link.mbps);
        core.send(frame, mbps);
    }

    fn buffer_len(&self) -> usize {
        let code = self.rctl >> 16 & 3;
        match (self.rctl & reg::RCTL_BSEX != 0, code) {
            (false, code) => 2048 >> code,
            (true, 0) => 2048,
            (true, code) => 32768 >> code,
        }
    }

    /// Moves frames to memory for as long as there are buffers.
    pub(super) fn run_receive(&mut self, core: &mut Core) {
        let count = self.ring_count(reg::RDLEN);
        if count == 0 {
            return;
        }
        let mut moved = false;
        while self.rctl & reg::RCTL_EN != 0 && !self.receive.hung {
            let Some(stored) = self.receive.fifo.front() else { break };
            let size = self.buffer_len();
            let needed = stored.bytes.len().div_ceil(size).max(1);
            let (head, tail) = (self.receive.head, self.word(reg::RDT) as u16);
            let free = if tail >= head { tail - head } else { count - head + tail };
            if usize::from(free) < needed {
                break;
            }
            let Some(stored) = self.receive.fifo.pop_front() else { break };
            self.receive.fifo_bytes -= stored.bytes.len();
            if !self.write_frame(core, &stored, size, count) {
                self.receive.hung = true;
                return;
            }
            moved = true;
        }
        if !moved {
            return;
        }
        let (head, tail) = (self.receive.head, self.word(reg::RDT) as u16);
        let free = u32::from(if tail >= head { tail - head } else { count - head + tail });
        let threshold = u32::from(count) >> (1 + (self.rctl >> 8 & 3));
        let low = if free < threshold { interrupt::RXDMT0 } else { 0 };
        self.flow_control(core);
        self.raise(core, interrupt::RXT0 | low);
    }

    fn write_frame(&mut self, core: &mut Core, stored: &Stored, size: usize, count: u16) -> bool {
        let chunks = stored.bytes.chunks(size).count();
        for (n, chunk) in stored.bytes.chunks(size).enumerate() {
            let index = self.receive.head;
            let address = self.descriptor_at(reg::RDBAL, index);
            let Some(words) = core.read_descriptor(address) else { return false };
            if words[1] >> 32 & status::DD != 0 {
                core.violate("done-bit-set", format!("receive descriptor {index} already says it is done"));
            }
            let iova = words[0];
            if iova >> 16 != (iova + size as u64 - 1) >> 16 {
                core.violate("buffer-64k", format!("buffer {iova:#x} of {size} bytes"));
            }
            if !core.dma_write(iova, chunk) {
                return false;
            }
            let end = n + 1 == chunks;
            let (status, errors, special) =
                if end { (stored.status | status::EOP, stored.errors, stored.special) } else { (status::DD, 0, 0) };
            let word = chunk.len() as u64
                | u64::from(stored.checksum) << 16
                | status << 32
                | errors << 40
                | u64::from(special) << 48;
            if !core.write_descriptor(address, [iova, word]) {
                return false;
            }
            self.receive.head = if index + 1 == count { 0 } else { index + 1 };
        }
        true
    }
}
