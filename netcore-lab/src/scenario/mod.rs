//! Scenario files: what a lab consists of and what happens in it, in TOML.
//!
//! ```
//! use netcore_lab::scenario::Scenario;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     duration = "2 s"
//!     [host.a]
//!     [host.b]
//!     [[link]]
//!     between = ["a", "b"]
//!     rate = "100 Mbit/s"
//!     delay = "5 ms"
//!     queue = "256 KiB"
//!     [[flow]]
//!     from = "a"
//!     to = "b"
//!     "#,
//! )?;
//! let report = scenario.with_seed(7).run(&mut |_done| ())?;
//! assert!(report.flows[0].mbits_per_sec > 80.0);
//! # Ok::<(), netcore_lab::scenario::ScenarioError>(())
//! ```
//!
//! Keys, units, defaults: `docs/lab.md`. A mistake is reported with its line and what is allowed.

mod build;
mod connection;
mod error;
mod host;
mod outcome;
mod overrides;
mod run;
pub mod schema;
mod sysctl;
pub mod units;

pub use error::ScenarioError;
pub use outcome::{Direction, FlowOutcome, HostOutcome, Interval, LinkOutcome, Outcome, SwitchOutcome};
pub use run::{CaptureRequest, World};

use error::Source;
use schema::Document;

/// A scenario that was read and whose keys and values are right one by one.
#[derive(Clone, Debug)]
pub struct Scenario {
    document: Document,
    source: Source,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// [`ScenarioError`] with the line of the mistake.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let document = toml::from_str(text).map_err(|error| ScenarioError::Toml(Box::new(error)))?;
        Ok(Self { document, source: Source::new(text, false) })
    }

    /// Reads a scenario with settings changed: `key=value`, where the key is a path such as `duration`, `host.a.mtu`,
    /// `link.0.delay`, `link.NAME.delay` or `flow.*.profile`.
    ///
    /// # Errors
    /// [`ScenarioError`], also if a key leads nowhere.
    pub fn parse_with(text: &str, settings: &[impl AsRef<str>]) -> Result<Self, ScenarioError> {
        // The file's own mistakes are told with its own lines.
        let plain = Self::parse(text)?;
        if settings.is_empty() {
            return Ok(plain);
        }
        let changed = overrides::apply(text, settings)?;
        let document = toml::from_str(&changed).map_err(|error| ScenarioError::Settings(Box::new(error)))?;
        Ok(Self { document, source: Source::new(&changed, true) })
    }

    /// The same scenario with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.document.seed = seed;
        self
    }

    /// What the file says.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Builds the lab, with captures of links.
    ///
    /// # Errors
    /// [`ScenarioError`], for example if a link names a host that does not exist.
    pub fn build(&self, captures: Vec<CaptureRequest>) -> Result<World, ScenarioError> {
        build::build(self, captures)
    }

    /// Builds and runs. `progress` is told the fraction done, 0 to 1.
    ///
    /// # Errors
    /// As [`Scenario::build`].
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<Outcome, ScenarioError> {
        self.build(Vec::new())?.run(progress)
    }
}

#[cfg(test)]
mod tests;
