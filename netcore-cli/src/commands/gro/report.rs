//! The summary for people.

use super::engine::Summary;
use std::fmt::Write;

/// Flows listed at most.
const FLOWS: usize = 20;

/// A number with its thousands apart.
pub(in super::super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn text(s: &Summary) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<22}{value:>16}");
    };
    line("frames in", thousands(s.frames_in));
    line("packets out", thousands(s.packets_out));
    line("frames per packet", format!("{:.2}", s.merge_factor));
    line("bytes in", thousands(s.bytes_in));
    line("bytes out", thousands(s.bytes_out));
    line("largest payload", thousands(s.largest_payload));
    if s.not_parsed > 0 {
        line("not Ethernet or IP", thousands(s.not_parsed));
    }
    if s.cut_at_capture > 0 {
        line("cut at capture", thousands(s.cut_at_capture));
    }
    if !s.end_reasons.is_empty() {
        out.push_str("\nwhy packets went up\n");
        let mut reasons: Vec<_> = s.end_reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons {
            let share = *count as f64 / s.packets_out.max(1) as f64 * 100.0;
            let _ = writeln!(out, "  {:<20}{:>16}{share:>8.1} %", reason.replace('_', " "), thousands(*count));
        }
    }
    if !s.flows.is_empty() {
        let width = s.flows.iter().take(FLOWS).map(|flow| flow.key.chars().count()).max().unwrap_or(0).max(4);
        let _ = writeln!(
            out,
            "\n{:<width$}  {:>10}  {:>11}  {:>8}  {:>14}  {:>8}",
            "flow", "frames in", "packets out", "factor", "payload bytes", "largest"
        );
        for flow in s.flows.iter().take(FLOWS) {
            let _ = writeln!(
                out,
                "{:<width$}  {:>10}  {:>11}  {:>8.2}  {:>14}  {:>8}",
                flow.key,
                thousands(flow.frames_in),
                thousands(flow.packets_out),
                flow.merge_factor,
                thousands(flow.payload_bytes),
                thousands(flow.largest_payload),
            );
        }
        if s.flows.len() > FLOWS {
            let _ = writeln!(out, "… and {} more flows (all of them with --json)", s.flows.len() - FLOWS);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_apart() {
        assert_eq!(super::thousands(0), "0");
        assert_eq!(super::thousands(999), "999");
        assert_eq!(super::thousands(1_234_567), "1,234,567");
    }
}
