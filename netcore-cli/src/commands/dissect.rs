//! `netcore dissect`: the headers of every frame, one line each.

use super::DAMAGED;
use netcore::dissect::{ChecksumVerdict, Dissection, NetworkLayer, TunnelKind, TunnelPorts, dissect, dissect_ip};
use netcore::wire::{EthernetHeader, Ipv4Header, Ipv6Header, Protocol, TcpHeader, TcpOption, UdpHeader, WireError};
use netcore_drivers::pcap::{LinkType, Record};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the headers of every frame of a capture, through tunnels, with a verdict on every checksum.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore dissect capture.pcap
  netcore dissect tunnel.pcap --vxlan-port 8472 --count 10
  netcore dissect capture.pcap --json | jq 'select(.outer.checksum == \"bad\")'

Exit status: 0 done, 1 failed, 2 wrong usage, 3 the capture is damaged and what came before was shown.")]
pub(crate) struct Arguments {
    /// Capture to read, pcap or pcapng; - is standard input
    capture: PathBuf,

    /// Destination port of VXLAN besides 4789; may be given more than once
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    vxlan_port: Vec<u16>,

    /// Destination port of GENEVE besides 6081; may be given more than once
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    geneve_port: Vec<u16>,

    /// Frames to show at most
    #[arg(long, short = 'n', value_name = "N")]
    count: Option<u64>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let ports = arguments.vxlan_port.iter().fold(TunnelPorts::default(), |ports, port| ports.with_vxlan(*port));
    let ports = arguments.geneve_port.iter().fold(ports, |ports, port| ports.with_geneve(*port));
    let mut capture = super::capture::open(&arguments.capture)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut number = 0;
    let mut start = None;
    while arguments.count.is_none_or(|count| number < count) {
        let Some(record) = capture.next()? else { break };
        number += 1;
        let seconds = record.timestamp.map(|at| at.nanos_since(*start.get_or_insert(at)) as f64 / 1e9);
        let result = if arguments.json {
            writeln!(out, "{}", machine(number, seconds, &record, &ports))
        } else {
            writeln!(out, "{}", human(number, seconds, &record, &ports))
        };
        if let Err(error) = result {
            // The reader of a pipe has seen enough.
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                return Ok(ExitCode::SUCCESS);
            }
            return Err(error.into());
        }
    }
    out.flush()?;
    if let Some(damage) = capture.damage() {
        eprintln!("netcore: {} is damaged {damage}; what came before was shown", arguments.capture.display());
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}

fn walk(record: &Record<'_>, ports: &TunnelPorts) -> Option<Dissection> {
    match record.link_type {
        LinkType::ETHERNET => Some(dissect(record.bytes, ports)),
        link if link.is_raw_ip() => Some(dissect_ip(record.bytes, ports)),
        _ => None,
    }
}

/// The worst verdict of a layer, in a word, with what a wrong field should say.
fn verdicts(checks: Option<netcore::dissect::Checksums>) -> Vec<String> {
    let Some(checks) = checks else { return Vec::new() };
    let word = |what: &str, verdict: ChecksumVerdict| match verdict {
        ChecksumVerdict::Bad { found, expected } => {
            Some(format!("bad {what} checksum {found:#06x}, should be {expected:#06x}"))
        }
        ChecksumVerdict::Partial { expected } => {
            Some(format!("{what} checksum left to the device, will be {expected:#06x}"))
        }
        ChecksumVerdict::Absent => Some(format!("no {what} checksum")),
        ChecksumVerdict::Unverifiable => Some(format!("{what} checksum not verifiable")),
        _ => None,
    };
    let header = checks.header.and_then(|verdict| word("header", verdict));
    let upper = checks.upper.and_then(|verdict| word("upper", verdict));
    header.into_iter().chain(upper).collect()
}

