//! Two systems, links between them, and virtual time.
#![allow(dead_code, unreachable_pub)]

use netcore::wire::{LacpState, Lacpdu};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{FrameKind, Lacp, LacpConfig, LacpEvent, MuxState, Port, PortConfig, ReceiveState, Timing};
use std::time::Duration;

/// What a link does to a frame from an end: any number of copies, each after a delay.
pub type Fate = Box<dyn FnMut(Instant, usize) -> Vec<Duration>>;

pub struct Link {
    /// Port numbers of the two ends.
    pub ports: [u16; 2],
    /// Frames pass.
    pub passes: bool,
    pub fate: Fate,
}

pub struct Sent {
    pub at: Instant,
    pub end: usize,
    pub link: usize,
    pub pdu: Lacpdu,
}

pub struct Net {
    pub now: Instant,
    pub ends: [Lacp; 2],
    pub links: Vec<Link>,
    flight: Vec<(Instant, u64, usize, usize, Vec<u8>)>,
    serial: u64,
    pub sent: Vec<Sent>,
    pub events: Vec<(Instant, usize, LacpEvent)>,
}

pub fn mac(end: usize, port: u16) -> MacAddress {
    MacAddress([2, 0, 0, end as u8 + 1, (port >> 8) as u8, port as u8])
}

pub fn system(end: usize) -> MacAddress {
    mac(end, 0xff)
}

pub fn config(end: usize, timing: Timing) -> LacpConfig {
    LacpConfig { timing, ..LacpConfig::new(system(end)) }
}

pub const BOTH_TIMINGS: [Timing; 2] = [Timing::Linux { tick: Timing::TICK }, Timing::EventDriven];

impl Net {
    /// Two systems joined by `links` links of 1 Gbit/s and 50 µs.
    pub fn new(configs: [LacpConfig; 2], links: u16) -> Self {
        let ends = configs.map(|c| Lacp::new(c).unwrap());
        let mut net = Self {
            now: Instant::from_secs(1000),
            ends,
            links: Vec::new(),
            flight: Vec::new(),
            serial: 0,
            sent: Vec::new(),
            events: Vec::new(),
        };
        for _ in 0..links {
            net.add_link(LinkState::up(1000));
        }
        net
    }

    pub fn add_link(&mut self, state: LinkState) {
        let now = self.now;
        let ports = [0, 1].map(|end| {
            let number = self.ends[end].ports().last().map_or(1, |p| p.number() + 1);
            self.ends[end].add_port(&PortConfig::new(mac(end, number)), state, now).unwrap()
        });
        self.join(ports);
    }

    /// Joins a port of each end.
    pub fn join(&mut self, ports: [u16; 2]) {
        self.links.push(Link { ports, passes: true, fate: Box::new(|_, _| vec![Duration::from_micros(50)]) });
    }

    pub fn open(&mut self) {
        let now = self.now;
        self.ends.iter_mut().for_each(|end| end.open(now));
        self.step();
    }

    pub fn port(&self, end: usize, link: usize) -> &Port {
        self.ends[end].port(self.links[link].ports[end]).unwrap()
    }

    pub fn state(&self, end: usize, link: usize) -> u8 {
        self.port(end, link).actor().state().bits()
    }

    pub fn distributes(&self, end: usize, link: usize) -> bool {
        self.ends[end].distributes(self.port(end, link))
    }

    pub fn set_link(&mut self, link: usize, state: LinkState) {
        for end in 0..2 {
            let (port, now) = (self.links[link].ports[end], self.now);
            self.ends[end].set_link(port, state, now).unwrap();
        }
        self.step();
    }

    /// Fetches frames and events, and puts frames in flight.
    pub fn step(&mut self) {
        for end in 0..2 {
            while let Some(frame) = self.ends[end].next_frame() {
                let Some(link) = self.links.iter().position(|l| l.ports[end] == frame.port) else { continue };
                if frame.kind == FrameKind::Lacpdu {
                    let pdu = *Lacpdu::parse(&frame.bytes[14..]).unwrap().0;
                    self.sent.push(Sent { at: self.now, end, link, pdu });
                }
                if !self.links[link].passes {
                    continue;
                }
                for delay in (self.links[link].fate)(self.now, end) {
                    self.serial += 1;
                    self.flight.push((self.now + delay, self.serial, 1 - end, link, frame.bytes.to_vec()));
                }
            }
            while let Some(event) = self.ends[end].next_event() {
                self.events.push((self.now, end, event));
            }
        }
    }

