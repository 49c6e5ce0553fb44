//! The blocks of pcapng.

use super::reader::{Damage, Order, Source};
use super::{LinkType, MAX_CAPTURED};
use netcore::Instant;
use std::io::{self, Read};
use std::ops::Range;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete since 2009, still found.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;
/// Interfaces of one section that are remembered.
const MAX_INTERFACES: usize = 65536;
/// Bytes of a block besides packet data.
const MAX_OVERHEAD: u32 = 1 << 20;

/// A record whose bytes are in the reader's buffer.
pub(super) struct Block {
    pub(super) timestamp: Option<Instant>,
    pub(super) bytes: Range<usize>,
    pub(super) original_len: u32,
    pub(super) link_type: LinkType,
    pub(super) interface: u32,
}

struct Interface {
    link_type: LinkType,
    snap_len: u32,
    /// Units of its time stamps in a second.
    units: u64,
    /// Seconds to add.
    offset: i64,
}

/// The state of the section being read.
pub(super) struct Sections {
    order: Order,
    interfaces: Vec<Interface>,
    pub(super) skipped: u64,
}

type Step<T> = Result<T, Damage>;

impl Sections {
    /// Reads the first section header, whose block type is in `buffer`.
    pub(super) fn first<R: Read>(source: &mut Source<R>, buffer: &mut Vec<u8>) -> io::Result<Step<Self>> {
        let mut sections = Self { order: Order::Little, interfaces: Vec::new(), skipped: 0 };
        Ok(sections.section_header(source, buffer, 0)?.map(|()| sections))
    }

    pub(super) fn last_link_type(&self) -> Option<LinkType> {
        self.interfaces.last().map(|interface| interface.link_type)
    }

    /// The next packet.
    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Step<Option<Block>>> {
        loop {
            let offset = source.offset;
            let damage = |what: String| Ok(Err(Damage { offset, what }));
            buffer.clear();
            match source.read(4, buffer)? {
                0 => return Ok(Ok(None)),
                4 => {}
                got => return damage(format!("{got} bytes of a block header, 12 are needed")),
            }
            if self.order.u32(buffer, 0) == SECTION_HEADER {
                if let Err(damage) = self.section_header(source, buffer, offset)? {
                    return Ok(Err(damage));
                }
                continue;
            }
            let kind = self.order.u32(buffer, 0);
            if let Err(damage) = self.body(source, buffer, offset)? {
                return Ok(Err(damage));
            }
            let parsed = match kind {
                INTERFACE_DESCRIPTION => self.interface(buffer).map(|()| None),
                ENHANCED_PACKET => self.enhanced(buffer).map(Some),
                SIMPLE_PACKET => self.simple(buffer).map(Some),
                PACKET => self.obsolete(buffer).map(Some),
                NAME_RESOLUTION | INTERFACE_STATISTICS => Ok(None),
                _ => {
                    self.skipped += 1;
                    Ok(None)
                }
            };
            match parsed {
                Ok(Some(block)) => return Ok(Ok(Some(block))),
                Ok(None) => {}
                Err(what) => return damage(what),
            }
        }
    }

    /// Reads the rest of a block whose type is in `buffer`, which then holds the body alone.
    fn body<R: Read>(&self, source: &mut Source<R>, buffer: &mut Vec<u8>, offset: u64) -> io::Result<Step<()>> {
        let damage = |what: String| Ok(Err(Damage { offset, what }));
        buffer.clear();
        if source.read(4, buffer)? < 4 {
            return damage("a block without a length".into());
        }
        let len = self.order.u32(buffer, 0);
        let max = MAX_CAPTURED + MAX_OVERHEAD;
        if len < 12 || !len.is_multiple_of(4) || len > max {
            return damage(format!("block length {len}, allowed is a multiple of 4 from 12 to {max}"));
        }
        buffer.clear();
        let rest = len as usize - 8;
        let got = source.read(rest, buffer)?;
        if got < rest {
            return damage(format!("{} bytes of a block of {len}", got + 8));
        }
        let trailer = self.order.u32(buffer, rest - 4);
        if trailer != len {
            return damage(format!("block length {len} in front, {trailer} behind"));
        }
        buffer.truncate(rest - 4);
        Ok(Ok(()))
    }

