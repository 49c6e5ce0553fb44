//! Published network experiments, reproduced in virtual time.
//!
//! ```text
//!   scenario (TOML) ─► traffic ─► link ─► NIC ring ─► receive offload ─► receiver cost model ─► rows, series
//! ```
//!
//! Nothing reads a clock: a run depends on its scenario alone. Figures come out of queues, polls and per-packet costs; a
//! parameter that a publication does not state is declared in the scenario file with its reason.
#![forbid(unsafe_code)]

pub mod capture;
pub mod engine;
pub mod experiment;
pub mod experiments;
pub mod host;
pub mod net;
pub mod nic;
pub mod parallel;
pub mod receiver;
pub mod report;
pub mod scenario;
pub mod topology;
pub mod traffic;
pub mod tunnel;

pub use experiment::{Experiment, Row, Series};
pub use experiments::{EXPERIMENTS, ExperimentInfo, LabError, run};
