//! Two endpoints over a path in virtual time: rate, delay, queue, and whatever a test does to the frames.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use netcore::{Instant, MacAddress, Packet, PacketPool, PoolCache, PoolConfig, Segmenter};
use netcore_tcp::{Config, Endpoint, LinkAddress, Path, Profile};
use std::collections::BinaryHeap;
use std::time::Duration;

/// A frame on its way.
struct Flying {
    at: u64,
    order: u64,
    to_server: bool,
    frame: Packet,
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Flying {}
impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// What a test does to a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    Delay(u64),
    Duplicate,
    Corrupt,
}

pub type Judge = Box<dyn FnMut(bool, u64, &Packet) -> Fate>;

pub struct Pair {
    pub client: Endpoint,
    pub server: Endpoint,
    pub pool: PacketPool,
    pub cache: PoolCache,
    pub now: Instant,
    pub delay_ns: u64,
    /// ns per byte × 1000 of the client's link; 0 is infinitely fast.
    pub ps_per_byte: u64,
    pub queue_limit_ns: u64,
    pub judge: Judge,
    /// Frames that meet congestion.
    pub mark: Box<dyn FnMut(bool, u64) -> bool>,
    link_free: [u64; 2],
    flying: BinaryHeap<Flying>,
    order: u64,
    count: [u64; 2],
    pub frames: u64,
    pub dropped_by_queue: u64,
    /// The server's application reads at once.
    pub server_reads: bool,
    pub client_reads: bool,
    pub segment: bool,
    pub completions: bool,
    gso: netcore_offload::SoftwareSegmenter,
}

pub fn path() -> Path {
    let link =
        LinkAddress { local: MacAddress([2, 0, 0, 0, 0, 1]), remote: MacAddress([2, 0, 0, 0, 0, 2]), vlan: None };
    Path::new(link, "10.0.0.1:40000".parse().expect("address"), "10.0.0.2:5001".parse().expect("address"))
}

pub fn path6() -> Path {
    let link =
        LinkAddress { local: MacAddress([2, 0, 0, 0, 0, 1]), remote: MacAddress([2, 0, 0, 0, 0, 2]), vlan: None };
    Path::new(link, "[fd00::1]:40000".parse().expect("address"), "[fd00::2]:5001".parse().expect("address"))
}

impl Pair {
    pub fn new(client: Config, server: Config) -> Self {
        Self::with_path(client, server, path())
    }

    pub fn with_path(client: Config, server: Config, path: Path) -> Self {
        let pool = PacketPool::new(PoolConfig { windows: 400_000, ..PoolConfig::with_buffers(100_000) }).expect("pool");
        let cache = pool.cache();
        let now = Instant::from_secs(1);
        Self {
            client: Endpoint::connect(client, path, 1, now).expect("client"),
            server: Endpoint::listen(server, path.reversed(), 2).expect("server"),
            cache,
            pool,
            now,
            delay_ns: 10_000_000,
            ps_per_byte: 0,
            queue_limit_ns: u64::MAX,
            judge: Box::new(|_, _, _| Fate::Deliver),
            mark: Box::new(|_, _| false),
            link_free: [0; 2],
            flying: BinaryHeap::new(),
            order: 0,
            count: [0; 2],
            frames: 0,
            dropped_by_queue: 0,
            server_reads: true,
            client_reads: true,
            segment: true,
            completions: true,
            gso: netcore_offload::SoftwareSegmenter::new(),
        }
    }

    pub fn profile(profile: Profile) -> Self {
        Self::new(Config::new(profile), Config::new(profile))
    }

