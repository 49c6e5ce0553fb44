//! The transmit engine: descriptors, contexts, checksums, segmentation (manual 3.3 to 3.5).

use super::{Core, E82546Gb, Event, interrupt, registers as reg, statistics::at};
use crate::model::frames::{self, Check};
use netcore::Instant;
use netcore::checksum::{self, Sum};
use std::vec::Vec;

/// Second word of a descriptor.
mod bits {
    pub(super) const EOP: u64 = 1 << 24;
    pub(super) const IFCS: u64 = 1 << 25;
    /// Legacy: insert checksum. Extended: segment.
    pub(super) const IC_TSE: u64 = 1 << 26;
    pub(super) const RS: u64 = 1 << 27;
    /// Only the 82544 has it.
    pub(super) const RPS: u64 = 1 << 28;
    pub(super) const DEXT: u64 = 1 << 29;
    pub(super) const VLE: u64 = 1 << 30;
    pub(super) const DD: u64 = 1 << 32;
    pub(super) const IXSM: u64 = 1 << 40;
    pub(super) const TXSM: u64 = 1 << 41;
}

/// Longest buffer of a legacy descriptor (manual 3.3.3).
const LEGACY_LIMIT: usize = 16288;
/// First descriptor on PCI-X (specification update, erratum 10).
const PCIX_LIMIT: usize = 2015;

/// A context as it was loaded.
#[derive(Clone, Copy, Debug)]
struct Context {
    ip_start: usize,
    ip_field: usize,
    ip_end: usize,
    start: usize,
    field: usize,
    end: usize,
    paylen: usize,
    header: usize,
    mss: usize,
    tcp: bool,
    ipv4: bool,
}

impl Context {
    fn parse([first, second]: [u64; 2]) -> Self {
        let byte = |shift: u32| (first >> shift & 0xff) as usize;
        Self {
            ip_start: byte(0),
            ip_field: byte(8),
            ip_end: (first >> 16 & 0xffff) as usize,
            start: byte(32),
            field: byte(40),
            end: (first >> 48) as usize,
            paylen: (second & 0xf_ffff) as usize,
            tcp: second & 1 << 24 != 0,
            ipv4: second & 1 << 25 != 0,
            header: (second >> 40 & 0xff) as usize,
            mss: (second >> 48) as usize,
        }
    }
}

/// A data descriptor of the packet at hand.
#[derive(Clone, Copy, Debug)]
struct Piece {
    index: u16,
    iova: u64,
    len: usize,
    word: u64,
}

#[derive(Debug, Default)]
pub(super) struct TransmitEngine {
    pub(super) head: u16,
    /// Next descriptor to fetch: ahead of `head` while a packet is incomplete.
    fetched: u16,
    checksum: Option<Context>,
    segmentation: Option<Context>,
    pieces: Vec<Piece>,
    /// Completions to report: when, index, second word.
    pending: Vec<(Instant, u16, [u64; 2])>,
    last_segmented: bool,
    hung: bool,
}

impl TransmitEngine {
    pub(super) fn has_work(&self, device: &E82546Gb) -> bool {
        !self.hung && self.fetched != device.word(reg::TDT) as u16
    }
}

impl E82546Gb {
    pub(super) fn write_tdt(&mut self, core: &mut Core, value: u32) {
        let count = self.ring_count(reg::TDLEN);
        let old = self.word(reg::TDT) as u16;
        let new = value as u16;
        if self.tctl & reg::TCTL_EN == 0 {
            if value != 0 {
                core.violate("tail-before-enable", format!("TDT = {value} with TCTL.EN off"));
            }
            self.set_word(reg::TDT, value & 0xffff);
            return;
        }
        if u32::from(new) != value || new >= count {
            core.violate("tail-outside-ring", format!("TDT = {value} in a ring of {count}"));
            return;
        }
        let distance = |from: u16, to: u16| if to >= from { to - from } else { count - from + to };
        let outstanding = distance(self.transmit.head, old);
        let added = distance(old, new);
        if u32::from(outstanding) + u32::from(added) >= u32::from(count) {
            core.violate("ring-overrun", format!("{added} descriptors added to {outstanding} in a ring of {count}"));
        }
        for (_, index, _) in &self.transmit.pending {
            if distance(old, *index) < added {
                core.violate("reuse-before-done", format!("descriptor {index} reused before it was reported"));
            }
        }
        self.set_word(reg::TDT, u32::from(new));
        if !core.config.master() {
            core.violate("dma-without-master", "TDT moved while bus mastering is off");
            self.transmit.hung = true;
            return;
        }
        if core.timing.dma.is_zero() {
            self.run_transmit(core);
        } else if !self.timers.is_armed(&Event::Transmit) {
            self.timers.arm(core.now() + core.timing.dma, Event::Transmit);
        }
    }

