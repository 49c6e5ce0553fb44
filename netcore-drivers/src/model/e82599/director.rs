//! Flow Director: filters that choose the queue by addresses and ports (82599 datasheet 7.1.2.7).
//!
//! Perfect filters are modelled; signature filters are taken and never match.

use super::map::FDIR_FIRST;
use super::{Core, E82599};
use crate::model::frames::Seen;
use std::vec::Vec;

const FDIRCTRL: u32 = 0x0ee00;
const FDIRSIPV6: u32 = 0x0ee0c;
const FDIRIPSA: u32 = 0x0ee18;
const FDIRIPDA: u32 = 0x0ee1c;
const FDIRPORT: u32 = 0x0ee20;
const FDIRVLAN: u32 = 0x0ee24;
const FDIRHASH: u32 = 0x0ee28;
const FDIRCMD: u32 = 0x0ee2c;
const FDIRFREE: u32 = 0x0ee38;
const FDIRDIP4M: u32 = 0x0ee3c;
const FDIRSIP4M: u32 = 0x0ee40;
const FDIRTCPM: u32 = 0x0ee44;
const FDIRUDPM: u32 = 0x0ee48;
const FDIRUSTAT: u32 = 0x0ee50;
const FDIRFSTAT: u32 = 0x0ee54;
const FDIRMATCH: u32 = 0x0ee58;
const FDIRMISS: u32 = 0x0ee5c;
const FDIRM: u32 = 0x0ee70;

const INIT_DONE: u32 = 1 << 3;
const PERFECT: u32 = 1 << 4;
const REPORT: u32 = 1 << 5;
const REPORT_ALWAYS: u32 = 1 << 7;
/// FDIRCMD.
const COMMAND: u32 = 3;
const ADD: u32 = 1;
const REMOVE: u32 = 2;
const QUERY: u32 = 3;
const VALID: u32 = 1 << 2;
const DROP: u32 = 1 << 9;
const CLEAR_TABLE: u32 = 1 << 8;
/// FDIRM: ignore the VLAN id, its priority, and the transport protocol.
const M_VLAN_ID: u32 = 1;
const M_VLAN_PRIORITY: u32 = 1 << 1;
const M_L4P: u32 = 1 << 3;

