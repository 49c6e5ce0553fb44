//! One run of the experiment.

use super::{LabError, Scenario};
use crate::engine::Lab;
use crate::host::{Application, Bulk, Host};
use crate::net::{Link, LinkConfig};
use crate::nic::NicConfig;
use crate::topology::{Side, mac, path};
use netcore::{Fifo, FifoLimit, Instant, Rate};
use netcore_cc::profile::Exit;
use netcore_tcp::{Config, Profile};
use std::time::Duration;

/// Socket buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Buffers {
    /// Autotuned.
    Auto,
    /// Set by the application, bytes.
    Fixed(u64),
}

/// What ends slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slowstart {
    /// The era's HyStart.
    Hystart,
    /// HyStart++ (RFC 9406).
    HystartPlusPlus,
    /// Loss alone.
    Off,
}

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Case {
    pub(super) profile: &'static str,
    pub(super) rtt_us: u64,
    pub(super) buffers: Buffers,
    pub(super) slow_start: Slowstart,
}

impl Case {
    pub(super) fn label(&self) -> String {
        let buffers = match self.buffers {
            Buffers::Auto => "autotuned".into(),
            Buffers::Fixed(bytes) => format!("{} MB", bytes / 1_000_000),
        };
        let slow_start = match self.slow_start {
            Slowstart::Hystart => "HyStart",
            Slowstart::HystartPlusPlus => "HyStart++",
            Slowstart::Off => "no HyStart",
        };
        format!("{} ms, {buffers}, {slow_start}", self.rtt_us / 1000)
    }
}

/// What one run showed.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Mbit/s over the whole transfer.
    pub(super) average: f64,
    /// Mbit/s of each whole second of the receiver's clock.
    pub(super) steps: Vec<f64>,
    /// Segments retransmitted.
    pub(super) retransmitted: u64,
    /// The longest time during which every tenth of a second had less than [`COLLAPSED`], seconds.
    pub(super) collapsed: f64,
    /// Slow start threshold once slow start was left, segments.
    pub(super) ssthresh: Option<u32>,
}

/// Mbit/s below which a flow counts as collapsed.
const COLLAPSED: f64 = 1200.0;
/// Steps in which that is looked at, per second.
const FINE_STEPS: u64 = 10;

/// Longest run, seconds of virtual time.
const LIMIT: u64 = 60;

fn profile(s: &Scenario, case: Case) -> Result<Profile, LabError> {
    let mut profile = Profile::by_name(case.profile)?;
    profile.timestamps = s.host.timestamps;
    profile.rmem.default = s.host.rmem_default;
    profile.rmem.max = s.host.rmem_max;
    profile.wmem.max = s.host.wmem_max;
    profile.congestion = profile.congestion.with_hz(s.host.hz).map_err(netcore_tcp::ConfigError::from)?;
    match case.slow_start {
        Slowstart::Hystart => {}
        Slowstart::HystartPlusPlus => profile.congestion = profile.congestion.with_exit(Exit::HyStartPlusPlus),
        Slowstart::Off => profile.congestion.hystart.enabled = false,
    }
    Ok(profile)
}

