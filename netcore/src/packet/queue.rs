//! [`PacketQueue`]: a first-in first-out list through the packets themselves.

use super::Packet;
use super::descriptor::Descriptor;
use core::fmt;
use core::ptr::{self, NonNull};

/// A queue of packets linked through their descriptors: no allocation, any length, 24 bytes when empty.
///
/// For qdiscs with a queue per flow; between two parts of the data path use [`Burst`](super::Burst).
pub struct PacketQueue {
    first: *mut Descriptor,
    last: *mut Descriptor,
    len: usize,
}

// SAFETY: the queue owns its packets, which are `Send`.
unsafe impl Send for PacketQueue {}
// SAFETY: a shared reference gives read access to packets only, which are `Sync`.
unsafe impl Sync for PacketQueue {}

impl PacketQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), len: 0 }
    }

    /// Number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no packet.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Adds a packet at the end.
    #[inline(always)]
    pub fn push_back(&mut self, packet: Packet) {
        let descriptor = packet.into_descriptor().as_ptr();
        // SAFETY: the queue owns the packet now, and its last packet's descriptor if there is one.
        unsafe {
            (*descriptor).link = ptr::null_mut();
            if self.first.is_null() {
                self.first = descriptor;
            } else {
                (*self.last).link = descriptor;
            }
        }
        self.last = descriptor;
        self.len += 1;
    }

    /// Puts a packet at the front.
    #[inline(always)]
    pub fn push_front(&mut self, packet: Packet) {
        let descriptor = packet.into_descriptor().as_ptr();
        // SAFETY: the queue owns the packet now.
        unsafe { (*descriptor).link = self.first };
        if self.first.is_null() {
            self.last = descriptor;
        }
        self.first = descriptor;
        self.len += 1;
    }

    /// Takes the first packet.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<Packet> {
        let descriptor = NonNull::new(self.first)?;
        // SAFETY: the queue owns its packets.
        self.first = unsafe { (*descriptor.as_ptr()).link };
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        self.len -= 1;
        // SAFETY: the descriptor was put in by `push_*` as the head of an owned packet, and is out of the queue now.
        Some(unsafe { Packet::from_descriptor(descriptor) })
    }

    /// The first packet.
    #[inline(always)]
    pub fn front(&self) -> Option<&Packet> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: `Packet` is a transparent non-null pointer, `first` is one to an owned packet, and it does not change
        // while the queue is borrowed.
        Some(unsafe { &*(&raw const self.first).cast::<Packet>() })
    }

    /// The packets in order.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> + '_ {
        let mut next: *const *mut Descriptor = &raw const self.first;
        core::iter::from_fn(move || {
            // SAFETY: `next` points at `first` or at the `link` of an owned packet, which do not change while the queue
            // is borrowed; a non-null word of that kind is a `Packet`.
            unsafe {
                let descriptor = *next;
                if descriptor.is_null() {
                    return None;
                }
                let packet = &*next.cast::<Packet>();
                next = &raw const (*descriptor).link;
                Some(packet)
            }
        })
    }

    /// Moves all packets of `other` to the end of this queue in constant time.
    pub fn append(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.first = other.first;
        } else {
            // SAFETY: the queue owns its last packet.
            unsafe { (*self.last).link = other.first };
        }
        self.last = other.last;
        self.len += other.len;
        other.first = ptr::null_mut();
        other.last = ptr::null_mut();
        other.len = 0;
    }
}

impl Default for PacketQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PacketQueue {
    fn drop(&mut self) {
        while let Some(packet) = self.pop_front() {
            drop(packet);
        }
    }
}

impl fmt::Debug for PacketQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
