//! The 82599: one of its two ports, with an SFP+ cage or a backplane.
//!
//! Written from the 82599 datasheet (initialisation chapter 4, descriptors chapter 7, registers chapter 8) and the
//! specification update. What they forbid is recorded as a violation:
//!
//! | rule | the driver |
//! | --- | --- |
//! | `access-during-reset` | touched a register other than CTRL and STATUS within 1 ms of a reset |
//! | `reset-with-dma` | reset without having disabled the bus master and seen it stop |
//! | `reset-while-running` | reset with reception on or transmission at work |
//! | `unknown-register` | touched an offset where the part has no register |
//! | `reserved-bits` | set a bit that is reserved in a register or descriptor |
//! | `read-only-register` | wrote a register that only reads |
//! | `ring-alignment`, `ring-length` | described a ring that is misaligned, or no multiple of 128 bytes, or empty |
//! | `ring-change-while-enabled` | changed base, length, head or format of a ring in use |
//! | `head-write` | wrote a head register with something else than zero |
//! | `tail-before-enable` | moved a tail of a queue that is off |
//! | `tail-outside-ring` | set a tail beyond the ring |
//! | `ring-overrun` | gave more descriptors than a ring less one has, or took back ones that hardware had not finished |
//! | `reuse-before-done` | wrote a descriptor whose completion had not been reported |
//! | `done-bit-set` | gave a descriptor that already says it is done |
//! | `queue-before-engine` | enabled a transmit queue before DMATXCTL.TE |
//! | `queue-outside-mode` | enabled a transmit queue that the mode of MTQC does not have |
//! | `thresholds` | PTHRESH and WTHRESH above 40 together, or WTHRESH with head write-back |
//! | `relaxed-ordering` | left relaxed ordering of write-backs on |
//! | `arbiter` | changed MTQC without RTTDCS.ARBDIS |
//! | `security-block` | enabled reception without holding the security block |
//! | `crc-strip` | HLREG0.RXCRCSTRP and RDRXCTL.CRCSTRIP that differ |
//! | `watermark-zero` | FCRTH(0) of zero: the internal switch hangs transmission |
//! | `packet-buffers` | packet buffers larger than the memory |
//! | `merge-setup` | RSC without what it needs |
//! | `buffer-size`, `descriptor-type` | a receive buffer size or format that does not exist (header split is an erratum) |
//! | `zero-length-descriptor` | described no bytes |
//! | `packet-descriptors` | described a packet by more than 40 descriptors |
//! | `no-fcs` | asked for a frame without FCS |
//! | `mixed-commands` | changed commands, or lengths and options, within a packet |
//! | `report-inside-packet` | set RS before the end of a packet |
//! | `short-frame`, `long-frame` | gave a frame below 17 bytes, or above MAXFRS |
//! | `paylen` | PAYLEN that is not the length of the frame, or of what is segmented |
//! | `missing-context`, `context-slot` | used a context that was never loaded, or that does not exist |
//! | `maclen`, `iplen`, `l4len`, `transport-type`, `ip-version` | a context that does not fit the packet |
//! | `checksum-seed`, `ip-checksum-seed` | a field that makes a checksum wrong on the wire |
//! | `segment-mss`, `segment-type`, `segment-template` | segments that the part does not make |
//! | `counter-pair` | read the upper half of a counter before the lower |
//! | `mdio-busy`, `eerd-busy` | a second access before the first had finished |
//! | `eeprom-grant` | drove the EEPROM's lines |
//! | `semaphore-order`, `semaphore-not-held` | took semaphores out of order, or used MDIO or a module's lines without theirs |
//! | `interrupt-route` | routed a cause to a vector that does not exist |
//! | `director-off`, `director-busy`, `director-full` | a filter command that cannot be carried out |
//! | `dma-without-master` | gave work to a part that may not master the bus |
//! | `dma-mapped` | let the part touch memory that is not mapped |

mod director;
mod interrupt;
mod link;
mod map;
mod merge;
mod nvm;
mod receive;
mod registers;
mod semaphore;
mod sfp;
mod statistics;
mod transmit;

#[cfg(test)]
mod tests;

pub use sfp::Module;

use super::{ConfigSpace, Core, Device, Frame, Timers};
use crate::bus::pci::capability;
use core::time::Duration;
use director::Director;
use interrupt::Interrupts;
use link::Line;
use map::bit;
use netcore::Instant;
use nvm::Nvm;
use receive::ReceiveEngine;
use semaphore::Semaphores;
use sfp::{I2c, Mdio};
use statistics::Statistics;
use transmit::TransmitEngine;

/// How long the part answers nothing but its reset bits after a reset.
const RESET_TIME: Duration = Duration::from_millis(1);
/// Bytes of the BAR of the MSI-X table.
const MSIX_WINDOW: u32 = 16 << 10;

/// What the line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    SfpPlus,
    Backplane,
}