/// What the filters say about a frame.
pub(super) enum Verdict {
    None,
    Drop,
    Queue { queue: usize, id: u32, report: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Filter {
    hash: u32,
    source: u32,
    destination: u32,
    ports: u32,
    vlan: u32,
    command: u32,
}

#[derive(Debug, Default)]
pub(super) struct Director {
    control: u32,
    filters: Vec<Filter>,
    matches: u32,
    misses: u32,
    added: u32,
    removed: u32,
    failed: u32,
}

impl Director {
    /// KiB of the packet buffer that the table takes.
    pub(super) fn kib(&self) -> u32 {
        match self.control & 3 {
            0 => 0,
            n => 32 << n,
        }
    }

    /// Perfect filters that the table has room for.
    fn room(&self) -> usize {
        self.kib() as usize * 32
    }

    fn perfect(&self) -> bool {
        self.control & PERFECT != 0
    }
}

impl E82599 {
    pub(super) fn read_director(&mut self, core: &mut Core, offset: u32) -> u32 {
        let d = &mut self.director;
        match offset {
            FDIRCTRL => d.control | if d.control & 3 != 0 { INIT_DONE } else { 0 },
            // Commands are carried out at once.
            FDIRCMD => self.word(FDIRCMD) & !COMMAND,
            FDIRFREE => d.room().saturating_sub(d.filters.len()) as u32 & 0xffff,
            FDIRUSTAT => core::mem::take(&mut d.added) & 0xffff | core::mem::take(&mut d.removed) << 16,
            FDIRFSTAT => core::mem::take(&mut d.failed),
            FDIRMATCH => core::mem::take(&mut d.matches),
            FDIRMISS => core::mem::take(&mut d.misses),
            FDIR_FIRST..=0x0ee7c if offset != 0x0ee04 && offset != 0x0ee08 => self.word(offset),
            _ => {
                core.violate("unknown-register", format!("read of {offset:#07x}"));
                0
            }
        }
    }

    pub(super) fn write_director(&mut self, core: &mut Core, offset: u32, value: u32) {
        match offset {
            FDIRCTRL => {
                if self.word(super::map::RXCTRL) & 1 != 0 {
                    core.violate("director-busy", "FDIRCTRL written while reception is on");
                }
                self.director = Director { control: value & !INIT_DONE, ..Director::default() };
            }
            FDIRCMD => {
                self.set_word(FDIRCMD, value);
                self.command(core, value);
            }
            _ => self.set_word(offset, value),
        }
    }

    fn command(&mut self, core: &mut Core, value: u32) {
        if value & CLEAR_TABLE != 0 {
            self.director.filters.clear();
        }
        if value & COMMAND == 0 {
            return;
        }
        if self.director.control & 3 == 0 {
            return core.violate("director-off", format!("FDIRCMD = {value:#010x} without a table"));
        }
        if !self.director.perfect() {
            return;
        }
        let hash = self.word(FDIRHASH);
        // A filter is known by its bucket and its number.
        let found = self.director.filters.iter().position(|filter| filter.hash == hash);
        match value & COMMAND {
            ADD => {
                let filter = Filter {
                    hash,
                    source: self.word(FDIRIPSA),
                    destination: self.word(FDIRIPDA),
                    ports: self.word(FDIRPORT),
                    vlan: self.word(FDIRVLAN),
                    command: value,
                };
                if self.word(FDIRSIPV6) != 0 {
                    core.violate("reserved-bits", "IPv6 in a perfect filter");
                }
                if let Some(at) = found {
                    self.director.filters[at] = filter;
                } else if self.director.filters.len() < self.director.room() {
                    self.director.filters.push(filter);
                    self.director.added += 1;
                } else {
                    self.director.failed += 1;
                    core.violate("director-full", format!("{} filters", self.director.filters.len()));
                }
            }
            QUERY => {
                let valid = if found.is_some() { VALID } else { 0 };
                self.set_word(FDIRCMD, value & !VALID | valid);
            }
            REMOVE => match found {
                Some(at) => {
                    self.director.filters.remove(at);
                    self.director.removed += 1;
                }
                None => self.director.failed += 1 << 8,
            },
            _ => {}
        }
    }

    /// Looks a frame up.
    pub(super) fn direct(&mut self, bytes: &[u8], seen: &Seen, tci: u16) -> Verdict {
        if self.director.control & 3 == 0 || !self.director.perfect() || seen.version != 4 {
            return Verdict::None;
        }
        let (network, upper) = (usize::from(seen.network), usize::from(seen.upper));
        let word = |at: usize| match bytes.get(at..at + 4) {
            Some(part) => u32::from_be_bytes([part[0], part[1], part[2], part[3]]),
            None => 0,
        };
        let (source, destination) = (word(network + 12), word(network + 16));
        let ports = match seen.protocol {
            Some(6 | 17 | 132) => word(upper),
            _ => 0,
        };
        // In the register the destination port is the upper half.
        let ports = ports.rotate_left(16);
        let l4 = match seen.protocol {
            Some(17) => 1,
            Some(6) => 2,
            Some(132) => 3,
            _ => 0,
        };
        let masks = self.word(FDIRM);
        let port_mask = match seen.protocol {
            Some(17) => reversed(!self.word(FDIRUDPM)),
            Some(6) => reversed(!self.word(FDIRTCPM)),
            _ => 0,
        };
        let (source_mask, destination_mask) = (!self.word(FDIRSIP4M), !self.word(FDIRDIP4M));
        let vlan_mask =
            if masks & M_VLAN_ID != 0 { 0 } else { 0xfff } | if masks & M_VLAN_PRIORITY != 0 { 0 } else { 0xe000 };
        let found = self.director.filters.iter().find(|filter| {
            (filter.source ^ source) & source_mask == 0
                && (filter.destination ^ destination) & destination_mask == 0
                && (filter.ports ^ ports) & port_mask == 0
                && (filter.vlan ^ u32::from(tci)) & vlan_mask == 0
                && (masks & M_L4P != 0 || filter.command >> 5 & 3 == l4)
        });
        let Some(filter) = found.copied() else {
            self.director.misses = self.director.misses.saturating_add(1);
            return Verdict::None;
        };
        self.director.matches = self.director.matches.saturating_add(1);
        if filter.command & DROP != 0 {
            return Verdict::Drop;
        }
        let report = self.director.control & (REPORT | REPORT_ALWAYS) != 0;
        let id = filter.hash >> 16 | (filter.hash & 0x1fff) << 16;
        Verdict::Queue { queue: (filter.command >> 16 & 0x7f) as usize, id, report }
    }
}

/// Both halves of a mask of ports, each bit by bit the other way round.
fn reversed(mask: u32) -> u32 {
    let half = |bits: u32| u32::from((bits as u16).reverse_bits());
    half(mask) | half(mask >> 16) << 16
}
