//! Whose turn it is: bands, new and old flows, credits, delays (Linux: `fq_dequeue`, `fq_check_throttled`).

use super::flow::Place;
use super::wheel::Entry;
use super::{BANDS, Fq};
use crate::packets::NIL;
use crate::wire::{is_pure_ack, set_ce};
use netcore::{DropReason, Drops, Packet};

/// No packet delays its flow's next one by more, nanoseconds.
const MAX_DELAY: u64 = 1_000_000_000;

/// First and last flow of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NIL, last: NIL };

/// One priority band.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    new: List,
    old: List,
    pub(super) credit: i64,
    pub(super) weight: i64,
    pub(super) packets: u32,
}

impl Band {
    pub(super) const fn new(weight: u32) -> Self {
        Self { new: EMPTY, old: EMPTY, credit: 0, weight: weight as i64, packets: 0 }
    }

    /// Forgets flows and packets; the credit stays, as in Linux.
    pub(super) fn clear(&mut self) {
        (self.new, self.old, self.packets) = (EMPTY, EMPTY, 0);
    }
}

impl Fq {
    pub(super) fn list_new(&mut self, flow: u32, band: u8) {
        let last = self.bands[usize::from(band)].new.last;
        self.append(flow, last);
        let list = &mut self.bands[usize::from(band)].new;
        list.last = flow;
        if last == NIL {
            list.first = flow;
        }
    }

    pub(super) fn list_old(&mut self, flow: u32, band: u8) {
        let last = self.bands[usize::from(band)].old.last;
        self.append(flow, last);
        let list = &mut self.bands[usize::from(band)].old;
        list.last = flow;
        if last == NIL {
            list.first = flow;
        }
    }

    fn append(&mut self, flow: u32, last: u32) {
        let f = self.flows.get_mut(flow);
        f.place = Place::Listed;
        f.next = NIL;
        if last != NIL {
            self.flows.get_mut(last).next = flow;
        }
    }

    /// Takes the first flow off a list of the current band.
    fn unlist(&mut self, from_new: bool) {
        let band = &mut self.bands[self.band];
        let list = if from_new { &mut band.new } else { &mut band.old };
        let next = self.flows.get(list.first).next;
        list.first = next;
        if next == NIL {
            list.last = NIL;
        }
    }

    /// Brings throttled flows whose time has come back into the old lists, earliest first.
    fn unthrottle(&mut self) {
        let due = self.now.saturating_add(self.ns.offload_horizon);
        let Some(earliest) = self.wheel.earliest() else { return };
        if self.now > earliest && earliest <= due {
            let latency = &mut self.counters.unthrottle_latency;
            *latency = *latency - (*latency >> 3) + ((self.now - earliest) >> 3);
        }
        let mut wheel = core::mem::replace(&mut self.wheel, super::Wheel::vacant());
        wheel.advance(due, |entry| {
            let f = self.flows.get(entry.id);
            if f.place == Place::Throttled && f.mark == entry.mark {
                self.leave_wheel(entry.id);
            }
        });
        self.wheel = wheel;
    }

    fn throttle(&mut self, flow: u32, until: u64) {
        let f = self.flows.get_mut(flow);
        f.place = Place::Throttled;
        f.next_time = until;
        let entry = Entry { time: until, id: flow, mark: f.mark };
        self.wheel.insert(entry);
        self.counters.throttled += 1;
        self.counters.throttled_flows += 1;
    }

    /// The band whose turn it is becomes the current one; false if no band has a flow in its lists.
    fn select_band(&mut self) -> bool {
        let has_flow = |band: &Band| band.new.first != NIL || band.old.first != NIL;
        if self.bands[self.band].credit > 0 && has_flow(&self.bands[self.band]) {
            return true;
        }
        let mut empty = 0;
        while empty < BANDS {
            self.band = (self.band + 1) % BANDS;
            let band = &mut self.bands[self.band];
            band.credit = (band.credit + band.weight).min(band.weight);
            if band.credit <= 0 {
                // It has a debt, and thus is not known to be empty.
                empty = 0;
                continue;
            }
            if has_flow(band) {
                return true;
            }
            empty += 1;
        }
        false
    }

