//! `netcore cc replay`: does our congestion control do what the kernel did?

mod acks;
mod calls;
mod events;
mod table;

use anyhow::{Context, bail, ensure};
use netcore_cc::Profile;
use serde_json::{Value, json};
use std::fmt::Write as _;
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

Exit status: 0 no difference, 1 failed, 2 wrong usage, 3 there are differences, or the file is damaged and only what came
before the damage was replayed.")]
pub(crate) struct Arguments {
    /// Trace to replay; - is standard input
    trace: PathBuf,

    /// Era of the algorithm
    #[arg(long, value_name = "NAME", default_value = "linux-current", value_parser = super::profile_parser())]
    profile: String,

    /// Ticks per second of the kernel that made the trace
    #[arg(long, value_parser = super::hz_parser())]
    hz: Option<u32>,

    /// Set a module parameter, such as hystart=0; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = super::setting)]
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
    /// Time of the last event, µs.
    pub(super) end_us: u64,
    /// Thresholds that reductions and slow-start exits set: ours, the kernel's.
    pub(super) thresholds: Vec<(u32, u32)>,
    /// Why the file was not replayed to its end.
    pub(super) damaged: Option<String>,
}

/// A threshold as text.
fn threshold(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), |it| it.to_string())
}

impl Outcome {
    fn mismatch(&mut self, what: impl FnOnce() -> String) {
        self.mismatches += 1;
        if self.first_mismatch.is_none() {
            self.first_mismatch = Some(what());
        }
    }

    fn window(&mut self, t_us: u64, cwnd: u32, ssthresh: Option<u32>) {
        self.end_us = self.end_us.max(t_us);
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
            "damaged": self.damaged,
        })
    }
}

/// Most text that a compressed file may expand to, bytes.
const MOST_TEXT: u64 = 1 << 30;

/// Reads a file, through gzip if it is compressed: its text, and what damage ended it.
fn read(path: &Path) -> anyhow::Result<(String, Option<String>)> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))?;
    }
    let mut damaged = None;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        if let Err(error) = flate2::read::MultiGzDecoder::new(&bytes[..]).take(MOST_TEXT).read_to_end(&mut plain) {
            ensure!(!plain.is_empty(), "damaged gzip data: {error}");
            damaged = Some(format!("damaged gzip data: {error}"));
        }
        ensure!(plain.len() as u64 != MOST_TEXT, "expands to {MOST_TEXT} bytes of text or more");
        bytes = plain;
    }
    let good = match std::str::from_utf8(&bytes) {
        Ok(text) => text.len(),
        Err(error) => {
            damaged = Some(format!("not text from byte {} on", error.valid_up_to()));
            error.valid_up_to()
        }
    };
    bytes.truncate(good);
    // Where the file was cut, the last line is a part of one.
    if damaged.is_some() {
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    }
    let text = String::from_utf8(bytes)?;
    if let (true, Some(damaged)) = (text.is_empty(), &damaged) {
        bail!("{damaged}");
    }
    Ok((text, damaged))
}

/// Replays a file of any kind. If it is damaged, what came before the damage was replayed.
pub(super) fn replay(path: &Path, profile: &Profile) -> anyhow::Result<Outcome> {
    let inner = || {
        let (text, mut damaged) = read(path)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut outcome = Outcome::default();
        let result = if text.trim_start().starts_with('{') {
            events::replay(text, profile, &mut outcome)
        } else {
            let mut table = table::Table::parse(text)?;
            damaged = table.damaged.take().or(damaged);
            if table.has("cwnd_before") {
                calls::replay(&table, profile, &mut outcome)
            } else if table.has("cwnd_pkts") {
                acks::replay(&table, profile, &mut outcome)
            } else {
                bail!(
                    "neither a call trace (column cwnd_before) nor an ACK trace (column cwnd_pkts) nor an event file \
                     (JSON with a list \"events\")"
                )
            }
        };
        match result {
            Err(error) if outcome.events == 0 => return Err(error),
            Err(error) => outcome.damaged = Some(format!("{error:#}")),
            Ok(()) => outcome.damaged = damaged,
        }
        ensure!(outcome.events != 0, "{}", outcome.damaged.as_deref().unwrap_or("nothing in it to replay"));
        Ok(outcome)
    };
    inner().with_context(|| path.display().to_string())
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let profile = super::profile(&arguments.profile, arguments.hz, &arguments.settings)?;
    let outcome = replay(&arguments.trace, &profile)?;
    let mut text = String::new();
    if arguments.json {
        writeln!(text, "{}", outcome.json())?;
    } else {
        writeln!(text, "events      {}", outcome.events)?;
        writeln!(text, "mismatches  {}", outcome.mismatches)?;
        if let Some(first) = &outcome.first_mismatch {
            writeln!(text, "first       {first}")?;
        }
        if let Some((t_us, cwnd, ssthresh)) = outcome.windows.last() {
            writeln!(text, "last window {cwnd}, threshold {}, at {t_us} us", threshold(*ssthresh))?;
        }
        if let Some(damaged) = &outcome.damaged {
            writeln!(text, "damaged     {damaged}")?;
        }
    }
    super::super::print(&text)?;
    let whole = outcome.mismatches == 0 && outcome.damaged.is_none();
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(super::super::DAMAGED) })
}

#[cfg(test)]
mod tests;
