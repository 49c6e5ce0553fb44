//! The transmit engine: queues, contexts, checksums, segmentation (82576 datasheet 7.2).

use super::{Core, E82576, Event, registers as reg, statistics::at};
use crate::model::frames::{self, Check};
use netcore::checksum::{self, Sum};
use netcore::dissect::NetworkLayer;
use netcore::{Instant, TunnelPorts, dissect};
use std::vec::Vec;

/// Second word of a descriptor.
mod bits {
    pub(super) const EOP: u64 = 1 << 24;
    pub(super) const IFCS: u64 = 1 << 25;
    pub(super) const RS: u64 = 1 << 27;
    pub(super) const DEXT: u64 = 1 << 29;
    pub(super) const VLE: u64 = 1 << 30;
    pub(super) const TSE: u64 = 1 << 31;
    pub(super) const DD: u64 = 1 << 32;
    pub(super) const IXSM: u64 = 1 << 40;
    pub(super) const TXSM: u64 = 1 << 41;
    /// Data: bits 17:16 and 28, of the second half 3:1, 7 and 13:11.
    pub(super) const DATA_RESERVED: u64 = 3 << 16 | 1 << 28 | 7 << 33 | 1 << 39 | 7 << 43;
    /// Context: all but SNAP, IP version, transport, IPsec, type and DEXT; of the second half 3:0 and 7.
    pub(super) const CONTEXT_RESERVED: u64 = 0xffff_ffff & !(0x3f << 9 | 0xf << 20 | 1 << 29) | 0xf << 32 | 1 << 39;
}

/// Transports of a context.
const UDP: u8 = 0;
const TCP: u8 = 1;
const SCTP: u8 = 2;
/// Most descriptors of a packet.
const MAX_DESCRIPTORS: usize = 255;
/// Longest frame with FCS, one tag included.
const LONGEST: usize = 9728 + 4;
/// Largest segment size, most bytes of headers (Intel's shared code).
const MAX_MSS: usize = 9216;
const MAX_HEADER: usize = 512;

/// A context as it was loaded.
#[derive(Clone, Copy, Debug)]
struct Context {
    mac: usize,
    ip: usize,
    vlan: u16,
    ipv4: bool,
    transport: u8,
    l4: usize,
    mss: usize,
}

impl Context {
    fn parse([first, second]: [u64; 2]) -> Self {
        Self {
            mac: (first >> 9 & 0x7f) as usize,
            ip: (first & 0x1ff) as usize,
            vlan: (first >> 16) as u16,
            ipv4: second & 1 << 10 != 0,
            transport: (second >> 11 & 3) as u8,
            l4: (second >> 40 & 0xff) as usize,
            mss: (second >> 48) as usize,
        }
    }

    /// Where the transport header starts.
    const fn start(&self) -> usize {
        self.mac + self.ip
    }

