//! Receive offload (GRO) and segmentation offload (GSO) as the Linux kernel does them.
#![no_std]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod gro;
pub mod gso;

pub use gro::{BucketHash, Gro, GroConfig, GroConfigError, GroCounters, GroRules, GroTable, IpIdRule};
pub use gso::{GsoCounters, SoftwareSegmenter};
