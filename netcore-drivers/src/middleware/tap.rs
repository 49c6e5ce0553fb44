//! Writing what passes to a capture file.

use super::pass_on;
use crate::pcap::{CaptureWriter, Format, LinkType};
use alloc::vec::Vec;
use netcore::checksum::Sum;
use netcore::driver::{Completions, Driver, DriverError, Statistics};
use netcore::{Burst, Capabilities, Instant, Packet};
use std::io::{self, Write};

/// Writes every packet that the device takes and every one that it delivers to a capture, in the order in which they pass. See
/// the [module](super).
///
/// A VLAN tag beside the bytes is written where it belongs, and a checksum that is left to the device is filled in;
/// super-packets are written as they are, their inner sums left to the device, as tcpdump shows them.
///
/// A capture that cannot be written does not stop traffic: the first error is kept ([`CaptureTap::error`]), and packets are
/// counted instead (`tap_not_written`).
pub struct CaptureTap<D, W: Write> {
    inner: D,
    writer: CaptureWriter<W>,
    error: Option<io::Error>,
    not_written: u64,
    /// Copies of the packets offered, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<D: Driver, W: Write + Send> CaptureTap<D, W> {
    /// Captures around `inner`. `out` should be buffered.
    ///
    /// # Errors
    /// If the file header cannot be written.
    pub fn new(inner: D, out: W, format: Format) -> io::Result<Self> {
        let writer = CaptureWriter::new(out, format, LinkType::ETHERNET)?;
        Ok(Self { inner, writer, error: None, not_written: 0, bytes: Vec::new(), ends: Vec::new() })
    }

    /// The driver inside.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The driver inside.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// Why the capture stopped.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Packets written.
    pub fn records(&self) -> u64 {
        self.writer.records()
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the capture: the driver inside and the stream.
    ///
    /// # Errors
    /// The first error there was, or that of writing what is buffered. The driver is gone then; keep it elsewhere
    /// (`CaptureTap<&mut D, W>`) if it must not be.
    pub fn finish(self) -> io::Result<(D, W)> {
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.inner, self.writer.finish()?)),
        }
    }

    /// Copies of the packets from the `skip`-th on, as they look on the wire.
    fn copy(&mut self, burst: &Burst, skip: usize) {
        self.bytes.clear();
        self.ends.clear();
        for packet in burst.iter().skip(skip) {
            copy_wire(packet, &mut self.bytes);
            self.ends.push(self.bytes.len());
        }
    }

    /// Writes the first `n` copies.
    fn write(&mut self, n: usize, now: Instant) {
        let mut start = 0;
        for &end in self.ends.iter().take(n) {
            if self.error.is_some() {
                self.not_written += 1;
                continue;
            }
            let bytes = &self.bytes[start..end];
            start = end;
            if let Err(error) = self.writer.write(Some(now), &[bytes], bytes.len()) {
                self.error = Some(error);
                self.not_written += 1;
            }
        }
    }

    fn tapped(
        &mut self,
        burst: &mut Burst,
        now: Instant,
        send: impl FnOnce(&mut D, &mut Burst) -> Result<usize, DriverError>,
    ) -> Result<usize, DriverError> {
        self.copy(burst, 0);
        let offered = burst.len();
        let result = send(&mut self.inner, burst);
        self.write(offered.saturating_sub(burst.len()), now);
        result
    }
}

/// Adds a packet's bytes to `out`, with its tag in place and its checksum filled in.
fn copy_wire(packet: &Packet, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(packet.to_vec());
    let frame = &mut out[start..];
    if let Some(request) = packet.transmit_checksum().filter(|_| !packet.is_super()) {
        let (from, field) = (usize::from(request.start), usize::from(request.start) + usize::from(request.offset));
        // The field holds the pseudo-header's sum.
        let sum = frame.get(from..).map_or(Sum::ZERO, netcore::checksum::sum);
        if let Some(field) = frame.get_mut(field..field + 2) {
            // UDP has its checksum at byte 6, and zero means "none" there.
            let checksum = if request.offset == 6 { sum.finish_udp() } else { sum.finish() };
            field.copy_from_slice(&checksum.to_be_bytes());
        }
    }
    if let Some(tag) = packet.vlan().filter(|_| frame.len() >= 12) {
        let [a, b] = tag.tpid.to_be_bytes();
        let [c, d] = tag.tci.to_be_bytes();
        out.splice(start + 12..start + 12, [a, b, c, d]);
    }
}

impl<D: Driver, W: Write + Send> Driver for CaptureTap<D, W> {
    pass_on!(inner);

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        self.tapped(burst, now, |inner, burst| inner.transmit(queue, burst, now))
    }

    fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        self.tapped(burst, now, |inner, burst| inner.transmit_control(burst, now))
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
        let before = burst.len();
        let result = self.inner.receive(queue, burst, budget, now);
        self.copy(burst, before);
        self.write(self.ends.len(), now);
        result
    }

    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
        self.inner.reclaim(queue, completions, now)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        self.inner.statistics(statistics);
        statistics.add("tap_written", self.writer.records());
        statistics.add("tap_not_written", self.not_written);
    }

    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.poll(now)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.inner.poll_at()
    }

    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.start(now)
    }

    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        self.inner.stop(now)
    }
}
