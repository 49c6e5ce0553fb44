//! `netcore reproduce`: the published experiments, beside the published figures.

use anyhow::{Context, bail};
use netcore_lab::{EXPERIMENTS, Experiment, report};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the published experiments and show their figures beside the published ones.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore reproduce                        every experiment, tables and an HTML report
  netcore reproduce vxlan-gro-82599
  netcore reproduce --list                 what there is
  netcore reproduce --json > results.json

Exit status: 0 every compared figure is within its tolerance, 1 one is not or a run failed, 2 wrong usage.")]
pub(crate) struct Arguments {
    /// Experiments to run; all if none is named
    names: Vec<String>,

    /// List the experiments
    #[arg(long)]
    list: bool,

    /// Where the HTML report goes
    #[arg(long, value_name = "FILE", default_value = "netcore-report.html")]
    html: PathBuf,

    /// Print JSON, and write no report
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        let width = EXPERIMENTS.iter().map(|info| info.name.len()).max().unwrap_or(0);
        for info in EXPERIMENTS {
            let state = if info.available { "" } else { " (not reproduced yet)" };
            super::print(&format!("{:<width$}  {}{state}\n", info.name, info.published))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&str> = if arguments.names.is_empty() {
        EXPERIMENTS.iter().filter(|info| info.available).map(|info| info.name).collect()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    for name in &names {
        // Wrong names are told before anything runs.
        match EXPERIMENTS.iter().find(|info| info.name == *name) {
            None => {
                let known: Vec<_> = EXPERIMENTS.iter().map(|info| info.name).collect();
                eprintln!("netcore: no experiment \"{name}\"; there are {}", known.join(", "));
                return Ok(ExitCode::from(2));
            }
            Some(info) if !info.available => bail!("experiment \"{name}\" is not reproduced by this version yet"),
            Some(_) => {}
        }
    }
    if !arguments.json {
        // So is a place where no report can go: the runs take minutes.
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&arguments.html)
            .with_context(|| format!("--html {}", arguments.html.display()))?;
    }
    let mut experiments: Vec<Experiment> = Vec::new();
    for name in names {
        let bar = super::capture::progress(1000, "{msg} {wide_bar} {percent} %");
        bar.set_message(name.to_string());
        let experiment = netcore_lab::run(name, &mut |done| bar.set_position((done * 1000.0) as u64))
            .with_context(|| format!("experiment {name}"))?;
        bar.finish_and_clear();
        if !arguments.json {
            super::print(&(report::text(&experiment) + "\n"))?;
        }
        experiments.push(experiment);
    }
    let missing: Vec<_> = EXPERIMENTS.iter().filter(|info| !info.available).map(|info| info.name).collect();
    if arguments.json {
        super::print(&(serde_json::to_string_pretty(&json!({ "experiments": experiments }))? + "\n"))?;
    } else {
        if arguments.names.is_empty() && !missing.is_empty() {
            super::print(&format!("not reproduced yet: {}\n", missing.join(", ")))?;
        }
        std::fs::write(&arguments.html, report::html(&experiments))
            .with_context(|| format!("write {}", arguments.html.display()))?;
        super::print(&format!("report: {}\n", arguments.html.display()))?;
    }
    Ok(if experiments.iter().all(Experiment::passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
