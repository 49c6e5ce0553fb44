//! What striping does to order: given links, traffic and receiver, how far packets are displaced, and which duplicate
//! threshold a TCP sender needs so that it does not take displacement for loss.
//!
//! [`Links::deliver`] says when each packet of a striped stream reaches the receiver's stack; [`Order`] measures any order of
//! arrival; [`analyse`] does both for a steady stream.
//!
//! ```
//! use core::time::Duration;
//! use netcore::Rate;
//! use netcore_bond::reorder::{Links, Path, Stream, analyse};
//!
//! // Four gigabit links, one of them 20 µs longer: at 3.08 µs per packet six are sent meanwhile. One of them takes the long
//! // link as well, so five overtake.
//! let gigabit = Path::new(Rate::from_bits_per_sec(1_000_000_000));
//! let late = gigabit.with_latency(Duration::from_micros(20));
//! let links = Links::new([gigabit, gigabit, gigabit, late]);
//! let report = analyse(&links, &Stream::default());
//! assert_eq!((report.max_extent, report.dupthresh), (5, 6));
//! ```

mod order;
mod path;
#[cfg(test)]
mod tests;

pub use order::{Order, Reordering};
pub use path::{Arrival, Links, Moderation, Offered, Path};

use alloc::vec::Vec;
use netcore::{Instant, Rate};

/// Bytes of a frame on the wire besides those that are captured: preamble, frame check sequence, gap (IEEE 802.3).
pub const WIRE_OVERHEAD: u32 = 24;
/// Shortest frame on the wire, overhead included.
pub const WIRE_MINIMUM: u32 = 84;

/// Bytes that a frame takes on the wire.
pub const fn wire_len(frame: u32) -> u32 {
    let len = frame.saturating_add(WIRE_OVERHEAD);
    if len < WIRE_MINIMUM { WIRE_MINIMUM } else { len }
}

/// A steady stream that is dealt out in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Lengths of the frames, in turn; without overhead.
    pub frames: Vec<u32>,
    /// Frames that leave as one unit (TSO), all on one link.
    pub unit: u32,
    /// Units before the next link's turn.
    pub packets_per_slave: u32,
    /// What the sender offers; `None`: as fast as all links together.
    pub rate: Option<Rate>,
    /// Frames in all.
    pub packets: u32,
}

impl Default for Stream {
    /// Ten thousand full frames, one by one, as fast as the links go.
    fn default() -> Self {
        Self { frames: alloc::vec![1514], unit: 1, packets_per_slave: 1, rate: None, packets: 10_000 }
    }
}

/// Sends a stream over links in turn and measures the order in which the receiver's stack sees it.
pub fn analyse(links: &Links, stream: &Stream) -> Reordering {
    let rate = stream.rate.unwrap_or_else(|| links.total_rate());
    let turn = u64::from(stream.unit.max(1)) * u64::from(stream.packets_per_slave.max(1));
    let n = links.paths().len().max(1) as u64;
    let mut sent_bytes = 0_u64;
    let mut offered = Vec::with_capacity(stream.packets as usize);
    for k in 0..u64::from(stream.packets) {
        let len = stream.frames.get((k % stream.frames.len().max(1) as u64) as usize).copied().unwrap_or(1514);
        // All frames of a unit are offered at once.
        let at = Instant::from_nanos(rate.nanos_for(sent_bytes).unwrap_or(0));
        offered.push(Offered { at, frame: len, link: (k / turn % n) as usize });
        if (k + 1).is_multiple_of(u64::from(stream.unit.max(1))) {
            let first = k + 1 - u64::from(stream.unit.max(1));
            sent_bytes += (first..=k).map(|i| u64::from(wire_len(offered[i as usize].frame))).sum::<u64>();
        }
    }
    let mut order = Order::new();
    for arrival in links.deliver(&offered) {
        order.arrived(arrival.packet as u64);
    }
    order.report()
}
