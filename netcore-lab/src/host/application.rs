//! What uses a connection.

use netcore::{Instant, PoolCache};
use netcore_tcp::{Endpoint, State};
use std::time::Duration;

/// Bytes of one read, where reads are made one by one.
const READ_SIZE: u64 = 65_536;

/// A sender of bulk data, as nuttcp, netperf and iperf are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// Bytes to send; `None`: until `stop`.
    pub bytes: Option<u64>,
    /// Bytes of one write.
    pub write_size: u64,
    /// Time that one write takes; zero: none.
    pub write_time: Duration,
    /// Sends nothing after this.
    pub stop: Option<Instant>,
    /// Closes the connection when done.
    pub close: bool,
}

impl Default for Bulk {
    /// Unlimited data in writes of 128 KiB that take no time.
    fn default() -> Self {
        Self { bytes: None, write_size: 131_072, write_time: Duration::ZERO, stop: None, close: true }
    }
}

/// What uses a connection.
#[derive(Clone, Debug)]
pub enum Application {
    /// Sends.
    Bulk(Bulk),
    /// Takes whatever arrives, at once, and closes after the peer.
    Sink,
    /// Sends and takes.
    Both(Bulk),
    /// Takes whatever arrives at a limited rate, bytes per second.
    SlowSink {
        /// Bytes per second.
        rate: u64,
    },
}

/// An application at work.
#[derive(Clone, Debug)]
pub(super) struct Running {
    application: Application,
    written: u64,
    /// The CPU is busy with a write until then.
    busy_until: Option<Instant>,
    /// A write is blocked: the send buffer is full.
    blocked: bool,
    took_until: Option<Instant>,
    /// Nothing more is sent.
    closed: bool,
}

impl Running {
    pub(super) fn new(application: Application) -> Self {
        Self { application, written: 0, busy_until: None, blocked: false, took_until: None, closed: false }
    }

    /// Bytes accepted by the connection.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Whether there is something to read or write now.
    pub(super) fn wants(&self, endpoint: &Endpoint, now: Instant) -> bool {
        let reads = || endpoint.readable() > 0 || endpoint.is_finished() && !self.closed;
        let writes = |bulk: Bulk| {
            let stopped = bulk.stop.is_some_and(|stop| now >= stop);
            let may = endpoint.state().may_send() && (!self.blocked || endpoint.is_writable());
            let busy = self.busy_until.is_some_and(|until| until > now);
            !self.closed && (stopped || may && !busy)
        };
        match self.application {
            Application::Bulk(bulk) => writes(bulk),
            Application::Sink => reads(),
            Application::Both(bulk) => reads() || writes(bulk),
            Application::SlowSink { .. } => reads() && self.took_until.is_none_or(|until| until <= now),
        }
    }

    /// Makes one system call: a read of at most [`READ_SIZE`], or one write. Says how many bytes it moved.
    pub(super) fn call(&mut self, endpoint: &mut Endpoint, cache: &mut PoolCache, now: Instant) -> u64 {
        let readable = endpoint.readable();
        let reads = matches!(self.application, Application::Sink | Application::Both(_));
        if reads && readable > 0 {
            let taken = endpoint.discard(READ_SIZE, cache, now);
            self.close_after_peer(endpoint, cache);
            return taken;
        }
        let before = self.written;
        match self.application {
            Application::Bulk(bulk) | Application::Both(bulk) => self.send(bulk, 1, endpoint, cache, now),
            _ => self.run(endpoint, cache, now),
        }
        self.written - before
    }

    /// Does what can be done now.
    pub(super) fn run(&mut self, endpoint: &mut Endpoint, cache: &mut PoolCache, now: Instant) {
        match self.application {
            Application::Bulk(bulk) => self.send(bulk, u32::MAX, endpoint, cache, now),
            Application::Sink => self.take(endpoint, cache, now),
            Application::Both(bulk) => {
                self.take(endpoint, cache, now);
                self.send(bulk, u32::MAX, endpoint, cache, now);
            }
            Application::SlowSink { rate } => self.take_slowly(rate, endpoint, cache, now),
        }
    }

