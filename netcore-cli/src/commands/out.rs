//! `--out`: the capture that a command writes.

use anyhow::Context;
use netcore::Instant;
use netcore_drivers::pcap::{CaptureWriter, Format, LinkType};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// A capture being written. The file is made when the first packet, or the end, tells its link type.
pub(super) struct Output {
    writer: Option<CaptureWriter<BufWriter<File>>>,
    path: PathBuf,
}

impl Output {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { writer: None, path }
    }

    fn name(&self) -> String {
        format!("--out {}", self.path.display())
    }

    fn writer(&mut self, link_type: LinkType) -> anyhow::Result<&mut CaptureWriter<BufWriter<File>>> {
        if self.writer.is_none() {
            let file = File::create(&self.path).with_context(|| self.name())?;
            let writer = CaptureWriter::new(BufWriter::new(file), Format::for_path(&self.path), link_type);
            self.writer = Some(writer.with_context(|| self.name())?);
        }
        self.writer.as_mut().context("the file was made just now")
    }

    /// Writes a packet. pcapng takes all link types, pcap that of the first packet.
    pub(super) fn write(
        &mut self,
        link_type: LinkType,
        at: Option<Instant>,
        parts: &[&[u8]],
        original: usize,
    ) -> anyhow::Result<()> {
        let result = self.writer(link_type)?.write_as(link_type, at, parts, original);
        result.with_context(|| self.name())
    }

    /// Writes the file header if no packet did, and flushes.
    pub(super) fn finish(mut self, link_type: LinkType) -> anyhow::Result<()> {
        let result = self.writer(link_type)?.flush();
        result.with_context(|| self.name())
    }
}
