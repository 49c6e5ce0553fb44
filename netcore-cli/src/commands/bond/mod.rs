//! `netcore bond`: what a bond would do to traffic.

mod plot;
mod report;
mod spread;

use clap::Subcommand;
use std::process::ExitCode;

/// What link bonding would do to traffic.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Spread(spread::Arguments),
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Spread(arguments) => spread::run(&arguments),
    }
}
