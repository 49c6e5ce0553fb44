//! Runs: full segments of a flow one after the other, which is what most packets under load are.
//!
//! When the second segment of a frequent frame (see `fast.rs`) has merged, the place of the held packet says what every
//! further full segment looks like: metadata as a device gives them, the length, and the headers but for identification, sequence
//! number and checksums. A packet that is exactly that merges here, after one comparison; any other goes the way it would have
//! gone without this, so a run changes the cost of a packet and nothing else.

use super::fast::{ETHERNET, HEAD, VXLAN_INNER, VXLAN_UDP, word16, word32};
use super::rules::{GroConfig, IpIdRule};
use super::table::{Held, Place};
use super::{Gro, append};
use netcore::checksum::{Sum, ipv4_header_sums};
use netcore::simd::{VectorTask, Vectors};
use netcore::{Burst, Packet, PoolCache};

/// Bytes that are compared: VXLAN and headers with 12 bytes of TCP options.
const WIDE: usize = 128;
/// As `WIDE`, of a plain frame: headers with any options.
const PLAIN: usize = 96;

/// What the headers of every further full segment are.
pub(super) struct Run {
    /// What [`ipv4_header_sums`] says of the outermost and the innermost network header without what varies.
    constant: [Sum; 2],
    /// Which bits of `head` must agree.
    mask: &'static [u8; WIDE],
    payload_at: u16,
    /// The UDP header of the tunnel has a checksum.
    checksum: bool,
    head: [u8; WIDE],
}

/// Masks by the number of words of TCP options.
static PLAIN_MASKS: [[u8; WIDE]; 11] = masks(ETHERNET, false);
static VXLAN_MASKS: [[u8; WIDE]; 7] = masks(VXLAN_INNER, true);

const fn masks<const N: usize>(network: usize, vxlan: bool) -> [[u8; WIDE]; N] {
    let mut masks = [[0; WIDE]; N];
    let mut options = 0;
    while options < N {
        let mask = &mut masks[options];
        let mut at = 0;
        while at < network + 40 + 4 * options {
            let outer = vxlan && (varies(at, ETHERNET) || at == VXLAN_UDP + 6 || at == VXLAN_UDP + 7);
            let tcp = at.wrapping_sub(network + 20);
            // Sequence number, checksum, and the urgent pointer, which says nothing without URG.
            let varying = matches!(tcp, 4..=7 | 16..=19);
            mask[at] = if outer || varies(at, network) || varying { 0 } else { 0xff };
            at += 1;
        }
        options += 1;
    }
    masks
}

/// Identification and checksum of an IPv4 header.
const fn varies(at: usize, network: usize) -> bool {
    matches!(at.wrapping_sub(network), 4 | 5 | 10 | 11)
}

#[inline(always)]
fn sums(h: &[u8; HEAD], network: usize) -> (Sum, Sum) {
    let mut header = [0; 20];
    header.copy_from_slice(&h[network..network + 20]);
    ipv4_header_sums(&header)
}

impl Run {
    pub(super) const NONE: Self =
        Self { constant: [Sum::ZERO; 2], mask: &PLAIN_MASKS[0], payload_at: 0, checksum: false, head: [0; WIDE] };

    /// Whether a packet of the right length continues the run.
    #[inline(always)]
    fn continues<V: Vectors, const VXLAN: bool>(&self, vectors: V, held: &Held, h: &[u8; HEAD]) -> bool {
        let network = if VXLAN { VXLAN_INNER } else { ETHERNET };
        let inner = usize::from(VXLAN);
        // Numbers first, vectors second: the other way round the compiler takes the numbers out of the vectors.
        let numbers = word32(h, network + 24) == held.next_seq
            && word16(h, network + 4) == held.next_ids[inner]
            && self.constant[inner].plus(sums(h, network).1).is_valid();
        if !numbers {
            return false;
        }
        if VXLAN {
            let outer = word16(h, ETHERNET + 4) == held.next_ids[0]
                && self.constant[0].plus(sums(h, ETHERNET).1).is_valid()
                && (word16(h, VXLAN_UDP + 6) != 0) == self.checksum;
            return outer && first::<WIDE>(h, &self.head, self.mask, vectors);
        }
        first::<PLAIN>(h, &self.head, self.mask, vectors)
    }
}

/// Compares the first `N` bytes.
#[inline(always)]
fn first<const N: usize>(h: &[u8; HEAD], head: &[u8; WIDE], mask: &[u8; WIDE], vectors: impl Vectors) -> bool {
    const { assert!(N <= WIDE && WIDE <= HEAD) }
    match (h.first_chunk::<N>(), head.first_chunk::<N>(), mask.first_chunk::<N>()) {
        (Some(h), Some(head), Some(mask)) => vectors.masked_equal(h, head, mask),
        _ => false,
    }
}

