//! A capture tap: what passes a point of a wire, in a file that any analyser reads.
//!
//! A [`Tap`] sits in a wire: what enters at port 0 leaves at port 1 and the other way round, at once and unchanged, and a
//! copy goes to a capture file. Links carry wire frames, so a capture holds final headers and checksums; virtual payload
//! is written as the zeros that it stands for.
//!
//! ```
//! use netcore::Instant;
//! use netcore_drivers::pcap::Format;
//! use netcore_lab::capture::Tap;
//! use netcore_lab::engine::Lab;
//!
//! let mut lab = Lab::new(1, 16)?;
//! let tap = lab.add(Tap::new(Vec::new(), Format::Pcapng)?);
//! // … lab.connect((left, 0), (tap, 0))?; lab.connect((tap, 1), (right, 0))?;
//! lab.run_until(Instant::from_secs(1));
//! assert_eq!(lab.get_mut::<Tap>(tap).map(Tap::finish).transpose()?, Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::engine::{Component, Context};
use netcore::{Instant, Packet};
use netcore_drivers::pcap::{CaptureWriter, Format, LinkType};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// A frame that leaves later than it was handed over: its time, a number that keeps equal times in order, its bytes.
type Waiting = Reverse<(Instant, u64, Vec<u8>)>;

/// A capture of what passes between port 0 and port 1.
pub struct Tap {
    /// `None` after an error or [`Tap::finish`].
    writer: Option<CaptureWriter<Box<dyn Write + Send>>>,
    error: Option<io::Error>,
    waiting: BinaryHeap<Waiting>,
    order: u64,
    records: u64,
    missed: u64,
}

impl Tap {
    /// A tap that writes to `out`, which should be buffered.
    ///
    /// # Errors
    /// If the file's header cannot be written.
    pub fn new(out: impl Write + Send + 'static, format: Format) -> io::Result<Self> {
        let writer = CaptureWriter::new(Box::new(out) as Box<dyn Write + Send>, format, LinkType::ETHERNET)?;
        Ok(Self { writer: Some(writer), error: None, waiting: BinaryHeap::new(), order: 0, records: 0, missed: 0 })
    }

    /// Frames written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Frames that passed but were not written, because writing failed before.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Writes what is outstanding, ends the file and says how many frames it has. Later frames pass unwritten.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(&mut self) -> io::Result<u64> {
        self.write_until(Instant::MAX);
        if let Some(mut writer) = self.writer.take() {
            writer.flush()?;
        }
        self.error.take().map_or(Ok(self.records), Err)
    }

    /// Writes frames that left by `now`: a file's records are in order of time.
    fn write_until(&mut self, now: Instant) {
        while self.waiting.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((at, _, bytes))) = self.waiting.pop() else { break };
            match self.writer.as_mut().map(|writer| writer.write(Some(at), &[&bytes], bytes.len())) {
                Some(Ok(())) => self.records += 1,
                Some(Err(error)) => {
                    self.error = Some(error);
                    self.writer = None;
                    self.missed += 1;
                }
                None => self.missed += 1,
            }
        }
    }
}

impl Component for Tap {
    fn receive(&mut self, port: u16, packet: Packet, ctx: &mut Context<'_>) {
        self.write_until(ctx.now);
        if self.writer.is_some() {
            // Of a train of frames that a card hands over at once, each leaves at its own time.
            let at = packet.departure().map_or(ctx.now, |at| at.max(ctx.now));
            self.order += 1;
            self.waiting.push(Reverse((at, self.order, packet.to_vec())));
        } else {
            self.missed += 1;
        }
        ctx.send(port ^ 1, packet);
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").field("records", &self.records).field("error", &self.error).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
