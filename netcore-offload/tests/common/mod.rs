//! Frames for the tests, built byte by byte.
#![allow(dead_code, unreachable_pub)]

pub mod random;
pub mod stack;

use netcore::checksum::{Sum, sum};
use netcore::offload::ReceiveOffload;
use netcore::{Burst, Instant, Packet, PacketPool, PoolCache, PoolConfig};
use netcore_offload::{Gro, GroConfig};

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const URG: u8 = 0x20;
pub const ECE: u8 = 0x40;
pub const CWR: u8 = 0x80;

/// A TCP segment; `Default` is a segment of the common test flow.
#[derive(Clone, Debug)]
pub struct Tcp {
    pub v6: bool,
    pub sport: u16,
    pub dport: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub urgent: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    pub tos: u8,
    pub ttl: u8,
    pub id: u16,
    pub df: bool,
    pub flow_label: u32,
    pub bad_checksum: bool,
    pub vlan: Vec<(u16, u16)>,
    pub tunnel: Option<Vxlan>,
}

#[derive(Clone, Debug)]
pub struct Vxlan {
    pub v6: bool,
    pub vni: u32,
    pub sport: u16,
    pub dport: u16,
    pub checksum: bool,
    pub bad_checksum: bool,
    pub id: u16,
    pub ttl: u8,
}

impl Default for Vxlan {
    fn default() -> Self {
        Self { v6: false, vni: 42, sport: 50_000, dport: 4789, checksum: false, bad_checksum: false, id: 0, ttl: 64 }
    }
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            v6: false,
            sport: 1500,
            dport: 8000,
            seq: 100,
            ack: 100,
            flags: ACK,
            window: 65535,
            urgent: 0,
            options: Vec::new(),
            payload: Vec::new(),
            tos: 0,
            ttl: 8,
            id: 0,
            df: true,
            flow_label: 0,
            bad_checksum: false,
            vlan: Vec::new(),
            tunnel: None,
        }
    }
}

fn ipv4(tos: u8, id: u16, df: bool, ttl: u8, protocol: u8, payload: &[u8], net: u8) -> Vec<u8> {
    let mut h = vec![0x45, tos];
    h.extend(((20 + payload.len()) as u16).to_be_bytes());
    h.extend(id.to_be_bytes());
    h.extend([if df { 0x40 } else { 0 }, 0, ttl, protocol, 0, 0, 192, 168, net, 200, 192, 168, net, 100]);
    let checksum = sum(&h).finish();
    h[10..12].copy_from_slice(&checksum.to_be_bytes());
    h.extend(payload);
    h
}

