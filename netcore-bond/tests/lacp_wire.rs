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
    assert_eq!(pdus[0].actor().system(), "4a:eb:40:fe:81:87".parse().unwrap());
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
