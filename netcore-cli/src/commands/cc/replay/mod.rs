//! `netcore cc replay`: does our congestion control do what the kernel did?

mod acks;
mod calls;
mod events;
mod table;

use anyhow::Context;
use netcore_cc::Profile;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Replay a trace of a kernel's congestion control and compare the windows.
///
/// Three kinds of file are told apart by their content, gzip or not: a trace of every call into the algorithm (each
/// field of the state is compared), a trace with one row per ACK (the window outside recovery is compared), and a JSON
/// file of events with expected windows.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore cc replay cubic_calls_100mbit_40ms.csv.gz
  netcore cc replay trace.csv --set hystart=0 --json

Exit status: 0 no difference, 1 failed, 2 wrong usage, 3 there are differences.")]
pub(crate) struct Arguments {
    /// Trace to replay; - is standard input
    trace: PathBuf,

    /// Era of the algorithm
    #[arg(long, default_value = "linux-current")]
    profile: String,

    /// Ticks per second of the kernel that made the trace
    #[arg(long)]
    hz: Option<u32>,

    /// Set a module parameter, such as hystart=0; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a replay gave.
#[derive(Default)]
pub(super) struct Outcome {
    /// Calls, ACKs or events replayed.
    pub(super) events: u64,
    /// Of those, how many differ.
    pub(super) mismatches: u64,
    /// The first that differs.
    pub(super) first_mismatch: Option<String>,
    /// Time in µs, window, threshold.
    pub(super) windows: Vec<(u64, u32, Option<u32>)>,
    /// Thresholds that reductions and slow-start exits set: ours, the kernel's.
    pub(super) thresholds: Vec<(u32, u32)>,
}

impl Outcome {
    fn mismatch(&mut self, what: impl FnOnce() -> String) {
        self.mismatches += 1;
        if self.first_mismatch.is_none() {
            self.first_mismatch = Some(what());
        }
    }

    fn window(&mut self, t_us: u64, cwnd: u32, ssthresh: Option<u32>) {
        if self.windows.last().is_none_or(|last| (last.1, last.2) != (cwnd, ssthresh)) {
            self.windows.push((t_us, cwnd, ssthresh));
        }
    }

    fn json(&self) -> Value {
        json!({
            "events": self.events,
            "mismatches": self.mismatches,
            "first_mismatch": self.first_mismatch,
            "windows": self.windows,
            "thresholds": self.thresholds,
        })
    }
}

/// Reads a file, through gzip if it is compressed.
fn read(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
    } else {
        File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .with_context(|| path.display().to_string())?;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut plain)
            .with_context(|| format!("{}: damaged gzip data", path.display()))?;
        bytes = plain;
    }
    String::from_utf8(bytes).with_context(|| format!("{}: not text", path.display()))
}

/// Replays a file of any kind.
pub(super) fn replay(path: &Path, profile: &Profile) -> anyhow::Result<Outcome> {
    let text = read(path)?;
    let outcome = if text.trim_start().starts_with('{') {
        events::replay(&text, profile)
    } else {
        let table = table::Table::parse(&text)?;
        if table.has("cwnd_before") {
            calls::replay(&table, profile)
        } else if table.has("cwnd_pkts") {
            acks::replay(&table, profile)
        } else {
            anyhow::bail!(
                "{}: neither a call trace (column cwnd_before) nor an ACK trace (column cwnd_pkts)",
                path.display()
            )
        }
    };
    outcome.with_context(|| path.display().to_string())
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let profile = super::profile(&arguments.profile, arguments.hz, &arguments.settings)?;
    let outcome = replay(&arguments.trace, &profile)?;
    if arguments.json {
        println!("{}", outcome.json());
    } else {
        println!("events      {}", outcome.events);
        println!("mismatches  {}", outcome.mismatches);
        if let Some(first) = &outcome.first_mismatch {
            println!("first       {first}");
        }
        if let Some((t_us, cwnd, ssthresh)) = outcome.windows.last() {
            let ssthresh = ssthresh.map_or_else(|| "none".to_owned(), |value| value.to_string());
            println!("last window {cwnd}, threshold {ssthresh}, at {t_us} us");
        }
    }
    Ok(if outcome.mismatches == 0 { ExitCode::SUCCESS } else { ExitCode::from(super::super::DAMAGED) })
}

#[cfg(test)]
mod tests;
