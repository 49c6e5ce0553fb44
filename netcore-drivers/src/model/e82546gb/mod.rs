//! The 82546GB: one of its two copper ports on a PCI-X card.
//!
//! Written from the 8254x family manual (registers chapter 13, descriptors chapter 3, initialisation chapter 14) and the
//! specification update. What the manual forbids is recorded as a violation:
//!
//! | rule | the driver |
//! | --- | --- |
//! | `access-during-reset` | touched a register within 5 ms of a reset |
//! | `reset-path` | reset through CTRL instead of its duplicate |
//! | `reset-while-running` | reset with a queue enabled and work in it |
//! | `unknown-register` | touched an offset where the part has no register |
//! | `reserved-bits` | set a bit that is reserved in a register or descriptor |
//! | `read-only-register` | wrote a register that only reads |
//! | `ring-alignment`, `ring-length`, `ring-64k` | described a ring that is misaligned, no multiple of 128 bytes, or crosses 64 KiB |
//! | `ring-change-while-enabled` | changed base, length or head of a ring in use, or the packet buffer split |
//! | `head-write` | wrote a head register with something else than zero |
//! | `tail-before-enable` | moved a tail of a queue that is off |
//! | `tail-outside-ring` | set a tail beyond the ring |
//! | `ring-overrun` | gave more descriptors than a ring less one has, or took back ones that hardware had not finished |
//! | `reuse-before-done` | wrote a descriptor whose completion had not been reported |
//! | `done-bit-set` | gave a descriptor that already says it is done |
//! | `zero-length-descriptor`, `too-many-bytes` | described no bytes, or more than a descriptor can |
//! | `no-fcs` | asked for a frame without FCS |
//! | `mixed-commands` | changed TSE or VLE within a packet |
//! | `report-inside-packet` | set RS before the end of a segmented packet |
//! | `short-frame` | left padding to hardware (erratum: corrupts on PCI-X) |
//! | `transmit-fifo` | gave a frame that the transmit buffer cannot hold |
//! | `pcix-first-descriptor` | a first descriptor above 2015 bytes on PCI-X (erratum) |
//! | `missing-context` | used a context that was never loaded |
//! | `ip-context`, `checksum-context` | a context whose offsets do not fit the packet |
//! | `checksum-seed` | a checksum field without the right pseudo-header sum |
//! | `segment-paylen`, `segment-header`, `segment-mss`, `segment-ipv6`, `segment-buffer`, `segment-template` | a segmentation context that does not fit the packet, or what the part cannot cut |
//! | `segment-sentinel` | a packet in one descriptor right after a segmented one (erratum: premature write-back) |
//! | `vlan-without-vme` | asked for a tag with CTRL.VME off |
//! | `buffer-64k` | a receive buffer across a 64 KiB boundary (erratum 23) |
//! | `counter-pair` | read the upper half of a counter before the lower |
//! | `mdic-busy`, `eerd-busy` | a second access before the first had finished |
//! | `eeprom-grant` | drove the EEPROM's lines without having been granted them |
//! | `receive-delay` | switched on the receive delay timer (erratum: can hang reception) |
//! | `transmit-gap` | enabled transmission without inter-packet gap or collision distance |
//! | `dma-without-master` | gave work to a part that may not master the bus |
//! | `dma-mapped` | let the part touch memory that is not mapped |

mod interrupt;
mod link;
mod nvm;
mod receive;
mod registers;
mod statistics;
mod transmit;

#[cfg(test)]
mod tests;

use super::{ConfigSpace, Core, Counters, Device, Frame, Timers};
use crate::bus::pci::capability;
use core::time::Duration;
use link::Phy;
use netcore::Instant;
use nvm::Nvm;
use receive::ReceiveEngine;
use registers as reg;
use transmit::TransmitEngine;

/// How long the part answers nothing after a reset: it loads its EEPROM.
const RESET_TIME: Duration = Duration::from_millis(5);

/// What happens later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// Fetch transmit descriptors.
    Transmit,
    /// Report transmit descriptors whose time has come.
    WriteBack,
    /// Move received frames to memory.
    Receive,
    /// The PHY has negotiated.
    Link,
    /// The throttle lets an interrupt through.
    Interrupt,
    /// The pause that the partner asked for ends.
    PauseEnd,
}

/// The model. See the [module](self).
pub struct E82546Gb {
    /// Registers that only hold what is written to them.
    words: Vec<u32>,
    ctrl: u32,
    rctl: u32,
    tctl: u32,
    icr: u32,
    ims: u32,
    itr: u32,
    /// No access before this.
    quiet_until: Instant,
    paused_until: Instant,
    last_interrupt: Option<Instant>,
    io_address: u32,
    mdic: (u32, Instant),
    pcix: bool,
    phy: Phy,
    nvm: Nvm,
    transmit: TransmitEngine,
    receive: ReceiveEngine,
    counters: Counters,
    timers: Timers<Event>,
}

impl Default for E82546Gb {
    fn default() -> Self {
        Self::new()
    }
}

