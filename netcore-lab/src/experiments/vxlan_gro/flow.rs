//! The loop closed: one TCP flow between two virtual machines.
//!
//! ```text
//!   VM1 ─ bridge ─ vxlan0 ─ software GSO ─ 82599 ══ 10 Gbit/s ══ 82599 ─ device GRO ─ vxlan0 (cells) ─ bridge ─ VM2
//! ```
//!
//! Bridge, tap and guest are one with the connection: what they cost is the cost per packet delivered.

use super::Scenario;
use crate::engine::Lab;
use crate::experiments::LabError;
use crate::host::{Application, Bulk, Cost, Host, Interface};
use crate::net::{Link, LinkConfig};
use crate::nic::{Nic, NicConfig};
use crate::receiver::{Received, payload_len};
use crate::topology::{TopologyError, mac};
use crate::tunnel::{Vxlan, VxlanConfig, VxlanReceive};
use netcore::{Burst, Instant, PoolCache, Port, Rate, ReceiveOffload, Statistics};
use netcore_offload::{GroConfig, SoftwareSegmenter};
use netcore_tcp::{Config, LinkAddress, Path, Profile};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Which rules are in force.
#[derive(Clone)]
pub(super) struct Rules {
    /// Receive offload of the card.
    pub(super) device: GroConfig,
    /// Receive offload of the tunnel device.
    pub(super) cells: Option<GroConfig>,
    /// Outer UDP checksums are sent.
    pub(super) outer_checksum: bool,
}

impl Rules {
    /// Merging on the card alone, with zero outer checksums.
    pub(super) fn device(device: GroConfig) -> Self {
        Self { device, cells: None, outer_checksum: false }
    }
}

/// What the flow did.
pub(super) struct Measured {
    /// Payload, packets and sizes over the measured time.
    pub(super) received: Received,
    /// Segments retransmitted over the whole run.
    pub(super) retransmitted: u64,
    /// Frames lost because the receive ring was full.
    pub(super) missed: u64,
}

/// What goes up, by payload.
#[derive(Clone, Default)]
struct Sizes(Arc<Mutex<BTreeMap<u32, u64>>>);

/// A tunnel device whose deliveries are counted.
struct Counted {
    tunnel: VxlanReceive,
    sizes: Sizes,
}

impl Counted {
    fn count(&self, out: &Burst, from: usize) {
        let mut sizes = self.sizes.0.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in out.iter().skip(from) {
            *sizes.entry(payload_len(packet)).or_default() += 1;
        }
    }
}

impl ReceiveOffload for Counted {
    fn receive(&mut self, burst: &mut Burst, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        let from = out.len();
        self.tunnel.receive(burst, out, cache, now);
        self.count(out, from);
    }

    fn end_poll(&mut self, budget_exhausted: bool, out: &mut Burst, cache: &mut PoolCache, now: Instant) {
        let from = out.len();
        self.tunnel.end_poll(budget_exhausted, out, cache, now);
        self.count(out, from);
    }

    fn flush(&mut self, out: &mut Burst, cache: &mut PoolCache) {
        let from = out.len();
        self.tunnel.flush(out, cache);
        self.count(out, from);
    }

    fn held(&self) -> usize {
        self.tunnel.held()
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.tunnel.statistics(statistics);
    }
}

fn outer(host: u8) -> (netcore::MacAddress, Ipv4Addr) {
    (mac(host, 0), Ipv4Addr::new(10, 0, 0, host))
}

/// One side: the virtual machine, its host's devices and the cost of the processor it is pinned to.
fn side(
    scenario: &Scenario,
    rules: &Rules,
    lab: &Lab,
    tunnel: VxlanConfig,
    cost: Cost,
    outer_ns: u64,
    sizes: Sizes,
) -> Result<Host, LabError> {
    let rate = Rate::from_bits_per_sec(scenario.link.rate_mbps * 1_000_000);
    let mut config = NicConfig::new("int4", tunnel.local.0, rate);
    config.mtu = 9000;
    config.transmit_ring = scenario.nic.ring;
    config.receive_ring = scenario.nic.ring;
    config.budget = scenario.nic.budget;
    // No verdict on received packets: the hardware may report a zero UDP checksum as an error, so the driver says nothing.
    // What is sent is cut and summed in software anyway, because the card does neither inside a tunnel.
    config.checksums = false;
    config.moderation.interval = Duration::from_micros(scenario.nic.interrupt_us);
    config.receive_truesize = Some(scenario.nic.truesize);
    let cache = || lab.pool().cache();
    let (nic, driver) = Nic::shared(config, cache());
    let port = Port::builder(driver, cache()).segmenter(Box::new(SoftwareSegmenter::new())).build();
    let vxlan = Vxlan::new(tunnel, Box::new(port), cache());
    let mut receive = VxlanReceive::new(tunnel);
    if let Some(cells) = &rules.cells {
        receive = receive.with_cells(scenario.gro(cells.clone())?);
    }
    let mut device = rules.device.clone();
    device.vxlan_ports = vec![tunnel.port];
    let interface = Interface::new(nic)
        .with_offload(scenario.gro(device)?)
        .with_tunnel(Box::new(Counted { tunnel: receive, sizes }), outer_ns);
    Ok(Host::new("vm", Box::new(vxlan), vec![interface], cost))
}

