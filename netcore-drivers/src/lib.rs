//! Drivers of netcore: implementations of [`netcore::Driver`].
//!
//! | module | device | feature |
//! | --- | --- | --- |
//! | `pcap` | capture files, pcap and pcapng | `pcap` |
//! | `memory` | huge pages and shared memory for packet pools | `memory` |
//! | [`middleware`] | tracer, fault injector, capture tap: around any other | |
//! | [`e1000`] | 82540, 82545, 82546, 82574L | `e1000` |
//! | [`igb`] | 82575, 82576, I350, I210 | `igb` |
//! | [`ixgbe`] | 82599, X540 | `ixgbe` |
//! | `model` | register-level models of NICs, in process | `model` |
//!
//! A NIC driver stands on these:
//!
//! ```text
//!   family (e1000, igb, ixgbe)      registers, descriptors, reset rules of one family
//!      │
//!   nic      [`nic`]    the `Driver` that is the same for all: queues, link, filters, statistics
//!      │
//!   ring     [`ring`]   descriptor rings, generic over the layout
//!      │
//!   mmio, dma           registers and device memory; all unsafe code is in these two
//!      │
//!   bus      [`bus`]    configuration space, BARs, DMA memory, interrupts, sleep
//! ```
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod bus;
pub mod dma;
#[cfg(feature = "e1000")]
pub mod e1000;
mod error;
#[cfg(feature = "igb")]
pub mod igb;
#[cfg(feature = "ixgbe")]
pub mod ixgbe;
#[cfg(all(feature = "memory", target_os = "linux"))]
pub mod memory;
pub mod middleware;
pub mod mmio;
#[cfg(feature = "model")]
pub mod model;
pub mod nic;
#[cfg(feature = "pcap")]
pub mod pcap;
pub mod ring;
mod sync;

pub use bus::Bus;
pub use error::NicError;
