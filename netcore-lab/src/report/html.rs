//! One self-contained page: tables and plots, no script, nothing loaded.

use super::table::figure;
use crate::experiment::{Experiment, Series};
use plotters::prelude::*;
use std::fmt::Write;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}table{border-collapse:collapse;width:100%;font-size:.92rem}\
th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
.ok{color:#17692a}.miss{color:#b00020;font-weight:600}svg{max-width:100%;height:auto}li{margin:.2rem 0}";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The page.
pub fn html(experiments: &[Experiment]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>netcore reproduce</title><style>{STYLE}</style>\
         <h1>Published experiments, reproduced</h1>"
    );
    for experiment in experiments {
        section(&mut page, experiment);
    }
    page.push_str("</html>\n");
    page
}

fn section(page: &mut String, experiment: &Experiment) {
    let _ = write!(page, "<h2>{}</h2><p>{}</p>", escape(&experiment.name), escape(&experiment.title));
    page.push_str(
        "<table><tr><th>run<th>rules<th>metric<th>unit<th class=n>published<th class=n>ours<th class=n>difference<th></tr>",
    );
    for row in &experiment.rows {
        let (class, verdict) = match row.pass {
            Some(true) => ("ok", "within tolerance"),
            Some(false) => ("miss", "outside tolerance"),
            None => ("", ""),
        };
        let difference = row
            .published
            .filter(|p| *p != 0.0)
            .map(|p| format!("{:+.1} %", (row.ours - p) / p * 100.0))
            .unwrap_or_default();
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{difference}<td class=\"{class}\">{verdict}</tr>",
            escape(&row.label),
            escape(&row.profile),
            escape(&row.metric),
            escape(&row.unit),
            row.published.map_or_else(|| "–".into(), figure),
            figure(row.ours),
        );
    }
    page.push_str("</table>");
    if let Some(svg) = bars(experiment) {
        page.push_str(&svg);
    }
    if !experiment.sensitivity.is_empty() {
        page.push_str("<p>How the result moves when an assumption moves:</p><ul>");
        for line in &experiment.sensitivity {
            let _ = write!(page, "<li>{}</li>", escape(line));
        }
        page.push_str("</ul>");
    }
    for series in &experiment.series {
        if let Some(svg) = stems(series) {
            page.push_str(&svg);
        }
    }
}

/// Published and reproduced rates side by side.
fn bars(experiment: &Experiment) -> Option<String> {
    let rows: Vec<_> = experiment.rows.iter().filter(|row| row.unit == "Gbit/s").collect();
    let top = rows.iter().flat_map(|row| [row.ours, row.published.unwrap_or(0.0)]).fold(0.0, f64::max) * 1.2;
    if rows.is_empty() || top <= 0.0 {
        return None;
    }
    let height = 60 + 64 * rows.len() as u32;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (900, height)).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let label = |text: String, x: i32, y: i32, size: i32| {
            area.draw(&Text::new(text, (x, y), ("sans-serif", size).into_font().color(&BLACK)))
        };
        let scale = 520.0 / top;
        label("goodput, Gbit/s: grey published, blue ours".into(), 10, 10, 16).ok()?;
        for (index, row) in rows.iter().enumerate() {
            let y = 44 + 64 * index as i32;
            label(row.label.clone(), 10, y, 15).ok()?;
            label(format!("rules: {}", row.profile), 10, y + 20, 13).ok()?;
            let bars = [(row.published, RGBColor(150, 150, 150)), (Some(row.ours), RGBColor(31, 119, 180))];
            for (n, (value, color)) in bars.into_iter().enumerate() {
                let y = y + 22 * n as i32;
                let Some(value) = value else { continue };
                let end = 270 + (value * scale) as i32;
                area.draw(&Rectangle::new([(270, y), (end, y + 18)], color.filled())).ok()?;
                label(format!("{value:.2}"), end + 6, y + 2, 14).ok()?;
            }
        }
        area.present().ok()?;
    }
    Some(svg)
}

/// One vertical line per point.
fn stems(series: &Series) -> Option<String> {
    let x_max = series.points.iter().map(|p| p.0).fold(0.0, f64::max) * 1.05;
    let y_max = series.points.iter().map(|p| p.1).fold(0.0, f64::max) * 1.1;
    if x_max <= 0.0 || y_max <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (900, 300)).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&series.name, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..x_max, 0.0..y_max)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(&series.x)
            .y_desc(&series.y)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        let color = RGBColor(31, 119, 180);
        chart
            .draw_series(
                series.points.iter().map(|(x, y)| PathElement::new([(*x, 0.0), (*x, *y)], color.stroke_width(3))),
            )
            .ok()?;
        chart.draw_series(series.points.iter().map(|(x, y)| Circle::new((*x, *y), 3, color.filled()))).ok()?;
        area.present().ok()?;
    }
    Some(svg)
}
