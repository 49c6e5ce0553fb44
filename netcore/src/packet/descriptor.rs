//! The descriptor behind a packet handle: two cache lines of links, window and metadata, outside the payload buffer.

use super::metadata::{VlanTag, flags};
use crate::pool::Shared;
use core::ptr::{self, NonNull};

/// What the window of a descriptor looks into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SegmentKind {
    /// Nothing: the descriptor is free and has no buffer.
    Bare,
    /// A reference-counted buffer of the descriptor's own pool.
    Pool,
    /// Caller memory, kept alive by `external`.
    External,
    /// A length with no bytes behind it; its bytes are zeros by definition.
    Virtual,
}

/// One segment, and, in the first segment of a packet, the packet's metadata.
///
/// The first cache line is all that moving, parsing and merging touch; the second holds metadata that `flags` declares
/// valid, so that taking a descriptor from a pool writes one line.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Descriptor {
    /// First byte of the window; dangling for `Virtual` and `Bare`.
    pub(crate) data: *mut u8,
    /// Next segment of the same packet.
    pub(crate) next: *mut Self,
    /// Last segment of the packet (valid in the first segment only).
    pub(crate) last: *mut Self,
    /// Next packet of a `PacketQueue` (valid in the first segment only).
    pub(crate) link: *mut Self,
    /// The pool this descriptor, and its buffer if `kind` is `Pool`, came from. Set once, when the pool is made.
    pub(crate) pool: *const Shared,
    /// Bytes in the window.
    pub(crate) len: u32,
    /// Bytes in the packet (valid in the first segment only).
    pub(crate) total: u32,
    /// Index of the buffer if `kind` is `Pool`.
    pub(crate) buffer: u32,
    pub(crate) hash: u32,
    // The next four are one word of eight bytes: see `Fresh`.
    pub(crate) kind: SegmentKind,
    /// Receive checksum: see `metadata`.
    pub(crate) checksum_state: u8,
    /// Which metadata fields are set: bits of `metadata::flags`.
    pub(crate) flags: u16,
    /// Memory the packet is accounted for (valid in the first segment only).
    pub(crate) truesize: u32,

    // Second cache line.
    pub(crate) network: u16,
    pub(crate) transport: u16,
    pub(crate) inner_network: u16,
    pub(crate) inner_transport: u16,
    pub(crate) checksum_value: u16,
    pub(crate) checksum_start: u16,
    pub(crate) checksum_offset: u16,
    pub(crate) inner_mac: u16,
    pub(crate) gso_kind: u16,
    pub(crate) gso_size: u16,
    pub(crate) gso_segments: u16,
    pub(crate) queue: u16,
    pub(crate) vlan: VlanTag,
    pub(crate) priority: u32,
    pub(crate) flow: u64,
    /// Receive time or earliest departure time, as `flags` says.
    pub(crate) time: u64,
    pub(crate) pacing_rate: u64,
    /// `Arc<External>` made raw, if `kind` is `External`.
    pub(crate) external: *const super::external::External,
}

const _: () = {
    assert!(size_of::<Descriptor>() == 128, "a descriptor is two cache lines");
    assert!(core::mem::offset_of!(Descriptor, network) == 64, "taking a descriptor from a pool writes one of them");
    assert!(core::mem::offset_of!(Descriptor, external) == 120, "`copy_metadata` copies what is in between");
    assert!(core::mem::offset_of!(Descriptor, kind) == 56);
    assert!(core::mem::offset_of!(Descriptor, checksum_state) == 57);
    assert!(core::mem::offset_of!(Descriptor, flags) == 58);
    assert!(core::mem::offset_of!(Descriptor, truesize) == 60);
};

/// What makes a descriptor that keeps its buffer an empty packet with the pool's headroom.
#[derive(Clone, Copy)]
pub(crate) struct Fresh {
    /// Where the data of a fresh packet in buffer 0 starts.
    first: *mut u8,
    /// Bytes from there to the same place of the next buffer.
    stride: usize,
    /// `kind`, `checksum_state`, `flags` and `truesize` in one word.
    state: u64,
}

impl Fresh {
    /// # Safety
    /// `buffers` is the start of the pool's buffers of `size` bytes each, and `headroom` is less than `size`.
    pub(crate) unsafe fn new(buffers: *mut u8, size: u32, headroom: u32) -> Self {
        let [a, b, c, d] = (size + size_of::<Descriptor>() as u32).to_ne_bytes();
        // SAFETY: the first buffer is longer than the headroom.
        let first = unsafe { buffers.add(headroom as usize) };
        Self { first, stride: size as usize, state: u64::from_ne_bytes([SegmentKind::Pool as u8, 0, 0, 0, a, b, c, d]) }
    }

