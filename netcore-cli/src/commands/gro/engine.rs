//! Running a capture through the engine.

use super::super::buffers::Buffers;
use super::super::capture::{ETHERNET, in_ethernet};
use super::super::out::Output;
use super::batch::Batch;
use super::{Arguments, Rules, Table};
use anyhow::Context;
use netcore::dissect::{TunnelPorts, dissect};
use netcore::offload::{ReceiveOffload, SegmentError, Segmenter};
use netcore::packet::PacketError;
use netcore::{Burst, FlowKey, Instant, Packet, PoolConfig};
use netcore_drivers::pcap::LinkType;
use netcore_offload::{Gro, GroConfig, GroTable, SoftwareSegmenter, UdpGro};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Frames gathered before they are merged; less than one poll or not.
const AT_ONCE: usize = 64;

/// Flows whose reasons are counted.
const MAX_FLOWS: usize = 65_536;

/// What happened, as printed with `--json`.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) frames_in: u64,
    pub(super) packets_out: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Largest payload of a delivered packet, bytes.
    pub(super) largest_payload: u64,
    /// Frames per delivered packet.
    pub(super) merge_factor: f64,
    pub(super) end_reasons: BTreeMap<&'static str, u64>,
    pub(super) flows: Vec<Flow>,
    /// Frames that are not Ethernet or IP, passed through as they are.
    pub(super) not_parsed: u64,
    /// Frames that the capture holds only in part.
    pub(super) cut_at_capture: u64,
    pub(super) damaged: Option<String>,
}

/// One flow.
#[derive(Serialize)]
pub(super) struct Flow {
    pub(super) key: String,
    pub(super) frames_in: u64,
    pub(super) packets_out: u64,
    pub(super) payload_bytes: u64,
    pub(super) largest_payload: u64,
    pub(super) merge_factor: f64,
    /// Why each packet of the flow went up.
    pub(super) end_reasons: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct FlowCount {
    frames_in: u64,
    packets_out: u64,
    payload: u64,
    largest: u64,
}

struct Engine {
    gro: Gro,
    buffers: Buffers,
    ports: TunnelPorts,
    segmenter: SoftwareSegmenter,
    poll: Burst,
    delivered: Burst,
    flows: HashMap<FlowKey, FlowCount>,
    out: Option<Output>,
    largest: u64,
    /// The packets of the poll at hand are raw IP.
    raw_ip: bool,
    /// Bytes of link headers that delivered packets have only here.
    link_bytes: u64,
}

pub(super) fn process(capture: &mut super::super::capture::Capture, arguments: &Arguments) -> anyhow::Result<Summary> {
    let mut config = match arguments.rules {
        Rules::Current => GroConfig::linux_current(),
        Rules::Linux40 => GroConfig::linux_4_0(),
    };
    if arguments.table == Table::Large {
        config.table = GroTable::large();
    }
    config.vxlan_ports.extend(&arguments.vxlan_port);
    config.geneve_ports.extend(&arguments.geneve_port);
    config.max_tunnels = usize::from(arguments.max_tunnels);
    config.max_size = arguments.max_size as usize;
    config.udp = match arguments.udp_port.as_slice() {
        [] => UdpGro::Off,
        ports if ports.contains(&0) => UdpGro::All,
        ports => UdpGro::Ports(ports.to_vec()),
    };
    config.flow_counters = MAX_FLOWS;
    let ports = config.tunnel_ports();
    let mut engine = Engine {
        gro: Gro::new(config)?,
        buffers: Buffers::new(PoolConfig { buffer_size: 2176, ..PoolConfig::with_buffers(8192) })?,
        ports,
        segmenter: SoftwareSegmenter::new(),
        poll: Burst::new(),
        delivered: Burst::new(),
        flows: HashMap::new(),
        out: arguments.out.clone().map(Output::new),
        largest: 0,
        raw_ip: false,
        link_bytes: 0,
    };
    let mut batch = Batch::new(arguments);
    let bar = super::super::capture::progress(0, "{spinner} {pos} frames, {per_sec}");
    bar.unset_length();
    let (mut frames, mut bytes, mut not_parsed, mut cut) = (0u64, 0u64, 0, 0);
    let mut unparsed_out = (0u64, 0u64);
    while let Some(record) = capture.next()? {
        frames += 1;
        bytes += record.bytes.len() as u64;
        if frames % 4096 == 0 {
            bar.set_position(frames);
        }
        cut += u64::from(record.is_cut());
        let raw_ip = record.link_type.is_raw_ip();
        if record.link_type != LinkType::ETHERNET && !raw_ip {
            not_parsed += 1;
            unparsed_out = (unparsed_out.0 + 1, unparsed_out.1 + record.bytes.len() as u64);
            if let Some(out) = &mut engine.out {
                let original = record.original_len as usize;
                out.write(record.link_type, record.timestamp, &[record.bytes], original)?;
            }
            continue;
        }
        if batch.starts_new(record.timestamp) || raw_ip != engine.raw_ip {
            engine.end_poll()?;
        }
        engine.raw_ip = raw_ip;
        let mut packet = match raw_ip {
            false => engine.buffers.copy(record.bytes),
            true => engine.buffers.copy(&in_ethernet(record.bytes)),
        }
        .with_context(|| format!("frame {frames}"))?;
        packet.set_timestamp(record.timestamp);
        if record.is_cut() {
            // The length on the wire travels with the packet to the output file.
            packet.set_flow_id(Some(u64::from(record.original_len)));
        }
        engine.count_in(&packet);
        engine.poll.push(packet);
        if engine.poll.len() == AT_ONCE {
            engine.receive()?;
        }
    }
    engine.end_poll()?;
    bar.finish_and_clear();
    if let Some(out) = engine.out.take() {
        out.finish(capture.link_type().unwrap_or(LinkType::ETHERNET))?;
    }
    let damaged = capture.damage().map(ToString::to_string);
    let counters = engine.gro.counters().clone();
    let packets_out = counters.packets_out + unparsed_out.0;
    let mut reasons: HashMap<FlowKey, BTreeMap<&'static str, u64>> = HashMap::new();
    for flow in engine.gro.flows() {
        if let Some(key) = flow.key {
            reasons.insert(key, flow.counters.reasons().map(|(reason, n)| (reason.name(), n)).collect());
        }
    }
    let mut flows: Vec<_> = engine.flows.into_iter().collect();
    flows.sort_by(|a, b| b.1.payload.cmp(&a.1.payload).then_with(|| a.0.cmp(&b.0)));
    let mut end_reasons: BTreeMap<_, _> = counters.reasons().map(|(reason, n)| (reason.name(), n)).collect();
    if unparsed_out.0 > 0 {
        end_reasons.insert("not_parsed", unparsed_out.0);
    }
    Ok(Summary {
        frames_in: frames,
        packets_out,
        bytes_in: bytes,
        bytes_out: counters.bytes_out - engine.link_bytes + unparsed_out.1,
        largest_payload: engine.largest,
        merge_factor: ratio(frames, packets_out),
        end_reasons,
        flows: flows
            .into_iter()
            .map(|(key, count)| Flow {
                key: key.to_string(),
                frames_in: count.frames_in,
                packets_out: count.packets_out,
                payload_bytes: count.payload,
                largest_payload: count.largest,
                merge_factor: ratio(count.frames_in, count.packets_out),
                end_reasons: reasons.remove(&key).unwrap_or_default(),
            })
            .collect(),
        not_parsed,
        cut_at_capture: cut,
        damaged,
    })
}

/// Frames per packet, rounded to a thousandth.
fn ratio(frames: u64, packets: u64) -> f64 {
    if packets == 0 { 0.0 } else { (frames as f64 / packets as f64 * 1000.0).round() / 1000.0 }
}

impl Engine {
    fn count_in(&mut self, packet: &Packet) {
        let d = dissect(packet.head(), &self.ports);
        if let Some(key) = FlowKey::of(packet.head(), &d) {
            self.flows.entry(key).or_default().frames_in += 1;
        }
    }

