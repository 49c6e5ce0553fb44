//! Drivers of netcore: implementations of [`netcore::Driver`].
//!
//! | module | device | feature |
//! | --- | --- | --- |
//! | `pcap` | capture files, pcap and pcapng | `pcap` |
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
mod error;
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
