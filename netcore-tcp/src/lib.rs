//! A TCP endpoint without I/O: packets and times in, packets and times out.
//!
//! [`Endpoint`] is one connection. It takes frames with [`Endpoint::handle`], gives frames with
//! [`Endpoint::poll_transmit`] (super-packets where segmentation offload is allowed), and says with
//! [`Endpoint::poll_at`] when [`Endpoint::poll`] has a timer to run. It owns no socket, thread or clock, so that a
//! connection can be driven by a real device or in virtual time.
//!
//! A [`Profile`] selects how Linux of an era behaves: what it takes for loss, how it reduces its window, how much it
//! queues below itself, how buffers grow.
//!
//! ```text
//!   write ─▶ send/ ──┬── window, cwnd, pacing, Nagle, TSO, TSQ ──▶ poll_transmit
//!                    │ retransmit queue, scoreboard
//!   recovery/ ◀──────┘ SACK, FACK, RACK, RTO, PRR, undo
//!        ▲ ack
//!   handle ─▶ segment/ ─▶ receive/ ─▶ reassembly, window, ACK policy ──▶ read
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod config;
mod counters;
mod endpoint;
mod error;
mod handshake;
mod info;
mod path;
pub mod profile;
mod receive;
mod recovery;
mod rtt;
mod segment;
mod send;
mod seq;
mod state;
mod timers;

pub use config::Config;
pub use counters::Counters;
pub use endpoint::Endpoint;
pub use error::{ConfigError, ConnectionError, Discard};
pub use info::TcpInfo;
pub use path::{LinkAddress, Path};
pub use profile::Profile;
pub use segment::{FourTuple, Incoming};
pub use state::State;
