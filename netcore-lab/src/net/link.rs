//! A full-duplex link: rate, queue, delay, jitter, loss, bit errors.

use super::ETHERNET_OVERHEAD;
use super::egress::{Admission, Egress, EgressCounters, Red};
use crate::engine::{Component, Context};
use netcore::{Instant, Packet, PoolCache, Rate};
use std::collections::VecDeque;
use std::time::Duration;

/// Properties of both directions of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// Rate; `None`: frames take no time.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// Up to this much is added to the delay, uniformly distributed.
    pub jitter: Duration,
    /// A wait of this mean is added, exponentially distributed, as that for a shared resource in use by others is. Frames keep
    /// their order.
    pub wait: Duration,
    /// Jitter may change the order of frames; otherwise a frame never overtakes another.
    pub reorder: bool,
    /// Frames lost, in 1/2^32.
    pub loss: u32,
    /// Bits in error per 2^64 bits; a frame with one is dropped by the receiving MAC.
    pub bit_errors: u64,
    /// Bytes of wire time per frame besides the frame ([`ETHERNET_OVERHEAD`]).
    pub overhead: u32,
    /// Bytes that may wait for the link; `None`: any number.
    pub limit_bytes: Option<u64>,
    /// Frames that may wait for the link; `None`: any number.
    pub limit_packets: Option<u32>,
    /// Random early detection.
    pub red: Option<Red>,
}

impl Default for LinkConfig {
    /// An ideal Ethernet cable: no rate limit, no delay, no loss.
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            wait: Duration::ZERO,
            reorder: false,
            loss: 0,
            bit_errors: 0,
            overhead: ETHERNET_OVERHEAD,
            limit_bytes: None,
            limit_packets: None,
            red: None,
        }
    }
}

impl LinkConfig {
    /// An Ethernet link of `bits_per_sec` with `delay`.
    pub fn ethernet(bits_per_sec: u64, delay: Duration) -> Self {
        Self { rate: Some(Rate::from_bits_per_sec(bits_per_sec)), delay, ..Self::default() }
    }
}

/// Counters of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// The queue in front.
    pub queue: EgressCounters,
    /// Frames delivered.
    pub delivered: u64,
    /// Bytes delivered.
    pub bytes: u64,
    /// Frames lost on the way.
    pub lost: u64,
    /// Frames dropped because of bit errors.
    pub crc_errors: u64,
}

struct Direction {
    egress: Egress,
    flying: VecDeque<(Instant, Packet)>,
    last: Instant,
    counters: LinkCounters,
}

/// A link between port 0 and port 1.
pub struct Link {
    config: LinkConfig,
    directions: [Direction; 2],
    rng: fastrand::Rng,
    scheduled: Option<Instant>,
    up: bool,
}

impl Link {
    /// A link. `seed` feeds jitter, loss, bit errors and RED.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let direction = || Direction {
            egress: Egress::new(config.rate, config.overhead)
                .with_limit_bytes(config.limit_bytes)
                .with_limit_packets(config.limit_packets)
                .with_red(config.red),
            flying: VecDeque::new(),
            last: Instant::ZERO,
            counters: LinkCounters::default(),
        };
        Self {
            config,
            directions: [direction(), direction()],
            rng: fastrand::Rng::with_seed(seed),
            scheduled: None,
            up: true,
        }
    }

    /// Counters of the direction that starts at `port` (0 or 1).
    pub fn counters(&self, port: u16) -> LinkCounters {
        let d = &self.directions[usize::from(port & 1)];
        LinkCounters { queue: d.egress.counters(), ..d.counters }
    }

    /// Pulls or plugs the cable. Frames on the way are lost when it is pulled.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
        if !up {
            for d in &mut self.directions {
                d.counters.lost += d.flying.len() as u64;
                d.flying.clear();
            }
        }
    }

    /// Frames on the way, both directions.
    pub fn in_flight(&self) -> usize {
        self.directions.iter().map(|d| d.flying.len()).sum()
    }

    fn schedule(&mut self, ctx: &mut Context<'_>) {
        let next = self.directions.iter().filter_map(|d| d.flying.front().map(|(at, _)| *at)).min();
        ctx.wake_by(&mut self.scheduled, next);
    }
}

