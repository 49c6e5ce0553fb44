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
    for (title, figure) in figures(&experiment.series) {
        let svg = match figure.as_slice() {
            [one] => stems(&title, one),
            several => curves(&title, several),
        };
        if let Some(svg) = svg {
            page.push_str(&svg);
        }
    }
}

/// What the series of published values is called.
const PUBLISHED: &str = "published";

/// Series to look at together: names that differ after the last comma only, one of them being what was published.
fn figures(series: &[Series]) -> Vec<(String, Vec<&Series>)> {
    let stem = |s: &Series| s.name.rsplit_once(", ").map_or(s.name.clone(), |(stem, _)| stem.to_owned());
    let mut figures: Vec<(String, Vec<&Series>)> = Vec::new();
    for one in series {
        let stem = stem(one);
        let compared = series.iter().any(|s| s.name == format!("{stem}, {PUBLISHED}"));
        match figures.iter_mut().find(|(title, _)| compared && *title == stem) {
            Some((_, figure)) => figure.push(one),
            None => figures.push((if compared { stem } else { one.name.clone() }, vec![one])),
        }
    }
    figures
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

/// Several series over one another: what was published dashed in grey, ours as lines.
fn curves(title: &str, series: &[&Series]) -> Option<String> {
    let points = || series.iter().flat_map(|s| &s.points);
    let x_max = points().map(|p| p.0).fold(0.0, f64::max) * 1.05;
    let y_max = points().map(|p| p.1).fold(0.0, f64::max) * 1.25;
    if x_max <= 0.0 || y_max <= 0.0 {
        return None;
    }
    let first = series.first()?;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (900, 320)).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..x_max, 0.0..y_max)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(&first.x)
            .y_desc(&first.y)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        let mut ours = 0;
        for one in series {
            let name = one.name.rsplit_once(", ").map_or(one.name.as_str(), |(_, name)| name);
            let (color, width) = if name == PUBLISHED {
                (RGBColor(120, 120, 120).to_rgba(), 2)
            } else {
                ours += 1;
                (Palette99::pick(ours - 1).to_rgba(), 2)
            };
            let style = color.stroke_width(width);
            let legend = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style);
            let line = one.points.iter().copied();
            if name == PUBLISHED {
                let dashed = DashedLineSeries::new(line, 7, 5, style);
                chart.draw_series(dashed).ok()?.label(name).legend(legend);
            } else {
                chart.draw_series(LineSeries::new(line, style)).ok()?.label(name).legend(legend);
            }
            chart.draw_series(one.points.iter().map(|(x, y)| Circle::new((*x, *y), 3, color.filled()))).ok()?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(190, 190, 190))
            .label_font(("sans-serif", 13))
            .draw()
            .ok()?;
        area.present().ok()?;
    }
    Some(svg)
}

/// One vertical line per point.
fn stems(title: &str, series: &Series) -> Option<String> {
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
            .caption(title, ("sans-serif", 17))
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
