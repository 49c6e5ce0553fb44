//! Link bonding as Linux does it: all seven modes, over any [`Driver`](netcore::Driver)s.
//!
//! ```text
//!   your stack ─► Bond ─┬─► Driver (member)     Bond is itself a Driver: a Port with a qdisc goes on top,
//!                       ├─► Driver              Ports or other bonds can be members
//!                       └─► Driver
//! ```
//!
//! - [`Bond`]: members come and go while it runs; it watches links, fails over, tells peers.
//! - [`options`]: names, ranges, defaults and errors of Linux's options.
//! - [`policy`]: which member carries a packet, by hash or in turn, bit for bit; or by the caller's own choice.
//! - [`reorder`], [`spread`]: what a policy does to order, and to real traffic.
//! - [`lacp`]: the Link Aggregation Control Protocol (IEEE 802.1AX), sans-I/O.
//!
//! Nothing here reads a clock or does I/O: [`Driver::poll`](netcore::Driver::poll) runs what is due at
//! [`Driver::poll_at`](netcore::Driver::poll_at), data or no data.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod bond;
mod error;
pub mod lacp;
pub mod options;
pub mod policy;
pub mod reorder;
pub mod spread;

pub use bond::{Bond, BondEvent};
pub use error::{BondError, NotAdded};
