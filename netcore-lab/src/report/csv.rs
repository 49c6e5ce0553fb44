//! The curves of a flow as CSV.

use crate::host::Sample;
use crate::scenario::FlowOutcome;
use std::fmt::Write;

fn field(out: &mut String, value: Option<impl std::fmt::Display>) {
    out.push(',');
    if let Some(value) = value {
        let _ = write!(out, "{value}");
    }
}

/// One line per sample: time in s, goodput since the sample before in bit/s, window, threshold and data in flight in
/// segments, smoothed RTT in µs, counters from the start. A value that does not exist is empty.
pub fn csv(flow: &FlowOutcome) -> String {
    let mut out = String::from(
        "time_s,goodput_bps,cwnd,ssthresh,srtt_us,in_flight,mss,written_bytes,acked_bytes,received_bytes,retransmits\n",
    );
    let mut receiver = flow.receiver_samples.iter().peekable();
    let mut before: Option<Sample> = None;
    for sample in &flow.samples {
        while receiver.peek().is_some_and(|other| other.at < sample.at) {
            receiver.next();
        }
        let received = receiver.peek().filter(|other| other.at == sample.at).map_or(0, |other| other.received);
        let at = sample.at.as_nanos();
        let _ = write!(out, "{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
        let rate = before.map(|before| {
            let ns = sample.at.nanos_since(before.at).max(1);
            (u128::from(received.saturating_sub(before.received)) * 8_000_000_000 / u128::from(ns)) as u64
        });
        field(&mut out, rate);
        field(&mut out, Some(sample.cwnd));
        field(&mut out, sample.ssthresh);
        field(&mut out, sample.srtt_us);
        for value in [u64::from(sample.in_flight), u64::from(sample.mss)] {
            field(&mut out, Some(value));
        }
        for value in [sample.written, sample.acked, received, sample.retransmitted] {
            field(&mut out, Some(value));
        }
        out.push('\n');
        before = Some(Sample { received, ..*sample });
    }
    out
}
