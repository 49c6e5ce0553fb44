//! What can be wrong with a scenario.

use crate::engine::EngineError;
use crate::topology::TopologyError;
use std::ops::Range;
use toml::Spanned;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file is not TOML, or a key or value is wrong; the message names the line.
    #[error("{0}")]
    Toml(Box<toml::de::Error>),
    /// A changed setting makes the file wrong.
    #[error("with the settings changed: {}", .0.message())]
    Settings(Box<toml::de::Error>),
    /// A setting to change is not `key=value`, or its key leads nowhere.
    #[error("setting \"{setting}\": {reason}")]
    Key {
        /// What was given.
        setting: String,
        /// What is wrong with it and what is allowed.
        reason: String,
    },
    /// A value is wrong together with others.
    #[error("{place}: {what}; allowed: {allowed}")]
    Value {
        /// `line N`, or that settings were changed.
        place: String,
        /// What is wrong.
        what: String,
        /// What is allowed.
        allowed: String,
    },
    /// The lab could not be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A capture could not be written.
    #[error("capture: {0}")]
    Capture(#[from] std::io::Error),
}

impl From<EngineError> for ScenarioError {
    fn from(error: EngineError) -> Self {
        Self::Topology(error.into())
    }
}

/// Where lines begin.
#[derive(Clone, Debug)]
pub(super) struct Source {
    lines: Vec<usize>,
    changed: bool,
}

impl Source {
    pub(super) fn new(text: &str, changed: bool) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { lines: std::iter::once(0).chain(starts).collect(), changed }
    }

    /// An error at `span`.
    pub(super) fn error(
        &self,
        span: Range<usize>,
        what: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ScenarioError {
        let line = self.lines.partition_point(|start| *start <= span.start);
        let place = if self.changed { "with the settings changed".into() } else { format!("line {line}") };
        ScenarioError::Value { place, what: what.into(), allowed: allowed.into() }
    }

    /// An error at a value.
    pub(super) fn at<T>(
        &self,
        value: &Spanned<T>,
        what: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ScenarioError {
        self.error(value.span(), what, allowed)
    }
}
