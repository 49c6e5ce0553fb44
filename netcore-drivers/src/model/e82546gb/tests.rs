//! Each rule is broken on purpose, and a correct sequence breaks none.

use super::E82546Gb;
use super::registers as reg;
use crate::bus::{Bus, pci};
use crate::dma::DmaBlock;
use crate::mmio::Mmio;
use crate::model::{Bench, Frame, ModelBus, Port, Timing};
use core::time::Duration;
use netcore::MacAddress;
use std::string::String;
use std::vec::Vec;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Descriptors in each ring.
const COUNT: u32 = 16;
const EOP: u64 = 1 << 24;
const IFCS: u64 = 1 << 25;
const TSE: u64 = 1 << 26;
const RS: u64 = 1 << 27;
const DEXT: u64 = 1 << 29;
const VLE: u64 = 1 << 30;
const DATA: u64 = 1 << 20;
const TXSM: u64 = 2 << 40;
const IXSM: u64 = 1 << 40;

struct Rig {
    bench: Bench,
    port: Port,
    bus: ModelBus,
    csr: Mmio,
    transmit: DmaBlock,
    receive: DmaBlock,
    buffers: DmaBlock,
    tail: u32,
    index: u32,
}

fn block(bus: &mut ModelBus, len: usize) -> DmaBlock {
    DmaBlock::new(bus.allocate(len).unwrap()).unwrap()
}

impl Rig {
    /// Reset by the book, rings described, nothing enabled.
    fn new() -> Self {
        let bench = Bench::new();
        let (port, mut bus) = bench.add(Box::new(E82546Gb::new()), MAC);
        bench.timing(port, Timing::instant());
        pci::enable(&mut bus).unwrap();
        let csr = bus.map_bar(0).unwrap();
        let (transmit, receive) = (block(&mut bus, 4096), block(&mut bus, 4096));
        let buffers = block(&mut bus, 64 << 10);
        let mut rig = Self { bench, port, bus, csr, transmit, receive, buffers, tail: 0, index: 0 };
        rig.reset();
        rig
    }

    fn reset(&mut self) {
        self.w(reg::IMC, u32::MAX);
        self.w(reg::RCTL, 0);
        self.w(reg::TCTL, reg::TCTL_PSP);
        self.w(reg::CTRL_DUP, self.r(reg::CTRL) | reg::CTRL_RST);
        self.bus.sleep(Duration::from_millis(5));
        self.w(reg::CTRL, self.r(reg::CTRL) | reg::CTRL_SLU | reg::CTRL_VME);
        for index in 0..128 {
            self.w(reg::MTA + 4 * index, 0);
        }
        let (t, r) = (self.transmit.iova(), self.receive.iova());
        for (low, iova) in [(reg::TDBAL, t), (reg::RDBAL, r)] {
            self.w(low, iova as u32);
            self.w(low + 4, (iova >> 32) as u32);
            self.w(low + 8, COUNT * 16);
        }
        self.w(reg::TIPG, 0x0060_2008);
        self.w(reg::RXCSUM, 0x300);
        self.bench.advance(Duration::from_secs(3));
    }

    /// Both queues on, buffers given.
    fn enabled() -> Self {
        let mut rig = Self::new();
        rig.enable();
        rig
    }

    fn enable(&mut self) {
        self.w(reg::TCTL, reg::TCTL_EN | reg::TCTL_PSP | 0x3f << 12 | 15 << 4);
        for n in 0..u64::from(COUNT) {
            self.arm(n, self.buffers.iova() + 32768 + 2048 * n);
        }
        self.w(reg::RCTL, reg::RCTL_EN | reg::RCTL_BAM | reg::RCTL_SECRC);
        self.w(reg::RDT, COUNT - 1);
    }

    fn arm(&self, index: u64, iova: u64) {
        self.receive.write_u64(index as usize * 16, iova);
        self.receive.write_u64(index as usize * 16 + 8, 0);
    }

    fn r(&self, offset: u32) -> u32 {
        self.csr.read(offset)
    }

    fn w(&self, offset: u32, value: u32) {
        self.csr.write(offset, value);
    }

    /// Writes a descriptor; `at` is an offset in the buffers.
    fn put(&mut self, at: u64, word: u64) {
        let slot = self.index as usize * 16;
        self.transmit.write_u64(slot, if at == u64::MAX { at } else { self.buffers.iova() + at });
        self.transmit.write_u64(slot + 8, word);
        self.index = (self.index + 1) % COUNT;
    }