impl E82546Gb {
    /// A part on a PCI-X bus at 133 MHz.
    pub fn new() -> Self {
        Self {
            words: vec![0; reg::WINDOW as usize / 4],
            ctrl: 0,
            rctl: 0,
            tctl: 0,
            icr: 0,
            ims: 0,
            itr: 0,
            quiet_until: Instant::ZERO,
            paused_until: Instant::ZERO,
            last_interrupt: None,
            io_address: 0,
            mdic: (0, Instant::ZERO),
            pcix: true,
            phy: Phy::default(),
            nvm: Nvm::default(),
            transmit: TransmitEngine::default(),
            receive: ReceiveEngine::default(),
            counters: statistics::counters(),
            timers: Timers::new(),
        }
    }

    /// The same on a conventional PCI bus.
    pub fn on_pci(mut self) -> Self {
        self.pcix = false;
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

    /// The state after a reset (manual chapter 13, "initial value"); the link and the PHY live on.
    fn set_reset_state(&mut self, core: &mut Core) {
        self.words.fill(0);
        // Full duplex, 1000 Mbit/s; link not yet asked for.
        self.ctrl = reg::CTRL_FD | reg::CTRL_SPEED_1000;
        self.rctl = 0;
        self.tctl = 0;
        self.icr = 0;
        self.ims = 0;
        self.itr = 0;
        self.last_interrupt = None;
        self.mdic = (0, core.now());
        self.transmit = TransmitEngine::default();
        self.receive = ReceiveEngine::default();
        self.counters = statistics::counters();
        self.timers.cancel(&Event::Transmit);
        self.timers.cancel(&Event::WriteBack);
        self.timers.cancel(&Event::Receive);
        self.timers.cancel(&Event::Interrupt);
        self.timers.cancel(&Event::PauseEnd);
        self.paused_until = Instant::ZERO;
        self.set_word(reg::PBA, 0x0010_0030);
        self.set_word(reg::VET, 0x8100);
        // The multicast and VLAN tables are undefined.
        for index in 0..128 {
            let (mta, vfta) = (core.rubbish(), core.rubbish());
            self.set_word(reg::MTA + 4 * index, mta);
            self.set_word(reg::VFTA + 4 * index, vfta);
        }
        self.nvm.load(core);
        let (low, high) = crate::nic::filter::receive_address(self.nvm.mac());
        self.set_word(reg::RAL, low);
        self.set_word(reg::RAH, high);
        core.set_line(false);
    }

    fn reset(&mut self, core: &mut Core, duplicate: bool) {
        if !duplicate {
            core.violate("reset-path", "reset through CTRL; on this part it goes through the duplicate at 0x00004");
        }
        let busy = self.tctl & reg::TCTL_EN != 0 && self.transmit.has_work(self);
        if busy || self.rctl & reg::RCTL_EN != 0 {
            core.violate("reset-while-running", "receive and transmit must be off and idle before a reset");
        }
        self.set_reset_state(core);
        self.quiet_until = core.now() + RESET_TIME;
        if core.faults.reset_stuck {
            self.ctrl |= reg::CTRL_RST;
        }
    }

    /// Records an access while the part loads its EEPROM.
    fn check_quiet(&self, core: &mut Core, offset: u32) -> bool {
        if core.now() < self.quiet_until {
            core.violate("access-during-reset", format!("register {offset:#07x} within 5 ms of a reset"));
            return false;
        }
        true
    }
}

impl Device for E82546Gb {
    fn name(&self) -> &'static str {
        "82546GB"
    }

    fn power_on(&mut self, core: &mut Core) {
        let mut config = ConfigSpace::ethernet(0x1079, 3, 0x1079);
        config.memory_bar(0, reg::WINDOW, true);
        config.io_bar(2, 64);
        config.capability(0xf0, capability::MSI, &[0x0080_0000, 0, 0, 0]);
        config.allow(0xf0, 0x0001_0000);
        config.allow(0xf4, 0xffff_fffc);
        config.allow(0xf8, u32::MAX);
        config.allow(0xfc, 0xffff);
        // 64 bits, 133 MHz, up to 2 KiB reads, one split transaction.
        config.capability(0xe4, capability::PCIX, &[0x0002_0000, 0x0003_0000]);
        config.allow(0xe4, 0x007f_0000);
        config.capability(0xdc, capability::POWER, &[0xc822_0000, 0]);
        config.allow(0xe0, 0x0000_1f03);
        core.config = config;
        self.set_reset_state(core);
        self.phy.power_on();
        self.restart_negotiation(core);
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

    fn receive(&mut self, core: &mut Core, frame: Frame) {
        self.frame_arrived(core, frame);
    }

    fn line_changed(&mut self, core: &mut Core) {
        self.phy_line_changed(core);
    }

    fn next_event(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn run(&mut self, core: &mut Core) {
        while let Some(event) = self.timers.pop(core.now()) {
            match event {
                Event::Transmit => self.run_transmit(core),
                Event::WriteBack => self.run_write_back(core),
                Event::Receive => self.run_receive(core),
                Event::Link => self.negotiated(core),
                Event::Interrupt => self.update_interrupts(core),
                Event::PauseEnd => self.run_transmit(core),
            }
        }
    }
}
