//! `netcore run`: a scenario in virtual time.

use anyhow::{Context, bail};
use netcore_drivers::pcap::Format;
use netcore_lab::report;
use netcore_lab::scenario::{CaptureRequest, Outcome, Scenario};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run a scenario file: hosts, links, switches and TCP flows in virtual time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore run two-flows.toml
  netcore run two-flows.toml --set link.0.delay=40ms --set 'flow.*.profile=linux-2.6.35'
  netcore run two-flows.toml --csv curves/ --plot curves.svg --pcap bottleneck=wire.pcapng
  netcore run two-flows.toml --seed 7 --json > result.json

The format of scenario files is in docs/lab.md. The same file, settings and seed give the same output, byte for byte.

Exit status: 0 the scenario ran, 1 it could not run, 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The scenario
    file: PathBuf,

    /// Change a setting, such as link.0.delay=20ms, host.a.mtu=9000 or flow.*.profile=linux-4.3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,

    /// Seed of everything random, instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write the curves of each flow into this folder
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,

    /// Capture a link at its first end, or at the end named: link@host=file (pcapng, or pcap by the name's ending)
    #[arg(long, value_name = "LINK=FILE")]
    pcap: Vec<String>,

    /// Draw goodput, window and RTT into this file (.svg or .png)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let name = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file).with_context(|| name.clone())?;
    let mut scenario = Scenario::parse_with(&text, &arguments.settings).with_context(|| name.clone())?;
    if let Some(seed) = arguments.seed {
        scenario = scenario.with_seed(seed);
    }
    let png = match &arguments.plot {
        Some(file) => match file.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => false,
            Some("png") => true,
            _ => bail!("{}: a plot is .svg or .png", file.display()),
        },
        None => false,
    };
    let captures = arguments.pcap.iter().map(|pcap| capture(pcap)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut world = scenario.build(captures).with_context(|| name.clone())?;
    let bar = super::capture::progress(1000, "{msg} {wide_bar} {percent} % {eta} left");
    bar.set_message(name.clone());
    let outcome = world.run(&mut |done| bar.set_position((done * 1000.0) as u64)).with_context(|| name)?;
    bar.finish_and_clear();
    if arguments.json {
        super::print(&(serde_json::to_string_pretty(&outcome)? + "\n"))?;
    } else {
        super::print(&(report::intervals(&outcome) + &report::summary(&outcome)))?;
    }
    if let Some(folder) = &arguments.csv {
        write_curves(folder, &outcome)?;
    }
    if let Some(file) = &arguments.plot {
        let svg = report::plot(&outcome).context("a scenario without flows has nothing to plot")?;
        let bytes = if png { super::cc::png(&svg)? } else { svg.into_bytes() };
        std::fs::write(file, bytes).with_context(|| file.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `link=file` or `link@end=file`.
fn capture(text: &str) -> anyhow::Result<CaptureRequest> {
    let (place, file) = text.split_once('=').with_context(|| format!("--pcap {text}: it is not LINK=FILE"))?;
    let (link, end) = match place.split_once('@') {
        Some((link, end)) => (link, Some(end.to_owned())),
        None => (place, None),
    };
    let format = match Path::new(file).extension() {
        Some(extension) if extension.eq_ignore_ascii_case("pcap") => Format::for_path(Path::new(file)),
        _ => Format::Pcapng,
    };
    let out = BufWriter::with_capacity(1 << 20, File::create(file).with_context(|| file.to_owned())?);
    Ok(CaptureRequest { link: link.into(), end, format, out: Box::new(out) })
}

/// One file for each flow.
fn write_curves(folder: &Path, outcome: &Outcome) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (index, flow) in outcome.flows.iter().enumerate() {
        // Names may hold what file names may not.
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        let file = folder.join(format!("{}-{}.csv", index + 1, flow.name.chars().map(plain).collect::<String>()));
        std::fs::write(&file, report::csv(flow)).with_context(|| file.display().to_string())?;
    }
    Ok(())
}