    /// Where its checksum is.
    const fn field(&self) -> usize {
        self.start()
            + match self.transport {
                TCP => 16,
                UDP => 6,
                _ => 8,
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

#[derive(Debug, Default)]
pub(super) struct TransmitEngine {
    pub(super) queues: [Queue; reg::QUEUES],
}

const fn tx(queue: usize) -> u32 {
    reg::TX + 0x40 * queue as u32
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(pair) => u16::from_be_bytes([pair[0], pair[1]]),
        None => 0,
    }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

impl E82576 {
    fn transmit_tail(&self, n: usize) -> u16 {
        self.word(tx(n) + reg::queue::TAIL) as u16
    }

    fn queue_has_work(&self, n: usize) -> bool {
        let queue = &self.transmit.queues[n];
        self.queue_enabled(tx(n)) && !queue.hung && queue.fetched != self.transmit_tail(n)
    }

    pub(super) fn has_transmit_work(&self) -> bool {
        (0..reg::QUEUES).any(|n| self.queue_has_work(n))
    }

    pub(super) fn write_tdt(&mut self, core: &mut Core, n: usize, value: u32) {
        let base = tx(n);
        let tail = base + reg::queue::TAIL;
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
            self.run_transmit(core);
        } else if !self.timers.is_armed(&Event::Transmit) {
            self.timers.arm(core.now() + core.timing.dma, Event::Transmit);
        }
    }

    /// Fetches and sends for as long as there is work and a link.
    pub(super) fn run_transmit(&mut self, core: &mut Core) {
        for n in 0..reg::QUEUES {
            let base = tx(n);
            let count = self.ring_count(base);
            while self.tctl & reg::TCTL_EN != 0
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
        if word & bits::DATA_RESERVED != 0 {
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
        let context = if first.word & (bits::TSE | bits::VLE | bits::IXSM | bits::TXSM) != 0 {
            let slot = (first.word >> 36 & 7) as usize;
            let context = self.transmit.queues[n].contexts.get(slot).copied();
            match context {
                Some(Some(context)) => Some(context),
                Some(None) => {
                    core.violate("missing-context", format!("descriptor {} uses slot {slot}", first.index));
                    self.transmit.queues[n].hung = true;
                    return;
                }
                None => {
                    core.violate("context-slot", format!("descriptor {}: slots 0 and 1 exist", first.index));
                    self.transmit.queues[n].hung = true;
                    return;
                }
            }
        } else {
            None
        };
        let paylen = (first.word >> 46) as usize;
        let frames = match context {
            Some(context) if first.word & bits::TSE != 0 => {
                let Some(frames) = self.cut(core, &context, &bytes, paylen, first.word) else {
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
            done = done.max(self.send_frame(core, frame, tag));
        }
        self.counters.add(at::HGPTC, 1);
        for piece in pieces.iter().filter(|piece| piece.word & bits::RS != 0) {
            self.complete(core, n, done, piece.index);
        }
    }

    /// Cuts a packet into segments; `None` if the queue hangs over it.
    fn cut(
        &mut self,
        core: &mut Core,
        context: &Context,
        bytes: &[u8],
        paylen: usize,
        word: u64,
    ) -> Option<Vec<Vec<u8>>> {
        let header = context.start() + context.l4;
        if bytes.len() != header + paylen {
            core.violate("paylen", format!("{} bytes, but {header} of headers and PAYLEN {paylen}", bytes.len()));
            return None;
        }
        let mss = context.mss;
        if mss == 0 || paylen == 0 || mss > MAX_MSS {
            core.violate("segment-mss", format!("MSS {mss}, PAYLEN {paylen}"));
            return None;
        }
        if header > MAX_HEADER || context.transport > TCP {
            core.violate("segment-type", format!("{header} bytes of headers, transport {}", context.transport));
            return None;
        }
        let l4 = match context.transport {
            TCP => bytes.get(context.start() + 12).map_or(0, |byte| usize::from(byte >> 4) * 4),
            _ => 8,
        };
        if l4 != context.l4 {
            core.violate("l4len", format!("L4LEN {}, the header has {l4} bytes", context.l4));
        }
        let template = &bytes[..header];
        let payload = &bytes[header..];
        let count = payload.len().div_ceil(mss);
        let mut frames = Vec::with_capacity(count);
        for (n, part) in payload.chunks(mss).enumerate() {
            let mut frame = template.to_vec();
            frame.extend_from_slice(part);
            self.finish_segment(context, &mut frame, (n, count), word);
            check_frame(core, context, &frame, true);
            frames.push(frame);
        }
        self.counters.add(at::TSCTC, 1);
        Some(frames)
    }

    fn finish_segment(&self, context: &Context, frame: &mut [u8], (n, count): (usize, usize), word: u64) {
        let ip = context.mac;
        let l4 = context.start();
        let behind = frame.len() - ip.min(frame.len());
        if context.ipv4 {
            put16(frame, ip + 2, behind as u16);
            let id = get16(frame, ip + 4).wrapping_add(n as u16);
            put16(frame, ip + 4, id);
            if word & bits::IXSM != 0 {
                store(frame, ip + 10, ip, l4);
            }
        } else {
            put16(frame, ip + 4, behind.wrapping_sub(40) as u16);
        }
        let l4_len = frame.len() - l4.min(frame.len());
        if context.transport == TCP {
            let sequence = u32::from(get16(frame, l4 + 4)) << 16 | u32::from(get16(frame, l4 + 6));
            let sequence = sequence.wrapping_add((n * context.mss) as u32);
            put16(frame, l4 + 4, (sequence >> 16) as u16);
            put16(frame, l4 + 6, sequence as u16);
            // Which flags the first, middle and last segment keep.
            let (low, high) = (self.word(reg::DTXTCPFLGL), self.word(reg::DTXTCPFLGH));
            let mask = match n {
                _ if n + 1 == count => high,
                0 => low,
                _ => low >> 16,
            };
            if let Some(flags) = frame.get_mut(l4 + 13) {
                *flags &= mask as u8;
            }
        } else {
            put16(frame, l4 + 4, l4_len as u16);
        }
        if word & bits::TXSM != 0 {
            // The length, which the seed lacks, is added for each segment.
            let field = context.field();
            let seed = Sum::from_word(get16(frame, field)).plus_word(l4_len as u16).fold();
            put16(frame, field, seed);
            let end = frame.len();
            store(frame, field, l4, end);
        }
    }

    /// Adds tag and padding and puts a frame on the line.
    fn send_frame(&mut self, core: &mut Core, mut frame: Vec<u8>, tag: Option<u16>) -> Instant {
        if let Some(tag) = tag
            && frame.len() >= 12
        {
            let tpid = self.word(reg::VET) as u16;
            frame.splice(12..12, [tpid.to_be_bytes(), tag.to_be_bytes()].concat());
        }
        if frame.len() < 60 {
            // TCTL.PSP is on in this part's reset state, and no driver takes it off.
            frame.resize(60, 0);
        }
        let wire = frame.len() + 4;
        if wire > LONGEST {
            core.violate("long-frame", format!("{wire} bytes, {LONGEST} are allowed"));
        }
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
        if self.loops_back() {
            let at = core.now();
            self.frame_arrived(core, crate::model::Frame { at, bytes: frame, bad_fcs: false });
            return at;
        }
        core.send(frame, mbps)
    }

    /// Reports a descriptor at `done`, or later.
    fn complete(&mut self, core: &mut Core, n: usize, done: Instant, index: u16) {
        let late = core.faults.late_write_back.unwrap_or_default();
        let at = done + core.timing.dma + late;
        self.transmit.queues[n].pending.push((at, index));
        if at <= core.now() {
            self.run_write_back(core);
        } else {
            self.timers.arm(at, Event::WriteBack);
        }
    }

    pub(super) fn run_write_back(&mut self, core: &mut Core) {
        let now = core.now();
        for n in 0..reg::QUEUES {
            let base = tx(n);
            let pending = core::mem::take(&mut self.transmit.queues[n].pending);
            let (due, later): (Vec<_>, Vec<_>) = pending.into_iter().partition(|(at, _)| *at <= now);
            self.transmit.queues[n].pending = later;
            let mut wrote = false;
            for (_, index) in due {
                let head = self.word(base + reg::queue::WBAL);
                wrote |= if head & 1 != 0 {
                    // The head is written instead, and no descriptor.
                    let high = u64::from(self.word(base + reg::queue::WBAH)) << 32;
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
}

/// Fills in what the data descriptor asks for.
fn fill_sums(core: &mut Core, context: &Context, bytes: &mut [u8], word: u64) {
    if word & (bits::IXSM | bits::TXSM) == 0 {
        return;
    }
    if word & bits::IXSM != 0 {
        store(bytes, context.mac + 10, context.mac, context.start());
    }
    if word & bits::TXSM != 0 {
        let (start, field) = (context.start(), context.field());
        let room = if context.transport == SCTP { 4 } else { 2 };
        if context.transport > SCTP || field + room > bytes.len() {
            core.violate("iplen", format!("transport header at {start} in a frame of {} bytes", bytes.len()));
            return;
        }
        if context.transport == SCTP {
            let crc = frames::crc32c(&bytes[start..]);
            bytes[field..field + 4].copy_from_slice(&crc.to_le_bytes());
        } else {
            let end = bytes.len();
            store(bytes, field, start, end);
            if context.transport == UDP && get16(bytes, field) == 0 {
                put16(bytes, field, 0xffff);
            }
        }
    }
    check_frame(core, context, bytes, word & bits::IXSM != 0);
}

/// Sums `start..end`, what the field holds included, and stores the complement.
fn store(bytes: &mut [u8], field: usize, start: usize, end: usize) {
    let Some(range) = bytes.get(start..end.min(bytes.len())) else { return };
    let sum = !checksum::sum(range).fold();
    put16(bytes, field, sum);
}

/// The network header whose transport header is at `start`: the outer one, or one inside a tunnel over any UDP port.
fn network_of(bytes: &[u8], outer: NetworkLayer, start: usize) -> Option<NetworkLayer> {
    if usize::from(outer.upper) == start {
        return Some(outer);
    }
    let port = get16(bytes, usize::from(outer.upper) + 2);
    [TunnelPorts::none().with_vxlan(port), TunnelPorts::none().with_geneve(port)]
        .iter()
        .find_map(|ports| dissect(bytes, ports).inner.filter(|inner| usize::from(inner.upper) == start))
}

/// A frame as it goes out must fit the context by which it was made, and its checksums must be right.
fn check_frame(core: &mut Core, context: &Context, bytes: &[u8], ip_checksum: bool) {
    let Some(outer) = dissect(bytes, &TunnelPorts::none()).outer else {
        core.violate("maclen", "checksums asked for in a frame without an IP header");
        return;
    };
    if usize::from(outer.offset) != context.mac {
        core.violate("maclen", format!("MACLEN {}, the IP header is at {}", context.mac, outer.offset));
        return;
    }
    if ip_checksum && context.ipv4 != (outer.version == 4) {
        core.violate(
            "ip-version",
            format!("context for IPv4: {}, the packet has version {}", context.ipv4, outer.version),
        );
        return;
    }
    let (network, upper) = (usize::from(outer.offset), usize::from(outer.upper));
    if ip_checksum && outer.version == 4 && !checksum::sum(bytes.get(network..upper).unwrap_or(&[])).is_valid() {
        core.violate("ip-checksum-seed", "the outer IPv4 header does not sum up");
    }
    let start = context.start();
    let Some(layer) = network_of(bytes, outer, start) else {
        core.violate("iplen", format!("IPLEN {}: no transport header at {start}", context.ip));
        return;
    };
    let own = match context.transport {
        UDP => 17,
        TCP => 6,
        _ => 132,
    };
    if layer.protocol.0 != own {
        core.violate("transport-type", format!("protocol {} with transport {}", layer.protocol.0, context.transport));
        return;
    }
    if layer.offset != outer.offset {
        check_tunnel(core, bytes, outer, layer);
    }
    let Some(packet) = bytes.get(start..(layer.end as usize).min(bytes.len())) else { return };
    let good = if own == 132 {
        frames::sctp_checksum(packet) == Check::Good
    } else {
        let pseudo = frames::pseudo(bytes, layer.offset.into(), layer.version, own, packet.len());
        pseudo.plus(checksum::sum(packet)).is_valid()
    };
    if !good {
        core.violate("checksum-seed", format!("the checksum of protocol {own} at {start} is wrong on the wire"));
    }
}

/// The headers of a tunnel must fit the frame that they go out with.
fn check_tunnel(core: &mut Core, bytes: &[u8], outer: NetworkLayer, inner: NetworkLayer) {
    let udp = usize::from(outer.upper);
    let (network, upper) = (usize::from(inner.offset), usize::from(inner.upper));
    let len = bytes.len() - udp;
    let mut wrong = Vec::new();
    if usize::from(get16(bytes, udp + 4)) != len {
        wrong.push("the outer UDP length");
    }
    if get16(bytes, udp + 6) != 0 {
        let pseudo = frames::pseudo(bytes, outer.offset.into(), outer.version, 17, len);
        if !pseudo.plus(checksum::sum(&bytes[udp..])).is_valid() {
            wrong.push("the outer UDP checksum");
        }
    }
    if inner.end as usize != bytes.len() {
        wrong.push("the inner IP length");
    }
    if inner.version == 4 && !checksum::sum(bytes.get(network..upper).unwrap_or(&[])).is_valid() {
        wrong.push("the inner IP checksum");
    }
    if !wrong.is_empty() {
        core.violate("segment-template", format!("{} does not fit the frame", wrong.join(", ")));
    }
}
