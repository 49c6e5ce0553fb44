//! The 82576: one of its two ports, copper or SerDes.
//!
//! Written from the 82576 datasheet (initialisation chapter 4, descriptors chapter 7, registers chapter 8) and the
//! specification update. What they forbid is recorded as a violation:
//!
//! | rule | the driver |
//! | --- | --- |
//! | `access-during-reset` | touched a register within 1 ms of a reset |
//! | `reset-with-dma` | reset without having disabled the bus master and seen it stop |
//! | `reset-while-running` | reset with a receive or transmit queue at work |
//! | `unknown-register` | touched an offset where the part has no register |
//! | `reserved-bits` | set a bit that is reserved in a register or descriptor |
//! | `read-only-register` | wrote a register that only reads |
//! | `ring-alignment`, `ring-length` | described a ring that is misaligned, or no multiple of 128 bytes, or empty |
//! | `ring-change-while-enabled` | changed base, length, head or format of a ring in use, or the packet buffer split |
//! | `head-write` | wrote a head register with something else than zero |
//! | `tail-before-enable` | moved a tail of a queue that is off |
//! | `tail-outside-ring` | set a tail beyond the ring |
//! | `ring-overrun` | gave more descriptors than a ring less one has, or took back ones that hardware had not finished |
//! | `reuse-before-done` | wrote a descriptor whose completion had not been reported |
//! | `done-bit-set` | gave a descriptor that already says it is done |
//! | `descriptor-type` | used a legacy descriptor, or a type or receive format that does not exist |
//! | `zero-length-descriptor` | described no bytes |
//! | `packet-descriptors` | described a packet by more descriptors than the part has room for |
//! | `no-fcs` | asked for a frame without FCS |
//! | `mixed-commands` | changed commands, or lengths and options, within a packet |
//! | `report-inside-packet` | set RS before the end of a packet |
//! | `short-frame` | gave a frame of less than 17 bytes |
//! | `long-frame` | gave a frame that is longer than the part can send |
//! | `paylen` | PAYLEN that is not the length of the frame, or of what is segmented |
//! | `missing-context` | used a context that was never loaded |
//! | `context-slot` | used a slot that the queue does not have |
//! | `maclen`, `iplen`, `l4len` | a context whose lengths do not fit the packet |
//! | `transport-type` | a context whose transport is not the packet's |
//! | `ip-version` | a context whose IP version is not the packet's |
//! | `checksum-seed` | a checksum field without the right pseudo-header sum: wrong on the wire |
//! | `ip-checksum-seed` | an outer IPv4 checksum field that makes the header sum wrong on the wire |
//! | `segment-mss`, `segment-type` | segments of a size or kind that the part does not make |
//! | `segment-template` | outer headers of a tunnel that do not fit the segments |
//! | `counter-pair` | read the upper half of a counter before the lower |
//! | `mdic-busy`, `eerd-busy` | a second access before the first had finished |
//! | `eeprom-grant` | drove the EEPROM's lines |
//! | `semaphore-order`, `semaphore-not-held` | took semaphores out of order, or used the PHY without its own |
//! | `write-back-threshold` | WTHRESH above 1 in MSI-X mode (erratum: write-back can be delayed for ever) |
//! | `extension-headers` | received with IPv6 extension headers parsed (erratum) |
//! | `interrupt-route` | routed a cause to a vector that does not exist |
//! | `dma-without-master` | gave work to a part that may not master the bus |
//! | `dma-mapped` | let the part touch memory that is not mapped |

mod interrupt;
mod link;
mod nvm;
mod receive;
mod registers;
mod semaphore;
mod statistics;
mod transmit;

#[cfg(test)]
mod tests;

use super::counters::Counters;
use super::phy::CopperPhy;
use super::{ConfigSpace, Core, Device, Frame, Timers};
use crate::bus::pci::capability;
use core::time::Duration;
use interrupt::Interrupts;
use link::Pcs;
use netcore::Instant;
use nvm::Nvm;
use receive::ReceiveEngine;
use registers as reg;
use semaphore::Semaphores;
use transmit::TransmitEngine;

/// How long the part answers nothing after a reset.
const RESET_TIME: Duration = Duration::from_millis(1);
/// Bytes of the BAR of the MSI-X table.
const MSIX_WINDOW: u32 = 16 << 10;

