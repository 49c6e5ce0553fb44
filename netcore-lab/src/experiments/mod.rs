//! The published experiments.

mod bonded;
mod fq_tso;
mod hystart;
mod vxlan_gro;

use crate::experiment::Experiment;

/// Why an experiment could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// There is no experiment of this name.
    #[error("no experiment \"{name}\"; there are {known}")]
    Unknown {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// It is known but not reproduced by this version.
    #[error("experiment \"{0}\" is not reproduced by this version yet")]
    NotYet(&'static str),
    /// A scenario file is wrong.
    #[error("scenario {name}: {source}")]
    Scenario {
        /// Which.
        name: &'static str,
        /// Line and reason.
        source: Box<toml::de::Error>,
    },
    /// A setting of a scenario is out of range.
    #[error("scenario {name}: {setting} is {value}, allowed is {allowed}")]
    Setting {
        /// Which scenario.
        name: &'static str,
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A capture could not be read.
    #[error(transparent)]
    Capture(#[from] netcore_drivers::pcap::CaptureError),
    /// Packet memory ran out or was misused.
    #[error(transparent)]
    Packet(#[from] netcore::PacketError),
    /// A pool could not be made.
    #[error(transparent)]
    Pool(#[from] netcore::PoolConfigError),
    /// A connection's configuration is wrong.
    #[error(transparent)]
    Connection(#[from] netcore_tcp::ConfigError),
    /// A lab could not be set up.
    #[error(transparent)]
    Topology(#[from] crate::topology::TopologyError),
    /// A lab could not be built.
    #[error(transparent)]
    Engine(#[from] crate::engine::EngineError),
    /// A run did not come to its end.
    #[error("the experiment broke: {0}")]
    Broken(&'static str),
    /// An offload setting is out of range.
    #[error(transparent)]
    Gro(#[from] netcore_offload::GroConfigError),
    /// A qdisc's options are wrong.
    #[error(transparent)]
    Qdisc(#[from] netcore::QdiscError),
}

/// An experiment that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimentInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// Who published what.
    pub published: &'static str,
    /// Whether this version reproduces it.
    pub available: bool,
}

/// All of them.
pub const EXPERIMENTS: [ExperimentInfo; 5] = [
    ExperimentInfo {
        name: "bond-8023ad-rr",
        published: "netdev, January 2011: round-robin inside 802.3ad over 4 x 82576",
        available: true,
    },
    ExperimentInfo {
        name: "balance-rr-reordering",
        published: "netdev, September 2007: balance-rr over 4 x 82546GB into a 10G host",
        available: true,
    },
    ExperimentInfo {
        name: "hystart",
        published: "netdev, March 2011: HyStart at 10 Gbit/s over 18 and 80 ms",
        available: true,
    },
    ExperimentInfo {
        name: "fq-tso-autosizing",
        published: "netdev, November 2015: fairness of two flows, fq with TSO autosizing on e1000",
        available: true,
    },
    ExperimentInfo {
        name: "vxlan-gro-82599",
        published: "netdev, June 2015: VXLAN receive offload on an 82599",
        available: true,
    },
];

/// Runs one experiment. `progress` is told the fraction done, 0 to 1.
///
/// # Errors
/// [`LabError`].
pub fn run(name: &str, progress: &mut dyn FnMut(f64)) -> Result<Experiment, LabError> {
    let Some(info) = EXPERIMENTS.iter().find(|info| info.name == name) else {
        let known: Vec<_> = EXPERIMENTS.iter().map(|info| info.name).collect();
        return Err(LabError::Unknown { name: name.into(), known: known.join(", ") });
    };
    match info.name {
        "bond-8023ad-rr" => bonded::ad_round_robin::experiment(progress),
        "balance-rr-reordering" => bonded::balance_rr::experiment(progress),
        "hystart" => hystart::run(progress),
        "fq-tso-autosizing" => fq_tso::run(progress),
        "vxlan-gro-82599" => vxlan_gro::run(progress),
        _ => Err(LabError::NotYet(info.name)),
    }
}