fn network_text(text: &mut String, frame: &[u8], network: &NetworkLayer) {
    let bytes = frame.get(usize::from(network.offset)..).unwrap_or(&[]);
    let (source, destination) = addresses(bytes, network.version);
    let _ = write!(text, " | IPv{} {source} > {destination}", network.version);
    if network.version == 4 {
        if let Ok((header, _, _)) = Ipv4Header::parse(bytes) {
            let _ = write!(text, " ttl {} id {}{}", header.ttl(), header.id(), if header.df() { " DF" } else { "" });
            if header.tos() != 0 {
                let _ = write!(text, " tos {:#04x}", header.tos());
            }
        }
    } else if let Ok((header, _)) = Ipv6Header::parse(bytes) {
        let _ = write!(text, " hlim {}", header.hop_limit());
        if header.traffic_class() != 0 {
            let _ = write!(text, " class {:#04x}", header.traffic_class());
        }
    }
    if network.fragment {
        let _ = write!(text, " fragment at {}", network.fragment_offset);
    }
}

fn addresses(bytes: &[u8], version: u8) -> (String, String) {
    match version {
        4 => Ipv4Header::parse(bytes)
            .map(|(h, _, _)| (h.source().to_string(), h.destination().to_string()))
            .unwrap_or_default(),
        _ => Ipv6Header::parse(bytes)
            .map(|(h, _)| (h.source().to_string(), h.destination().to_string()))
            .unwrap_or_default(),
    }
}

fn upper_text(text: &mut String, frame: &[u8], network: &NetworkLayer, payload: usize) {
    let bytes = frame.get(usize::from(network.upper)..network.end as usize).unwrap_or(&[]);
    if network.fragment_offset > 0 {
        let _ = write!(text, " | {} payload {}", network.protocol, bytes.len());
        return;
    }
    match network.protocol {
        Protocol::TCP => {
            let Ok((tcp, options, _)) = TcpHeader::parse(bytes) else { return };
            let _ = write!(
                text,
                " | TCP {} > {} [{}] seq {} ack {} win {}",
                tcp.source(),
                tcp.destination(),
                tcp.flags(),
                tcp.seq(),
                tcp.ack(),
                tcp.window()
            );
            for option in options {
                let _ = option_text(text, option);
            }
            let _ = write!(text, " len {payload}");
        }
        Protocol::UDP => {
            let Ok((udp, _)) = UdpHeader::parse(bytes) else { return };
            let _ = write!(text, " | UDP {} > {} len {}", udp.source(), udp.destination(), udp.len());
        }
        protocol => {
            let _ = write!(text, " | {protocol} len {}", bytes.len());
        }
    }
}

fn option_text(text: &mut String, option: Result<TcpOption<'_>, WireError>) -> std::fmt::Result {
    match option {
        Ok(TcpOption::Mss(mss)) => write!(text, " mss {mss}"),
        Ok(TcpOption::WindowScale(shift)) => write!(text, " wscale {shift}"),
        Ok(TcpOption::SackPermitted) => write!(text, " sackOK"),
        Ok(TcpOption::Timestamps { value, echo }) => write!(text, " TS {value}/{echo}"),
        Ok(option @ TcpOption::Sack(_)) => {
            text.push_str(" sack");
            option.sack_blocks().try_for_each(|block| write!(text, " {}-{}", block.left, block.right))
        }
        Ok(TcpOption::Unknown { kind, data }) => write!(text, " option {kind} ({} bytes)", data.len()),
        Ok(_) => Ok(()),
        Err(error) => write!(text, " [{error}]"),
    }
}

