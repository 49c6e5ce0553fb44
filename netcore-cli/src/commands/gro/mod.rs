//! `netcore gro`: what receive offload would do to a capture.

mod batch;
mod engine;
mod report;

pub(super) use report::thousands;

use super::DAMAGED;
use anyhow::Context;
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::ExitCode;

/// Merge the packets of a capture as the kernel's receive offload would.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore gro capture.pcap                       64 frames per NIC poll
  netcore gro capture.pcap --usecs 50            a poll every 50 µs, by the capture's time stamps
  netcore gro tunnel.pcap --vxlan-port 8472      VXLAN on Linux's old port, too
  netcore gro capture.pcap --rules 4.0 --json    the rules of 2015, for machines
  netcore gro capture.pcap --out merged.pcapng   every packet as the stack would see it, with final checksums

Exit status: 0 done, 1 failed, 2 wrong usage, 3 the capture is damaged and what came before was processed.")]
pub(crate) struct Arguments {
    /// Capture to read, pcap or pcapng; - is standard input
    capture: PathBuf,

    /// Frames per NIC poll
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["batch_by_time", "usecs"])]
    batch: u32,

    /// Frames with the same time stamp are one NIC poll
    #[arg(long, conflicts_with = "usecs")]
    batch_by_time: bool,

    /// Frames within N microseconds of the first are one NIC poll, as with interrupt moderation (ethtool -C rx-usecs)
    #[arg(long, value_name = "N")]
    usecs: Option<u64>,

    /// Destination port of VXLAN besides 4789; may be given more than once
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    vxlan_port: Vec<u16>,

    /// Destination port of GENEVE besides 6081; may be given more than once
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    geneve_port: Vec<u16>,

    /// Merge UDP datagrams to this port, as for a socket with UDP_GRO; 0 is every port (ethtool rx-udp-gro-forwarding)
    #[arg(long, value_name = "PORT")]
    udp_port: Vec<u16>,

    /// Tunnels inside each other that are followed; the kernel follows one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    max_tunnels: u8,

    /// Length that merged packets stay below, from the outermost IP header on (gro_max_size); beyond 65536 is BIG TCP
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=524_280))]
    max_size: u32,

    /// Whose rules
    #[arg(long, value_enum, default_value_t = Rules::Current)]
    rules: Rules,

    /// How many flows can be held
    #[arg(long, value_enum, default_value_t = Table::Linux)]
    table: Table,

    /// Write every delivered packet, in order, with final checksums; pcapng if the name ends so
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rules {
    /// Linux 6.18
    Current,
    /// Linux 4.0 (2015): one list of eight, +1 IPv4 ids, no zero-checksum tunnels without a verdict
    #[value(name = "4.0")]
    Linux40,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// The kernel's: without a receive hash, eight flows at a time
    Linux,
    /// 2048 flows at a time
    Large,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::capture::check_out(arguments.out.as_deref(), &arguments.capture)?;
    let mut capture = super::capture::open(&arguments.capture)?;
    let result =
        engine::process(&mut capture, &arguments).with_context(|| format!("{}", arguments.capture.display()))?;
    if arguments.json {
        super::print(&(serde_json::to_string_pretty(&result)? + "\n"))?;
    } else {
        super::print(&report::text(&result))?;
    }
    if let Some(damage) = &result.damaged {
        eprintln!("netcore: {} is damaged {damage}; what came before was processed", arguments.capture.display());
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}
