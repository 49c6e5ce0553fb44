//! Bytes sent over time, a line per flow.

use super::simulate::Outcome;
use plotters::prelude::*;

/// Lines drawn; the flows with most bytes come first.
const MOST_FLOWS: usize = 12;

pub(super) fn svg(outcome: &Outcome) -> anyhow::Result<String> {
    let mut order: Vec<usize> = (0..outcome.flows.len()).collect();
    order.sort_by_key(|&n| std::cmp::Reverse(outcome.flows[n].bytes_out));
    order.truncate(MOST_FLOWS);
    let end = outcome.departures.last().map_or(1.0, |d| d.time as f64 / 1e9).max(1e-6);
    let most = outcome.flows.iter().map(|f| f.bytes_out).max().unwrap_or(0).max(1) as f64 / 1e6 * 1.08;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (960, 540)).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(format!("{}: bytes sent", outcome.qdisc), ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end, 0.0..most)?;
        chart.configure_mesh().x_desc("time, s").y_desc("megabytes").light_line_style(WHITE.mix(0.0)).draw()?;
        for (n, &flow) in order.iter().enumerate() {
            let mut sent = 0u64;
            let mut points = vec![(0.0, 0.0)];
            for d in outcome.departures.iter().filter(|d| usize::from(d.flow) == flow) {
                let time = d.time as f64 / 1e9;
                points.push((time, sent as f64 / 1e6));
                sent += u64::from(d.len);
                points.push((time, sent as f64 / 1e6));
            }
            let style = Palette99::pick(n).stroke_width(2);
            chart
                .draw_series(LineSeries::new(points, style))?
                .label(outcome.flows[flow].name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.2)).draw()?;
        root.present()?;
    }
    Ok(svg)
}
