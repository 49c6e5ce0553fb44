//! Exchanges of LACPDUs that Linux 6.1 had with itself happen here again: every LACPDU, with its states, at its time.
//!
//! The captures are of one link between two bonds on a kernel with 250 Hz, whose 100 ms ticks are 104 ms long.

mod lacp_net;

use lacp_net::Net;
use netcore::wire::{LacpState, Lacpdu, PortInformation};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{Lacp, LacpConfig, LacpRate, PortConfig, Timing};
use netcore_drivers::pcap::CaptureReader;
use netcore_test::shared;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(104);
const SYSTEMS: [MacAddress; 2] = [MacAddress([2, 0, 0x5e, 0xa, 0, 1]), MacAddress([2, 0, 0x5e, 0xb, 0, 1])];

/// Time since the first, which end sent it, and the LACPDU.
fn capture(path: &str) -> Option<Vec<(Duration, usize, Lacpdu)>> {
    let bytes = std::fs::read(shared(path)?).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut all = Vec::new();
    let mut first = None;
    while let Some(record) = reader.next().unwrap() {
        let at = record.timestamp.unwrap();
        let pdu = *Lacpdu::parse(&record.bytes[14..]).unwrap().0;
        let end = SYSTEMS.iter().position(|&s| s == pdu.actor().system()).unwrap();
        all.push((at - *first.get_or_insert(at), end, pdu));
    }
    Some(all)
}

/// What the two ends send if they are brought up so that their first LACPDUs come when those of the capture do, and see
/// their links so much later.
fn replay(
    configs: [LacpConfig; 2],
    link_after: [Duration; 2],
    recorded: &[(Duration, usize, Lacpdu)],
) -> Vec<(Duration, usize, Lacpdu)> {
    let mut net = Net::new(configs, 0);
    let start = net.now;
    // The first LACPDU leaves with the third tick.
    let opened = [0, 1].map(|end| start + recorded.iter().find(|r| r.1 == end).unwrap().0);
    for (end, system) in SYSTEMS.into_iter().enumerate() {
        net.ends[end].add_port(&PortConfig::new(system), LinkState::DOWN, start).unwrap();
    }
    net.join([1, 1]);
    let mut steps = [0, 1].map(|end| [(opened[end], end, true), (opened[end] + link_after[end], end, false)]).concat();
    steps.sort();
    for (at, end, open) in steps {
        net.run(at - net.now, |_| ());
        if open {
            net.ends[end].open(at);
        } else {
            net.ends[end].set_link(1, LinkState::up(10_000), at).unwrap();
        }
        net.step();
    }
    let zero = start + 2 * TICK;
    net.run(recorded.last().unwrap().0 + 3 * TICK - (net.now - start), Net::assert_sane);
    net.sent.iter().map(|s| (s.at - zero, s.end, s.pdu)).collect()
}

fn assert_same(ours: &[(Duration, usize, Lacpdu)], theirs: &[(Duration, usize, Lacpdu)], tolerance: Duration) {
    let line = |r: &(Duration, usize, Lacpdu)| {
        let (a, p) = (r.2.actor(), r.2.partner());
        format!("{:>9.3?} end {} actor {:#04x} partner {:#04x} {}", r.0, r.1, a.state(), p.state(), p.system())
    };
    for (i, their) in theirs.iter().enumerate() {
        let our = ours.get(i).unwrap_or_else(|| panic!("{i}: missing {}", line(their)));
        let same = (our.1, our.2) == (their.1, their.2) && our.0.abs_diff(their.0) <= tolerance;
        assert!(same, "LACPDU {i}: Linux {} here {}", line(their), line(our));
    }
}

#[test]
fn fast_meets_slow_as_in_linux() {
    let Some(theirs) = capture("exams/pcaps/lacp61_fast_meets_slow.pcap") else { return };
    let configs = [(0, LacpRate::Fast), (1, LacpRate::Slow)].map(|(end, lacp_rate)| LacpConfig {
        lacp_rate,
        timing: Timing::Linux { tick: TICK },
        ..LacpConfig::new(SYSTEMS[end])
    });
    let ours = replay(configs, [Duration::ZERO; 2], &theirs);
    assert_eq!(theirs.len(), 46);
    assert_same(&ours, &theirs, Duration::from_millis(60));
}

