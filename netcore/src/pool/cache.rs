//! The per-poller cache: taking and returning packets without atomics.

use super::stack::Stack;
use super::{ByteOwner, Free, PoolError, Shared};
use crate::packet::descriptor::{Descriptor, SegmentKind};
use crate::packet::external::External;
use crate::packet::{Burst, Packet, PacketError};
use crate::sync::atomic::Ordering;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ptr::NonNull;

/// Descriptors moved between a cache and the shared lists at a time.
const BATCH: usize = 32;
/// Descriptors of a kind that a cache keeps when it returns batches because it is full.
const KEEP: usize = 512;
/// Descriptors of a kind that a cache has room for.
const ROOM: usize = KEEP + BATCH;

/// Free packets and windows of one pool, owned by one poller.
///
/// Dropping the cache returns everything to the pool.
pub struct PoolCache {
    shared: NonNull<Shared>,
    full: Stack<ROOM>,
    bare: Stack<ROOM>,
}

// SAFETY: the cache owns the descriptors it lists, and what it shares with other threads is behind atomics.
unsafe impl Send for PoolCache {}

impl PoolCache {
    /// The caller has added one hold for the cache.
    pub(super) fn new(shared: NonNull<Shared>) -> Self {
        Self { shared, full: Stack::new(), bare: Stack::new() }
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: the cache holds the pool.
        unsafe { self.shared.as_ref() }
    }

    /// An empty packet with the pool's headroom.
    ///
    /// # Errors
    /// [`PoolError::NoBuffer`] if every buffer of the pool is in use.
    #[inline(always)]
    pub fn get(&mut self) -> Result<Packet, PoolError> {
        let descriptor = match self.full.pop() {
            Some(descriptor) => descriptor,
            None => self.refill(Free::Full)?,
        };
        // SAFETY: a full descriptor is an empty packet, and was on the cache's list, so it belongs to nobody else.
        Ok(unsafe { Packet::from_descriptor(descriptor) })
    }

    /// Up to `n` empty packets at the end of `burst`; says how many. Fewer than `n` only if the pool ran out.
    #[inline]
    pub fn get_burst(&mut self, n: usize, burst: &mut Burst) -> usize {
        burst.reserve(n);
        let mut taken = 0;
        loop {
            let batch = self.full.take(n - taken);
            taken += batch.len();
            // SAFETY: full descriptors are empty packets, and were on the cache's list, so they belong to nobody else.
            burst.extend(batch.iter().map(|descriptor| unsafe { Packet::from_descriptor(*descriptor) }));
            if taken == n {
                return taken;
            }
            match self.refill(Free::Full) {
                Ok(descriptor) => {
                    taken += 1;
                    // SAFETY: as above; it comes off the shared list of full descriptors.
                    burst.push(unsafe { Packet::from_descriptor(descriptor) });
                }
                Err(_) => return taken,
            }
        }
    }

    /// A packet that holds a copy of `bytes` in one buffer.
    ///
    /// # Errors
    /// [`PacketError::Pool`] if the pool is exhausted, [`PacketError::NoTailroom`] if a buffer is too small (see
    /// [`PoolCache::copy_chain`] for any length).
    #[inline]
    pub fn copy_from_slice(&mut self, bytes: &[u8]) -> Result<Packet, PacketError> {
        let mut packet = self.get()?;
        match packet.put(bytes.len()) {
            Ok(room) => room.copy_from_slice(bytes),
            Err(error) => {
                self.put(packet);
                return Err(error);
            }
        }
        Ok(packet)
    }

    /// A packet that holds a copy of `bytes`, in as many segments as it takes.
    ///
    /// # Errors
    /// [`PacketError::Pool`] if the pool is exhausted, [`PacketError::TooLong`] beyond 2^31 bytes.
    pub fn copy_chain(&mut self, bytes: &[u8]) -> Result<Packet, PacketError> {
        let mut packet = self.get()?;
        let first = bytes.len().min(packet.tailroom());
        packet.put(first)?.copy_from_slice(&bytes[..first]);
        let room = (self.shared().buffer_size - self.shared().headroom) as usize;
        for chunk in bytes[first..].chunks(room) {
            let segment = match self.copy_from_slice(chunk) {
                Ok(segment) => segment,
                Err(error) => {
                    self.put(packet);
                    return Err(error);
                }
            };
            packet.append(segment)?;
        }
        Ok(packet)
    }