/// What happens later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// Fetch transmit descriptors.
    Transmit,
    /// Report transmit descriptors whose time has come.
    WriteBack,
    /// Move received frames to memory.
    Receive,
    /// The link is negotiated.
    Link,
    /// A throttle lets an interrupt through.
    Interrupt,
    /// The pause that the partner asked for ends.
    PauseEnd,
}

/// The model. See the [module](self).
pub struct E82576 {
    /// Registers that only hold what is written to them.
    words: Vec<u32>,
    ctrl: u32,
    ctrl_ext: u32,
    rctl: u32,
    tctl: u32,
    serdes: bool,
    /// No access before this.
    quiet_until: Instant,
    paused_until: Instant,
    mdic: (u32, Instant),
    phy: CopperPhy,
    pcs: Pcs,
    /// Somebody has told the PHY, or the PCS, to look for a link.
    negotiating: bool,
    /// STATUS.LU as last reported.
    link_reported: bool,
    nvm: Nvm,
    semaphores: Semaphores,
    interrupts: Interrupts,
    transmit: TransmitEngine,
    receive: ReceiveEngine,
    counters: Counters,
    msix_table: Vec<u32>,
    io_address: u32,
    timers: Timers<Event>,
}

impl Default for E82576 {
    fn default() -> Self {
        Self::new()
    }
}

impl E82576 {
    /// A copper port.
    pub fn new() -> Self {
        Self {
            words: vec![0; reg::WINDOW as usize / 4],
            ctrl: 0,
            ctrl_ext: 0,
            rctl: 0,
            tctl: 0,
            serdes: false,
            quiet_until: Instant::ZERO,
            paused_until: Instant::ZERO,
            mdic: (0, Instant::ZERO),
            phy: CopperPhy::new(link::PHY),
            pcs: Pcs::default(),
            negotiating: false,
            link_reported: false,
            nvm: Nvm::default(),
            semaphores: Semaphores::default(),
            interrupts: Interrupts::default(),
            transmit: TransmitEngine::default(),
            receive: ReceiveEngine::default(),
            counters: statistics::counters(),
            msix_table: vec![0; MSIX_WINDOW as usize / 4],
            io_address: 0,
            timers: Timers::new(),
        }
    }

    /// A SerDes port: 1000BASE-X.
    pub fn serdes(mut self) -> Self {
        self.serdes = true;
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

    /// The state after a reset (datasheet chapter 8, "initial value"); the PHY and its link live on.
    fn set_reset_state(&mut self, core: &mut Core) {
        self.words.fill(0);
        self.ctrl = reg::CTRL_FD | 2 << reg::CTRL_SPEED_SHIFT;
        self.ctrl_ext = if self.serdes { 3 << 22 } else { 0 };
        self.rctl = 0;
        // PSP, collision threshold and distance, bits 31:26 as the datasheet has them.
        self.tctl = 0xa404_00f8;
        self.mdic = (0, core.now());
        self.semaphores = Semaphores::default();
        self.interrupts = Interrupts::default();
        self.transmit = TransmitEngine::default();
        self.receive = ReceiveEngine::default();
        self.counters.clear();
        for event in [Event::Transmit, Event::WriteBack, Event::Receive, Event::Interrupt, Event::PauseEnd] {
            self.timers.cancel(&event);
        }
        self.paused_until = Instant::ZERO;
        self.set_word(reg::RXPBS, 64);
        self.set_word(reg::TXPBS, 40);
        self.set_word(reg::RLPML, 0x2600);
        self.set_word(reg::VET, 0x8100_8100);
        self.set_word(reg::GCR, 0x0004_0000);
        // The configuration of both ports' PHYs is done.
        self.set_word(reg::EEMNGCTL, 3 << 18);
        self.set_word(0x00410, 0x0060_1008);
        self.set_word(reg::DTXTCPFLGL, 0x0ff6_0ff6);
        self.set_word(reg::DTXTCPFLGH, 0x0f7f);
        // Queue 0 of each direction is on, with an empty ring.
        self.set_word(reg::RX + reg::queue::CONTROL, 0x0001_0000);
        // Tables and the RAM of the receive hash are undefined.
        for index in 0..128 {
            let (mta, vfta, uta) = (core.rubbish(), core.rubbish(), core.rubbish());
            self.set_word(reg::MTA + 4 * index, mta);
            self.set_word(reg::VFTA + 4 * index, vfta);
            self.set_word(0x0a000 + 4 * index, uta);
        }
        for index in 0..32 {
            let value = core.rubbish();
            self.set_word(reg::RETA + 4 * index, value & 0x0f0f_0f0f);
        }
        for index in 0..10 {
            let value = core.rubbish();
            self.set_word(reg::RSSRK + 4 * index, value);
        }
        self.nvm.load(core, self.serdes);
        let (low, high) = crate::nic::filter::receive_address(self.nvm.mac());
        self.set_word(reg::RAL, low);
        self.set_word(reg::RAL + 4, high);
        core.set_line(false);
    }

    fn reset(&mut self, core: &mut Core) {
        if self.ctrl & reg::CTRL_GIO_DIS == 0 {
            core.violate("reset-with-dma", "reset without CTRL.GIO_DIS and STATUS.19 off before it");
        }
        let busy = self.tctl & reg::TCTL_EN != 0 && self.has_transmit_work();
        if busy || self.rctl & reg::RCTL_EN != 0 {
            core.violate("reset-while-running", "receive and transmit must be off and idle before a reset");
        }
        self.set_reset_state(core);
        self.quiet_until = core.now() + RESET_TIME;
        if core.faults.reset_stuck {
            self.ctrl |= reg::CTRL_RST;
        }
        self.link_may_have_changed(core);
    }

    /// Records an access while the part resets.
    fn check_quiet(&self, core: &mut Core, offset: u32) -> bool {
        if core.now() < self.quiet_until {
            core.violate("access-during-reset", format!("register {offset:#07x} within 1 ms of a reset"));
            return false;
        }
        true
    }
}

impl Device for E82576 {
    fn name(&self) -> &'static str {
        "82576"
    }

