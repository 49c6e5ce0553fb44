//! Random bursts: a few flows, mostly in order, with everything that can differ between two packets.

use super::stack::{Outer, Stack, Wrap};
use super::{ACK, CWR, ECE, FIN, PSH, RST, SYN, Tcp, URG};

/// SplitMix64 (public domain, Sebastiano Vigna).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// 0 to n - 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True once in n.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// What bursts are made of.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub vxlan: bool,
    pub other_tunnels: bool,
    pub nested: bool,
    pub udp: bool,
    pub vlan: bool,
    /// Reordering, loss and duplicates.
    pub disorder: bool,
}

fn outer(rng: &mut Rng) -> Outer {
    Outer { v6: rng.one_in(3), id: rng.next() as u16, df: rng.one_in(2), ..Outer::default() }
}

fn wrap(rng: &mut Rng, mix: &Mix) -> Wrap {
    let outer = outer(rng);
    let checksum = rng.one_in(2);
    let sport = 49152 + rng.below(4) as u16;
    let vni = 40 + rng.below(2) as u32;
    match rng.below(4) {
        1 if mix.other_tunnels => {
            let options = if rng.one_in(2) { vec![1, 2, 0x80, 1, 9, 9, 9, rng.below(2) as u8] } else { Vec::new() };
            let flags = if rng.one_in(8) { 0x80 } else { 0x40 * u8::from(!options.is_empty()) };
            Wrap::Geneve { outer, vni, sport, checksum, options, flags }
        }
        2 if mix.other_tunnels => {
            let key = rng.one_in(2).then_some(7);
            Wrap::Gre { outer, key, checksum: checksum && key.is_none(), ethernet: rng.one_in(2) }
        }
        3 if mix.other_tunnels => Wrap::Ip { outer },
        _ => Wrap::Vxlan { outer, vni, sport, dport: 4789, checksum, bad: false },
    }
}

struct Flow {
    next: Stack,
    size: usize,
    /// How identifications move: 0, 1, or anything.
    step: u16,
    outer_step: u16,
}

impl Flow {
    fn new(rng: &mut Rng, number: u16, mix: &Mix) -> Self {
        let udp = mix.udp && rng.one_in(3);
        let mut wraps = Vec::new();
        if (mix.vxlan || mix.other_tunnels) && rng.one_in(2) {
            wraps.push(wrap(rng, mix));
            if mix.nested && rng.one_in(3) {
                wraps.push(wrap(rng, mix));
            }
        }
        let stamps = rng.one_in(2);
        let tcp = Tcp {
            v6: rng.one_in(3),
            sport: 40_000 + number,
            dport: if udp { rng.pick(&[9000, 9000, 9001]) } else { 5001 },
            seq: rng.next() as u32,
            options: if stamps { vec![1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9] } else { Vec::new() },
            vlan: if mix.vlan && rng.one_in(4) { vec![(0x8100, rng.below(3) as u16)] } else { Vec::new() },
            id: rng.next() as u16,
            df: !rng.one_in(3),
            ttl: 64,
            ..Tcp::default()
        };
        let size = rng.pick(&[1, 2, 100, 536, 1200, 1398]) as usize;
        let step = rng.pick(&[0, 1, 1, 1, 10]);
        Self {
            next: Stack { tcp, udp, no_checksum: udp && rng.one_in(8), wraps },
            size,
            step,
            outer_step: rng.pick(&[0, 1, 1, 1, 3]),
        }
    }

    /// The next packet, perhaps with something changed about it.
    fn packet(&mut self, rng: &mut Rng) -> Stack {
        let mut packet = self.next.clone();
        let len = match rng.below(24) {
            0 => 0,
            1 => self.size / 2,
            2 => self.size + 1,
            _ => self.size,
        };
        let start = packet.tcp.seq;
        packet.tcp.payload = (0..len as u32).map(|i| (start.wrapping_add(i).wrapping_mul(131) >> 3) as u8).collect();
        match rng.below(60) {
            0 => packet.tcp.flags |= PSH,
            1 => packet.tcp.flags |= FIN,
            2 => packet.tcp.flags |= rng.pick(&[SYN, RST, URG]),
            3 => packet.tcp.flags |= ECE,
            4 => packet.tcp.flags |= CWR,
            5 => packet.tcp.bad_checksum = true,
            6 => packet.tcp.ttl = 63,
            7 => packet.tcp.tos = rng.pick(&[1, 2, 3, 4, 0xb8]),
            8 => packet.tcp.df = !packet.tcp.df,
            9 => packet.tcp.ack += 1,
            10 => packet.tcp.window -= 1,
            11 => packet.tcp.flow_label = 5,
            12 => packet.tcp.id = packet.tcp.id.wrapping_add(1),
            13 => packet.tcp.seq = packet.tcp.seq.wrapping_add(1),
            14 => packet.tcp.flags = ACK | PSH | URG,
            15 if !packet.tcp.options.is_empty() => packet.tcp.options[7] += 1,
            16 => packet.tcp.options.extend([1, 1, 1, 1]),
            17 => packet.tcp.urgent = if packet.tcp.flags & URG != 0 { 3 } else { 0 },
            18 => packet.no_checksum = packet.udp,
            19..=24 => {
                let which = rng.below(8);
                if let Some(wrap) = packet.wraps.last_mut() {
                    change(wrap, which);
                }
            }
            _ => {}
        }
        self.next.tcp.seq = self.next.tcp.seq.wrapping_add(len as u32);
        self.next.tcp.id = self.next.tcp.id.wrapping_add(self.step);
        for wrap in &mut self.next.wraps {
            let outer = wrap.outer_mut();
            outer.id = outer.id.wrapping_add(self.outer_step);
        }
        packet
    }
}

fn change(wrap: &mut Wrap, which: u64) {
    match which {
        0 => wrap.outer_mut().ttl -= 1,
        1 => wrap.outer_mut().tos = 2,
        2 => wrap.outer_mut().df ^= true,
        3 => wrap.outer_mut().id ^= 1,
        _ => match wrap {
            Wrap::Vxlan { vni, sport, checksum, bad, .. } => match which {
                4 => *vni ^= 1,
                5 => *sport += 1,
                6 => *checksum = !*checksum,
                _ => *bad = true,
            },
            Wrap::Geneve { vni, sport, checksum, .. } => match which {
                4 => *vni ^= 1,
                5 => *sport += 1,
                _ => *checksum = !*checksum,
            },
            Wrap::Gre { key, .. } => *key = key.map(|key| key + 1),
            Wrap::Ip { outer } => outer.ttl = 9,
        },
    }
}

/// One burst of 1 to 64 packets of 1 to 16 flows.
pub fn burst(rng: &mut Rng, mix: &Mix) -> Vec<Stack> {
    let flows = 1 + rng.below(16) as u16;
    let flows = if rng.one_in(2) { 1 + flows % 3 } else { flows };
    let mut flows: Vec<_> = (0..flows).map(|number| Flow::new(rng, number, mix)).collect();
    let mut packets = Vec::new();
    for _ in 0..1 + rng.below(64) {
        let flow = rng.below(flows.len() as u64) as usize;
        let packet = flows[flow].packet(rng);
        match rng.below(40) {
            0 if mix.disorder => {}
            1 if mix.disorder => packets.extend([packet.clone(), packet]),
            2 if mix.disorder && packets.len() > 1 => {
                let at = packets.len() - 1 - rng.below(packets.len().min(4) as u64) as usize;
                packets.insert(at, packet);
            }
            _ => packets.push(packet),
        }
    }
    packets.truncate(64);
    packets
}
