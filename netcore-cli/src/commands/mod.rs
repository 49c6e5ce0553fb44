//! One module per subcommand.

mod capture;
mod cc;
mod dissect;
mod gro;
mod reproduce;

use clap::Subcommand;
use std::process::ExitCode;

/// Exit status for a capture that is damaged: everything in front of the damage was processed.
const DAMAGED: u8 = 3;

/// The subcommands of `netcore`.
#[derive(Subcommand)]
pub(crate) enum Command {
    Gro(gro::Arguments),
    Cc(cc::Arguments),
    Dissect(dissect::Arguments),
    Reproduce(reproduce::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Gro(arguments) => gro::run(arguments),
            Self::Cc(arguments) => cc::run(arguments),
            Self::Dissect(arguments) => dissect::run(arguments),
            Self::Reproduce(arguments) => reproduce::run(arguments),
        }
    }
}
