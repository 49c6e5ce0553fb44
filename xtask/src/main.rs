//! `cargo xtask …`: the checks of this repository, one function each.

mod fuzz;
mod guest;
mod licences;
mod oracle;
mod run;
mod steps;

use clap::{Parser, Subcommand};
use fuzz::Sanitizer;
use run::{Outcome, Report};
use std::process::ExitCode;

/// The checks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything a change must pass
    Test {
        /// Longer fuzzing as well, with AddressSanitizer
        #[arg(long)]
        all: bool,
        /// Leave fuzzing with libFuzzer out; the seeds are replayed all the same
        #[arg(long)]
        no_fuzz: bool,
        /// Only steps whose name contains this
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Fuzz one target, or all of them
    Fuzz {
        /// Its name; all if left out
        target: Option<String>,
        /// Seconds per target
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// What watches memory
        #[arg(long, value_enum, default_value = "none")]
        sanitizer: Sanitizer,
    },
    /// Run the benches
    Bench {
        /// Only benches whose name contains this
        filter: Option<String>,
    },
    /// Get kernel and busybox for the tests that run Linux in a guest
    Guest,
    /// Ask a real system again for the answers that tests compare with
    Oracle {
        /// Which one
        #[arg(value_enum)]
        which: Oracle,
    },
    /// Count instructions of the hot paths with callgrind
    Instructions,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Oracle {
    /// A Linux bond in a guest
    Bond,
}

fn main() -> ExitCode {
    let mut report = Report::default();
    match Arguments::parse().command {
        Command::Test { all, no_fuzz, only } => {
            for step in steps::all() {
                if only.as_ref().is_none_or(|text| step.name.contains(text.as_str())) {
                    report.run(step.name, step.run);
                }
            }
            if !no_fuzz && only.as_ref().is_none_or(|text| "fuzz".contains(text.as_str())) {
                let (seconds, sanitizer) = if all { (300, Sanitizer::Address) } else { (20, Sanitizer::None) };
                report.run("fuzz", || fuzz::all(seconds, sanitizer));
            }
        }
        Command::Fuzz { target: None, seconds, sanitizer } => report.run("fuzz", || fuzz::all(seconds, sanitizer)),
        Command::Fuzz { target: Some(target), seconds, sanitizer } => {
            report.run("fuzz", || fuzz::one(&target, seconds, sanitizer));
        }
        Command::Bench { filter } => report.run("bench", || steps::bench(filter.as_deref())),
        Command::Guest => report.run("guest", guest::get),
        Command::Oracle { which: Oracle::Bond } => report.run("oracle bond", oracle::bond),
        Command::Instructions => report.run("instructions", steps::instructions),
    }
    report.finish()
}

/// A named check.
struct Step {
    name: &'static str,
    run: fn() -> Outcome,
}
