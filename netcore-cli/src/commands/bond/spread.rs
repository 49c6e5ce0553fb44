//! `netcore bond spread`: which member of a bond would have carried what.

use super::{plot, report};
use crate::commands::DAMAGED;
use anyhow::{Context, bail, ensure};
use netcore::dissect::{TunnelPorts, dissect};
use netcore::{FlowKey, Instant, PacketPool, PoolConfig, Rate, VlanTag};
use netcore_bond::options::XmitHashPolicy;
use netcore_bond::policy::{Era, Hash, RoundRobin};
use netcore_bond::reorder::{Links, Moderation, Path, Reordering};
use netcore_bond::spread::{Spread, SpreadReport};
use netcore_drivers::pcap::LinkType;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Spread the traffic of a capture over the members of a bond, by one or more policies.
#[derive(clap::Args)]
#[command(after_help = "Policies: layer2, layer2+3, layer3+4, encap2+3, encap3+4, vlan+srcmac, balance-rr.

For balance-rr the frames are put on links as the capture's time stamps have them, and the order in which the links would
deliver each flow is measured: how far packets are overtaken, and the duplicate threshold that a TCP sender would need.

Examples:
  netcore bond spread capture.pcap --slaves 4 --policy layer2+3 --policy layer3+4
  netcore bond spread tunnel.pcap --slaves 4 --policy layer3+4 --policy encap3+4 --untag --plot spread.svg
  netcore bond spread stream.pcap --slaves 2 --policy balance-rr --speed 1000 --latency 5,25 --rx-usecs 50 --json

Exit status: 0 done, 1 failed, 2 wrong usage, 3 the capture is damaged and what came before was counted.")]
pub(crate) struct Arguments {
    /// Capture to read, pcap or pcapng; - is standard input
    capture: PathBuf,

    /// Members of the bond
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slaves: u16,

    /// Policy; may be given more than once
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    policies: Vec<String>,

    /// balance-rr: packets before the next member's turn, 0 is at random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=65535))]
    packets_per_slave: u32,

    /// Seed of what is random
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Move the outer VLAN tag out of the frame, where a host's VLAN device leaves it; with the tag inside, layer2+3 and
    /// layer3+4 see no IP
    #[arg(long)]
    untag: bool,

    /// Use the formulas of Linux 2.6.35
    #[arg(long)]
    linux_2_6: bool,

    /// balance-rr: speeds of the links in Mbit/s, one for all or one each
    #[arg(long, value_name = "MBPS", value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    speed: Vec<u64>,

    /// balance-rr: latencies of the links in µs, one for all or one each
    #[arg(long, value_name = "US", value_delimiter = ',', default_value = "0")]
    latency: Vec<u64>,

    /// balance-rr: interrupt moderation of the receiver (ethtool -C rx-usecs)
    #[arg(long, value_name = "US", default_value_t = 0)]
    rx_usecs: u64,

    /// balance-rr: frames that bring the interrupt on earlier (ethtool -C rx-frames), 0 for no such limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    rx_frames: u32,

