//! Trains of valid TCP segments with faults, written as a list of operations that a person can write, too.

use netcore::checksum::{Sum, sum};
use netcore::offload::{ReceiveOffload, Segmenter};
use netcore::{Burst, Features, FlowKey, Instant, Packet, PacketPool, PoolConfig, TunnelPorts};
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter};
use std::collections::HashMap;

/// One flow of the input.
#[derive(Clone)]
struct Flow {
    number: u8,
    seq: u32,
    id: u16,
    ack: u32,
}

/// Segmenting what was merged gives the frames back byte for byte, per flow in order.
///
/// The input is a list of four-byte operations: flow and tunnel; payload length; flags; fault.
pub fn gro_gso_identity(data: &[u8]) {
    let mut flows: Vec<Flow> = (0..8).map(|number| Flow { number, seq: 1000, id: 7, ack: 1 }).collect();
    let frames: Vec<Vec<u8>> = data.chunks_exact(4).take(96).map(|op| frame(&mut flows, op)).collect();
    let pool = PacketPool::new(PoolConfig::with_buffers(256)).expect("a small pool");
    let mut cache = pool.cache();
    let mut gro = Gro::new(GroConfig::default()).expect("the default is valid");
    let mut burst: Burst = frames.iter().map(|f| cache.copy_from_slice(f).expect("a buffer each")).collect();
    let (mut out, mut wire) = (Burst::new(), Burst::new());
    gro.receive(&mut burst, &mut out, &mut cache, Instant::ZERO);
    gro.end_poll(false, &mut out, &mut cache, Instant::ZERO);
    let mut segmenter = SoftwareSegmenter::new();
    while let Some(packet) = out.pop() {
        segmenter.segment(packet, Features::empty(), &mut cache, &mut wire).expect("what GRO merges, GSO cuts");
    }
    let after: Vec<Vec<u8>> = wire.iter().map(Packet::to_vec).collect();
    assert_eq!(after.len(), frames.len());
    assert_eq!(by_flow(&frames), by_flow(&after));
}

/// What keeps its order: a flow inside one tunnel; damaged frames apart, since they overtake.
type Order = (Option<FlowKey>, bool, [u8; 2], bool);

/// Frames in order, by flow.
fn by_flow(frames: &[Vec<u8>]) -> HashMap<Order, Vec<&[u8]>> {
    let ports = TunnelPorts::default();
    let mut flows: HashMap<_, Vec<&[u8]>> = HashMap::new();
    for frame in frames {
        let d = netcore::dissect(frame, &ports);
        let good = |checks: Option<netcore::dissect::Checksums>| {
            checks.is_none_or(|c| {
                ![c.header, c.upper]
                    .iter()
                    .flatten()
                    .any(|v| matches!(v, netcore::dissect::ChecksumVerdict::Bad { .. }))
            })
        };
        let intact = good(d.outer_checksums(frame, frame.len())) && good(d.inner_checksums(frame, frame.len()));
        let udp = usize::from(d.tunnel);
        let checksum = udp != 0 && frame[udp + 6..udp + 8] != [0, 0];
        let order = (FlowKey::of(frame, &d), intact, [frame[12], frame[13]], checksum);
        flows.entry(order).or_default().push(frame);
    }
    flows
}

fn frame(flows: &mut [Flow], op: &[u8]) -> Vec<u8> {
    let flow = &mut flows[usize::from(op[0] & 7)];
    let len = usize::from(op[1]) * 5;
    match op[3] & 0x0f {
        1 => flow.seq = flow.seq.wrapping_add(1),
        2 => flow.ack = flow.ack.wrapping_add(1),
        3 => flow.id = flow.id.wrapping_sub(1),
        4 => flow.seq = flow.seq.wrapping_sub(len as u32),
        5 => flow.seq = u32::MAX - 700,
        _ => {}
    }
    let mut tcp = Vec::new();
    tcp.extend(u16::from(flow.number).to_be_bytes());
    tcp.extend([0x13, 0x89]);
    tcp.extend(flow.seq.to_be_bytes());
    tcp.extend(flow.ack.to_be_bytes());
    tcp.extend([0x50, 0x10 | op[2] & 0xcf, 1, 0, 0, 0, 0, 0]);
    tcp.extend((0..len).map(|i| (i as u8).wrapping_add(op[1])));
    flow.seq = flow.seq.wrapping_add(len as u32);
    let v6 = flow.number & 1 == 1;
    let checksum = |ip: &[u8], l4: &[u8], protocol: u8| {
        if ip.len() == 40 {
            let source: &[u8; 16] = ip[8..24].try_into().expect("16 bytes");
            let destination: &[u8; 16] = ip[24..40].try_into().expect("16 bytes");
            Sum::pseudo_ipv6(source, destination, protocol, l4.len() as u32).plus(sum(l4))
        } else {
            let source: [u8; 4] = ip[12..16].try_into().expect("4 bytes");
            let destination: [u8; 4] = ip[16..20].try_into().expect("4 bytes");
            Sum::pseudo_ipv4(source, destination, protocol, l4.len() as u32).plus(sum(l4))
        }
    };
    let ip = ip_header(v6, 6, tcp.len(), flow.id, op[3] & 0x10 != 0);
    flow.id = flow.id.wrapping_add(1);
    let mut value = checksum(&ip, &tcp, 6).finish();
    if op[3] & 0x0f == 6 {
        value ^= 0x0100;
    }
    tcp[16..18].copy_from_slice(&value.to_be_bytes());
    let inner = ethernet(v6, &[ip, tcp].concat());
    if op[0] & 0x08 == 0 {
        return inner;
    }
    let mut udp = vec![0xc0, flow.number, 0x12, 0xb5];
    udp.extend(((16 + inner.len()) as u16).to_be_bytes());
    udp.extend([0, 0, 8, 0, 0, 0, 0, 0, op[0] >> 6, 0]);
    udp.extend(inner);
    let outer_v6 = op[0] & 0x10 != 0;
    let ip = ip_header(outer_v6, 17, udp.len(), flow.id, op[3] & 0x20 != 0);
    if op[0] & 0x20 != 0 {
        let value = checksum(&ip, &udp, 17).finish_udp();
        udp[6..8].copy_from_slice(&value.to_be_bytes());
    }
    ethernet(outer_v6, &[ip, udp].concat())
}

fn ip_header(v6: bool, protocol: u8, len: usize, id: u16, constant_id: bool) -> Vec<u8> {
    if v6 {
        let mut h = vec![0x60, 0, 0, 0];
        h.extend((len as u16).to_be_bytes());
        h.extend([protocol, 64]);
        h.extend([
            0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 2,
        ]);
        return h;
    }
    let mut h = vec![0x45, 0];
    h.extend(((20 + len) as u16).to_be_bytes());
    h.extend(if constant_id { 0 } else { id }.to_be_bytes());
    h.extend([0x40, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
    let value = sum(&h).finish();
    h[10..12].copy_from_slice(&value.to_be_bytes());
    h
}

fn ethernet(v6: bool, ip: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
    frame.extend(ip);
    frame
}
