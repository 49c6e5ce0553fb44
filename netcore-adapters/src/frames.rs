//! What the network device adapters share: one frame in, one frame out, over any [`Driver`].

use netcore::checksum::Sum;
use netcore::dissect::ChecksumVerdict;
use netcore::driver::ChecksumOffload;
use netcore::{
    Burst, Capabilities, Completions, Dissection, Driver, DriverError, Features, Gso, GsoKind, Instant, Packet,
    PartialChecksum, PoolCache, ReceiveChecksum, Statistics, TunnelPorts, dissect,
};

/// Frames taken from the driver at a time.
const BUDGET: usize = 32;
/// Offset of the checksum field in a TCP header, and in a UDP header.
const TCP_FIELD: u16 = 16;
const UDP_FIELD: u16 = 6;

/// A driver seen as a device that takes and gives single frames, queue 0 of it.
#[derive(Debug)]
pub(crate) struct Frames<D> {
    driver: D,
    cache: PoolCache,
    incoming: Burst,
    outgoing: Burst,
    completions: Completions,
    scratch: Vec<u8>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    bad_checksum: u64,
    no_buffer: u64,
    refused: u64,
    error: u64,
}

impl<D: Driver> Frames<D> {
    pub(crate) fn new(driver: D, cache: PoolCache) -> Self {
        Self {
            driver,
            cache,
            incoming: Burst::with_capacity(BUDGET),
            outgoing: Burst::new(),
            completions: Completions::new(),
            scratch: Vec::new(),
            counters: Counters::default(),
        }
    }

    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }

    pub(crate) fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        self.driver.capabilities()
    }

    /// True if a stack may leave TCP and UDP checksums to us, over IPv4 as over IPv6: the interfaces do not tell them apart.
    pub(crate) fn fills_checksums(&self) -> bool {
        let c = self.driver.capabilities();
        c.checksum_offload() == ChecksumOffload::Generic
            || c.features.contains(Features::TX_CHECKSUM_IPV4 | Features::TX_CHECKSUM_IPV6)
    }

    /// True if a stack may leave the verification of TCP and UDP to us. What the device did not verify, software does.
    pub(crate) fn verifies_checksums(&self) -> bool {
        self.driver.capabilities().features.contains(Features::RX_CHECKSUM)
    }

    /// Adds the adapter's own drops to the driver's counters.
    pub(crate) fn statistics(&self, statistics: &mut Statistics) {
        self.driver.statistics(statistics);
        for (name, value) in [
            ("adapter_rx_bad_checksum", self.counters.bad_checksum),
            ("adapter_tx_no_buffer", self.counters.no_buffer),
            ("adapter_tx_refused", self.counters.refused),
            ("adapter_errors", self.counters.error),
        ] {
            statistics.add(name, value);
        }
    }

    /// Timers, completions, and frames that did not fit before.
    fn service(&mut self, now: Instant) {
        let polled = self.driver.poll(now);
        let reclaimed = self.driver.reclaim(0, &mut self.completions, now);
        self.completions.clear();
        // The interfaces have no errors: a device that is down or gone is one without frames.
        self.counters.error += u64::from(polled.is_err()) + u64::from(reclaimed.is_err());
        self.flush(now);
    }

    fn flush(&mut self, now: Instant) {
        while !self.outgoing.is_empty() {
            match self.driver.transmit(0, &mut self.outgoing, now) {
                Ok(_) => return,
                Err(DriverError::Refused { .. }) => {
                    // Nobody behind this interface can do it in software; a `Port` around the driver would have.
                    self.counters.refused += 1;
                    if let Some(packet) = self.outgoing.pop() {
                        self.cache.put(packet);
                    }
                }
                Err(_) => {
                    self.counters.error += 1;
                    return;
                }
            }
        }
    }

    /// True if a frame can be sent.
    pub(crate) fn can_send(&mut self, now: Instant) -> bool {
        self.service(now);
        self.outgoing.is_empty()
    }

    /// The next frame, if a reply to it could be sent, too.
    pub(crate) fn receive(&mut self, now: Instant) -> Option<Packet> {
        if !self.can_send(now) {
            return None;
        }
        loop {
            if self.incoming.is_empty() && self.driver.receive(0, &mut self.incoming, BUDGET, now).is_err() {
                self.counters.error += 1;
            }
            let packet = self.incoming.pop()?;
            if self.is_acceptable(&packet) {
                return Some(packet);
            }
            self.counters.bad_checksum += 1;
            self.cache.put(packet);
        }
    }

    /// Verifies what the stack leaves to the device and the device did not do.
    fn is_acceptable(&self, packet: &Packet) -> bool {
        if !self.verifies_checksums() || packet.receive_checksum() != ReceiveChecksum::None {
            return true;
        }
        let copy;
        let bytes = if packet.is_linear() {
            packet.head()
        } else {
            copy = packet.to_vec();
            &copy
        };
        let d = dissect(bytes, &TunnelPorts::none());
        let verdict = d.outer_checksums(bytes, bytes.len()).and_then(|checksums| checksums.upper);
        !matches!(verdict, Some(ChecksumVerdict::Bad { .. }))
    }

    /// Sends a frame of `len` bytes that `fill` writes; cut at `segment` if given.
    pub(crate) fn send<R>(
        &mut self,
        len: usize,
        segment: Option<u16>,
        now: Instant,
        fill: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let packet = self.cache.get().ok();
        if let Some(mut packet) = packet {
            if let Ok(room) = packet.put(len) {
                // Stacks expect zeros where they write nothing.
                room.fill(0);
                let result = fill(room);
                self.queue(packet, segment, now);
                return result;
            }
            self.cache.put(packet);
        }
        self.scratch.clear();
        self.scratch.resize(len, 0);
        let result = fill(&mut self.scratch);
        match self.cache.copy_chain(&self.scratch) {
            Ok(packet) => self.queue(packet, segment, now),
            Err(_) => self.counters.no_buffer += 1,
        }
        result
    }

    fn queue(&mut self, mut packet: Packet, segment: Option<u16>, now: Instant) {
        if self.fills_checksums() || segment.is_some() {
            self.request(&mut packet, segment);
        }
        self.outgoing.push(packet);
        self.flush(now);
    }

    /// Turns what the stack left undone into requests to the device.
    fn request(&mut self, packet: &mut Packet, segment: Option<u16>) {
        // Headers are in the first buffer: packets are made in one, or filled from the front.
        let d = dissect(packet.head(), &TunnelPorts::none());
        let Some(outer) = d.outer.filter(|outer| !outer.fragment) else { return };
        let field = match outer.protocol.0 {
            6 => TCP_FIELD,
            17 => UDP_FIELD,
            _ => return,
        };
        let at = usize::from(outer.upper + field);
        let len = packet.len() - usize::from(outer.upper);
        let seed = pseudo(packet.head(), &d, len);
        let headers = packet.head().get(usize::from(outer.upper) + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
        if let Ok(head) = packet.head_mut()
            && let Some(place) = head.get_mut(at..at + 2)
        {
            place.copy_from_slice(&seed.to_be_bytes());
        }
        packet.set_transmit_checksum(Some(PartialChecksum { start: outer.upper, offset: field }));
        let payload = len.saturating_sub(headers);
        if let Some(size) = segment.filter(|size| outer.protocol.0 == 6 && payload > usize::from(*size)) {
            let kind = if outer.version == 4 { GsoKind::TCPV4 } else { GsoKind::TCPV6 };
            let segments = payload.div_ceil(usize::from(size)).min(65535) as u16;
            packet.set_gso(Some(Gso { kind, size, segments }));
        }
    }
}

/// The pseudo-header sum, not complemented.
fn pseudo(frame: &[u8], d: &Dissection, len: usize) -> u16 {
    let Some(outer) = d.outer else { return 0 };
    let at = usize::from(outer.offset);
    let addresses = if outer.version == 4 { at + 12..at + 20 } else { at + 8..at + 40 };
    let addresses = frame.get(addresses).map_or(Sum::ZERO, netcore::checksum::sum);
    addresses.plus_word(u16::from(outer.protocol.0)).plus_u32(len as u32).fold()
}

/// Hands the bytes of a packet to `f`, in one piece.
pub(crate) fn with_bytes<R>(packet: &Packet, f: impl FnOnce(&[u8]) -> R) -> R {
    if packet.is_linear() { f(packet.head()) } else { f(&packet.to_vec()) }
}
