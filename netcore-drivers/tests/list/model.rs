//! The other end of a modelled device's line.

use super::Peer;
use core::time::Duration;
use netcore::Instant;
use netcore_drivers::model::{Bench, Frame, Port};

/// The other end of a modelled device's line.
pub struct ModelPeer {
    pub bench: Bench,
    pub port: Port,
}

impl Peer for ModelPeer {
    fn send(&mut self, frame: &[u8]) {
        self.bench.inject(self.port, Frame::new(frame.to_vec()));
        // A partner at 1 Gbit/s.
        self.bench.advance(Duration::from_nanos(8 * (frame.len() as u64 + 24)));
    }
    fn take(&mut self) -> Vec<Vec<u8>> {
        self.bench.take_sent(self.port).into_iter().map(|frame| frame.bytes).collect()
    }
    fn settle(&mut self, span: Duration) {
        self.bench.advance(span);
    }
    fn now(&self) -> Instant {
        self.bench.now()
    }
    fn cable(&mut self, plugged: bool) {
        self.bench.partner(self.port, |partner| partner.present = plugged);
    }
    fn remove(&mut self) -> bool {
        self.bench.faults(self.port, |faults| faults.removed = true);
        true
    }
    fn violations(&mut self) -> Vec<String> {
        self.bench.take_violations(self.port).iter().map(ToString::to_string).collect()
    }
    fn patience(&self) -> Duration {
        Duration::from_secs(1)
    }
}