/// What happens later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// Fetch transmit descriptors.
    Transmit,
    /// Report transmit descriptors whose time has come.
    WriteBack,
    /// Move received frames to memory.
    Receive,
    /// Merged packets whose time is over are reported.
    Merge,
    /// The link is there.
    Link,
    /// A throttle lets an interrupt through.
    Interrupt,
    /// The pause that the partner asked for ends.
    PauseEnd,
}

/// The model. See the [module](self).
pub struct E82599 {
    /// Registers that only hold what is written to them.
    words: Vec<u32>,
    medium: Medium,
    module: Module,
    /// No access before this.
    quiet_until: Instant,
    paused_until: Instant,
    nvm: Nvm,
    semaphores: Semaphores,
    i2c: I2c,
    mdio: Mdio,
    line: Line,
    interrupts: Interrupts,
    transmit: TransmitEngine,
    receive: ReceiveEngine,
    director: Director,
    statistics: Statistics,
    msix_table: Vec<u32>,
    io_address: u32,
    timers: Timers<Event>,
}

impl Default for E82599 {
    fn default() -> Self {
        Self::new()
    }
}

impl E82599 {
    /// A port with an SFP+ cage and a 10GBASE-SR module in it.
    pub fn new() -> Self {
        Self {
            words: vec![0; map::WINDOW as usize / 4],
            medium: Medium::SfpPlus,
            module: Module::default(),
            quiet_until: Instant::ZERO,
            paused_until: Instant::ZERO,
            nvm: Nvm::default(),
            semaphores: Semaphores::default(),
            i2c: I2c::default(),
            mdio: Mdio::default(),
            line: Line::default(),
            interrupts: Interrupts::default(),
            transmit: TransmitEngine::default(),
            receive: ReceiveEngine::default(),
            director: Director::default(),
            statistics: Statistics::default(),
            msix_table: vec![0; MSIX_WINDOW as usize / 4],
            io_address: 0,
            timers: Timers::new(),
        }
    }

    /// The same with another module.
    pub fn with_module(mut self, module: Module) -> Self {
        self.module = module;
        self
    }

    /// A port to a backplane: KX4, KX and KR by negotiation.
    pub fn backplane(mut self) -> Self {
        self.medium = Medium::Backplane;
        self
    }

    fn word(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    fn set_word(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }

    /// The state after a reset (datasheet chapter 8, "initial value").
    fn set_reset_state(&mut self, core: &mut Core) {
        let kept = [map::AUTOC, map::AUTOC2, map::ESDP].map(|offset| (offset, self.word(offset)));
        self.words.fill(0);
        for (offset, value) in kept {
            self.set_word(offset, value);
        }
        self.semaphores = Semaphores::default();
        self.i2c = I2c::default();
        self.mdio = Mdio::default();
        self.interrupts = Interrupts::default();
        self.transmit.clear();
        self.receive.clear();
        self.director = Director::default();
        self.statistics.clear();
        for event in
            [Event::Transmit, Event::WriteBack, Event::Receive, Event::Merge, Event::Interrupt, Event::PauseEnd]
        {
            self.timers.cancel(&event);
        }
        self.paused_until = Instant::ZERO;
        self.set_word(map::HLREG0, 1 | bit::RXCRCSTRP | 1 << 10 | 1 << 27);
        self.set_word(map::MAXFRS, 1518 << 16);
        self.set_word(map::RXPBSIZE, 512 << 10);
        self.set_word(map::TXPBSIZE, 160 << 10);
        self.set_word(map::VLNCTRL, 0x8100);
        self.set_word(map::RFCTL, bit::RSC_DIS);
        self.set_word(map::DTXMXSZRQ, 0x10);
        self.set_word(map::DTXTCPFLGL, 0x0ff6_0ff6);
        self.set_word(map::DTXTCPFLGH, 0x0f7f);
        self.set_word(map::RDRXCTL, 0x0088_0000);
        // Queues may write back in relaxed order until they are told not to.
        for n in 0..map::QUEUES {
            self.set_word(registers::rx(n) + map::queue::DCA, 1 << 13 | 1 << 15 | 1 << 9);
            self.set_word(registers::tx(n) + map::queue::DCA, 1 << 11 | 1 << 13 | 1 << 9);
        }
        // Tables and the RAM of the receive hash are undefined.
        for index in 0..128 {
            for table in [map::MTA, map::VFTA, map::UTA] {
                let value = core.rubbish();
                self.set_word(table + 4 * index, value);
            }
        }
        for index in 0..32 {
            let value = core.rubbish();
            self.set_word(map::RETA + 4 * index, value & 0x0f0f_0f0f);
        }
        for index in 0..10 {
            let value = core.rubbish();
            self.set_word(map::RSSRK + 4 * index, value);
        }
        self.nvm.load(core);
        let (low, high) = crate::nic::filter::receive_address(core.mac);
        self.set_word(map::RAL, low);
        self.set_word(map::RAL + 4, high);
        core.set_line(false);
    }

    fn reset(&mut self, core: &mut Core, with_link: bool) {
        if self.word(map::CTRL) & bit::GIO_DIS == 0 && self.any_queue_enabled() {
            core.violate("reset-with-dma", "reset without CTRL.GIO_DIS and STATUS.19 off before it");
        }
        if self.has_transmit_work() || self.word(map::RXCTRL) & 1 != 0 {
            core.violate("reset-while-running", "receive and transmit must be off and idle before a reset");
        }
        self.set_reset_state(core);
        self.quiet_until = core.now() + RESET_TIME;
        if core.faults.reset_stuck {
            self.set_word(map::CTRL, bit::RST);
        }
        if with_link {
            self.line_power_on(core);
        } else {
            self.link_may_have_changed(core);
        }
    }

    /// Records an access while the part resets.
    fn check_quiet(&self, core: &mut Core, offset: u32) {
        if core.now() < self.quiet_until && !matches!(offset, map::CTRL | map::STATUS) {
            core.violate("access-during-reset", format!("register {offset:#07x} within 1 ms of a reset"));
        }
    }
}

impl Device for E82599 {
    fn name(&self) -> &'static str {
        "82599"
    }