    /// Up to `most` writes.
    fn send(&mut self, bulk: Bulk, most: u32, endpoint: &mut Endpoint, cache: &mut PoolCache, now: Instant) {
        let stopped = bulk.stop.is_some_and(|stop| now >= stop);
        if self.closed {
            return;
        }
        if stopped {
            // Whatever state the connection is in, and whether or not a write is blocked.
            self.end(bulk, endpoint, cache);
            return;
        }
        // What a full buffer blocks goes on when a third of it is free.
        if !endpoint.state().may_send() || (self.blocked && !endpoint.is_writable()) {
            return;
        }
        self.blocked = false;
        for _ in 0..most {
            let left = bulk.bytes.map_or(u64::MAX, |bytes| bytes.saturating_sub(self.written));
            if left == 0 {
                // A close now would give up a connection that is not open yet.
                if endpoint.state() != State::SynSent {
                    self.end(bulk, endpoint, cache);
                }
                return;
            }
            if self.busy_until.is_some_and(|until| until > now) {
                return;
            }
            let size = bulk.write_size.max(1).min(left);
            let taken = endpoint.write_virtual(size);
            self.written += taken;
            if taken > 0 && !bulk.write_time.is_zero() {
                let part = bulk.write_time.as_nanos() as u64 * taken / size;
                // A writer that was not waited for keeps its own clock.
                let from = self.busy_until.map_or(now, |until| until.max(now));
                self.busy_until = Some(from.plus_nanos(part.max(1)));
            }
            if taken < size {
                self.blocked = true;
                return;
            }
        }
    }

    fn end(&mut self, bulk: Bulk, endpoint: &mut Endpoint, cache: &mut PoolCache) {
        if bulk.close {
            endpoint.close(cache);
        }
        self.closed = true;
    }

    fn take(&mut self, endpoint: &mut Endpoint, cache: &mut PoolCache, now: Instant) {
        if endpoint.readable() > 0 {
            endpoint.discard(u64::MAX, cache, now);
        }
        self.close_after_peer(endpoint, cache);
    }

    fn take_slowly(&mut self, rate: u64, endpoint: &mut Endpoint, cache: &mut PoolCache, now: Instant) {
        if endpoint.readable() > 0 && self.took_until.is_none_or(|until| until <= now) {
            // One millisecond's worth at a time.
            let chunk = (rate / 1000).max(1);
            let taken = endpoint.discard(chunk, cache, now);
            let ns = u128::from(taken) * 1_000_000_000 / u128::from(rate.max(1));
            self.took_until = Some(now.plus_nanos((ns as u64).max(1)));
        }
        self.close_after_peer(endpoint, cache);
    }

    fn close_after_peer(&mut self, endpoint: &mut Endpoint, cache: &mut PoolCache) {
        if endpoint.is_finished()
            && !self.closed
            && matches!(self.application, Application::Sink | Application::SlowSink { .. })
        {
            endpoint.close(cache);
            self.closed = true;
        }
    }

    /// When something is due without a packet arriving.
    pub(super) fn next_event(&self, endpoint: &Endpoint, now: Instant) -> Option<Instant> {
        match self.application {
            Application::Bulk(bulk) | Application::Both(bulk) if !self.closed => {
                let busy =
                    self.busy_until.filter(|_| !self.blocked && bulk.bytes.is_none_or(|bytes| self.written < bytes));
                // Once that is past, the application waits for its turn on the CPU at most.
                [busy, bulk.stop.filter(|stop| *stop > now)].into_iter().flatten().min()
            }
            Application::SlowSink { .. } => self.took_until.filter(|_| endpoint.readable() > 0),
            _ => None,
        }
    }
}
