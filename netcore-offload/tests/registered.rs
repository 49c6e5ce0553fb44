//! Protocols that a user registers: merged by the engine, cut by the segmenter, byte for byte.

mod common;

use netcore::checksum::{Sum, sum};
use netcore::offload::{GroEnd, GroHandler, GroHeader, GroMerge, GroNext, GroPair, GroView, ReceiveOffload, Segmenter};
use netcore::{Burst, Features, Instant, Packet};
use netcore_offload::{Gro, GroConfig, ProtocolId, Protocols, RegisterError, SoftwareSegmenter};
use proptest::prelude::*;
use std::sync::Arc;

/// Flow (2 bytes), length of header and payload (2), number of the first piece (2), then payload. With flow 7 another header
/// follows, found by IP protocol 252.
struct Counted;

impl GroHandler for Counted {
    fn parse(&self, view: &GroView<'_>) -> Result<GroHeader, GroEnd> {
        let h: &[u8; 6] = view.bytes.first_chunk().ok_or(GroEnd::Malformed)?;
        if usize::from(u16::from_be_bytes([h[2], h[3]])) != view.len {
            return Err(GroEnd::Malformed);
        }
        let next = if h[..2] == [0, 7] { GroNext::IpProtocol(252) } else { GroNext::Payload };
        Ok(GroHeader { len: 6, next })
    }
    fn same_flow(&self, held: &[u8], new: &[u8]) -> bool {
        held[..2] == new[..2]
    }
    fn merge(&self, pair: &GroPair<'_>) -> GroMerge {
        let number = |h: &[u8]| u16::from_be_bytes([h[4], h[5]]);
        if number(pair.new) != number(pair.held).wrapping_add(pair.segments) {
            return GroMerge::DeliverHeld(GroEnd::Sequence);
        }
        GroMerge::Merge
    }
    fn complete(&self, header: &mut [u8], len: usize, _: u16) {
        header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    }
    fn segment(&self, header: &mut [u8], len: usize, index: u16) {
        header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        if index > 0 {
            let number = u16::from_be_bytes([header[4], header[5]]);
            header[4..6].copy_from_slice(&number.wrapping_add(1).to_be_bytes());
        }
    }
}

fn protocols() -> Protocols {
    let mut protocols = Protocols::new();
    let handler: Arc<dyn GroHandler> = Arc::new(Counted);
    for id in [
        ProtocolId::EtherType(0x88b5),
        ProtocolId::IpProtocol(253),
        ProtocolId::IpProtocol(252),
        ProtocolId::UdpPort(9999),
    ] {
        protocols.register(id, handler.clone()).unwrap();
    }
    protocols
}

