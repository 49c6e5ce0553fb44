//! The Link Aggregation Control Protocol (IEEE 802.1AX clause 6.4, formerly 802.3ad clause 43) as Linux's bonding driver
//! runs it (`drivers/net/bonding/bond_3ad.c`, 6.18).
//!
//! ```text
//!  frame ─ handle ─► receive machine ─► selection ─► mux machine ─► next_event: collecting, distributing, aggregator
//!  link  ─ set_link ─┘        │                         │
//!  time  ─ poll ──► periodic machine ── NTT ──► transmit machine ─► next_frame
//! ```
//!
//! Nothing here does I/O, reads a clock, or waits: [`Lacp`] is told of frames, links and time, and is asked for frames,
//! events, and when it wants to be called again ([`Lacp::poll_at`]). The machines run in ticks of 100 ms as in Linux, or
//! whenever something happens; see [`Timing`].
//!
//! Where this differs from Linux, it is to keep to the standard: a port whose link is down forgets that its partner was in
//! sync; ports of an aggregator that is no longer the active one say so to their partner; a LACPDU of our own that comes
//! back is dropped before it moves a machine; a partner that calls its port individual gets an aggregator of its own; changes
//! of state or options are told at once and not with the next periodic LACPDU; data stops at once, and not with the next tick,
//! if the partner is no longer in sync; a passive port sends nothing before its partner does; the bandwidth of an aggregator is the sum of
//! its enabled links also if the last one to join is down; two systems that chose different aggregators agree after a while.
//!
//! ```
//! use netcore::{Instant, LinkState, MacAddress};
//! use netcore_bond::lacp::{Lacp, LacpConfig, PortConfig};
//!
//! // Two systems with one link between them.
//! let mut ends = [1, 2].map(|n| {
//!     let mac = MacAddress([2, 0, 0, 0, 0, n]);
//!     let mut lacp = Lacp::new(LacpConfig::new(mac)).unwrap();
//!     lacp.add_port(&PortConfig::new(mac), LinkState::up(1000), Instant::ZERO).unwrap();
//!     lacp.open(Instant::ZERO);
//!     lacp
//! });
//! let mut now = Instant::ZERO;
//! while now < Instant::from_secs(5) {
//!     now = ends.iter().filter_map(Lacp::poll_at).min().unwrap().max(now);
//!     for from in 0..2 {
//!         ends[from].poll(now);
//!         while let Some(frame) = ends[from].next_frame() {
//!             ends[1 - from].handle(1, &frame.bytes, now).unwrap();
//!         }
//!     }
//! }
//! for end in &ends {
//!     assert_eq!(end.ports()[0].actor().state().bits(), 0x3d);
//!     assert!(end.distributes(&end.ports()[0]) && end.carrier());
//! }
//! ```

mod aggregator;
mod config;
mod deadlock;
mod error;
mod key;
mod machine;
mod options;
mod output;
mod port;
mod receive;
mod report;
mod selection;
mod statistics;
mod system;
pub mod timing;

pub use aggregator::ActiveAggregator;
pub use config::{AdSelect, LacpConfig, LacpRate, PortConfig};
pub use error::LacpError;
pub use key::port_key;
pub use machine::{ChurnMonitor, ChurnState, MuxState, PeriodicState, ReceiveState};
pub use output::{ControlFrame, FrameKind, LacpEvent};
pub use port::Port;
pub use receive::Handled;
pub use report::{LacpInfo, PortInfo};
pub use statistics::LacpStatistics;
pub use system::Lacp;
pub use timing::Timing;
