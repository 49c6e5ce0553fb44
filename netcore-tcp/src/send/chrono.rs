//! How long the sender was busy, and what limited it (`tcp_chrono_*`).

use netcore::Instant;

/// What limits at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Limit {
    #[default]
    Idle,
    Busy,
    Window,
    Buffer,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chrono {
    now: Limit,
    since: Instant,
    busy_ns: u64,
    window_ns: u64,
    buffer_ns: u64,
}

impl Chrono {
    pub(crate) fn set(&mut self, limit: Limit, now: Instant) {
        if limit == self.now {
            return;
        }
        let span = now.nanos_since(self.since);
        match self.now {
            Limit::Idle => {}
            Limit::Busy => self.busy_ns += span,
            Limit::Window => {
                self.busy_ns += span;
                self.window_ns += span;
            }
            Limit::Buffer => {
                self.busy_ns += span;
                self.buffer_ns += span;
            }
        }
        self.now = limit;
        self.since = now;
    }

    pub(crate) const fn busy_us(&self) -> u64 {
        self.busy_ns / 1000
    }

    pub(crate) const fn rwnd_us(&self) -> u64 {
        self.window_ns / 1000
    }

    pub(crate) const fn sndbuf_us(&self) -> u64 {
        self.buffer_ns / 1000
    }
}
