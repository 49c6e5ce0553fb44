//! Bytes per member, one group of bars per policy.

use super::spread::Outcome;
use crate::commands::cc::{COLOURS, png};
use anyhow::Context;
use plotters::prelude::*;
use std::path::Path;

pub(super) fn write(outcomes: &[Outcome], file: &Path) -> anyhow::Result<()> {
    let svg = draw(outcomes)?;
    let is_png = file.extension().is_some_and(|it| it == "png");
    let bytes = if is_png { png(&svg)? } else { svg.into_bytes() };
    std::fs::write(file, bytes).with_context(|| file.display().to_string())
}

fn draw(outcomes: &[Outcome]) -> anyhow::Result<String> {
    let mut svg = String::new();
    let share = |o: &Outcome, n: usize| {
        o.bytes_per_slave[n] as f64 * 100.0 / o.bytes_per_slave.iter().sum::<u64>().max(1) as f64
    };
    let slaves = outcomes.first().map_or(1, |o| o.bytes_per_slave.len());
    let top = outcomes.iter().flat_map(|o| (0..slaves).map(|n| share(o, n))).fold(10.0, f64::max) * 1.1;
    {
        let root = SVGBackend::with_string(&mut svg, (960, 540)).into_drawing_area();
        root.fill(&WHITE)?;
        let end = outcomes.len() as f64;
        let mut chart = ChartBuilder::on(&root)
            .caption(format!("Traffic over {slaves} members"), ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .x_desc(
                outcomes.iter().map(|o| format!("{} ({:.2})", o.policy, o.balance)).collect::<Vec<_>>().join("   |   "),
            )
            .y_desc("bytes, %")
            .y_label_formatter(&|y| format!("{y:.0}"))
            .bold_line_style(BLACK.mix(0.12))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        let width = 0.8 / slaves as f64;
        for n in 0..slaves {
            let colour = COLOURS[n % COLOURS.len()];
            let bars = outcomes.iter().enumerate().map(|(group, o)| {
                let left = group as f64 + 0.1 + n as f64 * width;
                Rectangle::new([(left, 0.0), (left + width * 0.92, share(o, n))], colour.filled())
            });
            chart
                .draw_series(bars)?
                .label(format!("member {n}"))
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        let even = 100.0 / slaves as f64;
        chart
            .draw_series(LineSeries::new([(0.0, even), (end, even)], BLACK.mix(0.6).stroke_width(1)))?
            .label("even")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 12, y)], BLACK.mix(0.6)));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        root.present()?;
    }
    Ok(svg)
}
