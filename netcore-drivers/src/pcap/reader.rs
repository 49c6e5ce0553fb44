//! Reading records.

use super::sections::{Block, Sections};
use super::{LinkType, MAX_CAPTURED};
use netcore::Instant;
use std::fmt;
use std::io::{self, Read};

/// Why a file could not be opened as a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// There is not a single byte.
    #[error("the file is empty; a capture has a file header at least")]
    Empty,
    /// The first bytes are no capture's.
    #[error("not a capture: starts with {found:02x?}, allowed are the magic numbers of pcap and pcapng")]
    Magic {
        /// The first bytes, up to four.
        found: Vec<u8>,
    },
    /// The file header is cut off or wrong.
    #[error("capture header: {0}")]
    Header(Damage),
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Offset of the record or block that could not be read, from the start of the file.
    pub offset: u64,
    /// What was found and what was allowed.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

/// One captured packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// When it was captured, nanoseconds since 1970; `None` if the format has no time for it (simple packet blocks).
    pub timestamp: Option<Instant>,
    /// The bytes captured.
    pub bytes: &'a [u8],
    /// Bytes the packet had on the wire; more than `bytes.len()` if the capture was cut.
    pub original_len: u32,
    /// What the bytes start with.
    pub link_type: LinkType,
    /// Number of the interface in its section; 0 in pcap.
    pub interface: u32,
}

impl Record<'_> {
    /// True if not all bytes were captured.
    pub fn is_cut(&self) -> bool {
        self.original_len as usize > self.bytes.len()
    }
}

/// Byte order of a file or section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn u32(self, bytes: &[u8], offset: usize) -> u32 {
        let word = [bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]];
        match self {
            Self::Little => u32::from_le_bytes(word),
            Self::Big => u32::from_be_bytes(word),
        }
    }

    pub(super) fn u16(self, bytes: &[u8], offset: usize) -> u16 {
        let word = [bytes[offset], bytes[offset + 1]];
        match self {
            Self::Little => u16::from_le_bytes(word),
            Self::Big => u16::from_be_bytes(word),
        }
    }
}

/// A stream with a position.
pub(super) struct Source<R> {
    inner: R,
    pub(super) offset: u64,
}

impl<R: Read> Source<R> {
    /// Appends `n` bytes to `buffer`, which grows only by what is really there. Says how many came.
    pub(super) fn read(&mut self, n: usize, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let got = (&mut self.inner).take(n as u64).read_to_end(buffer)?;
        self.offset += got as u64;
        Ok(got)
    }
}

enum Kind {
    Pcap { order: Order, nanos: bool, link_type: LinkType, extra: usize },
    Pcapng(Sections),
}

/// Reads the records of a pcap or pcapng file, told apart by its first bytes.
pub struct CaptureReader<R> {
    source: Source<R>,
    kind: Kind,
    buffer: Vec<u8>,
    damage: Option<Damage>,
    finished: bool,
}

