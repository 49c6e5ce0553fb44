//! Running a scenario's lab.

use super::ScenarioError;
use super::outcome::{Interval, Outcome, collect};
use crate::capture::Tap;
use crate::engine::{ComponentId, Lab};
use crate::host::{Flow, FlowId, Host};
use netcore::Instant;
use netcore_drivers::pcap::Format;
use std::io::Write;
use std::time::Duration;

/// A capture of a link.
pub struct CaptureRequest {
    /// Name of the link.
    pub link: String,
    /// At which end; `None`: at the first that the file names.
    pub end: Option<String>,
    /// Format of the file.
    pub format: Format,
    /// Where it goes; should be buffered.
    pub out: Box<dyn Write + Send>,
}

impl std::fmt::Debug for CaptureRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureRequest").field("link", &self.link).field("end", &self.end).finish_non_exhaustive()
    }
}

/// A component with its name.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) id: ComponentId,
}

/// A link with its ends.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) id: ComponentId,
    pub(super) ends: [String; 2],
}

/// A connection and where its ends are: host by index, flow there.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) profile: &'static str,
    pub(super) from: (usize, FlowId),
    pub(super) to: (usize, FlowId),
    pub(super) start: Instant,
    pub(super) both_ways: bool,
}

/// The lab of a scenario, ready to run.
#[derive(Debug)]
pub struct World {
    pub(super) lab: Lab,
    pub(super) hosts: Vec<Named>,
    pub(super) switches: Vec<Named>,
    pub(super) links: Vec<Span>,
    pub(super) taps: Vec<Named>,
    pub(super) flows: Vec<Connection>,
    pub(super) title: String,
    pub(super) seed: u64,
    pub(super) duration: Duration,
    pub(super) interval: Duration,
}

/// Counters of a flow at the end of an interval.
#[derive(Clone, Copy, Default)]
struct Mark {
    received: u64,
    back: u64,
    retransmitted: u64,
}

impl World {
    /// The lab, for changes before the run and looks after it.
    pub fn lab(&mut self) -> &mut Lab {
        &mut self.lab
    }

    /// The component of a host, switch or link.
    pub fn component(&self, name: &str) -> Option<ComponentId> {
        let named = self.hosts.iter().chain(&self.switches).find(|named| named.name == name).map(|named| named.id);
        named.or_else(|| self.links.iter().find(|link| link.name == name).map(|link| link.id))
    }

    pub(super) fn flow(&self, (host, flow): (usize, FlowId)) -> Option<&Flow> {
        self.lab.get::<Host>(self.hosts.get(host)?.id)?.flow(flow)
    }

    /// Runs to the end. `progress` is told the fraction done, 0 to 1.
    ///
    /// # Errors
    /// [`ScenarioError::Capture`] if a capture could not be written.
    pub fn run(&mut self, progress: &mut dyn FnMut(f64)) -> Result<Outcome, ScenarioError> {
        let end = Instant::ZERO + self.duration;
        let mut intervals: Vec<Vec<Interval>> = vec![Vec::new(); self.flows.len()];
        let mut marks = vec![Mark::default(); self.flows.len()];
        let mut from = Instant::ZERO;
        // Short steps, so that progress moves.
        let step = (self.duration / 200).max(Duration::from_micros(1));
        while from < end {
            let to = (from + self.interval).min(end);
            let mut now = from;
            while now < to {
                now = (now + step).min(to);
                self.lab.run_until(now);
                progress(now.as_nanos() as f64 / end.as_nanos() as f64);
            }
            for (index, mark) in marks.iter_mut().enumerate() {
                let (interval, next) = self.measure(index, *mark, from, to);
                *mark = next;
                intervals[index].push(interval);
            }
            from = to;
        }
        for tap in &self.taps {
            if let Some(tap) = self.lab.get_mut::<Tap>(tap.id) {
                tap.finish()?;
            }
        }
        Ok(collect(self, intervals))
    }

    fn measure(&self, index: usize, before: Mark, from: Instant, to: Instant) -> (Interval, Mark) {
        let connection = &self.flows[index];
        let sender = self.flow(connection.from).and_then(Flow::endpoint);
        let receiver = self.flow(connection.to).and_then(Flow::endpoint);
        let mark = Mark {
            received: receiver.map_or(0, |endpoint| endpoint.info().bytes_received),
            back: sender.filter(|_| connection.both_ways).map_or(0, |endpoint| endpoint.info().bytes_received),
            retransmitted: sender.map_or(0, |endpoint| endpoint.counters().retrans_segs),
        };
        let info = sender.map(netcore_tcp::Endpoint::info);
        let interval = Interval {
            from_ns: from.as_nanos(),
            to_ns: to.as_nanos(),
            bytes: mark.received - before.received,
            bytes_back: connection.both_ways.then(|| mark.back - before.back),
            retransmits: mark.retransmitted - before.retransmitted,
            cwnd: info.map(|info| info.cwnd),
            ssthresh: info.and_then(|info| info.ssthresh),
            srtt_us: info.and_then(|info| info.rtt_us),
            in_flight: info.map(|info| info.in_flight),
        };
        (interval, mark)
    }
}
