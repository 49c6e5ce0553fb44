use super::*;
use alloc::vec::Vec;
use netcore::checksum;
use netcore::{PacketPool, PoolCache, PoolConfig, VlanTag};

fn cache() -> PoolCache {
    PacketPool::new(PoolConfig::with_buffers(64)).unwrap().cache()
}

fn layout() -> Transmit {
    Transmit::new(Abilities {
        max_frame: 1514,
        checksum: true,
        sctp: true,
        gso: GsoKind::TCPV4 | GsoKind::TCPV6 | GsoKind::UDP_L4 | GsoKind::UDP_TUNNEL | GsoKind::UDP_TUNNEL_CSUM,
        vlan: true,
        limit: 16384,
        contexts: Contexts { first: 0, count: 2 },
    })
}

/// TCP, UDP or SCTP over IPv4 or IPv6 with `payload` bytes.
fn frame(version: u8, protocol: u8, payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
    let l4 = match protocol {
        6 => 20,
        17 => 8,
        _ => 12,
    };
    if version == 4 {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(((20 + l4 + payload) as u16).to_be_bytes());
        frame.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(((l4 + payload) as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend([0xfd; 32]);
    }
    let at = frame.len();
    frame.resize(at + l4, 0);
    if protocol == 6 {
        frame[at + 12] = 0x50;
    }
    if protocol == 17 {
        frame[at + 4..at + 6].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
    }
    frame.extend((0..payload).map(|n| n as u8));
    frame
}

fn packet(cache: &mut PoolCache, bytes: &[u8], start: u16, offset: u16) -> Packet {
    let mut packet = cache.copy_chain(bytes).unwrap();
    packet.set_transmit_checksum(Some(PartialChecksum { start, offset }));
    packet
}

fn bytes(words: Words) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn a_checksum_request_becomes_the_bytes_that_hardware_takes() {
    let (mut cache, mut layout) = (cache(), layout());
    let mut header = [0; HEADER_ROOM];
    let packet = packet(&mut cache, &frame(4, 6, 100), 34, 16);
    let plan = layout.plan(&packet, &mut header).unwrap();
    assert_eq!(bytes(plan.context.unwrap()), hex("141c0000 00000000 000c2020 00000000"));
    let data = Transmit::data(&plan, 0x20_0000, 154, true, true);
    assert_eq!(bytes(data), hex("00002000 00000000 9a00302b 00822600"), "only the transport checksum is asked for");
    assert!(layout.plan(&packet, &mut header).unwrap().context.is_none(), "hardware remembers it");
}

#[test]
fn segmentation_becomes_the_bytes_that_hardware_takes() {
    let (mut cache, mut layout) = (cache(), layout());
    let mut header = [0; HEADER_ROOM];
    for (version, kind, start, mss, context, first, second) in [
        (
            4,
            GsoKind::TCPV4,
            34,
            1460,
            "141c0000 00000000 000c2020 0014b405",
            "3600 30a2 0003e803",
            "a00f 30ab 0003e803",
        ),
        (
            6,
            GsoKind::TCPV6,
            54,
            1440,
            "281c0000 00000000 00082020 0014a005",
            "4a00 30a2 0002e803",
            "a00f 30ab 0002e803",
        ),
    ] {
        let mut layout = Transmit::new(*layout.abilities());
        let mut packet = packet(&mut cache, &frame(version, 6, 4000), start, 16);
        packet.set_gso(Some(Gso { kind, size: mss, segments: 3 }));
        let plan = layout.plan(&packet, &mut header).unwrap();
        assert_eq!(bytes(plan.context.unwrap()), hex(context));
        let len = plan.header;
        assert_eq!(bytes(Transmit::data(&plan, 0, len.into(), false, false))[8..], hex(first));
        assert_eq!(bytes(Transmit::data(&plan, 0, 4000, true, true))[8..], hex(second));
        assert_eq!(len, start + 20);
    }
    // Too small, too large, not the kind that the headers are.
    let mut packet = packet(&mut cache, &frame(4, 6, 4000), 34, 16);
    for gso in [
        Gso { kind: GsoKind::TCPV4, size: 63, segments: 64 },
        Gso { kind: GsoKind::TCPV4, size: 1461, segments: 3 },
        Gso { kind: GsoKind::TCPV6, size: 1000, segments: 4 },
        Gso { kind: GsoKind::UDP_L4, size: 1000, segments: 4 },
        Gso { kind: GsoKind::TCPV4 | GsoKind::TCP_FIXEDID, size: 1000, segments: 4 },
        Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL, size: 1000, segments: 4 },
    ] {
        packet.set_gso(Some(gso));
        assert_eq!(layout.plan(&packet, &mut header).err(), Some(Refusal::Segmentation), "{gso:?}");
    }
}

#[test]
fn a_tag_rides_in_the_context_and_two_contexts_are_remembered() {
    let (mut cache, mut layout) = (cache(), layout());
    let mut header = [0; HEADER_ROOM];
    let mut tagged = cache.copy_chain(&[0x55; 100]).unwrap();
    tagged.set_vlan(Some(VlanTag { tpid: 0x8100, tci: 0x64 }));
    let tcp = packet(&mut cache, &frame(4, 6, 100), 34, 16);
    let udp = packet(&mut cache, &frame(4, 17, 100), 34, 6);
    let mut plan = |packet: &Packet| layout.plan(packet, &mut header).unwrap();
    let first = plan(&tagged);
    assert_eq!(first.context.unwrap()[0], 0x64 << 16 | 14 << 9);
    assert_ne!(first.data & txd::VLE, 0);
    let second = plan(&tcp);
    assert!(second.context.is_some());
    assert_ne!(first.data >> txd::IDX_SHIFT & 7, second.data >> txd::IDX_SHIFT & 7);
    assert!(plan(&tagged).context.is_none() && plan(&tcp).context.is_none());
    // A third one takes the place of the one that was not used last.
    assert!(plan(&udp).context.is_some());
    assert!(plan(&tcp).context.is_none() && plan(&tagged).context.is_some());
    layout.forget();
    assert!(layout.plan(&tcp, &mut header).unwrap().context.is_some());
    tagged.set_vlan(Some(VlanTag { tpid: 0x88a8, tci: 0x64 }));
    assert_eq!(layout.plan(&tagged, &mut header).err(), Some(Refusal::Vlan));
}

#[test]
fn sctp_is_told_from_others_and_a_sum_at_a_strange_place_is_refused() {
    let (mut cache, mut layout) = (cache(), layout());
    let mut header = [0; HEADER_ROOM];
    let sctp = packet(&mut cache, &frame(4, 132, 40), 34, 8);
    let plan = layout.plan(&sctp, &mut header).unwrap();
    assert_eq!(plan.context.unwrap()[1] & (3 << 11), txd::TUCMD_SCTP);
    for (bytes, start, offset) in [
        (frame(4, 6, 100), 34, 6),
        (frame(4, 17, 100), 34, 16),
        (frame(4, 6, 100), 40, 16),
        (frame(4, 6, 100), 150, 16),
        (vec![0; 100], 34, 16),
    ] {
        let packet = packet(&mut cache, &bytes, start, offset);
        assert_eq!(layout.plan(&packet, &mut header).err(), Some(Refusal::Checksum), "{start} {offset}");
    }
    let abilities = Abilities { sctp: false, ..*layout.abilities() };
    assert_eq!(Transmit::new(abilities).plan(&sctp, &mut header).err(), Some(Refusal::Checksum));
}

/// VXLAN around a frame with `payload` bytes of TCP over IPv4.
fn vxlan(outer: u8, payload: usize) -> Vec<u8> {
    let inner = frame(4, 6, payload);
    let mut outer = frame(outer, 17, 8 + inner.len());
    let at = outer.len() - 8 - inner.len();
    outer.truncate(at);
    outer[at - 6..at - 4].copy_from_slice(&4789u16.to_be_bytes());
    outer.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    outer.extend(inner);
    outer
}

#[test]
fn inside_a_tunnel_hardware_takes_all_headers_between_for_one_ip_header() {
    let (mut cache, mut layout) = (cache(), layout());
    let mut header = [0; HEADER_ROOM];
    // 14 + 20 + 8 + 8 + 14 + 20.
    let mut large = packet(&mut cache, &vxlan(4, 4000), 84, 16);
    large.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL, size: 1000, segments: 4 }));
    let plan = layout.plan(&large, &mut header).unwrap();
    assert_eq!(plan.context.unwrap()[0], 70 | 14 << 9);
    assert_eq!(plan.header, 104);
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    assert_eq!((word(16), word(38), word(40)), (0, 1070, 0), "outer lengths and checksum of UDP");
    assert_eq!(word(66), 1040, "the inner length is that of a segment");
    assert!(checksum::sum(&header[64..84]).is_valid(), "and its checksum final");
    // What hardware does: length in, sum over all of it, complement stored.
    header[16..18].copy_from_slice(&1090u16.to_be_bytes());
    let sum = checksum::sum(&header[14..84]).finish();
    header[24..26].copy_from_slice(&sum.to_be_bytes());
    assert!(checksum::sum(&header[14..34]).is_valid(), "the outer header alone sums up");
    // A short last segment, or an identification that must count, is for software.
    large.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL, size: 1001, segments: 4 }));
    assert_eq!(layout.plan(&large, &mut header).err(), Some(Refusal::Segmentation));
    let mut bytes = vxlan(4, 4000);
    bytes[70] = 0;
    let mut fragmentable = packet(&mut cache, &bytes, 84, 16);
    fragmentable.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL, size: 1000, segments: 4 }));
    assert_eq!(layout.plan(&fragmentable, &mut header).err(), Some(Refusal::Segmentation));
}

