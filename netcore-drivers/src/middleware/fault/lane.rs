//! One direction of one queue: decisions, and packets held back.

use super::Faults;
use super::random::Random;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use netcore::packet::{PacketError, ReceiveChecksum};
use netcore::{Burst, Completion, Instant, Packet, PoolCache, Statistics};

/// What happened, packets each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) drop: u64,
    pub(super) duplicate: u64,
    pub(super) corrupt: u64,
    pub(super) reorder: u64,
    pub(super) delay: u64,
    /// Meant to be held back, but there was no room.
    pub(super) no_room: u64,
    /// Meant to be doubled or damaged, but there was no buffer.
    pub(super) no_buffer: u64,
    /// Taken from the caller and then refused by the device, or still held back when it stopped.
    pub(super) lost: u64,
}

impl Counters {
    pub(super) fn write(&self, direction: &str, statistics: &mut Statistics) {
        for (name, value) in [
            ("drop", self.drop),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("reorder", self.reorder),
            ("delay", self.delay),
            ("no_room", self.no_room),
            ("no_buffer", self.no_buffer),
            ("lost", self.lost),
        ] {
            statistics.add(alloc::format!("fault_{direction}_{name}"), value);
        }
    }
}

/// A packet that waits for a time.
struct Held {
    due: Instant,
    number: u64,
    packet: Packet,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// A packet that waits for others to overtake it.
struct Overtaken {
    /// How many more.
    left: u64,
    due: Instant,
    packet: Packet,
}

/// Packets come in through [`Lane::offer`] and leave through `ready`, in order. Those marked are copies.
pub(super) struct Lane {
    random: Random,
    delayed: BinaryHeap<Reverse<Held>>,
    overtaken: Vec<Overtaken>,
    number: u64,
    /// What goes on next.
    pub(super) ready: Burst,
    /// For each packet of `ready`: is it a copy, of which the sender does not know?
    pub(super) copies: alloc::collections::VecDeque<bool>,
    pub(super) counters: Counters,
}

impl Lane {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            delayed: BinaryHeap::new(),
            overtaken: Vec::new(),
            number: 0,
            ready: Burst::new(),
            copies: alloc::collections::VecDeque::new(),
            counters: Counters::default(),
        }
    }

    fn pass(&mut self, packet: Packet, copy: bool) {
        self.ready.push(packet);
        self.copies.push_back(copy);
    }

    fn held(&self) -> usize {
        self.delayed.len() + self.overtaken.len()
    }

    /// True if the next packet is lost.
    pub(super) fn loses(&mut self, faults: &Faults) -> bool {
        let lost = self.random.happens(faults.drop);
        self.counters.drop += u64::from(lost);
        lost
    }

    /// Damages a packet if chance has it.
    pub(super) fn maybe_corrupt(&mut self, packet: &mut Packet, faults: &Faults, reach: usize, cache: &mut PoolCache) {
        if self.random.happens(faults.corrupt) {
            match self.corrupt(packet, reach, cache) {
                Ok(()) => self.counters.corrupt += 1,
                Err(_) => self.counters.no_buffer += 1,
            }
        }
    }

    /// Decides what happens to a packet that is not lost.
    pub(super) fn offer(
        &mut self,
        mut packet: Packet,
        faults: &Faults,
        reach: usize,
        cache: &mut PoolCache,
        now: Instant,
    ) {
        self.maybe_corrupt(&mut packet, faults, reach, cache);
        let duplicate = self.random.happens(faults.duplicate);
        let reorder = self.random.happens(faults.reorder);
        let delay = self.random.happens(faults.delay);
        let copy = if duplicate { packet.share(cache).ok() } else { None };
        if duplicate {
            match copy {
                Some(_) => self.counters.duplicate += 1,
                None => self.counters.no_buffer += 1,
            }
        }
        if (reorder || delay) && self.held() >= faults.room {
            self.counters.no_room += 1;
            self.pass(packet, false);
        } else if delay {
            self.counters.delay += 1;
            let span = faults.delay_max.saturating_sub(faults.delay_min).as_nanos() as u64;
            let extra = core::time::Duration::from_nanos(self.random.below(span.saturating_add(1)));
            self.number += 1;
            let due = now + faults.delay_min + extra;
            self.delayed.push(Reverse(Held { due, number: self.number, packet }));
        } else if reorder {
            self.counters.reorder += 1;
            let left = 1 + self.random.below(u64::from(faults.reorder_gap));
            self.overtaken.push(Overtaken { left, due: now + faults.reorder_hold, packet });
            // The packet does not overtake itself.
            if let Some(copy) = copy {
                self.pass(copy, true);
            }
            return;
        } else {
            self.pass(packet, false);
        }
        if let Some(copy) = copy {
            self.pass(copy, true);
        }
        self.overtake();
    }

    /// One packet went by.
    fn overtake(&mut self) {
        let mut at = 0;
        while at < self.overtaken.len() {
            self.overtaken[at].left -= 1;
            if self.overtaken[at].left == 0 {
                let Overtaken { packet, .. } = self.overtaken.remove(at);
                self.pass(packet, false);
            } else {
                at += 1;
            }
        }
    }

    /// Turns one bit over. A device that vouched for the packet would not have.
    fn corrupt(&mut self, packet: &mut Packet, reach: usize, cache: &mut PoolCache) -> Result<(), PacketError> {
        let len = packet.len().min(reach);
        if len == 0 {
            return Ok(());
        }
        let at = self.random.below(len as u64) as usize;
        let bit = 1u8 << self.random.below(8);
        packet.make_writable(at + 1, cache)?;
        if let Some(byte) = packet.head_mut()?.get_mut(at) {
            *byte ^= bit;
        }
        packet.set_receive_checksum(ReceiveChecksum::None);
        Ok(())
    }

    /// Lets go what is due.
    pub(super) fn release(&mut self, now: Instant) {
        let mut at = 0;
        while at < self.overtaken.len() {
            if self.overtaken[at].due <= now {
                let Overtaken { packet, .. } = self.overtaken.remove(at);
                self.pass(packet, false);
            } else {
                at += 1;
            }
        }
        while let Some(Reverse(held)) = self.delayed.peek() {
            if held.due > now {
                break;
            }
            if let Some(Reverse(held)) = self.delayed.pop() {
                self.pass(held.packet, false);
            }
        }
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        let delayed = self.delayed.peek().map(|Reverse(held)| held.due);
        self.overtaken.iter().map(|held| held.due).chain(delayed).min()
    }

    /// Gives up everything that is held, and says what senders wait for.
    pub(super) fn give_up(&mut self, cache: &mut PoolCache, mut completed: impl FnMut(Completion)) {
        let held = core::mem::take(&mut self.delayed).into_iter().map(|Reverse(held)| held.packet);
        let packets: Vec<Packet> = held.chain(self.overtaken.drain(..).map(|held| held.packet)).collect();
        for packet in packets {
            self.pass(packet, false);
        }
        while let (Some(packet), Some(copy)) = (self.ready.pop(), self.copies.pop_front()) {
            self.counters.lost += 1;
            if !copy {
                completed(completion(&packet));
            }
            cache.put(packet);
        }
    }
}

pub(super) fn completion(packet: &Packet) -> Completion {
    Completion { flow_id: packet.flow_id(), truesize: packet.truesize() as u32, bytes: packet.len() as u32 }
}
