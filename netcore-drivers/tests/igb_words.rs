//! The words of descriptors, without a driver: what QEMU's 82576 and the model write back for each kind of frame, and what they
//! make of transmit descriptors that are given byte by byte.

mod list;

use core::time::Duration;
use list::frames::{Ip, numbered, tagged, vxlan};
use list::model::ModelPeer;
use list::{MAC, PEER, Peer, qemu};
use netcore_drivers::Bus;
use netcore_drivers::bus::pci;
use netcore_drivers::dma::DmaBlock;
use netcore_drivers::mmio::Mmio;
use netcore_drivers::model::e82576::E82576;
use netcore_drivers::model::{Bench, Timing};

const COUNT: usize = 32;
const CTRL: u32 = 0x0000;
const STATUS: u32 = 0x0008;
const MDIC: u32 = 0x0020;
const SWSM: u32 = 0x5b50;
const SW_FW_SYNC: u32 = 0x5b5c;
const TDT: u32 = 0x3818;
const RDT: u32 = 0x2818;

/// The part at the level of its registers.
struct Raw {
    csr: Mmio,
    peer: Box<dyn Peer>,
    _bus: Box<dyn Bus>,
    transmit: DmaBlock,
    receive: DmaBlock,
    buffers: DmaBlock,
    next: usize,
    tail: usize,
}

impl Raw {
    fn new((mut bus, peer): (Box<dyn Bus>, Box<dyn Peer>)) -> Self {
        pci::enable(&mut *bus).expect("configuration space");
        let csr = bus.map_bar(0).expect("registers");
        let mut block = |len| DmaBlock::new(bus.allocate(len).expect("memory")).expect("contiguous");
        let (transmit, receive, buffers) = (block(4096), block(4096), block(256 << 10));
        let mut raw = Self { csr, peer, _bus: bus, transmit, receive, buffers, next: 0, tail: 0 };
        raw.start();
        raw
    }

    fn w(&self, offset: u32, value: u32) {
        self.csr.write(offset, value);
    }

    fn start(&mut self) {
        self.w(0xd8, u32::MAX);
        self.w(CTRL, self.csr.read(CTRL) | 1 << 6 | 1 << 30);
        // The PHY, with its semaphore: negotiate.
        let hold = |this: &Self, mask| {
            this.csr.read(SWSM);
            this.w(SWSM, 3);
            this.w(SW_FW_SYNC, mask);
            this.w(SWSM, 0);
        };
        hold(self, 2);
        self.w(MDIC, 1 << 26 | 1 << 21 | 0x1200);
        self.peer.settle(Duration::from_millis(1));
        hold(self, 0);
        for table in [0x5200, 0x5600] {
            for index in 0..128 {
                self.w(table + 4 * index, 0);
            }
        }
        for (base, block) in [(0x3800, &self.transmit), (0x2800, &self.receive)] {
            self.w(base + 0x28, 0);
            self.w(base, block.iova() as u32);
            self.w(base + 4, (block.iova() >> 32) as u32);
            self.w(base + 8, COUNT as u32 * 16);
            self.w(base + 0x10, 0);
        }
        // One buffer of 2 KiB; checksums, and the hash in the place of the packet checksum; all fields but TCP over IPv6.
        self.w(0x280c, 1 << 25 | 2);
        self.w(0x5000, 0x2b00);
        self.w(0x5008, 1 << 16);
        for index in 0..10 {
            self.w(0x5c80 + 4 * index, 0x0403_0201 * (index + 1));
        }
        for index in 0..32 {
            self.w(0x5c00 + 4 * index, 0);
        }
        self.w(0x5818, 2 | 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22);
        // Tags are removed in every pool.
        for pool in 0..8 {
            self.w(0x5ad0 + 4 * pool, 1 << 30 | 1 << 31);
        }
        for index in 0..COUNT {
            self.arm(index);
        }
        self.w(0x3828, 1 << 25 | 1 << 16 | 1 << 8 | 8);
        self.w(0x2828, 1 << 25 | 1 << 16 | 8 << 8 | 8);
        self.w(0x0400, self.csr.read(0x0400) | 2);
        // Long frames, broadcast, FCS removed.
        self.w(0x5004, 0x2600);
        self.w(0x0100, 1 << 1 | 1 << 5 | 1 << 15 | 1 << 26);
        self.w(RDT, COUNT as u32 - 1);
        for _ in 0..300 {
            if self.csr.read(STATUS) & 2 != 0 {
                return;
            }
            self.peer.settle(Duration::from_millis(10));
        }
        panic!("no link");
    }