/// Runs one flow and measures it after the warm-up.
pub(super) fn measure(scenario: &Scenario, rules: &Rules) -> Result<Measured, LabError> {
    let mut lab = Lab::new(1, 40_000)?;
    let tunnel = VxlanConfig {
        vni: 1,
        port: 8472,
        local: outer(1),
        remote: outer(2),
        ttl: 64,
        udp_checksum: rules.outer_checksum,
    };
    let receiver = &scenario.receiver;
    let cost =
        Cost { wire_ns: receiver.wire_ns, delivered_ns: receiver.delivered_ns - receiver.outer_ns, ..Cost::default() };
    let sizes = Sizes::default();
    let left = side(scenario, rules, &lab, tunnel, Cost::default(), 0, Sizes::default())?;
    let right = side(scenario, rules, &lab, tunnel.reversed(), cost, receiver.outer_ns, sizes.clone())?;
    let (left, right) = (lab.add(left), lab.add(right));
    let rate = Rate::from_bits_per_sec(scenario.link.rate_mbps * 1_000_000);
    let overhead = scenario.link.framing_bytes as u32;
    let delay = Duration::from_nanos(scenario.flow.delay_ns);
    let link = LinkConfig { rate: Some(rate), delay, overhead, ..LinkConfig::default() };
    let link = lab.add(Link::new(link, 1));
    lab.connect((left, 0), (link, 0)).map_err(TopologyError::from)?;
    lab.connect((link, 1), (right, 0)).map_err(TopologyError::from)?;

    let profile = Profile::by_name(&scenario.flow.profile)?;
    let config = Config::new(profile);
    let guests = LinkAddress { local: mac(1, 9), remote: mac(2, 9), vlan: None };
    let address = |host, port| SocketAddr::new(Ipv4Addr::new(192, 168, 0, host).into(), port);
    let path = Path::new(guests, address(1, 40_000), address(2, 5001)).with_mtu(scenario.flow.mtu);
    let lost = || LabError::Broken("a host of vxlan-gro-82599 is gone");
    let host = lab.get_mut::<Host>(right).ok_or_else(lost)?;
    let sink = host.listen(config.clone(), path.reversed(), 2, Application::Sink)?;
    let host = lab.get_mut::<Host>(left).ok_or_else(lost)?;
    let bulk = Bulk { write_size: scenario.flow.write_bytes, ..Bulk::default() };
    let source = host.connect(config, path, 1, Instant::from_millis(1), Application::Bulk(bulk))?;

    let warm = Instant::from_millis(1 + scenario.flow.warm_up_ms);
    lab.run_until(warm);
    let taken = |lab: &Lab| {
        let host = lab.get::<Host>(right)?;
        let info = host.flow(sink)?.endpoint()?.info();
        Some((info.bytes_received, host.counters().wire_packets, host.counters().delivered))
    };
    let before = taken(&lab).ok_or_else(lost)?;
    sizes.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    lab.run_until(warm + Duration::from_secs(scenario.run.seconds));
    let after = taken(&lab).ok_or_else(lost)?;
    let sender = lab.get::<Host>(left).and_then(|host| host.flow(source)).and_then(|flow| flow.endpoint());
    let missed =
        lab.get::<Host>(right).and_then(|host| host.nic(0)).map(|nic| crate::nic::lock(nic).counters().rx_missed);
    let sizes = sizes.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Measured {
        received: Received {
            elapsed_ns: scenario.run.seconds * 1_000_000_000,
            payload: after.0 - before.0,
            wire_packets: after.1 - before.1,
            delivered: after.2 - before.2,
            sizes,
        },
        retransmitted: sender.ok_or_else(lost)?.counters().retrans_segs,
        missed: missed.unwrap_or(0),
    })
}
