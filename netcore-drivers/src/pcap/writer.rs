//! Writing records.

use super::LinkType;
use netcore::{Instant, Packet};
use std::io::{self, Write};

/// Resolution of time stamps in a pcap file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    #[default]
    Nanos,
}

/// Which file format is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The classic format, little-endian.
    Pcap(Precision),
    /// pcapng with nanoseconds and an interface per link type, little-endian.
    Pcapng,
}

impl Format {
    /// pcapng for names that end in `.pcapng`, else pcap with nanoseconds.
    pub fn for_path(path: &std::path::Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("pcapng") => Self::Pcapng,
            _ => Self::Pcap(Precision::Nanos),
        }
    }
}

/// Snapshot length in headers: what libpcap allows at most. Records may be longer.
const SNAP_LEN: u32 = 262_144;

/// An interface of the section being written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Interface {
    link_type: LinkType,
    /// Longest capture, bytes; 0 is any.
    snap_len: u32,
}

/// Writes records to a pcap or pcapng file.
pub struct CaptureWriter<W: Write> {
    out: W,
    format: Format,
    link_type: LinkType,
    /// Of the section being written; empty in pcap.
    interfaces: Vec<Interface>,
    records: u64,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file header. `out` should be buffered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, format: Format, link_type: LinkType) -> io::Result<Self> {
        let mut this = Self { out, format, link_type, interfaces: Vec::new(), records: 0 };
        match format {
            Format::Pcap(precision) => {
                let magic: u32 = match precision {
                    Precision::Micros => 0xa1b2_c3d4,
                    Precision::Nanos => 0xa1b2_3c4d,
                };
                this.out.write_all(&magic.to_le_bytes())?;
                this.out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
                this.out.write_all(&SNAP_LEN.to_le_bytes())?;
                this.out.write_all(&u32::from(link_type.0).to_le_bytes())?;
            }
            // No snapshot limit: a captured length is never more than it says.
            Format::Pcapng => this.section(Interface { link_type, snap_len: 0 })?,
        }
        Ok(this)
    }

    /// Starts a section whose first interface is this.
    fn section(&mut self, first: Interface) -> io::Result<()> {
        // Version 1.0, section length unknown.
        let mut section = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        section.extend([0xff; 8]);
        write_block(&mut self.out, 0x0a0d_0d0a, &section)?;
        self.interfaces.clear();
        self.interface(first)?;
        Ok(())
    }

    /// The number of an interface, described now if it was not before.
    fn interface(&mut self, wanted: Interface) -> io::Result<u32> {
        if let Some(number) = self.interfaces.iter().position(|interface| *interface == wanted) {
            return Ok(number as u32);
        }
        let mut description = Vec::new();
        description.extend(wanted.link_type.0.to_le_bytes());
        description.extend([0, 0]);
        description.extend(wanted.snap_len.to_le_bytes());
        // Nanoseconds.
        description.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        write_block(&mut self.out, 1, &description)?;
        self.interfaces.push(wanted);
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// Records written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes one record. `parts` are its bytes in order, `original_len` its length on the wire.
    ///
    /// # Errors
    /// If it cannot be written; [`io::ErrorKind::InvalidInput`] if the time is beyond the format's range (2106 in pcap) or
    /// the record is longer than 4 GiB.
    pub fn write(&mut self, timestamp: Option<Instant>, parts: &[&[u8]], original_len: usize) -> io::Result<()> {
        self.write_as(self.link_type, timestamp, parts, original_len)
    }

    /// As [`CaptureWriter::write`], for a record that starts with `link_type`. In pcapng every link type has an interface of its
    /// own. A record without time is a simple packet block there, which is always of its section's first interface, so it
    /// may start a new section.
    ///
    /// # Errors
    /// As there; [`io::ErrorKind::InvalidInput`] if the format is pcap, which has one link type, and this is another.
    pub fn write_as(
        &mut self,
        link_type: LinkType,
        timestamp: Option<Instant>,
        parts: &[&[u8]],
        original_len: usize,
    ) -> io::Result<()> {
        let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidInput, what);
        let captured = parts.iter().map(|part| part.len()).sum::<usize>();
        let captured = u32::try_from(captured).map_err(|_| invalid("a record is at most 4 GiB long"))?;
        let original = u32::try_from(original_len).map_err(|_| invalid("a packet is at most 4 GiB long"))?;
        let nanos = timestamp.unwrap_or_default().as_nanos();
        match self.format {
            Format::Pcap(_) if link_type != self.link_type => {
                let what =
                    format!("pcap holds one link type, here {}; a record of {link_type} needs pcapng", self.link_type);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            Format::Pcap(precision) => {
                let seconds = u32::try_from(nanos / 1_000_000_000)
                    .map_err(|_| invalid("a time stamp in pcap is at most 2^32 - 1 seconds after 1970"))?;
                let fraction = (nanos % 1_000_000_000) as u32
                    / match precision {
                        Precision::Micros => 1_000,
                        Precision::Nanos => 1,
                    };
                for word in [seconds, fraction, captured, original] {
                    self.out.write_all(&word.to_le_bytes())?;
                }
                for part in parts {
                    self.out.write_all(part)?;
                }
            }
            Format::Pcapng => {
                let padding = captured.wrapping_neg() % 4;
                let (kind, head): (u32, Vec<u8>) = match timestamp {
                    Some(_) => {
                        let interface = self.interface(Interface { link_type, snap_len: 0 })?;
                        let words = [interface, (nanos >> 32) as u32, nanos as u32, captured, original];
                        (6, words.iter().flat_map(|word| word.to_le_bytes()).collect())
                    }
                    None => {
                        // A simple packet block has no captured length: it is the original one, up to what the interface has.
                        let snap_len = if captured < original { captured } else { 0 };
                        if captured < original && captured == 0 {
                            return Err(invalid("a packet without a time stamp of which nothing was captured"));
                        }
                        let wanted = Interface { link_type, snap_len };
                        if self.interfaces.first() != Some(&wanted) {
                            self.section(wanted)?;
                        }
                        (3, original.to_le_bytes().to_vec())
                    }
                };
                let around = 12 + head.len() as u32 + padding;
                let len = captured.checked_add(around).ok_or_else(|| invalid("a record is at most 4 GiB long"))?;
                self.out.write_all(&kind.to_le_bytes())?;
                self.out.write_all(&len.to_le_bytes())?;
                self.out.write_all(&head)?;
                for part in parts {
                    self.out.write_all(part)?;
                }
                self.out.write_all(&[0; 4][..padding as usize])?;
                self.out.write_all(&len.to_le_bytes())?;
            }
        }
        self.records += 1;
        Ok(())
    }

    /// Writes a packet whole, virtual bytes as zeros, at `timestamp` or at the time in its metadata.
    ///
    /// # Errors
    /// As [`CaptureWriter::write`].
    pub fn write_packet(&mut self, packet: &Packet, timestamp: Option<Instant>) -> io::Result<()> {
        let timestamp = timestamp.or_else(|| packet.timestamp()).or_else(|| packet.departure());
        if packet.is_linear() {
            return self.write(timestamp, &[packet.head()], packet.len());
        }
        let zeros = vec![0; packet.segments().filter(|s| s.is_virtual()).map(|s| s.len()).max().unwrap_or(0)];
        let parts: Vec<&[u8]> =
            packet.segments().map(|segment| segment.bytes().unwrap_or(&zeros[..segment.len()])).collect();
        self.write(timestamp, &parts, packet.len())
    }

    /// Flushes and gives the stream back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Flushes what is buffered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (12 + body.len() as u32).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&len)?;
    out.write_all(body)?;
    out.write_all(&len)
}
