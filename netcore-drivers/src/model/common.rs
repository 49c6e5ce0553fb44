//! [`Core`]: what every modelled device has.

use super::{ConfigSpace, Faults, Memory};
use core::time::Duration;
use netcore::driver::Duplex;
use netcore::{Instant, MacAddress};
use std::collections::VecDeque;
use std::string::String;
use std::vec::Vec;

/// Something a driver did that the datasheet forbids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Name of the rule.
    pub rule: &'static str,
    /// What was done, and what is allowed.
    pub detail: String,
    /// When, in virtual time.
    pub at: Instant,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "[{}] {}: {}", self.at, self.rule, self.detail)
    }
}

/// A frame on the line, without its FCS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// When its last bit passed the port.
    pub at: Instant,
    /// The bytes, link header first.
    pub bytes: Vec<u8>,
    /// Its FCS is wrong.
    pub bad_fcs: bool,
}

impl Frame {
    /// A good frame.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { at: Instant::ZERO, bytes, bad_fcs: false }
    }
}

/// What is at the other end of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partner {
    /// Somebody is there, powered.
    pub present: bool,
    /// It negotiates. If not, it has `speed_mbps` and `duplex` set by hand.
    pub negotiates: bool,
    /// Its offer, as register 4 has it (speeds, pause).
    pub offer: u16,
    /// It offers 1000 Mbit/s full duplex.
    pub gigabit: bool,
    /// It offers 10 Gbit/s.
    pub ten_gigabit: bool,
    /// Its speed if it does not negotiate, Mbit/s.
    pub speed_mbps: u32,
    /// Its duplex mode if it does not negotiate.
    pub duplex: Duplex,
}

impl Default for Partner {
    /// A switch port that offers everything and symmetric pause.
    fn default() -> Self {
        Self {
            present: true,
            negotiates: true,
            offer: 0x05e1,
            gigabit: true,
            ten_gigabit: true,
            speed_mbps: 1000,
            duplex: Duplex::Full,
        }
    }
}

/// How long things take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// From a tail write to the first descriptor fetched, and from the end of a frame to its write-back.
    pub dma: Duration,
    /// From cable and start to link.
    pub link_up: Duration,
    /// Frames take their time on the line. If not, they pass at once.
    pub line_rate: bool,
}

impl Default for Timing {
    /// 1 µs of bus latency, 2 s of negotiation, frames at line rate.
    fn default() -> Self {
        Self { dma: Duration::from_micros(1), link_up: Duration::from_secs(2), line_rate: true }
    }
}

impl Timing {
    /// Nothing takes time but the negotiation: 10 ms.
    pub const fn instant() -> Self {
        Self { dma: Duration::ZERO, link_up: Duration::from_millis(10), line_rate: false }
    }
}

/// Bytes on the line around a frame: preamble, FCS, gap.
const LINE_OVERHEAD: u64 = 8 + 4 + 12;

/// The parts of a modelled device that do not depend on its family.
#[derive(Debug)]
pub struct Core {
    /// Configuration space.
    pub config: ConfigSpace,
    /// Faults in force.
    pub faults: Faults,
    /// The other end of the line.
    pub partner: Partner,
    /// How long things take.
    pub timing: Timing,
    /// The station address in NVM.
    pub mac: MacAddress,
    memory: Memory,
    now: Instant,
    violations: Vec<Violation>,
    /// Messages raised per vector and not yet taken.
    pub(super) pending: Vec<u32>,
    /// Level of the interrupt line.
    pub(super) line: bool,
    pub(super) sent: VecDeque<Frame>,
    /// When the line is free again.
    line_free: Instant,
    seed: u64,
    /// DMA faults so far.
    dma_faults: u64,
}

