//! fq: a flow per socket, served in turns of one quantum, each paced (Linux: `net/sched/sch_fq.c`).
//!
//! ```text
//!            ┌ fast path: one internal queue, first of all ─────────────┐
//!  enqueue ──┤                                                          ├─► dequeue
//!            └ flow ─► band: new list, old list (deficit round robin) ──┘
//!                 ▲                      │ not yet due
//!                 └──── timing wheel ◄───┘
//! ```

mod classify;
mod counters;
mod flow;
mod options;
mod rules;
mod schedule;
mod wheel;
mod words;

pub use counters::FqCounters;
pub use options::{BANDS, FqOptions, HorizonPolicy};
pub use rules::FqRules;

use crate::packets::{Entering, FlowQueue, Packets};
use crate::wire::wire_len;
use alloc::string::{String, ToString};
use core::time::Duration;
use flow::{Flows, Place};
use netcore::{Dequeue, DropReason, Drops, Instant, Packet, Qdisc, QdiscError, QdiscStatistics, Statistics};
use schedule::Band;
use wheel::Wheel;

const NAME: &str = "fq";

/// Fair queueing with pacing. See the [module](self).
#[derive(Debug)]
pub struct Fq {
    options: FqOptions,
    rules: FqRules,
    /// Most that a device allows `offload_horizon` to be.
    device_horizon: Duration,
    ns: Nanoseconds,
    /// Latest time seen.
    now: u64,
    flows: Flows,
    packets: Packets,
    internal: FlowQueue,
    internal_len: u32,
    bands: [Band; BANDS],
    band: usize,
    wheel: Wheel,
    len: usize,
    backlog: usize,
    statistics: QdiscStatistics,
    counters: FqCounters,
}

/// Options as the packet path uses them.
#[derive(Clone, Copy, Debug)]
struct Nanoseconds {
    refill_delay: u64,
    ce_threshold: u64,
    horizon: u64,
    offload_horizon: u64,
    /// `maxrate` in bytes per second, `u64::MAX` if there is none.
    maxrate: u64,
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Nanoseconds {
    fn of(options: &FqOptions) -> Self {
        Self {
            refill_delay: nanos(options.refill_delay),
            ce_threshold: options.ce_threshold.map_or(u64::MAX, nanos),
            horizon: nanos(options.horizon),
            offload_horizon: nanos(options.offload_horizon),
            maxrate: options.maxrate.map_or(u64::MAX, |rate| rate.bytes_per_sec()),
        }
    }
}

impl Fq {
    /// fq with the default rules.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`] if an option is out of range.
    pub fn new(options: FqOptions) -> Result<Self, QdiscError> {
        Self::with_rules(options, FqRules::default(), Duration::ZERO)
    }

    /// fq of some era, for a device that allows an `offload_horizon` of up to `device_horizon`.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`] if an option is out of range.
    pub fn with_rules(options: FqOptions, rules: FqRules, device_horizon: Duration) -> Result<Self, QdiscError> {
        let options = checked(options, device_horizon)?;
        Ok(Self {
            options,
            rules,
            device_horizon,
            ns: Nanoseconds::of(&options),
            now: 0,
            flows: Flows::new(options.buckets),
            packets: Packets::new(),
            internal: FlowQueue::new(),
            internal_len: 0,
            bands: options.weights.map(Band::new),
            band: 0,
            wheel: Wheel::new(),
            len: 0,
            backlog: 0,
            statistics: QdiscStatistics::default(),
            counters: FqCounters::default(),
        })
    }

    /// fq with options in `tc` syntax, for an MTU of 1500.
    ///
    /// # Errors
    /// [`QdiscError`].
    pub fn from_words(words: &[&str]) -> Result<Self, QdiscError> {
        Self::new(FqOptions::default().with_words(words)?)
    }

    /// The options.
    pub fn config(&self) -> &FqOptions {
        &self.options
    }

    /// Replaces all options; packets stay queued unless `limit` is now below their number.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`]; nothing was changed.
    pub fn set_config(&mut self, options: FqOptions, now: Instant, drops: &mut Drops) -> Result<(), QdiscError> {
        let options = checked(options, self.device_horizon)?;
        self.now = self.now.max(now.as_nanos());
        let horizon_before = self.ns.offload_horizon;
        self.options = options;
        self.ns = Nanoseconds::of(&options);
        for (band, weight) in self.bands.iter_mut().zip(options.weights) {
            band.weight = i64::from(weight);
        }
        self.flows.reserve(options.buckets);
        if self.ns.offload_horizon < horizon_before {
            // The wheel's time may be ahead of what is due now; flows that are throttled next may be due before it.
            for entry in self.wheel.drain(self.now) {
                self.wheel.insert(wheel::Entry { time: entry.time.max(self.now), ..entry });
            }
        }
        while self.len > options.limit as usize {
            let Some((packet, _)) = self.next_packet() else { break };
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Reset);
        }
        Ok(())
    }

    /// fq's own counters.
    pub fn counters(&self) -> FqCounters {
        let next = self.wheel.earliest();
        let slack = nanos(self.options.timer_slack);
        FqCounters {
            flows: self.flows.count(),
            next_packet_delay: next.map(|t| Duration::from_nanos(t.saturating_add(slack).saturating_sub(self.now))),
            band_packets: core::array::from_fn(|n| self.bands[n].packets),
            ..self.counters
        }
    }

    /// How much later than [`Dequeue::Throttled`] says the caller may come back.
    pub fn timer_slack(&self) -> Duration {
        self.options.timer_slack
    }