    /// Makes a descriptor whose `next` is null and whose `last` is itself an empty packet without metadata.
    ///
    /// # Safety
    /// The caller owns the descriptor and the only reference to its buffer, which is of the pool that this is of.
    #[inline(always)]
    pub(crate) unsafe fn write(self, descriptor: NonNull<Descriptor>) {
        let d = descriptor.as_ptr();
        // SAFETY: the caller owns the descriptor; its buffer is one of the pool's, so the data is inside it; the word is
        // inside the descriptor and aligned, since `kind` is at byte 56 of it, and valid for its fields: see `new`.
        unsafe {
            (*d).data = self.first.add((*d).buffer as usize * self.stride);
            (*d).len = 0;
            (*d).total = 0;
            (&raw mut (*d).kind).cast::<u64>().write(self.state);
        }
    }

    /// As [`Fresh::write`], for any descriptor.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn write_all(self, descriptor: NonNull<Descriptor>) {
        // SAFETY: the caller owns the descriptor.
        unsafe {
            (*descriptor.as_ptr()).next = ptr::null_mut();
            (*descriptor.as_ptr()).last = descriptor.as_ptr();
            self.write(descriptor);
        }
    }
}

impl Descriptor {
    /// A free descriptor of `pool` without a buffer.
    pub(crate) fn bare(pool: *const Shared) -> Self {
        Self {
            data: ptr::null_mut(),
            next: ptr::null_mut(),
            last: ptr::null_mut(),
            link: ptr::null_mut(),
            pool,
            len: 0,
            total: 0,
            buffer: 0,
            kind: SegmentKind::Bare,
            checksum_state: 0,
            flags: 0,
            network: 0,
            transport: 0,
            inner_network: 0,
            inner_transport: 0,
            checksum_value: 0,
            checksum_start: 0,
            checksum_offset: 0,
            inner_mac: 0,
            gso_kind: 0,
            gso_size: 0,
            gso_segments: 0,
            queue: 0,
            vlan: VlanTag { tpid: 0, tci: 0 },
            truesize: 0,
            hash: 0,
            priority: 0,
            flow: 0,
            time: 0,
            pacing_rate: 0,
            external: ptr::null(),
        }
    }

    /// Makes a descriptor the only segment of a fresh packet: `len` bytes at `data`, no metadata.
    ///
    /// # Safety
    /// The caller owns the descriptor.
    #[inline(always)]
    pub(crate) unsafe fn start_packet(this: NonNull<Self>, data: *mut u8, len: u32, truesize: u32) {
        // `last` is the pointer that the handle has, not one made from a reference, which the next use of the handle would
        // invalidate.
        // SAFETY: the caller owns the descriptor.
        let d = unsafe { &mut *this.as_ptr() };
        d.data = data;
        d.next = ptr::null_mut();
        d.len = len;
        d.total = len;
        d.checksum_state = 0;
        d.flags = 0;
        d.truesize = truesize;
        d.last = this.as_ptr();
    }

    /// `hash`, `kind`, `checksum_state` and `flags`, lowest first.
    #[inline(always)]
    pub(crate) fn receive_word(&self) -> u64 {
        const AT: usize = core::mem::offset_of!(Descriptor, hash);
        const { assert!(AT + 4 == core::mem::offset_of!(Self, kind)) }
        if cfg!(target_endian = "little") {
            // SAFETY: the four fields are eight bytes side by side, which is asserted here and below, without padding.
            return unsafe { ptr::from_ref(self).byte_add(AT).cast::<u64>().read_unaligned() };
        }
        let state = u64::from(self.kind as u8) | u64::from(self.checksum_state) << 8 | u64::from(self.flags) << 16;
        u64::from(self.hash) | state << 32
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Copies all metadata, not the window, from `other`.
    #[inline(always)]
    pub(crate) fn copy_metadata(&mut self, other: &Self) {
        const FROM: usize = core::mem::offset_of!(Descriptor, network);
        const BYTES: usize = core::mem::offset_of!(Descriptor, external) - FROM;
        self.checksum_state = other.checksum_state;
        self.flags = other.flags;
        self.hash = other.hash;
        let (from, to): (*const Self, *mut Self) = (other, self);
        // SAFETY: from `network` to `pacing_rate` both descriptors have nothing but numbers, side by side and initialised, which
        // are metadata; one is borrowed exclusively, so they are not the same.
        unsafe { ptr::copy_nonoverlapping(from.cast::<u8>().add(FROM), to.cast::<u8>().add(FROM), BYTES) };
    }

    /// Forgets all metadata.
    pub(crate) fn clear_metadata(&mut self) {
        self.flags = 0;
        self.checksum_state = 0;
    }

    /// Clears everything that described where headers and checksums are.
    pub(crate) fn clear_offsets(&mut self) {
        self.flags &= !flags::OFFSETS;
    }
}
