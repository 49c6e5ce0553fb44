use super::*;
use netcore::Instant;
use proptest::prelude::*;

type Owned = (Option<u64>, Vec<u8>, u32, LinkType, u32);

fn read_all(bytes: &[u8]) -> (Vec<Owned>, Option<Damage>) {
    let Ok(mut reader) = CaptureReader::new(bytes) else { return (Vec::new(), None) };
    let mut records = Vec::new();
    while let Some(r) = reader.next().unwrap() {
        records.push((r.timestamp.map(Instant::as_nanos), r.bytes.to_vec(), r.original_len, r.link_type, r.interface));
    }
    (records, reader.damage().cloned())
}

fn shared(name: &str) -> Option<Vec<u8>> {
    netcore_test::shared(&format!("exams/pcaps/{name}")).map(|path| std::fs::read(path).unwrap())
}

#[test]
fn big_endian_nanoseconds() {
    let Some(bytes) = shared("nanosecs_be.pcap") else { return };
    let (records, damage) = read_all(&bytes);
    assert_eq!((records.len(), damage), (10, None));
    assert_eq!(records[0].0, Some(1_766_361_926_167_647_291));
}

#[test]
fn big_endian_pcapng_with_simple_packets_that_have_no_time() {
    let Some(bytes) = shared("pcapng_test016_be.pcapng") else { return };
    let (records, damage) = read_all(&bytes);
    assert_eq!(damage, None);
    assert_eq!(records.iter().map(|r| r.1.len()).collect::<Vec<_>>(), [314, 342, 314, 342]);
    assert_eq!(records.iter().filter(|r| r.0.is_none()).count(), 2);
}

#[test]
fn the_format_is_told_by_content_not_by_name() {
    let Some(bytes) = shared("ipv6_options.pcap") else { return };
    assert!(CaptureReader::new(bytes.as_slice()).unwrap().is_pcapng());
    assert_eq!(read_all(&bytes).0.len(), 6);
}

#[test]
fn link_type_without_its_flag_bits_and_a_length_beyond_the_capture() {
    let Some(bytes) = shared("trunc_tcp.pcap") else { return };
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.link_type, record.bytes.len(), record.original_len), (LinkType::ETHERNET, 64, 262_144));
    assert!(record.is_cut());
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn counts_of_the_public_captures() {
    let counts = [
        ("fuzz_http.pcap", 131),
        ("vlan_pcp_dei.pcapng", 9),
        ("tcp_retransmit_fast.pcap", 39),
        ("gre_various.pcap", 100),
        ("lacp_linux_port1.pcap", 10),
        ("vxlan_http.pcap", 12),
        ("ipv6_fragments.pcap", 36),
        ("bond_hash_frames.pcap", 488),
        ("geneve_bulk_v4_zerocsum.pcap", 894),
        ("tcp_reorder_rcv.pcap", 903),
        ("ipv6_jumbogram.pcap", 1),
        ("bigtcp_v4_vxlan_v4.pcap", 1),
    ];
    for (name, count) in counts {
        let Some(bytes) = shared(name) else { return };
        let (records, damage) = read_all(&bytes);
        assert_eq!((records.len(), damage), (count, None), "{name}");
    }
}

