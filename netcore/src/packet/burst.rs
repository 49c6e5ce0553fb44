//! [`Burst`]: packets on their way between two parts of the data path.

use super::Packet;
use alloc::vec::Vec;
use core::fmt;

/// An ordered list of packets that is filled at the back and emptied at the front.
///
/// A callee that takes packets takes them from the front and leaves the rest, in order, with the caller. The storage
/// grows to the largest burst ever held and is then reused.
#[derive(Default)]
pub struct Burst {
    packets: Vec<Option<Packet>>,
    /// Index of the first packet; everything before it is `None`.
    front: usize,
}

impl Burst {
    /// An empty burst; allocates at the first push.
    pub const fn new() -> Self {
        Self { packets: Vec::new(), front: 0 }
    }

    /// An empty burst with room for `n` packets.
    pub fn with_capacity(n: usize) -> Self {
        Self { packets: Vec::with_capacity(n), front: 0 }
    }

    /// Number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.packets.len() - self.front
    }

    /// True if there is no packet.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.front == self.packets.len()
    }

    /// Makes room for `n` more packets.
    pub fn reserve(&mut self, n: usize) {
        self.packets.reserve(n);
    }

    /// Adds a packet at the back.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet) {
        self.packets.push(Some(packet));
    }

    /// Takes the packet at the front.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.get_mut(self.front)?.take();
        self.front += 1;
        if self.front == self.packets.len() {
            self.packets.clear();
            self.front = 0;
        }
        packet
    }

    /// Puts a packet back at the front, where [`Burst::pop`] took it from.
    #[inline]
    pub fn unpop(&mut self, packet: Packet) {
        if self.front == 0 {
            self.packets.insert(0, Some(packet));
        } else {
            self.front -= 1;
            self.packets[self.front] = Some(packet);
        }
    }

    /// Takes the packet at the back.
    pub fn pop_back(&mut self) -> Option<Packet> {
        if self.is_empty() {
            return None;
        }
        self.packets.pop().flatten()
    }

    /// The packet at the front.
    #[inline(always)]
    pub fn front(&self) -> Option<&Packet> {
        self.packets.get(self.front)?.as_ref()
    }

    /// The `index`-th packet from the front.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&Packet> {
        self.packets.get(self.front.checked_add(index)?)?.as_ref()
    }

    /// The `index`-th packet from the front, to be changed in place.
    #[inline(always)]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Packet> {
        self.packets.get_mut(self.front.checked_add(index)?)?.as_mut()
    }

    /// The packets from the front on.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Packet> + '_ {
        self.packets[self.front..].iter().map(|packet| packet.as_ref().expect("packets from `front` on are there"))
    }

    /// Bytes of all packets.
    pub fn bytes(&self) -> usize {
        self.iter().map(Packet::len).sum()
    }

    /// Takes all packets out, front first.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        let front = core::mem::take(&mut self.front);
        self.packets.drain(..).skip(front).flatten()
    }

    /// Moves all packets of `other` to the back of this burst.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            core::mem::swap(self, other);
            return;
        }
        self.packets.reserve(other.len());
        self.packets.extend(other.packets.drain(..).skip(other.front));
        other.front = 0;
    }

    /// Releases all packets by plain drop; a poller uses [`PoolCache::put_burst`](crate::PoolCache::put_burst).
    pub fn clear(&mut self) {
        self.packets.clear();
        self.front = 0;
    }
}

impl Extend<Packet> for Burst {
    fn extend<I: IntoIterator<Item = Packet>>(&mut self, packets: I) {
        self.packets.extend(packets.into_iter().map(Some));
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
