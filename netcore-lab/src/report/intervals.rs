//! The outcome of a scenario as text: intervals as iperf prints them, then a summary as netstat prints it.

use crate::scenario::{FlowOutcome, Interval, Outcome};
use std::fmt::Write;

const HEAD: &str = "[ ID] Interval             Transfer      Bitrate               Retr  Cwnd    RTT\n";

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// `1.10 GBytes`, with three digits as iperf prints them.
fn transfer(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "Bytes";
    for next in ["KBytes", "MBytes", "GBytes", "TBytes"] {
        // What would be printed as 1024 is one of the next unit.
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

fn line(out: &mut String, id: &str, from_ns: u64, to_ns: u64, bytes: u64, retransmits: u64, tail: &str) {
    let rate = if to_ns > from_ns { bytes as f64 * 8000.0 / (to_ns - from_ns) as f64 } else { 0.0 };
    let (from, to) = (seconds(from_ns), seconds(to_ns));
    let text = format!(
        "[{id:>3}] {from:7.2}-{to:<7.2} sec {:>12} {rate:10.2} Mbits/sec {retransmits:8}  {tail}",
        transfer(bytes)
    );
    let _ = writeln!(out, "{}", text.trim_end());
}

fn interval(out: &mut String, id: usize, interval: &Interval) {
    let cwnd = interval.cwnd.map(|cwnd| cwnd.to_string()).unwrap_or_default();
    let rtt = interval.srtt_us.map(|us| format!("{:.2} ms", f64::from(us) / 1000.0)).unwrap_or_default();
    let tail = format!("{cwnd:<7} {rtt}");
    line(out, &id.to_string(), interval.from_ns, interval.to_ns, interval.bytes, interval.retransmits, &tail);
}

fn sum(out: &mut String, flows: &[FlowOutcome], index: usize) {
    let Some(first) = flows.first().and_then(|flow| flow.intervals.get(index)) else { return };
    let of = |value: fn(&Interval) -> u64| flows.iter().filter_map(|f| f.intervals.get(index)).map(value).sum();
    line(out, "SUM", first.from_ns, first.to_ns, of(|i| i.bytes), of(|i| i.retransmits), "");
}

/// The table of intervals and the summary. Windows are in segments.
pub fn intervals(outcome: &Outcome) -> String {
    let mut out = String::new();
    if !outcome.title.is_empty() {
        let _ = writeln!(out, "{}\n", outcome.title);
    }
    for (index, flow) in outcome.flows.iter().enumerate() {
        let id = index + 1;
        let _ = writeln!(out, "[{id:>3}] {}: {} to {}, {}", flow.name, flow.from, flow.to, flow.profile);
    }
    out.push_str(HEAD);
    let count = outcome.flows.iter().map(|flow| flow.intervals.len()).max().unwrap_or(0);
    for index in 0..count {
        for (id, flow) in outcome.flows.iter().enumerate() {
            if let Some(i) = flow.intervals.get(index) {
                interval(&mut out, id + 1, i);
            }
        }
        if outcome.flows.len() > 1 {
            sum(&mut out, &outcome.flows, index);
        }
    }
    out.push_str("- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n");
    for (id, flow) in outcome.flows.iter().enumerate() {
        let id = (id + 1).to_string();
        line(&mut out, &id, flow.start_ns, outcome.duration_ns, flow.bytes, flow.retransmits, &flow.name);
        if flow.bytes_back > 0 {
            line(&mut out, &id, flow.start_ns, outcome.duration_ns, flow.bytes_back, 0, "the other way");
        }
        if let Some(error) = &flow.error {
            let _ = writeln!(out, "[{id:>3}] failed: {error}");
        }
    }
    if outcome.flows.len() > 1 {
        let of = |value: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(value).sum();
        line(&mut out, "SUM", 0, outcome.duration_ns, of(|f| f.bytes), of(|f| f.retransmits), "");
    }
    out
}

/// Counters of hosts, links and switches, those that are not zero.
pub fn summary(outcome: &Outcome) -> String {
    let mut out = String::new();
    for host in &outcome.hosts {
        let busy = host.busy_ns as f64 * 100.0 / outcome.duration_ns.max(1) as f64;
        let _ = writeln!(
            out,
            "\n{}: {} frames received, {} packets delivered, {} polls, {} interrupts, CPU {busy:.1} %",
            host.name, host.wire_packets, host.delivered, host.polls, host.interrupts
        );
        for (name, value) in &host.counters {
            let _ = writeln!(out, "    {name:<36} {value}");
        }
        for (name, value) in [("unmatched", host.unmatched), ("transmit_errors", host.transmit_errors)] {
            if value > 0 {
                let _ = writeln!(out, "    {name:<36} {value}");
            }
        }
    }
    for link in &outcome.links {
        let _ = writeln!(out, "\nlink {}: {} frames on the way", link.name, link.in_flight);
        for d in &link.directions {
            let _ = write!(out, "    from {:<12} {} frames, {} bytes delivered", d.from, d.delivered, d.bytes);
            for (name, value) in [
                ("lost", d.lost),
                ("crc errors", d.crc_errors),
                ("dropped by the queue", d.queue_dropped),
                ("dropped early", d.queue_early),
                ("marked", d.queue_marked),
            ] {
                if value > 0 {
                    let _ = write!(out, ", {value} {name}");
                }
            }
            out.push('\n');
        }
    }
    for switch in &outcome.switches {
        let dropped: u64 = switch.dropped.iter().sum();
        let _ = writeln!(out, "\nswitch {}: {} flooded, {dropped} dropped", switch.name, switch.flooded);
        for (port, (dropped, peak)) in switch.dropped.iter().zip(&switch.peak_bytes).enumerate() {
            let _ = writeln!(out, "    port {port}: {dropped} dropped, {peak} bytes waited at most");
        }
    }
    out
}
