//! `netcore qdisc`: what a packet scheduler would do to traffic.

mod plot;
mod report;
mod simulate;
mod source;

use super::DAMAGED;
use anyhow::{Context, bail};
use netcore::Rate;
use netcore_qdisc::tc;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a qdisc over a capture or over synthetic flows.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore qdisc capture.pcap --qdisc \"fq maxrate 10mbit\"        each flow of the capture paced
  netcore qdisc capture.pcap --rate 100mbit --qdisc fq_codel     a device of 100 Mbit/s
  netcore qdisc --flow len=1514,rate=80mbit --flow len=300,rate=80mbit --rate 100mbit --qdisc fq
  netcore qdisc --flow len=1514,rate=80mbit,pacing=5mbit --qdisc fq --plot flows.svg
  netcore qdisc capture.pcap --qdisc \"tbf rate 10mbit burst 10kb latency 50ms\" --json

A flow has the keys len (bytes), rate (offered), and if wanted packets (how many at once), pacing (the socket's rate),
prio (0 to 15), start (a time). Qdiscs and units are those of tc: fq, fq_codel, tbf, pfifo_fast, pfifo, bfifo.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 the capture is damaged and what came before was processed.")]
pub(crate) struct Arguments {
    /// Capture to read, pcap or pcapng; - is standard input
    #[arg(required_unless_present = "flows")]
    capture: Option<PathBuf>,

    /// A synthetic flow, such as len=1514,rate=80mbit; may be given more than once
    #[arg(long = "flow", value_name = "KEY=VALUE,…", conflicts_with = "capture")]
    flows: Vec<String>,

    /// How long synthetic flows send
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: String,

    /// The qdisc with its options, in tc syntax
    #[arg(long, short, default_value = "fq")]
    qdisc: String,

    /// Rate of the device below; without one it takes whatever the qdisc gives
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,

    /// Packets of a capture have no sockets: flows are told by hash alone, as on a router
    #[arg(long)]
    forwarded: bool,

    /// Show the first N departures
    #[arg(long, value_name = "N", default_value_t = 0)]
    departures: usize,

    /// Plot bytes sent over time, by flow; a name that ends in .svg
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Print JSON, all departures included
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = arguments.qdisc.split_whitespace().collect();
    let (name, options) = words.split_first().context("--qdisc names no qdisc")?;
    let Some(qdisc) = netcore_qdisc::by_name(name, options) else {
        bail!("no qdisc \"{name}\"; there are fq, fq_codel, tbf, pfifo_fast, pfifo, bfifo");
    };
    let qdisc = qdisc?;
    let rate = arguments.rate.as_deref().map(device_rate).transpose()?;
    if let Some(plot) = &arguments.plot
        && plot.extension().is_none_or(|extension| extension != "svg")
    {
        bail!("--plot writes .svg, not {}", plot.display());
    }
    let source = match &arguments.capture {
        Some(capture) => source::capture(capture, arguments.forwarded)?,
        None => source::synthetic(&arguments.flows, &arguments.time)?,
    };
    let result = simulate::run(qdisc, source, rate);
    if let Some(plot) = &arguments.plot {
        std::fs::write(plot, plot::svg(&result)?).with_context(|| format!("write {}", plot.display()))?;
    }
    if arguments.json {
        super::print(&(serde_json::to_string_pretty(&report::json(&result))? + "\n"))?;
    } else {
        super::print(&report::text(&result, arguments.departures))?;
    }
    if let Some(damage) = &result.damaged {
        eprintln!("netcore: the capture is damaged {damage}; what came before was processed");
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}

fn device_rate(text: &str) -> anyhow::Result<Rate> {
    match tc::parse_rate64(text).filter(|rate| rate.bytes_per_sec() > 0) {
        Some(rate) => Ok(rate),
        None => bail!("\"{text}\" is no rate; a rate is such as 100mbit"),
    }
}