    /// Merges what was gathered of a poll, so that a long one never has to be in memory.
    fn receive(&mut self) -> anyhow::Result<()> {
        self.gro.receive(&mut self.poll, &mut self.delivered, &mut self.buffers.cache, Instant::ZERO);
        self.pass_on()
    }

    /// One poll is complete.
    fn end_poll(&mut self) -> anyhow::Result<()> {
        self.receive()?;
        self.gro.end_poll(false, &mut self.delivered, &mut self.buffers.cache, Instant::ZERO);
        self.pass_on()
    }

    fn pass_on(&mut self) -> anyhow::Result<()> {
        while let Some(packet) = self.delivered.pop() {
            self.deliver(packet)?;
        }
        Ok(())
    }

    fn deliver(&mut self, mut packet: Packet) -> anyhow::Result<()> {
        self.link_bytes += if self.raw_ip { ETHERNET as u64 } else { 0 };
        let d = dissect(packet.head(), &self.ports);
        // The payload's end is the packet's for a merged one; for others its headers tell, padding apart.
        let end = if packet.is_super() || d.innermost().is_some_and(|network| network.cut) {
            packet.len()
        } else {
            d.innermost().map_or(packet.len(), |network| network.end as usize)
        };
        let payload = end.saturating_sub(d.payload as usize) as u64;
        if let Some(key) = FlowKey::of(packet.head(), &d) {
            let flow = self.flows.entry(key).or_default();
            flow.packets_out += 1;
            flow.payload += payload;
            flow.largest = flow.largest.max(payload);
            self.largest = self.largest.max(payload);
        }
        if let Some(out) = &mut self.out {
            while let Err(error) = self.segmenter.fill_checksum(&mut packet, &mut self.buffers.cache) {
                match error {
                    SegmentError::Packet(PacketError::Pool(_)) => self.buffers.grow()?,
                    error => return Err(error.into()),
                }
            }
            let (at, original) = (packet.timestamp(), packet.flow_id().map(|len| len as usize));
            let link_type = if self.raw_ip { LinkType::RAW } else { LinkType::ETHERNET };
            if self.raw_ip {
                packet.pull(ETHERNET)?;
            }
            let parts: Vec<&[u8]> = packet.segments().filter_map(|segment| segment.bytes()).collect();
            out.write(link_type, at, &parts, original.unwrap_or(packet.len()))?;
        }
        self.buffers.cache.put(packet);
        Ok(())
    }
}
