//! The spread as text.

use super::spread::Outcome;
use std::fmt::Write;

pub(super) fn text(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for o in outcomes {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{} over {} members: balance {:.2}, {} flows, {} frames without one",
            o.policy, o.slaves, o.balance, o.flows, o.frames_without_flow
        );
        let total = o.bytes_per_slave.iter().sum::<u64>().max(1);
        for n in 0..o.frames_per_slave.len() {
            let share = o.bytes_per_slave[n] as f64 / total as f64;
            let bar = "#".repeat((share * 40.0).round() as usize);
            let _ = writeln!(
                out,
                "  {n:>3} {:>10} frames {:>13} bytes {:>7} flows {:>5.1} % {bar}",
                o.frames_per_slave[n],
                o.bytes_per_slave[n],
                o.flows_per_slave[n],
                share * 100.0
            );
        }
        if let Some(flow) = &o.largest_flow {
            let _ = writeln!(
                out,
                "  largest flow: {}, {} bytes, {:.1} % of all, {} of them on member {}",
                flow.key,
                flow.bytes,
                flow.share * 100.0,
                flow.slave_bytes,
                flow.slave
            );
        }
        if let Some(r) = &o.reordering {
            let _ = writeln!(
                out,
                "  order: {} of {} packets of flows overtaken, by {} at most and {:.1} on average; a duplicate threshold of {} \
                 retransmits nothing needlessly, {} with FACK",
                r.reordered, r.packets, r.max_extent, r.mean_extent, r.dupthresh, r.dupthresh_fack
            );
        }
        if o.not_parsed > 0 {
            let _ = writeln!(out, "  {} frames without an Ethernet header were left out", o.not_parsed);
        }
        out.push('\n');
    }
    out.pop();
    out
}
