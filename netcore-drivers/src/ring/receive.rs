//! [`ReceiveRing`]: buffers into descriptors, and packets out of them.

use super::layout::{ReceiveFault, ReceiveLayout, Received};
use super::transmit::count;
use super::{Descriptors, ring_bytes};
use crate::error::NicError;
use crate::mmio::Mmio;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use netcore::{Burst, DmaRegion, Instant, Packet, PoolCache, VlanTag};

/// Counters of one receive queue. One thread writes, any reads.
#[derive(Debug, Default)]
pub struct ReceiveCounters {
    /// Packets delivered.
    pub packets: AtomicU64,
    /// Bytes of those packets.
    pub bytes: AtomicU64,
    /// Packets whose checksums hardware verified (`rx_csum_offload_good`).
    pub checksum_good: AtomicU64,
    /// Packets that hardware says have a wrong checksum (`rx_csum_offload_errors`); delivered unverified.
    pub checksum_errors: AtomicU64,
    /// Descriptors that stayed empty for a while because the pool had no buffer (`alloc_rx_buff_failed`).
    pub no_buffer: AtomicU64,
    /// Frames dropped for a wrong frame check sequence (`rx_crc_errors`).
    pub crc_errors: AtomicU64,
    /// Frames dropped for other errors on the wire or in the device (`rx_frame_errors`).
    pub frame_errors: AtomicU64,
    /// Frames dropped for their length (`rx_length_errors`).
    pub length_errors: AtomicU64,
    /// Super-packets that hardware merged.
    pub merged: AtomicU64,
    /// Packets that were in parts in the ring when it was stopped.
    pub aborted: AtomicU64,
}

#[derive(Default)]
struct Slot {
    /// The buffer that hardware fills; `None` if the descriptor is not armed.
    buffer: Option<Packet>,
    /// The packet that this buffer continues.
    chain: Option<Packet>,
    /// Frames that were merged into that packet so far.
    merged: u16,
}

/// How buffers are offered to hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveBuffers {
    /// Bytes that hardware may write into each buffer.
    pub len: u32,
    /// No buffer may cross a 64 KiB boundary (82545, 82546: Linux's "errata 23").
    pub within_64k: bool,
}

/// A receive queue.
pub struct ReceiveRing<L: ReceiveLayout> {
    layout: L,
    descriptors: Descriptors,
    slots: Box<[Slot]>,
    /// Next descriptor that hardware will have filled.
    next: u16,
    /// Next descriptor to arm.
    fill: u16,
    armed: u16,
    buffers: ReceiveBuffers,
    /// Buffers that cannot be offered because of where they lie; kept so that they are not met again and again.
    parked: Vec<Packet>,
    queue: u16,
    vlan_tpid: u16,
    counters: Arc<ReceiveCounters>,
}

