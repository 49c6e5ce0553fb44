//! Faults on purpose.

mod config;
mod injector;
mod lane;
mod random;

pub use config::{Chance, FaultConfig, FaultConfigError, Faults};
pub use injector::FaultInjector;
