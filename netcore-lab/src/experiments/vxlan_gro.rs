//! `vxlan-gro-82599`: receive offload of VXLAN on a NIC that says nothing about the inner packet.
//!
//! Open loop: captured traffic of one flow, repeated at line rate, into a receiver with the costs of the scenario file.

use super::LabError;
use crate::experiment::{Experiment, Row, Series};
use crate::receiver::{Merging, Nic, Received, ReceiverCost, fill_outer_checksum, run as receive};
use crate::traffic::RepeatedFlow;
use netcore::{PacketPool, PoolConfig, TunnelPorts};
use netcore_offload::{Gro, GroConfig, GroConfigError};
use serde::Deserialize;
use std::time::Duration;

const NAME: &str = "vxlan-gro-82599";
const SCENARIO: &str = include_str!("../../scenarios/vxlan-gro-82599.toml");
const CAPTURE: &[u8] = include_bytes!("../../captures/gro_pair_wire.pcap");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    link: Link,
    nic: NicSettings,
    receiver: Receiver,
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
    drop_psh: bool,
    only_full: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    unmerged_gbps: f64,
    merged_gbps: f64,
    aggregate_bytes: u32,
    tolerance_percent: f64,
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
        check("run.seconds", scenario.run.seconds, 1..=60, "1 to 60")?;
        Ok(scenario)
    }

    fn gro(&self, mut config: GroConfig) -> Result<Box<Gro>, GroConfigError> {
        config.tick = Duration::from_nanos(1_000_000_000 / u64::from(self.receiver.hz));
        Gro::new(config).map(Box::new)
    }

    /// One run: `device` merges on the NIC, `cell` on the tunnel device if given.
    fn measure(&self, device: GroConfig, cell: Option<GroConfig>, outer_checksum: bool) -> Result<Received, LabError> {
        let mut flow = RepeatedFlow::from_capture(CAPTURE, &TunnelPorts::default())?;
        if self.run.drop_psh {
            flow = flow.without_psh();
        }
        if self.run.only_full {
            flow = flow.only_full();
        }
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
        let merging = match cell {
            None => Merging::Device(self.gro(device)?),
            Some(cell) => Merging::Tunnel { device: self.gro(device)?, cell: self.gro(cell)? },
        };
        let buffers = self.nic.ring + 64 * (self.nic.budget + 64);
        let pool = PacketPool::new(PoolConfig::with_buffers(buffers))?;
        let prepare = |frame: &mut [u8]| {
            if outer_checksum {
                fill_outer_checksum(frame);
            }
        };
        Ok(receive(flow, nic, cost, merging, self.run.seconds * 1_000_000_000, &mut pool.cache(), prepare)?)
    }
}

