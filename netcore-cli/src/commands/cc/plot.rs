//! `netcore cc plot`: windows over time.

use anyhow::{Context, ensure};
use netcore::{Instant, Rate, SendState};
use netcore_cc::SyntheticPath;
use plotters::prelude::*;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Plot windows over time: traces replayed, or algorithms on a synthetic path, overlaid.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  netcore cc plot trace.csv.gz --out trace.svg
  netcore cc plot --rate 100 --rtt 40 --queue 300 --profile linux-2.6.35 --profile linux-current --out eras.png

Exit status: 0 plotted, 1 failed, 2 wrong usage, 3 plotted, but a trace is damaged or a run was cut short.")]
pub(crate) struct Arguments {
    /// Traces to replay; none for the synthetic path alone
    traces: Vec<PathBuf>,

    /// Algorithm on the synthetic path, or with traces the one that replays them; may be given more than once
    #[arg(long = "profile", value_name = "NAME", default_value = "linux-current", value_parser = super::profile_parser())]
    profiles: Vec<String>,

    /// Rate of the synthetic path's bottleneck, Mbit/s
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,

    /// Its round-trip time without queueing, ms
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rtt: u64,

    /// Packets that may wait at the bottleneck
    #[arg(long, default_value_t = 200)]
    queue: u32,

    /// Seconds to run
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Ticks per second
    #[arg(long, value_parser = super::hz_parser())]
    hz: Option<u32>,

    /// Set a module parameter, such as hystart=0; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = super::setting)]
    settings: Vec<String>,

    /// File to write, .svg or .png
    #[arg(long, short, value_name = "FILE", value_parser = chart_file)]
    out: PathBuf,
}

fn extension(file: &Path) -> String {
    file.extension().and_then(|it| it.to_str()).unwrap_or_default().to_ascii_lowercase()
}

fn chart_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    if matches!(&*extension(&file), "svg" | "png") { Ok(file) } else { Err("name a .svg or .png file".to_owned()) }
}

/// Told apart by the colour-blind too (Okabe and Ito).
pub(in crate::commands) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// One line of the chart: seconds and segments.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    /// What kept it from going on to its end.
    ended: Option<String>,
}

impl Series {
    /// A line through the changes of a window, which stays what it is until `end_us`.
    fn new(name: String, windows: impl Iterator<Item = (u64, u32)>, end_us: u64) -> Self {
        let mut points: Vec<_> = windows.map(|(t_us, cwnd)| (t_us as f64 / 1e6, f64::from(cwnd))).collect();
        points.extend(points.last().map(|last| (last.0.max(end_us as f64 / 1e6), last.1)));
        Self { name, points, ended: None }
    }
}

/// The most packets that a synthetic run sends.
const MOST_PACKETS: u64 = 20_000_000;

fn synthetic(arguments: &Arguments, name: &str) -> anyhow::Result<Series> {
    let profile = super::profile(name, arguments.hz, &arguments.settings)?;
    let path = SyntheticPath {
        rate: Rate::from_bits_per_sec(arguments.rate * 1_000_000),
        rtt_us: arguments.rtt * 1000,
        queue: arguments.queue,
        mss: 1448,
        packets_per_ack: 1,
        start: Instant::from_secs(10),
    };
    let mut state = SendState::new(profile.initial_window(path.mss), path.mss);
    profile.prepare(&mut state);
    let run = path.run(&mut profile.build(), &mut state, arguments.seconds * 1_000_000, MOST_PACKETS);
    let cut = run.delivered + run.lost >= MOST_PACKETS;
    let last = run.points.last().map_or(0, |point| point.t_us);
    let end_us = if cut { last } else { arguments.seconds * 1_000_000 };
    let mut series = Series::new(name.to_owned(), run.points.iter().map(|point| (point.t_us, point.cwnd)), end_us);
    series.ended = cut.then(|| format!("ends after {MOST_PACKETS} packets"));
    Ok(series)
}

fn traced(arguments: &Arguments, trace: &Path) -> anyhow::Result<Series> {
    let profile = super::profile(&arguments.profiles[0], arguments.hz, &arguments.settings)?;
    let outcome = super::replay::replay(trace, &profile)?;
    let name = trace.file_name().map_or_else(|| trace.display().to_string(), |it| it.to_string_lossy().into_owned());
    let windows = outcome.windows.iter().map(|window| (window.0, window.1));
    Ok(Series { ended: outcome.damaged.clone(), ..Series::new(name, windows, outcome.end_us) })
}

/// The window is constant between two points: steps, not slopes.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(points.len() * 2);
    for (index, point) in points.iter().enumerate() {
        if index > 0 {
            out.push((point.0, points[index - 1].1));
        }
        out.push(*point);
    }
    out
}

/// Characters of a name that are shown.
const NAME: usize = 28;

/// A long name by its beginning and its end.
fn shorter(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME {
        return name.to_owned();
    }
    let head: String = name.chars().take(NAME / 2 - 1).collect();
    let tail: String = name.chars().skip(count - NAME / 2).collect();
    format!("{head}…{tail}")
}

