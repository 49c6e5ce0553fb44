//! Opening captures, and progress while they are read.

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netcore_drivers::pcap::CaptureReader;
use same_file::Handle;
use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

/// A capture being read.
pub(super) type Capture = CaptureReader<Box<dyn Read>>;

/// Opens a capture; `-` is standard input.
pub(super) fn open(path: &Path) -> anyhow::Result<Capture> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let file = File::open(path).with_context(|| format!("{}", path.display()))?;
        Box::new(BufReader::with_capacity(1 << 20, file))
    };
    CaptureReader::new(input).with_context(|| format!("{}", path.display()))
}

/// Refuses an `--out` that is no place for a capture: standard output, which has the figures, or the capture that is read,
/// by whatever name (path, link, hard link, redirected standard input).
pub(super) fn check_out(out: Option<&Path>, capture: &Path) -> anyhow::Result<()> {
    let Some(out) = out else { return Ok(()) };
    if out == Path::new("-") {
        bail!("--out -: standard output has the figures; allowed is the name of a file");
    }
    let read = if capture == Path::new("-") { Handle::stdin() } else { Handle::from_path(capture) };
    // What does not exist yet is nobody's. A device (/dev/null) holds nothing to lose.
    if out.is_file() && matches!((read, Handle::from_path(out)), (Ok(read), Ok(out)) if read == out) {
        bail!("--out {} names the capture itself; it would be overwritten while it is read", out.display());
    }
    Ok(())
}

/// Bytes of the link header put in front of raw IP packets while they are processed.
pub(super) const ETHERNET: usize = 14;

/// A raw IP packet behind a link header without addresses.
pub(super) fn in_ethernet(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET];
    let v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    frame[12..].copy_from_slice(if v6 { &[0x86, 0xdd] } else { &[0x08, 0x00] });
    frame.extend_from_slice(packet);
    frame
}

/// A progress bar on standard error that shows up after a second, and only on a terminal.
pub(super) fn progress(len: u64, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
