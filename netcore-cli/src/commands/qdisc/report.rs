//! Tables and JSON.

use super::simulate::{FlowResult, Outcome, jain, percentile};
use serde_json::{Value, json};
use std::fmt::Write;

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

fn delays(flow: &FlowResult) -> [Option<u64>; 4] {
    let mut sorted = flow.delays.clone();
    sorted.sort_unstable();
    QUANTILES.map(|(_, q)| percentile(&sorted, q))
}

/// Mbit/s between the first and the last departure of all.
fn rate(outcome: &Outcome, bytes: u64) -> f64 {
    let span = match (outcome.departures.first(), outcome.departures.last()) {
        (Some(first), Some(last)) if last.time > first.time => last.time - first.time,
        _ => return 0.0,
    };
    bytes as f64 * 8e3 / span as f64
}

pub(super) fn json(outcome: &Outcome) -> Value {
    let flows: Vec<Value> = outcome
        .flows
        .iter()
        .map(|f| {
            let delay: serde_json::Map<String, Value> =
                QUANTILES.iter().zip(delays(f)).map(|((name, _), ns)| (format!("{name}_ns"), json!(ns))).collect();
            json!({
                "flow": f.name,
                "packets_in": f.packets_in,
                "packets_out": f.packets_out,
                "bytes_out": f.bytes_out,
                "dropped": f.dropped,
                "mbit_per_s": rate(outcome, f.bytes_out),
                "delay": delay,
            })
        })
        .collect();
    let counters: serde_json::Map<String, Value> =
        outcome.counters.counters().iter().map(|c| (c.name.to_string(), json!(c.value))).collect();
    let s = &outcome.statistics;
    json!({
        "qdisc": outcome.qdisc,
        "options": outcome.options,
        "packets_in": outcome.flows.iter().map(|f| f.packets_in).sum::<u64>(),
        "packets_out": outcome.departures.len(),
        "jain": jain(&outcome.flows),
        "drops": outcome.drops,
        "flows": flows,
        "statistics": { "bytes": s.bytes, "packets": s.packets, "drops": s.drops, "overlimits": s.overlimits },
        "counters": counters,
        "departures": outcome.departures.iter().map(|d| json!([d.time, d.flow, d.len])).collect::<Vec<_>>(),
        "damaged": outcome.damaged,
    })
}

fn ms(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| format!("{:.3}", ns as f64 / 1e6))
}

pub(super) fn text(outcome: &Outcome, departures: usize) -> String {
    let mut s = format!("{} {}\n\n", outcome.qdisc, outcome.options);
    let width = outcome.flows.iter().map(|f| f.name.chars().count()).max().unwrap_or(4).max(4);
    let _ = writeln!(
        s,
        "  {:<width$}  {:>9} {:>9} {:>9} {:>10}   delay, ms: {:>8} {:>8} {:>8} {:>8}",
        "flow", "in", "out", "dropped", "Mbit/s", "p50", "p90", "p99", "max"
    );
    for f in &outcome.flows {
        let [p50, p90, p99, max] = delays(f).map(ms);
        let mbit = rate(outcome, f.bytes_out);
        let _ = writeln!(
            s,
            "  {:<width$}  {:>9} {:>9} {:>9} {mbit:>10.3}              {p50:>8} {p90:>8} {p99:>8} {max:>8}",
            f.name, f.packets_in, f.packets_out, f.dropped
        );
    }
    let total: u64 = outcome.flows.iter().map(|f| f.bytes_out).sum();
    let _ = write!(s, "\n  {} packets, {:.3} Mbit/s", outcome.departures.len(), rate(outcome, total));
    if let Some(jain) = jain(&outcome.flows) {
        let _ = write!(s, ", Jain's index {jain:.4}");
    }
    s.push('\n');
    for (reason, count) in &outcome.drops {
        let _ = writeln!(s, "  dropped, {reason}: {count}");
    }
    for counter in outcome.counters.counters().iter().filter(|c| c.value > 0) {
        let _ = writeln!(s, "  {}: {}", counter.name, counter.value);
    }
    if departures > 0 {
        let _ = writeln!(s, "\n  {:>14}  {:>8}  flow", "time, ms", "bytes");
        for d in outcome.departures.iter().take(departures) {
            let name = &outcome.flows[usize::from(d.flow)].name;
            let _ = writeln!(s, "  {:>14.6}  {:>8}  {name}", d.time as f64 / 1e6, d.len);
        }
    }
    s
}
