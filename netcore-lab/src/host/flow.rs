//! A connection, its application and its record.

use super::application::{Application, Running};
use netcore::{Instant, PoolCache};
use netcore_tcp::{Config, Endpoint, Path};

/// Number of a connection in its host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub usize);

/// A connection at one point in time. Counters count from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Bytes written by the application.
    pub written: u64,
    /// Bytes acknowledged by the peer.
    pub acked: u64,
    /// Bytes received in order.
    pub received: u64,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT, µs.
    pub srtt_us: Option<u32>,
    /// Segments in the network.
    pub in_flight: u32,
    /// Segment size, bytes.
    pub mss: u32,
}

struct Pending {
    config: Config,
    path: Path,
    seed: u64,
    start: Instant,
}

/// A connection of a host.
pub struct Flow {
    endpoint: Option<Endpoint>,
    pending: Option<Pending>,
    running: Running,
    samples: Vec<Sample>,
    pub(super) dirty: bool,
    /// The earliest timer that is queued for this flow.
    pub(super) armed: Option<Instant>,
    /// When the application's turn on the CPU comes.
    pub(super) turn: Option<Instant>,
    first_data: Option<Instant>,
    finished: Option<Instant>,
}

impl Flow {
    pub(super) fn active(config: Config, path: Path, seed: u64, start: Instant, application: Application) -> Self {
        Self {
            endpoint: None,
            pending: Some(Pending { config, path, seed, start }),
            running: Running::new(application),
            samples: Vec::new(),
            dirty: false,
            armed: Some(start),
            turn: None,
            first_data: None,
            finished: None,
        }
    }

    pub(super) fn passive(endpoint: Endpoint, application: Application) -> Self {
        Self {
            endpoint: Some(endpoint),
            pending: None,
            running: Running::new(application),
            samples: Vec::new(),
            dirty: false,
            armed: None,
            turn: None,
            first_data: None,
            finished: None,
        }
    }

    /// The connection, once it was opened.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    pub(super) fn endpoint_mut(&mut self) -> Option<&mut Endpoint> {
        self.endpoint.as_mut()
    }

    /// Samples by rising time, if the host takes them.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// When the first data arrived: where a receiver's clock starts.
    pub fn first_data(&self) -> Option<Instant> {
        self.first_data
    }

    /// When the peer had closed and everything was read.
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }

    /// Bytes that the application handed over.
    pub fn written(&self) -> u64 {
        self.running.written()
    }

    pub(super) fn open_if_due(&mut self, now: Instant) {
        if let Some(pending) = self.pending.take_if(|pending| pending.start <= now) {
            // The configuration was checked when the flow was added.
            self.endpoint = Endpoint::connect(pending.config, pending.path, pending.seed, now).ok();
        }
    }

    /// Lets the application do what it can.
    pub(super) fn run(&mut self, cache: &mut PoolCache, now: Instant) {
        self.note_arrival(now);
        if let Some(endpoint) = &mut self.endpoint {
            self.running.run(endpoint, cache, now);
        }
        self.note_end(now);
    }

    /// Lets the application make one system call, if it wants to; bytes that it moved.
    pub(super) fn call(&mut self, cache: &mut PoolCache, now: Instant) -> Option<u64> {
        self.note_arrival(now);
        let wants = self.wants_call(now);
        let moved = self.endpoint.as_mut().filter(|_| wants).map(|e| self.running.call(e, cache, now));
        self.note_end(now);
        moved
    }

    /// Whether the application would make a system call now.
    pub(super) fn wants_call(&self, now: Instant) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| self.running.wants(endpoint, now))
    }

    pub(super) fn note_arrival(&mut self, now: Instant) {
        if self.first_data.is_none() && self.endpoint.as_ref().is_some_and(|e| e.readable() > 0) {
            self.first_data = Some(now);
        }
    }

    fn note_end(&mut self, now: Instant) {
        if self.finished.is_none() && self.endpoint.as_ref().is_some_and(Endpoint::is_finished) {
            self.finished = Some(now);
        }
    }

    pub(super) fn next_event(&self, now: Instant) -> Option<Instant> {
        match (&self.endpoint, &self.pending) {
            (Some(endpoint), _) => {
                let application = self.running.next_event(endpoint, now);
                [endpoint.poll_at(), application].into_iter().flatten().min()
            }
            (None, Some(pending)) => Some(pending.start),
            (None, None) => None,
        }
    }

    pub(super) fn sample(&mut self, at: Instant) {
        let Some(endpoint) = &self.endpoint else { return };
        let info = endpoint.info();
        self.samples.push(Sample {
            at,
            written: self.running.written(),
            acked: info.bytes_acked,
            received: info.bytes_received,
            retransmitted: endpoint.counters().retrans_segs,
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            srtt_us: info.rtt_us,
            in_flight: info.in_flight,
            mss: info.mss,
        });
    }
}
