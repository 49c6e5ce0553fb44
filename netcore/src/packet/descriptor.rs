//! The descriptor behind a packet handle: two cache lines of links, window and metadata, outside the payload buffer.

use super::metadata::{VlanTag, flags};
use crate::pool::Shared;
use core::ptr;

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
    pub(crate) kind: SegmentKind,
    /// Receive checksum: see `metadata`.
    pub(crate) checksum_state: u8,
    /// Which metadata fields are set: bits of `metadata::flags`.
    pub(crate) flags: u16,
    /// Memory the packet is accounted for (valid in the first segment only).
    pub(crate) truesize: u32,
    pub(crate) hash: u32,

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
};

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

    /// Makes this descriptor the only segment of a fresh packet: `len` bytes at `data`, no metadata.
    #[inline(always)]
    pub(crate) fn start_packet(&mut self, data: *mut u8, len: u32, truesize: u32) {
        let this: *mut Self = self;
        self.data = data;
        self.next = ptr::null_mut();
        self.last = this;
        self.len = len;
        self.total = len;
        self.checksum_state = 0;
        self.flags = 0;
        self.truesize = truesize;
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Copies all metadata, not the window, from `other`.
    #[inline(always)]
    pub(crate) fn copy_metadata(&mut self, other: &Self) {
        self.checksum_state = other.checksum_state;
        self.flags = other.flags;
        self.network = other.network;
        self.transport = other.transport;
        self.inner_network = other.inner_network;
        self.inner_transport = other.inner_transport;
        self.checksum_value = other.checksum_value;
        self.checksum_start = other.checksum_start;
        self.checksum_offset = other.checksum_offset;
        self.inner_mac = other.inner_mac;
        self.gso_kind = other.gso_kind;
        self.gso_size = other.gso_size;
        self.gso_segments = other.gso_segments;
        self.queue = other.queue;
        self.vlan = other.vlan;
        self.hash = other.hash;
        self.priority = other.priority;
        self.flow = other.flow;
        self.time = other.time;
        self.pacing_rate = other.pacing_rate;
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
