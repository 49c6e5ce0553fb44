//! The SFP+ cage: a module's memory behind the two-wire interface (SFF-8472), driven bit by bit through I2CCTL. MDIO has no PHY
//! on these cards.

use super::map::MSCA;
use super::semaphore::resource;
use super::{Core, E82599, Medium};
use core::time::Duration;
use netcore::Instant;

const CLK_IN: u32 = 1 << 0;
const CLK_OUT: u32 = 1 << 1;
const DATA_IN: u32 = 1 << 2;
const DATA_OUT: u32 = 1 << 3;
const MDIO_COMMAND: u32 = 1 << 30;
/// A management frame of clause 45 at 2.4 MHz.
const MDIO_TIME: Duration = Duration::from_micros(30);

/// What is in the cage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Module {
    /// 10GBASE-SR.
    #[default]
    Sr,
    /// 10GBASE-LR.
    Lr,
    /// Passive copper cable.
    DirectAttach,
    /// 1000BASE-SX.
    Sx,
    /// Something that no driver knows.
    Unknown,
}

impl Module {
    /// The first 96 bytes at A0h.
    pub fn image(self) -> [u8; 96] {
        let mut image = [0; 96];
        image[0] = 3;
        image[1] = 4;
        image[2] = 7;
        match self {
            Self::Sr => image[3] = 0x10,
            Self::Lr => image[3] = 0x20,
            Self::DirectAttach => image[8] = 0x04,
            Self::Sx => image[6] = 0x01,
            Self::Unknown => image[0] = 0x0b,
        }
        image[20..36].copy_from_slice(b"Intel Corp      ");
        image[37..40].copy_from_slice(&[0x00, 0x1b, 0x21]);
        image[40..56].copy_from_slice(b"FTLX8571D3BCV-IT");
        image[63] = image[..63].iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
        image
    }
}

/// What the module does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Idle,
    /// Bits of the device address.
    Address,
    /// Bits of the place in memory, or of what is written there.
    Place,
    /// Bits go out.
    Out,
    /// The master's answer to a byte.
    Answer,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct I2c {
    clock: bool,
    data: bool,
    state: State,
    bits: u32,
    shift: u8,
    page: u8,
    place: u8,
    /// The module pulls the data line low.
    pulls: bool,
    /// In the clock of an acknowledgement, and whether bits go out after it.
    acknowledging: Option<State>,
}

impl Default for I2c {
    fn default() -> Self {
        Self {
            clock: true,
            data: true,
            state: State::Idle,
            bits: 0,
            shift: 0,
            page: 0xa0,
            place: 0,
            pulls: false,
            acknowledging: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mdio {
    pub(super) data: u32,
    ready: Instant,
    command: u32,
}

impl E82599 {
    fn has_module(&self, core: &Core) -> bool {
        self.medium == Medium::SfpPlus && !core.faults.sfp_absent
    }

    pub(super) fn read_i2c(&self, core: &Core) -> u32 {
        let i2c = &self.i2c;
        let low = i2c.pulls && self.has_module(core);
        let clock = if i2c.clock { CLK_IN | CLK_OUT } else { 0 };
        let out = if i2c.data { DATA_OUT } else { 0 };
        clock | out | if i2c.data && !low { DATA_IN } else { 0 }
    }

    pub(super) fn write_i2c(&mut self, core: &mut Core, value: u32) {
        let (clock, data) = (value & CLK_OUT != 0, value & DATA_OUT != 0);
        if (clock, data) != (self.i2c.clock, self.i2c.data) && !self.semaphores.holds(resource::PHY0 | resource::PHY1) {
            core.violate("semaphore-not-held", "the module's lines driven without the PHY's semaphore");
        }
        let before = self.i2c;
        self.i2c.clock = clock;
        self.i2c.data = data;
        if !self.has_module(core) {
            return;
        }
        if before.clock && clock && before.data && !data {
            // Start.
            self.i2c = I2c { clock, data, state: State::Address, place: before.place, ..I2c::default() };
        } else if before.clock && clock && !before.data && data {
            // Stop.
            self.i2c = I2c { clock, data, place: before.place, ..I2c::default() };
        } else if !before.clock && clock {
            self.clock_rises(data);
        } else if before.clock && !clock {
            self.clock_falls();
        }
    }

    fn clock_rises(&mut self, data: bool) {
        let i2c = &mut self.i2c;
        if i2c.acknowledging.is_some() {
            return;
        }
        match i2c.state {
            State::Address | State::Place => {
                i2c.shift = i2c.shift << 1 | u8::from(data);
                i2c.bits += 1;
            }
            State::Answer => {
                // Anything but an acknowledgement ends the transfer.
                i2c.state = if data { State::Idle } else { State::Out };
                i2c.bits = 0;
            }
            State::Idle | State::Out => {}
        }
    }

    /// The module changes the data line while the clock is low.
    fn clock_falls(&mut self) {
        let byte = self.module_byte();
        let i2c = &mut self.i2c;
        if let Some(next) = i2c.acknowledging.take() {
            i2c.pulls = false;
            i2c.state = next;
            i2c.bits = 0;
            i2c.shift = 0;
        }
        match i2c.state {
            State::Address | State::Place if i2c.bits == 8 => {
                let next = if i2c.state == State::Place {
                    i2c.place = i2c.shift;
                    State::Place
                } else if matches!(i2c.shift & 0xfe, 0xa0 | 0xa2) {
                    i2c.page = i2c.shift & 0xfe;
                    if i2c.shift & 1 != 0 { State::Out } else { State::Place }
                } else {
                    i2c.state = State::Idle;
                    return;
                };
                i2c.pulls = true;
                i2c.acknowledging = Some(next);
            }
            State::Out if i2c.bits < 8 => {
                i2c.pulls = byte >> (7 - i2c.bits) & 1 == 0;
                i2c.bits += 1;
            }
            State::Out => {
                i2c.pulls = false;
                i2c.place = i2c.place.wrapping_add(1);
                i2c.state = State::Answer;
            }
            _ => {}
        }
    }

    fn module_byte(&self) -> u8 {
        match self.i2c.page {
            0xa0 => self.module.image().get(usize::from(self.i2c.place)).copied().unwrap_or(0),
            _ => 0,
        }
    }

    pub(super) fn read_msca(&self, core: &Core) -> u32 {
        self.mdio.command & !MDIO_COMMAND | if core.now() < self.mdio.ready { MDIO_COMMAND } else { 0 }
    }

    pub(super) fn write_msca(&mut self, core: &mut Core, value: u32) {
        if core.now() < self.mdio.ready {
            core.violate("mdio-busy", "a PHY access was started before the one before had finished");
        }
        if value & MDIO_COMMAND != 0 && !self.semaphores.holds(resource::PHY0 | resource::PHY1) {
            core.violate("semaphore-not-held", format!("{MSCA:#07x} written without the PHY's semaphore"));
        }
        self.mdio.command = value;
        self.mdio.ready = if core.timing.dma.is_zero() { core.now() } else { core.now() + MDIO_TIME };
        // Nobody answers.
        self.mdio.data |= 0xffff_0000;
    }
}