    /// Fetches and sends for as long as there is work and a link.
    pub(super) fn run_transmit(&mut self, core: &mut Core) {
        let count = self.ring_count(reg::TDLEN);
        while self.tctl & reg::TCTL_EN != 0
            && count > 0
            && !self.transmit.hung
            && !core.faults.transmit_hang
            && self.link().is_some()
            && core.now() >= self.paused_until
            && self.transmit.fetched != self.word(reg::TDT) as u16
        {
            let index = self.transmit.fetched;
            let Some(words) = core.read_descriptor(self.descriptor_at(reg::TDBAL, index)) else {
                self.transmit.hung = true;
                return;
            };
            self.transmit.fetched = if index + 1 == count { 0 } else { index + 1 };
            self.descriptor(core, index, words);
        }
        if self.transmit.fetched == self.word(reg::TDT) as u16 && self.transmit.pending.is_empty() {
            self.icr |= interrupt::TXQE;
        }
    }

    fn descriptor(&mut self, core: &mut Core, index: u16, words: [u64; 2]) {
        let word = words[1];
        if word & bits::DD != 0 {
            core.violate("done-bit-set", format!("transmit descriptor {index} already says it is done"));
        }
        if word & (bits::RPS | 0xe << 32) != 0 {
            core.violate("reserved-bits", format!("transmit descriptor {index}: {word:#018x}"));
        }
        if word & bits::DEXT != 0 && word >> 20 & 0xf == 0 {
            if word & 0xf << 36 != 0 || word & 1 << 28 != 0 {
                core.violate("reserved-bits", format!("context descriptor {index}: {word:#018x}"));
            }
            if !self.transmit.pieces.is_empty() {
                core.violate("mixed-commands", format!("context descriptor {index} inside a packet"));
            }
            let context = Context::parse(words);
            if word & bits::IC_TSE != 0 {
                self.transmit.segmentation = Some(context);
            } else {
                self.transmit.checksum = Some(context);
            }
            if word & bits::RS != 0 {
                self.complete(core, core.now(), index, words);
            }
            self.transmit.head = self.transmit.fetched;
            return;
        }
        let extended = word & bits::DEXT != 0;
        if extended && word >> 20 & 0xf != 1 {
            core.violate("reserved-bits", format!("descriptor {index} of type {}", word >> 20 & 0xf));
        }
        if extended && word >> 42 & 0x3f != 0 {
            core.violate("reserved-bits", format!("options of descriptor {index}: {word:#018x}"));
        }
        let len = if extended { (word & 0xf_ffff) as usize } else { (word & 0xffff) as usize };
        if len == 0 {
            core.violate("zero-length-descriptor", format!("transmit descriptor {index}"));
        }
        if !extended && len > LEGACY_LIMIT {
            core.violate("too-many-bytes", format!("{len} in a legacy descriptor, {LEGACY_LIMIT} are allowed"));
        }
        let pieces = &self.transmit.pieces;
        if let Some(first) = pieces.first()
            && (first.word ^ word) & (bits::IC_TSE | bits::VLE | bits::DEXT) != 0
        {
            core.violate("mixed-commands", format!("descriptor {index} differs from the first of its packet"));
        }
        if word & bits::RS != 0 && word & bits::EOP == 0 && extended && word & bits::IC_TSE != 0 {
            core.violate("report-inside-packet", format!("descriptor {index}"));
        }
        self.transmit.pieces.push(Piece { index, iova: words[0], len, word });
        if word & bits::EOP != 0 {
            self.packet(core);
            self.transmit.head = self.transmit.fetched;
        }
    }

