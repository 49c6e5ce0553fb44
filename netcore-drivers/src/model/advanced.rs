//! Offloads by advanced descriptors as hardware does them (82576 datasheet 7.2, 82599 datasheet 7.2): contexts, checksums,
//! segmentation. What goes on the line is checked against the context by which it was made.

use super::Core;
use super::frames::{self, Check};
use netcore::checksum::{self, Sum};
use netcore::dissect::NetworkLayer;
use netcore::{TunnelPorts, dissect};
use std::vec::Vec;

/// Second word of a descriptor.
pub(super) mod bits {
    pub(crate) const EOP: u64 = 1 << 24;
    pub(crate) const IFCS: u64 = 1 << 25;
    pub(crate) const RS: u64 = 1 << 27;
    pub(crate) const DEXT: u64 = 1 << 29;
    pub(crate) const VLE: u64 = 1 << 30;
    pub(crate) const TSE: u64 = 1 << 31;
    pub(crate) const DD: u64 = 1 << 32;
    pub(crate) const IXSM: u64 = 1 << 40;
    pub(crate) const TXSM: u64 = 1 << 41;
    /// Data: bits 17:16 and 28, of the second half 3:1, 7 and 13:11.
    pub(crate) const DATA_RESERVED: u64 = 3 << 16 | 1 << 28 | 7 << 33 | 1 << 39 | 7 << 43;
    /// Context: all but SNAP, IP version, transport, IPsec, type and DEXT; of the second half 3:0 and 7.
    pub(crate) const CONTEXT_RESERVED: u64 = 0xffff_ffff & !(0x3f << 9 | 0xf << 20 | 1 << 29) | 0xf << 32 | 1 << 39;
}

/// Transports of a context.
const UDP: u8 = 0;
const TCP: u8 = 1;
const SCTP: u8 = 2;

/// What a part allows in segmentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segmenting {
    /// Largest segment size.
    pub(super) max_mss: usize,
    /// Most bytes of headers.
    pub(super) max_header: usize,
    /// TCP flags that the first (11:0), middle (27:16) segments keep, and the last (11:0).
    pub(super) flags: (u32, u32),
}

/// A context as it was loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) mac: usize,
    ip: usize,
    pub(super) vlan: u16,
    ipv4: bool,
    transport: u8,
    l4: usize,
    mss: usize,
}

impl Context {
    pub(super) fn parse([first, second]: [u64; 2]) -> Self {
        Self {
            mac: (first >> 9 & 0x7f) as usize,
            ip: (first & 0x1ff) as usize,
            vlan: (first >> 16) as u16,
            ipv4: second & 1 << 10 != 0,
            transport: (second >> 11 & 3) as u8,
            l4: (second >> 40 & 0xff) as usize,
            mss: (second >> 48) as usize,
        }
    }

    /// Where the transport header starts.
    pub(super) const fn start(&self) -> usize {
        self.mac + self.ip
    }

    /// Where its checksum is.
    pub(super) const fn field(&self) -> usize {
        self.start()
            + match self.transport {
                TCP => 16,
                UDP => 6,
                _ => 8,
            }
    }
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(pair) => u16::from_be_bytes([pair[0], pair[1]]),
        None => 0,
    }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Cuts a packet into segments; `None` if the queue hangs over it.
