//! What the fuzz targets do, as functions: libFuzzer calls them with its inputs, `cargo test` with the committed seeds.

mod lacp;
mod trains;
mod wire;

pub use lacp::{lacp, lacpdu};
pub use trains::gro_gso_identity;
pub use wire::{wire, wire_control, wire_tunnels};

use netcore::dissect::{Layer, TunnelPorts, dissect as dissect_frame, dissect_ip, layers};
use netcore::offload::{ReceiveOffload, Segmenter};
use netcore::{Burst, Features, FlowKey, Instant, PacketPool, PoolConfig, ReceiveChecksum};
use netcore_drivers::pcap::CaptureReader;
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter, UdpGro};

/// All targets, by name.
pub const TARGETS: [(&str, fn(&[u8])); 9] = [
    ("capture_reader", capture_reader),
    ("dissect", dissect),
    ("wire", wire),
    ("wire_control", wire_control),
    ("wire_tunnels", wire_tunnels),
    ("gro_gso_identity", gro_gso_identity),
    ("gro_any_bytes", gro_any_bytes),
    ("lacp", lacp),
    ("lacpdu", lacpdu),
];

/// Any file is read to its end or to its first damage, and no record is longer than the file.
pub fn capture_reader(data: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(data) else { return };
    while let Some(record) = reader.next().expect("reading from memory does not fail") {
        assert!(record.bytes.len() <= data.len());
    }
    if let Some(damage) = reader.damage() {
        assert!(damage.offset <= data.len() as u64);
    }
}

/// Any frame has a dissection whose offsets are inside it; the layers are in order and say the same.
pub fn dissect(data: &[u8]) {
    let ports = TunnelPorts::default().with_vxlan(8472);
    for d in [dissect_frame(data, &ports), dissect_ip(data, &ports)] {
        assert!(d.payload as usize <= data.len());
        for network in [d.outer, d.inner].into_iter().flatten() {
            assert!(network.end as usize <= data.len() && usize::from(network.upper) <= data.len());
        }
        let _ = (d.outer_checksums(data, data.len()), d.inner_checksums(data, data.len()), FlowKey::of(data, &d));
    }
    let (mut last, mut tunnels) = (0, 0);
    for layer in layers(data, &ports) {
        let Ok(layer) = layer else { break };
        let offset = match layer {
            Layer::Link(link) => link.offset,
            Layer::Network(network) => network.offset,
            Layer::Tunnel(tunnel) => {
                tunnels += 1;
                tunnel.offset
            }
            Layer::Transport(transport) => transport.offset,
            _ => last,
        };
        assert!(offset >= last);
        last = offset;
    }
    let d = dissect_frame(data, &ports);
    assert_eq!(d.depth, tunnels);
}

/// Frames of any bytes, each led by a length, go through receive offload and segmentation: as many bytes come out as the
/// counters say, and no packet is lost. Once as the kernel does by default, once with everything that can be asked for and a device
/// that vouches for all checksums.
pub fn gro_any_bytes(data: &[u8]) {
    merge_any_bytes(data, GroConfig::default(), false);
    let mut all = GroConfig::default();
    all.udp = UdpGro::All;
    all.max_tunnels = 3;
    all.max_size = GroConfig::MAX_SIZE;
    all.flow_counters = 4;
    merge_any_bytes(data, all, true);
}

fn merge_any_bytes(data: &[u8], config: GroConfig, vouched: bool) {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).expect("a small pool");
    let mut cache = pool.cache();
    let mut gro = Gro::new(config).expect("a valid configuration");
    let mut burst = Burst::new();
    let mut rest = data;
    while let [a, b, after @ ..] = rest {
        let n = usize::from(u16::from_be_bytes([*a & 7, *b])).min(after.len());
        let (frame, after) = after.split_at(n);
        rest = after;
        if burst.len() < 48 {
            burst.extend(cache.copy_from_slice(frame).map(|mut packet| {
                if vouched {
                    packet.set_receive_checksum(ReceiveChecksum::Unnecessary { levels: 4 });
                }
                packet
            }));
        }
    }
    let (frames, mut out, mut wire) = (burst.len(), Burst::new(), Burst::new());
    gro.receive(&mut burst, &mut out, &mut cache, Instant::ZERO);
    gro.end_poll(false, &mut out, &mut cache, Instant::ZERO);
    let mut segmenter = SoftwareSegmenter::new();
    while let Some(packet) = out.pop() {
        segmenter.segment(packet, Features::empty(), &mut cache, &mut wire).expect("what GRO merges, GSO cuts");
    }
    assert_eq!(wire.len(), frames);
}