/// Runs `case`, the connection starting `phase` of `scenario.run.phases` parts of a tick after a tick.
pub(super) fn run(s: &Scenario, case: Case, phase: u32) -> Result<Outcome, LabError> {
    let mut config = Config::new(profile(s, case)?);
    if let Buffers::Fixed(bytes) = case.buffers {
        // The kernel doubles what an application asks for.
        config.sndbuf = Some(2 * bytes);
        config.rcvbuf = Some(2 * bytes);
    }
    // A window of data on the way, its acknowledgements, what waits in rings and qdisc.
    let mut lab = Lab::new(u64::from(phase) + 1, 150_000)?;
    let rate = Rate::from_bits_per_sec(s.path.rate_mbps * 1_000_000);
    let side = |host| {
        let mut nic = NicConfig::new("eth0", mac(host, 0), rate);
        nic.mtu = usize::from(s.path.mtu);
        nic.receive_ring = s.host.receive_ring;
        nic.receive_truesize = Some(s.host.receive_truesize);
        nic.moderation.transmit_delay = Duration::from_micros(100);
        nic.moderation.interval = Duration::from_micros(s.host.interrupt_interval_us);
        let mut side = Side::new(nic);
        // The start shows an ACK for each segment: nothing was merged.
        side.gro = None;
        side.byte_queue_limits = case.profile == "linux-current";
        side.qdisc = Some(Box::new(Fifo::new(FifoLimit::Packets(s.path.txqueuelen as usize))));
        side
    };
    let far_away = case.rtt_us > s.path.long_from_us;
    let (left, right) = (side(1).build(&mut lab, "left")?, side(2).build(&mut lab, "right")?);
    let (left, right) = (lab.add(left), lab.add(right));
    let link = LinkConfig {
        rate: Some(rate),
        delay: Duration::from_nanos(case.rtt_us * 500),
        overhead: s.path.overhead_bytes,
        jitter: Duration::from_micros(s.path.jitter_us),
        ..LinkConfig::default()
    };
    if far_away {
        // The sender's own link, and behind it the network, which is narrower.
        let near = LinkConfig { delay: link.delay / 2, ..link };
        let network =
            LinkConfig { overhead: s.path.long_overhead_bytes, limit_bytes: Some(s.path.long_queue_bytes), ..near };
        let seed = lab.derive_seed();
        let near = lab.add(Link::new(near, seed));
        let seed = lab.derive_seed();
        let network = lab.add(Link::new(network, seed));
        lab.connect((left, 0), (near, 0))?;
        lab.connect((near, 1), (network, 0))?;
        lab.connect((network, 1), (right, 0))?;
    } else {
        let seed = lab.derive_seed();
        let link = lab.add(Link::new(link, seed));
        lab.connect((left, 0), (link, 0))?;
        lab.connect((link, 1), (right, 0))?;
    }
    let path = path(1, 2, 0, s.path.mtu);
    let tick_ns = 1_000_000_000 / u64::from(s.host.hz);
    let start = Instant::from_secs(400).plus_nanos(tick_ns * u64::from(phase) / u64::from(s.run.phases.max(1)));
    let bulk = Bulk { bytes: Some(s.run.bytes), ..Bulk::default() };
    let missing = || LabError::Broken("a host is missing");
    let receiver = lab.get_mut::<Host>(right).ok_or_else(missing)?;
    let sink = receiver.listen(config.clone(), path.reversed(), 2, Application::Sink)?;
    let sender = lab.get_mut::<Host>(left).ok_or_else(missing)?;
    let source = sender.connect(config, path, 1, start, Application::Bulk(bulk))?;
    // The receiver's clock starts with the first data.
    let step = Duration::from_millis(1);
    let mut at = start;
    let first = loop {
        at += step;
        lab.run_until(at);
        let flow = lab.get::<Host>(right).and_then(|host| host.flow(sink)).ok_or_else(missing)?;
        if let Some(first) = flow.first_data() {
            break first;
        }
        if at > start + Duration::from_secs(LIMIT) {
            return Err(LabError::Broken("no data arrived"));
        }
    };
    let (mut steps, mut last, mut last_fine) = (Vec::new(), 0, 0);
    let (mut collapsed, mut longest) = (0, 0);
    for fine in 1..=LIMIT * FINE_STEPS {
        lab.run_until(first + Duration::from_millis(fine * 1000 / FINE_STEPS));
        let flow = lab.get::<Host>(right).and_then(|host| host.flow(sink)).ok_or_else(missing)?;
        let received = flow.endpoint().map_or(0, |endpoint| endpoint.info().bytes_received);
        let mbps = (received - last_fine) as f64 * 8.0 * FINE_STEPS as f64 / 1e6;
        last_fine = received;
        // The first second is slow start, not a collapse.
        collapsed = if fine > FINE_STEPS && mbps < COLLAPSED { collapsed + 1 } else { 0 };
        if let Some(finished) = flow.finished() {
            let seconds = finished.nanos_since(first) as f64 / 1e9;
            let sender = lab.get::<Host>(left).and_then(|host| host.flow(source)).ok_or_else(missing)?;
            let counters = sender.endpoint().map(|endpoint| endpoint.counters()).unwrap_or_default();
            return Ok(Outcome {
                average: received as f64 * 8.0 / seconds / 1e6,
                steps,
                retransmitted: counters.retrans_segs,
                collapsed: longest as f64 / FINE_STEPS as f64,
                ssthresh: sender.endpoint().and_then(|endpoint| endpoint.info().ssthresh),
            });
        }
        longest = longest.max(collapsed);
        if fine % FINE_STEPS == 0 {
            steps.push((received - last) as f64 * 8.0 / 1e6);
            last = received;
        }
    }
    Err(LabError::Broken("the transfer did not end within a minute"))
}
