//! The transmit engine: queues, contexts, checksums, segmentation (82599 datasheet 7.2).

use super::map::DTXTCPFLGH;
use super::map::{DMATXCTL, DTXTCPFLGL, HLREG0, MAXFRS, QUEUES, VLNCTRL, queue};
use super::registers::tx;
use super::{Core, E82599, Event, statistics::at};
use crate::model::advanced::{Context, Segmenting, bits, cut, fill_sums};
use netcore::Instant;
use std::vec::Vec;

/// Most descriptors of a packet (datasheet 7.2.1.1).
const MAX_DESCRIPTORS: usize = 40;
/// HLREG0: pad short frames.
const TXPADEN: u32 = 1 << 10;

/// A data descriptor of the packet at hand.
#[derive(Clone, Copy, Debug)]
struct Piece {
    index: u16,
    iova: u64,
    len: usize,
    word: u64,
}

/// One transmit queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) head: u16,
    pub(super) hung: bool,
    /// Next descriptor to fetch: ahead of `head` while a packet is incomplete.
    fetched: u16,
    contexts: [Option<Context>; 2],
    pieces: Vec<Piece>,
    /// Completions to report: when, and which.
    pending: Vec<(Instant, u16)>,
}

impl Queue {
    pub(super) fn start_over(&mut self, head: u16) {
        self.head = head;
        self.fetched = head;
        self.pieces.clear();
    }

    pub(super) fn stopped(&mut self) {
        self.pieces.clear();
        self.pending.clear();
        self.contexts = [None; 2];
    }
}

#[derive(Debug)]
pub(super) struct TransmitEngine {
    pub(super) queues: Vec<Queue>,
}

impl Default for TransmitEngine {
    fn default() -> Self {
        Self { queues: (0..QUEUES).map(|_| Queue::default()).collect() }
    }
}

impl TransmitEngine {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl E82599 {
    fn transmit_tail(&self, n: usize) -> u16 {
        self.word(tx(n) + queue::TAIL) as u16
    }

    fn queue_has_work(&self, n: usize) -> bool {
        let queue = &self.transmit.queues[n];
        !queue.hung && queue.fetched != self.transmit_tail(n) && self.queue_enabled(tx(n))
    }

    pub(super) fn has_transmit_work(&self) -> bool {
        (0..QUEUES).any(|n| self.queue_has_work(n))
    }

    pub(super) fn write_tdt(&mut self, core: &mut Core, n: usize, value: u32) {
        let base = tx(n);
        let tail = base + queue::TAIL;
        let count = self.ring_count(base);
        if !self.queue_enabled(base) {
            if value != 0 {
                core.violate("tail-before-enable", format!("TDT({n}) = {value} with TXDCTL.ENABLE off"));
            }
            self.set_word(tail, 0);
            return;
        }
        let (old, new) = (self.word(tail) as u16, value as u16);
        if u32::from(new) != value || new >= count {
            core.violate("tail-outside-ring", format!("TDT({n}) = {value} in a ring of {count}"));
            return;
        }
        let distance = |from: u16, to: u16| if to >= from { to - from } else { count - from + to };
        let queue = &self.transmit.queues[n];
        let outstanding = distance(queue.head, old);
        let added = distance(old, new);
        if u32::from(outstanding) + u32::from(added) >= u32::from(count) {
            core.violate("ring-overrun", format!("{added} descriptors added to {outstanding} in a ring of {count}"));
        }
        for (_, index) in &queue.pending {
            if distance(old, *index) < added {
                core.violate("reuse-before-done", format!("descriptor {index} reused before it was reported"));
            }
        }
        self.set_word(tail, u32::from(new));
        if !core.config.master() {
            core.violate("dma-without-master", "TDT moved while bus mastering is off");
            self.transmit.queues[n].hung = true;
            return;
        }
        if core.timing.dma.is_zero() {
            self.run_queue(core, n);
        } else if !self.timers.is_armed(&Event::Transmit) {
            self.timers.arm(core.now() + core.timing.dma, Event::Transmit);
        }
    }

    /// Fetches and sends for as long as there is work and a link.
    pub(super) fn run_transmit(&mut self, core: &mut Core) {
        for n in 0..QUEUES {
            if self.queue_has_work(n) {
                self.run_queue(core, n);
            }
        }
    }