    /// All descriptors of a packet are there.
    fn packet(&mut self, core: &mut Core) {
        let pieces = core::mem::take(&mut self.transmit.pieces);
        let (Some(first), Some(last)) = (pieces.first().copied(), pieces.last().copied()) else { return };
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        let mut bytes = vec![0; total];
        let mut at = 0;
        for piece in &pieces {
            if !core.dma_read(piece.iova, &mut bytes[at..at + piece.len]) {
                self.transmit.hung = true;
                return;
            }
            at += piece.len;
        }
        if last.word & bits::IFCS == 0 {
            core.violate("no-fcs", format!("descriptor {}", last.index));
        }
        if self.pcix && first.len > PCIX_LIMIT {
            core.violate("pcix-first-descriptor", format!("{} bytes, {PCIX_LIMIT} are allowed", first.len));
        }
        let extended = first.word & bits::DEXT != 0;
        let segments = extended && first.word & bits::IC_TSE != 0;
        if !segments && self.transmit.last_segmented && pieces.len() == 1 {
            core.violate("segment-sentinel", format!("descriptor {} holds a whole packet", last.index));
        }
        self.transmit.last_segmented = segments;
        let frames = if segments {
            self.cut(core, &pieces, &bytes)
        } else {
            if extended {
                self.fill_sums(core, &first, &mut bytes);
            } else if first.word & bits::IC_TSE != 0 {
                legacy_sum(&first, &mut bytes);
            }
            vec![bytes]
        };
        let mut done = core.now();
        for frame in frames {
            done = done.max(self.send_frame(core, frame, &last, segments));
        }
        for piece in &pieces {
            if piece.word & bits::RS != 0 {
                self.complete(core, done, piece.index, [piece.iova, piece.word]);
            }
        }
    }

    /// Fills in what the data descriptor asks for, by the checksum context.
    fn fill_sums(&mut self, core: &mut Core, first: &Piece, bytes: &mut [u8]) {
        if first.word & (bits::IXSM | bits::TXSM) == 0 {
            return;
        }
        let Some(context) = self.transmit.checksum else {
            core.violate("missing-context", format!("descriptor {} without a checksum context", first.index));
            return;
        };
        if first.word & bits::IXSM != 0 {
            check_ip_context(core, &context, bytes);
            store(bytes, context.ip_field, context.ip_start, context.ip_end);
        }
        if first.word & bits::TXSM != 0 {
            if context.field + 2 > bytes.len() || context.start > context.field {
                core.violate("checksum-context", format!("field at {} of {} bytes", context.field, bytes.len()));
                return;
            }
            store(bytes, context.field, context.start, context.end);
            check_transport(core, bytes, context.start, context.field);
        }
    }

    /// Cuts a packet into segments.
    fn cut(&mut self, core: &mut Core, pieces: &[Piece], bytes: &[u8]) -> Vec<Vec<u8>> {
        let Some(context) = self.transmit.segmentation else {
            core.violate("missing-context", "segmentation without a context");
            return Vec::new();
        };
        let Context { header, mss, paylen, .. } = context;
        if bytes.len() != header + paylen {
            core.violate("segment-paylen", format!("{} bytes, but HDRLEN {header} and PAYLEN {paylen}", bytes.len()));
            self.counters.add(at::TSCTFC, 1);
            return Vec::new();
        }
        if mss == 0 || header == 0 || paylen == 0 {
            core.violate("segment-mss", format!("MSS {mss}, HDRLEN {header}, PAYLEN {paylen}"));
            self.counters.add(at::TSCTFC, 1);
            return Vec::new();
        }
        let mut end = 0;
        if !pieces.iter().any(|piece| {
            end += piece.len;
            end == header
        }) {
            core.violate("segment-header", "the headers do not end with a buffer");
        }
        for piece in pieces {
            if piece.len > mss * 4 {
                core.violate("segment-buffer", format!("{} bytes in one buffer with MSS {mss}", piece.len));
            }
        }
        if !context.ipv4 {
            core.violate("segment-ipv6", "this part computes a wrong IPv6 payload length");
        }
        if !context.tcp {
            core.violate("segment-template", "no driver cuts anything but TCP on this part");
        }
        let template = &bytes[..header];
        self.check_template(core, &context, template);
        let word = pieces.first().map_or(0, |piece| piece.word);
        let payload = &bytes[header..];
        let count = payload.len().div_ceil(mss);
        let mut frames = Vec::with_capacity(count);
        for (n, part) in payload.chunks(mss).enumerate() {
            let mut frame = template.to_vec();
            frame.extend_from_slice(part);
            self.finish_segment(&context, &mut frame, n, n + 1 == count, word);
            if word & bits::TXSM != 0 {
                check_transport(core, &frame, context.start, context.field);
            }
            frames.push(frame);
        }
        self.counters.add(at::TSCTC, 1);
        frames
    }