#[test]
fn active_meets_passive_as_in_linux_but_for_what_the_passive_end_says_unasked() {
    let Some(mut theirs) = capture("exams/pcaps/lacp61_active_meets_passive.pcap") else { return };
    let configs = [0, 1].map(|end| LacpConfig {
        lacp_rate: LacpRate::Fast,
        lacp_active: end == 0,
        timing: Timing::Linux { tick: TICK },
        ..LacpConfig::new(SYSTEMS[end])
    });
    // The active end of the capture is a tick behind in its periods: its link monitor saw the link after the first tick.
    let ours = replay(configs, [TICK / 2, Duration::ZERO], &theirs);
    let unasked = theirs.extract_if(.., |r| r.0 < Duration::from_secs(4)).count();
    assert_eq!((unasked, theirs.len()), (2, 19));
    assert_same(&ours, &theirs, Duration::from_millis(60));
}

/// A bond of two ports in a guest with Linux 6.12, alone or with a script that answers each LACPDU at once: this system in
/// the place of Linux says what Linux said. The guest's links came up after the first and after the sixth tick.
fn in_the_place_of_linux(file: &str, lacp_rate: LacpRate, script: Option<u8>, of_linux: usize) {
    let Some(path) = shared(file) else { return };
    let bytes = std::fs::read(path).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut theirs = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        if record.bytes[12..14] == [0x88, 0x09] {
            theirs.push((record.timestamp.unwrap(), record.bytes.to_vec()));
        }
    }
    assert_eq!(theirs.len(), of_linux);
    let opened = theirs[0].0 - 2 * TICK;
    let address = |port: u16| MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x55 + port as u8]);
    let config = LacpConfig { lacp_rate, timing: Timing::Linux { tick: TICK }, ..LacpConfig::new(address(1)) };
    let mut lacp = Lacp::new(config).unwrap();
    for port in 1..=2 {
        lacp.add_port(&PortConfig::new(address(port)), LinkState::DOWN, opened).unwrap();
    }
    lacp.open(opened);
    let mut links = vec![(opened + 11 * TICK / 2, 2), (opened + TICK / 2, 1)];
    let mut ours = Vec::new();
    while let Some(at) = lacp.poll_at().filter(|&at| at <= theirs[of_linux - 1].0 + TICK) {
        while let Some((up, port)) = links.pop_if(|link| link.0 <= at) {
            lacp.set_link(port, LinkState::up(1000), up).unwrap();
        }
        lacp.poll(at);
        while let Some(frame) = lacp.next_frame() {
            ours.push((at, frame.bytes.to_vec()));
            if let Some(state) = script {
                let us = *Lacpdu::parse(&frame.bytes[14..]).unwrap().0.actor();
                let state = LacpState::from_bits_retain(state);
                let system = MacAddress([2, 0, 0, 0, 0, 1]);
                let partner = PortInformation::new(0x8000, system, 7, 0x80, 9 + frame.port, state);
                lacp.handle(frame.port, &Lacpdu::new(partner, us, 0).frame(system), at).unwrap();
            }
        }
    }
    let line = |at: Instant, frame: &[u8]| {
        let (pdu, _) = Lacpdu::parse(&frame[14..]).unwrap();
        let (a, p) = (pdu.actor(), pdu.partner());
        format!("{:.3?} port {} {} partner {} {}", at - opened, a.port(), a.state(), p.state(), p.system())
    };
    for (i, (at, frame)) in theirs.iter().enumerate() {
        let Some((our_at, ours)) = ours.get(i) else { panic!("{i}: missing {}", line(*at, frame)) };
        let apart = our_at.nanos_since(*at).max(at.nanos_since(*our_at));
        let same = ours == frame && apart < 60_000_000;
        assert!(same, "LACPDU {i}: Linux {} here {}", line(*at, frame), line(*our_at, ours));
    }
}

#[test]
fn alone_this_system_says_what_linux_says_alone() {
    in_the_place_of_linux("captures/lacp/lacp_slow_nopartner.pcap", LacpRate::Slow, None, 9);
}

#[test]
fn with_a_fast_partner_this_system_says_what_linux_says() {
    in_the_place_of_linux("captures/lacp/lacp_fast.pcap", LacpRate::Fast, Some(0x3f), 26);
}

#[test]
fn with_a_slow_partner_this_system_says_what_linux_says() {
    in_the_place_of_linux("captures/lacp/lacp_slow.pcap", LacpRate::Slow, Some(0x3d), 8);
}
