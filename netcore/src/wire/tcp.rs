//! TCP (RFC 9293; options: RFC 7323 window scale and timestamps, RFC 2018 SACK).

use super::WireError;
use bitflags::bitflags;
use core::fmt;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bitflags! {
    /// The flags of a TCP header.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct TcpFlags: u8 {
        /// No more data from sender.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset the connection.
        const RST = 0x04;
        /// Push function.
        const PSH = 0x08;
        /// The acknowledgement field is significant.
        const ACK = 0x10;
        /// The urgent pointer is significant.
        const URG = 0x20;
        /// ECN echo.
        const ECE = 0x40;
        /// Congestion window reduced.
        const CWR = 0x80;
    }
}

impl fmt::Display for TcpFlags {
    /// As tcpdump prints them: `S.`, `P.`, `F.`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::FIN, "F"),
            (Self::SYN, "S"),
            (Self::RST, "R"),
            (Self::PSH, "P"),
            (Self::ACK, "."),
            (Self::URG, "U"),
            (Self::ECE, "E"),
            (Self::CWR, "W"),
        ];
        if self.is_empty() {
            return f.write_str("none");
        }
        names.iter().filter(|(flag, _)| self.contains(*flag)).try_for_each(|(_, name)| f.write_str(name))
    }
}

/// The first 20 bytes of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    source: U16,
    destination: U16,
    seq: U32,
    ack: U32,
    offset: u8,
    flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
}

impl TcpHeader {
    /// Bytes without options.
    pub const LEN: usize = 20;
    /// Offset of the checksum field.
    pub const CHECKSUM: usize = 16;

    /// A header with checksum and urgent pointer 0; `header_len` is 20 to 60 and a multiple of 4.
    pub const fn new(
        source: u16,
        destination: u16,
        seq: u32,
        ack: u32,
        flags: TcpFlags,
        window: u16,
        header_len: usize,
    ) -> Self {
        Self {
            source: U16::new(source),
            destination: U16::new(destination),
            seq: U32::new(seq),
            ack: U32::new(ack),
            offset: ((header_len / 4) << 4) as u8,
            flags: flags.bits(),
            window: U16::new(window),
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        }
    }

    /// The header at the start of `bytes`, its options, and the payload.
    ///
    /// # Errors
    /// [`WireError`] if the header length is below 20 or bytes are missing.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, TcpOptions<'_>, &[u8]), WireError> {
        let (header, _) = super::prefix::<Self>(bytes, "TCP")?;
        let len = header.header_len();
        if len < Self::LEN {
            return Err(WireError::field("TCP", "data offset", 12, u32::from(header.offset >> 4), "5 to 15 words"));
        }
        match bytes.split_at_checked(len) {
            Some((own, payload)) => Ok((header, TcpOptions { bytes: &own[Self::LEN..] }, payload)),
            None => Err(WireError::truncated("TCP", bytes.len(), len)),
        }
    }

    /// As [`TcpHeader::parse`], writable and without checks beyond the first 20 bytes being there.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        super::prefix_mut(bytes, "TCP")
    }

    /// Source port.
    pub fn source(&self) -> u16 {
        self.source.get()
    }

    /// Destination port.
    pub fn destination(&self) -> u16 {
        self.destination.get()
    }

    /// Sequence number of the first payload byte.
    pub fn seq(&self) -> u32 {
        self.seq.get()
    }

    /// Next sequence number expected from the other side.
    pub fn ack(&self) -> u32 {
        self.ack.get()
    }

    /// Bytes in the header with options.
    #[inline(always)]
    pub const fn header_len(&self) -> usize {
        (self.offset >> 4) as usize * 4
    }

    /// The flags.
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags::from_bits_retain(self.flags)
    }

    /// Window, not scaled.
    pub fn window(&self) -> u16 {
        self.window.get()
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets both ports.
    pub fn set_ports(&mut self, source: u16, destination: u16) {
        (self.source, self.destination) = (U16::new(source), U16::new(destination));
    }

    /// Sets the sequence number of the first payload byte.
    pub fn set_seq(&mut self, seq: u32) {
        self.seq = U32::new(seq);
    }

    /// Sets the next sequence number expected from the other side.
    pub fn set_ack(&mut self, ack: u32) {
        self.ack = U32::new(ack);
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: TcpFlags) {
        self.flags = flags.bits();
    }

    /// Sets the window, not scaled.
    pub fn set_window(&mut self, window: u16) {
        self.window = U16::new(window);
    }

    /// Sets the urgent pointer.
    pub fn set_urgent(&mut self, urgent: u16) {
        self.urgent = U16::new(urgent);
    }

    /// Sets the length of the header: 20 and `options` bytes of options, a multiple of 4 and 40 at most.
    ///
    /// # Errors
    /// [`WireError::Field`] if `options` is neither.
    pub fn set_options_len(&mut self, options: usize) -> Result<(), WireError> {
        if !options.is_multiple_of(4) || options > 40 {
            return Err(WireError::Field {
                header: "TCP",
                field: "options length",
                offset: 12,
                value: u32::try_from(options).unwrap_or(u32::MAX),
                allowed: "a multiple of 4, 40 bytes at most",
            });
        }
        self.offset = (0x50 + ((options / 4) << 4) as u8) | self.offset & 0x0f;
        Ok(())
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Urgent pointer.
    pub fn urgent(&self) -> u16 {
        self.urgent.get()
    }
}

/// A range of bytes received out of order: from `left` up to, not including, `right`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackBlock {
    /// First sequence number.
    pub left: u32,
    /// Sequence number behind the last.
    pub right: u32,
}

