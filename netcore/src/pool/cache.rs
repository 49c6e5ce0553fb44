//! The per-poller cache: taking and returning packets without atomics.

use super::{ByteOwner, Free, PoolError, Shared};
use crate::packet::descriptor::{Descriptor, SegmentKind};
use crate::packet::external::External;
use crate::packet::{Burst, Packet, PacketError};
use crate::sync::atomic::Ordering;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;

/// Descriptors moved between a cache and the shared lists at a time.
const BATCH: usize = 32;
/// Descriptors of a kind that a cache keeps before it returns a batch.
const KEEP: usize = 512;

/// Free packets and windows of one pool, owned by one poller.
///
/// Dropping the cache returns everything to the pool.
pub struct PoolCache {
    shared: NonNull<Shared>,
    full: Vec<NonNull<Descriptor>>,
    bare: Vec<NonNull<Descriptor>>,
}

// SAFETY: the cache owns the descriptors it lists, and what it shares with other threads is behind atomics.
unsafe impl Send for PoolCache {}

impl PoolCache {
    /// The caller has added one hold for the cache.
    pub(super) fn new(shared: NonNull<Shared>) -> Self {
        Self { shared, full: Vec::with_capacity(KEEP + BATCH), bare: Vec::with_capacity(KEEP + BATCH) }
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
        Ok(self.start(descriptor))
    }

    #[inline(always)]
    fn start(&mut self, mut descriptor: NonNull<Descriptor>) -> Packet {
        let shared = self.shared();
        // SAFETY: the descriptor was on the cache's list, so the cache owns it.
        let d = unsafe { descriptor.as_mut() };
        let start = shared.buffer_start(d.buffer);
        // SAFETY: headroom is less than the size of the buffer that `start` is the first byte of.
        let data = unsafe { start.add(shared.headroom as usize) };
        d.start_packet(data, 0, shared.truesize());
        // SAFETY: the descriptor is initialised as a packet of one segment and belongs to nobody else.
        unsafe { Packet::from_descriptor(descriptor) }
    }

    /// Up to `n` empty packets at the end of `burst`; says how many. Fewer than `n` only if the pool ran out.
    pub fn get_burst(&mut self, n: usize, burst: &mut Burst) -> usize {
        burst.reserve(n);
        let mut taken = 0;
        while taken < n {
            if self.full.is_empty() {
                let Ok(descriptor) = self.refill(Free::Full) else { break };
                self.full.push(descriptor);
            }
            let batch = self.full.len().min(n - taken);
            for _ in 0..batch {
                let Some(descriptor) = self.full.pop() else { break };
                let packet = self.start(descriptor);
                burst.push(packet);
            }
            taken += batch;
        }
        taken
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
        let mut descriptor = self.take_bare()?;
        // SAFETY: the descriptor was on the cache's list, so the cache owns it.
        let d = unsafe { descriptor.as_mut() };
        d.kind = SegmentKind::External;
        d.external = Arc::into_raw(external);
        d.start_packet(data, len, len.saturating_add(size_of::<Descriptor>() as u32));
        // SAFETY: initialised as a packet of one segment that belongs to nobody else.
        Ok(unsafe { Packet::from_descriptor(descriptor) })
    }

    /// A packet of `len` zero bytes that exist only as a length.
    ///
    /// # Errors
    /// [`PacketError::Pool`] if no window is free; [`PacketError::TooLong`] beyond 2^31 bytes.
    pub fn virtual_bytes(&mut self, len: usize) -> Result<Packet, PacketError> {
        let len = super::super::packet::checked_len(len)?;
        let mut descriptor = self.take_bare()?;
        // SAFETY: the descriptor was on the cache's list, so the cache owns it.
        let d = unsafe { descriptor.as_mut() };
        d.kind = SegmentKind::Virtual;
        // Virtual payload is accounted as if its bytes were there: queue limits must see it.
        d.start_packet(NonNull::dangling().as_ptr(), len, len.saturating_add(size_of::<Descriptor>() as u32));
        // SAFETY: initialised as a packet of one segment that belongs to nobody else.
        Ok(unsafe { Packet::from_descriptor(descriptor) })
    }