fn ipv6(class: u8, label: u32, hops: u8, next: u8, payload: &[u8], net: u8) -> Vec<u8> {
    let mut h = (6u32 << 28 | u32::from(class) << 20 | label).to_be_bytes().to_vec();
    h.extend((payload.len() as u16).to_be_bytes());
    h.extend([next, hops]);
    for host in [2u8, 1] {
        h.extend([0xfd, 0xaa, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    h.extend(payload);
    h
}

fn pseudo(v6: bool, ip: &[u8], protocol: u8, len: usize) -> Sum {
    if v6 {
        Sum::pseudo_ipv6(ip[8..24].try_into().unwrap(), ip[24..40].try_into().unwrap(), protocol, len as u32)
    } else {
        Sum::pseudo_ipv4(ip[12..16].try_into().unwrap(), ip[16..20].try_into().unwrap(), protocol, len as u32)
    }
}

fn ethernet(vlan: &[(u16, u16)], v6: bool, ip: &[u8], host: u8) -> Vec<u8> {
    let mut frame = vec![0xaa, 0, 0, 0, host, 1, 0xaa, 0, 0, 0, host, 2];
    for (tpid, tci) in vlan {
        frame.extend(tpid.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(if v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
    frame.extend(ip);
    frame
}

impl Tcp {
    pub fn with_payload(len: usize) -> Self {
        Self { payload: vec![0x61; len], ..Self::default() }
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.sport.to_be_bytes());
        tcp.extend(self.dport.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.push((((20 + self.options.len()) / 4) << 4) as u8);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        let mut ip = if self.v6 {
            ipv6(self.tos, self.flow_label, self.ttl, 6, &tcp, 0)
        } else {
            ipv4(self.tos, self.id, self.df, self.ttl, 6, &tcp, 1)
        };
        let at = if self.v6 { 40 } else { 20 };
        let mut checksum = pseudo(self.v6, &ip, 6, tcp.len()).plus(sum(&tcp)).finish();
        if self.bad_checksum {
            checksum = checksum.wrapping_sub(1);
        }
        ip[at + 16..at + 18].copy_from_slice(&checksum.to_be_bytes());
        let Some(tunnel) = &self.tunnel else { return ethernet(&self.vlan, self.v6, &ip, 0) };
        let inner = ethernet(&[], self.v6, &ip, 9);
        let mut udp = Vec::new();
        udp.extend(tunnel.sport.to_be_bytes());
        udp.extend(tunnel.dport.to_be_bytes());
        udp.extend(((16 + inner.len()) as u16).to_be_bytes());
        udp.extend([0, 0, 8, 0, 0, 0]);
        udp.extend(&tunnel.vni.to_be_bytes()[1..]);
        udp.push(0);
        udp.extend(&inner);
        let mut outer = if tunnel.v6 {
            ipv6(0, 0, tunnel.ttl, 17, &udp, 7)
        } else {
            ipv4(0, tunnel.id, false, tunnel.ttl, 17, &udp, 2)
        };
        if tunnel.checksum {
            let at = if tunnel.v6 { 40 } else { 20 };
            let mut checksum = pseudo(tunnel.v6, &outer, 17, udp.len()).plus(sum(&udp)).finish_udp();
            if tunnel.bad_checksum {
                checksum = checksum.wrapping_sub(1).max(1);
            }
            outer[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
        }
        ethernet(&self.vlan, tunnel.v6, &outer, 0)
    }

    /// Bytes in front of the payload.
    pub fn header_len(&self) -> usize {
        self.frame().len() - self.payload.len()
    }
}

/// `n` segments of `size` bytes in sequence.
pub fn train(base: &Tcp, n: usize, size: usize) -> Vec<Tcp> {
    (0..n)
        .map(|i| Tcp {
            seq: base.seq.wrapping_add((i * size) as u32),
            id: base.id.wrapping_add(i as u16),
            payload: (0..size).map(|b| (b + i) as u8).collect(),
            ..base.clone()
        })
        .collect()
}

pub fn pool() -> PacketPool {
    PacketPool::new(PoolConfig { windows: 2048, ..PoolConfig::with_buffers(2048) }).unwrap()
}

/// One poll of these frames: what is delivered, in order.
pub fn poll(config: GroConfig, frames: &[Vec<u8>], cache: &mut PoolCache) -> Vec<Packet> {
    poll_with(config, frames, cache, |_| ())
}

pub fn poll_with(
    config: GroConfig,
    frames: &[Vec<u8>],
    cache: &mut PoolCache,
    mut prepare: impl FnMut(&mut Packet),
) -> Vec<Packet> {
    let mut gro = Gro::new(config).unwrap();
    let mut burst = Burst::new();
    for frame in frames {
        let mut packet = cache.copy_chain(frame).unwrap();
        prepare(&mut packet);
        burst.push(packet);
    }
    let mut out = Burst::new();
    gro.receive(&mut burst, &mut out, cache, Instant::ZERO);
    gro.end_poll(false, &mut out, cache, Instant::ZERO);
    assert_eq!(gro.held(), 0);
    let c = gro.counters();
    assert_eq!(c.packets_in, c.merged + c.packets_out);
    assert_eq!(c.reasons().map(|(_, n)| n).sum::<u64>(), c.packets_out);
    out.drain().collect()
}