pub(super) fn cut(
    core: &mut Core,
    context: &Context,
    bytes: &[u8],
    paylen: usize,
    word: u64,
    limits: &Segmenting,
) -> Option<Vec<Vec<u8>>> {
    let header = context.start() + context.l4;
    if bytes.len() != header + paylen {
        core.violate("paylen", format!("{} bytes, but {header} of headers and PAYLEN {paylen}", bytes.len()));
        return None;
    }
    let mss = context.mss;
    if mss == 0 || paylen == 0 || mss > limits.max_mss {
        core.violate("segment-mss", format!("MSS {mss}, PAYLEN {paylen}"));
        return None;
    }
    if header > limits.max_header || context.transport > TCP {
        core.violate("segment-type", format!("{header} bytes of headers, transport {}", context.transport));
        return None;
    }
    let l4 = match context.transport {
        TCP => bytes.get(context.start() + 12).map_or(0, |byte| usize::from(byte >> 4) * 4),
        _ => 8,
    };
    if l4 != context.l4 {
        core.violate("l4len", format!("L4LEN {}, the header has {l4} bytes", context.l4));
    }
    let template = &bytes[..header];
    let payload = &bytes[header..];
    let count = payload.len().div_ceil(mss);
    let mut frames = Vec::with_capacity(count);
    for (n, part) in payload.chunks(mss).enumerate() {
        let mut frame = template.to_vec();
        frame.extend_from_slice(part);
        finish_segment(context, &mut frame, (n, count), word, limits.flags);
        check_frame(core, context, &frame, true);
        frames.push(frame);
    }
    Some(frames)
}

fn finish_segment(context: &Context, frame: &mut [u8], (n, count): (usize, usize), word: u64, (low, high): (u32, u32)) {
    let ip = context.mac;
    let l4 = context.start();
    let behind = frame.len() - ip.min(frame.len());
    if context.ipv4 {
        put16(frame, ip + 2, behind as u16);
        let id = get16(frame, ip + 4).wrapping_add(n as u16);
        put16(frame, ip + 4, id);
        if word & bits::IXSM != 0 {
            store(frame, ip + 10, ip, l4);
        }
    } else {
        put16(frame, ip + 4, behind.wrapping_sub(40) as u16);
    }
    let l4_len = frame.len() - l4.min(frame.len());
    if context.transport == TCP {
        let sequence = u32::from(get16(frame, l4 + 4)) << 16 | u32::from(get16(frame, l4 + 6));
        let sequence = sequence.wrapping_add((n * context.mss) as u32);
        put16(frame, l4 + 4, (sequence >> 16) as u16);
        put16(frame, l4 + 6, sequence as u16);
        // Which flags the first, middle and last segment keep.
        let mask = match n {
            _ if n + 1 == count => high,
            0 => low,
            _ => low >> 16,
        };
        if let Some(flags) = frame.get_mut(l4 + 13) {
            *flags &= mask as u8;
        }
    } else {
        put16(frame, l4 + 4, l4_len as u16);
    }
    if word & bits::TXSM != 0 {
        // The length, which the seed lacks, is added for each segment.
        let field = context.field();
        let seed = Sum::from_word(get16(frame, field)).plus_word(l4_len as u16).fold();
        put16(frame, field, seed);
        let end = frame.len();
        store(frame, field, l4, end);
    }
}

/// Fills in what the data descriptor asks for.
pub(super) fn fill_sums(core: &mut Core, context: &Context, bytes: &mut [u8], word: u64) {
    if word & (bits::IXSM | bits::TXSM) == 0 {
        return;
    }
    if word & bits::IXSM != 0 {
        store(bytes, context.mac + 10, context.mac, context.start());
    }
    if word & bits::TXSM != 0 {
        let (start, field) = (context.start(), context.field());
        let room = if context.transport == SCTP { 4 } else { 2 };
        if context.transport > SCTP || field + room > bytes.len() {
            core.violate("iplen", format!("transport header at {start} in a frame of {} bytes", bytes.len()));
            return;
        }
        if context.transport == SCTP {
            let crc = frames::crc32c(&bytes[start..]);
            bytes[field..field + 4].copy_from_slice(&crc.to_le_bytes());
        } else {
            let end = bytes.len();
            store(bytes, field, start, end);
            if context.transport == UDP && get16(bytes, field) == 0 {
                put16(bytes, field, 0xffff);
            }
        }
    }
    check_frame(core, context, bytes, word & bits::IXSM != 0);
}

/// Sums `start..end`, what the field holds included, and stores the complement.
fn store(bytes: &mut [u8], field: usize, start: usize, end: usize) {
    let Some(range) = bytes.get(start..end.min(bytes.len())) else { return };
    let sum = !checksum::sum(range).fold();
    put16(bytes, field, sum);
}

