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