    /// A section header, whose block type was read already: sets the byte order and forgets the interfaces.
    fn section_header<R: Read>(
        &mut self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
        offset: u64,
    ) -> io::Result<Step<()>> {
        let damage = |what: String| Ok(Err(Damage { offset, what }));
        buffer.clear();
        if source.read(8, buffer)? < 8 {
            return damage("a section header that is cut off".into());
        }
        self.order = match buffer[4..8] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => {
                return damage(format!("byte-order magic {:02x?}, allowed is 1a2b3c4d in either order", &buffer[4..8]));
            }
        };
        let len = self.order.u32(buffer, 0);
        if len < 28 || !len.is_multiple_of(4) || len > MAX_OVERHEAD {
            return damage(format!(
                "section header length {len}, allowed is a multiple of 4 from 28 to {MAX_OVERHEAD}"
            ));
        }
        buffer.clear();
        let rest = len as usize - 12;
        if source.read(rest, buffer)? < rest {
            return damage(format!("a section header of {len} bytes that is cut off"));
        }
        let major = self.order.u16(buffer, 0);
        if major != 1 {
            return damage(format!("pcapng version {major}, allowed is 1"));
        }
        let trailer = self.order.u32(buffer, rest - 4);
        if trailer != len {
            return damage(format!("section header length {len} in front, {trailer} behind"));
        }
        self.interfaces.clear();
        Ok(Ok(()))
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), String> {
        if body.len() < 8 {
            return Err(format!("an interface description of {} bytes, at least 8 are needed", body.len()));
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(format!("more than {MAX_INTERFACES} interfaces in a section"));
        }
        let mut interface = Interface {
            link_type: LinkType(self.order.u16(body, 0)),
            snap_len: self.order.u32(body, 4),
            units: 1_000_000,
            offset: 0,
        };
        let mut at = 8;
        while at + 4 <= body.len() {
            let (code, len) = (self.order.u16(body, at), usize::from(self.order.u16(body, at + 2)));
            let Some(value) = body.get(at + 4..at + 4 + len) else {
                return Err(format!("interface option {code} of {len} bytes reaches beyond its block"));
            };
            match (code, value) {
                (0, _) => break,
                (OPTION_TSRESOL, [resolution]) => {
                    let exponent = u32::from(resolution & 0x7f);
                    let units =
                        if resolution & 0x80 == 0 { 10u64.checked_pow(exponent) } else { 1u64.checked_shl(exponent) };
                    interface.units =
                        units.ok_or_else(|| format!("time stamp resolution {resolution:#04x} is too fine"))?;
                }
                (OPTION_TSOFFSET, value) if len == 8 => {
                    let (a, b) = (u64::from(self.order.u32(value, 0)), u64::from(self.order.u32(value, 4)));
                    interface.offset = match self.order {
                        Order::Little => b << 32 | a,
                        Order::Big => a << 32 | b,
                    } as i64;
                }
                _ => {}
            }
            at += 4 + len.next_multiple_of(4);
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn described(&self, number: u32) -> Result<&Interface, String> {
        self.interfaces
            .get(number as usize)
            .ok_or_else(|| format!("a packet of interface {number}, {} are described", self.interfaces.len()))
    }

    fn enhanced(&self, body: &[u8]) -> Result<Block, String> {
        if body.len() < 20 {
            return Err(format!("an enhanced packet block with {} bytes, at least 20 are needed", body.len()));
        }
        self.packet(body, self.order.u32(body, 0))
    }

    fn obsolete(&self, body: &[u8]) -> Result<Block, String> {
        if body.len() < 20 {
            return Err(format!("a packet block with {} bytes, at least 20 are needed", body.len()));
        }
        self.packet(body, u32::from(self.order.u16(body, 0)))
    }

    /// Both blocks with a time stamp share the layout from byte 4 on.
    fn packet(&self, body: &[u8], number: u32) -> Result<Block, String> {
        let interface = self.described(number)?;
        let time = u64::from(self.order.u32(body, 4)) << 32 | u64::from(self.order.u32(body, 8));
        let captured = self.order.u32(body, 12) as usize;
        if captured > body.len() - 20 {
            return Err(format!("{captured} bytes captured in a block with room for {}", body.len() - 20));
        }
        let nanos = u128::from(time) * 1_000_000_000 / u128::from(interface.units);
        let nanos = nanos as i128 + i128::from(interface.offset) * 1_000_000_000;
        Ok(Block {
            timestamp: Some(Instant::from_nanos(nanos.clamp(0, i128::from(u64::MAX)) as u64)),
            bytes: 20..20 + captured,
            original_len: self.order.u32(body, 16),
            link_type: interface.link_type,
            interface: number,
        })
    }

    fn simple(&self, body: &[u8]) -> Result<Block, String> {
        if body.len() < 4 {
            return Err("a simple packet block without a length".into());
        }
        let interface = self.described(0)?;
        let original_len = self.order.u32(body, 0);
        let limit = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = original_len.min(limit) as usize;
        if captured > body.len() - 4 {
            return Err(format!("{captured} bytes captured in a block with room for {}", body.len() - 4));
        }
        Ok(Block {
            timestamp: None,
            bytes: 4..4 + captured,
            original_len,
            link_type: interface.link_type,
            interface: 0,
        })
    }
}
