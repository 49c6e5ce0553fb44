//! Frames in and out: markers, damage, counters, what other tools read in them; and refused settings.

use netcore::wire::{Lacpdu, Marker, WireError};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{
    AdSelect, FrameKind, Handled, Lacp, LacpConfig, LacpError, LacpEvent, LacpRate, PortConfig, Timing,
};
use netcore_drivers::pcap::{CaptureWriter, Format, LinkType, Precision};
use std::process::Command;
use std::time::Duration;

const US: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PORT: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

fn lacp() -> Lacp {
    let mut lacp = Lacp::new(LacpConfig { timing: Timing::EventDriven, ..LacpConfig::new(US) }).unwrap();
    lacp.add_port(&PortConfig::new(PORT), LinkState::up(1000), Instant::ZERO).unwrap();
    lacp.open(Instant::ZERO);
    lacp
}

fn drain(lacp: &mut Lacp) -> Vec<(FrameKind, Vec<u8>)> {
    std::iter::from_fn(|| lacp.next_frame()).map(|f| (f.kind, f.bytes.to_vec())).collect()
}

#[test]
fn a_marker_is_answered_at_once_byte_for_byte_but_for_its_type() {
    let mut lacp = lacp();
    drain(&mut lacp);
    let mut request = Marker::new(PEER, 5, 77).frame(PEER);
    request[60] = 0xa5;
    assert_eq!(lacp.handle(1, &request, Instant::ZERO), Ok(Handled::Marker));
    let [(FrameKind::MarkerResponse, answer)] = &drain(&mut lacp)[..] else { panic!("one answer") };
    let mut wanted = request;
    wanted[6..12].copy_from_slice(&PORT.0);
    wanted[16] = 2;
    assert_eq!(answer, &wanted);
    let counters = lacp.statistics();
    assert_eq!((counters.marker_rx, counters.marker_resp_tx), (1, 1));
}

#[test]
fn a_flood_of_markers_is_answered_eight_at_a_time_and_the_rest_counted() {
    let mut lacp = lacp();
    for n in 0..100 {
        lacp.handle(1, &Marker::new(PEER, 5, n).frame(PEER), Instant::ZERO).unwrap();
    }
    let answers = drain(&mut lacp).into_iter().filter(|f| f.0 == FrameKind::MarkerResponse).count();
    assert_eq!((answers, lacp.statistics().marker_resp_dropped), (8, 92));
}

#[test]
fn a_marker_that_comes_back_answered_is_told_and_a_strangers_is_not() {
    let mut lacp = lacp();
    drain(&mut lacp);
    let number = lacp.send_marker(1).unwrap();
    let [(FrameKind::Marker, request)] = &drain(&mut lacp)[..] else { panic!("one request") };
    let (marker, _) = Marker::parse(&request[14..]).unwrap();
    assert_eq!((marker.requester_system(), marker.requester_port(), marker.transaction()), (US, 1, number));
    while lacp.next_event().is_some() {}
    assert_eq!(
        lacp.handle(1, &Marker::new(PEER, 1, number).response().frame(PEER), Instant::ZERO),
        Ok(Handled::MarkerResponse)
    );
    assert_eq!(lacp.next_event(), None);
    lacp.handle(1, &marker.response().frame(PEER), Instant::ZERO).unwrap();
    assert_eq!(lacp.next_event(), Some(LacpEvent::MarkerResponse { port: 1, transaction: number }));
    assert_eq!(lacp.next_event(), None);
    assert_ne!(lacp.send_marker(1).unwrap(), number);
    for _ in 0..7 {
        lacp.send_marker(1).unwrap();
    }
    assert_eq!(lacp.send_marker(1), Err(LacpError::MarkersWaiting { port: 1 }));
}