impl<R: Read> CaptureReader<R> {
    /// Reads the file header. `reader` should be buffered.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn new(reader: R) -> Result<Self, CaptureError> {
        let mut source = Source { inner: reader, offset: 0 };
        let mut buffer = Vec::new();
        source.read(4, &mut buffer)?;
        if buffer.is_empty() {
            return Err(CaptureError::Empty);
        }
        let magic: [u8; 4] = match buffer.as_slice().try_into() {
            Ok(magic) => magic,
            Err(_) => return Err(CaptureError::Magic { found: buffer }),
        };
        let kind = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, false, 0),
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, false, 0),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, true, 0),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, true, 0),
            // Kuznetzov's patched format: eight more bytes in each record header.
            [0x34, 0xcd, 0xb2, 0xa1] => (Order::Little, false, 8),
            [0xa1, 0xb2, 0xcd, 0x34] => (Order::Big, false, 8),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                let sections = Sections::first(&mut source, &mut buffer)?.map_err(CaptureError::Header)?;
                return Ok(Self { source, kind: Kind::Pcapng(sections), buffer, damage: None, finished: false });
            }
            _ => return Err(CaptureError::Magic { found: buffer }),
        };
        let (order, nanos, extra) = kind;
        if source.read(20, &mut buffer)? < 20 {
            let what = format!("{} bytes of a file header, 24 are needed", buffer.len());
            return Err(CaptureError::Header(Damage { offset: 0, what }));
        }
        // The upper bits tell about the frame check sequence.
        let link_type = LinkType(order.u32(&buffer, 20) as u16);
        Ok(Self { source, kind: Kind::Pcap { order, nanos, link_type, extra }, buffer, damage: None, finished: false })
    }

    /// What ended the file early; `None` while it is whole.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// True for pcapng.
    pub fn is_pcapng(&self) -> bool {
        matches!(self.kind, Kind::Pcapng(_))
    }

    /// The link type of a pcap file, or of the interface described last in a pcapng file.
    pub fn link_type(&self) -> Option<LinkType> {
        match &self.kind {
            Kind::Pcap { link_type, .. } => Some(*link_type),
            Kind::Pcapng(sections) => sections.last_link_type(),
        }
    }

    /// Blocks of a pcapng file that hold no packet and are not understood, skipped.
    pub fn skipped_blocks(&self) -> u64 {
        match &self.kind {
            Kind::Pcap { .. } => 0,
            Kind::Pcapng(sections) => sections.skipped,
        }
    }

    /// The next record; `None` at the end of the file or at its first damage, see [`CaptureReader::damage`].
    ///
    /// # Errors
    /// If the file cannot be read.
    #[allow(clippy::should_implement_trait)] // lends from the reader, which an iterator cannot
    pub fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        if self.finished {
            return Ok(None);
        }
        let offset = self.source.offset;
        let record = match &mut self.kind {
            Kind::Pcap { order, nanos, link_type, extra } => {
                read_record(&mut self.source, &mut self.buffer, *order, *nanos, *link_type, *extra)?
            }
            Kind::Pcapng(sections) => sections.next(&mut self.source, &mut self.buffer)?,
        };
        match record {
            Ok(Some(block)) => Ok(Some(Record {
                timestamp: block.timestamp,
                bytes: &self.buffer[block.bytes],
                original_len: block.original_len,
                link_type: block.link_type,
                interface: block.interface,
            })),
            Ok(None) => {
                self.finished = true;
                Ok(None)
            }
            Err(what) => {
                self.finished = true;
                self.damage = Some(Damage { offset: what.offset.max(offset), what: what.what });
                Ok(None)
            }
        }
    }
}

/// One record of a pcap file into `buffer`.
fn read_record<R: Read>(
    source: &mut Source<R>,
    buffer: &mut Vec<u8>,
    order: Order,
    nanos: bool,
    link_type: LinkType,
    extra: usize,
) -> io::Result<Result<Option<Block>, Damage>> {
    let offset = source.offset;
    let damage = |what: String| Ok(Err(Damage { offset, what }));
    buffer.clear();
    let header = 16 + extra;
    match source.read(header, buffer)? {
        0 => return Ok(Ok(None)),
        got if got < header => return damage(format!("{got} bytes of a record header, {header} are needed")),
        _ => {}
    }
    let (seconds, fraction) = (order.u32(buffer, 0), order.u32(buffer, 4));
    let (captured, original_len) = (order.u32(buffer, 8), order.u32(buffer, 12));
    if captured > MAX_CAPTURED {
        return damage(format!("a record of {captured} bytes, at most {MAX_CAPTURED} are allowed"));
    }
    buffer.clear();
    let got = source.read(captured as usize, buffer)?;
    if got < captured as usize {
        return damage(format!("{got} bytes of a record of {captured}"));
    }
    let fraction = u64::from(fraction) * if nanos { 1 } else { 1_000 };
    Ok(Ok(Some(Block {
        timestamp: Some(Instant::from_nanos(u64::from(seconds) * 1_000_000_000 + fraction)),
        bytes: 0..captured as usize,
        original_len,
        link_type,
        interface: 0,
    })))
}