    /// Draw the bytes per member, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one policy did, as printed with `--json`.
#[derive(Serialize)]
pub(super) struct Outcome {
    pub(super) policy: String,
    pub(super) slaves: u16,
    pub(super) frames_per_slave: Vec<u64>,
    pub(super) bytes_per_slave: Vec<u64>,
    pub(super) flows_per_slave: Vec<u64>,
    /// Flows in all; round robin counts a flow at each member that carries some of it.
    pub(super) flows: u64,
    /// Frames that are not IP.
    pub(super) frames_without_flow: u64,
    /// Frames of a link type that has no Ethernet header, which no bond sends.
    pub(super) not_parsed: u64,
    /// Mean over maximum of the bytes per member: 1 is even.
    pub(super) balance: f64,
    pub(super) largest_flow: Option<LargestFlow>,
    pub(super) reordering: Option<Reorder>,
    pub(super) damaged: Option<String>,
}

/// The flow with most bytes.
#[derive(Serialize)]
pub(super) struct LargestFlow {
    pub(super) key: String,
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// Of all bytes.
    pub(super) share: f64,
    /// The member that carried most of it, and how many of its bytes.
    pub(super) slave: usize,
    pub(super) slave_bytes: u64,
}

/// What the links would do to the order of flows.
#[derive(Serialize)]
pub(super) struct Reorder {
    pub(super) packets: u64,
    pub(super) reordered: u64,
    pub(super) max_extent: u64,
    pub(super) mean_extent: f64,
    pub(super) duplicate_acks: u64,
    /// The smallest threshold without needless retransmits, and the one with FACK (Linux until 4.14).
    pub(super) dupthresh: u64,
    pub(super) dupthresh_fack: u64,
}

impl From<Reordering> for Reorder {
    fn from(r: Reordering) -> Self {
        let mean_extent = if r.reordered == 0 { 0.0 } else { r.total_extent as f64 / r.reordered as f64 };
        Self {
            packets: r.packets,
            reordered: r.reordered,
            max_extent: r.max_extent,
            mean_extent,
            duplicate_acks: r.duplicate_acks,
            dupthresh: r.dupthresh,
            dupthresh_fack: r.dupthresh_fack,
        }
    }
}

fn links(arguments: &Arguments) -> anyhow::Result<Links> {
    let n = usize::from(arguments.slaves);
    let each = |name: &str, values: &[u64]| match values.len() {
        1 => Ok(vec![values[0]; n]),
        len if len == n => Ok(values.to_vec()),
        len => bail!("--{name} has {len} values for {n} links: give one, or one for each"),
    };
    let (speeds, latencies) = (each("speed", &arguments.speed)?, each("latency", &arguments.latency)?);
    let moderation = Moderation { delay: Duration::from_micros(arguments.rx_usecs), frames: arguments.rx_frames };
    Ok(Links::new(speeds.into_iter().zip(latencies).map(|(mbps, us)| {
        Path::new(Rate::from_bits_per_sec(mbps * 1_000_000))
            .with_latency(Duration::from_micros(us))
            .with_moderation(moderation)
    })))
}

fn spreads(arguments: &Arguments) -> anyhow::Result<Vec<(String, Spread)>> {
    let mut all = Vec::new();
    for name in &arguments.policies {
        let spread = match name.as_str() {
            "balance-rr" | "round-robin" | "rr" => {
                Spread::in_turn(RoundRobin::new(arguments.packets_per_slave, arguments.seed), arguments.slaves)
            }
            name => {
                let policy = XmitHashPolicy::ALL.iter().find(|policy| policy.name() == name).with_context(|| {
                    let names = XmitHashPolicy::ALL.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
                    format!("unknown policy \"{name}\"; there are {names}, balance-rr")
                })?;
                let era = if arguments.linux_2_6 { Era::Linux26 } else { Era::Current };
                Spread::by_hash(Hash::new(*policy).with_era(era), arguments.slaves)
            }
        };
        all.push((name.clone(), spread));
    }
    Ok(all)
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(plot) = &arguments.plot {
        let extension = plot.extension().and_then(|it| it.to_str()).unwrap_or_default();
        ensure!(matches!(extension, "svg" | "png"), "{}: name a .svg or .png file", plot.display());
    }
    let links = links(arguments)?;
    let mut spreads = spreads(arguments)?;
    let mut capture = crate::commands::capture::open(&arguments.capture)?;
    let bar = crate::commands::capture::progress(0, "{spinner} {pos} frames, {per_sec}");
    bar.unset_length();
    let mut cache = PacketPool::new(PoolConfig::with_buffers(512))?.cache();
    let ports = TunnelPorts::default();
    let (mut frames, mut not_parsed, mut start) = (0_u64, 0_u64, None);
    while let Some(record) = capture.next().with_context(|| arguments.capture.display().to_string())? {
        frames += 1;
        if frames.is_multiple_of(4096) {
            bar.set_position(frames);
        }
        let raw_ip = record.link_type.is_raw_ip();
        if record.link_type != LinkType::ETHERNET && !raw_ip {
            not_parsed += 1;
            continue;
        }
        let mut bytes = Vec::with_capacity(record.bytes.len() + 14);
        let mut len = record.original_len;
        if raw_ip {
            let v6 = record.bytes.first().is_some_and(|first| first >> 4 == 6);
            bytes.extend([0; 12]);
            bytes.extend(if v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
            len = len.saturating_add(14);
        }
        bytes.extend_from_slice(record.bytes);
        let key = FlowKey::of(&bytes, &dissect(&bytes, &ports));
        let mut tag = None;
        if arguments.untag
            && let Some(&[a @ (0x81 | 0x88), b @ (0x00 | 0xa8), c, d]) = bytes.get(12..16).and_then(|t| t.first_chunk())
        {
            tag = Some(VlanTag { tpid: u16::from_be_bytes([a, b]), tci: u16::from_be_bytes([c, d]) });
            bytes.drain(12..16);
        }
        let mut packet = cache.copy_chain(&bytes).with_context(|| format!("frame {frames}"))?;
        packet.set_vlan(tag);
        // Without time stamps all is offered at once.
        let at = record.timestamp.unwrap_or(Instant::ZERO);
        let at = Instant::from_nanos(at.nanos_since(*start.get_or_insert(at)));
        for (_, spread) in &mut spreads {
            spread.frame(&packet, len, key, at);
        }
        cache.put(packet);
    }
    bar.finish_and_clear();
    let damaged = capture.damage().map(ToString::to_string);
    let outcomes: Vec<Outcome> = spreads
        .iter()
        .map(|(name, spread)| {
            let reordering = spread.reordering(&links).map(Reorder::from);
            outcome(name, arguments.slaves, &spread.report(), reordering, not_parsed, damaged.clone())
        })
        .collect();
    if arguments.json {
        crate::commands::print(&(serde_json::to_string_pretty(&outcomes)? + "\n"))?;
    } else {
        crate::commands::print(&report::text(&outcomes))?;
    }
    if let Some(file) = &arguments.plot {
        plot::write(&outcomes, file)?;
    }
    if let Some(damage) = damaged {
        eprintln!("netcore: {} is damaged {damage}; what came before was counted", arguments.capture.display());
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}

fn outcome(
    policy: &str,
    slaves: u16,
    report: &SpreadReport,
    reordering: Option<Reorder>,
    not_parsed: u64,
    damaged: Option<String>,
) -> Outcome {
    let total: u64 = report.bytes.iter().sum();
    let most = report.bytes.iter().max().copied().unwrap_or(0);
    let largest_flow = report.largest.map(|largest| LargestFlow {
        key: largest.key.to_string(),
        frames: largest.frames,
        bytes: largest.bytes,
        share: largest.bytes as f64 / total.max(1) as f64,
        slave: largest.member,
        slave_bytes: largest.most_bytes,
    });
    Outcome {
        policy: policy.to_owned(),
        slaves,
        frames_per_slave: report.frames.clone(),
        bytes_per_slave: report.bytes.clone(),
        flows_per_slave: report.flows.clone(),
        flows: report.distinct_flows,
        frames_without_flow: report.unkeyed,
        not_parsed,
        balance: if most == 0 { 1.0 } else { total as f64 / (most * u64::from(slaves)) as f64 },
        largest_flow,
        reordering,
        damaged,
    }
}
