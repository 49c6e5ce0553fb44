//! The vocabulary of netcore.
#![no_std]
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
    Burst, Cutter, Gso, GsoKind, HeaderOffsets, Packet, PacketError, PacketQueue, PartialChecksum, ReceiveChecksum,
    Segment, Segments, VlanTag,
};
pub use pool::{DmaRegion, Iova, PacketPool, PoolCache, PoolConfig, PoolError};
pub use port::{Port, PortBuilder};
pub use qdisc::{Dequeue, DropReason, Dropped, Drops, Fifo, FifoLimit, Qdisc, QdiscError, QdiscStatistics};
pub use time::{Instant, Rate};
pub use xmit::{Member, XmitPolicy};
