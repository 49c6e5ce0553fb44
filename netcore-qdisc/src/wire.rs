//! What qdiscs look up in packets: length on the wire, flow hash, ECN, acknowledgements.

use netcore::checksum::update16;
use netcore::dissect::NetworkLayer;
use netcore::wire::Protocol;
use netcore::{FlowKey, Packet, TunnelPorts, dissect};

fn tunnels() -> TunnelPorts {
    TunnelPorts::default()
}

/// Bytes on the wire, without preamble, checksum and gap: a super-packet counts the headers of each segment
/// (Linux: `qdisc_pkt_len_init`).
pub(crate) fn wire_len(packet: &Packet) -> u32 {
    let len = packet.len();
    let extra = match packet.gso() {
        Some(gso) => usize::from(gso.segments.saturating_sub(1)).saturating_mul(header_len(packet)),
        None => 0,
    };
    u32::try_from(len.saturating_add(extra)).unwrap_or(u32::MAX)
}

/// Bytes of all headers of a super-packet, the innermost transport header included.
fn header_len(packet: &Packet) -> usize {
    let head = packet.head();
    let Some(offsets) = packet.offsets() else {
        return (dissect(head, &tunnels()).payload as usize).min(packet.len());
    };
    let transport = match offsets.inner_transport {
        0 => offsets.transport,
        inner => inner,
    };
    let transport = usize::from(transport);
    let udp = packet.gso().is_some_and(|gso| gso.kind.contains(netcore::GsoKind::UDP_L4));
    if udp {
        return transport + 8;
    }
    transport + head.get(transport + 12).map_or(20, |byte| usize::from(byte >> 4) * 4)
}

/// The hash by which a packet is classified: the device's if it has one, else one over its socket, else over its addresses
/// and ports, else over the Ethernet addresses (Linux: `skb_get_hash`).
pub(crate) fn flow_hash(packet: &Packet) -> u32 {
    if let Some((hash, _)) = packet.hash() {
        return hash;
    }
    let head = packet.head();
    let mut hash = Fnv::new();
    if let Some(socket) = packet.flow_id() {
        hash.bytes(&socket.to_be_bytes());
        return hash.finish();
    }
    match FlowKey::of(head, &dissect(head, &tunnels())) {
        Some(key) => {
            match (key.source, key.destination) {
                (core::net::IpAddr::V4(a), core::net::IpAddr::V4(b)) => {
                    hash.bytes(&a.octets());
                    hash.bytes(&b.octets());
                }
                (core::net::IpAddr::V6(a), core::net::IpAddr::V6(b)) => {
                    hash.bytes(&a.octets());
                    hash.bytes(&b.octets());
                }
                _ => {}
            }
            let (source, destination) = key.ports.unwrap_or_default();
            hash.bytes(&source.to_be_bytes());
            hash.bytes(&destination.to_be_bytes());
            hash.bytes(&[key.protocol]);
            hash.bytes(&key.vni.unwrap_or(0).to_be_bytes());
        }
        None => hash.bytes(head.get(..14).unwrap_or(head)),
    }
    hash.finish()
}

/// FNV-1a, mixed at the end so that low bits are good (both public domain).
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> u32 {
        let x = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (x >> 32) as u32
    }
}

/// Whether a packet is a TCP segment without data, SYN, FIN or RST.
pub(crate) fn is_pure_ack(packet: &Packet) -> bool {
    if packet.is_super() {
        return false;
    }
    let head = packet.head();
    let d = dissect(head, &tunnels());
    let Some(network) = d.innermost() else { return false };
    network.protocol == Protocol::TCP
        && !network.fragment
        // Payload may lie in further segments than the first.
        && !network.cut
        && d.stopped.is_none()
        && d.payload >= network.end
        && head.get(usize::from(network.upper) + 13).is_some_and(|flags| flags & 0x17 == 0x10)
}

fn outer(packet: &Packet) -> Option<NetworkLayer> {
    dissect(packet.head(), &tunnels()).outer
}

/// The two ECN bits and the six DSCP bits of the outermost IP header.
pub(crate) fn traffic_class(packet: &Packet) -> Option<u8> {
    let network = outer(packet)?;
    let head = packet.head();
    let at = usize::from(network.offset);
    match network.version {
        4 => head.get(at + 1).copied(),
        _ => Some(head.get(at)? << 4 | head.get(at + 1)? >> 4),
    }
}

/// Marks a packet "congestion experienced" if its sender can do with that (Linux: `INET_ECN_set_ce`). False if the sender
/// cannot, or if the bytes are shared and must not be written.
pub(crate) fn set_ce(packet: &mut Packet) -> bool {
    let Some(network) = outer(packet) else { return false };
    let at = usize::from(network.offset);
    let Some(class) = traffic_class(packet) else { return false };
    match class & 3 {
        0 => return false,
        3 => return true,
        _ => {}
    }
    let Ok(head) = packet.head_mut() else { return false };
    if network.version == 4 {
        let Some(header) = head.get_mut(at..at + 12) else { return false };
        let word = |h: &[u8], n: usize| u16::from_be_bytes([h[n], h[n + 1]]);
        let old = word(header, 0);
        header[1] |= 3;
        let checksum = update16(word(header, 10), old, word(header, 0));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        let Some(byte) = head.get_mut(at + 1) else { return false };
        *byte |= 3 << 4;
    }
    true
}