    /// Delivers what is in flight, whenever it is due.
    pub fn deliver(&mut self) {
        for (_, _, end, link, bytes) in core::mem::take(&mut self.flight) {
            let (port, now) = (self.links[link].ports[end], self.now);
            self.ends[end].handle(port, &bytes, now).unwrap();
        }
    }

    pub fn run(&mut self, span: Duration, mut check: impl FnMut(&Self)) {
        let until = self.now + span;
        let mut rounds_here = 0;
        loop {
            let arrival = self.flight.iter().map(|f| f.0).min();
            let next = self.ends.iter().filter_map(Lacp::poll_at).chain(arrival).min();
            let Some(next) = next.map(|t| t.max(self.now)).filter(|&t| t <= until) else { break };
            rounds_here = if next == self.now { rounds_here + 1 } else { 0 };
            assert!(rounds_here < 100, "poll_at asks again and again for {next}");
            self.now = next;
            let mut due: Vec<_> = self.flight.extract_if(.., |f| f.0 <= next).collect();
            due.sort_by_key(|f| (f.0, f.1));
            for (_, _, end, link, bytes) in due {
                if self.links[link].passes {
                    let port = self.links[link].ports[end];
                    self.ends[end].handle(port, &bytes, next).unwrap();
                    self.step();
                }
            }
            for end in 0..2 {
                self.ends[end].poll(next);
            }
            self.step();
            check(self);
        }
        self.now = until;
    }

    pub fn run_secs(&mut self, secs: f64) {
        self.run(Duration::from_secs_f64(secs), |_| ());
    }

    /// Runs until `done` and says how long that took.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> Duration {
        let start = self.now;
        while !done(self) {
            assert!(self.now - start < limit, "not within {limit:?}");
            self.run(Duration::from_millis(10), |_| ());
        }
        self.now - start
    }

    /// All links are used both ways, and not for want of a partner only.
    pub fn all_distribute(&self) -> bool {
        let used = |end, link| {
            self.distributes(end, link) && self.port(end, link).actor().state().contains(LacpState::DISTRIBUTING)
        };
        (0..2).all(|end| (0..self.links.len()).all(|link| used(end, link)))
    }

    /// All links of one speed are used both ways, the others neither way.
    pub fn agrees(&self) -> bool {
        let Some(active) = self.ends[0].active_aggregator() else { return false };
        (0..self.links.len()).all(|link| {
            let chosen = self.port(0, link).actor().key() == active.actor_key;
            (0..2).all(|end| {
                let says = self.port(end, link).actor().state().contains(LacpState::DISTRIBUTING);
                (self.distributes(end, link), says) == (chosen, chosen)
            })
        })
    }

    /// What must hold at any time: no data goes where the partner is not known to be in sync, unless the port serves
    /// without LACP for want of a partner.
    pub fn assert_sane(&self) {
        for end in &self.ends {
            let active = end.active_aggregator();
            for port in end.ports() {
                let (actor, partner) = (port.actor().state(), port.partner());
                let in_use = matches!(port.mux_state(), MuxState::CollectingDistributing | MuxState::Distributing);
                assert_eq!(actor.contains(LacpState::DISTRIBUTING), in_use);
                if !end.distributes(port) {
                    continue;
                }
                assert!(port.link().up, "a port without link distributes");
                assert_eq!(end.aggregator_of(port), active.map(|a| a.aggregator_id));
                let alone = partner.system() == MacAddress::default();
                assert!(in_use || alone, "distributes in {:?}", port.mux_state());
                assert!(alone || actor.contains(LacpState::SYNCHRONIZATION | LacpState::DISTRIBUTING));

                if !alone {
                    assert!(partner.state().contains(LacpState::SYNCHRONIZATION));
                    assert_eq!(port.receive_state(), ReceiveState::Current);
                }
            }
        }
    }
}
