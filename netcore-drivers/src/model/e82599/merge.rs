//! Receive side coalescing: frames of one TCP flow become one packet in memory (82599 datasheet 7.11).

use super::map::{HLREG0, PSRTYPE, RDRXCTL, RFCTL, bit, queue};
use super::receive::{Stored, status};
use super::registers::rx;
use super::{Core, E82599, Event};
use core::time::Duration;
use netcore::Instant;
use std::vec::Vec;

/// RDRXCTL: keep acknowledgements whole, write-back fix of FCoE (both are needed).
const RSCACKC: u32 = 1 << 25;
const FCOE_WRFIX: u32 = 1 << 26;
const RSCEN: u32 = 1;
/// Longest merged packet.
const LONGEST: usize = 0xffff;

/// The last descriptor of a packet that is being merged, which is not written back yet.
#[derive(Debug)]
pub(super) struct Merging {
    /// Addresses, ports and tag.
    key: Vec<u8>,
    /// Sequence number of the next byte.
    next: u32,
    /// As it will be reported.
    packet: Stored,
    /// The first buffer, where the headers are.
    header: u64,
    len: usize,
    /// Descriptors so far; the last one, where it is, its buffer, bytes in it, frames that begin in it beyond the first.
    descriptors: usize,
    index: u16,
    address: u64,
    buffer: u64,
    used: usize,
    begun: u32,
    until: Instant,
}

/// What a frame is to merging: where its payload is, its sequence number, and whether it ends a packet.
struct Segment {
    payload: core::ops::Range<usize>,
    sequence: u32,
    push: bool,
}

impl E82599 {
    /// True if the queue merges.
    pub(super) fn merges(&self, n: usize) -> bool {
        self.word(rx(n) + queue::RSCCTL) & RSCEN != 0 && self.word(RFCTL) & bit::RSC_DIS == 0
    }

    /// Everything that merging needs must be there when the queue is enabled.
    pub(super) fn check_merging(&self, core: &mut Core, n: usize) {
        if !self.merges(n) {
            return;
        }
        let base = rx(n);
        let control = self.word(base + queue::SRRCTL);
        let vector = self.route(n, false);
        for (ok, what) in [
            (self.word(HLREG0) & bit::RXCRCSTRP != 0, "HLREG0.RXCRCSTRP"),
            (self.word(RDRXCTL) & (RSCACKC | FCOE_WRFIX) == RSCACKC | FCOE_WRFIX, "RDRXCTL.RSCACKC and FCOE_WRFIX"),
            (self.word(RDRXCTL) >> 17 & 0x1f == 0, "RDRXCTL.RSCFRSTSIZE = 0"),
            (control >> 8 & 0x3f >= 2, "SRRCTL.BSIZEHDR of 128 bytes"),
            (self.word(PSRTYPE) & 1 << 4 != 0, "PSRTYPE.TCP"),
            (self.most(n) * self.buffer_len(base) <= LONGEST, "MAXDESC buffers below 64 KiB"),
            (vector.is_some(), "a vector"),
            (vector.is_none_or(|vector| !self.interval(vector).is_zero()), "an interval in EITR"),
        ] {
            if !ok {
                core.violate("merge-setup", format!("queue {n} merges without {what}"));
            }
        }
    }

    /// Most descriptors of a merged packet.
    fn most(&self, n: usize) -> usize {
        match self.word(rx(n) + queue::RSCCTL) >> 2 & 3 {
            0 => 1,
            1 => 4,
            2 => 8,
            _ => 16,
        }
    }

