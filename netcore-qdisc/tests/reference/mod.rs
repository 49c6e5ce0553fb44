//! fq, slow and obvious: every search is a scan, every order a sort. It shares no code with the crate.

use std::collections::{BTreeMap, VecDeque};

pub(crate) const MAX: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) limit: usize,
    pub(crate) flow_limit: usize,
    pub(crate) quantum: i64,
    pub(crate) initial_quantum: i64,
    pub(crate) maxrate: u64,
    pub(crate) pacing: bool,
    pub(crate) refill_delay: u64,
    pub(crate) low_rate: u64,
    pub(crate) horizon: u64,
    pub(crate) horizon_drop: bool,
    pub(crate) priomap: [usize; 16],
    pub(crate) weights: [i64; 3],
    pub(crate) offload_horizon: u64,
    pub(crate) fresh_in_band_0: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Pkt {
    pub(crate) id: u16,
    pub(crate) flow: u64,
    pub(crate) len: i64,
    pub(crate) stamp: Option<u64>,
    pub(crate) rate: Option<u64>,
    pub(crate) priority: usize,
    time: u64,
    band: usize,
}

impl Pkt {
    pub(crate) fn new(id: u16, flow: u64, len: i64, stamp: Option<u64>, rate: Option<u64>, priority: usize) -> Self {
        Self { id, flow, len, stamp, rate, priority, time: 0, band: 0 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Idle { since: u64, order: u64 },
    Listed,
    Waiting { order: u64 },
}

#[derive(Clone, Debug)]
struct Flow {
    list: VecDeque<Pkt>,
    late: Vec<Pkt>,
    credit: i64,
    next: u64,
    band: usize,
    place: Place,
}

impl Flow {
    fn len(&self) -> usize {
        self.list.len() + self.late.len()
    }

    fn first(&self) -> Option<&Pkt> {
        match (self.list.front(), self.late.first()) {
            (Some(a), Some(b)) if b.time < a.time => Some(b),
            (Some(a), _) => Some(a),
            (None, b) => b,
        }
    }

    fn take_first(&mut self) -> Pkt {
        match (self.list.front(), self.late.first()) {
            (Some(a), Some(b)) if b.time < a.time => self.late.remove(0),
            (Some(_), _) => self.list.pop_front().unwrap(),
            (None, _) => self.late.remove(0),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Packet(u16),
    Empty,
    Throttled(u64),
}

#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) config: Config,
    now: u64,
    flows: BTreeMap<u64, Flow>,
    new: [VecDeque<u64>; 3],
    old: [VecDeque<u64>; 3],
    credit: [i64; 3],
    band: usize,
    internal: VecDeque<Pkt>,
    orders: u64,
    pub(crate) fastpath: u64,
    pub(crate) gc: u64,
    pub(crate) throttled: u64,
}

impl Reference {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            now: 0,
            flows: BTreeMap::new(),
            new: Default::default(),
            old: Default::default(),
            credit: [0; 3],
            band: 0,
            internal: VecDeque::new(),
            orders: 0,
            fastpath: 0,
            gc: 0,
            throttled: 0,
        }
    }

    fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    pub(crate) fn len(&self) -> usize {
        self.internal.len() + self.flows.values().map(Flow::len).sum::<usize>()
    }

    pub(crate) fn backlog(&self) -> i64 {
        let flows = self.flows.values().flat_map(|f| f.list.iter().chain(&f.late));
        flows.chain(&self.internal).map(|p| p.len).sum()
    }

    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.flows.values().filter(|f| matches!(f.place, Place::Waiting { .. })).count()
    }

    fn in_band(&self, band: usize) -> usize {
        self.flows.values().flat_map(|f| f.list.iter().chain(&f.late)).filter(|p| p.band == band).count()
    }

    fn earliest(&self) -> Option<u64> {
        self.flows.values().filter(|f| matches!(f.place, Place::Waiting { .. })).map(|f| f.next).min()
    }

