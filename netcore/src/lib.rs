//! The vocabulary of netcore.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod packet;
pub mod pool;
mod sync;
pub mod time;

pub use packet::{
    Burst, Cutter, Gso, GsoKind, HeaderOffsets, Packet, PacketError, PacketQueue, PartialChecksum, ReceiveChecksum,
    Segment, Segments, VlanTag,
};
pub use pool::{DmaRegion, Iova, PacketPool, PoolCache, PoolConfig, PoolError};
pub use time::{Instant, Rate};