/// Runs the experiment.
pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Experiment, LabError> {
    let scenario = Scenario::parse(SCENARIO)?;
    let old = GroConfig::linux_4_0;
    let new = GroConfig::linux_current;
    let mut done = 0.0;
    let mut step = || {
        done += 1.0;
        progress(done / 12.0);
    };
    let mut measure = |s: &Scenario, device, cell, checksum| {
        let received = s.measure(device, cell, checksum);
        step();
        received
    };
    let gate = measure(&scenario, old(), None, false)?;
    let checksum = measure(&scenario, old(), None, true)?;
    let today = measure(&scenario, new(), None, false)?;
    let tunnel = measure(&scenario, old(), Some(old()), false)?;
    let p = &scenario.published;
    let rows = vec![
        Row::compared(
            "zero outer checksum",
            "4.0",
            "goodput",
            "Gbit/s",
            p.unmerged_gbps,
            gate.gbps(),
            p.tolerance_percent,
        ),
        Row::compared(
            "zero outer checksum",
            "4.0",
            "largest packet up",
            "bytes",
            1398.0,
            f64::from(gate.largest()),
            0.0,
        ),
        Row::ours_only("outer checksum on", "4.0", "goodput", "Gbit/s", checksum.gbps()),
        Row::ours_only("outer checksum on", "4.0", "wire packets per packet up", "", checksum.factor()),
        Row::compared(
            "zero outer checksum",
            "current",
            "goodput",
            "Gbit/s",
            p.merged_gbps,
            today.gbps(),
            p.tolerance_percent,
        ),
        Row::compared(
            "zero outer checksum",
            "current",
            "largest packet up",
            "bytes",
            f64::from(p.aggregate_bytes),
            f64::from(today.largest()),
            0.0,
        ),
        Row::ours_only("zero outer checksum", "current", "wire packets per packet up", "", today.factor()),
        Row::ours_only("merging on the tunnel device", "4.0 + cells", "goodput", "Gbit/s", tunnel.gbps()),
        Row::ours_only(
            "merging on the tunnel device",
            "4.0 + cells",
            "wire packets per packet up",
            "",
            tunnel.factor(),
        ),
    ];

    let mut vary = |change: &dyn Fn(&mut Scenario), cells: bool| -> Result<f64, LabError> {
        let mut scenario = scenario.clone();
        change(&mut scenario);
        Ok(measure(&scenario, if cells { old() } else { new() }, cells.then(old), false)?.gbps())
    };
    let no_psh = vary(&|s| s.run.drop_psh = true, false)?;
    let full = vary(
        &|s| {
            s.run.drop_psh = true;
            s.run.only_full = true;
        },
        false,
    )?;
    let hz_250 = vary(&|s| s.receiver.hz = 250, false)?;
    let wire = [vary(&|s| s.receiver.wire_ns = 1098, false)?, vary(&|s| s.receiver.wire_ns = 1342, false)?];
    let outer = [vary(&|s| s.receiver.outer_ns = 1020, true)?, vary(&|s| s.receiver.outer_ns = 3060, true)?];
    let sensitivity = vec![
        format!("full segments without PSH, as in the report's capture: {full:.2} Gbit/s with today's rules"),
        format!(
            "PSH cleared only: {no_psh:.2} Gbit/s (the 1228 bytes left of each 64 KiB write are an aggregate of their own)"
        ),
        format!("HZ 250 instead of 1000 (everything held goes up after each poll of 64): {hz_250:.2} Gbit/s"),
        format!("cost per wire packet -10 % / +10 %: {:.2} / {:.2} Gbit/s with today's rules", wire[0], wire[1]),
        format!(
            "a quarter / three quarters of the upper cost below the tunnel: {:.2} / {:.2} Gbit/s with cells",
            outer[0], outer[1]
        ),
    ];

    progress(1.0);
    Ok(Experiment {
        name: NAME.into(),
        title: "One TCP flow over VXLAN into an 82599, which reports nothing about the inner packet".into(),
        rows,
        sensitivity,
        series: vec![
            sizes("payload per packet up, current rules", &today),
            sizes("payload per packet up, 4.0 with outer checksum", &checksum),
            sizes("payload per packet up, cells", &tunnel),
        ],
    })
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
    fn the_figures_come_out_of_the_mechanism() {
        let experiment = run(&mut |_| ()).unwrap();
        let ours = |label: &str, profile: &str, metric: &str| {
            experiment
                .rows
                .iter()
                .find(|r| r.label == label && r.profile == profile && r.metric == metric)
                .unwrap()
                .ours
        };
        let gate = ours("zero outer checksum", "4.0", "goodput");
        let checksum = ours("outer checksum on", "4.0", "goodput");
        let today = ours("zero outer checksum", "current", "goodput");
        let cells = ours("merging on the tunnel device", "4.0 + cells", "goodput");
        assert!((gate - 2.11).abs() < 0.01, "{gate}");
        assert!(checksum > 3.0 * gate, "{checksum}: a blind NIC merges once the outer checksum is on");
        assert!(gate < cells && cells < today, "{gate} < {cells} < {today}");
        assert_eq!(ours("zero outer checksum", "current", "largest packet up"), 64308.0);
        assert!(experiment.passed(), "{:#?}", experiment.rows);
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
