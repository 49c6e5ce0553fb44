//! The result of an experiment: rows of published beside reproduced figures, and series to plot.

use serde::Serialize;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was run.
    pub label: String,
    /// Whose rules it followed.
    pub profile: String,
    /// What was measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The published figure; `None` if the publication has none for this row.
    pub published: Option<f64>,
    /// The reproduced figure.
    pub ours: f64,
    /// Allowed difference, percent of the published figure; 0 if it must be equal.
    pub tolerance: Option<f64>,
    /// Whether the difference is within the tolerance; `None` without a published figure.
    pub pass: Option<bool>,
}

impl Row {
    /// A row that is compared with a published figure, `tolerance` in percent.
    pub fn compared(
        label: &str,
        profile: &str,
        metric: &str,
        unit: &str,
        published: f64,
        ours: f64,
        tolerance: f64,
    ) -> Self {
        let pass = (ours - published).abs() <= published.abs() * tolerance / 100.0;
        Self {
            label: label.into(),
            profile: profile.into(),
            metric: metric.into(),
            unit: unit.into(),
            published: Some(published),
            ours,
            tolerance: Some(tolerance),
            pass: Some(pass),
        }
    }

    /// A row for which nothing was published.
    pub fn ours_only(label: &str, profile: &str, metric: &str, unit: &str, ours: f64) -> Self {
        Self {
            label: label.into(),
            profile: profile.into(),
            metric: metric.into(),
            unit: unit.into(),
            published: None,
            ours,
            tolerance: None,
            pass: None,
        }
    }
}

/// Points to plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// What is on the horizontal axis, with its unit.
    pub x: String,
    /// What is on the vertical axis, with its unit.
    pub y: String,
    /// The points, by rising x.
    pub points: Vec<(f64, f64)>,
}

/// One experiment's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: String,
    /// One sentence.
    pub title: String,
    /// Figures.
    pub rows: Vec<Row>,
    /// How the result moves when an assumption moves.
    pub sensitivity: Vec<String>,
    /// Curves.
    pub series: Vec<Series>,
}

impl Experiment {
    /// True if no row missed its tolerance.
    pub fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.pass != Some(false))
    }
}