    /// A frame for a queue that merges. True if something was reported.
    pub(super) fn merge(&mut self, core: &mut Core, stored: &Stored) -> bool {
        let n = stored.queue;
        let key = key(stored);
        let before = self.receive.queues[n].merging.iter().position(|merging| Some(&merging.key) == key.as_ref());
        let segment = segment(stored);
        let mut reported = false;
        if let Some(at) = before {
            let fits = segment.as_ref().is_some_and(|segment| self.continues(n, at, segment));
            if fits && let Some(segment) = &segment {
                if !self.append(core, n, at, stored, segment) {
                    self.receive.queues[n].hung = true;
                    return false;
                }
                if segment.push {
                    self.close(core, n, at);
                    reported = true;
                }
                return reported;
            }
            self.close(core, n, at);
            reported = true;
        }
        match (key, segment) {
            (Some(key), Some(segment)) if !segment.push => self.begin(core, n, key, stored, &segment),
            _ => {
                if !self.write_frame(core, stored) {
                    self.receive.queues[n].hung = true;
                }
                reported = true;
            }
        }
        reported
    }

    fn continues(&self, n: usize, at: usize, segment: &Segment) -> bool {
        let merging = &self.receive.queues[n].merging[at];
        let len = segment.payload.len();
        let room = self.buffer_len(rx(n)) - merging.used;
        let more = len.saturating_sub(room).div_ceil(self.buffer_len(rx(n)));
        merging.next == segment.sequence
            && merging.len + len <= LONGEST
            && merging.descriptors + more <= self.most(n)
            && self.free_descriptors(n) >= more
    }

    fn begin(&mut self, core: &mut Core, n: usize, key: Vec<u8>, stored: &Stored, segment: &Segment) {
        let size = self.buffer_len(rx(n));
        let Some((index, address, buffer)) = self.next_buffer(core, n) else {
            self.receive.queues[n].hung = true;
            return;
        };
        let used = stored.bytes.len().min(size);
        if !core.dma_write(buffer, &stored.bytes[..used]) {
            self.receive.queues[n].hung = true;
            return;
        }
        let interval = self.route(n, false).map_or(Duration::ZERO, |vector| self.interval(vector));
        let until = core.now() + interval;
        self.receive.queues[n].merging.push(Merging {
            key,
            next: segment.sequence.wrapping_add(segment.payload.len() as u32),
            packet: Stored { bytes: Vec::new(), seen: stored.seen, ..*stored },
            header: buffer,
            len: stored.bytes.len(),
            descriptors: 1,
            index,
            address,
            buffer,
            used,
            begun: 0,
            until,
        });
        let at = self.receive.queues[n].merging.len() - 1;
        if stored.bytes.len() > size && !self.place(core, n, at, &stored.bytes[size..]) {
            self.receive.queues[n].hung = true;
        }
        if !self.timers.is_armed(&Event::Merge) {
            self.timers.arm(until, Event::Merge);
        }
    }

    fn append(&mut self, core: &mut Core, n: usize, at: usize, stored: &Stored, segment: &Segment) -> bool {
        let size = self.buffer_len(rx(n));
        let merging = &mut self.receive.queues[n].merging[at];
        merging.next = merging.next.wrapping_add(segment.payload.len() as u32);
        merging.len += segment.payload.len();
        let flags = stored.status & status::L4E;
        merging.packet.status |= flags;
        if merging.used < size {
            merging.begun += 1;
            return self.place(core, n, at, &stored.bytes[segment.payload.clone()]);
        }
        let placed = self.place(core, n, at, &stored.bytes[segment.payload.clone()]);
        self.receive.queues[n].merging[at].begun += 1;
        placed
    }

    /// Writes payload behind what is there, into further buffers if need be.
    fn place(&mut self, core: &mut Core, n: usize, at: usize, mut bytes: &[u8]) -> bool {
        let size = self.buffer_len(rx(n));
        while !bytes.is_empty() {
            if self.receive.queues[n].merging[at].used == size {
                let Some((index, address, buffer)) = self.next_buffer(core, n) else { return false };
                let merging = &mut self.receive.queues[n].merging[at];
                // The one that is full is reported, and says where the packet goes on.
                let second = u64::from(status::DD) | u64::from(index) << 4 | (size as u64) << 32;
                let words = [u64::from(merging.begun) << 17, second];
                let full = merging.address;
                (merging.index, merging.address, merging.buffer) = (index, address, buffer);
                merging.used = 0;
                merging.begun = 0;
                merging.descriptors += 1;
                if !core.write_descriptor(full, words) {
                    return false;
                }
            }
            let merging = &mut self.receive.queues[n].merging[at];
            let take = bytes.len().min(size - merging.used);
            let place = merging.buffer + merging.used as u64;
            merging.used += take;
            if !core.dma_write(place, &bytes[..take]) {
                return false;
            }
            bytes = &bytes[take..];
        }
        true
    }

