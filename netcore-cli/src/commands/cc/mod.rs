//! `netcore cc`: congestion control against traces of a kernel, and windows over time.

mod plot;
mod replay;

pub(in crate::commands) use plot::{COLOURS, png};

use clap::Subcommand;
use netcore_cc::Profile;
use std::process::ExitCode;

/// Replay traces of a kernel's congestion control, or plot windows over time.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Replay(replay::Arguments),
    Plot(plot::Arguments),
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Replay(arguments) => replay::run(arguments),
        Command::Plot(arguments) => plot::run(arguments),
    }
}

/// A profile by name, with HZ and parameters set.
fn profile(name: &str, hz: Option<u32>, settings: &[String]) -> anyhow::Result<Profile> {
    let names = || Profile::all().map(|profile| profile.name).join(", ");
    let mut profile =
        Profile::by_name(name).ok_or_else(|| anyhow::anyhow!("unknown profile \"{name}\"; there are {}", names()))?;
    if let Some(hz) = hz {
        profile = profile.with_hz(hz)?;
    }
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| anyhow::anyhow!("\"{setting}\": a setting is NAME=VALUE, such as hystart=0"))?;
        profile.set(name, value)?;
    }
    Ok(profile)
}