fn human(number: u64, seconds: Option<f64>, record: &Record<'_>, ports: &TunnelPorts) -> String {
    let time = seconds.map_or_else(|| "-".into(), |s| format!("{s:.6}"));
    let mut text = format!("{number:>6} {time:>12} {:>6}", record.original_len);
    let Some(d) = walk(record, ports) else {
        let _ = write!(text, " {}, not parsed", record.link_type);
        return text;
    };
    if record.link_type == LinkType::ETHERNET {
        if let Ok((header, _)) = EthernetHeader::parse(record.bytes) {
            let _ = write!(text, " {} > {}", header.source(), header.destination());
        }
        for tci in d.tci.iter().take(usize::from(d.tags)) {
            let _ = write!(text, " vlan {} prio {}", tci & 0xfff, tci >> 13);
        }
    }
    if d.outer.is_none() {
        let _ = write!(text, " | {}", d.ethertype);
    }
    let original = record.original_len as usize;
    if let Some(network) = &d.outer {
        network_text(&mut text, record.bytes, network);
        upper_text(&mut text, record.bytes, network, d.payload_len());
        for verdict in verdicts(d.outer_checksums(record.bytes, original)) {
            let _ = write!(text, " [{verdict}]");
        }
    }
    if let Some(kind) = d.kind {
        if d.depth > 1 {
            let _ = write!(text, " | {} tunnels", d.depth);
        }
        let _ = match (kind, d.vni) {
            (TunnelKind::Gre, Some(key)) => write!(text, " | GRE key {key}"),
            (kind, Some(vni)) => write!(text, " | {kind} vni {vni}"),
            (kind, None) => write!(text, " | {kind}"),
        };
        for tci in d.inner_tci.iter().take(usize::from(d.inner_tags)) {
            let _ = write!(text, " vlan {} prio {}", tci & 0xfff, tci >> 13);
        }
        if let (None, Some(ethertype)) = (d.inner, d.inner_ethertype) {
            let _ = write!(text, " | {ethertype}");
        }
    }
    if let Some(network) = &d.inner {
        network_text(&mut text, record.bytes, network);
        upper_text(&mut text, record.bytes, network, d.payload_len());
        for verdict in verdicts(d.inner_checksums(record.bytes, original)) {
            let _ = write!(text, " [{verdict}]");
        }
    }
    if let Some((at, error)) = d.stopped {
        let _ = write!(text, " [stopped at byte {at}: {error}]");
    }
    if record.is_cut() {
        let _ = write!(text, " [{} bytes captured]", record.bytes.len());
    }
    text
}

fn layer_json(frame: &[u8], network: &NetworkLayer, checks: Option<netcore::dissect::Checksums>) -> Value {
    let bytes = frame.get(usize::from(network.offset)..).unwrap_or(&[]);
    let (source, destination) = addresses(bytes, network.version);
    let word = |verdict: ChecksumVerdict| match verdict {
        ChecksumVerdict::Good => "good",
        ChecksumVerdict::Bad { .. } => "bad",
        ChecksumVerdict::Partial { .. } => "partial",
        ChecksumVerdict::Absent => "absent",
        _ => "unverifiable",
    };
    let upper = frame.get(usize::from(network.upper)..network.end as usize).unwrap_or(&[]);
    let ports = match network.protocol {
        Protocol::TCP | Protocol::UDP | Protocol::SCTP if network.fragment_offset == 0 && upper.len() >= 4 => {
            json!([u16::from_be_bytes([upper[0], upper[1]]), u16::from_be_bytes([upper[2], upper[3]])])
        }
        _ => Value::Null,
    };
    json!({
        "offset": network.offset,
        "version": network.version,
        "source": source,
        "destination": destination,
        "protocol": network.protocol.0,
        "ports": ports,
        "fragment": network.fragment,
        "upper_offset": network.upper,
        "header_checksum": checks.and_then(|c| c.header).map(word),
        "checksum": checks.and_then(|c| c.upper).map(word),
    })
}

fn machine(number: u64, seconds: Option<f64>, record: &Record<'_>, ports: &TunnelPorts) -> Value {
    let d = walk(record, ports);
    let original = record.original_len as usize;
    let mut value = json!({
        "frame": number,
        "time": seconds,
        "len": record.original_len,
        "captured": record.bytes.len(),
        "link_type": record.link_type.0,
    });
    if let Some(d) = d {
        value["ethertype"] = json!(d.ethertype.0);
        value["vlans"] = json!(d.tci.iter().take(usize::from(d.tags)).collect::<Vec<_>>());
        value["outer"] =
            d.outer.map_or(Value::Null, |n| layer_json(record.bytes, &n, d.outer_checksums(record.bytes, original)));
        value["tunnel"] = json!(d.kind.map(|kind| kind.to_string()));
        value["tunnels"] = json!(d.depth);
        value["vni"] = json!(d.vni);
        value["inner_vlans"] = json!(d.inner_tci.iter().take(usize::from(d.inner_tags)).collect::<Vec<_>>());
        value["inner"] =
            d.inner.map_or(Value::Null, |n| layer_json(record.bytes, &n, d.inner_checksums(record.bytes, original)));
        value["payload_offset"] = json!(d.payload);
        value["payload_len"] = json!(d.payload_len());
        value["stopped"] = json!(d.stopped.map(|(at, error)| format!("at byte {at}: {error}")));
    }
    value
}
