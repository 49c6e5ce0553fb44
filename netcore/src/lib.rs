//! The vocabulary of netcore: what the crates of the Linux network data path in user space speak to each other.
//!
//! ```text
//!   PacketPool ─ PoolCache ─► Packet ─► Burst ─► Driver ◄─ Port ─► Qdisc
//!                               │                           │
//!             wire, dissect, checksum, flow           ReceiveOffload, Segmenter
//! ```
//!
//! - [`packet`], [`pool`]: an 8-byte handle to reference-counted segments, from pools that a device can map.
//! - [`wire`], [`mod@dissect`], [`checksum`], [`flow`]: headers without copying, all offsets in one pass, sums.
//! - [`driver`], [`qdisc`], [`xmit`], [`offload`]: the traits, object-safe, in plain types.
//! - [`port`]: a driver with qdiscs and offloads, itself a driver.
//! - [`time`]: the clock is an argument.
//!
//! ```
//! use netcore::{PacketPool, PoolConfig, TunnelPorts, dissect};
//!
//! let mut cache = PacketPool::new(PoolConfig::with_buffers(64))?.cache();
//! let mut packet = cache.copy_from_slice(b"payload")?;
//! packet.push(14)?.copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
//! let d = dissect(packet.head(), &TunnelPorts::default());
//! assert_eq!((d.ethertype.0, d.payload), (0x88b5, 14));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate needs `alloc` only; the default feature `std` adds nothing but what its dependencies do with it.
#![no_std]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod checksum;
pub mod congestion;
pub mod dissect;
pub mod driver;
pub mod flow;
pub mod offload;
pub mod packet;
pub mod pool;
pub mod port;
pub mod qdisc;
pub mod ring;
pub mod simd;
mod sync;
pub mod time;
pub mod wire;
pub mod xmit;

pub use congestion::{CongestionOps, SendState};
pub use dissect::{Dissection, TunnelPorts, dissect};
pub use driver::{
    Capabilities, Completion, Completions, Driver, DriverError, DriverQueue, Features, LinkState, MacAddress, Refusal,
    Statistics,
};
pub use flow::FlowKey;
pub use offload::{GroHandler, NotSegmented, ReceiveOffload, SegmentError, Segmenter};
pub use packet::{
    Burst, Cutter, Gso, GsoKind, HeaderOffsets, NotAppended, Packet, PacketError, PacketQueue, PartialChecksum,
    ReceiveChecksum, Segment, Segments, VlanTag,
};
pub use pool::{DmaRegion, Iova, PacketPool, PoolCache, PoolConfig, PoolConfigError, PoolError};
pub use port::{Port, PortBuilder};
pub use qdisc::{Dequeue, DropReason, Dropped, Drops, Fifo, FifoLimit, Qdisc, QdiscError, QdiscStatistics};
pub use time::{Instant, Rate};
pub use xmit::{Member, XmitPolicy};