fn sample(format: Format, packets: usize) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), format, LinkType::ETHERNET).unwrap();
    for i in 0..packets {
        let time = Some(Instant::from_nanos(1_700_000_000_123_456_000 + i as u64 * 1000));
        writer.write(time, &[&[i as u8; 61]], 61).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_cut_file_gives_what_came_before_and_says_where_it_broke() {
    for format in [Format::Pcap(Precision::Nanos), Format::Pcapng] {
        let whole = sample(format, 3);
        let last = whole.len() - 10;
        let (records, damage) = read_all(&whole[..last]);
        assert_eq!(records.len(), 2);
        let damage = damage.unwrap();
        assert!(damage.offset > 100 && damage.offset < last as u64, "{damage}");
    }
}

#[test]
fn a_hostile_length_is_damage_and_takes_no_memory() {
    let mut bytes = sample(Format::Pcap(Precision::Micros), 1);
    bytes[32..36].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let (records, damage) = read_all(&bytes);
    assert!(records.is_empty());
    assert!(damage.unwrap().what.contains("16777216"));
    bytes[32..36].copy_from_slice(&(MAX_CAPTURED - 1).to_le_bytes());
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    assert!(reader.next().unwrap().is_none() && reader.damage().is_some());
}

#[test]
fn other_files_are_refused_with_their_first_bytes() {
    for bytes in [&b""[..], b"abc", b"hello world", b"\xd4\xc3\xb2\xa1short"] {
        assert!(CaptureReader::new(bytes).is_err());
    }
    let error = CaptureReader::new(&b"hello"[..]).err().unwrap().to_string();
    assert!(error.contains("68, 65, 6c, 6c"), "{error}");
}

#[test]
fn binary_resolution_and_offset_of_pcapng_times() {
    let mut bytes = sample(Format::Pcapng, 0);
    // Replace the interface's options: resolution 2^-10, offset 100 s.
    let start = bytes.len() - 32;
    bytes.truncate(start);
    let mut body = vec![1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0x8a, 0, 0, 0, 14, 0, 8, 0];
    body.extend(100u64.to_le_bytes());
    body.extend([0, 0, 0, 0]);
    let len = (12 + body.len() as u32).to_le_bytes();
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(len);
    bytes.extend(&body);
    bytes.extend(len);
    let mut packet = vec![0, 0, 0, 0, 0, 0, 0, 0];
    packet.extend(512u32.to_le_bytes());
    packet.extend([1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
    let len = (12 + packet.len() as u32).to_le_bytes();
    bytes.extend([6, 0, 0, 0]);
    bytes.extend(len);
    bytes.extend(&packet);
    bytes.extend(len);
    let (records, damage) = read_all(&bytes);
    assert_eq!(damage, None);
    assert_eq!(records[0].0, Some(100_500_000_000));
    assert_eq!(records[0].1, [7]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        packets in prop::collection::vec((0u64..4_000_000_000_000_000_000, prop::collection::vec(any::<u8>(), 0..200), 0u32..100), 0..20),
        format in prop::sample::select(vec![Format::Pcap(Precision::Nanos), Format::Pcap(Precision::Micros), Format::Pcapng]),
    ) {
        let mut writer = CaptureWriter::new(Vec::new(), format, LinkType::RAW).unwrap();
        let mut expected = Vec::new();
        for (time, bytes, beyond) in packets {
            let time = match format { Format::Pcap(Precision::Micros) => time / 1000 * 1000, _ => time };
            let original = bytes.len() as u32 + beyond;
            let (a, b) = bytes.split_at(bytes.len() / 3);
            writer.write(Some(Instant::from_nanos(time)), &[a, b], original as usize).unwrap();
            expected.push((Some(time), bytes, original, LinkType::RAW, 0));
        }
        let file = writer.finish().unwrap();
        prop_assert_eq!(read_all(&file), (expected, None));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), magic in 0usize..5) {
        let magics: [&[u8]; 5] = [&[0xd4, 0xc3, 0xb2, 0xa1], &[0xa1, 0xb2, 0x3c, 0x4d], &[0x0a, 0x0d, 0x0d, 0x0a], &[0x34, 0xcd, 0xb2, 0xa1], &[]];
        let mut file = magics[magic].to_vec();
        file.extend(bytes);
        let _ = read_all(&file);
    }

    #[test]
    fn damage_anywhere_keeps_the_records_in_front_of_it(at in 0usize..400, value in any::<u8>(), ng in any::<bool>()) {
        let mut file = sample(if ng { Format::Pcapng } else { Format::Pcap(Precision::Nanos) }, 6);
        let at = at % file.len();
        let before = read_all(&file).0;
        file[at] = value;
        let after = read_all(&file).0;
        let record = (file.len() - 60) / 6;
        let untouched = (at.saturating_sub(60 + record)) / (record + 1);
        for i in 0..untouched.min(after.len()) {
            prop_assert_eq!(&before[i].1, &after[i].1);
        }
    }
}

/// A pcapng file has an interface per link type; simple packet blocks are of the first one, so they may start a section.
#[test]
fn link_types_can_be_mixed_in_pcapng_and_not_in_pcap() {
    let records: [(Option<u64>, LinkType, usize, usize); 8] = [
        (Some(1), LinkType::ETHERNET, 60, 60),
        (Some(2), LinkType::RAW, 40, 1500),
        (Some(3), LinkType::ETHERNET, 61, 61),
        (None, LinkType::ETHERNET, 62, 62),
        (None, LinkType::RAW, 41, 41),
        (Some(4), LinkType::LINUX_SLL, 70, 70),
        (None, LinkType::RAW, 64, 1500),
        (Some(5), LinkType::RAW, 1400, 1400),
    ];
    let mut writer = CaptureWriter::new(Vec::new(), Format::Pcapng, LinkType::ETHERNET).unwrap();
    for (at, link_type, captured, original) in records {
        writer.write_as(link_type, at.map(Instant::from_nanos), &[&vec![7; captured]], original).unwrap();
    }
    let file = writer.finish().unwrap();
    let (read, damage) = read_all(&file);
    assert_eq!(damage, None);
    let seen: Vec<_> = read.iter().map(|r| (r.0, r.3, r.1.len(), r.2 as usize)).collect();
    assert_eq!(seen, records);
    let sections = file.windows(4).filter(|word| *word == 0x0a0d_0d0au32.to_le_bytes()).count();
    assert_eq!(sections, 3, "one for each simple packet block that is not of its section's first interface");
    let mut writer = CaptureWriter::new(Vec::new(), Format::Pcap(Precision::Nanos), LinkType::ETHERNET).unwrap();
    let error = writer.write_as(LinkType::RAW, None, &[&[0x45]], 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("EN10MB"), "{error}");
    assert_eq!(writer.records(), 0);
}

#[test]
fn an_empty_file_is_called_empty() {
    let error = CaptureReader::new(&b""[..]).err().unwrap();
    assert!(matches!(error, CaptureError::Empty));
    assert!(error.to_string().contains("empty"), "{error}");
}