    /// Counts what was throttled and is not any more.
    fn leave_wheel(&mut self, flow: u32) {
        self.counters.throttled_flows -= 1;
        let f = self.flows.get_mut(flow);
        f.mark = f.mark.wrapping_add(1);
        let band = f.band;
        self.list_old(flow, band);
    }

    /// Takes a packet that was accepted.
    fn accept(&mut self, packet: Packet, flow: Option<u32>, entering: Entering) {
        self.len += 1;
        self.backlog += entering.len as usize;
        match flow {
            None => {
                self.internal_len += 1;
                self.packets.push(&mut self.internal, packet, entering);
            }
            Some(flow) => {
                let f = self.flows.get_mut(flow);
                f.len += 1;
                self.packets.push(&mut f.queue, packet, entering);
            }
        }
    }

    fn drop_packet(&mut self, packet: Packet, reason: DropReason, drops: &mut Drops) {
        self.statistics.drops += 1;
        drops.push(packet, reason);
    }
}

fn checked(options: FqOptions, device_horizon: Duration) -> Result<FqOptions, QdiscError> {
    let options = options.validated()?;
    if options.offload_horizon > device_horizon {
        return Err(QdiscError::InvalidValue {
            qdisc: NAME,
            option: "offload_horizon".to_string(),
            value: crate::tc::time(options.offload_horizon),
            allowed: "up to what the device can pace itself, 0 if it cannot",
        });
    }
    Ok(options)
}

impl Qdisc for Fq {
    fn enqueue(&mut self, mut packet: Packet, now: Instant, drops: &mut Drops) {
        self.now = self.now.max(now.as_nanos());
        let now = self.now;
        let band = match self.rules.bands {
            true => self.options.priomap[(packet.priority() & 15) as usize],
            false => 0,
        };
        let in_band = match self.rules.bands {
            true => self.bands[usize::from(band)].packets as usize,
            false => self.len,
        };
        if in_band >= self.options.limit as usize {
            self.counters.band_drops[usize::from(band)] += 1;
            return self.drop_packet(packet, DropReason::BandLimit, drops);
        }
        // As in Linux, where 0 is "no time", a stamp of 0 is none.
        let stamp = packet.departure().map(Instant::as_nanos).filter(|&t| t != 0 && self.rules.departure_times);
        let mut time = now;
        if let Some(stamp) = stamp {
            let horizon = now.saturating_add(self.ns.horizon);
            time = stamp;
            if stamp > horizon {
                if self.options.horizon_policy == HorizonPolicy::Drop {
                    self.counters.horizon_drops += 1;
                    return self.drop_packet(packet, DropReason::Horizon, drops);
                }
                self.counters.horizon_caps += 1;
                time = horizon;
                packet.set_departure(Some(Instant::from_nanos(horizon)));
            }
        }
        let entering = Entering { time, len: wire_len(&packet), band, stamped: stamp.is_some() };
        let Some(flow) = self.classify(&packet, time) else {
            return self.accept(packet, None, entering);
        };
        if self.flows.get(flow).len >= self.options.flow_limit {
            self.counters.flows_plimit += 1;
            return self.drop_packet(packet, DropReason::FlowLimit, drops);
        }
        let f = self.flows.get_mut(flow);
        if f.len == 0 {
            self.counters.inactive_flows -= 1;
        }
        if f.place == Place::Detached {
            // The kernel compares without signs, so a flow that owes bytes is not forgiven by being idle.
            if now > f.idle_since.saturating_add(self.ns.refill_delay) && f.credit >= 0 {
                f.credit = f.credit.max(self.options.quantum as i32);
            }
            let listed_in = if self.rules.fresh_in_band_0 { f.band } else { band };
            self.flows.attach(flow);
            self.list_new(flow, listed_in);
        }
        self.flows.get_mut(flow).band = band;
        self.bands[usize::from(band)].packets += 1;
        self.accept(packet, Some(flow), entering);
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut Drops) -> Dequeue {
        self.now = self.now.max(now.as_nanos());
        if self.len == 0 {
            return Dequeue::Empty;
        }
        match self.next_packet() {
            Some((packet, len)) => {
                self.statistics.bytes += u64::from(len);
                self.statistics.packets += packet.wire_packets() as u64;
                Dequeue::Packet(packet)
            }
            None => match self.wheel.earliest() {
                Some(time) => Dequeue::Throttled(Instant::from_nanos(time.saturating_sub(self.ns.offload_horizon))),
                None => Dequeue::Empty,
            },
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn statistics(&self) -> QdiscStatistics {
        let mut statistics = self.statistics;
        statistics.qlen = self.len as u64;
        statistics.backlog = self.backlog as u64;
        statistics
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn reset(&mut self, drops: &mut Drops) {
        self.purge(drops);
        self.flows.clear();
        for band in &mut self.bands {
            band.clear();
        }
        self.wheel.reset(0);
        (self.len, self.backlog) = (0, 0);
        (self.counters.inactive_flows, self.counters.throttled_flows) = (0, 0);
    }

    /// Options in `tc` syntax; those not named keep their values.
    fn change(&mut self, options: &[&str], now: Instant, drops: &mut Drops) -> Result<(), QdiscError> {
        self.set_config(self.options.with_words(options)?, now, drops)
    }

    fn options(&self) -> String {
        self.options.to_words()
    }

    fn extended_statistics(&self, statistics: &mut Statistics) {
        for (name, value) in self.counters().named() {
            statistics.add(name, value);
        }
    }
}
