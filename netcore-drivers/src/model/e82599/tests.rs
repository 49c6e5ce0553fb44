//! Each rule is broken on purpose, and a correct sequence breaks none.

use super::E82599;
use super::map as reg;
use crate::bus::{Bus, pci};
use crate::dma::DmaBlock;
use crate::mmio::Mmio;
use crate::model::{Bench, Frame, ModelBus, Port, Timing};
use core::time::Duration;
use netcore::MacAddress;
use netcore::checksum;
use std::vec::Vec;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Descriptors in each ring.
const COUNT: u32 = 512;
const TX0: u32 = reg::TX;
const RX0: u32 = reg::RX;
const TDT: u32 = TX0 + reg::queue::TAIL;
const RDT: u32 = RX0 + reg::queue::TAIL;
const TXDCTL: u32 = TX0 + reg::queue::CONTROL;
const RXDCTL: u32 = RX0 + reg::queue::CONTROL;
const ENABLE: u32 = 1 << 25;
const EOP: u64 = 1 << 24;
const IFCS: u64 = 1 << 25;
const RS: u64 = 1 << 27;
const DEXT: u64 = 1 << 29;
const TSE: u64 = 1 << 31;
const DATA: u64 = 3 << 20;
const CONTEXT: u64 = DEXT | 2 << 20;
const IXSM: u64 = 1 << 40;
const TXSM: u64 = 1 << 41;
const TCP: u64 = 1 << 11;
const IPV4: u64 = 1 << 10;
/// A whole packet in one descriptor.
const WHOLE: u64 = DEXT | DATA | IFCS | EOP | RS;

struct Rig {
    bench: Bench,
    port: Port,
    bus: ModelBus,
    csr: Mmio,
    transmit: DmaBlock,
    receive: DmaBlock,
    buffers: DmaBlock,
    index: u32,
}

fn block(bus: &mut ModelBus, len: usize) -> DmaBlock {
    DmaBlock::new(bus.allocate(len).unwrap()).unwrap()
}

impl Rig {
    /// Reset by the book, rings described, nothing enabled.
    fn new() -> Self {
        let bench = Bench::new();
        let (port, mut bus) = bench.add(Box::new(E82599::new()), MAC);
        bench.timing(port, Timing::instant());
        pci::enable(&mut bus).unwrap();
        let csr = bus.map_bar(0).unwrap();
        let (transmit, receive) = (block(&mut bus, 8192), block(&mut bus, 8192));
        let buffers = block(&mut bus, 1 << 20);
        let mut rig = Self { bench, port, bus, csr, transmit, receive, buffers, index: 0 };
        rig.reset();
        rig
    }

    fn reset(&mut self) {
        self.w(reg::EIMC, u32::MAX);
        self.w(reg::CTRL, reg::bit::GIO_DIS);
        self.w(reg::CTRL, reg::bit::GIO_DIS | reg::bit::LRST);
        self.bus.sleep(Duration::from_millis(2));
        for index in 0..128 {
            self.w(reg::MTA + 4 * index, 0);
        }
        for base in [TX0, RX0] {
            self.w(base + reg::queue::DCA, 0);
        }
        let (t, r) = (self.transmit.iova(), self.receive.iova());
        for (base, iova) in [(TX0, t), (RX0, r)] {
            self.w(base, iova as u32);
            self.w(base + 4, (iova >> 32) as u32);
            self.w(base + 8, COUNT * 16);
        }
        self.w(RX0 + reg::queue::SRRCTL, 1 << 25 | 1);
        self.w(reg::RDRXCTL, reg::bit::CRCSTRIP);
        self.w(reg::FCRTH, 0x6_0000);
        self.w(reg::FCTRL, 1 << 10);
        self.w(reg::RXCSUM, reg::bit::PCSD);
        self.bench.advance(Duration::from_secs(3));
    }

    fn hold(&self, mask: u32) {
        self.r(reg::SWSM);
        self.w(reg::SWSM, 3);
        self.w(reg::SW_FW_SYNC, mask);
        self.w(reg::SWSM, 0);
    }

