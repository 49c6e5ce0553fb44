//! The `netcore` command.
mod commands;

use clap::Parser;
use std::process::ExitCode;

/// What the Linux network data path would do to your traffic.
#[derive(Parser)]
#[command(name = "netcore", version, about, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match Arguments::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("netcore: {error:#}");
            ExitCode::FAILURE
        }
    }
}