impl<L: ReceiveLayout> ReceiveRing<L> {
    /// An empty ring of `count` descriptors whose tail register is at `tail` of `window`.
    ///
    /// # Errors
    /// [`NicError::OutOfRange`] if `count` is not a multiple of 8, [`NicError::NoDmaMemory`].
    #[allow(clippy::too_many_arguments)] // the parts of a queue; made in one place
    pub fn new(
        layout: L,
        region: DmaRegion,
        count: u16,
        window: Mmio,
        tail: u32,
        buffers: ReceiveBuffers,
        queue: u16,
        counters: Arc<ReceiveCounters>,
    ) -> Result<Self, NicError> {
        let descriptors = Descriptors::new(region, count, window, tail)?;
        Ok(Self {
            layout,
            descriptors,
            slots: (0..count).map(|_| Slot::default()).collect(),
            next: 0,
            fill: 0,
            armed: 0,
            buffers,
            parked: Vec::new(),
            queue,
            vlan_tpid: 0x8100,
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
    pub fn counters(&self) -> &Arc<ReceiveCounters> {
        &self.counters
    }

    /// The layout, for switches that change while the queue runs (VLAN stripping, hash reporting).
    pub fn layout_mut(&mut self) -> &mut L {
        &mut self.layout
    }

    /// Descriptors that hardware can fill now.
    pub fn armed(&self) -> u16 {
        self.armed
    }

    /// Arms descriptors until one is left, or the pool has no buffer; does not tell hardware. Says how many.
    #[inline]
    pub fn arm(&mut self, cache: &mut PoolCache) -> u16 {
        let mut armed = 0;
        while self.armed + 1 < self.descriptors.count() {
            let Some((buffer, iova)) = self.buffer(cache) else {
                count(&self.counters.no_buffer, 1);
                break;
            };
            self.descriptors.write(self.fill, self.layout.arm(iova));
            self.slots[usize::from(self.fill)].buffer = Some(buffer);
            self.fill = self.descriptors.next(self.fill);
            self.armed += 1;
            armed += 1;
        }
        armed
    }

    #[inline]
    fn buffer(&mut self, cache: &mut PoolCache) -> Option<(Packet, u64)> {
        loop {
            let buffer = cache.get().ok()?;
            let Some((_, room, Some(iova))) = buffer.receive_area() else {
                // Wrong pool: not mapped, or not contiguous for the device here.
                self.parked.push(buffer);
                continue;
            };
            let last = iova + u64::from(self.buffers.len) - 1;
            if room < self.buffers.len as usize || (self.buffers.within_64k && iova >> 16 != last >> 16) {
                self.parked.push(buffer);
                continue;
            }
            return Some((buffer, iova));
        }
    }

    /// Hands all armed descriptors to hardware.
    pub fn publish(&self) {
        self.descriptors.bump(self.fill);
    }

    /// Adds up to `budget` received packets to `burst`, arms the descriptors that became free and hands them over with one
    /// tail store.
    pub fn receive(&mut self, burst: &mut Burst, budget: usize, cache: &mut PoolCache, now: Instant) -> usize {
        let mut received = 0;
        let mut bytes = 0;
        while received < budget {
            let index = self.next;
            // A descriptor that is not armed may still hold the done bit of an earlier round.
            if self.slots[usize::from(index)].buffer.is_none() {
                break;
            }
            let second = self.descriptors.second(index);
            if second & L::DONE == 0 {
                break;
            }
            let first = self.descriptors.first(index);
            let mut result = self.layout.parse([first, second]);
            self.next = self.descriptors.next(index);
            self.armed -= 1;
            if let Some(packet) = self.take(index, &mut result, cache) {
                let len = packet.len() as u64;
                if self.deliver(packet, &result, burst, cache, now) {
                    received += 1;
                    bytes += len;
                }
            }
        }
        if received > 0 {
            count(&self.counters.packets, received as u64);
            count(&self.counters.bytes, bytes);
        }
        // Also after an idle poll: the pool may have had no buffer the last time.
        if self.armed + 1 < self.descriptors.count() && self.arm(cache) > 0 {
            self.publish();
        }
        received
    }

    /// Takes the filled buffer at `index`; the whole packet if it was the last one.
    #[inline]
    fn take(&mut self, index: u16, result: &mut Received, cache: &mut PoolCache) -> Option<Packet> {
        let slot = &mut self.slots[usize::from(index)];
        let chain = slot.chain.take();
        let mut buffer = slot.buffer.take()?;
        let fits = u32::from(result.len) <= self.buffers.len && buffer.put(result.len.into()).is_ok();
        let packet = match chain {
            None => buffer,
            Some(mut chain) => {
                result.merged = result.merged.saturating_add(core::mem::take(&mut slot.merged));
                if let Err(refused) = chain.append(buffer) {
                    cache.put(refused.packet);
                    count(&self.counters.length_errors, 1);
                }
                chain
            }
        };
        if !fits {
            count(&self.counters.length_errors, 1);
            cache.put(packet);
            return None;
        }
        if result.end {
            return Some(packet);
        }
        let next = result.continues.filter(|next| *next < self.descriptors.count());
        let next = next.unwrap_or_else(|| self.descriptors.next(index));
        let slot = &mut self.slots[usize::from(next)];
        slot.merged = result.merged;
        if let Some(lost) = slot.chain.replace(packet) {
            count(&self.counters.length_errors, 1);
            cache.put(lost);
        }
        None
    }

    #[inline]
    fn deliver(
        &mut self,
        mut packet: Packet,
        result: &Received,
        burst: &mut Burst,
        cache: &mut PoolCache,
        now: Instant,
    ) -> bool {
        if let Some(fault) = result.fault {
            let counter = match fault {
                ReceiveFault::Crc => &self.counters.crc_errors,
                ReceiveFault::Symbol | ReceiveFault::Data => &self.counters.frame_errors,
                ReceiveFault::Length => &self.counters.length_errors,
            };
            count(counter, 1);
            cache.put(packet);
            return false;
        }
        packet.set_receive_checksum(result.checksum);
        if result.checksum_error {
            count(&self.counters.checksum_errors, 1);
        } else if result.checksum != netcore::ReceiveChecksum::None {
            count(&self.counters.checksum_good, 1);
        }
        if let Some(tci) = result.vlan {
            packet.set_vlan(Some(VlanTag { tpid: self.vlan_tpid, tci }));
        }
        if let Some((hash, covers_ports)) = result.hash {
            packet.set_hash(Some(hash), covers_ports);
        }
        packet.set_queue(Some(self.queue));
        packet.set_timestamp(Some(now));
        if result.merged > 0 {
            count(&self.counters.merged, 1);
            self.layout.finish_merged(&mut packet, result);
        }
        burst.push(packet);
        true
    }

    /// Releases every buffer in the ring. The hardware must have been stopped before.
    pub fn release(&mut self, cache: &mut PoolCache) {
        for slot in &mut self.slots {
            if let Some(buffer) = slot.buffer.take() {
                cache.put(buffer);
            }
            if let Some(chain) = slot.chain.take() {
                count(&self.counters.aborted, 1);
                cache.put(chain);
            }
        }
        for buffer in self.parked.drain(..) {
            cache.put(buffer);
        }
        self.next = 0;
        self.fill = 0;
        self.armed = 0;
    }
}

impl<L: ReceiveLayout> core::fmt::Debug for ReceiveRing<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReceiveRing")
            .field("next", &self.next)
            .field("fill", &self.fill)
            .field("armed", &self.armed)
            .finish_non_exhaustive()
    }
}