#[test]
fn the_outer_udp_checksum_is_right_for_every_segment() {
    let (mut cache, mut layout) = (cache(), layout());
    for outer in [4, 6] {
        let mut header = [0; HEADER_ROOM];
        let udp = if outer == 4 { 34 } else { 54 };
        let inner = udp + 50;
        let mut packet = packet(&mut cache, &vxlan(outer, 4000), inner as u16, 16);
        packet.set_gso(Some(Gso { kind: GsoKind::TCPV4 | GsoKind::UDP_TUNNEL_CSUM, size: 1000, segments: 4 }));
        let plan = layout.plan(&packet, &mut header).unwrap();
        let mut segment = header[..usize::from(plan.header)].to_vec();
        segment.extend((0..1000).map(|n| (n * 3) as u8));
        // Hardware finishes the inner checksum.
        let l4 = (segment.len() - inner) as u16;
        let seed = u16::from_be_bytes([segment[inner + 16], segment[inner + 17]]);
        segment[inner + 16..inner + 18].fill(0);
        let sum = checksum::sum(&segment[inner..]).plus_word(seed).plus_word(l4).finish();
        segment[inner + 16..inner + 18].copy_from_slice(&sum.to_be_bytes());
        let addresses = if outer == 4 { 26..34 } else { 22..54 };
        let whole = checksum::sum(&segment[addresses])
            .plus_word(17)
            .plus_word((segment.len() - udp) as u16)
            .plus(checksum::sum(&segment[udp..]));
        assert!(whole.is_valid(), "over IPv{outer}");
    }
}