    fn run_queue(&mut self, core: &mut Core, n: usize) {
        let base = tx(n);
        let count = self.ring_count(base);
        while self.word(DMATXCTL) & 1 != 0
            && count > 0
            && !core.faults.transmit_hang
            && self.link().is_some()
            && core.now() >= self.paused_until
            && self.queue_has_work(n)
        {
            let index = self.transmit.queues[n].fetched;
            let Some(words) = core.read_descriptor(self.descriptor_at(base, index)) else {
                self.transmit.queues[n].hung = true;
                break;
            };
            self.transmit.queues[n].fetched = if index + 1 == count { 0 } else { index + 1 };
            self.descriptor(core, n, index, words);
        }
    }

    fn descriptor(&mut self, core: &mut Core, n: usize, index: u16, words: [u64; 2]) {
        let word = words[1];
        let kind = word >> 20 & 0xf;
        if word & bits::DEXT == 0 || !matches!(kind, 2 | 3) {
            core.violate("descriptor-type", format!("transmit descriptor {index}: {word:#018x} is not advanced"));
            self.transmit.queues[n].hung = true;
            return;
        }
        if kind == 2 {
            return self.context(core, n, index, words);
        }
        if word & bits::DD != 0 {
            core.violate("done-bit-set", format!("transmit descriptor {index} already says it is done"));
        }
        // Bit 39, check context, exists here.
        if word & bits::DATA_RESERVED & !(1 << 39) != 0 {
            core.violate("reserved-bits", format!("transmit descriptor {index}: {word:#018x}"));
        }
        let len = (word & 0xffff) as usize;
        if len == 0 {
            core.violate("zero-length-descriptor", format!("transmit descriptor {index}"));
        }
        let pieces = &mut self.transmit.queues[n].pieces;
        if let Some(first) = pieces.first() {
            // Lengths and options count in the first descriptor; others repeat them or have none.
            let commands = 0xffff_0000 & !(bits::EOP | bits::RS);
            if (first.word ^ word) & commands != 0 || (word >> 36 != 0 && word >> 36 != first.word >> 36) {
                core.violate("mixed-commands", format!("descriptor {index} differs from the first of its packet"));
            }
        }
        if word & bits::RS != 0 && word & bits::EOP == 0 {
            core.violate("report-inside-packet", format!("descriptor {index}"));
        }
        pieces.push(Piece { index, iova: words[0], len, word });
        if pieces.len() == MAX_DESCRIPTORS + 1 {
            core.violate("packet-descriptors", format!("more than {MAX_DESCRIPTORS} at descriptor {index}"));
        }
        if word & bits::EOP != 0 {
            self.packet(core, n);
            let queue = &mut self.transmit.queues[n];
            queue.head = queue.fetched;
        }
    }

    fn context(&mut self, core: &mut Core, n: usize, index: u16, words: [u64; 2]) {
        if words[1] & bits::CONTEXT_RESERVED != 0 {
            core.violate("reserved-bits", format!("context descriptor {index}: {:#018x}", words[1]));
        }
        let queue = &mut self.transmit.queues[n];
        if !queue.pieces.is_empty() {
            core.violate("mixed-commands", format!("context descriptor {index} inside a packet"));
        }
        match queue.contexts.get_mut((words[1] >> 36 & 7) as usize) {
            Some(slot) => *slot = Some(Context::parse(words)),
            None => core.violate("context-slot", format!("context descriptor {index}: slots 0 and 1 exist")),
        }
        queue.head = queue.fetched;
    }

    /// The context that a packet uses; an error if the queue hangs over it.
    fn context_of(&self, core: &mut Core, n: usize, first: &Piece) -> Result<Option<Context>, ()> {
        if first.word & (bits::TSE | bits::VLE | bits::IXSM | bits::TXSM | 1 << 39) == 0 {
            return Ok(None);
        }
        let slot = (first.word >> 36 & 7) as usize;
        match self.transmit.queues[n].contexts.get(slot) {
            Some(Some(context)) => Ok(Some(*context)),
            Some(None) => {
                core.violate("missing-context", format!("descriptor {} uses slot {slot}", first.index));
                Err(())
            }
            None => {
                core.violate("context-slot", format!("descriptor {}: slots 0 and 1 exist", first.index));
                Err(())
            }
        }
    }