    fn arm(&self, index: usize) {
        self.receive.write_u64(index * 16, self.buffers.iova() + (128 << 10) + 2048 * index as u64);
        self.receive.write_u64(index * 16 + 8, 0);
    }

    /// Sends a frame to the part and says the dwords 0 and 2 of every descriptor it takes, and the length and tag of the last.
    fn words(&mut self, frame: &[u8]) -> (Vec<(u32, u32)>, u16, u16) {
        self.peer.send(frame);
        let mut seen = Vec::new();
        for _ in 0..2000 {
            let at = self.next * 16;
            let second = self.receive.read_u64(at + 8);
            if second & 1 == 0 {
                self.peer.settle(Duration::from_micros(100));
                continue;
            }
            let first = self.receive.read_u64(at);
            seen.push((first as u32, second as u32));
            self.arm(self.next);
            self.w(RDT, self.next as u32);
            self.next = (self.next + 1) % COUNT;
            if second & 2 != 0 {
                return (seen, (second >> 32) as u16, (second >> 48) as u16);
            }
        }
        panic!("nothing received; {seen:x?}");
    }

    /// Gives descriptors and says the frames that leave.
    fn send(&mut self, descriptors: &[[u64; 2]], frames: usize) -> Vec<Vec<u8>> {
        for words in descriptors {
            self.transmit.write_u64(self.tail * 16, words[0]);
            self.transmit.write_u64(self.tail * 16 + 8, words[1]);
            self.tail = (self.tail + 1) % COUNT;
        }
        self.w(TDT, self.tail as u32);
        let mut seen = Vec::new();
        for _ in 0..2000 {
            seen.extend(self.peer.take());
            if seen.len() >= frames {
                return seen;
            }
            self.peer.settle(Duration::from_micros(100));
        }
        panic!("{} of {frames} frames", seen.len());
    }
}

