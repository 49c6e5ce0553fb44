//! [`Burst`]: packets on their way between two parts of the data path.

use super::Packet;
use super::descriptor::Descriptor;
use crate::simd::prefetch_line;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::{fmt, slice};

/// An ordered list of packets that is filled at the back and emptied at the front.
///
/// A callee that takes packets takes them from the front and leaves the rest, in order, with the caller. The storage
/// grows to the largest burst ever held and is then reused.
#[derive(Default)]
pub struct Burst {
    /// Slots from `front` on hold packets; those before it were moved out.
    slots: Vec<MaybeUninit<Packet>>,
    front: usize,
}

impl Burst {
    /// An empty burst; allocates at the first push.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), front: 0 }
    }

    /// An empty burst with room for `n` packets.
    pub fn with_capacity(n: usize) -> Self {
        Self { slots: Vec::with_capacity(n), front: 0 }
    }

    /// Slots allocated.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.slots.len() - self.front
    }

    /// True if there is no packet.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.front == self.slots.len()
    }

    /// Reuses the slots in front if they are half of all, so that a burst that never becomes empty does not grow.
    #[cold]
    fn compact(&mut self) {
        if self.front > 0 && self.front * 2 >= self.slots.len() {
            self.slots.drain(..self.front);
            self.front = 0;
        }
    }

    /// Makes room for `n` more packets.
    pub fn reserve(&mut self, n: usize) {
        self.compact();
        self.slots.reserve(n);
    }

    /// Adds a packet at the back.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet) {
        if self.slots.len() == self.slots.capacity() {
            self.compact();
        }
        self.slots.push(MaybeUninit::new(packet));
    }

    /// Takes the packet at the front.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        let slot = self.slots.get(self.front)?;
        // SAFETY: slots from `front` on hold packets, and `front` moves past this one.
        let packet = unsafe { slot.assume_init_read() };
        self.front += 1;
        if self.front == self.slots.len() {
            self.slots.clear();
            self.front = 0;
        }
        Some(packet)
    }

    /// Puts a packet back at the front, where [`Burst::pop`] took it from.
    #[inline]
    pub fn unpop(&mut self, packet: Packet) {
        if self.front == 0 {
            self.slots.insert(0, MaybeUninit::new(packet));
        } else {
            self.front -= 1;
            self.slots[self.front] = MaybeUninit::new(packet);
        }
    }

    /// Takes the packet at the back.
    pub fn pop_back(&mut self) -> Option<Packet> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slots.pop()?;
        // SAFETY: the burst was not empty, so its last slot holds a packet, and is out of the list now.
        Some(unsafe { slot.assume_init() })
    }

    /// The packets in order.
    #[inline(always)]
    fn as_slice(&self) -> &[Packet] {
        let held = &self.slots[self.front..];
        // SAFETY: slots from `front` on hold packets, and `MaybeUninit<Packet>` is laid out like `Packet`.
        unsafe { slice::from_raw_parts(held.as_ptr().cast(), held.len()) }
    }

    #[inline(always)]
    fn as_mut_slice(&mut self) -> &mut [Packet] {
        let held = &mut self.slots[self.front..];
        // SAFETY: as in `as_slice`, and the burst is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(held.as_mut_ptr().cast(), held.len()) }
    }

    /// The packet at the front.
    #[inline(always)]
    pub fn front(&self) -> Option<&Packet> {
        self.as_slice().first()
    }

    /// The `index`-th packet from the front.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&Packet> {
        self.as_slice().get(index)
    }

    /// The `index`-th packet from the front, to be changed in place.
    #[inline(always)]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Packet> {
        self.as_mut_slice().get_mut(index)
    }

    /// Fetches what a parser reads first of the packet at `ahead` into the cache: a hint, for loops over bursts that come from
    /// a device. The descriptor of the packet at twice the distance is fetched as well, so that the next hint finds it there.
    #[inline(always)]
    pub fn prefetch(&self, ahead: usize) {
        prefetch(self.as_slice(), ahead);
    }

    /// The packets from the front on.
    pub fn iter(&self) -> slice::Iter<'_, Packet> {
        self.as_slice().iter()
    }

    /// Bytes of all packets.
    pub fn bytes(&self) -> usize {
        self.iter().map(Packet::len).sum()
    }

    /// Takes all packets out, front first. Those that the iterator was not asked for stay.
    #[inline(always)]
    pub fn drain(&mut self) -> Drain<'_> {
        let (front, end) = (self.front, self.slots.len());
        // A drain that is forgotten takes what is left along; otherwise its end puts that back.
        self.front = end;
        Drain { burst: self, front, end }
    }

    /// Takes all packets out; they are the caller's now, front first.
    #[inline(always)]
    pub(crate) fn take_all(&mut self) -> &[NonNull<Descriptor>] {
        let (held, front) = (self.len(), core::mem::take(&mut self.front));
        self.slots.clear();
        // SAFETY: these slots held packets, and hold them until the burst is used again, which the borrow forbids; a packet is
        // laid out like the pointer that it is.
        unsafe { slice::from_raw_parts(self.slots.as_ptr().add(front).cast(), held) }
    }

    /// Moves all packets of `other` to the back of this burst.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            core::mem::swap(self, other);
            return;
        }
        self.compact();
        self.slots.extend(other.slots.drain(other.front..));
        other.slots.clear();
        other.front = 0;
    }

    /// Releases all packets by plain drop; a poller uses [`PoolCache::put_burst`](crate::PoolCache::put_burst).
    pub fn clear(&mut self) {
        while let Some(packet) = self.pop() {
            drop(packet);
        }
    }
}

