//! [`TransmitRing`]: packets into descriptors, and back when they are done.

use super::layout::{HEADER_ROOM, TransmitLayout, TransmitPlan};
use super::{Arenas, Descriptors, ring_bytes};
use crate::dma::DmaBlock;
use crate::error::NicError;
use crate::mmio::Mmio;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use netcore::driver::CONTROL_DESCRIPTORS;
use netcore::{Burst, Completion, Completions, DmaRegion, Packet, PoolCache, Refusal};

/// Shortest frame that is handed to hardware, bytes without FCS. Shorter ones are padded with zeros in software: padding by
/// hardware can corrupt a frame on PCI-X parts, and later parts hang on frames below 17 bytes.
const MIN_FRAME: usize = 60;
/// Zero bytes that virtual segments are sent from.
const ZEROS: usize = 4096;
/// Done descriptors are reported at least every this many packets; and at the end of each burst.
const REPORT_EVERY: u32 = 32;

/// Counters of one transmit queue. One thread writes, any reads.
#[derive(Debug, Default)]
pub struct TransmitCounters {
    /// Packets handed to hardware; a super-packet counts once.
    pub packets: AtomicU64,
    /// Bytes of those packets.
    pub bytes: AtomicU64,
    /// Super-packets among them.
    pub segmented: AtomicU64,
    /// Checksums left to hardware.
    pub checksums: AtomicU64,
    /// Packets of which bytes had to be copied into memory that the device reaches.
    pub copied: AtomicU64,
    /// Bytes copied for that.
    pub copied_bytes: AtomicU64,
    /// Bursts that ended because the ring was full (`tx_busy`).
    pub busy: AtomicU64,
    /// Packets left with the caller because no memory for a copy was free.
    pub no_copy_buffer: AtomicU64,
    /// Packets refused: the hardware cannot do what they ask for.
    pub refused: AtomicU64,
    /// Packets that were in the ring when it was stopped and may not have been sent (`tx_aborted_errors`).
    pub aborted: AtomicU64,
}