    pub fn rate(mut self, bits_per_sec: u64) -> Self {
        self.ps_per_byte = 8_000_000_000_000 / bits_per_sec;
        self
    }

    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ns = delay.as_nanos() as u64;
        self
    }

    /// A frame leaves an endpoint: the link takes wire frames.
    fn launch(&mut self, from_client: bool, frame: Packet) {
        let truesize = frame.truesize() as u32;
        if frame.is_super() && self.segment {
            let features = netcore::Features::empty();
            let mut out = netcore::Burst::new();
            self.gso.segment(frame, features, &mut self.cache, &mut out).expect("segments");
            while let Some(piece) = out.pop() {
                self.put_on_wire(from_client, piece);
            }
        } else {
            self.put_on_wire(from_client, frame);
        }
        if self.completions {
            let now = self.now;
            let endpoint = if from_client { &mut self.client } else { &mut self.server };
            endpoint.completed(truesize, now);
        }
    }

    fn put_on_wire(&mut self, from_client: bool, mut frame: Packet) {
        self.frames += 1;
        let side = usize::from(!from_client);
        let now = self.now.as_nanos();
        let start = self.link_free[side].max(now);
        if start - now > self.queue_limit_ns {
            self.dropped_by_queue += 1;
            self.cache.put(frame);
            return;
        }
        let leaves = start + (frame.len() as u64 + 24) * self.ps_per_byte / 1000;
        self.link_free[side] = leaves;
        let n = self.count[side];
        self.count[side] += 1;
        let mut at = leaves + self.delay_ns;
        if (self.mark)(from_client, n) {
            let _ = frame.make_writable(34, &mut self.cache);
            if let Ok(bytes) = frame.head_mut() {
                let old = u16::from_be_bytes([bytes[14], bytes[15]]);
                bytes[15] |= 3;
                let new = u16::from_be_bytes([bytes[14], bytes[15]]);
                let sum = netcore::checksum::update16(u16::from_be_bytes([bytes[24], bytes[25]]), old, new);
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            }
        }
        match (self.judge)(from_client, n, &frame) {
            Fate::Deliver => {}
            Fate::Drop => {
                self.cache.put(frame);
                return;
            }
            Fate::Delay(ns) => at += ns,
            Fate::Duplicate => {
                if let Ok(copy) = frame.share(&mut self.cache) {
                    self.fly(at, from_client, copy);
                }
            }
            Fate::Corrupt => {
                let n = frame.len();
                let _ = frame.make_writable(n.min(54), &mut self.cache);
                frame.set_transmit_checksum(None);
                if let Ok(bytes) = frame.head_mut() {
                    let at = 38.min(bytes.len() - 1);
                    bytes[at] ^= 0x55;
                }
            }
        }
        self.fly(at, from_client, frame);
    }

    fn fly(&mut self, at: u64, to_server: bool, frame: Packet) {
        self.order += 1;
        self.flying.push(Flying { at, order: self.order, to_server, frame });
    }

    /// Sends everything that may go now.
    pub fn pump(&mut self) {
        loop {
            let mut any = false;
            while let Some(frame) = self.client.poll_transmit(&mut self.cache, self.now) {
                self.launch(true, frame);
                any = true;
            }
            while let Some(frame) = self.server.poll_transmit(&mut self.cache, self.now) {
                self.launch(false, frame);
                any = true;
            }
            if !any {
                break;
            }
        }
    }

    /// When something happens next.
    fn next_event(&self) -> Option<Instant> {
        let flying = self.flying.peek().map(|f| Instant::from_nanos(f.at));
        let timers = [self.client.poll_at(), self.server.poll_at()].into_iter().flatten().min();
        [flying, timers].into_iter().flatten().min()
    }

    /// Goes to the next event before `end`. False if there is none.
    pub fn step(&mut self, end: Instant) -> bool {
        self.pump();
        let Some(next) = self.next_event().filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        while self.flying.peek().is_some_and(|f| f.at <= self.now.as_nanos()) {
            let f = self.flying.pop().expect("peeked");
            let endpoint = if f.to_server { &mut self.server } else { &mut self.client };
            let _ = endpoint.handle(f.frame, &mut self.cache, self.now);
        }
        self.client.poll(self.now);
        self.server.poll(self.now);
        if self.server_reads {
            self.server.discard(u64::MAX, &mut self.cache, self.now);
        }
        if self.client_reads {
            self.client.discard(u64::MAX, &mut self.cache, self.now);
        }
        true
    }

    /// Runs until `until`, offering `offered` virtual bytes to the client; returns bytes the server got.
    pub fn run(&mut self, offered: u64, until: Duration) -> u64 {
        let end = self.now + until;
        let mut left = offered;
        loop {
            if left > 0 && (self.client.is_writable() || left == offered) {
                left -= self.client.write_virtual(left);
            }
            self.pump();
            if !self.step(end) {
                break;
            }
        }
        self.server.info().bytes_received
    }
}