#[inline(always)]
fn prefetch(packets: &[Packet], ahead: usize) {
    if let Some(packet) = packets.get(2 * ahead) {
        prefetch_line(core::ptr::from_ref(packet.descriptor()).cast());
    }
    if let Some(packet) = packets.get(ahead) {
        let head = packet.descriptor().data;
        prefetch_line(head);
        prefetch_line(head.wrapping_add(64));
    }
}

/// The packets of a burst, taken out one by one: see [`Burst::drain`].
pub struct Drain<'a> {
    burst: &'a mut Burst,
    /// The slots from here to `end` hold packets.
    front: usize,
    end: usize,
}

impl Drain<'_> {
    #[inline(always)]
    fn as_slice(&self) -> &[Packet] {
        // SAFETY: slots from `front` on hold packets up to the end, which the burst had when it was borrowed; and
        // `MaybeUninit<Packet>` is laid out like `Packet`.
        unsafe { slice::from_raw_parts(self.burst.slots.as_ptr().add(self.front).cast(), self.end - self.front) }
    }

    /// As [`Burst::prefetch`], counted from the packet that is next.
    #[inline(always)]
    pub fn prefetch(&self, ahead: usize) {
        prefetch(self.as_slice(), ahead);
    }
}

impl Iterator for Drain<'_> {
    type Item = Packet;

    #[inline(always)]
    fn next(&mut self) -> Option<Packet> {
        if self.front == self.end {
            return None;
        }
        // SAFETY: slots from `front` to `end` hold packets, and `front` moves past this one.
        let packet = unsafe { self.burst.slots.as_ptr().add(self.front).read().assume_init() };
        self.front += 1;
        Some(packet)
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.front, Some(self.end - self.front))
    }
}

impl ExactSizeIterator for Drain<'_> {}

impl Drop for Drain<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.burst.front = self.front;
        if self.front == self.end {
            self.burst.slots.clear();
            self.burst.front = 0;
        }
    }
}

impl fmt::Debug for Drain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Extend<Packet> for Burst {
    fn extend<I: IntoIterator<Item = Packet>>(&mut self, packets: I) {
        self.compact();
        self.slots.extend(packets.into_iter().map(MaybeUninit::new));
    }
}

impl FromIterator<Packet> for Burst {
    fn from_iter<I: IntoIterator<Item = Packet>>(packets: I) -> Self {
        let mut burst = Self::new();
        burst.extend(packets);
        burst
    }
}

impl fmt::Debug for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
