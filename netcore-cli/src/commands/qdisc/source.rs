//! What arrives at the qdisc.

use anyhow::{Context, bail, ensure};
use netcore::{FlowKey, Instant, Packet, PacketPool, PoolCache, PoolConfig, Rate, TunnelPorts, dissect};
use netcore_qdisc::tc;
use std::collections::HashMap;
use std::path::Path;

/// A packet that arrives.
pub(super) struct Arrival {
    pub(super) time: u64,
    pub(super) flow: u16,
    /// Bytes at its front that are real.
    head: Vec<u8>,
    len: u32,
    pacing: Option<Rate>,
    priority: u32,
    socket: bool,
}

/// All arrivals by rising time, and what makes packets of them.
pub(super) struct Source {
    pub(super) arrivals: Vec<Arrival>,
    pub(super) flows: Vec<String>,
    pub(super) damaged: Option<String>,
    cache: PoolCache,
}

impl Source {
    fn new(arrivals: Vec<Arrival>, flows: Vec<String>, damaged: Option<String>) -> anyhow::Result<Self> {
        let windows = 2 * arrivals.len() + 1024;
        let buffers = arrivals.len() + 1024;
        let config = PoolConfig { windows, buffer_size: 512, ..PoolConfig::with_buffers(buffers) };
        Ok(Self { arrivals, flows, damaged, cache: PacketPool::new(config)?.cache() })
    }

    /// The packet of an arrival: headers as captured, the rest zeros of the right length.
    pub(super) fn packet(&mut self, n: usize) -> anyhow::Result<Packet> {
        let a = &self.arrivals[n];
        let mut packet = match a.head.as_slice() {
            [] => self.cache.virtual_bytes(a.len as usize)?,
            head => self.cache.copy_from_slice(head)?,
        };
        let rest = (a.len as usize).saturating_sub(packet.len());
        if rest > 0 {
            let tail = self.cache.virtual_bytes(rest)?;
            if packet.append(tail).is_err() {
                bail!("packet {n} takes too much memory");
            }
        }
        packet.set_flow_id(a.socket.then_some(u64::from(a.flow)));
        packet.set_queue(Some(a.flow));
        packet.set_timestamp(Some(Instant::from_nanos(a.time)));
        packet.set_pacing_rate(a.pacing);
        packet.set_priority(a.priority);
        Ok(packet)
    }

    /// Gives a packet's memory back.
    pub(super) fn release(&mut self, packet: Packet) {
        self.cache.put(packet);
    }
}

/// The packets of a capture, at the times they were captured.
pub(super) fn capture(path: &Path, forwarded: bool) -> anyhow::Result<Source> {
    let mut capture = crate::commands::capture::open(path)?;
    let (mut arrivals, mut names) = (Vec::new(), Vec::new());
    let mut flows: HashMap<Option<FlowKey>, u16> = HashMap::new();
    let (mut first, mut last) = (None, 0);
    while let Some(record) = capture.next().with_context(|| format!("{}", path.display()))? {
        let stamp = record.timestamp.map_or(last, Instant::as_nanos);
        // Qdiscs start at time zero; records out of order arrive when the one before did.
        last = last.max(stamp.saturating_sub(*first.get_or_insert(stamp)));
        let head = &record.bytes[..record.bytes.len().min(256)];
        let key = FlowKey::of(head, &dissect(head, &TunnelPorts::default()));
        let next = flows.len();
        let flow = match flows.get(&key) {
            Some(&flow) => flow,
            None => {
                ensure!(next <= usize::from(u16::MAX), "the capture has more than 65536 flows");
                names.push(key.map_or_else(|| "not IP".into(), |key| key.to_string()));
                flows.insert(key, next as u16);
                next as u16
            }
        };
        arrivals.push(Arrival {
            time: last,
            flow,
            head: head.to_vec(),
            len: record.original_len.max(head.len() as u32),
            pacing: None,
            priority: 0,
            socket: !forwarded,
        });
    }
    let damaged = capture.damage().map(ToString::to_string);
    Source::new(arrivals, names, damaged)
}

/// Flows of packets at even distances.
pub(super) fn synthetic(flows: &[String], time: &str) -> anyhow::Result<Source> {
    const MOST: u64 = 10_000_000;
    let Some(time) = tc::parse_time(time) else { bail!("--time {time} is no time; a time is such as 1s or 500ms") };
    ensure!(flows.len() <= usize::from(u16::MAX), "more than 65535 flows");
    let end = time.as_nanos() as u64;
    let mut arrivals = Vec::new();
    for (n, text) in flows.iter().enumerate() {
        let flow = Flow::parse(text).with_context(|| format!("--flow {text}"))?;
        let step = flow
            .rate
            .nanos_for(u64::from(flow.len) * flow.packets)
            .filter(|&ns| ns > 0)
            .with_context(|| format!("--flow {text}: the rate is zero or too high"))?;
        let bursts = end.saturating_sub(flow.start) / step;
        ensure!(bursts * flow.packets + arrivals.len() as u64 <= MOST, "more than {MOST} packets");
        for at in (flow.start..end).step_by(step as usize) {
            for _ in 0..flow.packets {
                arrivals.push(Arrival {
                    time: at,
                    flow: n as u16,
                    head: Vec::new(),
                    len: flow.len,
                    pacing: flow.pacing,
                    priority: flow.priority,
                    socket: true,
                });
            }
        }
    }
    arrivals.sort_by_key(|a| a.time);
    Source::new(arrivals, flows.to_vec(), None)
}

struct Flow {
    len: u32,
    rate: Rate,
    packets: u64,
    pacing: Option<Rate>,
    priority: u32,
    start: u64,
}

impl Flow {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut flow = Self {
            len: 1514,
            rate: Rate::from_bits_per_sec(10_000_000),
            packets: 1,
            pacing: None,
            priority: 0,
            start: 0,
        };
        for pair in text.split(',') {
            let (key, value) = pair.split_once('=').with_context(|| format!("\"{pair}\" is not KEY=VALUE"))?;
            let wrong = |what: &str| format!("{key}: \"{value}\" is no {what}");
            match key {
                "len" => {
                    let len = tc::parse_size(value).filter(|len| (1..=1 << 20).contains(len));
                    flow.len = len.with_context(|| wrong("size from 1 to 1mb"))?;
                }
                "rate" => flow.rate = tc::parse_rate64(value).with_context(|| wrong("rate"))?,
                "packets" => {
                    let packets = tc::parse_u32(value).filter(|n| (1..=100_000).contains(n));
                    flow.packets = packets.with_context(|| wrong("number from 1 to 100000"))?.into();
                }
                "pacing" => flow.pacing = Some(tc::parse_rate64(value).with_context(|| wrong("rate"))?),
                "prio" => {
                    flow.priority =
                        tc::parse_u32(value).filter(|&p| p <= 15).with_context(|| wrong("priority from 0 to 15"))?;
                }
                "start" => flow.start = tc::parse_time(value).with_context(|| wrong("time"))?.as_nanos() as u64,
                _ => bail!("no key \"{key}\"; there are len, rate, packets, pacing, prio, start"),
            }
        }
        Ok(flow)
    }
}
