//! The machines of a port (IEEE 802.1AX clauses 6.4.12 to 6.4.17), one per file.
//!
//! Each is a function that moves its machine by at most one transition and says whether it did.

mod churn;
mod mux;
mod periodic;
mod receive;
#[cfg(test)]
mod tests;
mod transmit;

pub use churn::{ChurnMonitor, ChurnState};
pub use mux::MuxState;
pub use periodic::PeriodicState;
pub use receive::ReceiveState;

pub(super) use churn::churn;
pub(super) use mux::{Control, must_stop, mux};
pub(super) use periodic::periodic;
pub(super) use receive::receive;
pub(super) use transmit::{OPPORTUNITY, transmit};