    fn power_on(&mut self, core: &mut Core) {
        let device = match self.medium {
            Medium::SfpPlus => 0x10fb,
            Medium::Backplane => 0x1517,
        };
        let mut config = ConfigSpace::ethernet(device, 1, 0x0003);
        config.memory_bar(0, map::WINDOW, true);
        config.io_bar(2, 32);
        config.memory_bar(4, MSIX_WINDOW, true);
        // PCI Express endpoint, version 2: 512-byte payload possible; the link is 5 GT/s by 8.
        config.capability(
            0xa0,
            capability::EXPRESS,
            &[0x0002_0000, 0x1000_8cc2, 0x0000_2810, 0x0002_7482, 0x1082_0000, 0, 0, 0, 0, 0x1f, 0],
        );
        config.allow(0xa8, 0xffff);
        config.allow(0xb0, 0xffff);
        config.allow(0xc8, 0xffff);
        // 64 vectors; the table at 0 and the pending bits at 0x2000 of BAR 4.
        config.capability(0x70, capability::MSIX, &[0x003f_0000, 4, 0x2004]);
        config.allow(0x70, 0xc000_0000);
        config.capability(0x50, capability::MSI, &[0x0180_0000, 0, 0, 0, 0, 0]);
        config.allow(0x50, 0x0001_0000);
        config.allow(0x54, 0xffff_fffc);
        config.allow(0x58, u32::MAX);
        config.allow(0x5c, 0xffff);
        config.allow(0x60, u32::MAX);
        config.capability(0x40, capability::POWER, &[0x4823_0000, 0]);
        config.allow(0x44, 0x0000_1f03);
        core.config = config;
        self.set_reset_state(core);
        self.line_power_on(core);
    }

    fn read(&mut self, core: &mut Core, offset: u32) -> u32 {
        self.check_quiet(core, offset);
        self.read_register(core, offset)
    }

    fn write(&mut self, core: &mut Core, offset: u32, value: u32) {
        self.check_quiet(core, offset);
        self.write_register(core, offset, value);
    }

    fn io_read(&mut self, core: &mut Core, offset: u32) -> u32 {
        match offset {
            0 => self.io_address,
            4 => self.read(core, self.io_address),
            _ => u32::MAX,
        }
    }

    fn io_write(&mut self, core: &mut Core, offset: u32, value: u32) {
        match offset {
            0 => self.io_address = value & (map::WINDOW - 4),
            4 => self.write(core, self.io_address, value),
            _ => {}
        }
    }

    fn bar_read(&mut self, _core: &mut Core, bar: u8, offset: u32) -> u32 {
        let word = self.msix_table.get(offset as usize / 4).copied();
        if bar == 4 { word.unwrap_or(0) } else { 0 }
    }

    fn bar_write(&mut self, _core: &mut Core, bar: u8, offset: u32, value: u32) {
        // The pending bits only read.
        if bar == 4
            && offset < 0x2000
            && let Some(word) = self.msix_table.get_mut(offset as usize / 4)
        {
            *word = value;
        }
    }

    fn config_written(&mut self, core: &mut Core, _offset: u16) {
        self.update_interrupts(core);
    }

    fn receive(&mut self, core: &mut Core, frame: Frame) {
        self.frame_arrived(core, frame);
    }

    fn line_changed(&mut self, core: &mut Core) {
        self.partner_changed(core);
    }

    fn next_event(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn run(&mut self, core: &mut Core) {
        while let Some(event) = self.timers.pop(core.now()) {
            match event {
                Event::Transmit | Event::PauseEnd => self.run_transmit(core),
                Event::WriteBack => self.run_write_back(core),
                Event::Receive => self.run_receive(core),
                Event::Merge => self.close_merged(core),
                Event::Link => self.link_time_is_over(core),
                Event::Interrupt => self.update_interrupts(core),
            }
        }
    }
}
