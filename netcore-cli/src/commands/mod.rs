//! One module per subcommand.

use clap::Subcommand;
use std::process::ExitCode;

/// The subcommands of `netcore`.
#[derive(Subcommand)]
pub(crate) enum Command {}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {}
    }
}