/// Adds to a counter that only this thread writes.
#[inline(always)]
pub(super) fn count(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

struct Slot {
    packet: Packet,
    /// Copies that some of its descriptors point at.
    copies: Option<Packet>,
}

/// The last data descriptor of the last packet, not written yet because it may be the one to report.
struct Held {
    index: u16,
    plan: TransmitPlan,
    /// It is also the packet's first data descriptor.
    iova: u64,
    len: u32,
}

/// A transmit queue.
pub struct TransmitRing<L: TransmitLayout> {
    layout: L,
    descriptors: Descriptors,
    /// First descriptor not yet reclaimed.
    clean: u16,
    /// Next descriptor to write.
    tail: u16,
    /// The packet that ends at each descriptor.
    slots: Box<[Option<Slot>]>,
    /// Descriptors that were asked to report, oldest first.
    reports: VecDeque<u16>,
    unreported: u32,
    held: Option<Held>,
    /// One header buffer per descriptor, then [`ZEROS`] zero bytes.
    headers: DmaBlock,
    copies: PoolCache,
    arenas: Arc<Arenas>,
    pieces: Vec<(u64, u32)>,
    /// Where a layout rewrites headers; what is in it before is of no meaning.
    scratch: Box<[u8; HEADER_ROOM]>,
    counters: Arc<TransmitCounters>,
}

/// What became of one packet.
enum Queued {
    Yes,
    /// The ring, or the memory for copies, is full.
    Full(Packet),
    Refused(Packet, Refusal),
}

impl<L: TransmitLayout> TransmitRing<L> {
    /// Bytes of the region that [`TransmitRing::new`] takes as `headers`.
    pub const fn header_bytes(count: u16) -> usize {
        count as usize * HEADER_ROOM + ZEROS
    }

    /// An empty ring of `count` descriptors, whose tail register is at `tail` of `window`. `copies` gives buffers, in memory
    /// that the device reaches, for bytes that are elsewhere.
    ///
    /// # Errors
    /// [`NicError::OutOfRange`] if `count` is not a multiple of 8, [`NicError::NoDmaMemory`] if a region is too small or not
    /// mapped.
    #[allow(clippy::too_many_arguments)] // the parts of a queue; made in one place
    pub fn new(
        layout: L,
        region: DmaRegion,
        headers: DmaRegion,
        count: u16,
        window: Mmio,
        tail: u32,
        copies: PoolCache,
        arenas: Arc<Arenas>,
        counters: Arc<TransmitCounters>,
    ) -> Result<Self, NicError> {
        let descriptors = Descriptors::new(region, count, window, tail)?;
        if headers.len() < Self::header_bytes(count) {
            return Err(NicError::NoDmaMemory {
                bytes: Self::header_bytes(count),
                message: "the header region is smaller".into(),
            });
        }
        Ok(Self {
            layout,
            descriptors,
            clean: 0,
            tail: 0,
            slots: (0..count).map(|_| None).collect(),
            reports: VecDeque::with_capacity(count.into()),
            unreported: 0,
            held: None,
            headers: DmaBlock::new(headers)?,
            copies,
            arenas,
            pieces: Vec::with_capacity(64),
            scratch: Box::new([0; HEADER_ROOM]),
            counters,
        })
    }

    /// The device's address of the ring.
    pub fn iova(&self) -> u64 {
        self.descriptors.iova()
    }

    /// Bytes in the ring, for the length register.
    pub fn byte_len(&self) -> u32 {
        ring_bytes(self.descriptors.count()) as u32
    }

    /// The counters.
    pub fn counters(&self) -> &Arc<TransmitCounters> {
        &self.counters
    }

    /// The layout, with what it remembers of the hardware's state.
    pub fn layout_mut(&mut self) -> &mut L {
        &mut self.layout
    }

    /// Descriptors that can be given to hardware now.
    #[inline(always)]
    fn free(&self) -> u16 {
        let count = self.descriptors.count();
        let used = if self.tail >= self.clean { self.tail - self.clean } else { count - self.clean + self.tail };
        count - 1 - used
    }

    /// True if no descriptor is outstanding.
    pub fn is_idle(&self) -> bool {
        self.tail == self.clean
    }

    /// The next descriptor to be written.
    pub fn next(&self) -> u16 {
        self.tail
    }

    /// The first descriptor not reclaimed: stands still while hardware makes no progress.
    pub fn progress(&self) -> u16 {
        self.clean
    }

    /// True if hardware has finished packets that were not reclaimed.
    pub fn has_finished(&self) -> bool {
        self.reports.front().is_some_and(|end| self.descriptors.second(*end) & L::DONE != 0)
    }

    /// Takes packets from the front of `burst` for as long as they fit and hands them to hardware with one tail store.
    /// Control frames may use the descriptors that data leaves free.
    ///
    /// # Errors
    /// The refusal of the packet now at the front; those before it were accepted.
    pub fn transmit(&mut self, burst: &mut Burst, control: bool) -> (usize, Option<Refusal>) {
        let reserve = if control { 0 } else { CONTROL_DESCRIPTORS as u16 };
        let before = self.tail;
        let mut sent = 0;
        let mut refusal = None;
        let mut bytes = 0;
        while let Some(packet) = burst.pop() {
            let len = packet.len() as u64;
            match self.queue(packet, reserve) {
                Queued::Yes => {
                    sent += 1;
                    bytes += len;
                }
                Queued::Full(packet) => {
                    burst.unpop(packet);
                    count(&self.counters.busy, 1);
                    break;
                }
                Queued::Refused(packet, reason) => {
                    burst.unpop(packet);
                    count(&self.counters.refused, 1);
                    refusal = Some(reason);
                    break;
                }
            }
        }
        self.write_held(true);
        if self.tail != before {
            self.descriptors.bump(self.tail);
            count(&self.counters.packets, sent as u64);
            count(&self.counters.bytes, bytes);
        }
        (sent, refusal)
    }

    /// Writes the last descriptor of the last packet.
    #[inline(always)]
    fn write_held(&mut self, report: bool) {
        if let Some(held) = self.held.take() {
            self.unreported += 1;
            let report = report || self.unreported >= REPORT_EVERY;
            if report {
                self.unreported = 0;
                self.reports.push_back(held.index);
            }
            self.descriptors.write(held.index, L::data(&held.plan, held.iova, held.len, true, report));
        }
    }

    #[inline(always)]
    fn queue(&mut self, packet: Packet, reserve: u16) -> Queued {
        let len = packet.len();
        if len < 14 {
            return Queued::Refused(packet, Refusal::TooShort { len, min: 14 });
        }
        // Cheapest test first: a packet needs one data descriptor at least.
        let free = self.free();
        if free <= reserve {
            return Queued::Full(packet);
        }
        let plan = match self.layout.plan(&packet, &mut self.scratch) {
            Ok(plan) => plan,
            Err(refusal) => return Queued::Refused(packet, refusal),
        };
        let min = if plan.min_frame == 0 { MIN_FRAME } else { usize::from(plan.min_frame).min(MIN_FRAME) };
        // Most packets: in one piece within reach, nothing in front of it, nothing behind.
        if plan.context.is_none()
            && plan.header == 0
            && plan.cut == 0
            && len >= min
            && len <= plan.first_limit.min(plan.limit) as usize
            && packet.is_linear()
            && let Some(iova) = self.arenas.iova(packet.head())
        {
            self.write_held(false);
            let index = self.tail;
            self.held = Some(Held { index, plan, iova, len: len as u32 });
            self.tail = self.descriptors.next(index);
            if packet.transmit_checksum().is_some() {
                count(&self.counters.checksums, 1);
            }
            self.slots[usize::from(index)] = Some(Slot { packet, copies: None });
            return Queued::Yes;
        }
        self.queue_pieces(packet, plan, free, reserve, min)
    }

    /// A packet that takes more than one descriptor, or a copy.
    fn queue_pieces(&mut self, packet: Packet, plan: TransmitPlan, free: u16, reserve: u16, min: usize) -> Queued {
        let len = packet.len();
        let first = match plan.context {
            Some(_) => self.descriptors.next(self.tail),
            None => self.tail,
        };
        let room_at = usize::from(first) * HEADER_ROOM;
        let mut copies = None;
        self.pieces.clear();
        if plan.header == 0 && len < min {
            // 60 bytes copied cost less than a second descriptor for the padding.
            let mut frame = [0; MIN_FRAME];
            let frame = &mut frame[..min];
            if packet.copy_to(0, &mut frame[..len]).is_err() {
                self.layout.forget();
                return Queued::Refused(packet, Refusal::Segments);
            }
            self.headers.write(room_at, frame);
            self.pieces.push((self.headers.iova() + room_at as u64, min as u32));
        } else {
            if plan.header > 0 {
                let header = &self.scratch[..usize::from(plan.header).min(HEADER_ROOM)];
                self.headers.write(room_at, header);
                self.pieces.push((self.headers.iova() + room_at as u64, u32::from(plan.header)));
            }
            if !self.gather(&packet, usize::from(plan.header), &mut copies) {
                self.layout.forget();
                count(&self.counters.no_copy_buffer, 1);
                return Queued::Full(packet);
            }
        }
        let mut needed = self.needed(&plan);
        if needed > usize::from(L::MAX_DESCRIPTORS) {
            // Too scattered: send from a copy, as Linux's `skb_linearize`.
            self.pieces.truncate(usize::from(plan.header > 0));
            let skip = usize::from(plan.header);
            let copied = self.copy_from(&packet, skip, len - skip, &mut copies);
            needed = self.needed(&plan);
            if !copied || needed > usize::from(L::MAX_DESCRIPTORS) {
                self.layout.forget();
                self.put_copies(copies);
                if copied {
                    return Queued::Refused(packet, Refusal::Segments);
                }
                count(&self.counters.no_copy_buffer, 1);
                return Queued::Full(packet);
            }
        }
        if needed > usize::from(free - reserve) {
            self.layout.forget();
            self.put_copies(copies);
            // A packet that would not fit an empty ring can never be sent.
            if needed + usize::from(reserve) >= usize::from(self.descriptors.count()) {
                return Queued::Refused(packet, Refusal::Segments);
            }
            return Queued::Full(packet);
        }
        self.write_held(false);
        self.describe(&plan);
        if packet.is_super() {
            count(&self.counters.segmented, 1);
        }
        if packet.transmit_checksum().is_some() {
            count(&self.counters.checksums, 1);
        }
        if copies.is_some() {
            count(&self.counters.copied, 1);
        }
        if let Some(held) = &self.held {
            self.slots[usize::from(held.index)] = Some(Slot { packet, copies });
        }
        Queued::Yes
    }

    /// Turns the packet's bytes from `skip` on into pieces. False if there is no memory for a copy that is needed.
    #[inline]
    fn gather(&mut self, packet: &Packet, mut skip: usize, copies: &mut Option<Packet>) -> bool {
        let mut at = 0;
        for segment in packet.segments() {
            let len = segment.len();
            let from = skip.min(len);
            skip -= from;
            let wanted = len - from;
            if wanted == 0 {
                at += len;
                continue;
            }
            match segment.bytes() {
                Some(bytes) => match self.arenas.iova(&bytes[from..]) {
                    Some(iova) => self.pieces.push((iova, wanted as u32)),
                    None => {
                        if !self.copy_from(packet, at + from, wanted, copies) {
                            self.put_copies(copies.take());
                            return false;
                        }
                    }
                },
                None => {
                    let zeros = self.headers.iova() + (self.headers.size() - ZEROS) as u64;
                    let mut left = wanted;
                    while left > 0 {
                        let n = left.min(ZEROS);
                        self.pieces.push((zeros, n as u32));
                        left -= n;
                    }
                }
            }
            at += len;
        }
        true
    }

    /// Copies `len` bytes from `at` into memory that the device reaches and adds the pieces.
    #[cold]
    fn copy_from(&mut self, packet: &Packet, at: usize, len: usize, copies: &mut Option<Packet>) -> bool {
        let mut done = 0;
        while done < len {
            let Ok(mut buffer) = self.copies.get() else { return false };
            let n = buffer.tailroom().min(len - done);
            let filled = buffer.put(n).is_ok_and(|room| packet.copy_to(at + done, room).is_ok());
            let iova = if filled && n > 0 { self.arenas.iova(buffer.head()) } else { None };
            let Some(iova) = iova else {
                self.copies.put(buffer);
                return false;
            };
            self.pieces.push((iova, n as u32));
            let appended = match copies {
                Some(chain) => chain.append(buffer).is_ok(),
                None => {
                    *copies = Some(buffer);
                    true
                }
            };
            if !appended {
                return false;
            }
            done += n;
        }
        count(&self.counters.copied_bytes, len as u64);
        true
    }

    fn put_copies(&mut self, copies: Option<Packet>) {
        if let Some(copies) = copies {
            self.copies.put(copies);
        }
    }

    /// Descriptors that the pieces need under `plan`.
    #[inline]
    fn needed(&self, plan: &TransmitPlan) -> usize {
        let mut needed = usize::from(plan.context.is_some()) + usize::from(plan.cut > 0);
        let limit = plan.limit.max(1);
        let mut first = plan.first_limit.clamp(1, limit);
        for &(_, len) in &self.pieces {
            let mut len = len;
            if len > first {
                needed += 1;
                len -= first;
                needed += len.div_ceil(limit) as usize;
            } else {
                needed += 1;
            }
            first = limit;
        }
        needed
    }

    /// Writes the descriptors of the pieces, all but the last, which is held.
    #[inline]
    fn describe(&mut self, plan: &TransmitPlan) {
        if let Some(context) = plan.context {
            self.descriptors.write(self.tail, context);
            self.tail = self.descriptors.next(self.tail);
        }
        let mut rest = *plan;
        let limit = plan.limit.max(1);
        let mut most = plan.first_limit.clamp(1, limit);
        let pieces = self.pieces.len();
        let mut pending: Option<(u64, u32)> = None;
        for i in 0..pieces {
            let (mut iova, mut len) = self.pieces[i];
            // The bytes cut off the end of the packet go in a descriptor of their own.
            let cut = u32::from(plan.cut);
            let tail = if i + 1 == pieces && cut > 0 && len > cut { cut } else { 0 };
            len -= tail;
            loop {
                let n = len.min(most);
                if let Some((at, len)) = pending.replace((iova, n)) {
                    self.descriptors.write(self.tail, L::data(&rest, at, len, false, false));
                    self.tail = self.descriptors.next(self.tail);
                    rest.first = 0;
                }
                most = limit;
                iova += u64::from(n);
                len -= n;
                if len == 0 {
                    break;
                }
            }
            if tail > 0
                && let Some((at, len)) = pending.replace((iova, tail))
            {
                self.descriptors.write(self.tail, L::data(&rest, at, len, false, false));
                self.tail = self.descriptors.next(self.tail);
                rest.first = 0;
            }
        }
        if let Some((iova, len)) = pending {
            self.held = Some(Held { index: self.tail, plan: rest, iova, len });
            self.tail = self.descriptors.next(self.tail);
        }
    }

    /// Collects packets that hardware is done with: their buffers go to `cache`, an entry per packet to `completions`.
    pub fn reclaim(&mut self, completions: &mut Completions, cache: &mut PoolCache) -> usize {
        let mut done = 0;
        while let Some(&end) = self.reports.front() {
            if self.descriptors.second(end) & L::DONE == 0 {
                break;
            }
            // Buffers are reused after the hardware's last read of them, which the done bit reports.
            fence(Ordering::Acquire);
            self.reports.pop_front();
            loop {
                let index = self.clean;
                self.clean = self.descriptors.next(index);
                if let Some(slot) = self.slots[usize::from(index)].take() {
                    let packet = slot.packet;
                    completions.push(Completion {
                        flow_id: packet.flow_id(),
                        truesize: packet.truesize() as u32,
                        bytes: packet.len() as u32,
                    });
                    cache.put(packet);
                    self.put_copies(slot.copies);
                    done += 1;
                }
                if index == end {
                    break;
                }
            }
        }
        done
    }

    /// Releases every packet in the ring. The hardware must have been stopped before.
    pub fn release(&mut self, cache: &mut PoolCache) -> usize {
        let mut aborted = 0;
        for slot in &mut self.slots {
            if let Some(slot) = slot.take() {
                cache.put(slot.packet);
                if let Some(copies) = slot.copies {
                    self.copies.put(copies);
                }
                aborted += 1;
            }
        }
        count(&self.counters.aborted, aborted as u64);
        self.reports.clear();
        self.held = None;
        self.clean = 0;
        self.tail = 0;
        self.unreported = 0;
        self.layout.forget();
        self.copies.flush();
        aborted
    }
}

impl<L: TransmitLayout> core::fmt::Debug for TransmitRing<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TransmitRing").field("clean", &self.clean).field("tail", &self.tail).finish_non_exhaustive()
    }
}
