//! The result of an experiment as an aligned table.

use crate::experiment::Experiment;
use std::fmt::Write;

/// A figure with as many decimals as it needs.
pub(super) fn figure(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// One table with a line per row, then the sensitivity.
pub fn text(experiment: &Experiment) -> String {
    let mut lines = vec![["", "rules", "metric", "unit", "published", "ours", "difference", ""].map(String::from)];
    for row in &experiment.rows {
        let difference = row
            .published
            .filter(|p| *p != 0.0)
            .map(|p| format!("{:+.1} %", (row.ours - p) / p * 100.0))
            .unwrap_or_default();
        let verdict = match row.pass {
            Some(true) => "ok",
            Some(false) => "MISS",
            None => "",
        };
        lines.push([
            row.label.clone(),
            row.profile.clone(),
            row.metric.clone(),
            row.unit.clone(),
            row.published.map_or_else(|| "-".into(), figure),
            figure(row.ours),
            difference,
            verdict.into(),
        ]);
    }
    let mut widths = [0; 8];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = format!("{}: {}\n\n", experiment.name, experiment.title);
    for line in &lines {
        let mut text = String::from(" ");
        for (index, (cell, width)) in line.iter().zip(widths).enumerate() {
            let width = width + 2;
            // Figures to the right, words to the left.
            let _ = if (4..7).contains(&index) {
                write!(text, "{cell:>width$}")
            } else {
                write!(text, " {cell:<width$}", width = width - 1)
            };
            if index == 6 {
                text.push_str("  ");
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    if !experiment.sensitivity.is_empty() {
        out.push_str("\n  how the result moves:\n");
        for line in &experiment.sensitivity {
            let _ = writeln!(out, "  - {line}");
        }
    }
    out
}