/// The network header whose transport header is at `start`: the outer one, or one inside a tunnel over any UDP port.
fn network_of(bytes: &[u8], outer: NetworkLayer, start: usize) -> Option<NetworkLayer> {
    if usize::from(outer.upper) == start {
        return Some(outer);
    }
    let port = get16(bytes, usize::from(outer.upper) + 2);
    [TunnelPorts::none().with_vxlan(port), TunnelPorts::none().with_geneve(port)]
        .iter()
        .find_map(|ports| dissect(bytes, ports).inner.filter(|inner| usize::from(inner.upper) == start))
}

/// A frame as it goes out must fit the context by which it was made, and its checksums must be right.
fn check_frame(core: &mut Core, context: &Context, bytes: &[u8], ip_checksum: bool) {
    let Some(outer) = dissect(bytes, &TunnelPorts::none()).outer else {
        core.violate("maclen", "checksums asked for in a frame without an IP header");
        return;
    };
    if usize::from(outer.offset) != context.mac {
        core.violate("maclen", format!("MACLEN {}, the IP header is at {}", context.mac, outer.offset));
        return;
    }
    if ip_checksum && context.ipv4 != (outer.version == 4) {
        core.violate(
            "ip-version",
            format!("context for IPv4: {}, the packet has version {}", context.ipv4, outer.version),
        );
        return;
    }
    let (network, upper) = (usize::from(outer.offset), usize::from(outer.upper));
    if ip_checksum && outer.version == 4 && !checksum::sum(bytes.get(network..upper).unwrap_or(&[])).is_valid() {
        core.violate("ip-checksum-seed", "the outer IPv4 header does not sum up");
    }
    let start = context.start();
    let Some(layer) = network_of(bytes, outer, start) else {
        core.violate("iplen", format!("IPLEN {}: no transport header at {start}", context.ip));
        return;
    };
    let own = match context.transport {
        UDP => 17,
        TCP => 6,
        _ => 132,
    };
    if layer.protocol.0 != own {
        core.violate("transport-type", format!("protocol {} with transport {}", layer.protocol.0, context.transport));
        return;
    }
    if layer.offset != outer.offset {
        check_tunnel(core, bytes, outer, layer);
    }
    let Some(packet) = bytes.get(start..(layer.end as usize).min(bytes.len())) else { return };
    let good = if own == 132 {
        frames::sctp_checksum(packet) == Check::Good
    } else {
        let pseudo = frames::pseudo(bytes, layer.offset.into(), layer.version, own, packet.len());
        pseudo.plus(checksum::sum(packet)).is_valid()
    };
    if !good {
        core.violate("checksum-seed", format!("the checksum of protocol {own} at {start} is wrong on the wire"));
    }
}

/// The headers of a tunnel must fit the frame that they go out with.
fn check_tunnel(core: &mut Core, bytes: &[u8], outer: NetworkLayer, inner: NetworkLayer) {
    let udp = usize::from(outer.upper);
    let (network, upper) = (usize::from(inner.offset), usize::from(inner.upper));
    let len = bytes.len() - udp;
    let mut wrong = Vec::new();
    if usize::from(get16(bytes, udp + 4)) != len {
        wrong.push("the outer UDP length");
    }
    if get16(bytes, udp + 6) != 0 {
        let pseudo = frames::pseudo(bytes, outer.offset.into(), outer.version, 17, len);
        if !pseudo.plus(checksum::sum(&bytes[udp..])).is_valid() {
            wrong.push("the outer UDP checksum");
        }
    }
    if inner.end as usize != bytes.len() {
        wrong.push("the inner IP length");
    }
    if inner.version == 4 && !checksum::sum(bytes.get(network..upper).unwrap_or(&[])).is_valid() {
        wrong.push("the inner IP checksum");
    }
    if !wrong.is_empty() {
        core.violate("segment-template", format!("{} does not fit the frame", wrong.join(", ")));
    }
}