    fn put_raw(&mut self, words: [u64; 2]) {
        let slot = self.index as usize * 16;
        self.transmit.write_u64(slot, words[0]);
        self.transmit.write_u64(slot + 8, words[1]);
        self.index = (self.index + 1) % COUNT;
    }

    fn go(&mut self) {
        self.tail = self.index;
        self.w(reg::TDT, self.tail);
        self.bench.advance(Duration::from_millis(1));
    }

    /// A TCP packet over IPv4 with the seed in its checksum field, at the start of the buffers.
    fn tcp(&self, payload: usize, seed_with_len: bool) -> usize {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        frame.extend((40 + payload as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend((0..payload).map(|n| n as u8));
        let len = if seed_with_len { 20 + payload as u32 } else { 0 };
        let seed = netcore::checksum::sum(&frame[26..34]).plus_word(6).plus_u32(len).fold();
        frame[50..52].copy_from_slice(&seed.to_be_bytes());
        if !seed_with_len {
            frame[16..18].fill(0);
        } else {
            let sum = !netcore::checksum::sum(&frame[14..34]).fold();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        self.buffers.write(0, &frame);
        frame.len()
    }

    fn rules(&self) -> Vec<&'static str> {
        self.bench.take_violations(self.port).iter().map(|violation| violation.rule).collect()
    }

    fn deliver(&self, len: usize) {
        let mut bytes = vec![0x55; len];
        bytes[..6].copy_from_slice(&MAC.0);
        self.bench.inject(self.port, Frame::new(bytes));
        self.bench.advance(Duration::from_millis(1));
    }
}

/// A checksum context for TCP over IPv4.
const CHECKSUM: [u64; 2] = [34 << 32 | 50 << 40, DEXT | 1 << 24];

/// A segmentation context for `payload` bytes of TCP over IPv4.
fn segmentation(payload: u64, mss: u64) -> [u64; 2] {
    [14 | 24 << 8 | 33 << 16 | 34 << 32 | 50 << 40, payload | DEXT | TSE | 3 << 24 | 54 << 40 | mss << 48]
}

/// A segmented packet of `payload` bytes.
fn segmented(rig: &mut Rig, payload: usize, context: [u64; 2]) {
    rig.tcp(payload, false);
    rig.put_raw(context);
    let common = DEXT | DATA | IFCS | TSE | TXSM | IXSM;
    rig.put(0, common | 54);
    rig.put(54, common | (payload as u64 - 4));
    rig.put(54 + payload as u64 - 4, common | 4 | EOP | RS);
}

const WHOLE: u64 = DEXT | DATA | IFCS | EOP | RS;

#[test]
fn what_the_manual_allows_breaks_no_rule() {
    let mut rig = Rig::enabled();
    rig.put(0, WHOLE | 100);
    rig.go();
    let len = rig.tcp(200, true);
    rig.put_raw(CHECKSUM);
    rig.put(0, WHOLE | TXSM | len as u64);
    rig.go();
    segmented(&mut rig, 4000, segmentation(4000, 1460));
    rig.go();
    rig.put(0, WHOLE & !(EOP | RS) | 96);
    rig.put(96, WHOLE | 4);
    rig.go();
    rig.deliver(100);
    let sent = rig.bench.take_sent(rig.port);
    assert_eq!(sent.iter().map(|frame| frame.bytes.len()).collect::<Vec<_>>(), [100, 254, 1514, 1514, 1134, 100]);
    assert_eq!(rig.receive.read_u64(8) >> 32 & 3, 3, "received");
    for offset in (0x4000..0x4100).step_by(4).filter(|offset| super::statistics::index(*offset).is_some()) {
        rig.r(offset);
    }
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

/// The rule, the state it starts from, and what breaks it.
type Case = (&'static str, fn() -> Rig, fn(&mut Rig));

/// A function per rule, with the state it starts from.
const BREAKERS: &[Case] = &[
    ("access-during-reset", Rig::new, |rig| {
        rig.w(reg::CTRL_DUP, rig.r(reg::CTRL) | reg::CTRL_RST);
        rig.bus.sleep(Duration::from_millis(4));
        rig.r(reg::STATUS);
    }),
    ("reset-path", Rig::new, |rig| rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_RST)),
    ("reset-while-running", Rig::enabled, |rig| rig.w(reg::CTRL_DUP, rig.r(reg::CTRL) | reg::CTRL_RST)),
    ("unknown-register", Rig::new, |rig| {
        rig.r(0x1_0000);
    }),
    ("unknown-register", Rig::new, |rig| rig.w(0x0_5818, 1)),
    ("reserved-bits", Rig::new, |rig| rig.w(reg::RCTL, 1 << 21)),
    ("reserved-bits", Rig::new, |rig| rig.w(reg::CTRL, rig.r(reg::CTRL) | 1 << 2)),
    ("reserved-bits", Rig::enabled, |rig| {
        rig.put(0, WHOLE | 1 << 45 | 100);
        rig.go();
    }),
    ("read-only-register", Rig::new, |rig| rig.w(reg::STATUS, 0)),
    ("ring-alignment", Rig::new, |rig| rig.w(reg::TDBAL, 0x1008)),
    ("ring-length", Rig::new, |rig| rig.w(reg::RDLEN, 200)),
    ("ring-length", Rig::new, |rig| {
        rig.w(reg::TDLEN, 0);
        rig.w(reg::TCTL, reg::TCTL_EN | 0x3f << 12);
    }),
    ("ring-64k", Rig::new, |rig| {
        rig.w(reg::RDBAL, 0x0001_ff80);
        rig.w(reg::RCTL, reg::RCTL_EN);
    }),
    ("ring-change-while-enabled", Rig::enabled, |rig| rig.w(reg::TDLEN, 512)),
    ("ring-change-while-enabled", Rig::enabled, |rig| rig.w(reg::PBA, 40)),
    ("head-write", Rig::new, |rig| rig.w(reg::TDH, 3)),
    ("tail-before-enable", Rig::new, |rig| rig.w(reg::TDT, 1)),
    ("tail-before-enable", Rig::new, |rig| rig.w(reg::RDT, COUNT - 1)),
    ("tail-outside-ring", Rig::enabled, |rig| rig.w(reg::TDT, COUNT)),
    ("ring-overrun", Rig::enabled, |rig| {
        // A buffer is given back that hardware has not filled: a done bit was believed that was not there.
        rig.w(reg::RDT, 0);
    }),
    ("ring-overrun", Rig::enabled, |rig| {
        rig.bench.faults(rig.port, |faults| faults.transmit_hang = true);
        for _ in 0..10 {
            rig.put(0, WHOLE | 100);
        }
        rig.go();
        for _ in 0..10 {
            rig.put(0, WHOLE | 100);
        }
        rig.go();
    }),
    ("reuse-before-done", Rig::enabled, |rig| {
        rig.bench.faults(rig.port, |faults| faults.late_write_back = Some(Duration::from_secs(1)));
        for _ in 0..2 {
            for _ in 0..10 {
                rig.put(0, WHOLE | 100);
            }
            rig.go();
        }
    }),
    ("done-bit-set", Rig::enabled, |rig| {
        rig.put(0, WHOLE | 1 << 32 | 100);
        rig.go();
    }),
    ("done-bit-set", Rig::enabled, |rig| {
        rig.receive.write_u64(8, 1 << 32);
        rig.deliver(100);
    }),
    ("zero-length-descriptor", Rig::enabled, |rig| {
        rig.put(0, WHOLE & !(EOP | RS) | 100);
        rig.put(100, WHOLE);
        rig.go();
    }),
    ("too-many-bytes", Rig::enabled, |rig| {
        rig.put(0, EOP | IFCS | RS | 16300);
        rig.go();
    }),
    ("no-fcs", Rig::enabled, |rig| {
        rig.put(0, WHOLE & !IFCS | 100);
        rig.go();
    }),
    ("mixed-commands", Rig::enabled, |rig| {
        rig.put(0, WHOLE & !(EOP | RS) | VLE | 100);
        rig.put(100, WHOLE | 100);
        rig.go();
    }),
    ("report-inside-packet", Rig::enabled, |rig| {
        rig.tcp(1000, false);
        rig.put_raw(segmentation(1000, 500));
        rig.put(0, DEXT | DATA | IFCS | TSE | TXSM | IXSM | RS | 54);
        rig.put(54, DEXT | DATA | IFCS | TSE | TXSM | IXSM | EOP | RS | 1000);
        rig.go();
    }),
    ("short-frame", Rig::enabled, |rig| {
        rig.put(0, WHOLE | 42);
        rig.go();
    }),
    ("transmit-fifo", Rig::enabled, |rig| {
        for n in 0..9 {
            let end = if n == 8 { EOP | RS } else { 0 };
            rig.put(n * 2000, DEXT | DATA | IFCS | end | 2000);
        }
        rig.go();
    }),
    ("pcix-first-descriptor", Rig::enabled, |rig| {
        rig.put(0, WHOLE | 2016);
        rig.go();
    }),
    ("missing-context", Rig::enabled, |rig| {
        rig.put(0, WHOLE | TXSM | 100);
        rig.go();
    }),
    ("ip-context", Rig::enabled, |rig| {
        let len = rig.tcp(100, true);
        rig.put_raw([14 | 24 << 8 | 32 << 16 | CHECKSUM[0], CHECKSUM[1]]);
        rig.put(0, WHOLE | IXSM | TXSM | len as u64);
        rig.go();
    }),
    ("checksum-context", Rig::enabled, |rig| {
        rig.put_raw([34 << 32 | 250 << 40, CHECKSUM[1]]);
        rig.put(0, WHOLE | TXSM | 100);
        rig.go();
    }),
    ("checksum-seed", Rig::enabled, |rig| {
        let len = rig.tcp(100, true);
        rig.buffers.write(50, &[0, 0]);
        rig.put_raw(CHECKSUM);
        rig.put(0, WHOLE | TXSM | len as u64);
        rig.go();
    }),
    ("checksum-seed", Rig::enabled, |rig| {
        segmented(rig, 1000, segmentation(1000, 500));
        rig.buffers.write(50, &[0x12, 0x34]);
        rig.go();
    }),
    ("segment-paylen", Rig::enabled, |rig| {
        segmented(rig, 1000, segmentation(999, 500));
        rig.go();
    }),
    ("segment-mss", Rig::enabled, |rig| {
        segmented(rig, 1000, segmentation(1000, 0));
        rig.go();
    }),
    ("segment-header", Rig::enabled, |rig| {
        rig.tcp(1000, false);
        rig.put_raw(segmentation(1000, 500));
        rig.put(0, DEXT | DATA | IFCS | TSE | TXSM | IXSM | EOP | RS | 1054);
        rig.go();
    }),
    ("segment-buffer", Rig::enabled, |rig| {
        segmented(rig, 1000, segmentation(1000, 200));
        rig.go();
    }),
    ("segment-ipv6", Rig::enabled, |rig| {
        let [first, second] = segmentation(1000, 500);
        segmented(rig, 1000, [first, second & !(2 << 24)]);
        rig.go();
    }),
    ("segment-template", Rig::enabled, |rig| {
        segmented(rig, 1000, segmentation(1000, 500));
        rig.buffers.write(16, &[4, 0]);
        rig.go();
    }),
    ("segment-sentinel", Rig::enabled, |rig| {
        segmented(rig, 1000, segmentation(1000, 500));
        rig.put(0, WHOLE | 100);
        rig.go();
    }),
    ("vlan-without-vme", Rig::enabled, |rig| {
        rig.w(reg::CTRL, rig.r(reg::CTRL) & !reg::CTRL_VME);
        rig.put(0, WHOLE | VLE | 100);
        rig.go();
    }),
    ("buffer-64k", Rig::enabled, |rig| {
        let boundary = rig.buffers.iova().next_multiple_of(1 << 16);
        rig.arm(0, boundary - 1024);
        rig.deliver(100);
    }),
    ("counter-pair", Rig::new, |rig| {
        rig.r(0x408c);
    }),
    ("mdic-busy", Rig::new, |rig| {
        rig.w(reg::MDIC, 2 << 26 | 1 << 21 | 2 << 16);
        rig.w(reg::MDIC, 2 << 26 | 1 << 21 | 3 << 16);
    }),
    ("eerd-busy", Rig::new, |rig| {
        rig.w(reg::EERD, 1);
        rig.w(reg::EERD, 0x101);
    }),
    ("eeprom-grant", Rig::new, |rig| rig.w(reg::EECD, 1 << 1)),
    ("receive-delay", Rig::new, |rig| rig.w(reg::RDTR, 8)),
    ("transmit-gap", Rig::new, |rig| {
        rig.w(reg::TIPG, 0);
        rig.w(reg::TCTL, reg::TCTL_EN | 0x3f << 12);
    }),
    ("dma-without-master", Rig::enabled, |rig| {
        pci::disable_master(&mut rig.bus).unwrap();
        rig.put(0, WHOLE | 100);
        rig.go();
    }),
    ("dma-mapped", Rig::enabled, |rig| {
        rig.put(u64::MAX, WHOLE | 100);
        rig.go();
    }),
];

#[test]
fn each_rule_is_recorded_when_it_is_broken() {
    for (rule, start, breaker) in BREAKERS {
        let mut rig = start();
        assert_eq!(rig.rules(), Vec::<&str>::new(), "{rule}: the start is clean");
        breaker(&mut rig);
        let rules = rig.rules();
        assert!(rules.contains(rule), "{rule} was not recorded, but {rules:?}");
    }
}

#[test]
fn every_rule_in_the_table_has_a_test() {
    let table = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
    let rules: Vec<String> = table
        .filter_map(|line| line.split(" | ").next())
        .flat_map(|cell| cell.split('`').filter(|part| part.contains('-')).map(String::from).collect::<Vec<_>>())
        .collect();
    assert!(rules.len() > 30, "{rules:?}");
    for rule in rules {
        assert!(BREAKERS.iter().any(|(broken, ..)| *broken == rule), "{rule} has no test");
    }
}

#[test]
fn the_seed_of_a_plain_checksum_includes_the_length_and_the_sum_is_right_on_the_line() {
    let mut rig = Rig::enabled();
    let len = rig.tcp(333, true);
    rig.put_raw(CHECKSUM);
    rig.put(0, WHOLE | TXSM | len as u64);
    rig.go();
    let frame = rig.bench.take_sent(rig.port).remove(0);
    let seen = crate::model::frames::look(&frame.bytes);
    assert_eq!(seen.transport, crate::model::frames::Check::Good);
}

#[test]
fn an_eeprom_read_over_microwire_gives_the_same_word() {
    let rig = Rig::new();
    let (sk, cs, di, req) = (1u32, 2, 4, 1 << 6);
    for word in [0u32, 1, 0x3f] {
        rig.w(reg::EERD, word << 8 | 1);
        rig.bench.advance(Duration::from_millis(1));
        let expected = rig.r(reg::EERD) >> 16;
        rig.w(reg::EECD, req);
        rig.w(reg::EECD, req | cs);
        for bit in (0..9).rev() {
            let data = if (0b110 << 6 | word) >> bit & 1 != 0 { di } else { 0 };
            rig.w(reg::EECD, req | cs | data);
            rig.w(reg::EECD, req | cs | data | sk);
            rig.w(reg::EECD, req | cs | data);
        }
        let mut value = 0;
        for _ in 0..16 {
            rig.w(reg::EECD, req | cs | sk);
            value = value << 1 | u32::from(rig.r(reg::EECD) & 8 != 0);
            rig.w(reg::EECD, req | cs);
        }
        rig.w(reg::EECD, req);
        rig.w(reg::EECD, 0);
        assert_eq!(value, expected, "word {word:#x}");
    }
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

#[test]
fn a_full_packet_buffer_asks_the_partner_to_pause_and_lets_it_go_on() {
    let mut rig = Rig::new();
    rig.w(reg::FCT, 0x8808);
    rig.w(reg::FCAH, 0x100);
    rig.w(reg::FCAL, 0x00c2_8001);
    rig.w(reg::FCTTV, 0xffff);
    rig.w(reg::FCRTH, 0x4000);
    rig.w(reg::FCRTL, 0x8000_2000);
    rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_TFCE);
    rig.enable();
    for _ in 0..33 {
        rig.deliver(1000);
    }
    let sent = rig.bench.take_sent(rig.port);
    assert_eq!(sent.len(), 1, "XOFF");
    assert_eq!(sent[0].bytes[12..18], [0x88, 0x08, 0, 1, 0xff, 0xff]);
    for index in 0..15 {
        rig.arm(index, rig.buffers.iova() + 32768 + 2048 * index);
    }
    rig.w(reg::RDT, 14);
    let sent = rig.bench.take_sent(rig.port);
    assert_eq!(sent[0].bytes[16..18], [0, 0], "XON");
}
