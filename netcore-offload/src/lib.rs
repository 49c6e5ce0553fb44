//! Receive offload (GRO) and segmentation offload (GSO) as the Linux kernel does them.
//!
//! ```text
//!   one NAPI poll ─► Gro ─► super-packets ─► … ─► SoftwareSegmenter ─► wire packets, byte for byte the same
//! ```
//!
//! [`Gro`] is a [`ReceiveOffload`](netcore::ReceiveOffload), [`SoftwareSegmenter`] a [`Segmenter`](netcore::Segmenter): a
//! [`Port`](netcore::Port) takes one of each. What merges: TCP over IPv4 and
//! IPv6, and UDP if asked for, under VLAN tags, plain and inside VXLAN, GENEVE, GRE and IP in IP. [`GroCells`] is receive
//! offload at the tunnel device.
#![no_std]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod gro;
pub mod gso;
mod layout;
mod protocols;

pub use gro::{
    BucketHash, CellCounters, FlowCounters, Gro, GroCells, GroConfig, GroConfigError, GroCounters, GroFlow, GroRules,
    GroTable, IpIdRule, UdpGro,
};
pub use gso::{GsoCounters, Large, SoftwareSegmenter};
pub use protocols::{ProtocolId, Protocols, RegisterError};

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
