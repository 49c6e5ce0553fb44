//! Register-level models of NICs, in this process and in virtual time.
//!
//! They are written from the datasheets and not from the drivers, and they are stricter than an emulator: whatever a
//! datasheet forbids, and silicon answers with a hang or with nothing, is recorded as a [`Violation`].
//!
//! ```text
//!   Nic<E1000> ──Bus──► ModelBus ─┐              ┌─ ModelBus ◄──Bus── Nic<Ixgbe>
//!                                 ▼              ▼
//!                        Bench: one clock, one memory, all devices
//!                          Device ──frames──► wire ──frames──► Device
//!                             └────frames───► taken and injected by whoever drives the bench (a lab, a test)
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `bench` | [`Bench`]: clock, devices, wires |
//! | `bus` | [`ModelBus`]: the driver's side of a device |
//! | `common` | [`Core`]: what every device has: memory access, interrupts, line, violations |
//! | `device` | [`Device`]: what a model implements |
//! | `config` | [`ConfigSpace`] |
//! | `memory` | [`Memory`]: what devices reach by DMA |
//! | `faults` | [`Faults`]: what can be made to go wrong |
//! | `timers` | [`Timers`] |
//! | `phy`, `counters` | [`CopperPhy`], [`Counters`]: what several parts have |
//! | [`e82546gb`] | the 82546GB |
//! | [`e82576`] | the 82576 |
//! | [`e82599`] | the 82599 |
//! | [`nvm`] | images of non-volatile memory |
//! | [`frames`] | checksums of frames as hardware verifies them |

mod advanced;
mod bench;
mod bus;
mod common;
mod config;
mod counters;
mod device;
pub mod e82546gb;
pub mod e82576;
pub mod e82599;
mod faults;
pub mod frames;
mod memory;
pub mod nvm;
mod phy;
mod timers;

#[cfg(test)]
mod tests;

pub use bench::{Bench, Port, WireConfig};
pub use bus::ModelBus;
pub use common::{Core, Frame, Partner, Timing, Violation};
pub use config::ConfigSpace;
pub use counters::Counters;
pub use device::Device;
pub use faults::Faults;
pub use memory::{DmaFault, Memory};
pub use phy::{CopperPhy, Link, PhyKind};
pub use timers::Timers;
