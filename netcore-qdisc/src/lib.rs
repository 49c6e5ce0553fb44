//! Packet scheduling as Linux does it.
//!
//! [`Fq`] is fair queueing with pacing: a flow per socket, departure times honoured to the nanosecond, at a cost per packet
//! that does not depend on the number of flows. [`tc`] reads and prints options as `tc` does.
//!
//! [`autosize`] says how many segments a sender puts into one super-packet; it works for any sender, with or without the
//! qdiscs of this crate.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod autosize;
pub mod fq;
pub mod tc;
mod wire;

pub use autosize::{Autosize, AutosizeError, AutosizeForm, PacingRatio, SmallRate};
pub use fq::{Fq, FqCounters, FqOptions, FqRules, HorizonPolicy};

/// The band of each priority in pfifo_fast and fq (Linux: `sch_default_prio2band`): interactive and control traffic in band
/// 0, best effort in 1, bulk in 2.
pub const PRIO2BAND: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