impl Place {
    /// Starts a run with the second segment, a full one that agrees with the first and is about to be merged.
    #[inline(never)]
    pub(super) fn start_run<const VXLAN: bool>(&mut self, packet: &Packet, payload_at: usize, config: &GroConfig) {
        let (Some(held), Some(h)) = (&self.held, packet.head().first_chunk::<HEAD>()) else { return };
        let state = packet.receive_state();
        // The rule of 2015 does not look at outer identifications.
        let regular = !VXLAN || config.rules.ip_id == IpIdRule::ConstantOrIncrement;
        if held.received_count != 1 || !regular || !state.is_plain() || held.packet.receive_state() != state {
            return;
        }
        let network = if VXLAN { VXLAN_INNER } else { ETHERNET };
        let masks: &[[u8; WIDE]] = if VXLAN { &VXLAN_MASKS } else { &PLAIN_MASKS };
        let Some(mask) = masks.get(payload_at.wrapping_sub(network + 40) / 4) else { return };
        self.run.constant = [sums(h, ETHERNET).0, sums(h, network).0];
        self.run.mask = mask;
        self.run.payload_at = payload_at as u16;
        self.run.checksum = word16(h, VXLAN_UDP + 6) != 0;
        self.run.head.copy_from_slice(&h[..WIDE]);
        self.state = state;
        self.len = packet.len() as u32;
        self.vxlan = VXLAN;
    }
}

/// Takes all packets of a burst; gives the number of their bytes.
pub(super) struct Receive<'a> {
    pub(super) gro: &'a mut Gro,
    pub(super) burst: &'a mut Burst,
    pub(super) out: &'a mut Burst,
    pub(super) cache: &'a mut PoolCache,
    pub(super) tick: u64,
}

impl VectorTask for Receive<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) -> u64 {
        let Self { gro, burst, out, cache, tick } = self;
        let mut bytes = 0;
        let mut packets = burst.drain();
        while let Some(packet) = packets.next() {
            packets.prefetch(2);
            bytes += packet.len() as u64;
            if let Err(packet) = gro.grow(vectors, packet, cache) {
                gro.receive_other(packet, out, cache, tick);
            }
        }
        bytes
    }
}

impl Gro {
    /// Merges a packet that continues a run; else gives it back.
    #[inline(always)]
    fn grow<V: Vectors>(&mut self, vectors: V, packet: Packet, cache: &mut PoolCache) -> Result<(), Packet> {
        let state = packet.receive_state();
        let Some(place) = self.table.recent(state) else { return Err(packet) };
        let Place { held: Some(held), run, len, vxlan, .. } = place else { return Err(packet) };
        let Some(h) = packet.head().first_chunk::<HEAD>() else { return Err(packet) };
        let grows = packet.len() == *len as usize
            && held.packet.len() - ETHERNET + (held.segment as usize) < self.fast_max_size
            && match *vxlan {
                true => run.continues::<V, true>(vectors, held, h),
                false => run.continues::<V, false>(vectors, held, h),
            };
        if !grows || state.is_unchecked() && !self.config.is_right(&packet, *vxlan) {
            return Err(packet);
        }
        held.next_ids[0] = held.next_ids[0].wrapping_add(held.id_steps[0]);
        if *vxlan {
            held.next_ids[1] = held.next_ids[1].wrapping_add(held.id_steps[1]);
        }
        held.count += 1;
        held.next_seq = held.next_seq.wrapping_add(held.segment);
        append(held, packet, usize::from(run.payload_at), cache);
        Ok(())
    }

    /// A packet that continues no run.
    #[inline(never)]
    fn receive_other(&mut self, packet: Packet, out: &mut Burst, cache: &mut PoolCache, tick: u64) {
        if let Err(packet) = self.receive_fast(packet, out, cache, tick) {
            self.receive_any(packet, out, cache, tick);
        }
    }
}

impl GroConfig {
    /// Verifies in software what the device left unchecked.
    #[inline(never)]
    fn is_right(&self, packet: &Packet, vxlan: bool) -> bool {
        let Some(h) = packet.head().first_chunk::<HEAD>() else { return false };
        let gained = match vxlan {
            true => self.checksums::<true>(packet, h, packet.len()),
            false => self.checksums::<false>(packet, h, packet.len()),
        };
        gained.is_some()
    }
}