    fn power_on(&mut self, core: &mut Core) {
        let device = if self.serdes { 0x10e7 } else { 0x10c9 };
        let mut config = ConfigSpace::ethernet(device, 1, 0xa03c);
        config.memory_bar(0, reg::WINDOW, false);
        config.io_bar(2, 32);
        config.memory_bar(3, MSIX_WINDOW, false);
        // PCI Express endpoint, version 2: 512-byte payload possible, 2.5 GT/s by 4.
        config.capability(
            0xa0,
            capability::EXPRESS,
            &[0x0002_0000, 0x1000_8cc2, 0, 0x0003_5c41, 0x1041_0000, 0, 0, 0, 0, 0x1f, 0],
        );
        config.allow(0xa8, 0xffff);
        config.allow(0xb0, 0xffff);
        config.allow(0xc8, 0xffff);
        // 25 vectors; the table at 0 and the pending bits at 0x2000 of BAR 3.
        config.capability(0x70, capability::MSIX, &[0x0018_0000, 3, 0x2003]);
        config.allow(0x70, 0xc000_0000);
        config.capability(0x50, capability::MSI, &[0x0180_0000, 0, 0, 0, 0, 0]);
        config.allow(0x50, 0x0001_0000);
        config.allow(0x54, 0xffff_fffc);
        config.allow(0x58, u32::MAX);
        config.allow(0x5c, 0xffff);
        config.allow(0x60, u32::MAX);
        config.capability(0x40, capability::POWER, &[0xc823_0000, 0]);
        config.allow(0x44, 0x0000_1f03);
        core.config = config;
        self.set_reset_state(core);
        // The PHY waits to be told.
        self.phy.power_on();
        self.negotiating = false;
    }

    fn read(&mut self, core: &mut Core, offset: u32) -> u32 {
        if !self.check_quiet(core, offset) {
            return core.rubbish();
        }
        self.read_register(core, offset)
    }

    fn write(&mut self, core: &mut Core, offset: u32, value: u32) {
        if self.check_quiet(core, offset) {
            self.write_register(core, offset, value);
        }
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
            0 => self.io_address = value & (reg::WINDOW - 4),
            4 => self.write(core, self.io_address, value),
            _ => {}
        }
    }

    fn bar_read(&mut self, _core: &mut Core, bar: u8, offset: u32) -> u32 {
        let word = self.msix_table.get(offset as usize / 4).copied();
        if bar == 3 { word.unwrap_or(0) } else { 0 }
    }

    fn bar_write(&mut self, _core: &mut Core, bar: u8, offset: u32, value: u32) {
        // The pending bits only read.
        if bar == 3
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
        self.line_may_have_changed(core);
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
                Event::Link => self.negotiated(core),
                Event::Interrupt => self.update_interrupts(core),
            }
        }
    }
}
