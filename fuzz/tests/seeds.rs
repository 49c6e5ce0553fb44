//! The committed seeds, replayed through every target; and the program that made them.

use std::path::PathBuf;

fn seeds(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

#[test]
fn seeds_pass() {
    for (name, target) in netcore_fuzz::TARGETS {
        let mut count = 0;
        for entry in std::fs::read_dir(seeds(name)).unwrap() {
            target(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{name} has no seeds");
    }
}

/// A seed is what the program makes: `NETCORE_WRITE_SEEDS=1 cargo test` writes them anew.
#[test]
fn seeds_are_what_the_program_makes() {
    for (target, name, bytes) in made() {
        let path = seeds(target).join(name);
        if std::env::var_os("NETCORE_WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(seeds(target)).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
    }
}

fn made() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    use netcore::Instant;
    use netcore_drivers::pcap::{CaptureWriter, Format, LinkType, Precision};
    // A VXLAN frame: Ethernet, IPv4, UDP, VXLAN, Ethernet, IPv4, TCP with timestamps.
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 106, 0, 1, 0, 0, 64, 17, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
    frame.extend([0xc0, 0, 0x12, 0xb5, 0, 86, 0, 0, 8, 0, 0, 0, 0, 0, 5, 0]);
    frame.extend([2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 8, 0]);
    frame.extend([0x45, 0, 0, 56, 0, 1, 0x40, 0, 64, 6, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2]);
    frame.extend([0xac, 0x9e, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend([1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 2, 3, 4]);
    let mut v6 = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 36, 0, 64];
    v6.extend([0; 32]);
    v6.extend([
        44, 0, 1, 4, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 1, 17, 0, 1, 4, 0, 0, 0, 0, 0, 7, 0, 7, 0, 12, 0, 0, 1, 2, 3, 4,
    ]);
    let capture = |format| {
        let mut writer = CaptureWriter::new(Vec::new(), format, LinkType::ETHERNET).unwrap();
        for i in 0..3u64 {
            writer.write(Some(Instant::from_nanos(1_700_000_000_000_000_000 + i)), &[&frame], frame.len()).unwrap();
        }
        writer.finish().unwrap()
    };
    let train = |tunnel: u8, ops: &[(u8, u8, u8)]| {
        ops.iter().flat_map(|&(len, flags, fault)| [tunnel, len, flags, fault]).collect::<Vec<u8>>()
    };
    let run = [(200, 0, 0), (200, 0, 0), (200, 0, 0), (100, 8, 0)];
    let faults = [(200, 0, 0), (200, 0, 6), (200, 0, 1), (200, 0x80, 0), (200, 0, 2), (0, 0, 0), (200, 1, 3)];
    let mut any = Vec::new();
    for f in [&frame, &v6, &frame] {
        any.extend((f.len() as u16).to_be_bytes());
        any.extend(f);
    }
    // Option class 0x0100 type 1, then a critical option without data, around IPv4.
    let mut geneve = vec![3, 0x40, 8, 0, 0, 0, 77, 0, 1, 0, 1, 1, 1, 2, 3, 4, 1, 1, 0x80, 0];
    geneve.extend(&frame[64..]);
    let mut gre = vec![0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9];
    gre.extend(&frame[64..]);
    let pptp = vec![0x30, 0x81, 0x88, 0x0b, 0, 4, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xff, 3, 0, 0x21];
    let arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2, 0, 0];
    let mut solicitation = vec![135, 0, 0, 0, 0, 0, 0, 0, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    solicitation.extend([1, 1, 2, 0, 0, 0, 0, 1, 14, 1, 1, 2, 3, 4, 5, 6]);
    let unreachable = [&[3, 4, 0, 0, 0, 0, 5, 120], &frame[64..92]].concat();
    // An IPv4 packet of this protocol in an Ethernet frame.
    let inside = |protocol: u8, payload: &[u8]| {
        let mut outer = frame[..34].to_vec();
        outer[16..18].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        outer[23] = protocol;
        [&outer, payload].concat()
    };
    let lacpdu = {
        use netcore::MacAddress;
        use netcore::wire::{LacpState, Lacpdu, PortInformation};
        let [actor, partner] = [(9, 0x3d), (0, 0x3f)].map(|(system, state)| {
            let (system, state) = (MacAddress([2, 0, 0, 0, system, 0]), LacpState::from_bits_retain(state));
            PortInformation::new(65535, system, 9, 255, 1, state)
        });
        Lacpdu::new(actor, partner, 0).frame(MacAddress([2; 6]))[14..].to_vec()
    };
    let marker =
        netcore::wire::Marker::new(netcore::MacAddress([2; 6]), 1, 7).frame(netcore::MacAddress([2; 6]))[14..].to_vec();
    vec![
        ("capture_reader", "pcap_ns", capture(Format::Pcap(Precision::Nanos))),
        ("capture_reader", "pcap_us", capture(Format::Pcap(Precision::Micros))),
        ("capture_reader", "pcapng", capture(Format::Pcapng)),
        ("dissect", "vxlan", frame.clone()),
        ("dissect", "ipv6_extensions", v6.clone()),
        ("dissect", "geneve", inside(17, &[&[0xc0, 0, 0x17, 0xc1, 0, 0, 0, 0], &geneve[..]].concat())),
        ("dissect", "gre", inside(47, &gre)),
        ("dissect", "ip_in_ip", inside(4, &frame[64..])),
        ("wire", "ipv4_tcp", frame[64..].to_vec()),
        ("wire", "ipv6", v6[18..].to_vec()),
        ("wire", "tcp", frame[84..].to_vec()),
        ("wire_control", "arp", arp),
        ("wire_control", "icmp_unreachable", unreachable),
        ("wire_control", "neighbour_solicitation", solicitation),
        ("wire_control", "snap", vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 0]),
        ("wire_control", "spanning_tree", vec![0x42, 0x42, 3, 0, 0, 0, 0]),
        ("wire_tunnels", "geneve_options", geneve),
        ("wire_tunnels", "gre_all", gre),
        ("wire_tunnels", "gre_pptp", pptp),
        ("wire_tunnels", "vxlan", frame[42..].to_vec()),
        ("gro_gso_identity", "plain", train(0, &run)),
        ("gro_gso_identity", "vxlan", train(0x08, &run)),
        ("gro_gso_identity", "vxlan_checksum_v6", train(0x39, &run)),
        ("gro_gso_identity", "faults", train(0x08, &faults)),
        ("gro_any_bytes", "frames", any),
        ("lacp", "agree", vec![0x3c, 0, 10, 0, 150, 0, 50, 0, 250]),
        ("lacp", "event_driven_silence", vec![0x03, 0, 0, 0, 150, 0, 1, 1, 255, 1, 255, 0, 0, 0, 150, 9, 2, 0, 0]),
        (
            "lacp",
            "flaps_and_damage",
            vec![0x0f, 0, 150, 5, 2, 0, 50, 5, 6, 4, 17, 0, 10, 3, 0, 0, 200, 7, 4, 0, 1, 6, 1, 0, 9],
        ),
        ("lacp", "forged", [&[0x30, 0, 5, 118, 2][..], &lacpdu, &[0, 200]].concat()),
        ("lacpdu", "lacpdu", lacpdu.clone()),
        (
            "lacpdu",
            "version_2",
            [&lacpdu[..1], &[2], &lacpdu[2..58], &[4, 6, 0, 0x80, 0xc2, 1], &lacpdu[64..]].concat(),
        ),
        ("lacpdu", "marker", marker),
    ]
}
