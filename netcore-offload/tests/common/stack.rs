//! Frames with any headers around each other.

use super::{Tcp, ipv4, ipv6, pseudo};
use netcore::checksum::sum;

/// What is put around a packet.
#[derive(Clone, Debug)]
pub enum Wrap {
    Vxlan { outer: Outer, vni: u32, sport: u16, dport: u16, checksum: bool, bad: bool },
    Geneve { outer: Outer, vni: u32, sport: u16, checksum: bool, options: Vec<u8>, flags: u8 },
    Gre { outer: Outer, key: Option<u32>, checksum: bool, ethernet: bool },
    Ip { outer: Outer },
}

/// An outer IP header.
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    pub v6: bool,
    pub id: u16,
    pub df: bool,
    pub ttl: u8,
    pub tos: u8,
}

impl Default for Outer {
    fn default() -> Self {
        Self { v6: false, id: 0, df: false, ttl: 64, tos: 0 }
    }
}

impl Wrap {
    pub fn outer_mut(&mut self) -> &mut Outer {
        match self {
            Self::Vxlan { outer, .. } | Self::Geneve { outer, .. } | Self::Gre { outer, .. } | Self::Ip { outer } => {
                outer
            }
        }
    }
}

/// A TCP segment or UDP datagram with tunnels around it, innermost first.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Fields of the innermost packet; for UDP only those that it has.
    pub tcp: Tcp,
    pub udp: bool,
    /// UDP without checksum.
    pub no_checksum: bool,
    pub wraps: Vec<Wrap>,
}

fn ethernet(v6: bool, ip: &[u8]) -> Vec<u8> {
    super::ethernet(&[], v6, ip, 9)
}

impl Stack {
    /// The innermost IP packet.
    fn innermost(&self) -> Vec<u8> {
        let t = &self.tcp;
        if !self.udp {
            let frame = Tcp { tunnel: None, vlan: Vec::new(), ..t.clone() }.frame();
            return frame[14..].to_vec();
        }
        let mut udp = t.sport.to_be_bytes().to_vec();
        udp.extend(t.dport.to_be_bytes());
        udp.extend(((8 + t.payload.len()) as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(&t.payload);
        let mut ip = if t.v6 {
            ipv6(t.tos, t.flow_label, t.ttl, 17, &udp, 0)
        } else {
            ipv4(t.tos, t.id, t.df, t.ttl, 17, &udp, 1)
        };
        if !self.no_checksum {
            let at = if t.v6 { 46 } else { 26 };
            let checksum = pseudo(t.v6, &ip, 17, udp.len()).plus(sum(&udp)).finish_udp();
            let checksum = if t.bad_checksum { (checksum ^ 0x1234).max(1) } else { checksum };
            ip[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        ip
    }

    pub fn frame(&self) -> Vec<u8> {
        let (mut v6, mut ip) = (self.tcp.v6, self.innermost());
        for (depth, wrap) in self.wraps.iter().enumerate() {
            (v6, ip) = wrap.around(v6, &ip, 2 + depth as u8);
        }
        super::ethernet(&self.tcp.vlan, v6, &ip, 0)
    }
}

impl Wrap {
    fn around(&self, v6: bool, ip: &[u8], net: u8) -> (bool, Vec<u8>) {
        let number = |v6: bool| if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        match self {
            Self::Ip { outer } => (outer.v6, outer.header(if v6 { 41 } else { 4 }, ip, net)),
            Self::Gre { outer, key, checksum, ethernet: inside } => {
                let flags = u16::from(*checksum) << 15 | u16::from(key.is_some()) << 13;
                let mut gre = flags.to_be_bytes().to_vec();
                gre.extend(if *inside { [0x65, 0x58] } else { number(v6) });
                if *checksum {
                    gre.extend([0; 4]);
                }
                gre.extend(key.iter().flat_map(|key| key.to_be_bytes()));
                if *inside {
                    gre.extend(ethernet(v6, ip));
                } else {
                    gre.extend(ip);
                }
                if *checksum {
                    let value = sum(&gre).finish();
                    gre[4..6].copy_from_slice(&value.to_be_bytes());
                }
                (outer.v6, outer.header(47, &gre, net))
            }
            Self::Vxlan { outer, vni, sport, dport, checksum, bad } => {
                let mut body = vec![8, 0, 0, 0];
                body.extend((vni << 8).to_be_bytes());
                body.extend(ethernet(v6, ip));
                (outer.v6, outer.udp(*sport, *dport, &body, *checksum, *bad, net))
            }
            Self::Geneve { outer, vni, sport, checksum, options, flags } => {
                let mut body = vec![(options.len() / 4) as u8, *flags, 0x65, 0x58];
                body.extend((vni << 8).to_be_bytes());
                body.extend(options);
                body.extend(ethernet(v6, ip));
                (outer.v6, outer.udp(*sport, 6081, &body, *checksum, false, net))
            }
        }
    }
}

impl Outer {
    fn header(&self, protocol: u8, payload: &[u8], net: u8) -> Vec<u8> {
        if self.v6 {
            ipv6(self.tos, 0, self.ttl, protocol, payload, net)
        } else {
            ipv4(self.tos, self.id, self.df, self.ttl, protocol, payload, net)
        }
    }

    fn udp(&self, sport: u16, dport: u16, body: &[u8], checksum: bool, bad: bool, net: u8) -> Vec<u8> {
        let mut udp = sport.to_be_bytes().to_vec();
        udp.extend(dport.to_be_bytes());
        udp.extend(((8 + body.len()) as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(body);
        let mut ip = self.header(17, &udp, net);
        if checksum {
            let at = if self.v6 { 46 } else { 26 };
            let value = pseudo(self.v6, &ip, 17, udp.len()).plus(sum(&udp)).finish_udp();
            let value = if bad { (value ^ 0x1234).max(1) } else { value };
            ip[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        ip
    }
}