    /// Reports a merged packet: the length in its IP header is that of the whole.
    fn close(&mut self, core: &mut Core, n: usize, at: usize) {
        let merging = self.receive.queues[n].merging.remove(at);
        let seen = merging.packet.seen;
        let tag = if merging.packet.status & status::VP != 0 { 4 } else { 0 };
        let network = u64::from(seen.network) - tag;
        let behind = merging.len as u64 - network;
        let (field, value) = if seen.version == 4 { (network + 2, behind) } else { (network + 4, behind - 40) };
        let wrote = core.dma_write(merging.header + field, &(value as u16).to_be_bytes());
        if !wrote || !core.write_descriptor(merging.address, merging.packet.last(merging.used, merging.begun)) {
            self.receive.queues[n].hung = true;
        }
    }

    /// Packets whose time is over, as the queue's interrupt comes.
    pub(super) fn close_merged(&mut self, core: &mut Core) {
        let now = core.now();
        let mut next: Option<Instant> = None;
        for n in 0..self.receive.queues.len() {
            let mut at = 0;
            let mut closed = false;
            while let Some(merging) = self.receive.queues[n].merging.get(at) {
                if merging.until <= now {
                    self.close(core, n, at);
                    closed = true;
                } else {
                    next = Some(next.map_or(merging.until, |next| next.min(merging.until)));
                    at += 1;
                }
            }
            if closed {
                self.raise_queue(core, n, false);
            }
        }
        if let Some(next) = next {
            self.timers.arm(next, Event::Merge);
        }
    }
}

/// Bytes of a tag that was removed from in front of the network header.
fn removed(stored: &Stored) -> usize {
    if stored.status & status::VP != 0 { 4 } else { 0 }
}

/// What all frames of a flow have in common.
fn key(stored: &Stored) -> Option<Vec<u8>> {
    let seen = &stored.seen;
    if seen.protocol != Some(6) || seen.extended || seen.fragment || stored.status & (status::RXE | status::IPE) != 0 {
        return None;
    }
    let (network, upper) = (usize::from(seen.network) - removed(stored), usize::from(seen.upper) - removed(stored));
    let addresses = if seen.version == 4 { network + 12..network + 20 } else { network + 8..network + 40 };
    let mut key = stored.bytes.get(addresses)?.to_vec();
    key.extend_from_slice(stored.bytes.get(upper..upper + 4)?);
    key.extend_from_slice(&stored.vlan.to_be_bytes());
    Some(key)
}

/// The payload of a frame that may be merged.
fn segment(stored: &Stored) -> Option<Segment> {
    let seen = &stored.seen;
    let upper = usize::from(seen.upper) - removed(stored);
    let network = usize::from(seen.network) - removed(stored);
    let tcp = stored.bytes.get(upper..upper + 20)?;
    // SYN, FIN, RST and URG are not merged, a wrong checksum is not, and of the options only time stamps.
    if tcp[13] & 0x27 != 0 || stored.status & status::L4E != 0 {
        return None;
    }
    let header = usize::from(tcp[12] >> 4) * 4;
    if header != 20 && !(header == 32 && stored.bytes.get(upper + 20..upper + 24)? == [1, 1, 8, 10]) {
        return None;
    }
    let at = |at: usize| u16::from_be_bytes([stored.bytes[at], stored.bytes[at + 1]]);
    let end =
        network + if seen.version == 4 { usize::from(at(network + 2)) } else { 40 + usize::from(at(network + 4)) };
    let payload = upper + header..end.min(stored.bytes.len());
    if payload.start >= payload.end {
        return None;
    }
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    Some(Segment { payload, sequence, push: tcp[13] & 8 != 0 })
}