    /// All descriptors of a packet are there.
    fn packet(&mut self, core: &mut Core, n: usize) {
        let pieces = core::mem::take(&mut self.transmit.queues[n].pieces);
        let (Some(first), Some(last)) = (pieces.first().copied(), pieces.last().copied()) else { return };
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        let mut bytes = vec![0; total];
        let mut at = 0;
        for piece in &pieces {
            if !core.dma_read(piece.iova, &mut bytes[at..at + piece.len]) {
                self.transmit.queues[n].hung = true;
                return;
            }
            at += piece.len;
        }
        if last.word & bits::IFCS == 0 {
            core.violate("no-fcs", format!("descriptor {}", last.index));
        }
        if total < 17 {
            core.violate("short-frame", format!("{total} bytes, 17 are needed"));
        }
        let Ok(context) = self.context_of(core, n, &first) else {
            self.transmit.queues[n].hung = true;
            return;
        };
        let paylen = (first.word >> 46) as usize;
        let frames = match context {
            Some(context) if first.word & bits::TSE != 0 => {
                let limits = Segmenting {
                    max_mss: 0xffff,
                    max_header: 1023,
                    flags: (self.word(DTXTCPFLGL), self.word(DTXTCPFLGH)),
                };
                let Some(frames) = cut(core, &context, &bytes, paylen, first.word, &limits) else {
                    self.transmit.queues[n].hung = true;
                    return;
                };
                frames
            }
            other => {
                if paylen != total {
                    core.violate("paylen", format!("PAYLEN {paylen} in a frame of {total} bytes"));
                }
                if let Some(context) = other {
                    fill_sums(core, &context, &mut bytes, first.word);
                }
                vec![bytes]
            }
        };
        let tag = context.filter(|_| first.word & bits::VLE != 0).map(|context| context.vlan);
        let mut done = core.now();
        for frame in frames {
            done = done.max(self.send_frame(core, n, frame, tag));
        }
        for piece in pieces.iter().filter(|piece| piece.word & bits::RS != 0) {
            self.complete(core, n, done, piece.index);
        }
    }

    /// Adds tag and padding and puts a frame on the line.
    fn send_frame(&mut self, core: &mut Core, n: usize, mut frame: Vec<u8>, tag: Option<u16>) -> Instant {
        if let Some(tag) = tag
            && frame.len() >= 12
        {
            let tpid = self.word(VLNCTRL) as u16;
            frame.splice(12..12, [tpid.to_be_bytes(), tag.to_be_bytes()].concat());
        }
        if frame.len() < 60 && self.word(HLREG0) & TXPADEN != 0 {
            frame.resize(60, 0);
        }
        let wire = frame.len() + 4;
        // One tag comes on top of the limit.
        let longest = (self.word(MAXFRS) >> 16) as usize + 4;
        if wire > longest.max(1522) {
            core.violate("long-frame", format!("{wire} bytes, {longest} are allowed"));
        }
        self.count_sent(n, wire);
        self.statistics.add(at::GPTC, 1);
        self.statistics.add(at::TPT, 1);
        self.statistics.add(at::GOTC, wire as u64);
        self.statistics.counters.add_size(at::PTC64, wire);
        if frame.starts_with(&[0xff; 6]) {
            self.statistics.add(at::BPTC, 1);
        } else if frame.first().is_some_and(|byte| byte & 1 != 0) {
            self.statistics.add(at::MPTC, 1);
        }
        if self.loops_back() {
            let at = core.now();
            self.frame_arrived(core, crate::model::Frame { at, bytes: frame, bad_fcs: false });
            return at;
        }
        core.send(frame, self.link().unwrap_or(10_000))
    }

    /// Reports a descriptor at `done`, or later.
    fn complete(&mut self, core: &mut Core, n: usize, done: Instant, index: u16) {
        let late = core.faults.late_write_back.unwrap_or_default();
        let at = done + core.timing.dma + late;
        self.transmit.queues[n].pending.push((at, index));
        if at <= core.now() {
            self.report(core, n);
        } else {
            self.timers.arm(at, Event::WriteBack);
        }
    }

    pub(super) fn run_write_back(&mut self, core: &mut Core) {
        for n in 0..QUEUES {
            if !self.transmit.queues[n].pending.is_empty() {
                self.report(core, n);
            }
        }
    }

    fn report(&mut self, core: &mut Core, n: usize) {
        let now = core.now();
        let base = tx(n);
        let pending = core::mem::take(&mut self.transmit.queues[n].pending);
        let (due, later): (Vec<_>, Vec<_>) = pending.into_iter().partition(|(at, _)| *at <= now);
        self.transmit.queues[n].pending = later;
        let mut wrote = false;
        for (_, index) in due {
            let head = self.word(base + queue::WBAL);
            wrote |= if head & 1 != 0 {
                // The head is written instead, and no descriptor.
                let high = u64::from(self.word(base + queue::WBAH)) << 32;
                let next = if index + 1 == self.ring_count(base) { 0 } else { index + 1 };
                core.dma_write(high | u64::from(head & !3), &u32::from(next).to_le_bytes())
            } else {
                // Nothing but the done bit is defined.
                core.write_descriptor(self.descriptor_at(base, index), [0, bits::DD])
            };
        }
        if wrote {
            self.raise_queue(core, n, true);
        }
    }
}