impl Core {
    pub(super) fn new(memory: Memory, mac: MacAddress, seed: u64) -> Self {
        Self {
            config: ConfigSpace::ethernet(0xffff, 0, 0),
            faults: Faults::default(),
            partner: Partner::default(),
            timing: Timing::default(),
            mac,
            memory,
            now: Instant::ZERO,
            violations: Vec::new(),
            pending: vec![0; 256],
            line: false,
            sent: VecDeque::new(),
            line_free: Instant::ZERO,
            seed: seed | 1,
            dma_faults: 0,
        }
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn set_now(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Records that a rule was broken.
    pub fn violate(&mut self, rule: &'static str, detail: impl Into<String>) {
        // A driver in a loop must not fill memory; the first ones tell.
        if self.violations.len() < 1000 {
            self.violations.push(Violation { rule, detail: detail.into(), at: self.now });
        }
    }

    /// What was recorded.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(super) fn take_violations(&mut self) -> Vec<Violation> {
        core::mem::take(&mut self.violations)
    }

    /// DMA accesses that failed.
    pub const fn dma_faults(&self) -> u64 {
        self.dma_faults
    }

    /// True if DMA is possible: bus mastering on, no fault.
    pub fn can_dma(&self) -> bool {
        self.config.master() && !self.faults.dma_error && !self.faults.removed
    }

    /// Reads memory. False if that failed; a read of unmapped memory is a violation.
    #[must_use]
    pub fn dma_read(&mut self, iova: u64, bytes: &mut [u8]) -> bool {
        if !self.can_dma() {
            self.dma_faults += 1;
            return false;
        }
        match self.memory.read(iova, bytes) {
            Ok(()) => true,
            Err(fault) => {
                self.dma_faults += 1;
                self.violate("dma-mapped", format!("read: {fault}"));
                false
            }
        }
    }

    /// Writes memory. False if that failed; a write to unmapped memory is a violation.
    #[must_use]
    pub fn dma_write(&mut self, iova: u64, bytes: &[u8]) -> bool {
        if !self.can_dma() {
            self.dma_faults += 1;
            return false;
        }
        match self.memory.write(iova, bytes) {
            Ok(()) => true,
            Err(fault) => {
                self.dma_faults += 1;
                self.violate("dma-mapped", format!("write: {fault}"));
                false
            }
        }
    }

    /// Reads a descriptor.
    pub fn read_descriptor(&mut self, iova: u64) -> Option<[u64; 2]> {
        let mut bytes = [0; 16];
        self.dma_read(iova, &mut bytes).then(|| {
            let mut words = [0; 2];
            for (word, half) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes([half[0], half[1], half[2], half[3], half[4], half[5], half[6], half[7]]);
            }
            words
        })
    }

    /// Writes a descriptor back.
    #[must_use]
    pub fn write_descriptor(&mut self, iova: u64, words: [u64; 2]) -> bool {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        self.dma_write(iova, &bytes)
    }

    /// Sends a message on an MSI or MSI-X vector.
    pub fn message(&mut self, vector: u16) {
        if self.can_dma()
            && let Some(pending) = self.pending.get_mut(usize::from(vector))
        {
            *pending += 1;
        }
    }

    /// Drives the interrupt line, unless the command register forbids it.
    pub fn set_line(&mut self, asserted: bool) {
        self.line = asserted && self.config.get(4) & crate::bus::pci::command::INTX_DISABLE == 0;
    }

    /// Level of the interrupt line.
    pub const fn line(&self) -> bool {
        self.line
    }

    /// Puts a frame on the line at `mbps` and says when its last bit has left.
    pub fn send(&mut self, bytes: Vec<u8>, mbps: u32) -> Instant {
        let at = if self.timing.line_rate {
            let bits = (bytes.len() as u64 + LINE_OVERHEAD) * 8;
            let start = self.line_free.max(self.now);
            start.plus_nanos(bits * 1000 / u64::from(mbps.max(1)))
        } else {
            self.now
        };
        self.line_free = at;
        self.sent.push_back(Frame { at, bytes, bad_fcs: false });
        at
    }

    /// When the line is free for the next frame.
    pub const fn line_free(&self) -> Instant {
        self.line_free
    }

    /// Rubbish for tables that reset leaves undefined; the same for the same seed.
    pub fn rubbish(&mut self) -> u32 {
        // xorshift64 (Marsaglia 2003): any sequence will do.
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 16) as u32
    }
}
