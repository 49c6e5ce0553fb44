//! `netcore cc`: congestion control against traces of a kernel, and windows over time.

mod plot;
mod replay;

pub(in crate::commands) use plot::{COLOURS, png};

use anyhow::Context;
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
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

/// Names of profiles, listed in the help and in the error.
fn profile_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(Profile::all().map(|profile| profile.name))
}

/// HZ within what a clock can have.
fn hz_parser() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(netcore::congestion::Clock::MAX_HZ))
}

/// Checks one `NAME=VALUE`; whether it is right does not depend on the profile.
fn setting(text: &str) -> Result<String, String> {
    let (name, value) = text.split_once('=').ok_or("a setting is NAME=VALUE, such as hystart=0")?;
    Profile::linux_current().set(name, value).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// A profile by name, with HZ and parameters set.
fn profile(name: &str, hz: Option<u32>, settings: &[String]) -> anyhow::Result<Profile> {
    let mut profile = Profile::by_name(name).with_context(|| format!("unknown profile \"{name}\""))?;
    if let Some(hz) = hz {
        profile = profile.with_hz(hz)?;
    }
    for (name, value) in settings.iter().filter_map(|setting| setting.split_once('=')) {
        profile.set(name, value)?;
    }
    Ok(profile)
}
