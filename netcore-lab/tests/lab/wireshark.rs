//! Captures of the lab as tshark sees them.

use crate::common::{Shared, scenario};
use std::process::Command;

/// Fields of the packets that match `filter`, one line each.
fn tshark(file: &std::path::Path, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    match command.output() {
        Err(error) => {
            netcore_test::skip("tshark", &format!("tshark cannot be started: {error}"));
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
        }
    }
}

#[test]
fn a_capture_has_no_complaint_and_its_retransmissions_are_ours() {
    let capture = Shared::default();
    let mut world =
        scenario("lossy-path", &["duration=4 s", "link.0.loss=0.5 %"]).build(vec![capture.request("path")]).unwrap();
    let outcome = world.run(&mut |_| ()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("path.pcapng");
    std::fs::write(&file, capture.bytes()).unwrap();

    let Some(all) = tshark(&file, "frame", &["frame.number"]) else { return };
    // A card hands the frames of a train over before they leave; what has not left at the end is in no capture.
    let delivered = outcome.links[0].directions.iter().map(|d| d.delivered).sum::<u64>();
    assert!(all.len() as u64 >= delivered, "{} frames captured, {delivered} delivered", all.len());
    // 8388608: expert severity "error".
    let complaints = "_ws.malformed or tcp.checksum.status == \"Bad\" or ip.checksum.status == \"Bad\" \
                      or _ws.expert.severity == 8388608";
    assert_eq!(tshark(&file, complaints, &["frame.number", "_ws.col.Info"]).unwrap(), Vec::<String>::new());
    let verified = tshark(&file, "tcp.checksum.status == \"Good\"", &["frame.number"]).unwrap();
    assert_eq!(verified.len(), all.len(), "every frame is TCP and its checksum is right");
    // Captured where they leave, segments sent again are all that can be out of order; which word tshark has for each
    // depends on how long it thinks the RTT is.
    let filter = "tcp.analysis.retransmission or tcp.analysis.out_of_order";
    let flagged = tshark(&file, filter, &["frame.number"]).unwrap();
    assert!(outcome.flows[0].retransmits > 0);
    assert_eq!(flagged.len() as u64, outcome.flows[0].retransmits);
    let mut sent = tshark(&file, "ip.src == 10.0.0.2 and tcp.len > 0", &["tcp.seq"]).unwrap();
    let all = sent.len();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!((all - sent.len()) as u64, outcome.flows[0].retransmits, "and nothing else was sent twice");
    let times = tshark(&file, "frame", &["frame.time_delta"]).unwrap();
    assert!(times.iter().all(|delta| !delta.starts_with('-')), "time does not go back");
}

/// A run of `lossy-path` with these settings, captured at the host at that end of the path.
fn captured(settings: &[&str], host: &str) -> (netcore_lab::scenario::Outcome, tempfile::TempDir, std::path::PathBuf) {
    let capture = Shared::default();
    let mut world = scenario("lossy-path", settings).build(vec![capture.request_at("path", host)]).unwrap();
    let outcome = world.run(&mut |_| ()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("path.pcapng");
    std::fs::write(&file, capture.bytes()).unwrap();
    (outcome, dir, file)
}

#[test]
fn segments_out_of_order_are_answered_by_what_tshark_calls_duplicate_acks() {
    let era = ["duration=4 s", "link.0.loss=0.5 %", "flow.0.profile=linux-4.3", "flow.0.receiver_profile=linux-4.3"];
    let (outcome, _dir, file) = captured(&era, "receiver");
    // A duplicate that opens the window is an update to tshark.
    let filter = "tcp.analysis.duplicate_ack or (tcp.analysis.window_update and tcp.options.sack)";
    let Some(flagged) = tshark(&file, filter, &["frame.number"]) else { return };
    let flow = &outcome.flows[0];
    let counter = |counters: &std::collections::BTreeMap<&str, u64>, name| counters.get(name).copied().unwrap_or(0);
    let queued = counter(&flow.receiver_counters, "TcpExtTCPOFOQueue");
    let episodes = counter(&flow.sender_counters, "TcpExtTCPSackRecovery");
    assert!(queued > 100 && episodes > 3, "{queued} {episodes}");
    // The first of an episode may acknowledge data whose ACK was delayed, and then is no duplicate.
    let flagged = flagged.len() as u64;
    assert!((queued - episodes..=queued).contains(&flagged), "{flagged} flagged, {queued} out of order");
    let sacks = tshark(&file, "tcp.options.sack and ip.src == 10.0.0.1 and tcp.len == 0", &["tcp.ack"]).unwrap();
    assert!(sacks.len() as u64 >= queued, "{} ACKs with blocks, {queued} out of order", sacks.len());
}

#[test]
fn tshark_sees_a_full_window_when_our_sender_says_that_the_window_limits_it() {
    let slow_reader = ["duration=4 s", "link.0.loss=0 %", "flow.0.read_rate=2 Mbit/s", "flow.0.rcvbuf=40000"];
    let fast_reader = ["duration=4 s", "link.0.loss=0 %"];
    for (settings, limited) in [(slow_reader.as_slice(), true), (fast_reader.as_slice(), false)] {
        let (outcome, _dir, file) = captured(settings, "sender");
        let Some(full) = tshark(&file, "tcp.analysis.window_full", &["frame.number"]) else { return };
        assert_eq!(!full.is_empty(), limited, "{} frames", full.len());
        assert_eq!(outcome.flows[0].ss.contains("rwnd_limited"), limited, "{}", outcome.flows[0].ss);
        let zero = tshark(&file, "tcp.window_size_value == 0", &["frame.number"]).unwrap();
        let counted = outcome.flows[0].receiver_counters.get("TcpExtTCPToZeroWindowAdv").copied().unwrap_or(0);
        assert_eq!(!zero.is_empty(), counted > 0, "{} frames, {counted} counted", zero.len());
    }
}
