//! Frames that the workloads move.

use netcore::checksum::{Sum, sum};

/// A TCP segment over IPv4, in VXLAN if `vxlan`, with right checksums; the outer one is zero.
pub(crate) fn tcp(flow: u16, seq: u32, id: u16, payload: usize, vxlan: bool) -> Vec<u8> {
    let mut segment = flow.to_be_bytes().to_vec();
    segment.extend([0x13, 0x89]);
    segment.extend(seq.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8]);
    segment.extend((0..payload).map(|i| i as u8));
    let ip = ipv4(6, segment.len(), id, [203, 0, 113]);
    let pseudo = Sum::pseudo_ipv4([203, 0, 113, 1], [203, 0, 113, 2], 6, segment.len() as u32);
    let checksum = pseudo.plus(sum(&segment)).finish();
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    let inner = [ethernet(1), ip, segment].concat();
    if !vxlan {
        return inner;
    }
    let mut udp = vec![0xc0, flow as u8, 0x12, 0xb5];
    udp.extend(((16 + inner.len()) as u16).to_be_bytes());
    udp.extend([0, 0, 8, 0, 0, 0, 0, 0, 42, 0]);
    udp.extend(inner);
    [ethernet(2), ipv4(17, udp.len(), id, [198, 51, 100]), udp].concat()
}

fn ethernet(host: u8) -> Vec<u8> {
    vec![2, 0, 0, 0, host, 1, 2, 0, 0, 0, host, 2, 8, 0]
}

fn ipv4(protocol: u8, payload: usize, id: u16, net: [u8; 3]) -> Vec<u8> {
    let mut h = vec![0x45, 0];
    h.extend(((20 + payload) as u16).to_be_bytes());
    h.extend(id.to_be_bytes());
    h.extend([0x40, 0, 64, protocol, 0, 0, net[0], net[1], net[2], 1, net[0], net[1], net[2], 2]);
    let checksum = sum(&h).finish();
    h[10..12].copy_from_slice(&checksum.to_be_bytes());
    h
}
