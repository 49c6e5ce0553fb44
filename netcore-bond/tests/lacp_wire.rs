//! LACPDUs that real systems sent are read as what they are, and written again byte for byte.

use netcore::wire::{EtherType, EthernetHeader, LacpState, Lacpdu, Marker, PortInformation, SlowProtocol};
use netcore::{Instant, MacAddress};
use netcore_drivers::pcap::CaptureReader;
use netcore_test::shared;

fn frames(path: &str) -> Option<Vec<(Instant, Vec<u8>)>> {
    let bytes = std::fs::read(shared(path)?).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push((record.timestamp.unwrap(), record.bytes.to_vec()));
    }
    Some(all)
}

#[test]
fn lacpdus_of_real_systems_are_read_and_written_byte_for_byte() {
    let files = [
        ("captures/lacp/lacp_slow_nopartner.pcap", 9),
        ("captures/lacp/lacp_slow.pcap", 8),
        ("captures/lacp/lacp_fast.pcap", 26),
        ("exams/pcaps/lacp61_fast_meets_slow.pcap", 46),
        ("exams/pcaps/lacp61_active_meets_passive.pcap", 21),
        ("exams/pcaps/lacp_linux_port1.pcap", 10),
        ("exams/pcaps/lacp_linux_port2.pcap", 8),
    ];
    for (file, lacpdus) in files {
        let Some(frames) = frames(file) else { return };
        let mut seen = 0;
        for (_, frame) in &frames {
            let (ethernet, payload) = EthernetHeader::parse(frame).unwrap();
            if ethernet.ethertype() != EtherType::SLOW {
                continue;
            }
            let (pdu, rest) = Lacpdu::parse(payload).unwrap();
            assert!(rest.is_empty() && ethernet.destination() == SlowProtocol::ADDRESS);
            let again = Lacpdu::new(*pdu.actor(), *pdu.partner(), pdu.collector_max_delay());
            assert_eq!(again.frame(ethernet.source()).as_slice(), frame.as_slice(), "{file}");
            seen += 1;
        }
        assert_eq!(seen, lacpdus, "{file}");
    }
}

#[test]
fn states_in_a_linux_capture_are_those_listed() {
    let Some(frames) = frames("exams/pcaps/lacp_linux_port1.pcap") else { return };
    let pdus: Vec<_> = frames.iter().map(|(_, f)| *Lacpdu::parse(&f[14..]).unwrap().0).collect();
    let states = |of: fn(&Lacpdu) -> &PortInformation| pdus.iter().map(|p| of(p).state().bits()).collect::<Vec<_>>();
    assert_eq!(states(Lacpdu::actor), [0xc5, 0xcd, 0xc5, 0x0d, 0x3d, 0x3d, 0x3d, 0x3d, 0x3d, 0x3d]);
    assert_eq!(states(Lacpdu::partner), [0x01, 0x01, 0x01, 0xc5, 0x0d, 0x3d, 0x3d, 0x3d, 0x3d, 0x3d]);
    assert!(pdus.iter().all(|p| (p.actor().key(), p.actor().port_priority(), p.actor().port()) == (33, 255, 1)));
    let systems: Vec<_> = pdus.iter().map(|p| p.actor().system().to_string()).collect();
    let (here, there) = ("4a:eb:40:fe:81:87", "1a:bc:e6:21:30:3a");
    assert_eq!(systems, [here, here, there, here, there, here, here, there, here, there]);
    assert!(pdus.iter().all(|p| p.actor().system_priority() == 65535));
    let unknown =
        |p: &Lacpdu| (p.partner().system(), p.partner().key(), p.partner().port()) == (MacAddress([0; 6]), 1, 1);
    assert_eq!(
        pdus.iter().map(unknown).collect::<Vec<_>>(),
        [true, true, true, false, false, false, false, false, false, false]
    );
    // Version and length of both information fields, as they lie in the frame.
    assert!(frames.iter().all(|(_, f)| f.len() == 124 && f[15..19] == [1, 1, 20, 0xff]));
    let gap = |a: usize, b: usize| (frames[b - 1].0.nanos_since(frames[a - 1].0) + 50_000_000) / 100_000_000;
    assert_eq!((gap(7, 9), gap(8, 10)), (301, 301), "tenths of a second");
}

