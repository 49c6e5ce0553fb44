//! `netcore gso`: cutting the large frames of a capture as segmentation offload would.

use super::DAMAGED;
use super::buffers::Buffers;
use super::out::Output;
use anyhow::Context;
use netcore::offload::{SegmentError, Segmenter};
use netcore::packet::PacketError;
use netcore::{Burst, Features, Gso, GsoKind, Packet, PoolConfig, TunnelPorts};
use netcore_drivers::pcap::{LinkType, Record};
use netcore_offload::{Large, SoftwareSegmenter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Cut the large frames of a capture as segmentation offload would.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore gso big.pcap                         pieces that fit an MTU of 1500
  netcore gso big.pcap --mss 1398 --out w.pcap pieces with 1398 bytes of payload, written to a file
  netcore gso big.pcap --udp --json            UDP too (one datagram becomes many), for machines

Frames that are small enough pass unchanged, and so does what is neither TCP nor UDP.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 the capture is damaged and what came before was processed.")]
pub(crate) struct Arguments {
    /// Capture to read, pcap or pcapng; - is standard input
    capture: PathBuf,

    /// Largest packet from the outermost IP header on, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(68..=65535))]
    mtu: u32,

    /// Payload of each piece instead, bytes
    #[arg(long, value_name = "BYTES", conflicts_with = "mtu", value_parser = clap::value_parser!(u16).range(1..))]
    mss: Option<u16>,

    /// Cut UDP datagrams, too
    #[arg(long)]
    udp: bool,

    /// Give all pieces the same IPv4 identification
    #[arg(long)]
    fixed_id: bool,

    /// Destination port of VXLAN besides 4789; may be given more than once
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    vxlan_port: Vec<u16>,

    /// Destination port of GENEVE besides 6081; may be given more than once
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    geneve_port: Vec<u16>,

    /// Write every packet, in order, with final checksums; pcapng if the name ends so
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What happened, as printed with `--json`.
#[derive(Serialize, Default)]
struct Summary {
    frames_in: u64,
    packets_out: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// Frames that were cut.
    super_packets: u64,
    /// Pieces made of them.
    segments: u64,
    /// Largest frame that was cut, bytes.
    largest: u64,
    /// Why frames passed unchanged.
    passed: BTreeMap<&'static str, u64>,
    damaged: Option<String>,
}

struct Cutter<'a> {
    arguments: &'a Arguments,
    buffers: Buffers,
    segmenter: SoftwareSegmenter,
    ports: TunnelPorts,
    pieces: Burst,
    summary: Summary,
    out: Option<Output>,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::capture::check_out(arguments.out.as_deref(), &arguments.capture)?;
    let mut capture = super::capture::open(&arguments.capture)?;
    let ports = arguments.vxlan_port.iter().fold(TunnelPorts::default(), |ports, port| ports.with_vxlan(*port));
    let ports = arguments.geneve_port.iter().fold(ports, |ports, port| ports.with_geneve(*port));
    let mut cutter = Cutter {
        buffers: Buffers::new(PoolConfig { windows: 16_384, ..PoolConfig::with_buffers(16_384) })?,
        segmenter: SoftwareSegmenter::new().with_tunnel_ports(ports.clone()),
        ports,
        pieces: Burst::new(),
        summary: Summary::default(),
        out: arguments.out.clone().map(Output::new),
        arguments: &arguments,
    };
    while let Some(record) = capture.next()? {
        cutter.frame(&record).with_context(|| format!("frame {}", cutter.summary.frames_in))?;
    }
    if let Some(out) = cutter.out {
        out.finish(capture.link_type().unwrap_or(LinkType::ETHERNET))?;
    }
    let mut summary = cutter.summary;
    summary.damaged = capture.damage().map(ToString::to_string);
    if arguments.json {
        super::print(&(serde_json::to_string_pretty(&summary)? + "\n"))?;
    } else {
        super::print(&text(&summary))?;
    }
    if let Some(damage) = &summary.damaged {
        eprintln!("netcore: {} is damaged {damage}; what came before was processed", arguments.capture.display());
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}

impl Cutter<'_> {
    fn frame(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        self.summary.frames_in += 1;
        self.summary.bytes_in += record.bytes.len() as u64;
        let raw_ip = record.link_type.is_raw_ip();
        if record.link_type != LinkType::ETHERNET && !raw_ip {
            return self.pass("not_ethernet_or_ip", record);
        }
        if record.is_cut() {
            return self.pass("cut_at_capture", record);
        }
        let framed = raw_ip.then(|| super::capture::in_ethernet(record.bytes));
        let bytes = framed.as_deref().unwrap_or(record.bytes);
        let mut packet = self.buffers.copy(bytes)?;
        while let Err(error) = packet.linearize(packet.len().min(512), &mut self.buffers.cache) {
            match error {
                PacketError::Pool(_) => self.buffers.grow()?,
                error => return Err(error.into()),
            }
        }
        match self.plan(&packet) {
            Ok(gso) => packet.set_gso(Some(gso)),
            Err(reason) => {
                self.buffers.cache.put(packet);
                return self.pass(reason, record);
            }
        }
        while let Err(refused) =
            self.segmenter.segment(packet, Features::empty(), &mut self.buffers.cache, &mut self.pieces)
        {
            if !matches!(refused.error, SegmentError::Packet(PacketError::Pool(_))) {
                self.buffers.cache.put(refused.packet);
                return self.pass("refused", record);
            }
            self.buffers.grow()?;
            packet = refused.packet;
        }
        self.summary.super_packets += 1;
        self.summary.largest = self.summary.largest.max(record.bytes.len() as u64);
        while let Some(piece) = self.pieces.pop() {
            self.summary.segments += 1;
            let link = if raw_ip { super::capture::ETHERNET } else { 0 };
            self.write(record, &piece.to_vec()[link..])?;
            self.buffers.cache.put(piece);
        }
        Ok(())
    }

    /// How to cut a packet, or why it passes.
    fn plan(&self, packet: &Packet) -> Result<Gso, &'static str> {
        let large = Large::of(packet, &self.ports).map_err(|_| "neither_tcp_nor_udp")?;
        if large.kind.contains(GsoKind::UDP_L4) && !self.arguments.udp {
            return Err("udp");
        }
        let headers = large.payload - large.network;
        let fits = (self.arguments.mtu as usize).saturating_sub(headers);
        let size = self.arguments.mss.map_or(fits, usize::from);
        if size == 0 {
            return Err("headers_beyond_mtu");
        }
        let payload = packet.len() - large.payload;
        if payload <= size {
            return Err("small_enough");
        }
        let mut kind = large.kind;
        if self.arguments.fixed_id {
            kind |= GsoKind::TCP_FIXEDID | GsoKind::TCP_FIXEDID_OUTER;
        }
        let segments = u16::try_from(payload.div_ceil(size)).map_err(|_| "too_many_pieces")?;
        Ok(Gso { kind, size: size as u16, segments })
    }

    fn pass(&mut self, reason: &'static str, record: &Record<'_>) -> anyhow::Result<()> {
        *self.summary.passed.entry(reason).or_default() += 1;
        self.write(record, record.bytes)
    }

    fn write(&mut self, record: &Record<'_>, bytes: &[u8]) -> anyhow::Result<()> {
        self.summary.packets_out += 1;
        self.summary.bytes_out += bytes.len() as u64;
        if let Some(out) = &mut self.out {
            let original = if record.is_cut() { record.original_len as usize } else { bytes.len() };
            let link_type = if record.link_type.is_raw_ip() { LinkType::RAW } else { record.link_type };
            out.write(link_type, record.timestamp, &[bytes], original)?;
        }
        Ok(())
    }
}

fn text(s: &Summary) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let rows = [
        ("frames in", s.frames_in),
        ("packets out", s.packets_out),
        ("bytes in", s.bytes_in),
        ("bytes out", s.bytes_out),
        ("frames cut", s.super_packets),
        ("pieces", s.segments),
        ("largest frame cut", s.largest),
    ];
    for (name, value) in rows {
        let _ = writeln!(out, "{name:<22}{:>16}", super::gro::thousands(value));
    }
    if !s.passed.is_empty() {
        out.push_str("\nwhy frames passed unchanged\n");
        for (reason, count) in &s.passed {
            let _ = writeln!(out, "  {:<20}{:>16}", reason.replace('_', " "), super::gro::thousands(*count));
        }
    }
    out
}