    /// What the headers of a segmented packet must hold.
    fn check_template(&self, core: &mut Core, context: &Context, template: &[u8]) {
        let at16 = |at: usize| match template.get(at..at + 2) {
            Some(pair) => u16::from_be_bytes([pair[0], pair[1]]),
            None => 0,
        };
        if context.ipv4 {
            check_ip_context(core, context, template);
            if at16(context.ip_start + 2) != 0 || at16(context.ip_field) != 0 {
                core.violate("segment-template", "IPv4 length and checksum must be zero");
            }
        }
        if context.field + 2 > template.len() || context.start >= context.field {
            core.violate("checksum-context", format!("field at {} of {} header bytes", context.field, template.len()));
            return;
        }
        let addresses = if context.ipv4 {
            context.ip_start + 12..context.ip_start + 20
        } else {
            context.ip_start + 8..context.ip_start + 40
        };
        let protocol = if context.tcp { 6 } else { 17 };
        let seed = checksum::sum(template.get(addresses).unwrap_or(&[])).plus_word(protocol).fold();
        if at16(context.field) != seed {
            core.violate(
                "checksum-seed",
                format!(
                    "{:#06x} in a segmentation template, the pseudo-header without length is {seed:#06x}",
                    at16(context.field)
                ),
            );
        }
    }

    fn finish_segment(&self, context: &Context, frame: &mut [u8], n: usize, last: bool, word: u64) {
        let put = |frame: &mut [u8], at: usize, value: u16| {
            if let Some(field) = frame.get_mut(at..at + 2) {
                field.copy_from_slice(&value.to_be_bytes());
            }
        };
        let get = |frame: &[u8], at: usize| match frame.get(at..at + 2) {
            Some(pair) => u16::from_be_bytes([pair[0], pair[1]]),
            None => 0,
        };
        let ip = context.ip_start;
        let len = frame.len() - ip.min(frame.len());
        if context.ipv4 {
            put(frame, ip + 2, len as u16);
            let id = get(frame, ip + 4).wrapping_add(n as u16);
            put(frame, ip + 4, id);
            if word & bits::IXSM != 0 {
                store(frame, context.ip_field, context.ip_start, context.ip_end);
            }
        } else {
            // As the part does it: the IPv6 header counts, which it should not (manual 3.5.9.4).
            put(frame, ip + 4, len as u16);
        }
        let l4 = context.start;
        if context.tcp {
            let sequence = u32::from(get(frame, l4 + 4)) << 16 | u32::from(get(frame, l4 + 6));
            let sequence = sequence.wrapping_add((n * context.mss) as u32);
            put(frame, l4 + 4, (sequence >> 16) as u16);
            put(frame, l4 + 6, sequence as u16);
            if !last && let Some(flags) = frame.get_mut(l4 + 13) {
                // FIN and PSH are for the last segment.
                *flags &= !0x09;
            }
        } else {
            let udp = frame.len() - l4.min(frame.len());
            put(frame, l4 + 4, udp as u16);
        }
        if word & bits::TXSM != 0 {
            // The length, which the seed lacks, is added per segment.
            let l4_len = frame.len() - l4.min(frame.len());
            let seed = Sum::from_word(get(frame, context.field)).plus_word(l4_len as u16).fold();
            put(frame, context.field, seed);
            store(frame, context.field, context.start, context.end);
        }
    }