fn receive_words(raw: &mut Raw) {
    let damage = |mut frame: Vec<u8>, at: usize| {
        frame[at] ^= 0x55;
        frame
    };
    let mut zero = Ip::udp4(100).build();
    zero[40..42].fill(0);
    let mut fragment = Ip::tcp4(100).build();
    fragment[20] = 0x20;
    let sum = !netcore::checksum::sum(&[&fragment[14..24], &fragment[26..34]].concat()).fold();
    fragment[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut long = Ip::udp4(5034 - 42).build();
    long[40..42].fill(0);
    let mut outer = vxlan(&Ip::tcp4(100).build(), 4);
    outer[..6].copy_from_slice(&MAC.0);
    let mut arp = numbered(MAC, PEER, 60, 1);
    arp[12..14].copy_from_slice(&[8, 6]);
    let cases: [(&str, Vec<u8>, u32, u32); 12] = [
        ("TCPv4", Ip::tcp4(100).build(), 0x0111, 0x0000_0063),
        ("TCPv4, L4 bad", damage(Ip::tcp4(100).build(), 60), 0x0111, 0x2000_0063),
        ("TCPv4, IP bad", damage(Ip::tcp4(100).build(), 24), 0x0111, 0x4000_0063),
        ("UDPv4", Ip::udp4(100).build(), 0x0217, 0x0000_0073),
        ("UDPv4, sum zero", zero, 0x0217, 0x0000_0043),
        ("UDPv4, bad", damage(Ip::udp4(100).build(), 60), 0x0217, 0x2000_0073),
        ("TCPv6", Ip::tcp6(100).build(), 0x0145, 0x0000_0023),
        ("VXLAN", outer, 0x0217, 0x0000_0043),
        ("TCPv4, tagged", tagged(&Ip::tcp4(100).build(), 0x0064), 0x0111, 0x0000_006b),
        ("ARP", arp, 0, 0x0000_0003),
        ("first fragment", fragment, 0x0012, 0x0000_0043),
        ("5034 bytes", long, 0x0217, 0x0000_0043),
    ];
    for (what, frame, info, status) in cases {
        let (words, last, tag) = raw.words(&frame);
        assert_eq!(words.last(), Some(&(info, status)), "{what}");
        let tags = if status & 8 != 0 { 4 } else { 0 };
        let more = words.len() - 1;
        assert_eq!(2048 * more + usize::from(last), frame.len() - tags, "{what}");
        assert!(words[..more].iter().all(|words| *words == (0, 1)), "{what}: only length and DD before the end");
        assert_eq!(tag, if tags > 0 { 0x64 } else { 0 }, "{what}");
    }
}

/// The bytes of the worked examples: a context and data descriptors of TCP over IPv4 with 4000 bytes, and over IPv6.
fn transmit_words(raw: &mut Raw, flags: [u8; 3]) {
    let at = raw.buffers.iova();
    for (ip, context, first, second, lens) in [
        (
            Ip::tcp4(4000).outbound(),
            [0x0000_1c14, 0x05b4_1400_2020_0c00],
            0x03e8_0300_a230_0036,
            0x03e8_0300_ab30_0fa0,
            [(1514, 1500), (1514, 1500), (1134, 1120)],
        ),
        (
            Ip::tcp6(4000).outbound(),
            [0x0000_1c28, 0x05a0_1400_2020_0800],
            0x03e8_0200_a230_004a,
            0x03e8_0200_ab30_0fa0,
            [(1514, 1460), (1514, 1460), (1194, 1140)],
        ),
    ] {
        let mut frame = ip.build_partial();
        // As segmentation wants it: no lengths, a seed without one.
        let (source, destination) = ip.addresses();
        let sum = netcore::checksum::sum(&source).plus(netcore::checksum::sum(&destination)).plus_word(6).fold();
        let (length, headers) = if ip.version == 4 { (16, 54) } else { (18, 74) };
        frame[length..length + 2].fill(0);
        if ip.version == 4 {
            frame[24..26].fill(0);
        }
        frame[ip.field()..ip.field() + 2].copy_from_slice(&sum.to_be_bytes());
        raw.buffers.write(0, &frame);
        let seen = raw.send(&[context, [at, first], [at + headers, second]], 3);
        for (n, (seen, (len, ip_len))) in seen.iter().zip(lens).enumerate() {
            let word = |at: usize| u16::from_be_bytes([seen[at], seen[at + 1]]);
            let tcp = ip.transport();
            let mss = if ip.version == 4 { 1460 } else { 1440 };
            assert_eq!((seen.len(), word(length), word(tcp + 6)), (len, ip_len, 1000 + mss * n as u16));
            if ip.version == 4 {
                assert_eq!(word(18), 0x1234 + n as u16);
            }
            assert_eq!(seen[tcp + 13], flags[n], "flags of segment {n}");
            assert!(list::frames::sums_are_right(seen));
        }
    }
    // The plain checksum of the worked example: both sums asked for.
    let ip = Ip::tcp4(100).outbound();
    let mut frame = ip.build_partial();
    frame[24..26].fill(0);
    raw.buffers.write(0, &frame);
    let seen = raw.send(&[[0x0000_1c14, 0x0000_1400_2020_0c00], [at, 0x0026_8300_2b30_009a]], 1);
    assert!(seen[0] == ip.build());
}

#[test]
fn the_model_writes_back_what_the_table_says_and_cuts_as_the_worked_examples() {
    let bench = Bench::new();
    let (port, bus) = bench.add(Box::new(E82576::new()), MAC);
    bench.timing(port, Timing::instant());
    let mut raw = Raw::new((Box::new(bus), Box::new(ModelPeer { bench: bench.clone(), port })));
    receive_words(&mut raw);
    transmit_words(&mut raw, [0x10, 0x10, 0x19]);
    assert_eq!(bench.take_violations(port), []);
}

#[test]
fn qemu_82576_writes_back_what_the_table_says_and_cuts_as_the_worked_examples() {
    if qemu::available("igb") {
        let mut raw = Raw::new(qemu::make("igb"));
        receive_words(&mut raw);
        // FIN and PSH are lost on every segment without a vnet header.
        transmit_words(&mut raw, [0x10; 3]);
    }
}
