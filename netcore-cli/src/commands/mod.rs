//! One module per subcommand.

mod bond;
mod buffers;
mod capture;
mod cc;
mod dissect;
mod gro;
mod gso;
mod nic;
mod out;
mod qdisc;
mod reproduce;
mod run;

use clap::Subcommand;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Exit status for a capture that is damaged: everything in front of the damage was processed.
const DAMAGED: u8 = 3;

/// The subcommands of `netcore`.
#[derive(Subcommand)]
pub(crate) enum Command {
    Gro(gro::Arguments),
    Bond(bond::Arguments),
    Gso(gso::Arguments),
    Cc(cc::Arguments),
    Dissect(dissect::Arguments),
    Nic(nic::Arguments),
    Qdisc(qdisc::Arguments),
    Reproduce(reproduce::Arguments),
    Run(run::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Gro(arguments) => gro::run(arguments),
            Self::Bond(arguments) => bond::run(arguments),
            Self::Gso(arguments) => gso::run(arguments),
            Self::Cc(arguments) => cc::run(arguments),
            Self::Dissect(arguments) => dissect::run(arguments),
            Self::Nic(arguments) => nic::run(arguments),
            Self::Qdisc(arguments) => qdisc::run(arguments),
            Self::Reproduce(arguments) => reproduce::run(arguments),
            Self::Run(arguments) => run::run(arguments),
        }
    }
}

/// Writes to standard output. A reader that has seen enough and closed the pipe is no error.
fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
