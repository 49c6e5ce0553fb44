//! The curves of a scenario as one SVG: goodput, window with threshold, RTT.

use crate::scenario::{FlowOutcome, Outcome};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Points of one curve: time in s, value.
type Points = Vec<(f64, f64)>;

/// One panel: title, unit, what each flow has to show there, dashed or not.
struct Panel {
    title: &'static str,
    curves: Vec<(String, Points, bool)>,
}

fn goodput(flow: &FlowOutcome) -> Points {
    flow.receiver_samples
        .windows(2)
        .map(|pair| {
            let ns = pair[1].at.nanos_since(pair[0].at).max(1);
            let bytes = pair[1].received.saturating_sub(pair[0].received);
            (pair[1].at.as_nanos() as f64 / 1e9, bytes as f64 * 8000.0 / ns as f64)
        })
        .collect()
}

fn curve(flow: &FlowOutcome, value: impl Fn(&crate::host::Sample) -> Option<f64>) -> Points {
    flow.samples.iter().filter_map(|s| Some((s.at.as_nanos() as f64 / 1e9, value(s)?))).collect()
}

fn panels(outcome: &Outcome) -> Vec<Panel> {
    let name = |flow: &FlowOutcome| format!("{} ({})", flow.name, flow.profile);
    let flows = &outcome.flows;
    let mut windows = Vec::new();
    for flow in flows {
        let cwnd = curve(flow, |s| Some(f64::from(s.cwnd)));
        let top = cwnd.iter().map(|point| point.1).fold(0.0, f64::max);
        windows.push((name(flow), cwnd, false));
        // A threshold far above the window has not been met; it would only flatten the picture.
        let threshold = curve(flow, |s| s.ssthresh.map(f64::from).filter(|value| *value <= 2.0 * top));
        windows.push((String::new(), threshold, true));
    }
    vec![
        Panel {
            title: "goodput, Mbit/s",
            curves: flows.iter().map(|flow| (name(flow), goodput(flow), false)).collect(),
        },
        Panel { title: "congestion window (line) and threshold (thin), segments", curves: windows },
        Panel {
            title: "smoothed RTT, ms",
            curves: flows
                .iter()
                .map(|flow| (name(flow), curve(flow, |s| s.srtt_us.map(|us| f64::from(us) / 1000.0)), false))
                .collect(),
        },
    ]
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &Panel,
    seconds: f64,
    legend: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let top = panel.curves.iter().flat_map(|(_, points, _)| points).map(|point| point.1).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(66)
        .build_cartesian_2d(0.0..seconds, 0.0..(top * if legend { 1.3 } else { 1.08 }).max(1e-9))?;
    chart
        .configure_mesh()
        .x_desc("time, s")
        .light_line_style(WHITE)
        .y_label_formatter(&|value| if *value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") })
        .label_style(("sans-serif", 13))
        .draw()?;
    let mut flow = 0;
    for (name, points, thin) in &panel.curves {
        let color = Palette99::pick(flow - usize::from(*thin && flow > 0)).to_rgba();
        let style = if *thin { color.mix(0.55).stroke_width(1) } else { color.stroke_width(2) };
        let series = chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        if !thin {
            flow += 1;
            series
                .label(name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        }
    }
    if legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(190, 190, 190))
            .label_font(("sans-serif", 13))
            .draw()?;
    }
    Ok(())
}

/// The picture, or `None` if there is nothing to draw.
pub fn plot(outcome: &Outcome) -> Option<String> {
    let seconds = outcome.duration_ns as f64 / 1e9;
    let panels = panels(outcome);
    if outcome.flows.is_empty() || seconds <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (960, 330 * panels.len() as u32)).into_drawing_area();
        area.fill(&WHITE).ok()?;
        for (index, (part, panel)) in area.split_evenly((panels.len(), 1)).iter().zip(&panels).enumerate() {
            draw(part, panel, seconds, index == 0 && outcome.flows.len() <= 12).ok()?;
        }
        area.present().ok()?;
    }
    Some(svg)
}