impl Component for Link {
    fn receive(&mut self, port: u16, mut packet: Packet, ctx: &mut Context<'_>) {
        let config = self.config;
        let d = &mut self.directions[usize::from(port & 1)];
        if !self.up {
            d.counters.lost += 1;
            ctx.cache.put(packet);
            return;
        }
        let len = packet.len();
        let (dice, capable) = if config.red.is_some() { (self.rng.u32(..), ecn_capable(&packet)) } else { (0, false) };
        // A card hands over the frames of a train at once, each with the time at which it leaves.
        let leaves = packet.departure().map_or(ctx.now, |at| at.max(ctx.now));
        packet.set_departure(None);
        let (end, mark) = match d.egress.offer(len, capable, dice, leaves) {
            Admission::At { end, mark, .. } => (end, mark),
            Admission::Full | Admission::Early => {
                ctx.cache.put(packet);
                return;
            }
        };
        if config.loss > 0 && self.rng.u32(..) < config.loss {
            d.counters.lost += 1;
            ctx.cache.put(packet);
            return;
        }
        if config.bit_errors > 0 {
            // For the small probabilities that links have, errors per frame are bits × rate.
            let bits = u128::from(config.bit_errors) * len as u128 * 8;
            if u128::from(self.rng.u64(..)) < bits {
                d.counters.crc_errors += 1;
                ctx.cache.put(packet);
                return;
            }
        }
        if mark {
            set_congestion_experienced(&mut packet, ctx.cache);
        }
        let mut at = end + config.delay;
        if !config.jitter.is_zero() {
            at = at.plus_nanos(self.rng.u64(0..=config.jitter.as_nanos() as u64));
            if !config.reorder {
                at = at.max(d.last);
            }
        }
        if !config.wait.is_zero() {
            at = at.plus_nanos(exponential(config.wait, self.rng.u64(..))).max(d.last);
        }
        d.last = d.last.max(at);
        let behind = d.flying.back().is_none_or(|(last, _)| *last <= at);
        if behind {
            d.flying.push_back((at, packet));
        } else {
            let index = d.flying.partition_point(|(other, _)| *other <= at);
            d.flying.insert(index, (at, packet));
        }
        self.schedule(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        for port in 0..2 {
            let d = &mut self.directions[port];
            while d.flying.front().is_some_and(|(at, _)| *at <= ctx.now) {
                if let Some((_, packet)) = d.flying.pop_front() {
                    d.counters.delivered += 1;
                    d.counters.bytes += packet.len() as u64;
                    ctx.send(1 - port as u16, packet);
                }
            }
        }
        self.schedule(ctx);
    }
}

/// `mean × -ln(u)` for a uniform `u`, at most 44 times the mean: sums and products alone, so that every build and platform
/// gives the same.
fn exponential(mean: Duration, dice: u64) -> u64 {
    if mean.is_zero() {
        return 0;
    }
    // Zero counts as the least number above it.
    let dice = dice.max(1);
    let halvings = dice.leading_zeros();
    // 1 <= m < 2: the bits below the first one, and u = m / 2^(halvings + 1).
    let m = ((dice << halvings) >> 11) as f64 / (1_u64 << 52) as f64;
    // ln m = 2 artanh((m - 1) / (m + 1)); five terms are exact to 1e-6.
    let x = (m - 1.0) / (m + 1.0);
    let (square, mut term, mut ln) = (x * x, x, 0.0);
    for n in [1.0, 3.0, 5.0, 7.0, 9.0] {
        ln += 2.0 * term / n;
        term *= square;
    }
    let minus_ln = f64::from(halvings + 1) * core::f64::consts::LN_2 - ln;
    (mean.as_nanos() as f64 * minus_ln.max(0.0)) as u64
}

/// Offset of the IP header and the byte with the ECN bits, for untagged IPv4 and IPv6.
fn ecn_bits(packet: &Packet) -> Option<u8> {
    match packet.head().get(12..16)? {
        [0x08, 0x00, _, tos] => Some(tos & 3),
        [0x86, 0xdd, _, second] => Some(second >> 4 & 3),
        _ => None,
    }
}

pub(crate) fn ecn_capable(packet: &Packet) -> bool {
    ecn_bits(packet).is_some_and(|ecn| ecn != 0)
}

/// Sets the ECN field to CE (RFC 3168), with the IPv4 header checksum updated.
pub(crate) fn set_congestion_experienced(packet: &mut Packet, cache: &mut PoolCache) {
    let len = packet.head_len().min(34);
    if packet.make_writable(len, cache).is_err() {
        return;
    }
    let Ok(head) = packet.head_mut() else { return };
    match head.get(12..14) {
        Some([0x08, 0x00]) if head.len() >= 34 => {
            let old = u16::from_be_bytes([head[14], head[15]]);
            head[15] |= 3;
            let new = u16::from_be_bytes([head[14], head[15]]);
            let sum = netcore::checksum::update16(u16::from_be_bytes([head[24], head[25]]), old, new);
            head[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        Some([0x86, 0xdd]) if head.len() >= 16 => head[15] |= 0x30,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_their_mean_and_the_tail_of_an_exponential_distribution() {
        let mut rng = fastrand::Rng::with_seed(1);
        let waits: Vec<u64> = (0..100_000).map(|_| exponential(Duration::from_micros(10), rng.u64(..))).collect();
        let mean = waits.iter().sum::<u64>() / 100_000;
        assert!((9_900..=10_100).contains(&mean), "{mean} ns");
        // e^-1 and e^-3 of them are longer than one and three means.
        let longer = |than: u64| waits.iter().filter(|wait| **wait > than).count();
        assert!((36_400..=37_200).contains(&longer(10_000)), "{}", longer(10_000));
        assert!((4_750..=5_210).contains(&longer(30_000)), "{}", longer(30_000));
        assert!(exponential(Duration::from_micros(10), 0) < 450_000 && exponential(Duration::ZERO, 7) == 0);
    }
}
