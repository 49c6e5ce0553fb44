//! A tail-drop queue with a limit in packets or bytes (Linux: `pfifo`, `bfifo`).

use super::{Dequeue, DropReason, Drops, Qdisc, QdiscError, QdiscStatistics};
use crate::packet::{Packet, PacketQueue};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};

/// What limits a [`Fifo`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FifoLimit {
    /// Packets (`pfifo`).
    Packets(usize),
    /// Bytes (`bfifo`).
    Bytes(usize),
}

/// First in, first out; a packet that does not fit is dropped.
#[derive(Debug)]
pub struct Fifo {
    queue: PacketQueue,
    limit: FifoLimit,
    backlog: usize,
    statistics: QdiscStatistics,
}

impl Fifo {
    /// The length of a Linux device's queue (`txqueuelen`) and so of its default `pfifo`.
    pub const DEFAULT_PACKETS: usize = 1000;

    /// An empty queue.
    pub const fn new(limit: FifoLimit) -> Self {
        Self {
            queue: PacketQueue::new(),
            limit,
            backlog: 0,
            statistics: QdiscStatistics {
                bytes: 0,
                packets: 0,
                drops: 0,
                overlimits: 0,
                requeues: 0,
                qlen: 0,
                backlog: 0,
            },
        }
    }

    fn fits(&self, len: usize) -> bool {
        match self.limit {
            FifoLimit::Packets(limit) => self.queue.len() < limit,
            FifoLimit::Bytes(limit) => self.backlog.saturating_add(len) <= limit,
        }
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new(FifoLimit::Packets(Self::DEFAULT_PACKETS))
    }
}

impl Qdisc for Fifo {
    fn enqueue(&mut self, packet: Packet, _now: Instant, drops: &mut Drops) {
        if !self.fits(packet.len()) {
            self.statistics.drops += 1;
            drops.push(packet, DropReason::OverLimit);
            return;
        }
        self.backlog += packet.len();
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut Drops) -> Dequeue {
        let Some(packet) = self.queue.pop_front() else { return Dequeue::Empty };
        self.backlog -= packet.len();
        self.statistics.bytes += packet.len() as u64;
        self.statistics.packets += packet.wire_packets() as u64;
        Dequeue::Packet(packet)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn statistics(&self) -> QdiscStatistics {
        QdiscStatistics { qlen: self.queue.len() as u64, backlog: self.backlog as u64, ..self.statistics }
    }

    fn name(&self) -> &'static str {
        match self.limit {
            FifoLimit::Packets(_) => "pfifo",
            FifoLimit::Bytes(_) => "bfifo",
        }
    }

    fn reset(&mut self, drops: &mut Drops) {
        while let Some(packet) = self.queue.pop_front() {
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Reset);
        }
        self.backlog = 0;
    }

    /// `limit N`: packets or bytes. As in Linux, packets already queued stay.
    fn change(&mut self, options: &[&str], _now: Instant, _drops: &mut Drops) -> Result<(), QdiscError> {
        let qdisc = self.name();
        let mut limit = None;
        let mut words = options.iter();
        while let Some(&option) = words.next() {
            if option != "limit" {
                return Err(QdiscError::UnknownOption { qdisc, option: option.to_string(), allowed: "limit" });
            }
            let allowed = "a whole number from 0 to 4294967295";
            let Some(value) = words.next() else {
                return Err(QdiscError::MissingValue { qdisc, option: option.to_string(), allowed });
            };
            limit = Some(value.parse::<u32>().map_err(|_| QdiscError::InvalidValue {
                qdisc,
                option: option.to_string(),
                value: value.to_string(),
                allowed,
            })?);
        }
        if let Some(new) = limit {
            match &mut self.limit {
                FifoLimit::Packets(limit) | FifoLimit::Bytes(limit) => *limit = new as usize,
            }
        }
        Ok(())
    }

    fn options(&self) -> String {
        match self.limit {
            FifoLimit::Packets(limit) => format!("limit {limit}p"),
            FifoLimit::Bytes(limit) => format!("limit {limit}b"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PacketPool, PoolConfig};

    #[test]
    fn packets_beyond_the_limit_come_back_with_the_reason() {
        let mut cache = PacketPool::new(PoolConfig::with_buffers(8)).unwrap().cache();
        let mut fifo = Fifo::new(FifoLimit::Packets(2));
        let mut drops = Drops::new();
        for byte in 0..3 {
            fifo.enqueue(cache.copy_from_slice(&[byte; 10]).unwrap(), Instant::ZERO, &mut drops);
        }
        assert_eq!(drops.len(), 1);
        assert_eq!(drops.as_slice()[0].packet.head()[0], 2);
        assert_eq!(drops.as_slice()[0].reason, DropReason::OverLimit);
        assert_eq!((fifo.len(), fifo.backlog()), (2, 20));
        assert!(matches!(fifo.dequeue(Instant::ZERO, &mut drops), Dequeue::Packet(p) if p.head()[0] == 0));
        fifo.reset(&mut drops);
        assert_eq!(drops.len(), 2);
        let s = fifo.statistics();
        assert_eq!((s.packets, s.drops, s.qlen, s.backlog), (1, 2, 0, 0));
    }

    #[test]
    fn limit_changes_on_a_live_queue_and_wrong_options_change_nothing() {
        let mut fifo = Fifo::new(FifoLimit::Bytes(100));
        let mut drops = Drops::new();
        fifo.change(&["limit", "50"], Instant::ZERO, &mut drops).unwrap();
        assert_eq!(fifo.options(), "limit 50b");
        for wrong in [&["limit"][..], &["limit", "x"], &["limit", "-1"], &["quantum", "3"]] {
            assert!(fifo.change(wrong, Instant::ZERO, &mut drops).is_err(), "{wrong:?}");
        }
        assert_eq!(fifo.options(), "limit 50b");
    }
}