    /// Both queues on, buffers given, reception on.
    fn enabled() -> Self {
        let mut rig = Self::new();
        rig.enable();
        rig
    }

    fn enable(&mut self) {
        self.w(reg::DMATXCTL, 1);
        self.w(TXDCTL, 32 | 1 << 8 | ENABLE);
        for n in 0..u64::from(COUNT) {
            self.arm(n, self.buffers.iova() + (512 << 10) + 1024 * n);
        }
        self.w(RXDCTL, ENABLE);
        self.w(RDT, COUNT - 1);
        self.w(reg::SECRXCTRL, 2);
        self.w(reg::RXCTRL, 1);
        self.w(reg::SECRXCTRL, 0);
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

    fn put_raw(&mut self, words: [u64; 2]) {
        let slot = self.index as usize * 16;
        self.transmit.write_u64(slot, words[0]);
        self.transmit.write_u64(slot + 8, words[1]);
        self.index = (self.index + 1) % COUNT;
    }

    /// Writes a data descriptor of `len` bytes at `at` in the buffers; `paylen` in its field.
    fn put(&mut self, at: u64, len: u64, paylen: u64, word: u64) {
        let iova = if at == u64::MAX { at } else { self.buffers.iova() + at };
        self.put_raw([iova, word | len | paylen << 46]);
    }

    fn go(&mut self) {
        self.w(TDT, self.index);
        self.bench.advance(Duration::from_millis(1));
    }

    /// A plain frame of `len` bytes.
    fn plain(&mut self, len: u64) {
        self.put(0, len, len, WHOLE);
    }

    /// An IP packet with the seed in its checksum field, at the start of the buffers. Says its length.
    fn packet(&self, version: u8, protocol: u8, payload: usize, seed_with_len: bool) -> u64 {
        let l4 = match protocol {
            6 => 20,
            17 => 8,
            _ => 12,
        };
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
        if version == 4 {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + l4 as u16 + payload as u16).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((l4 as u16 + payload as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([0xfd; 32]);
        }
        let start = frame.len();
        frame.resize(start + l4, 0);
        match protocol {
            6 => frame[start + 12..start + 14].copy_from_slice(&[0x50, 0x19]),
            17 => frame[start + 4..start + 6].copy_from_slice(&(8 + payload as u16).to_be_bytes()),
            _ => {}
        }
        frame.extend((0..payload).map(|n| n as u8));
        let len = if seed_with_len { (l4 + payload) as u32 } else { 0 };
        let addresses = if version == 4 { 26..34 } else { 22..54 };
        let seed = checksum::sum(&frame[addresses]).plus_word(protocol.into()).plus_u32(len).fold();
        match protocol {
            6 => frame[start + 16..start + 18].copy_from_slice(&seed.to_be_bytes()),
            17 => frame[start + 6..start + 8].copy_from_slice(&seed.to_be_bytes()),
            _ => {}
        }
        if version == 4 && seed_with_len {
            let sum = !checksum::sum(&frame[14..34]).fold();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        } else if version == 4 {
            frame[16..18].fill(0);
        }
        self.buffers.write(0, &frame);
        frame.len() as u64
    }

    /// A TCP packet over IPv4 whose checksum is asked for, by this context.
    fn tcp(&mut self, context: [u64; 2]) {
        let len = self.packet(4, 6, 200, true);
        self.put_raw(context);
        self.put(0, len, len, WHOLE | TXSM);
        self.go();
    }

    /// A segmented TCP packet over IPv4 of 4000 bytes, by this context.
    fn segmented(&mut self, context: [u64; 2], paylen: u64) {
        self.packet(4, 6, 4000, false);
        self.put_raw(context);
        let common = DEXT | DATA | IFCS | TSE | TXSM | IXSM;
        self.put(0, 54, paylen, common);
        self.put(54, 4000, paylen, common | EOP | RS);
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

    fn sent(&self) -> Vec<Vec<u8>> {
        self.bench.take_sent(self.port).into_iter().map(|frame| frame.bytes).collect()
    }
}

/// Lengths of a context: IPv4 behind Ethernet.
const LENGTHS: u64 = 20 | 14 << 9;
const CHECKSUM: [u64; 2] = [LENGTHS, CONTEXT | IPV4 | TCP];
const SEGMENT: [u64; 2] = [LENGTHS, CONTEXT | IPV4 | TCP | 20 << 40 | 1460 << 48];

#[test]
fn what_the_datasheet_allows_breaks_no_rule() {
    let mut rig = Rig::enabled();
    rig.plain(100);
    rig.go();
    rig.tcp(CHECKSUM);
    rig.segmented(SEGMENT, 4000);
    rig.go();
    // Two pieces, of which the second repeats nothing.
    rig.put(0, 96, 100, WHOLE & !(EOP | RS));
    rig.put(96, 4, 0, WHOLE);
    rig.go();
    rig.deliver(100);
    let lens: Vec<usize> = rig.sent().iter().map(Vec::len).collect();
    assert_eq!(lens, [100, 254, 1514, 1514, 1134, 100]);
    assert_eq!(rig.receive.read_u64(8) & 3, 3, "received");
    assert_eq!(rig.transmit.read_u64(8) >> 32 & 1, 1, "reported");
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

#[test]
fn registers_answer_at_the_addresses_of_the_82598_too() {
    let rig = Rig::new();
    for (old, new, value) in [
        (0x05408, reg::RAL + 8, 0x1234),
        (0x02104, RX0 + 0x40 + reg::queue::SRRCTL, 1 << 25 | 2),
        (0x02204, RX0 + 0x40 + reg::queue::DCA, 1 << 9),
        (0x05818, reg::MRQC, 1),
        (0x05c04, reg::RETA + 4, 0x0102_0304),
        (0x05c84, reg::RSSRK + 4, 7),
    ] {
        rig.w(old, value);
        assert_eq!(rig.r(new), value, "{old:#07x}");
    }
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

/// The rule, the state it starts from, and what breaks it.
type Case = (&'static str, fn() -> Rig, fn(&mut Rig));

/// A function per rule, with the state it starts from.
const BREAKERS: &[Case] = &[
    ("access-during-reset", Rig::new, |rig| {
        rig.w(reg::CTRL, reg::bit::GIO_DIS);
        rig.w(reg::CTRL, reg::bit::GIO_DIS | reg::bit::RST);
        rig.bus.sleep(Duration::from_micros(900));
        rig.r(reg::EEC);
    }),
    ("reset-with-dma", Rig::enabled, |rig| rig.w(reg::CTRL, reg::bit::RST)),
    ("reset-while-running", Rig::enabled, |rig| {
        rig.w(reg::CTRL, reg::bit::GIO_DIS);
        rig.w(reg::CTRL, reg::bit::GIO_DIS | reg::bit::RST);
    }),
    ("unknown-register", Rig::new, |rig| {
        rig.r(0x1_f000);
    }),
    ("unknown-register", Rig::new, |rig| rig.w(TX0 + reg::queue::SRRCTL, 1)),
    ("reserved-bits", Rig::new, |rig| rig.w(reg::RETA, 0x10)),
    ("reserved-bits", Rig::new, |rig| rig.w(RX0 + reg::queue::DCA, 1 << 12)),
    ("reserved-bits", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE | 1 << 45);
        rig.go();
    }),
    ("read-only-register", Rig::new, |rig| rig.w(reg::STATUS, 0)),
    ("ring-alignment", Rig::new, |rig| rig.w(TX0, 0x1040)),
    ("ring-length", Rig::new, |rig| rig.w(RX0 + 8, 200)),
    ("ring-change-while-enabled", Rig::enabled, |rig| rig.w(TX0 + 8, 512)),
    ("head-write", Rig::new, |rig| rig.w(TX0 + reg::queue::HEAD, 3)),
    ("tail-before-enable", Rig::new, |rig| rig.w(TDT, 1)),
    ("tail-before-enable", Rig::new, |rig| rig.w(RDT, COUNT - 1)),
    ("tail-outside-ring", Rig::enabled, |rig| rig.w(TDT, COUNT)),
    ("ring-overrun", Rig::enabled, |rig| {
        // A buffer is given back that hardware has not filled: a done bit was believed that was not there.
        rig.w(RDT, 0);
    }),
    ("reuse-before-done", Rig::enabled, |rig| {
        rig.bench.faults(rig.port, |faults| faults.late_write_back = Some(Duration::from_secs(1)));
        rig.plain(100);
        rig.go();
        for _ in 0..COUNT - 1 {
            rig.plain(100);
        }
        rig.go();
        rig.plain(100);
        rig.go();
    }),
    ("done-bit-set", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE | 1 << 32);
        rig.go();
    }),
    ("queue-before-engine", Rig::new, |rig| rig.w(TXDCTL, ENABLE)),
    ("queue-outside-mode", Rig::new, |rig| {
        rig.w(reg::DMATXCTL, 1);
        rig.w(TX0 + 64 * 0x40 + reg::queue::LEN, 128);
        rig.w(TX0 + 64 * 0x40 + reg::queue::CONTROL, ENABLE);
    }),
    ("thresholds", Rig::new, |rig| {
        rig.w(reg::DMATXCTL, 1);
        rig.w(TXDCTL, 36 | 8 << 16 | ENABLE);
    }),
    ("thresholds", Rig::new, |rig| {
        rig.w(reg::DMATXCTL, 1);
        rig.w(TX0 + reg::queue::WBAL, 1);
        rig.w(TXDCTL, 8 << 16 | ENABLE);
    }),
    ("relaxed-ordering", Rig::new, |rig| {
        rig.w(reg::DMATXCTL, 1);
        rig.w(TX0 + reg::queue::DCA, 1 << 11);
        rig.w(TXDCTL, ENABLE);
    }),
    ("arbiter", Rig::new, |rig| rig.w(reg::MTQC, 0)),
    ("security-block", Rig::new, |rig| rig.w(reg::RXCTRL, 1)),
    ("crc-strip", Rig::new, |rig| {
        rig.w(reg::RDRXCTL, 0);
        rig.enable();
    }),
    ("watermark-zero", Rig::new, |rig| {
        rig.w(reg::FCRTH, 0);
        rig.enable();
    }),
    ("packet-buffers", Rig::new, |rig| {
        rig.w(reg::RXPBSIZE + 4, 64 << 10);
        rig.enable();
    }),
    ("merge-setup", Rig::new, |rig| {
        rig.w(reg::RFCTL, 0);
        rig.w(RX0 + reg::queue::RSCCTL, 1);
        rig.enable();
    }),
    ("buffer-size", Rig::new, |rig| rig.w(RX0 + reg::queue::SRRCTL, 1 << 25 | 17)),
    ("descriptor-type", Rig::new, |rig| rig.w(RX0 + reg::queue::SRRCTL, 2 << 25 | 2)),
    ("descriptor-type", Rig::enabled, |rig| {
        rig.put_raw([0, 100 | EOP | IFCS | RS]);
        rig.go();
    }),
    ("zero-length-descriptor", Rig::enabled, |rig| {
        rig.put(0, 0, 100, WHOLE & !(EOP | RS));
        rig.put(0, 100, 100, WHOLE);
        rig.go();
    }),
    ("packet-descriptors", Rig::enabled, |rig| {
        for _ in 0..40 {
            rig.put(0, 10, 410, WHOLE & !(EOP | RS));
        }
        rig.put(0, 10, 410, WHOLE);
        rig.go();
    }),
    ("no-fcs", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE & !IFCS);
        rig.go();
    }),
    ("mixed-commands", Rig::enabled, |rig| {
        rig.put(0, 50, 100, WHOLE & !(EOP | RS));
        rig.put(50, 50, 100, WHOLE | TSE);
        rig.go();
    }),
    ("report-inside-packet", Rig::enabled, |rig| {
        rig.put(0, 50, 100, WHOLE & !EOP);
        rig.put(50, 50, 100, WHOLE);
        rig.go();
    }),
    ("short-frame", Rig::enabled, |rig| {
        rig.plain(16);
        rig.go();
    }),
    ("long-frame", Rig::enabled, |rig| {
        rig.plain(3000);
        rig.go();
    }),
    ("paylen", Rig::enabled, |rig| {
        rig.put(0, 100, 104, WHOLE);
        rig.go();
    }),
    ("paylen", Rig::enabled, |rig| {
        rig.segmented(SEGMENT, 3999);
        rig.go();
    }),
    ("missing-context", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE | TXSM);
        rig.go();
    }),
    ("context-slot", Rig::enabled, |rig| {
        rig.put_raw([LENGTHS, CHECKSUM[1] | 2 << 36]);
        rig.go();
    }),
    ("maclen", Rig::enabled, |rig| rig.tcp([20 | 18 << 9, CHECKSUM[1]])),
    ("iplen", Rig::enabled, |rig| rig.tcp([24 | 14 << 9, CHECKSUM[1]])),
    ("l4len", Rig::enabled, |rig| {
        rig.packet(4, 6, 4000, false);
        rig.put_raw([SEGMENT[0], CONTEXT | IPV4 | TCP | 24 << 40 | 1460 << 48]);
        let common = DEXT | DATA | IFCS | TSE | TXSM | IXSM;
        rig.put(0, 54, 3996, common);
        rig.put(54, 4000, 3996, common | EOP | RS);
        rig.go();
    }),
    ("transport-type", Rig::enabled, |rig| rig.tcp([LENGTHS, CONTEXT | IPV4])),
    ("ip-version", Rig::enabled, |rig| {
        rig.segmented([LENGTHS, CONTEXT | TCP | 20 << 40 | 1460 << 48], 4000);
        rig.go();
    }),
    ("checksum-seed", Rig::enabled, |rig| {
        let len = rig.packet(4, 6, 200, true);
        rig.buffers.write(50, &[0, 0]);
        rig.put_raw(CHECKSUM);
        rig.put(0, len, len, WHOLE | TXSM);
        rig.go();
    }),
    ("segment-mss", Rig::enabled, |rig| {
        rig.segmented([LENGTHS, CONTEXT | IPV4 | TCP | 20 << 40], 4000);
        rig.go();
    }),
    ("segment-type", Rig::enabled, |rig| {
        rig.segmented([LENGTHS, CONTEXT | IPV4 | 2 << 11 | 20 << 40 | 1460 << 48], 4000);
        rig.go();
    }),
    ("counter-pair", Rig::new, |rig| {
        rig.r(0x0408c);
    }),
    ("counter-pair", Rig::new, |rig| {
        rig.r(0x01038);
    }),
    ("eeprom-grant", Rig::new, |rig| rig.w(reg::EEC, 3)),
    ("semaphore-order", Rig::new, |rig| rig.w(reg::SWSM, 2)),
    ("semaphore-not-held", Rig::new, |rig| rig.w(reg::SW_FW_SYNC, 1)),
    ("semaphore-not-held", Rig::new, |rig| rig.w(reg::I2CCTL, 0)),
    ("semaphore-not-held", Rig::new, |rig| rig.w(reg::CORECTL, 1)),
    ("semaphore-not-held", Rig::new, |rig| {
        rig.hold(1 << 3);
        rig.w(reg::MSCA, 1 << 30);
    }),
    ("interrupt-route", Rig::new, |rig| rig.w(reg::IVAR, 0xc0)),
    ("director-off", Rig::new, |rig| rig.w(0x0ee2c, 1)),
    ("director-busy", Rig::enabled, |rig| rig.w(0x0ee00, 1 | 1 << 4)),
    ("dma-without-master", Rig::enabled, |rig| {
        pci::disable_master(&mut rig.bus).unwrap();
        rig.plain(100);
        rig.go();
    }),
    ("dma-mapped", Rig::enabled, |rig| {
        rig.put(u64::MAX, 100, 100, WHOLE);
        rig.go();
    }),
];

#[test]
fn each_rule_is_recorded_when_it_is_broken() {
    let mut missing = Vec::new();
    for (n, (rule, start, break_it)) in BREAKERS.iter().enumerate() {
        let mut rig = start();
        assert_eq!(rig.rules(), Vec::<&str>::new(), "before {rule}");
        break_it(&mut rig);
        let rules = rig.rules();
        if !rules.contains(rule) {
            missing.push(format!("case {n}: {rule} was broken, {rules:?} recorded"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