    /// `Err` with the reason if the packet is dropped.
    pub(crate) fn enqueue(&mut self, mut p: Pkt, now: u64) -> Result<(), &'static str> {
        self.now = self.now.max(now);
        let now = self.now;
        p.band = self.config.priomap[p.priority];
        if self.in_band(p.band) >= self.config.limit {
            return Err("band_limit");
        }
        p.time = now;
        if let Some(stamp) = p.stamp {
            p.time = stamp;
            let most = now.saturating_add(self.config.horizon);
            if stamp > most {
                if self.config.horizon_drop {
                    return Err("horizon");
                }
                p.time = most;
            }
        }
        let due = now.saturating_add(self.config.offload_horizon);
        let nothing_to_send = self.flows.values().all(|f| f.len() == 0 || matches!(f.place, Place::Waiting { .. }))
            && self.internal.len() < 8
            && self.earliest().is_none_or(|t| t > due);
        if p.time <= due
            && (self.len() == 0 || nothing_to_send)
            && self.config.maxrate == MAX
            && !(p.rate.is_some() && p.stamp.is_none())
        {
            self.fastpath += 1;
            // The internal queue holds due packets in order of their times.
            let at = self.internal.partition_point(|q| q.time <= p.time);
            self.internal.insert(at, p);
            return Ok(());
        }
        self.collect(p.flow);
        if !self.flows.contains_key(&p.flow) {
            let order = self.order();
            let place = Place::Idle { since: now, order };
            let credit = self.config.initial_quantum;
            let flow = Flow { list: VecDeque::new(), late: Vec::new(), credit, next: 0, band: 0, place };
            self.flows.insert(p.flow, flow);
        }
        let f = self.flows.get_mut(&p.flow).unwrap();
        if f.len() >= self.config.flow_limit {
            return Err("flow_limit");
        }
        if let Place::Idle { since, .. } = f.place {
            if now > since.saturating_add(self.config.refill_delay) && f.credit >= 0 {
                f.credit = f.credit.max(self.config.quantum);
            }
            f.place = Place::Listed;
            let band = if self.config.fresh_in_band_0 { f.band } else { p.band };
            self.new[band].push_back(p.flow);
        }
        f.band = p.band;
        if f.list.back().is_none_or(|last| p.time >= last.time) {
            f.list.push_back(p);
        } else {
            let at = f.late.partition_point(|q| q.time <= p.time);
            f.late.insert(at, p);
        }
        Ok(())
    }

    fn collect(&mut self, keep: u64) {
        let mut idle: Vec<(u64, u64, u64)> = self
            .flows
            .iter()
            .filter_map(|(&id, f)| match f.place {
                Place::Idle { since, order } => Some((order, id, since)),
                _ => None,
            })
            .collect();
        idle.sort();
        let old = idle.iter().filter(|i| i.2 < self.now.saturating_sub(3_000_000_000) && i.1 != keep).take(8);
        for &(_, id, _) in old {
            self.flows.remove(&id);
            self.gc += 1;
        }
    }

    pub(crate) fn dequeue(&mut self, now: u64) -> Outcome {
        self.now = self.now.max(now);
        if self.len() == 0 {
            return Outcome::Empty;
        }
        match self.next() {
            Some(p) => Outcome::Packet(p.id),
            None => match self.earliest() {
                Some(t) => Outcome::Throttled(t.saturating_sub(self.config.offload_horizon)),
                None => Outcome::Empty,
            },
        }
    }

    pub(crate) fn shrink(&mut self, now: u64) -> Vec<u16> {
        self.now = self.now.max(now);
        let mut dropped = Vec::new();
        while self.len() > self.config.limit {
            let Some(p) = self.next() else { break };
            dropped.push(p.id);
        }
        dropped
    }

    fn next(&mut self) -> Option<Pkt> {
        if let Some(p) = self.internal.pop_front() {
            return Some(p);
        }
        let now = self.now;
        let due = now.saturating_add(self.config.offload_horizon);
        let mut ready: Vec<(u64, u64, u64)> = self
            .flows
            .iter()
            .filter_map(|(&id, f)| match f.place {
                Place::Waiting { order } if f.next <= due => Some((f.next, order, id)),
                _ => None,
            })
            .collect();
        ready.sort();
        for (_, _, id) in ready {
            let f = self.flows.get_mut(&id).unwrap();
            f.place = Place::Listed;
            self.old[f.band].push_back(id);
        }
        loop {
            let b = self.select()?;
            let from_new = !self.new[b].is_empty();
            let list = if from_new { &mut self.new[b] } else { &mut self.old[b] };
            let id = *list.front().unwrap();
            let order = self.order();
            let f = self.flows.get_mut(&id).unwrap();
            let list = if from_new { &mut self.new[b] } else { &mut self.old[b] };
            if f.credit <= 0 {
                f.credit += self.config.quantum;
                list.pop_front();
                self.old[f.band].push_back(id);
                continue;
            }
            let Some(first) = f.first() else {
                list.pop_front();
                if from_new {
                    self.old[f.band].push_back(id);
                } else {
                    f.place = Place::Idle { since: now, order };
                }
                continue;
            };
            let time = first.time.max(f.next);
            if due < time {
                list.pop_front();
                f.next = time;
                f.place = Place::Waiting { order };
                self.throttled += 1;
                continue;
            }
            let p = f.take_first();
            f.credit -= p.len;
            self.credit[b] -= p.len;
            if self.config.pacing {
                pace(f, &p, &self.config, now);
            }
            return Some(p);
        }
    }

    fn select(&mut self) -> Option<usize> {
        let some = |r: &Self, b: usize| !r.new[b].is_empty() || !r.old[b].is_empty();
        if self.credit[self.band] > 0 && some(self, self.band) {
            return Some(self.band);
        }
        let mut misses = 0;
        while misses < 3 {
            self.band = (self.band + 1) % 3;
            let b = self.band;
            self.credit[b] = (self.credit[b] + self.config.weights[b]).min(self.config.weights[b]);
            if self.credit[b] <= 0 {
                misses = 0;
            } else if some(self, b) {
                return Some(b);
            } else {
                misses += 1;
            }
        }
        None
    }
}

fn pace(f: &mut Flow, p: &Pkt, config: &Config, now: u64) {
    let mut rate = config.maxrate;
    let mut len = p.len;
    if p.stamp.is_none() {
        rate = rate.min(p.rate.unwrap_or(MAX));
        if rate <= config.low_rate {
            f.credit = 0;
        } else {
            len = len.max(config.quantum);
            if f.credit > 0 {
                return;
            }
        }
    }
    if rate == MAX {
        return;
    }
    let mut delay = (u128::from(len as u64) * 1_000_000_000 / u128::from(rate.max(1))).min(1_000_000_000) as u64;
    if f.next != 0 && now > f.next {
        delay -= (now - f.next).min(delay / 2);
    }
    f.next = now.saturating_add(delay);
}
