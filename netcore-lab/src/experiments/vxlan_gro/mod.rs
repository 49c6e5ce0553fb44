//! `vxlan-gro-82599`: receive offload of VXLAN on a NIC that says nothing about the inner packet.
//!
//! The rows come from a TCP flow (`flow.rs`). Beside them, an open loop: captured traffic of another flow, repeated at line rate,
//! into a receiver with the same costs.

mod flow;

use self::flow::{Measured, Rules};
use super::LabError;
use crate::experiment::{Experiment, Row, Series};
use crate::receiver::{Merging, Nic, Received, ReceiverCost, run as receive};
use crate::traffic::RepeatedFlow;
use netcore::{PacketPool, PoolConfig, TunnelPorts};
use netcore_offload::{Gro, GroConfig, GroConfigError};
use serde::Deserialize;
use std::time::Duration;

const NAME: &str = "vxlan-gro-82599";
const SCENARIO: &str = include_str!("../../../scenarios/vxlan-gro-82599.toml");
const CAPTURE: &[u8] = include_bytes!("../../../captures/gro_pair_wire.pcap");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    link: Link,
    nic: NicSettings,
    receiver: Receiver,
    flow: FlowSettings,
    run: Run,
    published: Published,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    rate_mbps: u64,
    framing_bytes: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NicSettings {
    ring: usize,
    budget: usize,
    interrupt_us: u64,
    truesize: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowSettings {
    profile: String,
    mtu: u16,
    write_bytes: u64,
    delay_ns: u64,
    warm_up_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Receiver {
    wire_ns: u64,
    delivered_ns: u64,
    outer_ns: u64,
    hz: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    unmerged_gbps: f64,
    merged_gbps: f64,
    aggregate_bytes: u32,
    unmerged_tolerance_percent: f64,
    merged_tolerance_percent: f64,
}

impl Scenario {
    fn parse(text: &str) -> Result<Self, LabError> {
        let scenario: Self =
            toml::from_str(text).map_err(|source| LabError::Scenario { name: NAME, source: Box::new(source) })?;
        let check = |setting, value: u64, range: std::ops::RangeInclusive<u64>, allowed| {
            if range.contains(&value) { Ok(()) } else { Err(LabError::Setting { name: NAME, setting, value, allowed }) }
        };
        check("link.rate_mbps", scenario.link.rate_mbps, 1..=400_000, "1 to 400000")?;
        check("nic.ring", scenario.nic.ring as u64, 1..=4096, "1 to 4096")?;
        check("nic.budget", scenario.nic.budget as u64, 1..=1024, "1 to 1024")?;
        check("receiver.hz", u64::from(scenario.receiver.hz), 1..=10_000, "1 to 10000")?;
        check("receiver.wire_ns", scenario.receiver.wire_ns, 1..=1_000_000, "1 to 1000000")?;
        check(
            "receiver.outer_ns",
            scenario.receiver.outer_ns,
            0..=scenario.receiver.delivered_ns,
            "0 to delivered_ns",
        )?;
        check("nic.truesize", scenario.nic.truesize as u64, 256..=65_536, "256 to 65536")?;
        check("flow.mtu", u64::from(scenario.flow.mtu), 576..=8950, "576 to 8950")?;
        check("flow.write_bytes", scenario.flow.write_bytes, 1..=1 << 24, "1 to 16777216")?;
        check("run.seconds", scenario.run.seconds, 1..=60, "1 to 60")?;
        Ok(scenario)
    }

    fn gro(&self, mut config: GroConfig) -> Result<Box<Gro>, GroConfigError> {
        config.tick = Duration::from_nanos(1_000_000_000 / u64::from(self.receiver.hz));
        Gro::new(config).map(Box::new)
    }

    /// Captured traffic at line rate instead of a flow.
    fn open_loop(&self, device: GroConfig) -> Result<Received, LabError> {
        let flow = RepeatedFlow::from_capture(CAPTURE, &TunnelPorts::default())?;
        let nic = Nic {
            ps_per_byte: 8_000_000 / self.link.rate_mbps,
            framing: self.link.framing_bytes,
            ring: self.nic.ring,
            budget: self.nic.budget,
            interrupt_ns: self.nic.interrupt_us * 1000,
        };
        let cost = ReceiverCost {
            wire_ns: self.receiver.wire_ns,
            delivered_ns: self.receiver.delivered_ns,
            outer_ns: self.receiver.outer_ns,
        };
        let merging = Merging::Device(self.gro(device)?);
        let pool = PacketPool::new(PoolConfig::with_buffers(self.nic.ring + 64 * (self.nic.budget + 64)))?;
        Ok(receive(flow, nic, cost, merging, self.run.seconds * 1_000_000_000, &mut pool.cache(), |_| ())?)
    }
}

/// The four ways of merging.
struct Flows {
    gate: Measured,
    checksum: Measured,
    today: Measured,
    cells: Measured,
}

impl Flows {
    fn measure(scenario: &Scenario, step: &mut dyn FnMut()) -> Result<Self, LabError> {
        let (old, new) = (GroConfig::linux_4_0, GroConfig::linux_current);
        let mut measure = |rules: Rules| {
            let measured = flow::measure(scenario, &rules);
            step();
            measured
        };
        Ok(Self {
            gate: measure(Rules::device(old()))?,
            checksum: measure(Rules { outer_checksum: true, ..Rules::device(old()) })?,
            today: measure(Rules::device(new()))?,
            cells: measure(Rules { cells: Some(old()), ..Rules::device(old()) })?,
        })
    }

    fn rows(&self, p: &Published) -> Vec<Row> {
        let (zero, on, tunnel) = ("zero outer checksum", "outer checksum on", "merging on the tunnel device");
        let (goodput, largest, factor) = ("goodput", "largest packet up", "wire packets per packet up");
        let gbps = |m: &Measured| m.received.gbps();
        let up = |m: &Measured| f64::from(m.received.largest());
        let (tight, wide) = (p.merged_tolerance_percent, p.unmerged_tolerance_percent);
        let aggregate = f64::from(p.aggregate_bytes);
        vec![
            Row::compared(zero, "4.0", goodput, "Gbit/s", p.unmerged_gbps, gbps(&self.gate), wide),
            Row::compared(zero, "4.0", largest, "bytes", 1398.0, up(&self.gate), 0.0),
            Row::ours_only(on, "4.0", goodput, "Gbit/s", gbps(&self.checksum)),
            Row::ours_only(on, "4.0", factor, "", self.checksum.received.factor()),
            Row::compared(zero, "current", goodput, "Gbit/s", p.merged_gbps, gbps(&self.today), tight),
            Row::compared(zero, "current", largest, "bytes", aggregate, up(&self.today), 0.0),
            Row::ours_only(zero, "current", factor, "", self.today.received.factor()),
            Row::ours_only(tunnel, "4.0 + cells", goodput, "Gbit/s", gbps(&self.cells)),
            Row::ours_only(tunnel, "4.0 + cells", factor, "", self.cells.received.factor()),
        ]
    }
}

/// Runs the experiment.
pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Experiment, LabError> {
    let scenario = Scenario::parse(SCENARIO)?;
    let mut done = 0.0;
    let mut step = || {
        done += 1.0;
        progress(done / 14.0);
    };
    let flows = Flows::measure(&scenario, &mut step)?;
    let rows = flows.rows(&scenario.published);
    let sensitivity = sensitivity(&scenario, &flows, &mut step)?;
    Ok(Experiment {
        name: NAME.into(),
        title: "One TCP flow between virtual machines over VXLAN and an 82599, which reports nothing about the inner packet"
            .into(),
        rows,
        sensitivity,
        series: vec![
            sizes("payload per packet up, current rules", &flows.today.received),
            sizes("payload per packet up, 4.0 with outer checksum", &flows.checksum.received),
            sizes("payload per packet up, cells", &flows.cells.received),
        ],
    })
}

/// How the figures move when an assumption moves; and what captured traffic at line rate gives instead of a flow.
fn sensitivity(scenario: &Scenario, flows: &Flows, step: &mut dyn FnMut()) -> Result<Vec<String>, LabError> {
    let (old, new) = (GroConfig::linux_4_0, GroConfig::linux_current);
    let mut vary = |rules: Rules, change: &dyn Fn(&mut Scenario)| -> Result<f64, LabError> {
        let mut scenario = scenario.clone();
        change(&mut scenario);
        let measured = flow::measure(&scenario, &rules)?;
        step();
        Ok(measured.received.gbps())
    };
    let today = || Rules::device(new());
    let cells = || Rules { cells: Some(old()), ..Rules::device(old()) };
    let wire = [vary(today(), &|s| s.receiver.wire_ns = 1098)?, vary(today(), &|s| s.receiver.wire_ns = 1342)?];
    let outer = [vary(cells(), &|s| s.receiver.outer_ns = 1020)?, vary(cells(), &|s| s.receiver.outer_ns = 3060)?];
    let hz_250 = vary(today(), &|s| s.receiver.hz = 250)?;
    let far = vary(today(), &|s| s.flow.delay_ns = 50_000)?;
    let large_ring = vary(today(), &|s| s.nic.ring = 4096)?;
    let mut open = |device| {
        let received = scenario.open_loop(device);
        step();
        received
    };
    let (open_gate, open_today) = (open(old())?, open(new())?);
    let (gate, today) = (&flows.gate, &flows.today);
    Ok(vec![
        format!("cost per wire packet -10 % / +10 %: {:.2} / {:.2} Gbit/s with today's rules", wire[0], wire[1]),
        format!(
            "a quarter / three quarters of the upper cost below the tunnel: {:.2} / {:.2} Gbit/s with cells",
            outer[0], outer[1]
        ),
        format!("HZ 250 instead of 1000 (everything held goes up after each poll of 64): {hz_250:.2} Gbit/s"),
        format!("50 µs instead of 5 µs one way: {far:.2} Gbit/s; a ring of 4096: {large_ring:.2} Gbit/s"),
        format!(
            "frames lost in the ring, with warm-up: {} without and {} with merging; segments sent again: {} and {}",
            gate.missed, today.missed, gate.retransmitted, today.retransmitted
        ),
        format!(
            "open loop, another sender's captured traffic at line rate (PSH on 36 of 718 segments): {:.2} and {:.2} Gbit/s",
            open_gate.gbps(),
            open_today.gbps()
        ),
    ])
}

/// How the payload bytes divide over packets of each size.
fn sizes(name: &str, received: &Received) -> Series {
    let points = received
        .sizes
        .iter()
        .map(|(size, count)| {
            let share = f64::from(*size) * *count as f64 / received.payload as f64 * 100.0;
            (f64::from(*size), share)
        })
        .collect();
    Series { name: name.into(), x: "payload per packet, bytes".into(), y: "share of all payload, %".into(), points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_come_out_of_the_flow() {
        let mut scenario = Scenario::parse(SCENARIO).unwrap();
        scenario.run.seconds = 1;
        scenario.flow.warm_up_ms = 200;
        let flows = Flows::measure(&scenario, &mut || ()).unwrap();
        let gbps = |m: &Measured| m.received.gbps();
        let (gate, checksum, cells, today) =
            (gbps(&flows.gate), gbps(&flows.checksum), gbps(&flows.cells), gbps(&flows.today));
        assert!(checksum > 3.0 * gate, "{checksum}: a blind card merges once the outer checksum is on");
        assert!(gate < cells && cells < today, "{gate} < {cells} < {today}");
        let rows = flows.rows(&scenario.published);
        assert!(rows.iter().all(|row| row.pass != Some(false)), "{rows:#?}");
        assert_eq!(flows.today.received.largest(), 46 * 1398);
    }

    #[test]
    fn the_open_loop_agrees_where_nothing_merges() {
        let received = Scenario::parse(SCENARIO).unwrap().open_loop(GroConfig::linux_4_0()).unwrap();
        assert!((received.gbps() - 2.11).abs() < 0.01, "{}", received.gbps());
    }

    #[test]
    fn a_wrong_scenario_names_the_line_or_the_setting() {
        let error = Scenario::parse("[link]\nrate_mbps = \"fast\"").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let error = Scenario::parse(&SCENARIO.replace("ring = 512", "ring = 0")).unwrap_err().to_string();
        assert!(error.contains("nic.ring is 0, allowed is 1 to 4096"), "{error}");
        assert!(Scenario::parse(&SCENARIO.replace("budget =", "buget =")).unwrap_err().to_string().contains("buget"));
    }
}
