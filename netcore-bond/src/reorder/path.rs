//! Links between two ends of a bond, and the receiver's interrupts.

use super::wire_len;
use alloc::vec::Vec;
use core::time::Duration;
use netcore::{Instant, Rate};

/// How a receiver's device collects frames before it interrupts (`ethtool -C`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moderation {
    /// Time from the first frame to the interrupt (`rx-usecs`).
    pub delay: Duration,
    /// Frames that bring it on earlier (`rx-frames`); 0 is no such limit.
    pub frames: u32,
}

/// One link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Rate.
    pub rate: Rate,
    /// Time besides transmission: bus, cable, switch.
    pub latency: Duration,
    /// The device at its end.
    pub moderation: Moderation,
}

impl Path {
    /// A link without latency, and an interrupt for each frame.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, latency: Duration::ZERO, moderation: Moderation { delay: Duration::ZERO, frames: 0 } }
    }

    /// With a latency.
    pub const fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// With interrupt moderation.
    pub const fn with_moderation(self, moderation: Moderation) -> Self {
        Self { moderation, ..self }
    }
}

/// A packet given to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offered {
    /// When.
    pub at: Instant,
    /// Bytes of the frame.
    pub frame: u32,
    /// Index of the link.
    pub link: usize,
}

/// A packet that reached the receiver's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Index of the packet among those offered.
    pub packet: usize,
    /// Index of the link.
    pub link: usize,
}

/// Links side by side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    paths: Vec<Path>,
}

impl Links {
    /// These links.
    pub fn new(paths: impl IntoIterator<Item = Path>) -> Self {
        Self { paths: paths.into_iter().collect() }
    }

    /// The links.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// All rates together.
    pub fn total_rate(&self) -> Rate {
        Rate::from_bytes_per_sec(self.paths.iter().fold(0, |sum, p| sum.saturating_add(p.rate.bytes_per_sec())))
    }

    /// Sends packets, each on its link behind those before it, and says in which order and when the receiver's stack gets
    /// them. Interrupts at the same time are served by link. Packets for a link that is not there, or whose rate is zero,
    /// do not arrive.
    pub fn deliver(&self, packets: &[Offered]) -> Vec<Arrival> {
        let mut free = alloc::vec![Instant::ZERO; self.paths.len()];
        let mut per_link: Vec<Vec<Arrival>> = alloc::vec![Vec::new(); self.paths.len()];
        for (packet, offered) in packets.iter().enumerate() {
            let Some(path) = self.paths.get(offered.link) else { continue };
            let Some(time) = path.rate.time_for(u64::from(wire_len(offered.frame))) else { continue };
            let end = free[offered.link].max(offered.at) + time;
            free[offered.link] = end;
            per_link[offered.link].push(Arrival { at: end + path.latency, packet, link: offered.link });
        }
        for (path, arrivals) in self.paths.iter().zip(&mut per_link) {
            moderate(path.moderation, arrivals);
        }
        let mut all: Vec<Arrival> = per_link.into_iter().flatten().collect();
        // Stable: those of one link and interrupt keep their order.
        all.sort_by_key(|a| (a.at, a.link));
        all
    }
}

/// Moves arrivals to their interrupts.
fn moderate(moderation: Moderation, arrivals: &mut [Arrival]) {
    if moderation.delay.is_zero() {
        return;
    }
    let limit = if moderation.frames == 0 { usize::MAX } else { moderation.frames as usize };
    let mut first = 0;
    while first < arrivals.len() {
        let due = arrivals[first].at + moderation.delay;
        let in_time = arrivals[first..].iter().take_while(|a| a.at <= due).count();
        let (count, at) = if in_time >= limit { (limit, arrivals[first + limit - 1].at) } else { (in_time, due) };
        for arrival in &mut arrivals[first..first + count] {
            arrival.at = at;
        }
        first += count;
    }
}