    /// Adds tag and padding and puts a frame on the line.
    fn send_frame(&mut self, core: &mut Core, mut frame: Vec<u8>, last: &Piece, segment: bool) -> Instant {
        if last.word & bits::VLE != 0 {
            if self.ctrl & reg::CTRL_VME == 0 {
                core.violate("vlan-without-vme", format!("descriptor {}", last.index));
            } else if frame.len() >= 12 {
                let tag = (last.word >> 48) as u16;
                let tpid = self.word(reg::VET) as u16;
                frame.splice(12..12, [tpid.to_be_bytes(), tag.to_be_bytes()].concat());
            }
        }
        if frame.len() < 60 {
            if !segment {
                core.violate("short-frame", format!("{} bytes; padding by hardware can corrupt", frame.len()));
            }
            if self.tctl & reg::TCTL_PSP != 0 {
                frame.resize(60, 0);
            }
        }
        let fifo = (self.word(reg::PBA) >> 16 & 0xff) as usize * 1024;
        if frame.len() + 80 > fifo {
            core.violate("transmit-fifo", format!("{} bytes, the buffer holds {fifo}", frame.len()));
        }
        let wire = frame.len() + 4;
        self.counters.add(at::GPTC, 1);
        self.counters.add(at::TPT, 1);
        self.counters.add(at::GOTC, wire as u64);
        self.counters.add(at::TOT, wire as u64);
        self.counters.add_size(at::PTC64, wire);
        if frame.starts_with(&[0xff; 6]) {
            self.counters.add(at::BPTC, 1);
        } else if frame.first().is_some_and(|byte| byte & 1 != 0) {
            self.counters.add(at::MPTC, 1);
        }
        let mbps = self.link().map_or(1000, |link| link.mbps);
        if self.phy.loops_back() {
            let at = core.now();
            self.frame_arrived(core, crate::model::Frame { at, bytes: frame, bad_fcs: false });
            return at;
        }
        core.send(frame, mbps)
    }

    /// Reports a descriptor at `done`, or later.
    fn complete(&mut self, core: &mut Core, done: Instant, index: u16, words: [u64; 2]) {
        let late = core.faults.late_write_back.unwrap_or_default();
        let at = done + core.timing.dma + late;
        let words = [words[0], words[1] | bits::DD];
        self.transmit.pending.push((at, index, words));
        if at <= core.now() {
            self.run_write_back(core);
        } else {
            self.timers.arm(at, Event::WriteBack);
        }
    }

    pub(super) fn run_write_back(&mut self, core: &mut Core) {
        let mut wrote = false;
        let now = core.now();
        let pending = core::mem::take(&mut self.transmit.pending);
        for (at, index, words) in pending {
            if at > now {
                self.transmit.pending.push((at, index, words));
                continue;
            }
            let address = self.descriptor_at(reg::TDBAL, index);
            wrote |= core.write_descriptor(address, words);
        }
        if wrote {
            self.raise(core, interrupt::TXDW);
        }
    }
}

/// Sums `start..=end` (0: to the end of the packet) over what the field holds and stores the complement.
fn store(bytes: &mut [u8], field: usize, start: usize, end: usize) {
    let end = if end == 0 { bytes.len() } else { (end + 1).min(bytes.len()) };
    let Some(range) = bytes.get(start..end) else { return };
    let sum = !checksum::sum(range).fold();
    if let Some(place) = bytes.get_mut(field..field + 2) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

/// The checksum of a legacy descriptor: from CSS to the end, stored at CSO.
fn legacy_sum(first: &Piece, bytes: &mut [u8]) {
    let field = (first.word >> 16 & 0xff) as usize;
    let start = (first.word >> 40 & 0xff) as usize;
    store(bytes, field, start, 0);
}

fn check_ip_context(core: &mut Core, context: &Context, bytes: &[u8]) {
    let version = bytes.get(context.ip_start).copied().unwrap_or(0);
    let len = usize::from(version & 0xf) * 4;
    if version >> 4 != 4 || context.ip_end + 1 != context.ip_start + len || context.ip_field != context.ip_start + 10 {
        core.violate(
            "ip-context",
            format!(
                "IPCSS {} IPCSO {} IPCSE {} do not fit the IPv4 header",
                context.ip_start, context.ip_field, context.ip_end
            ),
        );
    }
}

/// A checksum that hardware filled in by a context must be right, if it is one that can be understood.
fn check_transport(core: &mut Core, bytes: &[u8], start: usize, field: usize) {
    let seen = frames::look(bytes);
    let own = match seen.protocol {
        Some(6) => usize::from(seen.upper) + 16 == field,
        Some(17) => usize::from(seen.upper) + 6 == field,
        _ => false,
    };
    if own && usize::from(seen.upper) == start && seen.transport == Check::Bad {
        core.violate("checksum-seed", format!("the sum from {start} at {field} is wrong on the wire"));
    }
}
