//! The timers of a connection.

use netcore::Instant;

/// What the retransmission timer stands for (`icsk_pending`): Linux has one timer for these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// Retransmission timeout.
    Retransmit,
    /// Zero-window probe.
    Probe0,
    /// Tail loss probe.
    LossProbe,
    /// Reordering window of RACK.
    Reorder,
}

/// Deadlines; `None` is not armed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    pub(crate) retransmit: Option<(Pending, Instant)>,
    pub(crate) delayed_ack: Option<Instant>,
    pub(crate) compressed_ack: Option<Instant>,
    pub(crate) keep_alive: Option<Instant>,
    pub(crate) time_wait: Option<Instant>,
    pub(crate) pacing: Option<Instant>,
    /// Deferral of a partial super-packet ends then.
    pub(crate) defer: Option<Instant>,
}

impl Timers {
    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        let retransmit = self.retransmit.map(|(_, at)| at);
        [retransmit, self.delayed_ack, self.compressed_ack, self.keep_alive, self.time_wait, self.pacing, self.defer]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the retransmission timer stands for `pending`.
    pub(crate) fn is(&self, pending: Pending) -> bool {
        matches!(self.retransmit, Some((p, _)) if p == pending)
    }

    /// Disarms everything but TIME-WAIT.
    pub(crate) fn stop_all(&mut self) {
        *self = Self::default();
    }
}
