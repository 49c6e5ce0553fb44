//! Each rule is broken on purpose, and a correct sequence breaks none.

use super::E82576;
use super::registers as reg;
use crate::bus::{Bus, pci};
use crate::dma::DmaBlock;
use crate::mmio::Mmio;
use crate::model::frames::{self, Check};
use crate::model::{Bench, Frame, ModelBus, Port, Timing};
use core::time::Duration;
use netcore::MacAddress;
use netcore::checksum;
use std::string::String;
use std::vec::Vec;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Descriptors in each ring.
const COUNT: u32 = 512;
const TX0: u32 = 0x03800;
const RX0: u32 = 0x02800;
const TDT: u32 = TX0 + reg::queue::TAIL;
const RDT: u32 = RX0 + reg::queue::TAIL;
const TXDCTL: u32 = TX0 + reg::queue::CONTROL;
const RXDCTL: u32 = RX0 + reg::queue::CONTROL;
const ENABLE: u32 = 1 << 25;
const EOP: u64 = 1 << 24;
const IFCS: u64 = 1 << 25;
const RS: u64 = 1 << 27;
const DEXT: u64 = 1 << 29;
const VLE: u64 = 1 << 30;
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
        let (port, mut bus) = bench.add(Box::new(E82576::new()), MAC);
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
        self.w(reg::IMC, u32::MAX);
        self.w(reg::CTRL, self.r(reg::CTRL) | reg::CTRL_GIO_DIS);
        self.w(reg::RCTL, 0);
        self.w(reg::CTRL, self.r(reg::CTRL) | reg::CTRL_RST);
        self.bus.sleep(Duration::from_millis(1));
        self.w(reg::CTRL, self.r(reg::CTRL) | reg::CTRL_SLU | reg::CTRL_VME);
        for index in 0..128 {
            self.w(reg::MTA + 4 * index, 0);
        }
        self.phy_write(0, 0x1200);
        let (t, r) = (self.transmit.iova(), self.receive.iova());
        for (base, iova) in [(TX0, t), (RX0, r)] {
            self.w(base + reg::queue::CONTROL, 0);
            self.w(base, iova as u32);
            self.w(base + 4, (iova >> 32) as u32);
            self.w(base + 8, COUNT * 16);
        }
        self.w(RX0 + reg::queue::SRRCTL, 1 << 25 | 2);
        self.w(reg::RXCSUM, 0x2b00);
        self.w(reg::RFCTL, reg::RFCTL_IPV6_EX_DIS);
        self.w(reg::MRQC, 0);
        self.bench.advance(Duration::from_secs(3));
    }

    /// Takes the PHY's semaphore, writes a register, gives it back.
    fn phy_write(&mut self, register: u32, value: u32) {
        self.hold(1 << 1);
        self.w(reg::MDIC, 1 << 26 | 1 << 21 | register << 16 | value);
        self.bus.sleep(Duration::from_micros(30));
        self.hold(0);
    }

    fn hold(&self, mask: u32) {
        self.r(reg::SWSM);
        self.w(reg::SWSM, 3);
        self.w(reg::SW_FW_SYNC, mask);
        self.w(reg::SWSM, 0);
    }

    /// Both queues on, buffers given.
    fn enabled() -> Self {
        let mut rig = Self::new();
        rig.enable();
        rig
    }

    fn enable(&mut self) {
        self.w(TXDCTL, 8 | 1 << 8 | 1 << 16 | ENABLE);
        self.w(reg::TCTL, self.r(reg::TCTL) | reg::TCTL_EN);
        for n in 0..u64::from(COUNT) {
            self.arm(n, self.buffers.iova() + (512 << 10) + 1024 * n);
        }
        self.w(RXDCTL, 8 | 8 << 8 | 1 << 16 | ENABLE);
        self.w(reg::RCTL, reg::RCTL_EN | reg::RCTL_BAM | reg::RCTL_SECRC);
        self.w(RDT, COUNT - 1);
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
    for offset in (0x4000..0x4230).step_by(4).filter(|offset| super::statistics::is_counter(*offset)) {
        rig.r(offset);
    }
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

/// The rule, the state it starts from, and what breaks it.
type Case = (&'static str, fn() -> Rig, fn(&mut Rig));

/// A function per rule, with the state it starts from.
const BREAKERS: &[Case] = &[
    ("access-during-reset", Rig::new, |rig| {
        rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_GIO_DIS);
        rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_RST);
        rig.bus.sleep(Duration::from_micros(900));
        rig.r(reg::STATUS);
    }),
    ("reset-with-dma", Rig::new, |rig| rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_RST)),
    ("reset-while-running", Rig::enabled, |rig| {
        rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_GIO_DIS);
        rig.w(reg::CTRL, rig.r(reg::CTRL) | reg::CTRL_RST);
    }),
    ("unknown-register", Rig::new, |rig| {
        rig.r(0x1_0000);
    }),
    ("unknown-register", Rig::new, |rig| rig.w(0x0_2820, 1)),
    ("unknown-register", Rig::new, |rig| rig.w(reg::TX + reg::queue::SRRCTL, 1)),
    ("reserved-bits", Rig::new, |rig| rig.w(reg::RCTL, 1 << 21)),
    ("reserved-bits", Rig::new, |rig| rig.w(reg::RETA, 0x10)),
    ("reserved-bits", Rig::new, |rig| rig.w(reg::EIMS, 1 << 25)),
    ("reserved-bits", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE | 1 << 45);
        rig.go();
    }),
    ("reserved-bits", Rig::enabled, |rig| rig.tcp([CHECKSUM[0], CHECKSUM[1] | 1 << 3])),
    ("reserved-bits", Rig::enabled, |rig| {
        rig.arm(0, rig.buffers.iova() + (512 << 10) + 1);
        rig.deliver(100);
    }),
    ("read-only-register", Rig::new, |rig| rig.w(reg::STATUS, 0)),
    ("ring-alignment", Rig::new, |rig| rig.w(TX0, 0x1040)),
    ("ring-length", Rig::new, |rig| rig.w(RX0 + 8, 200)),
    ("ring-length", Rig::new, |rig| {
        rig.w(TX0 + 8, 0);
        rig.w(TXDCTL, ENABLE);
    }),
    ("ring-change-while-enabled", Rig::enabled, |rig| rig.w(TX0 + 8, 512)),
    ("ring-change-while-enabled", Rig::enabled, |rig| rig.w(RX0 + reg::queue::SRRCTL, 1 << 25 | 4)),
    ("ring-change-while-enabled", Rig::enabled, |rig| rig.w(reg::RXPBS, 40)),
    ("head-write", Rig::new, |rig| rig.w(TX0 + reg::queue::HEAD, 3)),
    ("tail-before-enable", Rig::new, |rig| rig.w(TDT, 1)),
    ("tail-before-enable", Rig::new, |rig| {
        rig.w(reg::RCTL, reg::RCTL_EN);
        rig.w(RDT, COUNT - 1);
    }),
    ("tail-before-enable", Rig::enabled, |rig| rig.w(reg::TX + 5 * 0x40 + reg::queue::TAIL, 1)),
    ("tail-outside-ring", Rig::enabled, |rig| rig.w(TDT, COUNT)),
    ("ring-overrun", Rig::enabled, |rig| {
        // A buffer is given back that hardware has not filled: a done bit was believed that was not there.
        rig.w(RDT, 0);
    }),
    ("ring-overrun", Rig::enabled, |rig| {
        rig.bench.faults(rig.port, |faults| faults.transmit_hang = true);
        for _ in 0..2 {
            for _ in 0..300 {
                rig.plain(100);
            }
            rig.go();
        }
    }),
    ("reuse-before-done", Rig::enabled, |rig| {
        rig.bench.faults(rig.port, |faults| faults.late_write_back = Some(Duration::from_secs(1)));
        for _ in 0..2 {
            for _ in 0..300 {
                rig.plain(100);
            }
            rig.go();
        }
    }),
    ("done-bit-set", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE | 1 << 32);
        rig.go();
    }),
    ("done-bit-set", Rig::enabled, |rig| {
        rig.receive.write_u64(8, 1);
        rig.deliver(100);
    }),
    ("descriptor-type", Rig::enabled, |rig| {
        rig.put_raw([rig.buffers.iova(), EOP | IFCS | RS | 100]);
        rig.go();
    }),
    ("descriptor-type", Rig::new, |rig| rig.w(RX0 + reg::queue::SRRCTL, 2)),
    ("zero-length-descriptor", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE & !(EOP | RS));
        rig.put(100, 0, 100, WHOLE);
        rig.go();
    }),
    ("packet-descriptors", Rig::enabled, |rig| {
        for n in 0..300 {
            let end = if n == 299 { EOP | RS } else { 0 };
            rig.put(n * 4, 4, 1200, DEXT | DATA | IFCS | end);
        }
        rig.go();
    }),
    ("no-fcs", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE & !IFCS);
        rig.go();
    }),
    ("mixed-commands", Rig::enabled, |rig| {
        rig.put(0, 100, 200, WHOLE & !(EOP | RS | IFCS));
        rig.put(100, 100, 200, WHOLE);
        rig.go();
    }),
    ("mixed-commands", Rig::enabled, |rig| {
        rig.put(0, 100, 200, WHOLE & !(EOP | RS));
        rig.put(100, 100, 100, WHOLE);
        rig.go();
    }),
    ("mixed-commands", Rig::enabled, |rig| {
        rig.put(0, 100, 200, WHOLE & !(EOP | RS));
        rig.put_raw(CHECKSUM);
        rig.put(100, 100, 200, WHOLE);
        rig.go();
    }),
    ("report-inside-packet", Rig::enabled, |rig| {
        rig.put(0, 100, 200, WHOLE & !EOP);
        rig.put(100, 100, 200, WHOLE);
        rig.go();
    }),
    ("short-frame", Rig::enabled, |rig| {
        rig.plain(16);
        rig.go();
    }),
    ("long-frame", Rig::enabled, |rig| {
        rig.plain(9800);
        rig.go();
    }),
    ("paylen", Rig::enabled, |rig| {
        rig.put(0, 100, 104, WHOLE);
        rig.go();
    }),
    ("paylen", Rig::enabled, |rig| {
        rig.segmented(SEGMENT, 4054);
        rig.go();
    }),
    ("missing-context", Rig::enabled, |rig| {
        let len = rig.packet(4, 6, 100, true);
        rig.put(0, len, len, WHOLE | TXSM);
        rig.go();
    }),
    ("missing-context", Rig::enabled, |rig| {
        rig.put(0, 100, 100, WHOLE | VLE);
        rig.go();
    }),
    ("context-slot", Rig::enabled, |rig| rig.tcp([CHECKSUM[0], CHECKSUM[1] | 2 << 36])),
    ("maclen", Rig::enabled, |rig| rig.tcp([20 | 18 << 9, CHECKSUM[1]])),
    ("iplen", Rig::enabled, |rig| rig.tcp([24 | 14 << 9, CHECKSUM[1]])),
    ("l4len", Rig::enabled, |rig| {
        rig.packet(4, 6, 4000, false);
        rig.put_raw([LENGTHS, CONTEXT | IPV4 | TCP | 32 << 40 | 1460 << 48]);
        rig.put(0, 4054, 3988, WHOLE | TSE | TXSM | IXSM);
        rig.go();
    }),
    ("transport-type", Rig::enabled, |rig| rig.tcp([LENGTHS, CONTEXT | IPV4])),
    ("ip-version", Rig::enabled, |rig| {
        rig.segmented([SEGMENT[0], SEGMENT[1] & !IPV4], 4000);
        rig.go();
    }),
    ("checksum-seed", Rig::enabled, |rig| {
        let len = rig.packet(4, 6, 200, true);
        rig.buffers.write(50, &[0, 0]);
        rig.put_raw(CHECKSUM);
        rig.put(0, len, len, WHOLE | TXSM);
        rig.go();
    }),
    ("checksum-seed", Rig::enabled, |rig| {
        // A seed with the length, as for a plain checksum.
        rig.segmented(SEGMENT, 4000);
        let seed = checksum::sum(&[10, 0, 0, 1, 10, 0, 0, 2]).plus_word(6).plus_u32(4020).fold();
        rig.buffers.write(50, &seed.to_be_bytes());
        rig.go();
    }),
    ("ip-checksum-seed", Rig::enabled, |rig| {
        rig.segmented(SEGMENT, 4000);
        rig.buffers.write(24, &[0x12, 0x34]);
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
    ("segment-template", Rig::enabled, |rig| {
        let header = tunnel(rig);
        // The outer UDP length is that of the whole, not of a segment.
        rig.buffers.write(38, &[0x10, 0]);
        tunnel_segments(rig, header);
    }),
    ("counter-pair", Rig::new, |rig| {
        rig.r(0x408c);
    }),
    ("mdic-busy", Rig::new, |rig| {
        rig.hold(1 << 1);
        rig.w(reg::MDIC, 2 << 26 | 1 << 21 | 2 << 16);
        rig.w(reg::MDIC, 2 << 26 | 1 << 21 | 3 << 16);
    }),
    ("eerd-busy", Rig::new, |rig| {
        rig.w(reg::EERD, 1);
        rig.w(reg::EERD, 5);
    }),
    ("eeprom-grant", Rig::new, |rig| rig.w(reg::EECD, 1 << 1)),
    ("semaphore-order", Rig::new, |rig| rig.w(reg::SWSM, 2)),
    ("semaphore-not-held", Rig::new, |rig| rig.w(reg::SW_FW_SYNC, 2)),
    ("semaphore-not-held", Rig::new, |rig| rig.w(reg::MDIC, 2 << 26 | 1 << 21 | 2 << 16)),
    ("write-back-threshold", Rig::new, |rig| {
        rig.bus.set_interrupts(crate::bus::InterruptMode::MsiX, 2).unwrap();
        rig.w(TXDCTL, 8 | 1 << 8 | 16 << 16 | ENABLE);
    }),
    ("extension-headers", Rig::new, |rig| {
        rig.w(reg::RFCTL, 0);
        rig.w(reg::RCTL, reg::RCTL_EN);
    }),
    ("interrupt-route", Rig::new, |rig| rig.w(reg::IVAR0, 0x80 | 25)),
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

/// VXLAN around TCP over IPv4 with 4000 bytes, headers as the offsets technique wants them for 1000-byte segments, in the
/// buffers. Says how long the headers are.
fn tunnel(rig: &Rig) -> usize {
    let total = rig.packet(4, 6, 4000, false) as usize;
    let mut inner = vec![0; total];
    rig.buffers.read(0, &mut inner);
    inner[16..18].copy_from_slice(&1040u16.to_be_bytes());
    let sum = checksum::sum(&inner[14..34]).finish();
    inner[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0];
    frame.extend([10, 1, 0, 1, 10, 1, 0, 2, 0x30, 0x39, 0x12, 0xb5]);
    frame.extend((8u16 + 8 + 54 + 1000).to_be_bytes());
    frame.extend([0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
    frame.extend(&inner);
    let rest = checksum::sum(&frame[34..84]).finish();
    frame[24..26].copy_from_slice(&rest.to_be_bytes());
    rig.buffers.write(0, &frame);
    104
}

fn tunnel_segments(rig: &mut Rig, header: usize) {
    rig.put_raw([70 | 14 << 9, CONTEXT | IPV4 | TCP | 20 << 40 | 1000 << 48]);
    let common = DEXT | DATA | IFCS | TSE | TXSM | IXSM;
    rig.put(0, header as u64, 4000, common);
    rig.put(header as u64, 4000, 4000, common | EOP | RS);
    rig.go();
}

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
        .flat_map(|cell| {
            cell.split('`').filter(|part| !part.is_empty() && *part != ", ").map(String::from).collect::<Vec<_>>()
        })
        .collect();
    assert!(rules.len() > 40, "{rules:?}");
    for rule in rules {
        assert!(BREAKERS.iter().any(|(broken, ..)| *broken == rule), "{rule} has no test");
    }
}

#[test]
fn segments_count_and_keep_their_flags_as_the_masks_say() {
    let mut rig = Rig::enabled();
    rig.segmented(SEGMENT, 4000);
    rig.go();
    let sent = rig.sent();
    let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    // The wire results of the worked example: IP length, identification, sequence number, flags.
    let got: Vec<_> = sent.iter().map(|f| (f.len(), word(f, 16), word(f, 18), word(f, 40), f[47])).collect();
    assert_eq!(got, [(1514, 1500, 1, 0, 0x10), (1514, 1500, 2, 1460, 0x10), (1134, 1120, 3, 2920, 0x19)]);
    for frame in &sent {
        let seen = frames::look(frame);
        assert_eq!((seen.ip, seen.transport), (Check::Good, Check::Good));
    }
}

#[test]
fn udp_is_cut_into_datagrams_and_sctp_gets_its_crc() {
    let mut rig = Rig::enabled();
    rig.packet(4, 17, 2500, false);
    rig.put_raw([LENGTHS, CONTEXT | IPV4 | 8 << 40 | 1000 << 48]);
    rig.put(0, 2542, 2500, WHOLE | TSE | TXSM | IXSM);
    rig.go();
    let sent = rig.sent();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1042, 1042, 542]);
    for frame in &sent {
        assert_eq!(frames::look(frame).transport, Check::Good);
        assert_eq!(usize::from(u16::from_be_bytes([frame[38], frame[39]])), frame.len() - 34);
    }
    let len = rig.packet(4, 132, 100, true);
    rig.put_raw([LENGTHS, CONTEXT | IPV4 | 2 << 11]);
    rig.put(0, len, len, WHOLE | TXSM);
    rig.go();
    let frame = rig.sent().remove(0);
    assert_eq!(frames::sctp(&frame, &frames::look(&frame)), Check::Good);
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

#[test]
fn inside_a_tunnel_every_segment_is_right_by_the_offsets_technique() {
    let mut rig = Rig::enabled();
    let header = tunnel(&rig);
    tunnel_segments(&mut rig, header);
    let sent = rig.sent();
    assert_eq!(sent.len(), 4);
    for (n, frame) in sent.iter().enumerate() {
        assert_eq!(frame.len(), 1104);
        assert!(checksum::sum(&frame[14..34]).is_valid() && checksum::sum(&frame[64..84]).is_valid());
        assert_eq!(u16::from_be_bytes([frame[18], frame[19]]), 1 + n as u16, "the outer identification counts");
        assert_eq!(frames::look(&frame[50..]).transport, Check::Good);
    }
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

#[test]
fn the_head_is_written_instead_of_descriptors_where_that_is_asked_for() {
    let mut rig = Rig::new();
    let at = rig.buffers.iova() + 0x8000;
    rig.w(TX0 + reg::queue::WBAL, at as u32 | 1);
    rig.w(TX0 + reg::queue::WBAH, (at >> 32) as u32);
    rig.enable();
    rig.plain(100);
    rig.plain(100);
    rig.go();
    assert_eq!(rig.buffers.read_u64(0x8000) as u32, 2);
    assert_eq!(rig.transmit.read_u64(8) >> 32 & 1, 0);
    assert_eq!(rig.rules(), Vec::<&str>::new());
}

#[test]
fn a_starved_queue_holds_up_the_others_unless_it_may_drop() {
    for drops in [false, true] {
        let mut rig = Rig::new();
        rig.w(RX0 + reg::queue::SRRCTL, 1 << 25 | 2 | if drops { 1 << 31 } else { 0 });
        rig.enable();
        for _ in 0..COUNT + 9 {
            rig.deliver(100);
        }
        let dropped = rig.r(RX0 + reg::queue::RQDPC);
        assert_eq!(dropped, if drops { 10 } else { 0 });
        for n in 0..20 {
            rig.arm(n, rig.buffers.iova() + (512 << 10) + 1024 * n);
        }
        rig.w(RDT, 18);
        let head = rig.r(RX0 + reg::queue::HEAD);
        assert_eq!(head, if drops { COUNT - 1 } else { 9 }, "what was held up comes now");
        assert_eq!(rig.rules(), Vec::<&str>::new());
    }
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
    for _ in 0..COUNT + 17 {
        rig.deliver(1000);
    }
    let sent = rig.sent();
    assert_eq!(sent.len(), 1, "XOFF");
    assert_eq!(sent[0][12..18], [0x88, 0x08, 0, 1, 0xff, 0xff]);
    for index in 0..15 {
        rig.arm(index, rig.buffers.iova() + (512 << 10) + 1024 * index);
    }
    rig.w(RDT, 14);
    assert_eq!(rig.sent()[0][16..18], [0, 0], "XON");
}

#[test]
fn messages_are_throttled_cleared_and_masked_by_themselves() {
    let mut rig = Rig::new();
    rig.bus.set_interrupts(crate::bus::InterruptMode::MsiX, 3).unwrap();
    rig.w(reg::GPIE, 0xc000_0011);
    rig.w(reg::IVAR0, 0x81);
    rig.w(reg::EIAC, 2);
    rig.w(reg::EIAM, 2);
    rig.w(reg::EITR + 4, 100 << 2);
    rig.w(reg::EIMS, 2);
    rig.enable();
    rig.deliver(100);
    assert_eq!(rig.bus.wait_interrupt(Duration::from_millis(1)), Ok(Some(1)));
    assert_eq!((rig.r(reg::EICR), rig.r(reg::EIMS)), (0, 0), "cleared and masked");
    rig.deliver(100);
    assert_eq!(rig.bus.wait_interrupt(Duration::from_millis(1)), Ok(None), "masked");
    let before = rig.bench.now();
    rig.w(reg::EIMS, 2);
    assert_eq!(rig.bus.wait_interrupt(Duration::from_millis(1)), Ok(Some(1)), "what came meanwhile is not lost");
    rig.w(reg::EIMS, 2);
    rig.bench.inject(rig.port, {
        let mut bytes = vec![0x55; 100];
        bytes[..6].copy_from_slice(&MAC.0);
        Frame::new(bytes)
    });
    assert_eq!(rig.bus.wait_interrupt(Duration::from_millis(1)), Ok(Some(1)));
    assert!(rig.bench.now() - before >= Duration::from_micros(100), "the throttle");
    assert_eq!(rig.rules(), Vec::<&str>::new());
}