    /// The packet that leaves now, and its length.
    pub(super) fn next_packet(&mut self) -> Option<(Packet, u32)> {
        if let Some(index) = self.packets.peek(&self.internal) {
            let (packet, entering) = self.packets.pop(&mut self.internal, index)?;
            self.internal_len -= 1;
            self.len -= 1;
            self.backlog -= entering.len as usize;
            return Some((packet, entering.len));
        }
        self.unthrottle();
        let due = self.now.saturating_add(self.ns.offload_horizon);
        while self.select_band() {
            let band = &self.bands[self.band];
            let from_new = band.new.first != NIL;
            let id = if from_new { band.new.first } else { band.old.first };
            let f = self.flows.get(id);
            if f.credit <= 0 {
                let alone = match from_new {
                    true => band.old.first == NIL && band.new.first == band.new.last,
                    false => band.old.first == band.old.last,
                };
                self.next_turn(id, from_new, alone && usize::from(f.band) == self.band);
                continue;
            }
            let Some(index) = self.packets.peek(&f.queue) else {
                self.empty_flow(id, from_new);
                continue;
            };
            let time = self.packets.node(index).time.max(f.next_time);
            if due < time && !(self.rules.free_acks && self.is_ack(index)) {
                self.unlist(from_new);
                self.throttle(id, time);
                continue;
            }
            return self.send(id, index, time);
        }
        None
    }

    /// A flow has used its credit: it gets another quantum and waits behind the old ones. If it is the only one of its band
    /// it would come round until its debt is paid, so it gets all of these turns at once.
    fn next_turn(&mut self, flow: u32, from_new: bool, alone: bool) {
        self.unlist(from_new);
        let quantum = self.options.quantum as i32;
        let f = self.flows.get_mut(flow);
        let turns = if alone { (i64::from(f.credit) / -i64::from(quantum)) as i32 + 1 } else { 1 };
        f.credit = (i64::from(f.credit) + i64::from(turns) * i64::from(quantum)) as i32;
        let band = f.band;
        self.list_old(flow, band);
    }

    /// A flow without packets passes once through the old list, so that returning at once gives it no advantage.
    fn empty_flow(&mut self, flow: u32, from_new: bool) {
        self.unlist(from_new);
        if from_new && (self.rules.always_old || self.bands[self.band].old.first != NIL) {
            let band = self.flows.get(flow).band;
            self.list_old(flow, band);
        } else {
            self.flows.detach(flow, self.now);
        }
    }

    fn is_ack(&self, index: u32) -> bool {
        self.packets.packet(index).is_some_and(is_pure_ack)
    }

    fn send(&mut self, flow: u32, index: u32, due: u64) -> Option<(Packet, u32)> {
        let now = self.now;
        let f = self.flows.get_mut(flow);
        let (mut packet, entering) = self.packets.pop(&mut f.queue, index)?;
        f.len -= 1;
        if f.len == 0 {
            self.counters.inactive_flows += 1;
        }
        self.len -= 1;
        self.backlog -= entering.len as usize;
        self.bands[usize::from(entering.band)].packets -= 1;
        if now.saturating_sub(due) > self.ns.ce_threshold {
            set_ce(&mut packet);
            self.counters.ce_mark += 1;
        }
        let len = entering.len;
        if self.rules.free_acks && is_pure_ack(&packet) {
            return Some((packet, len));
        }
        f.credit = f.credit.saturating_sub_unsigned(len);
        self.bands[self.band].credit -= i64::from(len);
        if self.options.pacing {
            self.pace(flow, &packet, len, entering.stamped);
        }
        Some((packet, len))
    }

    /// When the flow's next packet may leave.
    fn pace(&mut self, flow: u32, packet: &Packet, len: u32, stamped: bool) {
        let f = self.flows.get_mut(flow);
        let mut rate = self.ns.maxrate;
        let mut charged = len;
        // A packet with a departure time was paced by its sender; only fq's own limit is left.
        if !stamped {
            rate = rate.min(packet.pacing_rate().map_or(u64::MAX, |rate| rate.bytes_per_sec()));
            if self.rules.low_rate && rate <= self.options.low_rate_threshold.bytes_per_sec() {
                f.credit = 0;
            } else {
                charged = charged.max(self.options.quantum);
                if f.credit > 0 {
                    return;
                }
            }
        }
        if rate == u64::MAX {
            return;
        }
        // A rate of zero divides by nothing, in Linux too.
        let mut delay = u64::from(charged) * 1_000_000_000 / rate.max(1);
        if delay > MAX_DELAY {
            delay = MAX_DELAY;
            self.counters.pkts_too_long += 1;
        }
        if self.rules.drift && f.next_time != 0 {
            delay -= self.now.saturating_sub(f.next_time).min(delay / 2);
        }
        f.next_time = self.now.saturating_add(delay);
    }

    /// Gives everything queued to `drops`.
    pub(super) fn purge(&mut self, drops: &mut Drops) {
        for packet in self.packets.clear() {
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Reset);
        }
        self.internal = super::FlowQueue::new();
        self.internal_len = 0;
    }
}