/// One TCP option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TcpOption<'a> {
    /// Maximum segment size.
    Mss(u16),
    /// Window scale, a shift; values above 14 mean 14 (RFC 7323 section 2.3).
    WindowScale(u8),
    /// SACK is permitted.
    SackPermitted,
    /// SACK blocks, eight bytes each.
    Sack(&'a [[u8; 8]]),
    /// Timestamps.
    Timestamps {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
    /// Anything else.
    Unknown {
        /// Kind.
        kind: u8,
        /// Bytes after kind and length.
        data: &'a [u8],
    },
}

impl TcpOption<'_> {
    /// Writes the option to the start of `to` and says how many bytes that took. Alignment is the caller's: no-operation
    /// bytes (1) go in front, end-of-options bytes (0) behind.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there is no room; [`WireError::Field`] if the data is longer than 38 bytes.
    pub fn write(&self, to: &mut [u8]) -> Result<usize, WireError> {
        let write = |kind, data: &[u8], to| super::write_option("TCP option", kind, data, to);
        match *self {
            Self::Mss(mss) => write(2, &mss.to_be_bytes(), to),
            Self::WindowScale(shift) => write(3, &[shift], to),
            Self::SackPermitted => write(4, &[], to),
            Self::Sack(blocks) => write(5, blocks.as_flattened(), to),
            Self::Timestamps { value, echo } => write(8, &(u64::from(value) << 32 | u64::from(echo)).to_be_bytes(), to),
            Self::Unknown { kind, data } => write(kind, data, to),
        }
    }

    /// The blocks of a SACK option; none of any other.
    pub fn sack_blocks(&self) -> impl Iterator<Item = SackBlock> + '_ {
        let blocks = if let Self::Sack(blocks) = self { *blocks } else { &[] };
        blocks.iter().map(|&[a, b, c, d, e, f, g, h]| SackBlock {
            left: u32::from_be_bytes([a, b, c, d]),
            right: u32::from_be_bytes([e, f, g, h]),
        })
    }
}

/// The options of a TCP header. Stops at the end-of-options byte; skips no-operation bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> TcpOptions<'a> {
    /// Options from their bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All bytes of the options.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = Result<TcpOption<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.bytes {
                [] | [0, ..] => return None,
                [1, rest @ ..] => self.bytes = rest,
                [kind, len, ..] if *len >= 2 && usize::from(*len) <= self.bytes.len() => {
                    let (option, rest) = self.bytes.split_at(usize::from(*len));
                    self.bytes = rest;
                    return Some(Ok(known(*kind, &option[2..])));
                }
                rest => {
                    self.bytes = &[];
                    let value = rest.get(1).map_or(0, |len| u32::from(*len));
                    return Some(Err(WireError::Field {
                        header: "TCP option",
                        field: "length",
                        offset: 1,
                        value,
                        allowed: "2 to the end of the header",
                    }));
                }
            }
        }
    }
}

/// An option of a known kind with the length it must have; anything else is unknown.
fn known(kind: u8, data: &[u8]) -> TcpOption<'_> {
    match (kind, data) {
        (2, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
        (3, &[shift]) => TcpOption::WindowScale(shift),
        (4, []) => TcpOption::SackPermitted,
        (5, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => TcpOption::Sack(blocks.as_chunks().0),
        (8, &[a, b, c, d, e, f, g, h]) => {
            TcpOption::Timestamps { value: u32::from_be_bytes([a, b, c, d]), echo: u32::from_be_bytes([e, f, g, h]) }
        }
        (kind, data) => TcpOption::Unknown { kind, data },
    }
}