#[test]
fn the_second_port_of_a_bond_sends_with_its_own_address_and_the_systems_identifier() {
    let Some(frames) = frames("exams/pcaps/lacp_linux_port2.pcap") else { return };
    let mut sources = std::collections::BTreeSet::new();
    for (_, frame) in &frames {
        let (ethernet, payload) = EthernetHeader::parse(frame).unwrap();
        let actor = *Lacpdu::parse(payload).unwrap().0.actor();
        assert_ne!(ethernet.source(), actor.system());
        assert_eq!(actor.port(), 2);
        sources.insert(ethernet.source().to_string());
    }
    assert_eq!(sources.into_iter().collect::<Vec<_>>(), ["02:93:21:72:c4:1c", "9e:45:87:6a:81:0d"]);
    let times: Vec<u64> = frames.iter().map(|(at, _)| at.nanos_since(frames[0].0) / 100_000_000).collect();
    let quiet = times.windows(2).position(|pair| pair[1] - pair[0] > 500).unwrap();
    assert_eq!((times[quiet], times[quiet + 1]), (72, 602), "tenths of a second");
    assert_eq!(Lacpdu::parse(&frames[6].1[14..]).unwrap().0.actor().state().bits(), 0x3d);
}

#[test]
fn each_side_of_a_linux_link_sends_at_the_rate_that_the_other_asks_for() {
    let Some(frames) = frames("exams/pcaps/lacp61_fast_meets_slow.pcap") else { return };
    let of = |system: &str| -> Vec<(u64, u8)> {
        let all = frames.iter().filter_map(|(at, frame)| {
            let (ethernet, payload) = EthernetHeader::parse(frame).ok()?;
            let actor = *Lacpdu::parse(payload).ok().filter(|_| ethernet.ethertype() == EtherType::SLOW)?.0.actor();
            let state = actor.state().bits();
            (actor.system().to_string() == system).then_some((at.nanos_since(frames[0].0) / 1_000_000, state))
        });
        all.collect()
    };
    let states = |all: &[(u64, u8)]| {
        let mut states: Vec<u8> = all.iter().map(|(_, state)| *state).collect();
        states.dedup();
        states
    };
    let (short, long) = (of("02:00:5e:0a:00:01"), of("02:00:5e:0b:00:01"));
    assert_eq!((states(&short), states(&long)), (vec![0xc7, 0x07, 0x0f, 0x3f], vec![0xc5, 0x05, 0x3d]));
    assert!(long.windows(2).all(|pair| pair[1].0 - pair[0].0 < 3000), "asked for once a second");
    assert_eq!(short.len(), 5);
    let last = short[4].0 - short[3].0;
    assert!((28_000..=30_500).contains(&last), "asked for every 30 s: {last} ms");
}

#[test]
fn a_frame_of_another_slow_protocol_is_neither_lacpdu_nor_marker() {
    let Some(frames) = frames("exams/pcaps/slow_ossp.pcap") else { return };
    let payload = &frames[0].1[14..];
    assert_eq!((frames.len(), frames[0].1.len()), (1, 66));
    assert_eq!(SlowProtocol::of(payload), Ok(SlowProtocol::OrganizationSpecific));
    assert!(Lacpdu::parse(payload).is_err() && Marker::parse(payload).is_err());
}

#[test]
fn the_exam_frame_has_the_exam_fields() {
    let Some(file) = shared("exams/lacp.json") else { return };
    let exam: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for (bit, name) in LacpState::all().iter().zip([
        "activity",
        "timeout_short",
        "aggregation",
        "synchronization",
        "collecting",
        "distributing",
        "defaulted",
        "expired",
    ]) {
        assert_eq!(u64::from(bit.bits()), exam["state_bits"][name].as_u64().unwrap(), "{name}");
    }
    for vector in exam["wire_vectors"].as_array().unwrap() {
        let hex = vector["frame_hex"].as_str().unwrap();
        let frame: Vec<u8> =
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
        let info = |which: &str| {
            let v = &vector["fields"][which];
            let n = |name: &str| u16::try_from(v[name].as_u64().unwrap()).unwrap();
            let state = u8::from_str_radix(&v["state"].as_str().unwrap()[2..], 16).unwrap();
            let system: MacAddress = v["system"].as_str().unwrap().parse().unwrap();
            let state = LacpState::from_bits_retain(state);
            PortInformation::new(n("sys_prio"), system, n("key"), n("port_prio"), n("port"), state)
        };
        let delay = u16::try_from(vector["fields"]["collector_max_delay"].as_u64().unwrap()).unwrap();
        let (ethernet, payload) = EthernetHeader::parse(&frame).unwrap();
        let (pdu, _) = Lacpdu::parse(payload).unwrap();
        assert_eq!((*pdu.actor(), *pdu.partner(), pdu.collector_max_delay()), (info("actor"), info("partner"), delay));
        assert_eq!(Lacpdu::new(info("actor"), info("partner"), delay).frame(ethernet.source()).as_slice(), frame);
    }
}