#[test]
fn only_lacp_and_marker_are_taken_and_damage_is_counted() {
    let mut lacp = lacp();
    let good = Lacpdu::new(lacp.ports()[0].partner(), lacp.ports()[0].actor(), 0).frame(PEER);
    let mut other = good;
    other[14] = 10;
    assert_eq!(lacp.handle(1, &other, Instant::ZERO), Ok(Handled::Pass));
    assert_eq!(lacp.handle(1, &[0; 60], Instant::ZERO), Ok(Handled::Pass));
    assert_eq!(lacp.handle(1, &good[..13], Instant::ZERO), Ok(Handled::Pass));
    assert_eq!(lacp.handle(1, &good[..14], Instant::ZERO), Ok(Handled::Pass));
    let short = lacp.handle(1, &good[..60], Instant::ZERO);
    assert_eq!(short, Err(LacpError::Wire(WireError::Truncated { header: "LACPDU", len: 46, needed: 110 })));
    assert_eq!(short.unwrap_err().to_string(), "received LACPDU: 46 bytes, 110 are needed");
    let mut marker = Marker::new(PEER, 1, 1).frame(PEER);
    marker[16] = 9;
    assert!(matches!(lacp.handle(1, &marker, Instant::ZERO), Err(LacpError::Wire(_))));
    let mut next_version = good;
    next_version[15] = 2;
    assert_eq!(lacp.handle(1, &next_version, Instant::ZERO), Ok(Handled::Lacpdu));
    assert_eq!(lacp.handle(9, &good, Instant::ZERO), Err(LacpError::NoSuchPort { port: 9 }));
    let s = lacp.statistics();
    assert_eq!((s.lacpdu_rx, s.lacpdu_unknown_rx, s.lacpdu_illegal_rx, s.marker_unknown_rx), (1, 2, 1, 1));
    assert_eq!(s.counters().len(), 11);
}

#[test]
fn a_lacpdu_that_was_not_fetched_is_replaced_by_the_newer_one() {
    let mut lacp = lacp();
    for ms in (0..60_000).step_by(100) {
        lacp.poll(Instant::from_millis(ms));
    }
    let frames = drain(&mut lacp);
    assert_eq!(frames.len(), 1, "nothing piles up");
    assert_eq!(*Lacpdu::parse(&frames[0].1[14..]).unwrap().0.actor(), lacp.ports()[0].actor());
}

#[test]
fn settings_that_are_not_allowed_say_what_is() {
    let config = LacpConfig::new(US);
    let text = |config: LacpConfig| Lacp::new(config).unwrap_err().to_string();
    assert_eq!(text(LacpConfig { ad_actor_sys_prio: 0, ..config }), "ad_actor_sys_prio 0 is outside 1 to 65535");
    assert_eq!(text(LacpConfig { ad_user_port_key: 1024, ..config }), "ad_user_port_key 1024 is outside 0 to 1023");
    assert!(text(LacpConfig { ad_actor_system: MacAddress::BROADCAST, ..config }).contains("unicast"));
    let tick = Duration::from_millis(1);
    assert!(text(LacpConfig { timing: Timing::Linux { tick }, ..config }).contains("10 to 1000"));
    assert_eq!("fast".parse(), Ok(LacpRate::Fast));
    assert_eq!("0".parse(), Ok(LacpRate::Slow));
    assert_eq!("3".parse(), Ok(AdSelect::Prio));
    assert_eq!(
        "best".parse::<AdSelect>().unwrap_err().to_string(),
        "ad_select is one of stable (0), bandwidth (1), count (2), prio (3)"
    );
    let mut lacp = Lacp::new(config).unwrap();
    let port = PortConfig { number: Some(7), ..PortConfig::new(PORT) };
    assert_eq!(lacp.add_port(&port, LinkState::DOWN, Instant::ZERO), Ok(7));
    assert_eq!(lacp.add_port(&port, LinkState::DOWN, Instant::ZERO), Err(LacpError::PortNumber { port: 7 }));
    let zero = PortConfig { number: Some(0), ..port };
    assert_eq!(lacp.add_port(&zero, LinkState::DOWN, Instant::ZERO), Err(LacpError::PortNumber { port: 0 }));
    let last = PortConfig { number: Some(u16::MAX), ..port };
    assert_eq!(lacp.add_port(&last, LinkState::DOWN, Instant::ZERO), Ok(u16::MAX));
    assert_eq!(lacp.add_port(&PortConfig::new(PORT), LinkState::DOWN, Instant::ZERO), Ok(1), "the first that is free");
}

