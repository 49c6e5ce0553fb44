//! Link bonding as Linux does it.
//!
//! - [`lacp`]: the Link Aggregation Control Protocol (IEEE 802.1AX), sans-I/O.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod lacp;
pub mod options;
pub mod policy;