fn draw(title: &str, all: &[Series]) -> anyhow::Result<String> {
    let mut svg = String::new();
    let end = all.iter().filter_map(|series| series.points.last()).map(|point| point.0).fold(0.1, f64::max);
    let top = all.iter().flat_map(|series| &series.points).map(|point| point.1).fold(10.0, f64::max) * 1.08;
    {
        let root = SVGBackend::with_string(&mut svg, (960, 540)).into_drawing_area();
        root.fill(&WHITE)?;
        // Names stand beside the chart, where they hide no line.
        let longest = all.iter().map(|series| series.name.chars().count()).max().unwrap_or(0).min(NAME);
        let (left, right) = root.split_horizontally(960 - 48 - 8 * longest as u32);
        let mut chart = ChartBuilder::on(&left)
            .caption(title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc("time, s")
            .y_desc("congestion window, segments")
            .x_label_formatter(&|x| if end < 5.0 { format!("{x:.1}") } else { format!("{x:.0}") })
            .y_label_formatter(&|y| format!("{y:.0}"))
            .light_line_style(WHITE.mix(0.0))
            .bold_line_style(BLACK.mix(0.12))
            .draw()?;
        for (index, series) in all.iter().enumerate() {
            let style = COLOURS[index % COLOURS.len()].stroke_width(2);
            let line = steps(&series.points);
            // A second round through the colours is dashed.
            let y = 64 + 22 * index as i32;
            if index < COLOURS.len() {
                chart.draw_series(LineSeries::new(line, style))?;
                right.draw(&PathElement::new([(4, y), (24, y)], style))?;
            } else {
                chart.draw_series(DashedLineSeries::new(line, 6, 4, style))?;
                right.draw(&PathElement::new([(4, y), (10, y)], style))?;
                right.draw(&PathElement::new([(18, y), (24, y)], style))?;
            }
            right.draw(&Text::new(shorter(&series.name), (32, y - 6), ("sans-serif", 13)))?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// Rasterises a chart at twice its size.
pub(in crate::commands) fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    let mut options = resvg::usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    // The generic family must name one that is installed.
    let wanted = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial"];
    let has = |fonts: &resvg::usvg::fontdb::Database, name: &str| {
        fonts.faces().any(|face| face.families.iter().any(|family| family.0 == name))
    };
    let family = wanted.iter().find(|name| has(fonts, name)).map(|name| (*name).to_owned());
    let any = fonts.faces().next().and_then(|face| face.families.first()).map(|family| family.0.clone());
    if let Some(family) = family.or(any) {
        fonts.set_sans_serif_family(family);
    }
    ensure!(!options.fontdb.is_empty(), "PNG needs a font for its text and none is installed; write .svg instead");
    let tree = resvg::usvg::Tree::from_str(svg, &options)?;
    let size = tree.size();
    let (width, height) = (size.width() as u32 * 2, size.height() as u32 * 2);
    let mut pixels = resvg::tiny_skia::Pixmap::new(width, height).context("an empty chart")?;
    resvg::render(&tree, resvg::tiny_skia::Transform::from_scale(2.0, 2.0), &mut pixels.as_mut());
    Ok(pixels.encode_png()?)
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let extension = extension(&arguments.out);
    let (title, all) = if arguments.traces.is_empty() {
        let title = format!("{} Mbit/s, {} ms, queue of {} packets", arguments.rate, arguments.rtt, arguments.queue);
        (title, arguments.profiles.iter().map(|name| synthetic(&arguments, name)).collect::<anyhow::Result<Vec<_>>>()?)
    } else {
        let series = arguments.traces.iter().map(|trace| traced(&arguments, trace));
        ("Window of traces, replayed".to_owned(), series.collect::<anyhow::Result<Vec<_>>>()?)
    };
    let svg = draw(&title, &all)?;
    let bytes = if extension == "svg" { svg.into_bytes() } else { png(&svg)? };
    std::fs::write(&arguments.out, bytes).with_context(|| arguments.out.display().to_string())?;
    let mut text = String::new();
    for series in &all {
        let most = series.points.iter().map(|point| point.1).fold(0.0, f64::max);
        let changes = series.points.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        write!(text, "{}: {changes} changes of window, largest {most:.0}", series.name)?;
        writeln!(text, "{}", series.ended.as_ref().map(|it| format!("; {it}")).unwrap_or_default())?;
    }
    writeln!(text, "wrote {}", arguments.out.display())?;
    super::super::print(&text)?;
    let whole = all.iter().all(|series| series.ended.is_none());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(super::super::DAMAGED) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_drawn_as_steps() {
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
        assert!(steps(&[]).is_empty());
    }

    #[test]
    fn a_window_stays_until_the_end_of_its_trace() {
        let series = Series::new(String::new(), [(0, 10), (1_000_000, 20)].into_iter(), 3_000_000);
        assert_eq!(series.points, [(0.0, 10.0), (1.0, 20.0), (3.0, 20.0)]);
        assert!(Series::new(String::new(), std::iter::empty(), 5).points.is_empty());
    }

    #[test]
    fn long_names_keep_both_ends_and_more_series_than_colours_are_dashed() {
        assert_eq!(shorter("a.csv"), "a.csv");
        assert_eq!(shorter(&("é".repeat(40) + ".json")), "é".repeat(13) + "…" + &"é".repeat(9) + ".json");
        let all: Vec<_> = (0..10)
            .map(|index| {
                Series::new(format!("series {index}"), [(0, 10), (1_000_000, 20 + index)].into_iter(), 2_000_000)
            })
            .collect();
        let svg = draw("many", &all).unwrap();
        assert!((0..10).all(|index| svg.contains(&format!("series {index}"))));
    }

    #[test]
    fn a_chart_names_its_axes_and_every_series() {
        let all = ["first", "second"]
            .map(|name| Series::new(name.to_owned(), [(0, 10), (1_000_000, 20)].into_iter(), 3_000_000));
        let svg = draw("a title", &all).unwrap();
        for text in ["a title", "time, s", "congestion window, segments", "first", "second"] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