    /// Makes sure that the next `buffers` calls of [`PoolCache::get`] and the next `windows` windows into buffers of this
    /// pool succeed, as long as nothing else takes from this cache in between.
    ///
    /// # Errors
    /// [`PoolError`] if the pool has not that many; what was gathered stays in the cache.
    pub fn reserve(&mut self, buffers: usize, windows: usize) -> Result<(), PoolError> {
        while self.full.len() < buffers {
            let descriptor = self.refill(Free::Full)?;
            self.full.push(descriptor);
        }
        while self.bare.len() < windows {
            let descriptor = self.refill(Free::Bare)?;
            self.bare.push(descriptor);
        }
        Ok(())
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

    /// Fetches a batch from the shared list; returns one of it.
    #[cold]
    fn refill(&mut self, list: Free) -> Result<NonNull<Descriptor>, PoolError> {
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
        let own = match list {
            Free::Full => &mut self.full,
            Free::Bare => &mut self.bare,
        };
        own.extend(rest.iter().rev().map(|&index| shared.descriptor(index)));
        Ok(shared.descriptor(first))
    }

    /// Returns a packet: its segments go into the cache if they are of this pool, else to their own.
    #[inline(always)]
    pub fn put(&mut self, packet: Packet) {
        let mut next = Some(packet.into_descriptor());
        while let Some(descriptor) = next {
            // SAFETY: the packet owned its segments and was taken apart just now.
            next = unsafe { self.put_segment(descriptor) };
        }
    }

    /// Returns every packet of `burst`.
    pub fn put_burst(&mut self, burst: &mut Burst) {
        while let Some(packet) = burst.pop() {
            self.put(packet);
        }
    }

    /// Releases one segment and returns the next one of its packet.
    ///
    /// # Safety
    /// The caller owns the descriptor and uses it no more.
    #[inline(always)]
    unsafe fn put_segment(&mut self, descriptor: NonNull<Descriptor>) -> Option<NonNull<Descriptor>> {
        // SAFETY: the caller owns the descriptor.
        let (next, pool) = unsafe { ((*descriptor.as_ptr()).next, (*descriptor.as_ptr()).pool) };
        if !core::ptr::eq(pool, self.shared.as_ptr()) {
            // SAFETY: passed on from the caller.
            unsafe { Packet::release_to_pool(descriptor) };
            return NonNull::new(next);
        }
        // SAFETY: the descriptor is of this pool and the caller owns it.
        let list = match unsafe { self.shared().release(descriptor) } {
            Free::Full => &mut self.full,
            Free::Bare => &mut self.bare,
        };
        list.push(descriptor);
        if list.len() >= KEEP + BATCH {
            self.spill();
        }
        NonNull::new(next)
    }

    /// Returns a batch of whichever list is over its limit.
    #[cold]
    fn spill(&mut self) {
        for list in [Free::Full, Free::Bare] {
            self.give_back(list, KEEP);
        }
    }

    /// Gives descriptors to the shared list until `keep` are left.
    fn give_back(&mut self, list: Free, keep: usize) {
        let shared = self.shared;
        let own = match list {
            Free::Full => &mut self.full,
            Free::Bare => &mut self.bare,
        };
        let mut indices = [0; BATCH];
        while own.len() > keep {
            let n = (own.len() - keep).min(BATCH);
            for (slot, descriptor) in indices.iter_mut().zip(own.drain(own.len() - n..)) {
                // SAFETY: the cache holds the pool.
                *slot = unsafe { shared.as_ref() }.index(descriptor);
            }
            // SAFETY: the cache owned these free descriptors and took them off its list of this kind.
            unsafe { Shared::give(shared, list, &indices[..n]) };
        }
    }

    /// Returns all free descriptors to the pool, for instance before a long sleep of this poller.
    pub fn flush(&mut self) {
        self.give_back(Free::Full, 0);
        self.give_back(Free::Bare, 0);
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
