//! Packets held: buckets by flow, and the packets themselves close together.

use super::run::Run;
use alloc::boxed::Box;
use alloc::vec::Vec;
use netcore::Packet;
use netcore::packet::ReceiveState;
use netcore::simd::find8;

/// Slots per bucket.
pub(super) const DEPTH: usize = 8;

/// A packet that may still grow.
pub(super) struct Held {
    pub(super) packet: Packet,
    /// Receive hash and VLAN tag.
    pub(super) receive_key: u64,
    /// Clock tick at which it was first held.
    pub(super) age: u64,
    /// Sequence number that the next segment must have.
    pub(super) next_seq: u32,
    /// Payload of a full segment.
    pub(super) segment: u32,
    pub(super) count: u16,
    /// `count` when the packet was received: above 1 for a super-packet.
    pub(super) received_count: u16,
    /// Where its headers are: a number of [`Shapes`](super::shape::Shapes).
    pub(super) shape: u8,
    /// Network headers whose IPv4 identification stays, one bit each, outermost first.
    pub(super) fixed_ids: u8,
    /// Checksums in a row found right beyond the device's.
    pub(super) gained: u8,
    /// FIN and PSH of merged segments, as the flags byte has them.
    pub(super) carried_flags: u8,
    /// For `fast.rs`: the next IPv4 identification of the outermost and the innermost header.
    pub(super) next_ids: [u16; 2],
    /// What `next_ids` grow by with each segment: 0 or 1.
    pub(super) id_steps: [u16; 2],
}

/// Up to eight held packets, oldest first.
#[derive(Clone)]
#[repr(align(64))]
struct Bucket {
    tags: [u32; DEPTH],
    slots: [u16; DEPTH],
    len: u8,
    /// Position that was used last: the first guess.
    latest: u8,
}

impl Bucket {
    const EMPTY: Self = Self { tags: [0; DEPTH], slots: [0; DEPTH], len: 0, latest: 0 };
}

/// A place for a held packet.
#[repr(C, align(64))]
pub(super) struct Place {
    /// What the next segment of the held packet must be as received, if `run` says what its headers must be; else
    /// [`ReceiveState::NONE`].
    pub(super) state: ReceiveState,
    /// Bytes of that segment.
    pub(super) len: u32,
    /// Whether the packet is one of VXLAN.
    pub(super) vxlan: bool,
    pub(super) held: Option<Held>,
    pub(super) run: Run,
}

impl Place {
    const EMPTY: Self = Self { state: ReceiveState::NONE, len: 0, vxlan: false, held: None, run: Run::NONE };
}

const _: () = assert!(core::mem::offset_of!(Place, run) == 64, "a packet that is held and delivered touches one line");

/// The table.
pub(super) struct Table {
    buckets: Vec<Bucket>,
    /// Which buckets hold something, one bit each.
    used: Vec<u64>,
    places: Vec<Place>,
    free: Vec<u16>,
    count: usize,
    /// Places of packets that lately grew, by receive hash: a first guess, at other numbers than the buckets.
    recent: Box<[u16; RECENT]>,
}

/// Guesses.
const RECENT: usize = 1024;

impl Table {
    /// `buckets` is a power of two.
    pub(super) fn new(buckets: usize) -> Self {
        let places = buckets * DEPTH;
        Self {
            buckets: alloc::vec![Bucket::EMPTY; buckets],
            used: alloc::vec![0; buckets.div_ceil(64)],
            places: (0..places).map(|_| Place::EMPTY).collect(),
            recent: Box::new([0; RECENT]),
            // The place that was freed last is taken next: it is in the cache.
            free: (0..places as u32).rev().map(|place| place as u16).collect(),
            count: 0,
        }
    }

    /// Packets held.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The bucket of a hash.
    #[inline(always)]
    pub(super) fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Packets in a bucket.
    #[inline(always)]
    pub(super) fn depth(&self, bucket: usize) -> usize {
        self.buckets.get(bucket).map_or(0, |bucket| usize::from(bucket.len))
    }

    /// The place of a packet that grew lately and whose next segment looks like this as received.
    #[inline(always)]
    pub(super) fn recent(&mut self, state: ReceiveState) -> Option<&mut Place> {
        let slot = self.recent[state.hash() as usize % RECENT];
        self.places.get_mut(usize::from(slot)).filter(|place| place.state == state)
    }

    /// Makes a place the first guess for a receive hash.
    #[inline(always)]
    pub(super) fn guess(&mut self, hash: u32, slot: u16) {
        self.recent[hash as usize % RECENT] = slot;
    }