    /// A packet whose only segment is caller memory, shared, not copied. The bytes are read-only; headers are pushed
    /// into a buffer put in front ([`Packet::prepend`]).
    ///
    /// # Errors
    /// [`PacketError::Pool`] if no window is free; [`PacketError::TooLong`] beyond 2^31 bytes.
    pub fn from_owner(&mut self, owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Packet, PacketError> {
        let owner: ByteOwner = Box::new(owner);
        let external = Arc::new(External { owner });
        let bytes: &[u8] = (*external.owner).as_ref();
        let len = super::super::packet::checked_len(bytes.len())?;
        let data = bytes.as_ptr().cast_mut();
        let descriptor = self.take_bare()?;
        // SAFETY: the descriptor was on the cache's list, so the cache owns it; then it is a packet of one segment that
        // belongs to nobody else.
        unsafe {
            (*descriptor.as_ptr()).kind = SegmentKind::External;
            (*descriptor.as_ptr()).external = Arc::into_raw(external);
            Descriptor::start_packet(descriptor, data, len, len.saturating_add(size_of::<Descriptor>() as u32));
            Ok(Packet::from_descriptor(descriptor))
        }
    }

    /// A packet of `len` zero bytes that exist only as a length.
    ///
    /// # Errors
    /// [`PacketError::Pool`] if no window is free; [`PacketError::TooLong`] beyond 2^31 bytes.
    pub fn virtual_bytes(&mut self, len: usize) -> Result<Packet, PacketError> {
        let len = super::super::packet::checked_len(len)?;
        let descriptor = self.take_bare()?;
        // Virtual payload is accounted as if its bytes were there: queue limits must see it.
        let truesize = len.saturating_add(size_of::<Descriptor>() as u32);
        // SAFETY: the descriptor was on the cache's list, so the cache owns it; then it is a packet of one segment that
        // belongs to nobody else.
        unsafe {
            (*descriptor.as_ptr()).kind = SegmentKind::Virtual;
            Descriptor::start_packet(descriptor, NonNull::dangling().as_ptr(), len, truesize);
            Ok(Packet::from_descriptor(descriptor))
        }
    }

    /// Makes sure that the next `buffers` calls of [`PoolCache::get`] and the next `windows` windows into buffers of this
    /// pool succeed, as long as nothing else takes from this cache in between.
    ///
    /// # Errors
    /// [`PoolError`] if the pool has not that many; what was gathered stays in the cache.
    pub fn reserve(&mut self, buffers: usize, windows: usize) -> Result<(), PoolError> {
        for (list, wanted) in [(Free::Full, buffers), (Free::Bare, windows)] {
            while self.list(list).len() < wanted {
                let descriptor = self.fetch(list)?;
                self.list(list).push_any(descriptor);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn list(&mut self, list: Free) -> &mut Stack<ROOM> {
        match list {
            Free::Full => &mut self.full,
            Free::Bare => &mut self.bare,
        }
    }

    /// True if windows into every segment of `packet` come from this cache: its buffers are of this pool, or caller memory,
    /// or virtual.
    pub fn serves(&self, packet: &Packet) -> bool {
        packet.segments().all(|segment| segment.is_served_by(self.shared.as_ptr()))
    }

    #[inline(always)]
    pub(crate) fn take_bare(&mut self) -> Result<NonNull<Descriptor>, PoolError> {
        match self.bare.pop() {
            Some(descriptor) => Ok(descriptor),
            None => self.refill(Free::Bare),
        }
    }

    /// A descriptor when the stack is empty.
    #[cold]
    fn refill(&mut self, list: Free) -> Result<NonNull<Descriptor>, PoolError> {
        match self.list(list).pop_reserved() {
            Some(descriptor) => Ok(descriptor),
            None => self.fetch(list),
        }
    }

    /// Fetches a batch from the shared list; returns one of it.
    fn fetch(&mut self, list: Free) -> Result<NonNull<Descriptor>, PoolError> {
        let mut indices = [0; BATCH];
        let shared = self.shared;
        // SAFETY: the cache holds the pool.
        let shared = unsafe { shared.as_ref() };
        let n = shared.take(list, &mut indices);
        let Some((&first, rest)) = indices[..n].split_first() else {
            shared.exhausted.fetch_add(1, Ordering::Relaxed);
            return Err(match list {
                Free::Full => PoolError::NoBuffer { buffers: shared.buffer_count },
                Free::Bare => PoolError::NoWindow { windows: shared.windows() },
            });
        };
        let own = self.list(list);
        for &index in rest.iter().rev() {
            own.push_any(shared.descriptor(index));
        }
        Ok(shared.descriptor(first))
    }

    /// Returns a packet: its segments go into the cache if they are of this pool, else to their own.
    #[inline(always)]
    pub fn put(&mut self, packet: Packet) {
        let descriptor = packet.into_descriptor();
        // SAFETY: the packet owned its segments and was taken apart just now.
        if !unsafe { self.shared().renewal().renew(descriptor) } {
            self.put_segments(descriptor);
        } else if let Err(descriptor) = self.full.push(descriptor) {
            self.spill(Free::Full, descriptor);
        }
    }

    /// Returns every packet of `burst`.
    #[inline]
    pub fn put_burst(&mut self, burst: &mut Burst) {
        let mut rest = burst.take_all();
        // SAFETY: the cache holds the pool.
        let renewal = unsafe { self.shared.as_ref() }.renewal();
        loop {
            // SAFETY: the burst owned the packets; each is renewed once.
            let placed = self.full.push_while(rest, |descriptor| unsafe { renewal.renew(descriptor) });
            let Some((&next, after)) = rest.get(placed..).and_then(<[_]>::split_first) else { return };
            // No place, or no plain packet. In the first case it was not renewed.
            self.put_segments(next);
            rest = after;
        }
    }

    /// Returns any packet segment by segment.
    #[inline(never)]
    fn put_segments(&mut self, first: NonNull<Descriptor>) {
        let mut next = Some(first);
        while let Some(descriptor) = next {
            // SAFETY: the packet owned its segments.
            let (following, pool) = unsafe { ((*descriptor.as_ptr()).next, (*descriptor.as_ptr()).pool) };
            next = NonNull::new(following);
            if !core::ptr::eq(pool, self.shared.as_ptr()) {
                // SAFETY: owned, and used no more.
                unsafe { Packet::release_to_pool(descriptor) };
                continue;
            }
            // SAFETY: the descriptor is of this pool, owned, and used no more.
            let list = unsafe { self.shared().release(descriptor) };
            if let Err(descriptor) = self.list(list).push(descriptor) {
                self.spill(list, descriptor);
            }
        }
    }

    /// Returns what is over [`KEEP`], and one more.
    #[cold]
    fn spill(&mut self, list: Free, descriptor: NonNull<Descriptor>) {
        self.give_back(list, KEEP);
        self.list(list).push_any(descriptor);
    }

    /// Gives descriptors to the shared list until `keep` are left, those that are reserved not counted.
    fn give_back(&mut self, list: Free, keep: usize) {
        let shared = self.shared;
        let own = match list {
            Free::Full => &mut self.full,
            Free::Bare => &mut self.bare,
        };
        let mut indices = [0; BATCH];
        while own.stacked() > keep {
            let batch = own.take((own.stacked() - keep).min(BATCH));
            let n = batch.len();
            for (slot, descriptor) in indices.iter_mut().zip(batch) {
                // SAFETY: the cache holds the pool.
                *slot = unsafe { shared.as_ref() }.index(*descriptor);
            }
            // SAFETY: the cache owned these free descriptors and took them off its list of this kind.
            unsafe { Shared::give(shared, list, &indices[..n]) };
        }
    }

    /// Returns all free descriptors to the pool, for instance before a long sleep of this poller.
    pub fn flush(&mut self) {
        for list in [Free::Full, Free::Bare] {
            self.give_back(list, 0);
            while let Some(descriptor) = self.list(list).pop_reserved() {
                self.list(list).push_any(descriptor);
                self.give_back(list, 0);
            }
        }
    }
}

impl Drop for PoolCache {
    fn drop(&mut self) {
        self.flush();
        // SAFETY: the cache gives up the hold that was added for it.
        unsafe { Shared::release_holds(self.shared, 1) }
    }
}

impl fmt::Debug for PoolCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolCache").field("packets", &self.full.len()).field("windows", &self.bare.len()).finish()
    }
}
