//! The exchange with a real Linux bond (6.12, in a guest) that `lacp_linux_guest` recorded: what this system says to what
//! Linux says is what it said then.

use netcore::wire::Lacpdu;
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{Lacp, LacpConfig, LacpRate, PortConfig};
use netcore_drivers::pcap::CaptureReader;
use std::time::Duration;

#[test]
fn what_linux_said_gets_the_answers_that_brought_it_into_sync() {
    let bytes = include_bytes!("../testdata/linux_bond.pcap");
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        let from_linux = record.bytes[6..11] == [0x52, 0x54, 0, 0x12, 0x34];
        records.push((record.timestamp.unwrap(), from_linux, record.bytes.to_vec()));
    }

    let ours = MacAddress([2, 0, 0, 0, 0, 1]);
    let mut lacp = Lacp::new(LacpConfig { lacp_rate: LacpRate::Fast, ..LacpConfig::new(ours) }).unwrap();
    for port in 1..=2 {
        let address = MacAddress([2, 0, 0, 0, 1, port]);
        lacp.add_port(&PortConfig::new(address), LinkState::up(1000), Instant::ZERO).unwrap();
    }
    lacp.open(Instant::ZERO);
    // In the order of the file: a tick that was due in the same millisecond as a frame came may have run after it.
    let describe = |frame: &[u8]| {
        let pdu = *Lacpdu::parse(&frame[14..]).unwrap().0;
        (pdu.actor().port(), pdu.actor().state(), pdu.partner().state(), pdu.partner().system())
    };
    let mut said = 0;
    for (i, (at, from_linux, frame)) in records.iter().enumerate() {
        let ticks_until = if *from_linux { *at - Duration::from_millis(2) } else { *at };
        while let Some(tick) = lacp.poll_at().filter(|tick| *tick <= ticks_until) {
            lacp.poll(tick);
        }
        if *from_linux {
            lacp.handle(u16::from(frame[11] - 0x55), frame, *at).unwrap();
            continue;
        }
        let Some(answer) = lacp.next_frame() else {
            panic!("record {i} at {at}: nothing instead of {:?}", describe(frame))
        };
        assert_eq!(describe(&answer.bytes), describe(frame), "record {i} at {at}");
        assert_eq!(answer.bytes.as_slice(), frame);
        said += 1;
    }
    assert!(said > 8 && records.len() - said > 8 && lacp.next_frame().is_none());
    for port in lacp.ports() {
        assert_eq!((port.actor().state().bits(), port.partner().state().bits()), (0x3f, 0x3f));
        assert!(lacp.distributes(port));
    }
}