    /// The position in the bucket of the packet with this tag, and its place with its number.
    #[inline(always)]
    pub(super) fn find(&mut self, bucket: usize, tag: u32) -> Option<(usize, u16, &mut Place)> {
        let bucket = self.buckets.get_mut(bucket)?;
        let latest = usize::from(bucket.latest) & (DEPTH - 1);
        let position = if bucket.tags[latest] == tag && latest < usize::from(bucket.len) {
            latest
        } else {
            let found = u32::from(find8(&bucket.tags, tag)) & ((1 << bucket.len) - 1);
            if found == 0 {
                return None;
            }
            bucket.latest = found.trailing_zeros() as u8;
            usize::from(bucket.latest) & (DEPTH - 1)
        };
        let slot = bucket.slots[position];
        Some((position, slot, self.places.get_mut(usize::from(slot))?))
    }

    /// The packet at a position, if it has this tag.
    #[inline(always)]
    pub(super) fn at(&mut self, bucket: usize, position: usize, tag: u32) -> Option<&mut Held> {
        let bucket = self.buckets.get_mut(bucket)?;
        if bucket.tags[position & (DEPTH - 1)] != tag {
            return None;
        }
        self.places.get_mut(usize::from(bucket.slots[position & (DEPTH - 1)]))?.held.as_mut()
    }

    /// Takes the packet at a position.
    #[inline(always)]
    pub(super) fn take(&mut self, index: usize, position: usize) -> Option<Held> {
        let bucket = self.buckets.get_mut(index)?;
        let len = usize::from(bucket.len).min(DEPTH);
        if position >= len {
            return None;
        }
        let slot = bucket.slots[position];
        for i in position + 1..len {
            bucket.slots[i - 1] = bucket.slots[i];
            bucket.tags[i - 1] = bucket.tags[i];
        }
        bucket.len -= 1;
        bucket.latest = 0;
        if bucket.len == 0 {
            self.used[index / 64] &= !(1 << (index % 64));
        }
        self.vacate(slot)
    }

    #[inline(always)]
    fn vacate(&mut self, slot: u16) -> Option<Held> {
        self.free.push(slot);
        self.count -= 1;
        let place = self.places.get_mut(usize::from(slot))?;
        place.state = ReceiveState::NONE;
        place.held.take()
    }

    /// Takes every packet, bucket by bucket, oldest first.
    #[inline(always)]
    pub(super) fn take_all(&mut self, mut give: impl FnMut(&mut Option<Held>)) {
        for word in 0..self.used.len() {
            let mut used = core::mem::take(&mut self.used[word]);
            while used != 0 {
                let index = word * 64 + used.trailing_zeros() as usize;
                used &= used - 1;
                let Some(bucket) = self.buckets.get_mut(index) else { continue };
                let (slots, len) = (bucket.slots, core::mem::take(&mut bucket.len));
                bucket.latest = 0;
                for slot in slots.into_iter().take(usize::from(len)) {
                    let Some(place) = self.places.get_mut(usize::from(slot)) else { continue };
                    place.state = ReceiveState::NONE;
                    give(&mut place.held);
                    debug_assert!(place.held.is_none(), "everything is taken");
                    self.free.push(slot);
                    self.count -= 1;
                }
            }
        }
    }

    /// Adds a packet to a bucket; gives it back if that holds `depth` packets.
    #[inline(always)]
    pub(super) fn push(&mut self, index: usize, tag: u32, held: Held, depth: usize) -> Result<(), Held> {
        let Some(bucket) = self.buckets.get_mut(index) else { return Err(held) };
        if usize::from(bucket.len) >= depth {
            return Err(held);
        }
        let position = usize::from(bucket.len) & (DEPTH - 1);
        let Some(slot) = self.free.pop() else { return Err(held) };
        bucket.tags[position] = tag;
        bucket.slots[position] = slot;
        bucket.latest = position as u8;
        bucket.len += 1;
        self.used[index / 64] |= 1 << (index % 64);
        self.count += 1;
        if let Some(place) = self.places.get_mut(usize::from(slot)) {
            // A free place holds nothing.
            core::mem::forget(place.held.replace(held));
        }
        Ok(())
    }

    /// The first bucket from `from` on that holds something, and the age of its oldest packet.
    #[inline(always)]
    pub(super) fn next_used(&self, from: usize) -> Option<(usize, u64)> {
        let mut index = from / 64;
        let mut word = self.used.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.used.get(index)?;
        }
        let bucket = index * 64 + word.trailing_zeros() as usize;
        let oldest = self.buckets.get(bucket)?.slots[0];
        let age = self.places.get(usize::from(oldest))?.held.as_ref().map_or(0, |held| held.age);
        Some((bucket, age))
    }
}