#[test]
fn state_is_printed_as_in_proc_net_bonding() {
    let mut lacp = lacp();
    assert_eq!(
        lacp.info().to_string(),
        "802.3ad info\nLACP active: on\nLACP rate: slow\nMin links: 0\nAggregator selection policy (ad_select): stable\n\
         System priority: 65535\nSystem MAC address: 02:00:00:00:00:01\nActive Aggregator Info:\n\tAggregator ID: 1\n\
         \tNumber of ports: 1\n\tActor Key: 9\n\tPartner Key: 1\n\tPartner Mac Address: 00:00:00:00:00:00\n"
    );
    lacp.poll(Instant::from_secs(3));
    assert_eq!(
        lacp.port_info(&lacp.ports()[0]).to_string(),
        "Aggregator ID: 1\nActor Churn State: monitoring\nPartner Churn State: monitoring\nActor Churned Count: 0\n\
         Partner Churned Count: 0\ndetails actor lacp pdu:\n    system priority: 65535\n\
         \x20   system mac address: 02:00:00:00:00:01\n    port key: 9\n    port priority: 255\n    port number: 1\n\
         \x20   port state: 77\ndetails partner lacp pdu:\n    system priority: 65535\n\
         \x20   system mac address: 00:00:00:00:00:00\n    oper key: 1\n    port priority: 255\n    port number: 1\n\
         \x20   port state: 0\n"
    );
    lacp.set_link(1, LinkState::DOWN, Instant::from_secs(4)).unwrap();
    assert!(lacp.info().to_string().ends_with("\nbond has no active aggregator\n"));
}

#[test]
fn tshark_reads_our_frames_without_a_complaint() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|o| o.status.success()) {
        netcore_test::skip("tshark", "tshark is not installed");
        return;
    }
    let mut lacp = lacp();
    let mut frames = drain(&mut lacp);
    for ms in (0..5000).step_by(50) {
        lacp.poll(Instant::from_millis(ms));
        frames.extend(drain(&mut lacp));
    }
    lacp.send_marker(1).unwrap();
    lacp.handle(1, &Marker::new(PEER, 5, 9).frame(PEER), Instant::from_secs(5)).unwrap();
    frames.extend(drain(&mut lacp));
    let mut writer = CaptureWriter::new(Vec::new(), Format::Pcap(Precision::Nanos), LinkType::ETHERNET).unwrap();
    for (i, (_, frame)) in frames.iter().enumerate() {
        writer.write(Some(Instant::from_millis(i as u64)), &[frame], frame.len()).unwrap();
    }
    let path = std::env::temp_dir().join(format!("netcore-lacp-{}.pcap", std::process::id()));
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    let fields =
        ["_ws.col.Protocol", "lacp.actor.state", "lacp.actor.key", "lacp.partner.state", "marker.requesterPort"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields"]).args(fields.iter().flat_map(|f| ["-e", f]));
    let read = tshark.output().unwrap();
    let complaints =
        Command::new("tshark").arg("-r").arg(&path).args(["-Y", "_ws.expert || _ws.malformed"]).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(complaints.stdout.is_empty(), "{}", String::from_utf8_lossy(&complaints.stdout));
    let read = String::from_utf8(read.stdout).unwrap();
    let lines: Vec<Vec<&str>> = read.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), frames.len());
    for (line, (kind, frame)) in lines.iter().zip(&frames) {
        if *kind == FrameKind::Lacpdu {
            let (pdu, _) = Lacpdu::parse(&frame[14..]).unwrap();
            let hex = |bits: u8| format!("{bits:#04x}");
            assert_eq!(line[0], "LACP");
            assert_eq!(line[1], hex(pdu.actor().state().bits()));
            assert_eq!(line[2], pdu.actor().key().to_string());
            assert_eq!(line[3], hex(pdu.partner().state().bits()));
        } else {
            assert_eq!(line[4], if *kind == FrameKind::Marker { "1" } else { "5" }, "{line:?}");
        }
    }
}