fn frame(kind: u8, flow: u16, number: u16, payload: usize, id: u16) -> Vec<u8> {
    let counted = |flow: u16, body: &[u8]| {
        let mut p = flow.to_be_bytes().to_vec();
        p.extend(((6 + body.len()) as u16).to_be_bytes());
        p.extend(number.to_be_bytes());
        p.extend(body);
        p
    };
    let body: Vec<u8> = (0..payload).map(|i| (i as u8).wrapping_add(number as u8)).collect();
    let inner = if flow == 7 { counted(7, &counted(1, &body)) } else { counted(flow, &body) };
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if kind == 0 {
        f.extend([0x88, 0xb5]);
        f.extend(inner);
        return f;
    }
    let (protocol, rest) = if kind < 3 {
        (253, inner)
    } else {
        let mut udp = vec![0x10, flow as u8, 0x27, 0x0f];
        udp.extend(((8 + inner.len()) as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(inner);
        (17, udp)
    };
    let v6 = kind.is_multiple_of(2);
    let mut ip = if v6 {
        let mut h = vec![0x60, 0, 0, 0];
        h.extend((rest.len() as u16).to_be_bytes());
        h.extend([protocol, 64]);
        h.extend([1; 32]);
        h
    } else {
        let mut h = vec![0x45, 0];
        h.extend(((20 + rest.len()) as u16).to_be_bytes());
        h.extend(id.to_be_bytes());
        h.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let c = sum(&h).finish();
        h[10..12].copy_from_slice(&c.to_be_bytes());
        h
    };
    let at = ip.len();
    ip.extend(rest);
    if kind == 3 || kind == 4 {
        let len = (ip.len() - at) as u32;
        let pseudo = if v6 {
            Sum::pseudo_ipv6(&[1; 16], &[1; 16], 17, len)
        } else {
            Sum::pseudo_ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, len)
        };
        let c = pseudo.plus(sum(&ip[at..])).finish_udp();
        ip[at + 6..at + 8].copy_from_slice(&c.to_be_bytes());
    }
    f.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
    f.extend(ip);
    f
}

fn merge(frames: &[Vec<u8>], cache: &mut netcore::PoolCache) -> Burst {
    let mut gro = Gro::new(GroConfig::default()).unwrap().with_protocols(protocols());
    let mut burst: Burst = frames.iter().map(|f| cache.copy_from_slice(f).unwrap()).collect();
    let mut out = Burst::new();
    gro.receive(&mut burst, &mut out, cache, Instant::ZERO);
    gro.end_poll(false, &mut out, cache, Instant::ZERO);
    assert_eq!(gro.held(), 0);
    let c = gro.counters();
    assert_eq!(c.packets_in, c.merged + c.packets_out);
    out
}

#[test]
fn trains_merge_behind_ethernet_ip_and_udp_and_through_nested_headers() {
    for kind in 0..6 {
        for flow in [1, 7] {
            let frames: Vec<_> = (0..10).map(|i| frame(kind, flow, i, 1000, i)).collect();
            let pool = common::pool();
            let mut cache = pool.cache();
            let mut out = merge(&frames, &mut cache);
            assert_eq!(out.len(), 1, "kind {kind}, flow {flow}");
            let packet = out.pop().unwrap();
            let gso = packet.gso().unwrap();
            assert_eq!((gso.size, gso.segments), (1000, 10));
            let mut wire = Burst::new();
            let mut segmenter = SoftwareSegmenter::new().with_protocols(protocols());
            segmenter.segment(packet, Features::empty(), &mut cache, &mut wire).unwrap();
            assert_eq!(wire.iter().map(Packet::to_vec).collect::<Vec<_>>(), frames);
        }
    }
}

#[test]
fn without_its_protocol_the_segmenter_gives_the_packet_back() {
    let frames: Vec<_> = (0..3).map(|i| frame(1, 1, i, 100, i)).collect();
    let pool = common::pool();
    let mut cache = pool.cache();
    let packet = merge(&frames, &mut cache).pop().unwrap();
    let bytes = packet.to_vec();
    let mut out = Burst::new();
    let failed = SoftwareSegmenter::new().segment(packet, Features::empty(), &mut cache, &mut out).unwrap_err();
    assert_eq!((failed.packet.to_vec(), out.len()), (bytes, 0));
}

#[test]
fn what_is_built_in_or_taken_is_refused() {
    let mut protocols = protocols();
    let handler: Arc<dyn GroHandler> = Arc::new(Counted);
    let taken = ProtocolId::UdpPort(9999);
    assert_eq!(protocols.register(taken, handler.clone()), Err(RegisterError::Taken(taken)));
    let built_in = ProtocolId::IpProtocol(6);
    assert_eq!(protocols.register(built_in, handler), Err(RegisterError::BuiltIn(built_in)));
}

proptest! {
    #[test]
    fn any_mixture_comes_back_in_order_per_flow(
        ops in prop::collection::vec((0u8..6, prop::sample::select(vec![1u16, 2, 7]), prop::sample::select(vec![0usize, 50, 50, 50, 49, 51]), 0u8..12), 1..50),
    ) {
        let mut next = std::collections::HashMap::new();
        let mut key_of = Vec::new();
        let frames: Vec<_> = ops.iter().map(|&(kind, flow, len, fault)| {
            let number: &mut u16 = next.entry((kind, flow)).or_default();
            if fault == 1 { *number += 1; }
            let id = if fault == 2 { 9 } else { *number };
            let mut f = frame(kind, flow, *number, len, id);
            *number += 1;
            if fault == 0 { *f.last_mut().unwrap() ^= 1; }
            if fault == 3 { f.extend([0, 0]); }
            key_of.push(f.clone());
            f
        }).collect();
        let pool = common::pool();
        let mut cache = pool.cache();
        let mut out = merge(&frames, &mut cache);
        let mut segmenter = SoftwareSegmenter::new().with_protocols(protocols());
        let mut wire = Burst::new();
        while let Some(p) = out.pop() {
            segmenter.segment(p, Features::empty(), &mut cache, &mut wire).unwrap();
        }
        let mut before = key_of;
        let mut after: Vec<_> = wire.iter().map(Packet::to_vec).collect();
        before.sort();
        after.sort();
        prop_assert_eq!(before, after);
    }
}
